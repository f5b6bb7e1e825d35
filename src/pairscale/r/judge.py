"""The judge of an adaptive run that asks a language model, and that can be called as the manual's judges are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.judges.base import Item, Judge, JudgePair, Verdict
from pairscale.judges.llm import LLMJudge
from pairscale.judges.orders import BothOrders
from pairscale.r.settings import judge_from
from pairscale.runtime import close, run_sync


class CallableJudge:
    """A judge that can be called about one pair, and that may add the raw reply to what it returns."""

    include_raw = False

    def __call__(self: Any, A: Item, B: Item, state: Any = None) -> dict[str, Any]:
        """Ask about one pair: ``is_valid``, ``Y`` (1 if A is better) and ``invalid_reason``."""
        verdict = run_sync(lambda: _asked(self, JudgePair(_item(A), _item(B), state=state)))
        answer: dict[str, Any]
        if verdict.outcome is Outcome.WIN:
            answer = {"is_valid": True, "Y": int(verdict.winner_pos == 1), "invalid_reason": None}
        else:
            reason = verdict.error_message or verdict.error_code or verdict.outcome.value
            answer = {"is_valid": False, "Y": None, "invalid_reason": reason}
        if self.include_raw:
            answer["raw_response"] = verdict.raw_response
        return answer


async def _asked(judge: Judge, pair: JudgePair) -> Verdict:
    try:
        return await judge.compare(pair)
    finally:
        await close(judge)


def _item(item: Item) -> dict[str, Any]:
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
        items = []
        for item in (pair.first, pair.second):
            if self.text_col not in item:
                raise InputError(f"the item {item.get('ID')!r} has no column {self.text_col!r} (text_col)")
            items.append({**item, "text": item[self.text_col]})
        return replace(pair, first=items[0], second=items[1])


class AdaptiveBothOrders(CallableJudge, BothOrders):
    """A language model that is asked in both orders, and that can be called."""


def make_judge(
    include_raw: bool, text_col: str, judge_args: Mapping[str, Any] | None, **question: Any
) -> AdaptiveLLMJudge | AdaptiveBothOrders:
    """A judge that asks a model."""
    judge: Any = judge_from(kind=AdaptiveLLMJudge, **{**question, **(judge_args or {})})
    called: AdaptiveLLMJudge | AdaptiveBothOrders = judge
    if isinstance(judge, BothOrders):
        judge = judge.judge
        called = AdaptiveBothOrders(judge)
    judge.text_col = text_col
    called.include_raw = include_raw
    return called
