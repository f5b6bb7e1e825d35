"""The text of files that people have: plain text, Markdown, HTML, Word, OpenDocument and PDF.

A file is read as what its ending says, after its first bytes have agreed. Whatever is not plain text is read in a
process of its own with limits of memory and of work, because a small file may be made to need any amount of both.
"""

from pairscale.core.documents.kinds import DOCUMENT_SUFFIXES, Document, Unreadable, kind_of, missing_package
from pairscale.core.documents.process import DocumentReader

__all__ = ["DOCUMENT_SUFFIXES", "Document", "DocumentReader", "Unreadable", "kind_of", "missing_package"]
