"""PDF files: their text layer, page by page. A scanned page has none, and no text is made up for it.

A file is read by this module run as a program, which is ended when it takes too long or needs too much memory.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import suppress
from typing import Any

from pairscale.core.documents.kinds import LONGEST_TEXT, Document, Unreadable

MEMORY = 1536 * 2**20
"""Bytes of address space that reading a PDF file may use, where the system has such a limit."""

PDF_SECONDS = 120
"""How long reading one PDF file may take."""

_MOST_PAGES = 2_000
_LIGATURES = str.maketrans(
    {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st"}
)
"""Ligatures, as the letters that were typed."""


def read_pdf(content: bytes) -> Document:
    """The text layer of a PDF file, read in another process.

    Raises:
        Unreadable: it is damaged, protected, too long, takes too long, or no page has a text layer.
    """
    command = [sys.executable, "-P", "-m", "pairscale.core.documents.pdf", str(MEMORY)]
    # No key of the environment goes to the process that reads a hostile file.
    environment = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TEMP", "TMP") if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        done = subprocess.run(  # noqa: S603 - this Python, with code of ours
            command, input=content, capture_output=True, timeout=PDF_SECONDS, env=environment, check=True
        )
    except subprocess.TimeoutExpired:
        raise Unreadable(f"it takes more than {PDF_SECONDS} seconds to read") from None
    except subprocess.CalledProcessError:
        raise Unreadable("its reader stopped: it is damaged, or needs more memory than a document may") from None
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise Unreadable(answer["refused"])
    blank = answer["blank_pages"]
    notes = (f"{blank:,} of its pages were skipped: no text layer",) if blank else ()
    return Document(**answer, notes=notes)


def main() -> None:
    """Read the PDF file on standard input; the answer is one line of JSON."""
    memory = int(sys.argv[1])
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        answer = _pages(sys.stdin.buffer.read())
    except Unreadable as reason:
        answer = {"refused": str(reason)}
    except Exception as error:  # noqa: BLE001 - whatever a hostile file makes a library do, one line says so
        first = (str(error).splitlines() or [""])[0]
        answer = {"refused": f"it is damaged, or hostile: {type(error).__name__} {first[:120]}".rstrip()}
    sys.stdout.write(json.dumps(answer))


def _pages(content: bytes) -> dict[str, Any]:
    """The text of all pages, how many there are, and how many have no text layer."""
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise Unreadable("it is protected by a password")
    if len(reader.pages) > _MOST_PAGES:
        raise Unreadable(f"it has {len(reader.pages):,} pages; at most {_MOST_PAGES:,} are read")
    texts = [page.extract_text().translate(_LIGATURES).strip() for page in reader.pages]
    if not any(texts):
        raise Unreadable("no text layer: it is a scan or a picture; make one with OCR, or type the text")
    text = "\n\n".join(filter(None, texts))
    if len(text) > LONGEST_TEXT:
        raise Unreadable(f"its text has more than {LONGEST_TEXT:,} characters")
    return {"text": text, "pages": len(texts), "blank_pages": texts.count("")}


if __name__ == "__main__":
    main()
