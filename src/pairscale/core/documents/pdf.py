"""PDF files: their text layer, page by page. A scanned page has none, and no text is made up for it."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from pairscale.core.documents.kinds import LONGEST_TEXT, Document, Unreadable

if TYPE_CHECKING:
    from pypdf import PageObject

__all__ = ["read_pdf"]

_MOST_PAGES = 2_000
_LIGATURES = str.maketrans(
    {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st"}
)
"""Shapes of the typesetter's, which no one has typed."""
_PAINTS = re.compile(rb"(?<![\w/])(?:Do|BI|sh|[fF]\*?|[bB]\*?|[sS])(?![\w*])")
"""The operators of PDF that put an image, a shading or a path on the page."""


def read_pdf(content: bytes) -> Document:
    """The text layer of a PDF file.

    Raises:
        Unreadable: it is damaged, protected, too long, or no page has a text layer.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    texts: list[str] = []
    skipped = 0
    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is protected by a password")
        count = len(reader.pages)
        if count > _MOST_PAGES:
            raise Unreadable(f"it has {count:,} pages; at most {_MOST_PAGES:,} are read")
        for page in reader.pages:
            texts.append(page.extract_text().translate(_LIGATURES).strip())
            skipped += not texts[-1] and _is_painted(page)
            if sum(map(len, texts)) > LONGEST_TEXT:
                raise Unreadable(f"its text has more than {LONGEST_TEXT:,} characters")
    except PyPdfError as error:
        what = (str(error).splitlines() or [type(error).__name__])[0]
        raise Unreadable(f"it is damaged, or hostile: {what[:120]}") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError, OverflowError) as error:
        # What a library meets in a file that breaks the rules of its format.
        raise Unreadable(f"it is damaged: its reader stopped ({type(error).__name__})") from None
    if not any(texts):
        raise Unreadable("no text layer: it is a scan or a picture; make one with OCR, or type the text")
    return Document("\n\n".join(text for text in texts if text), len(texts), skipped)


def _is_painted(page: PageObject) -> bool:
    """Whether something is on a page without text: a picture or a drawing; a page with nothing on it is no loss."""
    content = page.get_contents()
    return content is not None and _PAINTS.search(content.get_data()) is not None
