"""Reads documents: most of them here, PDF files in a process that is killed when one takes too long."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from pairscale.core.documents.docx import read_docx
from pairscale.core.documents.html import read_html
from pairscale.core.documents.kinds import LARGEST_FILE, Document, Unreadable, require_content
from pairscale.core.documents.odt import read_odt
from pairscale.core.documents.pdf import read_pdf

__all__ = ["MEMORY", "PDF_SECONDS", "DocumentReader"]

MEMORY = 1536 * 2**20
"""Bytes of address space that reading a PDF file may use, where the system has such a limit."""

PDF_SECONDS = 120
"""How long reading one PDF file may take."""

_READERS = {"docx": read_docx, "docm": read_docx, "html": read_html, "odt": read_odt}
_SERVE = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from pairscale.core.documents import reader; "


class DocumentReader:
    """Reads documents one after the other; the process for PDF files is started when the first comes.

    Use it in a ``with`` block, which ends the process.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> DocumentReader:
        return self

    def __exit__(self, *_error: object) -> None:
        self._end()

    def read(self, kind: str, content: bytes) -> Document:
        """The text of a document.

        Args:
            kind: as :func:`kind_of` says it.
            content: the file.

        Raises:
            Unreadable: it is not what its ending says, damaged, protected or too much.
        """
        if len(content) > LARGEST_FILE:
            raise Unreadable(f"it has {len(content):,} bytes; at most {LARGEST_FILE:,} are read")
        require_content(kind, content)
        if kind != "pdf":
            return _READERS[kind](content)
        answer = self._ask(content)
        if "refused" in answer:
            raise Unreadable(answer["refused"])
        return Document(answer["text"], answer["pages"], answer["blank_pages"], tuple(answer["notes"]))

    def _ask(self, content: bytes) -> dict[str, Any]:
        """What the process makes of a PDF file."""
        if self._child is None:
            self._child = _started()
        child = self._child
        assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018 - both are pipes
        timer = threading.Timer(PDF_SECONDS, child.kill)
        timer.start()
        line = b""
        try:
            with suppress(BrokenPipeError):
                child.stdin.write(b"%d\n" % len(content) + content)
                child.stdin.flush()
            line = child.stdout.readline()
        finally:
            timer.cancel()
            if not line.endswith(b"\n"):
                self._end()
        if not line.endswith(b"\n"):
            raise Unreadable(f"its reader stopped: it is damaged, or takes more than {PDF_SECONDS} seconds to read")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _end(self) -> None:
        child = self._child
        self._child = None
        if child is not None:
            with suppress(OSError):
                child.communicate(timeout=10)
            child.kill()
            child.wait()


def _started() -> subprocess.Popen[bytes]:
    path = json.dumps([entry or "." for entry in sys.path])
    return subprocess.Popen(  # noqa: S603 - this Python, with code of ours
        [sys.executable, "-P", "-c", f"{_SERVE}reader.serve({MEMORY})", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def serve(memory: int) -> None:
    """Read PDF files from standard input until it ends: the size on a line, then the bytes; back comes a line of JSON.

    Args:
        memory: bytes of address space.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    source = sys.stdin.buffer
    target = sys.stdout.buffer
    sys.stdout = sys.stderr
    while size := source.readline():
        target.write(json.dumps(_answer(source.read(int(size)))).encode("ascii") + b"\n")
        target.flush()


def _answer(content: bytes) -> dict[str, Any]:
    try:
        return asdict(read_pdf(content))
    except Unreadable as reason:
        return {"refused": str(reason)}
    except MemoryError:
        return {"refused": "it needs more memory to read than a document may"}
    except Exception as error:  # noqa: BLE001 - whatever a hostile file makes a library do, one line says so
        return {"refused": f"it is damaged: its reader stopped ({type(error).__name__})"}
