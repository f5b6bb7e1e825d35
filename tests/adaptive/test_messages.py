"""What a refit found and how a call ended, in words: every gate, every end, and figures on their side of a limit."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pairscale.adaptive.gates import stop_decision, stop_gates
from pairscale.adaptive.messages import shown_figure

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
