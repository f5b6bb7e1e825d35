"""Standard errors, intervals and ranks of one fit, of whichever kind was asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from pairscale.core.errors import FitError, InputError
from pairscale.core.notices import notice
from pairscale.models._counts import count_units
from pairscale.models._information import EXACT_LIMIT, PROBE_SEED, Covariance, covariance, is_exact, solve, variances
from pairscale.models._intervals import bootstrap_draws, normal_draws, rank_bounds, robust_covariance

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints
    from pairscale.models._counts import Counts, Decided, Units
    from pairscale.models._engines import FitEngine
    from pairscale.models.likelihood import Root

__all__ = ["Interval", "Requested", "Uncertainty", "assess", "seed_used"]

Interval = Literal["model", "robust", "bootstrap"]
"""What intervals are made with."""

_FEW_CLUSTERS = 20


@dataclass(frozen=True, slots=True)
class Requested:
    """What is to be known about the scores.

    Attributes:
        level: of the intervals.
        se: whether standard errors are wanted at all.
        interval: what intervals are made with.
        covariance: whether the full covariance is kept.
        bootstrap: how many rounds; 0 for none.
        ranks: whether the intervals of the ranks are wanted.
        seed: of what is random.
        reference: the place of the item that the scores are differences to.
        n_jobs: how many bootstrap rounds are fitted at once.
    """

    level: float
    se: bool
    interval: Interval
    covariance: bool
    bootstrap: int
    ranks: bool
    seed: int
    reference: int | None
    n_jobs: int | None = None

    @property
    def full(self) -> bool:
        """Whether the full covariance is needed."""
        return self.covariance or (self.ranks and self.interval != "bootstrap")


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """What is known about the scores of one part.

    Attributes:
        se_mean: of the differences to the mean, by the model.
        se_reference: of the differences to the reference, by the model.
        lower: the lower ends of the intervals.
        upper: the upper ends.
        columns: further columns of the table.
        extra_se: standard errors of the further parameters.
        extra_lower: the lower ends of their intervals.
        extra_upper: the upper ends.
        covariance: the full one, of the kind of the intervals.
        notices: what to be careful with.
    """

    se_mean: Floats | None = None
    se_reference: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    columns: tuple[tuple[str, Floats | Ints], ...] = ()
    extra_se: Floats | None = None
    extra_lower: Floats | None = None
    extra_upper: Floats | None = None
    covariance: Floats | None = None
    notices: tuple[str, ...] = ()


def assess(counts: Counts, root: Root, decided: Decided, engine: FitEngine, asked: Requested) -> Uncertainty:
    """Everything that was asked about the scores."""
    if not asked.se:
        return Uncertainty()
    clusters = decided.cluster is not None
    if (asked.full or clusters) and not is_exact(counts):
        raise InputError(
            f"covariance, cluster and rank_intervals are for up to {EXACT_LIMIT:,} items, and these are "
            f"{counts.n_items:,}; rank_intervals also go with bootstrap"
        )
    full = covariance(root.information) if asked.full else None
    simple = _variances(root, full)
    if simple is None:
        if root.converged:
            raise FitError("no standard errors: the information about the scores is singular")
        return Uncertainty()
    about = _by_model(root, simple, full, asked)
    draws = None
    units = count_units(decided, counts, ordered=engine.position) if clusters or asked.bootstrap else None
    if units is not None and clusters:
        about, full = _with_robust(about, full, counts, units, root, asked)
    if units is not None and asked.bootstrap:
        rounds, failed = bootstrap_draws(
            counts,
            units,
            root,
            engine,
            asked.bootstrap,
            asked.seed,
            smooth=engine.name != "sirt",
            n_jobs=asked.n_jobs,
        )
        about, full, draws = _with_bootstrap(about, full, root, rounds, failed, asked)
    if asked.ranks:
        if draws is None and full is not None:
            draws = normal_draws(root.at, full, np.random.default_rng(asked.seed))
        if draws is not None:
            ends = zip(("rank_lower", "rank_upper"), rank_bounds(draws, asked.level), strict=True)
            about = replace(about, columns=(*about.columns, *ends))
    return replace(about, covariance=full.theta if asked.covariance and full is not None else None)


def _by_model(root: Root, simple: tuple[Floats, Floats], full: Covariance | None, asked: Requested) -> Uncertainty:
    se_mean, extra_se = np.sqrt(simple[0]), np.sqrt(np.diag(simple[1]))
    apart = None if asked.reference is None else _to_reference(root, simple[0], full, asked.reference)
    about = Uncertainty(se_mean=se_mean, se_reference=apart)
    return _between(about, root, se_mean if apart is None else apart, extra_se, asked)


def _between(about: Uncertainty, root: Root, se: Floats, extra_se: Floats, asked: Requested) -> Uncertainty:
    """With intervals of the normal approximation."""
    z = NormalDist().inv_cdf((1 + asked.level) / 2)
    theta, extra = root.at.theta, root.at.extra
    if asked.reference is not None:
        theta = theta - theta[asked.reference]
    return replace(
        about,
        lower=theta - z * se,
        upper=theta + z * se,
        extra_se=extra_se,
        extra_lower=extra - z * extra_se,
        extra_upper=extra + z * extra_se,
    )


def _with_robust(
    about: Uncertainty, full: Covariance | None, counts: Counts, units: Units, root: Root, asked: Requested
) -> tuple[Uncertainty, Covariance | None]:
    said = _say_few(units.n_clusters)
    robust = robust_covariance(counts, units, root)
    if robust is None:
        raise FitError("no robust standard errors: the information about the scores is singular")
    se = np.sqrt(_seen_from(robust.theta, asked.reference))
    about = replace(about, columns=(*about.columns, ("se_robust", se)), notices=(*about.notices, *said))
    if asked.interval != "robust":
        return about, full
    return _between(about, root, se, np.sqrt(np.diag(robust.extra)), asked), robust


def _with_bootstrap(
    about: Uncertainty, full: Covariance | None, root: Root, rounds: Floats, failed: int, asked: Requested
) -> tuple[Uncertainty, Covariance | None, Floats | None]:
    if failed:
        said = notice(f"{failed:,} of {asked.bootstrap:,} bootstrap rounds gave no estimate and were left out")
        about = replace(about, notices=(*about.notices, said))
    size = len(root.at.theta)
    theta, extra = rounds[:, :size], rounds[:, size:]
    if asked.reference is not None:
        theta = theta - theta[:, [asked.reference]]
    se = theta.std(axis=0, ddof=1)
    about = replace(about, columns=(*about.columns, ("se_bootstrap", se)))
    if asked.interval != "bootstrap":
        return about, full, None
    # Not the quantiles of the draws: scores are a little too wide apart, resampled ones twice that, and with quantiles
    # 92 % and not 95 % of simulated truths were inside.
    about = _between(about, root, se, extra.std(axis=0, ddof=1), asked)
    if asked.covariance:
        full = Covariance(np.atleast_2d(np.cov(rounds[:, :size], rowvar=False)), np.empty(0), np.empty(0))
    return about, full, theta


def seed_used(asked: Requested, *, exact: bool) -> int | None:
    """The seed of what was random, or None where nothing was."""
    if asked.bootstrap or asked.ranks:
        return asked.seed
    return None if exact or not asked.se else PROBE_SEED


def _variances(root: Root, full: Covariance | None) -> tuple[Floats, Floats] | None:
    if full is not None:
        return np.maximum(np.diag(full.theta), 0.0), full.extra
    return variances(root.information)


def _to_reference(root: Root, variance: Floats, full: Covariance | None, reference: int) -> Floats:
    """The standard errors of the differences to one item."""
    if full is not None:
        return np.asarray(np.sqrt(_seen_from(full.theta, reference)), dtype=np.float64)
    size = len(variance)
    unit = np.full(size, -1 / size)
    unit[reference] += 1
    solved = solve(root.information, unit, np.zeros_like(root.at.extra))
    if solved is None:
        raise FitError("no standard errors: the information about the scores is singular")
    column = solved[0]
    apart = np.maximum(variance + variance[reference] - 2 * column, 0.0)
    apart[reference] = 0.0
    return np.asarray(np.sqrt(apart), dtype=np.float64)


def _seen_from(theta: Floats, reference: int | None) -> Floats:
    """The variances of the differences to the mean, or to one item."""
    own = np.diag(theta)
    if reference is None:
        return np.asarray(np.maximum(own, 0.0), dtype=np.float64)
    apart = np.maximum(own + own[reference] - 2 * theta[reference], 0.0)
    apart[reference] = 0.0
    return np.asarray(apart, dtype=np.float64)


def _say_few(groups: int) -> list[str]:
    if groups < 2:
        raise FitError("robust standard errors need at least 2 clusters; all comparisons are of one")
    if groups >= _FEW_CLUSTERS:
        return []
    return [notice(f"robust standard errors of only {groups} clusters are themselves unsure, and rather too small")]
