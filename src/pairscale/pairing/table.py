"""What every verb on pairs needs: a checked table, both sides changing places, and chance."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pairscale.core.arrays import WITHOUT_SCIPY, Ints
from pairscale.core.errors import TableError
from pairscale.core.options import require_probability, require_seed
from pairscale.core.tables import (
    PAIRS,
    Table,
    as_text,
    is_blank,
    listed,
    require_columns,
    require_ids,
    row_numbers,
    to_frame,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_pairs(pairs: Table) -> pl.DataFrame:
    """A table of pairs with ``ID1 text1 ID2 text2`` in front, checked.

    Raises:
        TableError: when a column is missing, an id or a text is, or a sample meets itself.
    """
    frame = to_frame(pairs, "pairs")
    require_columns(frame, list(PAIRS), "pairs")
    frame = require_ids(frame, ["ID1", "ID2"], "pairs")
    frame = frame.with_columns(as_text(frame[name], "pairs") for name in ("text1", "text2"))
    for name in ("text1", "text2"):
        blank = is_blank(frame[name])
        if blank.any():
            raise TableError(f"pairs: column {name!r} is empty in {row_numbers(blank)}; leave those pairs out")
    require_two(frame)
    return frame.select(*PAIRS, *(name for name in frame.columns if name not in PAIRS))


def paired_columns(pairs: pl.DataFrame) -> list[str]:
    """The columns that describe both samples of a pair: ``text`` where there are ``text1`` and ``text2``."""
    return [name[:-1] for name in pairs.columns if name[-1:] == "1" and f"{name[:-1]}2" in pairs.columns]


def require_two(pairs: pl.DataFrame) -> None:
    """Refuse pairs of a sample with itself.

    Raises:
        TableError: that names the samples and rows.
    """
    same = pairs["ID1"] == pairs["ID2"]
    if same.any():
        ids = listed(pairs["ID1"].filter(same).to_list())
        raise TableError(f"pairs: {ids} is compared with itself in {row_numbers(same)}; leave those pairs out")


def swapped(pairs: pl.DataFrame, where: NDArray[np.bool_]) -> pl.DataFrame:
    """The pairs with both sides exchanged in the rows where ``where`` is true.

    Every column ``name1`` that has its ``name2`` moves along. Done by taking rows from the two columns laid end to
    end: that copies references to the texts; choosing row by row would copy the texts themselves.
    """
    n = pairs.height
    rows = np.arange(n)
    others = {}
    for name in paired_columns(pairs):
        others[f"{name}1"] = f"{name}2"
        others[f"{name}2"] = f"{name}1"
    columns = []
    for name in pairs.columns:
        other = others.get(name)
        if other is None:
            columns.append(pairs[name])
        else:
            columns.append(_end_to_end(pairs[name], pairs[other]).gather(np.where(where, rows + n, rows)))
    return pl.DataFrame(columns)


def _end_to_end(column: pl.Series, other: pl.Series) -> pl.Series:
    """Both columns as one; numbers of two kinds, or a column without any values, become of one kind."""
    halves = [column.to_frame(), other.alias(column.name).to_frame()]
    try:
        return pl.concat(halves, how="vertical_relaxed", rechunk=True).to_series()
    except pl.exceptions.PolarsError:
        raise TableError(
            f"pairs: columns {column.name!r} ({column.dtype}) and {other.name!r} ({other.dtype}) cannot change places; "
            "make them of one kind, or rename one"
        ) from None


def drawn(pairs: pl.DataFrame, count: int, seed: int | None) -> pl.DataFrame:
    """So many of the pairs, all equally likely, in random order."""
    return pairs.rechunk()[generator(seed).permutation(pairs.height)[:count]]


def generator(seed: int | None) -> np.random.Generator:
    """The random numbers of a seed; other ones each time without it."""
    return np.random.default_rng(require_seed(seed))


def share_of(total: int, share: float, name: str) -> int:
    """So much of ``total``, rounded down."""
    # As it is written: 0.29 * 100 is 28.999999999999996 in binary and 29 as you write it.
    return math.floor(Fraction(str(require_probability(share, name))) * total)


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
        times: how often each pair counts; once by default.
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
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        graph = csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
        return np.asarray(connected_components(graph, directed=directed, connection="strong")[1], dtype=np.int64)
    reached = np.eye(n, dtype=bool)
    reached[first, second] = True
    if not directed:
        reached[second, first] = True
    for _ in range(n.bit_length()):  # each time along paths that are twice as long
        reached = reached @ reached
    return np.unique((reached & reached.T).argmax(axis=1), return_inverse=True)[1].astype(np.int64)
