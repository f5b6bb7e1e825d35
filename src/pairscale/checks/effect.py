"""Tests and intervals of shares, and of which position a judge favours."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal, TypeAlias

SURELY_BETTER = 1.6449
"""Standard errors of a difference from which on the larger is the better with a probability of 95 % or more."""

_RATES = 50
"""Rates that :func:`surely_above` bets on."""


def p_words(p: float | None) -> str:
    """A p-value as it is written: ``p = 0.032``, ``p < 0.001``."""
    if p is None:
        return "no test"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def sign_test(successes: int, total: int) -> float | None:
    """The two-sided p of a number of heads of a fair coin, as R's ``binom.test`` has it; None without a toss."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(successes, total - successes), total, 0.5))) if total else None


Leaning: TypeAlias = Literal["first", "second", "none", "few"]
"""Which position is favoured: one, none, or there are too few pairs to tell."""


def leaning(first: int, second: int, level: float) -> Leaning:
    """What pairs that went to one position in both orders say, by the sign test between the two.

    Args:
        first: how many went to the first position.
        second: how many went to the second.
        level: a position is favoured when p is below 1 - level.
    """
    total = first + second
    if total == 0:
        return "none"
    p = sign_test(first, total)
    if p is not None and p < 1 - level:
        return "first" if first > second else "second"
    return "few" if 0.5 ** (total - 1) >= 1 - level else "none"  # even if they all had gone one way


def wilson(successes: float, total: int, level: float) -> tuple[float | None, float | None]:
    """Wilson's interval of a proportion; None twice when there is nothing to count."""
    if not total:
        return None, None
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / total
    middle = share + z**2 / (2 * total)
    rest = 1 + z**2 / total
    half = z * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    return max(0.0, (middle - half) / rest), min(1.0, (middle + half) / rest)


def surely_above(successes: int, total: int, share: float, level: float) -> bool:
    """Whether a probability is above ``share``, by a rule that you may apply after every single trial.

    A judge whose true probability is ``share`` or less is ever said to be above it with a chance of at most
    ``1 - level``, over all looks together. The probability may change from trial to trial, and with what came before.

    The mean of the likelihood ratios of :data:`_RATES` rates above ``share`` against ``share`` itself is a capital that
    does not grow on average while the probability is at most ``share``. By Ville's inequality it ever reaches
    ``1 / (1 - level)`` with a chance of at most ``1 - level``.

    Args:
        successes: trials that succeeded, so far.
        total: all trials so far.
        share: what the probability is compared with.
        level: the confidence.

    Example:
        >>> surely_above(22, 30, 0.5, 0.95), surely_above(23, 30, 0.5, 0.95)
        (False, True)
    """
    if successes <= share * total:
        return False
    if share <= 0:
        return True  # one success is impossible at a probability of 0
    failures = total - successes
    logs = []
    for number in range(_RATES):
        above = (number + 0.5) / _RATES  # the rate is share + above (1 - share)
        logs.append(successes * math.log1p(above * (1 - share) / share) + failures * math.log1p(-above))
    most = max(logs)
    capital = most + math.log(math.fsum(math.exp(log - most) for log in logs) / _RATES)
    return capital >= -math.log(1 - level)
