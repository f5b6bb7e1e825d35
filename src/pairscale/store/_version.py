"""The version of a run file: a new one gets it, and any other is refused in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import inspect

from pairscale._version import __version__
from pairscale.core.errors import StoreDamagedError
from pairscale.core.provenance import utc_now
from pairscale.core.tables import listed
from pairscale.store.database import get_fact, set_fact
from pairscale.store.schema import SCHEMA_VERSION, tables

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["MARKS", "check_version"]

MARKS = {"metadata", "items", "pairs", "attempts"}
"""The tables by which a run file of any version is known."""


def check_version(connection: Connection, name: str, *, create: bool) -> None:
    """Refuse a database that is not a run file of this version.

    Args:
        connection: of the database.
        name: what a message calls it.
        create: make an empty database a run file.

    Raises:
        StoreDamagedError: it is something else, of another version, or not whole.
    """
    present = set(inspect(connection).get_table_names())
    if not present and create:
        tables.create_all(connection)
        set_fact(connection, "schema_version", SCHEMA_VERSION)
        set_fact(connection, "created_by", f"pairscale {__version__}")
        set_fact(connection, "created_at", utc_now())
        return
    if not present >= MARKS:
        raise StoreDamagedError(f"{name} is a database but not a run file; name another file")
    version = get_fact(connection, "schema_version")
    if version in (1, 2):
        raise StoreDamagedError(
            f"{name} was written by pairscale 0.1, whose run files this version does not read; use a new run file"
        )
    if version != SCHEMA_VERSION:
        raise StoreDamagedError(
            f"{name} has schema version {version}, and this pairscale reads {SCHEMA_VERSION} alone; "
            "use the version of pairscale that wrote it"
        )
    if missing := tables.tables.keys() - present:
        raise StoreDamagedError(f"{name} lacks {listed(sorted(missing))}; restore it from a copy")
