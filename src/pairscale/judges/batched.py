"""A language model's questions and answers when they travel in batches: the judge's own code, without its waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pairscale.core.errors import InputError
from pairscale.core.provenance import text_hash
from pairscale.core.tables import Values
from pairscale.core.traits import Trait
from pairscale.judges.base import Judge, JudgePair, Verdict
from pairscale.judges.llm import LLMJudge, unanswered
from pairscale.judges.orders import BothOrders, swapped, unwrapped
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


def with_batch_cost(judge: BatchJudge, asked: JudgePair, verdict: Verdict) -> Verdict:
    """A verdict that states no cost, with the most that the question may cost in a batch."""
    return verdict.with_cost_at_most(judge.request_cost(judge.request(asked), batch=True))


def restored(description: Values, api_key: str | None = None) -> BatchJudge:
    """The judge of a description.

    Args:
        description: as :meth:`LLMJudge.describe` gave it.
        api_key: the key; by default that of the environment.
    """
    arguments = dict(description)
    both_orders = arguments.pop("both_orders", False)
    arguments |= arguments.pop("settings")
    arguments |= {"trait": Trait(**arguments["trait"]), "api_key": api_key}
    judge = LLMJudge(**arguments)
    return BothOrders(judge) if both_orders else judge


def calls_of(judge: BatchJudge, pair: JudgePair) -> list[HTTPCall]:
    """What live judging would send for a pair: one call, or two when the judge asks in both orders."""
    asked = [pair, swapped(pair)] if isinstance(judge, BothOrders) else [pair]
    return [judge.client.prepared(judge.request(question)) for question in asked]


def verdict_of_line(judge: BatchJudge, pair: JudgePair, line: Line, *, turned: bool = False) -> Verdict:
    """The verdict in one line of a batch's results.

    Args:
        judge: who was asked.
        pair: the question.
        line: what came back.
        turned: whether the samples were shown the other way round.
    """
    asked = swapped(pair) if turned else pair
    request = judge.request(asked)
    call = judge.client.prepared(request)
    if line.kind == "succeeded":
        try:
            reply = judge.client.read(call, line.body, line.status or 200, {})
        except ProviderError as error:
            refused = error
        else:
            verdict: Verdict = judge.read(reply, asked, request, batch=True)
            return verdict
    else:
        refused = judge.client.refused(line.status, {}, line.body)
        refused.message = line.error or "there is no answer"
    refused.retry_after = None
    if line.kind in _ENDED:
        refused.code = _ENDED[line.kind]
        refused.failure = "transient"
    # A file of results may hold anything.
    refused.message = judge.client.redactor.text(refused.message)[:2000]
    refused.raw = judge.client.redactor.value(line.body)
    verdict = unanswered(refused, prompt_hash=text_hash(request.prompt))
    return with_batch_cost(judge, asked, verdict) if refused.may_cost else verdict


_ENDED = {"expired": "timeout", "cancelled": "cancelled"}
"""The error codes of requests that ended with their batch, and are asked again."""
