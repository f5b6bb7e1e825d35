"""Where the two answers of a case come from: variants that are run, or sources that hold them."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pairscale.core.errors import InputError, JudgeError
from pairscale.core.notices import notice
from pairscale.core.options import optional, require_number
from pairscale.core.timelimit import TimeLimit, TimeLimitError
from pairscale.evaluate.comparators import together
from pairscale.evaluate.formats.reading import recorded, source_at, unfinished_of
from pairscale.evaluate.matching import matched
from pairscale.evaluate.result import Unmatched
from pairscale.evaluate.store import COST_IS_ESTIMATE, TIMED_OUT, EvaluationStore
from pairscale.evaluate.suite import SuiteLike, Task, as_suite, id_key
from pairscale.evaluate.traces import Trace, TraceRef, TraceSource, as_trace
from pairscale.evaluate.variants import Variant
from pairscale.judges.function import ends_run, words_of
from pairscale.runtime import Budget, close, interrupt_of_call

__all__ = ["CaseJob", "VariantRunner", "answer_source", "paired"]

_TO_END_S = 1.0  # for a variant that was cancelled

Answers: TypeAlias = tuple[Task, Trace, Trace]


@dataclass(frozen=True, slots=True)
class CaseJob:
    """One pair of answers to be compared.

    Attributes:
        task_id: the task.
        repeat: which answer to it, from 1.
        names: of the two variants.
        load: gets the task and both answers.
    """

    task_id: str
    repeat: int
    names: tuple[str, str]
    load: Callable[[], Awaitable[Answers]]


class VariantRunner:
    """Has variants answer tasks, each task once, and stores the answers.

    Args:
        store: what the run file knows.
        variants: by their names.
        budget: what may be spent.
        timeout: seconds that one answer may take, without waits for a rate limit; None for no limit.

    Attributes:
        identities: by name, what the answers of a variant are found again by.
        asked: answers that variants were asked for.
    """

    def __init__(
        self, store: EvaluationStore, variants: Mapping[str, Variant], budget: Budget, timeout: float | None = None
    ) -> None:
        self._store, self._variants, self._budget = store, variants, budget
        timeout = optional(require_number, timeout, "variant_timeout", above=0)
        self._limit = None if timeout is None else TimeLimit(timeout)
        self._left: set[str] = set()  # variants that did not end when they were cancelled
        self.asked = 0
        known = Counter(variant.identity for variant in variants.values())
        # The same function under two names answers for each of them.
        self.identities = {
            name: f"{variant.identity}|{name}" if known[variant.identity] > 1 else variant.identity
            for name, variant in variants.items()
        }
        store.add_names(self.identities)

    def job(self, task: Task, repeat: int, a: str, b: str) -> CaseJob:
        """A task to be answered by two of them."""

        async def load() -> Answers:
            first, second = await together(self._answer(a, task, repeat), self._answer(b, task, repeat))
            return task, first, second

        return CaseJob(task.task_id, repeat, (a, b), load)

    async def _answer(self, name: str, task: Task, repeat: int) -> Trace:
        variant, identity = self._variants[name], self.identities[name]
        if getattr(variant, "recorded", False):
            trace = await _answer(variant, task, repeat)
            self._store.note_answer(identity, name, task, repeat, trace)
            return trace
        async with self._store.turn(identity, f"{task.digest}#{repeat}"):
            known = self._store.answer(identity, task, repeat, None if self._limit is None else self._limit.seconds)
            if known is not None:
                return known
            most = None if self._budget.limit is None else _max_cost(variant, task)
            interrupt = interrupt_of_call()
            await interrupt.may_ask()
            reserved = await self._budget.reserve(identity, most, is_variant=True)
            self.asked += 1
            with interrupt.waits():
                cost, answered = None, False
                try:
                    trace = _with_cost(await self._in_time(name, _answer(variant, task, repeat)), most)
                    cost, answered = trace.cost, trace.exception is None
                    if COST_IS_ESTIMATE in trace.metadata:
                        self._budget.say_estimate(name, cost)
                finally:
                    self._budget.settle(reserved, cost, known=cost is not None or answered)
                await self._store.add_answer(identity, name, task, repeat, trace)
                return trace

    async def _in_time(self, name: str, answer: Coroutine[Any, Any, Trace]) -> Trace:
        """The answer of a variant; that it took too long is a failure, too.

        It has a task of its own, which is left behind if it does not end when it is cancelled.
        """
        if self._limit is None:
            return await answer
        start, seconds = time.perf_counter(), self._limit.seconds
        answering: asyncio.Task[Trace] | None = None

        async def answered() -> Trace:
            nonlocal answering
            answering = asyncio.create_task(answer)  # here, so that it knows the time limit around it
            return await asyncio.shield(answering)

        try:
            return await self._limit.within(answered())
        except asyncio.CancelledError:
            if answering is not None and answering.cancel():
                await asyncio.wait({answering})
            raise
        except TimeLimitError:
            took = round((time.perf_counter() - start) * 1000, 3)
            if answering is not None and answering.cancel():
                await asyncio.wait({answering}, timeout=_TO_END_S)
                self._tell_if_left(name, answering)
            why = f"timeout: no answer within {seconds:g} seconds"
            return Trace(exception=why, duration_ms=took, metadata={TIMED_OUT: seconds})

    def _tell_if_left(self, name: str, answering: asyncio.Task[Trace]) -> None:
        if not answering.done() and name not in self._left:
            self._left.add(name)
            notice(
                f"{name} does not end when it is cancelled after variant_timeout; it is left behind, and what it still "
                "returns is ignored"
            )

    async def aclose(self) -> None:
        """Have the variants close their connections."""
        for variant in self._variants.values():
            await close(variant)


async def _answer(variant: Variant, task: Task, repeat: int) -> Trace:
    """What a variant answers; what it raises is what came of this task."""
    try:
        said: Any = await variant.answer(task, repeat)
    except JudgeError:
        raise  # it can answer nothing at all
    except BaseException as error:  # an object of somebody's own may raise anything
        if ends_run(error):
            raise
        return Trace(exception=words_of(error))
    return said if isinstance(said, Trace) else Trace(exception=f"a variant must answer with a Trace, not {said!r:.80}")


def _with_cost(trace: Trace, most: float | None) -> Trace:
    """An answer, or one that did not come in time, at the most that it may have cost where it does not say."""
    is_asked = trace.exception is None or TIMED_OUT in trace.metadata
    if trace.cost is not None or not most or not is_asked:
        return trace
    return replace(trace, cost=most, metadata={**trace.metadata, COST_IS_ESTIMATE: True})


def _max_cost(variant: Variant, task: Task) -> float | None:
    """What an answer may cost at most, where the variant says so."""
    declared: Callable[[Task], float | None] | None = getattr(variant, "max_cost_of", None)
    try:
        most = None if declared is None else declared(task)
    except Exception:  # noqa: BLE001 - the answer will fail as well, and say why
        return None
    try:
        return optional(require_number, most, "what it returns", least=0)
    except InputError as error:
        raise JudgeError(f"max_cost_of of a variant: {error}") from None


def answer_source(given: Any, name: str) -> TraceSource:
    """Recorded answers as a source.

    Raises:
        InputError: they are none.
    """
    found = source_at(given) if isinstance(given, str | os.PathLike) else recorded(given)
    if found is None:
        raise InputError(
            f"the answers of {name} must be a file, a folder, a table, a mapping from task to answer or a trace "
            f"source, not {given!r:.80}"
        )
    return found


async def paired(
    source_a: TraceSource | str | os.PathLike[str],
    source_b: TraceSource | str | os.PathLike[str],
    suite: SuiteLike | None,
    names: tuple[str, str] = ("A", "B"),
) -> tuple[list[CaseJob], tuple[Unmatched, ...]]:
    """The answers of two sources, paired by task, see :func:`matched`; and what has no partner.

    Args:
        source_a: the one.
        source_b: the other.
        suite: the tasks; without it, they are what the answers say of them.
        names: of the variants.
    """
    sources = [answer_source(one, name) for one, name in zip((source_a, source_b), names, strict=True)]
    refs_a, refs_b = [[ref async for ref in source.list()] for source in sources]
    matches, unmatched = matched(refs_a, refs_b, () if suite is None else as_suite(suite), names)
    jobs, left = [], [one for one in unmatched if one.missing != "suite"]
    for one in matches:
        if not one.a and not one.b:
            left.append(Unmatched(one.name, 1, "both"))
        for at in range(max(len(one.a), len(one.b))):
            if at >= len(one.a) or at >= len(one.b):
                left.append(Unmatched(one.name, at + 1, "a" if at >= len(one.a) else "b"))
            else:
                load = _loader(sources, (one.a[at], one.b[at]), one.name, one.task)
                jobs.append(CaseJob(one.name, at + 1, names, load))
    if suite is None:
        seen = {id_key(one.name) for one in matches}
        logs = [log for source in sources for log in unfinished_of(source)]
        never_reached = dict.fromkeys(name for log in logs for name in log.never_reached)
        left += [Unmatched(name, 1, "both") for name in never_reached if id_key(name) not in seen]
    if not jobs:
        raise InputError("A and B have no task in common; answers are paired by task_id, else by the text of the task")
    return jobs, (*left, *(one for one in unmatched if one.missing == "suite"))


def _loader(
    sources: Iterable[TraceSource], refs: tuple[TraceRef, TraceRef], name: str, task: Task | None
) -> Callable[[], Awaitable[Answers]]:
    async def load() -> Answers:
        a, b = [as_trace(await source.load(ref), name) for source, ref in zip(sources, refs, strict=True)]
        return task or _told(name, a, b), a, b

    return load


def _told(name: str, a: Trace, b: Trace) -> Task:
    """A task as far as its answers say what it was."""
    known = {**b.metadata, **a.metadata}
    inputs = {"input": known["input"]} if known.get("input") is not None else {}
    tags = known.get("tags")
    task = Task(inputs, name, known.get("reference_outputs", known.get("reference")))
    return replace(task, tags=tuple(tags)) if isinstance(tags, list | tuple) else task
