"""Repeats of a pair among logits: how much of an error they share, and what each answer then counts.

The error of an answer has a part that belongs to the pair and a part that is new each time. ``rho`` is the share of its
variance that belongs to the pair: at temperature 0 the same question gets the same logit, and rho is 1. A pair asked n
times then counts as ``1 + (n - 1)(1 - rho)`` answers, as it does with winners (:mod:`pairscale.models.repeats`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pairscale.models._logits import DF, Logits

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints

__all__ = ["shared_error", "weigh_repeats"]

_PRIOR = 1.0  # as much as one repeat with half of its error in common
_STEPS, _TINY = 30, 1e-12


def weigh_repeats(logits: Logits, rho: float) -> Logits:
    """The answers of a pair asked n times, counted as ``1 + (n - 1)(1 - rho)``.

    Bounds that say the same count once. Where a pair has bounds on both sides, or bounds and values, the bounds are
    taken as values: 0 for a winner without a probability, which is left out where there is a value.

    Args:
        logits: The answers, each counting once.
        rho: The share of an error that belongs to the pair.
    """
    which, n = _groups(logits)
    again = n[which] > 1
    if not again.any():
        return logits
    side = np.where(logits.first < logits.second, 1, -1)
    kind, z, times = logits.kind.copy(), logits.z, logits.times.copy()
    toward = kind * side
    size = len(n)
    up, down, exact = (np.bincount(which[rows], minlength=size) > 0 for rows in (toward > 0, toward < 0, kind == 0))
    only_bounds = (again & ~exact[which]) & (up[which] != down[which])
    farthest = np.zeros(size)
    np.maximum.at(farthest, which, np.abs(z))
    kept = np.ones(len(z), dtype=np.bool_)
    # One bound of those that say the same: the farthest, the first of these.
    rows = np.flatnonzero(only_bounds)
    told = rows[np.abs(z[rows]) == farthest[which[rows]]]
    kept[rows] = False
    kept[told[np.unique(which[told], return_index=True)[1]]] = True
    mixed = again & ~only_bounds
    kept[mixed & exact[which] & (kind != 0) & (z == 0)] = False
    kind[mixed] = 0
    left = np.bincount(which[kept], minlength=size).astype(np.float64)
    times[mixed] = ((1 + (left - 1) * (1 - rho)) / np.maximum(left, 1))[which[mixed]]
    return replace(
        logits, first=logits.first[kept], second=logits.second[kept], z=z[kept], kind=kind[kept], times=times[kept]
    )


def shared_error(logits: Logits, position: float, scale: float) -> float:
    """The share of an error that belongs to the pair, from pairs with two values or more.

    Args:
        logits: The answers, each counting once.
        position: The preference for the first position.
        scale: The scale of the errors.
    """
    rows = logits.kind == 0
    if not rows.any():
        return 1.0
    side = np.where(logits.first[rows] < logits.second[rows], 1.0, -1.0)
    value = side * (logits.z[rows] - position)
    _, which = np.unique(logits.pair[rows], return_inverse=True)
    n = np.bincount(which).astype(np.float64)
    mean = np.bincount(which, value) / n
    repeats = float((n - 1).sum())
    again = n[which] > 1
    within = (value - mean[which])[again] * np.sqrt(n / np.maximum(n - 1, 1))[which[again]]
    excess = repeats * (1 - (_scale_of(within) / scale) ** 2)
    return min(max((excess + _PRIOR / 2) / (repeats + _PRIOR), 0.0), 1.0)


def _scale_of(errors: Floats) -> float:
    """The scale of Student's t for errors: the same figure as that of the model, so that the two compare."""
    variance = float(np.mean(errors**2)) if len(errors) else 0.0
    for _ in range(_STEPS):
        if variance < _TINY:
            return 0.0
        variance = float(np.mean((DF + 1) * errors**2 / (DF + errors**2 / variance)))
    return float(np.sqrt(variance))


def _groups(logits: Logits) -> tuple[Ints, Floats]:
    """Per answer the number of its pair, and per pair the number of its answers."""
    _, which = np.unique(logits.pair, return_inverse=True)
    return which, np.bincount(which).astype(np.float64)
