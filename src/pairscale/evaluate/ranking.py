"""More than two variants: pairs of them compared task by task, and one ranking with intervals."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import polars as pl

from pairscale.core.display import PlotMixin
from pairscale.core.errors import InputError, UnknownNameError
from pairscale.core.options import optional, require_int, require_level, require_number
from pairscale.core.provenance import Provenance
from pairscale.core.tables import listed
from pairscale.evaluate.comparators import PairwiseComparator
from pairscale.evaluate.figures import figures_of
from pairscale.evaluate.grading import Evaluation
from pairscale.evaluate.inference._cases import score_of
from pairscale.evaluate.inference.failures import Failures
from pairscale.evaluate.result import PairwiseRunResult
from pairscale.evaluate.suite import SuiteLike, as_suite
from pairscale.evaluate.variants import VariantLike, make_variant
from pairscale.models.bradley_terry import fit_bt_model
from pairscale.runtime import CONCURRENCY, TIMEOUT, RunOptions, run_sync
from pairscale.store.runfile import open_run

if TYPE_CHECKING:
    from pairscale.models.bradley_terry import BTFit

__all__ = ["VariantsResult", "run_variants", "run_variants_async"]

_Path: TypeAlias = "str | os.PathLike[str]"
RANKING = ("variant", "rank", "theta", "lower", "upper", "rank_lower", "rank_upper", "wins", "losses", "ties", "flips",
           "abstentions", "errors")  # fmt: skip
"""The columns of a ranking."""


@dataclass(frozen=True, slots=True, repr=False)
class VariantsResult(PlotMixin, table="ranking", charts=("scores", "ranks")):
    """What comparing several variants gave.

    Attributes:
        variants: their names.
        keys: the comparators' keys.
        results: by pair ``(a, b)`` of names, the cases and figures of the two.
        fits: by key, the Bradley-Terry fit.
        rankings: by key, one row a variant, the best first: ``theta`` with its interval, the rank with its interval,
            and how its cases came out. A variant without an answered case has no score.
        stopped: why it ended before all cases were asked: ``max_cost``, or None.
        cost: what this call spent, in US dollars.
        provenance: how it was made.
    """

    variants: tuple[str, ...]
    keys: tuple[str, ...]
    results: Mapping[tuple[str, str], PairwiseRunResult]
    fits: Mapping[str, BTFit]
    rankings: Mapping[str, pl.DataFrame]
    stopped: str | None
    cost: float
    provenance: Provenance

    def ranking(self, key: str | None = None) -> pl.DataFrame:
        """The ranking under a comparator; under the first when none is named.

        Raises:
            UnknownNameError: when no comparator has that key.
        """
        if key is not None and key not in self.keys:
            raise UnknownNameError(f"no comparator has the key {key!r}; there are {listed(self.keys)}")
        return self.rankings[self.keys[0] if key is None else key]

    def best(self, key: str | None = None) -> str | None:
        """The variant whose rank is 1 with all its interval; None when none stands out so clearly."""
        clear = self.ranking(key).filter(pl.col("rank_upper") == 1)["variant"].to_list()
        return clear[0] if len(clear) == 1 else None

    def summary(self) -> str:
        """The rankings in words."""
        lines = []
        for key in self.keys:
            best = self.best(key)
            lines.append(f"{key}: {f'{best} is the best' if best else 'no variant stands out as the best'}")
            for row in self.ranking(key).drop_nulls("theta").iter_rows(named=True):
                ends = f"{row['lower']:+.2f} to {row['upper']:+.2f}, rank {row['rank_lower']} to {row['rank_upper']}"
                lines.append(f"  {row['rank']:>2}  {row['variant']}  {row['theta']:+.2f}  ({ends})")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<VariantsResult of {len(self.variants)} variants, {len(self.results)} pairs>"


def run_variants(
    suite: SuiteLike,
    variants: Mapping[str, VariantLike],
    *,
    comparators: Iterable[PairwiseComparator],
    n_pairs: int | None = None,
    concurrency: int = CONCURRENCY,
    timeout: float | None = TIMEOUT,
    run: _Path | None = None,
    failures: Failures = "loss",
    max_cost: float | None = None,
    seed: int = 1,
    level: float = 0.95,
    progress: bool = True,
) -> VariantsResult:
    """Have several variants answer a suite, compare their answers two by two, and rank the variants.

    Each variant answers each task once. The ranking is a Bradley-Terry model (``firth``, which has an answer also when
    a variant won everything): a tie and a flip count as half a win for each side, abstentions and errors are left out.
    Intervals of scores and ranks are the wider of two: those of the model, and robust ones for which the comparisons of
    a task may depend on each other.

    Args:
        suite: the tasks.
        variants: by their names; see :func:`run_pairwise`.
        comparators: who says which is better; see :func:`run_pairwise`.
        n_pairs: how many cases (a task and two variants) to compare, spread evenly over the pairs of variants; all of
            them by default.
        concurrency: Questions open at once; as many cases are worked on at once.
        timeout: Seconds that one answer of a judge may take; None for no limit.
        run: the run file; the same call again asks only what is missing.
        failures: How a failure of a variant counts: ``loss``, ``shown`` or ``excluded``; see :func:`run_pairwise`.
        max_cost: US dollars that the run may spend, all calls together.
        seed: of the sample and of the intervals.
        level: of the intervals.
        progress: show a bar when standard error is a terminal.

    Raises:
        InputError: with fewer than three variants (:func:`run_pairwise` compares two), or too few cases.
        FitError: when the comparisons do not join all variants.

    Example:
        >>> from pairscale import pairwise_judge
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> variants = {str(n): lambda task, n=n: task.input * n for n in (1, 2, 3)}
        >>> judge = pairwise_judge(longer, criterion="says more", key="longer")
        >>> run_variants(list("abcdef"), variants, comparators=[judge]).ranking()["variant"].to_list()
        ['3', '2', '1']
    """
    return run_sync(
        lambda: run_variants_async(
            suite,
            variants,
            comparators=comparators,
            n_pairs=n_pairs,
            concurrency=concurrency,
            timeout=timeout,
            run=run,
            failures=failures,
            max_cost=max_cost,
            seed=seed,
            level=level,
            progress=progress,
        ),
        run=run,
    )


async def run_variants_async(
    suite: SuiteLike,
    variants: Mapping[str, VariantLike],
    *,
    comparators: Iterable[PairwiseComparator],
    n_pairs: int | None = None,
    concurrency: int = CONCURRENCY,
    timeout: float | None = TIMEOUT,
    run: _Path | None = None,
    failures: Failures = "loss",
    max_cost: float | None = None,
    seed: int = 1,
    level: float = 0.95,
    progress: bool = True,
) -> VariantsResult:
    """The same as :func:`run_variants`, to be awaited.

    Example:
        >>> import asyncio
        >>> from pairscale import pairwise_judge
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> variants = {str(n): lambda task, n=n: task.input * n for n in (1, 2, 3)}
        >>> judge = pairwise_judge(longer, criterion="says more", key="longer")
        >>> result = asyncio.run(run_variants_async(list("abcdef"), variants, comparators=[judge]))
        >>> result.ranking()["variant"].to_list()
        ['3', '2', '1']
    """
    suite = as_suite(suite)
    seed, concurrency = require_int(seed, "seed", least=0), require_int(concurrency, "concurrency", least=1)
    level, n_pairs = require_level(level), optional(require_int, n_pairs, "n_pairs", least=1)
    max_cost = optional(require_number, max_cost, "max_cost", least=0)
    names = tuple(variants)
    if len(names) < 3:
        raise InputError(f"run_variants ranks three variants or more, not {listed(names) or 'none'}; see run_pairwise")
    made = {name: make_variant(given, name) for name, given in variants.items()}
    couples = list(combinations(names, 2))
    chosen = _chosen(len(suite), couples, n_pairs, seed)
    options = RunOptions(concurrency=concurrency, timeout=timeout, max_cost=max_cost)
    with open_run(run, write=True) as store:
        async with Evaluation(store, comparators, options, failures=failures, seed=seed) as evaluation:
            runner = evaluation.runner(made)
            jobs = [runner.job(suite.tasks[at], 1, *couple) for at, couple in chosen]
            source = await evaluation.grade(jobs, progress=progress)
        settings = {"run": store.name, "suite": suite.name, "n_pairs": len(chosen), "level": level}
        provenance = Provenance("run_variants", settings, seed, runner.identities)
    keys = evaluation.keys
    group = uuid4().hex
    results = {}
    for n, (a, b) in enumerate(couples):
        of = [at for at, (_, couple) in enumerate(chosen) if couple == (a, b) and at in source.done_cases]
        cases = tuple(case for at in of for case in source.done_cases[at])
        took = tuple(figures_of(side, (source.traces[at]["ab".index(side)] for at in of)) for side in "ab")
        more: dict[str, Any] = {"failures": evaluation.failures, "variants": took, "provenance": provenance}
        results[a, b] = PairwiseRunResult(f"{group}-{n}", cases, keys, a, b, group, **more)
    fits = {key: _fit(results.values(), key, names, level, seed) for key in keys}
    rankings = {key: _ranking(fits[key], results.values(), key) for key in keys}
    return VariantsResult(names, keys, results, fits, rankings, evaluation.stopped, evaluation.cost, provenance)


def _chosen(
    n_tasks: int, couples: Sequence[tuple[str, str]], n_pairs: int | None, seed: int | None
) -> list[tuple[int, tuple[str, str]]]:
    """Which task is compared for which two variants: all, or as many of each couple as can be, drawn at random."""
    most = n_tasks * len(couples)
    if n_pairs is None or n_pairs >= most:
        return [(at, couple) for at in range(n_tasks) for couple in couples]
    if n_pairs < len(couples):
        raise InputError(f"n_pairs={n_pairs}: {len(couples)} pairs of variants need at least one case each")
    rng = random.Random(seed)  # noqa: S311 - a sample, not a secret
    tasks = {couple: rng.sample(range(n_tasks), n_tasks) for couple in couples}
    order = rng.sample(list(couples), len(couples))
    drawn = [(tasks[order[at % len(order)]][at // len(order)], order[at % len(order)]) for at in range(n_pairs)]
    return sorted(drawn, key=lambda one: (one[0], couples.index(one[1])))


def _fit(results: Iterable[PairwiseRunResult], key: str, names: Sequence[str], level: float, seed: int) -> BTFit:
    rows: list[dict[str, Any]] = []
    for result in results:
        for case in result.of(key):
            score = score_of(str(case.outcome), case.winner)
            if score is not None:
                row = {"object1": result.variant_a, "object2": result.variant_b, "result": 1 - score}
                rows.append({**row, "task_id": case.task_id})
    if not rows:
        raise InputError(f"{key}: no case was answered, so there is nothing to rank")
    shared: dict[str, Any] = {"engine": "firth", "ids": names, "ties": "half", "rank_intervals": True, "level": level}
    plain = fit_bt_model(rows, **shared, seed=seed)
    robust = fit_bt_model(rows, **shared, seed=seed, cluster="task_id")
    width = [float((fit.theta["upper"] - fit.theta["lower"]).sum()) for fit in (plain, robust)]
    return robust if width[1] > width[0] else plain


def _ranking(fit: BTFit, results: Iterable[PairwiseRunResult], key: str) -> pl.DataFrame:
    kinds = ("wins", "losses", "ties", "flips", "abstentions", "errors")
    counts: dict[str, dict[str, int]] = {}
    for result in results:
        rate = result.win_rate(key)
        for name, (won, lost) in {result.variant_b: ("wins", "losses"), result.variant_a: ("losses", "wins")}.items():
            own = counts.setdefault(name, dict.fromkeys(kinds, 0))
            own["wins"] += getattr(rate, won)
            own["losses"] += getattr(rate, lost)
            for kind in kinds[2:]:
                own[kind] += getattr(rate, kind)
    table = pl.DataFrame([{"variant": name, **own} for name, own in counts.items()])
    scores = fit.theta.select("rank", "theta", "lower", "upper", "rank_lower", "rank_upper", variant="ID")
    return table.join(scores, on="variant", how="left").sort("rank", "variant", nulls_last=True).select(RANKING)
