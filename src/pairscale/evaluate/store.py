"""What a run file knows of an evaluation: answers of variants, verdicts of judges, outcomes of other comparators.

Verdicts are comparisons like all others: in the tables ``items``, ``pairs``, ``conditions``, ``attempts`` and
``comparisons``, each order a pair of its own. Answers of variants are in the log ``ab_answers``, their tasks in
``ab_tasks``, the names of variants in ``ab_runs``, outcomes of comparators that are not judges in ``ab_outcomes``, and
the result of a run in ``ab_results`` (of more than two variants in ``ab_variants``). What is used is on the disk
before.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import UnknownNameError
from pairscale.core.notices import notice
from pairscale.core.options import FilePath, checked
from pairscale.core.provenance import text_hash, utc_now
from pairscale.core.tables import listed
from pairscale.evaluate.comparators import PairwiseOutcome, item_name
from pairscale.evaluate.result import PairwiseRunResult
from pairscale.evaluate.tasks import InMemoryTraceSource, Row, Suite, Task, Trace
from pairscale.judges.base import Judge, JudgePair, Verdict
from pairscale.runtime import Question, Recorded
from pairscale.store.marks import ANSWERS, OUTCOMES, RESULTS, RUNS, TASKS, VARIANTS
from pairscale.store.policies import GroupCommitWriter
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.schema import items, pairs
from pairscale.store.writer import Entry

TIMED_OUT = "variant_timeout"
"""In the metadata of an answer that did not come in time: the limit, in seconds."""
RECORDED = "recorded:"
"""How the identity of a variant begins in files of 1.0 whose answers were recorded elsewhere, and cost nothing."""
COST_IS_ESTIMATE = "cost_is_estimate"
"""In the metadata of an answer whose cost is the most that it may have cost."""


OF_THE_CALL = frozenset(
    ("run_id", "label", "asked", "answered", "cost", "prices_as_of", "duration_ms", "created_at", "provenance")
)
"""Fields of a result that are of a call, not of what it found."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What was compared in a case.

    Attributes:
        task_input: the task.
        a: A's answer, or in the log the name of it; None when there is none.
        b: B's.
    """

    task_input: str
    a: str | None
    b: str | None


@dataclass(slots=True)
class _KnownRows:
    """What is known under one condition, by the names of pairs: answers, attempts, and pairs that failed."""

    answers: dict[str, Verdict]
    attempts: dict[str, int]
    failed: set[str]


class EvaluationStore:
    """The run file of an evaluation.

    Args:
        store: the run file, open for writing.
        writer: writes into it.

    Attributes:
        spent: US dollars that variants, and comparators that are not judges, have cost in earlier calls: also answers
            that failed and were asked for again.
    """

    def __init__(self, store: RunFile, writer: GroupCommitWriter) -> None:
        self._store = store
        self._writer = writer
        self._conditions: dict[str, _KnownRows] = {}
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}
        with store.transaction() as connection:
            self._items = set(connection.execute(select(items.c.item_id)).scalars())
            named_pairs = connection.execute(select(pairs.c.pair_id, pairs.c.custom_id))
            self._names = {row.pair_id: row.custom_id for row in named_pairs}
        self._tasks = {row["task"] for row in store.read_log(TASKS)}
        self._answers: dict[tuple[str, str, int], Trace] = {}
        self._answered: set[tuple[str, str, int]] = set()  # by this call
        self.spent = 0.0
        for row in store.read_log(ANSWERS):
            trace = Trace.from_dict(row["trace"])
            self._answers[row["variant"], row["task"], row["repeat"]] = trace
            if not row["variant"].startswith(RECORDED):
                self.spent += trace.cost or 0.0
        self._outcomes: dict[tuple[str, str], PairwiseOutcome] = {}
        for row in store.read_log(OUTCOMES):
            outcome = PairwiseOutcome(**row["outcome"])
            self._outcomes[row["key"], row["question"]] = outcome
            self.spent += outcome.cost or 0.0

    @property
    def is_kept(self) -> bool:
        """Whether there is a file, or everything is gone when the run ends."""
        return self._store.name != "memory"

    def turn(self, who: str, question: str) -> asyncio.Lock:
        """The right to put a question: two cases may ask the same, and one answer is enough."""
        return self._turns.setdefault((who, question), asyncio.Lock())

    # Answers of variants

    def add_names(self, names: Mapping[str, str]) -> None:
        """Write the names of variants, each with the identity of its answers, unless the last row holds the same."""
        last = self._store.read_log(RUNS, last=1)
        if not last or last[0]["variants"] != names:
            self._log(RUNS, {"variants": dict(names), "at": utc_now()})

    def answer(self, variant: str, task: Task, repeat: int, timeout: float | None = None) -> Trace | None:
        """What a variant has answered before; None when it has not, or failed in an earlier call.

        An answer that did not come in time is not asked for again, unless there is more time now.
        """
        key = variant, task.digest, repeat
        trace = self._answers.get(key)
        if trace is None or trace.failure is None or key in self._answered:
            return trace
        limit = trace.metadata.get(TIMED_OUT)
        return trace if timeout is not None and limit is not None and timeout <= limit else None

    async def add_answer(self, variant: str, name: str, task: Task, repeat: int, trace: Trace) -> None:
        """Write an answer, and wait until it is on the disk."""
        digest = task.digest
        if digest not in self._tasks:
            self._tasks.add(digest)
            self._log(TASKS, {"task": digest, **task.to_dict()})
        row = {"variant": variant, "name": name, "task": digest, "task_id": task.task_id, "repeat": repeat}
        await self._writer.write(Entry(rows=[(ANSWERS, {**row, "trace": trace.to_dict(), "at": utc_now()})]))
        self._answers[variant, digest, repeat] = trace
        self._answered.add((variant, digest, repeat))

    def add_text(self, task_id: str, text: str) -> str:
        """Write an answer that is compared, unless it is there; returns the name that judges know it by."""
        name = item_name(task_id, text)
        if name not in self._items:
            self._items.add(name)
            row = {"item_id": name, "text": text, "text_hash": text_hash(text), "columns": {"task_id": task_id}}
            self._writer.put(Entry(samples=[row]))
        return name

    def add_result(self, log: str, row: Row, lasting: Any) -> None:
        """Write what a run found, to be reported later; once, however often the same is found."""
        plain = json.loads(json.dumps([row, lasting], default=str))
        digest = text_hash(json.dumps(plain[1], sort_keys=True))
        last = self._store.read_log(log, last=1)
        if not last or last[0]["digest"] != digest:
            self._log(log, {**plain[0], "digest": digest})

    def add_pairwise_result(self, result: PairwiseRunResult, shown: Mapping[tuple[str, int], Compared]) -> None:
        """Write the result of a run, and by task and repeat what was compared, by the names of the answers."""
        document = result.to_dict()
        rows = [[*case, one.task_input, one.a, one.b] for case, one in shown.items()]
        lasting = {name: value for name, value in document.items() if name not in OF_THE_CALL}
        self.add_result(RESULTS, {"result": document, "shown": rows}, [lasting, sorted(rows, key=str)])

    def add_ranking(self, results: Sequence[PairwiseRunResult], baseline: str | None) -> None:
        """Write the results of every two variants of a ranking."""
        documents = [result.to_dict() for result in results]
        of_call = OF_THE_CALL | {"variants"}
        lasting = [{name: value for name, value in one.items() if name not in of_call} for one in documents]
        self.add_result(VARIANTS, {"results": documents, "baseline": baseline}, lasting)

    # Outcomes of comparators that are not judges

    def outcome(self, key: str, question: str) -> PairwiseOutcome | None:
        """What a comparator has said before; None when it has not, or failed."""
        outcome = self._outcomes.get((key, question))
        return outcome if outcome is not None and outcome.outcome is not None and outcome.outcome.is_answer else None

    async def add_outcome(self, key: str, question: str, task_id: str, outcome: PairwiseOutcome) -> None:
        """Write what a comparator said."""
        plain = {**asdict(outcome), "outcome": str(outcome.outcome)}
        row = {"key": key, "question": question, "task_id": task_id, "outcome": plain, "at": utc_now()}
        await self._writer.write(Entry(rows=[(OUTCOMES, row)]))
        self._outcomes[key, question] = outcome

    def _log(self, name: str, row: Row) -> None:
        self._writer.put(Entry(rows=[(name, row)]))

    # Verdicts of judges

    def verdict(self, judge: Judge, uid: str) -> Verdict | None:
        """The answer that a judge has given to a question before."""
        return self._known(judge).answers.get(uid)

    def question(self, judge: Judge, pair: JudgePair, uid: str, retries: int, key: object) -> Question:
        """A question to a judge, known by ``key``; its texts are written before it is asked."""
        rows = self._known(judge)
        for item in (pair.first, pair.second):
            self.add_text(item["task_id"], item["text"])
        return Question(
            judge,
            judge.condition.condition_id,
            uid,
            pair.first,
            pair.second,
            key=key,
            attempt=rows.attempts.get(uid, 0) + 1,
            replaces=uid in rows.failed,
            occurrence=pair.occurrence,
            columns={"task_id": pair.first["task_id"]},
            retries=retries,
        )

    def take(self, question: Question, recorded: Recorded) -> None:
        """Take in the outcome of a question, which is on the disk."""
        rows = self._conditions[question.condition_id]
        rows.attempts[question.uid] = recorded.attempt["attempt"]
        if recorded.verdict.outcome.is_answer:
            rows.answers[question.uid] = recorded.verdict
        else:
            rows.failed.add(question.uid)

    def _known(self, judge: Judge) -> _KnownRows:
        condition = judge.condition
        name = condition.condition_id
        if name not in self._conditions:
            if "instance" in condition.settings and self.is_kept:
                notice(
                    "this judge has no name, so its answers cannot be found again; name it: FunctionJudge(f, name=…)"
                )
            self._store.add_condition(condition)
            progress = self._store.progress(name)
            answers = {
                row["custom_id"]: _verdict(row)
                for row in self._store.results(name).iter_rows(named=True)
                if Outcome(row["outcome"]).is_answer
            }
            attempts = {self._names[number]: count for number, count in progress.attempts.items()}
            self._conditions[name] = _KnownRows(answers, attempts, {self._names[number] for number in progress.failed})
        return self._conditions[name]


def _verdict(row: Row) -> Verdict:
    """A verdict that the run file holds."""
    place = {"SAMPLE_1": 1, "SAMPLE_2": 2}.get(row["better_sample"] or "")
    kept = {name: row[name] for name in ("probability", "content", "thoughts", "model", "cost", "total_tokens")}
    return Verdict(Outcome(row["outcome"]), place, **kept)  # type: ignore[arg-type]


# Reading a run file


def saved_result(store: RunFile) -> tuple[PairwiseRunResult, dict[tuple[str, int], Compared]] | None:
    """The last result that a run file keeps, and by task and repeat what was compared; None when it keeps none."""
    rows = store.read_log(RESULTS, last=1)
    if not rows:
        return None
    texts = dict(store.items().select("ID", "text").iter_rows())
    shown = {
        (task_id, repeat): Compared(task_input, texts.get(a), texts.get(b))
        for task_id, repeat, task_input, a, b in rows[0]["shown"]
    }
    return PairwiseRunResult.from_dict(rows[0]["result"], store.name), shown


class RunTraceSource(InMemoryTraceSource):
    """The answers of one variant in the run file of :func:`run_pairwise`.

    Args:
        run: the run file.
        variant: the variant's name there.

    Raises:
        StoreError: when the run file cannot be read.
        UnknownNameError: when it has no answers of such a variant.
    """

    @checked
    def __init__(self, run: FilePath, variant: str) -> None:
        names: dict[str, str] = {}
        answers: dict[tuple[str, int], Trace] = {}
        with open_run(run) as store:
            for row in store.read_log(RUNS):
                names |= row["variants"]
            for row in sorted(store.read_log(ANSWERS), key=lambda row: row["repeat"]):
                if row["variant"] == names.get(variant):
                    answers[row["task_id"], row["repeat"]] = Trace.from_dict(row["trace"])
        if not answers:
            raise UnknownNameError(f"{run} has no answers of a variant {variant!r}; there are {listed(list(names))}")
        super().__init__((task_id, trace) for (task_id, _), trace in answers.items())


@checked
def read_suite(run: FilePath) -> Suite | None:
    """The tasks that a run file has answers to; None when there are none.

    Example:
        >>> import pairscale as ps
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> judge = ps.pairwise_judge(longer, criterion="says more", key="longer")
        >>> sides = {"variant_a": lambda task: "No.", "variant_b": lambda task: "Certainly."}
        >>> _ = ps.run_pairwise(ps.Suite.from_list(["Is it raining?"]), **sides, comparators=[judge], run="ab.db")
        >>> [task.input for task in read_suite("ab.db")]
        ['Is it raining?']
    """
    tasks: dict[str, Task] = {}
    with open_run(run) as store:
        for row in store.read_log(TASKS):
            tasks[row["task_id"]] = Task(
                row["inputs"], row["task_id"], row["reference_outputs"], tuple(row["tags"]), row["metadata"]
            )
        source = store.name
    return Suite(tuple(tasks.values()), source=source) if tasks else None
