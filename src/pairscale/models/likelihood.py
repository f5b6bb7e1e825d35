"""The likelihood of comparisons, for all Bradley–Terry engines: what the model expects at a point.

With ``d = theta_1 - theta_2 + b`` for the first and the second of a pair, and ``nu`` for ties (Davidson 1970)::

    P(first wins)  = exp(d/2)  / Z        P(tie) = nu / Z
    P(second wins) = exp(-d/2) / Z        Z = exp(d/2) + exp(-d/2) + nu

Without a position effect b is 0, and without modelled ties nu is 0, which leaves the Bradley–Terry model. The model is
an exponential family in (theta, b, log nu): the log-likelihood is concave, observed and expected information are the
same, and Newton's steps need the wins of each item, the wins of the first side and the ties only.
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
        values: the score of each item; then b and log nu, as far as they are in the model.
        position: whether b is in the model.
        ties: whether nu is in the model.
    """

    values: Floats
    position: bool = False
    ties: bool = False

    @property
    def n_further(self) -> int:
        """How many parameters there are besides the scores."""
        return self.position + self.ties

    @property
    def theta(self) -> Floats:
        """The scores."""
        return self.values[: len(self.values) - self.n_further]

    @property
    def b(self) -> float:
        """The position effect."""
        return float(self.values[len(self.theta)]) if self.position else 0.0

    @property
    def nu(self) -> float:
        """The tie parameter."""
        return float(np.exp(self.values[-1])) if self.ties else 0.0

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
        expected: per item, wins; half a win for a tie.
        diagonal: per item, its own information.
        left: per further parameter, observed minus expected.
        information: of all parameters.
    """

    expected: Floats
    diagonal: Floats
    left: Floats
    information: Information


def outcome_probabilities(gap: Floats, nu: float) -> tuple[Floats, Floats, Floats | float]:
    """The probability that the first wins, that the second does, and of a tie.

    None of them loses digits where it is small.
    """
    odds = np.clip(-gap, -_WIDEST, _WIDEST)
    np.exp(odds, out=odds)
    if not nu:
        won = 1 / (1 + odds)
        return won, odds * won, 0.0
    tie = nu * np.sqrt(odds)
    won = 1 / (1 + odds + tie)
    return won, odds * won, tie * won


def moments(counts: Counts, point: Parameters, prior: float = 0.0) -> Moments:
    """What the model expects at a point.

    Args:
        counts: the comparisons.
        point: the point.
        prior: the precision of the scores' prior.
    """
    times = counts.times
    won, lost, tie = outcome_probabilities(point.gaps(counts), point.nu)
    if point.ties:
        expected = times * (won + tie / 2)
        weights = times * ((won + lost) / 4 - ((won - lost) / 2) ** 2)
    else:
        expected = times * won
        weights = expected * lost
    joint = None
    of_ties = 0.0
    left = []
    if point.position:
        left.append(counts.won.sum() - expected.sum())
    if counts.tied is not None:
        joint = -times * tie * (won - lost) / 2
        of_ties = (times * tie * (1 - tie)).sum()
        left.append((counts.tied - times * tie).sum())
    information = _information(counts, weights, prior, position=point.position, joint=joint, of_ties=of_ties)
    return Moments(
        # An item compared with itself wins half of two decisions each time, whatever theta is.
        expected=counts.sums(expected, times - expected) + counts.self_pairs,
        diagonal=information.own + counts.self_pairs / 2,
        left=np.array(left),
        information=information,
    )


def _information(
    counts: Counts, weights: Floats, prior: float, *, position: bool, joint: Floats | None = None, of_ties: float = 0.0
) -> Information:
    """What pairs of these weights tell about the scores, and about the further parameters in the model."""
    border = []
    if position:
        border.append(counts.sums(weights, -weights))
    if joint is not None:
        border.append(counts.sums(joint, -joint))
    corner = np.zeros((len(border), len(border)))
    if position:
        corner[0, 0] = weights.sum()
    if joint is not None:
        corner[-1, -1] = of_ties
        if position:
            corner[0, 1] = corner[1, 0] = joint.sum()
    columns = np.reshape(border, (len(border), counts.n_items)).T
    return Information(counts, weights, counts.sums(weights, weights), columns, corner, prior)


def start_at(counts: Counts, *, position: bool = False) -> Parameters:
    """Where the steps start: an item's share of wins says most about its score."""
    theta = np.log((counts.wins + 0.5) / (counts.comparisons - counts.wins + 0.5))
    values = theta - theta.mean()
    if position:
        values = np.append(values, 0.0)
    if counts.tied is not None:
        share = counts.tied.sum() / counts.times.sum()
        values = np.append(values, np.log(2 * share / (1 - share)))
    return Parameters(values, position, ties=counts.tied is not None)


def with_weights(information: Information, at: Parameters, weights: Floats) -> Information:
    """The information with other weights for its pairs; as it is where ties are modelled."""
    if at.ties:
        return information
    return _information(information.counts, weights, information.prior, position=at.position)


def runaways(counts: Counts, theta: Floats) -> list[Ints]:
    """The groups that only very distant pairs join; none when all items hold together."""
    if np.ptp(theta) <= RUNAWAY:
        return []
    near = np.abs(theta[counts.first] - theta[counts.second]) <= RUNAWAY
    if near.all():
        return []
    groups = linked_groups(counts.first[near], counts.second[near], counts.n_items)
    return groups if len(groups) > 1 else []
