"""Keys: where they come from, and that they go nowhere else.

A key is read from the environment or given as an argument, sent in a header, and written nowhere: whatever comes back
from a provider passes through a :class:`Redactor` before it is logged, raised or stored.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.core.errors import InputError
from pairscale.providers.catalog import presets

if TYPE_CHECKING:
    from pairscale.providers.base import Provider

__all__ = ["KEY_VARIABLES", "ApiKey", "Key", "Redactor", "find_key", "key_in_environment"]

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
"""The variables of keys that servers of one's own may want."""

ApiKey: TypeAlias = "str | Callable[[], str | Awaitable[str]]"
"""A key, or a callable that gives a token: plain or ``async``, called before every request, so that it can renew it."""


def key_in_environment(provider: str) -> tuple[str, str | None]:
    """A provider's key in the environment, and the variable that it stands in; an empty one and None when unset."""
    for name in (KEY_VARIABLES.get(provider), _SECOND_NAMES.get(provider)):
        if name is not None and (value := os.environ.get(name, "").strip()):
            return value, name
    return "", None


_HIDDEN = "[key]"
_SHORT, _MOST_CLEAN = 40, 200  # letters of a text that is remembered to hold no key, and how many are
_SHORTEST = 6  # shorter ones would hide ordinary words
_LOOKS_LIKE = re.compile(
    r"\b(?:sk|pk|rk|tgp|key|AIza)[-_](?=[A-Za-z_\-]*\d)[A-Za-z0-9_\-]{16,}|\bAIza[A-Za-z0-9_\-]{20,}|(?<=Bearer )\S{8,}"
)
_MAY_BE = (*(f"{word}{sign}" for word in ("sk", "pk", "rk", "tgp", "key") for sign in "-_"), "AIza", "Bearer ")
"""What everything that looks like a key begins with; also right behind an escape, where no word seems to begin."""


_SIGNS = ("\\u", "\\/", *_MAY_BE)
"""Without any of them and without a known key, a document holds no key."""


class Key:
    """A key that is hidden when it is printed; :meth:`reveal` is for the header alone."""

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
    if given is not None and not isinstance(given, str):
        raise InputError(f"api_key must be a text, or a function that gives one, not {type(given).__name__}")
    variable = provider.key_variable
    where = variable or getattr(provider, "optional_key_variable", None) or ""
    found = key_in_environment(provider.name)[0] or os.environ.get(where, "").strip()
    value = (given or "").strip() or found
    if not value:
        if variable is None:
            return None
        how = _in_a_shell(variable)
        raise InputError(f"there is no key for {provider.name}; set {variable} ({how}), or give api_key")
    if not may_be_key(value):
        raise InputError(f"the key for {provider.name} ({variable or 'api_key'}) has blanks or letters that no key has")
    return Key(value)


def may_be_key(value: object) -> bool:
    """Whether a header can carry it."""
    return isinstance(value, str) and value.isascii() and value.isprintable() and bool(value) and " " not in value


def _in_a_shell(variable: str, system: str = os.name) -> str:
    """How a variable is set in a terminal, as it is typed there."""
    if system == "nt":
        return f'PowerShell: $env:{variable} = "…"; cmd: set {variable}=…'
    return f"export {variable}=…"


class _Forms:
    """The ways in which a key may be written: plain, escaped, in hex, and within base64 or base32.

    Letters may be escaped as in an address (also twice), in JSON or in HTML, some or all of them. In base64 and base32
    (also of something before or behind the key, such as ``user:key``), the letters depend on where the key begins; so
    there are three and five forms, each without the letters that its neighbours have a share in.
    """

    def __init__(self, key: str) -> None:
        self.plain = key
        self._escaped = re.compile("".join(map(_escapes, key)))
        self._hex = key.encode().hex()
        self._in_hex = re.compile(re.escape(self._hex), re.IGNORECASE)
        cores = {_core(base64.b64encode, 6, key.encode(), before) for before in range(3)}
        cores |= {core.replace("+", "-").replace("/", "_") for core in cores}
        longer = {_core(base64.b32encode, 5, key.encode(), before) for before in range(5)}
        longer |= {core.lower() for core in longer}
        self._encoded = [
            (sorted(cores), _around(cores, "A-Za-z0-9+/_-", 2)),
            (sorted(longer), _around(longer, "A-Za-z2-7", 6)),
        ]
        self.signs = (key, self._hex, self._hex.upper(), *sorted(cores | longer))

    def is_escaped_in(self, text: str) -> bool:
        """Whether a text holds it escaped as in an address or HTML; every other way holds one of ``signs``."""
        return self._escaped.search(text) is not None

    def hide(self, text: str) -> str:
        """The text without it."""
        text = text.replace(self.plain, _HIDDEN)
        if _may_be_escaped(text):
            text = self._escaped.sub(_HIDDEN, text)
        if self._hex in text or self._hex.upper() in text:
            text = self._in_hex.sub(_HIDDEN, text)
        for cores, pattern in self._encoded:
            if any(core in text for core in cores):
                text = pattern.sub(_HIDDEN, text)
        return text


def _may_be_escaped(text: str) -> bool:
    return "%" in text or "\\" in text or "&" in text


def _escapes(letter: str) -> str:
    r"""A pattern of all ways to write a letter: ``-``, ``%2d``, ``%252D``, ``\u002d``, ``&#45;``, ``&#x2D;``."""
    code = "".join(f"[{digit}{digit.upper()}]" for digit in f"{ord(letter):02x}")
    ways = [re.escape(letter), rf"%(?:25)*{code}", rf"\\+u00{code}", f"&#0*{ord(letter)};", f"&#[xX]0*{code};"]
    if letter == "/":
        ways.append(r"\\+/")
    if (named := html.escape(letter)) != letter:
        ways.append(named)  # &amp;
    return f"(?:{'|'.join(ways)})"


def _around(cores: set[str], letters: str, padding: int) -> re.Pattern[str]:
    """A pattern of whole words that hold one of these."""
    inside = "|".join(map(re.escape, sorted(cores)))
    return re.compile(rf"[{letters}]*(?:{inside})[{letters}]*={{0,{padding}}}")


def _core(encode: Callable[[bytes], bytes], bits: int, key: bytes, before: int) -> str:
    """What is in the code, of letters of so many bits, wherever a key begins ``before`` bytes behind a whole group."""
    written = encode(b"\0" * before + key).decode("ascii")
    return written[-(-before * 8 // bits) : (before + len(key)) * 8 // bits]


class Redactor:
    """Takes keys out of whatever is about to be written or shown: also escaped, in hex, base64 or base32.

    Args:
        keys: keys in use; those of the environment are always known.
    """

    def __init__(self, keys: Iterable[Key | None] = ()) -> None:
        known = {key.reveal() for key in keys if key is not None}
        names = {
            *KEY_VARIABLES.values(),
            *_SECOND_NAMES.values(),
            *_OPTIONAL,
            *(one.key_variable for one in presets().values()),
        }
        self._learn(known | {os.environ[name].strip() for name in names if name and os.environ.get(name)})

    def learn(self, key: Key) -> None:
        """Take another key out from now on, such as a token that was renewed."""
        known = {form.plain for form in self._known}
        if key.reveal() not in known:
            self._learn({*known, key.reveal()})

    def _learn(self, known: set[str]) -> None:
        self._known = [_Forms(key) for key in sorted(known, key=len, reverse=True) if len(key) >= _SHORTEST]
        self._signs = (*_SIGNS, *(sign for key in self._known for sign in key.signs))
        self._clean: set[str] = set()  # short texts without keys that come again and again, such as names of fields

    def _may_hold_keys(self, text: str) -> bool:
        """Whether a text or document may hold a key, as it is or behind escapes; most do not."""
        if any(map(text.__contains__, self._signs)):
            return True
        return ("%" in text or "&" in text) and any(key.is_escaped_in(text) for key in self._known)

    def text(self, text: str) -> str:
        """The text without keys, nor anything that looks like one."""
        if text in self._clean:
            return text
        if not self._may_hold_keys(text):
            if len(text) <= _SHORT and len(self._clean) < _MOST_CLEAN:
                self._clean.add(text)
            return text
        for key in self._known:
            text = key.hide(text)
        return _LOOKS_LIKE.sub(_HIDDEN, text)

    def document(self, content: bytes) -> Any:
        """A JSON document as bytes, parsed and without keys; the text where it is none.

        Most hold nothing that looks like a key. That is seen at once, unless escapes might hide one.
        """
        text = content.decode("utf-8", "replace")
        try:
            found = json.loads(text)
            return self.value(found) if self._may_hold_keys(text) else found
        except (ValueError, RecursionError):
            return self.text(text)

    def line(self, content: bytes) -> bytes:
        """A line of a file without keys; one without any stays to the letter."""
        text = content.decode("utf-8", "surrogateescape")
        if not self._may_hold_keys(text):
            return content
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return self.text(text).encode("utf-8", "surrogateescape")
        clean = self.value(found)
        return content if clean == found else json.dumps(clean, ensure_ascii=True).encode() + b"\n"

    def value(self, value: Any) -> Any:
        """The same for all texts of a JSON document."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value
