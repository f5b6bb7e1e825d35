"""Results as the manual's functions give them: R's names of the questions, and rows for what failed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from pairscale.core.comparisons import key_expressions
from pairscale.core.tables import result_columns
from pairscale.providers.gemini import thought_signature

PREFIXES = {"openai": "EXP", "anthropic": "ANTH", "gemini": "GEM", "together": "EXP"}
"""By provider, what the name of a request in a batch begins with."""
_BATCH: dict[str, dict[str, pl.DataType]] = {
    "openai": {},
    "together": {},
    "anthropic": {"result_type": pl.String()},
    "gemini": {"result_type": pl.String(), "thought_signature": pl.String(), "thoughts_token_count": pl.Int64()},
}
"""By provider, the columns of a batch's results behind ``reasoning_tokens``."""
_TYPES = {"timeout": "expired", "cancelled": "canceled"}


def n_answered(results: pl.DataFrame) -> int:
    """How many pairs have an answer."""
    return int(results["outcome"].is_in(["win", "tie", "flip"]).sum())


def named_as_in_r(frame: pl.DataFrame, prefix: str = "LIVE") -> pl.DataFrame:
    """A table whose questions are called ``PREFIX_ID1_vs_ID2``, where they have no name of the user's.

    The second question about the same pair in the same order is ``PREFIX_ID1_vs_ID2#2``, and so on.
    """
    key, _ = key_expressions("ID1", "ID2")
    number = pl.col("custom_id").str.strip_prefix(pl.format("{}#", key))
    is_ours = (number != pl.col("custom_id")) & number.str.contains(r"^\d+$")
    name = pl.format("{}_{}_vs_{}#{}", pl.lit(prefix), "ID1", "ID2", number).str.strip_suffix("#1")
    return frame.with_columns(custom_id=pl.when(is_ours).then(name).otherwise("custom_id"))


def with_failures(
    answered: pl.DataFrame, failed: pl.DataFrame, backend: str, model: str | None, more: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """Answers, and behind them one row per pair that has none, which says why.

    Args:
        answered: The answers.
        failed: The attempts that gave none.
        backend: The provider.
        model: The model, for the rows without an answer.
        more: Columns that not all results have.
    """
    key = ["custom_id", "condition_id"]
    ended = pl.col("error_code").replace_strict(_TYPES, default="errored")
    last = failed.unique(key, keep="last", maintain_order=True).join(answered, on=key, how="anti")
    asked = answered.select("condition_id", "trait", "template_id").unique("condition_id")
    last = last.join(asked, on="condition_id", how="left", maintain_order="left").with_columns(
        model=pl.lit(model, pl.String), judge_id=pl.lit(f"{backend}:{model}"),
        result_type=pl.when(pl.col("status_code") == 200).then(pl.lit("succeeded")).otherwise(ended),
    )  # fmt: skip
    succeeded = answered.with_columns(result_type=pl.lit("succeeded"))
    table = pl.concat([succeeded, last], how="diagonal_relaxed")
    if "thought_signature" in more:
        signatures = [signature_of(body) for body in table["raw_response"]]
        table = table.with_columns(
            thought_signature=pl.Series(signatures, dtype=pl.String), thoughts_token_count=pl.col("reasoning_tokens")
        )
    return table.select(*result_columns(raw="raw_response" in answered.columns, more=more))


def batch_table(
    answered: pl.DataFrame, failed: pl.DataFrame, backend: str, model: str | None, *, raw: bool
) -> pl.DataFrame:
    """The results of a batch with the names and columns of its provider; without ``raw_response`` unless wanted."""
    table = with_failures(answered, failed, backend, model, _BATCH[backend])
    if not raw:
        table = table.drop("raw_response")
    return named_as_in_r(table, PREFIXES[backend])


def signature_of(body: Any) -> str | None:
    """The first signature of Gemini's thoughts in a reply, which may be JSON text."""
    if isinstance(body, str):
        body = json.loads(body)
    replies = body if isinstance(body, list) else [body]  # a list holds those of both orders
    return next(filter(None, map(thought_signature, replies)), None)
