"""The likelihood of comparisons, for all Bradley–Terry engines: what the model expects at a point.

With ``d = theta_1 - theta_2 + b`` for the first and the second of a pair, ``P(first wins) = 1 / (1 + exp(-d))``; b is 0
without a position effect. The model is an exponential family in (theta, b): the log-likelihood is concave, observed and
expected information are the same, and Newton's steps need the wins of each item and those of the first side only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pairscale.models.linalg import Information
from pairscale.pairing.table import linked_groups

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.data import Counts

_WIDEST = 600.0  # exp(-d) is a number up to here
RUNAWAY = 20.0
"""A distance of 20 is a probability of 2e-9. A pair may be that far apart when others lie between the two; groups that
nothing shorter joins have run away from each other, for no number of comparisons could show that."""


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """A point of the model.

    Attributes:
        values: the score of each item; then b, if it is in the model.
        position: whether b is in the model.
    """

    values: Floats
    position: bool = False

    @property
    def theta(self) -> Floats:
        """The scores."""
        return self.values[: len(self.values) - self.position]

    @property
    def b(self) -> float:
        """The position effect."""
        return float(self.values[-1]) if self.position else 0.0

    def gaps(self, counts: Counts) -> Floats:
        """Per pair, d."""
        return self.theta[counts.first] - self.theta[counts.second] + self.b

    def moved(self, step: Floats) -> Parameters:
        """The point a step away, centred."""
        moved = replace(self, values=self.values + step)
        theta = moved.theta
        theta -= theta.mean()
        return moved


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What the model expects at a point.

    Attributes:
        expected: per item, wins.
        diagonal: per item, its own information.
        left: for the position effect, observed minus expected wins of the first; empty without it.
        information: of all parameters.
    """

    expected: Floats
    diagonal: Floats
    left: Floats
    information: Information


def outcome_probabilities(gap: Floats) -> tuple[Floats, Floats]:
    """The probability that the first wins, and that the second does; neither loses digits where it is small."""
    odds = np.clip(-gap, -_WIDEST, _WIDEST)
    np.exp(odds, out=odds)
    won = 1 / (1 + odds)
    return won, odds * won


def moments(counts: Counts, point: Parameters, prior: float = 0.0) -> Moments:
    """What the model expects at a point.

    Args:
        counts: the comparisons.
        point: the point.
        prior: the precision of the scores' prior.
    """
    times = counts.times
    won, lost = outcome_probabilities(point.gaps(counts))
    expected = times * won
    left = [counts.won.sum() - expected.sum()] if point.position else []
    information = information_of(counts, expected * lost, prior, position=point.position)
    return Moments(
        # An item compared with itself wins half of two decisions each time, whatever theta is.
        expected=counts.sums(expected, times - expected) + counts.self_pairs,
        diagonal=information.own + counts.self_pairs / 2,
        left=np.array(left),
        information=information,
    )


def information_of(counts: Counts, weights: Floats, prior: float, *, position: bool) -> Information:
    """What pairs of these weights tell about the scores, and about the position effect if it is in the model."""
    border = np.zeros((counts.n_items, 0))
    corner = np.zeros((0, 0))
    if position:
        border = counts.sums(weights, -weights)[:, None]
        corner = np.array([[weights.sum()]])
    return Information(counts, weights, counts.sums(weights, weights), border, corner, prior)


def start_at(counts: Counts, *, position: bool = False) -> Parameters:
    """Where the steps start: an item's share of wins says most about its score."""
    theta = np.log((counts.wins + 0.5) / (counts.comparisons - counts.wins + 0.5))
    values = theta - theta.mean()
    if position:
        values = np.append(values, 0.0)
    return Parameters(values, position)


def runaways(counts: Counts, theta: Floats) -> list[Ints]:
    """The groups that only very distant pairs join; none when all items hold together."""
    if np.ptp(theta) <= RUNAWAY:
        return []
    near = np.abs(theta[counts.first] - theta[counts.second]) <= RUNAWAY
    if near.all():
        return []
    groups = linked_groups(counts.first[near], counts.second[near], counts.n_items)
    return groups if len(groups) > 1 else []
