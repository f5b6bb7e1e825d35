"""Where the two answers of a case come from: variants that are run, or sources that hold them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pairscale.core.errors import InputError, JudgeError
from pairscale.evaluate.comparators import together
from pairscale.evaluate.result import Unmatched
from pairscale.evaluate.store import EvaluationStore
from pairscale.evaluate.suite import Suite, Task
from pairscale.evaluate.traces import Trace, TraceRef, TraceSource, source_at
from pairscale.evaluate.variants import Variant
from pairscale.judges.function import words_of
from pairscale.runtime import Budget, close

__all__ = ["CaseJob", "VariantRunner", "paired"]

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

    Attributes:
        identities: by name, what the answers of a variant are found again by.
        asked: answers that variants were asked for.
    """

    def __init__(self, store: EvaluationStore, variants: Mapping[str, Variant], budget: Budget) -> None:
        self._store, self._variants, self._budget = store, variants, budget
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
            known = self._store.answer(identity, task, repeat)
            if known is not None:
                return known
            most = None if self._budget.limit is None else _max_cost(variant, task)
            reserved = await self._budget.reserve(identity, most, is_variant=True)
            self.asked += 1
            cost, answered = None, False
            try:
                trace = await _answer(variant, task, repeat)
                cost, answered = trace.cost, trace.exception is None
            finally:
                self._budget.settle(reserved, cost, known=cost is not None or answered)
            await self._store.add_answer(identity, name, task, repeat, trace)
            return trace

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
    except Exception as error:  # noqa: BLE001 - an object of somebody's own may raise anything
        return Trace(exception=words_of(error))
    return said if isinstance(said, Trace) else Trace(exception=f"a variant must answer with a Trace, not {said!r:.80}")


def _max_cost(variant: Variant, task: Task) -> float | None:
    """What an answer may cost at most, where the variant says so."""
    declared: Callable[[Task], float | None] | None = getattr(variant, "max_cost_of", None)
    try:
        return None if declared is None else declared(task)
    except Exception:  # noqa: BLE001 - the answer will fail as well, and say why
        return None


async def paired(
    source_a: TraceSource | str | os.PathLike[str],
    source_b: TraceSource | str | os.PathLike[str],
    suite: Suite | None,
    names: tuple[str, str] = ("A", "B"),
) -> tuple[list[CaseJob], tuple[Unmatched, ...]]:
    """The answers of two sources, paired by task; and what has no partner.

    Args:
        source_a: the one.
        source_b: the other.
        suite: the tasks; without it, they are what the answers say of them.
        names: of the variants.
    """
    sources = [source_at(one) if isinstance(one, str | os.PathLike) else one for one in (source_a, source_b)]
    unmatched: list[Unmatched] = []
    refs_a, refs_b = [await _refs(source, unmatched) for source in sources]
    tasks = {} if suite is None else {task.task_id: task for task in suite}
    jobs = []
    for name in list(tasks) or list(dict.fromkeys([*refs_a, *refs_b])):
        a, b = refs_a.get(name, []), refs_b.get(name, [])
        if not a and not b:
            unmatched.append(Unmatched(name, 1, "both"))
        for at in range(max(len(a), len(b))):
            if at >= len(a) or at >= len(b):
                unmatched.append(Unmatched(name, at + 1, "a" if at >= len(a) else "b"))
            else:
                task = tasks.get(name)
                jobs.append(CaseJob(name, at + 1, names, _loader(sources, (a[at], b[at]), name, task)))
    if tasks:
        unmatched += [Unmatched(name, 1, "suite") for name in dict.fromkeys([*refs_a, *refs_b]) if name not in tasks]
    if not jobs:
        raise InputError("A and B have no task in common; answers are paired by task_id")
    return jobs, tuple(unmatched)


async def _refs(source: TraceSource, unmatched: list[Unmatched]) -> dict[str, list[TraceRef]]:
    found: dict[str, list[TraceRef]] = {}
    async for ref in source.list():
        if ref.task_id is None:
            unmatched.append(Unmatched(f"trace {ref.trace_id}", 1, "task_id"))
        else:
            found.setdefault(ref.task_id, []).append(ref)
    return found


def _loader(
    sources: Iterable[TraceSource], refs: tuple[TraceRef, TraceRef], name: str, task: Task | None
) -> Callable[[], Awaitable[Answers]]:
    async def load() -> Answers:
        a, b = [await source.load(ref) for source, ref in zip(sources, refs, strict=True)]
        return task or _told(name, a, b), a, b

    return load


def _told(name: str, a: Trace, b: Trace) -> Task:
    """A task as far as its answers say what it was."""
    known = {**b.metadata, **a.metadata}
    inputs = {"input": known["input"]} if known.get("input") is not None else {}
    tags = known.get("tags")
    task = Task(inputs, name, known.get("reference_outputs", known.get("reference")))
    return replace(task, tags=tuple(tags)) if isinstance(tags, list | tuple) else task
