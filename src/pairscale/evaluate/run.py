"""An A/B run: two answers to each task, compared by every comparator, stored as they come."""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError, JudgeError, StoreError
from pairscale.core.notices import notice
from pairscale.core.options import FilePath, ProgressMode, require_choice, require_int, require_seed
from pairscale.core.provenance import Provenance, fingerprint, utc_now
from pairscale.core.tables import Values, listed
from pairscale.evaluate.comparators import PairwiseComparator, PairwiseOutcome, as_outcome
from pairscale.evaluate.formats.reading import recorded
from pairscale.evaluate.inference.cases import Texts
from pairscale.evaluate.inference.failures import (
    Failures,
    agreed_better,
    count_failure,
    failed_sides,
    require_failures,
    ways_to_count,
)
from pairscale.evaluate.inference.gate import GateRule, RunningVerdict
from pairscale.evaluate.inference.sequence import RunningSequence
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult, counted_score, figures_of, flips_of, measures_of
from pairscale.evaluate.store import Compared, EvaluationStore
from pairscale.evaluate.tasks import (
    Match,
    Row,
    SuiteLike,
    Task,
    Trace,
    TraceRef,
    TraceSource,
    Unmatched,
    as_suite,
    as_trace,
    matched,
)
from pairscale.evaluate.variants import Answers, CaseJob, VariantLike, VariantRunner, make_variant, paying
from pairscale.judges.base import Judge, JudgePair, Verdict
from pairscale.judges.function import ends_run, raised
from pairscale.providers.catalog import price_date
from pairscale.runtime import (
    Budget,
    BudgetExceeded,
    LogRows,
    Progress,
    Question,
    Recorded,
    RunOptions,
    Runtime,
    Wait,
    close,
    record_prices,
    recorded_prices,
    require_prices,
)
from pairscale.store.database import scrub_surrogates
from pairscale.store.policies import GroupCommitWriter
from pairscale.store.runfile import open_run

NO_ANSWER = "(no answer)"
"""What comparators are shown for a failed answer, where failures are shown."""

OnCase: TypeAlias = Callable[[PairwiseCase], None]
Couple: TypeAlias = tuple[str, str]
"""The names of two variants that are compared."""
ComparedCase: TypeAlias = tuple[list[PairwiseCase], list[Trace]]
"""The cases of two answers, one per comparator, and the answers."""


def named_two(names: Couple, two: Sequence[Any]) -> Values:
    """Two variants by their names.

    Raises:
        InputError: they have not two names.
    """
    if not all(names) or names[0] == names[1]:
        raise InputError(f"the variants need two different names, not {names[0]!r} and {names[1]!r}", "name_b")
    return dict(zip(names, two, strict=True))


# When to stop


class DecidedRule:
    """``stop_when="decided"``: the same variant is better by the first comparator in every way to count failures."""

    def sequence(self) -> RunningSequence:
        """A confidence sequence."""
        return RunningSequence()

    def stops(self, looks: Sequence[Look], asked: Failures) -> bool:
        """Whether one variant is better; asked after every task.

        Args:
            looks: of each comparator.
            asked: the way that was asked for.
        """
        better = {way: sequence.better for way, sequence in looks[0].sequences.items() if sequence.n}
        return agreed_better(better, asked) is not None


StopWhen: TypeAlias = "Literal['decided'] | GateRule"


class Look:
    """Looks at the tasks in the order in which they were to be taken, however long each of them took.

    Args:
        tasks: the task of each case, in that order; the cases of a task follow each other.
        failures: the way that was asked for.
        rule: makes what takes in the scores.

    Attributes:
        sequences: by the way to count failures, what the scores have shown.
        flips: of the tasks in which both orders name a winner, how often these differ.
    """

    def __init__(self, tasks: Sequence[str], failures: Failures, rule: DecidedRule | GateRule) -> None:
        self._tasks = tasks
        self._next = 0
        self._done: dict[int, PairwiseCase] = {}
        self._of_task: list[PairwiseCase] = []
        self.flips = RunningVerdict(0.0)
        self.sequences: dict[Failures, Any] = {way: rule.sequence() for way in ways_to_count(failures)}

    def take(self, place: int, case: PairwiseCase) -> None:
        """Take in a case that is done, as soon as all before it are."""
        self._done[place] = case
        while self._next in self._done:
            self._of_task.append(self._done.pop(self._next))
            task = self._tasks[self._next]
            self._next += 1
            if self._next == len(self._tasks) or self._tasks[self._next] != task:
                self._take_task()

    def _take_task(self) -> None:
        for way, sequence in self.sequences.items():
            scores = [counted_score(case, way) for case in self._of_task]
            answered = [score for score in scores if score is not None]
            if answered:
                sequence.update(sum(answered) / len(answered))
        flipped = flips_of(self._of_task)
        if flipped:
            self.flips.update(sum(flipped) / len(flipped))
        self._of_task = []


# Where the two answers of a case come from


def answer_source(given: Any, name: str) -> TraceSource:
    """Recorded answers as a source.

    Raises:
        InputError: they are none.
    """
    source = recorded(given)
    if source is None:
        raise InputError(
            f"the answers of {name} must be a file, a folder, a table, a mapping from task to answer or a trace "
            f"source, not {given!r:.80}"
        )
    return source


async def paired(
    source_a: Any,
    source_b: Any,
    suite: SuiteLike | None,
    names: Couple = ("A", "B"),
    *,
    strict: bool = False,
) -> tuple[list[CaseJob], tuple[Unmatched, ...]]:
    """The answers of two sources, paired by task, see :func:`matched`; and what has no partner.

    Args:
        source_a: the one.
        source_b: the other.
        suite: the tasks; without it, they are what the answers say of them.
        names: of the variants.
        strict: whether to refuse answers to different questions under the same name.
    """
    sources = (answer_source(source_a, names[0]), answer_source(source_b, names[1]))
    refs_a, refs_b = [[ref async for ref in source.list()] for source in sources]
    matches, unknown = matched(refs_a, refs_b, () if suite is None else as_suite(suite), names, strict=strict)
    jobs: list[CaseJob] = []
    left: list[Unmatched] = []
    for match in matches:
        if not match.a and not match.b:
            left.append(Unmatched(match.name, 1, "both"))
        for repeat, refs in enumerate(zip_longest(match.a, match.b), start=1):
            if None in refs:
                left.append(Unmatched(match.name, repeat, "a" if refs[0] is None else "b"))
            else:
                jobs.append(CaseJob(match.name, repeat, names, partial(_load, sources, match, refs)))
    if not jobs:
        raise InputError("A and B have no task in common; answers are paired by task_id, else by the text of the task")
    return jobs, (*left, *unknown)


async def _load(sources: Sequence[TraceSource], match: Match, refs: Sequence[TraceRef]) -> Answers:
    """The task of a case, and both answers; without a suite, the task is what the answers say that it was."""
    a, b = [as_trace(await source.load(ref), match.name) for source, ref in zip(sources, refs, strict=True)]
    if match.task is not None:
        return match.task, a, b
    about = {**b.metadata, **a.metadata}
    inputs = {"input": about["input"]} if about.get("input") is not None else {}
    reference = about.get("reference_outputs", about.get("reference"))
    tags = about.get("tags")
    return Task(inputs, match.name, reference, tuple(tags) if isinstance(tags, list | tuple) else ()), a, b


# The run


class _GivenUp(Exception):  # noqa: N818 - the run is being stopped, nothing went wrong
    """A question was not asked, because the run is being stopped."""


class PairwiseRun:
    """Compares pairs of answers, and keeps everything in a run file; a call of its own for each run.

    Args:
        comparators: who says which is better.
        options: how to ask.
        run: the run file; without one, nothing is kept.
        failures: how failures of variants count: ``loss``, ``shown`` or ``excluded``.
        stop_when: ``decided`` to stop when the first comparator's answers are decided; a rule of its own; else None.
        seed: of the order of the cases with ``stop_when``.
        progress: whether to show progress.
        on_case: called with each case.

    Raises:
        InputError: a comparator cannot be used, or ``max_cost`` is set for a model without a known price.
    """

    def __init__(
        self,
        comparators: Iterable[PairwiseComparator],
        options: RunOptions,
        *,
        run: FilePath | None = None,
        failures: Failures = "loss",
        stop_when: StopWhen | None = None,
        seed: int | None = 1,
        progress: ProgressMode = True,
        on_case: OnCase | None = None,
    ) -> None:
        self.comparators = tuple(comparators)
        self.keys = _require_keys(self.comparators)
        self.options = options
        self.failures = require_failures(failures)
        self.seed = require_seed(seed)
        self.on_case = on_case
        self._progress = progress
        self.stop_when = stop_when
        self.stop_rule: DecidedRule | GateRule | None = stop_when if isinstance(stop_when, GateRule) else None
        if self.stop_rule is None and require_choice(stop_when, "stop_when", (None, "decided")):
            self.stop_rule = DecidedRule()
        self._judges = [judge for one in self.comparators for judge in getattr(one, "judges", ())]
        require_prices(self._judges, options.max_cost)
        self._run = run
        self._runner: VariantRunner | None = None
        self._priced: list[object] = list(self._judges)
        self.stopped: str | None = None
        self._done: dict[int, ComparedCase] = {}
        self._compared: dict[tuple[str, int], Compared] = {}
        self._looks: list[Look] = []
        self._questions: deque[Question] = deque()
        self._raised: set[str] = set()  # comparators that have raised an exception
        self._open: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._changed: asyncio.Future[None] | None = None

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        """The run file, open, and the budget that variants and judges share."""
        with open_run(self._run, write=True) as self._run_file:
            self.name = self._run_file.name
            async with GroupCommitWriter(self._run_file) as self._writer:
                self.store = EvaluationStore(self._run_file, self._writer)
                record_prices(self._run_file, self._judges)
                self.budget = Budget.of(self._run_file, self.options.max_cost)
                self.budget.spent += self.store.spent
                self._spent_before = self.budget.spent
                try:
                    yield
                finally:
                    if self._runner is not None:
                        await self._runner.aclose()

    async def of_variants(
        self,
        suite: SuiteLike,
        variants: Mapping[str, VariantLike],
        couples: Sequence[Couple],
        method: str,
        *,
        repeats: int = 1,
        variant_timeout: float | None = None,
        **about: Any,
    ) -> dict[Couple, PairwiseRunResult]:
        """Have variants answer the tasks of a suite, and compare the answers of each couple.

        Args:
            suite: The tasks.
            variants: By their names.
            couples: The names of those to compare.
            method: What the results say that they are of.
            repeats: How often each variant answers each task.
            variant_timeout: Seconds that one answer of a variant may take.
            about: Further fields of the results: ``run_id label control store_dir``; ``baseline`` of a ranking.
        """
        suite = as_suite(suite)
        times = range(1, require_int(repeats, "repeats", least=1) + 1)
        made = {name: make_variant(variant, name) for name, variant in variants.items()}
        async with self._opened():
            record_prices(self._run_file, (), made)
            self._priced += made.values()
            runner = self._runner = VariantRunner(self.store, made, self.budget, variant_timeout)
            jobs = [runner.job(task, repeat, *two) for task in suite for two in couples for repeat in times]
            used = {"run": self.name, "suite": suite.name, "repeats": repeats, "stop_when": self.stop_when}
            provenance = Provenance(method, used, self.seed, runner.identities)
            return await self._results(couples, jobs, {}, provenance=provenance, **about)

    async def of_answers(
        self,
        sources: Row,
        couples: Sequence[Couple],
        suite: SuiteLike | None,
        method: str,
        **about: Any,
    ) -> dict[Couple, PairwiseRunResult]:
        """Compare the recorded answers of each couple task by task.

        Args:
            sources: The answers, by the variants' names.
            couples: The names of those to compare.
            suite: The tasks that the answers belong to.
            method: What the results say that they are of.
            about: Further fields of the results; see :meth:`of_variants`.
        """
        tasks = None if suite is None else as_suite(suite)
        jobs: list[CaseJob] = []
        unmatched = {}
        for a, b in couples:
            own, unmatched[a, b] = await paired(sources[a], sources[b], tasks, (a, b))
            jobs += own
        async with self._opened():
            used = {"run": self.name, "suite": tasks and tasks.name, "stop_when": self.stop_when}
            provenance = Provenance(method, used, self.seed)
            return await self._results(couples, jobs, unmatched, provenance=provenance, **about)

    async def _results(
        self,
        couples: Sequence[Couple],
        jobs: Sequence[CaseJob],
        unmatched: Mapping[Couple, tuple[Unmatched, ...]],
        *,
        run_id: str | None = None,
        store_dir: Any = None,
        baseline: str | None = None,
        **about: Any,
    ) -> dict[Couple, PairwiseRunResult]:
        """Compare every case, and keep the results in the run file, and where else that was asked for."""
        about["created_at"] = utc_now()
        start = time.perf_counter()
        order = await self._compare_all(jobs)
        dates = {price_date(getattr(asked, "price", None)) for asked in self._priced}
        about |= {
            "keys": self.keys,
            "failures": self.failures,
            "stopped": self.stopped,
            "sequential": self.stop_rule is not None,
            "asked": self.asked,
            "answered": self.answered,
            "cost": self.budget.spent - self._spent_before,
            "prices_as_of": tuple(sorted(date for date in dates if date)),
            "duration_ms": round((time.perf_counter() - start) * 1000, 3),
            "store_dir": None if store_dir is None else os.fspath(store_dir),
        }
        results = {}
        for couple in couples:
            numbers = [number for number in order if jobs[number].names == couple]
            done = [self._done[number] for number in numbers if number in self._done]
            results[couple] = PairwiseRunResult(
                run_id=run_id or uuid4().hex,
                cases=tuple(case for cases, _ in done for case in cases),
                variant_a=couple[0],
                variant_b=couple[1],
                unmatched=unmatched.get(couple, ()),
                unasked=tuple(dict.fromkeys(jobs[at].task_id for at in numbers if at not in self._done)),
                variants=tuple(figures_of(side, [traces[at] for _, traces in done]) for at, side in enumerate("ab")),
                **about,
            )
            if store_dir is not None:
                results[couple].save()
        if self.store.is_kept and len(couples) > 1:
            self.store.add_ranking(list(results.values()), baseline)
        elif self.store.is_kept:
            self.store.add_pairwise_result(results[couples[0]], self._compared)
        return results

    async def _compare_all(self, jobs: Sequence[CaseJob]) -> list[int]:
        """Compare every case, or as many as it takes, and return the order in which they were to be taken.

        When outcomes decide when to stop, tasks are taken at random.
        """
        tasks: dict[str, list[int]] = {}
        for number, job in enumerate(jobs):
            tasks.setdefault(job.task_id, []).append(number)
        groups = list(tasks.values())
        if self.stop_rule is not None:
            random.Random(self.seed).shuffle(groups)  # noqa: S311 - an order, not a secret
        order = [number for group in groups for number in group]
        if self.stop_rule is not None:
            in_order = [jobs[number].task_id for number in order]
            self._looks = [Look(in_order, self.failures, self.stop_rule) for _ in self.comparators]
        self._cases = deque((place, number, jobs[number]) for place, number in enumerate(order))
        self.budget.prices = recorded_prices(self._run_file)
        with Progress(len(jobs), show=self._progress, label="comparing", prices=self.budget.prices) as self._bar:
            runtime = Runtime(self, self._writer, self.options, budget=self.budget)
            try:
                await runtime.run()
            finally:
                await self.aclose()
                self.answered = 0 if self._runner is None else self._runner.asked
                self.asked = runtime.asked + self.answered
        if self.stopped == "max_cost" and runtime.stopped is None:
            runtime.tell_budget()
        self.stopped = self.stopped or runtime.stopped
        return order

    # The source of questions

    def next(self) -> Question | Wait | None:
        """A question of a case that is open; else the cases are worked on further."""
        if self._failure is not None:
            raise self._failure
        if self._questions:
            return self._questions.popleft()
        if len(self._open) < self.options.concurrency and self._cases and self.stopped is None:
            task = asyncio.create_task(self._case(*self._cases.popleft()))
            self._open.add(task)
            task.add_done_callback(self._ended)
        if not self._open:
            return None
        if self._changed is None or self._changed.done():
            self._changed = asyncio.get_running_loop().create_future()
        return Wait(self._changed)

    def done(self, question: Question, recorded: Recorded | None) -> LogRows:
        """Hand an outcome to the case that asked."""
        answer: asyncio.Future[Recorded] = question.key
        if not answer.done():
            if recorded is None:
                answer.set_exception(_GivenUp())
            else:
                self.store.take(question, recorded)
                answer.set_result(recorded)
        return ()

    async def aclose(self) -> None:
        """End the cases that are open, and have comparators close their connections."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        for comparator in self.comparators:
            await close(comparator)

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, BudgetExceeded):
            self.stopped = self.stopped or "max_cost"
        elif error is not None and not isinstance(error, _GivenUp):
            self._failure = self._failure or error
        self._wake()

    async def ask(self, judge: Judge, pair: JudgePair, retries: int) -> Verdict:
        """The answer that is known, or else what the judge says now, once it is on the disk."""
        uid = pair.uid
        async with self.store.turn(judge.condition.condition_id, uid):
            verdict = self.store.verdict(judge, uid)
            if verdict is not None:
                return verdict
            answer: asyncio.Future[Recorded] = asyncio.get_running_loop().create_future()
            self._questions.append(self.store.question(judge, pair, uid, retries, answer))
            self._wake()
            return (await answer).verdict

    # Cases

    async def _case(self, place: int, number: int, job: CaseJob) -> None:
        cases, traces = await self._compare(job)
        self._done[number] = (cases, traces)
        failed = any(not case.outcome.is_answer for case in cases)
        self._bar.count(failed=failed, cost=sum(case.cost or 0.0 for case in cases))
        if self.on_case is not None:
            for case in cases:
                self.on_case(case)
        rule = self.stop_rule
        if rule is not None:
            for look, case in zip(self._looks, cases, strict=True):
                look.take(place, case)
            if rule.stops(self._looks, self.failures):
                self.stopped = self.stopped or "decided"

    async def _compare(self, job: CaseJob) -> ComparedCase:
        """The cases of two answers, one per comparator, and the answers."""
        task, *traces = await job.load()
        failed = failed_sides(traces[0].failure, traces[1].failure)
        named = zip(job.names, traces, strict=True)
        why = [f"{name} failed: {trace.failure}" for name, trace in named if trace.failure]
        lengths = [None if trace.failure else len(trace.output) for trace in traces]
        texts = [None if trace.failure else self.store.add_text(task.task_id, trace.output) for trace in traces]
        self._compared[job.task_id, job.repeat] = Compared(task.input, *texts)
        shown = [trace if trace.failure is None else replace(trace, output=NO_ANSWER) for trace in traces]
        cases = []
        for comparator in self.comparators:
            if failed is None or self.failures == "shown":
                outcome = await self._outcome(comparator, job, task, *shown)
                reasoning = "; ".join([*why, outcome.reasoning])
            else:
                kind, winner = count_failure(failed, Outcome.ERROR, None, self.failures)
                outcome = PairwiseOutcome(winner, outcome=kind)  # type: ignore[arg-type]
                reasoning = "; ".join(why)
            case = PairwiseCase(
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
                preference=outcome.preference,
            )
            cases.append(case)
        return cases, traces

    async def _outcome(
        self, comparator: PairwiseComparator, job: CaseJob, task: Task, trace_a: Trace, trace_b: Trace
    ) -> PairwiseOutcome:
        """What a comparator says now, or has said before."""
        takes = inspect.signature(comparator.compare).parameters
        arguments: Values = {"task": task, "trace_a": trace_a, "trace_b": trace_b}
        arguments["reference_outputs"] = task.reference_outputs
        if "repeat" in takes:
            arguments["repeat"] = job.repeat
        if "ask" in takes:
            return await self._called(comparator, {**arguments, "ask": self.ask})
        question = None
        if getattr(comparator, "remember", True):
            shown = [[trace.output, trace.to_dict()["events"]] for trace in (trace_a, trace_b)]
            with suppress(InputError):  # where a part of what is shown has no lasting name
                question = fingerprint([task.task_id, task.inputs, task.reference_outputs, job.repeat, *shown])
            remembered = None if question is None else self.store.outcome(comparator.key, question)
            if remembered is not None:
                return remembered
        async with paying(self.budget, f"comparator:{comparator.key}", None) as bill:
            outcome = await self._called(comparator, arguments)
            bill.cost = outcome.cost
            bill.is_answered = outcome.outcome is not None and outcome.outcome.is_answer
            if question is not None and not outcome.detail.get("raised"):
                await self.store.add_outcome(comparator.key, question, task.task_id, outcome)
        return outcome

    async def _called(self, comparator: PairwiseComparator, arguments: Row) -> PairwiseOutcome:
        """What a comparator says now; whatever is wrong with it is the outcome of this case."""
        try:
            answer: Any = await comparator.compare(**arguments)
            outcome = as_outcome(answer)
            if outcome is None:
                raise TypeError(f"a comparator must return a PairwiseOutcome, not {answer!r:.80}")
        except (JudgeError, StoreError, BudgetExceeded, _GivenUp):
            raise  # every other case would fail, too
        except BaseException as error:  # anything else that a comparator raises is the outcome of this case
            if ends_run(error):
                raise
            words = raised(error)
            if comparator.key not in self._raised:
                self._raised.add(comparator.key)
                notice(f"the comparator {comparator.key} raised an exception, and the run continues: {words}")
            return PairwiseOutcome.fail(words, detail={"raised": True})
        return outcome


def _require_keys(comparators: Sequence[Any]) -> Texts:
    """The keys of comparators, where each has its own."""
    if not comparators or not all(isinstance(one, PairwiseComparator) for one in comparators):
        raise InputError("comparators have a key and an async compare, such as pairwise_judge(…)")
    keys = tuple(one.key for one in comparators)
    shown = scrub_surrogates(keys)
    if len(set(keys)) < len(keys) or shown != list(keys):
        raise InputError(f"comparators need different keys of whole characters, not {listed(shown)}")
    return keys
