"""Ollama: its native API, generate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from pairscale.core.errors import InputError
from pairscale.providers import _read, _write
from pairscale.providers.base import HTTPCall, LLMReply, LLMRequest, ProviderProblem, StopReason, Usage
from pairscale.providers.catalog import Capabilities, rules_of

__all__ = ["Ollama"]

_NUM_CTX = 8192


@dataclass(frozen=True)
class Ollama:
    """A server of Ollama.

    Attributes:
        overrides: what its models can do, where the user knows better: fields of :class:`Capabilities`.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])

    name: ClassVar[str] = "ollama"
    base_url: ClassVar[str] = "http://127.0.0.1:11434"
    base_url_variable: ClassVar[str | None] = "OLLAMA_HOST"
    key_variable: ClassVar[str | None] = None
    optional_key_variable: ClassVar[str | None] = "OLLAMA_API_KEY"

    def auth(self, key: str) -> dict[str, str]:
        """The key, for servers that ask for one."""
        return {"Authorization": f"Bearer {key}"}

    @cached_property
    def capabilities(self) -> Callable[[str], Capabilities]:
        """What a model takes."""
        return rules_of(self.name, self.overrides)

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request; the temperature is 0, but 0.6 for a Qwen that thinks, and the context is 8,192 tokens long.

        A model that would think unasked is told not to, unless thinking is asked for.

        Raises:
            InputError: for a tier of service, a thinking budget, or thinking of a model that does not think.
        """
        request = _write.checked(request)
        _write.forbid(request, "Ollama", "service_tier", "thinking_budget", "store")
        able = self.capabilities(request.model)
        if request.choices and able.structured == "none":
            raise InputError(f"{request.model} has no structured output; leave choices out")
        think = _think(request, able)
        thinks = able.thinks_unasked if think is None else think is not False
        samplers = _write.sampling(request, able, thinks)
        num_ctx = None if "num_ctx" in request.omit else request.num_ctx or _NUM_CTX
        options = {"num_ctx": num_ctx, **samplers, "num_predict": request.max_tokens, "seed": request.seed}
        body = {
            "model": request.model,
            "prompt": request.prompt,
            "system": request.system,
            "stream": False,
            "think": think,
            "format": _write.choice_schema(request.choices) if request.choices else None,
            "logprobs": None if request.logprobs is None else True,
            "top_logprobs": request.logprobs or None,
            "options": {name: value for name, value in options.items() if value is not None},
        }
        return _write.send("/api/generate", body, request, "ollama.generate")

    def reply(self, call: HTTPCall, body: Any) -> LLMReply:
        """What the model said, from generate or from chat."""
        found = _read.items(body)
        message = _read.items(found.get("message"))
        content = found.get("response", message.get("content"))
        if not isinstance(content, str):
            raise _read.refused(body, "a reply of Ollama")
        able = self.capabilities(str(call.body.get("model")))
        inside, text = _read.split_thoughts(content, able.think_tags)
        prompt, completion = _read.number(found.get("prompt_eval_count")), _read.number(found.get("eval_count"))
        return LLMReply(
            text=text,
            stop_reason=_ENDS.get(found.get("done_reason"), "other"),
            thoughts=_read.words([found.get("thinking") or message.get("thinking"), inside], "\n\n"),
            model=found.get("model"),
            object_type=call.endpoint or "ollama.generate",
            usage=Usage(prompt, completion, None if prompt is None or completion is None else prompt + completion),
            logprobs=_read.visible(_read.token_logprobs(found.get("logprobs")), content, text),
            raw=body,
        )

    def problem(self, status: int, body: Any) -> ProviderProblem:
        """What an error reply says; a model that does not think names ``thinking``."""
        return _read.problem(status, body)

    def without(self, request: LLMRequest, parameter: str) -> LLMRequest | None:
        """The request without a field that the server named."""
        return _write.without(request, parameter, self.call)


def _think(request: LLMRequest, able: Capabilities) -> bool | str | None:
    """Whether, or how hard, to think; None to say nothing."""
    level = _write.level(request, able, enabled=None if able.thinking != "effort" else "low")
    if level is None:
        quiet = able.thinking == "switch" and able.thinks_unasked and "reasoning" not in request.omit
        return False if quiet else None
    return {"none": False, "enabled": True}.get(level, level)


_ENDS: dict[Any, StopReason] = {"stop": "stop", "length": "length", None: "stop"}
