"""Where an adaptive run stands, from its logs alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile


def has_begun(store: RunFile) -> bool:
    """Whether the file holds an adaptive run."""
    return store.get_meta("adaptive") is not None and store.log_length("adaptive_events") > 0


def n_items(events: Sequence[Mapping[str, Any]]) -> int:
    """How many texts have taken part."""
    return sum(len(event["ids"]) for event in events if event["event"] in {"start", "join"})


def adaptive_status(store: RunFile) -> dict[str, Any] | None:
    """Where an adaptive run stands, from its logs alone and without replaying it; None when the file holds none.

    ``preset goal n_items withdrawn steps committed_pairs invalid stage round_id n_refits reliability
    diagnostics_pass has_ended stop_reason``, and ``judge``: how the judge answers, by the last refit (columns of the
    round log).
    """
    with store.snapshot():
        if not has_begun(store):
            return None
        steps = store.read_log("step_log")
        status = Counter(str(step["status"]) for step in steps)
        last = (steps or [{"round_stage": "warm_start", "round_id": 0}])[-1]
        rounds, events = store.read_log("round_log"), store.read_log("adaptive_events")
    has_ended, stop_reason = _ended(events, rounds)
    return {
        "preset": events[0]["preset"],
        "goal": [event["adaptive_config"] for event in events if "adaptive_config" in event][-1].get("goal", "order"),
        "n_items": n_items(events),
        "withdrawn": [name for event in events if event["event"] == "withdraw" for name in event["ids"]],
        "steps": sum(status.values()),
        "committed_pairs": status.get("committed", 0),
        "invalid": status.get("invalid", 0),
        "stage": last["round_stage"],
        "round_id": last["round_id"],
        "n_refits": len(rounds),
        "reliability": rounds[-1]["reliability"] if rounds else None,
        "diagnostics_pass": rounds[-1].get("diagnostics_pass") if rounds else None,
        "has_ended": has_ended,
        "stop_reason": stop_reason,
        "judge": {name: rounds[-1].get(name) for name in _JUDGE} if rounds else None,
    }


_JUDGE = (
    "first_win_rate", "b_mean", "b_p2.5", "b_p97.5", "epsilon_mean", "epsilon_p2.5", "epsilon_p97.5", "n_reversed",
    "n_flips", "n_repeated_same_order", "n_repeats_agreeing", "repeat_agreement", "judge_slopes", "weak_judges",
    "mcmc_engine_version",
)  # fmt: skip


def _ended(events: Sequence[Mapping[str, Any]], rounds: Sequence[Mapping[str, Any]]) -> tuple[bool, str | None]:
    """Whether the last call came to its end, and why; one that did not is running, or its process was killed."""
    ended: tuple[bool, str | None] = True, None
    decisions = {row["refit_id"]: row["stop_reason"] for row in rounds if row["stop_decision"]}
    for event in events:
        if event["event"] in {"call", "configure", "join", "stop_rule"}:  # a text may be withdrawn from any run
            ended = event["event"] != "call", event.get("stop_reason")
        elif event["event"] == "end":
            ended = True, event["reason"]
        elif event["event"] == "refit" and not event["is_closing"]:
            ended = ended[0], decisions.get(event["refit_id"])
    return ended
