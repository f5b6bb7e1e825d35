"""The parts of zip files, expanded piece by piece within a limit that is counted while they expand."""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pairscale.core.documents.kinds import Unreadable

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:  # inspect_ai compresses its logs with zstd
    from backports.zstd import ZstdError, zipfile

ZipInfo = zipfile.ZipInfo

_ALWAYS: Final = 64 * 2**20
_RATIO: Final = 50
_MOST: Final = 2**30
_MOST_PARTS: Final = 20_000
_PIECE: Final = 2**16
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, ZstdError, EOFError, OSError, ValueError)


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
        except (zipfile.BadZipFile, NotImplementedError, ValueError):
            raise Unreadable("it is damaged: its directory cannot be read") from None
        self.members = self._archive.infolist()
        if len(self.members) > _MOST_PARTS:
            raise Unreadable(f"it has {len(self.members):,} parts; at most {_MOST_PARTS:,} are read")
        self._most = min(_MOST, max(_ALWAYS, _RATIO * size))
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
        try:
            with self._archive.open(member) as file:
                while piece := file.read(_PIECE):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise self._too_large()
                    yield piece
        except RuntimeError:  # NotImplementedError among them
            raise Unreadable("it is protected by a password, or compressed in an unusual way") from None
        except _DAMAGED:
            raise Unreadable("it is damaged: a part of it cannot be expanded") from None

    def read(self, member: zipfile.ZipInfo | str, most: int) -> bytes:
        """The content of a part.

        Raises:
            Unreadable: it has more than ``most`` bytes, or as :meth:`pieces`.
        """
        content = bytearray()
        for piece in self.pieces(member):
            content += piece
            if len(content) > most:
                raise Unreadable(f"it has more than {most:,} bytes")
        return bytes(content)

    def _too_large(self) -> Unreadable:
        return Unreadable(f"it expands to more than {self._most // 2**20:,} MB, which is not read")
