"""Numbers that a run, a study or a plan is given, refused by name when they are impossible."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from pairscale.errors import InputError

__all__ = ["above_zero", "from_zero", "whole_number"]


def whole_number(value: Any, name: str, least: int) -> int:
    """A whole number from ``least`` up."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number from {least} up, not {value!r}")
    return int(value)


def above_zero(value: Any, name: str) -> float:
    """A number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise InputError(f"{name} must be a number above 0, not {value!r}")
    return float(value)


def from_zero(value: Any, name: str) -> float:
    """A number from 0 up."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise InputError(f"{name} must be a number from 0 up, not {value!r}")
    return float(value)
