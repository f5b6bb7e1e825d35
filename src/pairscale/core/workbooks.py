"""Excel workbooks: whether one can be read within bounded memory, found out before it is parsed; and its table.

A workbook is a zip file of XML. A small one may expand to gigabytes, and one stray cell far away may make a table of
billions of empty ones. Both are seen by decompressing it piece by piece and keeping nothing; what its directory says
about sizes is not relied upon.
"""

from __future__ import annotations

import io
import logging
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairscale.core.documents.parts import largest_expansion
from pairscale.core.errors import FileFormatError, MissingExtraError
from pairscale.core.notices import notice
from pairscale.core.tables import first_line, listed

if TYPE_CHECKING:
    import fastexcel
    import numpy as np
    import numpy.typing as npt

    from pairscale.core.arrays import Ints

_MOST_CELLS = 20_000_000
_PIECE = 2**18
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_STORED, _DEFLATED = 0, 8
_PLACE = re.compile(rb"""<(?:[\w.-]+:)?(?:c|row)\s[^<]*?\br\s*=\s*["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
_IS_CELL = re.compile(rb"<(?:[\w.-]+:)?(?:c|row)\s")
_LONGEST_TAG = 2**20
_USUAL_CELL, _USUAL_ROW = b'<c r="', b'<row r="'
_PREFIXED = (b":c", b":row")
_MERGED = re.compile(rb"""<(?:[\w.-]+:)?mergeCell\s[^<>]*?\bref\s*=\s*["']([A-Z0-9:]{1,30})["'][^<>]*>""")
_MOST_MERGED = 100
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
        FileFormatError: as :func:`check_workbook`; it is no workbook, or two columns have the same name.
        MissingExtraError: without the package that reads Excel files.
    """
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise MissingExtraError("reading an Excel file", "excel") from error
    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns of every empty column
    seen = check_workbook(content, path)
    if seen.merged:
        where = listed(seen.merged)
        notice(f"{path} has merged cells, {where}: the value is in the first of them, and the others are empty")
    if seen.formulas:
        cells = "a formula without a value" if seen.formulas == 1 else f"{seen.formulas:,} formulas without a value"
        notice(f"{path} has {cells}: such cells are empty; open it in a spreadsheet program and save it again")
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


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen while a workbook was checked.

    Attributes:
        merged: where cells are merged, such as ``C2:C4``.
        formulas: how many formulas have no value, because no spreadsheet program has computed them.
    """

    merged: list[str]
    formulas: int


def check_workbook(content: bytes, path: Path) -> Seen:
    """Refuse a workbook that would take too much memory to read; what is no zip file is left to its reader.

    Args:
        content: the file.
        path: its name, for messages.

    Raises:
        FileFormatError: it expands to too much, or its cells are too far apart.
    """
    merged: list[str] = []
    formulas = 0
    if not content.startswith(b"PK"):
        return Seen(merged, formulas)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
        raise FileFormatError(f"{path} is not an Excel workbook with a table: it is damaged") from None
    most = largest_expansion(len(content))
    too_large = FileFormatError(
        f"{path} has {len(content) / 1e6:.1f} MB and expands to more than {most // 2**20:,} MB, which is not read; "
        "save the table as csv instead"
    )
    if sum(member.file_size for member in members) > most:
        raise too_large
    if any(_OTHER_FORMATS.search(member.filename) for member in members):
        raise FileFormatError(f"{path} is a spreadsheet of another format; save it as .xlsx, or as csv")
    for member in members:
        if member.compress_type not in {_STORED, _DEFLATED}:
            raise FileFormatError(f"{path} is compressed in a way that Excel does not use; save it again with Excel")
        sheet = _Sheet(path)
        for piece in _pieces(content, member):
            most -= len(piece)
            if most < 0:
                raise too_large
            sheet.read(piece)
        merged += dict.fromkeys(sheet.merged)
        formulas += sheet.formulas
    return Seen(merged, formulas)


def _pieces(content: bytes, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """What a member of the archive expands to, to the end of its data and not to the size that it says it has."""
    start = member.header_offset
    header = content[start : start + _LOCAL_HEADER.size]
    if len(header) < _LOCAL_HEADER.size:
        return
    mark, name, extra = _LOCAL_HEADER.unpack(header)
    if mark != b"PK\3\4":
        return
    start += _LOCAL_HEADER.size + name + extra
    data = memoryview(content)[start : start + member.compress_size]
    if member.compress_type == _STORED:
        yield from (bytes(data[at : at + _PIECE]) for at in range(0, len(data), _PIECE))
        return
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for at in range(0, len(data), _PIECE):
            rest: bytes | memoryview = data[at : at + _PIECE]
            while rest and not unpacking.eof:
                yield unpacking.decompress(rest, _PIECE)
                rest = unpacking.unconsumed_tail
        while not unpacking.eof and (piece := unpacking.decompress(b"", _PIECE)):
            yield piece
    except zlib.error:
        return  # its reader says so


@dataclass(frozen=True, slots=True)
class _Signs:
    """How rows, or columns, are numbered: in digits from 0, or in letters from 1 in upper or lower case."""

    base: int
    zero: int
    least: int
    longest: int
    mask: int = 0xFF


_DIGITS, _LETTERS = _Signs(10, ord("0"), 0, 7), _Signs(26, ord("A") - 1, 1, 3, mask=0xDF)


class _Sheet:
    """How far the cells of a part of a workbook reach, if it has any."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = self._columns = 0
        self.merged: list[str] = []
        self.formulas = 0
        self._tag = b""  # the beginning of one that a piece has ended in

    def read(self, piece: bytes) -> None:
        """Look at the next piece.

        Raises:
            FileFormatError: the table would have too many cells.
        """
        text = self._tag + piece
        start = max(text.rfind(b"<"), 0)
        text, self._tag = text[:start], text[start:]
        if len(self.merged) < _MOST_MERGED and b"mergeCell" in text:
            self.merged += [place.decode("ascii") for place in _MERGED.findall(text)]
        if b"</f>" in text:
            self.formulas += sum(b't="str"' not in cell for cell in _NO_VALUE.findall(text))
        reach = _usual_reach(text) if _is_usual(text) else _reach(text)
        self._rows, self._columns = max(self._rows, reach[0]), max(self._columns, reach[1])
        if (cells := self._rows * self._columns) > _MOST_CELLS:
            raise FileFormatError(
                f"{self._path} has a cell in row {self._rows:,} and one in column {self._columns:,}, which makes a "
                f"table of {cells:,} cells; delete the rows and columns behind the table, or save it as csv"
            )
        if len(self._tag) > _LONGEST_TAG:
            if _IS_CELL.match(self._tag):
                raise FileFormatError(f"{self._path} is not an Excel workbook with a table: it is damaged")
            self._tag = b""


def _is_usual(text: bytes) -> bool:
    """Whether every cell and row begins as almost all programs write it, and no other spelling need be looked for."""
    if any(mark in text for mark in _PREFIXED):
        return False
    return all(text.count(usual[:-4]) == text.count(usual) for usual in (_USUAL_CELL, _USUAL_ROW))


def _usual_reach(text: bytes) -> tuple[int, int]:
    """The last row and the last column of cells in the usual spelling, all at once: a workbook has millions of them."""
    import numpy as np  # here alone: most commands read no workbook

    content = np.frombuffer(text + bytes(16), dtype=np.uint8)
    cells = np.flatnonzero((content[:-2] == ord("<")) & (content[1:-1] == ord("c")) & (content[2:] == ord(" ")))
    rows = [int(row) for row in re.findall(rb'<row r="([0-9]{1,7})"', text)]
    if not len(cells):
        return max(rows, default=0), 0
    column, behind = _numbers(content, cells + len(_USUAL_CELL), _LETTERS)
    row, _ = _numbers(content, behind, _DIGITS)
    return max(int(row.max()), *rows, 0), int(column.max())


def _numbers(content: npt.NDArray[np.uint8], place: Ints, signs: _Signs) -> tuple[Ints, Ints]:
    """The numbers that begin at these places, and where they end."""
    import numpy as np

    number = np.zeros(len(place), np.int64)
    there = np.ones(len(place), bool)
    for _ in range(signs.longest):
        value = (content[place] & signs.mask).astype(np.int64) - signs.zero
        there &= (value >= signs.least) & (value < signs.least + signs.base)
        number = np.where(there, signs.base * number + value, number)
        place = place + there
    return number, place


def _reach(text: bytes) -> tuple[int, int]:
    """The last row and the last column, whatever the spelling."""
    found = _PLACE.findall(text)
    return max((int(row) for _, row in found), default=0), max((_number_of(column) for column, _ in found), default=0)


def _number_of(column: bytes) -> int:
    number = 0
    for letter in column.upper():
        number = 26 * number + letter - 64
    return number
