"""Batch judging: many questions in one file, answered within a day at a discount, resumable for days."""

from pairscale.collect.batch.manager import BatchManager

__all__ = ["BatchManager"]
