"""What a run file knows of an evaluation: the answers of variants, every verdict of every judge, what people said.

Verdicts are comparisons like all others: in the tables ``items``, ``pairs``, ``conditions``, ``attempts`` and
``comparisons``, each order a pair of its own. Answers of variants are in the log ``ab_answers``, the tasks they belong
to in ``ab_tasks``, who was called what in ``ab_runs``, and outcomes of comparators that are no judges in
``ab_outcomes``, and what a run gave in the end in ``ab_results``. Whatever is used is on the disk before.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import insert, select

from pairscale.collect._asking import Stopwatch, comparison_of, pause
from pairscale.collect._asking import ask as ask_judge
from pairscale.collect._purse import Purse
from pairscale.comparisons import Outcome
from pairscale.evaluate.comparators import PairwiseOutcome, item_name
from pairscale.evaluate.suite import Suite, Task
from pairscale.evaluate.traces import Trace
from pairscale.judges.base import Judge, JudgePair, Verdict
from pairscale.notices import notice
from pairscale.provenance import text_hash, utc_now
from pairscale.store import Answer, RunFile
from pairscale.store._database import following, whole, write_json
from pairscale.store._schema import items, pairs

if TYPE_CHECKING:
    pass

__all__ = [
    "ANSWERS",
    "OUTCOMES",
    "RESULTS",
    "RUNS",
    "TASKS",
    "Book",
    "stored_answers",
    "stored_suite",
]

ANSWERS, TASKS, OUTCOMES, RUNS = "ab_answers", "ab_tasks", "ab_outcomes", "ab_runs"
RESULTS = "ab_results"


@dataclass(slots=True)
class _Condition:
    """What is known under one condition: answers, how often each pair was asked, and which were asked in vain."""

    answers: dict[str, Verdict]
    attempts: dict[int, int]
    failed: set[int]


@dataclass(slots=True)
class _Waiting:
    """What the next transaction writes."""

    logs: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict[str, list[Mapping[str, Any]]])
    items: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    pairs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    answers: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.logs or self.items or self.pairs or self.answers)


class Book:
    """Asks, and remembers what was answered; use it in a ``with`` block.

    Args:
        store: the run file, open for writing.
        purse: what may be spent.
    """

    def __init__(self, store: RunFile, purse: Purse) -> None:
        self._store, self.purse = store, purse
        self._conditions: dict[str, _Condition] = {}
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}
        self._waiting, self._gate = _Waiting(), threading.Lock()
        self._failure: BaseException | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="pairscale-store")
        self._jitter = random.Random(0)  # noqa: S311 - spreads retries, keeps no secret
        self.asked = 0
        with store.transaction() as connection:
            self._items = set(connection.execute(select(items.c.item_id)).scalars())
            found = connection.execute(select(pairs.c.custom_id, pairs.c.pair_id))
            self._pairs = {row.custom_id: row.pair_id for row in found}
            self._next = following(connection, pairs.c.pair_id)
        self._tasks = {row["task"] for row in store.read_log(TASKS)}
        self._answers: dict[tuple[str, str, int], Trace] = {}
        for row in store.read_log(ANSWERS):
            self._answers[row["variant"], row["task"], row["repeat"]] = Trace.from_dict(row["trace"])
        self._outcomes = {(row["key"], row["question"]): _outcome(row["outcome"]) for row in store.read_log(OUTCOMES)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        try:
            if self._failure is None:
                self._pool.submit(self._drain).result()  # also what was answered while the run was being stopped
        finally:
            self._pool.shutdown(wait=True)

    def turn(self, who: str, question: str) -> asyncio.Lock:
        """The right to put a question to somebody."""
        return self._turns.setdefault((who, question), asyncio.Lock())

    # Answers of variants

    def called(self, names: Mapping[str, str]) -> None:
        """Write down what the variants of a run are called: by name, what their answers are found by."""
        self._log(RUNS, {"variants": dict(names), "at": utc_now()})

    def answer(self, variant: str, task: Task, repeat: int) -> Trace | None:
        """What a variant has answered before; None when it has not, or in vain."""
        found = self._answers.get((variant, task.digest, repeat))
        return found if found is not None and found.exception is None else None

    async def keep_answer(self, variant: str, name: str, task: Task, repeat: int, trace: Trace) -> None:
        """Write an answer down."""
        self.note_answer(variant, name, task, repeat, trace)
        await self._written()

    def note_answer(self, variant: str, name: str, task: Task, repeat: int, trace: Trace) -> None:
        """Have an answer written down with whatever comes next, unless it stands there already."""
        digest = task.digest
        known = self._answers.get((variant, digest, repeat))
        if known is not None and write_json(known.to_dict()) == write_json(trace.to_dict()):
            return
        if digest not in self._tasks:
            self._tasks.add(digest)
            self._log(TASKS, {"task": digest, **task.to_dict()})
        row = {"variant": variant, "name": name, "task": digest, "task_id": task.task_id, "repeat": repeat}
        self._log(ANSWERS, {**row, "trace": trace.to_dict(), "at": utc_now()})
        self._answers[variant, digest, repeat] = trace

    def keep_text(self, task_id: str, text: str) -> str:
        """Write down a text that is compared, under the name that judges know it by; it is given back."""
        name, kept = str(whole(item_name(task_id, text))), str(whole(text))
        with self._gate:
            if name not in self._items:
                self._items.add(name)
                row = {"item_id": name, "text": kept, "text_hash": text_hash(kept)}
                self._waiting.items.append({**row, "columns": {"task_id": whole(task_id)}})
        return name

    def keep_result(self, row: Mapping[str, Any]) -> None:
        """Write down what a run gave, to be reported later; once, however often it is asked for."""
        last = self._store.read_log(RESULTS, last=1)
        if not last or last[0]["digest"] != row["digest"]:
            self._log(RESULTS, row)

    @property
    def is_kept(self) -> bool:
        """Whether there is a file, or all is gone when the run ends."""
        return self._store.name != "memory"

    # What comparators that are no judges said

    def outcome(self, key: str, question: str) -> PairwiseOutcome | None:
        """What a comparator has said before; None when it has not, or in vain."""
        found = self._outcomes.get((key, question))
        return found if found is not None and found.outcome is not None and found.outcome.is_answer else None

    async def keep_outcome(self, key: str, question: str, task_id: str, outcome: PairwiseOutcome) -> None:
        """Write down what a comparator said."""
        row = {"key": key, "question": question, "task_id": task_id, "outcome": _row(outcome), "at": utc_now()}
        self._log(OUTCOMES, row)
        await self._written()
        self._outcomes[key, question] = outcome

    # Verdicts of judges

    async def ask(self, judge: Judge, pair: JudgePair, retries: int) -> Verdict:
        """The verdict that is known, or else what the judge says now, written down.

        Raises:
            TooDear: when asking might cost more than is left.
        """
        condition_id, uid = judge.condition.condition_id, str(whole(pair.uid))
        # One at a time: two cases may ask the same question, and one answer is enough.
        async with self.turn(condition_id, uid):
            known = self._known(judge, condition_id)
            if uid in known.answers:
                return known.answers[uid]
            number, sides = self._number(pair, uid), whole([pair.first["ID"], pair.second["ID"]])
            for turn in range(retries + 1):
                verdict, values = await self._ask(judge, pair, number, known, condition_id)
                last = verdict.failure != "transient" or turn == retries
                comparison = comparison_of(verdict, *sides) if last else None
                self._record(condition_id, Answer(number, values, comparison, replaces=number in known.failed))
                await self._written()
                if last:
                    break
                await asyncio.sleep(pause(verdict.retry_after, turn, self._jitter))
            if verdict.outcome.is_answer:
                known.answers[uid] = verdict
            else:
                known.failed.add(number)
            return verdict

    async def _ask(
        self, judge: Judge, pair: JudgePair, number: int, known: _Condition, condition_id: str
    ) -> tuple[Verdict, dict[str, Any]]:
        """Ask once, and pay."""
        says = getattr(judge, "max_cost_of", None)
        most = None if says is None or self.purse.limit is None else says(pair)
        promised = await self.purse.promise(condition_id, most)
        attempt = known.attempts.get(number, 0) + 1
        known.attempts[number] = attempt
        self.asked += 1
        watch, verdict = Stopwatch(), None
        try:
            verdict, values = await ask_judge(judge, replace(pair, attempt=attempt), attempt)
        except asyncio.CancelledError:
            stopped = Verdict.fail("cancelled", "interrupted before the answer came", failure="transient")
            self._record(condition_id, Answer(number, watch.attempt(stopped, attempt), None))
            raise  # it is written when the book is closed
        finally:
            self.purse.pay(promised, verdict)
        return verdict, values

    def _known(self, judge: Judge, condition_id: str) -> _Condition:
        if condition_id not in self._conditions:
            condition = judge.condition
            if "instance" in condition.settings and self._store.name != "memory":
                notice("this judge has no name, so its answers will not be found again: FunctionJudge(f, name=…) has")
            self._store.add_condition(condition)
            progress = self._store.progress(condition_id)
            answers = {
                row["custom_id"]: _verdict(row)
                for row in self._store.results(condition_id).iter_rows(named=True)
                if Outcome(row["outcome"]).is_answer
            }
            self._conditions[condition_id] = _Condition(answers, dict(progress.attempts), set(progress.failed))
        return self._conditions[condition_id]

    def _number(self, pair: JudgePair, uid: str) -> int:
        """The number of a pair in the run file, where it is entered when it is new."""
        sides = [{name: whole(item[name]) for name in ("ID", "text", "task_id")} for item in (pair.first, pair.second)]
        task = {"columns": {"task_id": sides[0]["task_id"]}}
        with self._gate:
            for item in sides:
                if item["ID"] not in self._items:
                    self._items.add(item["ID"])
                    row = {"item_id": item["ID"], "text": item["text"], "text_hash": text_hash(item["text"])}
                    self._waiting.items.append({**row, **task})
            if uid not in self._pairs:
                self._pairs[uid] = self._next
                row = {"pair_id": self._next, "custom_id": uid, "ID1": sides[0]["ID"], "ID2": sides[1]["ID"]}
                self._waiting.pairs.append({**row, **task})
                self._next += 1
        return int(self._pairs[uid])

    # Writing: in one thread, in an order that never leaves an answer without its pair; each kind is one transaction.

    def _log(self, name: str, row: Mapping[str, Any]) -> None:
        with self._gate:
            self._waiting.logs.setdefault(name, []).append(row)

    def _record(self, condition_id: str, answer: Answer) -> None:
        with self._gate:
            self._waiting.answers.setdefault(condition_id, []).append(answer)

    async def _written(self) -> None:
        """Wait until everything that waits now is on the disk."""
        await asyncio.get_running_loop().run_in_executor(self._pool, self._drain)

    def _drain(self) -> None:
        if self._failure is not None:
            raise self._failure
        with self._gate:
            taken, self._waiting = self._waiting, _Waiting()
        if taken.is_empty:
            return
        try:
            self._write(taken)
        except BaseException as error:
            self._failure = error  # whoever waited for something of this lot learns of it, too
            raise

    def _write(self, taken: _Waiting) -> None:
        for name, rows in taken.logs.items():
            self._store.log(name, rows)
        self._enter(taken.items, taken.pairs)
        for condition_id, answers in taken.answers.items():
            self._store.record(answers, condition_id)

    def _enter(self, new_items: list[dict[str, Any]], new_pairs: list[dict[str, Any]]) -> None:
        if not new_items and not new_pairs:
            return
        with self._store.transaction() as connection:
            if new_items:
                connection.execute(insert(items), new_items)
            if new_pairs:
                connection.execute(insert(pairs), new_pairs)


def _verdict(row: Mapping[str, Any]) -> Verdict:
    """A verdict that the run file holds."""
    place = {"SAMPLE_1": 1, "SAMPLE_2": 2}.get(row["better_sample"] or "")
    kept = {name: row[name] for name in ("probability", "content", "thoughts", "model", "cost", "total_tokens")}
    return Verdict(Outcome(row["outcome"]), place, **kept)  # type: ignore[arg-type]


def _row(outcome: PairwiseOutcome) -> dict[str, Any]:
    kept = {"winner": outcome.winner, "reasoning": outcome.reasoning, "outcome": str(outcome.outcome)}
    return {**kept, "detail": dict(outcome.detail), "cost": outcome.cost}


def _outcome(row: Mapping[str, Any]) -> PairwiseOutcome:
    return PairwiseOutcome(row["winner"], row["reasoning"], row["detail"], Outcome(row["outcome"]), row["cost"])


def stored_suite(store: RunFile) -> Suite | None:
    """The tasks that a run file has answers for; None when there are none."""
    tasks: dict[str, Task] = {}
    for row in store.read_log(TASKS):
        fields = {name: row[name] for name in ("inputs", "task_id", "reference_outputs", "metadata")}
        tasks[row["task_id"]] = Task(**fields, tags=tuple(row["tags"]))
    return Suite(tuple(tasks.values()), source=store.name) if tasks else None


def stored_answers(store: RunFile) -> dict[str, dict[tuple[str, int], Trace]]:
    """By the names that variants have in the last run with such a name, their answers by task and repeat."""
    names: dict[str, str] = {}
    for row in store.read_log(RUNS):
        names |= row["variants"]
    answers: dict[str, dict[tuple[str, int], Trace]] = {}
    for row in store.read_log(ANSWERS):
        answers.setdefault(row["variant"], {})[row["task_id"], row["repeat"]] = Trace.from_dict(row["trace"])
    return {name: answers[identity] for name, identity in names.items() if identity in answers}
