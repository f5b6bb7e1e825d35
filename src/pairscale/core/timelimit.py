"""A time limit for each of many questions, kept by one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


class TimeLimitError(TimeoutError):
    """An answer did not come in time; other than a ``TimeoutError`` of the judge itself."""


class TimeLimit:
    """Ends what takes longer than the given seconds.

    The limit is the same for all, so that whatever began first is over first, and one timer is enough. A timer per
    question (``asyncio.timeout``) would cost several times as much.

    Args:
        seconds: how long each may take.
    """

    __slots__ = ("_ends", "_timer", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends: dict[asyncio.Task[Any], float] = {}  # of the tasks that wait, in this order
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, answer: Awaitable[T]) -> T:
        """Wait for an answer; a task waits for one at a time.

        Raises:
            TimeLimitError: it took too long.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 - coroutines run in tasks
        self._ends[task] = end = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_at(end, self._look, loop)
        others = task.cancelling()
        try:
            return await answer
        except asyncio.CancelledError:
            if task in self._ends or task.cancelling() > others + 1:  # the task itself is cancelled
                raise
            raise TimeLimitError from None
        finally:
            if self._ends.pop(task, None) is None:
                task.uncancel()

    def close(self) -> None:
        """Stop the timer; nothing waits any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel those whose time is over, and look again when the next one's is."""
        self._timer = None
        for task, end in list(self._ends.items()):
            if end > loop.time():
                self._timer = loop.call_at(end, self._look, loop)
                return
            del self._ends[task]
            task.cancel()
