"""The text of files that people have: plain text, Markdown, HTML, Word, OpenDocument and PDF.

A file is read as what its ending says, after its first bytes have agreed. PDF files are read in their own process with
limits of time and memory, because a small page may keep a parser busy for minutes.
"""

from pairscale.core.documents.kinds import DOCUMENT_SUFFIXES, Document, Unreadable, kind_of, missing_package
from pairscale.core.documents.reader import DocumentReader

__all__ = ["DOCUMENT_SUFFIXES", "Document", "DocumentReader", "Unreadable", "kind_of", "missing_package"]
