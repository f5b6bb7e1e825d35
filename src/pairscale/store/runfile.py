"""The run file: everything that was asked and answered, durable before it is used."""

from __future__ import annotations

import json
import math
import os
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl
from sqlalchemy import Select, Text, func, inspect, select, type_coerce
from sqlalchemy.exc import SQLAlchemyError

from pairscale._version import __version__
from pairscale.core.comparisons import PANEL, Condition, with_members
from pairscale.core.errors import (
    StoreBusyError,
    StoreConnectionError,
    StoreDamagedError,
    StoreError,
    StoreMismatchError,
)
from pairscale.core.options import FilePath, checked, optional, require_run
from pairscale.core.provenance import utc_now
from pairscale.core.tables import Row, Values, listed
from pairscale.store import database, queries
from pairscale.store.audit import damage_behind
from pairscale.store.chain import command_row_for, digest_of_closing, heads_of
from pairscale.store.database import DatabaseLock, WriterLock, copy_rows, get_fact, set_fact
from pairscale.store.labels import LABELS, labels_query
from pairscale.store.schema import (
    SCHEMA_VERSION,
    attempts,
    blobs,
    comparisons,
    conditions,
    items,
    logs,
    pairs,
    tables,
)
from pairscale.store.writer import Entry, Writer, item_row

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

_ADDRESS = re.compile(r"\w[\w+.-]+:/?[^/\\\s][^\s]*@")  # one that lacks its slashes must not become the name of a file

_MERGE_INTERVAL_S = 1.0
"""Seconds at least between two merges of the write-ahead log into the file, which people copy while it is written."""

_MARKS = {"metadata", "items", "pairs", "attempts"}
"""The tables by which a run file of any version is known."""


@checked
def open_run(where: FilePath | None, *, write: bool = False) -> RunFile:
    """Open a run file.

    Args:
        where: a path (created when it is missing and ``write`` is true), a database URL such as
            ``postgresql+psycopg://…``, or None for memory only.
        write: take the right to write; one process at a time has it. Readers need not wait.

    Raises:
        StoreBusyError: another process is writing.
        StoreDamagedError: the file is not a run file, or of another version of pairscale.

    Example:
        >>> with open_run(None, write=True) as store:
        ...     store.add_items([{"ID": "a", "text": "It rains."}])
        ...     store.items().rows()
        [('a', 'It rains.')]
    """
    where = optional(require_run, where, "run")
    name = None
    if "://" in str(where):
        engine = database.open_address(str(where))
        name = "the database"
        if engine.dialect.name != "sqlite":
            lock = DatabaseLock(engine) if write and engine.dialect.name == "postgresql" else None
            return RunFile(engine, name, lock).prepared(write=write)
        where = None if engine.url.database == ":memory:" else engine.url.database  # a file, however it is named
    elif _ADDRESS.match(str(where)) and not Path(str(where)).exists():
        raise StoreError(
            "a database address has :// after its first part, as in postgresql+psycopg://user@host/database"
        )
    if where is None:
        return RunFile(database.open_memory(), "memory", None).prepared(write=True)
    path = Path(where)
    engine = database.open_file(path, _MARKS, write=write)
    return RunFile(engine, name or str(path), WriterLock(path) if write else None).prepared(write=write)


@dataclass(frozen=True, slots=True)
class PairProgress:
    """What a run file knows about pairs under one condition.

    Attributes:
        answered: numbers of the pairs that have their answer.
        failed: numbers of the pairs that were asked in vain.
        attempts: how often each pair was asked and not interrupted, for pairs that were.
    """

    answered: frozenset[int]
    failed: frozenset[int]
    attempts: Mapping[int, int]


class RunFile:
    """An open run file; get one from :func:`open_run`, and use it in a ``with`` block."""

    def __init__(self, engine: Engine, name: str, lock: WriterLock | DatabaseLock | None) -> None:
        self.name = name
        self._engine = engine
        self._lock = lock
        self._connection: Connection | None = None  # of the writer
        self.turn = threading.RLock()  # threads of this process take turns; in memory they share one connection
        self._snapshot: Connection | None = None
        self._merged_at = -math.inf
        self.writer = Writer(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        damage = None if error is None else damage_behind(self, error)
        self.close()
        if damage is not None:
            raise damage from error

    def close(self) -> None:
        """Close it, once no thread is writing any more, and let others write.

        If it was open for writing and anything was written, the digest over all its rows is written, too.
        """
        with self.turn:
            if self._connection is not None:
                with suppress(StoreError):  # a run file that is gone, full or not locked has no digest, as after a kill
                    with self.writing() as connection:
                        self.writer.chain.close(connection)
                with suppress(SQLAlchemyError):  # of a database that is gone
                    self._connection.close()
                self._connection = None
            self._engine.dispose()
        if self._lock is not None:
            self._lock.release()

    # Opening

    def prepared(self, *, write: bool) -> Self:
        """Take the right to write, and check the tables, or make them."""
        try:
            if self._lock is not None:
                self._lock.acquire(self._last_writer())
            with self.transaction() as connection:
                _check_version(connection, self.name, create=write)
                if write:
                    since = f"since {utc_now()[:19]} UTC"
                    set_fact(connection, "writer", f"process {os.getpid()} on {socket.gethostname()}, {since}")
            if write:
                self._connection = self._engine.connect()
                self.writer.chain.command = command_row_for(self)
        except BaseException:
            self.close()
            raise
        return self

    def _last_writer(self) -> str:
        """Who wrote last."""
        with self.transaction() as connection:
            if not inspect(connection).has_table("metadata"):
                return "new"
            return str(get_fact(connection, "writer") or "unknown")

    @contextmanager
    def transaction(self, held: Connection | None = None) -> Iterator[Connection]:
        """A transaction, also for those who keep tables of their own here; its failures become errors of ours."""
        try:
            with self.turn:
                if self._snapshot is not None:
                    yield self._snapshot
                elif held is None:
                    with self._engine.begin() as connection:
                        yield connection
                else:
                    with held.begin():
                        yield held
        except (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            cause = getattr(error, "orig", None) or error
            raise database.explain(cause, self.name) or StoreError(f"{self.name}: {cause}") from error

    @property
    def can_reconnect(self) -> bool:
        """Whether the connections may be lost and opened again."""
        return isinstance(self._lock, DatabaseLock)

    def reconnect(self) -> None:
        """Open the connections to a database again, after they were lost."""
        with self.turn, suppress(SQLAlchemyError):
            if self._connection is not None:
                self._connection.invalidate()
                self._connection.close()
            self._engine.dispose()
        if self._lock is not None:
            self._lock.release()
            try:
                self._lock.acquire("perhaps this one, by the connection that was lost")
            except StoreBusyError as error:
                raise StoreConnectionError(str(error)) from None
        with self.turn, self.transaction():
            self._connection = self._engine.connect()

    @property
    def in_snapshot(self) -> bool:
        """Whether a block of :meth:`snapshot` is open, which all transactions are part of."""
        return self._snapshot is not None

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """In a ``with`` block, everything is read as it was at one moment, whatever another process writes meanwhile.

        Be quick in it: where a file system has no write-ahead logging, a writer waits.
        """
        with self.transaction() as connection:
            outer = self._snapshot
            if outer is None and connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._snapshot = connection
            try:
                yield self
            finally:
                self._snapshot = outer

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction of the writer; the run file and its lock file must be there before it ends.

        Raises:
            StoreError: the lock file was deleted or replaced; nothing is written.
            StoreGoneError: the file was deleted, moved or replaced; nothing is written.
        """
        with self.transaction(self._connection) as connection:
            yield connection
            self.require_there()
        with self.turn:
            now = time.monotonic()
            is_due = now > self._merged_at + _MERGE_INTERVAL_S
            if is_due and self._snapshot is None and isinstance(self._lock, WriterLock):
                self._merged_at = now
                database.merge_log(connection)

    def require_there(self) -> None:
        """Check that the file and its lock file were not deleted, moved or replaced since it was opened for writing.

        Raises:
            StoreGoneError: the run file was.
            StoreError: the lock file was, so that another process can have taken the right to write.
        """
        if self._lock is not None:
            self._lock.require()

    # Writing

    def add_items(self, samples: Iterable[Row]) -> None:
        """Remember samples; one that is there already must have the same text.

        Raises:
            StoreMismatchError: that names the samples whose text has changed.
        """
        with self.writer.changing() as change:
            hashes = dict(change.connection.execute(select(items.c.item_id, items.c.text_hash)).all())
            changed: list[str] = []

            def new() -> Iterator[Values]:
                for sample in samples:
                    row = item_row(sample)
                    name = row["item_id"]
                    if name not in hashes:
                        yield row
                    elif hashes[name] != row["text_hash"]:
                        changed.append(name)

            change.insert(items, new())
            if changed:
                raise StoreMismatchError(
                    f"{self.name} holds another text for {listed(changed)}; take a new run file, or restore the text"
                )

    def add_pairs(self, rows: Iterable[Row]) -> list[int]:
        """Remember pairs (``custom_id ID1 ID2 columns``) and return the number of each, in their order.

        Raises:
            StoreMismatchError: when a ``custom_id`` is there already for another pair.
        """
        numbers: list[int] = []
        with self.writer.changing() as change:
            query = select(pairs.c.custom_id, pairs.c.pair_id, pairs.c.ID1, pairs.c.ID2)
            stored = {name: (number, first, second) for name, number, first, second in change.connection.execute(query)}
            pair_id = database.next_number(change.connection, pairs.c.pair_id)

            def new() -> Iterator[Values]:
                nonlocal pair_id
                for row in rows:
                    name = row["custom_id"]
                    if name not in stored:
                        numbers.append(pair_id)
                        yield {"pair_id": pair_id, **row}
                        pair_id += 1
                        continue
                    number, first, second = stored[name]
                    if (first, second) != (row["ID1"], row["ID2"]):
                        raise StoreMismatchError(f"{self.name}: pair_uid {name!r} is another pair, {first}, {second}")
                    numbers.append(number)

            change.insert(pairs, new())
        self.writer.renumber()
        return numbers

    def closing(self) -> str | None:
        """The digest it was closed with; None when something was written since, or its process was killed."""
        with self.transaction() as connection:
            return digest_of_closing(connection)

    def repeats(self) -> dict[int, int]:
        """The pairs that repeat the two texts of an earlier one in the same order: 2 for the second, and so on."""
        with self.transaction() as connection:
            return {row.pair_id: row.which for row in connection.execute(queries.repeats_query())}

    def add_condition(self, condition: Condition, condition_id: str | None = None) -> str:
        """Remember a condition and return its id (the one given, for a condition that was imported)."""
        name = condition_id or condition.condition_id
        with self.writer.changing() as change:
            query = select(conditions.c.condition_id).where(conditions.c.condition_id == name)
            if change.connection.execute(query).first() is None:
                change.insert(conditions, [asdict(condition) | {"condition_id": name, "created_at": utc_now()}])
        return name

    def log(self, name: str, rows: Sequence[Row]) -> None:
        """Append rows to a named log."""
        self.writer.commit([Entry(rows=[(name, row) for row in rows])])

    def set_meta(self, key: str, value: Any) -> None:
        """Remember a fact about the run."""
        with self.writer.changing() as change:
            change.set_fact(key, value)

    def copy_to(self, where: FilePath) -> None:
        """Copy everything into another run file (made when it is missing), instead of what that one held.

        It is done in one transaction: whatever happens, the other file holds all of the old or all of the new.

        Raises:
            StoreBusyError: another process is writing there.
            StoreDamagedError: what is there is not a run file; it is left as it is.
        """
        with open_run(where, write=True) as other, self.transaction() as source, other.transaction() as target:
            copy_rows(source, target)

    def save_copy(self, path: Path) -> None:
        """Copy everything, as it is at one moment, to a new run file that only its owner may read."""
        with self.transaction() as connection:
            if connection.dialect.name == "sqlite":
                database.save_copy(connection, path)
                return
        self.copy_to(path)
        path.with_name(f"{path.name}.lock").unlink(missing_ok=True)

    # Reading

    def get_meta(self, key: str) -> Any:
        """A fact about the run, or None."""
        with self.transaction() as connection:
            return get_fact(connection, key)

    def progress(self, condition_id: str) -> PairProgress:
        """What is known about every pair under a condition."""
        asked = select(attempts.c.pair_id, func.count().label("n")).where(
            attempts.c.condition_id == condition_id, func.coalesce(attempts.c.error_code, "") != "cancelled"
        )
        settled = select(comparisons.c.pair_id, comparisons.c.outcome).where(comparisons.c.condition_id == condition_id)
        with self.transaction() as connection:
            counts = {row.pair_id: row.n for row in connection.execute(asked.group_by(attempts.c.pair_id))}
            outcomes = [(row.pair_id, row.outcome) for row in connection.execute(settled)]
        failed = frozenset(number for number, outcome in outcomes if outcome in {"error", "abstention"})
        return PairProgress(frozenset(number for number, _ in outcomes) - failed, failed, counts)

    def results(
        self, condition_id: str | None = None, *, pair_ids: Sequence[int] | None = None, raw: bool = False
    ) -> pl.DataFrame:
        """Every standing comparison (of one condition, or of all), as a results table.

        Args:
            condition_id: only these.
            pair_ids: only those of the pairs with these numbers.
            raw: with a column ``raw_response``.
        """
        query, schema = queries.results_query(condition_id, raw=raw)
        if pair_ids is not None:
            query = query.where(comparisons.c.pair_id.in_(pair_ids))
        frame = with_members(self._frame(query, schema), self.panels())
        return frame.with_columns(pl.format("SAMPLE_{}", "better_sample").alias("better_sample"))

    def panels(self) -> dict[str, list[str]]:
        """By the condition of each panel of judges, the names of its members."""
        k = conditions.c
        with self.transaction() as connection:
            return {
                row.condition_id: list(row.settings[PANEL])
                for row in connection.execute(select(k.condition_id, k.settings).where(k.backend == PANEL))
            }

    def failed_attempts(self, condition_id: str | None = None) -> pl.DataFrame:
        """Every attempt that gave no answer: ``custom_id ID1 ID2``, why, and all that came back."""
        return self._frame(*queries.failed_query(condition_id))

    def labels(self) -> pl.DataFrame:
        """Every standing label and skip of people, in order; see :data:`pairscale.store.labels.LABELS`."""
        return self._frame(labels_query(), LABELS)

    def items(self) -> pl.DataFrame:
        """The samples, as they came in: ``ID text`` and their other columns."""
        with self.transaction() as connection:
            rows = [
                {"ID": row.item_id, "text": row.text, **row.columns}
                for row in connection.execute(select(items).order_by(items.c.item_id))
            ]
        return (
            pl.DataFrame(rows, infer_schema_length=None, strict=False) if rows else pl.DataFrame(schema=["ID", "text"])
        )

    def read_log(self, name: str, *, last: int | None = None) -> list[Values]:
        """The rows of a named log, in order; all, or only the last ones."""
        query = select(type_coerce(logs.c.data, Text)).where(logs.c.log == name).order_by(logs.c.row.desc()).limit(last)
        with self.transaction() as connection:
            return [json.loads(data) for (data,) in connection.execute(query)][::-1]

    def log_length(self, name: str) -> int:
        """How many rows a named log has."""
        with self.transaction() as connection:
            return int(connection.execute(select(func.count()).where(logs.c.log == name)).scalar_one())

    def spent(self) -> float:
        """What all attempts cost together, in US dollars, as far as their judges said."""
        with self.transaction() as connection:
            return float(connection.execute(select(func.sum(attempts.c.cost))).scalar() or 0.0)

    def highest_costs(self) -> dict[str, float]:
        """By condition, what the most expensive attempt cost in US dollars."""
        query = select(attempts.c.condition_id, func.max(attempts.c.cost)).group_by(attempts.c.condition_id)
        with self.transaction() as connection:
            return {name: float(cost) for name, cost in connection.execute(query) if cost is not None}

    def spending(self, condition_id: str | None = None) -> pl.DataFrame:
        """What was used and paid (by one judge): ``model template_id day attempts``, tokens, ``cost prices_as_of``."""
        query = queries.spending_query(condition_id)
        return queries.dated_spending(self._frame(query, queries.SPENDING), self.get_meta(queries.PRICES_MARK))

    def usage(self, condition_id: str) -> pl.DataFrame:
        """One row an attempt under a condition, in order: ``custom_id attempt outcome``, tokens and ``cost``."""
        return self._frame(queries.usage_query(condition_id), queries.USAGE)

    def read_blob(self, name: str, row: int) -> bytes | None:
        """The bytes under a name and number, or None."""
        with self.transaction() as connection:
            blob = connection.execute(select(blobs.c.data).where(blobs.c.name == name, blobs.c.row == row)).first()
            return None if blob is None else bytes(blob.data)

    def conditions(self) -> pl.DataFrame:
        """One row a condition: who judged what, how often, with which outcomes, at what cost."""
        with self.transaction() as connection:
            return queries.read_conditions(connection)

    def condition(self, condition_id: str) -> Condition:
        """A condition that :meth:`add_condition` has entered."""
        query = select(*(conditions.c[field.name] for field in fields(Condition)))
        with self.transaction() as connection:
            row = connection.execute(query.where(conditions.c.condition_id == condition_id)).mappings().one()
        return Condition(**row)

    def is_empty(self) -> bool:
        """Whether nothing was ever written to it."""
        with self.transaction() as connection:
            return not heads_of(connection)

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""
        with self.transaction() as connection:
            return {
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in (items, pairs, attempts, comparisons)
            }

    def _frame(self, query: Select[Any], schema: Row) -> pl.DataFrame:
        with self.transaction() as connection:
            return queries.frame_of(connection, query, schema)


def _check_version(connection: Connection, name: str, *, create: bool) -> None:
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
    if not present >= _MARKS:
        raise StoreDamagedError(f"{name} is a database but not a run file; name another file")
    version = get_fact(connection, "schema_version")
    if version != SCHEMA_VERSION:
        raise StoreDamagedError(f"{name} has schema version {version}; use the version of pairscale that wrote it")
    if not present >= tables.tables.keys():
        raise StoreDamagedError(f"{name} lacks tables; restore it from a copy")
