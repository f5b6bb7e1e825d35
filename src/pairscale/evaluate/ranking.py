"""More than two variants: pairs of them compared task by task, and one ranking with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.core.display import PlotMixin, ReportMixin
from pairscale.core.errors import InputError
from pairscale.core.options import FilePath, ProgressMode, checked, require_int
from pairscale.core.provenance import Provenance
from pairscale.core.tables import listed
from pairscale.evaluate.comparators import PairwiseComparator
from pairscale.evaluate.inference.cases import Texts, normal_quantile
from pairscale.evaluate.inference.failures import Failures, agreed_better
from pairscale.evaluate.inference.score import IMAGINED, NO_SPREAD, student_quantile
from pairscale.evaluate.result import PairwiseRunResult, VariantFigures, counted_score
from pairscale.evaluate.run import Couple, PairwiseRun
from pairscale.evaluate.tasks import SuiteLike
from pairscale.evaluate.variants import VariantLike
from pairscale.evaluate.wording import better_by_ways
from pairscale.models.bradley_terry import fit_bt_model
from pairscale.runtime import CONCURRENCY, TIMEOUT, RunOptions, awaitable, blocking
from pairscale.store.marks import VARIANTS
from pairscale.store.runfile import RunFile

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats
    from pairscale.models.bradley_terry import BTFit

KINDS = ("wins", "losses", "ties", "flips", "abstentions", "errors")
"""How the cases of a variant come out."""


LEVEL = 0.95
"""Of all intervals."""


@dataclass(frozen=True, slots=True, repr=False)
class VariantsResult(PlotMixin, ReportMixin, table="ranking", charts=("scores", "ranks")):
    """What comparing several variants gave.

    Attributes:
        results: by pair ``(a, b)`` of names, the cases and figures of the two.
        baseline: the only variant that the others were compared with; None when all were, two by two.
    """

    results: Mapping[Couple, PairwiseRunResult]
    baseline: str | None = None
    _fits: dict[str, BTFit] = field(default_factory=dict[str, "BTFit"], init=False, repr=False, compare=False)

    @property
    def _some(self) -> PairwiseRunResult:
        return next(iter(self.results.values()))

    @property
    def variants(self) -> Texts:
        """The names of the variants."""
        return tuple(dict.fromkeys(name for couple in self.results for name in couple))

    @property
    def keys(self) -> Texts:
        """The comparators' keys."""
        return self._some.keys

    @property
    def stopped(self) -> str | None:
        """Why it ended before all cases were asked: ``max_cost``, or None."""
        return self._some.stopped

    @property
    def cost(self) -> float:
        """What this call spent, in US dollars."""
        return self._some.cost

    @property
    def created_at(self) -> str:
        """When, UTC."""
        return self._some.created_at

    @property
    def provenance(self) -> Provenance:
        """How it was made."""
        return self._some.provenance

    @property
    def figures(self) -> dict[str, VariantFigures]:
        """By variant, what its answers took: failures, latency, tokens, cost; of the pair with most of its answers."""
        by_name: dict[str, VariantFigures] = {}
        for couple, result in self.results.items():
            for name, figures in zip(couple, result.variants, strict=False):
                by_name[name] = max(by_name.get(name, figures), figures, key=lambda one: one.answers)
        return by_name

    def fit(self, key: str | None = None) -> BTFit:
        """The Bradley-Terry fit of a comparator's cases; of the first comparator's when none is named.

        Raises:
            UnknownNameError: when no comparator has that key.
            InputError: when no case was answered.
        """
        key = key or self.keys[0]
        if key not in self._fits:
            self._fits[key] = fit_variants(self.results.values(), key, self.variants, self.provenance.seed or 0)
        return self._fits[key]

    def ranking(self, key: str | None = None) -> pl.DataFrame:
        """The ranking under a comparator; under the first when none is named.

        Returns:
            One row per variant, the best first: ``theta`` with its interval, the rank with its interval, and how its
            cases ended. A variant without an answered case has no score.
        """
        scores = self.fit(key).theta.select("rank", "theta", "lower", "upper", "rank_lower", "rank_upper", variant="ID")
        rows = []
        for result in self.results.values():
            rate = result.win_rate(key or self.keys[0])
            of_b = {kind: getattr(rate, kind) for kind in KINDS}
            rows.append({"variant": result.variant_b, **of_b})
            rows.append({"variant": result.variant_a, **of_b, "wins": rate.losses, "losses": rate.wins})
        table = pl.DataFrame(rows).group_by("variant", maintain_order=True).sum().join(scores, on="variant", how="left")
        return table.sort("rank", "variant", nulls_last=True).select("variant", *scores.columns[:-1], *KINDS)

    def best(self, key: str | None = None) -> str | None:
        """The variant that is shown to be better than all others; None when none stands out so clearly.

        The interval of its rank is 1 alone, and it can be told apart from every other one; see :meth:`alike`.
        """
        clear = self.ranking(key).filter(pl.col("rank_upper") == 1)["variant"].to_list()
        return clear[0] if len(clear) == 1 and not self.alike(key)[clear[0]] else None

    def differences(self, key: str | None = None) -> pl.DataFrame:
        """The difference of the scores of every two variants; the intervals hold for all of them at once.

        Returns:
            One row for every two, the better first: ``variant other difference lower upper differ``.
        """
        return differences_of(self.fit(key), self.provenance.seed or 0)

    def alike(self, key: str | None = None) -> dict[str, Texts]:
        """By variant, the best first: those that it cannot be told apart from, as no difference is shown."""
        open_pairs = self.differences(key).filter(~pl.col("differ")).select("variant", "other").rows()
        ranked = self.ranking(key).drop_nulls("theta")["variant"].to_list()
        return {
            name: tuple(other for other in ranked if (name, other) in open_pairs or (other, name) in open_pairs)
            for name in ranked
        }

    def verdict(self, key: str | None = None) -> str:
        """Which variants are shown to be better, in a sentence."""
        if self.baseline is not None:
            return self._against(self.baseline, key)
        best = self.best(key)
        if best is not None:
            return f"{best} is favoured: it is shown to be better than all others"
        alike = self.alike(key)
        if all(len(others) == len(alike) - 1 for others in alike.values()):
            return "no difference between them is shown; compare more tasks, or decide by cost and speed"
        first = next(iter(alike))
        score = f"{', '.join(alike[first])} cannot be told apart from {first}, which has the highest score"
        return f"no single one is favoured, as {score}; decide among these by cost and speed"

    def _against(self, baseline: str, key: str | None) -> str:
        """How the others compare with the baseline."""
        parts: dict[str | None, list[str]] = {"b": [], None: [], "a": []}
        level = 1 - (1 - LEVEL) / len(self.results)  # of each, so that all of them hold together
        for (_, name), result in self.results.items():
            parts[agreed_better(better_by_ways(result, key or self.keys[0], level), result.failures)].append(name)
        words = {"b": "favoured over", None: "not shown to differ from", "a": "worse than"}
        return "; ".join(f"{words[side]} {baseline}: {', '.join(names)}" for side, names in parts.items() if names)

    def summary(self) -> str:
        """The verdicts and the rankings."""
        return "\n".join(f"{key}: {self.verdict(key)}\n{self.ranking(key)}" for key in self.keys)

    def __str__(self) -> str:
        if len(self.keys) == 1:
            return self.verdict()
        return "\n".join(f"{key}: {self.verdict(key)}" for key in self.keys)


@blocking("run")
@checked
async def run_variants(
    suite: SuiteLike,
    variants: Mapping[str, VariantLike],
    *,
    comparators: Iterable[PairwiseComparator],
    concurrency: int = CONCURRENCY,
    timeout: float | None = TIMEOUT,
    variant_timeout: float | None = None,
    run: FilePath | None = None,
    failures: Failures = "loss",
    max_cost: float | None = None,
    seed: int = 1,
    progress: ProgressMode = True,
    baseline: str | None = None,
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
        concurrency: Questions open at once; as many cases are worked on at once.
        timeout: Seconds that one answer of a judge may take; None for no limit.
        variant_timeout: Seconds that one answer of a variant may take before it has failed; see :func:`run_pairwise`.
        run: the run file; the same call again asks only what is missing.
        failures: How a failure of a variant counts: ``loss``, ``shown`` or ``excluded``; see :func:`run_pairwise`.
        max_cost: US dollars that the run may spend, all calls together.
        seed: of the intervals.
        progress: show a bar when standard error is a terminal.
        baseline: the name of the only variant that the others are compared with; by default all of them, two by two.

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
    seed = require_int(seed, "seed", least=0)
    options = RunOptions(concurrency=concurrency, timeout=timeout, max_cost=max_cost)
    asking = PairwiseRun(comparators, options, run=run, failures=failures, seed=seed, progress=progress)
    couples = couples_of(tuple(variants), baseline)
    about: dict[str, Any] = {"variant_timeout": variant_timeout, "baseline": baseline}
    return ranked(await asking.of_variants(suite, variants, couples, "run_variants", **about), baseline)


def ranked(results: Mapping[Couple, PairwiseRunResult], baseline: str | None) -> VariantsResult:
    """A ranking, fitted, so that what cannot be ranked is an error."""
    ranking = VariantsResult(results, baseline)
    for key in ranking.keys:
        ranking.fit(key)
    return ranking


def couples_of(names: Sequence[str], baseline: str | None) -> list[Couple]:
    """Which variants are compared: all of them two by two, or each with the baseline."""
    if len(names) < 3:
        raise InputError(f"a ranking takes three variants or more, not {len(names)}; `ps.ab` compares two")
    if baseline is None:
        return list(combinations(names, 2))
    if baseline not in names:
        raise InputError(f"`baseline=` names one of the variants {listed(names)}, not {baseline!r}", "baseline")
    return [(baseline, name) for name in names if name != baseline]


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


def saved_variants(store: RunFile) -> VariantsResult | None:
    """The last ranking of variants that a run file keeps; None when it keeps none."""
    rows = store.read_log(VARIANTS, last=1)
    if not rows:
        return None
    results = [PairwiseRunResult.from_dict(result, store.name) for result in rows[0]["results"]]
    by_names = {(result.variant_a, result.variant_b): result for result in results}
    return VariantsResult(by_names, rows[0].get("baseline"))


# One scale for several variants: a Bradley-Terry model of their cases, hard verdicts and graded preferences alike.
#
# A graded preference p counts as p of a win and 1 - p of a loss, so that the scores solve "sum of preferences =
# expected sum". The errors of the model then are too wide, as preferences vary less than wins and losses do. The robust
# ones, with tasks as clusters, are right. As in the interval of a graded win rate, a quarter of a task enters them that
# varies as the model says, and they are wider by t / z, because they are estimated from these tasks alone.

_SCORES = {"object1": pl.String, "object2": pl.String, "score": pl.Float64, "task_id": pl.String}
_DRAWS = 20_000  # behind the intervals of ranks


def fit_variants(results: Iterable[PairwiseRunResult], key: str, names: Sequence[str], seed: int) -> BTFit:
    """Fit the scores of variants under a comparator.

    Args:
        results: of every two variants.
        key: the comparator.
        names: all variants.
        seed: of the intervals of ranks.

    Raises:
        InputError: no case was answered.
    """
    rows = []
    for result in results:
        for case in result.of(key):
            score = counted_score(case, result.failures)
            if score is not None:
                rows.append((result.variant_a, result.variant_b, 1 - score, case.task_id))
    if not rows:
        raise InputError(f"{key}: no case was answered, so there is nothing to rank")
    cases = pl.DataFrame(rows, schema=_SCORES, orient="row")
    tasks = cases["task_id"].n_unique()
    graded = not cases["score"].is_in([0.0, 0.5, 1.0]).all()
    table = _halves(cases) if graded else cases.rename({"score": "result"})
    fit = partial(
        fit_bt_model, table, engine="firth", ids=names, rank_intervals=True, level=LEVEL, seed=seed, covariance=True,
        ties="half", weights="weight" if graded else None,
    )  # fmt: skip
    plain = fit()
    if tasks < 2:
        return plain
    robust = fit(cluster="task_id")
    if graded:
        spread = cases.group_by("object1", "object2").agg(pl.col("score").max() - pl.col("score").min())["score"].max()
        return plain if float(spread) < NO_SPREAD else _by_tasks(plain, robust, tasks, seed)  # type: ignore[arg-type]
    return max(plain, robust, key=lambda fit: float((fit.theta["upper"] - fit.theta["lower"]).sum()))


def _halves(cases: pl.DataFrame) -> pl.DataFrame:
    """Each case as a win and a loss, which count as much as its preference says."""
    won = cases.with_columns(result=pl.lit(1.0), weight=pl.col("score"))
    lost = cases.with_columns(result=pl.lit(0.0), weight=1 - pl.col("score"))
    return pl.concat([won, lost]).filter(pl.col("weight") > 0).sort("task_id", "object1", "object2", "result")


def _by_tasks(plain: BTFit, robust: BTFit, tasks: int, seed: int) -> BTFit:
    """A fit whose errors are those between tasks."""
    reach = normal_quantile(LEVEL)
    share = IMAGINED / (tasks - 1 + IMAGINED)
    wider = (student_quantile(LEVEL, tasks - 1) / reach) ** 2
    spread: Floats = wider * ((1 - share) * robust.covariance + share * plain.covariance)  # type: ignore[assignment,operator]
    theta = robust.theta["theta"].to_numpy()
    half = reach * np.sqrt(np.maximum(np.diag(spread), 0))
    draws = theta + _draws(spread, seed)
    ranks = 1 + np.argsort(np.argsort(-draws, axis=1), axis=1)
    ends = np.quantile(ranks, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0, method="inverted_cdf").astype(np.int64)
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
# difference holds 0.


def differences_of(fit: BTFit, seed: int) -> pl.DataFrame:
    """The difference of the scores of every two variants, with intervals that hold for all of them at once.

    Args:
        fit: of the variants, with its covariance.
        seed: of the draws for the quantile.

    Returns:
        One row for every two, the better first: ``variant other difference lower upper differ``.
    """
    names = fit.theta["ID"].to_list()
    scores = fit.theta["theta"].to_numpy()
    better, worse = np.triu_indices(len(names), k=1)
    covariance: Floats = fit.covariance  # type: ignore[assignment]  # asked for
    variances = covariance[better, better] + covariance[worse, worse] - 2 * covariance[better, worse]
    errors = np.sqrt(np.maximum(variances, 0))
    draws = _draws(covariance, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        largest = np.nan_to_num(np.abs(draws[:, better] - draws[:, worse]) / errors).max(axis=1, initial=0)
    reach = float(np.quantile(largest, LEVEL)) * errors
    gaps = scores[better] - scores[worse]
    return pl.DataFrame(
        {
            "variant": [names[at] for at in better],
            "other": [names[at] for at in worse],
            "difference": gaps,
            "lower": gaps - reach,
            "upper": gaps + reach,
            "differ": np.abs(gaps) > reach,
        }
    )
