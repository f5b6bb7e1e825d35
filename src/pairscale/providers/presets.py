"""Hosted services and servers that speak OpenAI's chat completions, as rows of a data file.

A row says where a service is, which variable holds its key, and how it spells what others spell differently. One class,
:class:`~pairscale.providers.compatible.Compatible`, speaks to all of them. Users add rows of their own with
``pairscale providers add``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from pairscale.core.errors import InputError
from pairscale.core.options import optional, require_choice, require_flag, require_mapping, require_text
from pairscale.providers.data_files import (
    Stamp,
    bundled,
    merged_rows,
    own_document,
    own_file,
    own_stamp,
    read_document,
    require_date,
    write_own,
)
from pairscale.providers.families import require_families

__all__ = ["Preset", "ReasoningStyle", "add_providers", "presets"]

ReasoningStyle = Literal["effort", "object", "thinking", "template"]
"""How a service is told to think: ``reasoning_effort``; ``reasoning`` as an object; ``thinking`` and an effort; or by
the arguments of the model's chat template."""

_PLACE = re.compile(r"\{([A-Z][A-Z0-9_]*(?:\|[A-Z][A-Z0-9_]*)*)(?:=([^{}]*))?\}")
_PART = re.compile(r"[A-Za-z0-9._:-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A service or a server that speaks OpenAI's chat completions.

    Attributes:
        name: what users write before the colon.
        base_url: its address; ``{VARIABLE}`` stands for an environment variable, ``{ONE|OTHER}`` for the first that is
            set, ``{VARIABLE=value}`` for one with a default.
        base_url_variable: environment variable that replaces the address.
        exceptions: other addresses, by ``VARIABLE=value``.
        key_variable: environment variable of the key.
        key: whether there must be one: ``required`` or ``optional``.
        auth: header of the key: ``bearer`` (``Authorization``) or ``api-key``; tokens of a callable are always sent as
            ``Authorization``.
        headers: further headers of every request.
        max_tokens: name of the field for the most tokens of an answer.
        seed: name of the field for the seed.
        reasoning: how it is told to think.
        switched_on: the effort that means: think as usual.
        is_free: whether its tokens cost nothing, as those of a server of your own.
        cost_in_reply: whether its replies state what they cost.
        note: what to know about it.
        as_of: date of the row.
        source: where it comes from.
        is_own: whether it is the user's own.
    """

    name: str
    base_url: str
    base_url_variable: str | None = None
    exceptions: Mapping[str, str] = field(default_factory=dict[str, str])
    key_variable: str | None = None
    key: Literal["required", "optional"] = "required"
    auth: Literal["bearer", "api-key"] = "bearer"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    seed: Literal["seed", "random_seed"] = "seed"
    reasoning: ReasoningStyle = "effort"
    switched_on: str | None = None
    is_free: bool = False
    cost_in_reply: bool = False
    note: str | None = None
    as_of: str | None = None
    source: str | None = None
    is_own: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The environment variables that its address needs, as they are written in it."""
        return tuple(dict.fromkeys(names for names, default in _PLACE.findall(self.base_url) if not default))

    def address(self) -> str:
        """The address, with the environment's values in their places.

        Raises:
            InputError: that names the variable, when one is not set or cannot be part of an address.
        """
        template = self.base_url
        for condition, other in self.exceptions.items():
            variable, _, value = condition.partition("=")
            default = next((default for names, default in _PLACE.findall(self.base_url) if variable in names), "")
            if (os.environ.get(variable, "").strip() or default) == value:
                template = other
        return _PLACE.sub(self._value, template)

    def _value(self, place: re.Match[str]) -> str:
        names, default = place[1].split("|"), place[2]
        found = next((value for name in names if (value := os.environ.get(name, "").strip())), default)
        if not found:
            raise InputError(f"{self.name} needs {' or '.join(names)} for its address; set it, or give base_url")
        if place.start() == 0:  # the address of the server itself, which is checked like any other
            return found.rstrip("/")
        if not _PART.fullmatch(found):
            raise InputError(f"{names[0]}={found!r} cannot be part of the address of {self.name}")
        return found


_WORDS = {
    name: get_args(kind)
    for name, kind in (
        ("key", Literal["required", "optional"]),
        ("auth", Literal["bearer", "api-key"]),
        ("max_tokens", Literal["max_tokens", "max_completion_tokens"]),
        ("seed", Literal["seed", "random_seed"]),
        ("reasoning", ReasoningStyle),
    )
}
_TEXTS = ("base_url", "base_url_variable", "key_variable", "switched_on", "note", "source")
_FIELDS = frozenset(one.name for one in fields(Preset)) - {"is_own"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


def _preset(row: Any, table: Mapping[str, Any], where: str, is_own: bool) -> Preset:
    """A row as a preset.

    Raises:
        InputError: it is not right; the message says why.
    """
    if not isinstance(row, Mapping) or not {"name", "base_url"} <= set(row):
        raise InputError(f"{where} must be an object with name and base_url")
    if strange := sorted(set(row) - _FIELDS):
        raise InputError(f"{where} has {strange[0]!r}; there are {', '.join(sorted(_FIELDS))}")
    try:
        _require_words(row)
        _require_pairs(row)
        _require_address(row["base_url"])
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    dated = {name: row.get(name, table.get(name)) for name in ("as_of", "source")}
    return Preset(**{**row, **dated, "is_own": is_own})


def _require_words(row: Mapping[str, Any]) -> None:
    if not str(row["name"]).isidentifier() or row["name"] == "add":
        raise InputError(f"name must be of letters, digits and _, and not 'add'; {row['name']!r} is not")
    for name in _TEXTS:
        optional(require_text, row.get(name), name)
    for name in ("key_variable", "base_url_variable"):
        if row.get(name) is not None and not _VARIABLE.fullmatch(row[name]):
            raise InputError(f"{name} must be the name of an environment variable, never a key itself")
    for name, choices in _WORDS.items():
        if name in row:
            require_choice(row[name], name, choices)
    for name in ("is_free", "cost_in_reply"):
        require_flag(row.get(name, False), name)


def _require_pairs(row: Mapping[str, Any]) -> None:
    for name in ("headers", "exceptions"):
        for key, value in require_mapping(row.get(name, {}), name).items():
            require_text(value, f"{name}: {key}")
            if name == "headers" and _SECRET.search(key):
                raise InputError(f"headers: {key} may hold a secret; name its variable as key_variable instead")


def _require_address(template: str) -> None:
    plain = _PLACE.sub("https://x" if template.startswith("{") else "x", template)
    if not re.match(r"https?://[^/\s@]+", plain) or any(sign in plain for sign in "{}@#") or " " in plain:
        raise InputError("base_url is not the address of a server, such as https://host/v1")


def _presets_of(table: Mapping[str, Any], where: str, *, is_own: bool = False) -> list[Preset]:
    rows = table.get("providers", [])
    if not isinstance(rows, list):
        raise InputError(f"{where}: 'providers' must be a list of rows")
    return [_preset(row, table, f"{where}: providers: row {number}", is_own) for number, row in enumerate(rows, 1)]


@lru_cache(maxsize=4)
def _all(stamp: Stamp | None) -> Mapping[str, Preset]:
    found = {one.name: one for one in _presets_of(bundled("providers"), "the bundled providers")}
    if stamp is not None and (own := own_document("providers")) is not None:
        found |= {one.name: one for one in _presets_of(own, str(own_file("providers")), is_own=True)}
    return found


def presets() -> Mapping[str, Preset]:
    """The presets by name, those of the user in place of bundled ones.

    Raises:
        InputError: the user's own file is not right.
    """
    return _all(own_stamp("providers"))


def add_providers(path: Path) -> tuple[Path, int, int]:
    """Add the providers and models of a file to the user's own.

    A provider of the same name, and a model's row of the same provider and pattern, is replaced.

    Args:
        path: a JSON file with ``as_of``, ``source``, and ``providers`` or ``models`` or both.

    Returns:
        The user's own file, how many rows were added, and how many were replaced.

    Raises:
        InputError: it is not right.
    """
    from pairscale.providers.registry import CLASSES, EMBEDDED

    table = read_document(path)
    require_date(table.get("as_of"), f"{path}: as_of")
    if not isinstance(table.get("source"), str) or not table["source"].strip():
        raise InputError(f"{path}: 'source' must say where this comes from")
    if strange := sorted(set(table) - {"as_of", "source", "note", "providers", "models"}):
        raise InputError(f"{path} has {strange[0]!r}; there are providers and models")
    made, families = _presets_of(table, str(path)), require_families(table, str(path))
    for one in made:
        if one.name in CLASSES or one.name in EMBEDDED:
            raise InputError(f"{path}: {one.name} comes with pairscale; give your provider another name")
    if not made and not families:
        raise InputError(f"{path} holds neither providers nor models")
    before, dated = own_document("providers") or {}, {name: table[name] for name in ("as_of", "source")}
    document: dict[str, Any] = {}
    added = replaced = 0
    for name, key in (("providers", _name_of), ("models", _place_of)):
        new = [{**dated, **row} for row in table.get(name, [])]
        old = list(before.get(name, []))
        document[name] = merged_rows(old, new, key)
        added += len(new)
        replaced += len(old) + len(new) - len(document[name])
    return write_own("providers", document), added, replaced


def _name_of(row: Mapping[str, Any]) -> Any:
    return row["name"]


def _place_of(row: Mapping[str, Any]) -> Any:
    return str(row["provider"]), row["model"]
