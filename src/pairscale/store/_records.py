"""What a run file knows, as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run file knows of some pairs under one condition.

    Attributes:
        answered: numbers of the pairs that have their answer.
        failed: numbers of the pairs that were asked in vain.
        attempts: how often each pair was asked and not interrupted, for pairs that were.
    """

    answered: frozenset[int]
    failed: frozenset[int]
    attempts: Mapping[int, int]
