"""Word files (docx, docm): the text that a reader sees on the page, without headers, comments and deleted text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pairscale.core.documents.kinds import Document, Unreadable
from pairscale.core.documents.markup import Paragraphs, parse
from pairscale.core.documents.parts import Parts

__all__ = ["read_docx"]

_BODY = "word/document.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_MACROS = "word/vbaProject.bin"
_LEFT_OUT = frozenset({"Fallback", "moveFrom", "del"})  # the same shapes again; text moved away; deleted text
_OFF = {"0", "false", "off"}
_PRIVATE = range(0xE000, 0xF900)  # what a character means there, its font alone says
_UNREAD = {
    "pic": "pictures", "imagedata": "pictures", "chart": "charts", "OLEObject": "embedded objects",
    "symbol": "symbols of special fonts",
}  # fmt: skip


class _DocxBody(Paragraphs):
    """The runs of text of a part, a line per paragraph."""

    unread = _UNREAD
    hidden = _LEFT_OUT

    def __init__(self) -> None:
        super().__init__()
        self._is_hidden = False
        self._is_text = False

    def start(self, name: str, given: Mapping[str, str]) -> None:
        parent = self._path[-1] if self._path else ""
        if name == "r" and parent != "rPr":
            self._is_hidden = False
        elif name == "vanish" and parent == "rPr" and "r" in self._path[-2:]:
            self._is_hidden = given.get("val", "true").lower() not in _OFF
        elif name == "t":
            self._is_text = True
        elif name == "sym" and not self._is_hidden:
            self._symbol(given.get("char", ""))
        elif parent == "r" and not self._is_hidden:
            self.write({"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011"}.get(name, ""))

    def _symbol(self, code: str) -> None:
        number = int(code, 16) if re.fullmatch("[0-9A-Fa-f]{2,4}", code) else _PRIVATE.start
        if number in _PRIVATE or 0xD800 <= number < _PRIVATE.start or number < ord(" "):
            self.notes[_UNREAD["symbol"]] += 1
        else:
            self.write(chr(number))

    def end(self, name: str) -> None:
        if name == "p":
            self.write("\n")
        elif name == "t":
            self._is_text = False

    def characters(self, content: str) -> None:
        if self._skipped or not self._is_text:
            return
        if self._is_hidden:
            self.notes["hidden"] += len(content)
        else:
            self.write(content)


def read_docx(content: bytes) -> Document:
    """The text of a Word file: body, tables, text boxes, then foot- and endnotes.

    Raises:
        Unreadable: it is no Word file, damaged, or expands to too much.
    """
    parts = Parts(content)
    names = parts.names()
    if _BODY not in names:
        raise Unreadable("it is a zip file, but not a Word file")
    body = _DocxBody()
    parse(parts.pieces(_BODY), body)
    texts = [body.text().rstrip("\n")]
    for name in _NOTES:
        if name in names:
            more = _DocxBody()
            parse(parts.pieces(name), more)
            texts.append(more.text().strip())
    notes = body.left_out()
    if body.notes["hidden"]:
        notes.append(f"hidden text was left out ({body.notes['hidden']:,} characters)")
    if _MACROS in names:
        notes.append("its macros were not read")
    return Document("\n".join([texts[0], *filter(None, texts[1:])]), notes=tuple(notes))
