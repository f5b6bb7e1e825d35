"""The process that reads documents, within limits of memory and of processor time.

It is started by :mod:`pairscale.core.documents.process` and speaks with it through its standard input and output: a
line of JSON with the kind and the size of a file, then its bytes; back comes a line of JSON.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, BinaryIO

from pairscale.core.documents.docx import read_docx
from pairscale.core.documents.html import read_html
from pairscale.core.documents.kinds import Document, Unreadable
from pairscale.core.documents.odt import read_odt
from pairscale.core.documents.pdf import read_pdf

__all__ = ["serve"]

_READERS: dict[str, Callable[[bytes], Document]] = {
    "docx": read_docx,
    "docm": read_docx,
    "html": read_html,
    "odt": read_odt,
    "pdf": read_pdf,
}


def serve(memory: int, seconds: int) -> None:
    """Answer until the input ends.

    Args:
        memory: bytes of address space; where the system does not know this limit, it is none.
        seconds: processor time per file; likewise.
    """
    logging.disable(logging.CRITICAL)  # what libraries say of damaged files is in the answer
    _limit_memory(memory)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while header := source.readline():
        asked = json.loads(header)
        content = source.read(asked["size"])
        _limit_time(seconds)
        _reply(target, _answer(asked["kind"], content))
        _limit_time(0)


def _answer(kind: str, content: bytes) -> dict[str, Any]:
    try:
        return asdict(_READERS[kind](content))
    except Unreadable as reason:
        return {"refused": str(reason)}
    except MemoryError:
        return {"refused": "it needs more memory to read than a document may"}
    except RecursionError:
        return {"refused": "its parts are nested too deeply, or refer to each other in a circle"}
    except Exception as error:  # noqa: BLE001 - whatever a hostile file makes a library do, one line says so
        return {"refused": f"it is damaged: its reader stopped ({type(error).__name__})"}


def _reply(target: BinaryIO, answer: dict[str, Any]) -> None:
    target.write(json.dumps(answer).encode("ascii") + b"\n")
    target.flush()


def _limit_memory(memory: int) -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _limit_time(seconds: int) -> None:
    with suppress(AttributeError, OSError, ValueError):
        signal.setitimer(signal.ITIMER_PROF, seconds)  # by default, its signal ends the process
