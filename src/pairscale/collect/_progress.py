"""The bar on standard error: done, failed, rate, time left, cost, and what came from the cache."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Bar"]


class Bar:
    """A progress bar that shows itself only on a terminal."""

    def __init__(self, total: int, done: int, *, show: bool, label: str = "judging") -> None:
        self._progress: Progress | None = None
        self._failed = self._cached = 0
        self._cost = 0.0
        if show and sys.stderr.isatty():
            self._progress = _rich_progress()
            self._task = self._progress.add_task(label, total=total, completed=done, note="")

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def advance(self, *, failed: bool, cost: float | None, cached: bool = False) -> None:
        """One more pair has its outcome."""
        if self._progress is None:
            return
        self._failed += failed
        self._cached += cached
        self._cost += cost or 0.0
        notes = (
            f"{self._failed} failed" if self._failed else "",
            f"${self._cost:.4f}" if self._cost else "",
            f"{self._cached} from the cache" if self._cached else "",
        )
        note = " ".join(part for part in notes if part)
        self._progress.update(self._task, advance=1, note=note)


def _rich_progress() -> Progress:
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
