"""How sure scores are: by the model, robust to clusters, by resampling, and what that means for ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from pairscale.core.errors import FitError, InputError
from pairscale.core.jobs import run_tasks, values_of
from pairscale.core.notices import notice
from pairscale.models.data import connected_parts
from pairscale.models.likelihood import outcome_probabilities
from pairscale.models.linalg import EXACT_LIMIT, Covariance, covariance, is_exact, variances

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.data import Counts, Units
    from pairscale.models.engines import FitEngine, Root
    from pairscale.models.likelihood import Parameters

__all__ = ["Requested", "Uncertainty", "assess"]

_FEW_CLUSTERS = 20
_RANK_DRAWS = 2_000
_BLOCK = 20  # bootstrap rounds that share a seed, and a task


@dataclass(frozen=True, slots=True)
class Requested:
    """What is to be known about the scores.

    Attributes:
        level: of the intervals.
        se: whether standard errors are wanted at all.
        covariance: whether the full covariance is kept.
        bootstrap: how many rounds; 0 for none.
        ranks: whether the intervals of the ranks are wanted.
        seed: of what is random.
        n_jobs: how many blocks of bootstrap rounds are fitted at once.
        reference: the place of the item that the scores are differences to.
    """

    level: float
    se: bool
    covariance: bool
    bootstrap: int
    ranks: bool
    seed: int
    n_jobs: int | None = None
    reference: int | None = None


@dataclass(slots=True, eq=False)
class Uncertainty:
    """What is known about the scores of one part; None and nothing where standard errors were not asked for.

    Attributes:
        se_mean: of the differences to the mean, by the model.
        se: of the differences to the reference, by the model; to the mean where there is none.
        interval_se: of the kind that the intervals are made with.
        extra_se: of the further parameters, of that kind.
        z: how many standard errors an interval goes to each side.
        columns: further columns of the table.
        covariance: the full one, of the kind of the intervals.
        notices: what to be careful with.
    """

    se_mean: Floats | None = None
    se: Floats | None = None
    interval_se: Floats | None = None
    extra_se: Floats | None = None
    z: float = 0.0
    columns: dict[str, Floats | Ints] = field(default_factory=dict[str, "Floats | Ints"])
    covariance: Floats | None = None
    notices: list[str] = field(default_factory=list[str])


def assess(counts: Counts, units: Units, root: Root, engine: FitEngine, asked: Requested) -> Uncertainty:
    """Everything that was asked about the scores."""
    if not asked.se:
        return Uncertainty()
    clustered = units.cluster is not None
    needs_full = asked.covariance or asked.reference is not None or clustered or (asked.ranks and not asked.bootstrap)
    if needs_full and not is_exact(counts):
        raise InputError(
            f"covariance, reference, cluster and rank_intervals are for up to {EXACT_LIMIT:,} items, and these are "
            f"{counts.n_items:,}; rank_intervals also go with bootstrap"
        )
    full = covariance(root.now.information) if needs_full else None
    found = variances(root.now.information) if full is None else (np.diag(full.theta), full.extra)
    if found is None or (clustered and full is None):
        if root.converged:
            raise FitError("no standard errors: the information about the scores is singular")
        return Uncertainty()
    se_mean = np.sqrt(np.maximum(found[0], 0.0))
    known = Uncertainty(se_mean, se_mean, z=NormalDist().inv_cdf((1 + asked.level) / 2))
    if full is not None:
        known.se = _standard_errors(full.theta, asked.reference)
    known.interval_se = known.se
    known.extra_se = np.sqrt(np.diag(found[1]))
    if clustered and full is not None:
        full = _robust(known, full, counts, units, root, asked)
    if asked.covariance and full is not None:
        known.covariance = full.theta
    draws = None
    if asked.bootstrap:
        draws = _bootstrap(known, counts, units, root, engine, asked)
    elif asked.ranks and full is not None:
        draws = _normal_draws(root.at.theta, full.theta, asked.seed)
    if asked.ranks and draws is not None:
        lower, upper = _rank_bounds(draws, asked.level)
        known.columns |= {"rank_lower": lower, "rank_upper": upper}
    return known


def _standard_errors(spread: Floats, reference: int | None) -> Floats:
    """Of the differences to the mean, or to one item."""
    variance = np.diag(spread)
    if reference is not None:
        variance = variance + variance[reference] - 2 * spread[reference]
        variance[reference] = 0.0
    return np.sqrt(np.maximum(variance, 0.0))


def _robust(
    known: Uncertainty, model: Covariance, counts: Counts, units: Units, root: Root, asked: Requested
) -> Covariance:
    """Add robust standard errors, and make intervals with them."""
    if units.n_clusters < 2:
        raise FitError("robust standard errors need at least 2 clusters; all comparisons are of one")
    if units.n_clusters < _FEW_CLUSTERS:
        said = f"robust standard errors of only {units.n_clusters} clusters are themselves unsure, and rather too small"
        known.notices.append(notice(said))
    robust = _sandwich(model, counts, units, root)
    known.interval_se = _standard_errors(robust.theta, asked.reference)
    known.columns["se_robust"] = known.interval_se
    known.extra_se = np.sqrt(np.diag(robust.extra))
    return robust


def _sandwich(model: Covariance, counts: Counts, units: Units, root: Root) -> Covariance:
    """The covariance where the comparisons of a cluster (a judge, a task) may depend on each other.

    ``V (G / (G - 1) sum_g u_g u_g') V`` with V the covariance of the model, and u_g the sum over the comparisons of
    cluster g of ``weight · (outcome - expected)`` along every parameter.
    """
    size = counts.n_items
    width = size + len(root.at.extra)
    groups = units.n_clusters
    who = np.asarray(units.cluster)
    won, _, tie = outcome_probabilities(root.at.gaps(counts), root.at.nu)
    expected = won if tie is None else won + tie / 2
    weight = units.weight * units.times
    surplus = weight * (units.result - expected[units.pair])

    def along(column: Ints | int, values: Floats) -> Floats:
        sums = np.bincount(who * width + column, values, groups * width)
        return np.asarray(sums.reshape(groups, width), dtype=np.float64)

    scores = along(counts.first[units.pair], surplus) - along(counts.second[units.pair], surplus)
    if root.at.position:
        scores += along(size, surplus)
    if tie is not None:
        scores += along(width - 1, weight * ((units.result == 0.5) - tie[units.pair]))
    half = scores @ np.block([[model.theta, model.cross], [model.cross.T, model.extra]])
    full = half.T @ half * (groups / (groups - 1))
    return Covariance(full[:size, :size], full[:size, size:], full[size:, size:])


def _bootstrap(
    known: Uncertainty, counts: Counts, units: Units, root: Root, engine: FitEngine, asked: Requested
) -> Floats:
    """Add bootstrap standard errors, and make intervals with them; the scores of the rounds."""
    rounds = _resampled_fits(counts, units, root.at, engine, asked)
    failed = asked.bootstrap - len(rounds)
    if failed:
        said = f"{failed:,} of {asked.bootstrap:,} bootstrap rounds gave no estimate and were left out"
        known.notices.append(notice(said))
    theta = rounds[:, : counts.n_items]
    if asked.covariance:
        known.covariance = np.atleast_2d(np.cov(theta, rowvar=False))
    if asked.reference is not None:
        theta = theta - theta[:, [asked.reference]]
    # Not the quantiles of the draws: scores are a little too wide apart, resampled ones twice that, and with quantiles
    # 92 % and not 95 % of simulated truths were inside.
    known.interval_se = theta.std(axis=0, ddof=1)
    known.columns["se_bootstrap"] = known.interval_se
    known.extra_se = rounds[:, counts.n_items :].std(axis=0, ddof=1)
    return theta


def _resampled_fits(counts: Counts, units: Units, start: Parameters, engine: FitEngine, asked: Requested) -> Floats:
    """Scores and further parameters of resampled comparisons, one row per round that has an estimate.

    A round gives every comparison (or every cluster of them) a new weight: how often it is drawn when as many are drawn
    as there are, or, of other engines than ``sirt``, a standard exponential number (the Bayesian bootstrap), which is
    never 0, so that whatever has an estimate has one in every round. Equal comparisons are drawn together, as one
    multinomial or gamma number. Every block of rounds has a seed of its own, so that ``n_jobs`` changes no figure.

    Raises:
        FitError: when most rounds gave no estimate.
    """
    rounds = asked.bootstrap
    blocks = [range(begin, min(begin + _BLOCK, rounds)) for begin in range(0, rounds, _BLOCK)]
    fitted = partial(_fitted_block, counts, units, start, engine, asked.seed)
    draws: list[Floats] = []
    for estimates in values_of(list(run_tasks(fitted, blocks, asked.n_jobs)), "block of bootstrap rounds"):
        draws += estimates
    failed = rounds - len(draws)
    if failed > rounds / 2:
        raise FitError(
            f"{failed:,} of {rounds:,} bootstrap rounds left items without comparisons or groups unconnected: there "
            "are too few comparisons to resample; leave bootstrap out, or use engine='map' or 'firth'"
        )
    return np.array(draws)


def _fitted_block(
    counts: Counts, units: Units, start: Parameters, engine: FitEngine, seed: int, block: range
) -> list[Floats]:
    """The estimates of some rounds, without those that have none."""
    random = np.random.default_rng([seed, block.start])
    draws = []
    for drawn in _drawn(units, random, len(block), smooth=engine.name != "sirt"):
        again = counts.reweighted(units, units.weight * drawn)
        there = again.times > 0
        if not there.all() and len(connected_parts(again, there)) > 1:
            continue
        if start.ties and again.tied is not None and not 0 < again.tied.sum() < again.times.sum():
            continue
        found = engine.solve(again, start)
        if found.converged:
            draws.append(np.concatenate([found.at.theta, found.at.extra]))
    return draws


def _drawn(units: Units, random: np.random.Generator, rounds: int, *, smooth: bool) -> Iterator[Floats]:
    """How often each unit is drawn, round by round."""
    n_clusters = units.n_clusters
    total = int(units.times.sum())
    for _ in range(rounds):
        if units.cluster is not None:
            if smooth:
                share = random.exponential(size=n_clusters)
            else:
                share = random.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters)).astype(np.float64)
            yield share[units.cluster] * units.times
        elif smooth:
            yield random.gamma(units.times)
        else:
            yield random.multinomial(total, units.times / total).astype(np.float64)


def _normal_draws(theta: Floats, spread: Floats, seed: int) -> Floats:
    """Scores drawn from the normal approximation, one row per draw."""
    # The covariance has no variance in the direction of the mean; with some there, it has a Cholesky factor.
    try:
        factor = np.linalg.cholesky(spread + np.diag(spread).mean())
    except np.linalg.LinAlgError:  # a sandwich of fewer clusters than items
        values, vectors = np.linalg.eigh(spread)
        factor = vectors * np.sqrt(np.maximum(values, 0))
    draws = np.random.default_rng(seed).standard_normal((_RANK_DRAWS, len(theta))) @ factor.T
    return np.asarray(theta + draws - draws.mean(axis=1, keepdims=True))


def _rank_bounds(draws: Floats, level: float) -> tuple[Ints, Ints]:
    """Per item, the ranks between which ``level`` of the draws lie; 1 is the highest score."""
    ranks = np.argsort(np.argsort(-draws, axis=1), axis=1) + 1
    tail = (1 - level) / 2
    lower, upper = np.quantile(ranks, [tail, 1 - tail], axis=0, method="inverted_cdf")
    return lower.astype(np.int64), upper.astype(np.int64)
