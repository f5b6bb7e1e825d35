"""Two variants over a suite, and two sets of recorded answers: the comparison behind ``ab`` and ``run_pairwise``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pairscale.core.errors import InputError
from pairscale.core.options import ProgressMode, optional, require_int, require_number
from pairscale.core.provenance import Provenance
from pairscale.evaluate.comparators import PairwiseComparator
from pairscale.evaluate.formats.reading import unfinished_of
from pairscale.evaluate.grading import Evaluation
from pairscale.evaluate.inference.failures import Failures
from pairscale.evaluate.jobs import answer_source, paired
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult
from pairscale.evaluate.source import StopRule
from pairscale.evaluate.suite import SuiteLike, as_suite
from pairscale.evaluate.traces import TraceSource
from pairscale.evaluate.variants import VariantLike, make_variant
from pairscale.runtime import RunOptions
from pairscale.store.runfile import RunFile, open_run

__all__ = ["OnCase", "Settings", "StopWhen", "compare_answers", "compare_variants", "require_two_names"]

StopWhen: TypeAlias = "Literal['decided'] | StopRule"
OnCase: TypeAlias = Callable[[PairwiseCase], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How two variants are compared; :func:`pairscale.run_pairwise` describes each setting."""

    comparators: Iterable[PairwiseComparator]
    options: RunOptions
    run: str | os.PathLike[str] | None = None
    store_dir: str | os.PathLike[str] | None = None
    run_id: str | None = None
    label: str | None = None
    control: tuple[str, ...] = ()
    failures: Failures = "loss"
    stop_when: StopWhen | None = None
    variant_timeout: float | None = None
    seed: int | None = 1
    progress: ProgressMode = True
    on_case: OnCase | None = None

    def __post_init__(self) -> None:
        optional(require_number, self.variant_timeout, "variant_timeout", above=0)

    def evaluation(self, store: RunFile) -> Evaluation:
        """The evaluation that these settings describe."""
        choices: dict[str, Any] = {"failures": self.failures, "stop_when": self.stop_when, "seed": self.seed}
        return Evaluation(store, self.comparators, self.options, on_case=self.on_case, **choices)

    def saving(self) -> dict[str, Any]:
        """What :meth:`Evaluation.result` needs to name, save and show a result."""
        return {name: getattr(self, name) for name in ("run_id", "label", "control", "store_dir", "progress")}


async def compare_variants(
    suite: SuiteLike,
    variants: tuple[VariantLike, VariantLike],
    names: tuple[str, str],
    settings: Settings,
    *,
    repeats: int = 1,
) -> PairwiseRunResult:
    """Have two variants answer the tasks of a suite, and compare their answers.

    Args:
        suite: The tasks.
        variants: A and B.
        names: Their names.
        settings: How to compare them.
        repeats: How often each variant answers each task.
    """
    suite = as_suite(suite)
    require_int(repeats, "repeats", least=1)
    require_two_names(*names)
    made = {name: make_variant(given, name) for name, given in zip(names, variants, strict=True)}
    unfinished = tuple(log.words for variant in made.values() for log in unfinished_of(variant))
    with open_run(settings.run, write=True) as store:
        async with settings.evaluation(store) as evaluation:
            runner = evaluation.runner(made, settings.variant_timeout)
            jobs = [runner.job(task, repeat, *names) for task in suite for repeat in range(1, repeats + 1)]
            used = {"run": store.name, "suite": suite.name, "repeats": repeats, "stop_when": settings.stop_when}
            provenance = Provenance("run_pairwise", used, settings.seed, runner.identities)
            return await evaluation.result(
                jobs, names=names, unfinished=unfinished, provenance=provenance, **settings.saving()
            )


async def compare_answers(
    source_a: TraceSource | str | os.PathLike[str],
    source_b: TraceSource | str | os.PathLike[str],
    names: tuple[str, str],
    settings: Settings,
    *,
    suite: SuiteLike | None = None,
) -> PairwiseRunResult:
    """Compare recorded answers task by task.

    Args:
        source_a: The answers of A.
        source_b: The answers of B.
        names: The names of A and B.
        settings: How to compare them.
        suite: The tasks that the answers belong to.
    """
    require_two_names(*names)
    tasks = None if suite is None else as_suite(suite)
    sources = [answer_source(source, name) for source, name in zip((source_a, source_b), names, strict=True)]
    unfinished = tuple(log.words for source in sources for log in unfinished_of(source))
    jobs, unmatched = await paired(sources[0], sources[1], tasks, names)
    with open_run(settings.run, write=True) as store:
        async with settings.evaluation(store) as evaluation:
            suite_name = None if tasks is None else tasks.name
            used = {"run": store.name, "suite": suite_name, "stop_when": settings.stop_when}
            provenance = Provenance("evaluate_pairwise", used, settings.seed)
            return await evaluation.result(
                jobs,
                names=names,
                unmatched=unmatched,
                unfinished=unfinished,
                provenance=provenance,
                **settings.saving(),
            )


def require_two_names(a: str, b: str) -> tuple[str, str]:
    """Check that two variants have two names.

    Raises:
        InputError: If a name is empty, or both are the same.
    """
    if not a or not b or a == b:
        raise InputError(f"the variants need two different names, not {a!r} and {b!r}")
    return a, b
