"""How sure scores are: robust to clusters, by resampling, and what that means for ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pairscale.core.errors import FitError
from pairscale.core.jobs import n_workers, run_tasks, values_of
from pairscale.models._columns import both_orders, connected_columns, resampled, rounds_at_once, solve_columns
from pairscale.models._counts import connected_parts, reweighted
from pairscale.models._information import Covariance, covariance
from pairscale.models._progress import at_work
from pairscale.models.likelihood import outcome_probabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.core.arrays import Floats, Ints
    from pairscale.models._columns import Shared
    from pairscale.models._counts import Counts, Units
    from pairscale.models._engines import FitEngine
    from pairscale.models.likelihood import Parameters, Root

__all__ = ["RANK_DRAWS", "bootstrap_draws", "normal_draws", "rank_bounds", "robust_covariance"]

RANK_DRAWS = 2_000
"""Draws of the normal approximation behind the intervals of ranks."""

_FAILED_SHARE = 0.5
_BLOCK = 20  # the fewest rounds that are fitted together; from ten blocks on they grow, as far as memory allows


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
    scores = scipy.sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape
    )
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
    engine: FitEngine,
    rounds: int,
    seed: int,
    *,
    smooth: bool,
    n_jobs: int | None = None,
) -> tuple[Floats, int]:
    """Scores and further parameters of resampled comparisons, one row per round, and how many rounds gave none.

    A round gives every comparison (or every cluster of them) a new weight: how often it is drawn when as many are drawn
    as there are, or with ``smooth`` a standard exponential number (the Bayesian bootstrap), which is never 0, so that
    whatever has an estimate has one in every round. Equal comparisons are drawn together, as one multinomial or gamma
    number. Rounds are fitted together where the engine can, and one by one where it cannot. Every block of
    rounds has a seed of its own, and its size depends on the comparisons and the number of rounds alone, so that
    ``n_jobs`` changes no figure.

    Raises:
        FitError: when most rounds gave no estimate.
    """
    shared = engine.in_columns(counts, root)
    size = min(rounds_at_once(units), _BLOCK if shared is None else max(_BLOCK, rounds // 10))
    blocks = [(done, min(done + size, rounds)) for done in range(0, rounds, size)]
    # All comparisons are sent with a task, so that a few large tasks per worker are faster than many small ones.
    workers = n_workers(n_jobs)
    many = 1 if workers == 1 else -(-len(blocks) // (2 * workers))
    tasks = [blocks[at : at + many] for at in range(0, len(blocks), many)]
    same = _Bootstrap(counts, units, root.at, engine, shared, seed, smooth)
    draws: list[Floats] = []
    at_work(f"bootstrap: 0 of {rounds:,} rounds")
    for task, one in zip(tasks, run_tasks(same.fitted, tasks, n_jobs), strict=True):
        at_work(f"bootstrap: {task[-1][1]:,} of {rounds:,} rounds")
        draws += values_of([one], "block of bootstrap rounds")[0]
    failed = rounds - len(draws)
    if failed > _FAILED_SHARE * rounds:
        raise FitError(
            f"{failed:,} of {rounds:,} bootstrap rounds left items without comparisons or groups unconnected: there "
            "are too few comparisons to resample; leave bootstrap out, or use engine='map' or 'firth'"
        )
    return np.array(draws), failed


@dataclass(frozen=True, slots=True, eq=False)
class _Bootstrap:
    """What all rounds of a bootstrap have in common."""

    counts: Counts
    units: Units
    start: Parameters
    engine: FitEngine
    shared: Shared | None
    seed: int
    smooth: bool

    def fitted(self, blocks: Sequence[tuple[int, int]]) -> list[Floats]:
        """The estimates of some blocks of rounds."""
        return [row for block in blocks for row in self._together(block)]

    def _together(self, block: tuple[int, int]) -> list[Floats]:
        """The estimates of the rounds from a number to another, without those that have none."""
        start, end = block
        random = np.random.default_rng([self.seed, start])
        weight = self.units.weight * _drawn(self.units, random, end - start, smooth=self.smooth)
        if self.shared is None:
            return _one_by_one(self.counts, self.units, weight, self.start, self.engine)
        return _together(self.shared, self.units, weight, self.start, self.engine)


def _drawn(units: Units, random: np.random.Generator, rounds: int, *, smooth: bool) -> Floats:
    """How often each unit is drawn: one row per round, one column per unit."""
    if units.cluster is not None:
        groups = units.n_clusters
        if smooth:
            return np.asarray(random.exponential(size=(rounds, groups))[:, units.cluster] * units.times)
        share = random.multinomial(groups, np.full(groups, 1 / groups), size=rounds)
        return np.asarray(share[:, units.cluster] * units.times, dtype=np.float64)
    if smooth:
        return random.gamma(units.times, size=(rounds, len(units.times)))
    total = int(units.times.sum())
    return random.multinomial(total, units.times / total, size=rounds).astype(np.float64)


def _together(shared: Shared, units: Units, weight: Floats, start: Parameters, engine: FitEngine) -> list[Floats]:
    """The estimates of the rounds that have one, in order; ``weight`` has one row per round."""
    counts = shared.counts
    columns = resampled(counts, units, np.ascontiguousarray(weight.T))
    usable = connected_columns(counts, columns.times)
    if columns.tied is not None:
        tied = columns.tied.sum(axis=0)
        usable &= (tied > 0) & (tied < columns.times.sum(axis=0))
    place = np.flatnonzero(usable)
    if not len(place):
        return []
    columns = columns if usable.all() else columns.chosen(place)
    found, settled = solve_columns(shared, columns)
    if shared.position:
        # Elsewhere scores may stand in for the position effect, which the engine notices.
        settled &= both_orders(counts, columns.times)
    draws: list[Floats] = []
    for at, row in enumerate(place):
        draws += [found[:, at]] if settled[at] else _one_by_one(counts, units, weight[[row]], start, engine)
    return draws


def _one_by_one(counts: Counts, units: Units, weight: Floats, start: Parameters, engine: FitEngine) -> list[Floats]:
    """The same, with a fit of its own for each round."""
    draws = []
    for row in weight:
        again = reweighted(counts, units, row)
        there = again.times > 0
        if not there.all() and len(connected_parts(again, there)) > 1:
            continue
        if start.ties and again.tied is not None and not 0 < again.tied.sum() < again.times.sum():
            continue
        found = engine.solve(again, start)
        if found.converged:
            draws.append(np.concatenate([found.at.theta, found.at.extra]))
    return draws


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
