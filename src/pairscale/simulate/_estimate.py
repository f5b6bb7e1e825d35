"""One estimate of the abilities for every selector, so that studies compare pairs and not estimators.

Bradley–Terry with the prior N(0, s²) for every item; the mode is found by Newton's method. The width s is the one of
the highest marginal likelihood (in Laplace's approximation) times a wide prior, log s ~ N(log 1.5, 0.75²), between 0.3
and 6. It knows nothing of the judge's faults.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import kendalltau, rankdata

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.models._counts import Floats, Ints

__all__ = ["MapEstimate", "kendall", "pearson", "spearman"]

_SD_MIDDLE, _SD_SPREAD, _SD_LOW, _SD_HIGH = 1.5, 0.75, 0.3, 6.0
_STEPS, _DONE = 60, 1e-6


class MapEstimate:
    """The most probable abilities, given comparisons; each fit begins where the last one ended.

    Attributes:
        theta: per item, the estimate.
        sd: the width of the prior that was found.
    """

    def __init__(self, n_items: int) -> None:
        self.theta: Floats = np.zeros(n_items)
        self.sd = _SD_MIDDLE

    def fit(self, history: npt.NDArray[Any]) -> Floats:
        """The estimate for these comparisons.

        Args:
            history: a row each: number of the first, number of the second, 1 when the first won.
        """
        n = len(self.theta)
        first, second, y = history.astype(np.int64).T
        low, high = np.minimum(first, second), np.maximum(first, second)
        at, slot = np.unique(low * n + high, return_inverse=True)
        pairs = _Pairs(n, at // n, at % n, np.bincount(slot), np.bincount(slot, np.where(first < second, y, 1.0 - y)))

        def depth(log_sd: float) -> float:
            self.theta, height = pairs.mode(self.theta, log_sd)
            return -(height - 0.5 * ((log_sd - math.log(_SD_MIDDLE)) / _SD_SPREAD) ** 2)

        ends = math.log(_SD_LOW), math.log(_SD_HIGH)
        best = float(minimize_scalar(depth, bounds=ends, method="bounded", options={"xatol": 0.02}).x)
        self.theta, _ = pairs.mode(self.theta, best)
        self.sd = math.exp(best)
        return self.theta


class _Pairs:
    """Distinct pairs i < j: how often each was asked, and how often i won."""

    def __init__(self, n: int, i: Ints, j: Ints, times: Ints, won: Any) -> None:
        self.n, self.i, self.j, self.times, self.won = n, i, j, times, won

    def mode(self, theta: Floats, log_sd: float) -> tuple[Floats, float]:
        """The mode for a prior of this width, and the log of the marginal likelihood there."""
        prior = math.exp(-2 * log_sd)
        i, j, n = self.i, self.j, self.n
        before, share, step = -math.inf, 1.0, np.zeros(n)
        factor: Floats = np.eye(n)
        for _ in range(_STEPS):
            moved = theta + share * step
            d = moved[i] - moved[j]
            height = float(self.won @ d - self.times @ np.logaddexp(0, d) - prior / 2 * (moved @ moved))
            if height < before - 1e-9 * abs(before):
                share /= 2  # too far; the direction is right, for there is one top only
                continue
            theta, before, share = moved, height, 1.0
            p = expit(d)
            left = self.won - self.times * p
            slope = np.bincount(i, left, n) - np.bincount(j, left, n) - prior * theta
            factor = self._factor(self.times * p * (1 - p), prior)
            step, _ = lapack.dpotrs(factor, slope, lower=1)
            if np.abs(step).max() < _DONE:
                break
        return theta, before - n * log_sd - float(np.log(np.diag(factor)).sum())

    def _factor(self, weight: Floats, prior: float) -> Floats:
        n, curvature = self.n, np.zeros((self.n, self.n), order="F")
        curvature[self.j, self.i] = -weight
        own = np.bincount(self.i, weight, n) + np.bincount(self.j, weight, n) + prior
        curvature[np.diag_indices(n)] = own
        factor, _ = lapack.dpotrf(curvature, lower=1, clean=1, overwrite_a=1)
        return np.asarray(factor)


def pearson(x: Floats, y: Floats) -> float | None:
    """Pearson's correlation; None where one of the two has no spread."""
    if x.min() == x.max() or y.min() == y.max():
        return None
    return float(np.corrcoef(x, y)[0, 1])


def spearman(x: Floats, y: Floats) -> float | None:
    """Spearman's rank correlation; None where one of the two has no spread."""
    return pearson(rankdata(x), rankdata(y))


def kendall(x: Floats, y: Floats) -> float | None:
    """Kendall's tau-b; None where one of the two has no spread."""
    if x.min() == x.max() or y.min() == y.max():
        return None
    return float(kendalltau(x, y).statistic)
