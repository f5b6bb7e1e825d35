"""Progress of a long fit: what it works at, in one line that is updated in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pairscale.core.notebooks import PAUSE, LiveOutput, in_notebook
from pairscale.core.options import ProgressMode, require_progress

__all__ = ["at_work", "showing_progress"]

_QUIET = 1.0  # seconds: what ends sooner needs no line
_show: ContextVar[Callable[[str], None] | None] = ContextVar("show", default=None)


def at_work(what: str) -> None:
    """Say what a fit works at now; nothing where no one looks."""
    show = _show.get()
    if show is not None:
        show(what)


@contextmanager
def showing_progress(*, show: ProgressMode, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Show what a fit works at, in a terminal or a notebook, from its second second on.

    Args:
        show: What to show: nothing when it is False or ``none``.
        clock: Seconds that never go back.
    """
    if require_progress(show) == "none" or not (sys.stderr.isatty() or in_notebook()):
        yield
        return
    line = _Line(clock)
    before = _show.set(line.show)
    try:
        yield
    finally:
        _show.reset(before)
        line.clear()


class _Line:
    """One line on standard error, or one output of a notebook's cell."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._due = clock, clock() + _QUIET
        self._output = LiveOutput() if in_notebook() else None
        self._width = 0

    def show(self, what: str) -> None:
        now = self._clock()
        if now < self._due:
            return
        self._due = now + PAUSE
        if self._output is not None:
            self._output.show([what])
            return
        self._write(what)

    def clear(self) -> None:
        if self._width:
            self._write("")

    def _write(self, what: str) -> None:
        padded = what.ljust(self._width)
        sys.stderr.write(f"\r{padded}\r{what}" if not what else f"\r{padded}")
        sys.stderr.flush()
        self._width = len(what)
