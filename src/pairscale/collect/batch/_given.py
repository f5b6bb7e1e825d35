"""What the manual's batch functions are given, made into a judge: the same one that live judging would make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pairscale.collect.llm import make_adaptive_judge_llm

if TYPE_CHECKING:
    from pairscale.judges.batched import BatchJudge

__all__ = ["Question", "judge_from"]


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
