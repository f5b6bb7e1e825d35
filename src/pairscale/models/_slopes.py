"""The model of several judges on one scale: its comparisons, its log density, and a fast fit to start from.

``logit P(first beats second | judge k) = m a_k (eta_first - eta_second) + b_k`` with ``eta ~ N(0, 1)``. The mean slope
over all comparisons is 1: ``a = 1 + Q alpha``, and the columns of Q are an orthonormal basis of what is orthogonal to
the judges' shares of the comparisons. So the scores ``m eta`` are in the logits of an average judge, as they are in a
fit without slopes. ``alpha ~ N(0, 0.75²)``, ``b_k ~ N(0, 0.5²)``, and the spread m has the prior of a spread that is
learned, half-normal with scale 2.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg, sparse
from scipy.special import expit, log_expit

from pairscale.models._btl import LEARNED_SCALE

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints

__all__ = [
    "JUDGE_POSITION_SCALE",
    "SLOPE_SCALE",
    "Judged",
    "SlopeCenter",
    "SlopeDensity",
    "slope_center",
]

SLOPE_SCALE = 0.75
JUDGE_POSITION_SCALE = 0.5
_ROUNDS, _SETTLED = 200, 1e-3
_STEPS, _CLOSE, _LONGEST = 50, 1e-6, 2.0
_LEAST = 0.05  # of the mean slope, where the answers say nothing
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Comparisons of several judges, one element per comparison.

    Attributes:
        first: The text shown first, by number.
        second: The text shown second.
        judge: Who judged, by number.
        result: 1 when the first won, 0 when the second did, 0.5 for a tie.
        times: How much each comparison counts.
        n_items: How many texts there are.
        n_judges: How many judges there are.
    """

    first: Ints
    second: Ints
    judge: Ints
    result: Floats
    times: Floats
    n_items: int
    n_judges: int

    @property
    def share(self) -> Floats:
        """The share of the comparisons that each judge made."""
        return np.asarray(np.bincount(self.judge, minlength=self.n_judges) / len(self.judge))


class SlopeDensity:
    """Log density and gradient for any number of chains at once.

    Columns are chains; the rows are ``eta`` of each text, ``b`` of each judge (with a position effect), ``alpha``, one
    less than there are judges, and ``t``, the logarithm of m.
    """

    def __init__(self, answers: Judged, *, position: bool) -> None:
        self.answers, self.position, self.n = answers, position, answers.n_items
        n, judges, k = self.n, answers.n_judges, len(answers.first)
        self.basis = np.asarray(linalg.qr(answers.share[:, None])[0][:, 1:])
        self.of_b = slice(n, n + (judges if position else 0))
        self.of_alpha = slice(self.of_b.stop, self.of_b.stop + judges - 1)
        self.row = {"t": self.of_alpha.stop}
        self.linear, self.size = self.of_alpha.stop, self.of_alpha.stop + 1
        ends = np.concatenate([answers.first, answers.second]), np.tile(np.arange(k), 2)
        self._incidence = sparse.csr_array((np.repeat([1.0, -1.0], k), ends), shape=(n, k))
        self._members = sparse.csr_array((np.ones(k), (answers.judge, np.arange(k))), shape=(judges, k))

    def slopes(self, x: Floats) -> Floats:
        """The slope of each judge, of each column; their mean over the comparisons is 1."""
        return np.asarray(1 + self.basis @ x[self.of_alpha])

    def _expected(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Per comparison: the logit that the first wins, the difference of eta, and what that counts."""
        answers = self.answers
        d = x[answers.first] - x[answers.second]
        c = (np.exp(x[self.row["t"]]) * self.slopes(x))[answers.judge]
        logit = c * d
        return (logit + x[self.of_b][answers.judge] if self.position else logit), d, c

    def __call__(self, x: Floats, *, value: bool) -> tuple[Floats | None, Floats]:
        """The log density of each column (up to a constant, when ``value``), and its gradient."""
        answers, n = self.answers, self.n
        logit, d, c = self._expected(x)
        times, result = answers.times[:, None], answers.result[:, None]
        residual = times * (result - expit(logit))
        eta, b, alpha, t = x[:n], x[self.of_b], x[self.of_alpha], x[self.row["t"]]
        m = np.exp(t)
        in_c = m * (self._members @ (d * residual))
        gradient = np.empty_like(x)
        gradient[:n] = self._incidence @ (c * residual) - eta
        gradient[self.of_alpha] = self.basis.T @ in_c - alpha / SLOPE_SCALE**2
        gradient[self.row["t"]] = (self.slopes(x) * in_c).sum(axis=0) - (m / LEARNED_SCALE) ** 2 + 1
        if self.position:
            gradient[self.of_b] = self._members @ residual - b / JUDGE_POSITION_SCALE**2
        if not value:
            return None, gradient
        log = (times * (result * log_expit(logit) + (1 - result) * log_expit(-logit))).sum(axis=0)
        log -= 0.5 * np.square(eta).sum(axis=0) + 0.5 * np.square(b).sum(axis=0) / JUDGE_POSITION_SCALE**2
        log -= 0.5 * np.square(alpha).sum(axis=0) / SLOPE_SCALE**2
        return log - 0.5 * (m / LEARNED_SCALE) ** 2 + t, gradient

    def factor(self, x: Floats) -> Floats:
        """The lower Cholesky factor of the precision of ``eta``, ``b`` and ``alpha`` around one column, given ``t``."""
        answers, n, k = self.answers, self.n, len(self.answers.first)
        logit, d, c = (column[:, 0] for column in self._expected(x))
        weight = answers.times * expit(logit) * expit(-logit)
        ones, at = np.ones(k), np.arange(k)
        pairs = [(c, answers.first), (-c, answers.second)]
        if self.position:
            pairs.append((ones, n + answers.judge))
        of_alpha = math.exp(x[self.row["t"], 0]) * d[:, None] * self.basis[answers.judge]
        pairs += [(column, np.full(k, self.of_alpha.start + one)) for one, column in enumerate(of_alpha.T)]
        places = np.tile(at, len(pairs)), np.concatenate([column for _, column in pairs])
        rows = sparse.csr_array((np.concatenate([values for values, _ in pairs]), places), shape=(k, self.linear))
        prior = np.ones(self.linear)
        prior[self.of_b], prior[self.of_alpha] = JUDGE_POSITION_SCALE**-2, SLOPE_SCALE**-2
        precision = (rows.T @ (sparse.diags_array(weight) @ rows)).toarray() + np.diag(prior)
        return np.asarray(linalg.cholesky(precision, lower=True))


@dataclass(frozen=True, slots=True, eq=False)
class SlopeCenter:
    """Where the posterior is, approximately.

    Attributes:
        x: One column of all parameters.
        logit: Per comparison, the logit that the first wins.
        variance: Per comparison, the variance of that logit, as far as it is that of the scores.
    """

    x: Floats
    logit: Floats
    variance: Floats


def slope_center(density: SlopeDensity) -> SlopeCenter:
    """The penalised fit, by turns: the distribution of the scores given the judges, then the judges given that.

    The judges' parameters maximise the likelihood averaged over the distribution of the scores. Both at once have a
    mode, too, but it is far from the mass of the posterior: there, scores are small and slopes are large.
    """
    answers = density.answers
    eta, b, c = np.zeros(density.n), np.zeros(answers.n_judges), np.ones(answers.n_judges)
    for _ in range(_ROUNDS):
        variance = _texts(answers, eta, b, c)
        moved = _judges(answers, eta, variance, b, c, position=density.position)
        if moved < _SETTLED:
            break
    variance = _texts(answers, eta, b, c)
    m = max(float(answers.share @ c), _LEAST)
    x = np.zeros((density.size, 1))
    x[: density.n, 0], x[density.row["t"]] = eta, math.log(m)
    if density.position:
        x[density.of_b, 0] = b
    x[density.of_alpha, 0] = density.basis.T @ (c / m - 1)
    d = eta[answers.first] - eta[answers.second]
    return SlopeCenter(x, c[answers.judge] * d + b[answers.judge], c[answers.judge] ** 2 * variance)


def _texts(answers: Judged, eta: Floats, b: Floats, c: Floats) -> Floats:
    """Move ``eta`` to its mode given the judges; the variance of each comparison's difference there."""
    first, second, n = answers.first, answers.second, len(eta)
    slope, effect = c[answers.judge], b[answers.judge]
    covariance = np.eye(n)
    for _ in range(_STEPS):
        p = expit(slope * (eta[first] - eta[second]) + effect)
        weight, residual = answers.times * slope**2 * p * (1 - p), answers.times * slope * (answers.result - p)
        precision = sparse.csr_array((-weight, (first, second)), shape=(n, n)).toarray()
        precision += precision.T
        precision += np.diag(np.bincount(first, weight, n) + np.bincount(second, weight, n) + 1)
        covariance = np.asarray(linalg.inv(precision))
        step = covariance @ (np.bincount(first, residual, n) - np.bincount(second, residual, n) - eta)
        eta += step * min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-12))
        if float(np.abs(step).max()) < _CLOSE:
            break
    own = np.diag(covariance)
    return np.asarray(own[first] + own[second] - 2 * covariance[first, second])


def _judges(answers: Judged, eta: Floats, variance: Floats, b: Floats, c: Floats, *, position: bool) -> float:
    """Move ``b`` and ``c`` by one Newton step of the averaged likelihood; how far the largest moved."""
    judge = answers.judge
    d = (eta[answers.first] - eta[answers.second])[:, None] + np.sqrt(variance)[:, None] * _NODES
    p = expit(c[judge][:, None] * d + b[judge][:, None])
    times = answers.times[:, None] * _WEIGHTS
    residual, weight = times * (answers.result[:, None] - p), times * p * (1 - p)

    def per_judge(values: Floats) -> Floats:
        return np.asarray(np.bincount(judge, values.sum(axis=1), answers.n_judges))

    m = max(float(answers.share @ c), _LEAST)
    prior_b, prior_c = JUDGE_POSITION_SCALE**-2, (SLOPE_SCALE * m) ** -2
    in_c = per_judge(d * residual) - prior_c * (c - m)
    in_b = per_judge(residual) - prior_b * b
    of_c, of_b, both = per_judge(d**2 * weight) + prior_c, per_judge(weight) + prior_b, per_judge(d * weight)
    if not position:
        in_b, both = np.zeros_like(b), np.zeros_like(b)
    determinant = of_c * of_b - both**2
    step_b = np.clip((of_c * in_b - both * in_c) / determinant, -1, 1)
    step_c = np.clip((of_b * in_c - both * in_b) / determinant, -1, 1)
    b += step_b
    c += step_c
    return float(max(np.abs(step_b).max(), np.abs(step_c).max()))
