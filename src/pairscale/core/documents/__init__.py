"""The text of files that people have: plain text, Markdown, HTML, Word, OpenDocument and PDF.

A file is read as what its ending says, after its first bytes have agreed. A PDF file is read in its own process with
limits of time and memory, because a small page may keep a parser busy for minutes.
"""

from pairscale.core.documents.docx import read_docx
from pairscale.core.documents.html import read_html
from pairscale.core.documents.kinds import (
    DOCUMENT_SUFFIXES,
    PLAIN,
    Document,
    Unreadable,
    kind_of,
    missing_package,
    require_content,
)
from pairscale.core.documents.odt import read_odt
from pairscale.core.documents.pdf import read_pdf

__all__ = ["DOCUMENT_SUFFIXES", "PLAIN", "Document", "Unreadable", "kind_of", "missing_package", "read_content"]

_READERS = {"docx": read_docx, "docm": read_docx, "html": read_html, "odt": read_odt, "pdf": read_pdf}


def read_content(kind: str, content: bytes) -> Document:
    """The text of a document that is not plain text.

    Args:
        kind: as :func:`kind_of` says it.
        content: the file.

    Raises:
        Unreadable: it is not what its ending says, damaged, protected or too much.
    """
    require_content(kind, content)
    return _READERS[kind](content)
