"""Every server that speaks OpenAI's chat completions: hosted services by presets, and any other by its address."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pairscale.providers.base import Fields, Headers, HTTPCall, LLMRequest, Provider, Reply
from pairscale.providers.catalog import Capabilities, Preset
from pairscale.providers.openai import chat_call
from pairscale.providers.wire import checked, planned, read_chat

_ANY = Preset(
    name="compatible",
    base_url="",
    base_url_variable="PAIRSCALE_BASE_URL",
    key_variable="PAIRSCALE_API_KEY",
    key="optional",
)
"""A server of which only the address is known; it has a key of its own, as OpenAI's must not go to another server."""


@dataclass(frozen=True)
class Compatible(Provider):
    """A server that is OpenAI-compatible: one with a preset, or one whose address must be given.

    Attributes:
        preset: where it is and how it spells things.
    """

    preset: Preset = field(default=_ANY, repr=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        """What users call it."""
        return self.preset.name

    @property
    def base_url(self) -> str:  # type: ignore[override]
        """Where it is; empty when that depends on the environment or on the user's own file, see :meth:`address`."""
        return "" if self.preset.is_own or "{" in self.preset.base_url else self.preset.base_url

    @property
    def base_url_variable(self) -> str | None:  # type: ignore[override]
        """The environment variable that replaces the address."""
        return self.preset.base_url_variable

    @property
    def key_variable(self) -> str | None:  # type: ignore[override]
        """The environment variable of its key; None when it needs none."""
        return self.preset.key_variable if self.preset.key == "required" else None

    @property
    def optional_key_variable(self) -> str | None:  # type: ignore[override]
        """The environment variable of a key that it may need."""
        return self.preset.key_variable

    def address(self) -> str:
        """Where it is now.

        Raises:
            InputError: that names the environment variable that is missing.
        """
        return self.base_url or self.preset.address()

    def auth(self, key: str) -> Headers:
        """The key, for servers that ask for one."""
        return {"api-key": key} if self.preset.auth == "api-key" else self.token_auth(key)

    def token_auth(self, token: str) -> Headers:
        """A token that a callable gave."""
        return {"Authorization": f"Bearer {token}"}

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request, in the words that this server knows.

        Raises:
            InputError: for a thinking budget, or for what the model's family does not take.
        """
        request = checked(request, "an OpenAI-compatible server", "thinking_budget", "store")
        able = self.capabilities(request.model)
        level, samplers = planned(request, able, enabled="low")
        thinking = {} if level is None else self._reasoning(level, able)
        preset = self.preset
        return chat_call(request, thinking, samplers, max_tokens=preset.max_tokens, seed=preset.seed, **preset.headers)

    def _reasoning(self, level: str, able: Capabilities) -> Fields:
        """How hard to think, as this server takes it."""
        style = self.preset.reasoning
        if style == "object":
            return {"reasoning": {"enabled": True} if level == "enabled" else {"effort": level}}
        if style == "thinking":
            effort = None if level in {"none", "enabled"} else level
            return {"thinking": {"type": "disabled" if level == "none" else "enabled"}, "reasoning_effort": effort}
        if style == "template" and able.thinking == "switch":
            argument = "thinking" if able.family.startswith("deepseek") else "enable_thinking"
            return {"chat_template_kwargs": {argument: level != "none"}}
        if level == "enabled" and self.preset.switched_on:
            return {"reasoning_effort": self.preset.switched_on}
        return {"reasoning_effort": level}

    def reply(self, call: HTTPCall, body: Any) -> Reply:
        """What the model said; a ``<think>`` block becomes its thoughts."""
        think_tags = self.capabilities(str(call.body.get("model"))).think_tags
        return read_chat(body, think_tags=think_tags, states_cost=self.preset.cost_in_reply)
