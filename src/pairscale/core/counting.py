"""Results too many for memory, counted: the different rows, and how often each occurs.

What a model reads of a row are the two texts, who won, and at most a weight or a cluster. Rows that agree in these are
counted by the engine that holds them (narwhals speaks to each in its own way), and only the different ones are fetched.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.errors import FileFormatError, TableError
from pairscale.core.options import FilePath
from pairscale.core.tables import TIMES, first_line

if TYPE_CHECKING:
    import narwhals as nw

IN_MEMORY = 200_000
"""Up to this many rows, results are read whole, whatever they come from."""


def is_many(n: int) -> bool:
    """Whether this many rows are counted instead of read whole."""
    return n > IN_MEMORY


def is_pattern(path: FilePath) -> bool:
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
        return None if files is None else _lazy(pl.scan_parquet(files, glob=False, hive_partitioning=False))
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
    if not files or not all(name.lower().endswith(".parquet") for name in files):
        raise FileFormatError(f"{path}: there must be matching files, all of them Parquet files")
    return files


def collected(lazy: nw.LazyFrame[Any], what: str) -> pl.DataFrame:
    """The rows of a lazy table, in memory.

    Raises:
        TableError: when its engine cannot read them.
    """
    try:
        native = lazy.to_native()
        if isinstance(native, pl.LazyFrame):
            return native.collect(engine="streaming")
        table: pl.DataFrame = lazy.collect("polars").to_native()
    except Exception as error:  # every engine has errors of its own
        raise TableError(f"{what} cannot be read: {first_line(error)}") from error
    return table


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

    grouped = lazy.group_by(*columns, drop_null_keys=False).agg(nw.len().alias(TIMES))
    return collected(grouped, what).with_columns(pl.col(TIMES).cast(pl.Int64)).sort(columns)
