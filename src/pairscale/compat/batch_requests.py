"""The manual's requests of batches: tables of what would be sent, and the file that OpenAI takes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.compat._given import TraitAndTemplate, judge_from
from pairscale.core.errors import InputError, TableError
from pairscale.core.files import replacing
from pairscale.core.options import checked, optional, require_int
from pairscale.core.tables import Table, listed, to_frame
from pairscale.judges.base import JudgePair
from pairscale.judges.batched import calls_of
from pairscale.pairing.table import as_pairs
from pairscale.providers.batches import batch_format

_NO_KEY = "not-needed-here"


@checked
def build_openai_batch_requests(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    endpoint: str | None = "chat.completions",
    temperature: float | None = None,
    top_p: float | None = None,
    logprobs: Any = None,
    reasoning: str | None = None,
    include_thoughts: bool = False,
    request_id_prefix: str = "EXP",
    **settings: Any,
) -> pl.DataFrame:
    """The requests of an OpenAI batch, one row per pair; nothing is sent.

    Args:
        pairs: ``ID1 text1 ID2 text2``; ``pair_uid``, when there, names the requests.
        model: the model's name, such as ``gpt-4.1``.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; by default overall quality is judged.
        prompt_template: Name, file or text of a prompt template.
        endpoint: ``chat.completions`` or ``responses``; None chooses by the model.
        temperature: how much to vary; 0 by default where the model takes one.
        top_p: the share of probability to sample from.
        logprobs: whether to ask for log-probabilities, or how many.
        reasoning: how hard to think.
        include_thoughts: Ask for a summary of the thoughts.
        request_id_prefix: requests are called ``PREFIX_ID1_vs_ID2``.
        settings: further ones of :class:`LLMJudge`.

    Returns:
        ``custom_id method url body``; a body is a dict.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> build_openai_batch_requests(pair, "gpt-4.1").select("custom_id", "url").row(0)
        ('EXP_a_vs_b', '/v1/chat/completions')
    """
    known = {"temperature": temperature, "top_p": top_p, "logprobs": logprobs, "reasoning": reasoning}
    known |= {"include_thoughts": include_thoughts, "endpoint": endpoint}
    question = TraitAndTemplate(trait_name, trait_description, prompt_template)
    return _requests("openai", pairs, model, question, request_id_prefix, known | settings)


@checked
def build_anthropic_batch_requests(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    reasoning: str = "none",
    custom_id_prefix: str = "ANTH",
    **settings: Any,
) -> pl.DataFrame:
    """The requests of an Anthropic message batch, one row per pair; nothing is sent.

    Args:
        pairs: ``ID1 text1 ID2 text2``; a column ``pair_uid`` names the requests.
        model: Name of the model, such as ``claude-sonnet-4-5``.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; required with ``trait_name``.
        prompt_template: Name, file or text of a prompt template.
        reasoning: ``none`` or ``enabled``, or how hard to think where the model measures it itself.
        custom_id_prefix: requests are called ``PREFIX_ID1_vs_ID2``.
        settings: further ones of :class:`LLMJudge`, such as ``max_tokens`` or ``thinking_budget_tokens``.

    Returns:
        ``custom_id params``; params are a dict.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> build_anthropic_batch_requests(pair, "claude-sonnet-4-5")["params"][0]["model"]
        'claude-sonnet-4-5'
    """
    known = {"reasoning": reasoning}
    question = TraitAndTemplate(trait_name, trait_description, prompt_template)
    return _requests("anthropic", pairs, model, question, custom_id_prefix, known | settings)


@checked
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
) -> pl.DataFrame:
    """The requests of a Gemini batch, one row per pair; nothing is sent.

    Args:
        pairs: a table of ``ID1 text1 ID2 text2``, and ``pair_uid`` to name the requests.
        model: Name of the model, such as ``gemini-2.5-flash``.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; required with ``trait_name``.
        prompt_template: Name, file or text of a prompt template.
        thinking_level: ``minimal low medium high``; by default the model's, ``low`` for Gemini 3.
        custom_id_prefix: Prefix of the requests' names, ``PREFIX_ID1_vs_ID2``.
        temperature: how much to vary.
        top_p: the share of probability to sample from.
        top_k: the number of tokens to sample from.
        max_output_tokens: Maximum tokens of an answer.
        include_thoughts: Ask for the thoughts.
        settings: further ones of :class:`LLMJudge`.

    Returns:
        ``custom_id ID1 ID2 request``; a request is a dict.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> build_gemini_batch_requests(pair, "gemini-2.5-flash").select("custom_id", "ID1", "ID2").row(0)
        ('GEM_a_vs_b', 'a', 'b')
    """
    known: dict[str, Any] = {"reasoning": thinking_level, "temperature": temperature, "top_p": top_p, "top_k": top_k}
    longest = optional(require_int, max_output_tokens, "max_output_tokens", least=1)
    known |= {"max_tokens": longest, "include_thoughts": include_thoughts}
    question = TraitAndTemplate(trait_name, trait_description, prompt_template)
    return _requests("gemini", pairs, model, question, custom_id_prefix, known | settings)


_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "openai": ("custom_id", "method", "url", "body"),
    "anthropic": ("custom_id", "params"),
    "gemini": ("custom_id", "ID1", "ID2", "request"),
}
"""The manual's columns; the last one holds the request's body."""


def _requests(
    backend: str, pairs: Table, model: str, question: TraitAndTemplate, prefix: str, settings: dict[str, Any]
) -> pl.DataFrame:
    """Every pair with its name and the call that live judging would make, as the provider writes it."""
    key = settings.pop("api_key", None) or _NO_KEY
    judge = judge_from(backend, model, question, key, settings)
    form, frame = batch_format(backend), as_pairs(pairs)
    rows = []
    for name, row in zip(_names(frame, prefix), frame.select("ID1", "text1", "ID2", "text2").iter_rows(), strict=True):
        first, second = {"ID": row[0], "text": row[1]}, {"ID": row[2], "text": row[3]}
        line = form.line(name, calls_of(judge, JudgePair(first, second, name))[0])
        rows.append({"ID1": row[0], "ID2": row[2], "custom_id": name, **line})
    *names, body = _COLUMNS[backend]
    columns = [pl.Series(name, [row[name] for row in rows], dtype=pl.String) for name in names]
    return pl.DataFrame([*columns, pl.Series(body, [dict(row[body]) for row in rows], dtype=pl.Object)])


def _names(frame: pl.DataFrame, prefix: str) -> list[str]:
    """The names of the requests, each of its own."""
    if "pair_uid" in frame.columns:
        names = frame["pair_uid"].cast(pl.String)
    else:
        names = frame.select(pl.lit(prefix) + "_" + pl.col("ID1") + "_vs_" + pl.col("ID2")).to_series()
    if twice := names.filter(names.is_duplicated()).unique().sort().to_list():
        raise InputError(f"pairs: {listed(twice)} names two requests; give a column pair_uid")
    return names.to_list()


@checked
def write_openai_batch_file(batch_tbl: Table, path: str | os.PathLike[str]) -> Path:
    """Write requests into the file that OpenAI takes, one JSON object a line.

    Args:
        batch_tbl: a column ``jsonl`` of lines, or ``custom_id method url body``.
        path: the file.

    Returns:
        The file.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> write_openai_batch_file(build_openai_batch_requests(pair, "gpt-4.1"), "requests.jsonl").name
        'requests.jsonl'
    """
    frame = batch_tbl if isinstance(batch_tbl, pl.DataFrame) else to_frame(batch_tbl, "batch_tbl")
    if "jsonl" in frame.columns:
        lines = frame["jsonl"].to_list()
    else:
        names = ("custom_id", "method", "url", "body")
        if missing := [name for name in names if name not in frame.columns]:
            raise TableError(f"batch_tbl: no column {', '.join(missing)}")
        rows = zip(*(frame[name].to_list() for name in names), strict=True)
        lines = [_line(dict(zip(names, row, strict=True))) for row in rows]
    with replacing(Path(path), private=True) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return Path(path)


def _line(row: dict[str, Any]) -> str:
    body = row["body"]
    row["body"] = json.loads(body) if isinstance(body, str) else _filled(body)
    return json.dumps(row, ensure_ascii=False)


def _filled(value: Any) -> Any:
    """A value without the empty fields that a table adds where rows differ."""
    if isinstance(value, dict):
        return {name: _filled(inner) for name, inner in value.items() if inner is not None}
    return [_filled(inner) for inner in value] if isinstance(value, list) else value
