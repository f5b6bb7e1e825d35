"""The normal distribution that is nearest to the posterior: a fast stand-in for the sampler.

Given the noise, the spread and the slopes, scores and position effects get a normal distribution. Laplace's, around the
mode, puts extreme items a tenth of a standard deviation too near to the middle; so each slope and curvature of the log
likelihood is averaged over the distribution of its predictor, which moves the centre from the mode to the mean (Opper &
Archambeau 2009). Newton steps find it, as they find the mode. The other parameters keep a distribution of their own, by
the bound on the evidence that each value of them has, and the scores move and widen with them.

Judges count as one: slopes are for the sampler.

The noise behind variances is the same for every value of the other parameters, so that differences between these are
not left to chance. Of many items the evidence needs no determinant: its slope is known, and is added up along the way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pairscale.core.arrays import Floats
from pairscale.models.bayes.convergence import BLOCK
from pairscale.models.bayes.density import Density
from pairscale.models.bayes.model import Cells, JudgeParameters, Terms, gauss_hermite
from pairscale.models.bayes.precision import Dense, Graph, Layout

DENSE = 200
"""Of more items, matrices of all pairs take longer than conjugate gradients."""
N_DRAWS = 1000

_OUT = 2.0  # standard deviations either way, where the other parameters are looked at
_LONGEST = 2.0  # step of a score, in standard deviations of its prior
_WIDEST = 8.0  # of the logarithm of a spread or of the error's scale: beyond, matrices are no longer positive
_SEARCH = 40  # steps at most, for the other parameters
_ROUGH = 1.0  # how far off a bound on the log evidence may be
_FINE = np.linspace(-4.5, 4.5, 361)


@dataclass(frozen=True, slots=True, eq=False)
class Normal:
    """The normal distribution of scores and position effects, given the other parameters.

    Attributes:
        judge: these parameters: noise and spread, those that there are.
        mean: its mean.
        variance: the diagonal of its covariance.
        spread: per cell, the variance of the predictor.
        factor: its precision.
        evidence: the bound on the log evidence, up to a constant.
        slope: of that, per parameter.
    """

    judge: Floats
    mean: Floats
    variance: Floats
    spread: Floats
    factor: Dense | Graph
    evidence: float
    slope: Floats


class Target:
    """The posterior, in terms of means over a normal distribution.

    The rows are the scores, and then the position effects.
    """

    def __init__(self, cells: Cells, model: JudgeParameters, *, dense: bool | None = None) -> None:
        cells = replace(cells, judge=None, share=None)
        model = replace(model, judges=1)
        self.cells = cells
        self.model = model
        self.n = cells.n_items
        self.density = Density(cells, model)
        self.likelihood = self.density.likelihood
        self.size = self.n + len(self.density.columns)
        self.names = [name for name in model.names if name not in model.position_names]
        # All scores move with tau, so it takes some steps to arrive; with the noise they hardly move.
        self.steps = 2 if model.prior_sd is None or model.probabilities else 1
        row = self.density.row
        self._rows = [*range(self.n), *(row[name] for name in model.position_names)]
        self._judge_rows = [row[name] for name in self.names]
        self._most = np.array([_WIDEST if name in ("t", "s") else np.inf for name in self.names])
        self._layout = None
        if not (cells.n_items <= DENSE if dense is None else dense):
            self._layout = Layout(cells, self.size)

    def start(self) -> Floats:
        """Where the search for the other parameters begins."""
        return self.density.start()[self._judge_rows, 0]

    def at(self, mean: Floats, judge: Floats) -> Floats:
        """All parameters, as the density has them (one column), within bounds."""
        x = np.zeros((self.density.size, 1))
        x[self._rows, 0] = mean
        x[self._judge_rows, 0] = np.clip(judge, -self._most, self._most)
        return x

    def noise(self, judge: Floats) -> float:
        """The lapse rate, or the logarithm of the error's scale; 0 without either."""
        return float(self.density.link(self.at(np.zeros(self.size), judge))[0][0])

    def precision(self, judge: Floats) -> Floats:
        """The prior's, per row."""
        out = np.full(self.size, self.model.position_sd**-2)
        out[: self.n] = self.density.prior_precision(self.at(np.zeros(self.size), judge))
        return out

    def predictors(self, mean: Floats, judge: Floats) -> Floats:
        """Per cell: how far the winner stands above the loser for the judge."""
        return self.density.predictors(self.at(mean, judge))[0][:, 0]

    def averages(self, mean: Floats, spread: Floats | None, judge: Floats) -> Terms:
        """Over the distribution of the predictors, values added up; without a spread, at their mean."""
        eta = self.predictors(mean, judge)
        noise = self.noise(judge)
        times = self.cells.times
        if spread is None:
            terms = self.likelihood.terms(eta, noise)
            curvature = terms.curvature
            if self.model.probabilities:  # towards the mode by weighted least squares, which always gets nearer
                curvature = self.likelihood.information(eta, noise)
            return Terms(times @ terms.value, terms.slope, curvature, 0.0)
        value = 0.0
        in_noise = 0.0
        slope = np.zeros(len(eta))
        curvature = np.zeros(len(eta))
        sd = np.sqrt(spread)
        for node, weight in zip(*gauss_hermite(self.likelihood.nodes), strict=True):
            terms = self.likelihood.terms(eta + node * sd, noise)
            value += weight * (times @ terms.value)
            in_noise += weight * (times * terms.in_noise).sum()
            slope += weight * terms.slope
            curvature += weight * terms.curvature
        return Terms(value, slope, curvature, in_noise)

    def gradient(self, slope: Floats, mean: Floats, judge: Floats) -> Floats:
        """Of the bound, in the mean."""
        weighted = slope * self.cells.times
        out = -self.precision(judge) * mean
        out[self.n :] += self.density.columns @ weighted
        out[: self.n] += self.cells.sums(weighted, -weighted)
        return out

    def factor(self, curvature: Floats, judge: Floats) -> Dense | Graph:
        """The precision that these curvatures give."""
        prior = self.precision(judge)
        weight = curvature * self.cells.times
        arguments = (self.cells, weight, None, self.density.columns, prior[: self.n], prior[self.n :])
        return Dense(*arguments) if self._layout is None else Graph(self._layout, *arguments)

    def mode(self, judge: Floats, steps: int = 60) -> Floats:
        """The most probable scores and position effects, roughly, given the other parameters."""
        mean = np.zeros(self.size)
        for at in range(steps):
            terms = self.averages(mean, None, judge)
            curvature = terms.curvature
            if at > 8:  # not on its way: no negative curvatures, and shorter steps
                curvature = np.maximum(curvature, 0.0) * 2
            step = self.factor(curvature, judge).solve(self.gradient(terms.slope, mean, judge), 1e-2)
            largest = np.abs(step).max()
            mean = mean + step * min(1.0, 2.0 / max(largest, 1e-300))
            if largest < 0.05:
                break
        return mean

    def _stepped(self, mean: Floats, spread: Floats | None, judge: Floats) -> tuple[Floats, Dense | Graph]:
        """One step from a mean, and the precision there."""
        longest = _LONGEST / math.sqrt(self.precision(judge)[0])
        terms = self.averages(mean, spread, judge)
        right = self.gradient(terms.slope, mean, judge)
        factor = self.factor(terms.curvature, judge)
        step = factor.solve(right)
        furthest = np.abs(step[: self.n]).max()
        if furthest > longest:  # not on its way, as in mode()
            factor = self.factor(np.maximum(terms.curvature, 0.0), judge)
            step = factor.solve(right)
            furthest = np.abs(step[: self.n]).max()
        return mean + step * min(1.0, longest / max(furthest, 1e-300)), factor

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
        for _ in range(steps):
            mean, held = self._stepped(mean, spread, judge)
            variance, spread = held.variances()
        # The bound is flat where it is largest, so its covariance may be that of one step before.
        mean, factor = self._stepped(mean, spread, judge)
        terms = self.averages(mean, spread, judge)
        squares = mean**2 + variance
        log, slope = self._priors(judge, terms, squares[: self.n].sum())
        evidence = 0.0
        if held.log_root is not None:
            evidence = terms.value - 0.5 * (self.precision(judge) @ squares) + log - held.log_root
        elif since is not None:
            evidence = since.evidence + 0.5 * float((judge - since.judge) @ (slope + since.slope))
        return Normal(judge, mean, variance, np.asarray(spread), factor, evidence, slope)

    def _priors(self, judge: Floats, terms: Terms, squares: float) -> tuple[float, Floats]:
        """What the other parameters add to the bound by their priors, and the slope of the whole bound in them."""
        total = 0.0
        slopes = []
        for name, value in zip(self.names, judge.tolist(), strict=True):
            if name == "t":
                log, slope = self.likelihood.spread_prior(value, squares, self.n)
            else:
                in_noise = terms.in_noise * self.likelihood.link(value)[1]
                log, slope = self.likelihood.noise_prior(value, in_noise)
            total += log
            slopes.append(slope)
        return total, np.array(slopes)


def differences(cells: Cells, model: JudgeParameters) -> tuple[Floats, Floats, float]:
    """Where the other parameters are most probable: per cell, mean and variance of its predictor; the lapse rate.

    The spread of the scores is learned: a prior that is too narrow would take a wide scale for agreement of repeats.
    """
    target = Target(cells, replace(model, prior_sd=None))
    center, _ = around_center(target)
    return target.predictors(center.mean, center.judge), center.spread, target.noise(center.judge)


def draw_around(target: Target, size: int, rng: np.random.Generator) -> tuple[Floats, dict[str, Floats]]:
    """Draws of abilities and b (a row each), and of the judge's parameters by name.

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
        mean = np.zeros(target.size)
        log_sd = np.zeros(target.size)
        for z, moved, widened in curves:
            mean = mean + _curve(z[rows], *moved)
            log_sd = log_sd + _curve(z[rows], *widened)
        noise[rows] *= np.exp(log_sd)
        noise[rows] += mean
        noise[rows] += center.mean
    draws = dict(zip(target.names, judge.T, strict=True))
    for at, name in enumerate(target.model.position_names, start=target.n):
        draws[name] = noise[:, at].copy()
    return noise, draws


def around_center(target: Target) -> tuple[Normal, Floats]:
    """The normal distribution where the judge's parameters are most probable, and their axes (columns)."""
    judge = target.start()
    here = target.around(judge, target.mode(judge), None, steps=3 * target.steps)
    if not target.names:
        return here, np.empty((0, 0))
    guesses = {"u": 1.5, "t": target.n, "s": target.cells.times.sum()}  # of the curvature of the evidence
    curvature = np.diag([float(guesses[name]) for name in target.names])
    shorter = 1.0
    for at in range(_SEARCH):
        step = np.linalg.solve(curvature, here.slope)
        close = step @ curvature @ step < 0.0003
        if (close and at > 1) or shorter < 0.1:
            break
        if close:  # a look around all the same, or the curvature would be a guess
            step = 0.3 / np.sqrt(np.diag(curvature))
        step = shorter * step / max(1.0, np.abs(step).max())
        moved = target.around(here.judge + step, here.mean, here.spread, target.steps, since=here)
        bent = here.slope - moved.slope
        if step @ curvature @ step > 0.01 and step @ bent > 1e-3 * (step @ step):  # slopes over less say little
            along = curvature @ step
            curvature = curvature - np.outer(along, along) / (step @ along) + np.outer(bent, bent) / (step @ bent)
        flatter = np.abs(moved.slope).max() < np.abs(here.slope).max()  # the evidence is not exact to the last digit
        if moved.evidence > here.evidence or (flatter and moved.evidence > here.evidence - _ROUGH):
            here = moved
            shorter = 1.0
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
    nodes = (ends[0], center, ends[1])
    at = np.array([-_OUT, 0.0, _OUT])
    values = np.array([node.evidence for node in nodes]) - center.evidence
    slopes = np.array([node.slope @ axis for node in nodes])
    inside = np.clip(_FINE, -_OUT, _OUT)
    left = np.where(inside < 0, 0, 1)  # the cubic Hermite polynomial of each half
    right = left + 1
    t = (inside - at[left]) / _OUT
    log = values[left] + (values[right] - values[left]) * t**2 * (3 - 2 * t)
    log += _OUT * t * (1 - t) * (slopes[left] * (1 - t) - slopes[right] * t)
    log += np.minimum(_FINE + _OUT, 0) * max(slopes[0], 0.3) + np.maximum(_FINE - _OUT, 0) * min(slopes[2], -0.3)
    density = np.exp(log - log.max())
    below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    level = (rng.permutation(count) + rng.random(count)) / count
    return np.tile(np.interp(level * below[-1], below, _FINE), 2)


def _curve(z: Floats, low: Floats, high: Floats) -> Floats:
    """The parabola through nothing in the middle and these two at the ends, at each z (a row each)."""
    z = np.clip(z, -1.5 * _OUT, 1.5 * _OUT)[:, None] / _OUT
    return 0.5 * z * (high - low) + 0.5 * z**2 * (high + low)
