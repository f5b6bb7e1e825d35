"""Excel workbooks: the table of the first sheet, read within bounded memory, and tables written as sheets.

A workbook is a zip file of XML. A small one may expand to gigabytes, and one stray cell far away may make a table of
billions of empty ones. Both are found before it is parsed.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairscale.core.documents.kinds import Unreadable
from pairscale.core.documents.parts import Parts
from pairscale.core.errors import FileFormatError, MissingExtraError
from pairscale.core.notices import notice
from pairscale.core.tables import first_line, listed, row_numbers

if TYPE_CHECKING:
    import fastexcel

_MOST_CELLS = 20_000_000
_EXCEL_ROWS = 1_048_576
_EXCEL_COLUMNS = 16_384
_EXCEL_TEXT = 32_767
_EXCEL_DIGITS = 15
_EXCEL_YEAR = 1901
_CELL = re.compile(rb"""<(?:[\w.-]+:)?(?:c|row)\s[^<]*?\br\s*=\s*["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
_NO_VALUE = re.compile(rb"<(?:[\w.-]+:)?c(\s[^<>]*)><f[^<>]*>[^<]*</f>(?:<v\s*/>|<v></v>|</c>)")
_MERGED = re.compile(rb"""<(?:[\w.-]+:)?mergeCell\s[^<>]*?\bref\s*=\s*["']([A-Z0-9:]{1,30})["'][^<>]*>""")
_UNNAMED = re.compile(r"__UNNAMED__(\d+)")
_NUMBERED = re.compile(r"(.*)_\d+", re.DOTALL)
_OTHER_FORMATS = re.compile(r"(?:^|/)content\.xml$|sheets?/[^/]*\.bin$", re.IGNORECASE)  # ods and xlsb


def read_workbook(content: bytes, path: Path) -> pl.DataFrame:
    """The table of the first sheet of a workbook; merged cells and further sheets are said.

    Args:
        content: the file.
        path: its name, for messages.

    Raises:
        FileFormatError: it is no workbook, would take too much memory, or two columns have the same name.
        MissingExtraError: without the package that reads Excel files.
    """
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise MissingExtraError("reading an Excel file", "documents") from error
    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns of every empty column
    if content.startswith(b"PK"):
        check_workbook(content, path)
    try:
        book = fastexcel.read_excel(content)
        if len(book.sheet_names) > 1:
            first, *others = book.sheet_names
            notice(
                f"{path}: the first sheet, {first!r}, is read; not read: {listed(others)} (save one as csv to read it)"
            )
        frame = pl.read_excel(io.BytesIO(content), infer_schema_length=None)
        _require_own_names(frame.columns, lambda: book.load_sheet(0, header_row=None, n_rows=1), path)
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise FileFormatError(f"{path} is not an Excel workbook with a table: {first_line(error)}") from None
    return frame.rename(
        {name: f"column_{int(unnamed[1]) + 1}" for name in frame.columns if (unnamed := _UNNAMED.fullmatch(name))}
    )


def _require_own_names(columns: Sequence[str], first_row: Callable[[], fastexcel.ExcelSheet], path: Path) -> None:
    """Refuse names that stand in the header twice: the reader has numbered them."""
    numbered = [name for name in columns if (match := _NUMBERED.fullmatch(name)) and match[1] in columns]
    if not numbered:
        return
    names = [str(cell) for cell in first_row().to_polars().row(0)]
    if twice := sorted({name for name in names if names.count(name) > 1} - {"None"}):
        raise FileFormatError(f"{path}: the header has {listed(twice)} more than once; rename one")


def check_workbook(content: bytes, path: Path) -> None:
    """Refuse a workbook that would take too much memory to read, and say where cells are merged.

    Raises:
        FileFormatError: it expands to too much, its cells are too far apart, or it is of another format.
    """
    try:
        parts = Parts(content)
        if any(_OTHER_FORMATS.search(name) for name in parts.names()):
            raise FileFormatError(f"{path} is a spreadsheet of another format; save it as .xlsx, or as csv")
        for name in parts.names():
            _check_sheet(b"".join(parts.pieces(name)), path)
    except Unreadable as reason:
        raise FileFormatError(f"{path}: {reason}; save the table as csv instead") from None


def _check_sheet(content: bytes, path: Path) -> None:
    """Refuse a part whose cells reach too far: its reader would make a cell of everything in between."""
    rows = 0
    columns = 0
    for cell in _CELL.finditer(content):
        rows = max(rows, int(cell[2]))
        columns = max(columns, _column_number(cell[1]))
    if rows * columns > _MOST_CELLS:
        raise FileFormatError(
            f"{path} has a cell in row {rows:,} and one in column {columns:,}, which makes a table of "
            f"{rows * columns:,} cells; delete the rows and columns behind the table, or save it as csv"
        )
    merged = [place.decode("ascii") for place in _MERGED.findall(content)]
    if merged:
        notice(
            f"{path} has merged cells, {listed(merged)}: the value is in the first of them, and the others are empty"
        )
    formulas = sum(b't="str"' not in cell for cell in _NO_VALUE.findall(content))
    if formulas:
        notice(
            f"{path} has formulas without a value ({formulas:,}): such cells are empty; open it in a spreadsheet "
            "program and save it again"
        )


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def for_excel(frame: pl.DataFrame, target: Path) -> pl.DataFrame:
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


def write_sheets(sheets: Mapping[str, pl.DataFrame], path: Path) -> None:
    """Write tables as sheets, each with the names of its columns in bold, which stay in sight.

    Raises:
        MissingExtraError: without the package that writes Excel files.
    """
    try:
        import xlsxwriter
    except ModuleNotFoundError as error:
        raise MissingExtraError("writing an Excel file", "documents") from error
    # Left to choose, the library would make formulas and links of texts.
    options = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}
    with xlsxwriter.Workbook(str(path), options | {"default_date_format": "yyyy-mm-dd hh:mm:ss"}) as book:
        bold = book.add_format({"bold": True})
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        for name, frame in sheets.items():
            sheet = book.add_worksheet(name)
            for place, column in enumerate(frame):
                sheet.write_string(0, place, column.name, bold)
                sheet.write_column(1, place, column.to_list(), day if column.dtype == pl.Date else None)
            sheet.freeze_panes(1, 0)
