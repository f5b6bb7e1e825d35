"""Logistic regression on one column with Firth's correction: always finite, nearly unbiased, many data sets at once.

The curve is logit P(y = 1) = a + b x. Firth (1993) maximises the likelihood times the root of the determinant of the
information, which takes away the bias of first order; there is a maximum even where all y are the same. The interval
for a holds the values whose profile, the maximum over b, is not too far below the top (Heinze and Schemper 2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Curve", "fit_curve", "profile"]

_STEPS = 200
_CLOSE = 1e-10
_FARTHEST_STEP = 1.0


@dataclass(frozen=True, slots=True)
class Curve:
    """A fit, or many: every attribute has an entry for each data set.

    Attributes:
        a: the intercept, in logits.
        b: the slope.
        top: the penalised log-likelihood.
        residuals: y - P, weighted; a row a data set.
        inverse: the upper triangle of the inverse information: of a, of a and b, of b.
    """

    a: Floats
    b: Floats
    top: Floats
    residuals: Floats
    inverse: tuple[Floats, Floats, Floats]


def fit_curve(x: Floats, y: Floats, weights: Floats) -> Curve:
    """Fit a and b.

    Args:
        x: a row a data set.
        y: 0 or 1.
        weights: what an observation counts; 0 leaves it out.
    """
    a, b = np.zeros(x.shape[0]), np.zeros(x.shape[0])
    state = _State(x, y, weights, a, b)
    for _ in range(_STEPS):
        g_a, g_b = state.gradient()
        # Fisher's scoring: the inverse information, of a and b around the weighted mean of x, times the gradient.
        step_b = (g_b - state.centre * g_a) / state.spread
        step_a = g_a / state.mass - state.centre * step_b
        longest = np.hypot(step_a, step_b)
        shorter = np.minimum(1, _FARTHEST_STEP / np.maximum(longest, _CLOSE))
        a, b = a + shorter * step_a, b + shorter * step_b
        state = _State(x, y, weights, a, b)
        if longest.max() < _CLOSE:
            break
    of_b = 1 / state.spread
    inverse = (1 / state.mass + state.centre**2 * of_b, -state.centre * of_b, of_b)
    return Curve(a, b, state.penalised, weights * (y - state.p), inverse)


def profile(x: Floats, y: Floats, weights: Floats, a: Floats, start: Floats) -> Floats:
    """The penalised log-likelihood at each ``a``, maximised over b, which is looked for from ``start`` on."""
    state = _State(x, y, weights, a, start)
    b, gradient = start, state.gradient()[1]
    step = np.clip(gradient / state.information_b, -_FARTHEST_STEP, _FARTHEST_STEP)
    for _ in range(_STEPS):
        moved = _State(x, y, weights, a, b + step)
        worse = moved.penalised < state.penalised - _CLOSE
        if worse.any():
            step = np.where(worse, step / 4, step)
            moved = _State(x, y, weights, a, b + step)
        before, b, state, gradient = gradient, b + step, moved, moved.gradient()[1]
        if np.abs(step).max() < _CLOSE:
            break
        # The secant, quick near the top; the expected information where it points away.
        bend = np.divide(gradient - before, step, out=np.zeros_like(b), where=step != 0)
        bend = np.where(bend < 0, bend, -state.information_b)
        step = np.clip(-gradient / bend, -_FARTHEST_STEP, _FARTHEST_STEP)
    return state.penalised


class _State:
    """Everything at one place of the curve.

    The information is kept as its mass Σ v, the weighted mean of x and the spread Σ v (x - mean)² around it: their
    product is the determinant, without the cancellation that the plain sums suffer when one case outweighs all others.
    """

    __slots__ = ("_off", "_v", "_w", "_x", "_y", "centre", "mass", "p", "penalised", "spread")

    def __init__(self, x: Floats, y: Floats, weights: Floats, a: Floats, b: Floats) -> None:
        from scipy.special import expit

        self._x, self._y, self._w = x, y, weights
        eta = a[:, None] + b[:, None] * x
        self.p: Floats = expit(eta)
        self._v = weights * self.p * expit(-eta)
        self.mass: Floats = self._v.sum(axis=1)
        self.centre: Floats = (self._v * x).sum(axis=1) / self.mass
        self._off = x - self.centre[:, None]
        self.spread: Floats = (self._v * self._off**2).sum(axis=1)
        likelihood = (weights * (y * eta - np.logaddexp(0, eta))).sum(axis=1)
        self.penalised: Floats = likelihood + 0.5 * np.log(self.mass * self.spread)

    @property
    def information_b(self) -> Floats:
        """Of b, if a is known."""
        return np.asarray(self.spread + self.mass * self.centre**2)

    def gradient(self) -> tuple[Floats, Floats]:
        """Of the penalised log-likelihood: Σ (y - p + h (½ - p)) (1, x), with h from the hat matrix."""
        hat = self._v * (1 / self.mass[:, None] + self._off**2 / self.spread[:, None])
        pull = self._w * (self._y - self.p) + hat * (0.5 - self.p)
        return pull.sum(axis=1), (pull * self._x).sum(axis=1)
