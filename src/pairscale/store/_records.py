"""What is written into a run file, and what it knows, as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "Progress"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One attempt to have a pair judged, as it goes into the run file.

    Attributes:
        pair_id: the pair's number in the run file.
        values: the columns of the attempt.
        comparison: the columns of the comparison that it settles, or None when the pair will be asked again.
        replaces: whether an earlier outcome of this pair and condition (an error, an abstention) gives way.
    """

    pair_id: int
    values: Mapping[str, Any]
    comparison: Mapping[str, Any] | None
    replaces: bool = False


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
