"""The file of labels: one SQLite database, where a click is durable before the next page is shown."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairscale._version import __version__
from pairscale.errors import StoreDamagedError, StoreError
from pairscale.provenance import utc_now
from pairscale.store._sqlite import explain

__all__ = ["Database"]

_VERSION = 1
_BUSY_SECONDS = 30
_SCHEMA = """
CREATE TABLE label_facts (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE labellers (
    labeller_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, token TEXT NOT NULL UNIQUE, joined_at TEXT NOT NULL
);
CREATE TABLE cases (  -- n_labels counts standing labels, without skips
    number INTEGER PRIMARY KEY, case_id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, criterion TEXT NOT NULL,
    digest TEXT NOT NULL, n_labels INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE questions (  -- a case before a labeller; while it is held, nobody else gets the label that is missing
    question_id INTEGER PRIMARY KEY, labeller_id INTEGER NOT NULL REFERENCES labellers, number INTEGER NOT NULL
    REFERENCES cases, turned INTEGER NOT NULL, shown_at REAL NOT NULL, held_until REAL NOT NULL,
    done INTEGER NOT NULL DEFAULT 0, UNIQUE (labeller_id, number)
);
CREATE INDEX held ON questions (number, held_until) WHERE done = 0;
CREATE TABLE labels (  -- in the manifest's order; an undone one stays, with the time
    label_id INTEGER PRIMARY KEY, question_id INTEGER NOT NULL REFERENCES questions,
    preferred TEXT CHECK (preferred IN ('1', '2', 'tie')), skipped TEXT, comment TEXT, decision_ms INTEGER NOT NULL,
    labelled_at TEXT NOT NULL, undone_at TEXT, CHECK ((preferred IS NULL) <> (skipped IS NULL))
);
CREATE UNIQUE INDEX one_standing_label ON labels (question_id) WHERE undone_at IS NULL;
"""


class Database:
    """One connection, used in turns; several processes may have the file open.

    Args:
        path: the file; made when it is missing, readable by its owner alone, because it holds the links.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turn = threading.RLock()
        if path.is_dir():
            raise StoreError(f"{path} is a folder; name a file for the labels")
        if not path.parent.is_dir():
            raise StoreError(f"{path}: the folder {path.parent} does not exist; create it first")
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise StoreError(f"{path} cannot be opened: {error.strerror}") from None
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        try:
            with self._told():
                self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close it."""
        with self._turn:
            self._connection.close()

    def _prepare(self) -> None:
        names = {row["name"] for row in self._connection.execute("SELECT name FROM sqlite_master")}
        if names and "label_facts" not in names:
            raise self._foreign()
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        with self.transaction() as connection:  # the check again: another process may have been faster
            if not list(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'label_facts'")):
                for statement in filter(str.strip, _SCHEMA.split(";\n")):
                    connection.execute(statement)
                self.set_fact("version", _VERSION)
                self.set_fact("created", f"pairscale {__version__}, {utc_now()}")
        if (version := self.fact("version")) != _VERSION:
            raise StoreDamagedError(
                f"{self.path} is a file of labels of version {version}, this pairscale knows {_VERSION}; "
                "use the version of pairscale that wrote it"
            )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, and on the disk when the block has ended; nobody writes in between."""
        with self._turn, self._told():
            if self._is_inside():  # part of a larger one
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._is_inside():
                    self._connection.execute("ROLLBACK")
                raise

    def _is_inside(self) -> bool:
        return self._connection.in_transaction

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """What a query finds."""
        with self._turn, self._told():
            return self._connection.execute(query, values).fetchall()

    def fact(self, key: str) -> Any:
        """A fact about the file, or None."""
        found = self.rows("SELECT value FROM label_facts WHERE key = ?", key)
        return json.loads(found[0]["value"]) if found else None

    def set_fact(self, key: str, value: Any) -> None:
        """Remember a fact, instead of what was known before."""
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO label_facts VALUES (?, ?)", (key, json.dumps(value)))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Failures of the database in words."""
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
                raise self._foreign() from None
            raise explain(error, str(self.path)) or StoreError(f"{self.path}: {error}") from error

    def _foreign(self) -> StoreError:
        return StoreDamagedError(f"{self.path} is not a file of labels; name another one (it was left as it is)")
