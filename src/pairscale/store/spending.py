"""What the attempts of a run file used and cost: by model, template and day, and one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import Select, func, literal_column, null, select

from pairscale.store.schema import attempts, conditions, pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["PRICES_MARK", "SPENDING", "USAGE", "dated_spending", "spending_query", "usage_query"]

_TEXT = pl.String()
_INT = pl.Int64()
_REAL = pl.Float64()
_TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")

SPENDING: Mapping[str, pl.DataType] = {
    "model": _TEXT,
    "template_id": _TEXT,
    "day": _TEXT,
    "attempts": _INT,
    **dict.fromkeys(_TOKENS, _INT),
    "cost": _REAL,
    "prices_as_of": _TEXT,
}
PRICES_MARK = "prices"
"""The fact of a run file that lists the prices its costs rest on: ``model as_of input output source``."""
USAGE: Mapping[str, pl.DataType] = {
    "custom_id": _TEXT,
    "attempt": _INT,
    "outcome": _TEXT,
    "prompt_tokens": _INT,
    "completion_tokens": _INT,
    "prompt_cached_tokens": _INT,
    "cost": _REAL,
}


def spending_query(condition_id: str | None) -> Select[Any]:
    """Sums over all attempts (of a condition), also the failed ones; a judge that is no model has its own name."""
    a = attempts.c
    k = conditions.c
    groups = (
        func.coalesce(k.model, a.model, k.judge_id).label("model"),
        k.template_id.label("template_id"),
        func.substr(a.attempted_at, literal_column("1"), literal_column("10")).label("day"),
    )
    sums = [func.sum(a[name]).label(name) for name in (*_TOKENS, "cost")]
    query = select(*groups, func.count().label("attempts"), *sums, null().label("prices_as_of"))
    query = query.select_from(attempts.join(conditions, k.condition_id == a.condition_id))
    if condition_id is not None:
        query = query.where(a.condition_id == condition_id)
    return query.group_by(*groups).order_by(groups[2], groups[0], groups[1])


def dated_spending(table: pl.DataFrame, prices: Iterable[Mapping[str, Any]] | None) -> pl.DataFrame:
    """The spending with the dates of the prices that it rests on; none where a judge states its costs itself.

    Args:
        table: of :func:`spending_query`.
        prices: as the run file lists them.
    """
    dates: dict[str, list[str]] = {}
    for row in prices or ():
        if row["as_of"] not in (known := dates.setdefault(row["model"], [])):
            known.append(row["as_of"])
    words = {model: ", ".join(sorted(known)) for model, known in dates.items()}
    found = pl.Series([words.get(model) for model in table["model"]], dtype=_TEXT)
    return table.with_columns(prices_as_of=found)


def usage_query(condition_id: str) -> Select[Any]:
    """Every attempt of a condition, in order."""
    a = attempts.c
    return (
        select(pairs.c.custom_id, *(a[name] for name in USAGE if name != "custom_id"))
        .select_from(attempts.join(pairs, pairs.c.pair_id == a.pair_id))
        .where(a.condition_id == condition_id)
        .order_by(a.attempt_id)
    )
