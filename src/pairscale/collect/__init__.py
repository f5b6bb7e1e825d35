"""Collecting judgements: ask, write down, continue."""

from pairscale.collect.cost import CostEstimate, estimate_llm_pairs_cost
from pairscale.collect.live import SubmitResult, submit_pairs, submit_pairs_async

__all__ = ["CostEstimate", "SubmitResult", "estimate_llm_pairs_cost", "submit_pairs", "submit_pairs_async"]
