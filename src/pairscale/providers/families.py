"""What families of models can do, by the patterns of their names.

Names change monthly, families less often. A model that no pattern knows gets what most models take; a user may set any
field for a model, and a server that names a field its model does not take is believed (see ``Provider.without``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Literal, get_args

from pairscale.errors import InputError
from pairscale.options import require_choice

__all__ = ["LEVELS", "Capabilities", "When", "capabilities"]

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The words of ``LLMRequest.reasoning``, the least first; ``enabled`` is the eighth: think, as the family does."""

When = Literal["always", "unthinking", "never"]
"""When a model takes a parameter: always, only while it does not think, or never."""


Thinking = Literal["none", "effort", "level", "budget", "adaptive", "switch", "fixed", "any"]
Structured = Literal["schema", "tool", "none"]
_WORDS = {"thinking": Thinking, "temperature": When, "logprobs": When, "structured": Structured}


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model takes.

    Attributes:
        family: what the pattern is called; ``unknown`` for none.
        thinking: how it is told to think: ``none`` (it cannot), ``effort`` (a word), ``level`` (Gemini's word),
            ``budget`` (a number of tokens), ``adaptive`` (Anthropic's own measure, and a word), ``switch`` (on or off),
            ``fixed`` (it always thinks, and cannot be told), ``any`` (unknown: what is asked is sent).
        levels: the words of ``reasoning`` that it takes, the least first.
        thinks_unasked: whether it thinks when nothing is said.
        budget: the least and the most tokens of a thinking budget; None when it takes no number.
        temperature: when it takes a temperature, ``top_p`` and ``top_k``.
        thinking_temperature: the temperature to send by default while it thinks; None for none. Else it is 0.
        one_sampler: whether a temperature and ``top_p`` exclude each other.
        logprobs: when it gives log-probabilities.
        structured: how it is held to given answers: by a ``schema``, by a forced ``tool``, or ``none``.
        think_tags: whether thoughts may stand in the answer, before ``</think>``.
        endpoint: the one of OpenAI's endpoints that it is on, when it is on one alone.
    """

    family: str = "unknown"
    thinking: Thinking = "any"
    levels: tuple[str, ...] = LEVELS
    thinks_unasked: bool = False
    budget: tuple[int, int] | None = None
    temperature: When = "always"
    thinking_temperature: float | None = None
    one_sampler: bool = False
    logprobs: When = "always"
    structured: Structured = "schema"
    think_tags: bool = False
    endpoint: Literal["chat.completions", "responses"] | None = None


def capabilities(provider: str, model: str, overrides: Mapping[str, Any] | None = None) -> Capabilities:
    """What ``model`` takes at ``provider``.

    Args:
        provider: ``openai``, ``anthropic``, ``gemini``, ``together``, ``ollama`` or ``compatible``.
        model: its name there.
        overrides: fields of :class:`Capabilities` that the user knows better.

    Raises:
        InputError: when an override is not a field, or has a value that it cannot have.

    Example:
        >>> capabilities("openai", "gpt-5.1").levels
        ('none', 'low', 'medium', 'high')
        >>> capabilities("openai", "gpt-5.1", {"temperature": "never"}).temperature
        'never'
    """
    found = _found(provider, model)
    if not overrides:
        return found
    known = [field.name for field in fields(Capabilities)]
    if strange := sorted(set(overrides) - set(known)):
        raise InputError(f"a model has no capability {', '.join(strange)}; there are {', '.join(known)}")
    for name, kind in _WORDS.items():
        if name in overrides:
            require_choice(overrides[name], name, get_args(kind))
    lists = {name: tuple(overrides[name]) for name in ("levels", "budget") if overrides.get(name) is not None}
    more: dict[str, Any] = {**overrides, **lists}
    return replace(found, **more)


@cache
def _found(provider: str, model: str) -> Capabilities:
    name = model.lower().removeprefix("ft:").removeprefix("models/")
    for pattern, found in _TABLES.get(provider, ()):
        if pattern.search(name):
            return found
    return _UNKNOWN.get(provider, Capabilities())


def _table(*rows: tuple[str, Capabilities]) -> tuple[tuple[re.Pattern[str], Capabilities], ...]:
    return tuple((re.compile(pattern), found) for pattern, found in rows)


def _gpt(family: str, levels: str, **more: Any) -> Capabilities:
    return Capabilities(family=family, thinking="effort", levels=tuple(levels.split()), **more)


def _refuses(family: str, levels: str, **more: Any) -> Capabilities:
    """A model that always thinks, and takes neither a temperature nor log-probabilities."""
    return _gpt(family, levels, thinks_unasked=True, temperature="never", logprobs="never", **more)


_PLAIN = Capabilities(family="gpt", thinking="none")

_OPENAI = _table(
    (r"(^|/)(gpt-3|gpt-4-|gpt-4$)", replace(_PLAIN, family="gpt-4", structured="none")),
    (r"(^|/)(chatgpt-4o|gpt-4|gpt-5-chat)", replace(_PLAIN, family="gpt-4o")),
    (r"(^|/)gpt-oss", _gpt("gpt-oss", "low medium high", thinks_unasked=True, think_tags=True)),
    (r"(^|/)o1-(mini|preview)", replace(_refuses("o1-mini", ""), thinking="fixed", structured="none")),
    (r"(^|/)o\d", _refuses("o", "low medium high")),
    (r"(^|/)gpt-5-pro", _refuses("gpt-5-pro", "high", endpoint="responses")),
    (r"(^|/)gpt-\d+(\.\d+)?-pro", _refuses("gpt-pro", "medium high xhigh max", endpoint="responses")),
    (r"(^|/)gpt-\d+(\.\d+)?-codex", _refuses("gpt-codex", "low medium high xhigh", endpoint="responses")),
    (r"(^|/)gpt-5\.\d-chat", _refuses("gpt-5-chat", "medium")),
    (r"(^|/)gpt-5(-|$)", _refuses("gpt-5", "minimal low medium high")),
    (r"(^|/)gpt-5\.1(-|$)", _gpt("gpt-5.1", "none low medium high", temperature="unthinking", logprobs="unthinking")),
    (
        r"(^|/)gpt-5\.[234](-|$)",
        _gpt("gpt-5.2", "none low medium high xhigh", temperature="unthinking", logprobs="unthinking"),
    ),
    (
        r"(^|/)gpt-([5-9]|\d\d)",
        _gpt(
            "gpt-5.5",
            "none low medium high xhigh max",
            thinks_unasked=True,
            temperature="unthinking",
            logprobs="unthinking",
        ),
    ),
)


def _claude(family: str, **more: Any) -> Capabilities:
    usual: dict[str, Any] = {"logprobs": "never", "levels": _BUDGET_LEVELS}
    return Capabilities(family=family, **usual | more)


_BUDGET_LEVELS = ("none", "minimal", "low", "medium", "high")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_BY_BUDGET: dict[str, Any] = {"thinking": "budget", "budget": (1024, 128_000), "thinking_temperature": 1.0}
_BY_EFFORT: dict[str, Any] = {"thinking": "adaptive", "temperature": "never", "levels": ("none", *_EFFORTS)}

_ANTHROPIC = _table(
    (r"claude-3-7", _claude("claude-3.7", structured="tool", **_BY_BUDGET)),
    (r"claude-(instant|[23]\b)", _claude("claude-3", thinking="none", structured="tool")),
    (r"claude-((opus|sonnet)-4(-0|-2025\d+)?|4-(opus|sonnet)(-2025\d+)?)$", _claude(
        "claude-4", structured="tool", **_BY_BUDGET)),
    (r"claude-(\w+-4-[1-5]|4-[1-5]-\w+)(-\d+|$)", _claude("claude-4.5", one_sampler=True, **_BY_BUDGET)),
    (r"claude-(\w+-4-6|4-6-\w+)", _claude(
        "claude-4.6", thinking="adaptive", levels=("none", "low", "medium", "high", "max"), budget=(1024, 128_000),
        temperature="unthinking", one_sampler=True)),
    (r"claude-(\w+-4-[789]|4-[789]-\w+)", _claude("claude-4.7", **_BY_EFFORT)),
    (r"claude-(\w+-5|5-\w+)$", _claude("claude-5", thinks_unasked=True, **_BY_EFFORT)),
    (r"claude-", _claude("claude-5.5", thinks_unasked=True, **_BY_EFFORT | {"levels": _EFFORTS})),
)  # fmt: skip


def _gemini(family: str, **more: Any) -> Capabilities:
    return Capabilities(family=family, **more)


_GEMINI = _table(
    (r"gemini-2\.5-pro", _gemini(
        "gemini-2.5-pro", thinking="budget", levels=("minimal", "low", "medium", "high"), budget=(128, 32_768),
        thinks_unasked=True)),
    (r"gemini-2\.5-flash-lite", _gemini(
        "gemini-2.5-flash-lite", thinking="budget", levels=_BUDGET_LEVELS, budget=(512, 24_576))),
    (r"gemini-2\.5", _gemini(
        "gemini-2.5-flash", thinking="budget", levels=_BUDGET_LEVELS, budget=(1, 24_576), thinks_unasked=True)),
    (r"gemini-(1|2)\b", _gemini("gemini-2", thinking="none")),
    (r"gemini-3-pro", _gemini("gemini-3-pro", thinking="level", levels=("low", "high"), thinks_unasked=True)),
    (r"gemini-(\d+(\.\d+)?-)?flash", _gemini(
        "gemini-3-flash", thinking="level", levels=("minimal", "low", "medium", "high"), thinks_unasked=True)),
    (r"gemini-(\d+(\.\d+)?-)?", _gemini(
        "gemini-3.1-pro", thinking="level", levels=("low", "medium", "high"), thinks_unasked=True)),
    (r"gemma", _gemini("gemma", thinking="none")),
)  # fmt: skip


def _open(family: str, **more: Any) -> Capabilities:
    usual: dict[str, Any] = {"think_tags": True, "thinking_temperature": 0.0}
    return Capabilities(family=family, **usual | more)


_SWITCH: dict[str, Any] = {"thinking": "switch", "levels": ("none",)}
_FIXED: dict[str, Any] = {"thinking": "fixed", "levels": (), "thinks_unasked": True}
_EFFORT: dict[str, Any] = {"thinking": "effort", "levels": ("low", "medium", "high"), "thinks_unasked": True}

_SHARED = (
    (r"gpt-oss", _open("gpt-oss", **_EFFORT)),
    (r"deepseek-v(3\.[1-9]|[4-9])|deepseek-v3p1", _open("deepseek-v3.1", **_SWITCH)),
    (r"deepseek-(v|coder|llm)", _open("deepseek", thinking="none", think_tags=False)),
    (r"(qwen3|qwen-3).*instruct", _open("qwen3-instruct", thinking="none", think_tags=False)),
    (r"(qwen3|qwen-3).*thinking|qwq", _open("qwen3-thinking", thinking_temperature=0.6, **_FIXED)),
    (r"kimi.*(thinking)", _open("kimi-thinking", **_FIXED)),
    (r"kimi-k2-instruct|kimi-k2$", _open("kimi-k2", thinking="none", think_tags=False)),
    (r"kimi|glm-(4\.[5-9]|[5-9])|glm4\.[5-9]", _open("kimi-glm", thinks_unasked=True, **_SWITCH)),
    (r"llama|mistral|mixtral|gemma|phi-?[34]\b", _open("open", thinking="none", think_tags=False)),
)

_TOGETHER = _table(
    (r"deepseek-r1", _open("deepseek-r1", thinking_temperature=0.6, **_FIXED)),
    (r"qwen-?3", _open("qwen3", thinks_unasked=True, thinking_temperature=0.6, **_SWITCH)),
)
_OPEN = _table(*_SHARED)

# Ollama thinks unasked with every model that can, so those that can be told not to are told.
_OLLAMA = _table(
    (r"deepseek-r1", _open("deepseek-r1", thinks_unasked=True, **_SWITCH)),
    (r"qwen-?3", _open("qwen3", thinks_unasked=True, thinking_temperature=0.6, **_SWITCH)),
    (r"qwen", _open("qwen", thinking="none", think_tags=False)),
)

# The rows of Qwen 3 as such stand behind those of its instruct and thinking variants.
_TABLES = {
    "openai": _OPENAI,
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI,
    "together": (_TOGETHER[0], *_OPEN, *_TOGETHER[1:]),
    "ollama": (_OLLAMA[0], *_OPEN, *_OLLAMA[1:]),
    "compatible": (_OPENAI[2], *(row for row in _OPENAI if row is not _OPENAI[2]), *_TOGETHER[:1], *_OPEN),
}
_UNKNOWN = {
    "openai": Capabilities(),
    "anthropic": _claude("unknown", **_BY_BUDGET | {"levels": LEVELS}),
    "gemini": _gemini("unknown", thinking="any"),
    "together": _open("unknown", thinking="any"),
    "ollama": _open("unknown", thinking="any"),
    "compatible": _open("unknown", thinking="any", thinking_temperature=None),
}
