"""A time limit for each of many questions, kept by one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class TimeLimitError(TimeoutError):
    """An answer did not come in time; other than a ``TimeoutError`` of the judge itself."""


class TimeLimit:
    """Ends what takes longer than the given seconds.

    The limit is the same for all, so that whatever began first is over first, and one timer is enough. A timer per
    question (``asyncio.timeout``) would cost several times as much.

    Time in which a question waits for its turn does not count, see :func:`waiting_for_turn`.

    Args:
        seconds: how long each may take.
    """

    __slots__ = ("_ends", "_suspended", "_timer", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends: dict[asyncio.Task[Any], float] = {}  # of the tasks that wait, in this order
        self._suspended: dict[asyncio.Task[Any], int] = {}  # those that wait for their turn; how often at once
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
        others, before = task.cancelling(), _AROUND.set((self, task))
        try:
            return await answer
        except asyncio.CancelledError:
            is_in_time = task in self._ends or task in self._suspended
            if is_in_time or task.cancelling() > others + 1:  # the task itself is cancelled
                raise
            raise TimeLimitError from None
        finally:
            _AROUND.reset(before)
            if self._ends.pop(task, None) is None and self._suspended.pop(task, None) is None:
                task.uncancel()

    def suspend(self, task: asyncio.Task[Any]) -> bool:
        """Stop the time of a task, which may be stopped several times at once; False when it is over already."""
        if self._ends.pop(task, None) is None and task not in self._suspended:
            return False
        self._suspended[task] = self._suspended.get(task, 0) + 1
        return True

    def resume(self, task: asyncio.Task[Any]) -> None:
        """Give a task all of its time again, once it is resumed as often as it was suspended."""
        left = self._suspended.pop(task, 0) - 1
        if left > 0:
            self._suspended[task] = left
        elif left == 0:
            loop = asyncio.get_running_loop()
            self._ends[task] = end = loop.time() + self.seconds
            if self._timer is None:
                self._timer = loop.call_at(end, self._look, loop)

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


_AROUND: ContextVar[tuple[TimeLimit, asyncio.Task[Any]] | None] = ContextVar("time_limit", default=None)


@contextmanager
def waiting_for_turn() -> Iterator[None]:
    """While the block waits until a question may be sent, the time limit around it does not run.

    What waits for a rate limit, or for a server that is down, was not asked yet. After the block, it has all its time.
    """
    limit, task = _AROUND.get() or (None, None)
    is_here = task is not None and task.get_loop() is asyncio.get_running_loop()
    if limit is None or task is None or not is_here or not limit.suspend(task):
        yield
        return
    try:
        yield
    finally:
        limit.resume(task)
