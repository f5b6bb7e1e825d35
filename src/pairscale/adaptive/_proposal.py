"""What the engine gives: a pair to ask about, or a step that found none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Proposal", "Starved"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pair to ask about.

    Attributes:
        step_id: which step.
        first: the number (from 0) of the item to show first.
        second: of the other.
        fields: the columns of the step log that are known already.
    """

    step_id: int
    first: int
    second: int
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Starved:
    """A step that found nothing to ask; ask for the next one.

    Attributes:
        row: its row of the step log.
    """

    row: Mapping[str, Any]
