"""Pairs: which samples meet, and which of the two stands first."""

from pairscale.pairing.graph import PairSummary as PairSummary
from pairscale.pairing.graph import summarize_pairs as summarize_pairs
from pairscale.pairing.make import make_pairs as make_pairs
from pairscale.pairing.make import sample_pairs as sample_pairs
from pairscale.pairing.order import alternate_pair_order as alternate_pair_order
from pairscale.pairing.order import randomize_pair_order as randomize_pair_order
from pairscale.pairing.order import sample_reverse_pairs as sample_reverse_pairs
