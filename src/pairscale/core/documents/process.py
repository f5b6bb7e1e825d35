"""The other side of the process that reads documents: starts it, asks it, and says why it has ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from pairscale.core.documents.kinds import LARGEST_FILE, Document, Unreadable, require_content

__all__ = ["CPU_SECONDS", "MEMORY", "DocumentReader"]

MEMORY = 1536 * 2**20
"""Bytes of address space that the process may use."""

CPU_SECONDS = 60
"""Processor time that one file may take."""

_WALL_SECONDS = 900  # for systems without such a limit, and for a process that waits
_START = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from pairscale.core.documents import worker; "


class DocumentReader:
    """Reads documents, one after the other, in one process that is started when the first comes.

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
        answer = self._ask(kind, content)
        if "refused" in answer:
            raise Unreadable(answer["refused"])
        return Document(answer["text"], answer["pages"], answer["blank_pages"], tuple(answer["notes"]))

    def _ask(self, kind: str, content: bytes) -> dict[str, Any]:
        child = self._child = self._child or _started()
        assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018 - both are pipes
        clock = threading.Timer(_WALL_SECONDS, child.kill)
        clock.daemon = True
        clock.start()
        line = b""
        try:
            with suppress(BrokenPipeError):
                child.stdin.write(json.dumps({"kind": kind, "size": len(content)}).encode("ascii") + b"\n")
                child.stdin.write(content)
                child.stdin.flush()
            line = child.stdout.readline()
        finally:
            clock.cancel()
            if not line.endswith(b"\n"):
                code = self._end()
        if line.endswith(b"\n"):
            return json.loads(line)  # type: ignore[no-any-return]
        timed_out = {-getattr(signal, "SIGPROF", 0), -getattr(signal, "SIGKILL", 0)} - {0}
        if code in timed_out:
            raise Unreadable(f"reading it takes more than {CPU_SECONDS} seconds of processor time")
        raise Unreadable("its reader stopped; it is damaged, or needs more memory than a document may")

    def _end(self) -> int:
        child, self._child = self._child, None
        if child is None:
            return 0
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            return child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()


def _started() -> subprocess.Popen[bytes]:
    code = f"{_START}worker.serve({MEMORY}, {CPU_SECONDS})"
    path = json.dumps([entry or "." for entry in sys.path])
    return subprocess.Popen(  # noqa: S603 - this Python, with code of ours
        [sys.executable, "-P", "-c", code, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
