"""Words for what a refit found and for how a call ended, the same on the terminal, in notices and in ``print``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairscale.adaptive.state import AdaptiveState

__all__ = [
    "STOPS",
    "diagnostics",
    "how_it_stands",
    "missing",
    "no_pair",
    "shown_figure",
    "shown_limit",
    "starvation",
    "verdict",
]

STOPS = {
    "btl_converged": "the scores are reliable and stable",
    "candidate_starvation": "no pair is left that may be asked",
}
"""Ends for good, and why. After any other end the same call goes on, with a higher limit where it was one."""

_LIMITS = ("max_comparisons", "max_cost", "max_minutes")
_PAUSES = {
    "judge_failing": "paused: the judge gives no valid answers",
    "judge_failed": "paused: the judge cannot be asked",
    "interrupted": "interrupted",
    "failed": "broken off by an error",
}
_STARVED = {
    "no_candidates": "none fits",
    "hard_filters": "all that fit are open, resting or given up",
    "duplicates": "all that fit were asked often enough",
    "star_caps": "all that fit have a text that was asked about too often lately",
    "routing": "none of those that fit was drawn",
}
_MOST_DIGITS = 6
_DIAGNOSTICS = {"divergences": "divergences", "rhat": "R-hat", "ess": "effective sample size"}


def how_it_stands(reason: str) -> str:
    """How a call ended, by its ``stop_reason``: the run has stopped, or only paused."""
    return f"{'stopped' if reason in STOPS else 'paused'}: {reason}"


def starvation(state: AdaptiveState) -> str:
    """Why no pair of a run is left: what the judge gave no valid answer on is its doing, not that of the run."""
    ledger = state.engine.ledger
    refused, pairs = ledger.given_up, ledger.n * (ledger.n - 1) // 2
    last = f"(the last reason: {state.invalid_reason})"
    if refused == pairs:
        return f"the judge gave no valid answer on any pair {last}"
    also = f", and on {refused:,} of {pairs:,} the judge gave no valid answer {last}" if refused else ""
    return STOPS["candidate_starvation"] + also


def no_pair(reason: str) -> str:
    """Why a step found no pair, by its ``starvation_reason``."""
    return f"no pair to ask about in this stage: {_STARVED.get(reason, reason)}"


def verdict(row: Mapping[str, Any]) -> str:
    """What follows from a refit: the run stops, pauses, or goes on, and then what the stop rule misses.

    Args:
        row: of the round log.
    """
    reason = row.get("stop_reason") if row.get("stop_decision") else None
    if reason is None:
        lacks = missing(row)
        return f"not yet: {', '.join(lacks)}" if lacks else ""
    if reason in STOPS:
        return f"the run stops: {STOPS[reason]}"
    if reason in _LIMITS:
        return f"limit reached ({reason}): goes on with a higher one"
    return _PAUSES.get(reason, f"the run ends: {reason}")


def diagnostics(row: Mapping[str, Any]) -> str:
    """Whether the diagnostics of a refit pass, or which of them fail."""
    if row.get("diagnostics_pass"):
        return "diagnostics pass"
    failed = [name for gate, name in _DIAGNOSTICS.items() if row.get(f"diagnostics_{gate}_pass") is False]
    return "diagnostics fail" + (f" ({', '.join(failed)})" if failed else "")


def missing(row: Mapping[str, Any]) -> list[str]:
    """The gates of the stop rule that a refit fails, in words, from its logged verdicts; none where all are passed.

    Reliability and rank stability are named without their figures, which stand beside this wherever it is shown.
    """
    said = []
    if row.get("diagnostics_pass") is False:
        said.append(diagnostics(row))
    if row.get("eap_pass") is False:
        said.append(f"reliability below {shown_limit(row['eap_reliability_min'])}")
    if not row.get("lag_eligible"):
        return [*said, "too few refits to compare with"] if row.get("lag_eligible") is False else said
    if not row["rho_rank_pass"]:
        said.append(f"rank stability below {shown_limit(row['rank_spearman_min'])}")
    if not row["theta_corr_pass"]:
        least = row["theta_corr_min"]
        figure = shown_figure(row["rho_theta"], least)
        said.append(f"scores still move ({figure}, at least {shown_limit(least)})")
    if not row["delta_sd_theta_pass"]:
        most = row["theta_sd_rel_change_max"]
        figure = shown_figure(row["delta_sd_theta"], most, at_most=True)
        said.append(f"spread still changes by {figure} (at most {shown_limit(most)})")
    return said


def shown_figure(figure: float | None, limit: float | None = None, *, at_most: bool = False) -> str:
    """A figure with two decimals, or as many more as it takes to tell on which side of its limit it is."""
    if figure is None or math.isnan(figure):
        return "not known yet"
    digits = 2
    while limit is not None and digits < _MOST_DIGITS and not _tells(figure, round(figure, digits), limit, at_most):
        digits += 1
    return f"{figure:.{digits}f}"


def _tells(figure: float, shown: float, limit: float, at_most: bool) -> bool:
    """Whether what is shown is on the same side of the limit as the figure."""
    return (figure <= limit) == (shown <= limit) if at_most else (figure >= limit) == (shown >= limit)


def shown_limit(limit: float) -> str:
    """A limit with two decimals, or all that it has."""
    return f"{limit:.2f}" if round(limit, 2) == limit else f"{limit:g}"
