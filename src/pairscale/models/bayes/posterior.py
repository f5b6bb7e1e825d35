"""A posterior is its draws; everything that is reported of one is computed here, from them.

The figures are those of the item log and the round log. Quantiles are R's default (type 7, linear between the two
nearest draws), standard deviations have n - 1 below, and rank 1 is the best item. Items are ordered by their posterior
mean (EAP) and, where that is equal, by id: the order in which they came in never matters.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import entr

from pairscale._version import __version__
from pairscale.core.errors import InputError
from pairscale.models.bayes.convergence import BLOCK, by_rank
from pairscale.models.bayes.logs import ITEM_LOG
from pairscale.models.reliability import eap_reliability, expected_r2

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats, Ints
    from pairscale.models.bayes.diagnostics import Diagnostics

_LEVELS = {"p2.5": 0.025, "p5": 0.05, "p50": 0.5, "p95": 0.95, "p97.5": 0.975}
_TOP = 20
_BOUNDARY = 2  # ranks on either side of the last of the top


@dataclass(frozen=True, slots=True, eq=False)
class ItemSummary:
    """What the draws say of each item, in the order of the posterior's ids.

    Attributes:
        theta_mean: the posterior mean (EAP).
        theta_sd: the posterior standard deviation.
        theta: quantiles of theta by name (``p2.5 p5 p50 p95 p97.5``).
        rank_mean: the mean of the ranks that the item has in the single draws; 1 is the best.
        rank_sd: the standard deviation of these ranks.
        rank: quantiles of these ranks by name (``p2.5 p5 p50 p95 p97.5``).
        p_top: how probable it is that the item is among the best k, with k = min(20, N - 1).
        order: the items by EAP, best first; equal ones by id.
    """

    theta_mean: Floats
    theta_sd: Floats
    theta: dict[str, Floats]
    rank_mean: Floats
    rank_sd: Floats
    rank: dict[str, Floats]
    p_top: Floats
    order: Ints


# Not slotted, so that the summary is computed once and kept.
@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """The draws of a fit, all chains together.

    Row r of every array is draw ``r // chains`` of chain ``r % chains``.

    Attributes:
        ids: the items.
        theta: of shape (draws, items), each draw with mean 0.
        epsilon: the lapse rate of each draw; None when the model has none.
        b: the position bias of each draw; None when the model has none.
        chains: how many chains the draws come from.
    """

    ids: tuple[str, ...]
    theta: Floats
    epsilon: Floats | None = None
    b: Floats | None = None
    chains: int = 1

    def __post_init__(self) -> None:
        if self.theta.ndim != 2 or self.theta.shape[1] != len(self.ids) or not np.isfinite(self.theta).all():
            raise InputError(
                f"theta must have a row for each draw and a column for each of {len(self.ids):,} items, all of them "
                f"finite; it has the shape {self.theta.shape}"
            )

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.ids)

    @property
    def n_draws(self) -> int:
        """How many draws there are, over all chains."""
        return len(self.theta)

    @cached_property
    def items(self) -> ItemSummary:
        """The summary of each item, computed when it is first asked for."""
        mean, sd, theta = _summed_up(self.theta)
        ranks = _draw_ranks(self.theta)
        rank_mean, rank_sd, rank = _summed_up(ranks)
        p_top = (ranks <= 2 * _top(self.n_items)).mean(axis=0)
        order = np.lexsort((np.array(self.ids), -mean))
        in_places = {name: values / 2 for name, values in rank.items()}
        return ItemSummary(mean, sd, theta, rank_mean / 2, rank_sd / 2, in_places, p_top, order)


def item_log(
    posterior: Posterior,
    refit_id: int,
    degree: Ints,
    pos_count_A: Ints,
    pos_count_B: Ints,
    repeated_pairs: Ints,
) -> pl.DataFrame:
    """The item log of one fit: one row per item, in the order of the posterior's ids.

    Args:
        posterior: the draws.
        refit_id: which fit this is, counted from 1.
        degree: per item, in how many comparisons it was.
        pos_count_A: per item, in how many of them it was shown first.
        pos_count_B: per item, in how many of them it was shown second.
        repeated_pairs: per item, how many of them repeat a pair.

    Returns:
        The columns of ``ITEM_LOG``. ``pos_A_rate`` is missing for an item that was in none.
    """
    items = posterior.items
    above, _ = _neighbours(posterior.theta, items.order)
    before, after = np.full((2, posterior.n_items), np.nan)
    before[items.order[1:]] = above
    after[items.order[:-1]] = above
    columns: dict[str, Any] = {
        "refit_id": np.full(posterior.n_items, refit_id),
        "ID": posterior.ids,
        "theta_mean": items.theta_mean,
        "theta_sd": items.theta_sd,
        **{f"theta_{name}": values for name, values in items.theta.items()},
        "rank_mean": items.rank_mean,
        "rank_sd": items.rank_sd,
        **{f"rank_{name}": values for name, values in items.rank.items()},
        "degree": degree,
        "pos_count_A": pos_count_A,
        "pos_count_B": pos_count_B,
        "repeated_pairs": repeated_pairs,
        "adjacent_prev_prob": before,
        "adjacent_next_prob": after,
        "top_prob": None,
    }
    frame = pl.DataFrame(columns).with_columns(
        pl.col("adjacent_prev_prob", "adjacent_next_prob").fill_nan(None),
        pos_A_rate=pl.when(pl.col("degree") > 0).then(pl.col("pos_count_A") / pl.col("degree")),
        rank=pl.col("theta_mean").rank("min", descending=True),
    )
    return frame.select(pl.col(name).cast(dtype) for name, dtype in ITEM_LOG.items())


def round_figures(
    posterior: Posterior,
    degree: Ints,
    pos_count_A: Ints,
    pos_count_B: Ints,
    *,
    near_tie_p_low: float = 0.40,
    near_tie_p_high: float = 0.60,
) -> dict[str, float | int | None]:
    """What the round log has of a posterior and of the items' exposure, by the names of its columns.

    ``p_adj`` is the share of draws in which an item is above the one that follows it by EAP; the two are nearly tied
    when it is within the limits, ends included. ``nn_diff_sd`` is the standard deviation of their difference.
    ``top20_boundary_entropy`` is the binary entropy (in nats: 0 is certain, log 2 = 0.693 a coin's toss) of being among
    the best k = min(20, N - 1), for the items whose EAP rank is within 2 of k: five of them, where there are as many.
    ``reliability_EAP`` is ``Var(E[theta]) / (Var(E[theta]) + E[Var(theta)])``. ``reliability_r2`` is the posterior mean
    of the squared correlation of the EAP with the scores: what the squared correlation with the truth is expected to
    be. It does not depend on how sure the unit of the scale is, which a lapse rate and a learned spread leave open and
    which no order depends on. ``pos_balance_sd`` is the standard deviation over items of ``pos_count_A - pos_count_B``.

    Args:
        posterior: the draws.
        degree: per item, in how many comparisons it was.
        pos_count_A: per item, in how many of them it was shown first.
        pos_count_B: per item, in how many of them it was shown second.
        near_tie_p_low: the lowest ``p_adj`` of a near tie.
        near_tie_p_high: the highest.
    """
    items = posterior.items
    balance = pos_count_A - pos_count_B
    width = items.theta["p97.5"] - items.theta["p2.5"]
    variance = items.theta_sd**2
    last = _top(posterior.n_items)
    p = items.p_top[items.order[max(0, last - 1 - _BOUNDARY) : last + _BOUNDARY]]
    entropy = entr(p) + entr(1 - p)
    p_adj, difference_sd = _neighbours(posterior.theta, items.order)
    near = (p_adj >= near_tie_p_low) & (p_adj <= near_tie_p_high)
    eap_variance = items.theta_mean.var(ddof=1)
    has_spread = eap_variance > 0 or bool(variance.any())
    return {
        "mean_degree": np.mean(degree),
        "min_degree": int(np.min(degree)),
        "pos_balance_sd": balance.std(ddof=1),
        **_parameter("epsilon", posterior.epsilon),
        **_parameter("b", posterior.b),
        "ci95_theta_width_mean": width.mean(),
        "ci95_theta_width_median": np.median(width),
        "ci95_theta_width_p90": np.quantile(width, 0.9),
        "ci95_theta_width_max": width.max(),
        "near_tie_adj_frac": near.mean(),
        "near_tie_adj_count": int(near.sum()),
        "p_adj_median": np.median(p_adj),
        "cov_trace_theta": variance.sum(),
        "cov_logdet_diag_theta": np.log(variance).sum() if (variance > 0).all() else None,
        **{f"post_sd_theta_p{p}": np.quantile(items.theta_sd, p / 100) for p in (10, 50, 90)},
        "top20_boundary_entropy_mean": entropy.mean(),
        "top20_boundary_entropy_p90": np.quantile(entropy, 0.9),
        "nn_diff_sd_mean": difference_sd.mean(),
        "nn_diff_sd_p90": np.quantile(difference_sd, 0.9),
        "reliability_EAP": eap_reliability(items.theta_mean, variance) if has_spread else None,
        "theta_sd_eap": eap_variance**0.5,
        "reliability_r2": expected_r2(posterior.theta, items.theta_mean) if eap_variance > 0 else None,
    }


def model_columns(
    posterior: Posterior,
    diagnostics: Diagnostics,
    degree: Ints,
    pos_count_A: Ints,
    pos_count_B: Ints,
    engine: str | None = None,
    **near_ties: float,
) -> dict[str, Any]:
    """By column: the sampler and the machine, the diagnostics, and the figures of the posterior and the exposure.

    Args:
        posterior: the draws.
        diagnostics: what the gate said of them.
        degree: per item, in how many comparisons it was.
        pos_count_A: per item, in how many of them it was shown first.
        pos_count_B: per item, in how many of them it was shown second.
        engine: what sampled, and its version; by default, pairscale's own sampler.
        near_ties: ``near_tie_p_low`` and ``near_tie_p_high`` of :func:`round_figures`.
    """
    figures = round_figures(posterior, degree, pos_count_A, pos_count_B, **near_ties)
    return {
        "n_items": posterior.n_items,
        "mcmc_chains": posterior.chains,
        "mcmc_parallel_chains": posterior.chains,  # they advance in lock-step, in one thread
        "mcmc_threads_per_chain": 1,
        "mcmc_cores_detected_physical": None,  # Python knows of hardware threads only
        "mcmc_cores_detected_logical": os.cpu_count(),
        "mcmc_engine_version": engine or f"pairscale {__version__}",
        **diagnostics.log_columns(),
        **figures,
        "reliability": figures["reliability_EAP"],
    }


def _summed_up(draws: npt.NDArray[Any]) -> tuple[Floats, Floats, dict[str, Floats]]:
    """Mean, standard deviation and quantiles of each column."""
    quantiles = np.quantile(draws, list(_LEVELS.values()), axis=0)
    return draws.mean(axis=0), draws.std(axis=0, ddof=1), dict(zip(_LEVELS, quantiles, strict=True))


def _draw_ranks(theta: Floats) -> npt.NDArray[Any]:
    """Twice the rank of each item in each draw, 1 the highest; equal ones share their average rank."""
    n_items = theta.shape[1]
    table = np.arange(2.0, 2 * n_items + 1)
    ranks = np.empty(theta.shape, dtype=np.uint16 if n_items < 2**15 else np.float32)
    height = max(1, BLOCK // n_items)
    for start in range(0, len(theta), height):
        ranks[start : start + height] = by_rank(-theta[start : start + height], table)
    return ranks


def _top(n_items: int) -> int:
    return min(_TOP, max(1, n_items - 1))


def _neighbours(theta: Floats, order: Ints) -> tuple[Floats, Floats]:
    """Of each item and the next in order: how often it is above in the draws, and the sd of the difference."""
    difference = theta[:, order[:-1]] - theta[:, order[1:]]
    return (difference > 0).mean(axis=0), difference.std(axis=0, ddof=1)


def _parameter(name: str, draws: Floats | None) -> dict[str, float | None]:
    """Mean and quantiles of a parameter of the whole model; missing when the model does not have it."""
    if draws is None:
        return dict.fromkeys(f"{name}_{figure}" for figure in ("mean", *_LEVELS))
    mean, _, quantiles = _summed_up(draws)
    return {f"{name}_{figure}": float(value) for figure, value in {"mean": mean, **quantiles}.items()}
