"""Repeats of a pair among logits: how much of an error they share.

The error of an answer has a part that belongs to the pair and a part that is new each time. ``rho`` is the share of its
variance that belongs to the pair: at temperature 0 the same question gets the same logit, and rho is 1. A pair asked n
times then counts as ``1 + (n - 1)(1 - rho)`` answers, as it does with winners (:mod:`pairscale.models.repeats`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairscale.models._logits import DF, Logits

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats

__all__ = ["shared_error"]

_PRIOR = 1.0  # as much as one repeat with half of its error in common
_STEPS, _TINY = 30, 1e-12


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
