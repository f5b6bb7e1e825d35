"""Keys: where they come from, and that they go nowhere else.

A key is read from the environment or given as an argument, sent in a header, and written nowhere: whatever comes back
from a provider passes through a :class:`Redactor` before it is logged, raised or stored.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pairscale.errors import InputError

if TYPE_CHECKING:
    from pairscale.providers.base import Provider

__all__ = ["KEY_VARIABLES", "Key", "Redactor", "find_key", "key_in_environment"]

KEY_VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "together": "TOGETHER_API_KEY",
}
"""The environment variable of each provider's key."""

_SECOND_NAMES = {"gemini": "GOOGLE_API_KEY"}
"""What the vendor's own SDK reads as well; the name above goes before it."""


def key_in_environment(provider: str) -> tuple[str, str | None]:
    """A provider's key in the environment, and the variable that it stands in; an empty one and None when unset."""
    for name in (KEY_VARIABLES.get(provider), _SECOND_NAMES.get(provider)):
        if name is not None and (value := os.environ.get(name, "").strip()):
            return value, name
    return "", None


_HIDDEN = "[key]"
_SHORTEST = 6  # shorter ones would hide ordinary words
_LOOKS_LIKE = re.compile(
    r"\b(?:sk|pk|rk|tgp|key|AIza)[-_](?=[A-Za-z_\-]*\d)[A-Za-z0-9_\-]{16,}|\bAIza[A-Za-z0-9_\-]{20,}|(?<=Bearer )\S{8,}"
)
_MAY_BE = (*(f"{word}{sign}" for word in ("sk", "pk", "rk", "tgp", "key") for sign in "-_"), "AIza", "Bearer ")
"""What everything that looks like a key begins with; also right behind an escape, where no word seems to begin."""


class Key:
    """A key that shows itself to nobody who prints it; :meth:`reveal` is for the header alone."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "<Key: hidden>"

    __str__ = __repr__

    def __reduce__(self) -> Any:
        raise TypeError("a key cannot be pickled")

    def reveal(self) -> str:
        """The key itself."""
        return self._value


def find_key(provider: Provider, given: str | Key | None) -> Key | None:
    """The key of a provider: the one given, or that of the environment; None when it needs none.

    Raises:
        InputError: that names the variable, when there is no key or it cannot be one.
    """
    if isinstance(given, Key):
        return given
    variable = provider.key_variable
    found = key_in_environment(provider.name)[0] or os.environ.get(variable or "", "").strip()
    value = (given or "").strip() or found
    if not value:
        if variable is None:
            return None
        how = _in_a_shell(variable)
        raise InputError(f"there is no key for {provider.name}; set {variable} ({how}), or give api_key")
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise InputError(f"the key for {provider.name} ({variable or 'api_key'}) has blanks or letters that no key has")
    return Key(value)


def _in_a_shell(variable: str, system: str = os.name) -> str:
    """How a variable is set in a terminal, as it is typed there."""
    if system == "nt":
        return f'PowerShell: $env:{variable} = "…"; cmd: set {variable}=…'
    return f"export {variable}=…"


class Redactor:
    """Takes keys out of whatever is about to be written or shown.

    Args:
        keys: keys in use; those of the environment are always known.
    """

    def __init__(self, keys: Iterable[Key | None] = ()) -> None:
        known = {key.reveal() for key in keys if key is not None}
        names = (*KEY_VARIABLES.values(), *_SECOND_NAMES.values())
        known |= {os.environ[name].strip() for name in names if os.environ.get(name)}
        self._known = sorted((key for key in known if len(key) >= _SHORTEST), key=len, reverse=True)
        self._signs = ("\\u", "\\/", *_MAY_BE, *self._known)  # without any of them, a document holds no key

    def text(self, text: str) -> str:
        """The text without keys, nor anything that looks like one."""
        for key in self._known:
            text = text.replace(key, _HIDDEN)
        return _LOOKS_LIKE.sub(_HIDDEN, text)

    def document(self, content: bytes) -> Any:
        """A JSON document as bytes, parsed and without keys; the text where it is none.

        Most hold nothing that looks like a key. That is seen at once, unless escapes might hide one.
        """
        text = content.decode("utf-8", "replace")
        try:
            found = json.loads(text)
        except ValueError:
            return self.text(text)
        return self.value(found) if any(sign in text for sign in self._signs) else found

    def value(self, value: Any) -> Any:
        """The same for all texts of a JSON document."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value
