"""The likelihood of comparisons, and where it is highest: the engines ``mle``, ``map`` and ``firth``.

With ``d = theta_1 - theta_2 + b`` for the first and the second of a pair, and ``nu`` for ties (Davidson 1970)::

    P(first wins)  = exp(d/2)  / Z        P(tie) = nu / Z
    P(second wins) = exp(-d/2) / Z        Z = exp(d/2) + exp(-d/2) + nu

Without a position effect b is 0, and without modelled ties nu is 0, which leaves the Bradley–Terry model. The model is
an exponential family in (theta, b, log nu): the log-likelihood is concave, observed and expected information are the
same, and Newton's steps need the wins of each item, the wins of the first side and the ties only.

``map`` adds ``-sum(theta²) / (2 sd²)``; ``firth`` adds half the logarithm of the information's determinant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pairscale.models._information import (
    Covariance,
    Information,
    column_sums,
    covariance,
    pair_sums,
    row_sums,
    solve,
)
from pairscale.models.data import connected_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.data import Counts

__all__ = [
    "RUNAWAY",
    "Moments",
    "Parameters",
    "Room",
    "Root",
    "make_room",
    "maximise",
    "maximise_penalised",
    "moments",
    "outcome_probabilities",
    "root_at",
    "runaways",
    "start_at",
    "with_weights",
]

_LEFT = 1e-10
_SCORING_DONE = 1e-10
_INEXACT = 0.1  # a step is solved for the more exactly, the shorter the last one was
_LONGEST_STEP = 2.0
_OVERSHOT = 0.9
_MAX_STEPS = 100
_WIDEST = 600.0  # exp(-d) is a number up to here
_MAX_SCORING = 1_000
_PIECE = 1 << 16  # pairs whose figures stay in the processor's cache
RUNAWAY = 20.0
"""A distance of 20 is a probability of 2e-9. A pair may be that far apart when others lie between the two; groups that
nothing shorter joins have run away from each other, for no number of comparisons says such a thing."""


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """A point of the model.

    Attributes:
        theta: per item, the score.
        extra: the further parameters: b, then log nu, as far as they are in the model.
        position: whether b is in the model.
        ties: whether nu is in the model.
    """

    theta: Floats
    extra: Floats
    position: bool = False
    ties: bool = False

    @property
    def b(self) -> float:
        """The position effect."""
        return float(self.extra[0]) if self.position else 0.0

    @property
    def nu(self) -> float:
        """The tie parameter."""
        return float(np.exp(self.extra[-1])) if self.ties else 0.0

    def gaps(self, counts: Counts) -> Floats:
        """Per pair, d."""
        gap = self.theta[counts.first] - self.theta[counts.second]
        return gap + self.b if self.position else gap

    def odds(self, counts: Counts) -> Iterator[tuple[slice, Floats]]:
        """Per pair, exp(-d), a piece after the other; one exponential per item instead of one per pair."""
        low = np.exp(-self.theta - self.b)
        high = np.exp(self.theta)
        for begin in range(0, len(counts.times), _PIECE):
            piece = slice(begin, begin + _PIECE)
            odds = low[counts.first[piece]]
            odds *= high[counts.second[piece]]
            yield piece, odds

    def moved(self, step: Floats, extra: Floats, share: float) -> Parameters:
        """The point a share of a step away, centred."""
        theta = self.theta + share * step
        return replace(self, theta=theta - theta.mean(), extra=self.extra + share * extra)


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


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """Where :func:`moments` puts what it needs per pair: to ask for new room at every step costs more than the sums.

    Attributes:
        won: per pair, the expected wins of the first.
        weights: per pair, its information.
        second: per item, the comparisons in which it is the second of the pair; they stay the same.
    """

    won: Floats
    weights: Floats
    second: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """Where an engine came to rest.

    Attributes:
        at: the scores, of mean 0, and further parameters.
        score: per item, the wins that the engine went by.
        now: what the model expects there, with the prior where there is one.
        iterations: steps taken.
        converged: whether the engine's equations hold.
        groups: without a root, the groups of items that ran away from each other, where they can be told.
    """

    at: Parameters
    score: Floats
    now: Moments
    iterations: int
    converged: bool
    groups: list[Ints]

    @property
    def drift(self) -> float:
        """How far the score is from the expected wins, in units of the information: for ``sirt``, the number c."""
        return float((self.score - self.now.expected).sum() / self.now.diagonal.sum())


def outcome_probabilities(gap: Floats, nu: float) -> tuple[Floats, Floats, Floats | None]:
    """The probability that the first wins, that the second does, and of a tie (None when ``nu`` is 0)."""
    return _shares(np.exp(-np.clip(gap, -_WIDEST, _WIDEST)), nu)


def _shares(odds: Floats, nu: float) -> tuple[Floats, Floats, Floats | None]:
    """The probabilities from ``exp(-d)``; none of them loses digits where it is small."""
    total = 1 + odds
    if not nu:
        won = np.reciprocal(total, out=total)
        return won, odds * won, None
    tie = nu * np.sqrt(odds)
    total += tie
    won = np.reciprocal(total, out=total)
    return won, odds * won, tie * won


def moments(counts: Counts, at: Parameters, prior: float = 0.0, room: Room | None = None) -> Moments:
    """What the model expects at a point.

    Args:
        counts: the comparisons.
        at: the point.
        prior: the precision of the scores' prior.
        room: from :func:`make_room`, to be written over: what was made in it before is lost, the information first.
    """
    times = counts.times
    room = room or make_room(counts)
    tie: Floats | None = None
    half: Floats | None = None
    if not at.ties:
        won, weights = _plain(counts, at, room)
    else:
        won, lost, tie = _shares(np.concatenate([odds for _, odds in at.odds(counts)]), at.nu)
        if tie is not None:
            half = (won - lost) / 2
            weights = times * ((won + lost) / 4 - half * half)
            won = times * (won + tie / 2)
    own = pair_sums(counts, weights, weights)
    border = []
    corner = np.zeros((len(at.extra), len(at.extra)))
    left = []
    if at.position:
        border.append(pair_sums(counts, weights, -weights))
        corner[0, 0] = weights.sum()
        left.append(float(counts.won.sum() - won.sum()))
    if tie is not None and half is not None and counts.tied is not None:
        joint = -times * half * tie
        border.append(pair_sums(counts, joint, -joint))
        corner[-1, -1] = (times * tie * (1 - tie)).sum()
        left.append(float((counts.tied - times * tie).sum()))
        if at.position:
            corner[0, 1] = corner[1, 0] = joint.sum()
    return Moments(
        # An item compared with itself wins half of two decisions each time, whatever theta is.
        expected=row_sums(counts, won) - column_sums(counts, won) + room.second + counts.self_pairs,
        diagonal=own + counts.self_pairs / 2,
        left=np.array(left),
        information=Information(
            counts, weights, own, np.array(border).reshape(len(at.extra), counts.n_items).T, corner, prior
        ),
    )


def make_room(counts: Counts) -> Room:
    """Room for the steps of one fit."""
    size = len(counts.times)
    return Room(np.empty(size), np.empty(size), column_sums(counts, counts.times))


def _plain(counts: Counts, at: Parameters, room: Room) -> tuple[Floats, Floats]:
    """Per pair, the expected wins of the first, and its information; where ties are not modelled."""
    won = room.won
    weights = room.weights
    for piece, odds in at.odds(counts):
        first, lost, _ = _shares(odds, 0.0)
        np.multiply(first, counts.times[piece], out=won[piece])
        np.multiply(won[piece], lost, out=weights[piece])
    return won, weights


def start_at(counts: Counts, *, position: bool = False) -> Parameters:
    """Where the steps start: an item's share of wins says most about its score."""
    theta = _by_share(counts)
    extra = [0.0] if position else []
    if counts.tied is not None:
        share = float(counts.tied.sum() / counts.times.sum())
        extra.append(float(np.log(2 * share / (1 - share))))
    return Parameters(theta - theta.mean(), np.array(extra), position, ties=counts.tied is not None)


def _by_share(counts: Counts) -> Floats:
    """Scores from the shares of wins: drawn to the middle for their noise, and apart for the opponents' spread."""
    share = (counts.wins + 0.5) / (counts.comparisons + 1)
    odds = np.log(share / (1 - share))
    spread = float(np.var(odds))
    noise = min(float(np.mean(1 / ((counts.comparisons + 1) * share * (1 - share)))), spread)
    # With opponents of variance v, the logit of the share is about theta / sqrt(1 + v / 1.7²).
    known = min((spread - noise) / 1.7**2, 0.6)
    return np.asarray(odds * (1 - noise / spread if spread else 1.0) / np.sqrt(1 - known), dtype=np.float64)


def maximise(counts: Counts, start: Parameters, prior: float = 0.0) -> Root:
    """The highest point of the likelihood, or with the precision of a prior, of the posterior, by Newton's steps."""
    at = start
    before = start
    converged = False
    steps = 0
    room = make_room(counts)
    step: tuple[Floats, Floats] | None = None
    size = 1.0
    share = 1.0
    slope = 0.0
    while not converged and steps < _MAX_STEPS:
        now = moments(counts, at, prior, room)
        gradient = counts.wins - now.expected - prior * at.theta
        if step is not None and gradient @ step[0] + now.left @ step[1] < -_OVERSHOT * slope:
            # It falls behind the top almost as steeply as it rose before: the step was too long.
            share /= 2
            at = before.moved(*step, share)
            continue
        steps += 1
        exactness = min(_INEXACT, size)
        step = solve(now.information, gradient, now.left, exactness)
        if step is None:
            break
        size = float(np.abs(np.concatenate(step)).max())
        share = min(1.0, _LONGEST_STEP / max(size, _LONGEST_STEP))
        before = at
        slope = float(gradient @ step[0] + now.left @ step[1])
        at = at.moved(*step, share)
        # What is left of a step after it: of the order of its square, and what it was not solved for.
        converged = size * max(size, exactness) < _LEFT
        if not converged and ((np.abs(at.extra) > RUNAWAY).any() or runaways(counts, at.theta)):
            break
    return root_at(counts, at, moments(counts, at, prior, room), steps, converged)


def root_at(counts: Counts, at: Parameters, now: Moments, steps: int, converged: bool) -> Root:
    """Where an engine that goes by the wins came to rest, after so many steps."""
    groups = [] if converged else runaways(counts, at.theta)
    return Root(at, counts.wins, now, steps, converged, groups)


def maximise_penalised(counts: Counts, start: Parameters) -> Root:
    """The highest point of Firth's penalised likelihood without ties, by scoring steps."""
    at = start
    converged = False
    steps = 0
    while not converged and steps < _MAX_SCORING:
        steps += 1
        now = moments(counts, at)
        spread = covariance(now.information)
        if spread is None:
            break
        of_d, weights = _penalty(counts, at, spread, now.information.weights)
        gradient = counts.wins - now.expected + pair_sums(counts, of_d, -of_d)
        left = now.left + of_d.sum()  # of the position effect, the only further parameter
        step = solve(with_weights(now.information, at, weights), gradient, left)
        if step is None:
            break
        size = float(np.abs(np.concatenate(step)).max())
        at = at.moved(*step, min(1.0, _LONGEST_STEP / max(size, _LONGEST_STEP)))
        converged = size < _SCORING_DONE
    return root_at(counts, at, moments(counts, at), steps, converged)


def _penalty(counts: Counts, at: Parameters, spread: Covariance, weights: Floats) -> tuple[Floats, Floats]:
    """The slope of half the log-determinant along each pair's d, and the weights of a good step.

    Half a win more for each side, shared by leverage: as if there were so many more comparisons.
    """
    first = counts.first
    second = counts.second
    own = np.diag(spread.theta)
    of_d = own[first] + own[second] - 2 * spread.theta[first, second]
    if at.position:
        of_d += 2 * (spread.cross[first, 0] - spread.cross[second, 0]) + spread.extra[0, 0]
    won, lost, _ = outcome_probabilities(at.gaps(counts), 0.0)
    leverage = weights * of_d
    return leverage * (lost - won) / 2, weights * (1 + leverage / counts.times)


def with_weights(information: Information, at: Parameters, weights: Floats) -> Information:
    """The information with other weights for its pairs; as it is where ties are modelled."""
    if at.ties:
        return information
    border = information.border
    corner = information.corner
    if at.position:
        border = pair_sums(information.counts, weights, -weights)[:, None]
        corner = np.array([[weights.sum()]])
    own = pair_sums(information.counts, weights, weights)
    return replace(information, weights=weights, own=own, border=border, corner=corner)


def runaways(counts: Counts, theta: Floats) -> list[Ints]:
    """The groups that only very distant pairs join; none when all items hold together."""
    if np.ptp(theta) <= RUNAWAY:
        return []
    near = np.abs(theta[counts.first] - theta[counts.second]) <= RUNAWAY
    if near.all():
        return []
    groups = connected_parts(counts, near)
    return groups if len(groups) > 1 else []
