"""The manual's verbs for language models: one pair, many pairs, and the judge of an adaptive run."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from pairscale.collect.live import SubmitResult, submit_pairs
from pairscale.errors import InputError
from pairscale.judges.batched import BatchJudge
from pairscale.judges.llm import LLMJudge
from pairscale.judges.orders import BothOrders
from pairscale.notices import notice
from pairscale.options import optional, require_flag, require_int
from pairscale.prompts import template_from
from pairscale.providers.keys import KEY_VARIABLES, key_in_environment
from pairscale.runtime import run_sync
from pairscale.tables import RESULTS, to_frame
from pairscale.traits import Trait, trait_description

if TYPE_CHECKING:
    from pairscale.tables import Table

__all__ = [
    "anthropic_compare_pair_live",
    "check_llm_api_keys",
    "ensure_only_ollama_model_loaded",
    "gemini_compare_pair_live",
    "llm_compare_pair",
    "make_adaptive_judge_llm",
    "ollama_compare_pair_live",
    "openai_compare_pair_live",
    "progress_of",
    "submit_anthropic_pairs_live",
    "submit_gemini_pairs_live",
    "submit_llm_pairs",
    "submit_ollama_pairs_live",
    "submit_openai_pairs_live",
    "submit_together_pairs_live",
    "together_compare_pair_live",
]

_SERVICES = {"openai": "OpenAI", "anthropic": "Anthropic", "gemini": "Google Gemini", "together": "Together.ai"}
_MODELS = {
    "openai": "gpt-4.1", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash",
    "together": "deepseek-ai/DeepSeek-V3", "ollama": "llama3.2",
}  # fmt: skip
"""A model of each, for the examples."""
_LINES = 20
"""About how many lines say how far it is where there is no terminal."""


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
    text_col: str = "text",
    judge_args: Mapping[str, Any] | None = None,
) -> BatchJudge:
    """A judge that asks a model, for :func:`adaptive_rank_run_live` or :func:`submit_pairs`.

    Args:
        backend: ``openai``, ``anthropic``, ``gemini``, ``together``, ``ollama`` or ``compatible``.
        model: the model's name.
        trait: a built-in trait's key, or a :class:`Trait`; not used when both of the next are given.
        trait_name: of a trait of your own, with
        trait_description: its definition.
        prompt_template: a template's name, file or text; the default template when None.
        endpoint: of OpenAI: ``chat.completions`` or ``responses``; None chooses by the model.
        api_key: the key; by default that of the environment.
        include_raw: must be False: a judge has no results. The run file always keeps the raw replies; give
            ``include_raw=True`` to :func:`adaptive_rank` or :func:`submit_pairs` to have them in what they return.
        text_col: must be ``text``: items carry their text under that name.
        judge_args: further settings of :class:`LLMJudge`, such as ``{"reasoning": "low"}``; and ``both_orders``.

    Raises:
        InputError: when the model or the key is missing, or a setting is unknown.

    Example:
        >>> make_adaptive_judge_llm("openai", "gpt-4.1", api_key="none").condition.judge_id
        'openai:gpt-4.1'
    """
    if include_raw:
        raise InputError(
            "include_raw has no meaning for a judge, which has no results; give it to adaptive_rank or submit_pairs, "
            "whose results then hold the raw replies"
        )
    if text_col != "text":
        raise InputError("items carry their text in the column 'text'; name yours with text_col where they are read")
    if model is None:
        raise InputError(f"name a model of {backend}")
    template_id, template = template_from(prompt_template or "default")
    what = _trait(trait, trait_name, trait_description)
    settings = dict(judge_args or {})
    if endpoint is not None:
        settings["endpoint"] = endpoint
    both_orders = require_flag(settings.pop("both_orders", False), "both_orders")
    key = api_key or settings.pop("api_key", None)
    judge = LLMJudge(backend, model, what, template, template_id, api_key=key, **settings)
    return BothOrders(judge) if both_orders else judge


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
    progress: bool = True,
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
        pairs: ``ID1 text1 ID2 text2``.
        model: the model's name.
        trait_name: of a trait of your own, with
        trait_description: its definition; else see ``trait``.
        prompt_template: a template's name, file or text.
        backend: the provider.
        endpoint: of OpenAI: ``chat.completions`` or ``responses``; None chooses by the model.
        api_key: the key; by default that of the environment.
        verbose: print lines on standard error that say how far it is; False prints none.
        status_every: a line per so many pairs, in place of the bar. By default there are lines only where there is no
            terminal, about twenty in all.
        progress: show a bar in a terminal. False shows nothing, unless you give ``status_every``.
        include_raw: add ``raw_response`` to the results.
        save_path: a CSV that is kept up to date, and taken up again when it exists.
        parallel: ask ``workers`` questions at once.
        workers: how many.
        trait: a built-in trait's key, or a :class:`Trait`.
        run: the run file.
        concurrency: the same as ``parallel=True`` with so many ``workers``.
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
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It rains, and nobody is surprised."}]
        >>> submit_llm_pairs(pair, "gpt-4.1", progress=False).results["better_id"].to_list()
        ['b']
    """
    judge = make_adaptive_judge_llm(
        backend, model, trait, trait_name, trait_description, prompt_template, endpoint, api_key, judge_args=settings
    )
    workers = require_int(workers, "workers", least=1)
    if concurrency is None:
        concurrency = workers if parallel else 1
    optional(require_int, status_every, "status_every", least=1)
    bar, every = progress_of(pairs, verbose=verbose, status_every=status_every, progress=progress)
    return submit_pairs(
        pairs,
        judge,
        run=run,
        concurrency=concurrency,
        progress=bar,
        retries=retries,
        retry_wait=retry_wait,
        save_path=save_path,
        include_raw=include_raw,
        max_cost=max_cost,
        status_every=every,
    )


def progress_of(pairs: Table, *, verbose: bool, status_every: int | None, progress: bool) -> tuple[bool, int | None]:
    """Whether to show a bar, and per how many pairs to print a line; None for no such lines."""
    if sys.stderr is not None and sys.stderr.isatty():
        return progress, status_every if verbose else None
    if not verbose:
        return False, None
    if status_every is None and progress:
        status_every = max(1, math.ceil(to_frame(pairs, "pairs").height / _LINES))
    return progress, status_every


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
        model: the model's name.
        trait_name: of a trait of your own, with
        trait_description: its definition; by default overall quality.
        prompt_template: a template's name, file or text.
        backend: the provider.
        endpoint: of OpenAI: ``chat.completions`` or ``responses``.
        api_key: the key; by default that of the environment.
        include_raw: add ``raw_response``.
        settings: further ones of :class:`LLMJudge`; ``pair_uid`` names the pair.

    Returns:
        One row of results. Without an answer, ``better_id`` is empty and ``error_message`` says why.

    Example:
        >>> row = llm_compare_pair("a", "Rain.", "b", "It rains, and nobody is surprised.", "gpt-4.1")
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
    row = {"custom_id": uid or f"{ID1}:{ID2}#1", "ID1": ID1, "ID2": ID2, "model": model}
    row |= {"error_message": f"{failed['error_code']}: {failed['error_message']}", "outcome": failed["outcome"]}
    row |= {"condition_id": done.condition_id, "judge_id": f"{backend}:{model}"}
    schema = RESULTS | ({"raw_response": pl.String()} if include_raw else {})
    return pl.DataFrame([{name: row.get(name) for name in schema}], schema=schema)


class _Compare(Protocol):
    def __call__(
        self,
        ID1: str,
        text1: str,
        ID2: str,
        text2: str,
        model: str,
        trait_name: str | None = None,
        trait_description: str | None = None,
        prompt_template: str | None = None,
        **settings: Any,
    ) -> pl.DataFrame: ...


class _Submit(Protocol):
    def __call__(
        self,
        pairs: Table,
        model: str,
        trait_name: str | None = None,
        trait_description: str | None = None,
        prompt_template: str | None = None,
        **settings: Any,
    ) -> SubmitResult: ...


def _by_name(more: tuple[Any, ...]) -> None:
    if more:
        raise InputError("give what follows prompt_template by name")


def _compare_with(backend: str) -> _Compare:
    def compare(
        ID1: str,
        text1: str,
        ID2: str,
        text2: str,
        model: str,
        trait_name: str | None = None,
        trait_description: str | None = None,
        prompt_template: str | None = None,
        *more: Any,
        **settings: Any,
    ) -> pl.DataFrame:
        _by_name(more)
        question = (trait_name, trait_description, prompt_template)
        return llm_compare_pair(ID1, text1, ID2, text2, model, *question, backend, **settings)

    compare.__name__ = compare.__qualname__ = f"{backend}_compare_pair_live"
    compare.__doc__ = f"""Have one pair judged by a model of {_SERVICES.get(backend, "Ollama")}; see llm_compare_pair.

    Example:
        >>> row = {compare.__name__}("a", "Rain.", "b", "It rains, and nobody is surprised.", "{_MODELS[backend]}")
        >>> row["better_id"].to_list()
        ['b']
    """
    return compare


def _submit_with(backend: str) -> _Submit:
    def submit(
        pairs: Table,
        model: str,
        trait_name: str | None = None,
        trait_description: str | None = None,
        prompt_template: str | None = None,
        *more: Any,
        **settings: Any,
    ) -> SubmitResult:
        _by_name(more)
        return submit_llm_pairs(pairs, model, trait_name, trait_description, prompt_template, backend, **settings)

    submit.__name__ = submit.__qualname__ = f"submit_{backend}_pairs_live"
    submit.__doc__ = f"""Have pairs judged by a model of {_SERVICES.get(backend, "Ollama")}; see submit_llm_pairs.

    Example:
        >>> pair = [{{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It rains, and nobody is surprised."}}]
        >>> {submit.__name__}(pair, "{_MODELS[backend]}", progress=False).results["better_id"].to_list()
        ['b']
    """
    return submit


openai_compare_pair_live = _compare_with("openai")
anthropic_compare_pair_live = _compare_with("anthropic")
gemini_compare_pair_live = _compare_with("gemini")
together_compare_pair_live = _compare_with("together")
ollama_compare_pair_live = _compare_with("ollama")
submit_openai_pairs_live = _submit_with("openai")
submit_anthropic_pairs_live = _submit_with("anthropic")
submit_gemini_pairs_live = _submit_with("gemini")
submit_together_pairs_live = _submit_with("together")
submit_ollama_pairs_live = _submit_with("ollama")


def check_llm_api_keys(verbose: bool = True) -> pl.DataFrame:
    """Which keys are set; never what they are.

    Args:
        verbose: say how to set those that are missing.

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


def ensure_only_ollama_model_loaded(model: str, verbose: bool = True, *, host: str | None = None) -> list[str]:
    """Have Ollama forget every loaded model but one, to make room for it.

    Args:
        model: the one to keep.
        verbose: say what was done.
        host: the server; by default ``OLLAMA_HOST``, else this machine.

    Returns:
        The models that were unloaded. Nothing is done when the server does not answer.

    Example:
        >>> ensure_only_ollama_model_loaded("llama3.2", verbose=False)
        []
    """
    from pairscale.providers._ollama_server import unload_others

    unloaded, problem = run_sync(lambda: unload_others(model, host))
    if verbose:
        if problem:
            notice(f"Ollama: {problem}; nothing was unloaded")
        elif unloaded:
            notice(f"Ollama: unloaded {', '.join(unloaded)}")
    return unloaded


def _trait(trait: str | Trait, name: str | None, description: str | None) -> Trait:
    if (name is None) != (description is None):
        raise InputError("a trait of your own needs both trait_name and trait_description")
    if name is not None and description is not None:
        return Trait(name, description)
    return trait_description(trait) if isinstance(trait, str) else trait
