"""A pair asked both ways round: the turned question, and one verdict of the two answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pairscale.comparisons import Outcome
from pairscale.judges.base import JudgePair, Verdict

__all__ = ["agreed", "turned"]

_SUMMED = (
    "prompt_tokens", "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "cost",
    "saved",
)  # fmt: skip


def agreed(forward: Verdict, backward: Verdict) -> Verdict:
    """One verdict of two: a win when both name the same text, a flip when they name the same place."""
    without = [verdict for verdict in (forward, backward) if not verdict.outcome.is_answer]
    failed = next((verdict for verdict in without if verdict.failure == "judge"), without[0] if without else None)
    base = failed or forward
    more: dict[str, Any] = {"content": _both(forward.content, backward.content)}
    more["thoughts"] = _both(forward.thoughts, backward.thoughts)
    more["raw_response"] = [forward.raw_response, backward.raw_response]
    for name in _SUMMED:
        values = [getattr(verdict, name) for verdict in (forward, backward)]
        more[name] = sum(value for value in values if value is not None) if any(v is not None for v in values) else None
    times = [verdict.latency_s for verdict in (forward, backward) if verdict.latency_s is not None]
    more["latency_s"] = max(times) if times else None
    more["cached"] = forward.cached and backward.cached
    if failed is not None:
        return replace(base, **more)
    if forward.probability is not None and backward.probability is not None:
        more["probability"] = (forward.probability + 1 - backward.probability) / 2
    if forward.winner_pos != backward.winner_pos:
        return replace(base, **more)
    return replace(base, outcome=Outcome.FLIP, winner_pos=None, **more)


def turned(pair: JudgePair) -> JudgePair:
    """The same question with the samples in the other order, under a name of its own."""
    return replace(pair, first=pair.second, second=pair.first, uid=f"{pair.uid}~")


def _both(forward: str | None, backward: str | None) -> str | None:
    if forward is None and backward is None:
        return None
    return f"{forward or ''}\n--- the other way round ---\n{backward or ''}"
