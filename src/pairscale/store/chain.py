"""The hash chain of a run file: every row that is evidence is in it, from the transaction that wrote it.

The table ``chain`` has one entry per transaction. Its ``data`` is JSON: ``at``, the time, and ``rows``, which has for
every part of a table (:data:`pairscale.store._hashes.PARTS`) a list of rows, each as its key and its hash; null stands
for a row that was removed. Its ``hash`` is the SHA-256 of the hash of the entry before (for the first entry: the name
of the chain, ``main``) followed by ``data``.

Nothing in a chain is ever rewritten: a comparison that replaces another, a label that is taken back or a fact that
changes is a further entry. When a run file is closed, an entry ``closed`` holds the number of entries and the last hash
before it, and the digest over them. A process that is killed leaves no such entry, and a chain that is valid as far
as it goes.

A chain finds rows that were changed, added or removed without recomputing it. It does not find a file all of whose
hashes were recomputed, nor an end that was cut off, rows and entries together; for that, compare the digest with one
that was kept elsewhere.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, Text, cast, select, type_coerce

from pairscale.core.provenance import utc_now
from pairscale.store._hashes import PARTS, RowHasher, sha256
from pairscale.store.database import Written, get_fact, insert_rows, raw_rows, scrub_surrogates, set_fact
from pairscale.store.marks import COMMANDS
from pairscale.store.schema import chain, logs, metadata

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.engine import Connection

    from pairscale.store.runfile import RunFile

__all__ = [
    "CLOSED",
    "MAIN",
    "ChainWriter",
    "Change",
    "Links",
    "canonical",
    "digest_of_closing",
    "digest_of_heads",
    "heads_of",
    "log_ends",
    "stored_rows",
]

MAIN = "main"
"""The name of the chain."""

CLOSED = "closed"
"""The fact of the metadata that holds the heads and the digest of the last closing."""

_CHUNK = 5_000  # rows per entry of the chain, at most


def canonical(row: Mapping[str, Any]) -> str:
    """A row of a log as JSON in one and only one way; NaN and infinities become null."""
    try:
        body = _encode(row)
    except ValueError:
        body = _encode(_finite(row))
    try:
        body.encode()
    except UnicodeEncodeError:  # half a character, as some servers send it
        return str(scrub_surrogates(body))
    return body


def digest_of_heads(heads: Mapping[str, Sequence[Any]]) -> str:
    """The digest over everything: of the number of entries and the last hash."""
    return sha256(_encode({name: list(head) for name, head in heads.items()}))


class Links:
    """The hashes of the rows of one transaction, until they become entries of the chain.

    Attributes:
        rows: by part, lists of key and hash.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[list[Any]]] = {}

    def add(self, hashed: Iterable[tuple[str, list[Any]]]) -> None:
        """Add the parts of a row that was written."""
        for name, link in hashed:
            self.rows.setdefault(name, []).append(link)

    def remove(self, part: str, keys: Iterable[Sequence[Any]]) -> None:
        """Add that rows, or parts of rows, were removed."""
        self.add((part, [*key, None]) for key in keys)

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))


class ChainWriter:
    """Appends entries to the chain."""

    def __init__(self) -> None:
        self.command: str | None = None  # a row of the command log, for the first entry
        self._has_command = False
        self._head: tuple[int, str] | None = None

    def forget(self) -> None:
        """Read the end of the chain again before the next entry, because a transaction failed."""
        self._head = None
        self._has_command = False

    def head(self, connection: Connection) -> tuple[int, str]:
        """The number of entries and the last hash."""
        if self._head is None:
            last = _last(connection)
            self._head = (0, MAIN) if last is None else (last.entry, last.hash)
        return self._head

    def append(self, connection: Connection, links: Links, **more: Any) -> None:
        """Write what was collected as one entry; nothing when that is nothing."""
        if links.rows:
            if self.command is not None and not self._has_command:
                self._log_command(connection, links, self.command)
            self._write(connection, {"at": utc_now(), "rows": links.rows, **more})
            links.rows = {}

    def _log_command(self, connection: Connection, links: Links, row: str) -> None:
        """Write the command that makes this change, unless its row is the last one already."""
        query = select(logs.c.row, cast(logs.c.data, Text)).where(logs.c.log == COMMANDS)
        last = connection.execute(query.order_by(logs.c.row.desc()).limit(1)).first()
        if last is None or last[1] != row:
            number = 1 if last is None else last[0] + 1
            new = {"log": COMMANDS, "row": number, "data": Written(row)}
            insert_rows(connection, logs, [new], links)
        self._has_command = True

    def close(self, connection: Connection) -> None:
        """Write the digest over everything, unless that is what was written last or there is nothing."""
        self._head = None
        heads = heads_of(connection)
        if not heads or digest_of_closing(connection) is not None:
            return
        closed = {"heads": heads, "digest": digest_of_heads(heads)}
        self._write(connection, {"at": utc_now(), "closed": closed})
        set_fact(connection, CLOSED, closed)

    def _write(self, connection: Connection, entry: Mapping[str, Any]) -> None:
        number, previous = self.head(connection)
        data = json.dumps(entry, **_COMPACT)
        digest = sha256(previous + data)
        row = {"chain": MAIN, "entry": number + 1, "data": data, "hash": digest}
        insert_rows(connection, chain, [row])
        self._head = (number + 1, digest)


class Change:
    """A transaction outside the stream of answers, such as new samples or a label: what it writes is chained.

    Attributes:
        connection: of the transaction.
        links: what was written so far.
        about: further values of its entries.
    """

    def __init__(self, connection: Connection, writer: ChainWriter) -> None:
        self.connection = connection
        self.links = Links()
        self.about: dict[str, Any] = {}
        self._writer = writer

    def insert(self, table: Table, rows: Iterable[Mapping[str, Any]], size: int = _CHUNK) -> None:
        """Write rows, so many at a time; columns that a row does not have are empty."""
        empty = dict.fromkeys(column.name for column in table.c)
        block: list[dict[str, Any]] = []
        for row in rows:
            block.append({**empty, **row})
            if len(block) >= size:
                self._insert(table, block)
                block = []
        self._insert(table, block)

    def _insert(self, table: Table, block: list[dict[str, Any]]) -> None:
        insert_rows(self.connection, table, block, self.links)
        if len(self.links) >= _CHUNK:
            self.finish()

    def changed(self, table: Table, keys: Sequence[Any], parts: Sequence[str]) -> None:
        """Chain parts of a row whose columns were updated."""
        for hashed in stored_rows(self.connection, table, keys):
            self.links.add(link for link in hashed if link[0] in parts)

    def set_fact(self, key: str, value: Any) -> None:
        """Remember a fact about the run; one that is as it was is no change."""
        if get_fact(self.connection, key) == value:
            return
        set_fact(self.connection, key, value)
        self.changed(metadata, [key], ["metadata"])

    def finish(self) -> None:
        """Write the entry of the chain."""
        self._writer.append(self.connection, self.links, **self.about)


def stored_rows(
    connection: Connection, table: Table, key: Sequence[Any] | None = None
) -> Iterable[list[tuple[str, list[Any]]]]:
    """The hashed parts of the rows of a table as they are stored: of all, in order, or of the one with this key."""
    names = list(dict.fromkeys(name for part in PARTS if part.table is table for name in (*part.key, *part.columns)))
    hasher = RowHasher(table, names)
    columns = (table.c[name] for name in names)
    written: Any = type_coerce if connection.dialect.name == "sqlite" else cast  # SQLite would cut bare numbers
    query = select(*(written(column, Text) if isinstance(column.type, JSON) else column for column in columns))
    if key is not None:
        for column, value in zip(table.primary_key, key, strict=True):
            query = query.where(column == value)
        return [list(hasher(row)) for row in connection.execute(query)]
    return (list(hasher(row)) for row in raw_rows(connection, query.order_by(*table.primary_key)))


def heads_of(connection: Connection) -> dict[str, list[Any]]:
    """The number of entries and the last hash, under the name of the chain; nothing when there are none."""
    last = _last(connection)
    return {} if last is None else {MAIN: [last.entry, last.hash]}


def digest_of_closing(connection: Connection) -> str | None:
    """The digest that a run file was closed with; None when it never was, or something was written since."""
    last = _last(connection)
    if last is None:
        return None
    try:
        return str(json.loads(last.data)["closed"]["digest"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _last(connection: Connection) -> Any:
    query = select(chain).where(chain.c.chain == MAIN).order_by(chain.c.entry.desc()).limit(1)
    return connection.execute(query).first()


def log_ends(store: RunFile, names: Sequence[str]) -> dict[str, tuple[int, str]]:
    """By log, the number of its rows and the digest of the last one: what tells whether a log has grown."""
    ends: dict[str, tuple[int, str]] = {}
    with store.transaction() as connection:
        for name in names:
            query = select(logs.c.row, cast(logs.c.data, Text)).where(logs.c.log == name)
            found = connection.execute(query.order_by(logs.c.row.desc()).limit(1)).first()
            if found is not None:
                ends[name] = (found[0], sha256(str(found[1])))
    return ends


def _plain(value: Any) -> Any:
    """What JSON has no word for: times, numbers and arrays of numpy, anything else as its text."""
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, Mapping):
        return dict(value)
    plain = getattr(value, "tolist", None)
    return str(value) if plain is None else plain()


_COMPACT: Any = {"ensure_ascii": False, "check_circular": False, "separators": (",", ":")}


def _encode(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, default=_plain, **_COMPACT)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if hasattr(value, "tolist") and not isinstance(value, float):
        return _finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
