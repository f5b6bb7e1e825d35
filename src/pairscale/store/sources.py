"""The check of a merged run file against the run files that it was merged from.

Each of them is put together again, with the numbers that its rows had there, in a temporary file, and that is compared
with the chain that the merged file keeps of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from pairscale.store._merging import MERGES, expanded
from pairscale.store.chain import MERGED
from pairscale.store.database import Written, letter_rows, prepared_insert
from pairscale.store.evidence import Evidence, EvidenceProblem, Unless, check_evidence, expected_hashes
from pairscale.store.labels import new_token
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.schema import (
    attempts,
    blobs,
    chain,
    comparisons,
    conditions,
    items,
    label_cases,
    label_questions,
    labellers,
    labels,
    logs,
    metadata,
    pairs,
)

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.engine import Connection

__all__ = ["check_sources", "digests_of_sources"]

_KEYS: Mapping[str, tuple[str, str]] = {
    "pair_id": ("pairs", "pair_id"),
    "attempt_id": ("attempts", "attempt_id"),
    "comparison_id": ("comparisons", "comparison_id"),
    "labeller_id": ("labellers", "labeller_id"),
    "case_number": ("label_cases", "case_number"),
    "question_id": ("label_questions", "question_id"),
    "label_id": ("labels", "label_id"),
}
"""By column, the table whose rows it counts."""
_NUMBERED = (pairs, attempts, comparisons, labellers, label_cases, label_questions, labels)


def digests_of_sources(run_file: RunFile) -> dict[str, str]:
    """By the digest that it was closed with, each run file that this one was merged from."""
    return {row["digest"]: row["source"] for row in run_file.read_log(MERGES) if row["digest"]}


def check_sources(run_file: RunFile, evidence: Evidence) -> list[EvidenceProblem]:
    """Compare the rows of a merged run file with the chains of the run files that they are from.

    Args:
        run_file: open in any way, and as its own chain says.
        evidence: what the check of its own chain found.

    Returns:
        Every difference; none for a run file that was not merged.
    """
    problems: list[EvidenceProblem] = []
    for k, row in enumerate(run_file.read_log(MERGES), start=1):
        with tempfile.TemporaryDirectory() as folder, open_run(Path(folder) / "source.db", write=True) as copy:
            with run_file.transaction() as source, copy.transaction() as target:
                _Extraction(source, target, k, row).write()
            found = check_evidence(copy, unless=_changed_since(evidence, row))
            found.problems += check_sources(copy, found) if not found.problems else []
        problems += (
            EvidenceProblem(one.table, one.row, one.kind, f"{one.message} (as {row['source']} held it)")
            for one in found.problems
        )
    return problems


def _changed_since(evidence: Evidence, row: Mapping[str, Any]) -> Unless:
    """What the merged run has changed for good reasons: failures that were asked again, labels that were undone."""
    old = expanded(row["numbers"]["comparisons"])
    gone = [(old[key[0]],) for key in evidence.removed.get("comparisons", ()) if key[0] in old]
    rows = {(log, new): number for log, ranges in row["logs"].items() for new, number in expanded(ranges).items()}
    logged = [(key[0], rows[key[0], key[1]]) for key in evidence.removed.get("logs", ()) if (key[0], key[1]) in rows]
    return Unless(frozenset({"labels.undone", *evidence.imported}), {"comparisons": gone, "logs": logged})


class _Extraction:
    """Puts one of the merged run files together again."""

    def __init__(self, source: Connection, target: Connection, k: int, row: Mapping[str, Any]) -> None:
        self._source, self._target, self._prefix = source, target, f"{k}{MERGED}"
        self._numbers = {name: expanded(ranges) for name, ranges in row["numbers"].items()}
        self._numbers["pairs"] |= self._numbers.pop("repeats")
        self._logs = {name: expanded(ranges) for name, ranges in row["logs"].items()}
        self._originals: dict[str, list[dict[str, Any]]] = row["originals"]

    def write(self) -> None:
        self._insert(chain, self._chains())
        expected = expected_hashes(self._target)
        for table in (items, conditions):
            self._insert(table, self._named(table, {key[0] for key in expected[table.name]}))
        for table in _NUMBERED:
            self._insert(table, self._numbered(table))
        self._insert(logs, self._log_rows())
        self._insert(blobs, (row for row in letter_rows(self._source, blobs) if _key(blobs, row) in expected["blobs"]))
        self._insert(metadata, self._kept("metadata"))
        self._recount()

    def _insert(self, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
        block: list[Mapping[str, Any]] = []
        statement = prepared_insert(table, self._target.dialect)
        for row in rows:
            block.append(row)
            if len(block) >= 1_000:
                statement.execute(self._target, block)
                block = []
        if block:
            statement.execute(self._target, block)

    def _chains(self) -> Iterator[dict[str, Any]]:
        for row in letter_rows(self._source, chain):
            if row["chain"].startswith(self._prefix):
                yield row | {"chain": row["chain"].removeprefix(self._prefix)}

    def _kept(self, table: str) -> Iterator[dict[str, Any]]:
        """Rows as they were; what was text of a JSON column is it again."""
        written = {"columns", "settings", "data", "value", "request", "raw_response"}
        for row in self._originals.get(table, ()):
            yield {name: Written(row[name]) if name in written and row[name] is not None else row[name] for name in row}

    def _named(self, table: Table, names: set[str]) -> Iterator[dict[str, Any]]:
        key = next(iter(table.primary_key)).name
        kept = {row[key]: row for row in self._kept(table.name)}
        for row in letter_rows(self._source, table):
            if row[key] in names:
                yield row | kept.get(row[key], {})

    def _numbered(self, table: Table) -> Iterator[dict[str, Any]]:
        key = next(iter(table.primary_key)).name
        kept = {row[key]: row for row in self._kept(table.name)}
        done: set[int] = set()
        for row in letter_rows(self._source, table):
            number = self._numbers[table.name].get(row[key])
            if number is None or number in done:  # of another file; or the repeat of a pair
                continue
            done.add(number)
            yield self._as_it_was(row) | kept.get(number, {})
        if table is comparisons:  # gave way to an answer of another file
            yield from (row for number, row in kept.items() if number not in done)

    def _as_it_was(self, row: dict[str, Any]) -> dict[str, Any]:
        for column, (table, _) in _KEYS.items():
            if column in row:
                row[column] = self._numbers[table].get(row[column])
        if "token" in row:
            row["token"] = new_token()
        return row

    def _log_rows(self) -> Iterator[dict[str, Any]]:
        kept = {(row["log"], row["row"]): row for row in self._kept("logs")}
        for row in letter_rows(self._source, logs):
            number = self._logs.get(row["log"], {}).get(row["row"])
            if number is not None:
                yield row | {"row": number} | kept.pop((row["log"], number), {})
        yield from kept.values()

    def _recount(self) -> None:
        """Count the labels of each case: no evidence, and since merging they may be more."""
        standing = (
            select(func.count())
            .join_from(labels, label_questions)
            .where(label_questions.c.case_number == label_cases.c.case_number)
            .where(labels.c.undone_at.is_(None), labels.c.preferred.is_not(None))
            .scalar_subquery()
        )
        self._target.execute(label_cases.update().values(n_labels=standing))


def _key(table: Table, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column.name] for column in table.primary_key)
