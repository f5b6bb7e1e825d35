"""The judge of an adaptive run that asks a language model, and that can be called as the manual's judges are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.core.traits import Trait, choose_trait
from pairscale.judges.base import Judge, JudgePair, Verdict
from pairscale.judges.build import make_llm_judge
from pairscale.judges.llm import LLMJudge
from pairscale.judges.orders import BothOrders
from pairscale.r.settings import model_settings
from pairscale.runtime import close, run_sync


class CallableJudge:
    """A judge that can be called about one pair, and that may add the raw reply to what it returns."""

    include_raw = False

    def __call__(self: Any, A: Mapping[str, Any], B: Mapping[str, Any], state: Any = None) -> dict[str, Any]:
        """Ask about one pair: ``is_valid``, ``Y`` (1 if A is better) and ``invalid_reason``."""
        verdict = run_sync(lambda: _asked(self, JudgePair(_item(A), _item(B), state=state)))
        is_valid = verdict.outcome is Outcome.WIN
        answer: dict[str, Any] = {"is_valid": is_valid, "Y": None, "invalid_reason": None}
        if is_valid:
            answer["Y"] = int(verdict.winner_pos == 1)
        else:
            answer["invalid_reason"] = verdict.error_message or verdict.error_code or verdict.outcome.value
        if self.include_raw:
            answer["raw_response"] = verdict.raw_response
        return answer


async def _asked(judge: Judge, pair: JudgePair) -> Verdict:
    try:
        return await judge.compare(pair)
    finally:
        await close(judge)


def _item(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item with its id under both names."""
    name = item.get("item_id", item.get("ID"))
    return {**item, "ID": name, "item_id": name}


class AdaptiveLLMJudge(CallableJudge, LLMJudge):
    """A language model as a judge that can be called, and that reads an item's text from any of its columns."""

    text_col = "text"

    async def compare(self, pair: JudgePair) -> Verdict:
        """Ask the model."""
        return await super().compare(self._texts(pair))

    def prompt(self, pair: JudgePair) -> str:
        """The question for one pair."""
        return super().prompt(self._texts(pair))

    def _texts(self, pair: JudgePair) -> JudgePair:
        for item in (pair.first, pair.second):
            if self.text_col not in item:
                raise InputError(f"the item {item.get('ID')!r} has no column {self.text_col!r} (text_col)")
        first = {**pair.first, "text": pair.first[self.text_col]}
        return replace(pair, first=first, second={**pair.second, "text": pair.second[self.text_col]})


class AdaptiveBothOrders(CallableJudge, BothOrders):
    """A language model that is asked in both orders, and that can be called."""


def make_judge(
    backend: str,
    model: str | None,
    trait: str | Trait,
    trait_name: str | None,
    trait_description: str | None,
    prompt_template: str | None,
    include_raw: bool,
    text_col: str,
    judge_args: Mapping[str, Any] | None,
    **of_model: Any,
) -> AdaptiveLLMJudge | AdaptiveBothOrders:
    """A judge that asks a model."""
    settings = model_settings(backend, judge_args or {})
    both_orders = settings.pop("both_orders", False)
    judge = make_llm_judge(
        backend, model, choose_trait(trait, trait_name, trait_description), prompt_template, judge_args=settings,
        kind=AdaptiveLLMJudge, **of_model,
    )  # fmt: skip
    assert isinstance(judge, AdaptiveLLMJudge)  # noqa: S101
    judge.text_col = text_col
    called = AdaptiveBothOrders(judge) if both_orders else judge
    called.include_raw = include_raw
    return called
