"""The logs of Bayesian fits: one row per fit (round log), one row per item and fit (item log), and views of them.

The columns, their order and their types are a promise; what each one means is beside it, for the documentation too.
A column that does not apply to a fit is missing (null) there, never left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

import polars as pl

from pairscale.core.errors import InputError, TableError
from pairscale.core.options import optional, require_choice, require_int
from pairscale.core.tables import require_columns, to_frame

__all__ = [
    "ITEM_FIGURES",
    "ITEM_LOG",
    "ITEM_LOG_MEANING",
    "ROUND_LOG",
    "ROUND_LOG_MEANING",
    "ItemOrder",
    "round_log_row",
    "summarize_items",
    "summarize_refits",
]

_INT = pl.Int64()
_REAL = pl.Float64()
_TEXT = pl.String()
_FLAG = pl.Boolean()
_TIME = pl.Datetime("us", "UTC")

_LEVELS = {"p2.5": "2.5 %", "p5": "5 %", "p50": "50 %", "p95": "95 %", "p97.5": "97.5 %"}


def _quantiles(name: str, of: str, levels: Sequence[str] = tuple(_LEVELS)) -> dict[str, tuple[pl.DataType, str]]:
    return {f"{name}_{level}": (_REAL, f"{_LEVELS[level]} quantile of {of}") for level in levels}


_ITEM: dict[str, tuple[pl.DataType, str]] = {
    "refit_id": (_INT, "which fit, counted from 1"),
    "ID": (_TEXT, "the item"),
    "theta_mean": (_REAL, "posterior mean of its score theta (EAP); the scores of all items have mean 0"),
    "theta_sd": (_REAL, "posterior standard deviation of theta"),
    **_quantiles("theta", "theta"),
    "rank_mean": (_REAL, "mean of the ranks that it has in the single draws; 1 is the best"),
    **_quantiles("rank", "these ranks", ("p2.5", "p50", "p97.5")),
    "degree": (_INT, "comparisons that it was in"),
    "pos_count_A": (_INT, "how often it was shown first"),
    "pos_count_B": (_INT, "how often it was shown second"),
    "pos_A_rate": (_REAL, "share of its comparisons in which it was shown first"),
    "rank": (_INT, "its place by theta_mean; 1 is the best, and equal ones share the better place"),
    "rank_sd": (_REAL, "standard deviation of the ranks that it has in the single draws"),
    **_quantiles("rank", "these ranks", ("p5", "p95")),
    "repeated_pairs": (_INT, "comparisons that repeat one that it was in before, in either order"),
    "adjacent_prev_prob": (
        _REAL,
        "probability that it is below the one before it by theta_mean; missing for the first",
    ),
    "adjacent_next_prob": (_REAL, "probability that it is above the one after it by theta_mean; missing for the last"),
    "top_prob": (_REAL, "probability that it is one of the K best; missing unless the run's goal is top:K"),
}

_ROUND: dict[str, tuple[pl.DataType, str]] = {
    # Which fit, of how much
    "refit_id": (_INT, "which fit, counted from 1"),
    "round_id_at_refit": (_INT, "the last round of pairing that was complete then"),
    "step_id_at_refit": (_INT, "the last step before it"),
    "timestamp": (_TIME, "when, UTC"),
    "model_variant": (_TEXT, "btl, btl_e (lapse), btl_b (position bias) or btl_e_b (both)"),
    "n_items": (_INT, "items that were not withdrawn"),
    "total_pairs_done": (_INT, "comparisons committed so far"),
    "new_pairs_since_last_refit": (_INT, "of these, since the fit before"),
    "n_unique_pairs_seen": (_INT, "different pairs among them, whatever their order"),
    # Health of the candidates
    "proposed_pairs_mode": (_REAL, "typical number of candidates scored in a step since the fit before"),
    "starve_rate_since_last_refit": (_REAL, "share of steps without a candidate"),
    "fallback_rate_since_last_refit": (_REAL, "share of steps that needed a fallback"),
    "fallback_used_mode": (_TEXT, "the most frequent fallback"),
    "starvation_reason_mode": (_TEXT, "the most frequent reason for no candidate"),
    # Global order known, and what that did to the quotas of the last complete round
    "global_identified": (_FLAG, "whether the global order counts as known"),
    "global_identified_reliability_min": (_REAL, "the reliability that this needs"),
    "global_identified_rank_corr_min": (_REAL, "the rank correlation that this needs"),
    "long_quota_raw": (_INT, "long links planned in a round, before tapering"),
    "long_quota_effective": (_INT, "long links planned after it"),
    "long_quota_removed": (_INT, "long links that tapering took away"),
    "realloc_to_mid": (_INT, "of these, given to mid links"),
    "realloc_to_local": (_INT, "of these, given to local links"),
    # Exposure
    "mean_degree": (_REAL, "mean number of comparisons of an item"),
    "min_degree": (_INT, "smallest number of comparisons of an item"),
    "pos_balance_sd": (_REAL, "standard deviation over items of times shown first less times shown second"),
    # Parameters of the whole model
    "epsilon_mean": (_REAL, "posterior mean of the lapse rate; missing when the model has none"),
    **_quantiles("epsilon", "the lapse rate"),
    "b_mean": (_REAL, "posterior mean of the bias for the first position; missing when the model has none"),
    **_quantiles("b", "the position bias"),
    # TrueSkill beside it
    "ts_sigma_mean": (_REAL, "mean TrueSkill sigma of the items"),
    "ts_sigma_max": (_REAL, "largest TrueSkill sigma"),
    "ts_degree_sigma_corr": (_REAL, "correlation of TrueSkill sigma with the number of comparisons"),
    "ts_btl_theta_corr": (_REAL, "correlation of TrueSkill mu with theta_mean"),
    "ts_btl_rank_spearman": (_REAL, "rank correlation of TrueSkill mu with theta_mean"),
    # Star caps
    "star_cap_rejects_since_last_refit": (_INT, "candidates that the star caps refused"),
    "star_cap_reject_rate_since_last_refit": (_REAL, "share of the candidates that they refused"),
    "recent_deg_median_since_last_refit": (_REAL, "median number of recent comparisons of an item"),
    "recent_deg_max_since_last_refit": (_INT, "largest number of recent comparisons of an item"),
    # How much is still open; nothing is decided on these
    "ci95_theta_width_mean": (_REAL, "mean width of the items' 95 % intervals"),
    "ci95_theta_width_median": (_REAL, "median width of them"),
    "ci95_theta_width_p90": (_REAL, "90 % quantile of their widths"),
    "ci95_theta_width_max": (_REAL, "the widest of them"),
    "near_tie_adj_frac": (_REAL, "share of neighbours by EAP that are nearly tied"),
    "near_tie_adj_count": (_INT, "how many neighbours are: P(above | posterior) within near_tie_p_low and _high"),
    "p_adj_median": (_REAL, "median probability that an item is above the next by EAP"),
    "cov_trace_theta": (_REAL, "sum of the posterior variances of theta"),
    "cov_logdet_diag_theta": (_REAL, "sum of their logarithms"),
    "post_sd_theta_p10": (_REAL, "10 % quantile of theta_sd over items"),
    "post_sd_theta_p50": (_REAL, "50 % quantile of theta_sd over items"),
    "post_sd_theta_p90": (_REAL, "90 % quantile of theta_sd over items"),
    "top20_boundary_entropy_mean": (_REAL, "mean entropy (nats) of being in the top 20, of the items at the border"),
    "top20_boundary_entropy_p90": (_REAL, "90 % quantile of that entropy"),
    "nn_diff_sd_mean": (_REAL, "mean posterior sd of the difference of neighbours by EAP"),
    "nn_diff_sd_p90": (_REAL, "90 % quantile of that sd"),
    # The diagnostics gate
    "diagnostics_pass": (_FLAG, "whether the draws may be decided on: all of the following three"),
    "diagnostics_divergences_pass": (_FLAG, "whether there were few enough divergences"),
    "diagnostics_rhat_pass": (_FLAG, "whether the chains agree"),
    "diagnostics_ess_pass": (_FLAG, "whether the draws are worth enough independent ones"),
    "divergences": (_INT, "divergent transitions of all chains"),
    "divergences_max_allowed": (_INT, "how many are allowed"),
    "max_rhat": (_REAL, "largest rank-normalised split R-hat of any parameter"),
    "max_rhat_allowed": (_REAL, "how large it may be"),
    "min_ess_bulk": (_REAL, "smallest bulk effective sample size of any parameter"),
    "ess_bulk_required": (_REAL, "how large it must be"),
    "near_stop_active": (_FLAG, "whether the run is near its stop, which requires more"),
    # The gates of the stop
    "reliability_EAP": (_REAL, "Var(E[theta]) / (Var(E[theta]) + E[Var(theta)])"),
    "eap_reliability_min": (_REAL, "how large it must be"),
    "eap_pass": (_FLAG, "whether it is"),
    "theta_sd_eap": (_REAL, "standard deviation of theta_mean over items"),
    "rho_theta": (_REAL, "correlation of theta_mean with that of the lagged fit"),
    "lag_eligible": (_FLAG, "whether there is a lagged fit to compare with"),
    "theta_corr_min": (_REAL, "how large rho_theta must be"),
    "theta_corr_pass": (_FLAG, "whether it is"),
    "delta_sd_theta": (_REAL, "relative change of theta_sd_eap since the lagged fit"),
    "theta_sd_rel_change_max": (_REAL, "how large it may be"),
    "delta_sd_theta_pass": (_FLAG, "whether it is no larger"),
    "rho_rank": (_REAL, "rank correlation of theta_mean with that of the lagged fit"),
    "rank_spearman_min": (_REAL, "how large it must be"),
    "rho_rank_pass": (_FLAG, "whether it is"),
    # How the sampler ran
    "mcmc_chains": (_INT, "chains"),
    "mcmc_parallel_chains": (_INT, "chains that ran at the same time"),
    "mcmc_core_fraction": (_REAL, "share of the cores that it might use"),
    "mcmc_cores_detected_physical": (_INT, "cores of the machine"),
    "mcmc_cores_detected_logical": (_INT, "hardware threads of the machine"),
    "mcmc_threads_per_chain": (_INT, "threads for each chain"),
    "mcmc_engine_version": (_TEXT, "which sampler, and its version"),
    # The decision
    "stop_decision": (_FLAG, "whether the run stopped here"),
    "stop_reason": (_TEXT, "why"),
    # What an audit of an adaptive run needs besides
    "lag_refit_id": (_INT, "the fit that the lagged figures compare with; only fits that passed the diagnostics count"),
    "round_pairs_target": (_INT, "comparisons that a round of this run plans at most"),
    "round_pairs_effective": (_INT, "comparisons that the last complete round could hold, and planned"),
    "phase3_entered": (_FLAG, "whether this fit brought the run near its stop"),
    "selector": (_TEXT, "what chose the pairs"),
    "is_closing": (_FLAG, "whether this is the closing fit of a stop, a limit or a pause"),
    # Of the presets that go beyond the document
    "reliability_r2": (_REAL, "posterior mean of the squared correlation of theta_mean with theta"),
    "reliability": (_REAL, "the figure that the run claims and stops by: reliability_EAP or reliability_r2"),
    "screened": (_FLAG, "whether the normal approximation ruled a stop out, so that nothing was sampled"),
    "repeat_agreement": (_REAL, "excess agreement of repeats, 0 to 1; missing when they counted as independent"),
    "n_reversed": (_INT, "answers on a pair that had one in the other order"),
    "n_flips": (_INT, "of these, with the opposite winner"),
    "n_repeated_same_order": (_INT, "answers on a pair that had one in the same order"),
    "n_repeats_agreeing": (_INT, "of all repeats, in either order, with the same answer as before"),
    "first_win_rate": (_REAL, "share of comparisons won by the item shown first; a tie is half"),
    "goal": (_TEXT, "what the run is for: order, or top:K"),
    "top_wrong": (_REAL, "of the K items with the highest theta_mean, how many are expected not to be of the K best"),
    "top_wrong_allowed": (_REAL, "how large it may be; missing unless the goal is top:K"),
    "top_wrong_pass": (_FLAG, "whether it is no larger; missing unless the goal is top:K"),
    "prior_slope_mean": (
        _REAL,
        "logits that a standard deviation of the prior's column is worth, posterior mean; missing without a column",
    ),
    **_quantiles("prior_slope", "that slope", ("p2.5", "p97.5")),
    "judge_slopes": (_TEXT, "with judges = slopes: per judge of a panel, slope and position effect, as JSON"),
    "weak_judges": (_TEXT, "with judges = slopes: the judges whose slope is below a third of the mean, as JSON"),
}

ITEM_FIGURES = ("rank", "ID", "theta_mean", "theta_p2.5", "theta_p97.5", "rank_p2.5", "rank_p97.5", "degree")
"""What is shown of an item where there is not room for everything."""

ITEM_LOG: dict[str, pl.DataType] = {name: dtype for name, (dtype, _) in _ITEM.items()}
"""The item log: one row per item and fit."""

ITEM_LOG_MEANING: dict[str, str] = {name: meaning for name, (_, meaning) in _ITEM.items()}
"""What the columns of :data:`ITEM_LOG` mean."""

ROUND_LOG: dict[str, pl.DataType] = {name: dtype for name, (dtype, _) in _ROUND.items()}
"""The round log: one row per fit, whatever its name says; every stop can be recomputed from it."""

ROUND_LOG_MEANING: dict[str, str] = {name: meaning for name, (_, meaning) in _ROUND.items()}
"""What the columns of :data:`ROUND_LOG` mean."""

ItemOrder = Literal["rank_mean", "theta_mean", "theta_sd", "degree", "pos_A_rate"]
"""By what :func:`summarize_items` sorts: ranks from the best on, everything else from the largest down."""

_ITEM_CORE = tuple(ITEM_LOG)[: tuple(ITEM_LOG).index("rank") + 1]

_CORE = (
    "refit_id", "round_id_at_refit", "step_id_at_refit", "total_pairs_done", "new_pairs_since_last_refit",
    "n_unique_pairs_seen", "diagnostics_pass", "divergences", "max_rhat", "min_ess_bulk", "ess_bulk_required",
    "reliability_EAP", "rho_theta", "delta_sd_theta", "rho_rank", "stop_decision", "stop_reason",
)  # fmt: skip


def round_log_row(**known: Any) -> pl.DataFrame:
    """One row of the round log: what is known, and null for the rest.

    Args:
        known: values by column; names with a dot are given as ``**{"epsilon_p2.5": ...}``. NaN is missing, and a
            ``timestamp`` may be ISO text.

    """
    values = {name: [_plain(known.get(name), dtype)] for name, dtype in ROUND_LOG.items()}
    return pl.DataFrame(values, schema=ROUND_LOG)


def _plain(value: Any, dtype: pl.DataType) -> Any:
    """A value as Polars takes it: numbers of NumPy as Python's, NaN as missing, a time written out as a time."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and math.isnan(value):
        return None
    return datetime.fromisoformat(value) if dtype == _TIME and isinstance(value, str) else value


def summarize_items(
    state: Any,
    posterior: Any = None,
    refit: int | None = None,
    bind: bool = False,
    top_n: int | None = None,
    sort_by: ItemOrder = "rank_mean",
    include_optional: bool = True,
) -> pl.DataFrame:
    """The items of a fit, sorted, as :func:`pairscale.summarize_items` describes them, without R's names.

    Raises:
        InputError: An option is unknown or out of range, or there is no such fit.
        TableError: There is no item log, or it lacks the column to sort by.
    """
    require_choice(sort_by, "sort_by", get_args(ItemOrder))
    top_n = optional(require_int, top_n, "top_n", least=1)
    refit = optional(require_int, refit, "refit", least=1)
    tables = _item_tables(_find(state, "item_log_list", "item_log") if posterior is None else posterior)
    if not tables:
        return pl.DataFrame(schema=ITEM_LOG)
    if refit is not None and (bind or refit > len(tables)):
        raise InputError(f"there is no fit {refit}: there are {len(tables):,}; bind=True stacks them all")
    frame = pl.concat(tables, how="diagonal_relaxed") if bind else tables[(refit or 0) - 1]
    require_columns(frame, [sort_by], "the item log")
    if not include_optional:
        frame = frame.select(name for name in frame.columns if name in _ITEM_CORE)
    figure = pl.col(sort_by).cast(pl.Float64, strict=False).fill_nan(None)
    frame = frame.sort(figure, descending=sort_by != "rank_mean", nulls_last=True, maintain_order=True)
    return frame.head(top_n or frame.height)


def summarize_refits(state: Any, last_n: int | None = None, include_optional: bool = True) -> pl.DataFrame:
    """The fits, one row each, as :func:`pairscale.summarize_refits` describes them, without R's names.

    Raises:
        InputError: ``last_n`` is not 1 or more.
        TableError: There is no round log.
    """
    last_n = optional(require_int, last_n, "last_n", least=1)
    frame = to_frame(_find(state, "round_log"), "the round log")
    if not include_optional:
        frame = frame.select(name for name in frame.columns if name in _CORE)
    return frame.tail(last_n or frame.height)


def _find(source: Any, *names: str) -> Any:
    """What ``source``, or its ``logs``, has under the first of these names that is there, as an attribute or a key."""
    for holder in (source, _get(source, "logs")):
        for name in names:
            found = _get(holder, name)
            if found is not None:
                return found
    raise TableError(f"a fit, a run, or logs by name are needed; this {type(source).__name__} has no {names[0]!r}")


def _get(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _item_tables(given: Any) -> list[pl.DataFrame]:
    """Item logs, one per fit, from a list of tables, one table, or whatever has ``item_log_list``."""
    tables = _get(given, "item_log_list")
    if tables is None:
        tables = given if isinstance(given, list | tuple) else [given]
    return [to_frame(table, "the item log") for table in tables]
