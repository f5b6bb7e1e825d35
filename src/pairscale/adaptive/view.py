"""What an adaptive run shows while it runs: one line, redrawn where that is possible, else printed.

Outside of notebooks all of it goes to standard error. Showing never breaks a run: when standard error goes away, the
view falls silent.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import linear_regression
from typing import TYPE_CHECKING, Any, Self

from pairscale.adaptive.messages import provisional, shown_figure, shown_limit, verdict
from pairscale.core.display import printable
from pairscale.core.notebooks import LiveOutput, in_notebook
from pairscale.core.options import ProgressMode, require_int, require_progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from pairscale.adaptive.live import RunLimits
    from pairscale.adaptive.session import AdaptiveState

__all__ = ["View", "comparisons_at_target"]

Row = Mapping[str, Any]

_PAUSE_S = 0.25  # between two drawings
_STEPS_PER_LINE = 10  # plain lines are this much rarer than drawings
_SHOWN_ERRORS = 5  # invalid answers that get a line
_NOTE_LENGTH = 500


class View:
    """The progress of one call: a context manager, used from one thread at a time.

    Args:
        progress: ``none`` shows nothing; every other mode the same.
        state: the run.
        limits: when the call ends.
        redraw_every: steps between two drawings, at least; between two plain lines, ten times as many.
        show_events: a line for every refit, where the line is not redrawn.
        show_errors: a line for each of the first invalid answers.
        console: where to draw; by default standard error.
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
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._silent = require_progress(progress) == "none"
        self._state = state
        self._limits = limits
        self._redraw_every = require_int(redraw_every, "progress_redraw_every", least=1)
        self._show_events = show_events
        self._errors_left = _SHOWN_ERRORS if show_errors else 0
        self._console = console
        self._clock = clock
        self.prices = ""
        self._live = None if self._silent else self._make_live()
        is_notebook = not self._silent and self._live is None and console is None and in_notebook()
        self._output = LiveOutput(clock) if is_notebook else None
        self._notes: list[str] = []  # below the line of a notebook
        self._began = clock()
        self._next_drawing = -math.inf
        self._steps = 0
        self._is_fitting = False

    def _make_live(self) -> Live | None:
        is_terminal = sys.stderr.isatty() if self._console is None else self._console.is_terminal
        if not is_terminal:
            return None
        from rich.console import Console
        from rich.live import Live

        console = self._console or Console(stderr=True)
        if console.is_dumb_terminal:  # which cannot move its cursor
            return None
        # Standard output that goes into a file stays there.
        return Live(console=console, auto_refresh=False, redirect_stdout=sys.stdout.isatty(), transient=True)

    def __enter__(self) -> Self:
        self._began = self._clock()
        if self._live is not None:
            self._guarded(self._live.start)
        self._draw()
        return self

    def __exit__(self, *_error: object) -> None:
        self._next_drawing = -math.inf
        self._draw()
        if self._live is not None:
            self._guarded(self._live.stop)
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
            self._say(self._line())

    def refit_started(self) -> None:
        """A refit has begun."""
        self._is_fitting = True
        self._draw()

    def refit(self, row: Row) -> None:
        """A refit is done: its row of the round log."""
        self._is_fitting = False
        if self._is_plain and self._show_events:
            which = "closing refit" if row["is_closing"] else "refit"
            found = f"{row['total_pairs_done']:,} comparisons, {_aim(row)}; {verdict(row)}"
            self._say(f"{which} {row['refit_id']}: {found.removesuffix('; ')}")
        self._draw()

    def note(self, text: str) -> None:
        """Show a text of others on one line, cut, and without the characters that would command the terminal."""
        self._say(printable(" ".join(text.split()))[:_NOTE_LENGTH])

    @property
    def _is_plain(self) -> bool:
        """Whether lines are written one below the other, rather than one redrawn."""
        return self._live is None and self._output is None

    def _say(self, line: str) -> None:
        if self._silent:
            return
        if self._live is not None:
            self._guarded(self._live.console.out, line)  # which knows no markup
        elif self._output is not None:
            self._notes.append(line)
            self._draw()
        else:
            stream = sys.stderr if self._console is None else self._console.file
            self._guarded(lambda: (stream.write(f"{line}\n"), stream.flush()))

    def _guarded(self, show: Callable[..., object], *args: Any) -> None:
        """Show something, or fall silent when there is nowhere to show it any more."""
        try:
            show(*args)
        except (OSError, ValueError):
            self._silent = True

    def _draw(self) -> None:
        if self._is_plain or self._silent or self._clock() < self._next_drawing:
            return
        self._next_drawing = self._clock() + _PAUSE_S
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(self._line(), no_wrap=True, overflow="ellipsis"))
            self._guarded(self._live.refresh)
        elif self._output is not None:
            self._output.show([self._line(), *self._notes])

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


def comparisons_at_target(grown: Sequence[tuple[int, float]], target: float) -> float | None:
    """About how many comparisons in all the target takes, by the comparisons and reliability of refits so far.

    Reliability over one less reliability is a ratio of variances and grows about linearly with the comparisons. The
    line has the least-squares slope and goes through the last refit. None when the target is reached, when fewer than
    two refits are below it, or when reliability does not grow.
    """
    if len({n for n, reliability in grown if reliability < target}) < 2 or not grown[-1][1] < target < 1:
        return None
    odds = [reliability / max(1 - reliability, 1e-9) for _, reliability in grown]
    slope = linear_regression([n for n, _ in grown], odds).slope
    needed = grown[-1][0] + (target / (1 - target) - odds[-1]) / slope if slope > 0 else math.inf
    return needed if needed < 1e9 else None


def _of(done: float, limit: float | None, form: str = "{:,}") -> str:
    return form.format(done) if limit is None else f"{form.format(done)} of {form.format(limit)}"
