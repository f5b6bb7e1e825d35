"""Pairs: which samples meet, and which of the two stands first."""

from pairscale.pairs.graph import PairSummary, summarize_pairs
from pairscale.pairs.make import make_pairs, sample_pairs
from pairscale.pairs.order import alternate_pair_order, randomize_pair_order, sample_reverse_pairs

__all__ = [
    "PairSummary",
    "alternate_pair_order",
    "make_pairs",
    "randomize_pair_order",
    "sample_pairs",
    "sample_reverse_pairs",
    "summarize_pairs",
]
