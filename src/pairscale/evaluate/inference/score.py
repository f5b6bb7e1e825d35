"""An interval for the mean of scores that are 0, ½ or 1: Wilson's, with room for ties.

With the mean p and the share h of halves, a score has the variance p (1 - p) - h / 4. An interval holds the p that a
score test does not reject,

    n (mean - p)²  <=  z² (p (1 - p) - h(p) / 4)

where h(p) is the most likely share of halves if p were true. Write d = 2 p - 1, D for its estimate, H for the observed
share of halves and u = 1 - h(p). The likelihood then gives

    u² - (1 - H + d D) u + d D - H d² = 0          (the larger root)

Without halves u is 1, and the interval is Wilson's. With them it is the score interval of Tango (1998) for the
difference of two paired proportions, on the scale of a rate. Feeding Wilson's formula with half wins instead would
leave out the term h / 4: the interval would be too wide.

Graded scores, anywhere between 0 and 1, vary less than wins and losses with the same mean. Their variance is taken as
f p (1 - p) with the share f that the scores themselves show, so the interval is Wilson's with n / f in the place of n,
less what it costs that f is an estimate. Where a few scores lie far from the others, the mean is more skewed than that
of wins and losses, and the end on that side is moved outwards, by the first term of Cornish and Fisher's series
(Johnson 1978): z + |g| (2 z² + 1) / 6, with g the skewness of the mean beyond that of wins and losses.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pairscale.evaluate.inference.cases import ArrayPair, Ends, Scores, normal_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairscale.core.arrays import Floats

_HALVINGS = 50  # of an interval of at most 1: to 1e-15
_NO_WIN = 1e-9
IMAGINED = 0.25
"""Of a case that is as far from the mean as a win or a loss: it enters the variance of graded scores."""
NO_SPREAD = 1e-12
"""Of scores that are equal, but for rounding."""


def score_interval(rate: float, halves: float, size: float, level: float, *, careful: bool = False) -> Ends:
    """The interval for a rate.

    Args:
        rate: the mean score.
        halves: the share of scores that are ½.
        size: how many independent scores there are; need not be whole.
        level: of the interval.
        careful: whether it also has to hold for few cases; see :func:`careful_limits`.
    """
    limits = careful_limits if careful else score_limits
    lower, upper = limits(np.array([rate]), np.array([halves]), np.array([float(size)]), level)
    return float(lower[0]), float(upper[0])


def score_limits(rate: Floats, halves: Floats, size: Floats, level: float) -> ArrayPair:
    """The same for many rates at once."""
    z2, seen = normal_quantile(level) ** 2, 2 * rate - 1

    def inside(d: Floats) -> NDArray[np.bool_]:
        sum_, product = 1 - halves + d * seen, d * seen - halves * d * d
        u = (sum_ + np.sqrt(np.maximum(sum_ * sum_ - 4 * product, 0))) / 2
        spread = np.clip(u, np.abs(d), 1) - d * d
        return np.asarray(size * (seen - d) ** 2 <= z2 * spread)

    limits = []
    for end in (-1.0, 1.0):
        inner, outer = seen.copy(), np.full_like(seen, end)
        for _ in range(_HALVINGS):
            middle = (inner + outer) / 2
            within = inside(middle)
            inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
        limits.append((1 + np.where(inside(np.full_like(seen, end)), end, inner)) / 2)
    return limits[0], limits[1]


def careful_limits(rate: Floats, halves: Floats, size: Floats, level: float) -> ArrayPair:
    """Ends that also hold for few cases, each with a chance of (1 + level) / 2: for a test of each side.

    Without ties they are those of Clopper and Pearson. With ties, they are the ends of :func:`score_limits` after one
    tie was counted for the side that the end is to guard against, which is a correction for continuity. By enumeration
    neither end is wrong more often than it may be, up to 60 cases and for any share of ties (docs/validation.md).
    """
    lower = _careful_lower(rate, halves, size, level)
    return lower, 1 - _careful_lower(1 - rate, halves, size, level)


def _careful_lower(rate: Floats, halves: Floats, size: Floats, level: float) -> Floats:
    from scipy.special import betaincinv

    wins, ties = size * (rate - halves / 2), size * halves
    lost = np.minimum(ties, 1.0)  # where the size is no whole number, there may be less than one tie
    wins_less, ties_less = np.maximum(wins - (1 - lost) / 2, 0), ties - lost
    with_ties = score_limits((wins_less + ties_less / 2) / size, ties_less / size, size, level)[0]
    some = wins > _NO_WIN
    exact = np.where(some, betaincinv(np.where(some, wins, 1.0), size - wins + 1, (1 - level) / 2), 0.0)
    return np.asarray(np.where(ties > _NO_WIN, with_ties, exact))


def graded_limits(
    rate: Floats, variance: Floats, units: float, size: Floats, level: float, skew: Floats | None = None
) -> ArrayPair:
    """The ends of intervals for the mean of graded scores, of many data sets at once.

    The variance is f p (1 - p). A quarter of a case enters f that varies as wins and losses do, so that a few scores
    that happen to be close together do not give a narrow interval; scores that are all equal say nothing about f, which
    is 1 then: the interval is Wilson's. Because f is an estimate, the size is less by (z / t)², t with units - 1.

    Args:
        rate: the mean scores.
        variance: of the scores, divided by their number less 1.
        units: how many units drawn independently they come from: tasks, or cases where each is of a task of its own.
        size: how many independent scores they are worth.
        level: of the interval.
        skew: the skewness of the mean; None where it is not known.
    """
    most = rate * (1 - rate)
    vary = (variance > NO_SPREAD) & (most > 0) & (units > 1)
    seen = ((units - 1) * variance + IMAGINED * most) / (units - 1 + IMAGINED)
    share = np.where(vary, np.minimum(1.0, seen / np.where(vary, most, 1.0)), 1.0)
    charge = (normal_quantile(level) / student_quantile(level, units - 1)) ** 2 if units > 1 else 1.0
    worth = np.where(vary, size * charge, size) / share
    z = normal_quantile(level)
    excess = np.zeros_like(rate)
    if skew is not None:
        of_wins = (1 - 2 * rate) / np.sqrt(np.where(vary, most, 1.0) * size / share)
        excess = np.where(vary, (skew - of_wins) * (2 * z * z + 1) / 6, 0.0)
    ends = []
    for side in (-1, 1):
        z2 = (z + np.maximum(side * excess, 0)) ** 2
        centre = (worth * rate + z2 / 2) / (worth + z2)
        reach = np.sqrt(z2 * (worth * most + z2 / 4)) / (worth + z2)
        ends.append(np.clip(centre + side * reach, 0.0, 1.0))
    return ends[0], ends[1]


def rate_ends(scores: Scores, level: float) -> Ends:
    """The interval for a rate over tasks, graded or not; there must be one.

    Where tasks have several cases and all means are 0, ½ or 1, the ends are the careful ones: there, a few tasks that
    agree by chance would look like a proof.

    Args:
        scores: of the cases, by task.
        level: of the interval.
    """
    rate = float(scores.means.mean())
    if not scores.graded:
        return score_interval(rate, scores.halves, scores.tasks, level, careful=scores.repeated)
    figures = np.array([[rate], [scores.variance], [scores.tasks], [scores.skewness]])
    lower, upper = graded_limits(figures[0], figures[1], scores.tasks, figures[2], level, figures[3])
    return float(lower[0]), float(upper[0])


def half_share(rate: Floats, variance: Floats) -> Floats:
    """The share of halves with which scores of 0, ½ and 1 would have this mean and variance.

    So that the interval also serves scores between 0 and 1 of any kind, such as means over the cases of a task.
    """
    return np.asarray(np.clip(4 * (rate * (1 - rate) - variance), 0, 1 - np.abs(2 * rate - 1)))


@lru_cache(maxsize=1024)
def student_quantile(level: float, freedom: float) -> float:
    """How many standard errors a two-sided interval of Student's t reaches."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2)) if freedom > 0 else math.inf
