"""The spread of the scores, learned: the standard deviation of their prior where the evidence for it is largest.

With ``theta_i ~ N(0, s²)`` and a half-normal prior for s, the slope of the log evidence in ``log s`` is::

    sum(mean²) / s² + sum(variance) / s² - (N - 1) - s² / scale² + 1

with the means and variances of the posterior at s. Those of the normal approximation around the mode would give a
spread that is a tenth to a third too small. So slopes and curvatures of the likelihood are averaged over the
distribution of each pair's difference, as in :mod:`pairscale.models.laplace`, which moves the centre from the mode to
the mean. The slope falls in s, and the secant method finds where it is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pairscale.models._btl import LEARNED_SCALE
from pairscale.models._information import Information, pair_sums, pair_variances, solve
from pairscale.models.likelihood import with_weights

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats
    from pairscale.models.data import Counts
    from pairscale.models.likelihood import Root

__all__ = ["averaged_information", "learned_spread"]

_LOW, _HIGH = math.log(0.05), math.log(50.0)
_STEPS, _DONE = 30, 2e-3
_NODES = ((0.0, 2 / 3), (math.sqrt(3), 1 / 6), (-math.sqrt(3), 1 / 6))
_NEWTON, _MOVED, _LONGEST = 40, 0.01, 2.0


@dataclass(slots=True, eq=False)
class _Posterior:
    """Means of the scores, and the variance of each pair's difference; what one spread leaves to the next."""

    mean: Floats
    apart: Floats
    total: float = 0.0


def learned_spread(counts: Counts) -> float:
    """The standard deviation of the scores of items that comparisons join.

    Where ties are modelled, it is learned without them: given that there is none, the model is that of Bradley and
    Terry with the same scores.
    """
    size = counts.n_items
    if counts.tied is not None:
        counts = replace(counts, times=counts.times - counts.tied, won=counts.won - counts.tied / 2, tied=None)
    found = _Posterior(np.zeros(size), np.zeros(len(counts.times)))
    at = 0.0
    slope = _slope(counts, 1.0, found, rounds=3)
    step = min(max(0.5 * math.log(max(1 + slope / size, 0.1)), -0.7), 0.7) or 0.1
    for _ in range(_STEPS):
        before, was = at, slope
        at = min(max(at + step, _LOW), _HIGH)
        if abs(at - before) < _DONE:
            break
        slope = _slope(counts, math.exp(at), found, rounds=2)
        bend = (slope - was) / (at - before)
        step = min(max(-slope / bend, -1.0), 1.0) if bend < 0 else math.copysign(0.5, slope)
    return math.exp(at)


def _slope(counts: Counts, sd: float, found: _Posterior, rounds: int) -> float:
    """Of the log evidence in log s; ``found`` is moved to the posterior at s."""
    prior = sd**-2
    for _ in range(rounds):
        information = _mean(counts, prior, found)
        found.apart, found.total = pair_variances(information)
    squares = float(found.mean @ found.mean) + found.total
    return squares * prior - (counts.n_items - 1) - sd**2 / LEARNED_SCALE**2 + 1


def _mean(counts: Counts, prior: float, found: _Posterior) -> Information:
    """Move the means to where the averaged slope is 0, by Newton's steps; the information there."""
    nothing = np.zeros((counts.n_items, 0)), np.zeros((0, 0))
    for _ in range(_NEWTON):
        p, weight = _averages(found.mean[counts.first] - found.mean[counts.second], found.apart)
        left = counts.won - counts.times * p
        weights = counts.times * weight
        information = Information(counts, weights, pair_sums(counts, weights, weights), *nothing, prior)
        solved = solve(information, pair_sums(counts, left, -left) - prior * found.mean, np.zeros(0), 1e-3)
        if solved is None:
            break
        longest = float(np.abs(solved[0]).max())
        found.mean = found.mean + solved[0] * min(1.0, _LONGEST / max(longest, _LONGEST))
        if longest < _MOVED:
            break
    return information


def averaged_information(counts: Counts, root: Root) -> Root:
    """The same root with the information averaged over the posterior.

    At the mode it is a little too large: 95 % intervals would cover 93 to 94 %. Modelled ties are left as they are.
    """
    for _ in range(2):
        apart, _ = pair_variances(root.information)
        _, weight = _averages(root.at.gaps(counts), apart)
        root = replace(root, information=with_weights(root.information, root.at, counts.times * weight))
    return root


def _averages(gap: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Per pair, the mean probability that the first wins, and its mean slope in the difference."""
    sd = np.sqrt(variance)
    p, weight = np.zeros(len(gap)), np.zeros(len(gap))
    for at, share in _NODES:
        value = scipy.special.expit(gap + at * sd)
        p += share * value
        weight += share * value * (1 - value)
    return p, weight
