"""The position effect in logits, from pairs that were judged in both orders, whatever the samples are worth.

For a pair of samples i and j with difference d, and an effect b in favour of the first position::

    logit P(i wins, shown first) = d + b          logit P(i wins, shown second) = d - b

The differences are as many unknowns as there are pairs; they go away when one looks, pair by pair, only at how the
wins of i fall to the two orders. Given that i won s times in all, the x wins it has as the first follow

    P(x | s)  ∝  C(n_first, x) · C(n_second, s - x) · exp(2 b x)

With one answer an order, only pairs with two different winners say anything (s = 1), and what is left is a coin: both
went to the first position with probability logistic(2 b). Hence b = log(n_both_first / n_both_second) / 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RATES = 50
"""Rates that :func:`surely_above` bets on."""

VOTES = {
    "key": pl.String(),
    "ID1": pl.String(),
    "ID2": pl.String(),
    "n_first": pl.Int64(),
    "won_first": pl.Int64(),
    "n_second": pl.Int64(),
    "won_second": pl.Int64(),
}
"""Votes: one row per pair; how often ID1 stood first and won then, and stood second and won then."""

_FARTHEST = 60.0  # log odds beyond which a chance is 0 or 1 to a computer


@dataclass(frozen=True, slots=True)
class PairedEffect:
    """How much a judge favours the first position, in logits.

    Attributes:
        estimate: b: above 0 the first position is favoured, below 0 the second. Two equal samples are decided for the
            first with probability ``1 / (1 + exp(-b))``. None when no pair says anything of it.
        lower: of the interval; minus infinity when nothing speaks against any effect, however large.
        upper: of the interval, likewise.
        level: Level of the interval.
        informative: how many pairs the estimate rests on.
        method: ``exact`` (Clopper–Pearson, one answer an order) or ``score`` (some pairs were asked repeatedly).
    """

    estimate: float | None
    lower: float | None
    upper: float | None
    level: float
    informative: int
    method: str

    @property
    def even_chance(self) -> float | None:
        """The chance of the first of two equal samples."""
        return None if self.estimate is None else 0.5 * (1 + math.tanh(self.estimate / 2))


@dataclass(frozen=True, slots=True)
class _Stratum:
    """All pairs with the same three numbers: the wins x that are possible, and how likely each is without an effect."""

    pairs: int
    wins: NDArray[np.float64]
    log_weight: NDArray[np.float64]

    def moments(self, beta: float) -> NDArray[np.float64]:
        """Mean, variance and third central moment of the sum over its pairs."""
        log_p = self.log_weight + beta * self.wins
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        mean = p @ self.wins
        deviation = self.wins - mean
        return np.array([mean, p @ deviation**2, p @ deviation**3]) * self.pairs


def position_effect(votes: pl.DataFrame, level: float) -> PairedEffect:
    """The conditional estimate of the position effect, with its bias removed to first order, and an interval.

    The estimate maximises the conditional likelihood times the root of its information (Firth). With one answer an
    order that is ``log((n_both_first + ½) / (n_both_second + ½)) / 2``: finite, and nearly unbiased. The interval is
    exact there; where pairs were asked repeatedly, it holds the effects that a score test does not reject.

    Args:
        votes: with the columns of :data:`VOTES`; pairs that were seen in one order only do not count.
        level: Level of the interval.
    """
    both = votes.filter((pl.col("n_first") > 0) & (pl.col("n_second") > 0))
    exact = bool(both.select(((pl.col("n_first") == 1) & (pl.col("n_second") == 1)).all()).item())
    grouped = (
        both.with_columns(won=pl.col("won_first") + pl.col("won_second"))
        .filter(pl.col("won").is_between(1, pl.col("n_first") + pl.col("n_second") - 1))
        .group_by("n_first", "n_second", "won")
        .agg(pairs=pl.len(), seen=pl.col("won_first").sum())
        .sort("n_first", "n_second", "won")
    )
    informative, method = int(grouped["pairs"].sum()), "exact" if exact else "score"
    if informative == 0:
        return PairedEffect(None, None, None, level, 0, method)
    strata = [_stratum(*row) for row in grouped.select("n_first", "n_second", "won", "pairs").iter_rows()]
    seen = int(grouped["seen"].sum())

    def moments(beta: float) -> NDArray[np.float64]:
        return np.asarray(np.sum([stratum.moments(beta) for stratum in strata], axis=0), dtype=np.float64)

    def adjusted_score(beta: float) -> float:
        mean, variance, third = moments(beta)
        return float(seen - mean + third / variance / 2)

    estimate = _root(adjusted_score)
    lower, upper = _exact(seen, informative, level) if exact else _score_interval(seen, moments, level)
    return PairedEffect(estimate / 2, lower / 2, upper / 2, level, informative, method)


def _stratum(n_first: int, n_second: int, won: int, pairs: int) -> _Stratum:
    possible = range(max(0, won - n_second), min(n_first, won) + 1)
    weights = [math.log(math.comb(n_first, x)) + math.log(math.comb(n_second, won - x)) for x in possible]
    return _Stratum(pairs, np.array(possible, dtype=np.float64), np.array(weights))


def _exact(seen: int, total: int, level: float) -> tuple[float, float]:
    from scipy.special import betaincinv  # scipy.stats would take most of a second to import

    tail = (1 - level) / 2
    low = betaincinv(seen, total - seen + 1, tail) if seen else 0.0
    high = betaincinv(seen + 1, total - seen, 1 - tail) if seen < total else 1.0
    return _logit(float(low)), _logit(float(high))


def _logit(p: float) -> float:
    if p <= 0 or p >= 1:
        return math.copysign(math.inf, p - 0.5)
    return math.log(p) - math.log1p(-p)


def _score_interval(seen: int, moments: Callable[[float], NDArray[np.float64]], level: float) -> tuple[float, float]:
    z = NormalDist().inv_cdf((1 + level) / 2)

    def distance(beta: float) -> float:
        mean, variance, _ = moments(beta)
        return float((seen - mean) / math.sqrt(variance))

    return _root(lambda beta: distance(beta) - z), _root(lambda beta: distance(beta) + z)


def _root(falling: Callable[[float], float]) -> float:
    """Where a falling function is zero; infinite when it is not within reach."""
    from scipy.optimize import brentq

    if falling(-_FARTHEST) <= 0:
        return -math.inf
    if falling(_FARTHEST) >= 0:
        return math.inf
    return float(brentq(falling, -_FARTHEST, _FARTHEST, xtol=1e-12))


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
    z, share = NormalDist().inv_cdf((1 + level) / 2), successes / total
    middle, rest = share + z**2 / (2 * total), 1 + z**2 / total
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
    failures, logs = total - successes, []
    for number in range(_RATES):
        above = (number + 0.5) / _RATES  # the rate is share + above (1 - share)
        logs.append(successes * math.log1p(above * (1 - share) / share) + failures * math.log1p(-above))
    most = max(logs)
    capital = most + math.log(math.fsum(math.exp(log - most) for log in logs) / _RATES)
    return capital >= -math.log(1 - level)
