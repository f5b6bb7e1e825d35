"""OpenAI: chat completions and responses."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from pairscale.core.errors import InputError
from pairscale.providers import _read, _write
from pairscale.providers.base import HTTPCall, LLMReply, LLMRequest, ProviderProblem, StopReason, TokenLogprob, Usage
from pairscale.providers.catalog import Capabilities, rules_of
from pairscale.providers.decisions import DECISIONS, decisions_call, read_decision

__all__ = ["OpenAI"]

_CHAT, _RESPONSES = "chat.completions", "responses"


@dataclass(frozen=True)
class OpenAI:
    """OpenAI's own API.

    Attributes:
        overrides: what its models can do, where the user knows better: fields of :class:`Capabilities`.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])

    name: ClassVar[str] = "openai"
    base_url: ClassVar[str] = "https://api.openai.com/v1"
    base_url_variable: ClassVar[str | None] = "OPENAI_BASE_URL"
    key_variable: ClassVar[str | None] = "OPENAI_API_KEY"

    def auth(self, key: str) -> dict[str, str]:
        """The key, and the organisation and the project of the environment."""
        return {"Authorization": f"Bearer {key}", **self._account}

    @cached_property
    def _account(self) -> dict[str, str]:
        named = (("OpenAI-Organization", "OPENAI_ORG_ID"), ("OpenAI-Project", "OPENAI_PROJECT_ID"))
        return {header: value for header, variable in named if (value := os.environ.get(variable))}

    @cached_property
    def capabilities(self) -> Callable[[str], Capabilities]:
        """What a model takes."""
        return rules_of(self.name, self.overrides)

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request, on the endpoint that was asked for or that its rules choose.

        Thoughts, and a reasoning effort, are asked for on ``responses``; everything else goes to ``chat.completions``.

        Raises:
            InputError: for a temperature, ``top_p`` or log-probabilities of a model that reasons; for an effort that
                the model does not have; for ``top_k`` or a thinking budget.
        """
        request = _write.checked(request)
        _write.forbid(request, "OpenAI", "top_k", "thinking_budget")
        able = self.capabilities(request.model)
        effort = _write.level(request, able, enabled="low")
        thinks = able.thinks_unasked if effort is None else effort != "none"
        samplers = _write.sampling(request, able, thinks)
        if request.logprobs is not None and not _write.take(able.logprobs, thinks):
            raise InputError(f"{request.model} gives no log-probabilities while it reasons; leave logprobs out")
        if request.choices and able.structured == "none":
            raise InputError(f"{request.model} has no structured output; leave choices out")
        asked = effort not in {None, "none"} and request.reasoning != "none"  # which gpt-5 takes as minimal
        endpoint = request.endpoint or able.endpoint or (_RESPONSES if asked else _CHAT)
        if endpoint == _RESPONSES:
            return _responses(request, effort, samplers)
        if endpoint == DECISIONS:
            return decisions_call(request)
        if endpoint != _CHAT:
            raise InputError(f"OpenAI has no endpoint {endpoint!r}; there are {_CHAT}, {_RESPONSES} and {DECISIONS}")
        return _chat(request, effort, samplers)

    def reply(self, call: HTTPCall, body: Any) -> LLMReply:
        """What the model said, from any endpoint."""
        if call.endpoint == DECISIONS:
            return read_decision(body)
        return read_response(body) if call.endpoint == _RESPONSES else read_chat(body)

    def problem(self, status: int, body: Any) -> ProviderProblem:
        """What an error reply says."""
        return _read.problem(status, body)

    def without(self, request: LLMRequest, parameter: str) -> LLMRequest | None:
        """The request without a field that the server named."""
        return _write.without(request, parameter, self.call)


def messages(request: LLMRequest) -> list[dict[str, str]]:
    """The system's message, if there is one, and the user's."""
    system = [] if request.system is None else [{"role": "system", "content": request.system}]
    return [*system, {"role": "user", "content": request.prompt}]


def response_format(request: LLMRequest) -> dict[str, Any] | None:
    """Structured output, as chat completions take it."""
    if request.choices is None:
        return None
    schema = {"name": _write.SCHEMA_NAME, "schema": _write.choice_schema(request.choices), "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def _chat(request: LLMRequest, effort: str | None, samplers: Mapping[str, Any]) -> HTTPCall:
    body = {
        "model": request.model,
        "messages": messages(request),
        "reasoning_effort": effort,
        **samplers,
        "max_completion_tokens": request.max_tokens,
        "seed": request.seed,
        "service_tier": request.service_tier,
        "store": request.store,
        "logprobs": None if request.logprobs is None else True,
        "top_logprobs": request.logprobs or None,
        "response_format": response_format(request),
    }
    return _write.send("/chat/completions", body, request, _CHAT)


def _responses(request: LLMRequest, effort: str | None, samplers: Mapping[str, Any]) -> HTTPCall:
    reasoning = {"effort": effort, "summary": "auto" if request.include_thoughts and effort != "none" else None}
    reasoning = {name: value for name, value in reasoning.items() if value is not None and effort is not None}
    text = None
    if request.choices is not None:
        schema = _write.choice_schema(request.choices)
        text = {"format": {"type": "json_schema", "name": _write.SCHEMA_NAME, "schema": schema, "strict": True}}
    body = {
        "model": request.model,
        "instructions": request.system,
        "input": request.prompt,
        "reasoning": reasoning or None,
        **samplers,
        "max_output_tokens": request.max_tokens,
        "service_tier": request.service_tier,
        "store": None if "store" in request.omit else bool(request.store),  # it keeps answers unless told not to
        "include": None if request.logprobs is None else ["message.output_text.logprobs"],
        "top_logprobs": request.logprobs or None,
        "text": text,
    }
    return _write.send("/responses", body, request, _RESPONSES)


_ENDS: dict[Any, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


def read_chat(body: Any, *, think_tags: bool = False, states_cost: bool = False) -> LLMReply:
    """A chat completion, of OpenAI or of a server that speaks like it.

    Args:
        body: the parsed reply.
        think_tags: whether thoughts may stand in the answer without an opening tag.
        states_cost: whether its usage states the cost in US dollars.

    Raises:
        ValueError: when it is not one.
    """
    choices = _read.objects(_read.items(body).get("choices"))
    if not choices:
        raise _read.refused(body, "a chat completion")
    choice, message = choices[0], _read.items(choices[0].get("message"))
    content = _content(message.get("content"))
    inside, text = _read.split_thoughts(content, think_tags)
    refusal = _read.words([message.get("refusal")])
    end = _ENDS.get(choice.get("finish_reason"), "other")
    broken = choice.get("finish_reason") == "error" or bool(choice.get("error"))
    return LLMReply(
        text=text,
        stop_reason="error" if broken else "refusal" if refusal else end,
        thoughts=_read.words([*_thoughts(message), inside], "\n\n"),
        model=body.get("model"),
        object_type=body.get("object"),
        usage=_chat_usage(_read.items(body.get("usage"))),
        logprobs=_read.visible(chat_logprobs(choice.get("logprobs")), content, text),
        refusal=refusal,
        service_tier=_read.words([body.get("service_tier")]),
        problem=_read.problem(0, {"error": choice.get("error") or "it does not say why"}) if broken else None,
        cost=_read.dollars(_read.items(body.get("usage")).get("cost")) if states_cost else None,
        raw=body,
    )


def _thoughts(message: Mapping[str, Any]) -> list[Any]:
    """The thoughts beside the answer, or those of its parts that are thoughts."""
    beside = message.get("reasoning_content") or message.get("reasoning")
    parts = _read.objects(message.get("content"))
    return [beside, *(_content(part.get("thinking")) for part in parts if part.get("type") == "thinking")]


def _content(content: Any) -> str:
    """The answer, which some servers give in parts."""
    if isinstance(content, list):
        return _read.words(part.get("text") for part in _read.objects(content)) or ""
    return content if isinstance(content, str) else ""


def chat_logprobs(found: Any) -> tuple[TokenLogprob, ...] | None:
    """Log-probabilities of a chat completion, in OpenAI's shape or in the older one of lists."""
    found = _read.items(found)
    if "content" in found:
        return _read.token_logprobs(found["content"])
    tokens, values = found.get("tokens"), found.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list):
        return None
    tops = found.get("top_logprobs")
    rows = [
        {"token": token, "logprob": value, "top_logprobs": _older_top(tops, place)}
        for place, (token, value) in enumerate(zip(tokens, values, strict=False))
    ]
    return _read.token_logprobs(rows)


def _older_top(tops: Any, place: int) -> list[dict[str, Any]]:
    here = tops[place] if isinstance(tops, list) and place < len(tops) else None
    return [{"token": token, "logprob": value} for token, value in _read.items(here).items()]


def _chat_usage(usage: Mapping[str, Any]) -> Usage:
    prompt, completion = _read.items(usage.get("prompt_tokens_details")), usage.get("completion_tokens_details")
    cached = prompt.get("cached_tokens", usage.get("cached_tokens"))
    reasoning = _read.items(completion).get("reasoning_tokens", usage.get("reasoning_tokens"))
    return Usage(
        _read.number(usage.get("prompt_tokens")),
        _read.number(usage.get("completion_tokens")),
        _read.number(usage.get("total_tokens")),
        _read.number(cached),
        _read.number(reasoning),
        _read.number(prompt.get("cache_write_tokens")),
    )


def read_response(body: Any) -> LLMReply:
    """A reply of the responses endpoint.

    Raises:
        ValueError: when it is not one, or when it failed.
    """
    found = _read.items(body)
    if not isinstance(found.get("output"), list) or found.get("status") in {"failed", "cancelled"}:
        raise _read.refused(body, "a response")
    output = _read.objects(found["output"])
    thoughts = [
        part.get("text")
        for item in output
        if item.get("type") == "reasoning"
        for part in _read.objects(item.get("summary")) + _read.objects(item.get("content"))
    ]
    parts = [
        part for item in output if item.get("type") == "message" for part in _read.objects(item.get("content"))
    ]  # fmt: skip
    answers = [part for part in parts if part.get("type") == "output_text"]
    refusal = _read.words(part.get("refusal") for part in parts if part.get("type") == "refusal")
    end = _ENDS.get(_read.items(found.get("incomplete_details")).get("reason"), "other")
    rows = [_read.token_logprobs(part.get("logprobs")) for part in answers]
    return LLMReply(
        text=_read.words(part.get("text") for part in answers) or "",
        stop_reason="refusal" if refusal else "stop" if found.get("status", "completed") == "completed" else end,
        thoughts=_read.words(thoughts, "\n\n"),
        model=found.get("model"),
        object_type=found.get("object"),
        usage=_read.responses_usage(found),
        logprobs=tuple(one for row in rows for one in row or ()) or None,
        refusal=refusal,
        service_tier=_read.words([found.get("service_tier")]),
        raw=body,
    )
