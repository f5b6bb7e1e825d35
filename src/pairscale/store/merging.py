"""Several run files become one, without loss.

Texts, pairs and conditions that several files hold are one row; attempts, outcomes, logs, labels and costs of all files
are kept under new numbers. The hash chain of each file is kept beside that of the merged one, and the log ``merges``
says which row is which, so that :func:`pairscale.store.sources.check_sources` compares every row with the chain of the
file that it is from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.addresses import without_logins
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, StoreDamagedError, StoreMismatchError
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.core.tables import listed
from pairscale.store._hashes import UNHASHED_FACTS
from pairscale.store._merging import MERGES, MergedRun, Numbers, identity, renumbered
from pairscale.store._merging_labels import MergedLabels
from pairscale.store.chain import MERGED, Change, canonical, digest_of_closing
from pairscale.store.database import Written, letter_rows, set_fact
from pairscale.store.evidence import check_evidence
from pairscale.store.labels import LINKS
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.schema import attempts, blobs, chain, comparisons, conditions, items, logs, metadata, pairs
from pairscale.store.sources import check_sources

if TYPE_CHECKING:
    from sqlalchemy import Table

__all__ = ["MergeResult", "merge"]

ADAPTIVE_LOGS = ("adaptive_events", "step_log", "round_log", "item_log", "adaptive_open")
_ANSWERS = frozenset({"win", "tie", "flip"})
_BLOCK = 500  # rows that are looked up and written at a time
_COUNTED = ("items", "pairs", "attempts", "comparisons", "labels")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class MergeResult(ReprMixin, table="sources"):
    """What merging run files gave.

    Attributes:
        run: the merged run file.
        sources: one row per file: ``source``, how many ``items pairs attempts comparisons labels`` it holds,
            ``shared`` (attempts that an earlier file holds, too) and ``repeats`` (pairs that an earlier file has
            another answer to; both answers are kept, the later one as a repeat).
        counts: how many ``items pairs attempts comparisons`` the merged file holds.
    """

    run: str
    sources: pl.DataFrame
    counts: Mapping[str, int]

    def __str__(self) -> str:
        counts = ", ".join(f"{n:,} {name}" for name, n in self.counts.items())
        return f"{self.run}: {self.sources.height} run files, {counts}"


@checked
def merge(runs: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str]) -> MergeResult:
    """Merge two or more run files into a new one, without loss.

    Use it when work was split by hand over machines. Texts, attempts, comparisons, logs, labels and costs of all files
    are in the new one, and :func:`pairscale.audit` compares them with the hash chains of the files that they are from.
    What several files share because one is a copy of another is there once. A pair that two files have different
    answers to is kept twice, as a repeat. A failure gives way to an answer of another file; its attempt stays.

    Args:
        runs: The run files, which stay as they are.
        path: The run file to write; it must not hold a run.

    Returns:
        A :class:`MergeResult` with ``sources`` and ``counts``.

    Raises:
        StoreMismatchError: If the files cannot be one: a text or a condition differs, or two adaptive runs were
            continued in different ways.
        StoreDamagedError: If a file was changed from outside.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.synthetic_essays(4, seed=1))
        >>> for name, part in (("one.db", pairs.head(3)), ("two.db", pairs.tail(3))):
        ...     _ = ps.judge(part, run=name, progress=False)
        >>> ps.merge(["one.db", "two.db"], "both.db").counts["comparisons"]
        6
    """
    if isinstance(runs, str | os.PathLike) or len(runs) < 2:
        raise InputError("merging needs two or more run files")
    names = [_identity(run) for run in runs]
    if twice := sorted({without_logins(name) for name in names if names.count(name) > 1}):
        raise InputError(f"{listed(twice)} is named twice; name each run file once")
    if _identity(path) in names:
        raise InputError(f"{without_logins(str(path))} is one of the run files to merge; write to a new one")
    is_new = "://" not in str(path) and not Path(path).exists()
    try:
        return _merged(runs, path)
    except BaseException:
        if is_new:
            for name in ("", "-wal", "-shm", ".lock"):
                Path(f"{path}{name}").unlink(missing_ok=True)
        raise


def _identity(run: str | os.PathLike[str]) -> str:
    return str(run) if "://" in str(run) else str(Path(run).resolve())


def _merged(runs: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str]) -> MergeResult:
    with ExitStack() as stack:
        enter = stack.enter_context
        sources, counts = [], []
        for run in runs:
            store = enter(open_run(run))
            enter(store.snapshot())
            _check_whole(store)
            connection = enter(store.transaction())
            sources.append(MergedRun(Path(without_logins(str(run))).name, connection, digest_of_closing(connection)))
            counts.append(store.counts() | {"labels": store.labels().height})
        _check_adaptive(sources)
        target = enter(open_run(path, write=True))
        if not target.is_empty():
            raise StoreMismatchError(f"{target.name} holds a run already; name a new file")
        with target.writer.changing() as change:
            change.about["merged"] = [source.name for source in sources]
            _Merging(change, target.name).write(sources)
        target.writer.renumber()
        merged = target.counts()
    table = [
        {"source": source.name, **{name: known[name] for name in _COUNTED}}
        | {"shared": len(source.shared), "repeats": len(source.repeats)}
        for source, known in zip(sources, counts, strict=True)
    ]
    if repeats := sum(len(source.repeats) for source in sources):
        notice(f"{repeats:,} pairs were answered in more than one file; all answers are kept, as repeats of the pair")
    return MergeResult(without_logins(str(path)), pl.DataFrame(table), merged)


def _check_whole(store: RunFile) -> None:
    evidence = check_evidence(store)
    problems = evidence.problems or check_sources(store, evidence)
    if problems:
        raise StoreDamagedError(
            f"{store.name} is not as it was written ({problems[0]}); `pairscale audit` lists all differences. "
            "Nothing was merged"
        )


def _check_adaptive(sources: Sequence[MergedRun]) -> None:
    """Refuse adaptive runs that are not one run, copied at some moment."""
    longest: tuple[MergedRun, dict[str, list[str]]] | None = None
    for source in sources:
        found: dict[str, list[str]] = {}
        for row in letter_rows(source.connection, logs):
            if row["log"] in ADAPTIVE_LOGS:
                found.setdefault(row["log"], []).append(identity([row["data"]]))
        if not found.get("adaptive_events"):
            continue
        if longest is not None:
            for log in ADAPTIVE_LOGS[:-1]:
                one, two = longest[1].get(log, []), found.get(log, [])
                if any(first != second for first, second in zip(one, two, strict=False)):
                    raise StoreMismatchError(
                        f"{longest[0].name} and {source.name} are two adaptive runs, each of which chose its pairs by "
                        "its own answers; two such histories cannot become one run. To have their comparisons together "
                        "as given pairs, export each with `pairscale export`, remove the .logs.jsonl files, import "
                        "each table into a run file of its own, and merge those"
                    )
        if longest is None or len(found["adaptive_events"]) > len(longest[1]["adaptive_events"]):
            longest = source, found


class _Merging:
    """The merged file while it is written."""

    def __init__(self, change: Change, name: str) -> None:
        self._change, self._name = change, name
        self._items: dict[str, tuple[str, str, str]] = {}  # hash of the text, columns, file
        self._conditions: dict[str, tuple[Row, str]] = {}
        self._n_pairs = self._n_attempts = 0
        self._repeated: dict[int, int] = {}  # by the number of a repeat, that of its pair
        self._standing: dict[str, dict[int, int]] = {}  # by condition and pair, the attempt; of a failure, less than 0
        self._logs: dict[str, list[str]] = {}
        self._blobs: dict[tuple[str, int], str] = {}
        self._facts: dict[str, tuple[Any, str]] = {}
        self._labels = MergedLabels()

    def write(self, sources: Sequence[MergedRun]) -> None:
        for source in sources:
            self._add_items(source)
            self._add_conditions(source)
            self._add_judged(source)
            self._add_logs(source)
            self._add_facts(source)
            self._labels.add(source)
        self._write_comparisons(sources)
        self._labels.write(self._change)
        for key, (value, _) in self._facts.items():
            if key in UNHASHED_FACTS:
                set_fact(self._change.connection, key, value)
            else:
                self._change.set_fact(key, value)
        rows = ({"log": MERGES, "row": k, "data": _letters(one.row())} for k, one in enumerate(sources, start=1))
        self._change.insert(logs, rows)
        for k, source in enumerate(sources, start=1):
            found = letter_rows(source.connection, chain)
            self._change.insert(chain, (row | {"chain": f"{k}{MERGED}{row['chain']}"} for row in found))

    def _insert(self, table: Table, rows: Iterable[Row]) -> None:
        self._change.insert(table, rows, size=_BLOCK)

    # Texts and conditions

    def _add_items(self, source: MergedRun) -> None:
        new = []
        changed: list[str] = []
        for row in letter_rows(source.connection, items):
            name = row["item_id"]
            known = self._items.get(name)
            if known is None:
                self._items[name] = row["text_hash"], row["columns"], source.name
                new.append(row)
            elif known[0] != row["text_hash"]:
                changed.append(name)
            elif known[1] != row["columns"]:
                if json.loads(known[1]) != json.loads(row["columns"]):
                    raise StoreMismatchError(
                        f"the text {name!r} has other columns in {source.name} than in {known[2]}; judge it with the "
                        "same columns in both"
                    )
                source.keep("items", {"item_id": name, "columns": row["columns"]})
        if changed:
            others = sorted({self._items[name][2] for name in changed})
            raise StoreMismatchError(
                f"{listed(changed)} is another text in {source.name} than in {listed(others)}; answers about different "
                "texts cannot be merged: give one of them another ID"
            )
        self._insert(items, new)

    def _add_conditions(self, source: MergedRun) -> None:
        for row in letter_rows(source.connection, conditions):
            known = self._conditions.get(row["condition_id"])
            if known is None:
                self._conditions[row["condition_id"]] = row, source.name
                self._insert(conditions, [row])
                continue
            if differing := [name for name in row if name != "created_at" and row[name] != known[0][name]]:
                raise StoreMismatchError(
                    f"the condition {row['condition_id'][:8]} of {row['judge_id']} has another {listed(differing)} in "
                    f"{source.name} than in {known[1]}; they cannot be merged"
                )
            if row["created_at"] != known[0]["created_at"]:
                source.keep("conditions", row)

    # Pairs, attempts and comparisons

    def _add_judged(self, source: MergedRun) -> None:
        """Enter pairs and attempts, block by block, and say which comparison stands; they are written at the end."""
        known = self._n_pairs
        self._add_pairs(source)
        if any(new <= known for _, new, _ in source.numbers["pairs"].ranges):
            self._find_shared(source)
            self._find_repeats(source)
        self._add_attempts(source)
        for row in letter_rows(source.connection, comparisons):
            pair, attempt = source.pair(row["condition_id"], row["pair_id"]), source.numbers["attempts"]
            number, standing = attempt[row["attempt_id"]], self._standing.setdefault(row["condition_id"], {})
            if standing.get(pair, 0) <= 0 and standing.get(pair) != -number:
                standing[pair] = number if row["outcome"] in _ANSWERS else -number

    def _add_pairs(self, source: MergedRun) -> None:
        numbers, others = source.numbers.setdefault("pairs", Numbers()), 0

        def new() -> Iterator[Row]:
            nonlocal others
            for some in _blocks(letter_rows(source.connection, pairs)):
                found = self._there(pairs, pairs.c.custom_id.in_([row["custom_id"] for row in some]))
                there = {row["custom_id"]: row for row in found}
                for row in some:
                    known = there.get(row["custom_id"])
                    if known is None:
                        self._n_pairs += 1
                        known = row | {"pair_id": self._n_pairs}
                        yield known
                    elif (known["ID1"], known["ID2"]) != (row["ID1"], row["ID2"]):
                        raise StoreMismatchError(
                            f"the pair {row['custom_id']!r} is {row['ID1']!r}, {row['ID2']!r} in {source.name} and "
                            f"{known['ID1']!r}, {known['ID2']!r} in a file before it; they cannot be merged"
                        )
                    elif known["columns"] != row["columns"]:
                        source.keep("pairs", row)
                        others += json.loads(known["columns"]) != json.loads(row["columns"])
                    numbers[row["pair_id"]] = known["pair_id"]

        self._insert(pairs, new())
        if others:
            notice(f"{others:,} pairs have other columns in {source.name}; those of the first file are kept")

    def _there(self, table: Table, *where: Any) -> Iterator[Row]:
        """Rows that earlier files have brought."""
        return letter_rows(self._change.connection, table, *where)

    def _find_shared(self, source: MergedRun) -> None:
        """Find the attempts that an earlier file holds, too: all that they hold is the same, to the microsecond."""
        taken: set[int] = set()
        for some in _blocks(letter_rows(source.connection, attempts)):
            asked = {source.numbers["pairs"][row["pair_id"]] for row in some}
            asked |= {repeat for repeat, pair in self._repeated.items() if pair in asked}
            judges = {row["condition_id"] for row in some}
            there: dict[str, list[int]] = {}
            for row in self._there(attempts, attempts.c.condition_id.in_(judges), attempts.c.pair_id.in_(asked)):
                if row["attempt_id"] not in taken:
                    pair = int(row["pair_id"])
                    there.setdefault(_attempt_key(row, self._repeated.get(pair, pair)), []).append(row["attempt_id"])
            for row in some:
                if same := there.get(_attempt_key(row, source.numbers["pairs"][row["pair_id"]])):
                    source.shared[row["attempt_id"]] = same[0]
                    taken.add(same.pop(0))

    def _find_repeats(self, source: MergedRun) -> None:
        """Enter pairs once more that have another answer already."""
        for row in letter_rows(source.connection, comparisons):
            pair = source.numbers["pairs"][row["pair_id"]]
            known = self._standing.get(row["condition_id"], {}).get(pair, 0)
            if known > 0 and row["outcome"] in _ANSWERS and source.shared.get(row["attempt_id"]) != known:
                [own] = letter_rows(source.connection, pairs, pairs.c.pair_id == row["pair_id"])
                self._n_pairs += 1
                names = (f"{own['custom_id']}/{n}" for n in range(2, self._n_pairs + 2))
                name = next(name for name in names if not list(self._there(pairs, pairs.c.custom_id == name)))
                self._insert(pairs, [own | {"pair_id": self._n_pairs, "custom_id": name}])
                self._repeated[self._n_pairs] = pair
                source.repeats[row["condition_id"], row["pair_id"]] = self._n_pairs

    def _add_attempts(self, source: MergedRun) -> None:
        numbers = source.numbers.setdefault("attempts", Numbers())

        def new() -> Iterator[Row]:
            for row in letter_rows(source.connection, attempts):
                number = source.shared.get(row["attempt_id"])
                if number is None:
                    self._n_attempts += 1
                    number = self._n_attempts
                    yield row | {"attempt_id": number, "pair_id": source.pair(row["condition_id"], row["pair_id"])}
                numbers[row["attempt_id"]] = number

        self._insert(attempts, new())

    def _write_comparisons(self, sources: Sequence[MergedRun]) -> None:
        """Write the comparisons that stand, each where it is first; the others are kept as they were."""
        is_shared = any(len(source.shared) for source in sources)

        def standing() -> Iterator[Row]:
            n, written = 0, dict[int, int]()
            for source in sources:
                numbers = source.numbers.setdefault("comparisons", Numbers())
                for row in letter_rows(source.connection, comparisons):
                    pair = source.pair(row["condition_id"], row["pair_id"])
                    attempt = source.numbers["attempts"][row["attempt_id"]]
                    if abs(self._standing[row["condition_id"]][pair]) != attempt:
                        source.keep("comparisons", row)
                        continue
                    number = written.get(attempt)
                    if number is None:
                        n += 1
                        number = n
                        if is_shared:
                            written[attempt] = number
                        yield row | {"comparison_id": number, "pair_id": pair, "attempt_id": attempt}
                    numbers[row["comparison_id"]] = number

        self._insert(comparisons, standing())

    # Logs, bytes and facts

    def _add_logs(self, source: MergedRun) -> None:
        ends: dict[str, int] = {}
        batches: dict[str, str] = {}
        new: list[Row] = []
        is_copied: dict[str, bool] = {}
        for row in letter_rows(source.connection, logs):
            log, data = row["log"], row["data"]
            if log == MERGES:  # of that file, about its own sources
                source.keep("logs", row)
                continue
            found = renumbered(log, json.loads(data), source, batches)
            letters = data if found == json.loads(data) else _letters(found)
            if letters != data:
                source.keep("logs", row)
            there = self._logs.setdefault(log, [])
            end = ends.setdefault(log, len(there))
            numbers = source.logs.setdefault(log, Numbers())
            at = len(numbers)
            is_copied[log] = is_copied.get(log, True) and at < end and there[at] == identity([letters])
            if is_copied[log]:
                numbers[row["row"]] = at + 1
                continue
            there.append(identity([letters]))
            numbers[row["row"]] = len(there)
            new.append({"log": log, "row": len(there), "data": letters})
        self._insert(logs, new)
        for row in letter_rows(source.connection, blobs):
            key, digest = (row["name"], row["row"]), identity([bytes(row["data"])])
            if key not in self._blobs:
                self._blobs[key] = digest
                self._insert(blobs, [row])
            elif self._blobs[key] != digest:
                raise StoreMismatchError(f"{source.name} has other bytes {row['name']!r} than a file before it")

    def _add_facts(self, source: MergedRun) -> None:
        for row in letter_rows(source.connection, metadata):
            key, value = row["key"], json.loads(row["value"])
            if key in UNHASHED_FACTS:
                if key == LINKS:
                    self._facts.setdefault(key, (value, source.name))
                continue
            source.keep("metadata", row)
            known, where = self._facts.setdefault(key, (value, source.name))
            if isinstance(known, list) and isinstance(value, list):
                self._facts[key] = [*known, *(one for one in value if one not in known)], where
            elif known != value and key != "adaptive":  # the versions that began and continued one run
                raise StoreMismatchError(
                    f"{key} is {json.dumps(value)} in {source.name} and {json.dumps(known)} in {where}; "
                    "they cannot be merged"
                )


def _attempt_key(row: Mapping[str, Any], pair: int) -> str:
    """What tells an attempt from all others, under whatever number: all that it holds, to the microsecond."""
    return identity([pair, *(row[name] for name in row if name not in {"attempt_id", "pair_id"})])


def _blocks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while some := list(islice(rows, _BLOCK)):
        yield some


def _letters(row: Mapping[str, Any]) -> Written:
    return Written(canonical(row))
