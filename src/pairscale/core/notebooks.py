"""Notebooks: whether this is one, and an output of a cell that is updated in place.

Only the display messages of the Jupyter protocol are used, so that it works in Jupyter, VS Code and Colab without an
extension.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.core.timelimit import Clock

PAUSE = 0.25
"""Seconds between two updates: every one is a message to the browser."""


def in_notebook() -> bool:
    """Whether this code runs in the kernel of a notebook, rather than in a script, a terminal or IPython's shell."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class LiveOutput:
    """One output of a notebook's cell, updated in place.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._next = 0.0
        self._handle: Any = None

    def is_due(self) -> bool:
        """Whether the last update is long enough ago for another one."""
        return self._handle is None or self._clock() >= self._next

    def show(self, lines: Sequence[str]) -> None:
        """Show these lines in place of those of before, whether an update is due or not; never breaks a run."""
        self._next = self._clock() + PAUSE
        data = {"text/plain": "\n".join(lines)}
        display: Any = import_module("IPython.display").display
        with suppress(Exception):  # whatever a front end's display does, the run continues
            if self._handle is None:
                self._handle = display(data, raw=True, display_id=True)
            else:
                self._handle.update(data, raw=True)
