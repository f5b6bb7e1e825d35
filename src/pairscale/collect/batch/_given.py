"""What the manual's batch functions are given, made into a judge: the same one that live judging would make."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from pairscale.collect.llm import make_adaptive_judge_llm
from pairscale.options import require_number

if TYPE_CHECKING:
    from pairscale.judges.batched import BatchJudge

__all__ = ["Question", "judge_from", "require_waiting"]


class Question(NamedTuple):
    """What is asked: a trait of one's own and a template, each None for the default."""

    trait_name: str | None
    trait_description: str | None
    prompt_template: str | None


def judge_from(
    backend: str, model: str | None, question: Question, api_key: str | None, settings: dict[str, Any]
) -> BatchJudge:
    """The judge; settings that are None are left to the model's rules."""
    kept = {name: value for name, value in settings.items() if value is not None}
    trait, endpoint = kept.pop("trait", "overall_quality"), kept.pop("endpoint", None)
    return make_adaptive_judge_llm(backend, model, trait, *question, endpoint, api_key, judge_args=kept)


def require_waiting(
    interval_seconds: float, timeout_seconds: float | None, max_attempts: float = math.inf
) -> tuple[float, float, float]:
    """Validate how long and how often to look for a batch; a time-out of None becomes infinite."""
    return (
        require_number(interval_seconds, "interval_seconds", least=0),
        require_number(
            math.inf if timeout_seconds is None else timeout_seconds, "timeout_seconds", least=0, infinite=True
        ),
        require_number(max_attempts, "max_attempts", least=0, infinite=True),
    )
