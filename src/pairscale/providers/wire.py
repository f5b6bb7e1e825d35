"""What the modules of the providers share: writing a request, and reading a reply, its thoughts and its errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pairscale.core.errors import InputError
from pairscale.core.failures import telling_code
from pairscale.core.options import optional, require_choice, require_flag, require_int, require_number
from pairscale.providers.base import (
    CHOICE_KEY,
    Fields,
    HTTPCall,
    JsonObject,
    LLMRequest,
    Logprobs,
    ProviderProblem,
    Reply,
    ReplyError,
    StopReason,
    TokenLogprob,
    Usage,
)
from pairscale.providers.catalog import LEVELS, Capabilities, When
from pairscale.providers.limits import duration, longest_wait

# Requests

SCHEMA_NAME = "verdict"
"""What the schema (or the tool) of structured output is called."""

_NUMBERS: tuple[tuple[str, Any, dict[str, int]], ...] = (
    ("temperature", require_number, {"least": 0, "most": 2}), ("top_p", require_number, {"least": 0, "most": 1}),
    ("top_k", require_int, {"least": 1}), ("max_tokens", require_int, {"least": 1}),
    ("num_ctx", require_int, {"least": 1}), ("logprobs", require_int, {"least": 0, "most": 20}),
    ("thinking_budget", require_int, {"least": -1}), ("seed", require_int, {}),
)  # fmt: skip
"""The numbers of a request, and their ranges; Gemini chooses its own budget at -1."""
_OPTIONAL = (
    "reasoning", "include_thoughts", "thinking_budget", "temperature", "top_p", "top_k", "max_tokens", "service_tier",
    "seed", "logprobs", "choices", "num_ctx", "store",
)  # fmt: skip


_CONFIDENCE = ", or use judge_args answer='confidence', which asks the model how sure it is"


def checked(request: LLMRequest, provider: str, *forbidden: str) -> LLMRequest:
    """The request without what it omits, its figures in their bounds.

    Raises:
        InputError: when a field is out of its bounds, or is one of those that this provider has no word for.
    """
    if request.omit:
        nothing: Fields = dict.fromkeys(request.omit.intersection(_OPTIONAL))
        if request.include_thoughts and request.reasoning is None and "include_thoughts" in request.omit:
            nothing = {"reasoning": "enabled"} | nothing  # it is to think all the same
        request = replace(request, **nothing)
    optional(require_flag, request.store, "store")
    optional(require_choice, request.reasoning, "reasoning", (*LEVELS, "enabled"))
    plain: Fields = {}
    for name, require, bounds in _NUMBERS:
        value = getattr(request, name)
        if value is not None:
            plain[name] = require(value, name, **bounds)
    if plain:
        request = replace(request, **plain)  # plain numbers: JSON has no others, such as numpy's
    forbid(request, provider, *forbidden)
    return request


def forbid(request: LLMRequest, provider: str, *names: str) -> None:
    """Refuse fields that this provider has no word for."""
    for name in names:
        if getattr(request, name) is not None:
            instead = _CONFIDENCE if name == "logprobs" else ""
            raise InputError(f"{provider} takes no {name}; leave it out{instead}")


def planned(request: LLMRequest, able: Capabilities, *, enabled: str | None) -> tuple[str | None, Fields]:
    """How hard to think (see :func:`level`), and the samplers (see :func:`sampling`).

    Raises:
        InputError: when the model does not take what is asked.
    """
    if request.choices and able.structured == "none":
        raise InputError(f"{request.model} has no structured output; leave choices out")
    effort = level(request, able, enabled=enabled)
    thinks = able.thinks_unasked if effort is None else effort != "none"
    if request.logprobs is not None and not _takes(able.logprobs, thinks):
        raise InputError(f"{request.model} gives no log-probabilities while it reasons; leave them out{_CONFIDENCE}")
    return effort, sampling(request, able, thinks)


def level(request: LLMRequest, able: Capabilities, *, enabled: str | None) -> str | None:
    """The word for how hard to think, as this model takes it; None when there is nothing to say.

    ``enabled`` is what ``enabled`` means here, and what asking for thoughts means by default. None means
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


def sampling(request: LLMRequest, able: Capabilities, thinks: bool) -> Fields:
    """``temperature``, ``top_p`` and ``top_k``, as they are to be sent.

    The temperature is 0 by default, while the model does not think and takes one.

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


def choice_schema(choices: tuple[str, ...]) -> Fields:
    """The JSON schema that allows these answers alone."""
    return {
        "type": "object",
        "properties": {CHOICE_KEY: {"type": "string", "enum": list(choices)}},
        "required": [CHOICE_KEY],
        "additionalProperties": False,
    }


def merged(body: JsonObject, extra: JsonObject) -> Fields:
    """The body with further fields, which win; objects are merged, everything else is replaced."""
    result = dict(body)
    for name, value in extra.items():
        old = result.get(name)
        result[name] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def send(path: str, body: JsonObject, request: LLMRequest, endpoint: str, **headers: str) -> HTTPCall:
    """The call: a POST of what is not None, with the request's further fields."""
    return HTTPCall("POST", path, merged(stated(body), request.extra), headers, endpoint)


def stated(fields: JsonObject) -> Fields:
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
    named = field_named(parameter)
    if named in required:
        return None
    omit = set(request.omit)
    if named is not None:
        omit.add(named)
    if named == "reasoning":
        omit |= {"thinking_budget", "include_thoughts"}
    less = replace(request, extra=extra, omit=frozenset(omit))
    try:
        return less if call(less) != call(request) else None
    except InputError:
        return None


# Replies

_MOST = 2**53
"""The largest count that a run file can hold."""


def field(document: Any, *path: str) -> Any:
    """What is in a JSON document under these names, one inside the other; None where there is nothing."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def text(document: Any, *path: str) -> str | None:
    """A text in a JSON document; None when there is none, or an empty one."""
    value = field(document, *path)
    return value if isinstance(value, str) and value else None


def amount(document: Any, *path: str) -> float | None:
    """A number from 0 in a JSON document; None when there is none."""
    value = field(document, *path)
    if type(value) not in (int, float) or not 0 <= value <= _MOST:
        return None
    return float(value)


def number(document: Any, *path: str) -> int | None:
    """A whole number from 0 in a JSON document; None when there is none."""
    value = amount(document, *path)
    return None if value is None else int(value)


def objects(document: Any, *path: str) -> list[JsonObject]:
    """The objects of a list in a JSON document."""
    rows = field(document, *path)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def of_type(rows: Iterable[JsonObject], kind: str) -> list[JsonObject]:
    """The objects that say that they are of this type."""
    return [row for row in rows if row.get("type") == kind]


def joined_text(parts: Iterable[Any], between: str = "") -> str | None:
    """The texts among ``parts``, joined; None when there is none."""
    return between.join(part for part in parts if isinstance(part, str) and part) or None


def joined_field(rows: Iterable[JsonObject], name: str, between: str = "") -> str | None:
    """The texts in a field of objects, joined; None when there is none."""
    return joined_text((row.get(name) for row in rows), between)


def tokens_of(usage: Any, places: str) -> Usage:
    """Tokens by their places, such as ``details.cached|cached``, in the order of ``Usage``; the first that is there."""
    counts = []
    for paths in _paths(places):
        count = None
        for path in paths:
            if count is None:
                count = number(usage, *path)
        counts.append(count)
    return Usage(*counts)


@cache
def _paths(places: str) -> list[list[list[str]]]:
    return [[path.split(".") for path in place.split("|")] for place in places.split()]


def refused(body: Any, what: str) -> ValueError:
    """Why a body with a status of success is not a reply."""
    if field(body, "error"):
        return ReplyError(problem(0, body))
    return ValueError(f"this is not {what}: {str(body)[:200]}")


_CLOSE = "</think>"
_OPEN = "<think>"


def split_thoughts(content: str, unopened: bool = False) -> tuple[str | None, str]:
    """The thoughts of a ``<think>`` block at the start, and the answer after it.

    A block that was never closed is all thoughts: the answer was cut off. With ``unopened``, everything before
    ``</think>`` is thoughts, because some servers keep the opening tag to themselves.
    """
    start = content.lstrip()
    if not (start.startswith(_OPEN) or (unopened and _CLOSE in start)):
        return None, content
    thoughts, _, answer = start.removeprefix(_OPEN).partition(_CLOSE)
    return thoughts.strip() or None, answer.strip()


def token_logprobs(rows: Any) -> Logprobs:
    """Tokens as OpenAI, and Ollama after it, give them: ``token``, ``logprob`` and ``top_logprobs``."""
    if not isinstance(rows, list):
        return None
    return tuple(
        TokenLogprob(
            str(row["token"]),
            float(row["logprob"]),
            tuple((str(top["token"]), float(top["logprob"])) for top in objects(row, "top_logprobs")),
        )
        for row in objects(rows)
        if row.get("logprob") is not None
    )


def problem(status: int, body: Any) -> ProviderProblem:
    """What an error body says, in any of the shapes that servers use."""
    if isinstance(body, list) and body:  # Gemini streams begin so
        body = body[0]
    message, code, named = _parts(body)
    parameter = _parameter(message, code, named) if status in {400, 422} else None
    message = message or f"HTTP {status} without a message"
    return ProviderProblem(message, code, parameter, _retry_info(body), _status_in(body))


def _status_in(body: Any) -> int | None:
    """The status of HTTP that an error names, as servers do that pass on what another one said."""
    for name in ("code", "status"):
        status = number(body, "error", name)
        if status is not None and 400 <= status < 600:
            return status
    return None


def _retry_info(body: Any) -> float | None:
    """The seconds of a ``google.rpc.RetryInfo`` among the details of an error."""
    for detail in objects(body, "error", "details"):
        delay = text(detail, "retryDelay")
        if delay and str(detail.get("@type", "")).endswith("google.rpc.RetryInfo"):
            return longest_wait(duration(delay))
    return None


def _parts(body: Any) -> tuple[str, str | None, str | None]:
    """The message, the code and the named parameter of an error body."""
    if not isinstance(body, Mapping):
        return str(body or "").strip()[:2000], None, None
    error = body.get("error")
    while isinstance(field(error, "error"), Mapping):
        error = field(error, "error")
    if isinstance(error, Mapping):
        message = _passed_on(error)
    elif isinstance(error, str):
        message = error
        error = body
    else:
        message = str(body.get("message") or body.get("detail") or body)
        error = body
    return message, telling_code(error.get(name) for name in ("code", "status", "type")), text(error, "param")


def _passed_on(error: JsonObject) -> str:
    """The message of an error, with that of the server behind a router (OpenRouter) where there is one."""
    message = str(error.get("message") or error)
    behind = text(error, "metadata", "raw")
    return message if behind is None else f"{message}: {behind[:2000]}"


_UNSUPPORTED = re.compile(
    r"unsupported|unknown|unrecognized|deprecated|cannot both|extra inputs"
    r"|not (?:support(?:ed)?|allowed|permitted|enabled|available)|doesn't support",
    re.IGNORECASE,
)
_SAMPLERS = frozenset({"temperature", "top_p", "top_k", "logprobs", "seed"})


def _parameter(message: str, code: str | None, named: str | None) -> str | None:
    """The field that the model does not take, as the server calls it.

    A value that it does not take is another matter: the user is to choose another one. But for a sampler it means that
    the model takes its own value alone, and then nothing is lost without it.
    """
    if not named and not _UNSUPPORTED.search(message):
        return None
    words = [named] if named else re.findall(r"\w[\w.]*\w", message)
    name = next((word for word in words if field_named(word)), None)
    if name is None or code in {"unsupported_parameter", "unknown_parameter", "extra_forbidden"}:
        return name
    if code == "unsupported_value" or message.lower().startswith("unsupported value"):
        return name if field_named(name) in _SAMPLERS else None
    return name if _UNSUPPORTED.search(message) else None


# Chat completions, of OpenAI and of every server that speaks like it

CHAT_ENDS: dict[Any, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
"""What OpenAI, and servers that speak like it, call the ends of a reply."""


def read_chat(body: Any, *, think_tags: bool = False, states_cost: bool = False) -> Reply:
    """A chat completion, of OpenAI or of a server that speaks like it.

    Args:
        body: the parsed reply.
        think_tags: whether thoughts may precede the answer without an opening tag.
        states_cost: whether its usage states the cost in US dollars.

    Raises:
        ValueError: when it is not one.
    """
    choices = objects(body, "choices")
    if not choices:
        raise refused(body, "a chat completion")
    choice = choices[0]
    content = _content(field(choice, "message", "content"))
    inside, answer = split_thoughts(content, think_tags)
    refusal = text(choice, "message", "refusal")
    end = CHAT_ENDS.get(choice.get("finish_reason"), "other")
    failure = None
    if refusal:
        end = "refusal"
    if choice.get("finish_reason") == "error" or choice.get("error"):
        end = "error"
        failure = problem(0, {"error": choice.get("error") or "it does not say why"})
    return Reply(
        text=answer,
        stop_reason=end,
        thoughts=joined_text([*_thoughts(choice.get("message")), inside], "\n\n"),
        model=body.get("model"),
        object_type=body.get("object"),
        usage=_chat_usage(body.get("usage")),
        logprobs=_chat_logprobs(choice.get("logprobs")),
        refusal=refusal,
        service_tier=text(body, "service_tier"),
        problem=failure,
        cost=amount(body, "usage", "cost") if states_cost else None,
        raw=body,
    )


def _thoughts(message: Any) -> list[str | None]:
    """The thoughts beside the answer, or those of its parts that are thoughts."""
    parts = [_content(part.get("thinking")) for part in of_type(objects(message, "content"), "thinking")]
    return [text(message, "reasoning_content") or text(message, "reasoning"), *parts]


def _content(content: Any) -> str:
    """The answer, which some servers give in parts."""
    if isinstance(content, list):
        return joined_field(objects(content), "text") or ""
    return content if isinstance(content, str) else ""


def _chat_logprobs(logprobs: Any) -> Logprobs:
    """Log-probabilities of a chat completion, in OpenAI's shape or in the older one of lists, which Together gives."""
    tokens = field(logprobs, "tokens")
    values = field(logprobs, "token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list):
        return token_logprobs(field(logprobs, "content"))
    tops = [*(field(logprobs, "top_logprobs") or []), *({} for _ in tokens)]
    return tuple(
        TokenLogprob(str(token), float(value), tuple((top or {}).items()))
        for token, value, top in zip(tokens, values, tops, strict=False)
        if value is not None
    )


def _chat_usage(usage: Any) -> Usage:
    return tokens_of(
        usage,
        "prompt_tokens completion_tokens total_tokens prompt_tokens_details.cached_tokens|cached_tokens "
        "completion_tokens_details.reasoning_tokens|reasoning_tokens prompt_tokens_details.cache_write_tokens",
    )
