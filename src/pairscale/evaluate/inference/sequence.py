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
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pairscale.core.options import require_level, require_probability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_HALVINGS = 30  # to 1e-9
_EDGE = 1e-12
_GRID = 60  # steps from 0 to 1: halves, thirds, quarters, fifths, sixths and tenths lie on it


@lru_cache(maxsize=32)
def _portfolio(size: int) -> tuple[Floats, Floats]:
    angle = np.arange(1, size + 1) * np.pi / (size + 1)
    shares = np.sin(angle) ** 2
    return np.cos(angle / 2) ** 2, shares / shares.sum()


def portfolio(n: int) -> tuple[Floats, Floats]:
    """The bets that stand for the density after n scores: each q, and the share of the first capital on it.

    They are the nodes of Gauss and Chebyshev (of the second kind). The capital is a polynomial in q with a peak that is
    1 / √n wide; so many nodes integrate it to the accuracy of the computer. And any set of bets is a fair one.
    """
    return _portfolio(2 ** math.ceil(math.log2(4 * math.sqrt(n) + 16)))


def log_capital(mean: Floats, values: Floats, counts: Floats) -> Floats:
    """The logarithm of the capital won against each of several means.

    Args:
        mean: the means that are doubted, each between 0 and 1 exclusively.
        values: the scores that occur.
        counts: how often each did: one row per mean, one column per value.
    """
    q, shares = portfolio(int(counts.sum(axis=1).max()))
    up, down = 1 / mean[:, None], 1 / (1 - mean[:, None])
    total = np.zeros((len(mean), len(q)))
    for value, count in zip(values, counts.T, strict=True):
        total += count[:, None] * np.log(q * (value * up) + (1 - q) * ((1 - value) * down))
    most = total.max(axis=1)
    return np.asarray(most + np.log(np.exp(total - most[:, None]) @ shares))


def split_scores(values: Floats, counts: Floats) -> tuple[Floats, Floats]:
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


def _limits(values: Floats, counts: Floats, level: float) -> tuple[Floats, Floats]:
    """The ends after each of several looks, a row of counts each."""
    mean, bar = counts @ values / counts.sum(axis=1), -math.log(1 - level)
    limits = []
    for end in (0.0, 1.0):
        inner, outer = mean.copy(), np.full_like(mean, end)
        for _ in range(_HALVINGS):
            # Never the end itself, where a bet would win without limit.
            middle = np.clip((inner + outer) / 2, _EDGE, 1 - _EDGE)
            within = log_capital(middle, values, counts) < bar
            inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
        limits.append(np.where(mean == end, end, outer))
    return limits[0], limits[1]


def last_limits(scores: Floats, level: float) -> tuple[float, float]:
    """The ends after the last of several scores."""
    values, times = np.unique(scores, return_counts=True)
    counts = times[None, :].astype(np.float64)
    lower, upper = _limits(*(split_scores(values, counts) if len(values) > _GRID else (values, counts)), level)
    return float(lower[0]), float(upper[0])


class RunningScores:
    """Scores as they come, counted by their value.

    Attributes:
        level: the chance that what is said of their mean holds at all times together.
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

    def counted(self) -> tuple[Floats, Floats]:
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

    __slots__ = ("_limits", "better")

    def __init__(self, level: float = 0.95) -> None:
        super().__init__(level)
        self.better: str | None = None
        self._limits: tuple[float, float] | None = (0.0, 1.0)

    def update(self, score: float) -> None:
        """Take in one score.

        Args:
            score: 1 when B won, 0 when A did, ½ for a tie, a graded preference for B as it is; with several cases a
                task, their mean.
        """
        self.add(score)
        self._limits = None
        if self.better is None and log_capital(np.array([0.5]), *self._table())[0] >= self.bar:
            self.better = "b" if self.mean > 0.5 else "a"

    @property
    def decided(self) -> bool:
        """Whether ½ was outside at some look."""
        return self.better is not None

    @property
    def lower(self) -> float:
        """The lower end now."""
        return self._ends()[0]

    @property
    def upper(self) -> float:
        """The upper end now."""
        return self._ends()[1]

    def _table(self) -> tuple[Floats, Floats]:
        values, counts = self.counted()
        return split_scores(values, counts) if len(values) > _GRID else (values, counts)

    def _ends(self) -> tuple[float, float]:
        if self._limits is None:
            lower, upper = _limits(*self._table(), self.level)
            self._limits = float(lower[0]), float(upper[0])
        return self._limits

    def __repr__(self) -> str:
        state = f"{self.better.upper()} is better" if self.better else "undecided"
        return f"<RunningSequence of {self.n} scores: {self.mean:.3f}, {self.lower:.3f} to {self.upper:.3f}, {state}>"
