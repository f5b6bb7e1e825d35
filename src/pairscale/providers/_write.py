"""What the modules of the providers share when they write a request: its rules, its schema, its further fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pairscale.core.errors import InputError
from pairscale.core.options import optional, require_choice, require_flag, require_int, require_number
from pairscale.providers.base import CHOICE_KEY, HTTPCall, LLMRequest
from pairscale.providers.catalog import LEVELS, Capabilities, When

__all__ = [
    "SCHEMA_NAME",
    "checked",
    "choice_schema",
    "forbid",
    "level",
    "merged",
    "sampling",
    "send",
    "take",
    "without",
]

SCHEMA_NAME = "verdict"
"""What the schema (or the tool) of structured output is called."""

_MOST_LOGPROBS = 20
_WHOLE: tuple[tuple[str, int | None, int | None], ...] = (
    ("top_k", 1, None), ("max_tokens", 1, None), ("num_ctx", 1, None), ("logprobs", 0, _MOST_LOGPROBS),
    ("thinking_budget", -1, None), ("seed", None, None),
)  # fmt: skip
"""The whole numbers of a request, and their ranges; Gemini chooses its own budget at -1."""
_OPTIONAL = (
    "reasoning", "include_thoughts", "thinking_budget", "temperature", "top_p", "top_k", "max_tokens", "service_tier",
    "seed", "logprobs", "choices", "num_ctx", "store",
)  # fmt: skip


def checked(request: LLMRequest) -> LLMRequest:
    """The request without what it omits, its figures in their bounds.

    Raises:
        InputError: when a field is out of its bounds.
    """
    if request.omit:
        nothing: dict[str, Any] = dict.fromkeys(request.omit.intersection(_OPTIONAL))
        if request.include_thoughts and request.reasoning is None and "include_thoughts" in request.omit:
            nothing = {
                "reasoning": None if "reasoning" in nothing else "enabled"
            } | nothing  # it is to think all the same
        request = replace(request, **nothing)
    optional(require_flag, request.store, "store")
    optional(require_choice, request.reasoning, "reasoning", (*LEVELS, "enabled"))
    plain: dict[str, Any] = {}
    for name, most in (("temperature", 2), ("top_p", 1)):
        if (number := getattr(request, name)) is not None:
            plain[name] = require_number(number, name, least=0, most=most)
    for name, least, largest in _WHOLE:
        if (number := getattr(request, name)) is not None:
            plain[name] = require_int(number, name, least=least, most=largest)
    if any(type(getattr(request, name)) not in (int, float) for name in plain):  # such as numpy's, which JSON lacks
        request = replace(request, **plain)
    if request.choices is not None and not request.choices:
        raise InputError("choices is empty: give the answers that are allowed, or None for free text")
    return request


def forbid(request: LLMRequest, provider: str, *names: str) -> None:
    """Refuse fields that this provider has no word for.

    Raises:
        InputError: when one of them is set.
    """
    for name in names:
        if getattr(request, name) is not None:
            raise InputError(f"{provider} takes no {name}; leave it out")


def level(request: LLMRequest, able: Capabilities, *, enabled: str | None) -> str | None:
    """The word for how hard to think, as this model takes it; None when there is nothing to say.

    ``enabled`` is what ``enabled`` means here, and what asking for thoughts means when nothing else is said. None means
    that it stays ``enabled``. ``none`` becomes ``minimal`` where that is the least there is.

    Raises:
        InputError: when the model does not take that word.
    """
    wanted = request.reasoning
    if able.thinking == "none":
        if wanted not in {None, "none"}:
            raise InputError(f"{request.model} does not reason; leave reasoning out, or choose another model")
        return None
    if wanted is None and request.include_thoughts and "reasoning" not in request.omit:
        wanted = "enabled"
    if wanted is None or (able.thinking == "fixed" and wanted == "enabled"):
        return None
    if wanted == "enabled":
        on = [one for one in able.levels if one != "none"]
        return "enabled" if enabled is None or not on else enabled if enabled in on else on[0]
    if wanted == "none" and "none" not in able.levels and "minimal" in able.levels:
        return "minimal"
    if wanted not in able.levels:
        has = f"it takes {', '.join(able.levels)}" if able.levels else "it cannot be told how hard to think"
        always = " and always thinks" if wanted == "none" else ""
        raise InputError(f"{request.model} takes no reasoning {wanted!r}{always}; {has}")
    return wanted


def take(when: When, thinks: bool) -> bool:
    """Whether a parameter that is taken ``when`` is taken now."""
    return when == "always" or (when == "unthinking" and not thinks)


def sampling(request: LLMRequest, able: Capabilities, thinks: bool) -> dict[str, Any]:
    """``temperature``, ``top_p`` and ``top_k``, as they are to be sent.

    The temperature is 0 unless something else is said, while the model does not think and takes one.

    Raises:
        InputError: when one is set that the model does not take now.
    """
    given = {name: getattr(request, name) for name in ("temperature", "top_p", "top_k")}
    given = {name: value for name, value in given.items() if value is not None}
    if not take(able.temperature, thinks):
        if given:
            now = " while it reasons" if able.temperature == "unthinking" else ""
            raise InputError(f"{request.model} takes no {', '.join(given)}{now}; leave it out")
        return {}
    if able.one_sampler and {"temperature", "top_p"} <= set(given):
        raise InputError(f"{request.model} takes a temperature or top_p, not both; leave one out")
    if "temperature" in given:
        given["temperature"] = float(given["temperature"])
    elif "temperature" not in request.omit and not (able.one_sampler and "top_p" in given):
        usual = able.thinking_temperature if thinks else 0.0
        if usual is not None:
            given = {"temperature": usual} | given
    return given


def choice_schema(choices: tuple[str, ...]) -> dict[str, Any]:
    """The JSON schema that allows these answers alone."""
    return {
        "type": "object",
        "properties": {CHOICE_KEY: {"type": "string", "enum": list(choices)}},
        "required": [CHOICE_KEY],
        "additionalProperties": False,
    }


def merged(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body with further fields, which win; objects are merged, everything else is replaced."""
    result = dict(body)
    for name, value in extra.items():
        old = result.get(name)
        result[name] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def send(path: str, body: Mapping[str, Any], request: LLMRequest, endpoint: str, **headers: str) -> HTTPCall:
    """The call: a POST of what is not None, with the request's further fields."""
    said = {name: value for name, value in body.items() if value is not None}
    return HTTPCall("POST", path, merged(said, request.extra), headers, endpoint)


# What servers call a field, letters and digits alone; dotted names are looked up from their last part to their first.
_NAMES = {
    "temperature": "temperature",
    "topp": "top_p",
    "topk": "top_k",
    "logprobs": "logprobs",
    "toplogprobs": "logprobs",
    "responselogprobs": "logprobs",
    "seed": "seed",
    "randomseed": "seed",
    "chattemplatekwargs": "reasoning",
    "servicetier": "service_tier",
    "summary": "include_thoughts",
    "display": "include_thoughts",
    "includethoughts": "include_thoughts",
    "reasoning": "reasoning",
    "reasoningeffort": "reasoning",
    "effort": "reasoning",
    "think": "reasoning",
    "thinking": "reasoning",
    "thinkingconfig": "reasoning",
    "thinkinglevel": "reasoning",
    "thinkingbudget": "reasoning",
    "budgettokens": "reasoning",
    "responseformat": "choices",
    "responsejsonschema": "choices",
    "responseschema": "choices",
    "responsemimetype": "choices",
    "format": "choices",
    "tools": "choices",
    "toolchoice": "choices",
    "maxtokens": "max_tokens",
    "maxcompletiontokens": "max_tokens",
    "maxoutputtokens": "max_tokens",
    "numpredict": "max_tokens",
    "numctx": "num_ctx",
    "store": "store",
}
_TOGETHER_GO = {"reasoning": {"reasoning", "thinking_budget", "include_thoughts"}}


def field_named(parameter: str) -> str | None:
    """The field of :class:`LLMRequest` behind a server's name for it."""
    for part in reversed(parameter.split(".")):
        if found := _NAMES.get(re.sub(r"[^a-z0-9]", "", part.lower())):
            return found
    return None


def without(
    request: LLMRequest, parameter: str, call: Callable[[LLMRequest], HTTPCall], required: tuple[str, ...] = ()
) -> LLMRequest | None:
    """The request without what the server calls ``parameter``; None when that is required, or was not sent."""
    root = parameter.split(".", maxsplit=1)[0]
    extra = {name: value for name, value in request.extra.items() if name not in {root, parameter}}
    field = field_named(parameter)
    if field in required:
        return None
    omit = request.omit | (_TOGETHER_GO.get(field, {field}) if field else set())
    less = replace(request, extra=extra, omit=omit)
    try:
        return less if call(less) != call(request) else None
    except InputError:
        return None
