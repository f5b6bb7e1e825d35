"""Comparisons as counts: read once, aggregated once, and looked at for what holds them together.

Everything behind this module works with a few arrays over items and over distinct pairs; none of it loops over
comparisons, so a million of them cost no more than their distinct pairs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from pairscale.comparisons import as_comparisons
from pairscale.errors import FitError, TableError
from pairscale.notices import notice
from pairscale.pairs._edges import Ints, count_cells, linked_groups, numbered
from pairscale.provenance import fingerprint
from pairscale.tables import Table, listed, to_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Counts", "Decided", "Floats", "Ints", "aggregate", "connected_parts", "named_parts", "read_decided"]

Floats: TypeAlias = npt.NDArray[np.float64]

_MODEL_COLUMNS = ("object1", "object2", "result")


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """The comparisons that have a winner.

    Attributes:
        rows: ``winner`` and ``loser``, one row a comparison.
        seen: every id of the table, in code-point order, also those of rows that were left out.
        notices: what was left out.
    """

    rows: pl.DataFrame
    seen: tuple[str, ...]
    notices: tuple[str, ...]


def read_decided(bt_data: Table) -> Decided:
    """The winners and losers of a table of any shape; rows without a winner of their own pair are left out, and said.

    Args:
        bt_data: any shape that :func:`pairscale.comparisons.as_comparisons` knows, or three columns under any names:
            the first item, the second, and 1 when the first won, 0 when the second did.

    Raises:
        TableError: when the columns are of no known shape, or a result is none of 1, 0, 0.5 and missing.
        FitError: when no row has a winner.
    """
    frame = to_frame(bt_data, "bt_data")
    if frame.is_empty():
        raise FitError("bt_data has no rows: there are no comparisons to fit")
    frame = as_comparisons(_checked(frame), "bt_data").select("ID1", "ID2", "better_id")
    first_won, second_won = (pl.col("better_id") == pl.col(side) for side in ("ID1", "ID2"))
    rows = frame.filter(first_won | second_won).select(
        winner="better_id", loser=pl.when(first_won).then("ID2").otherwise("ID1")
    )
    seen = tuple(pl.concat([frame["ID1"].unique(), frame["ID2"].unique()]).unique().sort())
    if rows.is_empty():
        raise FitError(f"none of the {frame.height:,} rows of bt_data has a winner: there are no comparisons to fit")
    if rows.height == frame.height:
        return Decided(rows, seen, ())
    left = frame.height - rows.height
    said = notice(f"left out {left:,} of {frame.height:,} rows: a tie, no winner, or a winner that is not of the pair")
    return Decided(rows, seen, (said,))


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with positional columns named, and with a ``result`` that is 1, 0, 0.5 or missing."""
    name = "result"
    if frame.width == len(_MODEL_COLUMNS) and not _of_known_shape(frame):
        name = frame.columns[-1]
        frame = frame.select(pl.nth(at).alias(new) for at, new in enumerate(_MODEL_COLUMNS))
    if not set(_MODEL_COLUMNS) <= set(frame.columns):
        return frame
    given = frame["result"]
    # pandas writes a missing number as NaN, and R a missing value as NA: both are "no winner", as null is.
    if given.dtype == pl.String:
        given = given.set(given.is_in(["", "NA"]), None)
    elif given.dtype.is_float():
        given = given.fill_nan(None)
    value = given.cast(pl.Float64, strict=False)
    bad = (given.is_not_null() & ~value.is_in([0.0, 0.5, 1.0]).fill_null(value=False)).arg_true()
    if len(bad):
        raise TableError(
            f"bt_data: column {name!r} must be 1 (the first won), 0 (the second) or 0.5 (a tie); it is not in "
            f"{len(bad):,} of {frame.height:,} rows, first in row {bad[0] + 1}: {given[bad[0]]!r}"
        )
    return frame.with_columns(result=value)


def _of_known_shape(frame: pl.DataFrame) -> bool:
    # Without rows, nothing but the columns can be wrong.
    try:
        as_comparisons(frame.clear())
    except TableError:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Who was compared with whom how often, and who won how often.

    The distinct pairs are the upper triangle of a sparse matrix in row order, so that ``start`` and ``second`` are
    the index arrays of a CSR matrix whose data are any numbers per pair.

    Attributes:
        ids: the items, in code-point order; every index below counts in it.
        start: where each item's pairs start in the arrays below, and their end.
        first: per pair, the lower index.
        second: per pair, the higher index.
        times: per pair, how often it was compared.
        wins: per item, comparisons won.
        comparisons: per item, comparisons; a comparison of an item with itself counts twice, as one win and one loss.
        self_pairs: per item, comparisons with itself.
        digest: fingerprint of the counts; the order of the rows does not matter for it.
    """

    ids: tuple[str, ...]
    start: Ints
    first: Ints
    second: Ints
    times: Floats
    wins: Floats
    comparisons: Floats
    self_pairs: Floats
    digest: str

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.ids)

    def part(self, members: Ints) -> Counts:
        """The counts among some of the items, which no pair may leave (ascending indices)."""
        renumbered = np.full(self.n_items, -1, dtype=np.int64)
        renumbered[members] = np.arange(len(members))
        inside = renumbered[self.first] >= 0
        first = renumbered[self.first[inside]]
        return Counts(
            ids=tuple(self.ids[at] for at in members),
            start=_starts(first, len(members)),
            first=first,
            second=renumbered[self.second[inside]],
            times=self.times[inside],
            wins=self.wins[members],
            comparisons=self.comparisons[members],
            self_pairs=self.self_pairs[members],
            digest=self.digest,
        )


def aggregate(decided: Decided) -> Counts:
    """Count the comparisons of all items seen.

    Ids are numbered in code-point order, so that neither the order of the rows nor the locale changes a result.
    """
    rows, ids = decided.rows, decided.seen
    names, size = pl.Series(ids, dtype=pl.String), len(ids)
    winner, loser = numbered(rows["winner"], names), numbered(rows["loser"], names)
    won, lost, times = count_cells(winner, loser, size)
    digest = hashlib.sha256(np.concatenate([won, lost, times]).astype("<i8").tobytes()).hexdigest()
    wins = np.bincount(winner, minlength=size).astype(np.float64)
    apart = won != lost
    first, second = np.minimum(won, lost)[apart], np.maximum(won, lost)[apart]
    # Both outcomes of a pair are cells of their own: at most two to add up.
    pair, place = np.unique(first * size + second, return_inverse=True)
    return Counts(
        ids=ids,
        start=_starts(pair // size, size),
        first=pair // size,
        second=pair % size,
        times=np.bincount(place, times[apart], len(pair)).astype(np.float64),
        wins=wins,
        comparisons=wins + np.bincount(loser, minlength=size),
        self_pairs=np.bincount(won[~apart], times[~apart], size).astype(np.float64),
        digest=fingerprint([ids, digest]),
    )


def connected_parts(counts: Counts, links: npt.NDArray[np.bool_] | None = None) -> list[Ints]:
    """The parts that the pairs (or those of them in ``links``) hold together, largest first, then in order of ids."""
    chosen = slice(None) if links is None else links
    return linked_groups(counts.first[chosen], counts.second[chosen], counts.n_items)


def named_parts(ids: Sequence[str], parts: Sequence[Ints], shown: int = 5) -> str:
    """Parts for a message: the size and the first items of each, and how many more parts there are."""
    texts = [
        f"{len(part):,} {'item' if len(part) == 1 else 'items'} ({listed([ids[at] for at in part], 3)})"
        for part in parts[:shown]
    ]
    more = [f"{len(parts) - shown:,} more parts"] if len(parts) > shown else []
    return "; ".join(texts + more)


def _starts(first: Ints, size: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(first, minlength=size))]).astype(np.int64)
