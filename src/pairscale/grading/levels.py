"""Levels of texts, with the probability of each: marks or scores are cut, draw by draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairscale.core.arrays import Floats, Ints

_BEYOND = 1e6  # logits or marks: above and below all texts
_SEED = 1


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """What is cut, and where.

    Attributes:
        names: the levels, best first.
        values: draws of what is cut, marks or scores; (draws, texts).
        cuts: draws of where each level but the last begins; (draws, levels - 1).
        points: where the estimates are cut.
    """

    names: Sequence[str]
    values: Floats
    cuts: Floats
    points: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The level of each text.

    Attributes:
        levels: what was cut, and where.
        level: the place of its level, 0 for the best.
        probability: of each level; (texts, levels).
        consistency: how probable it is that another run of the same length gives the text the same level.
    """

    levels: Levels
    level: Ints
    probability: Floats
    consistency: float

    @property
    def misgrade(self) -> Floats:
        """How probable it is that the level is wrong."""
        return 1 - self.probability[np.arange(len(self.level)), self.level]

    @property
    def expected_distance(self) -> Floats:
        """By how many levels each text is off, on average: what a second look is worth."""
        distances = np.abs(np.arange(self.probability.shape[1]) - self.level[:, None])
        return np.asarray((self.probability * distances).sum(axis=1))


def cut_at_marks(names: Sequence[str], from_marks: Sequence[float], marks: Floats) -> Levels:
    """Levels that begin at marks."""
    points = np.array(from_marks, dtype=np.float64)
    return Levels(names, marks, np.broadcast_to(points, (len(marks), len(points))), points)


def cut_at_quotas(names: Sequence[str], shares: Sequence[float], theta: Floats) -> Levels:
    """Levels that hold a share of the texts each: in every draw, the best texts of that draw."""
    n = theta.shape[1]
    sizes = np.round(np.cumsum(shares)[:-1] * n).astype(int)
    falling = -np.sort(-theta, axis=1)
    return Levels(names, theta, _between(falling, sizes), _between(-np.sort(-theta.mean(axis=0))[None, :], sizes)[0])


def cut_at_texts(names: Sequence[str], texts: Sequence[int], theta: Floats) -> Levels:
    """Levels whose lowest text is known, but for the last one."""
    chosen = np.array(texts, dtype=np.int64)
    return Levels(names, theta, theta[:, chosen], theta.mean(axis=0)[chosen])


def placed(levels: Levels) -> Placed:
    """The level of each text by its estimate, and its probability of each level."""
    estimates = levels.values.mean(axis=0)
    level = _numbers(estimates[None, :], levels.points[None, :])[0]
    drawn = _numbers(levels.values, levels.cuts)
    probability = np.stack([(drawn == number).mean(axis=0) for number in range(len(levels.names))], axis=1)
    # Another run has errors of its own about the same truth.
    other = np.random.default_rng(_SEED).permutation(len(levels.values))
    values = levels.values + levels.values[other] - estimates
    cuts = levels.cuts + levels.cuts[other] - levels.cuts.mean(axis=0)
    return Placed(levels, level, probability, float((_numbers(values, cuts) == level).mean()))


def _between(falling: Floats, sizes: Ints) -> Floats:
    """Midway between the last text of a level and the first below it; beyond all texts where a side has none."""
    padded = np.pad(falling, ((0, 0), (1, 1)), constant_values=((0, 0), (_BEYOND, -_BEYOND)))
    return (padded[:, sizes] + padded[:, sizes + 1]) / 2


def _numbers(values: Floats, cuts: Floats) -> Ints:
    """Per value, the number of its level: how many cuts lie above it."""
    number = np.zeros(values.shape, dtype=np.int64)
    for place in range(cuts.shape[1]):
        number += values < cuts[:, place, None]
    return number
