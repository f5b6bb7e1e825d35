"""The text of files, in any common encoding."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import Path

from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.notices import notice
from pairscale.core.options import FilePath

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Four different letters with accents in a row: no word of Western Europe, and nearly every word of another alphabet.
_FOREIGN = re.compile(r"[^\x00-\x7f€…‘’“”•–—™\xa0¡§©«®°·»¿]{4}")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")


def read_bytes(path: FilePath, most: int = -1) -> bytes:
    """The bytes of a file, or the first ``most`` of them.

    Raises:
        FileFormatError: when it does not exist, is not a file, or may not be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(most)
    except FileNotFoundError:
        raise FileFormatError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def decode(data: bytes, name: str, encoding: str | None = None, *, tell: Callable[[str], object] = notice) -> str:
    """Bytes as text: by their byte order mark, else as UTF-8, else as ``encoding``, or Windows-1252 with a notice.

    The last guess is made only for bytes that look like Western European text; anything else is refused, because a
    wrong guess would show garbled letters to a judge unnoticed.

    Args:
        data: the bytes.
        name: of the file, for messages.
        encoding: as the user named it, of files that are not UTF-8.
        tell: called with a notice when the encoding was guessed.

    Raises:
        FileFormatError: that names the file and what to do.
    """
    try:
        codecs.lookup(encoding or "utf-8")
    except (LookupError, ValueError):
        raise InputError(f"encoding {encoding!r} is unknown; try utf-8, utf-16, cp1252 or latin-1") from None
    marked = [codec for mark, codec in _MARKS if data.startswith(mark)]
    # UTF-16 without its mark, and encodings that switch alphabets, are UTF-8 by their bytes, too.
    unmarked = [encoding] if encoding and (b"\0" in data or b"\x1b" in data) else ["utf-8", encoding or "cp1252"]
    refused = FileFormatError(
        f"{name} is not UTF-8 text; save it as UTF-8, or name its encoding, where that is an option (`encoding=`)"
    )
    for codec in marked[:1] or unmarked:
        try:
            text = data.decode(codec)
            break
        except UnicodeError:
            continue
    else:
        raise refused
    if "\0" in text:
        raise refused
    if codec == "cp1252" and encoding is None:
        letters = re.sub(r"(.)\1+", r"\1", text.lower())  # an "Ääääh" is Western too
        if _FOREIGN.search(letters) or _CONTROL.search(text):
            raise refused
        example = re.search(r"\w*[^\x00-\x7f]\w*", text)
        tell(
            f"{name} is not UTF-8; it was read as Windows-1252, for example {example and example[0]!r} "
            "(if that is wrong, save it as UTF-8, or name its encoding where that is an option: `encoding=`)"
        )
    return text


def read_text(path: FilePath, encoding: str | None = None) -> str:
    """The text of a file; see :func:`decode`."""
    return decode(read_bytes(path), str(path), encoding)
