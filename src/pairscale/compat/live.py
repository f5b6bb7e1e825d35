"""The manual's verbs for language models: one pair, many pairs, and the judge of an adaptive run."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.collect.live import SubmitResult, submit_pairs
from pairscale.compat._given import TraitAndTemplate, judge_from
from pairscale.compat._tables import named_as_in_r
from pairscale.core.errors import JudgeError
from pairscale.core.notebooks import in_notebook
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode, checked, optional, require_int, require_progress
from pairscale.core.tables import FAILED, result_columns, to_frame
from pairscale.core.traits import Trait
from pairscale.providers.keys import KEY_VARIABLES, key_in_environment
from pairscale.runtime import run_sync

if TYPE_CHECKING:
    from pairscale.core.tables import Table

_PROGRESS_LINES = 20  # where there is neither a terminal nor a notebook
_SERVICES = {"openai": "OpenAI", "anthropic": "Anthropic", "gemini": "Google Gemini", "together": "Together.ai"}


@checked
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
    progress: ProgressMode = True,
    include_raw: bool = False,
    save_path: str | os.PathLike[str] | None = None,
    parallel: bool = False,
    workers: int = 1,
    *,
    trait: str | Trait = "overall_quality",
    run: str | os.PathLike[str] | None = None,
    concurrency: int | None = None,
    retries: int = 3,
    retry_wait: float = 1.0,
    max_cost: float | None = None,
    **settings: Any,
) -> SubmitResult:
    """Have pairs judged by a model, live, and keep every answer; see :func:`submit_pairs`.

    Args:
        pairs: A table of ``ID1 text1 ID2 text2``.
        model: Name of the model.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; without one, see ``trait``.
        prompt_template: Name, file or text of a prompt template.
        backend: The provider.
        endpoint: For OpenAI: ``chat.completions`` or ``responses``; None chooses by the model.
        api_key: The API key; by default that of the environment.
        verbose: print lines on standard error that say how far it is; False prints none.
        status_every: print a line per this many pairs, instead of the bar. By default lines are printed only without a
            terminal, about twenty in all.
        progress: show a bar in a terminal. False shows nothing, unless you give ``status_every``.
        include_raw: Add ``raw_response`` to the results.
        save_path: a CSV that is kept up to date, and taken up again when it exists.
        parallel: ask ``workers`` questions at once.
        workers: how many.
        trait: a built-in trait's key, or a :class:`Trait`.
        run: the run file.
        concurrency: the same as ``parallel=True`` with this many ``workers``.
        retries: how often to ask again when an error may pass.
        retry_wait: seconds before the first of these.
        max_cost: stop before the answers of this call cost more US dollars.
        settings: of :class:`LLMJudge`: ``reasoning temperature max_tokens both_orders base_url price …``.

    Returns:
        A :class:`SubmitResult` with ``results``, ``failed_pairs`` and ``failed_attempts``.

    Raises:
        InputError: pairs or settings cannot be used.
        JudgeError: the key is not accepted, or there is no such model.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> submit_llm_pairs(pair, "gpt-4.1", progress=False).results["better_id"].to_list()
        ['b']
    """
    question = TraitAndTemplate(trait_name, trait_description, prompt_template)
    judge = judge_from(backend, model, question, api_key, {**settings, "trait": trait, "endpoint": endpoint})
    pairs = to_frame(pairs, "pairs")
    workers = require_int(workers, "workers", least=1)
    if concurrency is None:
        concurrency = workers if parallel else 1
    optional(require_int, status_every, "status_every", least=1)
    bar, every = progress_of(pairs.height, verbose=verbose, status_every=status_every, progress=progress)
    try:
        done = submit_pairs(
            pairs, judge, run=run, concurrency=concurrency, progress=bar, retries=retries, retry_wait=retry_wait,
            save_path=save_path, include_raw=include_raw, max_cost=max_cost, status_every=every,
        )  # fmt: skip
    except JudgeError as error:
        if isinstance(error.result, SubmitResult):
            error.result = _named(error.result, pairs)
        raise
    return _named(done, pairs)


def progress_of(
    n_pairs: int, *, verbose: bool, status_every: int | None, progress: ProgressMode
) -> tuple[bool, int | None]:
    """Whether to show a bar, and per how many pairs to print a line; None for no such lines."""
    shown = require_progress(progress) != "none"
    if (sys.stderr is not None and sys.stderr.isatty()) or in_notebook():
        return shown, status_every if verbose else None
    if not verbose:
        return False, None
    if status_every is None and shown:
        status_every = max(1, math.ceil(n_pairs / _PROGRESS_LINES))
    return shown, status_every


def _named(done: SubmitResult, pairs: pl.DataFrame) -> SubmitResult:
    """Results whose questions are called ``LIVE_ID1_vs_ID2``, unless the pairs name them."""
    if "pair_uid" in pairs.columns:
        return done
    return replace(
        done,
        results=named_as_in_r(done.results),
        failed_pairs=named_as_in_r(done.failed_pairs),
        failed_attempts=named_as_in_r(done.failed_attempts),
    )


@checked
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
) -> pl.DataFrame:
    """Have one pair judged by a model.

    Args:
        ID1: the first text's id.
        text1: the first text.
        ID2: the second text's id.
        text2: the second text.
        model: Name of the model.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; by default overall quality is judged.
        prompt_template: Name, file or text of a prompt template.
        backend: The provider.
        endpoint: For OpenAI: ``chat.completions`` or ``responses``.
        api_key: The API key; by default that of the environment.
        include_raw: Add ``raw_response``.
        settings: further ones of :class:`LLMJudge`; ``pair_uid`` names the pair.

    Returns:
        One row of results. Without an answer, ``better_id`` is empty and ``error_message`` says why.

    Example:
        >>> row = llm_compare_pair("a", "Rain.", "b", "It is raining, as it has for weeks.", "gpt-4.1")
        >>> row.select("ID1", "ID2", "better_id").row(0)
        ('a', 'b', 'b')
    """
    pair = {"ID1": ID1, "text1": text1, "ID2": ID2, "text2": text2}
    if (uid := settings.pop("pair_uid", None)) is not None:
        pair["pair_uid"] = uid
    done = submit_llm_pairs(
        [pair], model, trait_name, trait_description, prompt_template, backend, endpoint, api_key, progress=False,
        include_raw=include_raw, **settings,
    )  # fmt: skip
    if done.results.height:
        return done.results
    failed = done.failed_pairs.row(0, named=True)
    row = {"custom_id": uid or f"LIVE_{ID1}_vs_{ID2}", "ID1": ID1, "ID2": ID2, "model": model}
    row |= {name: failed[name] for name in FAILED}
    row |= {"error_message": f"{failed['error_code']}: {failed['error_message']}"}
    row |= {"condition_id": done.condition_id, "judge_id": f"{backend}:{model}"}
    schema = result_columns(raw=include_raw)
    return pl.DataFrame([{name: row.get(name) for name in schema}], schema=schema)


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
    if verbose and (missing := [row["env_var"] for row in rows if not row["has_key"]]):
        notice(f"not set: {', '.join(map(str, missing))}; export the variable of the provider that you want to use")
    return pl.DataFrame(rows)


@checked
def ensure_only_ollama_model_loaded(model: str, verbose: bool = True, *, host: str | None = None) -> list[str]:
    """Have Ollama forget every loaded model but one, to make room for it.

    Args:
        model: the one to keep.
        verbose: Report what was done.
        host: the server; by default ``OLLAMA_HOST``, else this machine.

    Returns:
        The models that were unloaded. Nothing is done when the server does not answer.

    Example:
        >>> ensure_only_ollama_model_loaded("llama3.2", verbose=False)
        []
    """
    from pairscale.providers.ollama import unload_others

    unloaded, problem = run_sync(lambda: unload_others(model, host))
    if verbose:
        if problem:
            notice(f"Ollama: {problem}; nothing was unloaded")
        elif unloaded:
            notice(f"Ollama: unloaded {', '.join(unloaded)}")
    return unloaded
