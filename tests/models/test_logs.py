"""The logs' columns, and the manual's examples of the two views of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import polars as pl
import pytest

from pairscale.core.errors import InputError
from pairscale.models.bayes.logs import ROUND_LOG, summarize_items

ITEMS_1 = pl.DataFrame(
    {
        "refit_id": 1,
        "ID": ["A", "B", "C"],
        "theta_mean": [0.4, 0.1, -0.2],
        "theta_sd": [0.2, 0.3, 0.25],
        "rank_mean": [1.2, 2.1, 2.7],
        "degree": [10, 9, 8],
        "pos_A_rate": [0.55, 0.50, 0.48],
    }
)
ITEMS_2 = ITEMS_1.with_columns(
    refit_id=2,
    theta_mean=pl.col("theta_mean") + pl.Series([0.1, 0.05, 0.02]),
    rank_mean=pl.col("rank_mean") + pl.Series([-0.1, 0.0, 0.1]),
)
LOGS = {"item_log_list": [ITEMS_1, ITEMS_2]}


@pytest.mark.parametrize(
    "posterior",
    [
        ITEMS_1,
        [ITEMS_1],
        (ITEMS_1,),
        {"item_log_list": [ITEMS_1]},
        SimpleNamespace(item_log_list=[ITEMS_1]),
        [ITEMS_1.to_dicts()],
        ITEMS_1.to_dict(as_series=False),
        [ITEMS_1.to_dict(as_series=False)],
        [{name: values.to_numpy() for name, values in ITEMS_1.to_dict().items()}],
        ITEMS_1.to_pandas(),
        [pd.DataFrame(ITEMS_1.to_dict(as_series=False))],
    ],
)
def test_given_item_logs_come_first(posterior: Any) -> None:
    assert summarize_items(LOGS, posterior=posterior)["refit_id"].to_list() == [1, 1, 1]
    assert summarize_items(None, posterior=posterior)["ID"].to_list() == ["A", "B", "C"]


def test_no_such_fit(message_snapshot) -> None:
    with pytest.raises(InputError) as refused:
        summarize_items(LOGS, refit=3)
    message_snapshot(refused)


# The columns that the manual lists under adaptive_round_log, group by group; design §10.2 names no others.
MANUAL = """
refit_id round_id_at_refit step_id_at_refit timestamp model_variant n_items total_pairs_done
new_pairs_since_last_refit n_unique_pairs_seen
proposed_pairs_mode starve_rate_since_last_refit fallback_rate_since_last_refit fallback_used_mode
starvation_reason_mode
global_identified global_identified_reliability_min global_identified_rank_corr_min long_quota_raw
long_quota_effective long_quota_removed realloc_to_mid realloc_to_local
mean_degree min_degree pos_balance_sd star_cap_rejects_since_last_refit star_cap_reject_rate_since_last_refit
recent_deg_median_since_last_refit recent_deg_max_since_last_refit
epsilon_mean epsilon_p2.5 epsilon_p5 epsilon_p50 epsilon_p95 epsilon_p97.5
b_mean b_p2.5 b_p5 b_p50 b_p95 b_p97.5
ts_sigma_mean ts_sigma_max ts_degree_sigma_corr ts_btl_theta_corr ts_btl_rank_spearman
ci95_theta_width_mean ci95_theta_width_median ci95_theta_width_p90 ci95_theta_width_max
near_tie_adj_frac near_tie_adj_count p_adj_median cov_trace_theta cov_logdet_diag_theta
post_sd_theta_p10 post_sd_theta_p50 post_sd_theta_p90 top20_boundary_entropy_mean top20_boundary_entropy_p90
nn_diff_sd_mean nn_diff_sd_p90
diagnostics_pass diagnostics_divergences_pass diagnostics_rhat_pass diagnostics_ess_pass divergences
divergences_max_allowed max_rhat max_rhat_allowed min_ess_bulk ess_bulk_required near_stop_active
reliability_EAP eap_reliability_min eap_pass theta_sd_eap rho_theta lag_eligible theta_corr_min theta_corr_pass
delta_sd_theta theta_sd_rel_change_max delta_sd_theta_pass rho_rank rank_spearman_min rho_rank_pass
mcmc_chains mcmc_parallel_chains mcmc_core_fraction mcmc_cores_detected_physical mcmc_cores_detected_logical
mcmc_threads_per_chain mcmc_engine_version
stop_decision stop_reason
""".split()


def test_columns_of_the_manual() -> None:
    ours = list(ROUND_LOG)[: len(MANUAL)]
    assert sorted(ours) == sorted(MANUAL)
    assert ours[:25] == MANUAL[:25]
    assert ours[-3:] == ["mcmc_engine_version", "stop_decision", "stop_reason"]


def test_columns_behind_those_of_the_manual() -> None:
    assert list(ROUND_LOG)[len(MANUAL) :] == [
        "lag_refit_id", "round_pairs_target", "round_pairs_effective", "phase3_entered", "selector", "is_closing",
        "reliability_r2", "reliability", "screened",
        "repeat_agreement", "n_reversed", "n_flips", "n_repeated_same_order", "n_repeats_agreeing", "first_win_rate",
        "goal", "top_wrong", "top_wrong_allowed", "top_wrong_pass",
        "prior_slope_mean", "prior_slope_p2.5", "prior_slope_p97.5", "judge_slopes", "weak_judges",
        "reliability_lower", "reliability_upper", "rank_correlation", "reliability_without_outliers", "p_two_groups",
    ]  # fmt: skip
