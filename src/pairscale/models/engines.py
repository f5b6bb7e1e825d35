"""The Bradley–Terry engines: the equations of each, the steps that solve them, and what each says without an answer.

``mle`` solves "observed wins = expected wins". ``map`` adds ``-sum(theta²) / (2 sd²)`` to the log-likelihood; ``firth``
adds half the logarithm of the information's determinant.

``sirt`` gives the scores of R's ``sirt::btm``. With w wins in M comparisons an item has the adjusted score
``s = eps + (M - 2 eps) / M * w``, so that one that won (or lost) everything still has a finite place. sirt takes Newton
steps along the diagonal of the information and centres after each. What these steps come to rest at is not "observed =
expected", since adjusted scores do not add up to the number of comparisons, but::

    s_i - E_i(theta) = c * I_i(theta)   for every item i,   mean(theta) = 0

    E_i = sum_j n_ij p_ij       I_i = sum_j n_ij p_ij (1 - p_ij)       p_ij = 1 / (1 + exp(theta_j - theta_i))

with one number c for all items, ``c = sum(s - E) / sum(I)``. A position effect solves its own equation, observed =
expected, as in sirt.

All equations are solved directly, in a few steps with the full information.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy

from pairscale.core.errors import FitError, InputError
from pairscale.core.notices import notice
from pairscale.models.bayes.model import Cells, JudgeParameters, gauss_hermite
from pairscale.models.data import named_parts
from pairscale.models.likelihood import (
    RUNAWAY,
    Moments,
    Parameters,
    information_of,
    moments,
    outcome_probabilities,
    runaways,
    start_at,
)
from pairscale.models.linalg import (
    EXACT_LIMIT,
    covariance,
    difference_variances,
    pair_variances,
    solve,
)

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.data import Counts
    from pairscale.models.linalg import Information

ENGINES = ("sirt", "mle", "map", "firth")

_LEFT = 1e-10
# Where two groups hang together by a thread, rounding keeps the steps from getting that small.
_ACCEPTED = 1e-6
_INEXACT = 0.1  # a step is solved for the more exactly, the shorter the last one was
_LONGEST_STEP = 2.0
_OVERSHOT = 0.9
_MAX_STEPS = 100

# sirt's own rule. The published figures of the 24 reference sessions took up to 301 steps, so more than its default.
_SIRT_STEPS = 400
_SIRT_CHANGE = 1e-4
_SIRT_SHRINK = 0.98


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


@dataclass(frozen=True, slots=True)
class FitEngine:
    """An engine with its settings.

    Attributes:
        name: which.
        eps: the adjustment of the wins, for ``sirt``.
        prior_sd: of the scores, for ``map``; ``learned`` until :meth:`fixed` has learned it.
        position: whether the model has a position effect.
        averaged: whether standard errors are those of the posterior's average curvature, not of that at the mode.
    """

    name: str
    eps: float
    prior_sd: float | Literal["learned"]
    position: bool
    averaged: bool = False

    @property
    def prior(self) -> float:
        """The precision of the scores' prior; 0 without one."""
        return self.prior_sd**-2 if self.name == "map" and self.prior_sd != "learned" else 0.0

    def fixed(self, counts: Counts) -> FitEngine:
        """The same engine, with the standard deviation of its prior learned, where it is to be."""
        if self.prior_sd != "learned":
            return self
        return replace(self, prior_sd=learned_spread(counts), averaged=True)

    def solve(self, counts: Counts, start: Parameters | None = None) -> Root:
        """The solution that the engine found; look at ``converged``.

        Some connected comparisons have no root: where few comparisons join two groups, the adjustment of ``sirt`` can
        give one group more wins than its distance to the other could ever explain. sirt then stops somewhere; so does
        this, at the same place. (A position effect stays where it starts.)
        """
        start = start or start_at(counts, position=self.position)
        score = counts.wins
        if self.name == "sirt":
            score = self.eps + (counts.comparisons - 2 * self.eps) / counts.comparisons * counts.wins
        at, steps, converged = self._newton(counts, score, start)
        groups = [] if converged else runaways(counts, at.theta)
        if self.name == "sirt" and not converged:
            at, steps = _diagonal_steps(counts, score, start)
        return Root(at, score, moments(counts, at, self.prior), steps, converged, groups)

    def _newton(self, counts: Counts, score: Floats, at: Parameters) -> tuple[Parameters, int, bool]:
        """Steps with the full information: where they ended, how many, and whether the equations hold there."""
        before = at
        step: Floats | None = None
        size = 1.0
        share = 1.0
        rise = 0.0
        steps = 0
        while steps < _MAX_STEPS:
            equations = self._equations(counts, score, at)
            if equations is None:
                return at, steps, False
            gradient, information = equations
            if step is not None and gradient @ step < -_OVERSHOT * rise:
                # It falls behind the top almost as steeply as it rose before: the step was too long.
                share /= 2
                at = before.moved(share * step)
                continue
            steps += 1
            exactness = min(_INEXACT, size) if self.name != "firth" else _LEFT
            step = solve(information, gradient, exactness)
            if step is None:
                return at, steps, False
            last_size = size
            size = np.abs(step).max()
            share = min(1.0, _LONGEST_STEP / max(size, _LONGEST_STEP))
            before = at
            rise = float(gradient @ step)
            at = at.moved(share * step)
            # What is left of a step after it: steps get shorter by some factor, and it was not solved for exactly.
            if size * max(size / last_size, exactness) < _LEFT:
                return at, steps, True
            if (np.abs(at.values[counts.n_items :]) > RUNAWAY).any() or runaways(counts, at.theta):
                return at, steps, False
        return at, steps, size < _ACCEPTED

    def _equations(self, counts: Counts, score: Floats, at: Parameters) -> tuple[Floats, Information] | None:
        """What is to be zero: per item, and for a position effect; and the information to take a step with."""
        now = moments(counts, at, self.prior)
        information = now.information
        gradient = score - now.expected
        left = now.left
        if self.name == "sirt":
            gradient = gradient - gradient.sum() / now.diagonal.sum() * now.diagonal
        elif self.name == "map":
            gradient = gradient - self.prior * at.theta
        elif self.name == "firth":
            spread = covariance(information)
            if spread is None:
                return None
            # Half a win more for each side, shared by leverage: as if there were more comparisons.
            of_d = difference_variances(spread, counts)
            if at.position:
                of_d += 2 * (spread[counts.first, -1] - spread[counts.second, -1]) + spread[-1, -1]
            won, lost = outcome_probabilities(at.gaps(counts))
            leverage = information.weights * of_d
            push = leverage * (lost - won) / 2
            weights = information.weights * (1 + leverage / counts.times)
            information = information_of(counts, weights, 0.0, position=at.position)
            gradient = gradient + counts.sums(push, -push)
            left = left + push.sum()
        return np.append(gradient, left), information

    def answer(self, counts: Counts) -> tuple[Root, list[str]]:
        """The root, and what is to be said about it.

        Raises:
            FitError: when there is none. Only ``sirt`` without a position effect continues without a root, as R does.
        """
        if self.name == "firth" and counts.n_items > EXACT_LIMIT:
            raise InputError(f"engine='firth' is for up to {EXACT_LIMIT:,} items; use engine='map'")
        if self.name == "sirt" and (counts.comparisons <= 2 * self.eps).any():
            raise InputError(
                f"the comparisons of an item weigh less than sirt's adjustment, 2 eps = {2 * self.eps:g}: scale the "
                "weights up, lower eps, or use engine='map'"
            )
        root = self.solve(counts)
        if root.converged:
            return _averaged(counts, root) if self.averaged else root, []
        groups = f" between {named_parts(counts.ids, root.groups)}" if root.groups else ""
        if self.name == "sirt" and not self.position:
            said = (
                f"no finite scores solve sirt's equations for these comparisons: the distance{groups} is open. The "
                f"scores are those after {root.iterations} of sirt's own steps; more comparisons settle it"
            )
            return root, [notice(said)]
        if self.name == "mle" and not self.position:
            raise FitError(
                f"the likelihood has no maximum: items won or lost every comparison with the others, and the distance"
                f"{groups} would be infinite. Add comparisons, or use engine 'sirt', 'map', 'firth'"
            )
        raise FitError(
            f"engine {self.name!r} found no finite estimate: the distance{groups} is open, or these comparisons cannot "
            "tell a position effect from the scores. Add comparisons in both orders, or leave out position="
        )


def _diagonal_steps(counts: Counts, score: Floats, start: Parameters) -> tuple[Parameters, int]:
    """The steps of ``sirt::btm`` itself: diagonal, ever shorter, centred."""
    theta = 0.8 * scipy.special.logit(score / counts.comparisons)
    further = start.values[len(theta) :]
    at = replace(start, values=np.append(theta - theta.mean(), further))
    longest = 1.0
    for step_number in range(1, _SIRT_STEPS + 1):
        longest *= _SIRT_SHRINK
        now = moments(counts, at)
        before = at.theta
        step = np.clip((score - now.expected) / (now.diagonal + 1e-20), -longest, longest)
        at = at.moved(np.append(step, np.zeros_like(further)))
        if np.abs(at.theta - before).max() <= _SIRT_CHANGE:
            return at, step_number
    return at, _SIRT_STEPS


def learned_spread(counts: Counts) -> float:
    """The standard deviation of the prior of scores, where the evidence for it is largest.

    It is that of the Bayesian model without lapses and position effect, by its normal approximation
    (:mod:`pairscale.models.bayes.normal`): around the mode alone, a spread would come out a tenth to a third too small.
    """
    from pairscale.models.bayes.normal import Target, around_center

    times = np.concatenate([counts.won, counts.times - counts.won])
    cells = Cells(
        winner=np.concatenate([counts.first, counts.second]),
        loser=np.concatenate([counts.second, counts.first]),
        sign=np.ones(len(times)),
        times=times,
        n_items=counts.n_items,
    )
    center, _ = around_center(Target(cells, JudgeParameters(lapse=False, position=False, prior_sd=None)))
    return math.exp(center.judge[0])


def _averaged(counts: Counts, root: Root) -> Root:
    """The same root with the information averaged over the posterior.

    At the mode it is a little too large: 95 % intervals would cover 93 to 94 %.
    """
    gap = root.at.gaps(counts)
    for _ in range(2):
        apart = pair_variances(root.now.information)
        weight = np.zeros(len(gap))
        for node, share in zip(*gauss_hermite(3), strict=True):
            p = scipy.special.expit(gap + node * np.sqrt(apart))
            weight += share * p * (1 - p)
        prior = root.now.information.prior
        information = information_of(counts, counts.times * weight, prior, position=root.at.position)
        root = replace(root, now=replace(root.now, information=information))
    return root
