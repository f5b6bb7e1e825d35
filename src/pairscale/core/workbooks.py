"""Whether an Excel workbook can be read within bounded memory, found out before it is parsed.

A workbook is a zip file of XML. A small one may expand to gigabytes, and one stray cell far away may make a table of
billions of empty ones. Both are seen by decompressing it piece by piece and keeping nothing; what its directory says
about sizes is not relied upon.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pairscale.core.arrays import Ints
from pairscale.core.documents.parts import largest_expansion
from pairscale.core.errors import FileFormatError

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
_OTHER_FORMATS = re.compile(r"(?:^|/)content\.xml$|sheets?/[^/]*\.bin$", re.IGNORECASE)  # ods and xlsb


def check_workbook(content: bytes, path: Path) -> list[str]:
    """Refuse a workbook that would take too much memory to read; what is no zip file is left to its reader.

    Args:
        content: the file.
        path: its name, for messages.

    Returns:
        Where cells are merged, such as ``C2:C4``.

    Raises:
        FileFormatError: it expands to too much, or its cells are too far apart.
    """
    merged: list[str] = []
    if not content.startswith(b"PK"):
        return merged
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
    return merged


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
