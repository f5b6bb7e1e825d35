"""OpenDocument texts (odt): the text that a reader sees on the page, without comments and deleted text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pairscale.core.documents.kinds import LONGEST_TEXT, Document, Unreadable
from pairscale.core.documents.markup import Paragraphs, parse
from pairscale.core.documents.parts import Parts

_BODY = "content.xml"
_MANIFEST = "META-INF/manifest.xml"
_SPACE = re.compile(r"[ \t\r\n]+")


class _OdtBody(Paragraphs):
    """The paragraphs of the body, and those of its notes behind them."""

    hidden = frozenset(
        {"tracked-changes", "annotation", "note-citation", "hidden-text", "hidden-paragraph", "forms", "scripts"}
    )

    def __init__(self) -> None:
        super().__init__()
        self._is_body = False
        self._depth = 0  # of paragraphs within notes within paragraphs
        self._after_space = True
        self._notes: list[str] = []
        self._in_note = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "text" and self._path[-1:] == ["body"]:
            self._is_body = True
        elif name == "note-body":
            self._in_note += 1
        elif name in {"p", "h"}:
            self._depth += 1
            self._after_space = True
        elif name == "s" and self._depth:
            self._put(" " * min(int(attributes.get("c", "1")[:9]), LONGEST_TEXT + 1))
        elif name in {"tab", "line-break"} and self._depth:
            self._put("\t" if name == "tab" else "\n")
            self._after_space = name == "line-break"

    def end(self, name: str) -> None:
        if name == "note-body":
            self._in_note -= 1
            self._after_space = False
        elif name in {"p", "h"}:
            self._depth -= 1
            self._put("\n")

    def characters(self, content: str) -> None:
        if self._skipped or not self._depth or not self._is_body:
            return
        content = _SPACE.sub(" ", content)
        if self._after_space:
            content = content.removeprefix(" ")
        if content:
            self._put(content)
            self._after_space = content.endswith(" ")

    def _put(self, text: str) -> None:
        if not self._is_body:
            return
        if self._in_note:
            self._notes.append(text)
            self._size += len(text)
        else:
            self.write(text)

    def text(self) -> str:
        behind = "".join(self._notes).strip("\n")
        return "\n".join(filter(None, [super().text(), behind]))


def read_odt(content: bytes) -> Document:
    """The text of an OpenDocument text: its body, then its notes.

    Raises:
        Unreadable: it is no OpenDocument text, damaged, encrypted, or expands to too much.
    """
    parts = Parts(content)
    if _BODY not in parts.names():
        raise Unreadable("it is a zip file, but not an OpenDocument text")
    if _MANIFEST in parts.names() and b"encryption-data" in b"".join(parts.pieces(_MANIFEST)):
        raise Unreadable("it is protected by a password")
    return Document(parse(parts.pieces(_BODY), _OdtBody()))
