"""Logistic regression of graded scores on a few bounded differences, with coefficients drawn towards known values.

The curve is logit E(y) = a + Σ b x. The fit maximises

    Σ (y η - log(1 + exp η))  +  a / 2 - log(1 + exp a)  -  Σ (b - centre)² / (2 s²)

The second term is worth half a win and half a loss at x = 0, so that a is finite even if every y is 1. The third draws
each b towards its centre, with one s above the centre and another one below. Where the true b lies elsewhere, that pull
is a bias; it is counted as a variance, for true values that spread around the centre with the standard deviation
``spread``. ``spread`` is larger than s: the estimate trusts the slope within the cases less than chance alone would
allow, and the interval says what that may cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["PenalisedFit", "Penalty", "fit_penalised"]

_STEPS = 200
_CLOSE = 1e-10
_FARTHEST_STEP = 1.0


@dataclass(frozen=True, slots=True)
class Penalty:
    """What a coefficient is drawn towards.

    Attributes:
        centre: the value.
        above: the standard deviation of the penalty on coefficients above the centre; smaller pulls harder.
        below: the same for coefficients below it.
        spread: how far the true coefficient may lie from the centre, as a standard deviation.
    """

    centre: float
    above: float
    below: float
    spread: float


@dataclass(frozen=True, slots=True)
class PenalisedFit:
    """The coefficients, the intercept first, and their uncertainty.

    Attributes:
        estimate: the coefficients.
        se: their standard errors, with what the pull may cost.
        design_effect: how much wider the variance of the intercept is because tasks have several cases, 1 at least.
    """

    estimate: Floats
    se: Floats
    design_effect: float


def fit_penalised(
    x: Floats, y: Floats, penalties: tuple[Penalty, ...], codes: NDArray[np.integer] | None = None
) -> PenalisedFit:
    """Fit scores on differences.

    Args:
        x: a row per case, a column per difference.
        y: scores between 0 and 1.
        penalties: one per column of ``x``.
        codes: which task a case belongs to, from 0, where tasks have several cases.
    """
    n, k = x.shape
    design = np.column_stack([np.ones(n), x])
    state = _solved(design, y, penalties, 1.0)
    # Scores between 0 and 1 vary less than wins and losses with the same chance do.
    graded = bool(((y > 0) & (y < 1)).any())
    chances = state.p * (1 - state.p)
    dispersion = float(((y - state.p) ** 2).sum() / max(chances.sum(), _CLOSE)) * n / max(1, n - k - 1)
    share = min(1.0, dispersion) if graded else 1.0
    effect = 1.0
    if codes is not None:
        sums = np.zeros((int(codes.max()) + 1, k + 1))
        np.add.at(sums, codes, design * (y - state.p)[:, None])
        inverse, tasks = np.linalg.inv(state.curvature), len(sums)
        robust = (inverse @ sums.T @ sums @ inverse)[0, 0] * tasks / max(1, tasks - 1)
        alone = (inverse @ state.information @ inverse)[0, 0] * share
        effect = max(1.0, float(robust / alone)) if alone > 0 else 1.0
        state = _solved(design, y, penalties, 1 / effect)  # so many cases are worth fewer against the penalties
    inverse = np.linalg.inv(state.curvature)
    variance = np.diag(inverse @ state.information @ inverse) * share
    spread = np.array([0.0, *(one.spread for one in penalties)])
    hidden = ((inverse * (state.pull * spread)[None, :]) ** 2).sum(axis=1)
    return PenalisedFit(state.theta, np.sqrt(variance + hidden), effect)


@dataclass(frozen=True, slots=True)
class _State:
    """The maximum: coefficients, chances, information of the cases, and curvature and pull with the penalties."""

    theta: Floats
    p: Floats
    information: Floats
    curvature: Floats
    pull: Floats


def _solved(design: Floats, y: Floats, penalties: tuple[Penalty, ...], weight: float) -> _State:
    from scipy.special import expit

    centre = np.array([0.0, *(one.centre for one in penalties)])
    above, below = (np.array([0.0, *(getattr(one, side) ** -2 for one in penalties)]) for side in ("above", "below"))
    theta = centre.copy()
    for _ in range(_STEPS):
        p, at_zero = expit(design @ theta), float(expit(theta[0]))
        pull = np.where(theta > centre, above, below)
        gradient = weight * (design.T @ (y - p)) - pull * (theta - centre)
        gradient[0] += 0.5 - at_zero
        information = weight * (design * (p * (1 - p))[:, None]).T @ design
        curvature = information + np.diag(pull)
        curvature[0, 0] += at_zero * (1 - at_zero)
        step = np.linalg.solve(curvature, gradient)
        theta = theta + step * min(1.0, _FARTHEST_STEP / max(float(np.abs(step).max()), _CLOSE))
        if np.abs(step).max() < _CLOSE:
            break
    return _State(theta, p, information, curvature, pull)
