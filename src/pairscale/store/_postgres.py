"""All that is particular to PostgreSQL: what its errors mean, and its advisory locks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zlib import crc32

from sqlalchemy import func, select

from pairscale.core.errors import StoreConnectionError, StoreError, StoreFullError, StoreReadOnlyError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["LOCK_ID", "explain", "schema_key"]

LOCK_ID = 0x70616972
"""What tells the lock of a run from those of other programs in the same database."""

_STARTING = re.compile(r"starting up|shutting down|recovery|terminating connection")
_NO_HOST = re.compile(r"resolve host|translate host name")
_ADVICE: dict[str, tuple[type[StoreError], str]] = {
    "25006": (StoreReadOnlyError, "may only be read (a replica, or set to read-only); name one that can be written"),
    "42501": (
        StoreReadOnlyError,
        "does not let this user do it; ask its owner for the right to create tables and to write",
    ),
    "53100": (StoreFullError, "has no room left on its disk; make room, then continue"),
    "53300": (StoreConnectionError, "has no connection left; raise max_connections, or start fewer workers"),
}


def schema_key(connection: Connection) -> int:
    """A number for the schema that a connection uses, for advisory locks."""
    return crc32(str(connection.execute(select(func.current_schema())).scalar()).encode()) >> 1


def explain(error: BaseException, name: str) -> StoreError | None:
    """An error of the driver in words, or None when it is not one that a user can do something about."""
    if type(error).__module__.partition(".")[0] != "psycopg":
        return None
    code, said = getattr(error, "sqlstate", None) or "", str(error).strip()
    line = said.partition("\n")[0].strip()
    if code in _ADVICE:
        kind, advice = _ADVICE[code]
        return kind(f"{name} {advice}: {line}")
    if "FATAL:" in said and not _STARTING.search(said):
        return StoreError(f"{name} cannot be opened: {said.partition('FATAL:')[2].strip().partition(chr(10))[0]}")
    if _NO_HOST.search(said):
        return StoreError(f"{name} has an address without a server ({line}); check its host")
    is_lost = type(error).__name__ in {"OperationalError", "InterfaceError", "AdminShutdown", "CrashShutdown"}
    if is_lost or code.startswith(("08", "57P")):
        return StoreConnectionError(
            f"{name} does not answer ({line}); check that it is running, and that its address is right"
        )
    return None
