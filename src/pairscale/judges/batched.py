"""A language model's questions and answers when they travel in batches: the judge's own code, without its waiting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.core.errors import InputError
from pairscale.core.provenance import text_hash
from pairscale.core.traits import Trait
from pairscale.judges.base import Judge, JudgePair, Verdict
from pairscale.judges.llm import LLMJudge, unanswered
from pairscale.judges.orders import BothOrders, swapped, unwrapped
from pairscale.providers.base import ReplyError
from pairscale.providers.batches import batch_format
from pairscale.providers.client import ProviderError

if TYPE_CHECKING:
    from pairscale.providers.base import HTTPCall
    from pairscale.providers.batches import Line

BatchJudge: TypeAlias = LLMJudge | BothOrders
"""A language model, asked once per pair or in both orders."""


def require_batches(judge: Judge) -> BatchJudge:
    """A judge that can be asked through a batch API; any other is refused."""
    if not isinstance(judge, LLMJudge | BothOrders) or not isinstance(unwrapped(judge), LLMJudge):
        raise InputError(f"judge {judge.condition.judge_id}: batches are for models, such as openai:gpt-5.1")
    batch_format(judge.provider)
    return judge


def is_both_orders(judge: BatchJudge) -> bool:
    """Whether a judge is asked about every pair in both orders."""
    return isinstance(judge, BothOrders)


def max_batch_cost(judge: BatchJudge, n_bytes: int, n_requests: int) -> float | None:
    """What requests of so many bytes may cost in a batch, on the safe side; None when the price is not known."""
    cost: float | None = judge._cost_of_bytes(n_bytes, n_requests, batch=True)
    return cost


def with_batch_cost(judge: BatchJudge, asked: JudgePair, verdict: Verdict) -> Verdict:
    """A verdict that does not say its cost, at the most that the question may cost in a batch."""
    return verdict.with_cost_at_most(judge.request_cost(judge.request(asked), batch=True))


def restored(description: Mapping[str, Any], api_key: str | None = None, base_url: str | None = None) -> BatchJudge:
    """The judge of a description.

    Args:
        description: as :meth:`LLMJudge.describe` gave it.
        api_key: the key; by default that of the environment.
        base_url: where the provider is now, when it has moved.
    """
    known = dict(description)
    trait = Trait(**known.pop("trait"))
    settings = known.pop("settings")
    provider = known.pop("provider")
    model = known.pop("model")
    template = known.pop("template")
    template_id = known.pop("template_id")
    known["base_url"] = base_url or known.pop("base_url")
    both_orders = known.pop("both_orders", False)
    judge = LLMJudge(provider, model, trait, template, template_id, api_key=api_key, **known, **settings)
    return BothOrders(judge) if both_orders else judge


def calls_of(judge: BatchJudge, pair: JudgePair) -> list[HTTPCall]:
    """What live judging would send for a pair: one call, or two when the judge asks in both orders."""
    asked = [pair, swapped(pair)] if is_both_orders(judge) else [pair]
    return [judge.client.prepared(judge.request(one)) for one in asked]


def verdict_of(judge: BatchJudge, pair: JudgePair, line: Line, *, turned: bool = False) -> Verdict:
    """The verdict that stands in one line of a batch's results.

    Args:
        judge: who was asked.
        pair: the question.
        line: what came back.
        turned: whether the samples were shown the other way round.
    """
    asked = swapped(pair) if turned else pair
    request = judge.request(asked)
    prompt_hash = text_hash(request.prompt)
    if line.kind != "succeeded":
        return _failed(judge, line, prompt_hash)
    call = judge.client.prepared(request)
    try:
        reply = judge.client.provider.reply(call, line.body)
    except ReplyError as error:
        return _failed(judge, replace(line, status=error.status, error=str(error)), prompt_hash)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        words = f"the reply is not one of {judge.provider} ({type(error).__name__}: {error})"
        unread = ProviderError("parse_error", words, status=line.status, failure="transient")
        return with_batch_cost(judge, asked, _without_keys(judge, unread, line, prompt_hash))
    verdict: Verdict = judge.read(replace(reply, call=call, status=line.status or 200), asked, request, batch=True)
    return verdict


_ENDED = {"expired": "timeout", "cancelled": "cancelled"}
"""The error codes of requests that ended with their batch, and are asked again."""


def _failed(judge: BatchJudge, line: Line, prompt_hash: str) -> Verdict:
    """Why a request of a batch was not answered."""
    error = judge.client.refused(line.status, {}, line.body)
    error.message = line.error or "there is no answer"
    error.retry_after = None
    if line.kind in _ENDED:
        error.code = _ENDED[line.kind]
        error.failure = "transient"
    return _without_keys(judge, error, line, prompt_hash)


def _without_keys(judge: BatchJudge, error: ProviderError, line: Line, prompt_hash: str) -> Verdict:
    """The verdict of a failure; a file of results may hold anything."""
    error.message = judge.client.redactor.text(error.message)[:2000]
    error.raw = judge.client.redactor.value(line.body)
    return unanswered(error, prompt_hash=prompt_hash)
