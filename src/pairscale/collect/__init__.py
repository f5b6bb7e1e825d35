"""Collecting judgements: ask, write down, go on."""

from pairscale.collect.cost import CostEstimate, estimate_llm_pairs_cost
from pairscale.collect.live import SubmitResult, submit_pairs, submit_pairs_async
from pairscale.collect.llm import (
    anthropic_compare_pair_live,
    check_llm_api_keys,
    ensure_only_ollama_model_loaded,
    gemini_compare_pair_live,
    llm_compare_pair,
    make_adaptive_judge_llm,
    ollama_compare_pair_live,
    openai_compare_pair_live,
    submit_anthropic_pairs_live,
    submit_gemini_pairs_live,
    submit_llm_pairs,
    submit_ollama_pairs_live,
    submit_openai_pairs_live,
    submit_together_pairs_live,
    together_compare_pair_live,
)

__all__ = [
    "CostEstimate",
    "SubmitResult",
    "anthropic_compare_pair_live",
    "check_llm_api_keys",
    "ensure_only_ollama_model_loaded",
    "estimate_llm_pairs_cost",
    "gemini_compare_pair_live",
    "llm_compare_pair",
    "make_adaptive_judge_llm",
    "ollama_compare_pair_live",
    "openai_compare_pair_live",
    "submit_anthropic_pairs_live",
    "submit_gemini_pairs_live",
    "submit_llm_pairs",
    "submit_ollama_pairs_live",
    "submit_openai_pairs_live",
    "submit_pairs",
    "submit_pairs_async",
    "submit_together_pairs_live",
    "together_compare_pair_live",
]
