"""The queries that read results from a run file, as rows or as counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import Select, Text, func, literal_column, null, select, type_coerce

from pairscale.core.tables import FAILED, RESULTS, Row, Schema, Values
from pairscale.store.schema import attempts, comparisons, conditions, items, pairs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.engine import Connection


ANSWERED = pl.col("outcome").is_in(["win", "tie", "flip"])
"""Whether a row of results holds an answer."""

_BLOCK = 5_000
_TEXT = pl.String()
_INT = pl.Int64()
_REAL = pl.Float64()
_JUDGED = ("condition_id", "judge_id", "model", "trait", "template_id")
_COUNTED = ("win", "tie", "flip", "abstention", "error", "attempts")
CONDITIONS: Schema = {
    **dict.fromkeys(_JUDGED, _TEXT),
    **dict.fromkeys(_COUNTED, _INT),
    "cost": _REAL,
    "total_tokens": _INT,
    "last_at": _TEXT,
}
"""The columns of the table of conditions."""


def results_query(condition_id: str | None, *, raw: bool) -> tuple[Select[Any], Values]:
    """Standing comparisons; ``better_sample`` is still a number."""
    a = attempts.c
    c = comparisons.c
    p = pairs.c
    k = conditions.c
    computed: Values = {
        "model": func.coalesce(a.model, k.model).label("model"), "better_sample": c.winner_pos.label("better_sample"),
    }  # fmt: skip
    schema = {**RESULTS, "better_sample": _INT, "received_at": _TEXT, "pair_id": _INT}
    columns = [computed[name] if name in computed else _column_of(name) for name in schema]
    if raw:
        columns.append(type_coerce(a.raw_response, Text))
        schema["raw_response"] = _TEXT
    query = (
        select(*columns)
        .select_from(comparisons.join(attempts, a.attempt_id == c.attempt_id))
        .join(pairs, p.pair_id == c.pair_id)
        .join(conditions, k.condition_id == c.condition_id)
        .order_by(c.comparison_id)
    )
    if condition_id is not None:
        query = query.where(c.condition_id == condition_id)
    return query, schema


def _column_of(name: str) -> Any:
    """The column of a result, from the first of the tables that has it."""
    return next(table.c[name] for table in (comparisons, pairs, attempts, conditions) if name in table.c)


def frame_of(connection: Connection, query: Select[Any], schema: Row) -> pl.DataFrame:
    """What a query finds, as one table; in blocks, because rows take many times their room."""
    blocks = connection.execution_options(stream_results=True).execute(query).partitions(_BLOCK)
    parts = (pl.DataFrame(list(map(tuple, block)), schema=schema, orient="row") for block in blocks)
    return pl.concat([pl.DataFrame(schema=schema), *parts])


def failed_query(condition_id: str | None) -> tuple[Select[Any], Values]:
    """Attempts that gave no answer."""
    a = attempts.c
    p = pairs.c
    columns = [type_coerce(a[name], Text) if name == "raw_response" else a[name] for name in FAILED]
    query = (
        select(p.custom_id, p.ID1, p.ID2, *columns, a.condition_id, a.pair_id)
        .select_from(attempts.join(pairs, p.pair_id == a.pair_id))
        .where(a.error_code.is_not(None))
        .order_by(a.attempt_id)
    )
    if condition_id is not None:
        query = query.where(a.condition_id == condition_id)
    schema = {"custom_id": _TEXT, "ID1": _TEXT, "ID2": _TEXT, **FAILED, "condition_id": _TEXT, "pair_id": _INT}
    return query, schema


def read_conditions(connection: Connection) -> pl.DataFrame:
    """One row a condition: who judged what, how often, with which outcomes, at what cost."""
    c = comparisons.c
    a = attempts.c
    counts = select(c.condition_id, c.outcome, func.count()).group_by(c.condition_id, c.outcome)
    spent = select(
        a.condition_id,
        func.count(),
        func.sum(a.cost),
        func.sum(a.total_tokens),
        func.max(a.attempted_at),
    ).group_by(a.condition_id)
    empty = dict.fromkeys(CONDITIONS) | dict.fromkeys(_COUNTED, 0)
    rows: dict[str, Values] = {}
    for row in connection.execute(select(conditions).order_by(conditions.c.created_at)).mappings():
        rows[row["condition_id"]] = empty | {name: row[name] for name in _JUDGED}
    for condition_id, outcome, n in connection.execute(counts):
        rows[condition_id][outcome] = n
    for condition_id, n, cost, tokens, last in connection.execute(spent):
        rows[condition_id].update(attempts=n, cost=cost, total_tokens=tokens, last_at=last)
    return pl.DataFrame(list(rows.values()), schema=CONDITIONS)


def repeats_query() -> Select[Any]:
    """The pairs that repeat the two texts of an earlier one in the same order: ``pair_id which``."""
    first = items.alias()
    second = items.alias()
    which = func.row_number().over(partition_by=(first.c.text_hash, second.c.text_hash), order_by=pairs.c.pair_id)
    joined = pairs.join(first, first.c.item_id == pairs.c.ID1).join(second, second.c.item_id == pairs.c.ID2)
    ranked = select(pairs.c.pair_id, which.label("which")).select_from(joined).subquery()
    return select(ranked).where(ranked.c.which > 1)


# What attempts used and cost

_TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")

SPENDING: Schema = {
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
USAGE: Schema = {
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


def dated_spending(table: pl.DataFrame, prices: Iterable[Row] | None) -> pl.DataFrame:
    """The spending with the dates of the prices that it rests on; none where a judge states its costs itself.

    Args:
        table: of :func:`spending_query`.
        prices: as the run file lists them.
    """
    dates: dict[str, set[str]] = {}
    for row in prices or ():
        dates.setdefault(row["model"], set()).add(row["as_of"])
    words = {model: ", ".join(sorted(days)) for model, days in dates.items()}
    return table.with_columns(pl.Series("prices_as_of", [words.get(model) for model in table["model"]], dtype=_TEXT))


def usage_query(condition_id: str) -> Select[Any]:
    """Every attempt of a condition, in order."""
    a = attempts.c
    return (
        select(pairs.c.custom_id, *(a[name] for name in USAGE if name != "custom_id"))
        .select_from(attempts.join(pairs, pairs.c.pair_id == a.pair_id))
        .where(a.condition_id == condition_id)
        .order_by(a.attempt_id)
    )
