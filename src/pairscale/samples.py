"""Samples: the texts to be compared, from wherever they are."""

from __future__ import annotations

import os
import re
from pathlib import Path

import polars as pl

from pairscale.errors import FileFormatError, InputError, TableError
from pairscale.files import TABLE_SUFFIXES, read_table, read_text
from pairscale.tables import Table, listed, require_ids, to_frame

__all__ = ["MAX_TEXT_BYTES", "read_samples", "read_samples_df", "read_samples_dir"]

MAX_TEXT_BYTES = 5_000_000
"""The longest text of one sample; beyond it, something other than a sample was read."""

Column = int | str


def read_samples(
    source: Table,
    *,
    id_col: Column | None = None,
    text_col: Column | None = None,
    encoding: str | None = None,
) -> pl.DataFrame:
    """Samples from a folder, a file, a table or a list of dicts.

    Args:
        source: a folder of ``.txt`` files (the name is the id); a csv, tsv, jsonl, json, parquet or xlsx file; a
            pandas, Polars or Arrow table; a list of dicts.
        id_col: the column of ids, by name or by position from 0. Default: the one called ``ID`` (in any case), else
            the first.
        text_col: the column of texts, likewise. Default: the one called ``text``, else the second.
        encoding: of text files that are neither UTF-8 nor marked.

    Returns:
        ``ID``, ``text``, and every other column as it was.

    Raises:
        InputError: that names the file, column or rows that cannot be used.

    Example:
        >>> read_samples([{"ID": "a", "text": "One."}, {"ID": "b", "text": "Two."}]).rows()
        [('a', 'One.'), ('b', 'Two.')]
    """
    if not isinstance(source, str | os.PathLike):
        return read_samples_df(source, id_col, text_col)
    path = Path(source)
    if path.is_dir():
        return read_samples_dir(path, encoding=encoding)
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise FileFormatError(
            f"{path}: no such file" if not path.exists()
            else f"{path}: give a folder of .txt files, or a file that ends in {listed(TABLE_SUFFIXES, 20)}"
        )  # fmt: skip
    names = {name for name in (id_col, text_col) if isinstance(name, str)}
    frame = read_table(path, text=[*names, *_ID_NAMES, *_TEXT_NAMES], encoding=encoding)
    return _checked(frame, id_col, text_col, str(path))


def read_samples_df(df: Table, id_col: Column | None = None, text_col: Column | None = None) -> pl.DataFrame:
    """Samples from a table; see :func:`read_samples`.

    Example:
        >>> read_samples_df({"pupil": ["p1"], "essay": ["Once."], "grade": [8]}, "pupil", "essay").columns
        ['ID', 'text', 'grade']
    """
    return _checked(to_frame(df, "samples"), id_col, text_col, "samples")


def read_samples_dir(
    path: str | os.PathLike[str] = ".", pattern: str = r"\.txt$", *, encoding: str | None = None
) -> pl.DataFrame:
    """Samples from a folder of text files: the name without its ending is the id.

    Args:
        path: the folder.
        pattern: a regular expression that the file names must match.
        encoding: of files that are neither UTF-8 nor marked.

    Raises:
        FileFormatError: when the folder is missing or no file matches.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise FileFormatError(f"{path}: no such folder")
    try:
        matches = re.compile(pattern).search
    except re.error as error:
        raise InputError(f"pattern {pattern!r} is not a regular expression: {error}") from None
    files = sorted(file for file in folder.iterdir() if matches(file.name) and file.is_file() and file.name[0] != ".")
    if not files:
        raise FileFormatError(f"{path}: no file matches {pattern!r}")
    for file in files:
        if file.stat().st_size > MAX_TEXT_BYTES:
            raise FileFormatError(f"{file} has {file.stat().st_size:,} bytes; a sample has at most {MAX_TEXT_BYTES:,}")
    texts = [read_text(file, encoding) for file in files]
    return _checked(pl.DataFrame({"ID": [file.stem for file in files], "text": texts}), None, None, str(path))


_ID_NAMES = ("ID", "id", "Id")
_TEXT_NAMES = ("text", "Text", "TEXT")


def _checked(frame: pl.DataFrame, id_col: Column | None, text_col: Column | None, what: str) -> pl.DataFrame:
    ids = _column(frame, id_col, _ID_NAMES, 0, what, "id_col")
    texts = _column(frame, text_col, _TEXT_NAMES, 1, what, "text_col")
    if ids == texts:
        raise TableError(f"{what}: the ids and the texts cannot both be column {ids!r}")
    others = [name for name in frame.columns if name not in {ids, texts}]
    if clash := {"ID", "text"}.intersection(others):
        raise TableError(f"{what}: a further column is called {listed(sorted(clash))}; rename it")
    frame = require_ids(frame.select(pl.col(ids).alias("ID"), pl.col(texts).alias("text"), *others), ["ID"], what)
    if frame.height == 0:
        raise TableError(f"{what}: no rows")
    if twice := frame.filter(pl.col("ID").is_duplicated())["ID"].unique(maintain_order=True).to_list():
        rows = frame.with_row_index("row", 1).filter(pl.col("ID") == twice[0])["row"].to_list()
        at = " and ".join(str(row) for row in rows[:3])
        raise TableError(
            f"{what}: the id {twice[0]!r} stands in rows {at}; ids must be unique ({len(twice):,} are not)"
        )
    return _with_texts(frame, what)


def _with_texts(frame: pl.DataFrame, what: str) -> pl.DataFrame:
    frame = frame.with_columns(pl.col("text").cast(pl.String))
    blank = frame.filter(pl.col("text").is_null() | (pl.col("text").str.strip_chars() == ""))["ID"].to_list()
    if blank:
        raise TableError(f"{what}: no text for {listed(blank)}; leave the sample out, or write what was handed in")
    long = frame.filter(pl.col("text").str.len_bytes() > MAX_TEXT_BYTES)
    if long.height:
        size = len(long["text"][0].encode())
        raise TableError(f"{what}: the text of {long['ID'][0]!r} has {size:,} bytes; at most {MAX_TEXT_BYTES:,}")
    return frame


def _column(
    frame: pl.DataFrame, given: Column | None, names: tuple[str, ...], position: int, what: str, argument: str
) -> str:
    if given is None:
        named = next((name for name in names if name in frame.columns), None)
        if named is not None:
            return named
        given = position
    if isinstance(given, str):
        if given not in frame.columns:
            raise TableError(f"{what}: no column {given!r}; it has {listed(frame.columns, 20)}")
        return given
    if not 0 <= given < frame.width:
        raise TableError(
            f"{what}: {argument}={given} but it has {frame.width} columns ({listed(frame.columns, 20)}), counted from 0"
        )
    return frame.columns[given]
