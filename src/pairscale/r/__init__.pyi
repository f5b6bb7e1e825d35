# Written by tools/r_stub.py; run: python tools/r_stub.py

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.adaptive.rank import AdaptiveResult
from pairscale.adaptive.rank import adaptive_rank_resume as adaptive_rank_resume
from pairscale.adaptive.rank import adaptive_rank_run_live as adaptive_rank_run_live
from pairscale.adaptive.rank import adaptive_rank_start as adaptive_rank_start
from pairscale.adaptive.rank import load_adaptive_session as load_adaptive_session
from pairscale.adaptive.rank import save_adaptive_session as save_adaptive_session
from pairscale.adaptive.rank import summarize_adaptive as summarize_adaptive
from pairscale.adaptive.rank import validate_session_dir as validate_session_dir
from pairscale.adaptive.refits import FitFn
from pairscale.checks.position import compute_reverse_consistency as compute_reverse_consistency
from pairscale.collect.cost import CostEstimate
from pairscale.collect.live import SubmitResult
from pairscale.core.comparisons import build_bt_data as build_bt_data
from pairscale.core.comparisons import build_btl_results_data as build_btl_results_data
from pairscale.core.comparisons import build_elo_data as build_elo_data
from pairscale.core.prompts import build_prompt as build_prompt
from pairscale.core.prompts import get_prompt_template as get_prompt_template
from pairscale.core.prompts import list_prompt_templates as list_prompt_templates
from pairscale.core.prompts import register_prompt_template as register_prompt_template
from pairscale.core.prompts import remove_prompt_template as remove_prompt_template
from pairscale.core.prompts import set_prompt_template as set_prompt_template
from pairscale.core.samples import read_samples_df as read_samples_df
from pairscale.core.samples import read_samples_dir as read_samples_dir
from pairscale.core.tables import Table
from pairscale.core.traits import Trait
from pairscale.core.traits import trait_description as trait_description
from pairscale.datasets import example_openai_batch_output as example_openai_batch_output
from pairscale.datasets import example_writing_pairs as example_writing_pairs
from pairscale.datasets import example_writing_results as example_writing_results
from pairscale.datasets import example_writing_samples as example_writing_samples
from pairscale.datasets import example_writing_samples1000 as example_writing_samples1000
from pairscale.judges.base import Judge
from pairscale.models.bradley_terry import summarize_bt_fit as summarize_bt_fit
from pairscale.pairing import alternate_pair_order as alternate_pair_order
from pairscale.pairing import make_pairs as make_pairs
from pairscale.pairing import randomize_pair_order as randomize_pair_order
from pairscale.pairing import sample_pairs as sample_pairs
from pairscale.pairing import sample_reverse_pairs as sample_reverse_pairs
from pairscale.r.batches import BatchResult
from pairscale.r.batches import llm_download_batch_results as llm_download_batch_results
from pairscale.r.batches import write_openai_batch_file as write_openai_batch_file
from pairscale.r.fits import fit_bayes_btl_mcmc as fit_bayes_btl_mcmc
from pairscale.r.fits import fit_bt_model as fit_bt_model
from pairscale.r.fits import fit_elo_model as fit_elo_model
from pairscale.r.judge import AdaptiveBothOrders, AdaptiveLLMJudge
from pairscale.r.live import check_llm_api_keys as check_llm_api_keys
from pairscale.r.live import ensure_only_ollama_model_loaded as ensure_only_ollama_model_loaded
from pairscale.r.logs import adaptive_get_logs as adaptive_get_logs
from pairscale.r.logs import adaptive_item_log as adaptive_item_log
from pairscale.r.logs import adaptive_results_history as adaptive_results_history
from pairscale.r.logs import adaptive_round_log as adaptive_round_log
from pairscale.r.logs import adaptive_step_log as adaptive_step_log
from pairscale.r.logs import summarize_items as summarize_items
from pairscale.r.logs import summarize_refits as summarize_refits
from pairscale.r.multi import MultiBatch, MultiBatchResult
from pairscale.r.position import check_positional_bias as check_positional_bias

def names_from(table: str) -> Any: ...

TABLE: str

def adaptive_rank(
    data: Table | str | os.PathLike[str],
    id_col: int | str | None = None,
    text_col: int | str | None = None,
    backend: str = "openai",
    model: str | None = None,
    trait: str | Trait = "overall_quality",
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    endpoint: str | None = None,
    api_key: str | None = None,
    include_raw: bool = False,
    judge_args: Mapping[str, Any] | None = None,
    judge_call_args: Mapping[str, Any] | None = None,
    n_steps: int = 1,
    fit_fn: FitFn | str | None = None,
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    session_dir: str | os.PathLike[str] | None = None,
    persist_item_log: bool = False,
    resume: bool = True,
    seed: int = 1,
    progress: bool | str = "all",
    progress_redraw_every: int = 10,
    progress_show_events: bool = True,
    progress_errors: bool = True,
    save_outputs: bool = False,
    output_file: str | os.PathLike[str] | None = None,
    judge: str | Judge | Callable[..., Any] | None = None,
    *,
    selector: str | Callable[..., Any] = "pollitt",
    preset: str = "pairwiseLLM",
    run: str | os.PathLike[str] | None = None,
    without: str | Sequence[str] = (),
    concurrency: int = 1,
    max_comparisons: int | None = None,
    max_cost: float | None = None,
    max_minutes: float | None = None,
    retries: int = 3,
    retry_wait: float = 1.0,
    timeout: float = 300.0,
) -> AdaptiveResult: ...
def anthropic_compare_pair_live(
    ID1: str,
    text1: str,
    ID2: str,
    text2: str,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    api_key: str | None = None,
    anthropic_version: str = "2023-06-01",
    reasoning: str = "none",
    include_raw: bool = False,
    include_thoughts: bool | None = None,
    **settings: Any,
) -> pl.DataFrame: ...
def anthropic_create_batch(
    requests: Iterable[Mapping[str, Any]] | pl.DataFrame,
    api_key: str | None = None,
    anthropic_version: str = "2023-06-01",
) -> Mapping[str, Any]: ...
def anthropic_download_batch_results(
    batch_id: str,
    output_path: str | os.PathLike[str],
    api_key: str | None = None,
    anthropic_version: str = "2023-06-01",
) -> Path: ...
def anthropic_get_batch(
    batch_id: str,
    api_key: str | None = None,
    anthropic_version: str = "2023-06-01",
) -> Mapping[str, Any]: ...
def anthropic_poll_batch_until_complete(
    batch_id: str,
    interval_seconds: float = 60,
    timeout_seconds: float = 86400,
    api_key: str | None = None,
    anthropic_version: str = "2023-06-01",
    verbose: bool = True,
) -> Mapping[str, Any]: ...
def build_anthropic_batch_requests(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    reasoning: str = "none",
    custom_id_prefix: str = "ANTH",
    **settings: Any,
) -> pl.DataFrame: ...
def build_gemini_batch_requests(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    thinking_level: str | None = None,
    custom_id_prefix: str = "GEM",
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    max_output_tokens: int | None = None,
    include_thoughts: bool = False,
    **settings: Any,
) -> pl.DataFrame: ...
def build_openai_batch_requests(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    endpoint: str = "chat.completions",
    temperature: float | None = None,
    top_p: float | None = None,
    logprobs: int | bool | None = None,
    reasoning: str | None = None,
    include_thoughts: bool = False,
    request_id_prefix: str = "EXP",
    **settings: Any,
) -> pl.DataFrame: ...
def estimate_llm_pairs_cost(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    backend: str = "openai",
    endpoint: str | None = None,
    mode: str = "live",
    n_test: int = 25,
    test_strategy: str = "stratified_prompt_bytes",
    seed: int = 1,
    cost_per_million_input: float | None = None,
    cost_per_million_output: float | None = None,
    batch_discount: float | None = None,
    budget_quantile: float = 0.9,
    return_test_results: bool = True,
    return_remaining_pairs: bool = True,
    **settings: Any,
) -> CostEstimate: ...
def gemini_compare_pair_live(
    ID1: str,
    text1: str,
    ID2: str,
    text2: str,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    api_key: str | None = None,
    thinking_level: str | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    max_output_tokens: int | None = None,
    api_version: str = "v1beta",
    include_raw: bool = False,
    include_thoughts: bool = False,
    pair_uid: str | None = None,
    **settings: Any,
) -> pl.DataFrame: ...
def gemini_create_batch(
    requests: Iterable[Mapping[str, Any]] | pl.DataFrame,
    model: str,
    api_key: str | None = None,
    api_version: str = "v1beta",
    display_name: str | None = None,
) -> Mapping[str, Any]: ...
def gemini_download_batch_results(
    batch: Mapping[str, Any] | str,
    requests_tbl: Table,
    output_path: str | os.PathLike[str],
    api_key: str | None = None,
    api_version: str = "v1beta",
) -> Path: ...
def gemini_get_batch(
    batch_name: str,
    api_key: str | None = None,
    api_version: str = "v1beta",
) -> Mapping[str, Any]: ...
def gemini_poll_batch_until_complete(
    batch_name: str,
    interval_seconds: float = 60,
    timeout_seconds: float = 86400,
    api_key: str | None = None,
    api_version: str = "v1beta",
    verbose: bool = True,
) -> Mapping[str, Any]: ...
def llm_compare_pair(
    ID1: str,
    text1: str,
    ID2: str,
    text2: str,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    backend: str = "openai",
    endpoint: str | None = None,
    api_key: str | None = None,
    include_raw: bool = False,
    **settings: Any,
) -> pl.DataFrame: ...
def llm_resume_multi_batches(
    jobs: MultiBatch | list[Mapping[str, Any]] | Table | None = None,
    output_dir: str | os.PathLike[str] | None = None,
    interval_seconds: float = 60,
    per_job_delay: float = 2,
    write_results_csv: bool = False,
    keep_jsonl: bool | None = None,
    write_registry: bool = False,
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    verbose: bool = False,
    write_combined_csv: bool = False,
    combined_csv_path: str | os.PathLike[str] | None = None,
    openai_max_retries: int = 3,
    *,
    run: str | os.PathLike[str] | None = None,
    timeout_seconds: float | None = None,
    poll: bool = True,
    api_key: str | None = None,
    include_raw: bool | None = None,
) -> MultiBatchResult: ...
def llm_submit_pairs_batch(
    pairs: Table,
    backend: str = "openai",
    model: str | None = None,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    include_thoughts: bool = False,
    include_raw: bool = False,
    **settings: Any,
) -> BatchResult: ...
def llm_submit_pairs_multi_batch(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    backend: str = "openai",
    batch_size: int | None = None,
    n_segments: int | None = None,
    output_dir: str | os.PathLike[str] | None = None,
    write_registry: bool = False,
    keep_jsonl: bool = True,
    verbose: bool = False,
    openai_max_retries: int = 3,
    **settings: Any,
) -> MultiBatch: ...
def make_adaptive_judge_llm(
    backend: str = "openai",
    model: str | None = None,
    trait: str | Trait = "overall_quality",
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    endpoint: str | None = None,
    api_key: str | None = None,
    include_raw: bool = False,
    text_col: int | str = "text",
    judge_args: Mapping[str, Any] | None = None,
) -> AdaptiveLLMJudge | AdaptiveBothOrders: ...
def ollama_compare_pair_live(
    ID1: str,
    text1: str,
    ID2: str,
    text2: str,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    host: str | None = None,
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    think: bool = False,
    num_ctx: int = 8192,
    include_raw: bool = False,
    **settings: Any,
) -> pl.DataFrame: ...
def openai_compare_pair_live(
    ID1: str,
    text1: str,
    ID2: str,
    text2: str,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    endpoint: str | None = None,
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    api_key: str | None = None,
    include_raw: bool = False,
    **settings: Any,
) -> pl.DataFrame: ...
def openai_create_batch(
    input_file_id: str,
    endpoint: str,
    completion_window: str = "24h",
    metadata: Mapping[str, str] | None = None,
    api_key: str | None = None,
) -> Mapping[str, Any]: ...
def openai_download_batch_output(
    batch_id: str,
    path: str | os.PathLike[str],
    api_key: str | None = None,
) -> Path: ...
def openai_get_batch(
    batch_id: str,
    api_key: str | None = None,
) -> Mapping[str, Any]: ...
def openai_poll_batch_until_complete(
    batch_id: str,
    interval_seconds: float = 5,
    timeout_seconds: float = 600,
    max_attempts: float = float("inf"),
    api_key: str | None = None,
    verbose: bool = True,
) -> Mapping[str, Any]: ...
def openai_upload_batch_file(
    path: str | os.PathLike[str],
    purpose: str = "batch",
    api_key: str | None = None,
) -> Mapping[str, Any]: ...
def parse_anthropic_batch_output(
    jsonl_path: str | os.PathLike[str],
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    *,
    requests_tbl: Table | None = None,
    prefix: str | None = None,
    include_raw: bool = False,
) -> pl.DataFrame: ...
def parse_gemini_batch_output(
    results_path: str | os.PathLike[str],
    requests_tbl: Table | None = None,
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    *,
    include_raw: bool = False,
) -> pl.DataFrame: ...
def parse_openai_batch_output(
    path: str | os.PathLike[str],
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    *,
    requests_tbl: Table | None = None,
    prefix: str | None = None,
    include_raw: bool = False,
) -> pl.DataFrame: ...
def run_anthropic_batch_pipeline(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    reasoning: str = "none",
    include_thoughts: bool = False,
    batch_input_path: str | os.PathLike[str] | None = None,
    batch_output_path: str | os.PathLike[str] | None = None,
    poll: bool = True,
    interval_seconds: float = 60,
    timeout_seconds: float = 86400,
    api_key: str | None = None,
    anthropic_version: str = "2023-06-01",
    verbose: bool = True,
    **settings: Any,
) -> BatchResult: ...
def run_gemini_batch_pipeline(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    thinking_level: str | None = None,
    batch_input_path: str | os.PathLike[str] | None = None,
    batch_output_path: str | os.PathLike[str] | None = None,
    poll: bool = True,
    interval_seconds: float = 60,
    timeout_seconds: float = 86400,
    api_key: str | None = None,
    api_version: str = "v1beta",
    verbose: bool = True,
    include_thoughts: bool = False,
    **settings: Any,
) -> BatchResult: ...
def run_openai_batch_pipeline(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    include_thoughts: bool = False,
    include_raw: bool = False,
    endpoint: str | None = None,
    batch_input_path: str | os.PathLike[str] | None = None,
    batch_output_path: str | os.PathLike[str] | None = None,
    poll: bool = True,
    interval_seconds: float = 5,
    timeout_seconds: float = 600,
    max_attempts: float = float("inf"),
    metadata: Mapping[str, str] | None = None,
    api_key: str | None = None,
    *,
    verbose: bool = False,
    **settings: Any,
) -> BatchResult: ...
def submit_anthropic_pairs_live(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    api_key: str | None = None,
    anthropic_version: str = "2023-06-01",
    reasoning: str = "none",
    verbose: bool = True,
    status_every: int | None = None,
    progress: bool | str = True,
    include_raw: bool = False,
    include_thoughts: bool | None = None,
    save_path: str | os.PathLike[str] | None = None,
    parallel: bool = False,
    workers: int = 1,
    **settings: Any,
) -> SubmitResult: ...
def submit_gemini_pairs_live(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    api_key: str | None = None,
    thinking_level: str | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    max_output_tokens: int | None = None,
    api_version: str = "v1beta",
    verbose: bool = True,
    status_every: int | None = None,
    progress: bool | str = True,
    include_raw: bool = False,
    include_thoughts: bool = False,
    save_path: str | os.PathLike[str] | None = None,
    parallel: bool = False,
    workers: int = 1,
    **settings: Any,
) -> SubmitResult: ...
def submit_llm_pairs(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    backend: str = "openai",
    endpoint: str | None = None,
    api_key: str | None = None,
    verbose: bool = True,
    status_every: int | None = None,
    progress: bool | str = True,
    include_raw: bool = False,
    save_path: str | os.PathLike[str] | None = None,
    parallel: bool = False,
    workers: int = 1,
    **settings: Any,
) -> SubmitResult: ...
def submit_ollama_pairs_live(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    host: str | None = None,
    verbose: bool = True,
    status_every: int | None = None,
    progress: bool | str = True,
    think: bool = False,
    num_ctx: int = 8192,
    include_raw: bool = False,
    save_path: str | os.PathLike[str] | None = None,
    parallel: bool = False,
    workers: int = 1,
    **settings: Any,
) -> SubmitResult: ...
def submit_openai_pairs_live(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    endpoint: str | None = None,
    api_key: str | None = None,
    verbose: bool = True,
    status_every: int | None = None,
    progress: bool | str = True,
    include_raw: bool = False,
    save_path: str | os.PathLike[str] | None = None,
    parallel: bool = False,
    workers: int = 1,
    **settings: Any,
) -> SubmitResult: ...
def submit_together_pairs_live(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    api_key: str | None = None,
    verbose: bool = True,
    status_every: int | None = None,
    progress: bool | str = True,
    include_raw: bool = False,
    save_path: str | os.PathLike[str] | None = None,
    parallel: bool = False,
    workers: int = 1,
    **settings: Any,
) -> SubmitResult: ...
def together_compare_pair_live(
    ID1: str,
    text1: str,
    ID2: str,
    text2: str,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    api_key: str | None = None,
    include_raw: bool = False,
    **settings: Any,
) -> pl.DataFrame: ...
