"""Tables in files, in and out, by the ending of their name.

A file that cannot be read is refused with its name; a file is written whole or not at all.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import polars as pl

from pairscale.core.columns import Column, with_paths
from pairscale.core.encodings import read_bytes, read_text
from pairscale.core.errors import FileFormatError
from pairscale.core.formulas import guarded_frame, unguarded_frame
from pairscale.core.options import FilePath
from pairscale.core.tables import CANONICAL, FAILED, RESULTS, TEXT_COLUMNS, Values, first_line, listed, to_frame
from pairscale.core.workbooks import read_workbook, write_sheets

TextColumns = Sequence[str] | Callable[[pl.DataFrame], Collection[str]]
"""Names of columns, or a function that picks them from a file's table before cells became numbers."""

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")
"""The endings that :func:`read_table` and :func:`write_table` know."""

_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")


# Tables in.


def read_table(
    path: FilePath,
    *,
    text: TextColumns = (),
    encoding: str | None = None,
    paths: Sequence[Column | None] = (),
) -> pl.DataFrame:
    """A table from a file, by the ending of its name: csv, tsv, jsonl (ndjson), json, parquet, xlsx.

    In a csv file commas, semicolons or tabs may separate the cells; an empty cell is a missing value, and so is
    the R package's ``NA`` outside of the text columns.

    Args:
        path: the file.
        text: of csv and tsv files, further columns that are text whatever they look like, beside
            :data:`pairscale.core.tables.TEXT_COLUMNS`.
        encoding: of csv, tsv and json files, when it is not UTF-8.
        paths: of json and jsonl files, paths such as ``meta.author`` that become columns of that name.

    Raises:
        InputError: that names the file, and the line where there is one.
    """
    source = Path(path)
    suffix = _table_suffix(source)
    if suffix in _JSON_SUFFIXES:
        frame = to_frame(with_paths(_json_rows(source, encoding), paths, str(source)), str(source))
    elif suffix == ".parquet":
        try:
            frame = pl.read_parquet(io.BytesIO(read_bytes(source)))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise FileFormatError(f"{path} is not a parquet file: {first_line(error)}") from None
    elif suffix == ".xlsx":
        frame = read_workbook(read_bytes(source), source)
    else:
        frame = _read_delimited(source, text, encoding)
    if frame.width == 0:
        raise FileFormatError(f"{path} is empty; a table has named columns")
    return frame


def read_json(path: FilePath, *, encoding: str | None = None) -> Any:
    """The content of a JSON file; an empty list for an empty file.

    Args:
        path: the file.
        encoding: of a file that is not UTF-8.

    Raises:
        FileFormatError: it is no JSON, or nested too deeply.
    """
    content = read_text(path, encoding)
    return _json(content, Path(path), 1) if content.strip() else []


def read_rows(path: FilePath, *, text: Sequence[str] = (), encoding: str | None = None) -> list[Values]:
    """The rows of a table; those of a jsonl or json file unchanged, whatever is nested in them.

    Args:
        path: the file.
        text: as in :func:`read_table`.
        encoding: likewise.

    Raises:
        InputError: as :func:`read_table`.
    """
    if Path(path).suffix.lower() in _JSON_SUFFIXES:
        return _json_rows(Path(path), encoding)
    return read_table(path, text=text, encoding=encoding).to_dicts()


def _table_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise FileFormatError(f"{path}: a table must end in {listed(sorted(TABLE_SUFFIXES), 20)}")
    return suffix


_BLOCK = 20_000
_HEAD = 100_000
_LONGEST_CELL = 2**31 - 1
_QUOTED = re.compile(r'"[^"]*"')


def _read_delimited(path: Path, text: TextColumns, encoding: str | None) -> pl.DataFrame:
    content = read_text(path, encoding)
    if not content.strip():
        return pl.DataFrame()
    separator = "\t"
    if path.suffix.lower() != ".tsv":
        head = re.split(r"[\r\n]", _QUOTED.sub("", content[:_HEAD].lstrip()), maxsplit=1)[0]
        separator = max(",;\t", key=head.count)
    records = _records(content, separator, path)
    header = _header(next(records), path)
    blocks = [pl.DataFrame(schema=dict.fromkeys(header, pl.String))]
    # In blocks, because a million rows of cells as Python strings would take many times their room.
    while block := list(islice(records, _BLOCK)):
        blocks.append(pl.DataFrame(dict(zip(header, zip(*block, strict=True), strict=True))))
    frame = pl.concat(blocks)
    more = text(frame) if callable(text) else text
    return unguarded_frame(_typed(frame, {*TEXT_COLUMNS, *more}, decimal_comma=separator == ";"))


def _records(content: str, separator: str, path: Path) -> Iterator[list[str]]:
    """The rows of a csv file, all as wide as the first; blank lines are skipped."""
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=separator, strict=True)
    advice = "a text with separators, quotes or line ends must be in quotes, with each quote in it doubled"
    width = 0
    try:
        for record in filter(None, reader):
            width = width or len(record)
            if len(record) != width:
                raise FileFormatError(
                    f"{path}: line {reader.line_num} has {len(record)} cells, the header {width}; {advice}"
                )
            yield record
    except csv.Error as error:
        raise FileFormatError(f"{path}: line {reader.line_num} is not csv: {error}; {advice}") from None


def _header(cells: Sequence[str], path: Path) -> list[str]:
    """The names of the columns; R leaves that of its row names empty."""
    names = [cell or f"column_{place}" for place, cell in enumerate(cells, start=1)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FileFormatError(f"{path}: the header has {listed(twice)} more than once; rename one")
    return names


_OURS = {name for schema in (RESULTS, CANONICAL, FAILED) for name, kind in schema.items() if kind == pl.String()}


def _typed(frame: pl.DataFrame, text: Collection[str], *, decimal_comma: bool) -> pl.DataFrame:
    """Cells as what they are: text stays text, and columns of numbers or truth values become that."""
    # The R package writes a missing value as NA; in a text column those two letters may be meant.
    frame = frame.with_columns(
        pl.col(name).replace({"": None} if name in text else {"": None, "NA": None}) for name in frame.columns
    )
    guessed = [name for name in frame.columns if name not in text and name not in _OURS]
    return frame.with_columns(_guessed(frame[name], decimal_comma) for name in guessed)


def _guessed(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    missing = cells.null_count()
    if missing == len(cells) or cells.str.contains(r"^[+-]?0\d").any():
        return cells  # 007 is a code, not a number
    whole = cells.cast(pl.Int64, strict=False)
    if whole.null_count() == missing:
        return whole
    if decimal_comma and not cells.str.contains(".", literal=True).any():
        spelled = cells.str.replace(",", ".", literal=True)
    else:
        spelled = cells
    number = spelled.cast(pl.Float64, strict=False)
    is_long = cells.str.contains(r"^[+-]?\d{16,}$").any()  # a float would lose its last digits
    if number.null_count() == missing and not is_long:
        return number
    lower = cells.str.to_lowercase()
    return lower == "true" if lower.is_in(["true", "false"]).all() else cells


def _json_rows(path: Path, encoding: str | None) -> list[Values]:
    """The objects of a json or jsonl file."""
    if path.suffix.lower() == ".json":
        rows = read_json(path, encoding=encoding)
    else:
        # Not splitlines(): inside a JSON string, U+2028 and its like end no line.
        lines = enumerate(read_text(path, encoding).split("\n"), start=1)
        rows = [_json(line, path, number) for number, line in lines if line.strip()]
    if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
        return rows
    raise FileFormatError(f'{path} must hold JSON objects, one per row, such as {{"ID": "a", "text": "…"}}')


def _json(document: str, path: Path, line: int) -> Any:
    """A parsed JSON document that begins in ``line`` of a file."""
    try:
        return json.loads(document)
    except (RecursionError, ValueError) as error:
        line += getattr(error, "lineno", 1) - 1
        raise FileFormatError(f"{path}: line {line} is not JSON that a table can hold: {first_line(error)}") from None


# Tables out.


def write_table(frame: pl.DataFrame, path: FilePath) -> Path:
    """Write a table by the ending of the file's name, whole or not at all.

    Text that looks like a formula is never one: in Excel its cell is of the kind text, in csv and tsv it gets an
    apostrophe (:mod:`pairscale.core.formulas`). In Excel, times are text.

    Raises:
        FileFormatError: when the ending is unknown, the file cannot be written, or it cannot hold such a table.
    """
    target = Path(path)
    suffix = _table_suffix(target)
    try:
        if suffix == ".xlsx":
            return write_workbook({"Sheet1": frame}, target)
        with replacing(target) as temporary:
            _write(frame, temporary, suffix)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise FileFormatError(f"{target} cannot be written: {first_line(error)}") from None
    return target


def write_workbook(sheets: Mapping[str, pl.DataFrame], path: FilePath) -> Path:
    """Write tables as the sheets of one Excel file, whole or not at all.

    Args:
        sheets: the tables, by the names of their sheets.
        path: the file, which ends in ``.xlsx``.

    Raises:
        FileFormatError: as :func:`write_table`.
    """
    target = Path(path)
    with replacing(target) as temporary:
        write_sheets({name: _flat(frame) for name, frame in sheets.items()}, temporary, target)
    return target


def _write(frame: pl.DataFrame, path: Path, suffix: str) -> None:
    if suffix == ".parquet":
        frame.write_parquet(path)
    elif suffix == ".json":
        frame.write_json(path)
    elif suffix in {".jsonl", ".ndjson"}:
        frame.write_ndjson(path)
    else:
        # A missing value alone on its line would look like a blank line.
        style: Literal["always", "necessary"] = "always" if frame.width == 1 else "necessary"
        guarded_frame(_flat(frame)).write_csv(path, separator="\t" if suffix == ".tsv" else ",", quote_style=style)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Nested columns as JSON text: a cell holds nothing else."""
    columns = {}
    for name in frame.columns:
        if frame[name].dtype.is_nested():
            values = frame[name].to_list()
            cells = [None if cell is None else json.dumps(cell, ensure_ascii=False, default=str) for cell in values]
            columns[name] = pl.Series(cells, dtype=pl.String)
    return frame.with_columns(**columns)


def open_private(path: Path, mode: str = "wb", **options: Any) -> IO[Any]:
    """Open a file for writing; a new one can be read by its owner alone."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600), **options)


@contextmanager
def replacing(target: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary file beside ``target`` that takes its place when the block ends well.

    A link stays a link, a file that is replaced keeps its permissions, and a new one gets those of any new file; with
    ``private``, its owner alone may read it.

    Raises:
        FileFormatError: when the folder is missing or may not be written, the disk is full, or the target is a device
            or a pipe, which a file must not replace.
    """
    real = Path(os.path.realpath(target))
    if real.exists() and not real.is_file():
        raise FileFormatError(f"{target} cannot be written: it is not a file")
    temporary = real.with_name(f".{secrets.token_hex(8)}.part")
    try:
        if private:
            open_private(temporary, "xb").close()
        else:
            temporary.open("xb").close()
        yield temporary
        if real.exists():
            shutil.copymode(real, temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(real)
    except OSError as error:
        way = "" if real.parent.is_dir() else f"; there is no folder {real.parent}, so make it first"
        raise FileFormatError(f"{target} cannot be written: {error.strerror or first_line(error)}{way}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()
