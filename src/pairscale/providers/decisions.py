"""OpenAI's endpoint ``/decisions``: a choice between given answers, with the probability of each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pairscale.core.errors import InputError
from pairscale.providers import _read, _write
from pairscale.providers.base import CHOICE_KEY, HTTPCall, LLMReply, LLMRequest

if TYPE_CHECKING:
    pass

__all__ = ["DECISIONS", "decisions_call", "read_decision"]

DECISIONS = "decisions"
"""The name of the endpoint."""

_INSTRUCTIONS = "Answer the question of the input: choose one of its samples."
_NOT_TAKEN = ("temperature", "top_p", "max_tokens", "seed", "reasoning", "logprobs", "include_thoughts", "service_tier")


def decisions_call(request: LLMRequest) -> HTTPCall:
    """A request to choose between the answers of ``request.choices``.

    Raises:
        InputError: When there are no choices, or a setting is given that this endpoint does not take.
    """
    if not request.choices:
        raise InputError("the endpoint decisions chooses between given answers; use judge_args answer='structured'")
    for name in _NOT_TAKEN:
        if getattr(request, name) not in (None, False):
            raise InputError(f"the endpoint decisions takes no {name}; leave it out")
    given: Any = request.prompt
    if request.system is not None:
        roles = ("system", request.system), ("user", request.prompt)
        given = [{"type": "message", "role": role, "content": text} for role, text in roles]
    choices = [{"value": one} for one in request.choices]
    question = {"type": "choice", "name": CHOICE_KEY, "instructions": _INSTRUCTIONS, "choices": choices}
    body = {"model": request.model, "input": given, "questions": [question]}
    return _write.send("/decisions", body, request, DECISIONS)


def read_decision(body: Any) -> LLMReply:
    """The choice, as the JSON document that structured output would be, and the probabilities of all choices.

    Raises:
        ValueError: When it is not a decision.
    """
    found = _read.items(body)
    answers = _read.objects(found.get("answers"))
    if not answers:
        raise _read.refused(body, "a decision")
    answer, usage = answers[0], _read.responses_usage(found)
    known: dict[str, Any] = {"model": found.get("model"), "object_type": "decision", "usage": usage, "raw": body}
    if answer.get("type") == "refusal":
        return LLMReply(text="", stop_reason="refusal", **known)
    if answer.get("type") != "choice" or not isinstance(answer.get("choice"), str):
        raise _read.refused(body, "a decision between given answers")
    each = _read.objects(answer.get("probabilities"))
    probabilities = {
        str(one.get("value")): float(one["probability"])
        for one in each
        if isinstance(one.get("probability"), int | float) and not isinstance(one.get("probability"), bool)
    }
    return LLMReply(text=json.dumps({CHOICE_KEY: answer["choice"]}), probabilities=probabilities or None, **known)
