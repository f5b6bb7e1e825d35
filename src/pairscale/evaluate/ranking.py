"""More than two variants: pairs of them compared task by task, and one ranking with intervals."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import numpy as np
import polars as pl

from pairscale.core.display import PlotMixin, ReportMixin
from pairscale.core.errors import InputError, UnknownNameError
from pairscale.core.options import ProgressMode, checked, require_int, require_level
from pairscale.core.provenance import Provenance, utc_now
from pairscale.core.tables import listed
from pairscale.evaluate.comparators import PairwiseComparator
from pairscale.evaluate.inference.cases import normal_quantile
from pairscale.evaluate.inference.failures import Failures
from pairscale.evaluate.inference.score import IMAGINED, NO_SPREAD, student_quantile
from pairscale.evaluate.result import PairwiseRunResult, VariantFigures, counted_score, figures_of
from pairscale.evaluate.run import PairwiseRun
from pairscale.evaluate.store import OF_THE_CALL
from pairscale.evaluate.tasks import SuiteLike, Trace, as_suite
from pairscale.evaluate.variants import VariantLike, make_variant
from pairscale.models.bradley_terry import fit_bt_model
from pairscale.runtime import CONCURRENCY, TIMEOUT, RunOptions, awaitable, blocking
from pairscale.store.marks import VARIANTS
from pairscale.store.runfile import RunFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairscale.models.bradley_terry import BTFit

    Floats: TypeAlias = NDArray[np.float64]

RANKING = ("variant", "rank", "theta", "lower", "upper", "rank_lower", "rank_upper", "wins", "losses", "ties", "flips",
           "abstentions", "errors")  # fmt: skip
"""The columns of a ranking."""


@dataclass(frozen=True, slots=True, repr=False)
class VariantsResult(PlotMixin, ReportMixin, table="ranking", charts=("scores", "ranks")):
    """What comparing several variants gave.

    Attributes:
        variants: their names.
        keys: the comparators' keys.
        results: by pair ``(a, b)`` of names, the cases and figures of the two.
        fits: by key, the Bradley-Terry fit.
        rankings: by key, one row per variant, the best first: ``theta`` with its interval, the rank with its interval,
            and how its cases came out. A variant without an answered case has no score.
        stopped: why it ended before all cases were asked: ``max_cost``, or None.
        cost: what this call spent, in US dollars.
        provenance: how it was made.
        figures: by variant, what its answers took: failures, latency, tokens, cost.
        level: of the intervals.
        seed: of the intervals.
        created_at: when, UTC.
    """

    variants: tuple[str, ...]
    keys: tuple[str, ...]
    results: Mapping[tuple[str, str], PairwiseRunResult]
    fits: Mapping[str, BTFit]
    rankings: Mapping[str, pl.DataFrame]
    stopped: str | None
    cost: float
    provenance: Provenance
    figures: Mapping[str, VariantFigures] = field(default_factory=dict[str, VariantFigures])
    level: float = 0.95
    seed: int = 1
    created_at: str = field(default_factory=utc_now)

    def ranking(self, key: str | None = None) -> pl.DataFrame:
        """The ranking under a comparator; under the first when none is named.

        Raises:
            UnknownNameError: when no comparator has that key.
        """
        if key is not None and key not in self.keys:
            raise UnknownNameError(f"no comparator has the key {key!r}; there are {listed(self.keys)}")
        return self.rankings[self.keys[0] if key is None else key]

    def best(self, key: str | None = None) -> str | None:
        """The variant that is shown to be better than all others; None when none stands out so clearly.

        The interval of its rank is 1 alone, and no other variant shares a group with it; see :meth:`groups`.
        """
        clear = self.ranking(key).filter(pl.col("rank_upper") == 1)["variant"].to_list()
        return clear[0] if len(clear) == 1 and (clear[0],) in self.groups(key) else None

    def differences(self, key: str | None = None) -> pl.DataFrame:
        """The difference of the scores of every two variants; the intervals hold for all of them at once.

        Returns:
            One row for every two, the better first: ``variant other difference lower upper differ``.
        """
        self.ranking(key)
        return differences_of(self.fits[self.keys[0] if key is None else key], self.level, self.seed)

    def groups(self, key: str | None = None) -> list[tuple[str, ...]]:
        """The groups of variants that cannot be told apart: no two of a group have a difference that is shown.

        A variant may be in two groups: A may be as good as B and B as C, while A is shown to be better than C.
        """
        ranked = self.ranking(key).drop_nulls("theta")["variant"].to_list()
        return groups_of(self.differences(key), ranked)

    def verdict(self, key: str | None = None) -> str:
        """Which variant is the best, in a sentence that ends with what to do next."""
        groups = self.groups(key)
        best = self.best(key)
        if best is not None:
            return f"{best} is the best; choose {best}"
        if len(groups) < 2:
            return "no difference between them is shown; compare more tasks, or choose by cost and speed"
        first = groups[0][0]
        alike = dict.fromkeys(name for group in groups if first in group for name in group if name != first)
        score = f"{', '.join(alike)} cannot be told apart from {first}, which has the highest score"
        return f"no single one is the best, as {score}; choose among these by cost and speed"

    def summary(self) -> str:
        """The rankings in words."""
        return "\n".join(f"{key}: {self.verdict(key)}\n{self.ranking(key)}" for key in self.keys)

    def __repr__(self) -> str:
        return f"<VariantsResult of {len(self.variants)} variants, {len(self.results)} pairs>"


@blocking("run")
@checked
async def run_variants(
    suite: SuiteLike,
    variants: Mapping[str, VariantLike],
    *,
    comparators: Iterable[PairwiseComparator],
    n_pairs: int | None = None,
    concurrency: int = CONCURRENCY,
    timeout: float | None = TIMEOUT,
    variant_timeout: float | None = None,
    run: str | os.PathLike[str] | None = None,
    failures: Failures = "loss",
    max_cost: float | None = None,
    seed: int = 1,
    level: float = 0.95,
    progress: ProgressMode = True,
) -> VariantsResult:
    """Have several variants answer a suite, compare their answers two by two, and rank the variants.

    Each variant answers each task once. The ranking is a Bradley-Terry model (``firth``, which has an answer also when
    a variant won everything): a tie and a flip count as half a win for each side, a graded preference of 0.8 as 0.8 of
    a win, abstentions and errors are left out. Intervals of scores and ranks allow for the comparisons of a task
    depending on each other: they are the wider of the model's and of robust ones, and of graded preferences robust.

    Args:
        suite: the tasks.
        variants: by their names; see :func:`run_pairwise`.
        comparators: who says which is better; see :func:`run_pairwise`.
        n_pairs: how many cases (a task and two variants) to compare, spread evenly over the pairs of variants; all of
            them by default.
        concurrency: Questions open at once; as many cases are worked on at once.
        timeout: Seconds that one answer of a judge may take; None for no limit.
        variant_timeout: Seconds that one answer of a variant may take before it has failed; see :func:`run_pairwise`.
        run: the run file; the same call again asks only what is missing.
        failures: How a failure of a variant counts: ``loss``, ``shown`` or ``excluded``; see :func:`run_pairwise`.
        max_cost: US dollars that the run may spend, all calls together.
        seed: of the sample and of the intervals.
        level: of the intervals.
        progress: show a bar when standard error is a terminal.

    Raises:
        InputError: with fewer than three variants (:func:`run_pairwise` compares two).
        FitError: when the comparisons do not join all variants.

    Example:
        >>> from pairscale import pairwise_judge
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> variants = {str(n): lambda task, n=n: task.input * n for n in (1, 2, 3)}
        >>> judge = pairwise_judge(longer, criterion="says more", key="longer")
        >>> run_variants(list("abcdef"), variants, comparators=[judge]).ranking()["variant"].to_list()
        ['3', '2', '1']
    """
    suite = as_suite(suite)
    seed = require_int(seed, "seed", least=0)
    level = require_level(level)
    names = tuple(variants)
    if len(names) < 3:
        raise InputError(f"run_variants ranks three variants or more, not {listed(names) or 'none'}; see run_pairwise")
    made = {name: make_variant(given, name) for name, given in variants.items()}
    couples = list(combinations(names, 2))
    chosen = [(suite.tasks[task], couple) for task, couple in _chosen(len(suite), couples, n_pairs, seed)]
    options = RunOptions(concurrency=concurrency, timeout=timeout, max_cost=max_cost)
    asking = PairwiseRun(comparators, options, run=run, failures=failures, seed=seed, progress=progress)
    async with asking.opened():
        runner = asking.runner(made, variant_timeout)
        source = await asking.grade([runner.job(task, 1, *couple) for task, couple in chosen])
        settings = {"run": asking.name, "suite": suite.name, "n_pairs": len(chosen), "level": level}
        provenance = Provenance("run_variants", settings, seed, runner.identities)
        group = uuid4().hex
        results = {}
        answers: dict[str, dict[str, Trace]] = {name: {} for name in names}
        for n, couple in enumerate(couples):
            done = [at for at, (_, two) in enumerate(chosen) if two == couple and at in source.done_cases]
            traces = [[source.traces[at][side] for at in done] for side in (0, 1)]
            for name, own in zip(couple, traces, strict=True):
                answers[name] |= {chosen[at][0].task_id: trace for at, trace in zip(done, own, strict=True)}
            results[couple] = PairwiseRunResult(
                f"{group}-{n}",
                tuple(case for at in done for case in source.done_cases[at]),
                asking.keys,
                *couple,
                group,
                failures=asking.failures,
                variants=(figures_of("a", traces[0]), figures_of("b", traces[1])),
                provenance=provenance,
            )
        took = {name: figures_of(name, own.values()) for name, own in answers.items()}
        more = {"figures": took, "level": level, "seed": seed}
        found = ranked_variants(names, asking.keys, results, asking.stopped, asking.cost, provenance, **more)
        if asking.store.is_kept:
            _save(asking, found)
    return found


@awaitable(run_variants)
async def run_variants_async(*args: Any, **settings: Any) -> Any:
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


def ranked_variants(
    names: tuple[str, ...],
    keys: tuple[str, ...],
    results: Mapping[tuple[str, str], PairwiseRunResult],
    stopped: str | None,
    cost: float,
    provenance: Provenance,
    **more: Any,
) -> VariantsResult:
    """Rank variants by the results of their pairs; see :class:`VariantsResult` for the arguments."""
    fits = {key: fit_variants(results.values(), key, names, more["level"], more["seed"]) for key in keys}
    rankings = {key: _ranking(fits[key], results.values(), key) for key in keys}
    return VariantsResult(names, keys, results, fits, rankings, stopped, cost, provenance, **more)


def _save(asking: PairwiseRun, found: VariantsResult) -> None:
    """Keep a ranking in its run file, to be reported later; once, however often it is the same."""
    results = [{**result.to_dict(), "run_id": "", "created_at": ""} for result in found.results.values()]
    row = {
        "variants": found.variants,
        "keys": found.keys,
        "results": results,
        "stopped": found.stopped,
        "provenance": asdict(found.provenance),
        "figures": {name: asdict(one) for name, one in found.figures.items()},
        "level": found.level,
        "seed": found.seed,
        "created_at": found.created_at,
    }
    of_call = OF_THE_CALL | {"variants"}
    told = [{name: value for name, value in one.items() if name not in of_call} for one in results]
    asking.store.add_result(VARIANTS, row, [found.variants, found.stopped, found.level, told])


def saved_variants(store: RunFile) -> VariantsResult | None:
    """The last ranking of variants that a run file keeps; None when it keeps none."""
    rows = store.read_log(VARIANTS, last=1)
    if not rows:
        return None
    row = rows[0]
    read = [PairwiseRunResult.from_dict(one, store.name) for one in row["results"]]
    results = {(one.variant_a, one.variant_b): one for one in read}
    own = {one.name for one in fields(VariantFigures)}
    figures = {
        name: VariantFigures(**{kind: one[kind] for kind in one if kind in own}) for name, one in row["figures"].items()
    }
    more = {"figures": figures, "level": row["level"], "seed": row["seed"], "created_at": row["created_at"]}
    made = Provenance(**row["provenance"])
    return ranked_variants(tuple(row["variants"]), tuple(row["keys"]), results, row["stopped"], 0.0, made, **more)


def _chosen(
    n_tasks: int, couples: Sequence[tuple[str, str]], n_pairs: int | None, seed: int
) -> list[tuple[int, tuple[str, str]]]:
    """Which task is compared for which two variants: all, or as many of each couple as can be, drawn at random."""
    if n_pairs is None or n_pairs >= n_tasks * len(couples):
        return [(task, couple) for task in range(n_tasks) for couple in couples]
    require_int(n_pairs, "n_pairs", least=len(couples))
    rng = random.Random(seed)  # noqa: S311 - a sample, not a secret
    tasks = {couple: rng.sample(range(n_tasks), n_tasks) for couple in couples}
    order = rng.sample(list(couples), len(couples))
    drawn = [(tasks[order[at % len(order)]][at // len(order)], order[at % len(order)]) for at in range(n_pairs)]
    return sorted(drawn, key=lambda case: (case[0], couples.index(case[1])))


def _ranking(fit: BTFit, results: Iterable[PairwiseRunResult], key: str) -> pl.DataFrame:
    turned = {"wins": "losses", "losses": "wins"}
    kinds = ("wins", "losses", "ties", "flips", "abstentions", "errors")
    rows = []
    for result in results:
        rate = result.win_rate(key)
        rows.append({"variant": result.variant_b, **{kind: getattr(rate, kind) for kind in kinds}})
        rows.append({"variant": result.variant_a, **{kind: getattr(rate, turned.get(kind, kind)) for kind in kinds}})
    table = pl.DataFrame(rows).group_by("variant", maintain_order=True).sum()
    scores = fit.theta.select("rank", "theta", "lower", "upper", "rank_lower", "rank_upper", variant="ID")
    return table.join(scores, on="variant", how="left").sort("rank", "variant", nulls_last=True).select(RANKING)


# One scale for several variants: a Bradley-Terry model of their cases, hard verdicts and graded preferences alike.
#
# A graded preference p counts as p of a win and 1 - p of a loss, so that the scores solve "sum of preferences =
# expected sum". The errors of the model then are too wide, as preferences vary less than wins and losses do. The robust
# ones, with tasks as clusters, are right. As in the interval of a graded win rate, a quarter of a task enters them that
# varies as the model says, and they are wider by t / z, because so many tasks are all that they are estimated from.

_SCORES = {"object1": pl.String(), "object2": pl.String(), "score": pl.Float64(), "task_id": pl.String()}
_DRAWS = 20_000  # behind the intervals of ranks


def fit_variants(
    results: Iterable[PairwiseRunResult], key: str, names: Sequence[str], level: float, seed: int
) -> BTFit:
    """Fit the scores of variants under a comparator.

    Args:
        results: of every two variants.
        key: the comparator.
        names: all variants.
        level: of the intervals.
        seed: of the intervals of ranks.

    Raises:
        InputError: no case was answered.
    """
    rows = [
        (result.variant_a, result.variant_b, 1 - score, case.task_id)
        for result in results
        for case in result.of(key)
        if (score := counted_score(case, result.failures)) is not None
    ]
    if not rows:
        raise InputError(f"{key}: no case was answered, so there is nothing to rank")
    cases = pl.DataFrame(rows, schema=_SCORES, orient="row")
    tasks = cases["task_id"].n_unique()
    shared: dict[str, Any] = {"engine": "firth", "ids": names, "rank_intervals": True, "level": level, "seed": seed}
    graded = not cases["score"].is_in([0.0, 0.5, 1.0]).all()
    shared |= {"covariance": True, "ties": "half", "weights": "weight" if graded else None}
    table = _halves(cases) if graded else cases.rename({"score": "result"})
    plain = fit_bt_model(table, **shared)
    if tasks < 2:
        return plain
    robust = fit_bt_model(table, **shared, cluster="task_id")
    if graded:
        spread = cases.group_by("object1", "object2").agg(pl.col("score").max() - pl.col("score").min())["score"].max()
        return plain if float(spread) < NO_SPREAD else _by_tasks(plain, robust, tasks, level, seed)  # type: ignore[arg-type]
    width = [float((fit.theta["upper"] - fit.theta["lower"]).sum()) for fit in (plain, robust)]
    return robust if width[1] > width[0] else plain


def _halves(cases: pl.DataFrame) -> pl.DataFrame:
    """Each case as a win and a loss, which count as much as its preference says."""
    won = cases.with_columns(result=pl.lit(1.0), weight=pl.col("score"))
    lost = cases.with_columns(result=pl.lit(0.0), weight=1 - pl.col("score"))
    return pl.concat([won, lost]).filter(pl.col("weight") > 0).sort("task_id", "object1", "object2", "result")


def _by_tasks(plain: BTFit, robust: BTFit, tasks: int, level: float, seed: int) -> BTFit:
    """A fit whose errors are those between tasks."""
    reach = normal_quantile(level)
    share = IMAGINED / (tasks - 1 + IMAGINED)
    wider = (student_quantile(level, tasks - 1) / reach) ** 2
    spread: Floats = wider * ((1 - share) * robust.covariance + share * plain.covariance)  # type: ignore[assignment,operator]
    theta = robust.theta["theta"].to_numpy()
    half = reach * np.sqrt(np.maximum(np.diag(spread), 0))
    draws = theta + _draws(spread, seed)
    ranks = 1 + np.argsort(np.argsort(-draws, axis=1), axis=1)
    ends = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf").astype(np.int64)
    columns = {"lower": theta - half, "upper": theta + half, "rank_lower": ends[0], "rank_upper": ends[1]}
    table = robust.theta.with_columns(**{name: pl.Series(one) for name, one in columns.items()})
    return replace(robust, theta=table, covariance=spread)


def _draws(covariance: Floats, seed: int) -> Floats:
    """Normal draws; the covariance has no variance in the direction of the mean, so no Cholesky factor."""
    values, vectors = np.linalg.eigh(covariance)
    draws = np.random.default_rng(seed).standard_normal((_DRAWS, len(values)))
    return np.asarray(draws @ (vectors * np.sqrt(np.maximum(values, 0))).T)


# Which variants can be told apart.
#
# The intervals of all differences hold together: with the scores' covariance C, the half-width of a difference is its
# standard error times the quantile of the largest |difference| / standard error that N(0, C) gives (Tukey's way, for
# scores that are neither independent nor equally certain). Two variants cannot be told apart when the interval of their
# difference holds 0. A group is a set of variants of which no two can be told apart, and which no further one joins; a
# variant may be in two groups.


def differences_of(fit: BTFit, level: float, seed: int) -> pl.DataFrame:
    """The difference of the scores of every two variants, with intervals that hold for all of them at once.

    Args:
        fit: of the variants, with its covariance.
        level: of all intervals together.
        seed: of the draws for the quantile.

    Returns:
        One row for every two, the better first: ``variant other difference lower upper differ``.
    """
    names = fit.theta["ID"].to_list()
    scores = fit.theta["theta"].to_numpy()
    one, two = np.triu_indices(len(names), k=1)
    c: Floats = fit.covariance  # type: ignore[assignment]  # asked for
    errors = np.sqrt(np.maximum(c[one, one] + c[two, two] - 2 * c[one, two], 0))
    draws = _draws(c, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        largest = np.nan_to_num(np.abs(draws[:, one] - draws[:, two]) / errors).max(axis=1, initial=0)
    reach = float(np.quantile(largest, level)) * errors
    gaps = scores[one] - scores[two]
    return pl.DataFrame(
        {
            "variant": [names[at] for at in one],
            "other": [names[at] for at in two],
            "difference": gaps,
            "lower": gaps - reach,
            "upper": gaps + reach,
            "differ": np.abs(gaps) > reach,
        }
    )


def groups_of(differences: pl.DataFrame, names: Sequence[str]) -> list[tuple[str, ...]]:
    """The groups of variants that cannot be told apart, the best first; one alone is a group, too.

    Args:
        differences: see :func:`differences_of`.
        names: all variants, the best first.

    Example:
        >>> rows = [("x", "y", False), ("x", "z", True), ("y", "z", False)]
        >>> table = pl.DataFrame(rows, schema=["variant", "other", "differ"], orient="row")
        >>> groups_of(table, ["x", "y", "z"])
        [('x', 'y'), ('y', 'z')]
    """
    alike: dict[str, set[str]] = {name: set() for name in names}
    for one, two, differ in differences.select("variant", "other", "differ").iter_rows():
        if not differ:
            alike[one].add(two)
            alike[two].add(one)
    place = {name: at for at, name in enumerate(names)}
    found = [tuple(sorted(group, key=place.__getitem__)) for group in _cliques(set(), set(names), set(), alike)]
    return sorted(found, key=lambda group: [place[name] for name in group])


def _cliques(
    chosen: set[str], open_to: set[str], done: set[str], alike: dict[str, set[str]]
) -> Iterator[Iterable[str]]:
    """All largest sets of names that are alike in pairs (Bron and Kerbosch 1973, with a pivot)."""
    if not open_to and not done:
        yield chosen
        return
    pivot = max(open_to | done, key=lambda name: (len(alike[name] & open_to), name))
    for name in sorted(open_to - alike[pivot]):
        yield from _cliques(chosen | {name}, open_to & alike[name], done & alike[name], alike)
        open_to, done = open_to - {name}, done | {name}
