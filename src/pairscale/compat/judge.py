"""The judge of an adaptive run that asks a language model, and that can be called as the manual's judges are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pairscale.compat._given import model_settings
from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.core.options import checked, require_flag
from pairscale.core.traits import Trait, choose_trait
from pairscale.judges.base import JudgePair, Verdict
from pairscale.judges.build import make_llm_judge
from pairscale.judges.llm import LLMJudge
from pairscale.judges.orders import BothOrders
from pairscale.providers.keys import KEY_VARIABLES, key_in_environment
from pairscale.runtime import close, run_sync

if TYPE_CHECKING:
    from pairscale.judges.base import Item, Judge
    from pairscale.providers.base import LLMRequest, Reply
    from pairscale.providers.keys import ApiKey


_NO_KEY = "no-key-yet"


def _asked(judge: Judge, A: Item, B: Item, state: Any, settings: Mapping[str, Any], *, raw: bool) -> dict[str, Any]:
    """What a judge says of one pair, as the manual's judges return it."""
    if settings:
        raise InputError(f"{', '.join(settings)}: give settings of this judge in judge_args, when you make it")

    async def ask() -> Verdict:
        try:
            return await judge.compare(JudgePair(_item(A), _item(B), state=state))
        finally:
            await close(judge)

    verdict = run_sync(ask)
    is_valid = verdict.outcome is Outcome.WIN
    reason = verdict.error_message or verdict.error_code or verdict.outcome.value
    said = {
        "is_valid": is_valid,
        "Y": int(verdict.winner_pos == 1) if is_valid else None,
        "invalid_reason": None if is_valid else reason,
    }
    return said | ({"raw_response": verdict.raw_response} if raw else {})


def _item(item: Item) -> dict[str, Any]:
    """An item with its id under both names."""
    found = item.get("item_id", item.get("ID"))
    return {**item, "ID": found, "item_id": found}


class AdaptiveLLMJudge(LLMJudge):
    """A language model as a judge that can be called, and that reads an item's text from any of its columns.

    Without a key it is made as in R, and looks for one when it is asked.
    """

    text_col = "text"
    include_raw = False

    def __init__(self, provider: str, *asked: Any, api_key: ApiKey | None = None, **settings: Any) -> None:
        self._make = partial(super().__init__, provider, *asked, **settings)
        self._lacks_key = api_key is None and provider in KEY_VARIABLES and not key_in_environment(provider)[0]
        self._make(api_key=_NO_KEY if self._lacks_key else api_key)

    def __call__(
        self, A: Mapping[str, Any], B: Mapping[str, Any], state: Any = None, **settings: Any
    ) -> dict[str, Any]:
        """Ask about one pair: ``is_valid``, ``Y`` (1 if A is better) and ``invalid_reason``."""
        return _asked(self, A, B, state, settings, raw=self.include_raw)

    def request(self, pair: JudgePair) -> LLMRequest:
        """The question for one pair."""
        return super().request(self._texts(pair))

    def read(self, reply: Reply, pair: JudgePair, request: LLMRequest, *, batch: bool = False) -> Verdict:
        """The verdict that stands in a reply."""
        return super().read(reply, self._texts(pair), request, batch=batch)

    async def compare(self, pair: JudgePair) -> Verdict:
        """Ask the model.

        Raises:
            InputError: If there is still no key, or an item has no text.
        """
        if self._lacks_key:
            self._make(api_key=None)
            self._lacks_key = False
        for item in (pair.first, pair.second):
            if self.text_col not in item:
                raise InputError(f"the item {item.get('ID')!r} has no column {self.text_col!r} (text_col)")
        return await super().compare(pair)

    def _texts(self, pair: JudgePair) -> JudgePair:
        if self.text_col == "text":
            return pair
        sides = [{**item, "text": item.get(self.text_col, item.get("text"))} for item in (pair.first, pair.second)]
        return replace(pair, first=sides[0], second=sides[1])


class AdaptiveBothOrders(BothOrders):
    """A language model that is asked in both orders, and that can be called."""

    include_raw = False

    def __call__(
        self, A: Mapping[str, Any], B: Mapping[str, Any], state: Any = None, **settings: Any
    ) -> dict[str, Any]:
        """Ask about one pair: ``is_valid``, ``Y`` (1 if A is better) and ``invalid_reason``."""
        return _asked(self, A, B, state, settings, raw=self.include_raw)


@checked
def make_adaptive_judge_llm(
    backend: str = "openai",
    model: str | None = None,
    trait: str | Trait = "overall_quality",
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    endpoint: str | None = None,
    api_key: str | None = None,
    include_raw: bool = False,
    text_col: str = "text",
    judge_args: Mapping[str, Any] | None = None,
) -> AdaptiveLLMJudge | AdaptiveBothOrders:
    """A judge that asks a model, for :func:`adaptive_rank_run_live` or :func:`submit_pairs`, or to be called.

    Args:
        backend: ``openai``, ``anthropic``, ``gemini``, ``together``, ``ollama`` or ``compatible``.
        model: The model's name.
        trait: A built-in trait's key, or a :class:`Trait`; not used if both of the next are given.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; required with ``trait_name``.
        prompt_template: A template's name, file or text; the default template if None.
        endpoint: OpenAI's endpoint, ``chat.completions`` or ``responses``; None chooses by the model.
        api_key: The key; by default that of the environment when the judge is first asked.
        include_raw: Add ``raw_response`` to what a call of the judge returns. For the results of a run, give it to
            :func:`adaptive_rank` or :func:`submit_pairs`.
        text_col: The column of the items that holds their text.
        judge_args: Further settings of :class:`LLMJudge`, such as ``{"reasoning": "low"}``; and ``both_orders``.

    Returns:
        A judge. Called as ``judge(A, B, state)``, it asks about one pair and returns ``is_valid``, ``Y`` and
        ``invalid_reason``.

    Raises:
        InputError: If the model is missing, or a setting is unknown; when it is asked, if there is no key.

    Example:
        >>> judge = make_adaptive_judge_llm("openai", "gpt-4.1")
        >>> judge({"ID": "a", "text": "Rain."}, {"ID": "b", "text": "It is raining, as it has for weeks."})
        {'is_valid': True, 'Y': 0, 'invalid_reason': None}
    """
    settings = model_settings(backend, judge_args or {})
    both_orders = require_flag(settings.pop("both_orders", False), "both_orders")
    judge = make_llm_judge(
        backend, model, choose_trait(trait, trait_name, trait_description), prompt_template, endpoint=endpoint,
        api_key=api_key, judge_args=settings, kind=AdaptiveLLMJudge,
    )  # fmt: skip
    assert isinstance(judge, AdaptiveLLMJudge)  # noqa: S101
    judge.text_col = text_col
    called = AdaptiveBothOrders(judge) if both_orders else judge
    called.include_raw = include_raw
    return called
