"""Databases: how SQLite files and PostgreSQL addresses are opened, what their errors mean, and who may write.

Everything that is particular to one of the two is here.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from filelock import FileLock, Timeout
from sqlalchemy import URL, Text, create_engine, delete, event, func, insert, make_url, select, type_coerce, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from pairscale.core.errors import (
    MissingExtraError,
    StoreBusyError,
    StoreConnectionError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreGoneError,
    StoreReadOnlyError,
)
from pairscale.core.files import TABLE_SUFFIXES
from pairscale.core.notices import notice
from pairscale.core.tables import Values
from pairscale.store.schema import JsonText, Written, labellers, metadata, tables, write_json

if TYPE_CHECKING:
    from sqlalchemy import Select
    from sqlalchemy.engine import Connection, Engine

_BUSY_SECONDS = 30

# Rows and facts


def next_number(connection: Connection, column: Any) -> int:
    """The number of the next row: one more than the largest in a column of numbers."""
    return int(connection.execute(select(func.max(column))).scalar() or 0) + 1


def scrub_surrogates(value: Any) -> Any:
    """The same without halves of characters, which some servers send and no database takes; U+FFFD replaces them."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {scrub_surrogates(key): scrub_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [scrub_surrogates(inner) for inner in value]
    return value


def raw_rows(connection: Connection, query: Select[Any]) -> Iterator[Sequence[Any]]:
    """What a query finds, as the driver gives it: values of any type, and text that is not UTF-8."""
    driver: Any = connection.connection.driver_connection
    is_sqlite = connection.dialect.name == "sqlite"
    cursor = connection.connection.cursor()
    try:
        if is_sqlite:
            driver.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        cursor.execute(str(query.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})))
        while block := cursor.fetchmany(500):
            yield from block
    finally:
        if is_sqlite:
            driver.text_factory = str
        cursor.close()


def get_fact(connection: Connection, key: str) -> Any:
    """A fact about the file, or None.

    Raises:
        StoreDamagedError: it is not JSON.
    """
    try:
        row = connection.execute(select(metadata.c.value).where(metadata.c.key == key)).first()
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreDamagedError(f"the fact {key!r} of the run file cannot be read: {error}") from None
    return None if row is None else row.value


def set_fact(connection: Connection, key: str, value: Any) -> None:
    """Remember a fact about the file, instead of what was known before."""
    written = Written(write_json(value))
    changed = connection.execute(update(metadata).where(metadata.c.key == key).values(value=written))
    if changed.rowcount == 0:
        connection.execute(insert(metadata), [{"key": key, "value": written}])


def copy_rows(source: Connection, target: Connection) -> None:
    """Replace the rows of a run file by those of another, unchanged.

    With labellers, whose links are secret, the other one becomes private, too.
    """
    if source.execute(select(labellers.c.labeller_id).limit(1)).first():
        make_private(target.engine)
    own = {key: get_fact(target, key) for key in ("schema_version", "writer")}
    for table in reversed(tables.sorted_tables):
        target.execute(delete(table))
    for table in tables.sorted_tables:
        documents = [column.name for column in table.c if isinstance(column.type, JsonText)]
        columns = [type_coerce(c, Text).label(c.name) if c.name in documents else c for c in table.c]
        stored = source.execution_options(stream_results=True).execute(select(*columns))
        for block in stored.mappings().partitions(1_000):
            rows = [dict(row) for row in block]
            for row in rows:
                row.update({name: Written(row[name]) for name in documents if row[name] is not None})
            target.execute(insert(table), rows)
    for key, value in own.items():
        set_fact(target, key, value)


# SQLite


def open_memory() -> Engine:
    """A database that is gone with the process, for runs without a run file."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    event.listen(engine, "connect", _plain_connection)
    event.listen(engine, "begin", _begin)
    return engine


def open_file(path: Path, expected: set[str], *, write: bool) -> Engine:
    """A file with full durability: a committed answer survives a killed process and a power cut.

    Write-ahead logging lets others read while a run writes. Where the file system cannot do it (some network drives)
    the file falls back to a rollback journal, and a notice says so.

    Args:
        path: the file; with ``write``, it may be missing.
        expected: the tables that it must have; anything else is refused and left exactly as it is.
        write: whether it will be written to.

    Raises:
        StoreError: when the folder is missing, or the file is something else, or there is none to read.
    """
    if not write and not os.path.exists(path):  # noqa: PTH110 - Path.exists raises when a name is too long
        raise StoreError(f"{path}: no such run file")
    if os.path.isdir(path):  # noqa: PTH112
        raise StoreError(f"{path} is a folder; name a run file in it, such as {path / 'run.db'}")
    if not path.parent.is_dir():
        raise StoreError(f"{path}: the folder {path.parent} does not exist; create it first")
    _require_run_file(path, expected, write=write)
    if write:
        create_private(path)
    arguments = {"timeout": _BUSY_SECONDS, "check_same_thread": False}
    engine = create_engine(URL.create("sqlite", database=str(path)), connect_args=arguments)
    is_reported = False

    def configure(connection: Any, _record: Any) -> None:
        nonlocal is_reported
        _plain_connection(connection, _record)
        if not write:
            return
        mode = _write_ahead(connection)
        connection.execute("PRAGMA synchronous=FULL")
        if mode != "wal" and not is_reported:
            is_reported = True
            notice(f"{path}: this file system has no write-ahead logging; readers may have to wait")

    event.listen(engine, "connect", configure)
    event.listen(engine, "begin", _begin)
    return engine


def _write_ahead(connection: Any) -> str:
    """Ask for write-ahead logging, and return the mode that there is."""
    return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])


def _plain_connection(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys=ON")
    # The driver begins no transaction for CREATE TABLE by itself, and a file half made would be no run file.
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    connection.connection.cursor().execute("BEGIN")


def _require_run_file(path: Path, expected: set[str], *, write: bool) -> None:
    """Refuse what is not a run file before anything could change it.

    Only SQLite may open the file: to close any other handle on it would, on POSIX systems, drop the locks that a writer
    in this process holds, and another process could then remove the write-ahead log under it.
    """
    if not os.path.exists(path) or (write and not path.stat().st_size):  # noqa: PTH110 - Path.exists raises
        return
    way = "name another file"
    if path.suffix.lower() in TABLE_SUFFIXES:
        way = f"`pairscale import {path} RUN --samples TEXTS` makes one of a table"
    foreign = StoreDamagedError(f"{path} is not a run file; {way} (it was left as it is)")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_NOTADB:
            raise foreign from None
        raise explain(error, str(path)) or foreign from None
    if present and not expected <= present:
        raise foreign


def save_copy(connection: Connection, target: Path) -> None:
    """Copy a database, as it is at one moment, to a file that only its owner may read."""
    create_private(target)
    with closing(sqlite3.connect(target)) as copy:
        connection.connection.driver_connection.backup(copy)  # type: ignore[union-attr]


def create_private(path: Path) -> None:
    """Make an empty file that only its owner may read, unless it is there; where it cannot, SQLite will say why."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def make_private(engine: Engine) -> bool:
    """Let only its owner read a file, and what SQLite keeps beside it: it holds, or will hold, secrets.

    Returns:
        Whether others could read it before.

    Raises:
        StoreError: when that is not possible.
    """
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return False
    changed = False
    for ending in ("", "-wal", "-shm", "-journal"):
        part = Path(f"{engine.url.database}{ending}")
        try:
            if part.stat().st_mode & 0o077:
                part.chmod(0o600)
                changed = True
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(
                f"{part} cannot be made private ({error.strerror}), and it would hold the links of labellers; "
                "use a run file of your own"
            ) from None
    return changed


# PostgreSQL

_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Settings of a connection: a server that vanishes silently is noticed within a minute, not in two hours."""


def open_address(url: str) -> Engine:
    """A database by its address.

    Raises:
        StoreError: it is no address; the message holds no part of it that may be a password.
    """
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns beside the error that it raises
    try:
        parsed = make_url(url)
        settings: Values = {}
        if parsed.drivername == "postgresql+psycopg":
            settings = {name: value for name, value in _CONNECTION.items() if name not in parsed.query}
        return create_engine(parsed, connect_args=settings)
    except ModuleNotFoundError as error:
        raise MissingExtraError("a PostgreSQL run file", "postgres") from error
    except (SQLAlchemyError, ValueError):
        pass  # which may hold a part of the password
    raise StoreError(
        f"{url.partition('://')[0]}:// is not a database address that can be used; it must look like "
        "postgresql+psycopg://user:password@host:port/database, with @ in a password as %40, : as %3A and / as %2F"
    )


def has_null(error: BaseException) -> bool:
    """Whether a write failed because of a null byte in a text, which SQLite takes and PostgreSQL does not."""
    return "cannot contain NUL" in str(error)


# What errors mean

_BUSY = (StoreBusyError, "another program is holding it; try again when it is done")
_OF_SQLITE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_FULL: (StoreFullError, "the disk is full; make room, then continue"),
    sqlite3.SQLITE_IOERR: (StoreFullError, "the disk could not be written; check space and connection, then continue"),
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_CORRUPT: (StoreDamagedError, "it is damaged; restore it from a copy, or export what can be read"),
    sqlite3.SQLITE_NOTADB: (StoreDamagedError, "it is not a run file"),
    sqlite3.SQLITE_READONLY: (
        StoreReadOnlyError,
        "it may not be written; check the file's and the folder's permissions",
    ),
    sqlite3.SQLITE_CANTOPEN: (StoreError, "it cannot be created there; check the folder's permissions"),
}
_LATE = (
    StoreConnectionError,
    "has not done what it was asked for in time; see its statement_timeout, and who locks it",
)
_OF_POSTGRES: dict[str, tuple[type[StoreError], str]] = {
    "25006": (StoreReadOnlyError, "may only be read (a replica, or set to read-only); name one that can be written"),
    "42501": (
        StoreReadOnlyError,
        "does not let this user do it; ask its owner for the right to create tables and to write",
    ),
    "53100": (StoreFullError, "has no room left on its disk; make room, then continue"),
    "57014": _LATE,
    "55P03": _LATE,
}


def explain(error: BaseException, name: str) -> StoreError | None:
    """The error of ours for an error of a driver; None when the user can do nothing about it."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        kind, advice = _OF_SQLITE.get(code & 0xFF, (StoreError, str(error)))
        return kind(f"{name}: {advice}")
    if type(error).__module__.partition(".")[0] != "psycopg":
        return None
    state = getattr(error, "sqlstate", None) or ""
    line = str(error).strip().partition("\n")[0].strip()
    if state in _OF_POSTGRES:
        kind, advice = _OF_POSTGRES[state]
        return kind(f"{name} {advice}: {line}")
    is_lost = type(error).__name__ in {"OperationalError", "InterfaceError", "ConnectionTimeout"}
    if is_lost or state.startswith(("08", "53", "57P", "25P")):
        return StoreConnectionError(
            f"{name} does not answer ({line}); check that it is running, and that its address is right"
        )
    return None


# One writer at a time: locks that go with the process that holds them


def merge_log(connection: Connection) -> None:
    """Move the write-ahead log into the file, so that a copy of the file alone holds what was written."""
    driver: Any = connection.connection.driver_connection
    with suppress(sqlite3.Error):  # the next write says what is wrong with the file
        driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


class WriterLock:
    """The right to write to one run file, held until released or until the process ends, however it ends."""

    def __init__(self, run_file: Path) -> None:
        self._lock = FileLock(f"{run_file}.lock", thread_local=False)
        self._files = (str(run_file), self._lock.lock_file)
        self._identities: list[tuple[int, int] | None] = []

    def acquire(self, last_writer: str) -> None:
        """Take it at once; otherwise the error names who has it.

        Args:
            last_writer: who that is.
        """
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            raise StoreBusyError(
                f"{self._files[0]} is being written by another run ({last_writer}); wait for it, stop it, or use "
                "another run file"
            ) from None
        except OSError as error:
            raise StoreError(f"{self._files[0]} cannot be locked for writing: {error.strerror}") from None
        self._identities = list(map(_identity, self._files))

    def require(self) -> None:
        """Check that the run file and the lock file are still those that were locked, so that no other process writes.

        Raises:
            StoreGoneError: the run file was deleted, moved or replaced.
            StoreError: the lock file was.
        """
        now = list(map(_identity, self._files))
        if now == self._identities:
            return
        if now[0] != self._identities[0]:
            raise StoreGoneError(
                f"{self._files[0]} was deleted, moved or replaced while the run was writing to it; put it back, or "
                "restore it from a copy, and run it again"
            )
        raise StoreError(
            f"{self._files[1]} was deleted or replaced while the run was writing, so that another run could "
            "write, too; this one stops, and what it had written before is kept. Leave it alone, and run it again"
        )

    def release(self) -> None:
        """Let go of it; harmless when it is not held."""
        self._lock.release()


def _identity(path: str) -> tuple[int, int] | None:
    """What distinguishes a file from another of the same name; None when there is no file."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - after every transaction: no work but the look
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


_LOCK_ID = 0x70616972  # tells the lock of a run from those of other programs in the same database


class DatabaseLock:
    """The same for a run in a PostgreSQL database: an advisory lock of the schema, which goes with its connection."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._held: Connection | None = None

    def acquire(self, last_writer: str) -> None:
        """Take it at once; otherwise the error names who has it."""
        try:
            held = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            self._held = held
            held.detach()  # to close it is to end it
            key = crc32(str(held.execute(select(func.current_schema())).scalar()).encode()) >> 1
            is_taken = held.execute(select(func.pg_try_advisory_lock(_LOCK_ID, key))).scalar()
        except SQLAlchemyError as error:
            self.release()
            cause = getattr(error, "orig", None) or error
            raise explain(cause, "the database") or StoreError(
                f"the database cannot be locked for writing: {cause}"
            ) from error
        if not is_taken:
            self.release()
            raise StoreBusyError(
                f"the database is being written by another run ({last_writer}); "
                "wait for it, stop it, or use another database"
            )

    def require(self) -> None:
        """Nothing to check: the lock goes with its connection."""

    def release(self) -> None:
        """Let go of it; harmless when it is not held."""
        if self._held is None:
            return
        with suppress(SQLAlchemyError):  # of a connection that was lost; else the server lets go of it somewhat later
            self._held.execute(select(func.pg_advisory_unlock_all()))
        self._held.close()
        self._held = None
