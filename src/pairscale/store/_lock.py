"""One writer at a time: a lock that the operating system lets go of when its holder dies."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from pairscale.core.errors import StoreBusyError, StoreError
from pairscale.store._postgres import LOCK_ID, explain, require_sessions, schema_key

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.engine import Connection, Engine

__all__ = ["DatabaseLock", "WriterLock", "whoami"]


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


class DatabaseLock:
    """The same for a run in a PostgreSQL database: an advisory lock of the schema, which goes with its connection.

    Args:
        engine: of the database.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._held: Connection | None = None

    def acquire(self, last_writer: str) -> None:
        """Take it at once or say who has it."""
        try:
            held = self._held = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            held.detach()  # to close it is to end it
            key = schema_key(held)
            with self._engine.connect() as other:
                require_sessions(held, other)
            taken = held.execute(select(func.pg_try_advisory_lock(LOCK_ID, key))).scalar()
        except StoreError:
            self.release()
            raise
        except SQLAlchemyError as error:
            self.release()
            cause = getattr(error, "orig", None) or error
            raise explain(cause, "the database") or StoreError(
                f"the database cannot be locked for writing: {cause}"
            ) from error
        if not taken:
            self.release()
            raise StoreBusyError(
                f"the database is being written by another run ({last_writer}); "
                "wait for it, stop it, or use another database"
            )

    def release(self) -> None:
        """Let go of it; harmless when it is not held."""
        if self._held is not None:
            self._held.close()
            self._held = None
