"""All that is particular to PostgreSQL: what its errors mean, its connections, and its advisory locks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zlib import crc32

from sqlalchemy import func, select

from pairscale.core.errors import StoreConnectionError, StoreError, StoreFullError, StoreReadOnlyError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["LOCK_ID", "explain", "has_null", "require_sessions", "schema_key"]

LOCK_ID = 0x70616972
"""What tells the lock of a run from those of other programs in the same database."""

_PASSING = re.compile(
    r"starting up|shutting down|recovery|not yet accepting|terminating connection"
    r"|cannot connect|login (has|failed)|_timeout"
)
"""What a server, or a pooler before it, says when it refuses a connection now that it would take later."""
_NO_PLACE = re.compile(r"too many (clients|connections)|connection slots|no more connections")
_NO_HOST = re.compile(r"resolve host|translate host name")
_ADVICE: dict[str, tuple[type[StoreError], str]] = {
    "25006": (StoreReadOnlyError, "may only be read (a replica, or set to read-only); name one that can be written"),
    "42501": (
        StoreReadOnlyError,
        "does not let this user do it; ask its owner for the right to create tables and to write",
    ),
    "53100": (StoreFullError, "has no room left on its disk; make room, then continue"),
    "53300": (StoreConnectionError, "has no connection left; raise its max_connections"),
    "53200": (StoreFullError, "has no memory left; make room, then continue"),
} | dict.fromkeys(
    ("57014", "55P03", "40001", "40P01"),
    (StoreConnectionError, "has not done what it was asked for in time; see its statement_timeout, and who locks it"),
)


def schema_key(connection: Connection) -> int:
    """A number for the schema that a connection uses, for advisory locks."""
    return crc32(str(connection.execute(select(func.current_schema())).scalar()).encode()) >> 1


def require_sessions(held: Connection, other: Connection) -> None:
    """Refuse a pooler that gives each transaction another session: locks would be held for somebody else.

    Args:
        held: the connection that is to hold locks, each statement a transaction.
        other: another one, which a pooler gives what the first one has just left.

    Raises:
        StoreError: that says what to change.
    """
    mine = select(func.pg_backend_pid())
    before = held.execute(mine).scalar()
    with other.begin():
        if other.execute(mine).scalar() == before or held.execute(mine).scalar() != before:
            raise StoreError(
                "the database is behind a connection pooler that pools transactions, and the locks of a run need "
                "sessions; let it pool sessions (pool_mode = session), or connect to the server itself"
            )


def has_null(error: BaseException) -> bool:
    """Whether a write failed because of a null byte in a text, which SQLite takes and PostgreSQL does not."""
    return "cannot contain NUL" in str(error)


def explain(error: BaseException, name: str) -> StoreError | None:
    """An error of the driver in words, or None when it is not one that a user can do something about."""
    if type(error).__module__.partition(".")[0] != "psycopg":
        return None
    code = getattr(error, "sqlstate", None) or ""
    said = str(error).strip()
    line = said.partition("\n")[0].strip()
    if _NO_PLACE.search(said):
        code = "53300"
    if code in _ADVICE:
        kind, advice = _ADVICE[code]
        return kind(f"{name} {advice}: {line}")
    if "FATAL:" in said and not _PASSING.search(said):
        return StoreError(f"{name} cannot be opened: {said.partition('FATAL:')[2].strip().partition(chr(10))[0]}")
    if _NO_HOST.search(said):
        return StoreError(f"{name} has an address without a server ({line}); check its host")
    is_lost = type(error).__name__ in {"OperationalError", "InterfaceError", "ConnectionTimeout"}
    if is_lost or code.startswith(("08", "57P", "25P")):
        return StoreConnectionError(
            f"{name} does not answer ({line}); check that it is running, and that its address is right"
        )
    return None
