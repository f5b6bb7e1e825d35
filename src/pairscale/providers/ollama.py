"""Ollama: its native API, generate; and which models its server has loaded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pairscale.core.errors import InputError
from pairscale.providers.base import HTTPCall, LLMRequest, Provider, Reply, StopReason, Usage
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.client import LLMClient, ProviderError
from pairscale.providers.wire import (
    checked,
    choice_schema,
    field,
    joined_text,
    number,
    objects,
    planned,
    refused,
    send,
    split_thoughts,
    stated,
    text,
    token_logprobs,
)

_NUM_CTX = 8192
_ENDS: dict[Any, StopReason] = {"stop": "stop", "length": "length", None: "stop"}


class Ollama(Provider):
    """A server of Ollama."""

    name = "ollama"
    base_url = "http://127.0.0.1:11434"
    base_url_variable = "OLLAMA_HOST"
    optional_key_variable = "OLLAMA_API_KEY"

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request; the temperature is 0, but 0.6 for a Qwen that thinks, and the context is 8,192 tokens long.

        A model that would think unasked is told not to, unless thinking is asked for.

        Raises:
            InputError: for a tier of service, a thinking budget, or thinking of a model that does not think.
        """
        request = checked(request, "Ollama", "service_tier", "thinking_budget", "store")
        able = self.capabilities(request.model)
        is_asked = request.reasoning or request.include_thoughts or "reasoning" in request.omit
        if able.thinks_unasked and able.thinking == "switch" and "none" in able.levels and not is_asked:
            request = replace(request, reasoning="none")
        level, samplers = planned(request, able, enabled="low" if able.thinking == "effort" else None)
        num_ctx = None if "num_ctx" in request.omit else request.num_ctx or _NUM_CTX
        options = {"num_ctx": num_ctx, **samplers, "num_predict": request.max_tokens, "seed": request.seed}
        body = {
            "model": request.model,
            "prompt": request.prompt,
            "system": request.system,
            "stream": False,
            "think": level == "enabled" if level in {"none", "enabled"} else level,
            "format": choice_schema(request.choices) if request.choices else None,
            "logprobs": None if request.logprobs is None else True,
            "top_logprobs": request.logprobs or None,
            "options": stated(options),
        }
        return send("/api/generate", body, request, "ollama.generate")

    def reply(self, call: HTTPCall, body: Any) -> Reply:
        """What the model said."""
        content = field(body, "response")
        if not isinstance(content, str):
            raise refused(body, "a reply of Ollama")
        inside, answer = split_thoughts(content, self.capabilities(str(call.body.get("model"))).think_tags)
        prompt = number(body, "prompt_eval_count")
        completion = number(body, "eval_count")
        return Reply(
            text=answer,
            stop_reason=_ENDS.get(body.get("done_reason"), "other"),
            thoughts=joined_text([text(body, "thinking"), inside], "\n\n"),
            model=body.get("model"),
            object_type=call.endpoint or "ollama.generate",
            usage=Usage(prompt, completion, None if prompt is None or completion is None else prompt + completion),
            logprobs=token_logprobs(body.get("logprobs")),
            raw=body,
        )


async def unload_others(model: str, host: str | None = None) -> tuple[list[str], str | None]:
    """Unload every model but one.

    Args:
        model: the one to keep.
        host: the server; by default as Ollama's own tools find it.

    Returns:
        The models that were unloaded, and what went wrong, if anything did.
    """
    if not model:
        raise InputError("name the model to keep")
    http = BatchHTTP(LLMClient(Ollama(), base_url=host), retries=0, timeout=30.0)
    unloaded: list[str] = []
    try:
        for entry in objects(await http.json("GET", "/api/ps"), "models"):
            name = str(entry.get("model") or entry.get("name"))
            if name not in {model, f"{model}:latest"}:
                await http.json("POST", "/api/generate", {"model": name, "keep_alive": 0, "stream": False})
                unloaded.append(name)
    except ProviderError as error:
        return unloaded, error.message
    finally:
        await http.aclose()
    return unloaded, None
