"""Batch judging: many questions in one file, answered within a day at a discount, resumable for days."""

from pairscale.collect.batch.calls import (
    anthropic_create_batch,
    anthropic_download_batch_results,
    anthropic_get_batch,
    anthropic_poll_batch_until_complete,
    gemini_create_batch,
    gemini_download_batch_results,
    gemini_get_batch,
    gemini_poll_batch_until_complete,
    openai_create_batch,
    openai_download_batch_output,
    openai_get_batch,
    openai_poll_batch_until_complete,
    openai_upload_batch_file,
)
from pairscale.collect.batch.manager import BatchManager
from pairscale.collect.batch.multi import (
    MultiBatch,
    MultiBatchResult,
    llm_resume_multi_batches,
    llm_submit_pairs_multi_batch,
)
from pairscale.collect.batch.parse import (
    parse_anthropic_batch_output,
    parse_gemini_batch_output,
    parse_openai_batch_output,
)
from pairscale.collect.batch.pipelines import (
    BatchResult,
    llm_download_batch_results,
    llm_submit_pairs_batch,
    run_anthropic_batch_pipeline,
    run_gemini_batch_pipeline,
    run_openai_batch_pipeline,
)
from pairscale.collect.batch.requests import (
    build_anthropic_batch_requests,
    build_gemini_batch_requests,
    build_openai_batch_requests,
    write_openai_batch_file,
)

__all__ = [
    "BatchManager",
    "BatchResult",
    "MultiBatch",
    "MultiBatchResult",
    "anthropic_create_batch",
    "anthropic_download_batch_results",
    "anthropic_get_batch",
    "anthropic_poll_batch_until_complete",
    "build_anthropic_batch_requests",
    "build_gemini_batch_requests",
    "build_openai_batch_requests",
    "gemini_create_batch",
    "gemini_download_batch_results",
    "gemini_get_batch",
    "gemini_poll_batch_until_complete",
    "llm_download_batch_results",
    "llm_resume_multi_batches",
    "llm_submit_pairs_batch",
    "llm_submit_pairs_multi_batch",
    "openai_create_batch",
    "openai_download_batch_output",
    "openai_get_batch",
    "openai_poll_batch_until_complete",
    "openai_upload_batch_file",
    "parse_anthropic_batch_output",
    "parse_gemini_batch_output",
    "parse_openai_batch_output",
    "run_anthropic_batch_pipeline",
    "run_gemini_batch_pipeline",
    "run_openai_batch_pipeline",
    "write_openai_batch_file",
]
