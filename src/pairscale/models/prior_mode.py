"""Bradley–Terry with the prior N(0, s²) for every item: the most probable abilities, by Newton's method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pairscale.models.data import side_sums
from pairscale.models.linalg import laplacian

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints

_STEPS = 60
_DONE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class PriorMode:
    """The top of the posterior.

    Attributes:
        theta: per item, the most probable ability.
        height: the log of likelihood times prior there, but for the prior's constant.
        p: per pair, the probability that i wins.
        factor: the Cholesky factor of the curvature there, lower half; it may be overwritten.
    """

    theta: Floats
    height: float
    p: Floats
    factor: Floats


def prior_mode(i: Ints, j: Ints, times: Floats, won: Floats, *, prior: float, start: Floats) -> PriorMode:
    """The mode for these answers.

    Args:
        i: the one item of each pair; every pair is there once.
        j: the other, of the higher number.
        times: per pair, how often it was asked.
        won: per pair, how often i won.
        prior: 1 / s².
        start: per item, where to begin.
    """
    n = len(start)
    theta = start
    share = 1.0
    before = -math.inf
    step = np.zeros(n)
    p = np.zeros(len(i))
    factor = np.eye(n)
    for _ in range(_STEPS):
        moved = theta + share * step
        d = moved[i] - moved[j]
        height = float(won @ d - times @ np.logaddexp(0, d) - prior / 2 * (moved @ moved))
        if height < before - 1e-9 * abs(before):
            share /= 2  # too far: the way is right, for the posterior has one top only
            continue
        theta = moved
        before = height
        share = 1.0
        p = scipy.special.expit(d)
        weights = times * p * (1 - p)
        diagonal = side_sums(i, j, weights, weights, n) + prior
        curvature = laplacian(i, j, weights, diagonal, np.zeros((0, n)))
        factor, _ = scipy.linalg.lapack.dpotrf(curvature, lower=1, clean=1, overwrite_a=1)
        surplus = won - times * p
        slope = side_sums(i, j, surplus, -surplus, n) - prior * theta
        step, _ = scipy.linalg.lapack.dpotrs(factor, slope, lower=1)
        if np.abs(step).max(initial=0.0) < _DONE:
            break
    return PriorMode(theta, before, p, factor)
