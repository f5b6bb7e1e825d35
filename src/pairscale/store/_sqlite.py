"""All that is particular to SQLite: how a file is opened safely, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, create_engine, event
from sqlalchemy.pool import StaticPool

from pairscale.core.errors import StoreBusyError, StoreDamagedError, StoreError, StoreFullError, StoreReadOnlyError
from pairscale.core.files import TABLE_SUFFIXES
from pairscale.core.notices import notice

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

__all__ = [
    "BUSY_SECONDS", "any_text", "checkpoint", "create_private", "explain", "identity", "make_private", "open_file",
    "open_memory", "save_copy", "set_patience",
]  # fmt: skip

BUSY_SECONDS = 30


def open_memory(**options: Any) -> Engine:
    """A database that is gone with the process, for runs without a run file."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}, **options)
    event.listen(engine, "connect", _plain_connection)
    event.listen(engine, "begin", _begin)
    return engine


def open_file(path: Path, expected: set[str], *, write: bool, **options: Any) -> Engine:
    """A file with full durability: a committed answer survives a killed process and a power cut.

    Write-ahead logging lets others read while a run writes. Where the file system cannot do it (some network drives)
    the file falls back to a rollback journal, and that is said.

    Args:
        path: the file; with ``write``, it may be missing.
        expected: the tables that it must have; anything else is refused and left exactly as it is.
        write: whether it will be written to.
        **options: of the engine.

    Raises:
        StoreError: when the folder is missing, or the file is something else, or there is none to read.
    """
    try:
        is_there = path.exists()
        is_folder = path.is_dir()
    except OSError as error:  # a name that is too long
        raise StoreError(f"{path} cannot be opened: {error.strerror}") from None
    if not write and not is_there:
        raise StoreError(f"{path}: no such run file")
    if is_folder:
        raise StoreError(f"{path} is a folder; name a run file in it, such as {path / 'run.db'}")
    if not path.parent.is_dir():
        raise StoreError(f"{path}: the folder {path.parent} does not exist; create it first")
    _check(path, expected, write=write)
    if write:
        create_private(path)
    arguments = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    engine = create_engine(URL.create("sqlite", database=str(path)), connect_args=arguments, **options)

    def configure(connection: Any, _record: Any) -> None:
        _plain_connection(connection, _record)
        if not write:
            return
        mode = _write_ahead(connection)
        connection.execute("PRAGMA synchronous=FULL")
        if mode != "wal" and not told:
            told.append(notice(f"{path}: this file system has no write-ahead logging; readers may have to wait"))

    told: list[str] = []
    event.listen(engine, "connect", configure)
    event.listen(engine, "begin", _begin)
    return engine


def save_copy(connection: Connection, target: Path) -> None:
    """Copy a database, as it is at one moment, to a file that only its owner may read."""
    create_private(target)
    with closing(sqlite3.connect(target)) as copy:
        connection.connection.driver_connection.backup(copy)  # type: ignore[union-attr]


def create_private(path: Path) -> None:
    """Make an empty file that only its owner may read, unless it is there; where it cannot, SQLite will say why."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def checkpoint(connection: Connection) -> bool:
    """Move the write-ahead log into the file, so that the file alone holds everything; whether all of it was moved."""
    driver: Any = connection.connection.driver_connection
    try:
        _, logged, moved = driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error:  # the next write says what is wrong with the file
        return False
    return bool(logged == moved)


@contextmanager
def any_text(connection: Connection) -> Iterator[None]:
    """Inside the block, text that is not UTF-8 is read, too; its bytes become single surrogates."""
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name != "sqlite":
        yield
        return
    driver.text_factory = _decoded
    try:
        yield
    finally:
        driver.text_factory = str


def set_patience(connection: Connection, seconds: float) -> None:
    """Wait so long for another program that holds the file."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.execute(f"PRAGMA busy_timeout={seconds * 1e3:.0f}")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _write_ahead(connection: Any) -> str:
    """Ask for write-ahead logging, and return the mode that there is."""
    return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])


def _plain_connection(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys=ON")
    # The driver begins no transaction for CREATE TABLE by itself, and a file half made would be no run file.
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    connection.connection.cursor().execute("BEGIN")


def make_private(engine: Engine) -> bool:
    """Let only its owner read a file, and what SQLite keeps beside it: it holds, or will hold, secrets.

    Returns:
        Whether others could read it before.

    Raises:
        StoreError: when that is not possible.
    """
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return False
    path = Path(engine.url.database)
    changed = False
    for part in (path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal"))):
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


def _check(path: Path, expected: set[str], *, write: bool) -> None:
    """Refuse what is not a run file before anything could change it.

    Only SQLite may open the file: to close any other handle on it would, on POSIX systems, drop the locks that a writer
    in this process holds, and another process could then remove the write-ahead log under it.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}") from None
    if not size and write:
        return
    is_table = path.suffix.lower() in TABLE_SUFFIXES
    way = (
        "`pairscale fit`, `bias`, `report` and `export` take tables of results, and "
        f"`pairscale import {path} RUN --samples TEXTS` makes a run file of one"
        if is_table
        else "name another file"
    )
    foreign = StoreDamagedError(f"{path} is not a run file; {way} (it was left as it is)")
    if not size:
        raise foreign
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_NOTADB:
            raise foreign from None
        raise explain(error, str(path)) or foreign from None
    if found and not expected <= found:
        raise foreign


_MEANINGS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_FULL: (StoreFullError, "the disk is full; make room, then continue"),
    sqlite3.SQLITE_IOERR: (StoreFullError, "the disk could not be written; check space and connection, then continue"),
    sqlite3.SQLITE_BUSY: (StoreBusyError, "another program is holding it; try again when it is done"),
    sqlite3.SQLITE_LOCKED: (StoreBusyError, "another program is holding it; try again when it is done"),
    sqlite3.SQLITE_CORRUPT: (StoreDamagedError, "it is damaged; restore it from a copy, or export what can be read"),
    sqlite3.SQLITE_NOTADB: (StoreDamagedError, "it is not a run file"),
    sqlite3.SQLITE_READONLY: (
        StoreReadOnlyError,
        "it may not be written; check the file's and the folder's permissions",
    ),
    sqlite3.SQLITE_CANTOPEN: (StoreError, "it cannot be created there; check the folder's permissions"),
}


def explain(error: BaseException, name: str) -> StoreError | None:
    """A database error in words, or None when it is not one that a user can do something about."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    kind, advice = _MEANINGS.get(code & 0xFF, (StoreError, str(error)))
    return kind(f"{name}: {advice}")


def identity(path: str) -> tuple[int, int] | None:
    """What tells a file from another of the same name; None when there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - after every transaction: no work but the look
    except OSError:
        return None
    return found.st_dev, found.st_ino
