"""Normal distributions that stand in for the posterior of the Bayesian model, given the judge's parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit, log_expit

from pairscale.models._btl import LAPSE_PRIOR, LEARNED_SCALE, POSITION_SD
from pairscale.models._sampling import FIRST_LAPSE
from pairscale.models.prior_mode import SLOPE_SD

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats
    from pairscale.models._cells import Cells, JudgeParameters

__all__ = ["OUT", "Normal", "Target"]

OUT = 2.0  # the judge's parameters are looked at so many standard deviations either way
_WITH_TAU = 2
_NODES = ((0.0, 2 / 3), (math.sqrt(3), 1 / 6), (-math.sqrt(3), 1 / 6))  # Gauss-Hermite: exact up to fifth powers
_LONGEST = 2.0  # step of an ability, in standard deviations of its prior
_WIDEST = 8.0  # of the logarithm of a learned spread: beyond, matrices are no longer positive


@dataclass(frozen=True, slots=True, eq=False)
class Normal:
    """The normal distribution of abilities, b and g, given the judge's other parameters.

    Attributes:
        judge: these parameters: u and t, those that there are.
        mean: its mean.
        variance: the diagonal of its covariance.
        spread: per cell, the variance of the difference.
        factor: its precision, ready to solve with: a lower Cholesky factor, or what :class:`SparseTarget` has instead.
        evidence: the bound on the log evidence, up to a constant.
        slope: of that, per parameter.
    """

    judge: Floats
    mean: Floats
    variance: Floats
    spread: Floats
    factor: Any
    evidence: float
    slope: Floats


class Target:
    """The posterior, in terms of means over a normal distribution.

    The rows are the abilities (beyond what was known beforehand), then b and g, as far as they are there.
    """

    def __init__(self, cells: Cells, model: JudgeParameters) -> None:
        self.cells, self.model, self.n = cells, model, cells.n_items
        self.linear = [cells.sign] if model.position else []
        self._linear_precision = [POSITION_SD**-2] if model.position else []
        if model.known is not None:
            known = np.array(model.known)
            self.linear.append(known[cells.winner] - known[cells.loser])
            self._linear_precision.append(SLOPE_SD**-2)
        self.size = self.n + len(self.linear)
        self.names = [name for name in model.names if name not in ("b", "g")]
        # All abilities move with tau, so it takes some steps to arrive; with eps they hardly move.
        self.steps = _WITH_TAU if model.prior_sd is None else 1
        self._flat = cells.winner * self.n + cells.loser

    def start(self) -> Floats:
        """Where the search for the judge's parameters begins."""
        first = {"u": math.log(FIRST_LAPSE / (1 - FIRST_LAPSE)), "t": 0.0}
        return np.array([first[name] for name in self.names])

    def lapse(self, judge: Floats) -> float:
        return float(expit(judge[self.names.index("u")])) if "u" in self.names else 0.0

    def precision(self, judge: Floats) -> Floats:
        """The prior's, per row."""
        tau = self.model.prior_sd or math.exp(float(np.clip(judge[self.names.index("t")], -_WIDEST, _WIDEST)))
        out = np.full(self.size, tau**-2)
        out[self.n :] = self._linear_precision
        return out

    def abilities(self, x: Floats) -> Floats:
        """The abilities of draws, one per row."""
        theta = x[:, : self.n]
        return theta if self.model.known is None else theta + np.outer(x[:, -1], self.model.known)

    def differences(self, mean: Floats) -> Floats:
        """Per cell, how far the winner stands above the loser, the position effect included."""
        d = mean[self.cells.winner] - mean[self.cells.loser]
        for at, per_unit in enumerate(self.linear, start=self.n):
            d = d + per_unit * mean[at]
        return np.asarray(d)

    def averages(self, mean: Floats, spread: Floats | None, eps: float) -> tuple[float, Floats, Floats, float]:
        """Mean log likelihood; per cell, its mean slope and curvature in the difference; its slope in eps."""
        cells = self.cells
        d = self.differences(mean)
        sd = 0.0 if spread is None else np.sqrt(spread)
        value, in_eps = 0.0, 0.0
        slope, curvature = np.zeros(len(d)), np.zeros(len(d))
        for at, weight in _NODES if spread is not None else ((0.0, 1.0),):
            there = d + at * sd
            s = expit(there)
            p = (1 - eps) * s + eps / 2
            rise = (1 - eps) * s * (1 - s) / p
            log_p = np.log(p) if eps else log_expit(there)
            value += weight * float(cells.times @ log_p)
            in_eps += weight * float(cells.times @ ((0.5 - s) / p)) if eps else 0.0
            slope += weight * rise
            curvature += weight * rise * (rise - (1 - 2 * s))
        return value, slope, curvature, in_eps

    def gradient(self, slope: Floats, mean: Floats, precision: Floats) -> Floats:
        cells, weighted = self.cells, slope * self.cells.times
        out = -precision * mean
        out[: self.n] += np.bincount(cells.winner, weighted, self.n) - np.bincount(cells.loser, weighted, self.n)
        for at, per_unit in enumerate(self.linear, start=self.n):
            out[at] += per_unit @ weighted
        return out

    def factor(self, curvature: Floats, precision: Floats) -> Any:
        """The lower Cholesky factor of the precision that these curvatures give."""
        # A lapse makes an upset's curvature negative; where that is too much, it counts as none.
        for weight in (curvature, np.maximum(curvature, 0.0)):
            lower, failed = lapack.dpotrf(
                self._information(weight * self.cells.times, precision), lower=True, clean=True
            )
            if not failed:
                return np.asarray(lower)
        raise np.linalg.LinAlgError("the precision of the abilities is not positive")  # pragma: no cover

    def _information(self, weight: Floats, precision: Floats) -> Floats:
        cells, n = self.cells, self.n
        out = np.zeros((self.size, self.size), order="F")
        between = np.bincount(self._flat, weight, n * n).reshape(n, n)
        out[:n, :n] = -between - between.T
        diagonal = np.bincount(cells.winner, weight, n) + np.bincount(cells.loser, weight, n)
        for at, per_unit in enumerate(self.linear, start=n):
            signed = weight * per_unit
            out[:n, at] = out[at, :n] = np.bincount(cells.winner, signed, n) - np.bincount(cells.loser, signed, n)
            for other, column in enumerate(self.linear[: at - n], start=n):
                out[at, other] = out[other, at] = signed @ column
            diagonal = np.append(diagonal, (signed * per_unit).sum())
        out[np.diag_indices(self.size)] += diagonal + precision
        return out

    def solved(self, factor: Any, right: Floats, tolerance: float = 1e-4) -> Floats:
        """The precision's inverse times ``right``; exact here, whatever the tolerance."""
        del tolerance
        solution, _ = lapack.dpotrs(factor, right, lower=True)
        return np.asarray(solution)

    def noise(self, factor: Any, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws around a mean of zero, one per column, and the variances that they should have."""
        noise, _ = lapack.dtrtrs(factor, rng.standard_normal((self.size, count)), lower=True, trans=1)
        return np.asarray(noise), self.variances(factor)[0]

    def variances(self, factor: Any) -> tuple[Floats, Floats]:
        """The diagonal of the covariance, and the variance of each cell's difference."""
        lower, _ = lapack.dpotri(factor, lower=True)
        diagonal = np.diag(lower).copy()
        cells = self.cells
        high, low = np.maximum(cells.winner, cells.loser), np.minimum(cells.winner, cells.loser)
        spread = diagonal[cells.winner] + diagonal[cells.loser] - 2 * lower[high, low]
        for at, per_unit in enumerate(self.linear, start=self.n):
            row = lower[at]
            spread = spread + 2 * per_unit * (row[cells.winner] - row[cells.loser]) + per_unit**2 * diagonal[at]
            for other, column in enumerate(self.linear[: at - self.n], start=self.n):
                spread = spread + 2 * per_unit * column * row[other]
        return diagonal, np.maximum(spread, 0.0)

    def mode(self, judge: Floats, steps: int = 60) -> Floats:
        """The most probable abilities and b, roughly, given the judge's other parameters."""
        mean, eps, precision = np.zeros(self.size), self.lapse(judge), self.precision(judge)
        for at in range(steps):
            _, slope, curvature, _ = self.averages(mean, None, eps)
            if at > 8:  # not on its way: no negative curvatures, and shorter steps
                curvature = np.maximum(curvature, 0.0) * 2
            step = self.solved(self.factor(curvature, precision), self.gradient(slope, mean, precision), 1e-2)
            largest = float(np.abs(step).max())
            mean = mean + step * min(1.0, 2.0 / max(largest, 1e-300))
            if largest < 0.05:
                break
        return mean

    def around(
        self, judge: Floats, mean: Floats, spread: Floats | None, steps: int = 1, since: Normal | None = None
    ) -> Normal:
        """The normal distribution for a value of the judge's parameters, by steps from that of another one.

        Args:
            judge: these parameters.
            mean: where to start.
            spread: per cell, the variance of the difference there; None for a start at a mode.
            steps: how many.
            since: the distribution whose evidence that of this one is counted from, where there is no determinant.
        """
        eps, precision = self.lapse(judge), self.precision(judge)
        longest = _LONGEST / math.sqrt(precision[0])

        def stepped(spread: Floats | None) -> tuple[Floats, Any]:
            _, slope, curvature, _ = self.averages(mean, spread, eps)
            factor, right = self.factor(curvature, precision), self.gradient(slope, mean, precision)
            step = self.solved(factor, right)
            if (furthest := float(np.abs(step[: self.n]).max())) > longest:  # not on its way, as in mode()
                factor = self.factor(np.maximum(curvature, 0.0), precision)
                step = self.solved(factor, right)
                furthest = float(np.abs(step[: self.n]).max())
            return mean + step * min(1.0, longest / max(furthest, 1e-300)), factor

        for _ in range(steps):
            mean, held = stepped(spread)
            variance, spread = self.variances(held)
        assert spread is not None  # noqa: S101
        # The bound is flat where it is largest, so its covariance may be that of one step before.
        mean, factor = stepped(spread)
        value, *_, in_eps = self.averages(mean, spread, eps)
        squares = mean**2 + variance
        priors = [
            self._prior(name, float(at), in_eps, float(squares[: self.n].sum()))
            for name, at in zip(self.names, judge, strict=True)
        ]
        slope = np.array([slope for _, slope in priors])
        bound = value - 0.5 * float(precision @ squares) + sum(log for log, _ in priors)
        evidence = self._evidence(bound, held, judge, slope, since)
        return Normal(judge, mean, variance, spread, factor, evidence, slope)

    def _evidence(self, bound: float, factor: Any, judge: Floats, slope: Floats, since: Normal | None) -> float:
        del judge, slope, since
        return bound - float(np.log(np.diag(factor)).sum())

    def settled(self, low: Normal, center: Normal, high: Normal, axis: Floats) -> tuple[Normal, Normal]:
        """The two ends of an axis, their evidence as exact as can be."""
        del center, axis
        return low, high

    def _prior(self, name: str, at: float, in_eps: float, squares: float) -> tuple[float, float]:
        """What a parameter adds to the bound by its prior, and the slope of the whole bound in it."""
        if name == "u":
            (alpha, beta), eps = LAPSE_PRIOR, float(expit(at))
            log = alpha * float(log_expit(at)) + beta * float(log_expit(-at))
            return log, in_eps * eps * (1 - eps) + alpha * (1 - eps) - beta * eps
        variance = math.exp(2 * at)
        log = -self.n * at - 0.5 * variance / LEARNED_SCALE**2 + at
        return log, squares / variance - self.n - variance / LEARNED_SCALE**2 + 1
