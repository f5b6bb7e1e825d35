"""Files in and out: text in any common encoding, tables by the ending of their name.

A file that cannot be read is refused with its name; a file is written whole or not at all.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import logging
import math
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import polars as pl

from pairscale.errors import FileFormatError, InputError, MissingExtraError
from pairscale.notices import notice
from pairscale.tables import CANONICAL, FAILED, RESULTS, TEXT_COLUMNS, first_line, listed, row_numbers, to_frame

__all__ = [
    "TABLE_SUFFIXES",
    "TextColumns",
    "decode",
    "read_bytes",
    "read_rows",
    "read_table",
    "read_text",
    "replacing",
    "write_table",
]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ASCII = bytes(range(0x80))
_CONTROLS = bytes(byte for byte in range(0x20) if byte not in b"\t\n\r\f")
_MOST_HIGH_BYTES = 0.3
# Four different letters with accents in a row: no word of Western Europe, and nearly every word of another alphabet.
_FOREIGN = re.compile(r"[^\x00-\x7f€…‘’“”•–—™\xa0¡§©«®°·»¿]{4}")

TextColumns = Sequence[str] | Callable[[Sequence[str]], Collection[str]]
"""Names of columns, or a function that picks them from a file's columns."""


# Text.


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file.

    Raises:
        FileFormatError: when it does not exist, is not a file, or may not be read.
    """
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FileFormatError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} is a folder, not a file") from None
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FileFormatError(f"{str(path)!r} cannot be the name of a file: {error}") from None


def decode(data: bytes, name: str, encoding: str | None = None) -> str:
    """Bytes as text: what ``encoding`` says, else a byte order mark, else UTF-8, else Windows-1252 with a notice.

    The last guess is made only for bytes that look like Western European text; anything else is refused, because a
    wrong guess would put garbled letters before a judge without anybody noticing.

    Raises:
        FileFormatError: that names the file and what to do.
    """
    text = _unmarked(data, name) if encoding is None else _as_named(data, name, encoding)
    if "\0" in text:
        raise FileFormatError(
            f"{name} is not a text file (it holds zero bytes); save it as UTF-8 text, or name its encoding (encoding=)"
        )
    return text.removeprefix("\ufeff")


def _as_named(data: bytes, name: str, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{name} is not {encoding}: byte {error.start} cannot be read") from None
    except (LookupError, ValueError):
        raise InputError(f"encoding {encoding!r} is unknown; try utf-8, utf-16, cp1252 or latin-1") from None


def _unmarked(data: bytes, name: str) -> str:
    marked = next((codec for mark, codec in _BOMS if data.startswith(mark)), None)
    try:
        return data.decode(marked or "utf-8")
    except UnicodeDecodeError:
        if marked is None:
            return _western(data, name)
        raise FileFormatError(f"{name} begins like {marked} text but is not; save it as UTF-8") from None


def _western(data: bytes, name: str) -> str:
    text = ""
    if len(data.translate(None, _ASCII)) <= _MOST_HIGH_BYTES * len(data) and not set(_CONTROLS).intersection(data):
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            text = ""
    letters = re.sub(r"(.)\1+", r"\1", text.lower())  # an "Ääääh" is Western too
    if not text or _FOREIGN.search(letters):
        raise FileFormatError(f"{name} is not UTF-8 text; save it as UTF-8, or name its encoding (encoding=)")
    shown = re.search(r"\w*[^\x00-\x7f]\w*", text)
    notice(
        f"{name} is not UTF-8; it was read as Windows-1252, for example {shown and shown[0]!r} "
        "(if that is wrong, name its encoding with encoding=)"
    )
    return text


def read_text(path: str | os.PathLike[str], encoding: str | None = None) -> str:
    """The text of a file; see :func:`decode`."""
    return decode(read_bytes(path), str(path), encoding)


# Tables in.


def read_table(path: str | os.PathLike[str], *, text: TextColumns = (), encoding: str | None = None) -> pl.DataFrame:
    """A table from a file, by the ending of its name: csv, tsv, jsonl (ndjson), json, parquet, xlsx.

    In a csv file commas, semicolons or tabs may stand between the cells; an empty cell is a missing value, and so is
    the R package's ``NA`` outside of the text columns.

    Args:
        path: the file.
        text: further columns that are text whatever they look like, beside :data:`pairscale.tables.TEXT_COLUMNS`.
        encoding: of csv, tsv and json files, when it is not UTF-8.

    Raises:
        InputError: that names the file, and the line where there is one.
    """
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise FileFormatError(f"{path}: a table must end in {listed(sorted(_READERS), 20)}")
    frame = reader(Path(path), text, encoding)
    if frame.width == 0:
        raise FileFormatError(f"{path} is empty; a table has named columns")
    return frame


def read_rows(path: str | os.PathLike[str], *, text: TextColumns = ()) -> list[dict[str, Any]]:
    """The rows of a table; those of a jsonl or json file as they stand there, whatever is nested in them.

    Raises:
        InputError: as :func:`read_table`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in {".jsonl", ".ndjson", ".json"}:
        return read_table(path, text=text).to_dicts()
    content = read_text(path)
    # Not splitlines(): inside a JSON string, U+2028 and its like end no line.
    lines = [content] if suffix == ".json" else content.split("\n")
    found = [_json(line, Path(path), number) for number, line in enumerate(lines, start=1) if line.strip()]
    rows = found[0] if suffix == ".json" and found else found
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FileFormatError(f"{path} must hold JSON objects, one a row")
    return rows


def _text_columns(columns: Sequence[str], text: TextColumns) -> set[str]:
    more = text(columns) if callable(text) else text
    return {*TEXT_COLUMNS, *more}.intersection(columns)


_BLOCK = 20_000
_HEAD = 100_000
_LONGEST_CELL = 2**31 - 1
_QUOTED = re.compile(r'"[^"]*"')


def _read_delimited(path: Path, text: TextColumns, encoding: str | None) -> pl.DataFrame:
    content = read_text(path, encoding)
    if not content.strip():
        raise FileFormatError(f"{path} is empty; a table has named columns")
    separator = "\t" if path.suffix.lower() == ".tsv" else _separator(content)
    records = _records(content, separator, path)
    header = _header(next(records), path)
    blocks = [pl.DataFrame(schema=dict.fromkeys(header, pl.String))]
    # In blocks, because a million rows of cells as Python strings would take many times their room.
    while block := list(islice(records, _BLOCK)):
        blocks.append(pl.DataFrame(dict(zip(header, zip(*block, strict=True), strict=True))))
    return _typed(pl.concat(blocks), _text_columns(header, text), decimal_comma=separator == ";")


def _separator(content: str) -> str:
    head = re.split(r"[\r\n]", _QUOTED.sub("", content[:_HEAD].lstrip()), maxsplit=1)[0]
    return max(",;\t", key=head.count)


def _records(content: str, separator: str, path: Path) -> Iterator[list[str]]:
    """The rows of a csv file, all as wide as the first; blank lines are none."""
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=separator, strict=True)
    advice = "a text with separators, quotes or line ends must stand in quotes, and quotes in it twice"
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
    """The names of the columns; R gives its row names none."""
    names = [cell or f"column_{at}" for at, cell in enumerate(cells, start=1)]
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
    candidates: list[tuple[pl.Series, pl.DataType]] = [(cells, pl.Int64())]
    if not cells.str.contains(r"^[+-]?\d{16,}$").any():  # a float would lose its last digits
        candidates.append((cells, pl.Float64()))
    if decimal_comma:
        candidates.append((cells.str.replace(",", ".", literal=True), pl.Float64()))
    for spelled, kind in candidates:
        numbers = spelled.cast(kind, strict=False)
        if numbers.null_count() == missing:
            return numbers
    lower = cells.str.to_lowercase()
    return lower == "true" if lower.is_in(["true", "false"]).all() else cells


def _read_lines(path: Path, text: TextColumns, encoding: str | None) -> pl.DataFrame:
    # Not splitlines(): inside a JSON string, U+2028 and its like end no line.
    lines = enumerate(read_text(path, encoding).split("\n"), start=1)
    return _from_rows([_json(line, path, number) for number, line in lines if line.strip()], path, text)


def _read_json(path: Path, text: TextColumns, encoding: str | None) -> pl.DataFrame:
    content = read_text(path, encoding)
    return _from_rows(_json(content, path, 1) if content.strip() else [], path, text)


def _json(document: str, path: Path, line: int) -> Any:
    """What a document says that begins in ``line`` of a file."""
    try:
        return json.loads(document)
    except json.JSONDecodeError as error:
        line += error.lineno - 1
        raise FileFormatError(f"{path}: line {line} is not JSON: {error.msg} at character {error.colno}") from None
    except (RecursionError, ValueError) as error:
        raise FileFormatError(f"{path}: line {line} is JSON that no table can hold: {first_line(error)}") from None


def _from_rows(rows: Any, path: Path, text: TextColumns) -> pl.DataFrame:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FileFormatError(f'{path} must hold JSON objects, one a row, such as {{"ID": "a", "text": "…"}}')
    columns = list(dict.fromkeys(name for row in rows for name in row))
    spelled = _text_columns(columns, text) if columns else set()
    for row in rows:
        row.update({name: _spelled(row[name]) for name in spelled.intersection(row)})
    return to_frame(rows, str(path)).select(columns)


def _spelled(value: Any) -> Any:
    """A number in a column of text, as a person would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return None if math.isnan(value) else str(int(value)) if value.is_integer() else str(value)
    return str(value) if isinstance(value, int) else value


def _read_parquet(path: Path, _text: TextColumns, _encoding: str | None) -> pl.DataFrame:
    try:
        return pl.read_parquet(io.BytesIO(read_bytes(path)))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileFormatError(f"{path} is not a parquet file: {first_line(error)}") from None


def _read_excel(path: Path, _text: TextColumns, _encoding: str | None) -> pl.DataFrame:
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise MissingExtraError("reading an Excel file", "excel") from error
    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns of every empty column
    try:
        return pl.read_excel(io.BytesIO(read_bytes(path)), infer_schema_length=None)
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise FileFormatError(f"{path} is not an Excel workbook with a table: {first_line(error)}") from None


_READERS: dict[str, Callable[[Path, TextColumns, str | None], pl.DataFrame]] = {
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
    ".json": _read_json,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
}
TABLE_SUFFIXES = tuple(_READERS)
"""The endings that :func:`read_table` and :func:`write_table` know."""


# Tables out.


def write_table(frame: pl.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a table by the ending of the file's name, whole or not at all.

    Text that begins with ``=`` is written to Excel as text, never as a formula. Excel knows no time zones: there,
    times are UTC.

    Raises:
        FileFormatError: when the ending is unknown, the file cannot be written, or it cannot hold such a table.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _READERS:
        raise FileFormatError(f"{path}: a table must end in {listed(sorted(_READERS), 20)}")
    opaque = [name for name, kind in frame.schema.items() if kind in {pl.Object, pl.Binary}]
    if opaque:
        raise FileFormatError(f"{path}: column {listed(opaque)} holds neither text nor numbers; leave it out")
    if suffix == ".xlsx":
        frame = _for_excel(_flat(frame), target)
    with replacing(target) as temporary:
        try:
            _write(frame, temporary, suffix)
        except pl.exceptions.PolarsError as error:
            raise FileFormatError(f"{target} cannot be written: {first_line(error)}") from None
    return target


def _write(frame: pl.DataFrame, path: Path, suffix: str) -> None:
    if suffix == ".parquet":
        frame.write_parquet(path)
    elif suffix == ".xlsx":
        _write_excel(frame, path)
    elif suffix == ".json":
        frame.write_json(path)
    elif suffix in {".jsonl", ".ndjson"}:
        frame.write_ndjson(path)
    else:
        # A missing value that stands alone in its line would look like a blank line.
        style: Literal["always", "necessary"] = "always" if frame.width == 1 else "necessary"
        _flat(frame).write_csv(path, separator="\t" if suffix == ".tsv" else ",", quote_style=style)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Nested columns as JSON text: a cell holds nothing else."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    return frame.with_columns(
        pl.Series(name, [None if value is None else _cell(value) for value in frame[name].to_list()], pl.String)
        for name in nested
    )


def _cell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_EXCEL_ROWS, _EXCEL_COLUMNS, _EXCEL_TEXT, _EXCEL_DIGITS, _EXCEL_YEAR = 1_048_576, 16_384, 32_767, 15, 1901
_EXCEL_CELLS: dict[Any, str] = {pl.Boolean: "boolean", pl.Date: "datetime", pl.Datetime: "datetime"}
_DATE_FORMATS: dict[Any, str] = {pl.Date: "yyyy-mm-dd", pl.Datetime: "yyyy-mm-dd hh:mm:ss"}


def _for_excel(frame: pl.DataFrame, target: Path) -> pl.DataFrame:
    """The table as a sheet can hold it; what it would cut off is refused."""
    if frame.height >= _EXCEL_ROWS or frame.width > _EXCEL_COLUMNS:
        raise FileFormatError(
            f"{target}: a table of {frame.height:,} rows and {frame.width:,} columns is too large for an Excel sheet; "
            "write csv or parquet"
        )
    frame = frame.select(_excel_column(column) for column in frame)
    for column in frame.select(pl.col(pl.String)):
        # Excel counts as UTF-16 does: an emoji is two.
        size = (column.str.len_chars() + column.str.count_matches(r"[\x{10000}-\x{10FFFF}]")).fill_null(0)
        if (size > _EXCEL_TEXT).any():
            raise FileFormatError(
                f"{target}: an Excel cell holds {_EXCEL_TEXT:,} characters, and column {column.name!r} has more in "
                f"{row_numbers(size > _EXCEL_TEXT)}; write csv or parquet"
            )
    return frame


def _excel_column(column: pl.Series) -> pl.Series:
    """The column as numbers of 15 digits, truth values, times without a zone, or text."""
    kind = column.dtype
    if kind.is_integer():
        digits = column.cast(pl.String).str.strip_chars("-").str.len_chars()
        return column.cast(pl.String) if (digits > _EXCEL_DIGITS).any() else column
    if kind.is_float():
        return column.fill_nan(None)
    if isinstance(kind, pl.Datetime) and kind.time_zone:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if isinstance(kind, pl.Date | pl.Datetime):
        return column.cast(pl.String) if (column.dt.year() < _EXCEL_YEAR).any() else column
    return column if kind.is_numeric() or kind == pl.Boolean else column.cast(pl.String)


def _write_excel(frame: pl.DataFrame, path: Path) -> None:
    try:
        import xlsxwriter
    except ModuleNotFoundError as error:
        raise MissingExtraError("writing an Excel file", "excel") from error
    with xlsxwriter.Workbook(str(path), {"nan_inf_to_errors": True}) as book:
        sheet = book.add_worksheet()
        bold = book.add_format({"bold": True})
        styles = {kind: (book.add_format({"num_format": code}),) for kind, code in _DATE_FORMATS.items()}
        for at, column in enumerate(frame):
            kind = type(column.dtype)
            # One kind of cell a column: left to choose, the library would make formulas and links of texts.
            cells = "number" if column.dtype.is_numeric() else _EXCEL_CELLS.get(kind, "string")
            write = getattr(sheet, f"write_{cells}")
            sheet.write_string(0, at, column.name, bold)
            for row, value in enumerate(column, start=1):
                if value is not None:
                    write(row, at, value, *styles.get(kind, ()))
        sheet.freeze_panes(1, 0)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary file beside ``target`` that takes its place when the block ends well.

    A link stays a link, a file that is replaced keeps its permissions, and a new one gets those of any new file.

    Raises:
        FileFormatError: when the folder is missing or may not be written, or the disk is full.
    """
    try:
        real = Path(os.path.realpath(target))
    except ValueError as error:
        raise FileFormatError(f"{str(target)!r} cannot be the name of a file: {error}") from None
    temporary = real.with_name(f".{secrets.token_hex(8)}.part")
    try:
        temporary.open("xb").close()
        yield temporary
        if real.exists():
            shutil.copymode(real, temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(real)
    except OSError as error:
        raise FileFormatError(f"{target} cannot be written: {_reason(real, error)}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def _reason(target: Path, error: OSError) -> str:
    if not target.parent.is_dir():
        return f"there is no folder {target.parent}; make it first"
    return error.strerror or first_line(error)
