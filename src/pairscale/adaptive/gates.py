"""The gates of the stop, from logged columns alone (§4.5.1, §5.4, §9): a row of the round log, and nothing else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pairscale.adaptive.config import ORDER

if TYPE_CHECKING:
    from pairscale.adaptive.logs import Row

NEAR_STOP_MARGIN = 0.05
"""Phase 3 begins so much below the reliability that a stop needs (§5.4)."""

SCREEN_MARGINS = {
    ("reliability", "eap_reliability_min"): 0.02,
    ("rho_theta", "theta_corr_min"): 0.01,
    ("rho_rank", "rank_spearman_min"): 0.01,
}
"""By how much a figure of the normal approximation must miss its limit to rule a stop out."""

NEAR_STOP_WRONG = 3.0
"""Where the goal is the top K: how many times the allowed number of wrong members may be expected in phase 3."""

SCREEN_WRONG = 1.25
"""The same for the normal approximation to rule no stop out."""

CONVERGED = "btl_converged"
"""The reason of the statistical stop."""


def is_identified(row: Row) -> bool:
    """Whether the global order counts as known (§4.5.1); asked of a refit that passed."""
    return holds(row["reliability"], ">=", row["global_identified_reliability_min"]) is True and (
        holds(row["ts_btl_rank_spearman"], ">=", row["global_identified_rank_corr_min"]) is True
    )


def stop_gates(row: Row) -> dict[str, bool | None]:
    """The verdicts that a row's figures and limits call for, by column (§9.1 to §9.4).

    ``diagnostics_pass`` and its three parts and ``eap_pass`` are true or false: a figure that is missing does not pass.
    The lagged ones are None when there is no lagged refit, or the figure is not defined.

    Args:
        row: a row of the round log. Verdicts in it are not looked at, so that an audit can compare them with these.
    """
    parts = {
        "diagnostics_divergences_pass": holds(row["divergences"], "<=", row["divergences_max_allowed"]) is True,
        "diagnostics_rhat_pass": holds(row["max_rhat"], "<=", row["max_rhat_allowed"]) is True,
        "diagnostics_ess_pass": holds(row["min_ess_bulk"], ">=", row["ess_bulk_required"]) is True,
    }
    lagged = {
        "theta_corr_pass": holds(row["rho_theta"], ">=", row["theta_corr_min"]),
        "delta_sd_theta_pass": holds(row["delta_sd_theta"], "<=", row["theta_sd_rel_change_max"]),
        "rho_rank_pass": holds(row["rho_rank"], ">=", row["rank_spearman_min"]),
    }
    return {
        "diagnostics_pass": all(parts.values()),
        **parts,
        "eap_pass": holds(row["reliability"], ">=", row["eap_reliability_min"]) is True,
        **{name: verdict if row["lag_eligible"] else None for name, verdict in lagged.items()},
        "top_wrong_pass": holds(row["top_wrong"], "<=", row["top_wrong_allowed"]) is True if _is_top(row) else None,
    }


def is_near_stop(row: Row) -> bool:
    """Whether a row's figure is that of phase 3 (§5.4)."""
    if _is_top(row):
        return holds(row["top_wrong"], "<=", NEAR_STOP_WRONG * row["top_wrong_allowed"]) is True
    return holds(row["reliability"], ">=", row["eap_reliability_min"] - NEAR_STOP_MARGIN) is True


def is_past_order(row: Row) -> bool:
    """Whether a run for the top K has asked as much as one for the whole order would.

    A text needs about 7 + 41 / s² comparisons to a reliability of .9, where s is the spread of the scores (measured
    with 30 and 60 texts at s = 1.5 and 2.5, docs/validation.md), and more in proportion to r / (1 - r).
    """
    spread = row.get("theta_sd_eap")
    share = row.get("reliability_EAP")
    if not _is_top(row) or not spread or not share:
        return False
    target = min(row["eap_reliability_min"], 0.99)
    per_text = (7 + 41 * share / spread**2) * (target / (1 - target)) / 9
    return bool(row["total_pairs_done"] >= per_text * row["n_items"] / 2)


def _is_top(row: Row) -> bool:
    """Whether a row is of a run for the top K; earlier versions knew no other goal than the order."""
    return row.get("goal") not in (None, ORDER)


def stop_decision(row: Row) -> tuple[bool, str | None]:
    """Whether the run stops at this refit, and why (§9): the diagnostics and every gate pass, and all apply.

    Where the goal is the top K, the diagnostics and the expected number of wrong members decide; a run that has asked
    as much as the whole order takes stops with what it has.

    Args:
        row: a row of the round log; only its figures, limits, goal and ``lag_eligible`` are read.
    """
    gates = stop_gates(row)
    is_top_known = gates.pop("top_wrong_pass")
    if _is_top(row):
        stop = gates["diagnostics_pass"] is True and (is_top_known is True or is_past_order(row))
    else:
        stop = bool(row["lag_eligible"]) and all(verdict is True for verdict in gates.values())
    return stop, CONVERGED if stop else None


def may_stop(row: Row) -> bool:
    """Whether the sampler might grant a stop where the normal approximation gave this row.

    The approximation may rule a stop out and never grants one. It rules it out when there is no lagged refit, or when
    a figure misses its limit by more than the two were seen to differ (docs/validation.md).

    Args:
        row: the row of the round log that the approximation gave.
    """
    if _is_top(row):
        wrong = holds(row["top_wrong"], "<=", SCREEN_WRONG * row["top_wrong_allowed"])
        return wrong is not False or is_past_order(row)
    margins = SCREEN_MARGINS.items()
    return bool(row["lag_eligible"]) and all(
        holds(row[figure], ">=", row[limit] - margin) is not False for (figure, limit), margin in margins
    )


def holds(figure: float | None, relation: Literal["<=", ">="], limit: float | None) -> bool | None:
    """Whether a figure keeps to its limit; None where either is not known."""
    if figure is None or limit is None or math.isnan(figure) or math.isnan(limit):
        return None
    return figure <= limit if relation == "<=" else figure >= limit
