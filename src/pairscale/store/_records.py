"""What a run file knows, as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pairscale.core.provenance import text_hash

__all__ = ["PairProgress", "item_row"]


def item_row(sample: Mapping[str, Any]) -> dict[str, Any]:
    """A sample as a row of the table ``items``."""
    more = {key: value for key, value in sample.items() if key not in {"ID", "text"}}
    text = sample["text"]
    return {"item_id": sample["ID"], "text": text, "text_hash": text_hash(text), "columns": more}


@dataclass(frozen=True, slots=True)
class PairProgress:
    """What a run file knows of some pairs under one condition.

    Attributes:
        answered: numbers of the pairs that have their answer.
        failed: numbers of the pairs that were asked in vain.
        attempts: how often each pair was asked and not interrupted, for pairs that were.
    """

    answered: frozenset[int]
    failed: frozenset[int]
    attempts: Mapping[int, int]
