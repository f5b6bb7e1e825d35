"""The journal of an adaptive run: what happens is written in its order, in the background, many things at once.

The engine must not wait for the disk at every step, and the file must never tell another story than what happened. So
calls return at once, a thread takes whatever is waiting into one transaction, and the file holds, at every moment and
however the process ends, exactly the beginning of what happened: all of a step or nothing of it, never a later step
without an earlier one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import polars as pl
from sqlalchemy import Text, bindparam, cast, func, insert, select, update

from pairscale.errors import InputError, StoreDamagedError, StoreError
from pairscale.store._database import Prepared, Written, following, get_fact, set_fact, storable
from pairscale.store._schema import attempts, blobs, comparisons, logs, metadata, pairs
from pairscale.store.chain import CHAIN, CHAINED, canonical, digest_of, link
from pairscale.tables import listed

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Dialect

    from pairscale.store.runfile import RunFile

__all__ = ["Asked", "Journal"]

_LINGER = 0.01
"""Seconds that the first of a group waits for others; a flush does not wait."""

_MOST = 20_000
"""So many things may wait; whoever brings more waits for the disk."""


# One statement for all rows: each needs every column.
_NO_ATTEMPT = dict.fromkeys(attempts.c.keys())
_NO_COMPARISON = dict.fromkeys(column.name for column in comparisons.c if column.name != "comparison_id")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a judge was asked in a step, and what came of it.

    Attributes:
        uid: the name of the question, unique in the run file, such as ``step-000017``.
        ID1: the sample shown first.
        ID2: the sample shown second.
        columns: whatever else belongs to the question, such as ``{"step_id": 17}``.
        attempts: the columns of each attempt, in their order; only those that were not written down before.
        comparison: the columns of the outcome that the last attempt settles (an answer, or a failure for good); None
            when nothing is settled.
    """

    uid: str
    ID1: str
    ID2: str
    columns: Mapping[str, Any] = field(default_factory=dict[str, Any])
    attempts: Sequence[Mapping[str, Any]] = ()
    comparison: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for known, given in ((_NO_ATTEMPT, self.attempts), (_NO_COMPARISON, (self.comparison or {},))):
            for values in given:
                if unknown := values.keys() - known.keys():
                    raise InputError(f"{self.uid}: the run file has no column {listed(sorted(unknown))}")


_Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One thing that happened: rows of logs, what was asked, bytes to keep."""

    rows: Sequence[tuple[str, Mapping[str, Any]]] = ()
    asked: Asked | None = None
    items: pl.DataFrame | Sequence[Mapping[str, Any]] = ()
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


class Journal:
    """Writes an adaptive run into a run file that is open for writing; use it in a ``with`` block.

    Every method but :meth:`flush` and :meth:`close` returns at once. When something cannot be written (the disk is
    full), nothing later is, and every further call raises the reason.

    Args:
        run_file: open for writing; it must stay open until the journal is closed.
        condition_id: the condition that all questions are asked under, entered before.

    Raises:
        StoreDamagedError: when the end of a log was changed from outside, so that its chain cannot be continued.
    """

    def __init__(self, run_file: RunFile, condition_id: str) -> None:
        self._run_file, self._condition_id = run_file, condition_id
        self._statements = _Statements(run_file._engine.dialect)
        with run_file.transaction() as connection:
            self._numbers = _Numbers(connection, run_file.name, condition_id)
        self._changed = threading.Condition()
        self._waiting: list[_Entry] = []
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

    # What happens

    def step(self, row: Mapping[str, Any], asked: Asked | None = None) -> None:
        """A step is finished: its row of the step log, and what the judge was asked, if anybody was."""
        self._put(_Entry([("step_log", dict(row))], asked))

    def asked(self, asked: Asked) -> None:
        """A judge was asked, and the step goes on: an attempt in vain, or one that was interrupted."""
        self._put(_Entry(asked=asked))

    def proposed(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Questions are about to be asked: rows of the log ``adaptive_open``."""
        self._put(_Entry([("adaptive_open", dict(row)) for row in rows]))

    def refit(
        self,
        row: Mapping[str, Any],
        items: pl.DataFrame | Sequence[Mapping[str, Any]] = (),
        blobs: Mapping[str, bytes] | None = None,
        event: Mapping[str, Any] | None = None,
    ) -> None:
        """A refit is finished: its row of the round log, the rows of its items, and bytes that are kept by name.

        The items become one row of the log ``item_log``, column by column. The bytes are numbered by ``refit_id``.
        ``event`` goes into the log ``adaptive_events`` with it, so that no refit is there without it.
        """
        if "refit_id" not in row:
            raise InputError("a row of the round log needs its refit_id")
        if "blobs" in row:
            raise InputError("a row of the round log cannot have a value 'blobs'; the digests stand there")
        rows = (
            [("round_log", dict(row))]
            if event is None
            else [("round_log", dict(row)), ("adaptive_events", dict(event))]
        )
        self._put(_Entry(rows, items=items, blobs=dict(blobs or {})))

    def event(self, row: Mapping[str, Any]) -> None:
        """Anything else that happens to a run: a call, a limit, a join, a pause, a stop."""
        self._put(_Entry([("adaptive_events", dict(row))]))

    # Waiting

    def flush(self) -> None:
        """Wait until all of it is on the disk; raise what went wrong."""
        with self._changed:
            target = self._accepted
            self._hurry = self._written < target
            self._changed.notify_all()
            while self._written < target and self._failure is None:
                self._changed.wait()
            self._raise()

    def close(self) -> None:
        """Write what is waiting, and end; raise what went wrong, unless a call has raised it before."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        if not self._told:
            self._raise()

    def _put(self, entry: _Entry) -> None:
        for _, row in entry.rows:
            if "hash" in row:
                raise InputError("a row of a log cannot have a value 'hash'; its place in the chain stands there")
        with self._changed:
            while len(self._waiting) >= _MOST and self._failure is None:
                self._changed.wait()
            self._raise()
            if self._closing:
                raise StoreError(f"{self._run_file.name}: the journal is closed")
            self._waiting.append(entry)
            self._accepted += 1
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def _raise(self) -> None:
        if self._failure is not None:
            self._told = True
            raise self._failure

    # The thread

    def _work(self) -> None:
        try:
            with self._run_file._held() as connection:
                while batch := self._taken():
                    group = _Group(self._numbers)
                    for entry in batch:
                        group.add(entry, self._condition_id)
                    try:
                        with self._run_file.transaction(connection):
                            group.write(connection, self._statements)
                    except (TypeError, ValueError, RecursionError):
                        group.clean()
                        with self._run_file.transaction(connection):
                            group.write(connection, self._statements)
                    with self._changed:
                        self._written += len(batch)
                        self._changed.notify_all()
        except BaseException as error:  # noqa: BLE001 - it is raised where the next thing happens
            with self._changed:
                self._failure = error
                self._waiting.clear()
                self._changed.notify_all()

    def _taken(self) -> list[_Entry]:
        """All that is waiting, as soon as anything is; nothing when that was all."""
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            if not self._hurry and not self._closing:
                self._changed.wait_for(lambda: self._hurry or self._closing, _LINGER)
            self._hurry = False
            batch, self._waiting = self._waiting, []
            return batch


class _Numbers:
    """What the next rows are numbered, counted in memory: nobody else may write to the file."""

    def __init__(self, connection: Connection, name: str, condition_id: str) -> None:
        self.pair = following(connection, pairs.c.pair_id)
        self.attempt = following(connection, attempts.c.attempt_id)
        counts = select(logs.c.log, func.max(logs.c.row).label("last")).group_by(logs.c.log)
        self.rows: dict[str, int] = {found.log: found.last for found in connection.execute(counts)}
        heads = get_fact(connection, CHAIN)
        self.has_heads = heads is not None
        self.heads: dict[str, list[Any]] = {log: [0, log] for log in CHAINED} | (heads or {})
        for log in CHAINED:
            self._check(connection, name, log)
        # Questions that were asked about and not settled: they may be asked again.
        settled = select(comparisons.c.pair_id).where(comparisons.c.condition_id == condition_id)
        open_pairs = (
            select(pairs.c.custom_id, pairs.c.pair_id, func.max(attempts.c.attempt_id))
            .select_from(pairs.join(attempts, attempts.c.pair_id == pairs.c.pair_id))
            .where(attempts.c.condition_id == condition_id, pairs.c.pair_id.not_in(settled))
            .group_by(pairs.c.custom_id, pairs.c.pair_id)
        )
        self.open: dict[str, tuple[int, int]] = {
            uid: (pair, attempt) for uid, pair, attempt in connection.execute(open_pairs)
        }

    def _check(self, connection: Connection, name: str, log: str) -> None:
        """The last row must be the one that the metadata name; the whole chain is checked by verify_chain."""
        count, last = self.heads[log]
        end = select(cast(logs.c.data, Text)).where(logs.c.log == log, logs.c.row == count)
        text = connection.execute(end).scalar()
        if self.rows.get(log, 0) != count or (count and not str(text).endswith(f'"hash":"{last}"}}')):
            raise StoreDamagedError(
                f"{name}: the end of its {log} was changed from outside, so the run cannot go on; "
                "restore it from a copy"
            )


class _Statements:
    """The few statements that are needed, compiled once."""

    def __init__(self, dialect: Dialect) -> None:
        settled = [comparisons.c[name] for name in _NO_COMPARISON]
        self.inserts = {
            table.name: Prepared(insert(table).inline(), columns, dialect)
            for table, columns in (
                (pairs, pairs.c), (attempts, attempts.c), (comparisons, settled), (blobs, blobs.c), (logs, logs.c),
            )
        }  # fmt: skip
        heads = update(metadata).where(metadata.c.key == bindparam("fact"))
        self.heads = Prepared(heads, [metadata.c.value], dialect)


class _Group:
    """What goes into one transaction."""

    def __init__(self, numbers: _Numbers) -> None:
        self._numbers = numbers
        # In the order of writing: each table points to those before it.
        self._rows: dict[str, list[_Row]] = {table.name: [] for table in (pairs, attempts, comparisons, blobs, logs)}

    def add(self, entry: _Entry, condition_id: str) -> None:
        if entry.asked is not None:
            self._ask(entry.asked, condition_id)
        for log, row in entry.rows:
            if entry.blobs and log == "round_log":
                number = int(row["refit_id"])
                row = {**row, "blobs": {name: digest_of(data) for name, data in entry.blobs.items()}}  # noqa: PLW2901
                self._rows["blobs"] += [
                    {"name": name, "row": number, "data": data} for name, data in entry.blobs.items()
                ]
            self._log(log, row)
            if len(entry.items) and log == "round_log":
                self._log("item_log", {"refit_id": row["refit_id"], "columns": _columns(entry.items)})

    def write(self, connection: Connection, statements: _Statements) -> None:
        for table, rows in self._rows.items():
            if rows:
                statements.inserts[table].execute(connection, rows)
        numbers = self._numbers
        if self._rows["logs"] and numbers.has_heads:
            statements.heads.execute(connection, [{"fact": CHAIN, "value": numbers.heads}])
        elif self._rows["logs"]:
            set_fact(connection, CHAIN, numbers.heads)
            numbers.has_heads = True

    def clean(self) -> None:
        """Take out of what the judge said what no database takes."""
        self._rows["attempts"] = [storable(row) for row in self._rows["attempts"]]

    def _ask(self, asked: Asked, condition_id: str) -> None:
        numbers = self._numbers
        pair_id, attempt_id = numbers.open.pop(asked.uid, (0, 0))
        if not pair_id:
            pair_id = numbers.pair
            numbers.pair += 1
            self._rows["pairs"].append(
                {"pair_id": pair_id, "custom_id": asked.uid, "ID1": asked.ID1, "ID2": asked.ID2}
                | {"columns": dict(asked.columns)}
            )
        for values in asked.attempts:
            attempt_id = numbers.attempt
            numbers.attempt += 1
            own = {"attempt_id": attempt_id, "pair_id": pair_id, "condition_id": condition_id}
            self._rows["attempts"].append({**_NO_ATTEMPT, **values, **own})
        if asked.comparison is None:
            numbers.open[asked.uid] = (pair_id, attempt_id)
        elif not attempt_id:
            raise InputError(f"{asked.uid}: an outcome needs the attempt that it came from")
        else:
            own = {"pair_id": pair_id, "condition_id": condition_id, "attempt_id": attempt_id}
            self._rows["comparisons"].append({**_NO_COMPARISON, **asked.comparison, **own})

    def _log(self, log: str, row: Mapping[str, Any]) -> None:
        numbers = self._numbers
        number = numbers.rows.get(log, 0) + 1
        numbers.rows[log] = number
        if log in numbers.heads:
            digest, data = link(numbers.heads[log][1], row)
            numbers.heads[log] = [number, digest]
        else:
            data = Written(canonical(row))
        self._rows["logs"].append({"log": log, "row": number, "data": data})


def _columns(items: pl.DataFrame | Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    if isinstance(items, pl.DataFrame):
        return items.to_dict(as_series=False)
    names = dict.fromkeys(name for row in items for name in row)
    return {name: [row.get(name) for row in items] for name in names}
