"""The check of a run file against its hash chain, and of its tables against each other.

Everything is read as the driver gives it, so that a row that was made unreadable is a finding and not an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polars.exceptions import PolarsError
from sqlalchemy import func, select

from pairscale.core.errors import PairscaleError, StoreDamagedError, StoreError
from pairscale.core.provenance import text_hash
from pairscale.store.chain import (
    CLOSED,
    HASHED,
    MAIN,
    UNHASHED_FACTS,
    digest_of_closing,
    digest_of_heads,
    sha256,
    stored_rows,
)
from pairscale.store.database import get_fact, raw_rows
from pairscale.store.schema import attempts, chain, comparisons, items, label_cases, label_questions, labels, pairs

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.engine import Connection

    from pairscale.store.runfile import RunFile

_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
_MAY_CHANGE = {"metadata", "label_cases", "labels"}  # a label is taken back, texts come after an import
_DIFFERENCES = {
    "edited": "the row was changed",
    "added": "the row was not written by pairscale",
    "missing": "the row is missing",
}
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class EvidenceProblem:
    """A difference between a run file and its chain, or between two of its tables.

    Attributes:
        table: the table.
        row: the key of the row; for logs, the name of the log and the number of the row.
        kind: ``edited``, ``missing``, ``added``, ``unreadable``, ``replaced`` (the chain has a second entry for a row
            that never changes), ``chain`` (an entry of the chain itself) or ``derived`` (it does not follow from the
            rows that it should follow from).
        message: what is wrong.
    """

    table: str
    row: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.table}, row {self.row}: {self.message}"


@dataclass(slots=True)
class Evidence:
    """What a check found.

    Attributes:
        problems: every difference; none when all is as it was written.
        rows: by table, the rows that were compared with the chain.
        entries: entries of the chain.
        digest: the digest that the run file was closed with; None when something was written since, or its process was
            killed.
        earlier: the digests of all closings, in order.
        imported: the digest of the run that it was imported from; None when it was not.
    """

    problems: list[EvidenceProblem] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    entries: int = 0
    digest: str | None = None
    earlier: list[str] = field(default_factory=list)
    imported: str | None = None


def check_evidence(run_file: RunFile, *tables: str) -> Evidence:
    """Compare the rows of a run file with its chain, and the chain with itself.

    Args:
        run_file: open in any way.
        tables: only these tables; all by default, and then also what follows from other tables.
    """
    chosen = [table for table in HASHED if not tables or table.name in tables]
    with run_file.transaction() as connection:
        ledger = _Ledger()
        ledger.read(connection)
        evidence = ledger.evidence
        evidence.digest = digest_of_closing(connection)
        for table in chosen:
            evidence.problems += ledger.differences(connection, table)
        if not tables:
            reported = {problem.row for problem in evidence.problems if problem.table == "items"}
            evidence.problems += [problem for problem in _other_texts(connection) if problem.row not in reported]
        if not tables and not evidence.problems:  # else they would be found twice
            evidence.problems += [*_unfounded(connection), *_miscounted(connection)]
    return evidence


class _Ledger:
    """The chain of a run file, read from the first entry to the last."""

    def __init__(self) -> None:
        self.evidence = Evidence()
        self.expected: dict[str, dict[Key, bytes]] = {table.name: {} for table in HASHED}
        self._hashes: dict[Any, str] = {}
        self._closings: list[tuple[str, Any]] = []

    def read(self, connection: Connection) -> None:
        query = select(chain.c.chain, chain.c.entry, chain.c.data, chain.c.hash)
        previous = MAIN
        expected = 1
        for name, number, data, digest in raw_rows(connection, query.order_by(chain.c.chain, chain.c.entry)):
            where = f"{name} {number}"
            if name != MAIN or not isinstance(number, int):
                self._problem("chain", where, "chain", "the entry was not written by pairscale")
                continue
            if number != expected:
                self._problem("chain", f"{MAIN} {expected}", "chain", "the entry is missing")
            elif sha256(f"{previous}{data}") != digest:
                self._problem("chain", where, "chain", "the entry was changed or has taken another's place")
            previous = str(digest)
            expected = number + 1
            self._hashes[number] = previous
            try:
                self._entry(json.loads(data), where)
            except _UNREADABLE as error:
                self._problem("chain", where, "unreadable", f"the entry cannot be read ({error})")
        self.evidence.entries = len(self._hashes)
        try:
            closed = get_fact(connection, CLOSED)
        except StoreDamagedError as error:
            closed = str(error)
        entries = [entry for _, entry in self._closings]
        if closed is not None and closed not in entries:
            self._problem("metadata", CLOSED, "chain", "the chain has no entry of this closing")
        for where, closing in self._closings:
            if self._is_whole(closing):
                self.evidence.earlier.append(closing["digest"])
            else:
                self._problem("chain", where, "chain", "it was closed with other entries of the chain")

    def _entry(self, entry: Any, where: str) -> None:
        if "closed" in entry:
            self._closings.append((where, entry["closed"]))
        if entry.get("imported"):
            self.evidence.imported = str(entry["imported"])
        for table, row_hashes in entry.get("rows", {}).items():
            for *key, digest in row_hashes:
                self._take(table, tuple(key), digest, where)

    def _take(self, table: str, key: Key, digest: str | None, where: str) -> None:
        expected = self.expected[table]
        may_change = table in _MAY_CHANGE or (table == "comparisons" and digest is None)
        if key in expected and not may_change:
            message = f"entry {where} of the chain replaces or removes it, but it never changes"
            self._problem(table, _joined(key), "replaced", message)
        if digest is None:
            expected.pop(key, None)
        else:
            expected[key] = bytes.fromhex(digest)

    def _is_whole(self, closed: Any) -> bool:
        """Whether the end that a closing names is in the chain, and its digest is that of the end."""
        try:
            number, digest = closed["heads"][MAIN]
            return self._hashes.get(number) == digest and bool(digest_of_heads(closed["heads"]) == closed["digest"])
        except _UNREADABLE:
            return False

    def differences(self, connection: Connection, table: Table) -> Iterator[EvidenceProblem]:
        """What differs between the rows of a table and the chain, by the rows' keys."""
        expected = self.expected[table.name]
        for *key, digest in stored_rows(connection, table):
            if table.name == "metadata" and key[0] in UNHASHED_FACTS:
                continue
            self.evidence.rows[table.name] = self.evidence.rows.get(table.name, 0) + 1
            written = expected.pop(tuple(key), None)
            if written is None:
                yield _difference(table, key, "added")
            elif written != bytes.fromhex(digest):
                yield _difference(table, key, "edited")
        for missing in expected:
            yield _difference(table, missing, "missing")

    def _problem(self, table: str, row: str, kind: str, message: str) -> None:
        self.evidence.problems.append(EvidenceProblem(table, row, kind, message))


def _difference(table: Table, key: Sequence[Any], kind: str) -> EvidenceProblem:
    return EvidenceProblem(table.name, _joined(key), kind, _DIFFERENCES[kind])


def _joined(key: Sequence[Any]) -> str:
    return " ".join(map(str, key))


def _other_texts(connection: Connection) -> Iterator[EvidenceProblem]:
    """Samples whose text is not the one that their hash is of."""
    for name, text, digest in raw_rows(connection, select(items.c.item_id, items.c.text, items.c.text_hash)):
        if not isinstance(text, str) or text_hash(text) != digest:
            yield EvidenceProblem("items", str(name), "edited", "the text was changed")


def _unfounded(connection: Connection) -> Iterator[EvidenceProblem]:
    """Comparisons that do not follow from the attempt that they name."""
    a = attempts.c
    c = comparisons.c
    p = pairs.c
    joined = comparisons.outerjoin(attempts, a.attempt_id == c.attempt_id).outerjoin(pairs, p.pair_id == c.pair_id)
    query = select(
        c.comparison_id, c.attempt_id, c.pair_id, c.condition_id, c.outcome, c.winner_pos, c.better_id, c.probability,
        a.pair_id.label("asked"), a.condition_id.label("judge"), a.outcome.label("came"), p.ID1, p.ID2,
    ).select_from(joined)  # fmt: skip
    for number, attempt, pair, condition, outcome, place, better, probability, asked, judge, came, *ids in raw_rows(
        connection, query.order_by(c.comparison_id)
    ):
        winner = ids[place - 1] if outcome == "win" and place in (1, 2) else None
        is_founded = (
            (pair, condition, outcome) == (asked, judge, came)
            and (outcome == "win") == (place in (1, 2))
            and better == winner
            and (probability is None or (isinstance(probability, float) and 0 <= probability <= 1))
        )
        if not is_founded:
            message = f"it does not follow from its attempt {attempt}"
            yield EvidenceProblem("comparisons", str(number), "derived", message)


def _miscounted(connection: Connection) -> Iterator[EvidenceProblem]:
    """Cases whose number of labels is not that of their standing labels."""
    standing_labels = (
        select(label_questions.c.case_number, func.count().label("n"))
        .join_from(labels, label_questions)
        .where(labels.c.undone_at.is_(None), labels.c.preferred.is_not(None))
        .group_by(label_questions.c.case_number)
        .subquery()
    )
    standing = func.coalesce(standing_labels.c.n, 0)
    query = select(label_cases.c.case_number, label_cases.c.n_labels, standing).outerjoin(
        standing_labels, standing_labels.c.case_number == label_cases.c.case_number
    )
    for number, counted, actual in connection.execute(query):
        if counted != actual:
            message = f"n_labels is {counted}, and it has {actual} labels"
            yield EvidenceProblem("label_cases", str(number), "derived", message)


def damage_behind(run_file: RunFile, error: BaseException) -> StoreDamagedError | None:
    """Why a run file could not be read: a row that was changed from outside; None when none was."""
    if isinstance(error, PairscaleError) or not isinstance(error, (*_UNREADABLE, PolarsError)):
        return None
    try:
        problems = check_evidence(run_file).problems
    except StoreError:
        return None
    if not problems:
        return None
    more = f" and {len(problems) - 1:,} more" if len(problems) > 1 else ""
    return StoreDamagedError(
        f"{run_file.name} was changed from outside ({problems[0]}{more}), and cannot be read; `pairscale audit` lists "
        "all differences"
    )
