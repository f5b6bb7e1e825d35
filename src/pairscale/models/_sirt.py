"""The engine ``sirt``: Bradley–Terry scores from adjusted wins, as R's ``sirt::btm`` gives them.

With w wins in M comparisons an item has the adjusted score ``s = eps + (M - 2 eps) / M * w``, so that one that won
(or lost) everything still has a finite place. sirt takes Newton steps along the diagonal of the information and
centres after each. What these steps come to rest at is not "observed = expected", since adjusted scores do not add
up to the number of comparisons, but::

    s_i - E_i(theta) = c * I_i(theta)   for every item i,   mean(theta) = 0

    E_i = sum_j n_ij p_ij       I_i = sum_j n_ij p_ij (1 - p_ij)       p_ij = 1 / (1 + exp(theta_j - theta_i))

with one number c for all items, ``c = sum(s - E) / sum(I)``. Here these equations are solved directly, in a few
steps with the full information instead of some hundred with its diagonal, and to nine digits instead of four.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.special import expit, logit

from pairscale.models._counts import connected_parts

if TYPE_CHECKING:
    from pairscale.models._counts import Counts, Floats, Ints

__all__ = ["PROBE_SEED", "Root", "is_exact", "mean_variances", "solve_adjusted"]

EXACT_LIMIT = 5_000
"""Up to so many items the information is inverted, as a dense matrix, for exact standard errors."""

_FACTOR_LIMIT = 1_000  # up to so many items, factoring it is also the fastest way to a step

PROBE_SEED = 20_240_229
"""Of the random signs behind :func:`mean_variances` above :data:`EXACT_LIMIT`: the same data, the same figures."""

_TOLERANCE = 1e-9
# Where two groups hang together by a thread, rounding keeps the steps from getting that small.
_ACCEPTED = 1e-6
_LONGEST_STEP = 2.0
_MAX_STEPS = 100
# A distance of 20 is a probability of 2e-9. A pair may be that far apart when others lie between the two; groups that
# nothing shorter joins have run away from each other, for no number of comparisons says such a thing.
_RUNAWAY = 20.0

# sirt's own rule. The published figures of the 24 reference sessions took up to 301 steps, so more than its default.
_SIRT_STEPS = 400
_SIRT_CHANGE = 1e-4
_SIRT_SHRINK = 0.98


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """Where the equations (or, without a root, sirt's own steps) come to rest.

    Attributes:
        theta: per item, the score; their mean is 0.
        score: per item, the adjusted wins s.
        expected: per item, the expected wins E.
        information: per item, the diagonal information I.
        weights: per pair, n p (1 - p).
        drift: the number c.
        iterations: steps taken.
        converged: whether the equations hold; if not, the scores are those of sirt's own steps, stopped.
        log_likelihood: of the wins as they were, without the adjustment.
        groups: without a root, the groups of items that ran away from each other, where they can be told.
    """

    theta: Floats
    score: Floats
    expected: Floats
    information: Floats
    weights: Floats
    drift: float
    iterations: int
    converged: bool
    log_likelihood: float
    groups: list[Ints]


def solve_adjusted(counts: Counts, eps: float) -> Root:
    """Solve the equations above for connected counts.

    Some connected comparisons have no root: where few comparisons join two groups, the adjustment can give one group
    more wins than its distance to the other could ever explain. sirt then stops somewhere; so does this, at the same
    place, and ``converged`` is false.
    """
    score = eps + (counts.comparisons - 2 * eps) / counts.comparisons * counts.wins
    start = 0.8 * logit(score / counts.comparisons)
    start -= start.mean()
    theta, steps, converged = _newton(counts, score, start)
    groups = [] if converged else _runaways(counts, theta)
    if not converged:
        theta, steps = _diagonal_steps(counts, score, start)
    expected, information, weights = _moments(counts, theta)
    return Root(
        theta=theta,
        score=score,
        expected=expected,
        information=information,
        weights=weights,
        drift=float((score - expected).sum() / information.sum()),
        iterations=steps,
        converged=converged,
        log_likelihood=_log_likelihood(counts, theta),
        groups=groups,
    )


def _newton(counts: Counts, score: Floats, theta: Floats) -> tuple[Floats, int, bool]:
    size = np.inf
    for step_number in range(1, _MAX_STEPS + 1):
        expected, information, weights = _moments(counts, theta)
        gradient = score - expected
        step = _solve_laplacian(counts, weights, gradient - gradient.sum() / information.sum() * information)
        if step is None:
            return theta, step_number, False
        size = float(np.abs(step).max())
        theta = theta + step * min(1.0, _LONGEST_STEP / max(size, _TOLERANCE))
        theta -= theta.mean()
        if size < _TOLERANCE:
            return theta, step_number, True
        if _runaways(counts, theta):
            return theta, step_number, False
    return theta, _MAX_STEPS, size < _ACCEPTED


def _runaways(counts: Counts, theta: Floats) -> list[Ints]:
    """The groups that only very distant pairs join; none when all items hold together."""
    near = np.abs(theta[counts.first] - theta[counts.second]) <= _RUNAWAY
    if near.all():
        return []
    groups = connected_parts(counts, near)
    return groups if len(groups) > 1 else []


def _diagonal_steps(counts: Counts, score: Floats, theta: Floats) -> tuple[Floats, int]:
    """The steps of ``sirt::btm`` itself: diagonal, ever shorter, centred."""
    longest = 1.0
    for step_number in range(1, _SIRT_STEPS + 1):
        longest *= _SIRT_SHRINK
        expected, information, _ = _moments(counts, theta)
        before = theta
        theta = theta + np.clip((score - expected) / (information + 1e-20), -longest, longest)
        theta -= theta.mean()
        if np.abs(theta - before).max() <= _SIRT_CHANGE:
            return theta, step_number
    return theta, _SIRT_STEPS


def _moments(counts: Counts, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """Expected wins and information per item, and the weight of each pair."""
    size, gap = counts.n_items, theta[counts.first] - theta[counts.second]
    won = expit(gap)
    # expit(-gap) and not 1 - won: the difference has no digits left where the gap is wide.
    lost = expit(-gap)
    weights = counts.times * won * lost
    expected = np.bincount(counts.first, counts.times * won, size) + np.bincount(
        counts.second, counts.times * lost, size
    )
    # An item compared with itself wins half of two decisions each time, whatever theta is.
    return expected + counts.self_pairs, _degree(counts, weights) + counts.self_pairs / 2, weights


def _degree(counts: Counts, weights: Floats) -> Floats:
    size = counts.n_items
    return np.asarray(np.bincount(counts.first, weights, size) + np.bincount(counts.second, weights, size), np.float64)


def _log_likelihood(counts: Counts, theta: Floats) -> float:
    either = np.logaddexp(theta[counts.first], theta[counts.second])
    alone = counts.self_pairs @ (theta + np.log(2))
    return float(counts.wins @ theta - counts.times @ either - alone)


# The information about differences is the Laplacian of the graph of pairs, weighted by n p (1 - p): L x = D x - A x.


def is_exact(counts: Counts) -> bool:
    """Whether :func:`mean_variances` is exact for so many items."""
    return counts.n_items <= EXACT_LIMIT


def _factor(counts: Counts, weights: Floats) -> tuple[Floats, float] | None:
    """The Cholesky factor of L + ridge 11'/N, and the ridge; None when rounding has made it singular."""
    size, degree = counts.n_items, _degree(counts, weights)
    ridge = float(degree.mean())
    matrix = np.full((size, size), ridge / size, order="F")
    matrix[counts.second, counts.first] -= weights
    matrix[np.diag_indices(size)] += degree
    factor, failed = lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
    return None if failed else (factor, ridge)


def _solve_laplacian(counts: Counts, weights: Floats, right: Floats) -> Floats | None:
    """The solution with mean 0 of L x = right, for a right side that adds up to 0; None when L is singular."""
    if counts.n_items > _FACTOR_LIMIT:
        return _conjugate_gradients(counts, weights, right[:, None])[:, 0]
    factored = _factor(counts, weights)
    if factored is None:
        return None
    solution, _ = lapack.dpotrs(factored[0], right, lower=1)
    return np.asarray(solution - solution.mean(), dtype=np.float64)


def mean_variances(counts: Counts, weights: Floats) -> Floats | None:
    """The variance of each item's difference to the mean of all: the diagonal of the pseudo-inverse of L.

    Exact up to :data:`EXACT_LIMIT` items. Above, an item's own comparisons enter exactly and the uncertainty of its
    opponents by random probes: with ``b`` the sum over pairs of a random sign times ``sqrt(weight)``, plus for the
    first item and minus for the second, and ``L y = b``::

        var_i = (1 - 2/N) / D_i + E[(y_i - b_i / D_i)^2]

    The standard errors are then off by about one percent with 20 opponents an item drawn at random, less with more,
    and 6 percent where everybody only met close neighbours, so that most of an item's uncertainty is its opponents'.

    Returns:
        None when rounding has made L singular.
    """
    size, degree = counts.n_items, _degree(counts, weights)
    if is_exact(counts):
        factored = _factor(counts, weights)
        if factored is None:
            return None
        inverse, _ = lapack.dtrtri(factored[0], lower=1, overwrite_c=1)
        # The inverse of L + ridge 11'/N is the pseudo-inverse plus 11'/(ridge N).
        exact = np.einsum("ij,ij->j", inverse, inverse) - 1 / (factored[1] * size)
        return np.asarray(np.maximum(exact, 0.0), dtype=np.float64)
    opponents = 2 * len(weights) / size
    probes = int(np.clip((140 / opponents) ** 2, 8, 128))
    random, flow = np.random.default_rng(PROBE_SEED), np.empty((size, probes))
    for probe in range(probes):
        signed = np.sqrt(weights) * (2.0 * random.integers(0, 2, len(weights)) - 1.0)
        flow[:, probe] = np.bincount(counts.first, signed, size) - np.bincount(counts.second, signed, size)
    spread = _conjugate_gradients(counts, weights, flow) - flow / degree[:, None]
    return np.asarray((1 - 2 / size) / degree + np.square(spread).mean(axis=1), dtype=np.float64)


def _conjugate_gradients(counts: Counts, weights: Floats, right: Floats) -> Floats:
    """Solutions with mean 0 of L x = b for every column b, by conjugate gradients scaled with the diagonal."""
    size = counts.n_items
    upper = sparse.csr_array((weights, counts.second, counts.start), shape=(size, size))
    lower, degree = upper.T.tocsr(), _degree(counts, weights)[:, None]
    solution = np.zeros_like(right)
    residual = right - right.mean(axis=0)
    target = 1e-10 * np.linalg.norm(residual, axis=0)
    direction = scaled = residual / degree
    size_now = np.einsum("ij,ij->j", residual, scaled)
    for _ in range(2 * size):
        image = degree * direction - upper @ direction - lower @ direction
        length = size_now / np.maximum(np.einsum("ij,ij->j", direction, image), np.finfo(np.float64).tiny)
        solution += length * direction
        residual = residual - length * image
        if (np.linalg.norm(residual, axis=0) <= target).all():
            break
        scaled = residual / degree
        size_before, size_now = size_now, np.einsum("ij,ij->j", residual, scaled)
        direction = scaled + size_now / np.maximum(size_before, np.finfo(np.float64).tiny) * direction
    return np.asarray(solution - solution.mean(axis=0), dtype=np.float64)
