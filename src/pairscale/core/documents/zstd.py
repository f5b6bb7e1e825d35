"""Zstandard, as newer programs compress the parts of zip files, expanded piece by piece.

Python has it since 3.14; before that, ``zstandard`` or ``pyarrow`` is used, whichever is installed.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator
from typing import Any, Final

from pairscale.core.documents.kinds import Unreadable

__all__ = ["zstd_pieces"]

_PIECE: Final = 2**16
_LARGEST_WINDOW: Final = 2**27  # 128 MB, what the zstd command takes, too


def zstd_pieces(content: bytes) -> Iterator[bytes]:
    """What compressed bytes expand to, piece by piece.

    Raises:
        Unreadable: they are damaged, or nothing is installed that reads them.
    """
    stream = _stream(content)
    while True:
        try:
            piece = stream.read(_PIECE)
        except Exception:  # noqa: BLE001 - each package has errors of its own
            raise Unreadable("it is damaged: a part of it cannot be expanded") from None
        if not piece:
            return
        yield piece


def _stream(content: bytes) -> Any:
    """A file-like object, of the first package that is there."""
    for name, opened in _WAYS.items():
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        return opened(module, content)
    raise Unreadable('it is compressed with zstd, which needs an optional package: pip install "pairscale[pandas]"')


_WAYS: Final[dict[str, Callable[[Any, bytes], Any]]] = {
    "compression.zstd": lambda module, content: module.open(io.BytesIO(content)),
    "zstandard": lambda module, content: module.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).stream_reader(
        content, read_across_frames=True
    ),
    "pyarrow": lambda module, content: module.CompressedInputStream(module.BufferReader(content), "zstd"),
}
