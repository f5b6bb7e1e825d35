"""The R package's manual: every name of it, with its arguments and defaults; see docs/from-r.md.

Most of them live elsewhere in the package, and each is loaded when it is first used. The functions for language models
are made from a table (:mod:`pairscale.r.manual`).
"""

from __future__ import annotations

from typing import Any

import lazy_loader


def names_from(table: str) -> Any:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a module whose names live elsewhere.

    Args:
        table: Lines ``module: name name ...``, the module without ``pairscale.``.
    """
    where: dict[str, list[str]] = {}
    for line in table.strip().splitlines():
        module, names = line.split(": ")
        where.setdefault(module, []).extend(names.split())
    return lazy_loader.attach("pairscale", submod_attrs=where)


TABLE = """
adaptive.rank: adaptive_rank_resume adaptive_rank_run_live adaptive_rank_start load_adaptive_session
adaptive.rank: save_adaptive_session summarize_adaptive validate_session_dir
checks.position: compute_reverse_consistency
core.comparisons: build_bt_data build_btl_results_data build_elo_data
core.prompts: build_prompt get_prompt_template list_prompt_templates register_prompt_template remove_prompt_template
core.prompts: set_prompt_template
core.samples: read_samples_df read_samples_dir
core.traits: trait_description
datasets: example_openai_batch_output example_writing_pairs example_writing_results example_writing_samples
datasets: example_writing_samples1000
models.bradley_terry: summarize_bt_fit
pairing: alternate_pair_order make_pairs randomize_pair_order sample_pairs sample_reverse_pairs
r.batches: llm_download_batch_results write_openai_batch_file
r.fits: fit_bayes_btl_mcmc fit_bt_model fit_elo_model
r.position: check_positional_bias
r.live: check_llm_api_keys ensure_only_ollama_model_loaded
r.logs: adaptive_get_logs adaptive_item_log adaptive_results_history adaptive_round_log adaptive_step_log
r.logs: summarize_items summarize_refits
r.manual: adaptive_rank anthropic_compare_pair_live anthropic_create_batch anthropic_download_batch_results
r.manual: anthropic_get_batch anthropic_poll_batch_until_complete build_anthropic_batch_requests
r.manual: build_gemini_batch_requests build_openai_batch_requests estimate_llm_pairs_cost gemini_compare_pair_live
r.manual: gemini_create_batch gemini_download_batch_results gemini_get_batch gemini_poll_batch_until_complete
r.manual: llm_compare_pair llm_resume_multi_batches llm_submit_pairs_batch llm_submit_pairs_multi_batch
r.manual: make_adaptive_judge_llm ollama_compare_pair_live openai_compare_pair_live openai_create_batch
r.manual: openai_download_batch_output openai_get_batch openai_poll_batch_until_complete openai_upload_batch_file
r.manual: parse_anthropic_batch_output parse_gemini_batch_output parse_openai_batch_output
r.manual: run_anthropic_batch_pipeline run_gemini_batch_pipeline run_openai_batch_pipeline
r.manual: submit_anthropic_pairs_live submit_gemini_pairs_live submit_llm_pairs submit_ollama_pairs_live
r.manual: submit_openai_pairs_live submit_together_pairs_live together_compare_pair_live
"""
"""Where the manual's names live."""

__getattr__, __dir__, __all__ = names_from(TABLE)
