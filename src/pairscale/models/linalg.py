"""The information about scores, and what follows from it: steps, variances, covariances.

The information about differences is the Laplacian of the graph of pairs, weighted by each pair's own information w:
``L x = D x - A x``. A normal prior adds its precision to the diagonal. Further parameters (a position effect, the tie
parameter) border it::

    | L + t I   B |        A  = (L + t I)^-1 on vectors of mean 0
    | B'        C |        cov = | A + A B S B' A   -A B S |      S = (C - B' A B)^-1
                                 | -S B' A           S     |

Everything is about differences to the mean of all items, where L is singular in no other direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from pairscale.core.arrays import WITHOUT_SCIPY, Floats
from pairscale.models.data import Counts

__all__ = [
    "EXACT_LIMIT",
    "FACTOR_LIMIT",
    "PROBE_SEED",
    "Covariance",
    "Information",
    "conjugate_gradients",
    "covariance",
    "is_exact",
    "pair_sums",
    "pair_variances",
    "solve",
    "variances",
]

EXACT_LIMIT = 5_000
"""Up to so many items the information is inverted, as a dense matrix, for exact standard errors."""

FACTOR_LIMIT = 1_000
"""Up to so many items, factoring the information is also the fastest way to a step."""

_MANY_OPPONENTS = 100  # unless items have so many opponents that conjugate gradients need a handful of steps

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


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """The covariance of the estimates.

    Attributes:
        theta: items by items, of the differences to the mean of all.
        cross: items by further parameters.
        extra: further parameters.
    """

    theta: Floats
    cross: Floats
    extra: Floats


def pair_sums(counts: Counts, of_first: Floats, of_second: Floats) -> Floats:
    """Per item, the sum over its pairs of a number for the first and one for the second of each pair."""
    size = counts.n_items
    return np.asarray(
        np.bincount(counts.first, of_first, size) + np.bincount(counts.second, of_second, size), dtype=np.float64
    )


def is_exact(counts: Counts) -> bool:
    """Whether :func:`variances` is exact for so many items."""
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


def solve(
    information: Information, right: Floats, extra: Floats, accuracy: float = 1e-10
) -> tuple[Floats, Floats] | None:
    """The solution of mean 0 of the bordered equations, for a right side that adds up to 0; None when singular."""
    columns = _inverse_times(information, np.column_stack([right, information.border]), accuracy)
    if columns is None:
        return None
    plain = columns[:, 0]
    spread = columns[:, 1:]
    if not len(extra):
        return plain, extra
    inner = _inner(information, spread)
    if inner is None:
        return None
    more = inner @ (extra - information.border.T @ plain)
    return plain - spread @ more, more


def covariance(information: Information) -> Covariance | None:
    """The full covariance; None when rounding has made the information singular."""
    factored = _factor(information)
    if factored is None:
        return None
    factor, ridge = factored
    if len(factor) > WITHOUT_SCIPY:
        inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T  # only the lower half was written
    else:
        root = np.linalg.inv(factor)
        inverse = root.T @ root
    theta = inverse - 1 / (ridge * len(factor))  # the inverse of the ridge is no part of the covariance
    spread = theta @ information.border
    if not spread.shape[1]:
        return Covariance(theta, spread, information.corner)
    inner = _inner(information, spread)
    if inner is None:
        return None
    return Covariance(theta + spread @ inner @ spread.T, -spread @ inner, inner)


def variances(information: Information) -> tuple[Floats, Floats] | None:
    """The variance of each item's difference to the mean of all, and the covariance of the further parameters.

    Exact up to :data:`EXACT_LIMIT` items. Above, an item's own comparisons enter exactly and the uncertainty of its
    opponents by random probes: with ``b`` the sum over pairs of a random sign times ``sqrt(weight)``, plus for the
    first item and minus for the second (and over items, of one times ``sqrt(t)``), and ``(L + t I) y = b``::

        var_i = (1 - 2/N) / D_i + E[(y_i - b_i / D_i)^2]

    The standard errors are then off by about one percent with 20 opponents an item drawn at random, less with more,
    and 6 percent where everybody only met close neighbours, so that most of an item's uncertainty is its opponents'.

    Returns:
        None when rounding has made the information singular.
    """
    if is_exact(information.counts):
        full = covariance(information)
        return None if full is None else (np.maximum(np.diag(full.theta), 0.0), full.extra)
    size = information.counts.n_items
    degree = information.degree
    opponents = 2 * len(information.weights) / size
    flow = _flows(information, int(np.clip((140 / opponents) ** 2, 8, 128)))
    drawn = _solve_many(information, flow, 1e-10) - flow / degree[:, None]
    plain = (1 - 2 / size) / degree + np.square(drawn).mean(axis=1)
    if not information.border.shape[1]:
        return plain, information.corner
    spread = _solve_many(information, information.border, 1e-10)
    inner = _inner(information, spread)
    if inner is None:
        return None
    return plain + np.einsum("ij,jk,ik->i", spread, inner, spread), inner


def pair_variances(information: Information) -> Floats:
    """The variance of each pair's difference, without further parameters.

    Exact up to 1,000 items. Above, by random probes, as in :func:`variances`: good on average, not for a single pair.
    """
    counts = information.counts
    full = covariance(information) if counts.n_items <= FACTOR_LIMIT else None
    if full is None:
        drawn = _solve_many(information, _flows(information, _PAIR_PROBES), 1e-4)
        return np.asarray(np.square(drawn[counts.first] - drawn[counts.second]).mean(axis=1))
    own = np.diag(full.theta)
    apart = own[counts.first] + own[counts.second] - 2 * full.theta[counts.first, counts.second]
    return np.maximum(apart, 0.0)


def _factor(information: Information) -> tuple[Floats, float] | None:
    """The Cholesky factor of L + t I + ridge 11'/N, and ridge + t; None when rounding has made it singular."""
    counts = information.counts
    degree = information.degree
    size = counts.n_items
    ridge = float(degree.mean())
    # Only the lower half is read. The first of a pair is mostly the lower number; if not, both halves are filled.
    matrix = np.zeros((size, size), order="F")
    matrix[counts.second, counts.first] = information.weights
    if (counts.first > counts.second).any():
        matrix += matrix.T
    np.subtract(ridge / size, matrix, out=matrix)
    matrix[np.diag_indices(size)] += degree
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64), ridge + information.prior
    except np.linalg.LinAlgError:
        return None


def _inner(information: Information, spread: Floats) -> Floats | None:
    """The matrix S, the covariance of the further parameters; None where scores could stand in for them."""
    schur = information.corner - information.border.T @ spread
    if not np.isfinite(schur).all() or (np.diag(schur) <= _SINGULAR * np.diag(information.corner)).any():
        return None
    try:
        inner = np.linalg.inv((schur + schur.T) / 2)
    except np.linalg.LinAlgError:
        return None
    return None if (np.diag(inner) <= 0).any() else np.asarray(inner, dtype=np.float64)


def _inverse_times(information: Information, right: Floats, accuracy: float) -> Floats | None:
    """Solutions of mean 0 of (L + t I) x = b for every column b; None when it is singular."""
    counts = information.counts
    if counts.n_items > FACTOR_LIMIT or 2 * len(counts.times) > _MANY_OPPONENTS * counts.n_items:
        return _solve_many(information, right, accuracy)
    factored = _factor(information)
    if factored is None:
        return None
    factor = factored[0]
    if len(factor) > WITHOUT_SCIPY:
        solution, _ = scipy.linalg.lapack.dpotrs(factor, right, lower=1)
    else:
        solution = np.linalg.solve(factor.T, np.linalg.solve(factor, right))
    return np.asarray(solution - solution.mean(axis=0))


def _solve_many(information: Information, right: Floats, accuracy: float) -> Floats:
    """The same, without a factor."""
    counts = information.counts
    size = counts.n_items
    upper: Any = scipy.sparse.csr_array((information.weights, (counts.first, counts.second)), shape=(size, size))
    lower = upper.T
    degree = information.degree

    def times(x: Floats) -> Floats:
        return np.asarray(degree[:, None] * x - upper @ x - lower @ x)

    solution = conjugate_gradients(times, right - right.mean(axis=0), degree, accuracy, 2 * size)
    return np.asarray(solution - solution.mean(axis=0))


def _flows(information: Information, probes: int) -> Floats:
    """The right sides of random probes, whose solutions have the covariance of the estimates."""
    counts = information.counts
    weights = information.weights
    size = counts.n_items
    random = np.random.default_rng(PROBE_SEED)
    flow = np.empty((size, probes))
    for probe in range(probes):
        signed = np.sqrt(weights) * (2.0 * random.integers(0, 2, len(weights)) - 1.0)
        flow[:, probe] = pair_sums(counts, signed, -signed)
        if information.prior:
            flow[:, probe] += np.sqrt(information.prior) * (2.0 * random.integers(0, 2, size) - 1.0)
    return flow
