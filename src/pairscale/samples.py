"""Samples: the texts to be compared, from wherever they are."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pairscale.errors import FileFormatError, InputError, TableError
from pairscale.files import TABLE_SUFFIXES, read_table, read_text
from pairscale.options import require_int
from pairscale.tables import Table, as_text, is_blank, listed, require_ids, row_numbers, to_frame

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
            the first. Ids are text: ``007`` stays ``007``.
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
    if os.path.isdir(path):  # noqa: PTH112 (Path.is_dir raises when somebody gives a text instead of its file)
        return read_samples_dir(path, encoding=encoding)
    if path.suffix.lower() not in TABLE_SUFFIXES:
        if not os.path.exists(path):  # noqa: PTH110 (likewise)
            raise FileFormatError(f"{_brief(path)}: no such file or folder")
        raise FileFormatError(f"{path}: give a folder of .txt files, or a file in {listed(TABLE_SUFFIXES, 20)}")
    frame = read_table(path, text=lambda columns: _chosen(columns, id_col, text_col, str(path)), encoding=encoding)
    return _checked(frame, id_col, text_col, str(path))


def read_samples_df(df: Table, id_col: Column | None = None, text_col: Column | None = None) -> pl.DataFrame:
    """Samples from a table; see :func:`read_samples`.

    Example:
        >>> read_samples_df({"pupil": ["p1"], "essay": ["Once."], "grade": [8]}, "pupil", "essay").columns
        ['ID', 'text', 'grade']
    """
    return _checked(to_frame(df, "samples"), id_col, text_col, "samples")


def read_samples_dir(
    path: str | os.PathLike[str] = ".", pattern: str = r"(?i)\.txt$", *, encoding: str | None = None
) -> pl.DataFrame:
    """Samples from a folder of text files: the name without its ending is the id.

    Args:
        path: the folder.
        pattern: a regular expression that the file names must match.
        encoding: of files that are neither UTF-8 nor marked.

    Raises:
        FileFormatError: when the folder is missing or no file matches.

    Example:
        >>> from pathlib import Path
        >>> Path("letters").mkdir()
        >>> _ = Path("letters/ann.txt").write_text("Dear Bob, it rains.", "utf-8")
        >>> read_samples_dir("letters").rows()
        [('ann', 'Dear Bob, it rains.')]
    """
    folder = Path(path)
    if not folder.is_dir():
        raise FileFormatError(f"{path}: no such folder")
    try:
        matches = re.compile(pattern).search
    except re.error as error:
        raise InputError(f"pattern {pattern!r} is not a regular expression: {error}") from None
    try:
        files = sorted(
            file for file in folder.iterdir() if matches(file.name) and file.name[0] != "." and file.is_file()
        )
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    if not files:
        raise FileFormatError(f"{path}: no file matches {pattern!r}; a sample is a file that ends in .txt")
    by_id: dict[str, Path] = {}
    for file in files:
        if (other := by_id.setdefault(file.stem, file)) is not file:
            raise FileFormatError(f"{other} and {file} would have the same id {file.stem!r}; rename one")
        if file.stat().st_size > MAX_TEXT_BYTES:
            raise FileFormatError(f"{file} has {file.stat().st_size:,} bytes; a sample has at most {MAX_TEXT_BYTES:,}")
    samples = {"ID": list(by_id), "text": [read_text(file, encoding) for file in files]}
    return _checked(to_frame(samples, str(path)), "ID", "text", str(path))


def _checked(frame: pl.DataFrame, id_col: Column | None, text_col: Column | None, what: str) -> pl.DataFrame:
    if frame.width == 0:
        raise TableError(f"{what}: no rows; give at least one sample")
    ids, texts = _chosen(frame.columns, id_col, text_col, what)
    others = [name for name in frame.columns if name not in {ids, texts}]
    if clash := [name for name in ("ID", "text") if name in others]:
        raise TableError(f"{what}: a further column is called {listed(clash)}; rename it or leave it out")
    if frame.height == 0:
        raise TableError(f"{what}: no rows; give at least one sample")
    checked = require_ids(frame, [ids], what).with_columns(as_text(frame[texts], what))
    _require_unique(checked[ids], what)
    _require_texts(checked[ids], checked[texts], what)
    return checked.select(pl.col(ids).alias("ID"), pl.col(texts).alias("text"), *others)


def _require_unique(ids: pl.Series, what: str) -> None:
    twice = ids.filter(ids.is_duplicated()).unique(maintain_order=True)
    if len(twice):
        more = f" ({len(twice):,} ids are not)" if len(twice) > 1 else ""
        raise TableError(
            f"{what}: the id {twice[0]!r} stands in {row_numbers(ids == twice[0])}; ids must be unique{more}"
        )


def _require_texts(ids: pl.Series, texts: pl.Series, what: str) -> None:
    blank = is_blank(texts)
    if blank.any():
        raise TableError(
            f"{what}: no text for {listed(ids.filter(blank).to_list())} in {row_numbers(blank)}; leave the sample out, "
            "or write what was handed in"
        )
    size = texts.str.len_bytes()
    if (long := size > MAX_TEXT_BYTES).any():
        raise TableError(
            f"{what}: the text of {ids.filter(long)[0]!r} in {row_numbers(long)} has {size.filter(long)[0]:,} bytes; a "
            f"sample has at most {MAX_TEXT_BYTES:,}"
        )


def _chosen(columns: Sequence[str], id_col: Column | None, text_col: Column | None, what: str) -> tuple[str, str]:
    """The names of the columns of ids and of texts."""
    ids = _column(columns, id_col, "ID", 0, what)
    texts = _column(columns, text_col, "text", 1, what)
    if ids == texts:
        raise TableError(f"{what}: the ids and the texts cannot both be column {ids!r}; name them (id_col=, text_col=)")
    return ids, texts


def _column(columns: Sequence[str], given: Column | None, usual: str, position: int, what: str) -> str:
    argument = f"{usual.lower()}_col"
    if given is None:
        if usual in columns:
            return usual
        alike = [name for name in columns if name.lower() == usual.lower()]
        given = alike[0] if alike else position
    if isinstance(given, str):
        if given not in columns:
            raise TableError(f"{what}: no column {given!r} ({argument}); it has {listed(columns, 20)}")
        return given
    given = require_int(given, f"{argument} as a position", least=0)
    if given >= len(columns):
        raise TableError(
            f"{what}: no column {given}, counted from 0 ({argument}); it has {len(columns)}: {listed(columns, 20)}"
        )
    return columns[given]


def _brief(path: Path) -> str:
    """A path for a message; somebody may have given a whole text."""
    name = str(path)
    return repr(name) if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]!r}…"


_LONGEST_NAME = 200
