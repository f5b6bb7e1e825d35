"""The normal distribution that is nearest to the posterior: a fast stand-in for the sampler.

Given the noise, the spread and the slopes, scores and position effects get a normal distribution. Laplace's, around the
mode, puts extreme items a tenth of a standard deviation too near to the middle; so each slope and curvature of the log
likelihood is averaged over the distribution of its predictor, which moves the centre from the mode to the mean (Opper &
Archambeau 2009). Newton steps find it, as they find the mode. The other parameters keep a distribution of their own, by
the bound on the evidence that each value of them has, and the scores move and widen with them.

The precision is that of a graph: per pair the information of its comparisons, per item the prior's. Of few items it is
a dense matrix (:class:`_Dense`). Of many, conjugate gradients solve with it (:class:`_Graph`). A draw is then the
solution for a right side of noise, that of every cell times the root of its information (Papandreou & Yuille 2010),
many at a time. Variances come from such draws, but only the part that the neighbours add: given them, an item (or the
two of a cell) has a variance that is known exactly, so that 32 draws do (Rao & Blackwell). The noise is the same for
every value of the other parameters, so that differences between these are not left to chance. The evidence needs no
determinant: its slope is known, and is added up along the way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from pairscale.core.arrays import Floats
from pairscale.models.bayes.convergence import BLOCK
from pairscale.models.bayes.density import members, position_columns, slope_basis
from pairscale.models.bayes.model import SLOPE_SD, Cells, Differences, JudgeParameters, gauss_hermite, likelihood_of

__all__ = ["DENSE", "N_DRAWS", "Normal", "Target", "around_center", "differences", "draw_around"]

DENSE = 200
"""Of more items, matrices of all pairs take longer than conjugate gradients."""
N_DRAWS = 1000

_OUT = 2.0  # the other parameters are looked at so many standard deviations either way
_LONGEST = 2.0  # step of a score, in standard deviations of its prior
_WIDEST = 8.0  # of the logarithm of a spread or of the error's scale: beyond, matrices are no longer positive
_SEARCH = 40  # steps at most, for the other parameters
_ROUGH = 1.0  # how far off a bound on the log evidence may be
_FINE = np.linspace(-4.5, 4.5, 361)
_PROBES = 32
_PROBE_SEED = 20261116  # the distribution depends on the comparisons alone, its draws on the seed
_BLOCK = 100  # draws that are solved for at a time
_DRAWS_TOLERANCE = 3e-3
_MOST_STEPS = 300  # of conjugate gradients
_LEAST = 0.05  # of an item's information, what negative curvatures leave of it


@dataclass(frozen=True, slots=True, eq=False)
class Normal:
    """The normal distribution of scores and position effects, given the other parameters.

    Attributes:
        judge: these parameters: noise, slopes and spread, those that there are.
        mean: its mean.
        variance: the diagonal of its covariance.
        spread: per cell, the variance of the predictor.
        shared: per cell, the covariance of the predictor with the difference of the scores.
        factor: its precision.
        evidence: the bound on the log evidence, up to a constant.
        slope: of that, per parameter.
    """

    judge: Floats
    mean: Floats
    variance: Floats
    spread: Floats
    shared: Floats
    factor: Any
    evidence: float
    slope: Floats


class _Averages(NamedTuple):
    """Over the distribution of each predictor: log likelihood, its slope and curvature, and its slope in the noise."""

    value: float
    slope: Floats
    curvature: Floats
    in_noise: float


class _Dense:
    """A precision as the lower Cholesky factor of a matrix."""

    def __init__(self, target: Target, weight: Floats, precision: Floats, slope: Floats | None) -> None:
        self._target, self._slope = target, slope
        # A lapse makes an upset's curvature negative; where that is too much, it counts as none.
        for curvature in (weight, np.maximum(weight, 0.0)):
            self._lower, failed = lapack.dpotrf(self._matrix(curvature, precision), lower=True, clean=True)
            if not failed:
                return
        raise np.linalg.LinAlgError("the precision of the scores is not positive")  # pragma: no cover

    def _matrix(self, weight: Floats, precision: Floats) -> Floats:
        target, cells, n = self._target, self._target.cells, self._target.n
        out = np.zeros((target.size, target.size), order="F")
        own = weight if self._slope is None else weight * self._slope**2
        between = np.bincount(cells.winner * n + cells.loser, own, n * n).reshape(n, n)
        out[:n, :n] = -between - between.T
        diagonal = np.bincount(cells.winner, own, n) + np.bincount(cells.loser, own, n)
        out[n:, :n] = target.border(weight, self._slope)
        out[n:, n:] = (weight * target.columns) @ target.columns.T
        out[np.diag_indices(n)] += diagonal
        out[np.diag_indices(target.size)] += precision
        return out

    @property
    def log_root(self) -> float | None:
        """The logarithm of the root of the determinant."""
        return float(np.log(np.diag(self._lower)).sum())

    def solve(self, right: Floats, tolerance: float = 1e-4) -> Floats:
        """The inverse times ``right``; exact, whatever the tolerance."""
        del tolerance
        return np.asarray(lapack.dpotrs(self._lower, right, lower=True)[0])

    def noise(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws around a mean of zero, one per column, and the variances that they should have."""
        noise, _ = lapack.dtrtrs(self._lower, rng.standard_normal((self._target.size, count)), lower=True, trans=1)
        return np.asarray(noise), self.variances()[0]

    def variances(self) -> tuple[Floats, Floats, Floats]:
        """The diagonal of the covariance; per cell, the predictor's variance and its covariance with the difference."""
        lower, _ = lapack.dpotri(self._lower, lower=True)
        diagonal = np.diag(lower).copy()
        target, cells = self._target, self._target.cells
        high, low = np.maximum(cells.winner, cells.loser), np.minimum(cells.winner, cells.loser)
        gap = diagonal[cells.winner] + diagonal[cells.loser] - 2 * lower[high, low]
        slope = 1.0 if self._slope is None else self._slope
        shared, spread = slope * gap, slope**2 * gap
        for at, column in enumerate(target.columns, start=target.n):  # no answer has two position effects
            along = lower[at, cells.winner] - lower[at, cells.loser]
            shared = shared + column * along
            spread = spread + 2 * column * slope * along + column**2 * diagonal[at]
        return diagonal, np.maximum(spread, 0.0), shared


class _Graph:
    """A precision as the information between neighbours; none of it is negative."""

    def __init__(self, target: Target, weight: Floats, precision: Floats, slope: Floats | None) -> None:
        cells, n = target.cells, target.n
        if (weight < 0).any():
            # What a negative curvature takes off is taken off the other comparisons of the same items instead, so that
            # all information is positive and has a root.
            positive = np.maximum(weight, 0.0)
            whole, kept = (
                np.bincount(cells.winner, values, n) + np.bincount(cells.loser, values, n)
                for values in (weight, positive)
            )
            share = np.sqrt(np.clip(whole / np.maximum(kept, 1e-300), _LEAST, 1.0))
            weight = positive * share[cells.winner] * share[cells.loser]
        self._target, self._weight, self._precision, self._slope = target, weight, precision, slope
        own = weight if slope is None else weight * slope**2
        diagonal = np.bincount(cells.winner, own, n) + np.bincount(cells.loser, own, n)
        of_pair = np.bincount(target.pair, own).astype(np.float64)
        pattern = target.pattern
        self._between = sparse.csr_array((of_pair[pattern.data - 1], pattern.indices, pattern.indptr), shape=(n, n))
        self._pair = of_pair[target.pair]
        self._border = target.border(weight, slope).T
        of_position = (weight * np.square(target.columns)).sum(axis=1)
        self._diagonal = np.append(diagonal, of_position) + precision

    log_root = None

    def _times(self, x: Floats) -> Floats:
        n = self._target.n
        out = self._diagonal[:, None] * x
        out[:n] -= np.asarray(self._between @ x[:n])
        if self._border.shape[1]:
            out[:n] += self._border @ x[n:]
            out[n:] += self._border.T @ x[:n]
        return np.asarray(out)

    def solve(self, right: Floats, tolerance: float = 1e-4, start: Floats | None = None) -> Floats:
        """The inverse times ``right``: conjugate gradients, all columns at once, scaled by the diagonal."""
        columns = right.reshape(len(right), -1)
        x = np.zeros_like(columns) if start is None else start.copy()
        left = columns.copy() if start is None else columns - self._times(x)
        scale = 1 / self._diagonal[:, None]
        limit = tolerance**2 * np.einsum("ic,ic->c", columns, columns * scale) + 1e-300
        along, before = np.zeros_like(columns), np.ones(columns.shape[1])
        for _ in range(_MOST_STEPS):
            scaled = scale * left
            size = np.einsum("ic,ic->c", left, scaled)
            if (size <= limit).all():
                break
            along *= size / before
            along += scaled
            product = self._times(along)
            step = size / np.maximum(np.einsum("ic,ic->c", along, product), 1e-300)
            x += step * along
            left -= step * product
            before = np.maximum(size, 1e-300)
        return x.reshape(right.shape)

    def _right(self, random: tuple[Floats, Floats]) -> Floats:
        """Noise whose covariance is the precision."""
        target, (of_cells, of_rows) = self._target, random
        rooted = np.sqrt(self._weight)[:, None] * of_cells
        right = np.sqrt(self._precision)[:, None] * of_rows
        for at, column in enumerate(target.columns, start=target.n):
            right[at] += column @ rooted
        if self._slope is not None:
            rooted *= self._slope[:, None]
        right[: target.n] += target.incidence @ rooted
        return right

    def _variance(self, right: Floats, x: Floats) -> Floats:
        """The variances: that of each row given all others, and what the others add."""
        rest = x - right / self._diagonal[:, None]
        return np.asarray(1 / self._diagonal + np.einsum("ic,ic->i", rest, rest) / x.shape[1])

    def noise(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws around a mean of zero, one per column, and the variances that they should have."""
        out, variance = np.empty((self._target.size, count)), np.zeros(self._target.size)
        for at in range(0, count, _BLOCK):
            stop = min(at + _BLOCK, count)
            right = self._right(self._target.random(stop - at, rng))
            out[:, at:stop] = self.solve(right, _DRAWS_TOLERANCE)
            variance += (stop - at) / count * self._variance(right, out[:, at:stop])
        return out, variance

    def variances(self) -> tuple[Floats, Floats, Floats]:
        """The diagonal of the covariance; per cell, the predictor's variance and its covariance with the difference."""
        target, cells, d = self._target, self._target.cells, self._diagonal
        right = self._right(target.probes)
        target.last = x = self.solve(right, _DRAWS_TOLERANCE, target.last)
        one, two = d[cells.winner], d[cells.loser]
        determinant = one * two - self._pair**2
        by_one, by_two = (two - self._pair) / determinant, (one - self._pair) / determinant
        rest = x[cells.winner] - x[cells.loser]
        rest -= by_one[:, None] * right[cells.winner] - by_two[:, None] * right[cells.loser]
        slope = np.ones(len(rest)) if self._slope is None else self._slope
        whole = slope[:, None] * rest
        for at, column in enumerate(target.columns, start=target.n):
            whole += column[:, None] * x[at]
        shared = slope * (by_one + by_two) + np.einsum("kc,kc->k", whole, rest) / _PROBES
        spread = slope**2 * (by_one + by_two) + np.einsum("kc,kc->k", whole, whole) / _PROBES
        return self._variance(right, x), spread, shared


class Target:
    """The posterior, in terms of means over a normal distribution.

    The rows are the scores, less the mean of their prior, and then the position effects.
    """

    def __init__(self, cells: Cells, model: JudgeParameters, *, dense: bool | None = None) -> None:
        self.cells, self.model, self.n = cells, model, cells.n_items
        self.likelihood = likelihood_of(cells, model)
        self.columns = position_columns(cells, model)
        self.basis = slope_basis(cells)
        self.size = self.n + len(self.columns)
        self.names = [name for name in model.names if name not in model.position_names]
        # All scores move with tau, so it takes some steps to arrive; with the noise they hardly move.
        self.steps = 2 if model.prior_sd is None or model.probabilities else 1
        self._members = members(cells, model.judges) * cells.times
        self._offset: Floats | float = 0.0
        if model.prior_mean is not None:
            mean = np.array(model.prior_mean)
            self._offset = mean[cells.winner] - mean[cells.loser]
        self._precision = _Dense if (cells.n_items <= DENSE if dense is None else dense) else _Graph
        self.last: Floats | None = None  # where the next solution for the probes begins
        if self._precision is _Graph:
            self._lay_out()

    def _lay_out(self) -> None:
        """What every graph shares: the pairs, the places of a matrix that they fill, and the probes."""
        cells, n, k = self.cells, self.n, len(self.cells.winner)
        low, high = np.minimum(cells.winner, cells.loser), np.maximum(cells.winner, cells.loser)
        pairs, self.pair = np.unique(low * n + high, return_inverse=True)
        one, two = pairs // n, pairs % n
        # Which pair each entry of the matrix is of: numbers from 1, so that none of them is taken for nothing.
        at = np.tile(np.arange(len(pairs)) + 1, 2)
        self.pattern = sparse.csr_array((at, (np.append(one, two), np.append(two, one))), shape=(n, n))
        self.pattern.sort_indices()
        ends = (np.append(cells.winner, cells.loser), np.tile(np.arange(k), 2))
        self.incidence = sparse.csr_array((np.repeat([1.0, -1.0], k), ends), shape=(n, k))
        self.probes = self.random(_PROBES, np.random.default_rng(_PROBE_SEED))

    def random(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Noise for each cell and row."""
        return rng.standard_normal((len(self.cells.winner), count)), rng.standard_normal((self.size, count))

    def start(self) -> Floats:
        """Where the search for the other parameters begins."""
        return np.array([self.likelihood.start.get(name, 0.0) for name in self.names])

    def of(self, judge: Floats, name: str) -> float:
        """One of the other parameters, within bounds."""
        return float(np.clip(judge[self.names.index(name)], -_WIDEST, _WIDEST))

    def noise(self, judge: Floats) -> float:
        """The lapse rate, or the logarithm of the error's scale; 0 without either."""
        if self.likelihood.noise is None:
            return 0.0
        at = float(judge[self.names.index(self.likelihood.noise)])
        return float(self.likelihood.link(at if self.likelihood.noise == "u" else self.of(judge, "s"))[0])

    def slope(self, judge: Floats) -> Floats | None:
        """Per cell, the slope of its judge; None when judges are pooled."""
        if self.basis is None or self.cells.judge is None:
            return None
        alpha = np.array([judge[self.names.index(name)] for name in self.model.slope_names])
        return np.asarray((1 + self.basis @ alpha)[self.cells.judge])

    def precision(self, judge: Floats) -> Floats:
        """The prior's, per row."""
        sd = self.model.prior_sd
        tau = math.exp(self.of(judge, "t")) if sd is None else np.asarray(sd)
        out = np.full(self.size, self.model.position_sd**-2)
        out[: self.n] = tau**-2
        return out

    def abilities(self, x: Floats) -> Floats:
        """The scores of draws, one per row."""
        theta = x[:, : self.n]
        return theta if self.model.prior_mean is None else theta + np.array(self.model.prior_mean)

    def gaps(self, mean: Floats) -> Floats:
        """Per cell, the difference of the scores."""
        return np.asarray(mean[self.cells.winner] - mean[self.cells.loser] + self._offset)

    def predictors(self, mean: Floats, judge: Floats) -> Floats:
        """Per cell, how far the winner stands above the loser for the judge, the position effect included."""
        slope, d = self.slope(judge), self.gaps(mean)
        if slope is not None:
            d = slope * d
        return d + mean[self.n :] @ self.columns

    def averages(self, mean: Floats, spread: Floats | None, judge: Floats) -> _Averages:
        """Over the distribution of the predictors; without a spread, at their mean."""
        eta, noise, times = self.predictors(mean, judge), self.noise(judge), self.cells.times
        if spread is None:
            found = self.likelihood.terms(eta, noise)
            curvature = found.curvature
            if self.model.probabilities:  # towards the mode by weighted least squares, which always gets nearer
                curvature = self.likelihood.information(eta, noise)
            return _Averages(float(times @ found.value), found.slope, curvature, 0.0)
        value, in_noise = 0.0, 0.0
        slope, curvature = np.zeros(len(eta)), np.zeros(len(eta))
        sd = np.sqrt(spread)
        for node, weight in zip(*gauss_hermite(self.likelihood.nodes), strict=True):
            found = self.likelihood.terms(eta + node * sd, noise)
            value += weight * float(times @ found.value)
            in_noise += weight * float((times * found.in_noise).sum())
            slope += weight * found.slope
            curvature += weight * found.curvature
        return _Averages(value, slope, curvature, in_noise)

    def border(self, weight: Floats, slope: Floats | None) -> Floats:
        """The information between position effects, a row each, and scores."""
        signed = (weight if slope is None else weight * slope) * self.columns
        return np.reshape([self._per_item(row) for row in signed], (len(signed), self.n))

    def _per_item(self, values: Floats) -> Floats:
        cells, n = self.cells, self.n
        return np.asarray(np.bincount(cells.winner, values, n) - np.bincount(cells.loser, values, n))

    def gradient(self, slope: Floats, mean: Floats, precision: Floats, of_judge: Floats | None) -> Floats:
        """Of the bound, in the mean."""
        weighted = slope * self.cells.times
        out = -precision * mean
        out[self.n :] += self.columns @ weighted
        out[: self.n] += self._per_item(weighted if of_judge is None else weighted * of_judge)
        return out

    def factor(self, curvature: Floats, precision: Floats, slope: Floats | None) -> _Dense | _Graph:
        """The precision that these curvatures give."""
        return self._precision(self, curvature * self.cells.times, precision, slope)

    def mode(self, judge: Floats, steps: int = 60) -> Floats:
        """The most probable scores and position effects, roughly, given the other parameters."""
        mean, precision, of_judge = np.zeros(self.size), self.precision(judge), self.slope(judge)
        for at in range(steps):
            found = self.averages(mean, None, judge)
            curvature = found.curvature
            if at > 8:  # not on its way: no negative curvatures, and shorter steps
                curvature = np.maximum(curvature, 0.0) * 2
            right = self.gradient(found.slope, mean, precision, of_judge)
            step = self.factor(curvature, precision, of_judge).solve(right, 1e-2)
            largest = float(np.abs(step).max())
            mean = mean + step * min(1.0, 2.0 / max(largest, 1e-300))
            if largest < 0.05:
                break
        return mean

    def around(
        self, judge: Floats, mean: Floats, spread: Floats | None, steps: int = 1, since: Normal | None = None
    ) -> Normal:
        """The normal distribution for a value of the other parameters, by steps from that of another one.

        Args:
            judge: these parameters.
            mean: where to start.
            spread: per cell, the variance of the predictor there; None for a start at a mode.
            steps: how many.
            since: the distribution whose evidence that of this one is counted from, where there is no determinant.
        """
        precision, of_judge = self.precision(judge), self.slope(judge)
        longest = _LONGEST / math.sqrt(precision[0])

        def stepped(spread: Floats | None) -> tuple[Floats, _Dense | _Graph]:
            found = self.averages(mean, spread, judge)
            factor = self.factor(found.curvature, precision, of_judge)
            right = self.gradient(found.slope, mean, precision, of_judge)
            step = factor.solve(right)
            furthest = float(np.abs(step[: self.n]).max())
            if furthest > longest:  # not on its way, as in mode()
                factor = self.factor(np.maximum(found.curvature, 0.0), precision, of_judge)
                step = factor.solve(right)
                furthest = float(np.abs(step[: self.n]).max())
            return mean + step * min(1.0, longest / max(furthest, 1e-300)), factor

        for _ in range(steps):
            mean, held = stepped(spread)
            variance, spread, shared = held.variances()
        assert spread is not None  # noqa: S101
        # The bound is flat where it is largest, so its covariance may be that of one step before.
        mean, factor = stepped(spread)
        found = self.averages(mean, spread, judge)
        squares = mean**2 + variance
        log, slope = self._priors(judge, mean, found, shared, float(squares[: self.n].sum()))
        bound = found.value - 0.5 * float(precision @ squares) + log
        if held.log_root is not None:
            evidence = bound - held.log_root
        elif since is None:
            evidence = 0.0
        else:
            evidence = since.evidence + 0.5 * float((judge - since.judge) @ (slope + since.slope))
        return Normal(judge, mean, variance, spread, shared, factor, evidence, slope)

    def _priors(
        self, judge: Floats, mean: Floats, found: _Averages, shared: Floats, squares: float
    ) -> tuple[float, Floats]:
        """What the other parameters add to the bound by their priors, and the slope of the whole bound in them."""
        total, slopes = 0.0, []
        of_alpha = self._in_alpha(mean, found, shared)
        for name, value in zip(self.names, judge.tolist(), strict=True):
            if name == "t":
                log, slope = self.likelihood.spread_prior(value, squares, self.n)
            elif name == self.likelihood.noise:
                in_noise = found.in_noise * float(self.likelihood.link(value)[1])
                log, slope = self.likelihood.noise_prior(value, in_noise)
            else:
                log = -0.5 * (value / SLOPE_SD) ** 2
                slope = of_alpha[name] - value / SLOPE_SD**2
            total += float(log)
            slopes.append(float(slope))
        return total, np.array(slopes)

    def _in_alpha(self, mean: Floats, found: _Averages, shared: Floats) -> dict[str, float]:
        """The slope of the averaged likelihood in alpha: by Stein's lemma, E[f'(eta) d] = E[f'] E[d] + E[f''] Cov."""
        if self.basis is None:
            return {}
        per_judge = self._members @ (found.slope * self.gaps(mean) - found.curvature * shared)
        return dict(zip(self.model.slope_names, self.basis.T @ per_judge, strict=True))

    def guess(self, here: Normal) -> Floats:
        """A first guess of the curvature of the evidence in the other parameters."""
        guesses = {"u": 1.5, "t": float(self.n), "s": float(self.cells.times.sum())}
        out = np.diag([guesses.get(name, 0.0) for name in self.names])
        if self.basis is not None:
            curvature = self.averages(here.mean, here.spread, here.judge).curvature
            squares = np.square(self.gaps(here.mean)) + np.abs(here.shared)
            at = [self.names.index(name) for name in self.model.slope_names]
            per_judge = self._members @ (np.maximum(curvature, 0.0) * squares)
            out[np.ix_(at, at)] = (self.basis.T * per_judge) @ self.basis + np.eye(len(at)) / SLOPE_SD**2
        return out


def differences(cells: Cells, model: JudgeParameters) -> Differences:
    """The predictors that outcomes are explained by, without drawing anything."""
    target = Target(cells, model)
    center, _ = around_center(target)
    return Differences(target.predictors(center.mean, center.judge), center.spread, target.noise(center.judge))


def draw_around(target: Target, size: int, rng: np.random.Generator) -> tuple[Floats, dict[str, Floats]]:
    """Draws of abilities and b (a row each), and of the judge's other parameters by name.

    They come in pairs on opposite sides of the mean, and are stretched to the right width, so that means and standard
    deviations are not left to chance.
    """
    center, axes = around_center(target)
    noise, variance = center.factor.noise(size // 2, rng)
    noise = np.concatenate([noise.T, -noise.T])
    noise *= np.sqrt(variance / np.einsum("si,si->i", noise, noise) * (size - 1))
    judge = np.tile(center.judge, (size, 1))
    curves: list[tuple[Floats, list[Floats], list[Floats]]] = []  # per axis: places, and how means and widths move
    for direction in axes.T:
        ends, axis = _ends(target, center, direction)
        z = _from_density(center, ends, axis, size // 2, rng)
        judge += z[:, None] * axis
        widened = [0.5 * np.log(end.variance / center.variance) for end in ends]
        curves.append((z, [end.mean - center.mean for end in ends], widened))
    height = max(1, BLOCK // target.size)
    for start in range(0, size, height):  # of ten thousand items, every array of all draws is a gigabyte
        rows = slice(start, start + height)
        mean, log_sd = np.zeros(target.size), np.zeros(target.size)
        for z, moved, widened in curves:
            mean = mean + _curve(z[rows], *moved)
            log_sd = log_sd + _curve(z[rows], *widened)
        noise[rows] *= np.exp(log_sd)
        noise[rows] += mean
        noise[rows] += center.mean
    return noise, dict(zip(target.names, judge.T, strict=True))


def around_center(target: Target) -> tuple[Normal, Floats]:
    """The normal distribution where the judge's parameters are most probable, and their axes (columns)."""
    judge = target.start()
    here = target.around(judge, target.mode(judge), None, steps=3 * target.steps)
    if not target.names:
        return here, np.empty((0, 0))
    curvature = target.guess(here)
    shorter = 1.0
    for at in range(_SEARCH):
        step = np.linalg.solve(curvature, here.slope)
        close = step @ curvature @ step < 0.0003
        if (close and at > 1) or shorter < 0.1:
            break
        if close:  # a look around all the same, or the curvature would be a guess
            step = 0.3 / np.sqrt(np.diag(curvature))
        step = shorter * step / max(1.0, float(np.abs(step).max()))
        there = target.around(here.judge + step, here.mean, here.spread, target.steps, since=here)
        bent = here.slope - there.slope
        if step @ curvature @ step > 0.01 and step @ bent > 1e-3 * (step @ step):  # slopes over less say little
            along = curvature @ step
            curvature = curvature - np.outer(along, along) / (step @ along) + np.outer(bent, bent) / (step @ bent)
        flatter = np.abs(there.slope).max() < np.abs(here.slope).max()  # the evidence is not exact to the last digit
        if there.evidence > here.evidence or (flatter and there.evidence > here.evidence - _ROUGH):
            here, shorter = there, 1.0
        elif not close:  # too far: where the steps of a distribution do not converge, neither figure means anything
            shorter /= 2
    values, vectors = np.linalg.eigh(curvature)
    return here, vectors / np.sqrt(np.maximum(values, 0.1))  # where the search saw no maximum, it is at least that wide


def _ends(target: Target, center: Normal, axis: Floats) -> tuple[tuple[Normal, Normal], Floats]:
    """The distributions some way out on an axis, and the axis, its length corrected when that is too near or far."""
    for last in (False, True):
        low, high = (
            target.around(center.judge + sign * _OUT * axis, center.mean, center.spread, target.steps, since=center)
            for sign in (-1, 1)
        )
        drop = center.evidence - 0.5 * (low.evidence + high.evidence)  # of a normal density: _OUT² / 2
        ratio = 0.5 * _OUT**2 / max(drop, 0.02)
        if last or 0.4 < ratio < 2.5:
            break
        axis = axis * math.sqrt(min(max(ratio, 0.01), 10.0))
    if center.factor.log_root is not None:
        return (low, high), axis
    # Without a determinant: the evidence that the parabola through three slopes gives.
    down, here, up = (float(end.slope @ axis) for end in (low, center, high))
    below = center.evidence - _OUT * (5 * down + 8 * here - up) / 12
    above = center.evidence + _OUT * (5 * up + 8 * here - down) / 12
    return (replace(low, evidence=below), replace(high, evidence=above)), axis


def _from_density(
    center: Normal, ends: tuple[Normal, Normal], axis: Floats, count: int, rng: np.random.Generator
) -> Floats:
    """Places along an axis, each twice, from the density that the bound gives; evenly spread over it."""
    from scipy.interpolate import CubicHermiteSpline  # which takes long to import, and most runs never get here

    nodes = (ends[0], center, ends[1])
    at = np.array([-_OUT, 0.0, _OUT])
    values = np.array([node.evidence for node in nodes]) - center.evidence
    slopes = np.array([float(node.slope @ axis) for node in nodes])
    log = CubicHermiteSpline(at, values, slopes)(np.clip(_FINE, -_OUT, _OUT))
    log += np.minimum(_FINE + _OUT, 0) * max(slopes[0], 0.3) + np.maximum(_FINE - _OUT, 0) * min(slopes[2], -0.3)
    density = np.exp(log - log.max())
    below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    level = (rng.permutation(count) + rng.random(count)) / count
    return np.tile(np.interp(level * below[-1], below, _FINE), 2)


def _curve(z: Floats, low: Floats, high: Floats) -> Floats:
    """The parabola through nothing in the middle and these two at the ends, at each z (a row each)."""
    z = np.clip(z, -1.5 * _OUT, 1.5 * _OUT)[:, None] / _OUT
    return np.asarray(0.5 * z * (high - low) + 0.5 * z**2 * (high + low))
