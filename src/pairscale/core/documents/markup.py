"""The text of a part in XML, as a stream: no tree is built, no entity is declared, and nothing outside is fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from xml.sax import SAXException
from xml.sax.handler import ContentHandler, feature_namespaces

from pairscale.core.documents.kinds import LONGEST_TEXT, Unreadable


class Paragraphs(ContentHandler):
    """Collects text; the handlers of formats say what is text.

    Attributes:
        hidden: elements whose content is left out.
    """

    hidden: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        super().__init__()
        self._written: list[str] = []
        self._size = 0
        self._path: list[str] = []
        self._skipped = 0  # elements that are open from the first that is left out

    def write(self, text: str) -> None:
        """Add to the text.

        Raises:
            Unreadable: it is too long.
        """
        self._size += len(text)
        if self._size > LONGEST_TEXT:
            raise Unreadable(f"its text has more than {LONGEST_TEXT:,} characters")
        self._written.append(text)

    def text(self) -> str:
        """What was collected."""
        return "".join(self._written).rstrip("\n")

    # Names are a namespace and a name, which is enough where one format is read.

    def startElementNS(self, name: tuple[str | None, str], _qname: str | None, attrs: Any) -> None:  # noqa: N802
        """As the parser calls it; formats define :meth:`start`."""
        if self._skipped or name[1] in self.hidden:
            self._skipped += 1
        else:
            self.start(name[1], {key[1]: value for key, value in attrs.items()})
        self._path.append(name[1])

    def endElementNS(self, name: tuple[str | None, str], _qname: str | None) -> None:  # noqa: N802
        """As the parser calls it; formats define :meth:`end`."""
        self._path.pop()
        if self._skipped:
            self._skipped -= 1
        else:
            self.end(name[1])

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins; its parent is the last of the path."""

    def end(self, name: str) -> None:
        """An element ends."""


def parse(pieces: Iterable[bytes], handler: Paragraphs) -> str:
    """The text that a handler collects of XML, fed piece by piece.

    Raises:
        Unreadable: it is no XML, or it declares a document type, which could hold entities.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.expatreader import create_parser

    parser = create_parser(forbid_dtd=True)
    parser.setFeature(feature_namespaces, True)
    parser.setContentHandler(handler)
    try:
        for piece in pieces:
            parser.feed(piece)
        parser.close()
    except DefusedXmlException:
        raise Unreadable("it declares entities, which no word processor writes; it is not read") from None
    except (SAXException, ValueError):  # a number that is none, among others
        raise Unreadable("it is damaged: a part of it is not XML") from None
    return handler.text()
