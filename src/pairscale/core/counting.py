"""Results too many for memory, counted: the different rows, and how often each stands there.

What a model reads of a row are the two texts, who won, and at most a weight or a cluster. Rows that agree in these are
counted by Polars' streaming engine, and only the different ones are held.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.core.columns import ColumnNames
from pairscale.core.errors import FileFormatError, InputError, TableError
from pairscale.core.results import NO_COLUMNS, ORDER_KNOWN, TIE_FLAGS, ResultColumns, read_form
from pairscale.core.tables import TIMES, first_line, listed

__all__ = [
    "IN_MEMORY",
    "MOST_IN_MEMORY",
    "columns_read",
    "count_rows",
    "is_many",
    "scanned",
    "scanned_rows",
]

IN_MEMORY = 200_000
"""Up to so many rows, results are read whole, whatever they come from."""

MOST_IN_MEMORY = 20_000_000
"""More rows of a file are never read whole."""

_BLOCK = 2_000_000  # rows that are counted at once


def is_many(n: int) -> bool:
    """Whether so many rows are counted instead of read whole."""
    return n > IN_MEMORY


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pattern such as ``results/*.parquet``, and no file of that name is there."""
    return glob.has_magic(os.fspath(path)) and "://" not in os.fspath(path) and not Path(path).exists()


def scanned(data: Any) -> pl.LazyFrame | None:
    """A LazyFrame, a Parquet file or a pattern of Parquet files, not read yet; None for everything else.

    Raises:
        InputError: when no file matches a pattern, or one that matches is not a Parquet file.
    """
    if isinstance(data, pl.LazyFrame):
        return data
    if not isinstance(data, str | os.PathLike):
        return None
    path = os.fspath(data)
    if is_pattern(path):
        files = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - a pattern may be absolute
        other = [name for name in files if Path(name).suffix.lower() != ".parquet"]
        if not files:
            raise InputError(f"{path}: no file matches")
        if other:
            raise FileFormatError(
                f"{path}: {listed(other)} is not a Parquet file; several files are read together if all are Parquet"
            )
        return _scan_parts(files)
    if Path(path).suffix.lower() == ".parquet" and Path(path).is_file():
        return _scan_parts([path])
    return None


def _scan_parts(files: list[str]) -> pl.LazyFrame:
    """Parquet files that belong together, with the columns that the names of their folders hold (``judge=ann/``).

    Values in names are text, so that the id ``007`` stays ``007``, and are written as in an address (``%20``).
    """
    named = [part.partition("=")[0] for part in Path(files[0]).parts[:-1] if "=" in part]
    if not named:
        return pl.scan_parquet(files, glob=False, hive_partitioning=False)
    kinds = dict.fromkeys(named, pl.String())
    return pl.scan_parquet(files, glob=False, hive_partitioning=True, hive_schema=kinds)


def columns_read(frame: pl.DataFrame, what: str = "results", columns: ResultColumns = NO_COLUMNS) -> list[str]:
    """The columns that say who met whom and who won; those that differ in these alone are different comparisons.

    Args:
        frame: a table without rows, by whose columns the form is recognised.
        what: its name in an error message.
        columns: the columns that a user has named.

    Raises:
        TableError: as :func:`read_form`.
    """
    names = ColumnNames(frame.columns)
    try:
        shown = read_form(frame, what, columns).columns
    except TableError:
        if frame.width != 3 or columns:
            raise
        shown = tuple(frame.columns)  # may be two texts and a result, which rows tell
    nested = [name for name in shown if name not in frame.columns or frame.schema[name].is_nested()]
    if nested:
        raise TableError(
            f"{what}: {listed(nested)}: so many rows are counted, and for that their values must be columns of their "
            "own, and not nested in others"
        )
    further = ["outcome", ORDER_KNOWN, *TIE_FLAGS]
    if names.has("preferred"):
        further += ["swapped", "criterion", "trait"]
    return list(dict.fromkeys([*shown, *names.all(*further)]))


def scanned_rows(frame: pl.LazyFrame, what: str) -> tuple[int, pl.Schema]:
    """How many rows a LazyFrame has, and its columns; of Parquet files, their footers say it.

    Raises:
        TableError: when it cannot be read.
    """
    n_rows = int(_collected(frame.select(pl.len()), what).item())
    return n_rows, frame.collect_schema()


def count_rows(frame: pl.LazyFrame, columns: Sequence[str], what: str) -> pl.DataFrame:
    """The different rows of some columns, and how often each stands there.

    They are counted in blocks, because Polars would hold more the more rows it groups at once.

    Args:
        frame: the rows.
        columns: the columns that matter.
        what: its name in an error message.

    Returns:
        These columns, and :data:`pairscale.core.tables.TIMES`.

    Raises:
        TableError: when the rows cannot be read.
    """
    rows = frame.select(columns).with_columns(pl.lit(1, pl.Int64).alias(TIMES))
    counted = _collected(rows.head(0), what)
    waiting: list[pl.DataFrame] = []
    n_waiting = 0
    try:
        for batch in rows.collect_batches(maintain_order=False, engine="streaming"):
            waiting.append(batch)
            n_waiting += batch.height
            if n_waiting >= max(_BLOCK, 2 * counted.height):
                counted = _added_up([counted, *waiting], columns)
                waiting.clear()
                n_waiting = 0
    except (pl.exceptions.PolarsError, OSError) as error:
        raise TableError(f"{what} cannot be read: {first_line(error)}") from None
    return _added_up([counted, *waiting], columns).sort(columns)


def _added_up(tables: list[pl.DataFrame], columns: Sequence[str]) -> pl.DataFrame:
    return pl.concat(tables).group_by(columns).agg(pl.col(TIMES).sum())


def _collected(frame: pl.LazyFrame, what: str) -> pl.DataFrame:
    try:
        return frame.collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise TableError(f"{what} cannot be read: {first_line(error)}") from None
