"""Running two variants over a suite, and grading what they answer: ``run_pairwise`` and ``evaluate_pairwise``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

from pairscale.core.errors import InputError
from pairscale.core.options import require_int
from pairscale.core.provenance import Provenance
from pairscale.evaluate.comparators import PairwiseComparator
from pairscale.evaluate.grading import Evaluation
from pairscale.evaluate.inference.failures import Failures
from pairscale.evaluate.jobs import paired
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult
from pairscale.evaluate.source import StopRule
from pairscale.evaluate.suite import Suite, require_suite
from pairscale.evaluate.traces import TraceSource
from pairscale.evaluate.variants import VariantLike, make_variant
from pairscale.runtime import CONCURRENCY, TIMEOUT, RunOptions, run_sync
from pairscale.store.runfile import open_run

__all__ = ["evaluate_pairwise", "evaluate_pairwise_async", "require_two_names", "run_pairwise", "run_pairwise_async"]

StopWhen: TypeAlias = "Literal['decided'] | StopRule"
OnCase: TypeAlias = Callable[[PairwiseCase], None]
_Path: TypeAlias = "str | os.PathLike[str]"


def run_pairwise(
    suite: Suite,
    *,
    variant_a: VariantLike,
    variant_b: VariantLike,
    comparators: Iterable[PairwiseComparator],
    variant_a_name: str = "A",
    variant_b_name: str = "B",
    concurrency: int = CONCURRENCY,
    timeout: float | None = TIMEOUT,
    repeats: int = 1,
    run: _Path | None = None,
    store_dir: _Path | None = None,
    run_id: str | None = None,
    label: str | None = None,
    failures: Failures = "loss",
    stop_when: StopWhen | None = None,
    max_cost: float | None = None,
    seed: int | None = 1,
    progress: bool = True,
    on_case: OnCase | None = None,
) -> PairwiseRunResult:
    """Have two variants answer the tasks of a suite, and ask which answer is better.

    Every answer of a variant, every verdict of a judge (each order by itself) and every choice of a person is in the
    run file before it is used. The same call again, after a crash or Ctrl-C, asks only what is missing or failed; with
    other comparators it grades the same answers without running the variants again.

    A variant fails when it raises, or when its output is empty or missing: it had to answer, so it has lost that case
    under every comparator, and none is asked (``failures="loss"``). A comparator that fails gives no outcome. Only a
    ``JudgeError``, as of a wrong key, ends the run. A task that failed is tried again by the same call.

    Args:
        suite: the tasks.
        variant_a: a callable from a :class:`Task` to a text or a :class:`Trace`, plain or ``async``; an agent with
            ``ask``; ``provider:model``; a :class:`ModelVariant`; ``module:function``; recorded outputs.
        variant_b: the other one; the win rate is its.
        comparators: who says which is better, each under a key of its own: :func:`pairwise_judge`,
            :func:`human_pairwise`, :func:`human_labels`, :func:`pairwise_panel`, or any object with ``key`` and
            ``compare``.
        variant_a_name: what A is called.
        variant_b_name: what B is called.
        concurrency: Questions open at once; as many tasks are worked on at once.
        timeout: Seconds that one answer of a judge may take; None for no limit.
        repeats: how often each variant answers each task; statistics allow for repeats of a task being alike.
        run: the run file (made when missing); None keeps nothing.
        store_dir: a folder that the result is written to as ``RUN_ID.json``.
        run_id: the run's own name; by default a random one.
        label: a name that several runs share.
        failures: How a failure of a variant counts: ``loss`` (a tie when both failed), ``shown`` (the comparators are
            shown "(no answer)" and decide) or ``excluded`` (in no rate). The result has the bounds over all of them.
        stop_when: ``decided`` ends the run as soon as the first comparator's decided cases show that one is better,
            by an interval that holds however often one looks. Tasks are then taken in a random order.
        max_cost: US dollars that the run may spend, all calls and resumptions together: judges and variants. A model
            without a known price is refused with it.
        seed: of that order.
        progress: show a bar when standard error is a terminal.
        on_case: called with each case as soon as it is there.

    Returns:
        A :class:`PairwiseRunResult`.

    Raises:
        InputError: when the suite, a variant or a comparator cannot be used.
        StoreError: when the run file cannot be used; what was answered before is kept.

    Example:
        >>> from pairscale import Suite, pairwise_judge
        >>> suite = Suite.from_list(["What's the capital of France?", "And of Italy?", "And of Spain?"])
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> result = run_pairwise(
        ...     suite,
        ...     variant_a=lambda task: "No idea.",
        ...     variant_b=lambda task: f"Let me think about it. {task.input}",
        ...     comparators=[pairwise_judge(longer, criterion="says more", key="longer")],
        ... )
        >>> result.tally("longer"), result.flips("longer")
        ((0, 3, 0), 0)
    """
    return run_sync(
        lambda: run_pairwise_async(
            suite,
            variant_a=variant_a,
            variant_b=variant_b,
            comparators=comparators,
            variant_a_name=variant_a_name,
            variant_b_name=variant_b_name,
            concurrency=concurrency,
            timeout=timeout,
            repeats=repeats,
            run=run,
            store_dir=store_dir,
            run_id=run_id,
            label=label,
            failures=failures,
            stop_when=stop_when,
            max_cost=max_cost,
            seed=seed,
            progress=progress,
            on_case=on_case,
        ),
        run=run,
    )


async def run_pairwise_async(
    suite: Suite,
    *,
    variant_a: VariantLike,
    variant_b: VariantLike,
    comparators: Iterable[PairwiseComparator],
    variant_a_name: str = "A",
    variant_b_name: str = "B",
    concurrency: int = CONCURRENCY,
    timeout: float | None = TIMEOUT,
    repeats: int = 1,
    run: _Path | None = None,
    store_dir: _Path | None = None,
    run_id: str | None = None,
    label: str | None = None,
    failures: Failures = "loss",
    stop_when: StopWhen | None = None,
    max_cost: float | None = None,
    seed: int | None = 1,
    progress: bool = True,
    on_case: OnCase | None = None,
) -> PairwiseRunResult:
    """The same as :func:`run_pairwise`, to be awaited.

    Example:
        >>> import asyncio
        >>> from pairscale import Suite, pairwise_judge
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> judge = pairwise_judge(longer, criterion="says more", key="longer")
        >>> sides = {"variant_a": lambda task: "No idea.", "variant_b": lambda task: f"About {task.input}: a lot."}
        >>> asyncio.run(run_pairwise_async(Suite.from_list(["rain"]), **sides, comparators=[judge])).tally("longer")
        (0, 1, 0)
    """
    require_suite(suite)
    require_int(repeats, "repeats", least=1)
    names = require_two_names(variant_a_name, variant_b_name)
    variants = [make_variant(given, name) for given, name in zip((variant_a, variant_b), names, strict=True)]
    options = RunOptions(concurrency=concurrency, timeout=timeout, max_cost=max_cost)
    choices: dict[str, Any] = {"failures": failures, "stop_when": stop_when, "seed": seed, "on_case": on_case}
    with open_run(run, write=True) as store:
        async with Evaluation(store, comparators, options, **choices) as evaluation:
            runner = evaluation.runner(dict(zip(names, variants, strict=True)))
            jobs = [runner.job(task, repeat, *names) for task in suite for repeat in range(1, repeats + 1)]
            settings = {"run": store.name, "suite": suite.name, "repeats": repeats, "stop_when": stop_when}
            return await evaluation.result(
                jobs,
                names=names,
                run_id=run_id,
                label=label,
                store_dir=store_dir,
                progress=progress,
                provenance=Provenance("run_pairwise", settings, seed, runner.identities),
            )


def evaluate_pairwise(
    source_a: TraceSource | _Path,
    source_b: TraceSource | _Path,
    *,
    comparators: Iterable[PairwiseComparator],
    suite: Suite | None = None,
    variant_a: str = "A",
    variant_b: str = "B",
    concurrency: int = CONCURRENCY,
    timeout: float | None = TIMEOUT,
    run: _Path | None = None,
    store_dir: _Path | None = None,
    run_id: str | None = None,
    label: str | None = None,
    failures: Failures = "loss",
    stop_when: StopWhen | None = None,
    max_cost: float | None = None,
    seed: int | None = 1,
    progress: bool = True,
    on_case: OnCase | None = None,
) -> PairwiseRunResult:
    """Ask which of two recorded answers to each task is better; no variant is run.

    Answers are paired by ``task_id``. Where a source has several of a task, the first of A goes with the first of B,
    and so on. What has no partner is listed in ``unmatched``.

    Args:
        source_a: a :class:`TraceSource`, a file of recorded outputs (see :func:`read_outputs`), or a folder of traces
            (see :func:`save_trace`).
        source_b: the other one; the win rate is its.
        comparators: who says which is better; see :func:`run_pairwise`, also for the rest.
        suite: the tasks: their inputs, reference outputs and tags. Without it, ``input`` and ``reference`` of the
            recorded answers are used where they are there.
        variant_a: what A is called.
        variant_b: what B is called.
        concurrency: Questions open at once; as many tasks are worked on at once.
        timeout: Seconds that one answer of a judge may take; None for no limit.
        run: the run file of the verdicts.
        store_dir: a folder that the result is written to.
        run_id: the run's own name.
        label: a name that several runs share.
        failures: How a failed answer counts: ``loss``, ``shown`` or ``excluded``; see :func:`run_pairwise`.
        stop_when: ``decided``, a rule of its own, or None.
        max_cost: US dollars that the run may spend, all calls together.
        seed: of the order with ``stop_when``.
        progress: show a bar when standard error is a terminal.
        on_case: called with each case as soon as it is there.

    Returns:
        A :class:`PairwiseRunResult`.

    Example:
        >>> from pairscale import InMemoryTraceSource, PairwiseOutcome
        >>> class Shorter:
        ...     key = "concise"
        ...     async def compare(self, *, task, trace_a, trace_b, reference_outputs):
        ...         return PairwiseOutcome("a" if len(trace_a.output) < len(trace_b.output) else "b")
        >>> old = InMemoryTraceSource({"t1": "The capital of France is Paris.", "t2": "Rome."})
        >>> new = InMemoryTraceSource({"t1": "Paris.", "t3": "Madrid."})
        >>> result = evaluate_pairwise(old, new, comparators=[Shorter()])
        >>> result.tally("concise"), [one.task_id for one in result.unmatched]
        ((0, 1, 0), ['t2', 't3'])
    """
    return run_sync(
        lambda: evaluate_pairwise_async(
            source_a,
            source_b,
            comparators=comparators,
            suite=suite,
            variant_a=variant_a,
            variant_b=variant_b,
            concurrency=concurrency,
            timeout=timeout,
            run=run,
            store_dir=store_dir,
            run_id=run_id,
            label=label,
            failures=failures,
            stop_when=stop_when,
            max_cost=max_cost,
            seed=seed,
            progress=progress,
            on_case=on_case,
        ),
        run=run,
    )


async def evaluate_pairwise_async(
    source_a: TraceSource | _Path,
    source_b: TraceSource | _Path,
    *,
    comparators: Iterable[PairwiseComparator],
    suite: Suite | None = None,
    variant_a: str = "A",
    variant_b: str = "B",
    concurrency: int = CONCURRENCY,
    timeout: float | None = TIMEOUT,
    run: _Path | None = None,
    store_dir: _Path | None = None,
    run_id: str | None = None,
    label: str | None = None,
    failures: Failures = "loss",
    stop_when: StopWhen | None = None,
    max_cost: float | None = None,
    seed: int | None = 1,
    progress: bool = True,
    on_case: OnCase | None = None,
) -> PairwiseRunResult:
    """The same as :func:`evaluate_pairwise`, to be awaited.

    Example:
        >>> import asyncio
        >>> from pairscale import InMemoryTraceSource, pairwise_judge
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> judge = pairwise_judge(longer, criterion="says more", key="longer")
        >>> old, new = InMemoryTraceSource({"t1": "Paris, of course."}), InMemoryTraceSource({"t1": "Paris."})
        >>> asyncio.run(evaluate_pairwise_async(old, new, comparators=[judge])).tally("longer")
        (1, 0, 0)
    """
    names = require_two_names(variant_a, variant_b)
    options = RunOptions(concurrency=concurrency, timeout=timeout, max_cost=max_cost)
    choices: dict[str, Any] = {"failures": failures, "stop_when": stop_when, "seed": seed, "on_case": on_case}
    jobs, unmatched = await paired(source_a, source_b, suite, names)
    with open_run(run, write=True) as store:
        async with Evaluation(store, comparators, options, **choices) as evaluation:
            settings = {"run": store.name, "suite": None if suite is None else suite.name, "stop_when": stop_when}
            return await evaluation.result(
                jobs,
                names=names,
                unmatched=unmatched,
                run_id=run_id,
                label=label,
                store_dir=store_dir,
                progress=progress,
                provenance=Provenance("evaluate_pairwise", settings, seed),
            )


def require_two_names(a: str, b: str) -> tuple[str, str]:
    """Two variants need two names."""
    if not a or not b or a == b:
        raise InputError(f"the variants need names of their own, not {a!r} and {b!r}")
    return a, b
