"""Answers as logits: what a judge's probabilities are as evidence, and the likelihood of each.

``z = logit(q)``, with q the probability that the first of two texts is better, is ``theta_i - theta_j + b + e``, where
``e`` is the judge's error: Student's t with four degrees of freedom and a scale that is learned. An answer at or beyond
:data:`SATURATED` says no more than "at least this"; a winner without a probability says that z is above 0, or below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.arrays import Floats, Ints

__all__ = [
    "DF",
    "KNOWN_SCALE",
    "LOG_PRIORS",
    "POSITION_SCALE",
    "SATURATED",
    "LogitTerms",
    "Logits",
    "log_prior",
    "logit_terms",
    "read_logits",
    "t_below",
]

DF = 4.0
"""Degrees of freedom of the errors: few enough that single outliers do little."""

SATURATED = 5.0
"""From this logit on (a probability of .9933) an answer is taken as "at least this"."""

POSITION_SCALE = 1.0
"""The standard deviation of the position effect's prior, in logits."""

KNOWN_SCALE = 2.0
"""The standard deviation of the prior of what one standard deviation of something known beforehand is worth."""

LOG_PRIORS = {"t": (math.log(2.0), 1.0), "s": (0.0, 1.0)}
"""Mean and standard deviation of the logarithm of the scores' spread (``t``) and of the error's scale (``s``)."""

_PEAK = 0.375  # the density of t with four degrees of freedom at 0


@dataclass(frozen=True, slots=True, eq=False)
class Logits:
    """Answers, one element each.

    Attributes:
        first: The item shown first.
        second: The item shown second.
        z: The logit that the first is better, or its bound.
        kind: 0 when z is the answer, 1 when the answer is at least z, -1 when it is at most z.
        times: What the answer counts; less than 1 for repeats of a pair that add little.
        n_items: How many items there are.
    """

    first: Ints
    second: Ints
    z: Floats
    kind: Ints
    times: Floats
    n_items: int

    @property
    def pair(self) -> Ints:
        """A number for the pair of each answer, the same in both orders."""
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        return np.asarray(low * self.n_items + high)


def read_logits(first: Ints, second: Ints, result: Floats, probability: pl.Series, n_items: int) -> Logits:
    """Answers as logits, each of them counting once.

    Args:
        first: Per answer, the item shown first.
        second: Per answer, the item shown second.
        result: 1 when the first won, 0 when the second did, 0.5 for a tie; used where there is no probability.
        probability: That the first is better; null where the judge gave none.
        n_items: How many items there are.
    """
    q = probability.to_numpy().astype(np.float64)
    known = np.isfinite(q)
    with np.errstate(divide="ignore"):
        z = np.log(np.where(known, q, 0.5)) - np.log1p(-np.where(known, q, 0.5))
    beyond = np.abs(z) >= SATURATED
    side = np.sign(z).astype(np.int64)
    kind = np.where(known, np.where(beyond, side, 0), np.sign(result - 0.5).astype(np.int64))
    z = np.where(beyond, side * SATURATED, z)
    return Logits(first, second, z, kind, np.ones(len(z)), n_items)


def log_prior(name: str, at: Any) -> tuple[Any, Any]:
    """The log density of the prior of ``t`` or ``s``, up to a constant, and its slope."""
    mean, sd = LOG_PRIORS[name]
    return -0.5 * ((at - mean) / sd) ** 2, (mean - at) / sd**2


@dataclass(frozen=True, slots=True, eq=False)
class LogitTerms:
    """The log likelihood of each answer, and how it changes.

    Attributes:
        value: The log likelihood.
        slope: Its slope in the expected logit.
        curvature: Its second derivative there, with the sign changed.
        in_error: Its slope in the logarithm of the error's scale.
        weight: The weight that a step of weighted least squares gives the answer; never negative.
    """

    value: Floats
    slope: Floats
    curvature: Floats
    in_error: Floats
    weight: Floats


def logit_terms(expected: Floats, z: Floats, kind: Ints, log_scale: float) -> LogitTerms:
    """The likelihood of answers at their expected logits.

    Args:
        expected: Per answer, the difference of the scores with the position effect.
        z: The answer, or its bound.
        kind: 0 when z is the answer, 1 when the answer is at least z, -1 when it is at most z.
        log_scale: The logarithm of the error's scale.
    """
    scale = np.exp(log_scale)
    v = np.where(kind == 0, 1.0, kind) * (expected - z) / scale
    tail = DF + v * v
    density = np.log(_PEAK) - 0.5 * (DF + 1) * np.log1p(v * v / DF)
    pull = (DF + 1) * v / tail
    bounded = kind != 0
    below = t_below(v)
    hazard = np.exp(density) / below
    in_v = np.where(bounded, hazard, -pull)
    bend = np.where(bounded, hazard * (hazard + pull), (DF + 1) * (DF - v * v) / tail**2)
    return LogitTerms(
        value=np.where(bounded, np.log(below), density - log_scale),
        slope=np.where(bounded, kind, 1.0) * in_v / scale,
        curvature=bend / scale**2,
        in_error=np.where(bounded, -v * hazard, v * pull - 1.0),
        weight=np.where(bounded, np.maximum(bend, 0.0), (DF + 1) / tail) / scale**2,
    )


def t_below(v: Floats) -> Floats:
    """The distribution function of t with four degrees of freedom, exact in both tails."""
    root = np.sqrt(4.0 + v * v)
    x = np.abs(v) / root
    small = 4.0 / (root * (root + np.abs(v)))  # 1 - x without cancellation
    tail = small**2 * (2 + x) / 4
    return np.asarray(np.where(v < 0, tail, 1 - tail))
