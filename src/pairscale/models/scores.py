"""Scores that can be read: of 100 comparisons with the other texts of a set, how many would a text win?"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from pairscale.core.arrays import Floats

SCORES = ("score", "score_lower", "score_upper")
"""The columns of readable scores."""

_ROWS = 500  # of the comparisons of all with all that are in memory at once


def win_scores(mean: Floats, sd: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
    """From what is known of the logits of a set of texts, the wins of each in 100 comparisons with the others.

    A win of text i against text j has the probability ``logistic(theta_i - theta_j)``; its posterior mean is taken by
    the normal approximation, ``logistic(d / sqrt(1 + pi v / 8))`` with the mean d and the variance v of the
    difference, and its interval from that of theta_i. So the scores follow from the columns of an item log, and a run
    that is read again has the scores it had.

    Args:
        mean: posterior means of theta.
        sd: posterior standard deviations.
        lower: the lower ends of the intervals of theta.
        upper: the upper ends.

    Returns:
        The scores from 0 to 100, the lower ends of their intervals, and the upper ends.
    """
    variance = np.square(sd)
    none = np.zeros(len(mean))
    middle = _shares(mean, variance, mean, variance)
    low = np.minimum(_shares(lower, none, mean, variance), middle)
    high = np.maximum(_shares(upper, none, mean, variance), middle)
    return middle, low, high


def with_scores(items: pl.DataFrame) -> pl.DataFrame:
    """The item log of a fit with the readable scores directly behind ``ID``."""
    columns = ("theta_mean", "theta_sd", "theta_p2.5", "theta_p97.5")
    scores = win_scores(*(items[name].to_numpy() for name in columns))
    place = items.columns.index("ID") + 1
    for offset, (name, values) in enumerate(zip(SCORES, scores, strict=True)):
        items = items.insert_column(place + offset, pl.Series(name, values, dtype=pl.Float64))
    return items


def _shares(theta: Floats, variance: Floats, others: Floats, their_variance: Floats) -> Floats:
    """Per text, the mean probability in per cent that it wins against another text."""
    n = len(theta)
    total = np.empty(n)
    for start in range(0, n, _ROWS):
        rows = slice(start, start + _ROWS)
        widened = np.sqrt(1 + math.pi / 8 * (variance[rows, None] + their_variance))
        wins = 0.5 + 0.5 * np.tanh((theta[rows, None] - others) / (2 * widened))  # logistic
        own = wins[np.arange(len(wins)), np.arange(n)[rows]]
        total[rows] = wins.sum(axis=1) - own
    return 100 * total / max(n - 1, 1)
