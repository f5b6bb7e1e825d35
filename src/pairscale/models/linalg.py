"""The information about scores, and what follows from it: steps, variances, covariances.

The information about differences is the Laplacian of the graph of pairs, weighted by each pair's own information w:
``L x = D x - A x``. A normal prior adds its precision t to the diagonal. Further parameters (a position effect, the tie
parameter) border it::

    | L + t I   B |
    | B'        C |

Without a prior L is singular in the direction of the mean of all items. Everything is about differences to that mean,
so a ridge in this direction, which is taken off again, makes the matrix one that has a Cholesky factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy

from pairscale.core.arrays import WITHOUT_SCIPY, Floats, Ints
from pairscale.models.data import Counts

EXACT_LIMIT = 5_000
"""Up to this number of items the information is inverted, as a dense matrix, for exact standard errors."""

FACTOR_LIMIT = 1_000
"""Up to this number of items, factoring the information is also the fastest way to a step."""

_MANY_OPPONENTS = 100  # opponents of an item, with which conjugate gradients need a handful of steps

PROBE_SEED = 20_240_229
"""Of the random signs behind :func:`variances` above :data:`EXACT_LIMIT`: the same data, the same figures."""

_SINGULAR = 1e-9
_PAIR_PROBES = 64
_TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """The information about the scores of connected items, and about further parameters.

    Attributes:
        counts: the comparisons.
        weights: per pair, its information w.
        own: per item, the sum of its pairs' weights.
        border: items by further parameters, B.
        corner: further parameters, C.
        prior: the precision t of the prior; 0 without one.
    """

    counts: Counts
    weights: Floats
    own: Floats
    border: Floats
    corner: Floats
    prior: float = 0.0

    @property
    def degree(self) -> Floats:
        """The diagonal of L + t I."""
        return self.own + self.prior


def is_exact(counts: Counts) -> bool:
    """Whether :func:`variances` is exact for this number of items."""
    return counts.n_items <= EXACT_LIMIT


def conjugate_gradients(
    times: Callable[[Floats], Floats],
    right: Floats,
    diagonal: Floats,
    tolerance: float,
    steps: int,
    start: Floats | None = None,
) -> Floats:
    """Solutions for all columns of ``right`` at once, scaled by the diagonal.

    Args:
        times: multiplies the matrix with columns.
        right: the right sides, a column each.
        diagonal: of the matrix.
        tolerance: how small the residual gets, as a share of the right side.
        steps: at most.
        start: where to begin; at zero by default.
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    if start is not None:
        solution = start.copy()
        residual -= times(solution)
    scale = 1 / diagonal[:, None]
    limit = tolerance**2 * np.einsum("ic,ic->c", right, right * scale) + _TINY
    direction = np.zeros_like(right)
    size_before = np.ones(right.shape[1])
    for _ in range(steps):
        scaled = scale * residual
        size = np.einsum("ic,ic->c", residual, scaled)
        if (size <= limit).all():
            break
        direction *= size / size_before
        direction += scaled
        image = times(direction)
        length = size / np.maximum(np.einsum("ic,ic->c", direction, image), _TINY)
        solution += length * direction
        residual -= length * image
        size_before = np.maximum(size, _TINY)
    return solution


def solve(information: Information, right: Floats, accuracy: float = 1e-10) -> Floats | None:
    """The solution for the scores, whose mean is 0, and the further parameters; None when it is singular.

    The right side adds up to 0 over the scores.
    """
    counts = information.counts
    if counts.n_items > FACTOR_LIMIT or 2 * len(counts.times) > _MANY_OPPONENTS * counts.n_items:
        return _solve_many(information, right[:, None], accuracy)[:, 0]
    factored = _factor(information)
    if factored is None:
        return None
    factor = factored[0]
    if len(factor) > WITHOUT_SCIPY:
        solution, _ = scipy.linalg.lapack.dpotrs(factor, right, lower=1)
        return np.asarray(solution)
    return np.linalg.solve(factor.T, np.linalg.solve(factor, right))


def covariance(information: Information) -> Floats | None:
    """The covariance of the differences to the mean of all, and of the further parameters; None when it is singular."""
    lower = _lower_covariance(information)
    return None if lower is None else np.tril(lower) + np.tril(lower, -1).T


def _lower_covariance(information: Information) -> Floats | None:
    factored = _factor(information)
    if factored is None:
        return None
    factor, ridge = factored
    if len(factor) > WITHOUT_SCIPY:
        inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
    else:
        root = np.linalg.inv(factor)
        inverse = root.T @ root
    size = information.counts.n_items
    inverse[:size, :size] -= 1 / (ridge * size)  # the inverse of the ridge is no part of the covariance
    return np.asarray(inverse)


def variances(information: Information) -> Floats | None:
    """The variance of each item's difference to the mean of all, and of each further parameter.

    Exact up to :data:`EXACT_LIMIT` items. Above, an item's own comparisons enter exactly and the uncertainty of its
    opponents by random probes: with ``b`` the sum over pairs of a random sign times ``sqrt(weight)``, plus for the
    first item and minus for the second (and over items, of one times ``sqrt(t)``), and ``(L + t I) y = b``::

        var_i = (1 - 2/N) / D_i + E[(y_i - b_i / D_i)^2]

    The standard errors are then off by about one percent with 20 opponents an item drawn at random, less with more,
    and 6 percent where items only met close neighbours, so that most of an item's uncertainty is its opponents'.

    Returns:
        None when rounding has made the information singular.
    """
    if is_exact(information.counts):
        lower = _lower_covariance(information)
        return None if lower is None else np.maximum(np.diag(lower), 0.0)
    size = information.counts.n_items
    degree = information.degree
    opponents = 2 * len(information.weights) / size
    further = len(information.corner)
    flow = _flows(information, int(np.clip((140 / opponents) ** 2, 8, 128)))
    drawn = _solve_many(_scores_alone(information), flow, 1e-10) - flow / degree[:, None]
    plain: Floats = (1 - 2 / size) / degree + np.square(drawn).mean(axis=1)
    if not further:
        return plain
    ends = _solve_many(information, np.eye(size + further, further, -size), 1e-10)  # columns of the covariance
    inner = ends[size:]
    if _is_lost(1 / np.diag(inner), information):
        return None
    return np.append(plain + np.einsum("ij,jk,ik->i", ends[:size], np.linalg.inv(inner), ends[:size]), np.diag(inner))


def pair_variances(information: Information) -> Floats:
    """The variance of each pair's difference.

    Exact up to 1,000 items. Above, by random probes as in :func:`variances`, and without further parameters: good on
    average, not for a single pair.
    """
    counts = information.counts
    full = covariance(information) if counts.n_items <= FACTOR_LIMIT else None
    if full is None:
        drawn = _solve_many(_scores_alone(information), _flows(information, _PAIR_PROBES), 1e-4)
        return np.asarray(np.square(drawn[counts.first] - drawn[counts.second]).mean(axis=1))
    return np.maximum(difference_variances(full, counts), 0.0)


def _scores_alone(information: Information) -> Information:
    """The same without further parameters."""
    return replace(information, border=information.border[:, :0], corner=information.corner[:0, :0])


def difference_variances(covariance: Floats, counts: Counts) -> Floats:
    """The variance of each pair's difference."""
    variance = np.diag(covariance)
    return variance[counts.first] + variance[counts.second] - 2 * covariance[counts.first, counts.second]


def _factor(information: Information) -> tuple[Floats, float] | None:
    """The Cholesky factor with a ridge, and the precision in the ridge's direction; None when it is singular."""
    counts = information.counts
    degree = information.degree
    size = counts.n_items
    ridge = degree.mean()
    matrix = laplacian(counts.first, counts.second, information.weights, degree, information.border.T)
    matrix[:size, :size] += ridge / size
    matrix[size:, size:] = information.corner
    try:
        factor = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    if _is_lost(np.square(np.diag(factor)[size:]), information):
        return None
    return factor, ridge + information.prior


def laplacian(first: Ints, second: Ints, weights: Floats, diagonal: Floats, border: Floats) -> Floats:
    """The lower half of a matrix: minus the weights of the pairs, a diagonal, and below it the rows of a border."""
    n = len(diagonal)
    size = n + len(border)
    out = np.zeros((size, size), order="F")
    place = np.minimum(first, second) * n + np.maximum(first, second)
    out[:n, :n] = -np.bincount(place, weights, n * n).reshape((n, n), order="F")
    out[np.diag_indices(n)] += diagonal
    out[n:, :n] = border
    return out


def _is_lost(told: Floats, information: Information) -> bool:
    """Whether scores could stand in for a further parameter: what is told of it, given the scores, is nothing."""
    return bool((~(told > _SINGULAR * np.diag(information.corner))).any())


def _solve_many(information: Information, right: Floats, accuracy: float) -> Floats:
    """Solutions by conjugate gradients, one for each column of right sides."""
    counts = information.counts
    size = counts.n_items
    upper = counts.matrix(information.weights)
    lower = upper.T
    border = information.border
    corner = information.corner
    degree = information.degree[:, None]

    def times(x: Floats) -> Floats:
        scores = x[:size]
        further = x[size:]
        of_scores = degree * scores - upper @ scores - lower @ scores + border @ further
        return np.concatenate([of_scores, border.T @ scores + corner @ further])

    mean = right[:size].mean(axis=0)
    right = np.concatenate([right[:size] - mean, right[size:]])
    diagonal = np.append(degree, np.diag(corner))
    solution = conjugate_gradients(times, right, diagonal, accuracy, 2 * size)
    solution[:size] -= solution[:size].mean(axis=0)
    return solution


def _flows(information: Information, probes: int) -> Floats:
    """The right sides of random probes, whose solutions have the covariance of the estimates."""
    counts = information.counts
    weights = information.weights
    size = counts.n_items
    random = np.random.default_rng(PROBE_SEED)
    flow = np.empty((size, probes))
    for probe in range(probes):
        signed = np.sqrt(weights) * (2.0 * random.integers(0, 2, len(weights)) - 1.0)
        flow[:, probe] = counts.sums(signed, -signed)
        if information.prior:
            flow[:, probe] += np.sqrt(information.prior) * (2.0 * random.integers(0, 2, size) - 1.0)
    return flow
