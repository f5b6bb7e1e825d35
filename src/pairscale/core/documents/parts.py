"""The parts of zip files, expanded piece by piece within a limit; their own figures of sizes are not relied upon."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pairscale.core.documents.kinds import Unreadable
from pairscale.core.documents.zstd import zstd_pieces

__all__ = ["Parts", "largest_expansion"]

_ALWAYS: Final = 64 * 2**20
_RATIO: Final = 50
_MOST: Final = 2**30
_MOST_PARTS: Final = 20_000
_PIECE: Final = 2**16
_ENCRYPTED: Final = 0x1
_ZSTD: Final = 93
_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")


def largest_expansion(size: int) -> int:
    """How many bytes a compressed file of this size may expand to."""
    return min(_MOST, max(_ALWAYS, _RATIO * size))


class Parts:
    """The parts of a zip file.

    Args:
        content: its bytes, or where it is.

    Raises:
        Unreadable: it is damaged, has too many parts, or says that it expands to too much.
    """

    def __init__(self, content: bytes | Path) -> None:
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content) if isinstance(content, bytes) else content)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
            raise Unreadable("it is damaged: its directory cannot be read") from None
        self.members = self._archive.infolist()
        if len(self.members) > _MOST_PARTS:
            raise Unreadable(f"it has {len(self.members):,} parts; at most {_MOST_PARTS:,} are read")
        self._most = largest_expansion(size)
        self._left = self._most
        if sum(member.file_size for member in self.members) > self._most:
            raise self._too_large()

    def names(self) -> set[str]:
        """The names of the parts."""
        return {member.filename for member in self.members}

    def pieces(self, member: zipfile.ZipInfo | str) -> Iterator[bytes]:
        """The content of a part, piece by piece.

        Raises:
            Unreadable: it is encrypted, damaged, compressed in an unusual way, or expands to too much.
        """
        info = self._archive.getinfo(member) if isinstance(member, str) else member
        if info.flag_bits & _ENCRYPTED:
            raise Unreadable("it is protected by a password")
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD}:
            raise Unreadable("it is compressed in an unusual way; make a plain zip file of it")
        for piece in self._zstd(info) if info.compress_type == _ZSTD else self._expanded(info):
            self._left -= len(piece)
            if self._left < 0:
                raise self._too_large()
            yield piece

    def _expanded(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        try:
            with self._archive.open(info) as file:
                while piece := file.read(_PIECE):
                    yield piece
        except (zipfile.BadZipFile, NotImplementedError, zlib.error, EOFError, OSError, ValueError, struct.error):
            raise Unreadable("it is damaged: a part of it cannot be expanded") from None

    def _zstd(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """A part that zipfile of this Python may not know how to expand; its checksum is checked as zipfile does."""
        damaged = Unreadable("it is damaged: a part of it cannot be expanded")
        file = self._archive.fp
        if file is None:
            raise damaged
        file.seek(info.header_offset)
        head = file.read(_LOCAL_HEADER.size)
        if len(head) != _LOCAL_HEADER.size or not head.startswith(b"PK\x03\x04"):
            raise damaged
        _, name, extra = _LOCAL_HEADER.unpack(head)
        file.seek(name + extra, io.SEEK_CUR)
        content = file.read(info.compress_size)
        if len(content) != info.compress_size:
            raise damaged
        found = 0
        for piece in zstd_pieces(content):
            found = zlib.crc32(piece, found)
            yield piece
        if found != info.CRC:
            raise damaged

    def read(self, member: zipfile.ZipInfo | str, most: int) -> bytes:
        """The content of a part.

        Raises:
            Unreadable: it has more than ``most`` bytes, or as :meth:`pieces`.
        """
        found = bytearray()
        for piece in self.pieces(member):
            found += piece
            if len(found) > most:
                raise Unreadable(f"it has more than {most:,} bytes")
        return bytes(found)

    def _too_large(self) -> Unreadable:
        return Unreadable(f"it expands to more than {self._most // 2**20:,} MB, which is not read")
