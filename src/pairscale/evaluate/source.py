"""The cases of an A/B run as a source of questions: each case is compared by every comparator, until all are done."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError, JudgeError, StoreError
from pairscale.core.notices import notice
from pairscale.core.provenance import fingerprint
from pairscale.core.tables import listed
from pairscale.evaluate.comparators import PairwiseComparator, PairwiseOutcome, as_outcome
from pairscale.evaluate.inference.failures import (
    Failures,
    agreed_better,
    count_failure,
    failed_sides,
    ways_to_count,
)
from pairscale.evaluate.inference.sequence import RunningSequence
from pairscale.evaluate.jobs import CaseJob
from pairscale.evaluate.result import PairwiseCase, counted_score
from pairscale.evaluate.saved import Compared
from pairscale.evaluate.store import EvaluationStore
from pairscale.evaluate.styles import measures_of
from pairscale.evaluate.suite import Task, storable
from pairscale.evaluate.traces import Trace
from pairscale.judges.base import Judge, JudgePair, Verdict
from pairscale.judges.function import ends_run, raised
from pairscale.runtime import (
    Budget,
    BudgetExceeded,
    LogRows,
    Progress,
    Question,
    Recorded,
    Wait,
    close,
    interrupt_of_call,
)
from pairscale.store.database import scrub_surrogates

__all__ = ["DECIDED", "NO_ANSWER", "CaseSource", "Look", "StopRule", "comparator_keys"]

NO_ANSWER = "(no answer)"
"""What comparators are shown for a failed answer, where failures are shown."""


class _GivenUp(Exception):  # noqa: N818 - the run is being stopped, nothing went wrong
    """A question was not asked, because the run is being stopped."""


class CaseSource:
    """Cases that wait to be compared.

    A case is worked on in a task of its own. What it asks a judge goes through :meth:`ask` into the queue that the
    runtime takes its questions from.

    Args:
        store: what the run file knows.
        comparators: who says which is better.
        jobs: the cases.
        concurrency: cases that are worked on at once.
        failures: how failures of variants count: ``loss``, ``shown`` or ``excluded``.
        stop_rule: take the tasks in random order, and stop when this rule says so; None to take all of them.
        seed: of that order.
        on_case: called with each case.
        progress: what is shown.
        budget: what may be spent; comparators that say what they cost are counted there, as judges are by the runtime.

    Attributes:
        done_cases: by the number of the job, its cases.
        compared: by task and repeat, what was compared.
        traces: by the number of the job, the two answers as they came.
        stopped: ``decided`` or ``max_cost``; None when all cases were taken.
    """

    def __init__(
        self,
        store: EvaluationStore,
        comparators: Sequence[PairwiseComparator],
        jobs: Sequence[CaseJob],
        *,
        concurrency: int,
        failures: Failures = "loss",
        stop_rule: StopRule | None = None,
        seed: int | None = None,
        on_case: Callable[[PairwiseCase], None] | None = None,
        progress: Progress | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._budget = Budget() if budget is None else budget
        self._store, self._comparators, self._jobs = store, comparators, jobs
        self._takes = {one.key: frozenset(inspect.signature(one.compare).parameters) for one in comparators}
        self._concurrency, self._on_case, self._progress = concurrency, on_case, progress
        self._own = asyncio.Semaphore(concurrency)  # what no other process does for this one
        self.order = _order(jobs, seed, shuffled=stop_rule is not None)
        self._places = deque(enumerate(self.order))
        self._failures = failures
        self._rule, tasks = stop_rule, [jobs[at].task_id for at in self.order]
        self._looks = [] if stop_rule is None else [Look(tasks, failures, stop_rule) for _ in comparators]
        self.done_cases: dict[int, list[PairwiseCase]] = {}
        self.compared: dict[tuple[str, int], Compared] = {}
        self.traces: dict[int, tuple[Trace, Trace]] = {}
        self.stopped: str | None = None
        self._questions: deque[Question] = deque()
        self._answers: dict[int, asyncio.Future[Recorded]] = {}
        self._asked = 0
        self._heard: set[str] = set()  # comparators that have said or raised something
        self._open: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._closing = False
        self._changed: asyncio.Future[None] | None = None

    # The source of questions

    def next(self) -> Question | Wait | None:
        """A question of a case that is open; else the cases are worked on further."""
        if self._failure is not None:
            raise self._failure
        if self._questions:
            return self._questions.popleft()
        if len(self._open) < self._concurrency and self._places and self.stopped is None:
            task = asyncio.create_task(self._case(*self._places.popleft()))
            self._open.add(task)
            task.add_done_callback(self._ended)
        if not self._open:
            return None
        if self._changed is None or self._changed.done():
            self._changed = asyncio.get_running_loop().create_future()
        return Wait(self._changed)

    def done(self, question: Question, recorded: Recorded | None) -> LogRows:
        """Hand an outcome to the case that asked."""
        answer = self._answers.pop(question.key, None)
        if answer is not None and not answer.done():
            if recorded is None:
                answer.set_exception(_GivenUp())
            else:
                self._store.take(question, recorded)
                answer.set_result(recorded)
        return ()

    async def aclose(self) -> None:
        """End the cases that are open, and have comparators close their connections."""
        self._closing = True
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        for comparator in self._comparators:
            await close(comparator)

    def _tell(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        if task.cancelled():
            if not self._closing:  # what holds the answers raised it: this case must not be left out silently
                self._failure = self._failure or InputError("the answers of a case could not be read: CancelledError")
        elif (error := task.exception()) is not None:
            if isinstance(error, BudgetExceeded):
                self.stopped = self.stopped or "max_cost"
            elif not isinstance(error, _GivenUp):
                self._failure = self._failure or error
        self._tell()

    # Asking judges

    async def ask(self, judge: Judge, pair: JudgePair, retries: int) -> Verdict:
        """The answer that is known, or else what the judge says now, once it is on the disk."""
        uid = str(scrub_surrogates(pair.uid))
        async with self._store.turn(judge.condition.condition_id, uid):
            known = self._store.verdict(judge, uid)
            if known is not None:
                return known
            self._asked += 1
            question = self._store.question(judge, pair, uid, retries, key=self._asked)
            answer: asyncio.Future[Recorded] = asyncio.get_running_loop().create_future()
            self._answers[self._asked] = answer
            self._questions.append(question)
            self._tell()
            return (await answer).verdict

    # Cases

    async def _case(self, place: int, number: int) -> None:
        cases, self.traces[number] = await self._cases(self._jobs[number])
        self.done_cases[number] = cases
        if self._progress is not None:
            failed = any(not case.outcome.is_answer for case in cases)
            self._progress.count(failed=failed, cost=sum(case.cost or 0.0 for case in cases))
        if self._on_case is not None:
            for case in cases:
                self._on_case(case)
        for look, case in zip(self._looks, cases, strict=False):
            look.take(place, case)
        if self._rule is not None and self._rule.stops([look.sequences for look in self._looks], self._failures):
            self.stopped = self.stopped or "decided"

    async def _cases(self, job: CaseJob) -> tuple[list[PairwiseCase], tuple[Trace, Trace]]:
        async with self._own:
            task, *traces = await job.load()
        why = [trace.failure for trace in traces]
        failed = failed_sides(*why)
        if self._store.is_kept:
            names = (
                None if one.failure is not None else self._store.add_text(task.task_id, one.output) for one in traces
            )
            self.compared[job.task_id, job.repeat] = Compared(task.input, *names)
        words = "; ".join(f"{name} failed: {one}" for name, one in zip(job.names, why, strict=True) if one is not None)
        shown = [
            trace if one is None else replace(trace, output=NO_ANSWER) for trace, one in zip(traces, why, strict=True)
        ]
        lengths = [len(trace.output) if one is None else None for trace, one in zip(traces, why, strict=True)]
        digest = _digest(task)
        cases = []
        for comparator in self._comparators:
            if failed is None or self._failures == "shown":
                outcome = await self._outcome(comparator, job, task, shown)
            else:
                kind, winner = count_failure(failed, Outcome.ERROR, None, self._failures)
                outcome = PairwiseOutcome(winner, words, outcome=kind)  # type: ignore[arg-type]
            reasoning = (
                outcome.reasoning if failed is None or outcome.reasoning == words else f"{words}; {outcome.reasoning}"
            )
            cases.append(
                PairwiseCase(
                    job.task_id,
                    comparator.key,
                    outcome.winner,  # type: ignore[arg-type]
                    reasoning,
                    dict(outcome.detail),
                    outcome.outcome or Outcome.ERROR,
                    outcome.cost,
                    job.repeat,
                    task.tags,
                    length_a=lengths[0],
                    length_b=lengths[1],
                    measures_a=measures_of(traces[0]),
                    measures_b=measures_of(traces[1]),
                    failed=failed,
                    task_digest=digest,
                    preference=outcome.preference,
                )
            )
        return cases, (traces[0], traces[1])

    async def _outcome(
        self, comparator: PairwiseComparator, job: CaseJob, task: Task, traces: Sequence[Trace]
    ) -> PairwiseOutcome:
        """What a comparator says now, or has said before."""
        offered: dict[str, Any] = {"ask": self.ask, "repeat": job.repeat}
        more = {name: value for name, value in offered.items() if name in self._takes[comparator.key]}
        is_stored = "ask" not in more and getattr(comparator, "remember", True)
        question = _question(task, traces, job.repeat) if is_stored else None
        if question is not None and (known := self._store.outcome(comparator.key, question)) is not None:
            return known
        if "ask" not in more:
            return await self._asked_by_itself(comparator, question, task, traces, more)
        return await self._said(comparator, task, traces, more)

    async def _asked_by_itself(
        self,
        comparator: PairwiseComparator,
        question: str | None,
        task: Task,
        traces: Sequence[Trace],
        more: Mapping[str, Any],
    ) -> PairwiseOutcome:
        """What a comparator says that puts no questions through the run: its cost is counted here."""
        interrupt = interrupt_of_call()
        await interrupt.may_ask()
        reserved = await self._budget.reserve(f"comparator:{comparator.key}", None, is_variant=True)
        with interrupt.waits():
            said: PairwiseOutcome | None = None
            try:
                async with self._own:
                    said = await self._said(comparator, task, traces, more)
            finally:
                cost = None if said is None else said.cost
                is_answer = said is not None and said.outcome is not None and said.outcome.is_answer
                self._budget.settle(reserved, cost, known=cost is not None or is_answer)
            if question is not None and not said.detail.get("raised"):
                await self._store.add_outcome(comparator.key, question, task.task_id, said)
            return said

    async def _said(
        self, comparator: PairwiseComparator, task: Task, traces: Sequence[Trace], more: Mapping[str, Any]
    ) -> PairwiseOutcome:
        """What a comparator says now; whatever is wrong with it is the outcome of this case."""
        try:
            outcome: Any = await comparator.compare(
                task=task, trace_a=traces[0], trace_b=traces[1], reference_outputs=task.reference_outputs, **more
            )
            if (said := as_outcome(outcome)) is None:
                raise TypeError(f"a comparator must return a PairwiseOutcome, not {outcome!r:.80}")
        except (JudgeError, StoreError, BudgetExceeded, _GivenUp):
            raise  # every other case would fail, too
        except BaseException as error:  # anything else that a comparator raises is the outcome of this case
            if ends_run(error):
                raise
            words = raised(error)
            if comparator.key not in self._heard:
                notice(f"the comparator {comparator.key} raised an exception, and the run continues: {words}")
            return PairwiseOutcome.fail(words, detail={"raised": True})
        finally:
            self._heard.add(comparator.key)
        return said


def _question(task: Task, traces: Sequence[Trace], repeat: int) -> str | None:
    """A digest of what a comparator is shown, to which its outcome belongs; None when a part has no lasting name."""
    shown: list[Any] = [task.task_id, task.input, *(trace.output for trace in traces)]
    besides = {
        "inputs": {name: value for name, value in task.inputs.items() if name != "input"} or None,
        "reference": task.reference_outputs,
        "events": [trace.to_dict()["events"] for trace in traces] if any(trace.events for trace in traces) else None,
    }
    known = {name: value for name, value in besides.items() if value is not None}
    try:
        return fingerprint([*shown, *([repeat] if repeat > 1 else []), *([known] if known else [])])
    except InputError:
        return None


def _digest(task: Task) -> str | None:
    """A digest of what was asked, by which another run knows a changed task; None when a part has no lasting name."""
    try:
        return fingerprint([task.inputs, task.reference_outputs])
    except InputError:
        return None


def _order(jobs: Sequence[CaseJob], seed: int | None, *, shuffled: bool) -> list[int]:
    """The order in which the cases are taken; when outcomes decide when to stop, tasks are taken at random."""
    tasks: dict[str, list[int]] = {}
    for at, job in enumerate(jobs):
        tasks.setdefault(job.task_id, []).append(at)
    groups = list(tasks.values())
    if shuffled:
        random.Random(seed).shuffle(groups)  # noqa: S311 - an order, not a secret
    return [at for group in groups for at in group]


@runtime_checkable
class StopRule(Protocol):
    """When a run has seen enough; it is asked after every task."""

    def sequence(self) -> Any:
        """What takes in the scores of one comparator, counted in one way: it has ``update(score)`` and ``n``."""
        ...

    def stops(self, looks: Sequence[Mapping[Failures, Any]], asked: Failures) -> bool:
        """Whether no further case is needed.

        Args:
            looks: of each comparator, by the way to count failures, what its scores have shown.
            asked: the way that was asked for.
        """
        ...


class _BetterRule:
    """Stop when the same variant is better by the first comparator in every way to count failures."""

    def sequence(self) -> RunningSequence:
        return RunningSequence()

    def stops(self, looks: Sequence[Mapping[Failures, RunningSequence]], asked: Failures) -> bool:
        known = {way: sequence.better for way, sequence in looks[0].items() if sequence.n}
        return agreed_better(known, asked) is not None


DECIDED: StopRule = _BetterRule()
"""The rule behind ``stop_when="decided"``."""


class Look:
    """Looks at the tasks in the order in which they were to be taken, however long each of them took.

    Args:
        tasks: the task of each case, in that order; the cases of a task follow each other.
        failures: the way that was asked for.
        rule: makes what takes in the scores.

    Attributes:
        sequences: by the way to count failures, what the scores have shown.
        looked: tasks that were looked at.
    """

    def __init__(self, tasks: Sequence[str], failures: Failures, rule: StopRule) -> None:
        self._tasks, self._next = tasks, 0
        self.looked = 0
        self.sequences: dict[Failures, Any] = {way: rule.sequence() for way in ways_to_count(failures)}
        self._ahead: dict[int, PairwiseCase] = {}
        self._waiting: list[PairwiseCase] = []

    def take(self, place: int, case: PairwiseCase) -> None:
        """Take in a case that is done, as soon as all before it are."""
        self._ahead[place] = case
        while self._next in self._ahead:
            done = self._ahead.pop(self._next)
            self._waiting.append(done)
            self._next += 1
            if self._next == len(self._tasks) or self._tasks[self._next] != done.task_id:
                self._take()
                self.looked += 1

    def _take(self) -> None:
        """Take in the cases of a task that is done."""
        for way, sequence in self.sequences.items():
            scores = [score for case in self._waiting if (score := counted_score(case, way)) is not None]
            if scores:
                sequence.update(sum(scores) / len(scores))
        self._waiting = []


def comparator_keys(comparators: Sequence[Any]) -> tuple[str, ...]:
    """The keys of comparators.

    Raises:
        InputError: there are none, one is not a comparator, two have the same key, or a key is no text that can be
            written.
    """
    if not comparators:
        raise InputError("name at least one comparator, such as pairwise_judge(…)")
    for one in comparators:
        if not isinstance(one, PairwiseComparator):
            raise InputError(f"a comparator has a key and an async compare; a {type(one).__name__} has not")
    keys = tuple(one.key for one in comparators)
    if odd := [key for key in keys if storable(key) != key]:
        raise InputError(f"the key or criterion {storable(odd[0])!r} holds half of a character; write it as UTF-8 text")
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise InputError(f"two comparators have the key {listed(twice)}; give each its own")
    return keys
