"""How sure scores are: by the model, robust to clusters, by resampling, and what that means for ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from pairscale.core.errors import FitError, InputError
from pairscale.core.jobs import run_tasks, values_of
from pairscale.core.notices import notice
from pairscale.models.likelihood import outcome_probabilities
from pairscale.models.linalg import EXACT_LIMIT, covariance, is_exact, variances
from pairscale.pairing.table import linked_groups

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.data import Counts, Units
    from pairscale.models.engines import FitEngine, Root
    from pairscale.models.likelihood import Parameters

_FEW_CLUSTERS = 20
_RANK_DRAWS = 2_000
_BLOCK = 20  # bootstrap rounds that share a seed, and a task


@dataclass(slots=True, eq=False)
class Uncertainty:
    """What is known about the scores of one part; NaN where the information about them is singular.

    Attributes:
        se_mean: of the differences to the mean, by the model.
        se: of the differences to the reference, by the model; to the mean where there is none.
        interval_se: of the kind that the intervals are made with.
        further_se: of the further parameters, of that kind.
        z: how many standard errors an interval goes to each side.
        columns: further columns of the table.
        covariance: the full one, of the kind of the intervals.
        notices: what to be careful with.
    """

    se_mean: Floats
    se: Floats
    interval_se: Floats
    further_se: Floats
    z: float
    columns: dict[str, Floats | Ints] = field(default_factory=dict[str, "Floats | Ints"])
    covariance: Floats | None = None
    notices: list[str] = field(default_factory=list[str])


def assess(
    counts: Counts, units: Units, root: Root, engine: FitEngine, options: Mapping[str, Any], reference: int | None
) -> Uncertainty:
    """Everything that was asked about the scores.

    Args:
        counts: the comparisons.
        units: what is resampled.
        root: the scores.
        engine: how they were found.
        options: those of :func:`pairscale.fit_bt_model`.
        reference: the place of the item that the scores are differences to.
    """
    size = counts.n_items
    clustered = units.cluster is not None
    rounds = options["bootstrap"]
    ranks = options["rank_intervals"]
    full = None
    if options["covariance"] or reference is not None or clustered or (ranks and not rounds):
        if not is_exact(counts):
            raise InputError(
                f"covariance, reference, cluster and rank_intervals are for up to {EXACT_LIMIT:,} items, and these are "
                f"{size:,}; rank_intervals also go with bootstrap"
            )
        full = covariance(root.now.information)
        variance = None if full is None else np.maximum(np.diag(full), 0.0)
    else:
        variance = variances(root.now.information)
    if variance is None:
        if root.converged:
            raise FitError("no standard errors: the information about the scores is singular")
        variance = np.full(size + root.at.position, np.nan)
    se_mean = np.sqrt(variance[:size])
    z = NormalDist().inv_cdf((1 + options["level"]) / 2)
    uncertainty = Uncertainty(se_mean, se_mean, se_mean, np.sqrt(variance[size:]), z)
    if full is not None:
        uncertainty.se = _standard_errors(full[:size, :size], reference)
        uncertainty.interval_se = uncertainty.se
        if clustered:
            full = _sandwich(full, counts, units, root)
            uncertainty.interval_se = _standard_errors(full[:size, :size], reference)
            uncertainty.columns["se_robust"] = uncertainty.interval_se
            uncertainty.further_se = np.sqrt(np.diag(full)[size:])
            if units.n_clusters < _FEW_CLUSTERS:
                text = f"robust standard errors of only {units.n_clusters} clusters are themselves unsure"
                uncertainty.notices.append(notice(f"{text}, and rather too small"))
        if options["covariance"]:
            uncertainty.covariance = full[:size, :size]
    draws = None
    if rounds:
        draws = _bootstrap(uncertainty, counts, units, root, engine, options, reference)
    elif ranks and full is not None:
        draws = _normal_draws(root.at.theta, full[:size, :size], options["seed"])
    if ranks and draws is not None:
        ranks_drawn = np.argsort(np.argsort(-draws, axis=1), axis=1) + 1  # 1 is the highest score
        tail = (1 - options["level"]) / 2
        lower, upper = np.quantile(ranks_drawn, [tail, 1 - tail], axis=0, method="inverted_cdf").astype(np.int64)
        uncertainty.columns |= {"rank_lower": lower, "rank_upper": upper}
    return uncertainty


def _standard_errors(spread: Floats, reference: int | None) -> Floats:
    """Of the differences to the mean, or to one item."""
    variance = np.diag(spread)
    if reference is not None:
        variance = variance + variance[reference] - 2 * spread[reference]
        variance[reference] = 0.0
    return np.sqrt(np.maximum(variance, 0.0))


def _sandwich(model: Floats, counts: Counts, units: Units, root: Root) -> Floats:
    """The covariance where the comparisons of a cluster (a judge, a task) may depend on each other.

    ``V (G / (G - 1) sum_g u_g u_g') V`` with V the covariance of the model, and u_g the sum over the comparisons of
    cluster g of ``weight · (outcome - expected)`` along every parameter.
    """
    size = counts.n_items
    width = len(model)
    groups = units.n_clusters
    if groups < 2:
        raise FitError("robust standard errors need at least 2 clusters; all comparisons are of one")
    members = np.asarray(units.cluster)
    won, _ = outcome_probabilities(root.at.gaps(counts))
    weight = units.weight * units.times
    surplus = weight * (units.result - won[units.pair])

    def along(column: Ints | int, values: Floats) -> Floats:
        sums = np.bincount(members * width + column, values, groups * width)
        return np.asarray(sums.reshape(groups, width), dtype=np.float64)

    scores = along(counts.first[units.pair], surplus) - along(counts.second[units.pair], surplus)
    if root.at.position:
        scores += along(size, surplus)
    half = scores @ model
    return half.T @ half * (groups / (groups - 1))


def _bootstrap(
    uncertainty: Uncertainty,
    counts: Counts,
    units: Units,
    root: Root,
    engine: FitEngine,
    options: Mapping[str, Any],
    reference: int | None,
) -> Floats:
    """Add bootstrap standard errors, and make intervals with them; the scores of the rounds that have an estimate.

    A round gives every comparison (or every cluster of them) a new weight: how often it is drawn when as many are drawn
    as there are, or, of other engines than ``sirt``, a standard exponential number (the Bayesian bootstrap), which is
    never 0, so that whatever has an estimate has one in every round. Equal comparisons are drawn together, as one
    multinomial or gamma number. Every block of rounds has a seed of its own, so that ``n_jobs`` changes no figure.

    Raises:
        FitError: when most rounds gave no estimate.
    """
    n_rounds = options["bootstrap"]
    blocks = [range(begin, min(begin + _BLOCK, n_rounds)) for begin in range(0, n_rounds, _BLOCK)]
    fitted = partial(_fitted_block, counts, units, root.at, engine, options["seed"])
    draws: list[Floats] = []
    for estimates in values_of(list(run_tasks(fitted, blocks, options["n_jobs"])), "block of bootstrap rounds"):
        draws += estimates
    failed = n_rounds - len(draws)
    if failed > n_rounds / 2:
        raise FitError(
            f"{failed:,} of {n_rounds:,} bootstrap rounds left items without comparisons or groups unconnected: there "
            "are too few comparisons to resample; leave bootstrap out, or use engine='map' or 'firth'"
        )
    if failed:
        text = f"{failed:,} of {n_rounds:,} bootstrap rounds gave no estimate and were left out"
        uncertainty.notices.append(notice(text))
    rounds = np.array(draws)
    theta = rounds[:, : counts.n_items]
    if options["covariance"]:
        uncertainty.covariance = np.atleast_2d(np.cov(theta, rowvar=False))
    if reference is not None:
        theta = theta - theta[:, [reference]]
    # Not the quantiles of the draws: scores are a little too wide apart, resampled ones twice that, and with quantiles
    # 92 % and not 95 % of simulated truths were inside.
    uncertainty.interval_se = theta.std(axis=0, ddof=1)
    uncertainty.columns["se_bootstrap"] = uncertainty.interval_se
    uncertainty.further_se = rounds[:, counts.n_items :].std(axis=0, ddof=1)
    return theta


def _fitted_block(
    counts: Counts, units: Units, start: Parameters, engine: FitEngine, seed: int, block: range
) -> list[Floats]:
    """The estimates of some rounds, without those that have none."""
    random = np.random.default_rng([seed, block.start])
    draws = []
    for drawn in _drawn(units, random, len(block), smooth=engine.name != "sirt"):
        resampled = counts.reweighted(units, units.weight * drawn)
        has_comparisons = resampled.times > 0
        if not has_comparisons.all():
            first = counts.first[has_comparisons]
            if len(linked_groups(first, counts.second[has_comparisons], counts.n_items)) > 1:
                continue
        root = engine.solve(resampled, start)
        if root.converged:
            draws.append(root.at.values)
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
