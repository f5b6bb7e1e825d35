"""Fingerprints, and the record of how a result came to be."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pairscale._version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Provenance", "fingerprint", "text_hash", "utc_now"]


def utc_now() -> str:
    """The time as every table of pairscale writes it: ISO 8601, UTC, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def text_hash(text: str) -> str:
    """SHA-256 of a text, as hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def fingerprint(value: Any, length: int = 16) -> str:
    """A short stable digest of any JSON-like value: equal values give equal digests, in every process."""
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return text_hash(canonical)[:length]


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
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seed: int | None = None
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    version: str = __version__
    created_at: str = field(default_factory=utc_now)
