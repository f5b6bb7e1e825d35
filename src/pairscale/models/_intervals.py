"""How sure scores are: robust to clusters, by resampling, and what that means for ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from pairscale.core.errors import FitError
from pairscale.models._counts import connected_parts, reweighted
from pairscale.models._information import Covariance, covariance
from pairscale.models._likelihood import outcome_probabilities
from pairscale.models._progress import at_work

if TYPE_CHECKING:
    from collections.abc import Callable

    from pairscale.core.arrays import Floats, Ints
    from pairscale.models._counts import Counts, Units
    from pairscale.models._likelihood import Parameters, Root

__all__ = ["RANK_DRAWS", "bootstrap_draws", "normal_draws", "rank_bounds", "robust_covariance"]

RANK_DRAWS = 2_000
"""Draws of the normal approximation behind the intervals of ranks."""

_FAILED_SHARE = 0.5


def robust_covariance(counts: Counts, units: Units, root: Root) -> Covariance | None:
    """The sandwich: right also when the comparisons of a cluster (a judge, a task) depend on each other.

    ``V (G / (G - 1) sum_g u_g u_g') V`` with V the covariance of the model, and u_g the sum over the comparisons of
    cluster g of ``weight · (outcome - expected)`` along every parameter.

    Returns:
        None when the information is singular.
    """
    at_work(f"robust errors: the covariance of {counts.n_items:,} scores")
    model = covariance(root.information)
    if model is None or units.cluster is None:
        return None
    at, size, groups = root.at, counts.n_items, units.n_clusters
    won, _, tie = outcome_probabilities(at.gaps(counts), at.nu)
    expected = won if tie is None else won + tie / 2
    weight = units.weight * units.times
    left = weight * (units.result - expected[units.pair])
    rows, columns, values = (
        [units.cluster, units.cluster],
        [counts.first[units.pair], counts.second[units.pair]],
        [left, -left],
    )
    if at.position:
        rows.append(units.cluster)
        columns.append(np.full(len(left), size))
        values.append(left)
    if tie is not None:
        rows.append(units.cluster)
        columns.append(np.full(len(left), size + len(at.extra) - 1))
        values.append(weight * ((units.result == 0.5) - tie[units.pair]))
    shape = (groups, size + len(at.extra))
    scores = sparse.csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    at_work(f"robust errors: {groups:,} clusters")
    dense = scores.nnz > 0.05 * groups * shape[1] and groups <= 10 * shape[1]
    meat = scores.toarray().T @ scores.toarray() if dense else (scores.T @ scores).toarray()
    bread = np.block([[model.theta, model.cross], [model.cross.T, model.extra]])
    full = bread @ meat @ bread * (groups / (groups - 1))
    return Covariance(full[:size, :size], full[:size, size:], full[size:, size:])


def bootstrap_draws(
    counts: Counts,
    units: Units,
    root: Root,
    refit: Callable[[Counts, Parameters], Root],
    rounds: int,
    random: np.random.Generator,
    *,
    smooth: bool,
) -> tuple[Floats, int]:
    """Scores and further parameters of resampled comparisons, one row per round, and how many rounds gave none.

    A round gives every comparison (or every cluster of them) a new weight: how often it is drawn when as many are drawn
    as there are, or with ``smooth`` a standard exponential number (the Bayesian bootstrap), which is never 0, so that
    whatever has an estimate has one in every round. Equal comparisons are drawn together, as one multinomial or gamma
    number.

    Raises:
        FitError: when most rounds gave no estimate.
    """
    draws, failed = [], 0
    for done in range(rounds):
        at_work(f"bootstrap: {done:,} of {rounds:,} rounds")
        again = reweighted(counts, units, units.weight * _drawn(units, random, smooth=smooth))
        found = _refitted(again, root.at, refit)
        if found is None:
            failed += 1
        else:
            draws.append(np.concatenate([found.theta, found.extra]))
    if failed > _FAILED_SHARE * rounds:
        raise FitError(
            f"{failed:,} of {rounds:,} bootstrap rounds left items without comparisons or groups unconnected: there "
            "are too few comparisons to resample; leave bootstrap out, or use engine='map' or 'firth'"
        )
    return np.array(draws), failed


def _drawn(units: Units, random: np.random.Generator, *, smooth: bool) -> Floats:
    if units.cluster is not None:
        groups = units.n_clusters
        share = random.exponential(size=groups) if smooth else random.multinomial(groups, np.full(groups, 1 / groups))
        return np.asarray(share[units.cluster] * units.times, dtype=np.float64)
    if smooth:
        return random.gamma(units.times)
    total = int(units.times.sum())
    return random.multinomial(total, units.times / total).astype(np.float64)


def _refitted(counts: Counts, start: Parameters, refit: Callable[[Counts, Parameters], Root]) -> Parameters | None:
    there = counts.times > 0
    if not there.all() and len(connected_parts(counts, there)) > 1:
        return None
    if start.ties and counts.tied is not None and not 0 < counts.tied.sum() < counts.times.sum():
        return None
    found = refit(counts, start)
    return found.at if found.converged else None


def normal_draws(at: Parameters, spread: Covariance, random: np.random.Generator, rounds: int = RANK_DRAWS) -> Floats:
    """Scores drawn from the normal approximation, one row per draw."""
    size = len(at.theta)
    # The covariance has no variance in the direction of the mean; with some there, it has a Cholesky factor.
    filled = spread.theta + np.diag(spread.theta).mean()
    try:
        factor = np.linalg.cholesky(filled)
    except np.linalg.LinAlgError:  # a sandwich of fewer clusters than items
        values, vectors = np.linalg.eigh(spread.theta)
        factor = vectors * np.sqrt(np.maximum(values, 0))
    draws = random.standard_normal((rounds, size)) @ factor.T
    return np.asarray(at.theta + draws - draws.mean(axis=1, keepdims=True), dtype=np.float64)


def rank_bounds(draws: Floats, level: float) -> tuple[Ints, Ints]:
    """Per item, the ranks between which ``level`` of the draws lie; 1 is the highest score."""
    ranks = np.empty(draws.shape, dtype=np.int64)
    np.put_along_axis(ranks, np.argsort(-draws, axis=1), np.arange(1, draws.shape[1] + 1)[None, :], axis=1)
    tail = (1 - level) / 2
    lower, upper = np.quantile(ranks, [tail, 1 - tail], axis=0, method="inverted_cdf")
    return lower.astype(np.int64), upper.astype(np.int64)
