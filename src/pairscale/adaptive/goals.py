"""What a run is for: the whole order, or the texts at the top; what follows from it is in ``goal_errors.py``."""

from __future__ import annotations

from pairscale.core.errors import InputError
from pairscale.core.options import require_int

__all__ = ["ORDER", "require_goal", "top_of"]

ORDER = "order"
"""The goal of a run that ranks all texts alike."""

_TOP = "top:"


def require_goal(goal: object, name: str = "goal") -> str:
    """``order``, or ``top:K`` with a whole number K of 1 or more.

    Raises:
        InputError: If it is anything else.
    """
    if goal == ORDER:
        return ORDER
    text = goal.strip().lower() if isinstance(goal, str) else ""
    size = text.removeprefix(_TOP)
    if text == size or not size.isascii() or not size.isdigit():
        raise InputError(f"{name} must be 'order', or 'top:K' such as 'top:10', not {goal!r:.80}")
    return f"{_TOP}{require_int(int(size), name, least=1)}"


def top_of(goal: str) -> int | None:
    """The K of ``top:K``; None for the whole order."""
    return None if goal == ORDER else int(goal.removeprefix(_TOP))
