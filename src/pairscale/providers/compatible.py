"""Every server that speaks OpenAI's chat completions: vLLM, llama.cpp, LM Studio, OpenRouter, LiteLLM and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pairscale.errors import InputError
from pairscale.providers import _read, _write
from pairscale.providers.base import HTTPCall, LLMReply, LLMRequest, Problem
from pairscale.providers.families import Capabilities, capabilities
from pairscale.providers.openai import messages, read_chat, response_format

__all__ = ["Compatible"]


@dataclass(frozen=True)
class Compatible:
    """A server that is OpenAI-compatible; its address must be given.

    Attributes:
        overrides: what its models can do, where the user knows better: fields of :class:`Capabilities`.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])

    name: ClassVar[str] = "compatible"
    base_url: ClassVar[str] = ""
    base_url_variable: ClassVar[str | None] = "PAIRSCALE_BASE_URL"
    key_variable: ClassVar[str | None] = None  # not OpenAI's: its key must not go to another server

    def auth(self, key: str) -> dict[str, str]:
        """The key, for servers that ask for one."""
        return {"Authorization": f"Bearer {key}"}

    def capabilities(self, model: str) -> Capabilities:
        """What a model takes."""
        return capabilities(self.name, model, self.overrides)

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request, in the words that most of these servers know.

        Raises:
            InputError: for a thinking budget, or for what the model's family does not take.
        """
        request = _write.checked(request)
        _write.forbid(request, "an OpenAI-compatible server", "thinking_budget")
        able = self.capabilities(request.model)
        if request.choices and able.structured == "none":
            raise InputError(f"{request.model} has no structured output; leave choices out")
        level = _write.level(request, able, enabled="low")
        thinks = able.thinks_unasked if level is None else level != "none"
        if request.logprobs is not None and not _write.take(able.logprobs, thinks):
            raise InputError(f"{request.model} gives no log-probabilities while it reasons; leave logprobs out")
        body = {
            "model": request.model,
            "messages": messages(request),
            "reasoning_effort": level,
            **_write.sampling(request, able, thinks),
            "max_tokens": request.max_tokens,
            "seed": request.seed,
            "service_tier": request.service_tier,
            "logprobs": None if request.logprobs is None else True,
            "top_logprobs": request.logprobs or None,
            "response_format": response_format(request),
        }
        return _write.send("/chat/completions", body, request, "chat.completions")

    def reply(self, call: HTTPCall, body: Any) -> LLMReply:
        """What the model said; a ``<think>`` block becomes its thoughts."""
        return read_chat(body, think_tags=self.capabilities(str(call.body.get("model"))).think_tags)

    def problem(self, status: int, body: Any) -> Problem:
        """What an error reply says."""
        return _read.problem(status, body)

    def without(self, request: LLMRequest, parameter: str) -> LLMRequest | None:
        """The request without a field that the server named."""
        return _write.without(request, parameter, self.call)
