"""Every server that speaks OpenAI's chat completions: hosted services by presets, and any other by its address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pairscale.core.errors import InputError
from pairscale.providers import _read, _write
from pairscale.providers.base import HTTPCall, LLMReply, LLMRequest, ProviderProblem
from pairscale.providers.catalog import Capabilities, Preset, rules_of
from pairscale.providers.openai import messages, read_chat, response_format

__all__ = ["Compatible"]

_ANY = Preset(
    name="compatible",
    base_url="",
    base_url_variable="PAIRSCALE_BASE_URL",
    key_variable="PAIRSCALE_API_KEY",
    key="optional",
)
"""A server of which only the address is known; it has a key of its own, as OpenAI's must not go to another server."""


@dataclass(frozen=True)
class Compatible:
    """A server that is OpenAI-compatible: one with a preset, or one whose address must be given.

    Attributes:
        overrides: what its models can do, where the user knows better: fields of :class:`Capabilities`.
        preset: where it is and how it spells things.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])
    preset: Preset = field(default=_ANY, repr=False)

    @property
    def name(self) -> str:
        """What users call it."""
        return self.preset.name

    @property
    def base_url(self) -> str:
        """Where it is; empty when that depends on the environment or on the user's own file, see :meth:`address`."""
        return "" if self.preset.is_own or "{" in self.preset.base_url else self.preset.base_url

    @property
    def base_url_variable(self) -> str | None:
        """The environment variable that replaces the address."""
        return self.preset.base_url_variable

    @property
    def key_variable(self) -> str | None:
        """The environment variable of its key; None when it needs none."""
        return self.preset.key_variable if self.preset.key == "required" else None

    @property
    def optional_key_variable(self) -> str | None:
        """The environment variable of a key that it may need."""
        return self.preset.key_variable

    def address(self) -> str:
        """Where it is now.

        Raises:
            InputError: that names the environment variable that is missing.
        """
        return self.base_url or self.preset.address()

    def auth(self, key: str) -> dict[str, str]:
        """The key, for servers that ask for one."""
        return {"api-key": key} if self.preset.auth == "api-key" else self.token_auth(key)

    def token_auth(self, token: str) -> dict[str, str]:
        """A token that a callable gave."""
        return {"Authorization": f"Bearer {token}"}

    @cached_property
    def capabilities(self) -> Callable[[str], Capabilities]:
        """What a model takes."""
        return rules_of(self.name, self.overrides)

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request, in the words that this server knows.

        Raises:
            InputError: for a thinking budget, or for what the model's family does not take.
        """
        request = _write.checked(request)
        _write.forbid(request, "an OpenAI-compatible server", "thinking_budget", "store")
        able, preset = self.capabilities(request.model), self.preset
        if request.choices and able.structured == "none":
            raise InputError(f"{request.model} has no structured output; leave choices out")
        level = _write.level(request, able, enabled="low")
        thinks = able.thinks_unasked if level is None else level != "none"
        if request.logprobs is not None and not _write.take(able.logprobs, thinks):
            raise InputError(f"{request.model} gives no log-probabilities while it reasons; leave logprobs out")
        body = {
            "model": request.model,
            "messages": messages(request),
            **self._reasoning(level, able),
            **_write.sampling(request, able, thinks),
            preset.max_tokens: request.max_tokens,
            preset.seed: request.seed,
            "service_tier": request.service_tier,
            "logprobs": None if request.logprobs is None else True,
            "top_logprobs": request.logprobs or None,
            "response_format": response_format(request),
        }
        return _write.send("/chat/completions", body, request, "chat.completions", **preset.headers)

    def _reasoning(self, level: str | None, able: Capabilities) -> dict[str, Any]:
        """How hard to think, as this server takes it."""
        style, on = self.preset.reasoning, level not in {None, "none"}
        word = self.preset.switched_on if level == "enabled" and self.preset.switched_on else level
        if level is None:
            return {}
        if style == "object":
            return {"reasoning": {"enabled": True} if level == "enabled" else {"effort": level}}
        if style == "thinking":
            effort = {"reasoning_effort": level} if on and level != "enabled" else {}
            return {"thinking": {"type": "enabled" if on else "disabled"}, **effort}
        if style == "template" and able.thinking == "switch":
            argument = "thinking" if able.family.startswith("deepseek") else "enable_thinking"
            return {"chat_template_kwargs": {argument: on}}
        return {"reasoning_effort": word}

    def reply(self, call: HTTPCall, body: Any) -> LLMReply:
        """What the model said; a ``<think>`` block becomes its thoughts."""
        think_tags = self.capabilities(str(call.body.get("model"))).think_tags
        return read_chat(body, think_tags=think_tags, states_cost=self.preset.cost_in_reply)

    def problem(self, status: int, body: Any) -> ProviderProblem:
        """What an error reply says."""
        return _read.problem(status, body)

    def without(self, request: LLMRequest, parameter: str) -> LLMRequest | None:
        """The request without a field that the server named."""
        return _write.without(request, parameter, self.call)
