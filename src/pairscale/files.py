"""Files in and out: text in any common encoding, tables by the ending of their name.

A file that cannot be read is refused with its name; a file is written whole or not at all.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.errors import FileFormatError, InputError, MissingExtraError
from pairscale.notices import notice
from pairscale.tables import TEXT_COLUMNS, listed

__all__ = ["TABLE_SUFFIXES", "decode", "read_bytes", "read_table", "read_text", "replacing", "write_table"]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MOST_HIGH_BYTES = 0.3


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


def decode(data: bytes, name: str, encoding: str | None = None) -> str:
    """Bytes as text: what ``encoding`` says, else a byte order mark, else UTF-8, else Windows-1252 with a notice.

    The last guess is made only for bytes that look like Western European text; anything else is refused, because a
    wrong guess would put garbled letters before a judge without anybody noticing.

    Raises:
        FileFormatError: that names the file and what to do.
    """
    if encoding is not None:
        try:
            return data.decode(encoding)
        except LookupError:
            raise InputError(f"encoding {encoding!r} is unknown; try utf-8, utf-16, cp1252 or latin-1") from None
        except UnicodeDecodeError as error:
            raise FileFormatError(f"{name} is not {encoding}: byte {error.start} cannot be read") from None
    for mark, marked in _BOMS:
        if data.startswith(mark):
            try:
                return data.decode(marked).removeprefix("\ufeff")
            except UnicodeDecodeError:
                raise FileFormatError(f"{name} begins like {marked} text but is not; save it as UTF-8") from None
    if b"\0" in data:
        raise FileFormatError(f"{name} is not a text file (it holds zero bytes); export it as plain text, UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _western(data, name)


def _western(data: bytes, name: str) -> str:
    high = sum(byte >= 0x80 for byte in data)
    controls = sum(byte < 0x20 and byte not in b"\t\n\r\f" for byte in data)
    text = None
    if not controls and high <= _MOST_HIGH_BYTES * len(data):
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            text = None
    if text is None:
        raise FileFormatError(f"{name} is not UTF-8 text; save it as UTF-8, or name its encoding (encoding=)")
    notice(f"{name} is not UTF-8; it was read as Windows-1252 (name another with encoding=)")
    return text


def read_text(path: str | os.PathLike[str], encoding: str | None = None) -> str:
    """The text of a file; see :func:`decode`."""
    return decode(read_bytes(path), str(path), encoding)


def read_table(path: str | os.PathLike[str], *, text: Sequence[str] = (), encoding: str | None = None) -> pl.DataFrame:
    """A table from a file, by the ending of its name: csv, tsv, jsonl (ndjson), json, parquet, xlsx.

    Args:
        path: the file.
        text: further columns that are text whatever they look like, beside :data:`pairscale.tables.TEXT_COLUMNS`.
        encoding: of csv, tsv and json files, when it is not UTF-8.

    Raises:
        FileFormatError: that names the file, and the line where there is one.
    """
    suffix = Path(path).suffix.lower()
    reader = _READERS.get(suffix)
    if reader is None:
        raise FileFormatError(f"{path}: a table must end in {listed(sorted(_READERS), 20)}")
    frame = reader(Path(path), (*TEXT_COLUMNS, *text), encoding)
    if frame.width == 0:
        raise FileFormatError(f"{path} is empty")
    return frame


def _read_delimited(path: Path, text: Sequence[str], encoding: str | None) -> pl.DataFrame:
    content = read_text(path, encoding)
    if not content.strip():
        raise FileFormatError(f"{path} is empty")
    head = content.lstrip("\r\n").split("\n", 1)[0]
    separator = "\t" if path.suffix.lower() == ".tsv" else ";" if head.count(";") > head.count(",") else ","
    source = content.encode()
    try:
        header = pl.read_csv(io.BytesIO(source), separator=separator, n_rows=0).columns
        kept = {name: pl.String for name in header if name in text}
        # The R package writes a missing value as NA; in a text column those two letters may be meant.
        missing = {name: "NA" for name in header if name not in kept}
        return pl.read_csv(
            io.BytesIO(source),
            separator=separator,
            infer_schema_length=None,
            schema_overrides=kept,
            null_values=missing,
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileFormatError(f"{path} is not a table: {_first_line(error)}") from None


def _read_lines(path: Path, text: Sequence[str], encoding: str | None) -> pl.DataFrame:
    rows: list[Any] = []
    for number, line in enumerate(read_text(path, encoding).splitlines(), start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise FileFormatError(f"{path}: line {number} is not JSON: {error.msg}") from None
    return _from_rows(rows, path, text)


def _read_json(path: Path, text: Sequence[str], encoding: str | None) -> pl.DataFrame:
    try:
        rows = json.loads(read_text(path, encoding))
    except json.JSONDecodeError as error:
        raise FileFormatError(f"{path} is not JSON: {error.msg} in line {error.lineno}") from None
    return _from_rows(rows, path, text)


def _from_rows(rows: Any, path: Path, text: Sequence[str]) -> pl.DataFrame:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FileFormatError(f"{path} must hold JSON objects, one a row")
    for row in rows:
        row.update({name: str(row[name]) for name in text if isinstance(row.get(name), int | float)})
    return pl.DataFrame(rows, infer_schema_length=None, strict=False)


def _read_parquet(path: Path, _text: Sequence[str], _encoding: str | None) -> pl.DataFrame:
    try:
        return pl.read_parquet(io.BytesIO(read_bytes(path)))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileFormatError(f"{path} is not a parquet file: {_first_line(error)}") from None


def _read_excel(path: Path, _text: Sequence[str], _encoding: str | None) -> pl.DataFrame:
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise MissingExtraError("reading an Excel file", "excel") from error
    try:
        return pl.read_excel(io.BytesIO(read_bytes(path)), infer_schema_length=None)
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise FileFormatError(f"{path} is not an Excel workbook with a table: {_first_line(error)}") from None


_READERS: dict[str, Callable[[Path, Sequence[str], str | None], pl.DataFrame]] = {
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


def write_table(frame: pl.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a table by the ending of the file's name, whole or not at all.

    Text that begins with ``=`` is written to Excel as text, never as a formula.

    Raises:
        FileFormatError: when the ending is unknown or the file cannot be written.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _READERS:
        raise FileFormatError(f"{path}: a table must end in {listed(sorted(_READERS), 20)}")
    with replacing(target) as temporary:
        if suffix == ".parquet":
            frame.write_parquet(temporary)
        elif suffix == ".xlsx":
            _write_excel(frame, temporary)
        elif suffix == ".json":
            frame.write_json(temporary)
        elif suffix in {".jsonl", ".ndjson"}:
            frame.write_ndjson(temporary)
        else:
            _flat(frame).write_csv(temporary, separator="\t" if suffix == ".tsv" else ",")
    return target


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Nested columns as JSON text: a csv cell holds nothing else."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    return frame.with_columns(
        pl.col(name).map_elements(lambda value: json.dumps(value, default=str), pl.String) for name in nested
    )


def _write_excel(frame: pl.DataFrame, path: Path) -> None:
    try:
        import xlsxwriter
    except ModuleNotFoundError as error:
        raise MissingExtraError("writing an Excel file", "excel") from error
    options = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}
    with xlsxwriter.Workbook(str(path), options) as book:
        _flat(frame).write_excel(book, autofit=True)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary file beside ``target`` that takes its place when the block ends well.

    Raises:
        FileFormatError: when the folder is missing or may not be written, or the disk is full.
    """
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(target)
    except OSError as error:
        reason = error.strerror or _first_line(error)
        raise FileFormatError(f"{target} cannot be written: {reason}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
