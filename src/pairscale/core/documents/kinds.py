"""The kind of a file, by its ending and its first bytes, and the result of reading it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import PurePath
from typing import Final

LONGEST_TEXT: Final = 5_000_000
"""The longest text of one file, in bytes of UTF-8; anything longer is not a sample."""

LARGEST_FILE: Final = 100_000_000
"""The largest file with pictures and layout that is opened, in bytes."""

PLAIN: Final = ("txt", "md")
"""Kinds whose bytes are the text."""

_KINDS: Final = {
    ".txt": "txt", ".text": "txt", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".xhtml": "html",
    ".docx": "docx", ".docm": "docm", ".odt": "odt", ".pdf": "pdf",
}  # fmt: skip
DOCUMENT_SUFFIXES: Final = tuple(_KINDS)
"""The endings of files that hold one text each."""

_PACKAGES: Final = {"docx": "defusedxml", "docm": "defusedxml", "odt": "defusedxml", "pdf": "pypdf"}
_ZIP = b"PK\3\4"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF = b"%PDF-"
_WITHIN = 1024  # some programs write a few bytes before the mark of a PDF file
_OTHERS: Final = {
    _PDF: "a PDF file",
    _ZIP: "a zip file, as Word and OpenDocument files are",
    _OLE: "an Office file of before 2007",
    b"{\\rtf": "an RTF file",
}


class Unreadable(Exception):  # noqa: N818 - the reason why a file is not read, which is no mistake of the program
    """Why a file cannot be read as text; the message follows the name of the file."""


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file.

    Attributes:
        text: its text.
        pages: how many pages it has, where it has pages.
        blank_pages: how many of them show something, but have no text layer.
        notes: what was left out of it.
    """

    text: str
    pages: int | None = None
    blank_pages: int = 0
    notes: tuple[str, ...] = ()


def kind_of(name: str) -> str | None:
    """The kind of a file by the ending of its name; None when such files hold no text.

    Example:
        >>> kind_of("Anna.DOCX"), kind_of("photo.jpg")
        ('docx', None)
    """
    return _KINDS.get(PurePath(name).suffix.lower())


def missing_package(kind: str) -> bool:
    """Whether files of this kind need a package that is not installed."""
    package = _PACKAGES.get(kind)
    return package is not None and find_spec(package) is None


def require_content(kind: str, content: bytes) -> None:
    """Refuse bytes that are not of the kind that the file's ending says.

    Raises:
        Unreadable: that says what they look like.
    """
    marks = {"pdf": _PDF, "docx": _ZIP, "docm": _ZIP, "odt": _ZIP}
    if kind in marks:
        if marks[kind] not in content[:_WITHIN]:
            old = "; it may be protected by a password, or of a format before 2007" if content.startswith(_OLE) else ""
            raise Unreadable(f"its content is not a file of the kind {kind}{old}")
        return
    for mark, name in _OTHERS.items():
        if content.startswith(mark):
            raise Unreadable(f"its content is {name}, not {kind}; give it the ending of its kind")
