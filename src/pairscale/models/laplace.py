"""A fast stand-in for the sampler: the normal distribution that is nearest to the posterior of the Bayesian model.

The model is that of :mod:`pairscale.models.bayes`, with its variants and priors. Given the lapse rate, the abilities
and the position effect get a normal distribution. Laplace's, around the mode, puts extreme items a tenth of a standard
deviation too near to the middle; so each slope and curvature of the log likelihood is averaged over the distribution of
its difference, which moves the centre from the mode to the mean (Opper & Archambeau 2009). Newton steps find it, as
they find the mode. The lapse rate (on the logit scale) and a learned prior's width keep a distribution of their own, by
the bound on the evidence that each value of them has, and the abilities move and widen with them.

It takes milliseconds where the sampler takes seconds. Means are off by some hundredths of a standard deviation,
standard deviations by a few per cent. With a wide prior, that of an item that never won comes out some 15 % too small,
and with a learned prior and few comparisons all of them do, by up to a quarter. And nothing is diagnosed: it is for
tests, simulations and plans, not for results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from scipy.linalg import lapack
from scipy.special import expit, log_expit

from pairscale._version import __version__
from pairscale.models._btl import LAPSE_PRIOR, LEARNED_SCALE, POSITION_SD, Cells, Model, count_outcomes
from pairscale.models._gate import Diagnostics, DiagnosticsGate
from pairscale.models.bayes import FIRST_LAPSE, MCMCSettings, Variant, _model
from pairscale.models.posterior import Posterior
from pairscale.pairs._edges import numbered
from pairscale.pairs._table import generator

if TYPE_CHECKING:
    from pairscale.models._counts import Floats

__all__ = ["LaplaceFit", "fit_btl_laplace"]

_DRAWS = 1000
_NODES = ((0.0, 2 / 3), (math.sqrt(3), 1 / 6), (-math.sqrt(3), 1 / 6))  # Gauss-Hermite: exact up to fifth powers
_OUT = 2.0  # the judge's parameters are looked at so many standard deviations either way
_FINE = np.linspace(-4.5, 4.5, 361)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LaplaceFit:
    """One fit.

    Attributes:
        posterior: draws of theta (centred), epsilon and b from the approximation; they are independent.
        diagnostics: no divergence, R-hat 1, and as large an effective sample size as there are draws.
        model_variant: ``btl``, ``btl_e``, ``btl_b`` or ``btl_e_b``.
        n_comparisons: how many comparisons it was fitted to.
        engine: what made it, for the log.
    """

    posterior: Posterior
    diagnostics: Diagnostics
    model_variant: str
    n_comparisons: int
    engine: str = f"pairscale {__version__} laplace"

    def __repr__(self) -> str:
        return (
            f"<LaplaceFit {self.model_variant}: {self.posterior.n_items:,} items, {self.n_comparisons:,} comparisons, "
            f"{self.posterior.n_draws:,} draws>"
        )


def fit_btl_laplace(
    rows: pl.DataFrame,
    ids: Sequence[str],
    model_variant: Variant = "btl_e_b",
    settings: MCMCSettings | None = None,
    seed: int | None = None,
    *,
    prior_sd: float | Literal["learned"] = 1.0,
    warm: Any = None,
    near_stop: bool = False,
    gate: DiagnosticsGate | None = None,
) -> LaplaceFit:
    """Fit once, by a normal approximation; takes what :func:`pairscale.models.bayes.fit_btl` takes.

    Args:
        rows: ``ID1 ID2 better_id``, each with a winner.
        ids: all items.
        model_variant: which faults the judge may have.
        settings: not needed: nothing is sampled.
        seed: of the draws.
        prior_sd: of the abilities, or ``learned``.
        warm: not needed: the result depends on the comparisons alone.
        near_stop: draw as many as the stricter effective sample size asks for.
        gate: other limits than the default ones.
    """
    del settings, warm
    model = _model(model_variant, prior_sd)
    names = pl.Series(list(ids), dtype=pl.String)
    first, second = numbered(rows["ID1"], names), numbered(rows["ID2"], names)
    cells = count_outcomes(first, second, rows["better_id"] == rows["ID1"], len(names), position=model.position)
    gate = DiagnosticsGate.for_items(len(names)) if gate is None else gate
    required = gate.ess_bulk_min_near_stop if near_stop else gate.ess_bulk_min
    size = max(_DRAWS, 2 * math.ceil(required / 2))
    x, judge = _draws(_Target(cells, model), size, generator(seed))
    theta = x[:, : len(names)]
    diagnostics = gate.judge(divergences=0, max_rhat=1.0, min_ess_bulk=float(size), near_stop=near_stop)
    posterior = Posterior(
        tuple(names),
        theta - theta.mean(axis=1, keepdims=True),
        expit(judge["u"]) if "u" in judge else None,
        x[:, len(names)].copy() if model.position else None,
        1,
        diagnostics,
    )
    return LaplaceFit(posterior, diagnostics, model_variant, rows.height)


@dataclass(frozen=True, slots=True, eq=False)
class _Normal:
    """The normal distribution of abilities and b, given the judge's other parameters.

    Attributes:
        judge: these parameters: u and t, those that there are.
        mean: its mean.
        variance: the diagonal of its covariance.
        spread: per cell, the variance of the difference.
        factor: lower Cholesky factor of its precision.
        evidence: the bound on the log evidence, up to a constant.
        slope: of that, per parameter.
    """

    judge: Floats
    mean: Floats
    variance: Floats
    spread: Floats
    factor: Floats
    evidence: float
    slope: Floats


class _Target:
    """The posterior, in terms of means over a normal distribution."""

    def __init__(self, cells: Cells, model: Model) -> None:
        self.cells, self.model, self.n = cells, model, cells.n_items
        self.size = self.n + model.position
        self.names = [name for name in model.names if name != "b"]
        self._flat = cells.winner * self.n + cells.loser

    def start(self) -> Floats:
        """Where the search for the judge's parameters begins."""
        first = {"u": math.log(FIRST_LAPSE / (1 - FIRST_LAPSE)), "t": 0.0}
        return np.array([first[name] for name in self.names])

    def lapse(self, judge: Floats) -> float:
        return float(expit(judge[self.names.index("u")])) if "u" in self.names else 0.0

    def precision(self, judge: Floats) -> Floats:
        """The prior's, per row."""
        tau = math.exp(judge[self.names.index("t")]) if self.model.prior_sd is None else self.model.prior_sd
        out = np.full(self.size, tau**-2)
        out[self.n :] = POSITION_SD**-2
        return out

    def averages(self, mean: Floats, spread: Floats | None, eps: float) -> tuple[float, Floats, Floats, float]:
        """Mean log likelihood; per cell, its mean slope and curvature in the difference; its slope in eps."""
        cells = self.cells
        d = mean[cells.winner] - mean[cells.loser]
        if self.model.position:
            d = d + cells.sign * mean[self.n]
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
        if self.model.position:
            out[self.n] += cells.sign @ weighted
        return out

    def factor(self, curvature: Floats, precision: Floats) -> Floats:
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
        if self.model.position:
            signed = weight * cells.sign
            out[:n, n] = out[n, :n] = np.bincount(cells.winner, signed, n) - np.bincount(cells.loser, signed, n)
            diagonal = np.append(diagonal, weight.sum())
        out[np.diag_indices(self.size)] += diagonal + precision
        return out

    def variances(self, factor: Floats) -> tuple[Floats, Floats]:
        """The diagonal of the covariance, and the variance of each cell's difference."""
        lower, _ = lapack.dpotri(factor, lower=True)
        diagonal = np.diag(lower).copy()
        cells = self.cells
        high, low = np.maximum(cells.winner, cells.loser), np.minimum(cells.winner, cells.loser)
        spread = diagonal[cells.winner] + diagonal[cells.loser] - 2 * lower[high, low]
        if self.model.position:
            with_b = lower[self.n]
            spread = spread + 2 * cells.sign * (with_b[cells.winner] - with_b[cells.loser]) + diagonal[self.n]
        return diagonal, np.maximum(spread, 0.0)

    def mode(self, judge: Floats, steps: int = 60) -> Floats:
        """The most probable abilities and b, roughly, given the judge's other parameters."""
        mean, eps, precision = np.zeros(self.size), self.lapse(judge), self.precision(judge)
        for at in range(steps):
            _, slope, curvature, _ = self.averages(mean, None, eps)
            if at > 8:  # not on its way: no negative curvatures, and shorter steps
                curvature = np.maximum(curvature, 0.0) * 2
            step = _solved(self.factor(curvature, precision), self.gradient(slope, mean, precision))
            largest = float(np.abs(step).max())
            mean = mean + step * min(1.0, 2.0 / max(largest, 1e-300))
            if largest < 0.05:
                break
        return mean

    def around(self, judge: Floats, mean: Floats, spread: Floats | None, steps: int = 1) -> _Normal:
        """The normal distribution for a value of the judge's parameters, by steps from that of another one."""
        eps, precision = self.lapse(judge), self.precision(judge)

        def stepped(spread: Floats | None) -> tuple[Floats, Floats]:
            _, slope, curvature, _ = self.averages(mean, spread, eps)
            factor = self.factor(curvature, precision)
            return mean + _solved(factor, self.gradient(slope, mean, precision)), factor

        for _ in range(steps):
            mean, held = stepped(spread)
            variance, spread = self.variances(held)
        assert spread is not None  # noqa: S101
        # The bound is flat where it is largest, so its covariance may be that of one step before.
        mean, factor = stepped(spread)
        value, *_, in_eps = self.averages(mean, spread, eps)
        squares = mean**2 + variance
        evidence = value - 0.5 * float(precision @ squares) - float(np.log(np.diag(held)).sum())
        slopes = []
        for name, at_judge in zip(self.names, judge, strict=True):
            more, slope_of = self._prior(name, float(at_judge), in_eps, float(squares[: self.n].sum()))
            evidence += more
            slopes.append(slope_of)
        return _Normal(judge, mean, variance, spread, factor, evidence, np.array(slopes))

    def _prior(self, name: str, at: float, in_eps: float, squares: float) -> tuple[float, float]:
        """What a parameter adds to the bound by its prior, and the slope of the whole bound in it."""
        if name == "u":
            (alpha, beta), eps = LAPSE_PRIOR, float(expit(at))
            log = alpha * float(log_expit(at)) + beta * float(log_expit(-at))
            return log, in_eps * eps * (1 - eps) + alpha * (1 - eps) - beta * eps
        variance = math.exp(2 * at)
        log = -self.n * at - 0.5 * variance / LEARNED_SCALE**2 + at
        return log, squares / variance - self.n - variance / LEARNED_SCALE**2 + 1


def _solved(factor: Floats, right: Floats) -> Floats:
    solution, _ = lapack.dpotrs(factor, right, lower=True)
    return np.asarray(solution)


# Draws


def _draws(target: _Target, size: int, rng: np.random.Generator) -> tuple[Floats, dict[str, Floats]]:
    """Draws of abilities and b (a row each), and of the judge's other parameters by name.

    They come in pairs on opposite sides of the mean, and are stretched to the right width, so that means and standard
    deviations are not left to chance.
    """
    center, axes = _center(target)
    noise, _ = lapack.dtrtrs(center.factor, rng.standard_normal((target.size, size // 2)), lower=True, trans=1)
    noise = np.concatenate([noise.T, -noise.T])
    noise *= np.sqrt(center.variance / np.einsum("si,si->i", noise, noise) * (size - 1))
    mean, log_sd = np.zeros(target.size), np.zeros(target.size)
    judge = np.tile(center.judge, (size, 1))
    for direction in axes.T:
        ends, axis = _ends(target, center, direction)
        z = _from_density(center, ends, axis, size // 2, rng)
        judge += z[:, None] * axis
        mean = mean + _curve(z, *(end.mean - center.mean for end in ends))
        log_sd = log_sd + _curve(z, *(0.5 * np.log(end.variance / center.variance) for end in ends))
    noise *= np.exp(log_sd)
    noise += mean
    noise += center.mean
    return noise, dict(zip(target.names, judge.T, strict=True))


def _center(target: _Target) -> tuple[_Normal, Floats]:
    """The normal distribution where the judge's parameters are most probable, and their axes (columns)."""
    judge = target.start()
    here = target.around(judge, target.mode(judge), None, steps=3)
    if not target.names:
        return here, np.empty((0, 0))
    curvature = np.diag([{"u": 1.5, "t": float(target.n)}[name] for name in target.names])
    for at in range(8):
        step = np.linalg.solve(curvature, here.slope)
        close = step @ curvature @ step < 0.05
        if close and at > 1:
            break
        if close:  # a look around all the same, or the curvature would be a guess
            step = 0.3 / np.sqrt(np.diag(curvature))
        step = step / max(1.0, float(np.abs(step).max()))
        there = target.around(here.judge + step, here.mean, here.spread)
        bent = here.slope - there.slope
        if step @ bent > 1e-3 * (step @ step):
            along = curvature @ step
            curvature = curvature - np.outer(along, along) / (step @ along) + np.outer(bent, bent) / (step @ bent)
        here = there if there.evidence > here.evidence or not close else here
    values, vectors = np.linalg.eigh(curvature)
    return here, vectors / np.sqrt(np.maximum(values, 1e-3))


def _ends(target: _Target, center: _Normal, axis: Floats) -> tuple[tuple[_Normal, _Normal], Floats]:
    """The distributions some way out on an axis, and the axis, its length corrected when that is too near or far."""
    for last in (False, True):
        low, high = (target.around(center.judge + sign * _OUT * axis, center.mean, center.spread) for sign in (-1, 1))
        drop = center.evidence - 0.5 * (low.evidence + high.evidence)  # of a normal density: _OUT² / 2
        ratio = 0.5 * _OUT**2 / max(drop, 0.02)
        if last or 0.4 < ratio < 2.5:
            break
        axis = axis * math.sqrt(min(max(ratio, 0.01), 10.0))
    return (low, high), axis


def _from_density(
    center: _Normal, ends: tuple[_Normal, _Normal], axis: Floats, count: int, rng: np.random.Generator
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
