"""Keys: where they come from, and how they are kept out of everything that is written.

A key is read from the environment or given as an argument, sent in a header, and written nowhere: whatever comes back
from a provider passes through a :class:`Redactor` before it is logged, raised or stored.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.core.errors import InputError
from pairscale.providers.catalog import presets

if TYPE_CHECKING:
    from pairscale.providers.base import Provider


KEY_VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "together": "TOGETHER_API_KEY",
}
"""The environment variable of each provider's key."""

_SECOND_NAMES = {"gemini": "GOOGLE_API_KEY"}
"""What the vendor's own SDK reads as well; the name above goes before it."""


_OPTIONAL = ("PAIRSCALE_API_KEY", "OLLAMA_API_KEY")
"""The environment variables of keys that self-hosted servers may need."""

ApiKey: TypeAlias = "str | Callable[[], str | Awaitable[str]]"
"""A key, or a callable that gives a token: plain or ``async``, called before every request, so that it can renew it."""


def key_in_environment(provider: str) -> tuple[str, str | None]:
    """A provider's key in the environment, and the variable that holds it; an empty key and None when unset."""
    for name in (KEY_VARIABLES.get(provider), _SECOND_NAMES.get(provider)):
        value = os.environ.get(name or "", "").strip()
        if value:
            return value, name
    return "", None


_HIDDEN = "[key]"
_SHORTEST = 6  # shorter ones would hide ordinary words
_ESCAPED_BLANK = re.compile(r'\\[nrtbf"\\]')
_BEGINNINGS = ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "tgp", "key-", "key_", "AIza", "Bearer")
_LOOKS_LIKE = re.compile(
    r"\b(?:sk|pk|rk|tgp|key|AIza)[-_](?=[A-Za-z_\-]*\d)[A-Za-z0-9_\-]{16,}|\bAIza[A-Za-z0-9_\-]{20,}|(?<=Bearer )\S{8,}"
)


class Key:
    """A key that is hidden when it is printed; :meth:`reveal` is for the header alone."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "<Key: hidden>"

    def __reduce__(self) -> Any:
        raise TypeError("a key cannot be pickled")

    def reveal(self) -> str:
        """The key itself."""
        return self._value


def find_key(provider: Provider, api_key: str | None) -> Key | None:
    """The key of a provider: the one given, or that of the environment; None when it needs none.

    Raises:
        InputError: that names the variable, when there is no key or it cannot be one.
    """
    if api_key is not None and not isinstance(api_key, str):
        raise InputError(f"api_key must be a text, or a function that gives one, not {type(api_key).__name__}")
    variable = provider.key_variable
    value = (api_key or "").strip() or key_in_environment(provider.name)[0]
    if not value:
        name = variable or getattr(provider, "optional_key_variable", None) or ""
        value = os.environ.get(name, "").strip()
    if value:
        if not may_be_key(value):
            where = variable or "api_key"
            raise InputError(f"the key for {provider.name} ({where}) has blanks or characters that no key has")
        return Key(value)
    if variable is None:
        return None
    how = _in_a_shell(variable)
    raise InputError(f"there is no key for {provider.name}; set {variable} ({how})")


def may_be_key(value: object) -> bool:
    """Whether a header can carry it."""
    return isinstance(value, str) and value.isascii() and value.isprintable() and bool(value) and " " not in value


def _in_a_shell(variable: str, system: str = os.name) -> str:
    """How a variable is set in a terminal, as it is typed there."""
    if system == "nt":
        return f'PowerShell: $env:{variable} = "…"; cmd: set {variable}=…'
    return f"export {variable}=…"


class Redactor:
    """Takes keys out of whatever is about to be written or shown: plain, escaped as in an address, and in base64.

    Args:
        keys: keys in use; those of the environment are always known.
    """

    def __init__(self, keys: Iterable[Key | None] = ()) -> None:
        names = {*KEY_VARIABLES.values(), *_SECOND_NAMES.values(), *_OPTIONAL}
        names |= {preset.key_variable for preset in presets().values() if preset.key_variable}
        self._known = {os.environ.get(name, "").strip() for name in names}
        self._forms: list[tuple[str, list[str], re.Pattern[str]]] = []
        self._learn(key.reveal() for key in keys if key is not None)

    def learn(self, key: Key) -> None:
        """Take another key out from now on, such as a token that was renewed."""
        if key.reveal() not in self._known:
            self._learn([key.reveal()])

    def _learn(self, keys: Iterable[str]) -> None:
        self._known |= set(keys)
        longest_first = sorted(self._known, key=len, reverse=True)
        self._forms = [(key, _in_base64(key), _escaped(key)) for key in longest_first if len(key) >= _SHORTEST]

    def text(self, text: str) -> str:
        """The text without keys, nor anything that looks like one."""
        for key, encoded, escaped in self._forms:
            text = text.replace(key, _HIDDEN)
            if "%" in text:
                text = escaped.sub(_HIDDEN, text)
            for core in encoded:
                if core in text:  # in base64 with something around it, such as user:key
                    text = re.sub(rf"[\w+/-]*{re.escape(core)}[\w+/-]*={{0,2}}", _HIDDEN, text, flags=re.ASCII)
        return _LOOKS_LIKE.sub(_HIDDEN, text)

    def document(self, content: bytes) -> Any:
        """A JSON document as bytes, parsed and without keys; the text where it is none."""
        text = content.decode("utf-8", "replace")
        try:
            document = json.loads(text)
            return document if self._is_clean(text) else self.value(document)
        except (ValueError, RecursionError):
            return self.text(text)

    def _is_clean(self, text: str) -> bool:
        """Whether JSON certainly holds no key; False means that every text in it has to be checked."""
        if "\\" in text:
            text = _ESCAPED_BLANK.sub(" ", text)
        if "\\" in text or "%" in text or any(beginning in text for beginning in _BEGINNINGS):
            return False
        return not any(part in text for key, encoded, _ in self._forms for part in (key, *encoded))

    def line(self, content: bytes) -> bytes:
        """A line of a file without keys; a line that holds none is returned unchanged, byte for byte."""
        text = content.decode("utf-8", "surrogateescape")
        try:
            document = json.loads(text)
            clean = self.value(document)
        except (ValueError, RecursionError):
            return self.text(text).encode("utf-8", "surrogateescape")
        return content if clean == document else json.dumps(clean).encode() + b"\n"

    def value(self, value: Any) -> Any:
        """The same for all texts of a JSON document."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


def _escaped(key: str) -> re.Pattern[str]:
    """A key as in an address, some or all of its letters escaped, also twice: ``-``, ``%2d``, ``%252D``."""
    return re.compile("".join(f"(?:{re.escape(letter)}|(?i:%(?:25)*{ord(letter):02x}))" for letter in key))


def _in_base64(key: str) -> list[str]:
    """The letters of base64 that are a key's own, wherever it begins within a group of three bytes."""
    cores = []
    for before in range(3):
        written = base64.b64encode(b"\0" * before + key.encode()).decode("ascii")
        core = written[-(-before * 8 // 6) : (before + len(key)) * 8 // 6]
        cores += [core, core.replace("+", "-").replace("/", "_")]
    return list(dict.fromkeys(cores))
