"""Answers that were paid for once are not paid for again: one file of replies, across runs.

A reply is found by a digest of what was asked: provider, address, path, body, and which repeat of the question it is.
A question that one run asks three times has three answers of its own, and another run that asks it three times finds
those three, in their order. The prompts themselves, keys and headers are not kept; replies are, without keys.

The file is an SQLite database that many processes may use at once. When it cannot be read or written, a notice
says so once, and the work continues without it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from pairscale.core.errors import InputError
from pairscale.core.home import home_folder
from pairscale.core.notices import notice
from pairscale.core.options import FilePath
from pairscale.core.provenance import utc_now

if TYPE_CHECKING:
    from pairscale.providers.base import HTTPCall
    from pairscale.providers.client import LLMClient


CacheMode: TypeAlias = "bool | FilePath"
"""``"auto"``, True, False, or the file to use."""

_APPLICATION = 0x70734143  # marks the file as ours
_VERSION = 1
_TABLE = """CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, body TEXT NOT NULL, status INTEGER NOT NULL, asked_at TEXT NOT NULL
) WITHOUT ROWID"""
_LOCK_TIMEOUT_S = 0.2  # for another process that writes; all questions wait meanwhile


def cache_file() -> Path:
    """The user's file of answers; it need not exist."""
    return home_folder("cache") / "answers.db"


def call_key(client: LLMClient, call: HTTPCall, repeat: str) -> str:
    """The digest under which a reply is kept.

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


def _is_this_machine(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host in {"localhost", "::1", "0.0.0.0"} or host.startswith("127.") or host.endswith(".localhost")  # noqa: S104


class Kept(NamedTuple):
    """A reply that was kept: as its provider sent it, its status of HTTP, and when it came."""

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

    def __init__(self, path: FilePath | None = None) -> None:
        self.path = cache_file() if path is None else Path(path).expanduser()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._is_broken = False

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def find(self, key: str) -> Kept | None:
        """The reply under a key; None when there is none, or the file cannot be read."""
        for body, status, asked_at in self._run("SELECT body, status, asked_at FROM answers WHERE key = ?", key):
            return Kept(json.loads(body), status, asked_at)
        return None

    def keep(self, key: str, body: Any, status: int) -> None:
        """Keep a reply, in place of one that is there already: that one could not be used."""
        text = json.dumps(body, separators=(",", ":"))
        self._run("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", key, text, status, utc_now(), make=True)

    def count(self) -> int:
        """How many replies there are."""
        rows = self._run("SELECT count(*) FROM answers")
        return int(rows[0][0]) if rows else 0

    def size(self) -> int:
        """How many bytes the file has, with what SQLite keeps beside it."""
        return sum(path.stat().st_size for path in self._files() if path.is_file())

    def clear(self) -> None:
        """Forget everything: the file is removed."""
        self.close()
        for path in self._files():
            path.unlink(missing_ok=True)
        self._is_broken = False

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _files(self) -> list[Path]:
        return [self.path.with_name(self.path.name + ending) for ending in ("-wal", "-shm", "")]

    def _run(self, statement: str, *values: Any, make: bool = False) -> list[Any]:
        """The rows of a statement; none when there is no file, or it cannot be used, with one notice."""
        with self._lock:
            if self._is_broken or not (make or self._connection or self.path.is_file()):
                return []
            try:
                if self._connection is None:
                    self._connection = self._connected()
                return self._connection.execute(statement, values).fetchall()
            except (sqlite3.Error, OSError) as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                    return []  # another process was in the way for too long: that passes
                self._is_broken = True
                advice = "; `pairscale doctor --clear-cache` begins a new one" if self.path == cache_file() else ""
                notice(f"continuing without the answer cache {self.path}: {error}{advice}")
                return []

    def _connected(self) -> sqlite3.Connection:
        """The file, made when it is not there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            self.path.touch(mode=0o600, exist_ok=False)  # replies may quote what was judged
        connection = sqlite3.connect(self.path, timeout=_LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            if connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
                connection.executescript(f"BEGIN IMMEDIATE; {_TABLE}; PRAGMA application_id = {_APPLICATION}; COMMIT")
            elif connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
                raise sqlite3.DatabaseError("it is another kind of file")
            # Replies are many and small, and losing the last of them in a power cut costs little.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection


def open_cache(mode: CacheMode, base_url: str) -> AnswerCache | None:
    """The file of answers for a server; None when none are kept.

    Args:
        mode: True keeps every answer, False none; ``auto`` those to requests with temperature 0, and not those of a
            server on this machine, which costs nothing and may serve another model tomorrow. Anything else is the file
            to use, for every answer.
        base_url: where the server is.

    Raises:
        InputError: when the mode is none of these.
    """
    if not isinstance(mode, bool | str | os.PathLike) or mode == "":
        raise InputError(f"cache must be 'auto', True, False or a file, not {mode!r}", "cache")
    if mode is False or (mode == "auto" and _is_this_machine(base_url)):
        return None
    return AnswerCache() if mode is True or mode == "auto" else AnswerCache(mode)
