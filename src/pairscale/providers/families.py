"""What families of models can do, by the patterns of their names.

Names change monthly, families less often, so the families are rows of a data file (``data/providers.json``), to which
users add their own (``pairscale providers add``). A model that no row knows gets what most models take; a user may set
any field for a model, and a server that names a field its model does not take is believed (see ``Provider.without``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache, partial
from typing import Any, Literal, get_args

from pairscale.core.errors import InputError
from pairscale.core.options import require_choice, require_flag, require_int, require_list, require_number, require_text
from pairscale.providers.data_files import Stamp, bundled, own_document, own_file, own_stamp, require_pattern

__all__ = [
    "LEVELS",
    "Capabilities",
    "FamilyRow",
    "When",
    "capabilities",
    "family_row",
    "family_rows",
    "require_families",
    "rules_of",
]

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The words of ``LLMRequest.reasoning``, the least first; ``enabled`` is the eighth: think, as the family does."""

When = Literal["always", "unthinking", "never"]
"""When a model takes a parameter: always, only while it does not think, or never."""


Thinking = Literal["none", "effort", "level", "budget", "adaptive", "switch", "fixed", "any"]
Structured = Literal["schema", "tool", "none"]
Off = Literal["disabled", "between_tools"]
_WORDS = {"thinking": Thinking, "temperature": When, "logprobs": When, "structured": Structured, "off": Off}
_FLAGS = ("thinks_unasked", "one_sampler", "think_tags")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model takes.

    Attributes:
        family: name of the row; ``unknown`` for none.
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
        off: Anthropic's word for thinking that is turned off.
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
    off: Off = "disabled"


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """A row of the data file: what models of some providers take.

    Attributes:
        providers: whose models.
        model: regular expression that is searched for in the model's name, in small letters.
        able: what they take.
        as_of: date of the row.
        source: where it comes from.
        is_own: whether it is the user's own.
    """

    providers: tuple[str, ...]
    model: str
    able: Capabilities
    as_of: str | None = None
    source: str | None = None
    is_own: bool = False


_FIELDS = [field.name for field in fields(Capabilities)]


def capabilities(provider: str, model: str, overrides: Mapping[str, Any] | None = None) -> Capabilities:
    """What ``model`` takes at ``provider``.

    Args:
        provider: the provider's name.
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
    found = family_row(provider, model).able
    return replace(found, **_checked(overrides)) if overrides else found


def rules_of(provider: str, overrides: Mapping[str, Any]) -> Callable[[str], Capabilities]:
    """:func:`capabilities` for a provider that is in use: the rules of a model are read once, and stay the same."""
    return cache(partial(capabilities, provider, overrides=overrides))


def family_row(provider: str, model: str) -> FamilyRow:
    """The row that says what a model takes.

    Raises:
        InputError: the user's own file is not right.
    """
    return _row(provider, model, own_stamp("providers"))


@lru_cache(maxsize=1024)
def _row(provider: str, model: str, stamp: Stamp | None) -> FamilyRow:
    return _first(_rows(stamp), provider, model)


def _first(rows: Sequence[FamilyRow], provider: str, model: str) -> FamilyRow:
    """The first row of the provider that knows the model; then, for what speaks like OpenAI, that of ``compatible``."""
    name = model.lower().removeprefix("ft:").removeprefix("models/")
    for which in (provider, *(["compatible"] if provider not in _OWN_RULES else [])):
        for row in rows:
            if which in row.providers and re.search(row.model, name):
                return row
    return FamilyRow((provider,), "", Capabilities())


_OWN_RULES = frozenset({"openai", "anthropic", "gemini", "together", "ollama"})


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of :class:`Capabilities` with their values.

    Raises:
        InputError: one is not a field, or has a value that it cannot have.
    """
    if strange := sorted(set(given) - set(_FIELDS)):
        raise InputError(f"a model has no capability {', '.join(strange)}; there are {', '.join(_FIELDS)}")
    for name, kind in _WORDS.items():
        if name in given:
            require_choice(given[name], name, get_args(kind))
    for name in _FLAGS:
        if name in given:
            require_flag(given[name], name)
    found = dict(given)
    if "family" in given:
        require_text(given["family"], "family")
    if given.get("endpoint") is not None:
        require_choice(given["endpoint"], "endpoint", ("chat.completions", "responses"))
    if "levels" in given:
        found["levels"] = tuple(require_list(given["levels"], "levels", require_choice, LEVELS))
    if given.get("thinking_temperature") is not None:
        require_number(given["thinking_temperature"], "thinking_temperature", least=0, most=2)
    if given.get("budget") is not None:
        ends = tuple(require_list(given["budget"], "budget", require_int, least=0))
        if len(ends) != 2 or ends[0] > ends[1]:
            raise InputError("budget must be the least and the most tokens, such as [1024, 128000]")
        found["budget"] = ends
    return found


def require_families(table: Mapping[str, Any], where: str, *, is_own: bool = False) -> list[FamilyRow]:
    """The rows of ``models`` of a document.

    Raises:
        InputError: one is not right; the message names it.
    """
    rows = table.get("models", [])
    if not isinstance(rows, list):
        raise InputError(f"{where}: 'models' must be a list of rows")
    return [_row_of(row, table, f"{where}: models: row {number}", is_own) for number, row in enumerate(rows, 1)]


def _row_of(row: Any, table: Mapping[str, Any], where: str, is_own: bool) -> FamilyRow:
    if not isinstance(row, Mapping) or "provider" not in row or "model" not in row:
        raise InputError(f"{where} must be an object with provider and model, not {row!r:.60}")
    given = {name: value for name, value in row.items() if name not in {"provider", "model", "as_of", "source"}}
    try:
        named = row["provider"] if isinstance(row["provider"], list) else [row["provider"]]
        providers = tuple(require_text(one, "provider") for one in named)
        able = Capabilities(**_checked(given))
        pattern = require_pattern(row["model"], "model")
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    as_of, source = (row.get(name, table.get(name)) for name in ("as_of", "source"))
    return FamilyRow(providers, pattern, able, as_of, source, is_own)


@lru_cache(maxsize=4)
def _rows(stamp: Stamp | None) -> tuple[FamilyRow, ...]:
    own = None if stamp is None else own_document("providers")
    mine = [] if own is None else require_families(own, str(own_file("providers")), is_own=True)
    return (*mine, *require_families(bundled("providers"), "the bundled providers"))


def family_rows() -> Sequence[FamilyRow]:
    """All rows, the user's own before the bundled ones.

    Raises:
        InputError: the user's own file is not right.
    """
    return _rows(own_stamp("providers"))
