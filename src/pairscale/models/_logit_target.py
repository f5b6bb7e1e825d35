"""Normal distributions that stand in for the posterior of scores, given logits with errors.

As :mod:`pairscale.models._normal` for winners, with another likelihood: the judge's other parameters are the logarithm
of the scores' spread (``t``), where it is learned, and that of the error's scale (``s``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pairscale.models._cells import Cells, JudgeParameters
from pairscale.models._logits import KNOWN_SCALE, POSITION_SCALE, Logits, log_prior, logit_terms
from pairscale.models._normal import Normal, Target
from pairscale.models._normal_sparse import SparseTarget

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats

__all__ = ["LogitTarget", "SparseLogitTarget"]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_WIDEST = 8.0


class LogitTarget(Target):
    """The posterior of few items."""

    def __init__(self, logits: Logits, model: JudgeParameters) -> None:
        super().__init__(_as_cells(logits), model)
        self.logits = logits
        self.names = [*(["t"] if model.prior_sd is None else []), "s"]
        self.steps = 2

    def start(self) -> Floats:
        """Half of the variance of the answers is the scores', half the error's."""
        size = math.log(max(float(np.sqrt(np.mean(self.logits.z**2))), 0.3) / 2)
        return np.array([size for _ in self.names])

    def lapse(self, judge: Floats) -> float:
        """The parameter of single answers: here the logarithm of the error's scale."""
        return float(np.clip(judge[self.names.index("s")], -_WIDEST, _WIDEST))

    def precision(self, judge: Floats) -> Floats:
        """The prior's, per row."""
        sigma = self.model.prior_sd or math.exp(float(np.clip(judge[self.names.index("t")], -_WIDEST, _WIDEST)))
        out = np.full(self.size, sigma**-2)
        scales = [POSITION_SCALE] * self.model.position + [KNOWN_SCALE] * (self.model.known is not None)
        out[self.n :] = [scale**-2 for scale in scales]
        return out

    def averages(self, mean: Floats, spread: Floats | None, eps: float) -> tuple[float, Floats, Floats, float]:
        """Mean log likelihood; per answer, its mean slope and curvature; its slope in the error's logarithm."""
        answers = self.logits
        expected = self.differences(mean)
        if spread is None:
            found = logit_terms(expected, answers.z, answers.kind, eps)
            # Towards the mode by weighted least squares, which always gets nearer.
            return float(answers.times @ found.value), found.slope, found.weight, float(answers.times @ found.in_error)
        value, in_error = 0.0, 0.0
        slope, curvature = np.zeros(len(expected)), np.zeros(len(expected))
        sd = np.sqrt(spread)
        for at, weight in zip(_NODES, _WEIGHTS, strict=True):
            found = logit_terms(expected + at * sd, answers.z, answers.kind, eps)
            value += weight * float(answers.times @ found.value)
            in_error += weight * float(answers.times @ found.in_error)
            slope += weight * found.slope
            curvature += weight * found.curvature
        return value, slope, curvature, in_error

    def dense_factor(self, center: Normal) -> Floats:
        """The lower Cholesky factor of the precision around a center, as a dense matrix."""
        _, _, curvature, _ = self.averages(center.mean, center.spread, self.lapse(center.judge))
        return np.asarray(Target.factor(self, curvature, self.precision(center.judge)))

    def _prior(self, name: str, at: float, in_eps: float, squares: float) -> tuple[float, float]:
        log, slope = log_prior(name, at)
        if name == "s":
            return log, slope + in_eps
        return log - self.n * at, slope + squares * math.exp(-2 * at) - self.n


class SparseLogitTarget(LogitTarget, SparseTarget):
    """The posterior of many items, without a dense matrix."""


def _as_cells(logits: Logits) -> Cells:
    return Cells(logits.first, logits.second, np.ones(len(logits.z)), logits.times, logits.n_items)
