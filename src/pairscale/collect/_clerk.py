"""Writing down what came in: all that came in one turn of the loop in one transaction."""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Self, TypeAlias, TypeVar

from pairscale.errors import StoreError

__all__ = ["Clerk"]

T = TypeVar("T")
_Entry: TypeAlias = tuple[T, "asyncio.Future[None]"]

_PATIENCE_S = 0.02
_NEWEST = 0.2  # how much the last writing counts in what writing usually takes


class Clerk(Generic[T]):
    """Writes what it is given, before anybody goes on.

    It writes in the loop's own thread, which takes less than a millisecond on a disk of today: with a thread beside
    it, both would spend most of their time on taking turns. Only where writing turns out to be slow (a network drive,
    a far database) is it done aside, and whatever arrives meanwhile goes into the next transaction.

    Use it in an ``async with`` block. Leaving it waits until everything is written, also when that is interrupted, and
    so does the end of the process when nobody waits for the loop any more: what was answered is paid for.

    Args:
        write: writes some of them down. Whatever it raises but a StoreError means that it has written none of them:
            then each is written by itself, so that one takes no other along.
        patience: seconds that writing may usually take without being put aside.
    """

    def __init__(self, write: Callable[[list[T]], None], *, patience: float = _PATIENCE_S) -> None:
        self._write = write
        self._given: deque[_Entry[T]] = deque()
        self._patience, self._takes = patience, 0.0
        self._is_aside = False
        self._turn = threading.Lock()

    async def __aenter__(self) -> Self:
        self._loop, self._home = asyncio.get_running_loop(), threading.get_ident()
        atexit.register(self._write_all)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._write_all()
        atexit.unregister(self._write_all)

    def give(self, what: T) -> asyncio.Future[None]:
        """Have it written down; the future is done when it is, or fails as the writing did."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._given.append((what, written))
        if len(self._given) == 1:
            self._loop.call_soon(self._due)
        return written

    def _due(self) -> None:
        if self._takes <= self._patience:
            self._write_all()
        elif not self._is_aside:
            self._is_aside = True
            self._loop.run_in_executor(None, self._write_all).add_done_callback(self._back)

    def _back(self, _done: asyncio.Future[None]) -> None:
        self._is_aside = False
        if self._given:
            self._due()

    def _write_all(self) -> None:
        """Write all that was given, in whatever thread; when another is just writing, after it."""
        with self._turn:
            start, entries = time.perf_counter(), []
            while self._given:
                entries.append(self._given.popleft())
            if entries:
                self._write_down(entries)
                self._takes += _NEWEST * (time.perf_counter() - start - self._takes)

    def _write_down(self, entries: list[_Entry[T]]) -> None:
        failure: Exception | None = None
        try:
            self._write([what for what, _ in entries])
        except Exception as error:  # noqa: BLE001 - it is raised again where the writing is waited for
            if len(entries) > 1 and not isinstance(error, StoreError):
                for entry in entries:
                    self._write_down([entry])
                return
            failure = error
        waiting = [written for _, written in entries]
        if threading.get_ident() == self._home:
            _settle(waiting, failure)
            return
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(_settle, waiting, failure)


def _settle(waiting: list[asyncio.Future[None]], failure: Exception | None) -> None:
    for written in waiting:
        if written.done():
            continue
        if failure is None:
            written.set_result(None)
        else:
            written.set_exception(failure)
