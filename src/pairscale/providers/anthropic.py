"""Anthropic: messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

from pairscale.core.errors import InputError
from pairscale.providers import _read, _write
from pairscale.providers.base import HTTPCall, LLMReply, LLMRequest, ProviderProblem, StopReason, Usage
from pairscale.providers.catalog import Capabilities, rules_of

__all__ = ["Anthropic"]

_PLAIN_TOKENS, _THINKING_TOKENS, _ROOM = 768, 2048, 1024
_BUDGETS = {"enabled": 1024, "minimal": 1024, "low": 1024, "medium": 4096, "high": 16_384}
# Thoughts count as output, so a model that measures them itself needs room for them, or its answer is cut off.
_ADAPTIVE_TOKENS = {"low": 4096, "medium": 8192}
_MOST_ADAPTIVE = 16_384


@dataclass(frozen=True)
class Anthropic:
    """Anthropic's own API.

    Attributes:
        overrides: what its models can do, where the user knows better: fields of :class:`Capabilities`.
        version: of the API, as the header ``anthropic-version`` names it.
        key_header: how the key is sent: ``x-api-key``, or ``bearer`` as newer SDKs do.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])
    version: str = "2023-06-01"
    key_header: Literal["x-api-key", "bearer"] = "x-api-key"

    name: ClassVar[str] = "anthropic"
    base_url: ClassVar[str] = "https://api.anthropic.com"
    base_url_variable: ClassVar[str | None] = "ANTHROPIC_BASE_URL"
    key_variable: ClassVar[str | None] = "ANTHROPIC_API_KEY"

    def auth(self, key: str) -> dict[str, str]:
        """The key."""
        return {"Authorization": f"Bearer {key}"} if self.key_header == "bearer" else {"x-api-key": key}

    @cached_property
    def capabilities(self) -> Callable[[str], Capabilities]:
        """What a model takes."""
        return rules_of(self.name, self.overrides)

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request as a message.

        Without thinking, the temperature is 0 where the model takes one, and the answer may have 768 tokens. A thinking
        budget is 1,024 tokens of 2,048 by default, at least 1,024, and smaller than ``max_tokens``; the temperature is
        then 1.

        Raises:
            InputError: when thinking and its budget, the temperature and ``max_tokens`` do not go together.
        """
        request = _write.checked(request)
        _write.forbid(request, "Anthropic", "logprobs", "store")
        able = self.capabilities(request.model)
        if request.include_thoughts and request.reasoning == "none":
            request = replace(request, reasoning="enabled")  # as the manual has it: asking for thoughts means thinking
        effort = _write.level(request, able, enabled=None)
        budget = _budget(request, able, effort)
        thinks = budget is not None or (able.thinks_unasked if effort is None else effort != "none")
        max_tokens = request.max_tokens or _max_tokens(request, budget, effort, thinks)
        if budget is not None and budget >= max_tokens:
            raise InputError(f"a thinking budget of {budget} tokens must be smaller than max_tokens, {max_tokens}")
        output, tools = _structured(request, able, thinks)
        if budget is None and effort not in {None, "none", "enabled"}:
            output = {"effort": effort} | output
        body = {
            "model": request.model,
            "max_tokens": max_tokens,
            **_samplers(request, able, thinks),
            "system": request.system,
            "messages": [{"role": "user", "content": [{"type": "text", "text": request.prompt}]}],
            "thinking": _thinking(request, able, effort, budget),
            "output_config": output or None,
            **tools,
            "service_tier": request.service_tier,
        }
        return _write.send("/v1/messages", body, request, "messages", **{"anthropic-version": self.version})

    def reply(self, call: HTTPCall, body: Any) -> LLMReply:  # noqa: ARG002
        """What the model said."""
        found = _read.items(body)
        if found.get("type") != "message" or not isinstance(found.get("content"), list):
            raise _read.refused(body, "a message of Anthropic")
        blocks = _read.objects(found["content"])
        texts = [block.get("text") for block in blocks if block.get("type") == "text"]
        forced = [json.dumps(block.get("input")) for block in blocks if block.get("type") == "tool_use"]
        thoughts = [block.get("thinking") for block in blocks if block.get("type") == "thinking"]
        return LLMReply(
            text=_read.words(forced[:1] or texts) or "",
            stop_reason=_ENDS.get(found.get("stop_reason"), "other"),
            thoughts=_read.words(thoughts, "\n\n"),
            model=found.get("model"),
            object_type=found.get("type"),
            usage=_usage(_read.items(found.get("usage"))),
            refusal=_read.words([_read.items(found.get("stop_details")).get("explanation")]),
            service_tier=_read.words([_read.items(found.get("usage")).get("service_tier")]),
            raw=body,
        )

    def problem(self, status: int, body: Any) -> ProviderProblem:
        """What an error reply says."""
        return _read.problem(status, body)

    def without(self, request: LLMRequest, parameter: str) -> LLMRequest | None:
        """The request without a field that the server named; it cannot do without ``max_tokens``."""
        return _write.without(request, parameter, self.call, ("max_tokens",))


def _budget(request: LLMRequest, able: Capabilities, effort: str | None) -> int | None:
    """The tokens to think with; None when it does not think, or is not told so by a number."""
    budget = request.thinking_budget
    if budget is None:
        return (
            _BUDGETS.get(effort or "", _BUDGETS["high"]) if effort not in {None, "none"} and _by_number(able) else None
        )
    if able.budget is None:
        raise InputError(
            f"{request.model} takes no thinking_budget; say how hard to think with reasoning, such as 'low'"
        )
    if effort == "none":
        raise InputError("a thinking_budget makes no sense with reasoning 'none'; leave one of them out")
    if budget < able.budget[0]:
        raise InputError(f"a thinking budget of {budget} tokens is too small; {able.budget[0]} is the least")
    return budget


def _by_number(able: Capabilities) -> bool:
    return able.thinking in {"budget", "any"}


def _max_tokens(request: LLMRequest, budget: int | None, effort: str | None, thinks: bool) -> int:
    if budget is not None:
        return _THINKING_TOKENS if request.thinking_budget is not None else budget + _ROOM
    return _ADAPTIVE_TOKENS.get(effort or "", _MOST_ADAPTIVE) if thinks else _PLAIN_TOKENS


def _samplers(request: LLMRequest, able: Capabilities, thinks: bool) -> dict[str, Any]:
    """The samplers; thinking leaves little choice."""
    if thinks and able.temperature != "never":
        if request.temperature not in {None, 1}:
            raise InputError(f"the temperature must be 1 while {request.model} thinks, not {request.temperature}")
        if request.top_k is not None or (request.top_p is not None and request.top_p < 0.95):
            raise InputError(f"{request.model} takes no top_k while it thinks, and no top_p below 0.95")
    if request.temperature is not None and request.temperature > 1:
        raise InputError(f"temperature {request.temperature!r} is not between 0 and 1, as Anthropic has it")
    if thinks and request.temperature == 1 and able.temperature == "unthinking":
        request = replace(request, temperature=None)  # its only value, and so its default
    return _write.sampling(request, able, thinks)


def _thinking(request: LLMRequest, able: Capabilities, effort: str | None, budget: int | None) -> dict[str, Any] | None:
    if budget is not None:
        return {"type": "enabled", "budget_tokens": budget}
    if effort == "none":
        return {"type": able.off} if able.thinks_unasked else None
    if effort is None:
        return None
    thinking = {"type": "adaptive"}
    if request.include_thoughts is not None:
        thinking["display"] = "summarized" if request.include_thoughts else "omitted"
    return thinking


def _structured(request: LLMRequest, able: Capabilities, thinks: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answers that are allowed: as a format of the output, or as a tool that must be used."""
    if request.choices is None:
        return {}, {}
    if able.structured == "none" or (able.structured == "tool" and thinks):
        raise InputError(f"{request.model} has no structured output{' while it thinks' * thinks}; leave choices out")
    schema = _write.choice_schema(request.choices)
    if able.structured == "schema":
        return {"format": {"type": "json_schema", "schema": schema}}, {}
    tool = {"name": _write.SCHEMA_NAME, "description": "Give your verdict.", "input_schema": schema}
    return {}, {"tools": [tool], "tool_choice": {"type": "tool", "name": _write.SCHEMA_NAME}}


_ENDS: dict[Any, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Anthropic counts apart what it read from a cache and what it wrote to one."""
    fresh, completion = _read.number(usage.get("input_tokens")), _read.number(usage.get("output_tokens"))
    cached = _read.number(usage.get("cache_read_input_tokens"))
    written = _read.number(usage.get("cache_creation_input_tokens"))
    prompt = None if fresh is None else fresh + (cached or 0) + (written or 0)
    total = None if prompt is None or completion is None else prompt + completion
    thoughts = _read.items(usage.get("output_tokens_details")).get("thinking_tokens")
    return Usage(prompt, completion, total, cached, _read.number(thoughts), written)
