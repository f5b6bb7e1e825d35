"""Gemini: generateContent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar
from urllib.parse import quote

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.providers import _read, _write
from pairscale.providers.base import HTTPCall, LLMReply, LLMRequest, ProviderProblem, StopReason, TokenLogprob, Usage
from pairscale.providers.catalog import Capabilities, rules_of

__all__ = ["Gemini", "thought_signature"]

_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24_576, "enabled": -1}
_DYNAMIC = -1


@dataclass(frozen=True)
class Gemini:
    """Google's Gemini API.

    Attributes:
        overrides: what its models can do, where the user knows better: fields of :class:`Capabilities`.
        api_version: ``v1beta`` or ``v1``.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])
    api_version: str = "v1beta"

    name: ClassVar[str] = "gemini"
    base_url: ClassVar[str] = "https://generativelanguage.googleapis.com"
    base_url_variable: ClassVar[str | None] = "GOOGLE_GEMINI_BASE_URL"
    key_variable: ClassVar[str | None] = "GEMINI_API_KEY"

    def auth(self, key: str) -> dict[str, str]:
        """The key."""
        return {"x-goog-api-key": key}

    @cached_property
    def capabilities(self) -> Callable[[str], Capabilities]:
        """What a model takes."""
        return rules_of(self.name, self.overrides)

    def call(self, request: LLMRequest) -> HTTPCall:
        """The request; the model stands in the path.

        Gemini 3 is told how hard to think by a level, ``low`` unless something else is said; Gemini 2.5 by a budget of
        tokens; never by both. A model that thinks gets no temperature by default.

        Raises:
            InputError: when the model does not take that level or that budget.
        """
        request = _write.checked(request)
        _write.forbid(request, "Gemini", "store")
        able = self.capabilities(request.model)
        thinking = _thinking(request, able)
        thinks = able.thinks_unasked
        if "thinkingBudget" in thinking:
            thinks = thinking["thinkingBudget"] != 0
        samplers = _write.sampling(request, able, thinks or "thinkingLevel" in thinking)
        config = {
            "temperature": samplers.get("temperature"),
            "topP": samplers.get("top_p"),
            "topK": samplers.get("top_k"),
            "maxOutputTokens": request.max_tokens,
            "seed": request.seed,
            "responseLogprobs": None if request.logprobs is None else True,
            "logprobs": request.logprobs or None,
            "responseMimeType": "application/json" if request.choices else None,
            "responseJsonSchema": _write.choice_schema(request.choices) if request.choices else None,
            "thinkingConfig": thinking or None,
        }
        config = {name: value for name, value in config.items() if value is not None}
        body = {
            "contents": [{"role": "user", "parts": [{"text": request.prompt}]}],
            "systemInstruction": None
            if request.system is None
            else {"role": "user", "parts": [{"text": request.system}]},
            "generationConfig": config or None,
            "serviceTier": request.service_tier,
        }
        model = quote(request.model.removeprefix("models/"), safe="/")
        kind = "" if model.startswith("tunedModels/") else "models/"
        return _write.send(f"/{self.api_version}/{kind}{model}:generateContent", body, request, "generateContent")

    def reply(self, call: HTTPCall, body: Any) -> LLMReply:
        """What the model said; a prompt that was blocked is a reply, too."""
        found = _read.items(body)
        candidates = _read.objects(found.get("candidates"))
        blocked = _read.items(found.get("promptFeedback"))
        if not candidates and not blocked.get("blockReason"):
            raise _read.refused(body, "a reply of Gemini")
        candidate = candidates[0] if candidates else {}
        parts = _read.objects(_read.items(candidate.get("content")).get("parts"))
        end = _ENDS.get(candidate.get("finishReason"), "other") if candidates else "content_filter"
        reasons = [blocked.get("blockReasonMessage"), blocked.get("blockReason"), candidate.get("finishMessage")]
        return LLMReply(
            text=_read.words(part.get("text") for part in parts if not part.get("thought")) or "",
            stop_reason=end,
            thoughts=_read.words((part.get("text") for part in parts if part.get("thought")), "\n\n"),
            model=found.get("modelVersion"),
            object_type=call.endpoint or "generateContent",
            usage=_usage(_read.items(found.get("usageMetadata"))),
            logprobs=_logprobs(candidate.get("logprobsResult")),
            refusal=_read.words(reasons, ": ") if end == "content_filter" else None,
            service_tier=_read.words([_read.items(found.get("usageMetadata")).get("serviceTier")]),
            raw=body,
        )

    def problem(self, status: int, body: Any) -> ProviderProblem:
        """What an error reply says."""
        return _read.problem(status, body)

    def without(self, request: LLMRequest, parameter: str) -> LLMRequest | None:
        """The request without a field that the server named."""
        return _write.without(request, parameter, self.call)


def _thinking(request: LLMRequest, able: Capabilities) -> dict[str, Any]:
    """How to think, in the order in which the SDK writes it."""
    if able.thinking == "none":
        _write.level(request, able, enabled=None)
        _write.forbid(request, request.model, "thinking_budget")
        return {}
    thinking: dict[str, Any] = {}
    if able.thinking == "level":
        if request.thinking_budget is not None:
            raise InputError(f"{request.model} takes a level and no thinking_budget; use reasoning, such as 'low'")
        if "reasoning" not in request.omit:
            thinking = {"thinkingLevel": _level(request, able).upper()}
    else:
        budget = _budget(request, able)
        thinking = {} if budget is None else {"thinkingBudget": budget}
    if (thinking or request.include_thoughts is not None) and "include_thoughts" not in request.omit:
        thinking = {"includeThoughts": bool(request.include_thoughts)} | thinking
    return thinking


def _level(request: LLMRequest, able: Capabilities) -> str:
    if request.reasoning == "medium" and able.levels == ("low", "high"):
        _say(f"{request.model} has no medium level of thinking; high is sent instead")
        return "high"
    return _write.level(request, able, enabled="low") or "low"


@cache
def _say(message: str) -> None:
    """Say something once, however many requests it is true of."""
    notice(message)


def _budget(request: LLMRequest, able: Capabilities) -> int | None:
    """The tokens to think with: 0 for none, -1 for as many as the model likes."""
    level = None
    if request.reasoning is not None or not (able.thinks_unasked or request.thinking_budget is not None):
        level = _write.level(request, able, enabled=None)  # thoughts alone ask it to think, unless it does anyway
    if request.thinking_budget is None:
        return None if level is None else _BUDGETS.get(level, _BUDGETS["high"])
    if level is not None:
        raise InputError("reasoning and thinking_budget say the same thing; leave one of them out")
    least, most = able.budget or (1, 1_000_000)
    off = request.thinking_budget == 0 and "none" in able.levels
    if not (off or request.thinking_budget == _DYNAMIC or least <= request.thinking_budget <= most):
        zero = ", 0 for none" if "none" in able.levels else ""
        raise InputError(
            f"thinking_budget of {request.model} is from {least} to {most}{zero}, or -1 for its own choice"
        )
    return request.thinking_budget


_ENDS: dict[Any, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
}


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Gemini counts thoughts apart from the answer."""
    answer, thoughts = _read.number(usage.get("candidatesTokenCount")), _read.number(usage.get("thoughtsTokenCount"))
    both = None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0)
    return Usage(
        _read.number(usage.get("promptTokenCount")),
        both,
        _read.number(usage.get("totalTokenCount")),
        _read.number(usage.get("cachedContentTokenCount")),
        thoughts,
    )


def _logprobs(result: Any) -> tuple[TokenLogprob, ...] | None:
    found = _read.items(result)
    tops = [_read.objects(one.get("candidates")) for one in _read.objects(found.get("topCandidates"))]
    rows = [
        {
            "token": one.get("token", ""),
            "logprob": one.get("logProbability"),
            "top_logprobs": [
                {"token": other.get("token", ""), "logprob": other.get("logProbability", 0.0)}
                for other in (tops[place] if place < len(tops) else [])
            ],
        }
        for place, one in enumerate(_read.objects(found.get("chosenCandidates")))
    ]
    return _read.token_logprobs(rows) if "chosenCandidates" in found else None


def thought_signature(body: Any) -> str | None:
    """The first signature of thoughts in a reply of Gemini, if it has one."""
    candidates = _read.objects(_read.items(body).get("candidates"))
    parts = _read.objects(_read.items(candidates[0].get("content")).get("parts")) if candidates else []
    return next((str(part["thoughtSignature"]) for part in parts if part.get("thoughtSignature")), None)
