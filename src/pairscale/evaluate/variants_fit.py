"""One scale for several variants: a Bradley-Terry model of their cases, hard verdicts and graded preferences alike.

A graded preference p counts as p of a win and 1 - p of a loss, so that the scores solve "sum of preferences = expected
sum". The errors of the model then are too wide, as preferences vary less than wins and losses do. The robust ones,
with tasks as clusters, are right. As in the interval of a graded win rate, a quarter of a task enters them that varies
as the model says, and they are wider by t / z, because so many tasks are all that they are estimated from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.core.errors import InputError
from pairscale.evaluate.inference.cases import normal_quantile
from pairscale.evaluate.inference.score import IMAGINED, NO_SPREAD, student_quantile
from pairscale.evaluate.result import counted_score
from pairscale.models.bradley_terry import fit_bt_model

if TYPE_CHECKING:
    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.models.bradley_terry import BTFit

__all__ = ["fit_variants"]

_CASES = {"object1": pl.String(), "object2": pl.String(), "score": pl.Float64(), "task_id": pl.String()}
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
    cases = pl.DataFrame(rows, schema=_CASES, orient="row")
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
    sides = [
        cases.with_columns(pl.lit(result).alias("result"), weight=pl.col("score") if result else 1 - pl.col("score"))
        for result in (1.0, 0.0)
    ]
    return pl.concat(sides).filter(pl.col("weight") > 0).sort("task_id", "object1", "object2", "result")


def _by_tasks(plain: BTFit, robust: BTFit, tasks: int, level: float, seed: int) -> BTFit:
    """A fit whose errors are those between tasks."""
    if plain.covariance is None or robust.covariance is None:  # never, as both were asked for
        return plain
    reach = normal_quantile(level)
    share = IMAGINED / (tasks - 1 + IMAGINED)
    wider = (student_quantile(level, tasks - 1) / reach) ** 2
    spread = wider * ((1 - share) * robust.covariance + share * plain.covariance)
    theta, se = robust.theta["theta"].to_numpy(), np.sqrt(np.maximum(np.diag(spread), 0))
    values, vectors = np.linalg.eigh(spread)  # it has no variance in the direction of the mean, so no Cholesky factor
    draws = np.random.default_rng(seed).standard_normal((_DRAWS, len(theta)))
    draws = theta + draws @ (vectors * np.sqrt(np.maximum(values, 0))).T
    ranks = 1 + np.argsort(np.argsort(-draws, axis=1), axis=1)
    ends = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf").astype(np.int64)
    columns = {"lower": theta - reach * se, "upper": theta + reach * se, "rank_lower": ends[0], "rank_upper": ends[1]}
    table = robust.theta.with_columns(**{name: pl.Series(one) for name, one in columns.items()})
    return replace(robust, theta=table, covariance=spread)
