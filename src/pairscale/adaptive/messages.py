"""Where a run stands, and words for what a refit found and how a call ended, the same wherever they are shown."""

from __future__ import annotations

import json
import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pairscale.core.notices import is_told

if TYPE_CHECKING:
    from pairscale.adaptive.logs import Row
    from pairscale.adaptive.session import AdaptiveState
    from pairscale.store.runfile import RunFile

STOPS = {
    "btl_converged": "the scores are reliable and stable",
    "candidate_starvation": "no pair is left that may be asked",
    "pairs_exhausted": "every pair was asked once, and this judge repeats itself: more comparisons would tell nothing "
    "new",
}
"""Ends for good, and why. After any other end the same call continues, with a higher limit where it was one."""

NOTHING_LEFT = ("candidate_starvation", "pairs_exhausted")
"""Ends because there is nothing to ask, which is known by looking."""

_PAUSES = {
    "judge_failing": "paused: the judge gives no valid answers",
    "judge_failed": "paused: the judge cannot be asked",
    "judge_flips": "paused: the judge goes by position",
    "no_probabilities": "paused: the judge gives no probabilities",
    "interrupted": "interrupted",
    "failed": "broken off by an error",
}
TO_CONTINUE = {
    "btl_converged": "ask for a higher reliability (reliability=); for top:K, a lower top_wrong_max or a higher "
    "eap_reliability_min in btl_config",
    "candidate_starvation": "raise dup_max_obs and dup_p_margin to ask pairs again, or max_invalid_per_pair to ask "
    "about what was refused",
    "pairs_exhausted": "add texts, or set discount_repeats to False to ask pairs again anyway",
}
"""How a run that has stopped continues all the same."""
_MOST_DIGITS = 6


def how_it_stands(reason: str) -> str:
    """How a call ended, by its ``stop_reason``: the run has stopped, or only paused."""
    return f"{'stopped' if reason in STOPS else 'paused'}: {reason}"


def top_sought(row: Row) -> int | None:
    """How many texts at the top a run is for, by a row of its round log; None when it is for the whole order."""
    return None if row.get("top_wrong") is None else int(str(row["goal"]).removeprefix("top:"))


def stop_meaning(reason: str, row: Row | None = None) -> str:
    """Why a run has stopped for good, in words.

    Args:
        reason: its ``stop_reason``.
        row: the last row of its round log, which says what the run is for.
    """
    if reason == "btl_converged" and row is not None and (top := top_sought(row)) is not None:
        if row.get("top_wrong_pass") is False:
            return f"to know the {top:,} best texts better takes more comparisons than to rank all texts"
        return f"the {top:,} best texts are known well enough"
    return STOPS[reason]


def why_stopped(state: AdaptiveState) -> str:
    """Why a run has stopped for good, in words, and what the judge and the scores have to do with it."""
    reason = str(state.stop_reason)
    words = stop_meaning(reason, state.last_refit)
    if reason not in NOTHING_LEFT:
        return words
    refused = len(state.engine.ledger.given_up)
    if refused:
        words += f". On {refused:,} pairs the judge gave no valid answer (the last reason: {state.invalid_reason})"
    if reason == "pairs_exhausted" and state.latest.get("reliability") is not None:
        words += f". So far: {stop_in_words(state.latest)}{provisional(state.latest)}"
    return words


def judge_health(figures: Row) -> list[str]:
    """How the judge answers, in words: position and lapses, and what it says when it is asked again.

    Args:
        figures: columns of the round log; what is missing is left out.
    """
    facts = []
    if figures.get("first_win_rate") is not None:
        facts.append(f"first text won {figures['first_win_rate']:.0%}")
    if _is_told(figures, "b"):
        facts.append(f"position effect {figures['b_mean']:+.2f}")
    if _is_told(figures, "epsilon"):
        facts.append(f"lapses {figures['epsilon_mean']:.0%}")
    n_reversed = figures.get("n_reversed") or 0
    n_repeats = n_reversed + (figures.get("n_repeated_same_order") or 0)
    if n_reversed:
        facts.append(flips(figures["n_flips"], n_reversed))
    if n_repeats:
        facts.append(f"{figures['n_repeats_agreeing']:,} of {n_repeats:,} repeats agree")
    weak = weak_judges(figures)
    if weak:
        facts.append(f"weak: {', '.join(weak)}")
    return facts


def _is_told(figures: Row, name: Literal["b", "epsilon"]) -> bool:
    """Whether a parameter is there, and its interval, where it has one, says something."""
    has_interval = f"{name}_p2.5" in figures
    return figures.get(f"{name}_mean") is not None and (not has_interval or is_told(figures, name))


def weak_judges(figures: Row) -> list[str]:
    """The weak judges of a panel, by the last refit.

    Args:
        figures: columns of the round log.
    """
    return [str(name) for name in json.loads(figures.get("weak_judges") or "[]")]


def panel_slopes(figures: Row) -> dict[str, str]:
    """By judge of a panel, how much its answers follow the texts, and its position effect, in words."""
    by_judge = {}
    for row in json.loads(figures.get("judge_slopes") or "[]"):
        slope = f"slope {row['slope']:.2f} ({row['lower']:.2f} to {row['upper']:.2f}) on {row['n']:,} answers"
        effect = "" if row["position"] is None else f", position effect {row['position']:+.2f}"
        by_judge[row["judge_id"]] = f"{slope}{effect}{'; weak: it says little about the texts' if row['weak'] else ''}"
    return by_judge


def flips(n_flips: int, n_reversed: int) -> str:
    """How many reversed pairs got another answer than before."""
    return f"{n_flips:,} of {n_reversed:,} reversed pairs got the opposite answer"


def verdict(row: Row) -> str:
    """What follows from a refit, by its row of the round log: an end, or what the stop rule waits for."""
    reason = row.get("stop_reason") if row.get("stop_decision") else None
    if reason is None:
        failing = [] if row.get("diagnostics_pass") else ["diagnostics"]
        failing += [name for name, (gate, *_) in _gates_of(row).items() if row.get(gate) is not True]
        return f"waiting for: {', '.join(failing)}" if failing else ""
    if reason in STOPS:
        return f"the run stops: {stop_meaning(reason, row)}"
    return _PAUSES.get(reason, f"limit reached ({reason}): raise it to continue")


def provisional(row: Row, why: str = ", as diagnostics fail") -> str:
    """What is put behind a figure of a refit whose diagnostics failed; nothing for another refit.

    Args:
        row: of the round log.
        why: empty where the diagnostics are shown beside the figure.
    """
    return f" (provisional{why})" if row.get("diagnostics_pass") is False else ""


_OFF = 1e6
"""A gate with this limit or a higher one is switched off."""
_GATES = {
    "reliability": ("eap_pass", "reliability", "eap_reliability_min", False),
    "rank stability": ("rho_rank_pass", "rho_rank", "rank_spearman_min", False),
    "stability of the scores": ("theta_corr_pass", "rho_theta", "theta_corr_min", False),
    "change of the spread": ("delta_sd_theta_pass", "delta_sd_theta", "theta_sd_rel_change_max", True),
}
"""The gates of the stop rule: their column, their figure, its limit, and whether it must be at most that."""
_TOP_GATES = {"expected wrong members": ("top_wrong_pass", "top_wrong", "top_wrong_allowed", True)}
"""The same of a run for the top K."""


def _gates_of(row: Row) -> Mapping[str, tuple[str, str, str, bool]]:
    return _GATES if top_sought(row) is None else _TOP_GATES


def stop_in_words(row: Row) -> str:
    """What a statistical stop rests on: every gate with its figure and limit, from the row that stopped the run."""
    gates = []
    for gate, (_, figure, limit, at_most) in _gates_of(row).items():
        if row[limit] < _OFF:
            shown = shown_figure(row[figure], row[limit], at_most=at_most)
            bound = "most" if at_most else "least"
            gates.append(f"{gate} {shown} (at {bound} {shown_limit(row[limit])})")
    if row.get("top_wrong_pass") is False:
        gates.append("after as many comparisons as the whole order takes")
    return ", ".join(gates)


def named_reliability(row: Row, preset: str) -> tuple[str, str]:
    """The name of a refit's reliability, and its interval with the expected rank correlation, where it has them."""
    from pairscale.adaptive.config import OURS  # which needs numpy

    if preset != OURS:
        return "EAP reliability", ""
    if row.get("reliability_lower") is None:
        return "reliability", ""
    ends = f"95 % interval {row['reliability_lower']:.2f} to {row['reliability_upper']:.2f}"
    return "reliability", f"{ends}, rank correlation {row['rank_correlation']:.2f}"


def shown_figure(figure: float | None, limit: float | None = None, *, at_most: bool = False) -> str:
    """A figure with two decimals, or as many more as it takes to tell on which side of its limit it is."""
    if figure is None or math.isnan(figure):
        return "not known yet"
    is_met = operator.le if at_most else operator.ge
    digits = 2
    while limit is not None and digits < _MOST_DIGITS and is_met(figure, limit) != is_met(round(figure, digits), limit):
        digits += 1
    return f"{figure:.{digits}f}"


def shown_limit(limit: float) -> str:
    """A limit with two decimals, or all that it has."""
    return f"{limit:.2f}" if round(limit, 2) == limit else f"{limit:g}"


# Where a run stands, from its logs alone


def has_begun(store: RunFile) -> bool:
    """Whether the file holds an adaptive run."""
    return store.get_meta("adaptive") is not None and store.log_length("adaptive_events") > 0


def ids_of(events: Sequence[Row]) -> list[str]:
    """The texts of a run: those of its start and those that joined."""
    return [name for event in events if event["event"] in ("start", "join") for name in event["ids"]]


def adaptive_status(store: RunFile) -> dict[str, Any] | None:
    """Where an adaptive run stands, from its logs alone and without replaying it; None when the file holds none.

    ``preset goal n_items withdrawn steps committed_pairs invalid stage round_id n_refits reliability
    reliability_lower reliability_upper rank_correlation diagnostics_pass has_ended stop_reason``, and ``judge``: how
    the judge answers, by the last refit (columns of the round log).
    """
    with store.snapshot():
        if not has_begun(store):
            return None
        steps = store.read_log("step_log")
        status = Counter(str(step["status"]) for step in steps)
        last = (steps or [{"round_stage": "warm_start", "round_id": 0}])[-1]
        rounds = store.read_log("round_log")
        events = store.read_log("adaptive_events")
    has_ended, stop_reason = _ended(events, rounds)
    refit = rounds[-1] if rounds else {}
    return {
        "preset": events[0]["preset"],
        "goal": [event["adaptive_config"] for event in events if "adaptive_config" in event][-1].get("goal", "order"),
        "n_items": len(ids_of(events)),
        "withdrawn": [name for event in events if event["event"] == "withdraw" for name in event["ids"]],
        "steps": sum(status.values()),
        "committed_pairs": status.get("committed", 0),
        "invalid": status.get("invalid", 0),
        "stage": last["round_stage"],
        "round_id": last["round_id"],
        "n_refits": len(rounds),
        **{name: refit.get(name) for name in _RELIABILITY},
        "has_ended": has_ended,
        "stop_reason": stop_reason,
        "judge": {name: refit.get(name) for name in _JUDGE} if refit else None,
    }


_RELIABILITY = ("reliability", "reliability_lower", "reliability_upper", "rank_correlation", "diagnostics_pass")
_JUDGE = (
    "first_win_rate", "b_mean", "b_p2.5", "b_p97.5", "epsilon_mean", "epsilon_p2.5", "epsilon_p97.5", "n_reversed",
    "n_flips", "n_repeated_same_order", "n_repeats_agreeing", "repeat_agreement", "judge_slopes", "weak_judges",
    "mcmc_engine_version",
)  # fmt: skip


def _ended(events: Sequence[Row], rounds: Sequence[Row]) -> tuple[bool, str | None]:
    """Whether the last call came to its end, and why; one that did not is running, or its process was killed."""
    has_ended = True
    reason = None
    for event in events:
        kind = event["event"]
        if kind in {"call", "configure", "join", "stop_rule"}:  # a text may be withdrawn from any run
            has_ended = kind != "call"
            reason = event.get("stop_reason")
        elif kind == "end":
            has_ended = True
            reason = event["reason"]
        elif kind == "refit" and not event["is_closing"]:
            reason = rounds[event["refit_id"] - 1]["stop_reason"]
    return has_ended, reason
