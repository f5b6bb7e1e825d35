"""Excel workbooks: the table of the first sheet, read within bounded memory.

A workbook is a zip file of XML. A small one may expand to gigabytes, and one stray cell far away may make a table of
billions of empty ones. Both are found by expanding it piece by piece before it is parsed.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairscale.core.documents.kinds import Unreadable
from pairscale.core.documents.parts import Parts
from pairscale.core.errors import FileFormatError, MissingExtraError
from pairscale.core.notices import notice
from pairscale.core.tables import first_line, listed

if TYPE_CHECKING:
    import fastexcel

_MOST_CELLS = 20_000_000
_LONGEST_TAG = 2**20
_CELL = re.compile(rb"""<(?:[\w.-]+:)?(?:c|row)\s[^<]*?\br\s*=\s*["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
_MERGED = re.compile(rb"""<(?:[\w.-]+:)?mergeCell\s[^<>]*?\bref\s*=\s*["']([A-Z0-9:]{1,30})["'][^<>]*>""")
_NO_VALUE = re.compile(rb"<(?:[\w.-]+:)?c(\s[^<>]*)><f[^<>]*>[^<]*</f>(?:<v\s*/>|<v></v>|</c>)")
_UNNAMED = re.compile(r"__UNNAMED__(\d+)")
_NUMBERED = re.compile(r"(.*)_\d+", re.DOTALL)
_OTHER_FORMATS = re.compile(r"(?:^|/)content\.xml$|sheets?/[^/]*\.bin$", re.IGNORECASE)  # ods and xlsb


def read_workbook(content: bytes, path: Path) -> pl.DataFrame:
    """The table of the first sheet of a workbook; what may be missed in it is said.

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
        {name: f"column_{int(at[1]) + 1}" for name in frame.columns if (at := _UNNAMED.fullmatch(name))}
    )


def _require_own_names(columns: Sequence[str], first_row: Callable[[], fastexcel.ExcelSheet], path: Path) -> None:
    """Refuse names that stand in the header twice: the reader has numbered them."""
    numbered = [name for name in columns if (at := _NUMBERED.fullmatch(name)) and at[1] in columns]
    if not numbered:
        return
    names = [str(cell) for cell in first_row().to_polars().row(0)]
    if twice := sorted({name for name in names if names.count(name) > 1} - {"None"}):
        raise FileFormatError(f"{path}: the header has {listed(twice)} more than once; rename one")


def check_workbook(content: bytes, path: Path) -> None:
    """Refuse a workbook that would take too much memory to read, and say what may be missed in it.

    Raises:
        FileFormatError: it expands to too much, its cells are too far apart, or it is of another format.
    """
    try:
        parts = Parts(content)
        if any(_OTHER_FORMATS.search(name) for name in parts.names()):
            raise FileFormatError(f"{path} is a spreadsheet of another format; save it as .xlsx, or as csv")
        for member in parts.members:
            _check_sheet(parts, member.filename, path)
    except Unreadable as reason:
        raise FileFormatError(f"{path}: {reason}; save the table as csv instead") from None


def _check_sheet(parts: Parts, name: str, path: Path) -> None:
    """Refuse a part whose cells reach too far; merged cells, and formulas that were never computed, are said."""
    rows = columns = formulas = 0
    merged: dict[str, None] = {}
    unfinished = b""  # the beginning of a tag that a piece has ended in
    for piece in parts.pieces(name):
        text = unfinished + piece
        end = max(text.rfind(b"<"), 0)
        unfinished = text[end:]
        if len(unfinished) > _LONGEST_TAG:
            raise Unreadable("it is damaged: a tag does not end")
        text = text[:end]
        for column, row in _CELL.findall(text):
            rows = max(rows, int(row))
            columns = max(columns, _column_number(column))
        merged.update((place.decode("ascii"), None) for place in _MERGED.findall(text))
        formulas += sum(b't="str"' not in cell for cell in _NO_VALUE.findall(text))
        if rows * columns > _MOST_CELLS:
            raise FileFormatError(
                f"{path} has a cell in row {rows:,} and one in column {columns:,}, which makes a table of "
                f"{rows * columns:,} cells; delete the rows and columns behind the table, or save it as csv"
            )
    if merged:
        where = listed(list(merged))
        notice(f"{path} has merged cells, {where}: the value is in the first of them, and the others are empty")
    if formulas:
        cells = "a formula without a value" if formulas == 1 else f"{formulas:,} formulas without a value"
        notice(f"{path} has {cells}: such cells are empty; open it in a spreadsheet program and save it again")


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number
