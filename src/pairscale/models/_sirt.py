"""The engine ``sirt``: Bradley–Terry scores from adjusted wins, as R's ``sirt::btm`` gives them.

With w wins in M comparisons an item has the adjusted score ``s = eps + (M - 2 eps) / M * w``, so that one that won
(or lost) everything still has a finite place. sirt takes Newton steps along the diagonal of the information and
centres after each. What these steps come to rest at is not "observed = expected", since adjusted scores do not add
up to the number of comparisons, but::

    s_i - E_i(theta) = c * I_i(theta)   for every item i,   mean(theta) = 0

    E_i = sum_j n_ij p_ij       I_i = sum_j n_ij p_ij (1 - p_ij)       p_ij = 1 / (1 + exp(theta_j - theta_i))

with one number c for all items, ``c = sum(s - E) / sum(I)``. Here these equations are solved directly, in a few
steps with the full information instead of some hundred with its diagonal, and to nine digits instead of four. A
position effect and the tie parameter solve their own equations, observed = expected, as in sirt.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pairscale.models._information import solve
from pairscale.models.likelihood import Root, make_room, moments, runaways, start_at

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats
    from pairscale.models.data import Counts
    from pairscale.models.likelihood import Parameters, Room

__all__ = ["solve_adjusted"]

_TOLERANCE = 1e-9
# Where two groups hang together by a thread, rounding keeps the steps from getting that small.
_ACCEPTED = 1e-6
_LEFT = 1e-10
_INEXACT = 0.1
_LONGEST_STEP = 2.0
_MAX_STEPS = 100

# sirt's own rule. The published figures of the 24 reference sessions took up to 301 steps, so more than its default.
_SIRT_STEPS = 400
_SIRT_CHANGE = 1e-4
_SIRT_SHRINK = 0.98


def solve_adjusted(counts: Counts, eps: float, *, position: bool = False, start: Parameters | None = None) -> Root:
    """Solve the equations above for connected counts.

    Some connected comparisons have no root: where few comparisons join two groups, the adjustment can give one group
    more wins than its distance to the other could ever explain. sirt then stops somewhere; so does this, at the same
    place, and ``converged`` is false. (With further parameters, these stay where they start.)
    """
    score = eps + (counts.comparisons - 2 * eps) / counts.comparisons * counts.wins
    start = start or start_at(counts, position=position)
    room = make_room(counts)
    at, steps, converged = _newton(counts, score, start, room)
    groups = []
    if not converged:
        groups = runaways(counts, at.theta)
        share = 0.8 * scipy.special.logit(score / counts.comparisons)
        at, steps = _diagonal_steps(counts, score, replace(start, theta=share - share.mean()), room)
    return Root(at, score, moments(counts, at, room=room), steps, converged, groups)


def _newton(counts: Counts, score: Floats, at: Parameters, room: Room) -> tuple[Parameters, int, bool]:
    size = 1.0
    for step_number in range(1, _MAX_STEPS + 1):
        now = moments(counts, at, room=room)
        gradient = score - now.expected
        right = gradient - gradient.sum() / now.diagonal.sum() * now.diagonal
        step = solve(now.information, right, now.left, min(_INEXACT, size))
        if step is None:
            return at, step_number, False
        before = size
        size = float(np.abs(np.concatenate(step)).max())
        at = at.moved(*step, min(1.0, _LONGEST_STEP / max(size, _TOLERANCE)))
        # Steps get shorter by some factor, and so will the next.
        if size < _TOLERANCE or (size < _ACCEPTED and size * size / before < _LEFT):
            return at, step_number, True
        if runaways(counts, at.theta) or (np.abs(at.extra) > 20).any():
            return at, step_number, False
    return at, _MAX_STEPS, size < _ACCEPTED


def _diagonal_steps(counts: Counts, score: Floats, at: Parameters, room: Room) -> tuple[Parameters, int]:
    """The steps of ``sirt::btm`` itself: diagonal, ever shorter, centred."""
    longest = 1.0
    for step_number in range(1, _SIRT_STEPS + 1):
        longest *= _SIRT_SHRINK
        now = moments(counts, at, room=room)
        before = at.theta
        step = np.clip((score - now.expected) / (now.diagonal + 1e-20), -longest, longest)
        at = at.moved(step, np.zeros_like(at.extra), 1.0)
        if np.abs(at.theta - before).max() <= _SIRT_CHANGE:
            return at, step_number
    return at, _SIRT_STEPS
