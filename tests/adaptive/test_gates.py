"""The gates of the stop by hand: which figures pass, up to their very limits, and what no figure at all means."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pairscale.adaptive.gates import is_identified, is_near_stop, is_past_order, may_stop, stop_decision, stop_gates

ROW: dict[str, Any] = {
    "divergences": 0, "divergences_max_allowed": 0, "max_rhat": 1.01, "max_rhat_allowed": 1.01, "min_ess_bulk": 400,
    "ess_bulk_required": 400, "reliability": 0.9, "eap_reliability_min": 0.9, "rho_theta": 0.95,
    "theta_corr_min": 0.95, "delta_sd_theta": 0.1, "theta_sd_rel_change_max": 0.1, "rho_rank": 0.95,
    "rank_spearman_min": 0.95, "lag_eligible": True, "top_wrong": None, "top_wrong_allowed": None,
}  # fmt: skip
"""At every limit."""
TOP = ROW | {"goal": "top:5", "top_wrong": 1.0, "top_wrong_allowed": 1.0}
GATES = {
    "diagnostics_divergences_pass": ("divergences", 1),
    "diagnostics_rhat_pass": ("max_rhat", 1.0101),
    "diagnostics_ess_pass": ("min_ess_bulk", 399),
    "eap_pass": ("reliability", 0.8999),
    "theta_corr_pass": ("rho_theta", 0.9499),
    "delta_sd_theta_pass": ("delta_sd_theta", 0.1001),
    "rho_rank_pass": ("rho_rank", 0.9499),
}
LAGGED = ("theta_corr_pass", "delta_sd_theta_pass", "rho_rank_pass")


@pytest.mark.parametrize("gate", GATES)
def test_a_figure_passes_at_its_limit_and_not_beyond_and_every_gate_decides(gate: str) -> None:
    figure, beyond = GATES[gate]
    passing = dict.fromkeys(("diagnostics_pass", *GATES), True) | {"top_wrong_pass": None}
    assert stop_gates(ROW) == passing
    assert stop_decision(ROW) == (True, "btl_converged")
    failed = {gate} | ({"diagnostics_pass"} if gate.startswith("diagnostics") else set())
    found = stop_gates(ROW | {figure: beyond})
    assert {name for name, verdict in found.items() if verdict is False} == failed
    assert stop_decision(ROW | {figure: beyond}) == (False, None)
    for missing in (None, math.nan):
        assert stop_gates(ROW | {figure: missing})[gate] is (None if gate in LAGGED else False)
        assert stop_decision(ROW | {figure: missing}) == (False, None)


def test_without_a_lagged_refit_there_is_no_stop_but_for_the_top() -> None:
    early = {"lag_eligible": False}
    assert {name for name, verdict in stop_gates(ROW | early).items() if verdict is None} == {*LAGGED, "top_wrong_pass"}
    assert stop_decision(ROW | early) == (False, None)
    assert may_stop(ROW | early) is False
    assert stop_decision(TOP | early) == (True, "btl_converged")
    assert may_stop(TOP | early) is True


@pytest.mark.parametrize(
    ("figure", "limit", "margin"),
    [("reliability", 0.9, 0.02), ("rho_theta", 0.95, 0.01), ("rho_rank", 0.95, 0.01)],
)
def test_the_approximation_rules_a_stop_out_two_or_one_hundredths_below_a_limit(
    figure: str, limit: float, margin: float
) -> None:
    assert may_stop(ROW | {figure: limit - margin + 1e-9})
    assert not may_stop(ROW | {figure: limit - margin - 1e-9})


@pytest.mark.parametrize(("wrong", "passes"), [(1.0, True), (1.001, False), (None, False)])
def test_wrong_members_of_the_top_are_allowed_up_to_their_limit(wrong: float | None, passes: bool) -> None:
    assert stop_gates(TOP | {"top_wrong": wrong})["top_wrong_pass"] is passes
    assert stop_decision(TOP | {"top_wrong": wrong})[0] is passes
    assert stop_decision(TOP | {"top_wrong": wrong, "max_rhat": 1.02}) == (False, None)


@pytest.mark.parametrize(
    ("row", "is_near"),
    [
        (ROW | {"reliability": 0.8501}, True), (ROW | {"reliability": 0.8499}, False),
        (ROW | {"reliability": None}, False),
        (TOP | {"top_wrong": 3.0}, True), (TOP | {"top_wrong": 3.01}, False), (TOP | {"reliability": 0.1}, True),
        (TOP | {"top_wrong": 1.2, "top_wrong_allowed": 0.4}, True),
        (TOP | {"top_wrong": 1.21, "top_wrong_allowed": 0.4}, False),
        (TOP | {"top_wrong": 1.25, "top_wrong_allowed": 0.4}, False),
    ],
)  # fmt: skip
def test_phase_three_begins_a_twentieth_below_or_at_three_times_the_wrong_members(row: Any, is_near: bool) -> None:
    assert is_near_stop(row) is is_near


@pytest.mark.parametrize(
    ("target", "spread", "share", "most"),
    [
        (0.9, 2.0, 0.9, 243.375),  # 30 texts: 15 times (7 + 41 * .9 / 4)
        (0.8, 2.0, 0.9, 243.375 * 4 / 9),
        (0.99, 1.5, 0.8, 15 * (7 + 41 * 0.8 / 2.25) * 11),
        (0.999, 1.5, 0.8, 15 * (7 + 41 * 0.8 / 2.25) * 11),  # no target is above .99 here
    ],
)
def test_a_run_for_the_top_has_asked_enough_for_the_whole_order(
    target: float, spread: float, share: float, most: float
) -> None:
    row = TOP | {"eap_reliability_min": target, "theta_sd_eap": spread, "reliability_EAP": share, "n_items": 30}
    asked = [is_past_order(row | {"total_pairs_done": math.floor(most) + more}) for more in (0, 1)]
    assert asked == [False, True]
    row["total_pairs_done"] = 10**6
    assert is_past_order(row)
    for missing in ({"theta_sd_eap": None}, {"reliability_EAP": None}, {"theta_sd_eap": 0.0}, {"goal": "order"}):
        assert not is_past_order(row | missing)


@pytest.mark.parametrize(
    ("reliability", "correlation", "known"),
    [(0.8, 0.9, True), (0.799, 0.9, False), (0.8, 0.899, False), (None, 0.9, False), (0.8, math.nan, False)],
)
def test_the_order_is_known_when_both_figures_reach_their_limits(
    reliability: float | None, correlation: float, known: bool
) -> None:
    limits = {"global_identified_reliability_min": 0.8, "global_identified_rank_corr_min": 0.9}
    row: Any = {"reliability": reliability, "ts_btl_rank_spearman": correlation, **limits}
    assert is_identified(row) is known
