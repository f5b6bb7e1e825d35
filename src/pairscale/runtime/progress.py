"""Progress: a live bar in a terminal, one line that is updated in a notebook, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from pairscale.core.notebooks import LiveOutput, in_notebook
from pairscale.core.options import ProgressMode, require_progress
from pairscale.core.timelimit import Clock

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from pairscale.judges.base import Verdict

_FIRST_LINE_S = 5.0
_LINE_S = 30.0


class Progress:
    """Shows how far a run is.

    In a terminal there is a live bar, and in a notebook one line that is updated in place. Elsewhere (a log file, CI)
    there is a line after five seconds, then every half minute, and one at the end of a run that had a line.

    Args:
        total: how many pairs there are.
        done: how many of them have an answer already.
        show: what to show: nothing when it is False or ``none``.
        label: what is done.
        every: print a line per this many pairs instead, also in a terminal, and one at the end.
        prices: the dates of the prices behind the costs.
        clock: seconds.
    """

    def __init__(
        self,
        total: int,
        done: int = 0,
        *,
        show: ProgressMode = True,
        label: str = "judging",
        every: int | None = None,
        prices: str = "",
        clock: Clock = time.monotonic,
    ) -> None:
        show = require_progress(show) != "none"
        self._total = total
        self._done = done
        self._label = label
        self._every = every
        self._clock = clock
        self._failed = 0
        self._cached = 0
        self._new = 0
        self._said_at: int | None = None
        self._cost = 0.0
        self._prices = prices
        self._lines = show
        self._progress: RichProgress | None = None
        self._output: LiveOutput | None = None
        self._started = clock()
        self._next_line = self._started + _FIRST_LINE_S
        if show and every is None and _is_terminal():
            self._lines = False
            self._progress = _rich_progress()
            self._task = self._progress.add_task(label, total=total, completed=done, note="")
        elif show and every is None and in_notebook():
            self._lines = False
            self._output = LiveOutput(clock)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._progress is not None:
            self._progress.stop()
        elif self._output is not None and self._new:
            self._output.show([self._text()])
        elif self._lines and self._new not in (0, self._said_at) and (self._every or self._said_at):
            self._line()

    def advance(self, verdict: Verdict) -> None:
        """One more pair has its outcome."""
        self.count(failed=not verdict.outcome.is_answer, cost=verdict.cost, cached=verdict.cached)

    def count(self, *, failed: bool, cost: float | None, cached: bool = False) -> None:
        """One more is done."""
        self._done += 1
        self._new += 1
        self._failed += failed
        self._cached += cached
        self._cost += cost or 0.0
        if self._progress is not None:
            self._progress.update(self._task, advance=1, note=", ".join(self._notes()))
        elif self._output is not None:
            if self._output.is_due():
                self._output.show([self._text()])
        elif self._lines and self._is_due():
            self._line()

    def _is_due(self) -> bool:
        return self._new % self._every == 0 if self._every is not None else self._clock() >= self._next_line

    def _notes(self) -> list[str]:
        notes = (
            f"{self._failed:,} failed" if self._failed else "",
            f"${self._cost:.4f}{self._prices}" if self._cost else "",
            f"{self._cached:,} from the cache" if self._cached else "",
        )
        return [part for part in notes if part]

    def _text(self) -> str:
        seconds = self._clock() - self._started
        parts = [f"{self._label}: {self._done:,} of {self._total:,}", *self._notes()]
        if seconds > 0:
            parts.append(f"{self._new / seconds:,.1f} per second")
        return ", ".join(parts)

    def _line(self) -> None:
        self._said_at = self._new
        self._next_line = self._clock() + _LINE_S
        with suppress(OSError, ValueError, AttributeError):  # standard error may be closed, and the run continues
            print(self._text(), file=sys.stderr, flush=True)  # noqa: T201


def _is_terminal() -> bool:
    """Whether standard error is one; it may also be missing or closed."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def _rich_progress() -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.1f}/s" if task.speed else "", style="progress.data.speed")

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeLeft(),
        TextColumn("[red]{task.fields[note]}"),
    )  # fmt: skip
    return Progress(*columns, console=Console(stderr=True), transient=True)
