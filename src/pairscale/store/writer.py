"""The one writer of a run file: what was asked and logged, in whole transactions.

:class:`Writer` turns entries into rows and writes any number of them in one transaction. When it is called is decided
by one of two policies, in :mod:`pairscale.store.policies`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import delete, func, select

from pairscale.core.errors import InputError, StoreError, StoreMismatchError
from pairscale.core.provenance import text_hash
from pairscale.core.tables import Row, Values
from pairscale.store.chain import ChainWriter, Change, RowHashes, canonical, insert_rows
from pairscale.store.database import has_null, next_number, scrub_surrogates
from pairscale.store.schema import Written, attempts, blobs, comparisons, items, logs, pairs, write_json

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from pairscale.store.runfile import RunFile

_WRITTEN = (items, pairs, attempts, comparisons, blobs, logs)  # each points to those before it


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
    attempts: Sequence[Row] = ()
    comparison: Row | None = None
    pair_id: int | None = None
    uid: str = ""
    ID1: str = ""
    ID2: str = ""
    columns: Row = field(default_factory=dict)
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
    rows: Sequence[tuple[str, Row]] = ()
    samples: Sequence[Row] = ()
    scores: pl.DataFrame | Sequence[Row] = ()
    blobs: Mapping[str, bytes] = field(default_factory=dict)


class Writer:
    """Writes entries into a run file that is open for writing; a run file has one, ``RunFile.writer``."""

    def __init__(self, run_file: RunFile) -> None:
        self._run_file = run_file
        self._numbers: _Numbers | None = None
        # Entries whose transaction failed, and the end of the chain if it was written all the same.
        self._in_doubt: tuple[Sequence[Entry], tuple[int, str]] | None = None
        self.chain = ChainWriter()

    def renumber(self) -> None:
        """Count the rows again before the next write, because something else has written to the run file."""
        self._numbers = None
        self.chain.forget()

    @contextmanager
    def changing(self) -> Iterator[Change]:
        """A transaction for what is written outside the stream of answers, such as samples or labels.

        It is chained like everything else, all of it or nothing.
        """
        try:
            with self._run_file.writing() as connection:
                change = Change(connection, self.chain)
                yield change
                change.finish()
        except BaseException:
            self.renumber()
            raise
        if self._run_file.in_snapshot:  # a larger transaction, which may fail later
            self.renumber()

    def commit(self, entries: Sequence[Entry]) -> None:
        """Write all entries in one transaction; the same list again, after an error, is written once.

        Raises:
            InputError: an entry has a column that the run file does not have; nothing is written.
            StoreError: the run file cannot be written; nothing is written.
        """
        with self._run_file.turn:
            try:
                self._commit(entries)
            except (TypeError, ValueError, RecursionError, StoreError) as error:
                if isinstance(error, StoreError) and not has_null(error):
                    raise
                self._commit([_storable(entry) for entry in entries])

    def _commit(self, entries: Sequence[Entry]) -> None:
        doubt = self._in_doubt
        self._in_doubt = None
        try:
            with self._run_file.writing() as connection:
                if doubt is not None and doubt[0] is entries and doubt[1] == self.chain.head(connection):
                    return  # the connection was lost after the transaction was written
                if self._numbers is None:
                    self._numbers = _Numbers.read(connection)
                group = _Group(replace(self._numbers, rows=dict(self._numbers.rows)), connection)
                for entry in entries:
                    group.add(entry)
                self.chain.append(connection, group.write(connection))
                doubt = (entries, self.chain.head(connection))
        except BaseException:
            self._in_doubt = doubt
            self.renumber()
            raise
        self._numbers = group.numbers
        if self._run_file.in_snapshot:  # a larger transaction, which may fail later
            self.renumber()


def _storable(entry: Entry) -> Entry:
    """The entry without what no database takes: half characters, null bytes, and replies that JSON cannot hold.

    Such a reply of a user's own judge (keys that are no texts, a list that holds itself) is kept as text: the answer
    was paid for.
    """
    asked = entry.asked
    if asked is None:
        return entry
    return replace(entry, asked=replace(asked, attempts=[_storable_row(values) for values in asked.attempts]))


def _storable_row(values: Row) -> Values:
    """The columns of an attempt, each as it comes back from JSON without what no database takes."""
    kept: Values = {}
    for name, value in values.items():
        try:
            text = write_json(value)
        except (TypeError, ValueError, RecursionError):
            text = write_json(str(value))
        kept[name] = json.loads(scrub_surrogates(text).replace(r"\u0000", "\ufffd"))
    return kept


_NumberedPair = tuple[int, str, str]  # pair_id, ID1, ID2


@dataclass(slots=True)
class _Numbers:
    """The numbers of the next rows, counted in memory: no other process may write to the file."""

    pair: int
    attempt: int
    comparison: int
    rows: dict[str, int]
    named: dict[str, _NumberedPair] | None = None

    @classmethod
    def read(cls, connection: Connection) -> _Numbers:
        """The numbers after those in the run file."""
        counts = select(logs.c.log, func.max(logs.c.row)).group_by(logs.c.log)
        return cls(
            next_number(connection, pairs.c.pair_id),
            next_number(connection, attempts.c.attempt_id),
            next_number(connection, comparisons.c.comparison_id),
            dict(connection.execute(counts).all()),
        )

    def pair_named(self, uid: str, connection: Connection) -> _NumberedPair | None:
        """The pair with this name; the names are read when the first one is asked for."""
        if self.named is None:
            query = select(pairs.c.custom_id, pairs.c.pair_id, pairs.c.ID1, pairs.c.ID2)
            self.named = {row.custom_id: (row.pair_id, row.ID1, row.ID2) for row in connection.execute(query)}
        return self.named.get(uid)


class _Group:
    """What goes into one transaction."""

    def __init__(self, numbers: _Numbers, connection: Connection) -> None:
        self.numbers = numbers
        self._connection = connection
        self._new_names: dict[str, _NumberedPair] = {}
        self._replaced: dict[str, list[int]] = {}
        self._rows: dict[str, list[Values]] = {table.name: [] for table in _WRITTEN}

    def add(self, entry: Entry) -> None:
        """Turn an entry into rows."""
        self._rows["items"] += map(dict, entry.samples)
        if entry.asked is not None:
            self._add_asked(entry.asked)
        for log, row in entry.rows:
            if entry.blobs and log == "round_log":
                number = int(row["refit_id"])
                self._rows["blobs"] += [
                    {"name": name, "row": number, "data": data} for name, data in entry.blobs.items()
                ]
            self._add_log(log, row)
            if len(entry.scores) and log == "round_log":
                self._add_log("item_log", {"refit_id": row["refit_id"], "columns": _columns(entry.scores)})

    def write(self, connection: Connection) -> RowHashes:
        """Write all rows, and return their hashes."""
        row_hashes: RowHashes = {}
        for condition_id, numbers in self._replaced.items():
            same = (comparisons.c.condition_id == condition_id) & comparisons.c.pair_id.in_(numbers)
            gone = connection.execute(select(comparisons.c.comparison_id).where(same)).scalars().all()
            row_hashes.setdefault("comparisons", []).extend([number, None] for number in gone)
            connection.execute(delete(comparisons).where(same))
        for table in _WRITTEN:
            insert_rows(connection, table, self._rows[table.name], row_hashes)
        if self.numbers.named is not None:
            self.numbers.named.update(self._new_names)
        return row_hashes

    def _add_asked(self, asked: Asked) -> None:
        """Add the attempts, the outcome that they settle, and the pair when it is new."""
        pair_id = self._pair_id(asked)
        attempt_id = 0
        for values in asked.attempts:
            attempt_id = self.numbers.attempt
            self.numbers.attempt += 1
            own = {"attempt_id": attempt_id, "pair_id": pair_id, "condition_id": asked.condition_id}
            self._rows["attempts"].append({**values, **own})
        if asked.comparison is None:
            return
        if not attempt_id:
            raise InputError(f"{asked.uid or pair_id}: an outcome needs the attempt that it came from")
        if asked.replaces:
            self._replaced.setdefault(asked.condition_id, []).append(pair_id)
        own = {"comparison_id": self.numbers.comparison, "pair_id": pair_id, "attempt_id": attempt_id}
        own["condition_id"] = asked.condition_id
        self.numbers.comparison += 1
        self._rows["comparisons"].append({**asked.comparison, **own})

    def _pair_id(self, asked: Asked) -> int:
        """The number of the pair; a new one is added."""
        if asked.pair_id is not None:
            return asked.pair_id
        named = self._new_names.get(asked.uid) or self.numbers.pair_named(asked.uid, self._connection)
        if named is not None:
            if named[1:] != (asked.ID1, asked.ID2):
                raise StoreMismatchError(f"{asked.uid} is another pair in the run file: {named[1]}, {named[2]}")
            return named[0]
        number = self.numbers.pair
        self._new_names[asked.uid] = (number, asked.ID1, asked.ID2)
        self.numbers.pair += 1
        self._rows["pairs"].append(
            {"pair_id": number, "custom_id": asked.uid, "ID1": asked.ID1, "ID2": asked.ID2}
            | {"columns": dict(asked.columns)}
        )
        return number

    def _add_log(self, log: str, row: Row) -> None:
        """Add a row to a log, under its next number."""
        numbers = self.numbers
        number = numbers.rows.get(log, 0) + 1
        numbers.rows[log] = number
        self._rows["logs"].append({"log": log, "row": number, "data": Written(canonical(row))})


def _columns(scores: pl.DataFrame | Sequence[Row]) -> dict[str, list[Any]]:
    """The scores column by column, as one row of ``item_log`` holds them."""
    if isinstance(scores, pl.DataFrame):
        return scores.to_dict(as_series=False)
    names = dict.fromkeys(name for row in scores for name in row)
    return {name: [row.get(name) for row in scores] for name in names}


def item_row(sample: Row) -> Values:
    """A sample as a row of the table ``items``."""
    more = {key: value for key, value in sample.items() if key not in {"ID", "text"}}
    text = sample["text"]
    return {"item_id": sample["ID"], "text": text, "text_hash": text_hash(text), "columns": more}
