"""What comparisons with ties are worth: half a win for each side varies less than the toss of a coin.

Counted as half a win, a comparison has the variance ``p (1 - p) - t / 4``, with t the chance of a tie, and not the
``p (1 - p)`` that the model takes it for. With many ties the posterior would be too wide, and the reliability of a run
would be claimed .1 to .2 below the truth. So all comparisons count ``1 / phi`` times, where phi is the one variance
divided by the other, both averaged over the posterior.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit

from pairscale.models._cells import Cells, JudgeParameters

__all__ = ["weigh_ties"]

_ROUNDS = 3
_MORE = 4  # comparisons without a tie that are added: the first ones say little about the chance of one
_LEAST = 0.25  # when nearly everything is a tie, the variance says nothing any more
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def weigh_ties(cells: Cells, ties: int, of: int, model: JudgeParameters) -> Cells:
    """The outcomes, counted by how much they vary.

    Args:
        cells: the outcomes, ties as half a win for each.
        ties: how many comparisons are ties; without any, the cells stay as they are.
        of: how many comparisons there are.
        model: which parameters the judge has.
    """
    if not ties:
        return cells
    from pairscale.models.laplace import differences  # which needs this module

    model, phi, share = replace(model, prior_sd=None), 1.0, ties / (of + _MORE)
    for _ in range(_ROUNDS):
        found = differences(replace(cells, times=cells.times / phi), model)
        chance = expit(found.mean[:, None] + np.sqrt(found.variance)[:, None] * _NODES)
        p = (1 - found.lapse) * chance + found.lapse / 2
        varies = float(cells.times @ ((p * (1 - p)) @ _WEIGHTS)) / float(cells.times.sum())
        phi = min(max(1 - share / (4 * varies), _LEAST), 1.0)
    return replace(cells, times=cells.times / phi)
