"""The comparisons of a run file, counted by its database: for runs that are too large to be read row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import func, select

from pairscale.core.errors import InputError
from pairscale.core.tables import RESULTS, TIMES, listed
from pairscale.store.schema import comparisons, conditions, pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.store.runfile import RunFile

__all__ = ["count_results"]

_BLOCK = 50_000
_OTHERS = {
    "judge_id": conditions.c.judge_id,
    "trait": conditions.c.trait,
    "template_id": conditions.c.template_id,
    "condition_id": comparisons.c.condition_id,
}


def count_results(store: RunFile, condition_id: str | None, keep: Sequence[str]) -> pl.DataFrame:
    """The different comparisons (of one condition, or of all), and how often each was made.

    Args:
        store: the run file.
        condition_id: only these.
        keep: further columns that tell them apart: ``judge_id``, ``trait``, ``template_id`` or ``condition_id``; names
            that no result has are left out.

    Returns:
        ``ID1 ID2 better_id outcome``, the columns kept, and :data:`pairscale.core.tables.TIMES`.

    Raises:
        InputError: when a column to keep is another one of the results.
    """
    unknown = [name for name in keep if name in RESULTS and name not in _OTHERS]
    keep = [name for name in keep if name in _OTHERS]
    if unknown:
        raise InputError(
            f"the comparisons of a run as large as this one are counted by {listed(list(_OTHERS))} at most, not by "
            f"{listed(unknown)}; export them to Parquet, and fit that"
        )
    c, p = comparisons.c, pairs.c
    named: list[Any] = [p.ID1, p.ID2, c.better_id, c.outcome, *(_OTHERS[name] for name in keep)]
    query = (
        select(*named, func.count())
        .select_from(comparisons.join(pairs, p.pair_id == c.pair_id))
        .join(conditions, conditions.c.condition_id == c.condition_id)
        .group_by(*named)
        .order_by(*named)
    )
    if condition_id is not None:
        query = query.where(c.condition_id == condition_id)
    schema: dict[str, Any] = dict.fromkeys(("ID1", "ID2", "better_id", "outcome", *keep), pl.String())
    schema[TIMES] = pl.Int64()
    with store.transaction() as connection:
        blocks = connection.execution_options(stream_results=True).execute(query).partitions(_BLOCK)
        parts = [pl.DataFrame(list(map(tuple, block)), schema=schema, orient="row") for block in blocks]
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema)
