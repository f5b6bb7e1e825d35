"""Results in two orders: who stood first, who won, and how often."""

from __future__ import annotations

import polars as pl

from pairscale.core.comparisons import OF_ITS_PAIR, says_who_stood_first
from pairscale.core.errors import TableError
from pairscale.core.results import as_comparisons
from pairscale.core.tables import Table, to_frame

_LOW = pl.min_horizontal("ID1", "ID2").alias("low")
_HIGH = pl.max_horizontal("ID1", "ID2").alias("high")
# As in the R package. An id may hold the separator, so pairs are told apart by their ids, never by this.
KEY = pl.concat_str("low", "high", separator="||")


def split_orders(results: Table) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Results that hold both orders, as two tables: the order in which a pair first stands there, and the other one.

    Example:
        >>> rows = [{"ID1": "a", "ID2": "b", "better_id": "a"}, {"ID1": "b", "ID2": "a", "better_id": "b"}]
        >>> [table["better_id"].to_list() for table in split_orders(rows)]
        [['a'], ['b']]
    """
    frame = positions(results, "results")
    pairs = frame.select("ID1", _LOW, _HIGH)
    forward = pairs.select(pl.col("ID1") == pl.col("ID1").first().over("low", "high")).to_series()
    return frame.filter(forward), frame.filter(~forward)


def positions(results: Table, what: str) -> pl.DataFrame:
    """Results as ``ID1 ID2 better_id``, refused when they do not say who stood first."""
    frame = to_frame(results, what)
    if not says_who_stood_first(frame):
        raise TableError(f"{what}: the columns do not say which sample stood first; give ID1 ID2 better_id")
    return as_comparisons(frame, what)


def decided_rows(results: Table, what: str) -> tuple[pl.DataFrame, int]:
    """The rows with a winner of their own pair, and how many rows have none."""
    frame = positions(results, what).select("ID1", "ID2", "better_id")
    rows = frame.filter(OF_ITS_PAIR & (pl.col("ID1") != pl.col("ID2"))).with_columns(_LOW, _HIGH)
    return rows.cast(pl.String), frame.height - rows.height


def by_pair(decided: pl.DataFrame, name: str) -> pl.DataFrame:
    """One row per pair: the majority winner, the order it stood in, and its votes."""
    counted = decided.group_by("low", "high").agg(
        n=pl.len().cast(pl.Int64),
        low_first=(pl.col("ID1") == pl.col("low")).sum().cast(pl.Int64),
        low_won=(pl.col("better_id") == pl.col("low")).sum().cast(pl.Int64),
    )
    n = pl.col("n")
    low_won = pl.col("low_won")
    is_in_order = pl.when(2 * pl.col("low_first") >= n)
    columns = {
        "better_id_{}": pl.when(2 * low_won > n).then("low").when(2 * low_won < n).then("high"),
        "ID1_{}": is_in_order.then("low").otherwise("high"),
        "ID2_{}": is_in_order.then("high").otherwise("low"),
        "n_{}_votes": n,
        "n_{}_A": is_in_order.then(low_won).otherwise(n - low_won),
        "n_{}_B": is_in_order.then(n - low_won).otherwise(low_won),
        "is_{}_tie": 2 * low_won == n,
        "mixed_{}": pl.col("low_first").is_between(1, n - 1),
    }
    return counted.select("low", "high", **{form.format(name): column for form, column in columns.items()})
