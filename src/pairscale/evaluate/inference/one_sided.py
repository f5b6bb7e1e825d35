"""Bounds that stay true however often one looks, for a question that has a side and a smallest difference that matters.

:mod:`pairscale.evaluate.inference.sequence` bets for and against a mean m, over all rates alike. A gate asks less: is
the mean *above* m? So it only bets that it is, which is fair, or worse than fair, whenever the mean is m or below. And
it knows which differences matter, those around the margin δ. Of the first capital, 40 % bet on the rate m + δ, 20 % on
m + 2 δ (for wider differences, and for scores with many ties), and the rest is spread over all rates above m by the
density of the sequence. By Ville's inequality the capital ever reaches 1 / α with a chance of at most α, whatever the
shares are; they decide only how soon. Without a margin, all of it is spread.

The capital falls as m rises, for each of these bets and every score, so that the m that are not ruled out are those
above one lower bound. Upper bounds are lower bounds of the scores turned round.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pairscale.evaluate.inference.sequence import portfolio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["log_capital_above", "log_capital_below", "lower_bound", "upper_bound"]

_HALVINGS = 30  # to 1e-9
_EDGE = 1e-9
_TARGETS = ((1.0, 0.4), (2.0, 0.2))  # multiples of the margin, and the share of the capital that bets on them


def log_capital_above(mean: float, margin: float, values: Floats, counts: Floats) -> Floats:
    """The logarithm of the capital won by betting that the true mean is above this one.

    Args:
        mean: the mean that is doubted, between 0 and 1 exclusively.
        margin: the difference that matters.
        values: the scores that occur.
        counts: how often each did: a row for each series of scores, a column for each value.

    Example:
        >>> wins = np.array([[0.0, 20.0]])
        >>> bool(log_capital_above(0.5, 0.05, np.array([0.0, 1.0]), wins)[0] > math.log(20))
        True
    """
    spread, shares = portfolio(int(max(1, counts.sum(axis=1).max())))
    rates = mean + spread * (1 - mean)
    if margin > 0:
        targets = [(min(mean + times * margin, (1 + mean) / 2), share) for times, share in _TARGETS]
        rates = np.append(rates, [rate for rate, _ in targets])
        rest = 1 - sum(share for _, share in targets)
        shares = np.append(shares * rest, [share for _, share in targets])
    gains = np.log(np.outer(values, rates / mean) + np.outer(1 - values, (1 - rates) / (1 - mean)))
    total = counts @ gains
    most = total.max(axis=1)
    return np.asarray(most + np.log(np.exp(total - most[:, None]) @ shares))


def log_capital_below(mean: float, margin: float, values: Floats, counts: Floats) -> Floats:
    """The same by betting that the true mean is below this one."""
    return log_capital_above(1 - mean, margin, 1 - values, counts)


def lower_bound(values: Floats, counts: Floats, margin: float, level: float) -> float:
    """What the mean is above, at all looks together with a chance of at least ``level``.

    Args:
        values: the scores that occur.
        counts: how often each did.
        margin: the difference that matters.
        level: the chance.
    """
    outer, inner = 0.0, float(counts @ values / counts.sum())
    for _ in range(_HALVINGS):
        middle = (outer + inner) / 2
        if middle < _EDGE or middle > 1 - _EDGE:
            break
        ruled_out = log_capital_above(middle, margin, values, counts[None, :])[0] >= -math.log(1 - level)
        outer, inner = (middle, inner) if ruled_out else (outer, middle)
    return outer


def upper_bound(values: Floats, counts: Floats, margin: float, level: float) -> float:
    """What the mean is below; see :func:`lower_bound`."""
    return 1 - lower_bound(1 - values, counts, margin, level)
