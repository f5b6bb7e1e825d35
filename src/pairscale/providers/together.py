"""Together: chat completions, in its own dialect of OpenAI's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from pairscale.core.errors import InputError
from pairscale.providers import _read, _write
from pairscale.providers.base import HTTPCall, LLMReply, LLMRequest, ProviderProblem
from pairscale.providers.catalog import Capabilities, rules_of
from pairscale.providers.openai import messages, read_chat, response_format

__all__ = ["Together"]


@dataclass(frozen=True)
class Together:
    """Together's API.

    Attributes:
        overrides: what its models can do, where the user knows better: fields of :class:`Capabilities`.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])

    name: ClassVar[str] = "together"
    base_url: ClassVar[str] = "https://api.together.ai/v1"
    base_url_variable: ClassVar[str | None] = "TOGETHER_BASE_URL"
    key_variable: ClassVar[str | None] = "TOGETHER_API_KEY"

    def auth(self, key: str) -> dict[str, str]:
        """The key."""
        return {"Authorization": f"Bearer {key}"}

    @cached_property
    def capabilities(self) -> Callable[[str], Capabilities]:
        """What a model takes."""
        return rules_of(self.name, self.overrides)

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request; the temperature is 0.6 for DeepSeek-R1 and for a Qwen that thinks, and 0 for everything else.

        Raises:
            InputError: for a tier of service, ``store``, a thinking budget, or thinking of a model that does not think.
        """
        request = _write.checked(request)
        _write.forbid(request, "Together", "service_tier", "thinking_budget", "store")
        able = self.capabilities(request.model)
        if request.choices and able.structured == "none":
            raise InputError(f"{request.model} has no structured output; leave choices out")
        level = _write.level(request, able, enabled=None)
        thinks = able.thinks_unasked if level is None else level != "none"
        switch = {"none": False, "enabled": True}.get(level or "")
        body = {
            "model": request.model,
            "messages": messages(request),
            "reasoning": None if switch is None else {"enabled": switch},
            "reasoning_effort": None if switch is not None else level,
            **_write.sampling(request, able, thinks),
            "max_tokens": request.max_tokens,
            "seed": request.seed,
            "logprobs": request.logprobs,
            "response_format": response_format(request),
        }
        return _write.send("/chat/completions", body, request, "chat.completions")

    def reply(self, call: HTTPCall, body: Any) -> LLMReply:
        """What the model said; a ``<think>`` block becomes its thoughts."""
        return read_chat(body, think_tags=self.capabilities(str(call.body.get("model"))).think_tags)

    def problem(self, status: int, body: Any) -> ProviderProblem:
        """What an error reply says."""
        return _read.problem(status, body)

    def without(self, request: LLMRequest, parameter: str) -> LLMRequest | None:
        """The request without a field that the server named."""
        return _write.without(request, parameter, self.call)
