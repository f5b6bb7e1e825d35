"""The one writer of a run file: what was asked and logged, in whole transactions.

:class:`Writer` turns entries into rows and writes any number of them in one transaction. Two policies use it:

- :class:`GroupCommitWriter`: every entry has a future that is done once the entry is on the disk. Entries that arrive
  together share a transaction. For runs that continue only after an answer is durable.
- :class:`JournalWriter`: calls return at once, and a thread writes in the background, in order. The file holds, at
  every moment and however the process ends, a prefix of what happened. For adaptive runs, which must not wait for the
  disk at every step.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import polars as pl
from sqlalchemy import Text, bindparam, cast, delete, func, insert, select, update

from pairscale.errors import InputError, StoreDamagedError, StoreError, StoreGoneError
from pairscale.store._database import Prepared, Written, following, get_fact, set_fact, storable
from pairscale.store._schema import attempts, blobs, comparisons, items, logs, metadata, pairs
from pairscale.store.chain import CHAIN, CHAINED, canonical, digest_of, link
from pairscale.tables import listed

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Dialect

    from pairscale.store.runfile import RunFile

__all__ = ["Asked", "Entry", "GroupCommitWriter", "JournalWriter", "Writer"]

# One statement for all rows: each needs every column.
_NO_ATTEMPT = dict.fromkeys(attempts.c.keys())
_NO_COMPARISON = dict.fromkeys(column.name for column in comparisons.c if column.name != "comparison_id")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a judge was asked about one pair, and the outcome.

    Attributes:
        condition_id: the condition of the judge; the run file must know it.
        attempts: columns of each new attempt, in order.
        comparison: columns of the outcome that the last attempt settles; None when nothing is settled yet.
        pair_id: number of a pair that is in the run file; None enters the pair under ``uid`` when it is new.
        uid: name of the pair, unique in the run file, such as ``step-000017``.
        ID1: the sample shown first.
        ID2: the sample shown second.
        columns: further columns of a new pair, such as ``{"step_id": 17}``.
        replaces: whether an earlier outcome of this pair and condition (an error, an abstention) is replaced.
    """

    condition_id: str
    attempts: Sequence[Mapping[str, Any]] = ()
    comparison: Mapping[str, Any] | None = None
    pair_id: int | None = None
    uid: str = ""
    ID1: str = ""
    ID2: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict[str, Any])
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened; all of it is written, or none.

    Attributes:
        asked: what a judge was asked, if a judge was.
        rows: rows of logs, as (log, row).
        samples: rows of the table ``items`` to insert.
        scores: items of a refit; they become one row of ``item_log``, column by column.
        blobs: bytes by name, numbered by the ``refit_id`` of the ``round_log`` row.
    """

    asked: Asked | None = None
    rows: Sequence[tuple[str, Mapping[str, Any]]] = ()
    samples: Sequence[Mapping[str, Any]] = ()
    scores: pl.DataFrame | Sequence[Mapping[str, Any]] = ()
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


class Writer:
    """Writes entries into a run file that is open for writing; a run file has one, ``RunFile.writer``."""

    def __init__(self, run_file: RunFile) -> None:
        self._run_file = run_file
        self._statements: _Statements | None = None
        self._numbers: _Numbers | None = None
        self._turn = threading.RLock()

    def renumber(self) -> None:
        """Count the rows again before the next write, because something else has written to the run file."""
        self._numbers = None

    def check(self) -> None:
        """Compare the end of each chained log with its hash.

        Raises:
            StoreDamagedError: the end of a log was changed from outside, so that its chain cannot be continued.
        """
        with self._turn, self._run_file.transaction() as connection:
            self._numbers = _Numbers.read(connection)
            self._numbers.check(connection, self._run_file.name)

    def commit(self, entries: Sequence[Entry]) -> None:
        """Write all entries in one transaction.

        Raises:
            InputError: an entry has a column that the run file does not have; nothing is written.
            StoreGoneError: the run file is gone; the entries are in the copy that was saved.
            StoreError: the run file cannot be written; nothing is written.
        """
        with self._turn:
            try:
                self._commit(entries)
            except (TypeError, ValueError, RecursionError):  # the reply of a judge that no database takes as it is
                self._commit([_cleaned(entry) for entry in entries])

    def _commit(self, entries: Sequence[Entry]) -> None:
        try:
            with self._run_file.writing() as connection:
                if self._statements is None:
                    self._statements = _Statements(connection.dialect)
                if self._numbers is None:
                    self._numbers = _Numbers.read(connection)
                group = _Group(self._numbers.copied(), connection)
                for entry in entries:
                    group.add(entry)
                group.write(connection, self._statements)
        except StoreError:  # written (StoreGoneError) or not: count again
            self.renumber()
            raise
        self._numbers = group.numbers


class GroupCommitWriter:
    """Writes each entry before the caller continues; use it in an ``async with`` block.

    It writes in the thread of the event loop: on a local disk that takes less than a millisecond, and a second thread
    would cost more than it saves. Where writing is slow (a network drive, a remote database), it moves to a thread, and
    entries that arrive meanwhile share the next transaction. Leaving the block waits until everything is written, also
    on an interrupt, and so does the end of the process.

    Args:
        run_file: open for writing.
        also: called with the entries of each transaction after it, in the same thread, before the futures are done.
        patience: seconds that a write may usually take before writing moves to a thread.
    """

    def __init__(
        self,
        run_file: RunFile,
        *,
        also: Callable[[Sequence[Entry]], None] | None = None,
        patience: float = 0.02,
    ) -> None:
        self._writer, self._also = run_file.writer, also
        self._waiting: deque[tuple[Entry, asyncio.Future[None]]] = deque()
        self._patience, self._usual = patience, 0.0
        self._in_thread = False
        self._turn = threading.Lock()

    async def __aenter__(self) -> Self:
        self._loop, self._home = asyncio.get_running_loop(), threading.get_ident()
        atexit.register(self._write_all)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._write_all()
        atexit.unregister(self._write_all)

    def write(self, entry: Entry) -> asyncio.Future[None]:
        """Write an entry; the future is done when it is on the disk, or fails as the write did."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((entry, written))
        if len(self._waiting) == 1:
            self._loop.call_soon(self._due)
        return written

    async def drain(self) -> None:
        """Wait until everything is on the disk."""
        self._write_all()

    def put(self, entry: Entry) -> None:
        """Write an entry without waiting for it; it is on the disk when the block is left."""
        self.write(entry).add_done_callback(_retrieved)

    def _due(self) -> None:
        if self._usual <= self._patience:
            self._write_all()
        elif not self._in_thread:
            self._in_thread = True
            self._loop.run_in_executor(None, self._write_all).add_done_callback(self._back)

    def _back(self, _done: asyncio.Future[None]) -> None:
        self._in_thread = False
        if self._waiting:
            self._due()

    def _write_all(self) -> None:
        """Write everything that waits, in any thread."""
        with self._turn:
            start, taken = time.perf_counter(), []
            while self._waiting:
                taken.append(self._waiting.popleft())
            if taken:
                self._write(taken)
                self._usual += 0.2 * (time.perf_counter() - start - self._usual)

    def _write(self, taken: list[tuple[Entry, asyncio.Future[None]]]) -> None:
        failure: Exception | None = None
        is_committed = False
        try:
            entries = [entry for entry, _ in taken]
            self._writer.commit(entries)
            is_committed = True
            if self._also is not None:
                self._also(entries)
        except Exception as error:  # noqa: BLE001 - it is raised where the write is awaited
            if len(taken) > 1 and not is_committed and not isinstance(error, StoreError):
                for one in taken:  # an entry that cannot be written must not take others with it
                    self._write([one])
                return
            failure = error
        waiting = [written for _, written in taken]
        if threading.get_ident() == self._home:
            _settle(waiting, failure)
            return
        with suppress(RuntimeError):  # the loop is closed, and nothing waits
            self._loop.call_soon_threadsafe(_settle, waiting, failure)


def _settle(waiting: list[asyncio.Future[None]], failure: Exception | None) -> None:
    for written in waiting:
        if written.done():
            continue
        if failure is None:
            written.set_result(None)
        else:
            written.set_exception(failure)


def _retrieved(written: asyncio.Future[None]) -> None:
    """Mark the exception of a future that is not awaited as seen; the writes that are awaited raise it."""
    if not written.cancelled():
        written.exception()


class JournalWriter:
    """Writes entries in order, in the background; use it in a ``with`` block.

    :meth:`put` returns at once. When something cannot be written (the disk is full), nothing later is written, and
    every further call raises the reason. When the file is gone, every further call raises that, too, but what it was
    given is in the copy that was saved.

    Args:
        run_file: open for writing; it must stay open until the journal is closed.

    Raises:
        StoreDamagedError: the end of a log was changed from outside, so that its chain cannot be continued.
    """

    _LINGER = 0.01  # seconds that the first of a group waits for others; a flush does not wait
    _MOST = 20_000  # entries that may wait; a caller with more waits for the disk

    def __init__(self, run_file: RunFile) -> None:
        self._writer, self._name = run_file.writer, run_file.name
        self._writer.check()
        self._changed = threading.Condition()
        self._waiting: list[Entry] = []
        self._accepted = self._written = 0
        self._hurry = self._closing = self._told = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="pairscale-journal", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_exc: object) -> None:
        self._told = self._told or kind is not None  # one error at a time
        self.close()

    def put(self, entry: Entry) -> None:
        """Have an entry written after all that came before it; the caller may change its rows of logs afterwards."""
        _check(entry)
        entry = replace(entry, rows=[(log, dict(row)) for log, row in entry.rows])
        with self._changed:
            while len(self._waiting) >= self._MOST and self._failure is None:
                self._changed.wait()
            if not isinstance(self._failure, StoreGoneError):
                self._raise()
            if self._closing:
                raise StoreError(f"{self._name}: the journal is closed")
            self._waiting.append(entry)
            self._accepted += 1
            if len(self._waiting) == 1:
                self._changed.notify_all()
            self._raise()

    def event(self, row: Mapping[str, Any]) -> None:
        """Have a row of ``adaptive_events`` written: a call, a limit, a join, a stop."""
        self.put(Entry(rows=[("adaptive_events", row)]))

    def flush(self) -> None:
        """Wait until everything is on the disk; raise what went wrong."""
        with self._changed:
            target = self._accepted
            self._hurry = self._written < target
            self._changed.notify_all()
            while self._written < target and self._failure is None:
                self._changed.wait()
            self._raise()

    def close(self) -> None:
        """Write what waits, and end; raise what went wrong, unless a call has raised it before."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        if not self._told:
            self._raise()

    def _raise(self) -> None:
        if self._failure is not None:
            self._told = True
            raise self._failure

    def _work(self) -> None:
        while batch := self._taken():
            failure: BaseException | None = None
            try:
                self._writer.commit(batch)
            except BaseException as error:  # noqa: BLE001 - it is raised by the next call
                failure = error
            with self._changed:
                self._failure = self._failure or failure
                self._written += len(batch)
                self._changed.notify_all()
                if failure is not None and not isinstance(failure, StoreGoneError):
                    self._waiting.clear()
                    return

    def _taken(self) -> list[Entry]:
        """Everything that waits, as soon as anything does; nothing when the journal is closed."""
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            if not self._hurry and not self._closing:
                self._changed.wait_for(lambda: self._hurry or self._closing, self._LINGER)
            self._hurry = False
            batch, self._waiting = self._waiting, []
            return batch


def _check(entry: Entry) -> None:
    """Refuse an entry that could not be written, where it is put rather than in the background."""
    for log, row in entry.rows:
        if "hash" in row:
            raise InputError("a row of a log cannot have a value 'hash'; its place in the chain stands there")
        if log == "round_log" and "refit_id" not in row:
            raise InputError("a row of the round log needs its refit_id")
        if log == "round_log" and "blobs" in row:
            raise InputError("a row of the round log cannot have a value 'blobs'; the digests stand there")
    if entry.asked is not None:
        for known, given in ((_NO_ATTEMPT, entry.asked.attempts), (_NO_COMPARISON, (entry.asked.comparison or {},))):
            for values in given:
                if unknown := values.keys() - known.keys():
                    raise InputError(f"{entry.asked.uid}: the run file has no column {listed(sorted(unknown))}")


def _cleaned(entry: Entry) -> Entry:
    """The entry without what no database takes in what a judge said."""
    if entry.asked is None:
        return entry
    asked = replace(entry.asked, attempts=[storable(values) for values in entry.asked.attempts])
    return replace(entry, asked=asked)


@dataclass(slots=True)
class _Numbers:
    """The numbers of the next rows, counted in memory: no other process may write to the file."""

    pair: int
    attempt: int
    rows: dict[str, int]
    heads: dict[str, list[Any]]
    has_heads: bool
    named: dict[str, int] | None = None

    @classmethod
    def read(cls, connection: Connection) -> _Numbers:
        counts = select(logs.c.log, func.max(logs.c.row).label("last")).group_by(logs.c.log)
        rows = {found.log: found.last for found in connection.execute(counts)}
        heads = get_fact(connection, CHAIN)
        known = {log: [0, log] for log in CHAINED} | (heads or {})
        pair, attempt = following(connection, pairs.c.pair_id), following(connection, attempts.c.attempt_id)
        return cls(pair, attempt, rows, known, heads is not None)

    def copied(self) -> _Numbers:
        """A copy to count on while a transaction may still fail."""
        return replace(self, rows=dict(self.rows), heads=dict(self.heads))

    def number_of(self, uid: str, connection: Connection) -> int | None:
        """The number of the pair with this name; the names are read when the first one is asked for."""
        if self.named is None:
            self.named = {
                row.custom_id: row.pair_id for row in connection.execute(select(pairs.c.custom_id, pairs.c.pair_id))
            }
        return self.named.get(uid)

    def check(self, connection: Connection, name: str) -> None:
        """The last row of each chained log must be the one that the metadata name."""
        for log in CHAINED:
            count, last = self.heads[log]
            end = select(cast(logs.c.data, Text)).where(logs.c.log == log, logs.c.row == count)
            text = connection.execute(end).scalar()
            if self.rows.get(log, 0) != count or (count and not str(text).endswith(f'"hash":"{last}"}}')):
                raise StoreDamagedError(
                    f"{name}: the end of its {log} was changed from outside, so the run cannot be continued; "
                    "restore it from a copy"
                )


class _Statements:
    """The few statements that are needed, compiled once."""

    def __init__(self, dialect: Dialect) -> None:
        settled = [comparisons.c[name] for name in _NO_COMPARISON]
        self.inserts = {
            table.name: Prepared(insert(table).inline(), columns, dialect)
            for table, columns in (
                (items, items.c), (pairs, pairs.c), (attempts, attempts.c), (comparisons, settled), (blobs, blobs.c),
                (logs, logs.c),
            )
        }  # fmt: skip
        heads = update(metadata).where(metadata.c.key == bindparam("fact"))
        self.heads = Prepared(heads, [metadata.c.value], dialect)


class _Group:
    """What goes into one transaction."""

    def __init__(self, numbers: _Numbers, connection: Connection) -> None:
        self.numbers, self._connection = numbers, connection
        self._new_names: dict[str, int] = {}
        self._replaced: dict[str, list[int]] = {}
        # In the order of writing: each table points to those before it.
        self._rows: dict[str, list[dict[str, Any]]] = {
            table.name: [] for table in (items, pairs, attempts, comparisons, blobs, logs)
        }

    def add(self, entry: Entry) -> None:
        self._rows["items"] += map(dict, entry.samples)
        if entry.asked is not None:
            self._ask(entry.asked)
        for log, row in entry.rows:
            if entry.blobs and log == "round_log":
                number = int(row["refit_id"])
                row = {**row, "blobs": {name: digest_of(data) for name, data in entry.blobs.items()}}  # noqa: PLW2901
                self._rows["blobs"] += [
                    {"name": name, "row": number, "data": data} for name, data in entry.blobs.items()
                ]
            self._log(log, row)
            if len(entry.scores) and log == "round_log":
                self._log("item_log", {"refit_id": row["refit_id"], "columns": _columns(entry.scores)})

    def write(self, connection: Connection, statements: _Statements) -> None:
        for condition_id, numbers in self._replaced.items():
            same = comparisons.c.condition_id == condition_id
            connection.execute(delete(comparisons).where(same, comparisons.c.pair_id.in_(numbers)))
        for table, rows in self._rows.items():
            if rows:
                statements.inserts[table].execute(connection, rows)
        counted = self.numbers
        if any(row["log"] in counted.heads for row in self._rows["logs"]):
            if counted.has_heads:
                statements.heads.execute(connection, [{"fact": CHAIN, "value": counted.heads}])
            else:
                set_fact(connection, CHAIN, counted.heads)
                counted.has_heads = True
        if counted.named is not None:
            counted.named.update(self._new_names)

    def _ask(self, asked: Asked) -> None:
        pair_id, attempt_id = self._pair(asked), 0
        for values in asked.attempts:
            attempt_id = self.numbers.attempt
            self.numbers.attempt += 1
            own = {"attempt_id": attempt_id, "pair_id": pair_id, "condition_id": asked.condition_id}
            self._rows["attempts"].append({**_NO_ATTEMPT, **values, **own})
        if asked.comparison is None:
            return
        if not attempt_id:
            raise InputError(f"{asked.uid or pair_id}: an outcome needs the attempt that it came from")
        if asked.replaces:
            self._replaced.setdefault(asked.condition_id, []).append(pair_id)
        own = {"pair_id": pair_id, "condition_id": asked.condition_id, "attempt_id": attempt_id}
        self._rows["comparisons"].append({**_NO_COMPARISON, **asked.comparison, **own})

    def _pair(self, asked: Asked) -> int:
        if asked.pair_id is not None:
            return asked.pair_id
        number = self._new_names.get(asked.uid) or self.numbers.number_of(asked.uid, self._connection)
        if number is None:
            number = self._new_names[asked.uid] = self.numbers.pair
            self.numbers.pair += 1
            self._rows["pairs"].append(
                {"pair_id": number, "custom_id": asked.uid, "ID1": asked.ID1, "ID2": asked.ID2}
                | {"columns": dict(asked.columns)}
            )
        return number

    def _log(self, log: str, row: Mapping[str, Any]) -> None:
        numbers = self.numbers
        number = numbers.rows.get(log, 0) + 1
        numbers.rows[log] = number
        if log in numbers.heads:
            digest, data = link(numbers.heads[log][1], row)
            numbers.heads[log] = [number, digest]
        else:
            data = Written(canonical(row))
        self._rows["logs"].append({"log": log, "row": number, "data": data})


def _columns(scores: pl.DataFrame | Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    if isinstance(scores, pl.DataFrame):
        return scores.to_dict(as_series=False)
    names = dict.fromkeys(name for row in scores for name in row)
    return {name: [row.get(name) for row in scores] for name in names}
