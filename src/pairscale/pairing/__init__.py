"""Pairs: which samples meet, and which of the two is shown first."""

from pairscale.pairing.graph import PairSummary, summarize_pairs
from pairscale.pairing.make import make_pairs, sample_pairs
from pairscale.pairing.order import alternate_pair_order, randomize_pair_order, sample_reverse_pairs

__all__ = [
    "PairSummary",
    "alternate_pair_order",
    "make_pairs",
    "randomize_pair_order",
    "sample_pairs",
    "sample_reverse_pairs",
    "summarize_pairs",
]
