"""What an adaptive run shows while it runs: one line, redrawn in terminals and notebooks, else printed now and then.

Outside of notebooks all of it goes to standard error. Showing never breaks a run: when standard error goes away, the
view falls silent.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from pairscale.adaptive.messages import provisional, shown_figure, shown_limit, verdict
from pairscale.core.display import printable
from pairscale.core.notebooks import LiveOutput, in_notebook
from pairscale.core.options import ProgressMode, require_int, require_progress

if TYPE_CHECKING:
    from pairscale.adaptive.live import RunLimits
    from pairscale.adaptive.session import AdaptiveState

Row = Mapping[str, Any]

_PAUSE_S = 0.25  # between two drawings
_STEPS_PER_LINE = 10  # plain lines are this much rarer than drawings
_SHOWN_ERRORS = 5  # invalid answers that get a line
_NOTE_LENGTH = 500
_CLEAR_LINE = "\r\x1b[2K"


class View:
    """The progress of one call: a context manager, used from one thread at a time.

    Args:
        progress: ``none`` shows nothing; every other mode the same.
        state: the run.
        limits: when the call ends.
        redraw_every: steps between two drawings, at least; between two plain lines, ten times as many.
        show_events: a line for every refit, where the line is not redrawn.
        show_errors: a line for each of the first invalid answers.
        clock: seconds that never go back.

    Attributes:
        prices: the dates of the prices behind the costs.
    """

    def __init__(
        self,
        progress: ProgressMode,
        state: AdaptiveState,
        limits: RunLimits,
        *,
        redraw_every: int = 10,
        show_events: bool = True,
        show_errors: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._silent = require_progress(progress) == "none"
        self._state = state
        self._limits = limits
        self._redraw_every = require_int(redraw_every, "progress_redraw_every", least=1)
        self._show_events = show_events
        self._errors_left = _SHOWN_ERRORS if show_errors else 0
        self._clock = clock
        self.prices = ""
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._output = LiveOutput(clock) if not self._is_terminal and in_notebook() else None
        self._notes: list[str] = []  # below the line of a notebook
        self._began = clock()
        self._next_drawing = self._began
        self._steps = 0
        self._is_fitting = False

    def __enter__(self) -> Self:
        self._began = self._clock()
        self._draw()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._is_terminal:
            self._write(_CLEAR_LINE)
        self._next_drawing = self._began
        if self._output is not None:
            self._draw()
        self._silent = True

    def step(self, row: Row) -> None:
        """A row of the step log was recorded. Costs next to nothing when nothing is drawn."""
        self._steps += 1
        if row["status"] == "invalid" and self._errors_left:
            self._errors_left -= 1
            reason = f"({row['invalid_kind']}) for {row['A_id']} and {row['B_id']}: {row['invalid_reason']}"
            self.note(f"step {row['step_id']}: no valid answer {reason}")
        if self._steps % self._redraw_every == 0:
            self._draw()
        if self._is_plain and self._steps % (self._redraw_every * _STEPS_PER_LINE) == 0:
            self._write(f"{self._line()}\n")

    def refit_started(self) -> None:
        """A refit has begun."""
        self._is_fitting = True
        self._draw()

    def refit(self, row: Row) -> None:
        """A refit is done: its row of the round log."""
        self._is_fitting = False
        if self._is_plain and self._show_events:
            which = "closing refit" if row["is_closing"] else "refit"
            facts = f"{row['total_pairs_done']:,} comparisons, {_aim(row)}; {verdict(row)}"
            self._write(f"{which} {row['refit_id']}: {facts.removesuffix('; ')}\n")
        self._draw()

    def note(self, text: str) -> None:
        """Show a text of others on one line, cut, and without the characters that would command the terminal."""
        line = printable(" ".join(text.split()))[:_NOTE_LENGTH]
        if self._output is not None:
            self._notes.append(line)
            self._draw()
        elif self._is_terminal:
            self._write(f"{_CLEAR_LINE}{line}\n")
        else:
            self._write(f"{line}\n")

    @property
    def _is_plain(self) -> bool:
        """Whether lines are written one below the other, rather than one redrawn."""
        return not self._is_terminal and self._output is None

    def _write(self, text: str) -> None:
        """Write to standard error, or fall silent when it is not there any more."""
        if self._silent:
            return
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self._silent = True

    def _draw(self) -> None:
        if self._is_plain or self._silent or self._clock() < self._next_drawing:
            return
        self._next_drawing = self._clock() + _PAUSE_S
        if self._output is not None:
            self._output.show([self._line(), *self._notes])
        else:
            width = shutil.get_terminal_size().columns
            self._write(f"{_CLEAR_LINE}{self._line()[: width - 1]}")

    def _line(self) -> str:
        """How far the run is."""
        state = self._state
        minutes, seconds = divmod(round(self._clock() - self._began), 60)
        facts = [f"{_of(state.engine.committed, self._limits.max_comparisons)} comparisons"]
        if state.rounds:
            facts.append(_aim(state.rounds[-1]))
        if self._is_fitting:
            facts.append("fitting")
        if state.invalid:
            facts.append(f"{state.invalid:,} invalid")
        if state.cost:
            facts.append(_of(state.cost, self._limits.max_cost, "${:,.4f}") + self.prices)
        facts.append(f"{minutes // 60}:{minutes % 60:02}:{seconds:02}")
        return ", ".join(facts)


def _aim(row: Row) -> str:
    """How near a run is to what it is for, by a row of its round log."""
    if row["top_wrong"] is not None:
        allowed = row["top_wrong_allowed"]
        wrong = shown_figure(row["top_wrong"], allowed, at_most=True)
        return f"{row['goal']}, {wrong} wrong members expected (at most {shown_limit(allowed)})"
    target = row["eap_reliability_min"]
    return f"reliability {shown_figure(row['reliability'], target)} of {shown_limit(target)}{provisional(row, '')}"


def _of(done: float, limit: float | None, form: str = "{:,}") -> str:
    return form.format(done) if limit is None else f"{form.format(done)} of {form.format(limit)}"
