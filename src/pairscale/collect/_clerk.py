"""Writing down in a thread of its own, while questions go on being asked."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, Self, TypeAlias, TypeVar

from pairscale.errors import StoreError

__all__ = ["Clerk"]

T = TypeVar("T")
_Entry: TypeAlias = tuple[T, "asyncio.Future[None]"]


class Clerk(Generic[T]):
    """Writes what it is given; whatever arrives while it writes goes into the next transaction together.

    Use it in an ``async with`` block. Leaving it waits until everything is written, also when that is interrupted, and
    so does the end of the process when nobody waits for the loop any more: what was answered is paid for.

    Args:
        write: writes some of them down; called in the thread. Whatever it raises but a StoreError means that it has
            written none of them: then each is written by itself, so that one takes no other along.
    """

    def __init__(self, write: Callable[[list[T]], None]) -> None:
        self._write = write
        self._given: SimpleQueue[_Entry[T] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="pairscale-store", daemon=True)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread.start()
        atexit.register(self._finish)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._given.put(None)
        try:
            await self._ended
        finally:
            self._finish()
            atexit.unregister(self._finish)

    def _finish(self) -> None:
        """Wait until all that was given is written, without the loop."""
        self._given.put(None)
        self._thread.join()

    def give(self, what: T) -> asyncio.Future[None]:
        """Have it written down; the future is done when it is, or fails as the writing did."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._given.put((what, written))
        return written

    def _work(self) -> None:
        closing = False
        while not closing:
            given = [self._given.get()]
            while not self._given.empty():
                given.append(self._given.get())
            entries = [entry for entry in given if entry is not None]
            closing = len(entries) < len(given)
            if entries:
                self._write_all(entries)
        self._tell(self._ended, None)

    def _write_all(self, entries: list[_Entry[T]]) -> None:
        failure: Exception | None = None
        try:
            self._write([what for what, _ in entries])
        except Exception as error:  # noqa: BLE001 - it is raised again where the writing is waited for
            if len(entries) > 1 and not isinstance(error, StoreError):
                for entry in entries:
                    self._write_all([entry])
                return
            failure = error
        # One by one, from here: the first go on while the last are told, which is faster than all at once.
        for _, written in entries:
            self._tell(written, failure)

    def _tell(self, written: asyncio.Future[None], failure: Exception | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits, and the rest is written all the same
            self._loop.call_soon_threadsafe(_settle, written, failure)


def _settle(written: asyncio.Future[None], failure: Exception | None) -> None:
    if written.done():
        return
    if failure is None:
        written.set_result(None)
    else:
        written.set_exception(failure)
