"""How well items and judges fit the scores: infit and outfit, as R's ``sirt::btm`` has them.

With E the expected and V the variance of a comparison's result y at the fitted scores, each item's (or judge's) mean
squares over its comparisons are::

    outfit = mean((y - E)² / V)        infit = sum((y - E)²) / sum(V)

Both are around 1 when the model holds. Outfit is moved most by upsets between items far apart, infit by those between
close ones. An item compared with itself is in that comparison twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.core.columns import judge_column
from pairscale.core.display import PlotMixin
from pairscale.core.errors import InputError
from pairscale.core.notices import notice, plural
from pairscale.core.options import checked
from pairscale.core.results import Results
from pairscale.core.tables import times_of
from pairscale.models.bradley_terry import BTFit
from pairscale.models.data import read_outcomes
from pairscale.models.likelihood import outcome_probabilities

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints

_FLAG = 2.0
_SAME_THETA = 1e-9
_FEWEST = 3  # of fewer, a mean and a standard deviation flag no one


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FitStatistics(PlotMixin, table="items", charts=("judges",)):
    """How well items and judges fit.

    Attributes:
        items: one row per item, worst infit first: ``ID``, ``comparisons``, ``infit``, ``outfit``, ``misfit`` (whether
            one of them is more than two standard deviations from the mean of all items) and ``reason``, a sentence.
        judges: one row per judge, worst infit first: ``judge_id comparisons infit outfit``, ``agreement`` (the
            share of decisions for the item with the higher score; equal scores count half), ``misfit`` and ``reason``.
            None when the comparisons name no judge.
        notices: what was left out.
    """

    items: pl.DataFrame
    judges: pl.DataFrame | None
    notices: tuple[str, ...]

    def __str__(self) -> str:
        tables = {"item": self.items, "judge": self.judges}
        parts = [
            f"{int(table['misfit'].sum()):,} of {plural(table.height, word)} misfit"
            for word, table in tables.items()
            if table is not None
        ]
        return ", ".join(parts)


@checked
def fit_statistics(fit: Any, *, judge: str | None = None) -> FitStatistics:
    """Infit and outfit mean squares of every item, and of every judge.

    Every comparison counts the same, also where the fit had weights.

    Args:
        fit: from :func:`pairscale.fit` or :func:`pairscale.fit_bt_model`.
        judge: the column that names the judge; without it ``judge_id``, else ``judge``.

    Raises:
        InputError: when it is no Bradley–Terry fit.

    Example:
        >>> import pairscale as ps
        >>> fit_statistics(ps.fit(ps.example_writing_results))
        <FitStatistics: 3 of 20 items misfit>
    """
    if not isinstance(fit, BTFit):
        raise InputError("fit_statistics takes a Bradley-Terry fit, ps.fit(results)")
    judge = judge or judge_column(fit.comparisons)
    notices = []
    if judge is None and times_of(fit.comparisons) is not None:
        notices.append(notice("comparisons were counted without their judges, who have no statistics"))
    outcomes = read_outcomes(Results(fit.comparisons), ties=fit.options["ties"], cluster=judge)
    ids = fit.theta["ID"].to_list()
    place = {name: at for at, name in enumerate(ids)}
    number = np.array([place.get(name, -1) for name in outcomes.ids], dtype=np.int64)
    first = number[outcomes.first]
    second = number[outcomes.second]
    # An item that met only itself has no score; of an item with itself, only sirt counts comparisons.
    kept = (first >= 0) & (second >= 0)
    if fit.engine != "sirt" or fit.position is not None:
        kept &= first != second
    first = first[kept]
    second = second[kept]
    result = outcomes.result[kept]
    times = np.ones(len(first)) if outcomes.times is None else outcomes.times[kept].astype(np.float64)
    theta = fit.theta["theta"].to_numpy()
    apart = theta[first] - theta[second]
    gap = apart + fit.position.b * (first != second) if fit.position else apart
    won, lost = outcome_probabilities(gap)
    variance = won * lost
    # 1 - E as the other side's share, which keeps its digits where the first is almost sure to win.
    square = np.where(result == 1, lost, result - won) ** 2
    both = np.concatenate([first, second])
    items = mean_squares(both, np.tile(square, 2), np.tile(variance, 2), len(ids), np.tile(times, 2))
    items = items.insert_column(0, pl.Series("ID", ids, dtype=pl.String)).filter(pl.col("comparisons") > 0)
    judges = None
    if outcomes.cluster is not None:
        judge_numbers = outcomes.cluster[kept]
        size = len(outcomes.clusters)
        judges = mean_squares(judge_numbers, square, variance, size, times)
        judges = judges.insert_column(0, pl.Series("judge_id", outcomes.clusters, dtype=pl.String))
        judges = judges.with_columns(agreement=_agreement(apart, result, judge_numbers, size, times))
        judges = flagged(judges.filter(pl.col("comparisons") > 0), "judge_id", JUDGE_WORDS)
    return FitStatistics(flagged(items, "ID", ITEM_WORDS), judges, (*outcomes.notices, *notices))


def _agreement(apart: Floats, result: Floats, judge: Ints, size: int, times: Floats) -> pl.Series:
    """Per judge, the share of decisions for the item with the higher score; equal scores count half."""
    ahead = np.where(np.abs(apart) > _SAME_THETA, np.sign(apart), 0.0)
    decided = times * (result != 0.5)
    right = decided * (1 + ahead * (2 * result - 1)) / 2
    total = np.bincount(judge, decided, size)
    share = np.bincount(judge, right, size) / np.where(total > 0, total, np.nan)
    return pl.Series(share).fill_nan(None)


def mean_squares(number: Ints, square: Floats, variance: Floats, size: int, times: Floats) -> pl.DataFrame:
    """Infit and outfit of each of ``size`` items or judges, by number: ``comparisons infit outfit``."""
    total = np.bincount(number, times, size)
    spread = np.bincount(number, times * variance, size)
    return pl.DataFrame(
        {
            "comparisons": total.astype(np.int64),
            "infit": np.bincount(number, times * square, size) / np.where(spread > 0, spread, 1),
            "outfit": np.bincount(number, times * (square / variance), size) / np.maximum(total, 1),
        }
    )


ITEM_WORDS = (
    "judged against the scores more often than chance explains: judges do not see it the same way",
    "judged almost exactly in the order of the scores: fewer surprises than chance brings",
)
JUDGE_WORDS = (
    "decides against the scores more often than chance explains: careless, or looking for something else",
    "decides almost exactly in the order of the scores: fewer surprises than chance brings",
)


def flagged(table: pl.DataFrame, name: str, words: tuple[str, str]) -> pl.DataFrame:
    """The table with whether and why a row is a misfit, worst first."""
    high = pl.lit(value=False)
    low = pl.lit(value=False)
    if table.height >= _FEWEST:
        for column in ("infit", "outfit"):
            mean = pl.col(column).mean()
            sd = pl.col(column).std()
            # A spread of rounding errors makes no one a misfit.
            wide = sd > 1e-9
            high |= (pl.col(column) > mean + _FLAG * sd) & wide
            low |= (pl.col(column) < mean - _FLAG * sd) & wide
    table = table.with_columns(
        misfit=high | low,
        reason=pl.when(high).then(pl.lit(words[0])).when(low).then(pl.lit(words[1])).otherwise(None),
    )
    return table.sort(pl.col("infit"), pl.col(name), descending=[True, False])
