"""Collecting judgements: ask, write down, go on."""

from pairscale.collect.live import SubmitResult, submit_pairs, submit_pairs_async

__all__ = ["SubmitResult", "submit_pairs", "submit_pairs_async"]
