"""AG2's names for evaluation, with its arguments and defaults; see docs/from-ag2.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pairscale.core.errors import InputError
from pairscale.core.options import FilePath, ProgressMode, checked
from pairscale.evaluate.comparators import PairwiseComparator, PairwiseOutcome
from pairscale.evaluate.formats.reading import DirectoryTraceSource, save_trace
from pairscale.evaluate.human import human_labels, human_pairwise
from pairscale.evaluate.inference.failures import Failures
from pairscale.evaluate.judge import pairwise_judge, pairwise_panel
from pairscale.evaluate.manifest import ExportedCases, export_pairwise_cases, export_pairwise_cases_async
from pairscale.evaluate.ranking import run_variants, run_variants_async
from pairscale.evaluate.result import PairwiseAgreement, PairwiseCase, PairwiseRunResult
from pairscale.evaluate.run import OnCase, PairwiseRun, StopWhen, named_two
from pairscale.evaluate.tasks import (
    InMemoryTraceSource,
    Suite,
    SuiteLike,
    Task,
    Trace,
    TraceRef,
    TraceSource,
    Unmatched,
)
from pairscale.evaluate.variants import VariantLike
from pairscale.runtime import TIMEOUT, RunOptions, awaitable, blocking

__all__ = [
    "DirectoryTraceSource", "ExportedCases", "InMemoryTraceSource", "PairwiseAgreement", "PairwiseCase",
    "PairwiseComparator", "PairwiseOutcome", "PairwiseRunResult", "Suite", "Task", "Trace", "TraceRef",
    "TraceSource", "Unmatched", "evaluate_pairwise", "evaluate_pairwise_async", "export_pairwise_cases",
    "export_pairwise_cases_async", "human_labels", "human_pairwise", "pairwise_judge", "pairwise_panel", "run_pairwise",
    "run_pairwise_async", "run_variants", "run_variants_async", "save_trace",
]  # fmt: skip


@blocking("run")
@checked
async def run_pairwise(
    suite: SuiteLike,
    *,
    variant_a: VariantLike,
    variant_b: VariantLike,
    comparators: Iterable[PairwiseComparator],
    store_dir: FilePath | None = None,
    model_config: Any = None,
    variant_a_name: str = "A",
    variant_b_name: str = "B",
    concurrency: int = 4,
    run_id: str | None = None,
    label: str | None = None,
    stream: None = None,
    timeout: float | None = TIMEOUT,
    variant_timeout: float | None = None,
    repeats: int = 1,
    run: FilePath | None = None,
    failures: Failures = "loss",
    stop_when: StopWhen | None = None,
    max_cost: float | None = None,
    seed: int | None = 1,
    progress: ProgressMode = True,
    on_case: OnCase | None = None,
) -> PairwiseRunResult:
    """Have two variants answer the tasks of a suite, and ask which answer is better; :func:`ab` in AG2's words.

    Every answer of a variant, every verdict of a judge (one per order) and every choice of a person is written to the
    run file before it is used. After a crash or Ctrl-C, run the same call again: it asks only what is missing or
    failed. With other comparators, it compares the same answers without running the variants again.

    A variant fails when it raises, when its output is empty or missing, or when it takes longer than
    ``variant_timeout``. It has then lost that case under every comparator, and no comparator is asked
    (``failures="loss"``). A comparator that fails gives no outcome. Only a ``JudgeError``, such as a wrong key, ends
    the run. The same call tries a failed task again.

    Args:
        suite: The tasks: a :class:`Suite`, a file, a list of tasks, or a suite of AG2.
        variant_a: A function of a :class:`Task` that returns a text or a :class:`Trace`, plain or ``async``; an agent
            with ``ask``; ``provider:model``; a :class:`ModelVariant`; or ``module:function``.
        variant_b: The same for B; the win rate is that of B.
        comparators: What compares the answers, each under its own key: :func:`pairwise_judge`,
            :func:`human_pairwise`, :func:`human_labels`, :func:`pairwise_panel`, or any object with ``key`` and
            ``compare``.
        store_dir: A folder to write the result to, as ``RUN_ID.json``.
        model_config: With agents: passed on as ``agent.ask(text, config=model_config)``.
        variant_a_name: Name of A.
        variant_b_name: Name of B.
        concurrency: Questions open at once, and tasks worked on at once; 4, as in AG2.
        run_id: Name of this run; random by default.
        label: A name that several runs share.
        stream: Not supported; use ``on_case``.
        timeout: Seconds that one answer of a judge may take; None for no limit.
        variant_timeout: Seconds that one answer of a variant may take before it has failed; by default no limit. An
            ``async`` variant is cancelled; the thread of a plain function is left behind, and what it still returns is
            ignored.
        repeats: How often each variant answers each task. Intervals allow for repeats of a task being alike.
        run: The run file, created if it does not exist; without one, nothing is kept.
        failures: How a failed answer of a variant counts: ``loss`` (a tie if both failed), ``shown`` (the comparators
            see "(no answer)" and decide) or ``excluded`` (in no rate). The result has the bounds over all three.
        stop_when: ``decided`` ends the run as soon as the first comparator's cases show that one variant is better, by
            an interval that holds however often you look. Tasks are then taken in a random order.
        max_cost: US dollars that the run may spend on judges and variants, all calls and resumptions together.
            Requires a known price for every model.
        seed: Seed of that order.
        progress: Show a progress bar if standard error is a terminal.
        on_case: A function that is called with each case as soon as it is compared.

    Returns:
        A :class:`PairwiseRunResult`.

    Raises:
        InputError: If the suite, a variant, a comparator or a setting cannot be used.
        StoreError: If the run file cannot be used; earlier answers are kept.

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
    _refuse_stream(stream)
    options = RunOptions(concurrency=concurrency, timeout=timeout, max_cost=max_cost)
    asking = PairwiseRun(
        comparators, options, run=run, failures=failures, stop_when=stop_when, seed=seed, progress=progress,
        on_case=on_case,
    )  # fmt: skip
    names = (variant_a_name, variant_b_name)
    variants = named_two(names, [_with_config(variant, model_config) for variant in (variant_a, variant_b)])
    return (await asking.of_variants(
        suite, variants, [names], "run_pairwise", repeats=repeats, variant_timeout=variant_timeout, run_id=run_id,
        label=label, store_dir=store_dir,
    ))[names]  # fmt: skip


@awaitable(run_pairwise)
async def run_pairwise_async(*args: Any, **settings: Any) -> Any:
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


@blocking("run")
@checked
async def evaluate_pairwise(
    source_a: TraceSource | FilePath,
    source_b: TraceSource | FilePath,
    *,
    comparators: Iterable[PairwiseComparator],
    store_dir: FilePath | None = None,
    variant_a: str = "A",
    variant_b: str = "B",
    suite: SuiteLike | None = None,
    concurrency: int = 4,
    run_id: str | None = None,
    label: str | None = None,
    stream: None = None,
    timeout: float | None = TIMEOUT,
    run: FilePath | None = None,
    failures: Failures = "loss",
    stop_when: StopWhen | None = None,
    max_cost: float | None = None,
    seed: int | None = 1,
    progress: ProgressMode = True,
    on_case: OnCase | None = None,
) -> PairwiseRunResult:
    """Ask which of two recorded answers to each task is better; no variant is run. :func:`ab` in AG2's words.

    Answers are paired by ``task_id``. If a source has several answers to a task, the first of A is paired with the
    first of B, and so on. Answers without a partner are listed in ``unmatched``.

    Args:
        source_a: A :class:`TraceSource`, a file of recorded outputs (see :func:`read_outputs`), or a folder of traces
            (see :func:`save_trace`).
        source_b: The same for B; the win rate is that of B.
        comparators: What compares the answers; see :func:`run_pairwise`, also for the other arguments.
        store_dir: A folder to write the result to.
        variant_a: Name of A.
        variant_b: Name of B.
        suite: The tasks with their inputs, reference outputs and tags. Without it, ``input`` and ``reference`` of the
            recorded answers are used, if they have them.
        concurrency: Questions open at once, and tasks worked on at once; 4, as in AG2.
        run_id: Name of this run.
        label: A name that several runs share.
        stream: Not supported; use ``on_case``.
        timeout: Seconds that one answer of a judge may take; None for no limit.
        run: The run file for the verdicts.
        failures: How a failed answer counts: ``loss``, ``shown`` or ``excluded``; see :func:`run_pairwise`.
        stop_when: ``decided``, or None.
        max_cost: US dollars that the run may spend, all calls together.
        seed: Seed of the order of tasks with ``stop_when``.
        progress: Show a progress bar if standard error is a terminal.
        on_case: A function that is called with each case as soon as it is compared.

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
    _refuse_stream(stream)
    options = RunOptions(concurrency=concurrency, timeout=timeout, max_cost=max_cost)
    asking = PairwiseRun(
        comparators, options, run=run, failures=failures, stop_when=stop_when, seed=seed, progress=progress,
        on_case=on_case,
    )  # fmt: skip
    names = (variant_a, variant_b)
    answers = named_two(names, (source_a, source_b))
    return (
        await asking.of_answers(
            answers, [names], suite, "evaluate_pairwise", run_id=run_id, label=label, store_dir=store_dir
        )
    )[names]


@awaitable(evaluate_pairwise)
async def evaluate_pairwise_async(*args: Any, **settings: Any) -> Any:
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


def _with_config(variant: VariantLike, config: Any) -> VariantLike:
    """An agent that is asked with a configuration, as AG2 does."""
    if config is None:
        return variant
    ask = getattr(variant, "ask", None)
    if not callable(ask):
        raise InputError(f"model_config= belongs to agents with ask(), not to {variant!r:.80}; leave it out")
    return lambda task: ask(task.input, config=config)


def _refuse_stream(stream: object) -> None:
    if stream is not None:
        raise InputError("stream= is not supported; pass on_case=, a function that is called with each case")
