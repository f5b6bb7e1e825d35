"""An interval that stays true however often one looks: a confidence sequence for the mean of scores between 0 and 1.

Somebody who doubts that the mean is m may bet on every score, for or against: a stake turns the capital 1 into

    1 + λ (x - m)  =  x q / m + (1 - x) (1 - q) / (1 - m)          λ = (q - m) / (m (1 - m))

with any q from 0 to 1, which is the rate that the bet believes in. If m is the mean, no bet gains on average, and by
Ville's inequality the capital ever reaches 1 / α with a chance of at most α. So the m at which it has not reached 1 / α
hold the true mean at *all* times together with a chance of at least 1 - α. That needs no more than that every score
is between 0 and 1 and has the mean m whatever came before.

We spread the first capital over all q by the density of Beta(1.5, 1.5), as a universal portfolio does (Waudby-Smith and
Ramdas 2024; Orabona and Jun 2024). It is a half circle: bets on rates from 0.2 to 0.8 get more than an even share, as
that is where most comparisons end. There is nothing to tune, and the order of the scores does not matter. For each q
the logarithm of the capital is convex in m, and it is at most 0 where m is the mean so far. So what is left is an
interval around that mean, and its ends are found by halving.

Graded scores may all be different, which would make every look slower than the one before. Once there are more values
than :data:`_GRID` has steps, each score is split between the two steps of the grid next to it, in the shares that keep
its value. The gain of a bet is linear in the score, so its logarithm is concave: the split score never earns more. The
capital that is counted is at most the true one, and the sequence stays valid; the mean so far stays the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pairscale.core.options import require_level, require_probability
from pairscale.evaluate.inference.cases import ArrayPair, Ends

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats

_HALVINGS = 30  # to 1e-9
_EDGE = 1e-12
_GRID = 60  # steps from 0 to 1: halves, thirds, quarters, fifths, sixths and tenths lie on it


@lru_cache(maxsize=32)
def _portfolio(size: int) -> ArrayPair:
    angle = np.arange(1, size + 1) * np.pi / (size + 1)
    shares = np.sin(angle) ** 2
    return np.cos(angle / 2) ** 2, shares / shares.sum()


def portfolio(n: int) -> ArrayPair:
    """The bets that stand for the density after n scores: each q, and the share of the first capital on it.

    They are the nodes of Gauss and Chebyshev (of the second kind). The capital is a polynomial in q with a peak that is
    1 / √n wide; this number of nodes integrates it to the accuracy of the computer. And any set of bets is a fair one.
    """
    return _portfolio(2 ** math.ceil(math.log2(4 * math.sqrt(n) + 16)))


def capital_of_bets(mean: float, rates: Floats, shares: Floats, values: Floats, counts: Floats) -> Floats:
    """The logarithm of the capital won against a mean by bets that each believe in a rate.

    Args:
        mean: the mean that is doubted, between 0 and 1 exclusively.
        rates: what the bets believe in.
        shares: of the first capital, on each bet.
        values: the scores that occur.
        counts: how often each did: a row for each series of scores, a column for each value.
    """
    gains = np.log(np.outer(values, rates / mean) + np.outer(1 - values, (1 - rates) / (1 - mean)))
    total = counts @ gains
    most = total.max(axis=1)
    return np.asarray(most + np.log(np.exp(total - most[:, None]) @ shares))


def log_capital(mean: float, values: Floats, counts: Floats) -> Floats:
    """The logarithm of the capital won by betting on all rates; see :func:`capital_of_bets`."""
    return capital_of_bets(mean, *portfolio(int(counts.sum(axis=1).max())), values, counts)


def bound_between(mean: float, end: float, ruled_out: Callable[[float], bool]) -> float:
    """Where means begin to be ruled out on the way from the mean score to this end; the end where none is.

    Args:
        mean: of the scores, which is not ruled out.
        end: 0 or 1.
        ruled_out: whether a mean is; once one is, all behind it are.
    """
    inner, outer = mean, end
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        if not _EDGE <= middle <= 1 - _EDGE:  # there, a bet would win without limit
            break
        if ruled_out(middle):
            outer = middle
        else:
            inner = middle
    return outer


def split_scores(values: Floats, counts: Floats) -> ArrayPair:
    """Scores as shares of the steps of the grid: the steps, and how much of each score lies on them.

    Args:
        values: the scores that occur.
        counts: how often each did, one row per look.
    """
    places = values * _GRID
    below = np.minimum(np.floor(places + _EDGE), _GRID - 1).astype(np.int64)
    upper = np.clip(places - below, 0.0, 1.0)
    shares = np.zeros((len(values), _GRID + 1))
    shares[np.arange(len(values)), below] = 1 - upper
    shares[np.arange(len(values)), below + 1] += upper
    return np.arange(_GRID + 1) / _GRID, counts @ shares


def _limit(values: Floats, counts: Floats, level: float, end: float) -> float:
    """One end of the interval: 0 for the lower, 1 for the upper one."""
    bar = -math.log(1 - level)
    mean = float(counts[0] @ values / counts.sum())
    return bound_between(mean, end, lambda doubted: bool(log_capital(doubted, values, counts)[0] >= bar))


def last_limits(scores: Floats, level: float) -> Ends:
    """The ends after the last of several scores."""
    values, times = np.unique(scores, return_counts=True)
    table = few_scores(values, times[None, :].astype(np.float64))
    return _limit(*table, level, 0.0), _limit(*table, level, 1.0)


def few_scores(values: Floats, counts: Floats) -> ArrayPair:
    """Scores as they are, or where there are many different ones, on the grid."""
    return split_scores(values, counts) if len(values) > _GRID else (values, counts)


class RunningScores:
    """Scores as they come, counted by their value.

    Attributes:
        level: the chance that the statements on their mean hold at all times together.
        n: scores so far.
        bar: the logarithm of the capital at which a mean is ruled out.
    """

    __slots__ = ("_counts", "bar", "level", "n")

    def __init__(self, level: float) -> None:
        self.level = require_level(level)
        self.bar = -math.log(1 - self.level)
        self.n = 0
        self._counts: Counter[float] = Counter()

    def add(self, score: float) -> None:
        """Count one score."""
        self._counts[require_probability(score, "score")] += 1
        self.n += 1

    @property
    def mean(self) -> float:
        """The mean score so far; ½ before the first."""
        return sum(value * count for value, count in self._counts.items()) / self.n if self.n else 0.5

    def counted(self) -> ArrayPair:
        """The scores that occurred, and how often each did, as a row."""
        return np.array(list(self._counts)), np.array([list(self._counts.values())], dtype=np.float64)


class RunningSequence(RunningScores):
    """A confidence sequence that grows score by score. Look after every one, and stop when you like.

    Attributes:
        level: of the sequence: the chance that the interval holds the true mean at all times together.
        n: scores so far.
        decided: whether ½ was outside the interval at some look. It stays true; if A and B are equal, it ever becomes
            true with a chance of at most 1 - level.
        better: ``b`` or ``a`` once it is decided, None before.

    Example:
        >>> sequence = RunningSequence()
        >>> for score in [1, 1, 1, 0.5, 1, 1, 1, 1, 1, 1]:
        ...     sequence.update(score)
        >>> round(sequence.lower, 3), round(sequence.upper, 3), sequence.decided
        (0.526, 1.0, True)
    """

    __slots__ = ("better",)

    def __init__(self, level: float = 0.95) -> None:
        super().__init__(level)
        self.better: str | None = None

    def update(self, score: float) -> None:
        """Take in one score.

        Args:
            score: 1 when B won, 0 when A did, ½ for a tie, a graded preference for B as it is; with several cases a
                task, their mean.
        """
        self.add(score)
        if self.better is None and log_capital(0.5, *few_scores(*self.counted()))[0] >= self.bar:
            self.better = "b" if self.mean > 0.5 else "a"

    @property
    def decided(self) -> bool:
        """Whether ½ was outside at some look."""
        return self.better is not None

    @property
    def lower(self) -> float:
        """The lower end now."""
        return self._end(0.0)

    @property
    def upper(self) -> float:
        """The upper end now."""
        return self._end(1.0)

    def _end(self, end: float) -> float:
        return _limit(*few_scores(*self.counted()), self.level, end) if self.n else end
