"""A fast stand-in for the sampler: the normal distribution that is nearest to the posterior of the Bayesian model.

The model is that of :mod:`pairscale.models.bayes`, with its variants and priors. Given the lapse rate, the abilities
and the position effect get a normal distribution. Laplace's, around the mode, puts extreme items a tenth of a standard
deviation too near to the middle; so each slope and curvature of the log likelihood is averaged over the distribution of
its difference, which moves the centre from the mode to the mean (Opper & Archambeau 2009). Newton steps find it, as
they find the mode. The lapse rate (on the logit scale) and a learned prior's width keep a distribution of their own, by
the bound on the evidence that each value of them has, and the abilities move and widen with them.

It takes milliseconds where the sampler takes seconds; above 200 items it works without dense matrices
(:mod:`pairscale.models._normal_sparse`). Means are off by some hundredths of a standard deviation, standard deviations
by a few per cent. With a wide prior, that of an item that never won comes out some 15 % too small. With a learned
prior, a lapse rate and few comparisons, scores and standard deviations all come out too small, by up to a third. And
nothing is diagnosed: it is for tests, simulations and plans, not for results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from scipy.special import expit

from pairscale._version import __version__
from pairscale.core.display import ReprMixin
from pairscale.core.provenance import Provenance
from pairscale.models._btl import Cells, JudgeParameters
from pairscale.models._convergence import BLOCK
from pairscale.models._normal import OUT, Normal, Target
from pairscale.models._normal_sparse import SparseTarget
from pairscale.models.bayes import judge_parameters
from pairscale.models.diagnostics import Diagnostics, DiagnosticsGate
from pairscale.models.posterior import Posterior
from pairscale.models.repeats import RepeatAgreement, count_repeats, places, repeats_per_item, row_times
from pairscale.models.sampling import MCMCSettings, Repeats, Variant
from pairscale.pairing.table import generator

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints

__all__ = [
    "DENSE",
    "N_DRAWS",
    "Differences",
    "LaplaceFit",
    "around_center",
    "differences",
    "draw_around",
    "fit_btl_laplace",
]

N_DRAWS = 1000
_SEARCH = 40  # steps at most, for the judge's parameters
_ROUGH = 1.0  # how far off a bound on the log evidence may be
DENSE = 200  # items: above that, matrices of all pairs take longer
_FINE = np.linspace(-4.5, 4.5, 361)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LaplaceFit(ReprMixin):
    """One fit.

    Attributes:
        posterior: draws of theta (centred), epsilon and b from the approximation; they are independent.
        diagnostics: no divergence, R-hat 1, and as large an effective sample size as there are draws.
        model_variant: ``btl``, ``btl_e``, ``btl_b`` or ``btl_e_b``.
        n_comparisons: how many comparisons it was fitted to.
        degree: per item, in how many comparisons it was.
        pos_count_A: per item, in how many of them it stood first.
        pos_count_B: per item, in how many of them it stood second.
        repeated_pairs: per item, how many of them repeat a pair.
        n_unique_pairs: how many different pairs were compared.
        prior_sd: draws of the abilities' prior standard deviation, when it was learned.
        repeat_agreement: how far repeats of a pair agree, and how they were counted.
        provenance: how to get the same again.
        slope: draws of what a standard deviation of ``known`` is worth, in logits; None without it.
        engine: what made it, for the log.
    """

    posterior: Posterior
    diagnostics: Diagnostics
    model_variant: str
    n_comparisons: int
    degree: Ints
    pos_count_A: Ints
    pos_count_B: Ints
    repeated_pairs: Ints
    n_unique_pairs: int
    prior_sd: Floats | None
    repeat_agreement: RepeatAgreement
    provenance: Provenance
    slope: Floats | None = None
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
    repeats: Repeats = "independent",
    known: Sequence[float] | Floats | None = None,
) -> LaplaceFit:
    """Fit once, by a normal approximation; takes what :func:`pairscale.models.bayes.fit_btl` takes.

    Args:
        rows: ``ID1 ID2 better_id``; a missing ``better_id`` is a tie, half a win for each.
        ids: all items.
        model_variant: which faults the judge may have.
        settings: not needed: nothing is sampled.
        seed: of the draws.
        prior_sd: of the abilities, or ``learned``.
        warm: not needed: the result depends on the comparisons alone.
        near_stop: draw as many as the stricter effective sample size asks for.
        gate: other limits than the default ones.
        repeats: how to count repeats of a pair, as in :func:`pairscale.models.bayes.fit_btl`.
        known: what is known of the items beforehand, as there.
    """
    del settings, warm
    model = judge_parameters(model_variant, prior_sd, known)
    names = pl.Series(list(ids), dtype=pl.String)
    cells, first, second, agreement = count_repeats(rows, names, model, repeats)
    gate = DiagnosticsGate.for_items(len(names)) if gate is None else gate
    required = gate.ess_bulk_min_near_stop if near_stop else gate.ess_bulk_min
    size = max(N_DRAWS, 2 * math.ceil(required / 2))
    target = _target(cells, model)
    x, judge = draw_around(target, size, generator(seed))
    theta = target.abilities(x)
    diagnostics = gate.judge(divergences=0, max_rhat=1.0, min_ess_bulk=float(size), near_stop=near_stop)
    posterior = Posterior(
        tuple(names),
        theta - theta.mean(axis=1, keepdims=True),
        expit(judge["u"]) if "u" in judge else None,
        x[:, len(names)].copy() if model.position else None,
        1,
        diagnostics,
    )
    times = row_times(rows)
    pos_A, pos_B = (places(side, len(names), times) for side in (first, second))
    return LaplaceFit(
        posterior=posterior,
        diagnostics=diagnostics,
        model_variant=model_variant,
        n_comparisons=int(pos_A.sum()),
        degree=pos_A + pos_B,
        pos_count_A=pos_A,
        pos_count_B=pos_B,
        repeated_pairs=repeats_per_item(first, second, len(names), times),
        n_unique_pairs=len(np.unique(np.minimum(first, second) * len(names) + np.maximum(first, second))),
        prior_sd=np.exp(judge["t"]) if "t" in judge else None,
        repeat_agreement=agreement,
        slope=None if known is None else x[:, -1].copy(),
        provenance=Provenance(
            "laplace", {"model_variant": model_variant, "prior_sd": prior_sd, "repeats": repeats}, seed
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """The normal distribution of each cell's difference, where the judge's other parameters are most probable.

    Attributes:
        mean: per cell, the mean of how far the winner stands above the loser, the position effect included.
        variance: per cell, its variance.
        lapse: the lapse rate.
    """

    mean: Floats
    variance: Floats
    lapse: float


def differences(cells: Cells, model: JudgeParameters) -> Differences:
    """The differences that outcomes are explained by, without drawing anything."""
    target = _target(cells, model)
    center, _ = around_center(target)
    return Differences(target.differences(center.mean), center.spread, target.lapse(center.judge))


def _target(cells: Cells, model: JudgeParameters) -> Target:
    """Exact matrices for few items; for many, what needs no dense matrix."""
    return (Target if cells.n_items <= DENSE else SparseTarget)(cells, model)


# Draws


def draw_around(target: Target, size: int, rng: np.random.Generator) -> tuple[Floats, dict[str, Floats]]:
    """Draws of abilities and b (a row each), and of the judge's other parameters by name.

    They come in pairs on opposite sides of the mean, and are stretched to the right width, so that means and standard
    deviations are not left to chance.
    """
    center, axes = around_center(target)
    noise, variance = target.noise(center.factor, size // 2, rng)
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
    guesses = {"u": 1.5, "t": float(target.n), "s": float(target.cells.times.sum())}
    curvature = np.diag([guesses[name] for name in target.names])
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
            target.around(center.judge + sign * OUT * axis, center.mean, center.spread, target.steps, since=center)
            for sign in (-1, 1)
        )
        drop = center.evidence - 0.5 * (low.evidence + high.evidence)  # of a normal density: OUT² / 2
        ratio = 0.5 * OUT**2 / max(drop, 0.02)
        if last or 0.4 < ratio < 2.5:
            break
        axis = axis * math.sqrt(min(max(ratio, 0.01), 10.0))
    return target.settled(low, center, high, axis), axis


def _from_density(
    center: Normal, ends: tuple[Normal, Normal], axis: Floats, count: int, rng: np.random.Generator
) -> Floats:
    """Places along an axis, each twice, from the density that the bound gives; evenly spread over it."""
    from scipy.interpolate import CubicHermiteSpline  # which takes long to import, and most runs never get here

    nodes = (ends[0], center, ends[1])
    at = np.array([-OUT, 0.0, OUT])
    values = np.array([node.evidence for node in nodes]) - center.evidence
    slopes = np.array([float(node.slope @ axis) for node in nodes])
    log = CubicHermiteSpline(at, values, slopes)(np.clip(_FINE, -OUT, OUT))
    log += np.minimum(_FINE + OUT, 0) * max(slopes[0], 0.3) + np.maximum(_FINE - OUT, 0) * min(slopes[2], -0.3)
    density = np.exp(log - log.max())
    below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    level = (rng.permutation(count) + rng.random(count)) / count
    return np.tile(np.interp(level * below[-1], below, _FINE), 2)


def _curve(z: Floats, low: Floats, high: Floats) -> Floats:
    """The parabola through nothing in the middle and these two at the ends, at each z (a row each)."""
    z = np.clip(z, -1.5 * OUT, 1.5 * OUT)[:, None] / OUT
    return np.asarray(0.5 * z * (high - low) + 0.5 * z**2 * (high + low))
