"""What the modules of the providers share when they read a reply: its parts, its thoughts, its errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pairscale.core.failures import telling_code
from pairscale.providers.base import Alternative, ProviderProblem, ReplyError, TokenLogprob, Usage
from pairscale.providers.limits import duration, longest_wait

__all__ = [
    "dollars", "items", "number", "objects", "problem", "refused", "responses_usage", "split_thoughts",
    "token_logprobs", "visible", "words",
]  # fmt: skip

_MOST = 2**53


def items(value: Any) -> Mapping[str, Any]:
    """An object of JSON; an empty one when it is none."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list of JSON."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def number(value: Any) -> int | None:
    """A whole number from 0 that a run file can hold; None when it is none."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value <= _MOST else None


def dollars(value: Any) -> float | None:
    """A cost in US dollars; None when it is none."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= _MOST else None


def responses_usage(reply: Mapping[str, Any]) -> Usage:
    """The tokens of a reply of OpenAI's endpoints for responses and for decisions."""
    usage = items(reply.get("usage"))
    prompt = items(usage.get("input_tokens_details"))
    return Usage(
        number(usage.get("input_tokens")),
        number(usage.get("output_tokens")),
        number(usage.get("total_tokens")),
        number(prompt.get("cached_tokens")),
        number(items(usage.get("output_tokens_details")).get("reasoning_tokens")),
        number(prompt.get("cache_write_tokens")),
    )


def words(parts: Iterable[Any], between: str = "") -> str | None:
    """The texts among ``parts``, joined; None when there is none."""
    texts = [part for part in parts if isinstance(part, str) and part]
    return between.join(texts) if texts else None


def refused(body: Any, what: str) -> ValueError:
    """Why a reply that came with success is none."""
    if isinstance(body, Mapping) and body.get("error"):
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
    if start.startswith(_OPEN):
        thoughts, _, answer = start.removeprefix(_OPEN).partition(_CLOSE)
    elif unopened and _CLOSE in start:
        thoughts, _, answer = start.partition(_CLOSE)
    else:
        return None, content
    return thoughts.strip() or None, answer.strip()


def visible(logprobs: tuple[TokenLogprob, ...] | None, content: str, text: str) -> tuple[TokenLogprob, ...] | None:
    """The tokens of the answer alone, when thoughts stood before it in ``content``."""
    if logprobs is None or content == text:
        return logprobs
    before, kept = content.rfind(_CLOSE), []
    if before < 0:
        return ()
    end, at = before + len(_CLOSE), 0
    for one in logprobs:
        at += len(one.token)
        if at > end:
            kept.append(one)
    return tuple(kept)


def token_logprobs(rows: Any) -> tuple[TokenLogprob, ...] | None:
    """Tokens as OpenAI, and Ollama after it, give them: ``token``, ``logprob`` and ``top_logprobs``."""
    if not isinstance(rows, list):
        return None
    return tuple(
        TokenLogprob(
            str(row["token"]),
            float(row["logprob"]),
            tuple(Alternative(str(one["token"]), float(one["logprob"])) for one in objects(row.get("top_logprobs"))),
        )
        for row in objects(rows)
        if row.get("logprob") is not None
    )


def problem(status: int, body: Any) -> ProviderProblem:
    """What an error says, in any of the shapes that are about."""
    message, code, named = _said(body)
    parameter = _parameter(message, code, named) if status in {400, 422} else None
    return ProviderProblem(
        message or f"HTTP {status} without a word", code, parameter, _retry_info(body), _status_in(body)
    )


def _status_in(body: Any) -> int | None:
    """The status of HTTP that an error names, as servers do that pass on what another one said."""
    error = items(items(body).get("error"))
    named = (number(error.get(name)) for name in ("code", "status"))
    return next((status for status in named if status is not None and 400 <= status < 600), None)


def _retry_info(body: Any) -> float | None:
    """The seconds of a ``google.rpc.RetryInfo`` among the details of an error."""
    error = items(items(body[0] if isinstance(body, list) and body else body).get("error"))
    for detail in objects(error.get("details")):
        delay = detail.get("retryDelay")
        if str(detail.get("@type", "")).endswith("google.rpc.RetryInfo") and isinstance(delay, str):
            return longest_wait(duration(delay))
    return None


def _said(body: Any) -> tuple[str, str | None, str | None]:
    """The message, the code and the named parameter of an error body."""
    if isinstance(body, list) and body:  # Gemini streams begin so
        return _said(body[0])
    if not isinstance(body, Mapping):
        return str(body or "").strip()[:2000], None, None
    error = body.get("error")
    while isinstance(error, Mapping) and isinstance(error.get("error"), Mapping):
        error = error["error"]
    if isinstance(error, Mapping):
        code = telling_code(error.get(name) for name in ("code", "status", "type"))
        return _passed_on(error), code, _text(error.get("param"))
    if isinstance(error, str):
        return error, telling_code(body.get(name) for name in ("code", "type")), _text(body.get("param"))
    if details := objects(body.get("detail")):  # servers on FastAPI
        path = details[0].get("loc")
        named = ".".join(str(part) for part in path if part != "body") if isinstance(path, list) else None
        return str(details[0].get("msg")), _text(details[0].get("type")), named
    said = body.get("message") or body.get("detail") or body
    return str(said), telling_code(body.get(name) for name in ("code", "type")), _text(body.get("param"))


def _passed_on(error: Mapping[str, Any]) -> str:
    """The message of an error, with that of the server behind a router (OpenRouter) where there is one."""
    message, raw = str(error.get("message") or error), _text(items(error.get("metadata")).get("raw"))
    if raw is None:
        return message
    try:
        behind = _said(json.loads(raw))[0]
    except ValueError:
        behind = raw
    return f"{message}: {behind[:2000]}"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


_QUOTED = r"[\"'`]([\w.\[\]]+)[\"'`]"
_UNSUPPORTED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:unsupported|unknown|unrecognized) (?:parameter|argument|field|name)s?:? {_QUOTED}",
        r"unrecognized request arguments? supplied: ([\w.]+)",
        rf"{_QUOTED} (?:is|are) (?:not supported|not allowed|deprecated|not permitted|unsupported)",
        rf"does(?: not|n't) support (?:the )?(?:parameters?:? )?\[?{_QUOTED}",
        r"does not support (?:the )?(\w+) parameter",
        r"^([\w.]+): extra inputs are not permitted",
        rf"{_QUOTED} and [\"'`]top_p[\"'`] cannot both be specified",
        r"(?:does not support|not allowed to request) (thinking|logprobs|tools)\b",
        r"^([\w ]+?) (?:is|are) not (?:supported|enabled|allowed|available) (?:for|with|by|on|in) (?:this|the|model)",
    )
)
_SAMPLERS = re.compile(r"(^|[._])(temperature|top_?p|top_?k|(top_?)?logprobs|seed)$", re.IGNORECASE)
_WORDS = {
    "thinking level": "thinkingLevel",
    "thinking budget": "thinkingBudget",
    "thinking": "thinking",
    "logprobs": "logprobs",
    "json mode": "responseMimeType",
    "structured output": "response_format",
    "structured outputs": "response_format",
    "temperature": "temperature",
}


def _parameter(message: str, code: str | None, named: str | None) -> str | None:
    """The field that the model does not take.

    A value that it does not take is another matter: the user is to choose another one. But for a sampler it means that
    the model takes its own value alone, and then nothing is lost without it.
    """
    if code == "unsupported_value" or re.match(r"unsupported value", message, re.IGNORECASE):
        found = named or next(iter(re.findall(_QUOTED, message)), None)
        return found if found and _SAMPLERS.search(found) else None
    if code in {"unsupported_parameter", "unknown_parameter", "extra_forbidden"} and named:
        return named
    for pattern in _UNSUPPORTED:
        if match := pattern.search(message):
            found = match[1].strip()
            at = re.search(r"at '([\w.]+)'", message)
            spoken = _WORDS.get(found.lower(), found)
            return f"{at[1]}.{spoken}" if at else spoken if " " not in spoken else None
    return None
