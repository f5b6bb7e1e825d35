"""The text of files, in any common encoding."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.notices import notice

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ASCII = bytes(range(0x80))
_CONTROLS = bytes(byte for byte in range(0x20) if byte not in b"\t\n\r\f")
_MOST_HIGH_BYTES = 0.3
# Four different letters with accents in a row: no word of Western Europe, and nearly every word of another alphabet.
_FOREIGN = re.compile(r"[^\x00-\x7f€…‘’“”•–—™\xa0¡§©«®°·»¿]{4}")


def read_bytes(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """The bytes of a file, or the first ``most`` of them.

    Raises:
        FileFormatError: when it does not exist, is not a file, or may not be read.
    """
    try:
        if most < 0:
            return Path(path).read_bytes()
        with Path(path).open("rb") as file:
            return file.read(most)
    except FileNotFoundError:
        raise FileFormatError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} is a folder, not a file") from None
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FileFormatError(f"{str(path)!r} cannot be the name of a file: {error}") from None


def encoding_of(path: str | os.PathLike[str], named: str | None) -> str | None:
    """The encoding that was named for several files, unless this one is UTF-8: None then.

    Raises:
        FileFormatError: when it cannot be read.
    """
    if named is None:
        return None
    content = read_bytes(path)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return named
    return named if b"\0" in content else None  # UTF-16 without its mark is UTF-8, too


def decode(data: bytes, name: str, encoding: str | None = None, *, tell: Callable[[str], object] = notice) -> str:
    """Bytes as text: what ``encoding`` says, else a byte order mark, else UTF-8, else Windows-1252 with a notice.

    The last guess is made only for bytes that look like Western European text; anything else is refused, because a
    wrong guess would show garbled letters to a judge unnoticed.

    Args:
        data: the bytes.
        name: of the file, for messages.
        encoding: as the user named it.
        tell: is told when the encoding was guessed.

    Raises:
        FileFormatError: that names the file and what to do.
    """
    text = _unmarked(data, name, tell) if encoding is None else _as_named(data, name, encoding)
    if "\0" in text:
        raise FileFormatError(
            f"{name} is not a text file (it holds zero bytes); save it as UTF-8 text, or name its encoding, where that "
            "is an option (`encoding=`)"
        )
    return text.removeprefix("\ufeff")


def _as_named(data: bytes, name: str, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{name} is not {encoding}: byte {error.start} cannot be read") from None
    except (LookupError, ValueError):
        raise InputError(f"encoding {encoding!r} is unknown; try utf-8, utf-16, cp1252 or latin-1") from None


def _unmarked(data: bytes, name: str, tell: Callable[[str], object]) -> str:
    marked = next((codec for mark, codec in _BOMS if data.startswith(mark)), None)
    try:
        return data.decode(marked or "utf-8")
    except UnicodeDecodeError:
        if marked is not None:
            raise FileFormatError(f"{name} begins like {marked} text but is not; save it as UTF-8") from None
    text = ""
    if len(data.translate(None, _ASCII)) <= _MOST_HIGH_BYTES * len(data) and not set(_CONTROLS).intersection(data):
        with suppress(UnicodeDecodeError):
            text = data.decode("cp1252")
    letters = re.sub(r"(.)\1+", r"\1", text.lower())  # an "Ääääh" is Western too
    if not text or _FOREIGN.search(letters):
        raise FileFormatError(
            f"{name} is not UTF-8 text; save it as UTF-8, or name its encoding, where that is an option (`encoding=`)"
        )
    example = re.search(r"\w*[^\x00-\x7f]\w*", text)
    tell(
        f"{name} is not UTF-8; it was read as Windows-1252, for example {example and example[0]!r} "
        "(if that is wrong, save it as UTF-8, or name its encoding where that is an option: `encoding=`)"
    )
    return text


def read_text(path: str | os.PathLike[str], encoding: str | None = None) -> str:
    """The text of a file; see :func:`decode`."""
    return decode(read_bytes(path), str(path), encoding)
