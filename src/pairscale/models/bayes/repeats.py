"""Repeats and ties: how much evidence they are.

A judge that always answers the same question alike adds nothing by a second answer. ``rho`` is the excess agreement of
repeats: 0 when repeated answers agree only as often as the scores explain (each is new evidence), 1 when they always
agree (none is). A pair asked n times then counts as ``1 + (n - 1)(1 - rho)`` answers, with its own share of wins. A
pair in reverse order is a repeat too; the position effect is part of what the scores explain. Answers of two judges
that have slopes are no repeats; what the scores explain is then that of all judges taken as one. Of logits, rho is the
share of an error's variance that belongs to the pair.

Counted as half a win for each side, a comparison with ties has the variance ``p (1 - p) - t / 4``, with t the chance of
a tie, and not the ``p (1 - p)`` that the model takes it for. With many ties the posterior would be too wide, and the
reliability of a run would be claimed .1 to .2 below the truth. So all comparisons count ``1 / phi`` times, where phi is
the one variance divided by the other, both averaged over the posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy

from pairscale.core.arrays import Floats, Ints
from pairscale.models.bayes.model import (
    DF,
    Answers,
    Cells,
    JudgeParameters,
    count_outcomes,
    gauss_hermite,
    pair_keys,
)
from pairscale.models.bayes.settings import Repeats
from pairscale.models.data import side_sums

_ROUNDS = 4
_SETTLED = 0.005
_PRIOR = 1.0  # as much as two or three repeats, half of them in excess agreement: the first one proves little
_NODES = 9
_TIE_ROUNDS = 3
_WITHOUT_TIE = 4  # comparisons that are added: the first ones say little about the chance of a tie
_LEAST_PHI = 0.25  # when nearly everything is a tie, the variance says nothing any more


@dataclass(frozen=True, slots=True)
class RepeatAgreement:
    """How far repeated comparisons of the same pair agree.

    In ``agreement`` and ``expected``, a pair asked n times weighs n - 1, so that one that was asked very often does not
    decide for all. Ties are left out.

    Attributes:
        rho: the excess agreement that the fit counted repeats with: 0, each is new evidence; 1, none is.
        how: where it comes from: ``independent`` (0, not estimated), ``given`` or ``learned``.
        n_repeats: comparisons beyond the first of their pair.
        agreement: share of two answers on the same pair that agree; None without repeats.
        expected: the share that the scores, the position effect and lapses explain; None unless learned from repeats.
    """

    rho: float
    how: Literal["independent", "given", "learned"]
    n_repeats: int
    agreement: float | None
    expected: float | None


def count_repeats(answers: Answers, model: JudgeParameters, repeats: Repeats) -> tuple[Cells, RepeatAgreement]:
    """Count outcomes, each repeat and tie for as much evidence as it is."""
    cells = count_outcomes(answers, position=model.position)
    agreement = repeat_agreement(answers, cells, model, repeats)
    return _weigh_ties(weigh_repeats(cells, agreement.rho), answers, model), agreement


def repeat_agreement(answers: Answers, cells: Cells, model: JudgeParameters, repeats: Repeats) -> RepeatAgreement:
    """How far repeats agree, and the excess agreement to count them with."""
    pair, won, lost = _asked_again(answers)
    times = won + lost
    weight = 2 / times.sum(axis=1)  # of two answers on the same pair
    n = float(times.sum() - len(pair))
    all_won = won.sum(axis=1)
    all_lost = lost.sum(axis=1)
    agreeing = float(weight @ (all_won * (all_won - 1) + all_lost * (all_lost - 1))) / 2
    expected = None
    rho = 0.0 if isinstance(repeats, str) else repeats
    if repeats == "learned" and n:
        from pairscale.models.bayes.normal import differences  # which imports SciPy

        twos = times[:, :, None] * times[:, None, :]
        twos[:, (0, 1), (0, 1)] -= times
        for _ in range(_ROUNDS):
            weighed = weigh_repeats(cells, rho)
            p = _chances(pair, weighed, model.position, *differences(weighed, model))
            alike = p[:, :, None] * p[:, None, :] + (1 - p[:, :, None]) * (1 - p[:, None, :])
            mean = alike @ gauss_hermite(_NODES)[1]
            expected = float(weight @ (twos * mean).sum(axis=(1, 2))) / 2
            before = rho
            rho = min(max((agreeing - expected + _PRIOR / 2) / (n - expected + _PRIOR), 0.0), 1.0)
            if abs(rho - before) < _SETTLED:
                break
    return RepeatAgreement(
        rho=rho,
        how=repeats if isinstance(repeats, str) else "given",
        n_repeats=round(n),
        agreement=agreeing / n if n else None,
        expected=None if expected is None else expected / n,
    )


def repeat_weights(answers: Answers | Cells, rho: float) -> Floats:
    """What each comparison counts when a pair asked n times counts as ``1 + (n - 1)(1 - rho)``."""
    _, which = np.unique(answers.pair, return_inverse=True)
    n = np.bincount(which, answers.times).astype(np.float64)
    return ((1 + (n - 1) * (1 - rho)) / n)[which]


def weigh_repeats(cells: Cells, rho: float) -> Cells:
    """The outcomes of a pair asked n times, counted as ``1 + (n - 1)(1 - rho)`` with the same share of wins."""
    return cells if rho == 0 else replace(cells, times=cells.times * repeat_weights(cells, rho))


def _weigh_ties(cells: Cells, answers: Answers, model: JudgeParameters) -> Cells:
    """The outcomes, counted by how much they vary; without a tie, as they are."""
    times = np.ones(len(answers.result)) if answers.times is None else answers.times
    ties = times @ (answers.result == 0.5)
    if not ties:
        return cells
    from pairscale.models.bayes.normal import differences  # which imports SciPy

    _, weights = gauss_hermite(_NODES)
    phi = 1.0
    share = ties / (times.sum() + _WITHOUT_TIE)
    for _ in range(_TIE_ROUNDS):
        p = _at_nodes(*differences(replace(cells, times=cells.times / phi), model))
        varies = (cells.times @ ((p * (1 - p)) @ weights)) / cells.times.sum()
        phi = min(max(1 - share / (4 * varies), _LEAST_PHI), 1.0)
    return replace(cells, times=cells.times / phi)


def _at_nodes(mean: Floats, variance: Floats, lapse: float) -> Floats:
    """The probability of each outcome, at the nodes of its difference."""
    nodes, _ = gauss_hermite(_NODES)
    chance = scipy.special.expit(mean[..., None] + np.sqrt(variance)[..., None] * nodes)
    return (1 - lapse) * chance + lapse / 2


def _asked_again(answers: Answers) -> tuple[Ints, Floats, Floats]:
    """The pairs with two answers or more; by order (lower number first, second), how often that one won and lost.

    Ties are left out.
    """
    decided = answers.result != 0.5
    first = answers.first[decided]
    second = answers.second[decided]
    weight = np.ones(len(first)) if answers.times is None else answers.times[decided].astype(np.float64)
    pair, which = np.unique(answers.pair[decided], return_inverse=True)
    low_won = (answers.result[decided] == 1) == (first < second)
    place = which * 2 + (first > second)
    won = np.bincount(place, weight * low_won, 2 * len(pair)).reshape(-1, 2)
    lost = np.bincount(place, weight * ~low_won, 2 * len(pair)).reshape(-1, 2)
    again = (won + lost).sum(axis=1) > 1
    return pair[again], won[again], lost[again]


def _chances(pair: Ints, cells: Cells, position: bool, of_cells: Floats, spread: Floats, lapse: float) -> Floats:
    """Per pair and order, the probability that the lower number wins, at the nodes of the difference."""
    # Each pair and order has a cell, for either winner; without a position effect both orders share one. Where only
    # one order was asked, what the other gets does not count.
    low_won = cells.winner < cells.loser
    order = ((cells.sign > 0) != low_won) & position
    keys, cell = np.unique(cells.pair * 2 + order, return_index=True)
    wanted = pair[:, None] * 2 + np.array([0, int(position)])
    asked = cell[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)]
    to_low = np.where(low_won, of_cells, -of_cells)
    return _at_nodes(to_low[asked], spread[asked], lapse)


def learn_shared_error(answers: Cells, position: float, scale: float) -> float:
    """Of logits: the share of an error that belongs to the pair, from pairs with two values or more.

    Args:
        answers: logits, each counting once.
        position: the preference for the first position.
        scale: the scale of the errors.
    """
    rows = np.asarray(answers.kind == 0)
    if answers.z is None or not rows.any():
        return 1.0
    side = np.where(answers.winner[rows] < answers.loser[rows], 1.0, -1.0)
    value = side * (answers.z[rows] - position)
    _, which = np.unique(answers.pair[rows], return_inverse=True)
    n = np.bincount(which).astype(np.float64)
    mean = np.bincount(which, value) / n
    repeats = float((n - 1).sum())
    again = n[which] > 1
    within = (value - mean[which])[again] * np.sqrt(n / np.maximum(n - 1, 1))[which[again]]
    excess = repeats * (1 - (_t_scale(within) / scale) ** 2)
    return min(max((excess + _PRIOR / 2) / (repeats + _PRIOR), 0.0), 1.0)


def _t_scale(errors: Floats) -> float:
    """The scale of Student's t for errors: the same figure as that of the model, so that the two compare."""
    variance = float(np.mean(errors**2)) if len(errors) else 0.0
    for _ in range(30):
        if variance < 1e-12:
            return 0.0
        variance = float(np.mean((DF + 1) * errors**2 / (DF + errors**2 / variance)))
    return float(np.sqrt(variance))


def repeats_per_item(first: Ints, second: Ints, n_items: int, times: Ints | None = None) -> Ints:
    """Per item, in how many comparisons it was that repeat a pair, in either order.

    Args:
        first: per comparison, the number of the item shown first.
        second: per comparison, the number of the item shown second.
        n_items: how many items there are.
        times: how often each comparison occurs; once by default.
    """
    low, high = np.divmod(np.unique(pair_keys(first, second, n_items, None)), n_items)
    degree = side_sums(first, second, times, times, n_items)
    return (degree - side_sums(low, high, None, None, n_items)).astype(np.int64)
