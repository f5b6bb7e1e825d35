"""How long an answer may take, without the time in which its question waits for its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Clock: TypeAlias = Callable[[], float]
"""Tells the time, in seconds that never go back."""


class TimeLimitError(TimeoutError):
    """An answer did not come in time; other than a ``TimeoutError`` of the judge itself."""


async def within(seconds: float | None, answer: Awaitable[T]) -> T:
    """Wait for an answer for that long at most; None waits as long as it takes.

    Time in which a question waits for its turn does not count, see :func:`waiting_for_turn`.

    Raises:
        TimeLimitError: it took too long.
    """
    if seconds is None:
        return await answer
    timeout = asyncio.timeout(seconds)
    token = _AROUND.set(_Running(timeout, seconds, asyncio.get_running_loop()))
    try:
        async with timeout:
            return await answer
    except TimeoutError:
        if timeout.expired():
            raise TimeLimitError(f"no answer within {seconds:g} seconds") from None
        raise
    finally:
        _AROUND.reset(token)


@dataclass(slots=True)
class _Running:
    """A time limit that runs, and how many calls inside it wait for their turn."""

    timeout: asyncio.Timeout
    seconds: float
    loop: asyncio.AbstractEventLoop
    waiting: int = 0


_AROUND: ContextVar[_Running | None] = ContextVar("time_limit", default=None)


@contextmanager
def waiting_for_turn() -> Iterator[None]:
    """While the block waits until a question may be sent, the time limit around it does not run.

    What waits for a rate limit, or for a server that is down, was not asked yet. After the block, it has all its time.
    """
    running = _AROUND.get()
    if running is None or running.timeout.expired() or running.loop is not asyncio.get_running_loop():
        yield
        return
    running.waiting += 1
    running.timeout.reschedule(None)
    try:
        yield
    finally:
        running.waiting -= 1
        if running.waiting == 0 and not running.timeout.expired():
            running.timeout.reschedule(running.loop.time() + running.seconds)
