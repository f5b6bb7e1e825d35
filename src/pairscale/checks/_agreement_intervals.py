"""Intervals of the coefficients of agreement.

Of two raters, the units with both labels are a table of q by q cells. Its true shares are drawn from their posterior
under a Dirichlet prior, and the interval holds the coefficients that these tables have. Where a label is rare, a
bootstrap cannot draw what it has not seen, and its intervals are far too narrow; these are not. There are three priors:
as much as one unit spread evenly over the cells, as much as two units, and as one unit with more on the cells of
agreement (1 / q each). The interval holds those of all three, and reaches as far as Student's t does instead of the
normal distribution. How often it holds the truth is in docs/validation.md.

Of more raters, units are drawn with replacement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pairscale.checks._coefficients import Percent, Statistic
from pairscale.checks.effect import wilson
from pairscale.pairing.table import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["LEAST_UNITS", "IntervalMethod", "cell_codes", "statistic_rows"]

LEAST_UNITS = 20
"""Intervals need so many units: with fewer, they hold the truth less often than their level says, or say nothing."""

_BLOCK = 2**22  # numbers held at once while resampling
_DRAWS = 10_000  # of tables of two raters


def cell_codes(q: int) -> NDArray[np.int64]:
    """One unit for every cell of the table of two raters, in the order of the cells."""
    return np.stack(np.divmod(np.arange(q * q, dtype=np.int64), q), axis=1)


@dataclass(frozen=True, slots=True)
class IntervalMethod:
    """How intervals are made.

    Attributes:
        n: resamples of the units; 0 for no intervals.
        level: of the intervals.
        seed: of what is drawn.
        table: of two raters, the number of units of each cell; None of more raters.
        of_cells: the same statistics of one unit for each cell, where there is a table; None for a statistic that rests
            on units with one label, too.
    """

    n: int
    level: float
    seed: int | None
    table: Floats | None = None
    of_cells: Sequence[Statistic | None] = ()

    def resampled(self, statistics: Sequence[Statistic], n_units: int) -> Iterator[list[Floats]]:
        """The statistics of units drawn with replacement, in blocks."""
        if self.table is not None and all(one is not None for one in self.of_cells):
            return
        rng, block = generator(self.seed), max(1, _BLOCK // n_units)
        even = np.full(n_units, 1 / n_units)
        for start in range(0, self.n, block):
            drawn = rng.multinomial(n_units, even, min(block, self.n - start)).astype(np.float64)
            yield [statistic(drawn) for statistic in statistics]

    def by_table(self) -> list[tuple[float, float] | None]:
        """Of each statistic, both ends of the interval by the table of two raters; None where there is none."""
        if self.table is None or not self.n or self.table.sum() < LEAST_UNITS or len(self.table) == 1:
            return [None] * len(self.of_cells)
        from scipy.special import stdtrit

        total, cells = float(self.table.sum()), len(self.table)
        rng = generator(self.seed)
        one = rng.standard_gamma(self.table + 1 / cells, (_DRAWS, cells))
        two = one + rng.standard_gamma(1 / cells, (_DRAWS, cells))
        q = math.isqrt(cells)
        agreeing = one.copy()
        agreeing[:, :: q + 1] += rng.standard_gamma(1 / q - 1 / cells, (_DRAWS, q))
        tail = NormalDist().cdf(-float(stdtrit(total - 1, (1 + self.level) / 2)))
        found: list[tuple[float, float] | None] = []
        for statistic in self.of_cells:
            if statistic is None:
                found.append(None)
                continue
            ends = []
            for drawn in (one, two, agreeing):
                values = statistic(total * drawn / drawn.sum(axis=1, keepdims=True))
                ends.append(np.nanquantile(values, [tail, 1 - tail]))
            found.append((float(min(low for low, _ in ends)), float(max(high for _, high in ends))))
        return found


def statistic_rows(
    statistics: Sequence[Statistic], n_units: int, intervals: IntervalMethod, notices: list[str]
) -> list[dict[str, Any]]:
    """The statistics with their intervals, as rows; what is missing is added to the notices.

    Args:
        statistics: of the units.
        n_units: how many there are.
        intervals: how they are made.
        notices: takes what to be careful with.
    """
    once = np.ones((1, n_units))
    drawn = list(intervals.resampled(statistics, n_units))
    by_table = intervals.by_table() or [None] * len(statistics)
    rows = []
    perfect = False
    undefined = False
    few = False
    for at, statistic in enumerate(statistics):
        estimate = float(statistic(once)[0])
        ends = by_table[at]
        row: dict[str, Any] = {"statistic": statistic.name, "weights": statistic.weights, "n_units": statistic.n_units}
        row |= {"estimate": None if math.isnan(estimate) else estimate}
        undefined |= math.isnan(estimate)
        if isinstance(statistic, Percent) and statistic.two_raters:
            agreed = round(float(statistic.agreeing.sum()))
            lower, upper = wilson(agreed, statistic.n_units, intervals.level)
            row |= {"lower": lower, "upper": upper, "interval": "wilson"}
        elif math.isnan(estimate):
            pass
        elif statistic.n_units < LEAST_UNITS:
            few = few or intervals.n > 0
        elif ends is not None:
            row |= {"lower": min(ends[0], estimate), "upper": max(ends[1], estimate), "interval": "dirichlet"}
        elif math.isclose(estimate, 1.0):
            perfect = True
        elif drawn:
            samples = np.concatenate([block[at] for block in drawn])
            samples = np.append(samples[~np.isnan(samples)], estimate)  # the estimate too: never none at all
            tail = (1 - intervals.level) / 2
            low, high = (float(bound) for bound in np.quantile(samples, [tail, 1 - tail]))
            row |= {"lower": low, "upper": high, "interval": "bootstrap"}
        rows.append(row)
    if few:
        notices.append(f"no intervals: {n_units} units are too few, it takes {LEAST_UNITS}")
    if perfect:
        notices.append("all labels agree; resampling them cannot say how sure that is, so there is no interval")
    if undefined:
        notices.append("some statistics are undefined: the labels do not vary, so chance explains them all")
    return rows
