"""The hash chain of a run file: every row that is evidence is in it, from the transaction that wrote it.

The hash of a row is the SHA-256, in UTF-8, of a JSON array without blanks: the name of the table, its key, and its
other hashed columns in the order of the table. Bytes are in it as their own SHA-256, and the text of a JSON column as
its length in characters; these texts follow after the array, unchanged.

The table ``chain`` has one entry per transaction. Its ``data`` is JSON: ``at``, the time, and ``rows``, which has for
every table a list of rows, each as its key and its hash; null marks a row that was removed. Its ``hash`` is the
SHA-256 of the hash of the entry before (for the first entry: the name of the chain, ``main``) followed by ``data``.

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
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Boolean, Float, Integer, LargeBinary, String, Text, insert, select, type_coerce

from pairscale.core.errors import InputError
from pairscale.core.provenance import utc_now
from pairscale.core.tables import Row, Values, listed
from pairscale.store.database import get_fact, raw_rows, scrub_surrogates, set_fact
from pairscale.store.marks import COMMANDS
from pairscale.store.schema import JsonText, Written, chain, logs, metadata, tables, write_json

if TYPE_CHECKING:
    from sqlalchemy import Column, Table
    from sqlalchemy.engine import Connection

    from pairscale.store.runfile import RunFile

MAIN = "main"
"""The name of the chain."""

CLOSED = "closed"
"""The fact of the metadata that holds the heads and the digest of the last closing."""

UNCOVERED: Mapping[str, str] = {
    "labellers.token": "the secret part of a link; an export leaves it out, and an import makes another",
    "label_questions.shown_at": "when a question was shown, which changes while a labeller thinks",
    "label_questions.held_until": "how long a question is kept for a labeller, which changes too",
    "label_questions.done": "whether a labeller is done with a question; the labels say what the answer was",
    "metadata:schema_version": "of the file, not of the run; another version is refused",
    "metadata:created_by": "of the file, not of the run",
    "metadata:created_at": "of the file, not of the run; entries of the chain have times of their own",
    "metadata:writer": "who wrote last, which changes with every process",
    "metadata:holder": "which process had the file open for writing, as version 1.0.0 wrote it",
    "metadata:labelling_links": "the secret of the owner's links",
    "metadata:closed": "the digest of the last closing, which is compared with the chain",
}
"""The columns (``table.column``) and facts (``metadata:key``) that no hash covers, and why: they are no evidence."""

UNHASHED_FACTS = frozenset(name.partition(":")[2] for name in UNCOVERED if ":" in name)
"""Those of them that are facts."""

HASHED = tuple(table for table in tables.sorted_tables if table is not chain)
"""The tables whose rows are hashed."""

_CHECKED_OTHERWISE = {"items.text", "label_cases.n_labels"}  # against text_hash, and by counting the labels
_CHUNK = 5_000  # rows per entry of the chain, at most
_COMPACT: Any = {"ensure_ascii": False, "check_circular": False, "separators": (",", ":")}

_row_as_json = json.JSONEncoder(default=repr, **_COMPACT).encode

RowHashes = dict[str, list[list[Any]]]
"""The keys and hashes of the rows of one transaction, by table, until they become entries of the chain."""


# The hash of a row


def sha256(text: str) -> str:
    """SHA-256 of a text in UTF-8, as hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=32)
def hashed_columns(table: Table) -> list[Column[Any]]:
    """The columns of a table that its rows' hashes cover, the key first."""
    key = list(table.primary_key)
    others = [column for column in table.c if not column.primary_key]
    return [column for column in key + others if str(column) not in UNCOVERED.keys() | _CHECKED_OTHERWISE]


def row_hash(table: Table, values: Sequence[Any]) -> list[Any]:
    """The key of a row and its hash.

    Args:
        table: the table.
        values: of :func:`hashed_columns`, with the text of JSON columns.
    """
    array: list[Any] = [table.name]
    texts = ""
    for (kind, usual), value in zip(_kinds(table), values, strict=True):
        if value is None or type(value) is usual:
            array.append(value)
        elif isinstance(value, str) and isinstance(kind, JsonText):
            array.append(len(value))
            texts += value
        else:
            array.append(_as_stored(kind, value))
    size = len(table.primary_key)
    return [*array[1 : size + 1], sha256(_row_as_json(array) + texts)]


@lru_cache(maxsize=32)
def _kinds(table: Table) -> list[tuple[object, type | None]]:
    """The types of the hashed columns, and which values of theirs every database gives back as they are."""
    usual = {Integer: int, String: str, Text: str}
    return [(column.type, usual.get(type(column.type))) for column in hashed_columns(table)]


def _as_stored(kind: object, value: Any) -> Any:
    """A value as every database gives it back."""
    if isinstance(value, str) and not isinstance(kind, LargeBinary):
        return value
    if isinstance(kind, LargeBinary):
        return hashlib.sha256(value).hexdigest() if isinstance(value, bytes | memoryview) else repr(value)
    if isinstance(value, bytes):
        return value
    if isinstance(kind, Float):
        number = float(value) + 0.0  # SQLite keeps no NaN, and no -0.0
        return None if math.isnan(number) else number
    if isinstance(kind, Integer | Boolean) and float(value).is_integer():
        return int(value)
    return value


def stored_rows(connection: Connection, table: Table, key: Sequence[Any] | None = None) -> Iterator[list[Any]]:
    """The keys and hashes of the rows of a table as they are stored: of all, in order, or of the one with this key."""
    columns = hashed_columns(table)
    query = select(*(type_coerce(c, Text) if isinstance(c.type, JsonText) else c for c in columns))
    if key is not None:
        for column, value in zip(table.primary_key, key, strict=True):
            query = query.where(column == value)
    for row in raw_rows(connection, query.order_by(*table.primary_key)):
        yield row_hash(table, row)


def insert_rows(connection: Connection, table: Table, rows: Iterable[Row], row_hashes: RowHashes | None = None) -> None:
    """Write rows; columns that a row does not have are empty.

    Args:
        connection: of the database.
        table: the table.
        rows: what to write.
        row_hashes: takes the keys and hashes of the rows, for the chain.

    Raises:
        InputError: a row has a column that the table does not have.
    """
    empty = dict.fromkeys(table.c.keys())
    hashed = [column.name for column in hashed_columns(table)]
    documents = [column for column in table.c if isinstance(column.type, JsonText)]
    written = []
    for row in rows:
        values = empty | dict(row)
        if len(values) > len(empty):
            raise InputError(f"the run file has no column {listed(sorted(values.keys() - empty.keys()))}")
        for column in documents:  # the same letters are hashed and stored
            if values[column.name] is not None or not column.nullable:
                values[column.name] = Written(write_json(values[column.name]))
        written.append(values)
    if not written:
        return
    connection.execute(insert(table).inline(), written)
    if row_hashes is not None:
        new = row_hashes.setdefault(table.name, [])
        new += (row_hash(table, [values[name] for name in hashed]) for values in written)


# The chain


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

    def append(self, connection: Connection, row_hashes: RowHashes, **more: Any) -> None:
        """Write the hashes that were collected, if there are any, as one entry."""
        if not row_hashes:
            return
        if self.command is not None and not self._has_command:
            self._log_command(connection, row_hashes, self.command)
        self._write(connection, {"at": utc_now(), "rows": row_hashes, **more})
        row_hashes.clear()

    def _log_command(self, connection: Connection, row_hashes: RowHashes, row: str) -> None:
        """Write the command that makes this change, unless its row is the last one already."""
        last = _last_row(connection, COMMANDS)
        if last is None or last[1] != row:
            number = 1 if last is None else last[0] + 1
            insert_rows(connection, logs, [{"log": COMMANDS, "row": number, "data": Written(row)}], row_hashes)
        self._has_command = True

    def close(self, connection: Connection) -> None:
        """Write the digest over everything, unless it was written last or there is nothing."""
        self._head = None
        heads = heads_of(connection)
        if not heads or digest_of_closing(connection) is not None:
            return
        closed = {"heads": heads, "digest": digest_of_heads(heads)}
        self._write(connection, {"at": utc_now(), "closed": closed})
        set_fact(connection, CLOSED, closed)

    def _write(self, connection: Connection, entry: Row) -> None:
        """Append an entry, hashed together with the hash of the one before."""
        number, previous = self.head(connection)
        data = json.dumps(entry, **_COMPACT)
        digest = sha256(previous + data)
        connection.execute(insert(chain), [{"chain": MAIN, "entry": number + 1, "data": data, "hash": digest}])
        self._head = (number + 1, digest)


class Change:
    """A transaction outside the stream of answers, such as new samples or a label: what it writes is chained.

    Attributes:
        connection: of the transaction.
        row_hashes: of what was written so far.
        about: further values of its entries.
    """

    def __init__(self, connection: Connection, writer: ChainWriter) -> None:
        self.connection = connection
        self.row_hashes: RowHashes = {}
        self.about: Values = {}
        self._writer = writer

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        """Write rows; columns that a row does not have are empty. Many rows are several entries."""
        block: list[Row] = []
        for row in rows:
            block.append(row)
            if len(block) >= _CHUNK:
                insert_rows(self.connection, table, block, self.row_hashes)
                self.finish()
                block = []
        insert_rows(self.connection, table, block, self.row_hashes)

    def changed(self, table: Table, key: Sequence[Any]) -> None:
        """Chain a row whose columns were updated."""
        self.row_hashes.setdefault(table.name, []).extend(stored_rows(self.connection, table, key))

    def set_fact(self, key: str, value: Any) -> None:
        """Remember a fact about the run; one that is as it was is no change."""
        if get_fact(self.connection, key) == value:
            return
        set_fact(self.connection, key, value)
        if key not in UNHASHED_FACTS:
            self.changed(metadata, [key])

    def finish(self) -> None:
        """Write the entry of the chain."""
        self._writer.append(self.connection, self.row_hashes, **self.about)


def heads_of(connection: Connection) -> dict[str, list[Any]]:
    """The number of entries and the last hash, under the name of the chain; nothing when there are none."""
    last = _last(connection)
    return {} if last is None else {MAIN: [last.entry, last.hash]}


def digest_of_heads(heads: Mapping[str, Sequence[Any]]) -> str:
    """The digest over everything: of the number of entries and the last hash."""
    return sha256(_encode({name: list(head) for name, head in heads.items()}))


def digest_of_closing(connection: Connection) -> str | None:
    """The digest that a run file was closed with; None when it never was, or something was written since."""
    last = _last(connection)
    try:
        return None if last is None else str(json.loads(last.data)["closed"]["digest"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _last(connection: Connection) -> Any:
    """The last entry of the chain, or None."""
    query = select(chain).where(chain.c.chain == MAIN).order_by(chain.c.entry.desc()).limit(1)
    return connection.execute(query).first()


def _last_row(connection: Connection, log: str) -> Any:
    """The number and the text of the last row of a log, or None."""
    query = select(logs.c.row, type_coerce(logs.c.data, Text)).where(logs.c.log == log)
    return connection.execute(query.order_by(logs.c.row.desc()).limit(1)).first()


def log_ends(store: RunFile, names: Sequence[str]) -> dict[str, tuple[int, str]]:
    """By log, the number of its rows and the digest of the last one: what tells whether a log has grown."""
    ends: dict[str, tuple[int, str]] = {}
    with store.transaction() as connection:
        for name in names:
            last = _last_row(connection, name)
            if last is not None:
                ends[name] = (last[0], sha256(str(last[1])))
    return ends


# The row of the command log that goes into a run file together with its first change

_Row = Callable[["RunFile"], "Mapping[str, Any] | None"]
_COMMAND: ContextVar[_Row | None] = ContextVar("command", default=None)


@contextmanager
def recording(row: _Row) -> Iterator[None]:
    """Inside the block, whatever changes a run file first also writes a row into its command log, at the same moment.

    Args:
        row: makes the row when a run file is opened for writing; None for a file that is not the command's.
    """
    token = _COMMAND.set(row)
    try:
        yield
    finally:
        _COMMAND.reset(token)


def command_row_for(store: RunFile) -> str | None:
    """The row that the first change of a run file is to carry; None when no command is recorded there."""
    make_row = _COMMAND.get()
    row = None if make_row is None else make_row(store)
    return None if row is None else canonical(row)


# Rows of logs as JSON


def canonical(row: Row) -> str:
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


def _plain(value: Any) -> Any:
    """Values that JSON does not know: times, numbers and arrays of numpy, anything else as its text."""
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)


_encode = json.JSONEncoder(sort_keys=True, allow_nan=False, default=_plain, **_COMPACT).encode


def _finite(value: Any) -> Any:
    """A value with null in place of NaN and infinities."""
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _finite(value.tolist()) if hasattr(value, "tolist") else value
