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


def write_sheets(sheets: Mapping[str, pl.DataFrame], path: Path, target: Path) -> None:
    """Write tables as sheets, with the names of their columns in sight; numbers are numbers, everything else is text.

    Args:
        sheets: the tables.
        path: the file to write.
        target: what messages call it.

    Raises:
        FileFormatError: a sheet would cut something off.
        MissingExtraError: without the package that writes Excel files.
    """
    try:
        import xlsxwriter
    except ModuleNotFoundError as error:
        raise MissingExtraError("writing an Excel file", "documents") from error
    # Left to choose, the library would make formulas and links of texts.
    options = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}
    with xlsxwriter.Workbook(str(path), options) as book:
        for name, frame in sheets.items():
            sheet = book.add_worksheet(name)
            sheet.freeze_panes(1, 0)
            for place, column in enumerate(frame):
                is_figure = column.dtype.is_float() or column.dtype in {pl.Boolean, pl.Int32, pl.Int64, pl.UInt32}
                cells = [column.name, *(column if is_figure else column.cast(pl.String))]
                if len(cells) > _EXCEL_ROWS or any(isinstance(x, str) and len(x) > _EXCEL_TEXT for x in cells):
                    raise FileFormatError(
                        f"{target}: an Excel sheet holds {_EXCEL_ROWS:,} rows, and cells of {_EXCEL_TEXT:,} characters"
                    )
                sheet.write_column(0, place, [None if cell != cell else cell for cell in cells])  # noqa: PLR0124 - nan
