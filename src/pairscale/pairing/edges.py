"""Pairs as numbers: ids counted in order, cells counted once, and what the pairs hold together."""

from __future__ import annotations

import numpy as np
import polars as pl

from pairscale.core.arrays import WITHOUT_SCIPY, Ints


def numbered(column: pl.Series, ids: pl.Series) -> Ints:
    """Each id of a column as its place among ``ids``."""
    return column.cast(pl.Enum(ids)).to_physical().to_numpy().astype(np.int64)


def count_cells(first: Ints, second: Ints, n: int, times: Ints | None = None) -> tuple[Ints, Ints, Ints]:
    """The different pairs of numbers below ``n``, in order, and how often each occurs.

    Polars counts by hashing, many times faster than sorting millions of numbers would be.

    Args:
        first: the first number of each pair.
        second: the second.
        n: above all of them.
        times: how often each pair stands for itself; once by default.
    """
    table = pl.DataFrame({"cell": first * n + second})
    number_of = pl.len()
    if times is not None:
        table = table.with_columns(n=times)
        number_of = pl.col("n").sum()
    cells = table.group_by("cell").agg(number_of.alias("times")).sort("cell")
    low, high = np.divmod(cells["cell"].to_numpy(), n)
    return low, high, cells["times"].to_numpy().astype(np.int64)


def linked_groups(first: Ints, second: Ints, n: int) -> list[Ints]:
    """The groups of the numbers below ``n`` that pairs hold together, largest first, then by their first member."""
    label = group_labels(first, second, n)
    members = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
    return sorted(members, key=lambda group: (-len(group), group[0]))


def group_labels(first: Ints, second: Ints, n: int, *, directed: bool = False) -> Ints:
    """For each number below ``n``, the number of its group: all that pairs hold together.

    Args:
        first: the first of each pair.
        second: the second of each pair.
        n: how many numbers there are.
        directed: count as a group only what can be reached both ways, from the first to the second of pairs.
    """
    if n > WITHOUT_SCIPY:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        graph = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
        return np.asarray(connected_components(graph, directed=directed, connection="strong")[1], dtype=np.int64)
    reached = np.eye(n, dtype=bool)
    reached[first, second] = True
    if not directed:
        reached[second, first] = True
    for _ in range(n.bit_length()):  # each time along paths that are twice as long
        reached = reached @ reached
    return np.unique((reached & reached.T).argmax(axis=1), return_inverse=True)[1].astype(np.int64)
