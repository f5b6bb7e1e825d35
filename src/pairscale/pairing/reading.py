"""Pairs from a file, or made of the texts that it holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pairscale.core.columns import Column, column_at
from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES, read_table
from pairscale.core.options import FilePath
from pairscale.core.provenance import text_hash
from pairscale.core.samples import SamplesReport, inspect_samples, require_all_read, say_report
from pairscale.core.tables import as_text, to_frame
from pairscale.pairing.make import make_pairs
from pairscale.pairing.table import as_pairs

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.tables import Table


def read_pairs(
    data: Table | FilePath,
    *,
    id_col: Column | None = None,
    text_col: Column | None = None,
    encoding: str | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    strict: bool = False,
    skip_unreadable: bool = False,
    tell: Callable[[SamplesReport], None] = say_report,
) -> tuple[pl.DataFrame, list[str] | None]:
    """The pairs of a table or a file; of texts, all their pairs.

    Args:
        data: A table or a file of pairs (``ID1 text1 ID2 text2``), or samples as :func:`read_samples` takes them.
        id_col: The column of ids.
        text_col: The column of texts.
        encoding: Encoding of text files.
        a_col: Of pairs, the column of the text that is shown first; by default ``text1``.
        b_col: The column of the text that is shown second; by default ``text2``.
        strict: Raise an error if a file of a folder was not read.
        skip_unreadable: Continue without the files that need an optional package that is not installed.
        tell: Called with what was read, where ``data`` is samples.

    Returns:
        The pairs, and the ids of all samples where ``data`` is samples.

    Raises:
        InputError: If there are neither pairs nor texts.
    """
    if id_col is None and text_col is None and not isinstance(data, SamplesReport):
        pairs = _pairs_in(data, encoding, a_col, b_col)
        if pairs is not None:
            return pairs, None
    report = inspect_samples(data, id_col=id_col, text_col=text_col, encoding=encoding, skip_unreadable=skip_unreadable)
    if strict:
        require_all_read(report)
    if report is not data:
        tell(report)
    return make_pairs(report.samples), report.samples["ID"].to_list()


def read_given_pairs(
    pairs: Table | FilePath,
    *,
    encoding: str | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
) -> pl.DataFrame:
    """The pairs of a table or a file, where texts alone would not do.

    Args:
        pairs: A table or a file with ``ID1 text1 ID2 text2``.
        encoding: Encoding of a text file.
        a_col: The column of the text that is shown first; by default ``text1``.
        b_col: The column of the text that is shown second; by default ``text2``.

    Raises:
        InputError: If it is a folder, or holds no pairs.
    """
    table = _pairs_in(pairs, encoding, a_col, b_col)
    if table is not None and table.height:
        return table
    if not isinstance(pairs, str | os.PathLike):
        return as_pairs(pairs)
    raise InputError(
        f"{pairs} holds no pairs (ID1 text1 ID2 text2); make them with `pairscale pairs {pairs} --out pairs.csv`, then "
        "judge pairs.csv, or name the columns of the two texts (`a_col=`, `b_col=`)"
    )


def _pairs_in(
    data: Table | FilePath, encoding: str | None, a_col: str | None, b_col: str | None
) -> pl.DataFrame | None:
    """The pairs of a table or a file; None when it holds none.

    Where the two texts are in columns that the user names, and nothing names the texts, the same text has the same id.
    """
    import polars as pl

    what = "the table"
    if not isinstance(data, str | os.PathLike):
        table = to_frame(data)
    elif Path(data).suffix.lower() in TABLE_SUFFIXES and not Path(data).is_dir():
        what = str(data)
        named = [name for name in (a_col, b_col) if name is not None]
        table = read_table(data, text=named, encoding=encoding, paths=named)
    else:
        return None
    if a_col is None and b_col is None:
        return as_pairs(table) if {"ID1", "ID2"} <= set(table.columns) else None
    for position, column, argument in (("1", a_col, "a_col"), ("2", b_col, "b_col")):
        text = f"text{position}"
        if column is None and text not in table.columns:
            raise InputError(f"{what}: `a_col=` and `b_col=` name the two texts of a pair; give both")
        if column is not None and column != text:
            column_at(table.columns, column, argument, what)
            if text in table.columns:
                raise InputError(f"{what} has a column {text!r} beside {column!r}; rename it or leave it out")
            table = table.rename({column: text})
        if f"ID{position}" not in table.columns:
            names = [None if cell is None else text_hash(cell)[:12] for cell in as_text(table[text], what)]
            table = table.with_columns(pl.Series(f"ID{position}", names, pl.String))
    return as_pairs(table)
