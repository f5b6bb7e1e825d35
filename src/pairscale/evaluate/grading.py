"""One call of an A/B run: the run file, the writer and the budget that variants and judges share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self
from uuid import uuid4

from pairscale.core.options import ProgressMode, require_choice, require_seed
from pairscale.core.provenance import Provenance, utc_now
from pairscale.evaluate.calibration import cards_of
from pairscale.evaluate.comparators import PairwiseComparator
from pairscale.evaluate.figures import figures_of
from pairscale.evaluate.inference.failures import Failures, require_failures
from pairscale.evaluate.jobs import CaseJob, VariantRunner
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult, Unmatched
from pairscale.evaluate.saved import result_row
from pairscale.evaluate.source import DECIDED, CaseSource, StopRule, comparator_keys
from pairscale.evaluate.store import EvaluationStore
from pairscale.evaluate.variants import Variant
from pairscale.runtime import Budget, Progress, RunOptions, Runtime, record_prices, recorded_prices, require_prices
from pairscale.store.policies import GroupCommitWriter
from pairscale.store.runfile import RunFile

__all__ = ["Evaluation"]


class Evaluation:
    """Compares cases and stores everything; use it in an ``async with`` block.

    Args:
        store: the run file, open for writing.
        comparators: who says which is better.
        options: how to ask.
        failures: how failures of variants count: ``loss``, ``shown`` or ``excluded``.
        stop_when: ``decided`` to stop when the first comparator's answers are decided; a rule of its own; else None.
        seed: of the order of the cases with ``stop_when``.
        on_case: called with each case.

    Raises:
        InputError: a comparator cannot be used, or ``max_cost`` is set for a model without a known price.
    """

    def __init__(
        self,
        store: RunFile,
        comparators: Iterable[PairwiseComparator],
        options: RunOptions,
        *,
        failures: Failures = "loss",
        stop_when: str | StopRule | None = None,
        seed: int | None = None,
        on_case: Callable[[PairwiseCase], None] | None = None,
    ) -> None:
        self._comparators = tuple(comparators)
        self.keys = comparator_keys(self._comparators)
        if not isinstance(stop_when, StopRule):
            stop_when = None if require_choice(stop_when, "stop_when", (None, "decided")) is None else DECIDED
        self.failures = require_failures(failures)
        seed = require_seed(seed)
        judges = [judge for one in self._comparators for judge in getattr(one, "judges", ())]
        require_prices(judges, options.max_cost)
        self._judges = judges
        self._options, self._stop_rule, self._seed, self._on_case = options, stop_when, seed, on_case
        self._writer = GroupCommitWriter(store)
        self._run_file = store
        self._runner: VariantRunner | None = None
        self.stopped: str | None = None

    async def __aenter__(self) -> Self:
        await self._writer.__aenter__()
        self.store = EvaluationStore(self._run_file, self._writer)
        record_prices(self._run_file, self._judges)
        self.budget = Budget.of(self._run_file, self._options.max_cost)
        self.budget.spent += self.store.spent_by_variants() + self.store.spent_by_comparators()
        self._spent_before = self.budget.spent
        return self

    async def __aexit__(self, *exc: object) -> None:
        try:
            if self._runner is not None:
                await self._runner.aclose()
        finally:
            await self._writer.__aexit__(*exc)

    @property
    def cost(self) -> float:
        """US dollars that this call has cost."""
        return self.budget.spent - self._spent_before

    def runner(self, variants: Mapping[str, Variant], timeout: float | None = None) -> VariantRunner:
        """What has variants answer tasks, by their names, each answer within ``timeout`` seconds."""
        record_prices(self._run_file, (), variants)
        self._runner = VariantRunner(self.store, variants, self.budget, timeout)
        return self._runner

    async def grade(self, jobs: Sequence[CaseJob], *, progress: ProgressMode) -> CaseSource:
        """Compare every case, or as many as it takes."""
        self.budget.prices = recorded_prices(self._run_file)
        with Progress(len(jobs), show=progress, label="comparing", prices=self.budget.prices) as bar:
            source = CaseSource(
                self.store,
                self._comparators,
                jobs,
                concurrency=self._options.concurrency,
                failures=self.failures,
                stop_rule=self._stop_rule,
                seed=self._seed,
                on_case=self._on_case,
                progress=bar,
                budget=self.budget,
            )
            runtime = Runtime(source, self._writer, self._options, budget=self.budget)
            try:
                await runtime.run()
            finally:
                await source.aclose()
                self.answered = 0 if self._runner is None else self._runner.asked
                self.asked = runtime.asked + self.answered
        self.stopped = source.stopped or runtime.stopped
        if source.stopped == "max_cost" and runtime.stopped is None:
            runtime.tell_budget()
        return source

    async def result(
        self,
        jobs: Sequence[CaseJob],
        *,
        names: tuple[str, str],
        provenance: Provenance,
        unmatched: tuple[Unmatched, ...] = (),
        unfinished: tuple[str, ...] = (),
        run_id: str | None = None,
        label: str | None = None,
        control: tuple[str, ...] = (),
        store_dir: str | os.PathLike[str] | None = None,
        progress: ProgressMode = True,
    ) -> PairwiseRunResult:
        """Compare every case, and say what came of it."""
        created, start = utc_now(), time.perf_counter()
        source = await self.grade(jobs, progress=progress)
        done: dict[int, list[Any]] = source.done_cases
        result = PairwiseRunResult(
            run_id or uuid4().hex,
            tuple(case for at in source.order for case in done.get(at, ())),
            self.keys,
            *names,
            label=label,
            unmatched=unmatched,
            unfinished=unfinished,
            unasked=tuple(dict.fromkeys(jobs[at].task_id for at in source.order if at not in done)),
            stopped=self.stopped,
            sequential=self._stop_rule is not None,
            control=control,
            failures=self.failures,
            variants=tuple(
                figures_of(side, (source.traces[at][n] for at in sorted(done))) for n, side in enumerate("ab")
            ),
            cards=cards_of(self._comparators),
            asked=self.asked,
            answered=self.answered,
            cost=self.cost,
            duration_ms=round((time.perf_counter() - start) * 1000, 3),
            created_at=created,
            provenance=provenance,
            store_dir=None if store_dir is None else os.fspath(store_dir),
        )
        if store_dir is not None:
            result.save()
        if self.store.is_kept:
            self.store.add_result(result_row(result, source.compared))
        return result
