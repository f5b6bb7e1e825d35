"""One writer at a time: a lock that the operating system lets go of when its holder dies."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from pairscale.core.errors import StoreBusyError, StoreError
from pairscale.store._postgres import LOCK_ID, explain, require_sessions, schema_key
from pairscale.store._sqlite import identity

if TYPE_CHECKING:
    from collections.abc import Mapping
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
        self._identity: tuple[int, int] | None = None

    def acquire(self, last_writer: str, holder: Mapping[str, Any] | None = None) -> None:
        """Take it at once or say who has it.

        Args:
            last_writer: who that is, in words.
            holder: what :meth:`holder` of a run gave that has not closed the file; it may have been killed.
        """
        busy = StoreBusyError(
            f"{self._run_file} is being written by another run ({last_writer}); "
            "wait for it, stop it, or use another run file"
        )
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            raise busy from None
        except OSError as error:
            raise StoreError(f"{self._run_file} cannot be locked for writing: {error.strerror}") from None
        self._identity = identity(self._lock.lock_file)
        if isinstance(holder, dict) and self._is_still_held(holder):
            raise busy

    def holder(self) -> dict[str, Any]:
        """This process, the run file and the lock file, for another one that finds the lock file gone."""
        return {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "file": identity(str(self._run_file)),
            "lock": self._identity,
        }

    def _is_still_held(self, holder: Mapping[str, Any]) -> bool:
        """Whether a run still writes to this very file under a lock file that was deleted or replaced."""
        if os.name != "posix":  # elsewhere a file that is locked cannot be deleted
            return False
        now = self.holder()
        is_other_file = holder.get("file") != list(now["file"] or ())
        is_same_lock = holder.get("lock") == list(now["lock"] or ())
        if is_other_file or is_same_lock or holder.get("host") != now["host"] or holder.get("pid") == now["pid"]:
            return False
        try:
            os.kill(holder["pid"], 0)
        except PermissionError:  # it lives, and belongs to somebody else
            return True
        except (ProcessLookupError, LookupError, TypeError, OverflowError):
            return False
        return True

    def require(self) -> None:
        """Check that the lock file is still the one that was locked, so that no other process can write.

        Raises:
            StoreError: it was deleted or replaced.
        """
        if identity(self._lock.lock_file) != self._identity:
            raise StoreError(
                f"{self._lock.lock_file} was deleted or replaced while the run was writing, so that another run could "
                f"write to {self._run_file} too; this one stops, and what it had written before is kept. Leave the "
                "lock file alone, and run it again"
            )

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

    def acquire(self, last_writer: str, _holder: object = None) -> None:
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
