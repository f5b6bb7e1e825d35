"""What a refit found and how a call ended, in words: every gate, every end, and figures on their side of a limit."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.adaptive.gates import stop_decision, stop_gates
from pairscale.adaptive.messages import (
    diagnostics,
    how_it_stands,
    missing,
    no_pair,
    shown_figure,
    shown_limit,
    stop_in_words,
    verdict,
)
from pairscale.adaptive.step_log import STEP_LOG_MEANING

PASSING: dict[str, Any] = {
    "divergences": 0, "divergences_max_allowed": 0, "max_rhat": 1.0, "max_rhat_allowed": 1.01, "min_ess_bulk": 900.0,
    "ess_bulk_required": 400.0, "reliability": 0.92, "eap_reliability_min": 0.9, "lag_eligible": True,
    "rho_theta": 0.99, "theta_corr_min": 0.95, "delta_sd_theta": 0.02, "theta_sd_rel_change_max": 0.1,
    "rho_rank": 0.97, "rank_spearman_min": 0.95,
}  # fmt: skip


def judged(**figures: Any) -> dict[str, Any]:
    """A row of the round log with the verdicts that its figures call for."""
    row = PASSING | figures
    decision, reason = stop_decision(row)
    return row | stop_gates(row) | {"stop_decision": decision, "stop_reason": reason}


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"divergences": 1}, "diagnostics fail (divergences)"),
        ({"max_rhat": 1.02, "min_ess_bulk": 399.0}, "diagnostics fail (R-hat, effective sample size)"),
        ({"reliability": 0.898}, "reliability below 0.90"),
        ({"reliability": None, "eap_reliability_min": 0.875}, "reliability below 0.875"),
        ({"lag_eligible": False, "rho_rank": None}, "too few refits to compare with"),
        ({"rho_rank": 0.949}, "rank stability below 0.95"),
        ({"rho_theta": 0.93}, "scores still move (0.93, at least 0.95)"),
        ({"rho_theta": None}, "scores still move (not known yet, at least 0.95)"),
        ({"delta_sd_theta": 0.134}, "spread still changes by 0.13 (at most 0.10)"),
        ({"delta_sd_theta": 0.1004}, "spread still changes by 0.1004 (at most 0.10)"),
    ],
)
def test_each_gate_that_fails_is_named(figures: dict[str, Any], words: str) -> None:
    row = judged(**figures)
    assert missing(row) == [words]
    assert verdict(row) == f"not yet: {words}"


def test_nothing_is_missing_exactly_when_the_run_stops() -> None:
    row = judged()
    assert row["stop_decision"]
    assert missing(row) == []
    assert verdict(row) == "the run stops: the scores are reliable and stable"
    assert verdict(row | {"stop_decision": False, "stop_reason": None}) == ""  # a closing refit decides nothing


def test_what_a_stop_rests_on() -> None:
    gates = "reliability 0.92 (at least 0.90), rank stability 0.97 (at least 0.95), "
    gates += "stability of the scores 0.99 (at least 0.95)"
    spread = ", change of the spread 0.02 (at most 0.10)"
    assert stop_in_words(judged()) == gates + spread
    assert stop_in_words(judged(theta_sd_rel_change_max=1e6)) == gates  # a gate that is switched off


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "divergences": st.integers(0, 2),
            "max_rhat": st.sampled_from([1.0, 1.02, None]),
            "reliability": st.sampled_from([None, 0.5, 0.9, 0.95]),
            "lag_eligible": st.booleans(),
            "rho_theta": st.sampled_from([None, 0.5, 0.95]),
            "delta_sd_theta": st.sampled_from([None, 0.1, 0.5]),
            "rho_rank": st.sampled_from([None, 0.5, 1.0]),
        },
    )
)
def test_a_run_that_goes_on_always_says_why(figures: dict[str, Any]) -> None:
    row = judged(**figures)
    assert (missing(row) == []) == row["stop_decision"]


@pytest.mark.parametrize(
    ("reason", "words", "stands"),
    [
        ("candidate_starvation", "the run stops: no pair is left that may be asked", "stopped"),
        ("max_comparisons", "limit reached (max_comparisons): raise it to continue", "paused"),
        ("max_cost", "limit reached (max_cost): raise it to continue", "paused"),
        ("max_minutes", "limit reached (max_minutes): raise it to continue", "paused"),
        ("judge_failing", "paused: the judge gives no valid answers", "paused"),
        ("interrupted", "interrupted", "paused"),
        ("failed", "broken off by an error", "paused"),
        ("of another version", "the run ends: of another version", "paused"),
    ],
)
def test_a_pause_is_not_called_a_stop(reason: str, words: str, stands: str) -> None:
    row = judged(reliability=0.5) | {"stop_decision": True, "stop_reason": reason}
    assert verdict(row) == words
    assert how_it_stands(reason) == f"{stands}: {reason}"


def test_diagnostics_in_words() -> None:
    assert diagnostics(judged()) == "diagnostics pass"
    assert diagnostics(judged(max_rhat=1.5)) == "diagnostics fail (R-hat)"


@pytest.mark.parametrize(
    ("figure", "limit", "at_most", "shown"),
    [
        (0.898, 0.9, False, "0.898"),
        (0.894, 0.9, False, "0.89"),
        (0.904, 0.9, False, "0.90"),
        (0.9, 0.9, False, "0.90"),
        (0.89996, 0.9, False, "0.89996"),
        (0.102, 0.1, True, "0.102"),
        (0.098, 0.1, True, "0.10"),
        (0.5, None, False, "0.50"),
        (None, 0.9, False, "not known yet"),
        (math.nan, 0.9, False, "not known yet"),
    ],
)
def test_two_decimals_unless_they_would_lie(figure: Any, limit: Any, at_most: bool, shown: str) -> None:
    assert shown_figure(figure, limit, at_most=at_most) == shown


@given(st.floats(0, 1), st.sampled_from([0.1, 0.8, 0.9, 0.95, 0.875]), st.booleans())
def test_what_is_shown_is_on_the_same_side_of_the_limit(figure: float, limit: float, at_most: bool) -> None:
    shown = float(shown_figure(figure, limit, at_most=at_most))
    if abs(figure - limit) > 1e-6:
        assert (shown <= limit if at_most else shown >= limit) == (figure <= limit if at_most else figure >= limit)
    assert abs(shown - figure) <= 0.005 + 1e-12


def test_a_limit_is_shown_in_full() -> None:
    assert [shown_limit(limit) for limit in (0.9, 0.95, 0.875, 1.0)] == ["0.90", "0.95", "0.875", "1.00"]


def test_every_reason_of_an_empty_step_is_in_plain_words() -> None:
    listed = STEP_LOG_MEANING["starvation_reason"].partition(": ")[2].split(", ")
    assert len(listed) == 5
    for reason in listed:
        assert reason not in no_pair(reason)
    assert no_pair("duplicates") == "no pair to ask about in this stage: all that fit were asked often enough"
