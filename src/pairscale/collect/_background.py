"""The one bridge from async to sync: a loop in a thread, so that scripts and notebooks work alike."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

__all__ = ["run_sync"]

T = TypeVar("T")
_WAKE_S = 0.2
_START_S = 5.0


def run_sync(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in a thread of its own, with the caller's context variables, and return its result.

    On Ctrl-C the coroutine is cancelled and given the time to put its things in order; then KeyboardInterrupt goes on.
    """
    outcome: Future[T] = Future()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()

    async def main() -> T:
        task = asyncio.ensure_future(make())
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    def target() -> None:
        try:
            outcome.set_result(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001 - it is raised again, in the caller's thread
            outcome.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(target,), name="pairscale", daemon=True)
    try:
        thread.start()
        # In short waits: another thread may be the one that gets the signal, and only a waking main thread sees it.
        while not outcome.done():
            wait([outcome], _WAKE_S)
        return outcome.result()
    except KeyboardInterrupt:
        wait([started], _START_S)
        if started.done() and not outcome.done():
            loop, task = started.result()
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
