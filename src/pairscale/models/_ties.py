"""What comparisons with ties are worth: half a win for each side varies less than the toss of a coin.

Counted as half a win, a comparison has the variance ``p (1 - p) - t / 4``, with t the chance of a tie, and not the
``p (1 - p)`` that the model takes it for. With many ties the posterior would be too wide, and the reliability of a run
would be claimed .1 to .2 below the truth. So all comparisons count ``1 / phi`` times, where phi is the one variance
divided by the other, both averaged over the posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy

from pairscale.core.arrays import Floats
from pairscale.models._cells import Cells, JudgeParameters

__all__ = ["NODES", "tie_dispersion", "weigh_ties"]

_ROUNDS = 3
_MORE = 4  # comparisons without a tie that are added: the first ones say little about the chance of one
_LEAST = 0.25  # when nearly everything is a tie, the variance says nothing any more
NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
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

    free = replace(model, prior_sd=None)

    def chances(phi: float) -> Floats:
        found = differences(replace(cells, times=cells.times / phi), free)
        chance = scipy.special.expit(found.mean[:, None] + np.sqrt(found.variance)[:, None] * NODES)
        return np.asarray((1 - found.lapse) * chance + found.lapse / 2)

    return replace(cells, times=cells.times / tie_dispersion(cells.times, ties, of, chances))


def tie_dispersion(times: Floats, ties: int, of: int, chances: Callable[[float], Floats]) -> float:
    """phi: how much comparisons with ties vary, as a share of what the model takes them for.

    Args:
        times: how much each outcome counts.
        ties: how many comparisons are ties; without any, phi is 1.
        of: how many comparisons there are.
        chances: when everything counts ``1 / phi`` times, the probability of each outcome at the nodes ``NODES`` of its
            difference.
    """
    phi, share = 1.0, ties / (of + _MORE)
    for _ in range(_ROUNDS if ties else 0):
        p = chances(phi)
        varies = float(times @ ((p * (1 - p)) @ _WEIGHTS)) / float(times.sum())
        phi = min(max(1 - share / (4 * varies), _LEAST), 1.0)
    return phi
