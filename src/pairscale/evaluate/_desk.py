"""Works off the cases of a run: many at once, each graded by every comparator, until all are done or it may stop."""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

from pairscale.collect._asking import close
from pairscale.collect._progress import Bar
from pairscale.collect._purse import TooDear
from pairscale.comparisons import Outcome
from pairscale.errors import InputError, JudgeError, StoreError
from pairscale.evaluate._book import Book
from pairscale.evaluate._jobs import Job
from pairscale.evaluate._kept import Shown, result_row
from pairscale.evaluate.comparators import PairwiseComparator, PairwiseOutcome
from pairscale.evaluate.inference import Sequence as Looks
from pairscale.evaluate.inference import score_of
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult, Unmatched
from pairscale.evaluate.suite import Task
from pairscale.evaluate.traces import Trace
from pairscale.judges.function import words_of
from pairscale.notices import notice
from pairscale.provenance import Provenance, fingerprint, utc_now
from pairscale.tables import listed

__all__ = ["Desk"]


class Desk:
    """Grades cases.

    Args:
        comparators: who says which is better.
        concurrency: how many cases may be open at once.
        stop_when: ``decided``, or None.
        seed: of the order of the cases with ``stop_when``.
        on_case: called with each case.

    Raises:
        InputError: when one of these cannot be used.
    """

    def __init__(
        self,
        comparators: Sequence[PairwiseComparator],
        *,
        concurrency: int,
        stop_when: str | None,
        seed: int | None,
        on_case: Callable[[PairwiseCase], None] | None,
    ) -> None:
        if concurrency < 1:
            raise InputError(f"concurrency must be 1 or more, not {concurrency!r}")
        if stop_when not in {None, "decided"}:
            raise InputError(f"stop_when must be 'decided' or None, not {stop_when!r}")
        self._comparators, self.keys = comparators, _keys(comparators)
        self._takes = {one.key: frozenset(inspect.signature(one.compare).parameters) for one in comparators}
        self._concurrency, self._seed, self._on_case = concurrency, seed, on_case
        self._sequential = stop_when is not None
        self.stopped: str | None = None
        self._done: dict[int, list[PairwiseCase]] = {}
        self._shown: dict[tuple[str, int], Shown] = {}

    async def work(
        self,
        book: Book,
        jobs: Sequence[Job],
        *,
        names: tuple[str, str],
        provenance: Provenance,
        unmatched: tuple[Unmatched, ...] = (),
        run_id: str | None = None,
        label: str | None = None,
        store_dir: str | os.PathLike[str] | None = None,
        progress: bool = True,
    ) -> PairwiseRunResult:
        """Work off all cases, and say what came of them."""
        created, start = utc_now(), time.perf_counter()
        await self.grade(book, jobs, progress=progress)
        order = self.order(jobs)
        result = PairwiseRunResult(
            run_id or uuid4().hex,
            tuple(case for at in order for case in self._done.get(at, ())),
            self.keys,
            *names,
            label=label,
            unmatched=unmatched,
            unasked=tuple(dict.fromkeys(jobs[at].task_id for at in order if at not in self._done)),
            stopped=self.stopped,
            sequential=self._sequential,
            asked=book.asked,
            cost=book.purse.spent,
            duration_ms=round((time.perf_counter() - start) * 1000, 3),
            created_at=created,
            provenance=provenance,
            store_dir=None if store_dir is None else os.fspath(store_dir),
        )
        if store_dir is not None:
            result.save()
        if book.is_kept:
            book.keep_result(result_row(result, self._shown))
        return result

    def order(self, jobs: Sequence[Job]) -> list[int]:
        """In which order the cases are taken: as they come, or tasks at random when outcomes decide when to stop."""
        tasks: dict[str, list[int]] = {}
        for at, job in enumerate(jobs):
            tasks.setdefault(job.task_id, []).append(at)
        groups = list(tasks.values())
        if self._sequential:
            random.Random(self._seed).shuffle(groups)  # noqa: S311 - an order, not a secret
        return [at for group in groups for at in group]

    async def grade(self, book: Book, jobs: Sequence[Job], *, progress: bool) -> dict[int, list[PairwiseCase]]:
        """Grade every job, or as many as it takes; by the job's number, its cases."""
        order = self.order(jobs)
        waiting = iter(list(enumerate(order)))
        look = _Look([jobs[at].task_id for at in order]) if self._sequential else None
        workers: list[asyncio.Task[None]] = []
        try:
            with Bar(len(jobs), 0, show=progress, label="comparing") as bar:
                count = min(self._concurrency, len(jobs))
                workers += [asyncio.create_task(self._worker(book, jobs, waiting, look, bar)) for _ in range(count)]
                await asyncio.gather(*workers)
        finally:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for comparator in self._comparators:
                await close(comparator)
        if self.stopped == "max_cost":
            spent = f"${book.purse.spent:.4f} of ${book.purse.limit:g} are spent"
            notice(f"stopped before max_cost is passed: {spent}; the same call goes on")
        return self._done

    async def _worker(
        self, book: Book, jobs: Sequence[Job], waiting: Iterator[tuple[int, int]], look: _Look | None, bar: Bar
    ) -> None:
        for place, number in waiting:
            if self.stopped is not None:
                return
            try:
                cases = await self._cases(book, jobs[number])
            except TooDear:
                self.stopped = "max_cost"
                return
            self._done[number] = cases
            failed = any(not case.outcome.is_answer for case in cases)
            bar.advance(failed=failed, cost=sum(case.cost or 0.0 for case in cases))
            if self._on_case is not None:
                for case in cases:
                    self._on_case(case)
            if look is not None and look.decided(place, cases[0]):
                self.stopped = "decided"

    async def _cases(self, book: Book, job: Job) -> list[PairwiseCase]:
        task, *traces = await job.load()
        raised = [
            f"{name} raised {trace.exception}"
            for name, trace in zip(job.names, traces, strict=True)
            if trace.exception is not None
        ]
        if book.is_kept:
            names = (None if one.exception is not None else book.keep_text(task.task_id, one.output) for one in traces)
            self._shown[job.task_id, job.repeat] = Shown(task.input, *names)
        cases = []
        for comparator in self._comparators:
            if raised:
                outcome = PairwiseOutcome.fail("; ".join(raised), detail={"variant_error": True})
            else:
                outcome = await self._compared(book, comparator, job, task, traces)
            kind = outcome.outcome or Outcome.ERROR
            cases.append(
                PairwiseCase(
                    job.task_id,
                    comparator.key,
                    outcome.winner,
                    outcome.reasoning,
                    dict(outcome.detail),
                    kind,
                    outcome.cost,
                    job.repeat,
                    task.tags,
                    *(len(trace.output) for trace in traces),
                )
            )
        return cases

    async def _compared(
        self, book: Book, comparator: PairwiseComparator, job: Job, task: Task, traces: Sequence[Trace]
    ) -> PairwiseOutcome:
        """What a comparator says now, or has said before."""
        offered: dict[str, Any] = {"ask": book.ask, "repeat": job.repeat}
        more = {name: value for name, value in offered.items() if name in self._takes[comparator.key]}
        remembers = "ask" not in more and getattr(comparator, "remember", True)
        question = _question(task, traces, job.repeat) if remembers else None
        if question is not None and (known := book.outcome(comparator.key, question)) is not None:
            return known
        try:
            outcome: Any = await comparator.compare(
                task=task, trace_a=traces[0], trace_b=traces[1], reference_outputs=task.reference_outputs, **more
            )
        except (JudgeError, StoreError, TooDear):
            raise  # every other case would fail, too
        except Exception as error:  # noqa: BLE001 - whatever else a comparator raises is the outcome of this case
            return PairwiseOutcome.fail(words_of(error), detail={"raised": True})
        if not isinstance(outcome, PairwiseOutcome):
            return PairwiseOutcome.fail(f"a comparator must return a PairwiseOutcome, not {outcome!r:.80}")
        if question is not None:
            await book.keep_outcome(comparator.key, question, task.task_id, outcome)
        return outcome


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


class _Look:
    """Looks at the tasks in the order in which they were to be taken, however long each of them took.

    Args:
        tasks: the task of each case, in that order; the cases of a task follow each other.
    """

    def __init__(self, tasks: Sequence[str]) -> None:
        self._tasks, self._sequence, self._next = tasks, Looks(), 0
        self._ahead: dict[int, PairwiseCase] = {}
        self._scores: list[float] = []

    def decided(self, place: int, case: PairwiseCase) -> bool:
        """Whether one variant is known to be better, now that this case is done."""
        self._ahead[place] = case
        while self._next in self._ahead:
            done = self._ahead.pop(self._next)
            score = score_of(str(done.outcome), done.winner)
            self._scores += [] if score is None else [score]
            self._next += 1
            if self._next == len(self._tasks) or self._tasks[self._next] != done.task_id:
                if self._scores:
                    self._sequence.update(sum(self._scores) / len(self._scores))
                self._scores = []
        return bool(self._sequence.decided)


def _keys(comparators: Sequence[Any]) -> tuple[str, ...]:
    if not comparators:
        raise InputError("name at least one comparator, such as pairwise_judge(…)")
    for one in comparators:
        if not isinstance(one, PairwiseComparator):
            raise InputError(f"a comparator has a key and an async compare; a {type(one).__name__} has not")
    keys = tuple(one.key for one in comparators)
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise InputError(f"two comparators have the key {listed(twice)}; give each its own")
    return keys
