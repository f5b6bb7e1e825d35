"""What the manual's functions are given, made into a judge: the same one that live judging would make."""

from __future__ import annotations

import math
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import require_number
from pairscale.core.traits import choose_trait
from pairscale.judges.build import make_llm_judge
from pairscale.judges.llm import SETTING_NAMES, LLMJudge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pairscale.judges.batched import BatchJudge

_OWN = {"anthropic_version": "2023-06-01", "api_version": "v1beta", "num_ctx": 8192, "think": False}
"""R's defaults that are ours, too: they are left out, so that an answer belongs to the same condition either way."""
_JUDGE = frozenset(signature(LLMJudge.__init__).parameters) | {"both_orders"}


class TraitAndTemplate(NamedTuple):
    """What is asked: a trait of one's own and a template, each None for the default."""

    trait_name: str | None
    trait_description: str | None
    prompt_template: str | None


def judge_from(
    backend: str, model: str | None, question: TraitAndTemplate, api_key: str | None, settings: Mapping[str, Any]
) -> BatchJudge:
    """The judge; settings that are None are left to the model's rules."""
    kept = model_settings(backend, settings)
    trait, endpoint = kept.pop("trait", "overall_quality"), kept.pop("endpoint", None)
    chosen = choose_trait(trait, question.trait_name, question.trait_description)
    return make_llm_judge(
        backend, model, chosen, question.prompt_template, endpoint=endpoint, api_key=api_key, judge_args=kept
    )


def model_settings(backend: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by R's rules: those that are None or our own defaults are left out.

    Gemini's ``thinking_budget`` is ignored, with a notice. Anthropic's thinking is on if its thoughts are asked for.
    What Together is given besides the settings that we know goes into the request as it is.
    """
    kept = {
        name: value
        for name, value in settings.items()
        if value is not None and not (name in _OWN and value == _OWN[name])
    }
    if kept.get("include_thoughts") is False:
        del kept["include_thoughts"]
        if backend == "anthropic" and kept.get("reasoning") == "enabled":
            notice("include_thoughts=False has no effect with reasoning='enabled': Anthropic returns the thoughts")
    if backend == "anthropic":
        if kept.get("reasoning") == "none":
            del kept["reasoning"]
        if kept.get("include_thoughts"):
            kept.setdefault("reasoning", "enabled")
    if backend == "gemini" and kept.pop("thinking_budget", None) is not None:
        notice("thinking_budget is ignored: Gemini 3 takes a thinking_level; give that")
    if backend == "together":
        extra = {name: kept.pop(name) for name in list(kept) if name not in SETTING_NAMES | _JUDGE | {"trait"}}
        if extra:
            if not isinstance(own := kept.get("extra", {}), dict):
                raise InputError(f"extra must be a dict of fields of the request, not {type(own).__name__}")
            kept["extra"] = {**extra, **own}
    return kept


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
