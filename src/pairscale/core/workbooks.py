"""Excel workbooks: the table of the first sheet, read within bounded memory, and tables written as sheets.

A workbook is a zip file of XML. A small one may expand to gigabytes, and one stray cell far away may make a table of
billions of empty ones. Both are found before it is parsed.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from pairscale.core.documents.kinds import Unreadable
from pairscale.core.documents.parts import Parts
from pairscale.core.errors import FileFormatError, MissingExtraError
from pairscale.core.notices import notice
from pairscale.core.tables import first_line, listed

_MOST_CELLS = 20_000_000
_EXCEL_ROWS = 1_048_576
_EXCEL_TEXT = 32_767
_EXCEL_INTEGER = 10**15  # beyond it, last digits are lost
_CELL = re.compile(rb"""<(?:[\w.-]+:)?(?:c|row)\s[^<]*?\br\s*=\s*["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
_UNNAMED = re.compile(r"__UNNAMED__(\d+)")


def read_workbook(content: bytes, path: Path) -> pl.DataFrame:
    """The table of the first sheet of a workbook; further sheets are named in a notice.

    Args:
        content: the file.
        path: its name, for messages.

    Raises:
        FileFormatError: it is no workbook, or would take too much memory.
        MissingExtraError: without the package that reads Excel files.
    """
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise MissingExtraError("reading an Excel file", "documents") from error
    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns of every empty column
    if content.startswith(b"PK"):
        _require_bounded(content, path)
    try:
        first, *others = fastexcel.read_excel(content).sheet_names
        frame = pl.read_excel(io.BytesIO(content), infer_schema_length=None)
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise FileFormatError(f"{path} is not an Excel workbook with a table: {first_line(error)}") from None
    if others:
        notice(f"{path}: the first sheet, {first!r}, is read; not read: {listed(others)} (save one as csv to read it)")
    return frame.rename(lambda name: _UNNAMED.sub(lambda match: f"column_{int(match[1]) + 1}", name))


def _require_bounded(content: bytes, path: Path) -> None:
    """Refuse a workbook that expands to too much, or whose cells reach so far that a table of them would.

    Raises:
        FileFormatError: that, or it is of another format.
    """
    try:
        parts = Parts(content)
        for name in parts.names():
            rows = 1
            columns = 1
            for cell in _CELL.finditer(b"".join(parts.pieces(name))):
                rows = max(rows, int(cell[2]))
                columns = max(columns, _column_number(cell[1]))
            if rows * columns > _MOST_CELLS:
                raise FileFormatError(
                    f"{path} has a cell in row {rows:,} and one in column {columns:,}, which makes a table of "
                    f"{rows * columns:,} cells; delete the rows and columns behind the table, or save it as csv"
                )
    except Unreadable as reason:
        raise FileFormatError(f"{path}: {reason}; save the table as csv instead") from None


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def for_excel(frame: pl.DataFrame, target: Path) -> pl.DataFrame:
    """The table as a sheet can hold it; what it would cut off is refused."""
    frame = frame.select(_excel_column(column) for column in frame)
    longest = frame.select(pl.col(pl.String).str.len_chars().max()).max_horizontal()
    if frame.height >= _EXCEL_ROWS or (longest > _EXCEL_TEXT).any():
        raise FileFormatError(
            f"{target}: an Excel sheet holds {_EXCEL_ROWS:,} rows and cells of {_EXCEL_TEXT:,} characters; write csv"
        )
    return frame


def _excel_column(column: pl.Series) -> pl.Series:
    """The column as numbers of 15 digits, truth values, times without a zone, or text."""
    kind = column.dtype
    if kind.is_float():
        return column.fill_nan(None)
    if kind.is_integer():
        return column.cast(pl.String) if (column.abs() > _EXCEL_INTEGER).any() else column
    if isinstance(kind, pl.Datetime) and kind.time_zone:
        return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column if isinstance(kind, pl.Date | pl.Datetime | pl.Boolean | pl.Decimal) else column.cast(pl.String)


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
