"""Batch judging: many questions in one file, answered within a day at a discount, resumable for days."""
