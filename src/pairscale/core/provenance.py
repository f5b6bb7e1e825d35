"""Fingerprints, and the record of how a result came to be."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from numbers import Real
from typing import Any

from pairscale._version import __version__
from pairscale.core.errors import InputError


def utc_now() -> str:
    """The time as every table of pairscale writes it: ISO 8601, UTC, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def text_hash(text: str) -> str:
    """SHA-256 of a text, as hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def fingerprint(value: Any, length: int = 16) -> str:
    """A short stable digest of any JSON-like value: equal values give equal digests, in every process.

    Raises:
        InputError: for an object that only its place in memory tells from another.
    """
    canonical = json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text_hash(canonical)[:length]


def _plain(value: Any) -> Any:
    """A value as JSON has it, one way of writing for equal ones: 1 and 1.0, a list and a tuple, a set in any order."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Real):
        return math.floor(value) if value == value // 1 else float(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=repr)
    return _described(value)


def _described(value: Any) -> str:
    text = str(value)
    if _ADDRESS.search(text):
        raise InputError(f"a {type(value).__name__} has no lasting name to be known by; give its settings instead")
    return text


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a result was made, enough to make it again.

    Attributes:
        method: what ran, in a word (``sirt``, ``submit_pairs``).
        settings: every option that mattered, with the value it had.
        seed: the seed, where anything was random.
        inputs: fingerprints of what went in.
        version: of pairscale.
        created_at: when, UTC.
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    version: str = __version__
    created_at: str = field(default_factory=utc_now)
