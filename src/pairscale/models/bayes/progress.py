"""A progress bar over the sampler's transitions."""

from __future__ import annotations

import sys
from collections.abc import Callable

from pairscale.core.notebooks import LiveOutput, in_notebook
from pairscale.core.options import ProgressMode, require_progress

__all__ = ["SamplingBar"]


class SamplingBar:
    """A progress bar over transitions, one updated line in a notebook, or nothing.

    There is nothing when it is not wanted, or when standard error is neither a terminal nor a notebook's.
    """

    def __init__(self, total: int, *, show: ProgressMode) -> None:
        self._progress = self._output = None
        self._total, self._done = total, 0
        shown = require_progress(show) != "none"
        if shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._progress = Progress(console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task("sampling", total=total)
        elif shown and in_notebook():
            self._output = LiveOutput()

    def __enter__(self) -> Callable[[], None]:
        if self._progress is not None:
            self._progress.start()
            progress, task = self._progress, self._task
            return lambda: progress.update(task, advance=1)
        return self._count if self._output is not None else lambda: None

    def __exit__(self, *_exc: object) -> None:
        if self._progress is not None:
            self._progress.stop()
        if self._output is not None:
            self._show(self._output)

    def _count(self) -> None:
        self._done += 1
        if self._output is not None and self._output.is_due():
            self._show(self._output)

    def _show(self, output: LiveOutput) -> None:
        output.show([f"sampling: {self._done:,} of {self._total:,} transitions"])
