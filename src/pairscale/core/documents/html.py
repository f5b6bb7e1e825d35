"""Web pages (html): the text that a browser shows, without scripts, styles and the head."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from pairscale.core.documents.kinds import LONGEST_TEXT, Document, Unreadable
from pairscale.core.encodings import decode
from pairscale.core.errors import InputError

_LEFT_OUT = {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select", "textarea"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
    "hr", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
}  # fmt: skip
_SPACE = re.compile(r"[ \t\r\n\f]+")
_CHARSET = re.compile(rb"""<meta[^<>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE)
_HEAD = 4096


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[list[str]] = [[]]
        self._inside: list[str] = []  # elements that are left out, outermost first
        self._size = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag == "body":
            self._inside.clear()  # a head without an end
        if tag in _LEFT_OUT or tag == "head":
            self._inside.append(tag)
        elif tag in _BLOCKS:
            self._lines.append([])
        elif tag in {"td", "th"}:
            before = "".join(self._lines[-1]).strip(" ")
            self._lines[-1] = [before, "\t"] if before else []

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            del self._inside[self._inside.index(tag) :]
        elif tag in _BLOCKS:
            self._lines.append([])

    def handle_data(self, data: str) -> None:
        if self._inside:
            return
        self._size += len(data)
        if self._size > LONGEST_TEXT:
            raise Unreadable(f"its text has more than {LONGEST_TEXT:,} characters")
        data = _SPACE.sub(" ", data)
        if self._lines[-1][-1:] == ["\t"]:  # the source's own space, between cells
            data = data.lstrip(" ")
        if data:
            self._lines[-1].append(data)

    def text(self) -> str:
        """Its lines, without the empty ones."""
        lines = ["".join(parts) for parts in self._lines]
        return "\n".join(line.strip(" ") for line in lines if line.strip())


def read_html(content: bytes) -> Document:
    """The text of a web page; a ``charset`` in its head says its encoding.

    Raises:
        Unreadable: it cannot be decoded, or its text is too long.
    """
    declared = _CHARSET.search(content[:_HEAD])
    codec = declared[1].decode("ascii").lower() if declared else None
    if codec in {"iso-8859-1", "latin-1", "latin1"}:
        codec = "cp1252"  # as browsers do
    page = _Page()
    try:
        page.feed(decode(content, "it", codec))
    except InputError as error:
        raise Unreadable(str(error)) from None
    page.close()
    return Document(page.text())
