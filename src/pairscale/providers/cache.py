"""Answers that were paid for once are not paid for again: one file of replies, across runs.

A reply is found by a digest of what was asked: provider, address, path, body, and which repeat of the question it is.
A question that one run asks three times has three answers of its own, and another run that asks it three times finds
those three, in their order. The prompts themselves, keys and headers are not kept; replies are, without keys.

The file is an SQLite database that many processes may use at once. It only ever saves money: when it cannot be read or
written, that is said once, and the work continues without it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from pairscale.core.errors import InputError
from pairscale.core.home import home_folder
from pairscale.core.notices import notice
from pairscale.core.provenance import utc_now
from pairscale.providers.client import Exchange, LLMClient

if TYPE_CHECKING:
    from pairscale.providers.base import HTTPCall, LLMRequest

__all__ = ["AnswerCache", "CacheMode", "Kept", "Memory", "cache_file", "call_key", "is_deterministic"]

CacheMode: TypeAlias = "bool | str | os.PathLike[str]"
"""``"auto"``, True, False, or the file to use."""

_APPLICATION = 0x70734143  # marks the file as ours
_VERSION = 1
_TABLE = """CREATE TABLE answers (
    key TEXT PRIMARY KEY, body TEXT NOT NULL, status INTEGER NOT NULL, asked_at TEXT NOT NULL
) WITHOUT ROWID"""
_PATIENCE_S = 0.2  # for another process that writes; everybody who asks waits meanwhile


def cache_file() -> Path:
    """The user's file of answers; it need not exist."""
    return home_folder("cache") / "answers.db"


def call_key(client: LLMClient, call: HTTPCall, repeat: str) -> str:
    """The digest that a reply is found by.

    Args:
        client: who asks: its provider, its address and its headers, those that may hold a secret left out.
        call: what is asked.
        repeat: which time this is, when the same is asked several times; equal names share an answer.
    """
    asked = [
        _VERSION, client.provider.name, client.base_url, call.method, call.path, call.body,
        {**call.headers, **client.open_headers}, repeat,
    ]  # fmt: skip
    text = json.dumps(asked, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def is_deterministic(body: Mapping[str, Any]) -> bool:
    """Whether a request asks for temperature 0, wherever its provider writes that."""
    for place in (body, body.get("generationConfig"), body.get("options")):
        if isinstance(place, Mapping) and "temperature" in place:
            return bool(place["temperature"] == 0)
    return False


@cache
def _is_this_machine(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host in {"localhost", "::1", "0.0.0.0"} or host.startswith("127.") or host.endswith(".localhost")  # noqa: S104


@dataclass(frozen=True, slots=True)
class Kept:
    """A reply that was kept.

    Attributes:
        body: the reply, as its provider sent it.
        status: of HTTP.
        asked_at: when it came.
    """

    body: Any
    status: int
    asked_at: str


class AnswerCache:
    """A file of replies, made when the first one is kept.

    Args:
        path: the file; by default the user's, see :func:`cache_file`.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, AnswerCache(Path(folder) / "answers.db") as answers:
        ...     answers.keep("a" * 64, {"text": "SAMPLE_1"}, 200)
        ...     print(answers.find("a" * 64).body, answers.find("b" * 64), answers.count())
        {'text': 'SAMPLE_1'} None 1
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = cache_file() if path is None else Path(path).expanduser()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # which one the connection is of
        self._is_broken = False

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<AnswerCache at {self.path}>"

    def find(self, key: str) -> Kept | None:
        """The reply under a key; None when there is none, or the file cannot be read."""
        row = None
        with self._open() as connection:
            if connection is not None:
                query = "SELECT body, status, asked_at FROM answers WHERE key = ?"
                row = connection.execute(query, (key,)).fetchone()
        try:
            return None if row is None else Kept(json.loads(row[0]), int(row[1]), str(row[2]))
        except (ValueError, TypeError):  # somebody else wrote into the file
            return None

    def keep(self, key: str, body: Any, status: int) -> None:
        """Keep a reply, in place of one that is there already: that one could not be used."""
        try:
            text = json.dumps(body, ensure_ascii=True, separators=(",", ":"))
        except (TypeError, ValueError):
            return
        with self._open(make=True) as connection:
            if connection is not None:
                values = (key, text, status, utc_now())
                connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", values)

    def count(self) -> int:
        """How many replies there are."""
        with self._open() as connection:
            if connection is not None:
                return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])
        return 0

    def size(self) -> int:
        """How many bytes the file has, with what SQLite keeps beside it."""
        return sum(path.stat().st_size for path in self._files() if path.is_file())

    def clear(self) -> None:
        """Forget everything: the file is removed.

        Raises:
            InputError: when it is no file of answers, or may not be removed.
        """
        self.close()
        if self.path != cache_file() and self.path.is_file() and not self._is_ours():
            raise InputError(f"{self.path} is no file of answers; it is left as it is")
        try:
            for path in self._files():
                path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{self.path} cannot be removed: {error.strerror or error}") from None
        self._is_broken = False

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _files(self) -> list[Path]:
        return [self.path.with_name(self.path.name + ending) for ending in ("-wal", "-shm", "")]

    def _is_ours(self) -> bool:
        """Whether the file says so at its start, also when the rest of it is damaged.

        SQLite reads it: to close any other handle would drop the locks of others in this process who use the file.
        """
        if not self.path.stat().st_size:
            return True
        try:
            with closing(sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                return bool(connection.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION)
        except sqlite3.Error:
            return False

    @contextmanager
    def _open(self, *, make: bool = False) -> Iterator[sqlite3.Connection | None]:
        """The connection, for one thread at a time; None when there is no file, or it cannot be used."""
        with self._lock:
            if make and self._connection is not None and self._file_now() != self._file:
                self._connection.close()  # somebody has cleared it
                self._connection = None
            try:
                if self._connection is None and not self._is_broken and (make or self.path.is_file()):
                    self._connection = self._connected()
            except (sqlite3.Error, OSError) as error:
                self._go_without(error)
            try:
                yield None if self._is_broken else self._connection
            except sqlite3.Error as error:
                self._go_without(error)

    def _go_without(self, error: Exception) -> None:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return  # another process was in the way for too long: that passes
        self._is_broken = True
        advice = "; `pairscale doctor --clear-cache` begins a new one" if self.path == cache_file() else ""
        notice(f"continuing without the answer cache {self.path}: {error}{advice}")

    def _connected(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self.path.touch(mode=0o600)  # replies may quote what was judged
        connection = sqlite3.connect(
            self.path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False, cached_statements=8
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._file = self._file_now()
        return connection

    def _file_now(self) -> tuple[int, int] | None:
        """What tells the file that is there now from another one of the same name; None when there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the table, once and for all processes that begin at the same time."""
        connection.execute("BEGIN")
        if not self._is_made(connection):
            connection.execute("ROLLBACK")
            connection.execute("BEGIN IMMEDIATE")
            if not self._is_made(connection):
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
        # Replies are many and small, and losing the last of them in a power cut costs little.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")

    def _is_made(self, connection: sqlite3.Connection) -> bool:
        """Whether the file has its table; False when it is empty.

        Raises:
            sqlite3.DatabaseError: when it holds something else.
        """
        marks = tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        if marks == (_APPLICATION, _VERSION):
            return True
        if any(marks) or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise sqlite3.DatabaseError("it is another kind of file")
        return False


class Memory:
    """What a client need not ask again.

    Args:
        client: who asks.
        mode: True remembers every answer, False none; ``auto`` those to requests with temperature 0, and not those of
            a server on this machine, which costs nothing and may serve another model tomorrow. Anything else is the
            file to use, for every answer.

    Raises:
        InputError: when the mode is none of these.
    """

    def __init__(self, client: LLMClient, mode: CacheMode = "auto") -> None:
        if not isinstance(mode, bool | str | os.PathLike) or mode == "":
            raise InputError(f"cache must be 'auto', True, False or a file, not {mode!r}", "cache")
        self._client, self._mode = client, mode
        by_name = isinstance(mode, bool) or mode == "auto"
        self._answers = None if mode is False else AnswerCache(None if by_name else mode)  # type: ignore[arg-type]

    @property
    def is_on(self) -> bool:
        """Whether anything may be remembered at all."""
        return self._answers is not None and not (self._mode == "auto" and _is_this_machine(self._client.base_url))

    def find(self, request: LLMRequest, repeat: str = "1") -> Exchange | None:
        """The reply of before; None when there is none.

        Args:
            request: the question.
            repeat: which time it is asked, if more than once; see :func:`call_key`.
        """
        if self._answers is None or not self.is_on:
            return None
        call = self._client.prepared(request)
        if not self._wants(call):
            return None
        # By all of it: another process does not know yet what the model does not take.
        kept = self._answers.find(call_key(self._client, self._client.wanted(request) or call, repeat))
        if kept is None:
            return None
        try:
            reply = self._client.provider.reply(call, kept.body)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):  # of another version: asked again
            return None
        return Exchange(call, reply, kept.status, 0.0, kept.asked_at)

    def keep(self, done: Exchange, repeat: str = "1") -> None:
        """Remember a reply that was read and can be used."""
        if self._answers is not None and self.is_on and self._wants(done.call):
            key = call_key(self._client, done.wanted or done.call, repeat)
            self._answers.keep(key, done.reply.raw, done.status)

    def _wants(self, call: HTTPCall) -> bool:
        return self._mode != "auto" or is_deterministic(call.body)

    def close(self) -> None:
        """Close the file."""
        if self._answers is not None:
            self._answers.close()
