"""Results in two orders: who stood first, who won, and how often."""

from __future__ import annotations

import polars as pl

from pairscale.checks.effect import VOTES
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
    """The rows with a winner of their own pair, and how many rows there were."""
    frame = positions(results, what).select("ID1", "ID2", "better_id")
    decided = frame.filter(OF_ITS_PAIR & (pl.col("ID1") != pl.col("ID2"))).with_columns(_LOW, _HIGH)
    return decided.cast(pl.String), frame.height


def by_pair(decided: pl.DataFrame, name: str) -> pl.DataFrame:
    """One row per pair: the majority winner, the order it stood in, and its votes."""
    counted = decided.group_by("low", "high").agg(
        n=pl.len().cast(pl.Int64),
        low_first=(pl.col("ID1") == pl.col("low")).sum().cast(pl.Int64),
        low_won=(pl.col("better_id") == pl.col("low")).sum().cast(pl.Int64),
    )
    n, low_first, low_won = pl.col("n"), pl.col("low_first"), pl.col("low_won")
    in_order = 2 * low_first >= n
    return counted.select(
        "low",
        "high",
        pl.when(2 * low_won > n).then("low").when(2 * low_won < n).then("high").alias(f"better_id_{name}"),
        pl.when(in_order).then("low").otherwise("high").alias(f"ID1_{name}"),
        pl.when(in_order).then("high").otherwise("low").alias(f"ID2_{name}"),
        n.alias(f"n_{name}_votes"),
        pl.when(in_order).then(low_won).otherwise(n - low_won).alias(f"n_{name}_A"),
        pl.when(in_order).then(n - low_won).otherwise(low_won).alias(f"n_{name}_B"),
        (2 * low_won == n).alias(f"is_{name}_tie"),
        low_first.is_between(1, n - 1).alias(f"mixed_{name}"),
    )


def count_votes(decided: pl.DataFrame) -> pl.DataFrame:
    """Per pair, how often each of its texts was shown first, and how often it won there."""
    first_won = (pl.col("better_id") == pl.col("ID1")).cast(pl.Int64)
    return _votes(decided.select("ID1", "ID2", A=first_won, B=1 - first_won))


def _votes(wins: pl.DataFrame) -> pl.DataFrame:
    """The votes of rows with ``A`` wins of the text shown first and ``B`` of the other."""
    first = pl.col("ID1") == pl.col("low")
    both = pl.col("A") + pl.col("B")
    return (
        wins.with_columns(_LOW, _HIGH)
        .group_by("low", "high")
        .agg(
            n_first=both.filter(first).sum(),
            won_first=pl.col("A").filter(first).sum(),
            n_second=both.filter(~first).sum(),
            won_second=pl.col("B").filter(~first).sum(),
        )
        .with_columns(key=KEY, ID1="low", ID2="high")
        .sort("key", "low")
        .select(list(VOTES))
    )


def votes_of(details: pl.DataFrame) -> pl.DataFrame:
    """The votes that a table of details speaks of: its counts, or one per direction when it has none."""
    halves = []
    for side in ("main", "rev"):
        wins = [pl.col(f"n_{side}_{letter}").cast(pl.Int64) for letter in "AB"]
        if not {f"n_{side}_A", f"n_{side}_B"} <= set(details.columns):
            wins = [(pl.col(f"winner_pos_{side}") == f"pos{n}").fill_null(value=False).cast(pl.Int64) for n in (1, 2)]
        ids = (pl.col(f"ID{n}_{side}").alias(f"ID{n}") for n in (1, 2))
        halves.append(details.select(*ids, A=wins[0], B=wins[1]))
    return _votes(pl.concat(halves))
