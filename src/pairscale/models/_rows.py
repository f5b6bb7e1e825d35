"""Comparisons read once: ids as numbers, who won, and what a row weighs or belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from pairscale.core.arrays import Floats, Ints
from pairscale.core.comparisons import as_comparisons
from pairscale.core.errors import FitError, InputError, TableError
from pairscale.core.notices import notice
from pairscale.core.results import is_matrix
from pairscale.core.tables import Table, as_text, is_blank, require_columns, row_numbers, times_of, to_frame, unnumbered
from pairscale.pairing.edges import numbered

__all__ = ["Decided", "Ties", "read_decided"]

Places: TypeAlias = npt.NDArray[np.int32]

Ties = Literal["drop", "half", "davidson"]
"""What to do with ties: leave them out, count half a win each, or model them."""

_PIECE = 1 << 20
_MODEL_COLUMNS = ("object1", "object2", "result")
_OTHER_SHAPES = {
    "ID1", "ID2", "A_id", "B_id", "winner", "loser", "candidate_chosen", "candidate_not_chosen", "order_known",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """The comparisons that can be used, one element a comparison.

    Attributes:
        ids: every id of the table, in code-point order, also those of rows that were left out.
        first: the first item, as its place in ``ids``.
        second: the second item.
        result: 1 when the first won, 0 when the second did, 0.5 for a tie.
        weight: what each comparison counts; None when all count the same.
        times: how often each stands there; None when it is once.
        cluster: the number of the cluster it belongs to, where clusters were asked for.
        clusters: the names of the clusters.
        notices: what was left out.
        table: the rows of the table that they are from.
    """

    ids: tuple[str, ...]
    first: Places
    second: Places
    result: Floats
    weight: Floats | None
    times: Ints | None
    cluster: Ints | None
    clusters: tuple[str, ...]
    notices: tuple[str, ...]
    table: pl.DataFrame

    @property
    def mass(self) -> Floats | None:
        """What each element counts, all its comparisons together; None when each is one comparison."""
        if self.times is None:
            return self.weight
        return self.times.astype(np.float64) if self.weight is None else self.weight * self.times


def read_decided(
    bt_data: Table,
    *,
    ties: Ties = "drop",
    weights: str | Sequence[float] | None = None,
    cluster: str | Sequence[Any] | None = None,
) -> Decided:
    """The comparisons of a table of any shape; rows without a winner of their own pair are left out, with a notice.

    Args:
        bt_data: any shape that :func:`pairscale.core.comparisons.as_comparisons` knows, or three columns under any
            names: the first item, the second, and 1 when the first won, 0 when the second did. Rows may be
            counted.
        ties: whether ties (a result of 0.5, or no winner and the outcome ``tie``) are kept; ``drop`` leaves them out.
        weights: a column, or one number per row.
        cluster: a column, or one name per row.

    Raises:
        TableError: when the columns are of no known shape, a result is none of 1, 0, 0.5 and missing, or a weight or
            cluster is missing.
        FitError: when no row is left.
    """
    frame = to_frame(bt_data, "results")
    if frame.is_empty():
        raise FitError("the results have no rows: there are no comparisons to fit")
    table = frame
    frame = _checked(frame)
    if not _is_model_input(frame):
        table = frame = as_comparisons(frame, "results")  # some forms hold several comparisons per row
    often = times_of(table)
    with unnumbered(often is not None):
        weight = _weights(table, weights)
        member, clusters = _clusters(table, cluster)
    ids, first, second, result = _numbers(frame)
    times = None if often is None else often.to_numpy()
    rows = len(table) if times is None else int(times.sum())
    kept = np.isfinite(result) if ties != "drop" else (result == 0) | (result == 1)
    said = _say_left_out(kept, rows, times, ties)
    if weight is not None and (nothing := kept & (weight == 0)).any():
        said.append(notice(f"left out {_number_of(nothing, times):,} of {rows:,} rows: their weight is 0"))
        kept &= ~nothing
        if not kept.any():
            raise FitError(f"all rows of the results with a winner have the weight 0 ({rows:,} rows)")
    chosen = slice(None) if kept.all() else kept
    return Decided(
        ids=ids,
        first=first[chosen],
        second=second[chosen],
        result=result[chosen],
        weight=None if weight is None else weight[chosen],
        times=None if times is None else times[chosen],
        cluster=None if member is None else member[chosen],
        clusters=clusters,
        notices=tuple(said),
        table=table if kept.all() else table.filter(kept),
    )


def _number_of(which: npt.NDArray[np.bool_], times: Ints | None) -> int:
    return int(which.sum() if times is None else times[which].sum())


def _say_left_out(kept: npt.NDArray[np.bool_], rows: int, times: Ints | None, ties: Ties) -> list[str]:
    if kept.all():
        return []
    left = _number_of(~kept, times)
    if left == rows:
        what = "a winner" if ties == "drop" else "a winner or a tie"
        raise FitError(f"none of the {rows:,} rows of the results has {what}: there are no comparisons to fit")
    why = "a tie, no winner" if ties == "drop" else "no winner"
    return [notice(f"left out {left:,} of {rows:,} rows: {why}, or a winner that is not of the pair")]


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
    known = (value == 0) | (value == 1) | (value == 0.5)
    bad = (given.is_not_null() & ~known.fill_null(value=False)).arg_true()
    if len(bad):
        raise TableError(
            f"results: column {name!r} must be 1 (the first won), 0 (the second) or 0.5 (a tie); it is not in "
            f"{len(bad):,} of {frame.height:,} rows, first in row {bad[0] + 1}: {given[bad[0]]!r}"
        )
    return frame.with_columns(result=value)


def _of_known_shape(frame: pl.DataFrame) -> bool:
    # Without rows, nothing but the columns can be wrong.
    try:
        as_comparisons(frame.clear())
    except TableError:
        return is_matrix(frame)
    return True


def _is_model_input(frame: pl.DataFrame) -> bool:
    """Whether it is ``object1 object2 result`` and nothing else, which needs no reading."""
    there = set(frame.columns)
    if not set(_MODEL_COLUMNS) <= there or _OTHER_SHAPES & there:
        return False
    sides = frame["object1"], frame["object2"]
    return all(side.dtype == pl.String and not side.has_nulls() for side in sides)


def _numbers(frame: pl.DataFrame) -> tuple[tuple[str, ...], Places, Places, Floats]:
    """The ids in code-point order, both sides of each row as their places, and the result (NaN without a winner)."""
    if _is_model_input(frame):
        coded = _coded(frame["object1"], frame["object2"])
        if coded is not None:
            return *coded, frame["result"].fill_null(np.nan).to_numpy()
        frame = as_comparisons(frame, "results")  # says which id is blank
    tied = pl.col("outcome").cast(pl.String) == "tie" if "outcome" in frame.columns else pl.lit(value=False)
    better = pl.col("better_id")
    sure = pl.when(better == pl.col("ID1")).then(1.0).when(better == pl.col("ID2")).then(0.0)
    value = sure.when(better.is_null() & tied).then(0.5).otherwise(np.nan)
    frame = frame.select("ID1", "ID2", value=value)
    coded = _coded(frame["ID1"], frame["ID2"])
    if coded is None:  # as_comparisons lets no missing or blank id through
        raise TableError("results: an id is missing")
    return *coded, frame["value"].to_numpy()


def _coded(first: pl.Series, second: pl.Series) -> tuple[tuple[str, ...], Places, Places] | None:
    """The ids of two columns of text in code-point order, and the columns as places; None when an id is no id.

    Some bits of an id's hash say in which slot it is looked for. A slot knows one id, that of the last row that came
    there; the few rows with another one of the same bits are looked up afterwards. That is twice as fast as to put
    every id into a table of hashes, and whatever is to be asked of an id is asked of the distinct ones only.
    """
    if first.dtype != pl.String or second.dtype != pl.String or first.has_nulls() or second.has_nulls():
        return None
    sides = (first.alias("ID"), second.alias("ID"))
    bits = min(max((len(first) // 4).bit_length(), 8), 20)
    size, rest = 1 << bits, np.uint64(64 - bits)
    last, number = np.full(size, -1, dtype=np.int64), np.empty(size, dtype=np.int32)
    known, codes = list[pl.Series](), []
    for side in sides:
        seen, code = last >= 0, np.empty(len(side), dtype=np.int32)
        for begin, part in _in_pieces(side):
            slot = (part.hash().to_numpy() >> rest).view(np.int64)
            last[slot] = np.arange(begin, begin + len(slot))
            code[begin : begin + len(slot)] = slot
        new = np.flatnonzero((last >= 0) & ~seen)
        number[new] = np.arange(len(new)) + sum(len(names) for names in known)
        known.append(side.gather(last[new]))
        codes.append(code)
    names = pl.concat(known)
    others = []
    for side, code in zip(sides, codes, strict=True):
        missed = [np.empty(0, dtype=np.int64)]
        for begin, part in _in_pieces(side):
            found = number[code[begin : begin + len(part)]]
            code[begin : begin + len(part)] = found
            wrong = names.gather(pl.Series(found.view(np.uint32))) != part
            missed.append(begin + wrong.arg_true().to_numpy().astype(np.int64))
        others.append(np.concatenate(missed))
    strange = [side.gather(rows) for side, rows in zip(sides, others, strict=True)]
    more = pl.concat(strange).unique()
    for code, rows, column in zip(codes, others, strange, strict=True):
        code[rows] = len(names) + numbered(column, more)
    names = pl.concat([names, more])
    if is_blank(names).any():
        return None
    order = names.arg_sort().to_numpy()
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    return tuple(names.gather(order)), place[codes[0]], place[codes[1]]


def _in_pieces(column: pl.Series) -> Iterator[tuple[int, pl.Series]]:
    """A column in pieces, for less memory at a time, and where each begins."""
    for begin in range(0, len(column), _PIECE):
        yield begin, column.slice(begin, _PIECE)


def _weights(frame: pl.DataFrame, weights: str | Sequence[float] | None) -> Floats | None:
    if weights is None:
        return None
    column = _given(frame, weights, "weights")
    value = column.cast(pl.Float64, strict=False) if not column.dtype.is_nested() else pl.Series([None] * frame.height)
    bad = ~(value.is_finite() & (value >= 0)).fill_null(value=False)
    if bad.any():
        first = column.filter(bad)[0]
        raise TableError(f"weights: {first!r} in {row_numbers(bad)}; a weight is a number, 0 or more")
    return value.to_numpy()


def _clusters(frame: pl.DataFrame, cluster: str | Sequence[Any] | None) -> tuple[Ints | None, tuple[str, ...]]:
    if cluster is None:
        return None, ()
    column = as_text(_given(frame, cluster, "cluster"), "cluster")
    missing = column.is_null()
    if missing.any():
        raise TableError(f"cluster: no value in {row_numbers(missing)}; every row needs one")
    names = column.unique().sort()
    return numbered(column, names), tuple(names)


def _given(frame: pl.DataFrame, values: str | Sequence[Any], what: str) -> pl.Series:
    """A column by its name, or values that came by themselves."""
    if isinstance(values, str):
        require_columns(frame, [values], f"{what}={values!r}")
        return frame[values]
    try:
        column = pl.Series(what, values, strict=False)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise InputError(f"{what} is a {type(values).__name__}; name a column, or give one value per row") from None
    if len(column) != frame.height:
        raise InputError(
            f"{what} has {len(column):,} values for {frame.height:,} rows of the results; give one per row"
        )
    return column
