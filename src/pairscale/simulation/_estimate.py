"""One estimate of the abilities for every selector, so that studies compare pairs and not estimators.

Bradley–Terry with the prior N(0, s²) for every item; the mode is found by Newton's method. The width s is the one of
the highest marginal likelihood (in Laplace's approximation) times a wide prior, log s ~ N(log 1.5, 0.75²), between 0.3
and 6. It knows nothing of the judge's faults.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar

from pairscale.models.prior_mode import prior_mode

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats

__all__ = ["MapEstimate"]

_SD_MIDDLE, _SD_SPREAD, _SD_LOW, _SD_HIGH = 1.5, 0.75, 0.3, 6.0


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
        times: Floats = np.bincount(slot).astype(np.float64)
        won: Floats = np.bincount(slot, np.where(first < second, y, 1.0 - y)).astype(np.float64)
        pairs = at // n, at % n, times, won

        def depth(log_sd: float) -> float:
            found = prior_mode(*pairs, prior=math.exp(-2 * log_sd), start=self.theta)
            self.theta = found.theta
            marginal = found.height - n * log_sd - float(np.log(np.diag(found.factor)).sum())
            return -(marginal - 0.5 * ((log_sd - math.log(_SD_MIDDLE)) / _SD_SPREAD) ** 2)

        ends = math.log(_SD_LOW), math.log(_SD_HIGH)
        best = float(minimize_scalar(depth, bounds=ends, method="bounded", options={"xatol": 0.02}).x)
        self.sd = math.exp(best)
        self.theta = prior_mode(*pairs, prior=self.sd**-2, start=self.theta).theta
        return self.theta
