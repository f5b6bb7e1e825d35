"""One writer at a time: a lock that the operating system lets go of when its holder dies."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from pairscale.errors import StoreBusyError, StoreError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["WriterLock", "whoami"]


def whoami() -> str:
    """This process, for the message that somebody else gets."""
    return f"process {os.getpid()} on {socket.gethostname()}"


class WriterLock:
    """The right to write to one run file, held until released or until the process ends, however it ends."""

    def __init__(self, run_file: Path) -> None:
        self._run_file = run_file
        self._lock = FileLock(f"{run_file}.lock", thread_local=False)

    def acquire(self, last_writer: str) -> None:
        """Take it at once or say who has it."""
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            raise StoreBusyError(
                f"{self._run_file} is being written by another run ({last_writer}); "
                "wait for it, stop it, or use another run file"
            ) from None
        except OSError as error:
            raise StoreError(f"{self._run_file} cannot be locked for writing: {error.strerror}") from None

    def release(self) -> None:
        """Let go of it; harmless when it is not held."""
        self._lock.release()
