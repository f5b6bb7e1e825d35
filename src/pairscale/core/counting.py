"""Results too many for memory, counted: the different rows, and how often each occurs.

What a model reads of a row are the two texts, who won, and at most a weight or a cluster. Rows that agree in these are
counted by the engine that holds them (narwhals speaks to each in its own way), and only the different ones are fetched.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.columns import ColumnNames
from pairscale.core.errors import FileFormatError, InputError, TableError
from pairscale.core.results import NO_COLUMNS, ORDER_KNOWN, TIE_FLAGS, ResultColumns, read_form
from pairscale.core.tables import TIMES, first_line, listed

if TYPE_CHECKING:
    import narwhals as nw

__all__ = [
    "IN_MEMORY",
    "MOST_IN_MEMORY",
    "collected",
    "columns_read",
    "count_rows",
    "is_many",
    "scanned",
    "scanned_columns",
    "scanned_height",
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


def scanned(data: Any) -> nw.LazyFrame[Any] | None:
    """A table that is not in memory, not read yet; None for everything else.

    Args:
        data: a Parquet file, a pattern of Parquet files, or a lazy table of an engine that narwhals knows: a Polars
            LazyFrame, a DuckDB relation, a Dask, Ibis or PySpark table.

    Raises:
        InputError: when no file matches a pattern, or one that matches is not a Parquet file.
    """
    if isinstance(data, str | os.PathLike):
        files = _parquet_files(os.fspath(data))
        return None if files is None else _lazy(_scan_parts(files))
    if isinstance(data, pl.DataFrame | Mapping | Sequence):
        return None
    return _lazy(data)


def _lazy(data: Any) -> nw.LazyFrame[Any] | None:
    import narwhals as nw

    table = nw.from_native(data, pass_through=True)
    return table if isinstance(table, nw.LazyFrame) else None


def _parquet_files(path: str) -> list[str] | None:
    """The Parquet files that a path or a pattern means; None for a file of another kind."""
    if not is_pattern(path):
        return [path] if Path(path).suffix.lower() == ".parquet" and Path(path).is_file() else None
    files = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - a pattern may be absolute
    other = [name for name in files if Path(name).suffix.lower() != ".parquet"]
    if not files:
        raise InputError(f"{path}: no file matches")
    if other:
        raise FileFormatError(
            f"{path}: {listed(other)} is not a Parquet file; several files are read together if all are Parquet"
        )
    return files


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


def collected(lazy: nw.LazyFrame[Any], what: str) -> pl.DataFrame:
    """The rows of a lazy table, in memory.

    Raises:
        TableError: when its engine cannot read them.
    """
    with _readable(what):
        table: pl.DataFrame = lazy.collect("polars").to_native()
    return table


def scanned_columns(lazy: nw.LazyFrame[Any], what: str) -> pl.DataFrame:
    """A lazy table's columns, without its rows."""
    with _readable(what):  # some engines look at their files already here
        return collected(lazy.head(0), what)


def scanned_height(lazy: nw.LazyFrame[Any], what: str) -> int:
    """How many rows a lazy table has; of Parquet files, their footers say it."""
    import narwhals as nw

    return int(collected(lazy.select(nw.len()), what).item())


def count_rows(lazy: nw.LazyFrame[Any], columns: Sequence[str], what: str) -> pl.DataFrame:
    """The different rows of some columns, and how often each occurs; counted where the table lies.

    Args:
        lazy: the rows.
        columns: the columns that matter.
        what: its name in an error message.

    Returns:
        These columns, and :data:`pairscale.core.tables.TIMES`.

    Raises:
        TableError: when the rows cannot be read.
    """
    import narwhals as nw

    native = lazy.to_native()
    if isinstance(native, pl.LazyFrame):
        with _readable(what):
            return _counted_in_blocks(native.select(columns), columns).sort(columns)
    grouped = lazy.group_by(*columns, drop_null_keys=False).agg(nw.len().alias(TIMES))
    return collected(grouped, what).with_columns(pl.col(TIMES).cast(pl.Int64)).sort(columns)


def _counted_in_blocks(rows: pl.LazyFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The same by Polars, block by block: it would hold more the more rows it groups at once."""
    rows = rows.with_columns(pl.lit(1, pl.Int64).alias(TIMES))
    counted = rows.head(0).collect()
    waiting: list[pl.DataFrame] = []
    n_waiting = 0
    for batch in rows.collect_batches(maintain_order=False, engine="streaming"):
        waiting.append(batch)
        n_waiting += batch.height
        if n_waiting >= max(_BLOCK, 2 * counted.height):
            counted = _added_up([counted, *waiting], columns)
            waiting.clear()
            n_waiting = 0
    return _added_up([counted, *waiting], columns)


def _added_up(tables: list[pl.DataFrame], columns: Sequence[str]) -> pl.DataFrame:
    return pl.concat(tables).group_by(columns).agg(pl.col(TIMES).sum())


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Turn what an engine raises, each errors of its own, into one that names the table."""
    try:
        yield
    except TableError:
        raise
    except Exception as error:
        raise TableError(f"{what} cannot be read: {first_line(error)}") from error
