"""Texts in a folder, one in each file.

No file is skipped silently: each is either read, or listed with the reason why it was not. What operating
systems leave behind (hidden files, ``Thumbs.db``, lock files of Office) is no file of the user's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from pairscale.core.documents import PLAIN, Document, Unreadable, kind_of, missing_package, read_content
from pairscale.core.documents.kinds import LARGEST_FILE, LONGEST_TEXT, require_content
from pairscale.core.encodings import decode, read_bytes
from pairscale.core.errors import FileFormatError, MissingExtraError
from pairscale.core.notices import notice
from pairscale.core.options import FilePath

MISSING_EXTRA = 'needs an optional package: pip install "pairscale[documents]"'
"""Why a file is not read on a plain installation."""

_TABLES = ("csv", "tsv", "jsonl", "ndjson", "json", "parquet", "xlsx")
_TABLE = "a table that does not name each text once; to read the texts in it, give it instead of the folder"
_NO_TEXT = "not a text: txt, md, html, docx, odt and pdf are read"
_LEFT_BEHIND = {"thumbs.db", "desktop.ini"}


@dataclass(frozen=True, slots=True)
class FileRead:
    """One file of a folder.

    Attributes:
        name: its name.
        kind: what it is by its ending: ``txt``, ``docx``, …
        characters: the length of its text; None when it was not read.
        pages: how many pages it has, where it has pages.
        blank_pages: how many of them show something, but have no text layer.
        reason: why it was not read; None when it was.
        note: what was left out of it, or how it was read.
    """

    name: str
    kind: str
    characters: int | None = None
    pages: int | None = None
    blank_pages: int = 0
    reason: str | None = None
    note: str | None = None


def read_folder(path: Path, encoding: str | None = None) -> tuple[dict[str, str], list[FileRead]]:
    """The texts of a folder by the names of their files without the ending, and all its files.

    Args:
        path: the folder.
        encoding: of text files that are neither UTF-8 nor marked.

    Raises:
        FileFormatError: it cannot be opened, or two of its texts would have the same id.
    """
    texts: dict[str, str] = {}
    files: list[FileRead] = []
    inside = path.resolve()
    for file in sorted(path.iterdir()):
        name = file.name
        if name.startswith((".", "~$")) or name.lower() in _LEFT_BEHIND:
            continue
        kind = kind_of(name) or file.suffix.lower().lstrip(".") or "file"
        try:
            if not file.resolve().is_relative_to(inside):
                raise Unreadable("a link that leads out of the folder; copy the file itself into it")
            if not file.is_file():
                raise Unreadable("not a plain file; subfolders are not read, so name one instead to read its files")
            document = _read(kind, file, encoding)
        except (Unreadable, FileFormatError) as error:
            files.append(FileRead(name, kind, reason=str(error)))
            continue
        uid = normalize("NFC", file.stem)  # macOS spells é in two characters, tables in one
        if uid in texts:
            raise FileFormatError(f"{path}: {name} and another file would have the same id {uid!r}; rename one")
        texts[uid] = document.text
        note = "; ".join(document.notes) or None
        files.append(FileRead(name, kind, len(document.text), document.pages, document.blank_pages, note=note))
    return texts, files


def read_document(path: FilePath, encoding: str | None = None) -> Document:
    """The text of one file; a notice names what was left out. A file with an unknown ending is read as text.

    Raises:
        FileFormatError: it cannot be read; the message names it.
        MissingExtraError: files of its kind need an optional package.
    """
    kind = kind_of(os.fspath(path)) or "txt"
    if missing_package(kind):
        raise MissingExtraError(f"reading a {kind} file", "documents")
    try:
        document = _read(kind, Path(path), encoding)
    except Unreadable as reason:
        raise FileFormatError(f"{path}: {reason}") from None
    for note in document.notes:
        notice(f"{path}: {note}")
    return document


def _read(kind: str, file: Path, encoding: str | None) -> Document:
    if kind_of(f"x.{kind}") is None:
        raise Unreadable(_TABLE if kind in _TABLES else _NO_TEXT)
    if missing_package(kind):
        raise Unreadable(MISSING_EXTRA)
    if kind in PLAIN:
        data = _content(file, LONGEST_TEXT)
        require_content(kind, data)
        notes: list[str] = []
        try:
            text = decode(data, "it", encoding, tell=notes.append)
        except FileFormatError as error:
            raise Unreadable(str(error)) from None
        document = Document(without_final_break(text), notes=tuple(notes))
    else:
        document = read_content(kind, _content(file, LARGEST_FILE))
    if not document.text.strip():
        raise Unreadable("it is empty: there is no text in it")
    return document


def without_final_break(text: str) -> str:
    """A text without the line break that ends its last line, which is the file's and not the text's."""
    return text.removesuffix("\n").removesuffix("\r")


def _content(file: Path, most: int) -> bytes:
    content = read_bytes(file, most + 1)
    if len(content) > most:
        raise Unreadable(f"it has more than {most:,} bytes")
    return content
