"""What the modules of the providers share when they read a reply: its parts, its thoughts, its errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pairscale.core.failures import telling_code
from pairscale.providers._write import field_named
from pairscale.providers.base import Alternative, ProviderProblem, ReplyError, TokenLogprob
from pairscale.providers.limits import duration, longest_wait

_MOST = 2**53
"""The largest count that a run file can hold."""


def field(document: Any, *path: str) -> Any:
    """What is in a JSON document under these names, one inside the other; None where there is nothing."""
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


def text(document: Any, *path: str) -> str | None:
    """A text in a JSON document; None when there is none, or an empty one."""
    value = field(document, *path)
    return value if isinstance(value, str) and value else None


def amount(document: Any, *path: str) -> float | None:
    """A number from 0 in a JSON document; None when there is none."""
    value = field(document, *path)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        return None
    return float(value)


def number(document: Any, *path: str) -> int | None:
    """A whole number from 0 in a JSON document; None when there is none."""
    value = amount(document, *path)
    return None if value is None else int(value)


def objects(document: Any, *path: str) -> list[Mapping[str, Any]]:
    """The objects of a list in a JSON document."""
    rows = field(document, *path)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def joined_text(parts: Iterable[Any], between: str = "") -> str | None:
    """The texts among ``parts``, joined; None when there is none."""
    return between.join(part for part in parts if isinstance(part, str) and part) or None


def refused(body: Any, what: str) -> ValueError:
    """Why a reply that came with success is none."""
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


def visible(logprobs: tuple[TokenLogprob, ...] | None, content: str, answer: str) -> tuple[TokenLogprob, ...] | None:
    """The tokens of the answer alone, when thoughts stood before it in ``content``."""
    if logprobs is None or content == answer:
        return logprobs
    if _CLOSE not in content:
        return ()
    end = content.rfind(_CLOSE) + len(_CLOSE)
    kept = []
    position = 0
    for token in logprobs:
        position += len(token.token)
        if position > end:
            kept.append(token)
    return tuple(kept)


def token_logprobs(rows: Any) -> tuple[TokenLogprob, ...] | None:
    """Tokens as OpenAI, and Ollama after it, give them: ``token``, ``logprob`` and ``top_logprobs``."""
    if not isinstance(rows, list):
        return None
    return tuple(
        TokenLogprob(
            str(row["token"]),
            float(row["logprob"]),
            tuple(Alternative(str(top["token"]), float(top["logprob"])) for top in objects(row, "top_logprobs")),
        )
        for row in objects(rows)
        if row.get("logprob") is not None
    )


def problem(status: int, body: Any) -> ProviderProblem:
    """What an error says, in any of the shapes that are about."""
    if isinstance(body, list) and body:  # Gemini streams begin so
        body = body[0]
    message, code, named = _parts(body)
    parameter = _parameter(message, code, named) if status in {400, 422} else None
    message = message or f"HTTP {status} without a word"
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
        message, error = error, body
    elif details := objects(body, "detail"):  # servers on FastAPI
        path = details[0].get("loc")
        named = ".".join(str(part) for part in path if part != "body") if isinstance(path, list) else None
        return str(details[0].get("msg")), text(details[0], "type"), named
    else:
        message, error = str(body.get("message") or body.get("detail") or body), body
    return message, telling_code(error.get(name) for name in ("code", "status", "type")), text(error, "param")


def _passed_on(error: Mapping[str, Any]) -> str:
    """The message of an error, with that of the server behind a router (OpenRouter) where there is one."""
    message = str(error.get("message") or error)
    raw = text(error, "metadata", "raw")
    if raw is None:
        return message
    try:
        behind = _parts(json.loads(raw))[0]
    except ValueError:
        behind = raw
    return f"{message}: {behind[:2000]}"


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
