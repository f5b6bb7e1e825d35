"""Texts in files of their own: those of a folder, or of a zip archive, which is read like one.

Nothing is skipped without a word: every file is either read, or listed with the reason why it was not. What operating
systems leave behind (hidden files, ``Thumbs.db``, lock files of Office) is no file of the user's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from pairscale.core.documents import Document, DocumentReader, Unreadable, kind_of, missing_package
from pairscale.core.documents.kinds import LARGEST_FILE, LONGEST_TEXT, PLAIN, require_content
from pairscale.core.documents.parts import Parts, ZipInfo
from pairscale.core.encodings import decode, read_bytes
from pairscale.core.errors import FileFormatError, MissingExtraError
from pairscale.core.notices import notice

MISSING_EXTRA = 'needs an optional package: pip install "pairscale[documents]"'
"""Why a file is not read on a plain installation."""

_TABLES = {"csv", "tsv", "jsonl", "ndjson", "json", "parquet", "xlsx", "xls", "ods"}
_ARCHIVES = {"zip", "7z", "rar", "tar", "gz", "tgz", "bz2", "xz"}
_WRITING = {"doc", "rtf", "pages", "wpd", "wps", "dot", "dotx", "fodt", "ott", "sxw", "epub", "tex"}
_IS_UTF8 = 0x800  # of a name in a zip archive
_LEFT_BEHIND = {"thumbs.db", "desktop.ini", "__macosx"}


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
        note: what was left out of it, or how it was read, in words.
    """

    name: str
    kind: str
    characters: int | None = None
    pages: int | None = None
    blank_pages: int = 0
    reason: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Texts:
    """What a folder holds.

    Attributes:
        ids: by file that was read, its name without the ending.
        texts: its text.
        files: every file, those that were not read among them.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    files: tuple[FileRead, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    reason: str | None = None
    content: Callable[[int], bytes] = lambda _most: b""
    is_folder: bool = False

    @property
    def kind(self) -> str:
        if self.is_folder:
            return "folder"
        return kind_of(self.name) or PurePosixPath(self.name).suffix.lower().lstrip(".") or "file"


def read_folder(path: Path, encoding: str | None = None) -> Texts:
    """The texts of a folder or of a zip archive, by the names of their files.

    Args:
        path: the folder, or the archive.
        encoding: of text files that are neither UTF-8 nor marked.

    Raises:
        FileFormatError: it cannot be opened, or two of its texts would have the same id.
    """
    entries = _of_folder(path) if path.is_dir() else _of_archive(path)
    files: list[FileRead] = []
    texts: dict[str, tuple[str, str]] = {}  # by id
    with DocumentReader() as reader:
        for entry in entries:
            kind = entry.kind
            try:
                document = _read(entry, kind, reader, encoding)
            except Unreadable as reason:
                files.append(FileRead(entry.name, kind, reason=str(reason)))
                continue
            uid = normalize("NFC", PurePosixPath(entry.name).stem)  # macOS spells é in two characters, tables in one
            if uid in texts:
                raise FileFormatError(
                    f"{path}: {texts[uid][0]} and {entry.name} would have the same id {uid!r}; rename one, or take it "
                    "out"
                )
            texts[uid] = (entry.name, document.text)
            note = "; ".join(document.notes) or None
            size = len(document.text)
            files.append(FileRead(entry.name, kind, size, document.pages, document.blank_pages, note=note))
    return Texts(tuple(texts), tuple(text for _, text in texts.values()), tuple(files))


def read_document(path: str | os.PathLike[str], encoding: str | None = None) -> Document:
    """The text of one file; what was left out of it is said. A file of an unknown ending is taken for text.

    Raises:
        FileFormatError: it cannot be read; the message names it.
        MissingExtraError: files of its kind need an optional package.
    """
    where = Path(path)
    ending = where.suffix.lower().lstrip(".")
    kind = kind_of(where.name) or (ending if ending in _TABLES | _ARCHIVES | _WRITING else "txt")
    if missing_package(kind) is not None:
        raise MissingExtraError(f"reading a {kind} file", "documents")
    entry = _Entry(where.name, content=lambda most: _content(where, most))
    try:
        with DocumentReader() as reader:
            document = _read(entry, kind, reader, encoding)
    except Unreadable as reason:
        raise FileFormatError(f"{path}: {reason}") from None
    skipped = [f"{document.blank_pages:,} of its pages were skipped: no text layer"] if document.blank_pages else []
    for note in (*skipped, *document.notes):
        notice(f"{path}: {note}")
    return document


def _read(entry: _Entry, kind: str, reader: DocumentReader, encoding: str | None) -> Document:
    if entry.reason is not None:
        raise Unreadable(entry.reason)
    if kind_of(f"x.{kind}") is None:
        raise Unreadable(_why_not(kind))
    if missing_package(kind) is not None:
        raise Unreadable(MISSING_EXTRA)
    content = entry.content(LONGEST_TEXT if kind in PLAIN else LARGEST_FILE)
    if kind in PLAIN:
        notes: list[str] = []
        require_content(kind, content)
        try:
            text = decode(content, "it", encoding, tell=notes.append)
        except FileFormatError as error:
            raise Unreadable(str(error)) from None
        document = Document(without_final_break(text), notes=tuple(notes))
    else:
        document = reader.read(kind, content)
    if not document.text.strip():
        raise Unreadable("it is empty: there is no text in it")
    return document


def without_final_break(text: str) -> str:
    """A text without the line break that ends its last line, which is the file's and not the text's."""
    return text.removesuffix("\n").removesuffix("\r")


def _why_not(kind: str) -> str:
    if kind in _TABLES:
        return "a table, not a text; to read the texts in it, give it instead of the folder"
    if kind in _ARCHIVES:
        return "an archive; unpack it, or give it instead of the folder if it is a zip file"
    if kind in _WRITING:
        return "a format that is not read; save it as docx, odt, pdf or txt"
    return "not a text: txt, md, html, docx, odt and pdf are read"


def _is_left_behind(name: str) -> bool:
    if name == "..":
        return False
    return name.startswith((".", "~$")) or name.lower() in _LEFT_BEHIND


# Folders.


def _of_folder(folder: Path) -> Iterator[_Entry]:
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise FileFormatError(f"{folder} cannot be read: {error.strerror}") from None
    within = Path(os.path.realpath(folder))
    for file in files:
        if _is_left_behind(file.name):
            continue
        reason = _is_no_file(file, within)
        yield _Entry(file.name, reason, lambda most, file=file: _content(file, most), file.is_dir())  # type: ignore[misc]


def _is_no_file(file: Path, within: Path) -> str | None:
    real = Path(os.path.realpath(file))
    if file.is_symlink() and not real.is_relative_to(within):
        return "a link that leads out of the folder; copy the file itself into it"
    if file.is_dir():
        return "a folder; subfolders are not read, so name it instead to read its files"
    return None if file.is_file() else "not a plain file"


def _content(file: Path, most: int) -> bytes:
    try:
        size = file.stat().st_size
    except OSError as error:
        raise Unreadable(f"it cannot be read: {error.strerror}") from None
    if size > most:
        raise Unreadable(f"it has {size:,} bytes; at most {most:,} are read")
    try:
        return read_bytes(file)
    except FileFormatError as error:
        raise Unreadable(str(error)) from None


# Archives.


def _of_archive(path: Path) -> Iterator[_Entry]:
    try:
        parts = Parts(path)
    except Unreadable as reason:
        raise FileFormatError(f"{path}: {reason}") from None
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    members = [(_name(info), info) for info in parts.members if not info.is_dir()]
    members = [(name, info) for name, info in members if not any(map(_is_left_behind, name.parts))]
    tops = {name.parts[0] for name, _ in members if len(name.parts) > 1}
    is_wrapped = len(tops) == 1 and all(len(name.parts) > 1 for name, _ in members)
    for name, info in sorted(members, key=lambda member: member[0]):
        why = _is_no_text(name, info, depth=2 if is_wrapped else 1)
        yield _Entry(str(name) if why else name.name, why, lambda most, info=info: parts.read(info, most))  # type: ignore[misc]


def _name(info: ZipInfo) -> PurePosixPath:
    """The name of a member; macOS writes UTF-8 without saying so."""
    name = info.filename
    if not info.flag_bits & _IS_UTF8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return PurePosixPath(name.replace("\\", "/"))


def _is_no_text(name: PurePosixPath, info: ZipInfo, depth: int) -> str | None:
    if name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
        return "its name leads out of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "a link, which an archive of texts does not need"
    if len(name.parts) > depth:
        return "in a folder of the archive; only the files of one folder are read"
    is_archive = name.suffix.lower().lstrip(".") in _ARCHIVES
    return "an archive inside the archive; unpack it first" if is_archive else None
