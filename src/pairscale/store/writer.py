"""The one writer of a run file: what was asked and logged, in whole transactions.

:class:`Writer` turns entries into rows and writes any number of them in one transaction. When it is called is decided
by one of two policies, in :mod:`pairscale.store.policies`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import Text, bindparam, cast, delete, func, insert, select, update

from pairscale.errors import InputError, StoreDamagedError, StoreError
from pairscale.store._database import Prepared, Written, following, get_fact, set_fact, storable
from pairscale.store._schema import attempts, blobs, comparisons, items, logs, metadata, pairs
from pairscale.store.chain import CHAIN, CHAINED, canonical, digest_of, link
from pairscale.tables import listed

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Dialect

    from pairscale.store.runfile import RunFile

__all__ = ["Asked", "Entry", "Writer", "check_entry"]

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


def check_entry(entry: Entry) -> None:
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
