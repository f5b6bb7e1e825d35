"""The manual's live judging by language models, its keys and its local models; see :mod:`pairscale.r.manual`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from pairscale.collect.live import SubmitResult, submit_pairs
from pairscale.core.notices import notice
from pairscale.core.options import checked, optional, require_int
from pairscale.core.tables import Table, to_frame
from pairscale.providers.keys import KEY_VARIABLES, key_in_environment
from pairscale.r.settings import Settings, judge_from, taken
from pairscale.r.tables import named_as_in_r, with_failures
from pairscale.runtime import run_sync

_SERVICES = {"openai": "OpenAI", "anthropic": "Anthropic", "gemini": "Google Gemini", "together": "Together.ai"}


def submit(backend: str, pairs: Table, model: str, **settings: Any) -> SubmitResult:
    """Have pairs judged by a model, live; questions are called ``LIVE_ID1_vs_ID2``, unless the pairs name them."""
    frame = to_frame(pairs, "pairs")
    options = asking_options(settings) | taken(settings, "run save_path include_raw retries retry_wait max_cost")
    judge = judge_from(backend, model, **settings)
    done = submit_pairs(frame, judge, **options)
    if "pair_uid" in frame.columns:
        return done
    return replace(
        done,
        results=named_as_in_r(done.results),
        failed_pairs=named_as_in_r(done.failed_pairs),
        failed_attempts=named_as_in_r(done.failed_attempts),
    )


def asking_options(settings: Settings) -> Settings:
    """Take R's ``parallel workers concurrency verbose status_every progress`` out of settings, as our own options."""
    workers = require_int(settings.pop("workers", 1), "workers", least=1)
    if not settings.pop("parallel", False):
        workers = 1
    verbose = settings.pop("verbose", True)
    every = optional(require_int, settings.pop("status_every", None), "status_every", least=1)
    progress = settings.pop("progress", True)
    concurrency = settings.pop("concurrency", None)
    return {
        "concurrency": workers if concurrency is None else concurrency,
        "progress": progress if verbose else False,
        "status_every": every if verbose else None,
    }


def compare(
    backend: str, ID1: str, text1: str, ID2: str, text2: str, model: str, pair_uid: str | None = None, **settings: Any
) -> pl.DataFrame:
    """Have one pair judged by a model."""
    pair = {"ID1": ID1, "text1": text1, "ID2": ID2, "text2": text2}
    if pair_uid is not None:
        pair["pair_uid"] = pair_uid
    done = submit(backend, [pair], model, progress=False, **settings)
    failed = done.failed_attempts.with_columns(condition_id=pl.lit(done.condition_id))
    return with_failures(done.results, failed, backend, model, {})


@checked
def check_llm_api_keys(verbose: bool = True) -> pl.DataFrame:
    """Which keys are set; never what they are.

    Args:
        verbose: Say how to set missing keys.

    Returns:
        ``backend service env_var has_key``.

    Example:
        >>> check_llm_api_keys(verbose=False).columns
        ['backend', 'service', 'env_var', 'has_key']
    """
    rows = [
        {"backend": backend, "service": _SERVICES[backend], "env_var": variable}
        | {"has_key": key_in_environment(backend)[1] is not None}
        for backend, variable in KEY_VARIABLES.items()
    ]
    missing = [str(row["env_var"]) for row in rows if not row["has_key"]]
    if verbose and missing:
        notice(f"not set: {', '.join(missing)}; export the variable of the provider that you want to use")
    return pl.DataFrame(rows)


@checked
def ensure_only_ollama_model_loaded(model: str, verbose: bool = True, *, host: str | None = None) -> list[str]:
    """Have Ollama forget every loaded model but one, to make room for it.

    Args:
        model: The one to keep.
        verbose: Report what was done.
        host: The server; by default ``OLLAMA_HOST``, else this machine.

    Returns:
        The models that were unloaded. Nothing is done when the server does not answer.

    Example:
        >>> ensure_only_ollama_model_loaded("llama3.2", verbose=False)
        []
    """
    from pairscale.providers.ollama import unload_others

    unloaded, problem = run_sync(lambda: unload_others(model, host))
    if verbose and problem:
        notice(f"Ollama: {problem}; nothing was unloaded")
    elif verbose and unloaded:
        notice(f"Ollama: unloaded {', '.join(unloaded)}")
    return unloaded
