"""Wins that are counted: matrices, with in each cell how often the row beat the column; and columns of counts."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from pairscale.core.errors import TableError
from pairscale.core.tables import id_text, is_blank, listed

_COUNTS = {"freq", "frequency", "count", "counts", "n", "times", "wins", "n_wins"}
_MOST_WINS = 5_000_000  # rows that a matrix of counts may become


def is_matrix(frame: pl.DataFrame) -> bool:
    """Whether a table looks like a matrix: its first column holds names of other columns, which hold numbers."""
    if frame.width < 2 or not all(kind.is_numeric() or kind == pl.Null for kind in frame.dtypes[1:]):
        return False
    kind = frame.dtypes[0]
    if kind.is_nested() or kind in {pl.Object, pl.Binary} or frame.height > 2 * frame.width:
        return False
    return not set(id_text(frame.to_series(0))).isdisjoint(frame.columns[1:])


def require_no_counts(frame: pl.DataFrame, known: Collection[str], what: str) -> None:
    """Refuse a column that seems to say how often each comparison happened, as R's tables of frequencies have it.

    Args:
        frame: the comparisons.
        known: the columns whose meaning is known.
        what: the table's name, for messages.

    Raises:
        TableError: that names the column.
    """
    for name in frame.columns:
        column = frame[name]
        if name in known or "weight" in frame.columns or not column.dtype.is_integer() or name.lower() not in _COUNTS:
            continue
        is_numbering = 1 < len(column) and column.null_count() == 0 and bool((column.diff().drop_nulls() == 1).all())
        if not is_numbering and (column.drop_nulls() != 1).any():
            raise TableError(
                f"{what}: column {name!r} may say how often each row happened, but every row counts once; rename it to "
                "'weight' if it does, or leave it out"
            )


def matrix_wins(frame: pl.DataFrame, what: str) -> pl.DataFrame:
    """Wins by row and column, as one comparison per win: ``ID1 ID2 better_id``, and ``win``, its number in the cell.

    Raises:
        TableError: when rows and columns are not the same texts, or a cell is no number of wins.
    """
    names, others = id_text(frame.to_series(0), what), frame.columns[1:]
    if is_blank(names).any() or names.is_duplicated().any():
        raise TableError(f"{what}: a matrix of wins needs one row per text, with its id in the first column")
    if apart := sorted({str(name) for name in names} ^ set(others)):
        raise TableError(
            f"{what}: looks like a matrix of wins, but rows and columns are not the same texts; only one of them has "
            f"{listed(apart)}"
        )
    long = frame.with_columns(names.alias(frame.columns[0])).unpivot(
        others, index=frame.columns[0], variable_name="_loser", value_name="_wins"
    )
    long = long.select(ID1=frame.columns[0], ID2="_loser", wins=pl.col("_wins").cast(pl.Float64).fill_nan(None))
    long = long.with_columns(pl.col("wins").fill_null(0))
    own = long.filter((pl.col("ID1") == pl.col("ID2")) & (pl.col("wins") != 0))
    if own.height:
        raise TableError(f"{what}: {own['ID1'][0]!r} beats itself {own['wins'][0]:g} times; the diagonal must be empty")
    bad = long.filter((pl.col("wins") < 0) | (pl.col("wins") != pl.col("wins").floor()) | pl.col("wins").is_infinite())
    if bad.height:
        raise TableError(
            f"{what}: {bad['ID1'][0]!r} beats {bad['ID2'][0]!r} {bad['wins'][0]:g} times; a matrix of wins holds whole "
            "numbers (write ties as rows of object1 object2 result, with 0.5)"
        )
    if (total := long["wins"].sum()) > _MOST_WINS:
        raise TableError(f"{what}: {total:,.0f} wins are too many for one row each; give a column weight instead")
    table = long.select(pl.exclude("wins").repeat_by(pl.col("wins").cast(pl.Int64))).explode("ID1", "ID2").drop_nulls()
    # The number tells a win from the others of its cell: they were counted, so they are no copies of a row.
    return table.with_columns(better_id="ID1", win=pl.int_range(1, pl.len() + 1).over("ID1", "ID2"))
