"""What follows from the goal of a run: the whole order, or the texts at the top.

A goal decides two things: which errors of the scores count when the next pair is chosen, and when the run may stop.

**Choosing.** A comparison of i and j with information w on their difference, whose variance is v, takes
``w / (1 + w v) (C x)(C x)'`` from the covariance C, with x = e_i - e_j. Where an error of the score of text k counts by
``omega_k``, the pair is worth::

    w / (1 + w v) * sum over k of omega_k (C x)_k²

For the *top K*, scores count as distances to the cut, the place between the K-th text and the next. Two places may be
meant: that between the K-th and the next of the expected scores, and the one above which K texts are expected, which is
higher as long as little is known, as expected scores are drawn to the middle. The cut is half-way between the two. Its
score is that of the texts in proportion to how likely each is to be there, and C is the covariance of the distances.
``omega_k = phi(d_k / s_k) / s_k``, with the mean d_k and the standard deviation s_k of the distance, is how dense the
belief of text k is at the cut: only texts that may be on either side of it count.

For the *ranks* of all texts, ``omega_k`` is the square of how densely the others stand around text k, on average over
what is believed of them: an error of its score costs as many ranks as there are texts within it.

**Stopping.** The top K that a run reports are the K texts with the highest posterior means. The expected number of
wrong members among them is K less the sum of their posterior probabilities of being in the top K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

if TYPE_CHECKING:
    from pairscale.adaptive.selection.ledger import Flags
    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.bayes.posterior import Posterior

_HALVED = 40  # times, to find a place on the scale
_NOTHING = 1e-9  # of the largest weight: what is below counts for nothing


@dataclass(frozen=True, slots=True, eq=False)
class ErrorWeights:
    """How much errors of the scores count.

    Attributes:
        weights: Per text, omega.
        cut: Per text, its share in the score of the cut that scores are distances to; None when they are no distances.
    """

    weights: Floats
    cut: Floats | None = None

    def of_pairs(self, covariance: Floats, rows: Ints | slice = slice(None)) -> Floats:
        """``sum over k of omega_k (C x)_k²`` per pair of a text of ``rows`` and any text.

        Args:
            covariance: C, of the scores.
            rows: The one text of the pairs.
        """
        near = np.flatnonzero(self.weights)
        part = covariance[:, near]
        if self.cut is not None:
            part = part - (covariance @ self.cut)[:, None]
        scaled = part * self.weights[near]
        own = np.einsum("ik,ik->i", scaled, part)
        told: Floats = scaled[rows] @ part.T
        told *= -2
        told += own
        told += own[rows, None]
        return told


def top_errors(mean: Floats, covariance: Floats, top: int, there: Flags) -> ErrorWeights | None:
    """How much errors count for the top K; None when all texts that are there belong to it.

    Args:
        mean: Per text, the expected score.
        covariance: Of the scores.
        top: How many texts are wanted.
        there: Per text, whether it may be a member; those that were withdrawn may not.
    """
    among = np.sort(mean[there])[::-1]
    if top >= len(among):
        return None
    variance = np.diag(covariance)
    between = (among[top - 1] + among[top]) / 2
    distance = mean - (between + _expected_above(mean[there], np.sqrt(variance[there]), top)) / 2
    cut = np.where(there, _density(distance, variance), 0.0)
    if not cut.any():  # far from everything: the nearest text is the cut
        cut[np.argmin(np.where(there, np.abs(distance), np.inf))] = 1.0
    cut /= cut.sum()
    with_cut = covariance @ cut
    apart = variance - 2 * with_cut + cut @ with_cut
    weights = np.where(there, _density(distance, apart), 0.0)
    weights[weights < _NOTHING * weights.max()] = 0.0
    return ErrorWeights(weights, cut) if weights.any() else None


def _expected_above(mean: Floats, sd: Floats, top: int) -> float:
    """The score above which so many texts are expected."""
    usable = np.maximum(sd, 1e-9)
    low, high = float((mean - 8 * usable).min()), float((mean + 8 * usable).max())
    for _ in range(_HALVED):
        middle = (low + high) / 2
        if float(ndtr((mean - middle) / usable).sum()) > top:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def rank_errors(mean: Floats, covariance: Floats) -> ErrorWeights:
    """How much errors count for the ranks of all texts.

    Args:
        mean: Per text, the expected score.
        covariance: Of the scores.
    """
    variance = np.diag(covariance)
    density = _density(mean[:, None] - mean, variance[:, None] + variance - 2 * covariance)
    np.fill_diagonal(density, 0.0)
    return ErrorWeights(np.square(density.mean(axis=1)))


def _density(distance: Floats, variance: Floats) -> Floats:
    """That of a normal distribution of this mean and variance, at zero."""
    usable = np.maximum(variance, 1e-9)
    density: Floats = np.exp(-np.square(distance) / (2 * usable)) / np.sqrt(2 * math.pi * usable)
    return density


def top_probabilities(posterior: Posterior, top: int) -> Floats:
    """Per text, the share of draws in which it is among the top K."""
    theta = posterior.theta
    n_draws, n = theta.shape
    if top >= n:
        return np.ones(n)
    members = np.argpartition(-theta, top - 1, axis=1)[:, :top]
    counted: Floats = np.bincount(members.ravel(), minlength=n) / n_draws
    return counted


def top_figures(posterior: Posterior, top: int) -> tuple[Floats, float]:
    """Per text, the probability of being in the top K, and the expected number of wrong members."""
    probability = top_probabilities(posterior, top)
    return probability, expected_wrong(probability, posterior.items.theta_mean, top)


def expected_wrong(probability: Floats, mean: Floats, top: int) -> float:
    """How many of the K texts with the highest means are expected not to belong to the top K.

    Args:
        probability: Per text, that of being in the top K.
        mean: Per text, its posterior mean.
        top: K.
    """
    chosen = np.argsort(-mean, kind="stable")[:top]
    return float(len(chosen) - probability[chosen].sum())
