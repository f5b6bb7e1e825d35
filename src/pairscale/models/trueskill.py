"""TrueSkill for two items: what is believed of each, after every single answer, at the cost of a few operations.

Each item is a normal distribution, mean mu and standard deviation sigma; a comparison shows each ability with noise of
standard deviation beta, and the larger one wins. There are no draws, and abilities do not drift. With::

    c^2 = sigma_w^2 + sigma_l^2 + 2 beta^2      t = (mu_w - mu_l) / c
    v = pdf(t) / cdf(t)                         u = v (v + t)

(pdf and cdf of the standard normal distribution) an answer moves winner and loser to::

    mu_w + sigma_w^2 v / c      mu_l - sigma_l^2 v / c      sigma_i^2 (1 - u sigma_i^2 / c^2)

In an extreme upset pdf and cdf are both 0 to a computer, and v is not a number if it is computed as written. Here it
comes from the scaled complementary error function, and ``1 - u`` far out from its series, so that every finite belief
stays one. All functions work on numbers and, element by element, on arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr

from pairscale.core.arrays import Floats
from pairscale.core.errors import InputError

__all__ = ["BETA", "MU", "SIGMA", "Beliefs", "chance_of", "update", "update_one", "update_tie", "win_probability"]

MU = 25.0
"""What is believed of an item before its first comparison: the mean."""

SIGMA = 25.0 / 3
"""What is believed of an item before its first comparison: the standard deviation."""

BETA = 25.0 / 6
"""The noise of one showing of an ability: its standard deviation."""

_FAR = 50.0  # from here on the series is the more exact one; both are good to nine digits of 1 - u
_SERIES = (1.0, -6.0, 50.0, -518.0, 6354.0)  # of 1 - u in 1 / t^2, without the constant, which is 0


class Beliefs(NamedTuple):
    """What is believed of a winner and a loser after their comparison.

    Attributes:
        mu_winner: the winner's mean.
        sigma_winner: the winner's standard deviation.
        mu_loser: the loser's mean.
        sigma_loser: the loser's standard deviation.
    """

    mu_winner: Floats
    sigma_winner: Floats
    mu_loser: Floats
    sigma_loser: Floats


def update(
    mu_winner: npt.ArrayLike,
    sigma_winner: npt.ArrayLike,
    mu_loser: npt.ArrayLike,
    sigma_loser: npt.ArrayLike,
    *,
    beta: float = BETA,
) -> Beliefs:
    """What is believed of two items after one of them won.

    Args:
        mu_winner: the winner's mean.
        sigma_winner: the winner's standard deviation, above 0.
        mu_loser: the loser's mean.
        sigma_loser: the loser's standard deviation, above 0.
        beta: the noise of one showing, above 0.

    Returns:
        The new means and standard deviations; no standard deviation grows, and all stay above 0.

    Raises:
        InputError: when a number is not finite, or a standard deviation not above 0.

    Example:
        >>> after = update(MU, SIGMA, MU, SIGMA)
        >>> round(float(after.mu_winner), 4), round(float(after.sigma_winner), 4)
        (29.2052, 7.1945)
    """
    mu_w, s_w, mu_l, s_l = _checked(mu_winner, sigma_winner, mu_loser, sigma_loser, beta)
    c = _spread(s_w, s_l, beta)
    v, rest = _surprise((mu_w - mu_l) / c)
    return Beliefs(
        mu_winner=mu_w + s_w * (s_w / c) * v,
        sigma_winner=_narrowed(s_w, s_l, c, rest, beta),
        mu_loser=mu_l - s_l * (s_l / c) * v,
        sigma_loser=_narrowed(s_l, s_w, c, rest, beta),
    )


_NOISE = math.sqrt(2) * BETA
_HALF_NORMAL = math.sqrt(2 / math.pi)


def update_one(mu_winner: float, sigma_winner: float, mu_loser: float, sigma_loser: float) -> Beliefs:
    """:func:`update` of single numbers, the same to the last bit: a run does it for every answer, and when replayed."""
    c = float(np.hypot(np.hypot(sigma_winner, sigma_loser), _NOISE))
    t = (mu_winner - mu_loser) / c if 0 < c < math.inf else math.nan
    if not (-_FAR <= t < math.inf and sigma_winner > 0 and sigma_loser > 0):
        return update(mu_winner, sigma_winner, mu_loser, sigma_loser)
    v = _HALF_NORMAL / float(erfcx(-t / math.sqrt(2)))
    rest = min(max(1 - v * (v + t), 0.0), 1.0)
    narrowed = []
    for own, other in ((sigma_winner, sigma_loser), (sigma_loser, sigma_winner)):
        stays = (other / c) * (other / c) + 2 * ((BETA / c) * (BETA / c))
        narrowed.append(min(own, own * math.sqrt(stays + (own / c) * (own / c) * rest)))
    moved_winner = mu_winner + sigma_winner * (sigma_winner / c) * v
    moved_loser = mu_loser - sigma_loser * (sigma_loser / c) * v
    return Beliefs(*map(np.asarray, (moved_winner, narrowed[0], moved_loser, narrowed[1])))


def chance_of(mu_i: float, sigma_i: float, mu_j: float, sigma_j: float) -> float:
    """:func:`win_probability` of single numbers, the same to the last bit."""
    c = float(np.hypot(np.hypot(sigma_i, sigma_j), _NOISE))
    t = (mu_i - mu_j) / c if 0 < c < math.inf else math.nan
    if not (math.isfinite(t) and sigma_i > 0 and sigma_j > 0):
        return float(win_probability(mu_i, sigma_i, mu_j, sigma_j))
    return float(ndtr(t))


def update_tie(mu_i: npt.ArrayLike, sigma_i: npt.ArrayLike, mu_j: npt.ArrayLike, sigma_j: npt.ArrayLike) -> Beliefs:
    """What is believed of two items after a tie: the mean of the beliefs after a win of i and after a win of j.

    Args:
        mu_i: the mean of one item.
        sigma_i: its standard deviation, above 0.
        mu_j: the mean of the other item.
        sigma_j: its standard deviation, above 0.

    Returns:
        The new means and standard deviations, those of i in the place of the winner's.

    Raises:
        InputError: when a number is not finite, or a standard deviation not above 0.

    Example:
        >>> after = update_tie(30, SIGMA, 20, SIGMA)
        >>> round(float(after.mu_winner), 4), round(float(after.mu_loser), 4)
        (27.4959, 22.5041)
    """
    won, lost = update(mu_i, sigma_i, mu_j, sigma_j), update(mu_j, sigma_j, mu_i, sigma_i)
    return Beliefs(
        mu_winner=(won.mu_winner + lost.mu_loser) / 2,
        sigma_winner=(won.sigma_winner + lost.sigma_loser) / 2,
        mu_loser=(won.mu_loser + lost.mu_winner) / 2,
        sigma_loser=(won.sigma_loser + lost.sigma_winner) / 2,
    )


def win_probability(
    mu_i: npt.ArrayLike, sigma_i: npt.ArrayLike, mu_j: npt.ArrayLike, sigma_j: npt.ArrayLike, *, beta: float = BETA
) -> Floats:
    """The probability that i beats j, ``cdf((mu_i - mu_j) / c)``, from what is believed of both.

    Raises:
        InputError: when a number is not finite, or a standard deviation not above 0.

    Example:
        >>> float(win_probability(MU, SIGMA, MU, SIGMA))
        0.5
    """
    mu_i, sigma_i, mu_j, sigma_j = _checked(mu_i, sigma_i, mu_j, sigma_j, beta)
    return np.asarray(ndtr((mu_i - mu_j) / _spread(sigma_i, sigma_j, beta)))[()]


def _checked(
    mu_i: npt.ArrayLike, sigma_i: npt.ArrayLike, mu_j: npt.ArrayLike, sigma_j: npt.ArrayLike, beta: float
) -> tuple[Floats, Floats, Floats, Floats]:
    m_i, s_i, m_j, s_j = (np.asarray(values, dtype=np.float64) for values in (mu_i, sigma_i, mu_j, sigma_j))
    if not (np.isfinite(m_i) & np.isfinite(s_i) & np.isfinite(m_j) & np.isfinite(s_j)).all():
        raise InputError("a mean or standard deviation is missing or not finite")
    if not (((s_i > 0) & (s_j > 0)).all() and 0 < beta < np.inf):
        raise InputError("a standard deviation (sigma or beta) is not above 0")
    return m_i, s_i, m_j, s_j


def _spread(sigma_i: Floats, sigma_j: Floats, beta: float) -> Floats:
    """The standard deviation c of the difference of two showings."""
    return np.asarray(np.hypot(np.hypot(sigma_i, sigma_j), np.sqrt(2) * beta))


def _surprise(t: Floats) -> tuple[Floats, Floats]:
    """How far an outcome moves the means, v, and how much of the variance it cannot take away, 1 - u."""
    v = np.sqrt(2 / np.pi) / erfcx(-t / np.sqrt(2))
    far = t < -_FAR
    # v + t is the small difference of two large numbers there: the digits that it loses are those that count.
    square = 1 / np.square(np.where(far, t, -_FAR))
    series = square * np.polyval(_SERIES[::-1], square)
    return v, np.where(far, series, np.clip(1 - v * (v + np.where(far, 0.0, t)), 0.0, 1.0))


def _narrowed(own: Floats, other: Floats, c: Floats, rest: Floats, beta: float) -> Floats:
    """The new standard deviation: 1 - u own² / c², with the part that can never go away added, not left over."""
    stays = np.square(other / c) + 2 * np.square(beta / c)
    return np.asarray(np.minimum(own, own * np.sqrt(stays + np.square(own / c) * rest)))[()]
