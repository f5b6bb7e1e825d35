"""What the manual's functions are given, made into a judge: the same one that live judging would make."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.core.notices import notice
from pairscale.core.traits import choose_trait
from pairscale.judges.build import make_llm_judge
from pairscale.judges.llm import SETTING_NAMES, LLMJudge

if TYPE_CHECKING:
    from pairscale.judges.batched import BatchJudge

Settings: TypeAlias = dict[str, Any]
"""Settings by the manual's names of them, or by ours."""
_OWN = {
    "anthropic_version": "2023-06-01", "api_version": "v1beta", "num_ctx": 8192, "think": False,
    "tag_prefix": "<BETTER_SAMPLE>", "tag_suffix": "</BETTER_SAMPLE>", "include_thoughts": False,
}  # fmt: skip
"""R's defaults that are ours, too: they are left out, so that an answer belongs to the same condition either way."""
_JUDGE = frozenset(signature(LLMJudge.__init__).parameters) | {"both_orders"}


def judge_from(
    backend: str,
    model: str | None,
    *,
    trait: Any = "overall_quality",
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    endpoint: str | None = None,
    api_key: str | None = None,
    kind: type[LLMJudge] | None = None,
    **settings: Any,
) -> BatchJudge:
    """The judge; settings that are None are left to the model's rules."""
    return make_llm_judge(
        backend, model, choose_trait(trait, trait_name, trait_description), prompt_template,
        model_settings(backend, settings) | {"endpoint": endpoint, "api_key": api_key}, kind,
    )  # fmt: skip


def taken(settings: Settings, names: str) -> Settings:
    """Take the options of these names out of settings, as far as they were given."""
    return {name: settings.pop(name) for name in names.split() if name in settings}


def model_settings(backend: str, settings: Mapping[str, Any]) -> Settings:
    """Settings by R's rules: those that are None or our own defaults are left out.

    Gemini's ``thinking_budget`` is ignored, with a notice. Anthropic's thinking is on if its thoughts are asked for.
    What Together is given besides the settings that we know goes into the request as it is.
    """
    kept = {name: value for name, value in settings.items() if value is not None and value != _OWN.get(name)}
    if backend == "anthropic":
        if kept.get("reasoning") == "none":
            del kept["reasoning"]
        if kept.get("include_thoughts"):
            kept.setdefault("reasoning", "enabled")
    if backend == "gemini" and kept.pop("thinking_budget", None) is not None:
        notice("thinking_budget is ignored: Gemini 3 takes a thinking_level; give that")
    if backend == "together":
        extra = {name: kept.pop(name) for name in list(kept) if name not in SETTING_NAMES | _JUDGE}
        if extra:
            kept["extra"] = extra | kept.get("extra", {})
    return kept
