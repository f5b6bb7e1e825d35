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


def checked(request: LLMRequest, provider: str, *forbidden: str) -> LLMRequest:
    """The request without what it omits, its figures in their bounds.

    Raises:
        InputError: when a field is out of its bounds, or is one of those that this provider has no word for.
    """
    if request.omit:
        nothing: dict[str, Any] = dict.fromkeys(request.omit.intersection(_OPTIONAL))
        if request.include_thoughts and request.reasoning is None and "include_thoughts" in request.omit:
            nothing = {"reasoning": "enabled"} | nothing  # it is to think all the same
        request = replace(request, **nothing)
    optional(require_flag, request.store, "store")
    optional(require_choice, request.reasoning, "reasoning", (*LEVELS, "enabled"))
    plain: dict[str, Any] = {
        "temperature": optional(require_number, request.temperature, "temperature", least=0, most=2),
        "top_p": optional(require_number, request.top_p, "top_p", least=0, most=1),
    }
    for name, least, most in _WHOLE:
        plain[name] = optional(require_int, getattr(request, name), name, least=least, most=most)
    if request.choices is not None and not request.choices:
        raise InputError("choices is empty: give the answers that are allowed, or None for free text")
    request = replace(request, **plain)  # plain numbers: JSON has no others, such as numpy's
    forbid(request, provider, *forbidden)
    return request


def forbid(request: LLMRequest, provider: str, *names: str) -> None:
    """Refuse fields that this provider has no word for."""
    for name in names:
        if getattr(request, name) is not None:
            raise InputError(f"{provider} takes no {name}; leave it out")


def planned(request: LLMRequest, able: Capabilities, *, enabled: str | None) -> tuple[str | None, dict[str, Any]]:
    """How hard to think (see :func:`level`), and the samplers (see :func:`sampling`).

    Raises:
        InputError: when the model does not take what is asked.
    """
    if request.choices and able.structured == "none":
        raise InputError(f"{request.model} has no structured output; leave choices out")
    effort = level(request, able, enabled=enabled)
    thinks = able.thinks_unasked if effort is None else effort != "none"
    if request.logprobs is not None and not _takes(able.logprobs, thinks):
        raise InputError(f"{request.model} gives no log-probabilities while it reasons; leave logprobs out")
    return effort, sampling(request, able, thinks)


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
        on = [name for name in able.levels if name != "none"]
        if enabled is None or not on:
            return "enabled"
        return enabled if enabled in on else on[0]
    if wanted == "none" and "none" not in able.levels and "minimal" in able.levels:
        return "minimal"
    if wanted not in able.levels:
        has = f"it takes {', '.join(able.levels)}" if able.levels else "it cannot be told how hard to think"
        always = " and always thinks" if wanted == "none" else ""
        raise InputError(f"{request.model} takes no reasoning {wanted!r}{always}; {has}")
    return wanted


def _takes(when: When, thinks: bool) -> bool:
    """Whether a parameter that is taken ``when`` is taken now."""
    return when == "always" or (when == "unthinking" and not thinks)


def sampling(request: LLMRequest, able: Capabilities, thinks: bool) -> dict[str, Any]:
    """``temperature``, ``top_p`` and ``top_k``, as they are to be sent.

    The temperature is 0 unless something else is said, while the model does not think and takes one.

    Raises:
        InputError: when one is set that the model does not take now.
    """
    asked = {"temperature": request.temperature, "top_p": request.top_p, "top_k": request.top_k}
    samplers = {name: value for name, value in asked.items() if value is not None}
    if not _takes(able.temperature, thinks):
        if samplers:
            now = " while it reasons" if able.temperature == "unthinking" else ""
            raise InputError(f"{request.model} takes no {', '.join(samplers)}{now}; leave it out")
        return {}
    if able.one_sampler and {"temperature", "top_p"} <= set(samplers):
        raise InputError(f"{request.model} takes a temperature or top_p, not both; leave one out")
    is_chosen = "temperature" in samplers or (able.one_sampler and "top_p" in samplers)
    usual = able.thinking_temperature if thinks else 0.0
    if is_chosen or usual is None or "temperature" in request.omit:
        return samplers
    return {"temperature": usual} | samplers


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
    return HTTPCall("POST", path, merged(stated(body), request.extra), headers, endpoint)


def stated(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


_NAMES = {
    "temperature": ("temperature",),
    "top_p": ("topp",),
    "top_k": ("topk",),
    "logprobs": ("logprobs", "toplogprobs", "responselogprobs"),
    "seed": ("seed", "randomseed"),
    "service_tier": ("servicetier",),
    "include_thoughts": ("summary", "display", "includethoughts"),
    "reasoning": (
        "reasoning", "reasoningeffort", "effort", "think", "thinking", "thinkingconfig", "thinkinglevel",
        "thinkingbudget", "budgettokens", "chattemplatekwargs",
    ),
    "choices": (
        "responseformat", "responsejsonschema", "responseschema", "responsemimetype", "format", "tools",
        "toolchoice", "mode",  # "JSON mode is not enabled"
    ),
    "max_tokens": ("maxtokens", "maxcompletiontokens", "maxoutputtokens", "numpredict"),
    "num_ctx": ("numctx",),
    "store": ("store",),
}  # fmt: skip
"""What servers call the fields of a request, letters and digits alone."""


def field_named(parameter: str) -> str | None:
    """The field of :class:`LLMRequest` behind a server's name for it, the last part of a dotted name first."""
    for part in reversed(parameter.split(".")):
        plain = re.sub(r"[^a-z0-9]", "", part.lower())
        for name, others in _NAMES.items():
            if plain in others:
                return name
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
    omit = set(request.omit)
    if field is not None:
        omit.add(field)
    if field == "reasoning":
        omit |= {"thinking_budget", "include_thoughts"}
    less = replace(request, extra=extra, omit=frozenset(omit))
    try:
        return less if call(less) != call(request) else None
    except InputError:
        return None
