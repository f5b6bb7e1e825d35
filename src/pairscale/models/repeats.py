"""Repeats of a pair: how far they agree beyond what the scores explain, and how much evidence they are.

A judge that always answers the same question alike adds nothing by a second answer. ``rho`` is the excess agreement of
repeats: 0 when repeated answers agree only as often as the scores explain (each is new evidence), 1 when they always
agree (none is). A pair asked n times then counts as ``1 + (n - 1)(1 - rho)`` answers, with its own share of wins. A
pair in reverse order is a repeat too; the position effect is part of what the scores explain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
import scipy

from pairscale.core.arrays import Floats, Ints
from pairscale.core.tables import times_of
from pairscale.models._cells import Cells, JudgeParameters, count_outcomes
from pairscale.models._ties import weigh_ties
from pairscale.models.sampling import Repeats, require_repeats
from pairscale.pairing.edges import count_cells, numbered

__all__ = [
    "RepeatAgreement",
    "agreement_by_judge",
    "count_repeats",
    "places",
    "repeat_agreement",
    "repeat_weights",
    "repeats_per_item",
    "row_times",
    "weigh_repeats",
]

_ROUNDS = 4
_SETTLED = 0.005
_PRIOR = 1.0  # as much as two or three repeats, half of them in excess agreement: the first one proves little
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True, slots=True)
class RepeatAgreement:
    """How far repeated comparisons of the same pair agree.

    In ``agreement``, ``expected`` and ``reversed_agreement``, a pair asked n times weighs n - 1, so that one pair that
    was asked very often does not decide for all. Ties are left out.

    Attributes:
        rho: the excess agreement that the fit counted repeats with: 0, each is new evidence; 1, none is.
        how: where it comes from: ``independent`` (0, not estimated), ``given`` or ``learned``.
        n_repeats: comparisons beyond the first of their pair.
        agreement: share of two answers on the same pair that agree; None without repeats.
        expected: the share that the scores, the position effect and lapses explain; None unless learned from repeats.
        n_reversed: pairs that were asked in both orders.
        reversed_agreement: share of two answers in different orders that agree; None without reversed pairs.
    """

    rho: float
    how: Literal["independent", "given", "learned"]
    n_repeats: int
    agreement: float | None
    expected: float | None
    n_reversed: int
    reversed_agreement: float | None


def count_repeats(
    rows: pl.DataFrame, names: pl.Series, model: JudgeParameters, repeats: Repeats = "independent"
) -> tuple[Cells, Ints, Ints, RepeatAgreement]:
    """Count outcomes, each repeat and tie for as much evidence as it is.

    Args:
        rows: ``ID1 ID2 better_id``; a missing ``better_id`` is a tie. Different rows may be counted.
        names: all ids.
        model: which parameters the judge has.
        repeats: how to count repeats.

    Returns:
        The outcomes, per row the number of the first and of the second item, and how far repeats agree.
    """
    times = row_times(rows)
    first, second = numbered(rows["ID1"], names), numbered(rows["ID2"], names)
    first_won = rows["better_id"] == rows["ID1"]
    cells = count_outcomes(first, second, first_won, len(names), position=model.position, times=times)
    found = repeat_agreement(first, second, first_won, cells, model, repeats, times)
    ties, of = first_won.null_count(), len(first_won)
    if times is not None:
        ties, of = int(times[first_won.is_null().to_numpy()].sum()), int(times.sum())
    return weigh_ties(weigh_repeats(cells, found.rho), ties, of, model), first, second, found


def row_times(rows: pl.DataFrame) -> Ints | None:
    """How often each row stands there, where different rows are counted; else None."""
    times = times_of(rows)
    return None if times is None else times.to_numpy()


def places(rows: Ints, n_items: int, times: Ints | None) -> Ints:
    """Per item, in how many comparisons it stood at a side.

    Args:
        rows: per row, the item at that side.
        n_items: how many items there are.
        times: how often each row stands there; once by default.
    """
    return np.bincount(rows, times, n_items).astype(np.int64)


def repeat_agreement(
    first: Ints,
    second: Ints,
    first_won: pl.Series,
    cells: Cells,
    model: JudgeParameters,
    repeats: Repeats,
    times: Ints | None = None,
) -> RepeatAgreement:
    """How far repeats agree, and the excess agreement to count them with.

    Args:
        first: per comparison, the item shown first.
        second: per comparison, the item shown second.
        first_won: whether the first won; null is a tie.
        cells: the same, counted.
        model: which parameters the judge has.
        repeats: how to count repeats.
        times: how often each comparison stands there; once by default.
    """
    repeats = require_repeats(repeats)
    asked = _Asked.of(first, second, first_won, cells.n_items, times)
    if repeats == "independent":
        return asked.found(0.0, "independent")
    if repeats != "learned":
        return asked.found(repeats, "given")
    if not len(asked.low):
        return asked.found(0.0, "learned")
    # A prior that is too narrow would take a wide scale for agreement.
    free = replace(model, prior_sd=None)
    rho, expected = _learned(asked, lambda rho: _chances(asked, weigh_repeats(cells, rho), free))
    return asked.found(rho, "learned", expected)


def agreement_by_judge(
    first: Ints,
    second: Ints,
    judge: Ints,
    first_won: pl.Series,
    n_items: int,
    repeats: Repeats,
    logits: Callable[[float], tuple[Floats, Floats]],
) -> RepeatAgreement:
    """How far the repeats of a pair by the same judge agree; answers of two judges are no repeats.

    Args:
        first: per comparison, the item shown first.
        second: per comparison, the item shown second.
        judge: per comparison, who judged, by number.
        first_won: whether the first won; null is a tie.
        n_items: how many items there are.
        repeats: how to count repeats.
        logits: with repeats counted by an excess agreement, the mean and the variance of the logit that the first wins,
            per comparison.
    """
    repeats = require_repeats(repeats)
    apart = int(judge.max()) + 1  # an item that is asked of another judge is another item here
    one, two = judge * n_items + first, judge * n_items + second
    asked = _Asked.of(one, two, first_won, apart * n_items)
    if repeats == "independent":
        return asked.found(0.0, "independent")
    if repeats != "learned":
        return asked.found(repeats, "given")
    if not len(asked.low):
        return asked.found(0.0, "learned")
    size = apart * n_items
    known, at = np.unique(one * size + two, return_index=True)

    def chances(rho: float) -> Floats:
        mean, variance = logits(rho)
        logit = np.zeros((len(asked.low), 2, len(_NODES)))
        for order, (here, there) in enumerate(((asked.low, asked.high), (asked.high, asked.low))):
            place = np.minimum(np.searchsorted(known, here * size + there), len(known) - 1)
            present = known[place] == here * size + there
            row = at[place[present]]
            to_low = 1.0 if order == 0 else -1.0
            logit[present, order] = to_low * (mean[row, None] + np.sqrt(variance[row])[:, None] * _NODES * to_low)
        return np.asarray(scipy.special.expit(logit))

    rho, expected = _learned(asked, chances)
    return asked.found(rho, "learned", expected)


def repeat_weights(first: Ints, second: Ints, n_items: int, rho: float, times: Ints | None = None) -> Floats:
    """What each comparison counts when a pair asked n times counts as ``1 + (n - 1)(1 - rho)``."""
    _, which = np.unique(np.minimum(first, second) * n_items + np.maximum(first, second), return_inverse=True)
    return _shares(np.bincount(which, times).astype(np.float64), rho)[which]


def _shares(n: Floats, rho: float) -> Floats:
    """What one of n answers on the same pair counts."""
    return np.asarray((1 + (n - 1) * (1 - rho)) / n)


def weigh_repeats(cells: Cells, rho: float) -> Cells:
    """The outcomes of a pair asked n times, counted as ``1 + (n - 1)(1 - rho)`` with the same share of wins."""
    if rho == 0:
        return cells
    pair = np.minimum(cells.winner, cells.loser) * cells.n_items + np.maximum(cells.winner, cells.loser)
    _, which = np.unique(pair, return_inverse=True)
    n = np.bincount(which, cells.times).astype(np.float64)
    return replace(cells, times=cells.times * _shares(n, rho)[which])


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """The pairs with two answers or more, ties left out: how often which item won, by order.

    Attributes:
        low: the item of the pair with the lower number.
        high: the other one.
        won: per pair and order (lower number first, second), how often the lower number won.
        lost: the same, how often it lost.
    """

    low: Ints
    high: Ints
    won: Floats
    lost: Floats

    @classmethod
    def of(cls, first: Ints, second: Ints, first_won: pl.Series, n_items: int, times: Ints | None = None) -> _Asked:
        answered = ~first_won.is_null().to_numpy()
        weight = None if times is None else times[answered]
        first, second = first[answered], second[answered]
        won_first = first_won.filter(answered).to_numpy()
        low, high = np.minimum(first, second), np.maximum(first, second)
        pair, which = np.unique(low * n_items + high, return_inverse=True)
        often = np.bincount(which, weight, len(pair)) > 1
        place = which * 2 + (first != low)
        low_won = won_first == (first == low)
        size = 2 * len(pair)
        won, lost = (
            np.bincount(place[who], None if weight is None else weight[who], size).astype(np.float64)
            for who in (low_won, ~low_won)
        )
        low, high = np.divmod(pair[often], n_items)
        return cls(low, high, won.reshape(-1, 2)[often], lost.reshape(-1, 2)[often])

    @property
    def weight(self) -> Floats:
        """Per pair, the weight of two of its answers."""
        return np.asarray(2 / self.times.sum(axis=1))

    @property
    def times(self) -> Floats:
        return self.won + self.lost

    @property
    def n_repeats(self) -> float:
        return float(self.times.sum() - len(self.low))

    def agreeing(self) -> float:
        """Repeats that agree: per pair, n - 1 times the share of two answers that do."""
        won, lost = self.won.sum(axis=1), self.lost.sum(axis=1)
        return float(self.weight @ (won * (won - 1) + lost * (lost - 1))) / 2

    def expected(self, p: Floats) -> float:
        """Repeats that agree when answers are independent.

        Args:
            p: per pair and order, and for each of several weighted values, the probability that the lower number wins.
        """
        both = p[:, :, None] * p[:, None, :] + (1 - p[:, :, None]) * (1 - p[:, None, :])
        mean = both @ _WEIGHTS
        times = self.times
        twos = times[:, :, None] * times[:, None, :]
        twos[:, (0, 1), (0, 1)] -= times
        return float(self.weight @ (twos * mean).sum(axis=(1, 2))) / 2

    def found(
        self, rho: float, how: Literal["independent", "given", "learned"], expected: float | None = None
    ) -> RepeatAgreement:
        """The result."""
        n = self.n_repeats
        turned = self.times.prod(axis=1)
        twos = self.weight @ turned
        agreeing = self.weight @ (self.won.prod(axis=1) + self.lost.prod(axis=1))
        return RepeatAgreement(
            rho=rho,
            how=how,
            n_repeats=round(n),
            agreement=self.agreeing() / n if n else None,
            expected=None if expected is None else expected / n,
            n_reversed=int((turned > 0).sum()),
            reversed_agreement=float(agreeing / twos) if twos else None,
        )


def _learned(asked: _Asked, chances: Callable[[float], Floats]) -> tuple[float, float]:
    """The excess agreement, and the repeats that are expected to agree without it; to a fixed point.

    Args:
        asked: the pairs that were asked more than once.
        chances: with repeats counted by an excess agreement, what :meth:`_Asked.expected` takes.
    """
    agreeing, n = asked.agreeing(), asked.n_repeats
    rho, expected = 0.0, 0.0
    for _ in range(_ROUNDS):
        expected = asked.expected(chances(rho))
        before, rho = rho, _excess(agreeing, expected, n)
        if abs(rho - before) < _SETTLED:
            break
    return rho, expected


def _excess(agreeing: float, expected: float, n: float) -> float:
    rho = (agreeing - expected + _PRIOR / 2) / (n - expected + _PRIOR)
    return min(max(rho, 0.0), 1.0)


def _chances(asked: _Asked, cells: Cells, model: JudgeParameters) -> Floats:
    """Per pair and order, the probability that the lower number wins: for values of the difference, by their weight."""
    from pairscale.models.laplace import differences  # which needs this module

    found = differences(cells, model)
    # Each pair and order has a cell, for either winner; without a position effect both orders share one.
    first = np.where(cells.sign > 0, cells.winner, cells.loser)
    low, high = np.minimum(cells.winner, cells.loser), np.maximum(cells.winner, cells.loser)
    to_low = np.where(cells.winner == low, 1.0, -1.0)
    n = cells.n_items
    mean, sd = np.zeros((len(asked.low), 2)), np.zeros((len(asked.low), 2))
    for order in range(2):
        here = first == (low if order == 0 else high) if model.position else np.ones(len(low), dtype=bool)
        known, at = np.unique(low[here] * n + high[here], return_index=True)
        wanted = asked.low * n + asked.high
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        present = known[place] == wanted if len(known) else np.zeros(len(wanted), dtype=bool)
        cell = np.flatnonzero(here)[at[place[present]]]
        mean[present, order] = (to_low * found.mean)[cell]
        sd[present, order] = np.sqrt(found.variance[cell])
    difference = mean[:, :, None] + sd[:, :, None] * _NODES
    return np.asarray((1 - found.lapse) * scipy.special.expit(difference) + found.lapse / 2)


def repeats_per_item(first: Ints, second: Ints, n_items: int, times: Ints | None = None) -> Ints:
    """Per item, in how many comparisons it was that repeat a pair, in either order.

    Args:
        first: per comparison, the number of the item shown first.
        second: per comparison, the number of the item shown second.
        n_items: how many items there are.
        times: how often each comparison stands there; once by default.
    """
    low, high, often = count_cells(np.minimum(first, second), np.maximum(first, second), n_items, times)
    again = (often - 1).astype(np.float64)
    both = np.bincount(low, again, n_items) + np.bincount(high, again, n_items)
    return both.astype(np.int64)
