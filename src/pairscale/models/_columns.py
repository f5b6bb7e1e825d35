"""Many fits of the same pairs at once, with other counts each: one column of every matrix per fit.

The bootstrap uses this. All fits start at the scores of the data. Each column takes its own Newton steps, and conjugate
gradients solve for the steps of all columns together. The covariance at the start, which all columns share, is their
preconditioner. A column that does not converge here is left to the engine, which fits it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pairscale.models._information import FACTOR_LIMIT, covariance
from pairscale.models.likelihood import RUNAWAY

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats, Ints
    from pairscale.models._counts import Counts, Units
    from pairscale.models.likelihood import Root

__all__ = [
    "ResampledCounts",
    "Shared",
    "both_orders",
    "connected_columns",
    "resampled",
    "rounds_at_once",
    "share_start",
    "solve_columns",
]

_ROOM = 1 << 19  # numbers per matrix, 4 MB: larger ones leave the cache, and smaller ones cost calls
_LEFT = 1e-10
_INEXACT = 0.1
_LONGEST_STEP = 2.0
_MAX_STEPS = 15
_MAX_INNER = 60
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class ResampledCounts:
    """Counts per pair, one column per round; the pairs are those of :class:`Counts`.

    Attributes:
        times: per pair, how often it was compared.
        won: per pair, how often the first won; half a win for a tie.
        tied: per pair, how often neither won, where ties are modelled.
    """

    times: Floats
    won: Floats
    tied: Floats | None

    def chosen(self, which: npt.NDArray[np.bool_] | Ints) -> ResampledCounts:
        """Some of the columns."""
        return ResampledCounts(
            self.times[:, which], self.won[:, which], None if self.tied is None else self.tied[:, which]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What all columns have in common.

    Attributes:
        counts: the comparisons as they were.
        start: the scores, then the further parameters, as one column.
        spread: the covariance of all parameters at the start.
        gap: pairs by items, 1 for the first and -1 for the second of a pair.
        sums: its transpose.
        totals: the same with 1 for both.
        position: whether the first further parameter is the position effect.
        ties: whether the last further parameter is log nu.
        prior: the precision of the scores' prior.
        eps: the adjustment of the wins, for ``sirt``; None for the highest point of the likelihood.
    """

    counts: Counts
    start: Floats
    spread: Floats
    gap: scipy.sparse.csr_array
    sums: scipy.sparse.csr_array
    totals: scipy.sparse.csr_array
    position: bool
    ties: bool
    prior: float
    eps: float | None


@dataclass(frozen=True, slots=True, eq=False)
class _Slopes:
    """Gradient and information of all columns at one point.

    Attributes:
        right: per parameter, observed minus expected, less what the prior or the adjustment asks for.
        weights: per pair, its information about the difference.
        joint: per pair, its information about the difference and log nu together, where ties are modelled.
        tie: per column, the information about log nu.
    """

    right: Floats
    weights: Floats
    joint: Floats | None
    tie: Floats | None


def rounds_at_once(units: Units) -> int:
    """How many columns to make at once, so that matrices of one row per unit (or pair) stay small."""
    return max(_ROOM // max(len(units.pair), 1), 1)


def resampled(counts: Counts, units: Units, weight: Floats) -> ResampledCounts:
    """The counts of every round; ``weight`` has a row per unit and a column per round."""
    pairs, places = len(counts.times), np.arange(len(units.pair))

    def added(values: Floats) -> Floats:
        matrix = scipy.sparse.csr_array((values, (units.pair, places)), shape=(pairs, len(places)))
        return np.asarray(matrix @ weight, dtype=np.float64)

    tied = None if counts.tied is None else added((units.result == 0.5) * 1.0)
    return ResampledCounts(added(np.ones(len(places))), added(units.result), tied)


def connected_columns(counts: Counts, times: Floats) -> npt.NDArray[np.bool_]:
    """Per column, whether the pairs that occur in it join all items; all pairs together must join them."""
    there = times > 0
    joined = np.asarray(there.all(axis=0), dtype=np.bool_)
    if joined.all():
        return joined
    some = np.flatnonzero(~joined)
    there = there[:, some]
    touching = _ends(counts, 1).T.tocsr().astype(np.int32)
    reached = np.zeros((counts.n_items, len(some)), dtype=np.bool_)
    reached[0] = True
    before = -1
    while before < (before := int(reached.sum())):
        links = reached[counts.first]
        links |= reached[counts.second]
        links &= there
        reached |= (touching @ links.astype(np.int32)) > 0
    joined[some] = reached.all(axis=0)
    return joined


def both_orders(counts: Counts, times: Floats) -> npt.NDArray[np.bool_]:
    """Per column, whether it has all pairs, or one in both orders, which tells a position effect from scores."""
    there = times > 0
    key, back = counts.first * counts.n_items + counts.second, counts.second * counts.n_items + counts.first
    place = np.minimum(np.searchsorted(key, back), len(key) - 1)
    turned = np.flatnonzero(key[place] == back)
    return np.asarray(there.all(axis=0) | (there[turned] & there[place[turned]]).any(axis=0), dtype=np.bool_)


def _ends(counts: Counts, second: int) -> scipy.sparse.csr_array:
    """Pairs by items: 1 for the first of a pair, ``second`` for the second."""
    places = np.arange(len(counts.first))
    where = (np.concatenate([places, places]), np.concatenate([counts.first, counts.second]))
    values = np.repeat([1.0, float(second)], len(places))
    return scipy.sparse.csr_array((values, where), shape=(len(places), counts.n_items))


def share_start(counts: Counts, root: Root, prior: float, eps: float | None) -> Shared | None:
    """What all columns have in common; None where rounds have to be fitted one by one.

    That is so without a root, with more than :data:`FACTOR_LIMIT` items, where the covariance costs too much, and with
    scores so far apart that the engine has to look at each round for groups that have run away.
    """
    far = np.ptp(root.at.theta) > RUNAWAY or (np.abs(root.at.extra) > RUNAWAY).any()
    if far or not root.converged or counts.n_items > FACTOR_LIMIT:
        return None
    found = covariance(root.information)
    if found is None:
        return None
    gap = _ends(counts, -1)
    sums = gap.T.tocsr()
    return Shared(
        counts=counts,
        start=np.concatenate([root.at.theta, root.at.extra])[:, None],
        spread=np.block([[found.theta, found.cross], [found.cross.T, found.extra]])
        if len(root.at.extra)
        else found.theta,
        gap=gap,
        sums=sums,
        totals=abs(sums),
        position=root.at.position,
        ties=root.at.ties,
        prior=prior,
        eps=eps,
    )


def solve_columns(shared: Shared, columns: ResampledCounts) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Scores and further parameters, one column per round, and which of the columns have settled."""
    # Where a column has no estimate, its steps grow beyond all numbers; it does not settle then.
    with np.errstate(all="ignore"):
        return _newton(shared, columns)


def _newton(shared: Shared, columns: ResampledCounts) -> tuple[Floats, npt.NDArray[np.bool_]]:
    size, rounds = shared.counts.n_items, columns.times.shape[1]
    at = np.repeat(shared.start, rounds, axis=1)
    settled = np.zeros(rounds, dtype=np.bool_)
    rest = np.arange(rounds)
    lasting = _adjusted(shared, columns)
    left = np.ones(rounds)
    for _ in range(_MAX_STEPS):
        here = at[:, rest]
        exactness = np.minimum(_INEXACT, left)
        step = _steps(shared, _slopes(shared, columns, here, lasting), exactness)
        before, left = left, np.abs(step).max(axis=0)
        here = here + step * np.minimum(1.0, _LONGEST_STEP / np.maximum(left, _LONGEST_STEP))
        here[:size] -= here[:size].mean(axis=0)
        at[:, rest] = here
        # Newton's steps square what is left; those of sirt, which take c for a constant, shorten it by some factor.
        shorter = exactness if shared.eps is None else np.maximum(exactness, left / before)
        done = left * np.maximum(left, shorter) < _LEFT
        # What is far out is looked at by the engine itself, which tells what has run away from what is only far.
        near = (np.ptp(here[:size], axis=0) <= RUNAWAY) & (np.abs(here[size:]) <= RUNAWAY).all(axis=0)
        settled[rest[done & near]] = True
        going = ~done & near
        if not going.any():
            break
        if not going.all():
            rest, left, columns = rest[going], left[going], columns.chosen(going)
            lasting = None if lasting is None else lasting[:, going]
    return at, settled


def _adjusted(shared: Shared, columns: ResampledCounts) -> Floats | None:
    """Per item, how much the adjustment of ``sirt`` adds to the wins."""
    if shared.eps is None:
        return None
    own = shared.counts.self_pairs[:, None]
    half = columns.won - columns.times / 2
    comparisons = np.asarray(shared.totals @ columns.times, dtype=np.float64) + 2 * own
    wins = np.asarray(shared.sums @ half, dtype=np.float64) + comparisons / 2
    return np.asarray(shared.eps * (1 - 2 * wins / comparisons), dtype=np.float64)


def _slopes(shared: Shared, columns: ResampledCounts, at: Floats, lasting: Floats | None) -> _Slopes:
    counts, size = shared.counts, shared.counts.n_items
    theta = at[:size]
    low, high = np.exp(-theta - at[size] if shared.position else -theta), np.exp(theta)
    odds = low[counts.first]
    odds *= high[counts.second]
    joint = tie = None
    extra = []
    if shared.ties and columns.tied is not None:
        tied = np.exp(at[-1]) * np.sqrt(odds)
        won = 1 / (1 + odds + tied)
        lost, tied = odds * won, tied * won
        half = (won - lost) / 2
        weights = columns.times * ((won + lost) / 4 - half * half)
        joint = -columns.times * half * tied
        tie = (columns.times * tied * (1 - tied)).sum(axis=0)
        surplus = columns.won - columns.times * (won + tied / 2)
        extra.append((columns.tied - columns.times * tied).sum(axis=0))
    else:
        won = odds + 1
        np.reciprocal(won, out=won)
        odds *= won
        weights = won * columns.times
        surplus = columns.won - weights
        weights *= odds
    if shared.position:
        extra.insert(0, surplus.sum(axis=0))
    right = np.asarray(shared.sums @ surplus, dtype=np.float64)
    if shared.prior:
        right -= shared.prior * theta
    if lasting is not None:
        right += lasting
        own = np.asarray(shared.totals @ weights, dtype=np.float64) + counts.self_pairs[:, None] / 2
        right -= right.sum(axis=0) / own.sum(axis=0) * own
    return _Slopes(np.vstack([right, *extra]) if extra else right, weights, joint, tie)


def _steps(shared: Shared, slopes: _Slopes, exactness: Floats) -> Floats:
    """Newton's step of every column, by conjugate gradients, until what is left is a share ``exactness`` of it."""
    size = shared.counts.n_items
    residual = slopes.right.copy()
    step = np.zeros_like(residual)
    scaled = shared.spread @ residual
    scaled[:size] -= scaled[:size].mean(axis=0)
    direction = scaled
    now = np.einsum("ij,ij->j", residual, scaled)
    for _ in range(_MAX_INNER):
        image = _image(shared, slopes, direction)
        length = now / np.maximum(np.einsum("ij,ij->j", direction, image), _TINY)
        step += length * direction
        residual -= length * image
        scaled = shared.spread @ residual
        scaled[:size] -= scaled[:size].mean(axis=0)
        # The covariance times what is left is about how far the step is off, in the units of the scores.
        if (np.abs(scaled).max(axis=0) <= exactness * np.abs(step).max(axis=0)).all():
            break
        before, now = now, np.einsum("ij,ij->j", residual, scaled)
        direction = scaled + now / np.maximum(before, _TINY) * direction
    return step


def _image(shared: Shared, slopes: _Slopes, direction: Floats) -> Floats:
    """The information times a direction, column by column."""
    size = shared.counts.n_items
    along = np.asarray(shared.gap @ direction[:size], dtype=np.float64)
    if shared.position:
        along += direction[size]
    extra = []
    if slopes.joint is not None and slopes.tie is not None:
        extra.append(np.einsum("ij,ij->j", slopes.joint, along) + slopes.tie * direction[-1])
        along *= slopes.weights
        along += slopes.joint * direction[-1]
    else:
        along *= slopes.weights
    if shared.position:
        extra.insert(0, along.sum(axis=0))
    image = np.asarray(shared.sums @ along, dtype=np.float64)
    if shared.prior:
        image += shared.prior * direction[:size]
    return np.vstack([image, *extra]) if extra else image
