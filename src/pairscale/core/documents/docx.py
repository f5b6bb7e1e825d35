"""Word files (docx, docm): the text that a reader sees on the page, without headers, comments and deleted text."""

from __future__ import annotations

from collections.abc import Mapping

from pairscale.core.documents.kinds import Document, Unreadable
from pairscale.core.documents.markup import Paragraphs, parse
from pairscale.core.documents.parts import Parts

_BODY = "word/document.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_OFF = {"0", "false", "off"}
_SPACES = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011"}
_PRIVATE = range(0xD800, 0xF900)  # halves of characters, and those whose meaning their font alone says


class _DocxBody(Paragraphs):
    """The runs of text of a part, a line per paragraph."""

    hidden = frozenset({"Fallback", "moveFrom", "del"})  # the same shapes again; text moved away; deleted text

    def __init__(self) -> None:
        super().__init__()
        self._is_hidden = False
        self._is_text = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        parent = self._path[-1] if self._path else ""
        if name == "r" and parent != "rPr":
            self._is_hidden = False
        elif name == "vanish" and parent == "rPr" and "r" in self._path[-2:]:
            self._is_hidden = attributes.get("val", "true").lower() not in _OFF
        elif name == "t":
            self._is_text = not self._is_hidden
        elif parent == "r" and not self._is_hidden:
            code = attributes.get("char", "") if name == "sym" else ""
            number = int(code, 16) if len(code) == 4 else 0
            self.write(chr(number) if number >= ord(" ") and number not in _PRIVATE else _SPACES.get(name, ""))

    def end(self, name: str) -> None:
        if name == "p":
            self.write("\n")
        elif name == "t":
            self._is_text = False

    def characters(self, content: str) -> None:
        if self._is_text and not self._skipped:
            self.write(content)


def read_docx(content: bytes) -> Document:
    """The text of a Word file: body, tables, text boxes, then foot- and endnotes.

    Raises:
        Unreadable: it is no Word file, damaged, or expands to too much.
    """
    parts = Parts(content)
    if _BODY not in parts.names():
        raise Unreadable("it is a zip file, but not a Word file")
    body = parse(parts.pieces(_BODY), _DocxBody())
    notes = [parse(parts.pieces(name), _DocxBody()).strip() for name in _NOTES if name in parts.names()]
    return Document("\n".join([body, *filter(None, notes)]))
