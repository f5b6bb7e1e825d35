"""TrueSkill for two items: what is believed of each, after every single answer, at the cost of a few operations.

Each item is a normal distribution, mean mu and standard deviation sigma; a comparison shows each ability with noise of
standard deviation beta, and the larger one wins. There are no draws, and abilities do not drift. With::

    c^2 = sigma_w^2 + sigma_l^2 + 2 beta^2      t = (mu_w - mu_l) / c
    v = pdf(t) / cdf(t)                         u = v (v + t)

(pdf and cdf of the standard normal distribution) an answer moves winner and loser to::

    mu_w + sigma_w^2 v / c      mu_l - sigma_l^2 v / c      sigma_i^2 (1 - u sigma_i^2 / c^2)

In an extreme upset pdf and cdf are both 0 to a computer, and v is not a number if it is computed as written. Here it
comes from the scaled complementary error function, and ``1 - u`` far out from its series, so that every finite belief
stays one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, ndtr

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

    mu_winner: float
    sigma_winner: float
    mu_loser: float
    sigma_loser: float


def update(mu_winner: float, sigma_winner: float, mu_loser: float, sigma_loser: float) -> Beliefs:
    """What is believed of two items after one of them won.

    Args:
        mu_winner: the winner's mean.
        sigma_winner: the winner's standard deviation, above 0.
        mu_loser: the loser's mean.
        sigma_loser: the loser's standard deviation, above 0.

    Returns:
        The new means and standard deviations; no standard deviation grows, and all stay above 0.

    Example:
        >>> after = update(MU, SIGMA, MU, SIGMA)
        >>> round(after.mu_winner, 4), round(after.sigma_winner, 4)
        (29.2052, 7.1945)
    """
    c, t = _lead(mu_winner, sigma_winner, mu_loser, sigma_loser)
    v, rest = _surprise(t)
    return Beliefs(
        mu_winner=mu_winner + sigma_winner * (sigma_winner / c) * v,
        sigma_winner=_narrowed(sigma_winner, sigma_loser, c, rest),
        mu_loser=mu_loser - sigma_loser * (sigma_loser / c) * v,
        sigma_loser=_narrowed(sigma_loser, sigma_winner, c, rest),
    )


def update_tie(mu_i: float, sigma_i: float, mu_j: float, sigma_j: float) -> Beliefs:
    """What is believed of two items after a tie: the mean of the beliefs after a win of i and after a win of j.

    Returns:
        The new means and standard deviations, those of i in the place of the winner's.

    Example:
        >>> after = update_tie(30, SIGMA, 20, SIGMA)
        >>> round(after.mu_winner, 4), round(after.mu_loser, 4)
        (27.4959, 22.5041)
    """
    won = update(mu_i, sigma_i, mu_j, sigma_j)
    lost = update(mu_j, sigma_j, mu_i, sigma_i)
    return Beliefs(
        mu_winner=(won.mu_winner + lost.mu_loser) / 2,
        sigma_winner=(won.sigma_winner + lost.sigma_loser) / 2,
        mu_loser=(won.mu_loser + lost.mu_winner) / 2,
        sigma_loser=(won.sigma_loser + lost.sigma_winner) / 2,
    )


def win_probability(mu_i: float, sigma_i: float, mu_j: float, sigma_j: float) -> float:
    """The probability that i beats j, ``cdf((mu_i - mu_j) / c)``, from what is believed of both.

    Example:
        >>> win_probability(MU, SIGMA, MU, SIGMA)
        0.5
    """
    _, t = _lead(mu_i, sigma_i, mu_j, sigma_j)
    return float(ndtr(t))


def _lead(mu_i: float, sigma_i: float, mu_j: float, sigma_j: float) -> tuple[float, float]:
    """The standard deviation c of the difference of two showings, and the lead of i in units of it."""
    c = float(np.hypot(np.hypot(sigma_i, sigma_j), math.sqrt(2) * BETA))
    return c, (mu_i - mu_j) / c


def _surprise(t: float) -> tuple[float, float]:
    """How far an outcome moves the means, v, and how much of the variance it cannot take away, 1 - u."""
    v = math.sqrt(2 / math.pi) / float(erfcx(-t / math.sqrt(2)))
    if t < -_FAR:
        # v + t is the small difference of two large numbers here: the digits that it loses are those that count.
        square = 1 / (t * t)
        return v, square * float(np.polyval(_SERIES[::-1], square))
    return v, min(max(1 - v * (v + t), 0.0), 1.0)


def _narrowed(own: float, other: float, c: float, rest: float) -> float:
    """The new standard deviation: 1 - u own² / c², with the part that can never go away added, not left over."""
    stays = (other / c) * (other / c) + 2 * ((BETA / c) * (BETA / c))
    return min(own, own * math.sqrt(stays + (own / c) * (own / c) * rest))
