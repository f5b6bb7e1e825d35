"""When a run file is written: two policies around its one writer.

- :class:`GroupCommitWriter`: every entry has a future that is done once the entry is on the disk. Entries that arrive
  together share a transaction. For runs that continue only after an answer is durable.
- :class:`JournalWriter`: calls return at once, and a thread writes in the background, in order. The file holds, at
  every moment and however the process ends, a prefix of what happened. For adaptive runs, which must not wait for the
  disk at every step.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from pairscale.core.errors import (
    StoreBusyError,
    StoreConnectionError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from pairscale.core.notices import notice
from pairscale.store.writer import Entry

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

__all__ = ["AGAIN_S", "PATIENCE_S", "GroupCommitWriter", "JournalWriter"]

AGAIN_S = 1.0  # between two tries to write what could not be written
PATIENCE_S = 120.0  # in all
_IN_DATABASE = StoreConnectionError, StoreFullError, StoreReadOnlyError
_IN_FILE = StoreBusyError, StoreFullError, StoreReadOnlyError
"""What may pass while a run waits: nothing is asked meanwhile, and answers are kept. In a database, busy does not pass:
another process has taken over."""


class _PatientWriter:
    """Commits entries; what may pass is tried again for two minutes.

    Args:
        run_file: open for writing.
    """

    def __init__(self, run_file: RunFile) -> None:
        self._writer = run_file.writer
        self._reconnect = run_file.reconnect if run_file.can_reconnect else None
        self.may_pass: tuple[type[StoreError], ...] = _IN_FILE if self._reconnect is None else _IN_DATABASE
        self.is_stuck = False

    def commit_once(self, entries: Sequence[Entry]) -> None:
        """Write entries, or raise why they cannot be written now."""
        self._writer.commit(entries)

    def commit(self, entries: Sequence[Entry]) -> None:
        """Write entries, however often that has to be tried."""
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self.is_stuck and self._reconnect is not None:
                    self._reconnect()
                self._writer.commit(entries)
                break
            except self.may_pass as error:
                if time.monotonic() > give_up_at:
                    raise
                if not self.is_stuck:
                    self.is_stuck = True
                    waiting = "1 answer waits" if len(entries) == 1 else f"{len(entries):,} answers wait"
                    notice(f"{error}. Trying again for {PATIENCE_S / 60:g} minutes; {waiting}")
            time.sleep(AGAIN_S)
        if self.is_stuck:
            self.is_stuck = False
            notice("the run can be written again; everything is in it")


class GroupCommitWriter:
    """Writes each entry before the caller continues; use it in an ``async with`` block.

    It writes in the thread of the event loop: on a local disk that takes less than a millisecond, and a second thread
    would cost more than it saves. Entries of one turn of the loop share a transaction; waiting for more would save
    processor time, but release the workers in bursts (docs/performance.md). Where writing is slow (a network drive), it
    moves to a thread, and entries that arrive meanwhile share the next transaction. A database is always written from a
    thread, and a file that another program holds is not waited for: a loop that stands still lets open questions time
    out. Leaving the block waits until everything is written, also on an interrupt, and so does the end of the process.

    Args:
        run_file: open for writing.
        also: called with the entries of each transaction after it, in the same thread, before the futures are done.
        patience: seconds that a write may usually take before writing moves to a thread.
    """

    def __init__(
        self,
        run_file: RunFile,
        *,
        also: Callable[[Sequence[Entry]], None] | None = None,
        patience: float = 0.02,
    ) -> None:
        self._run_file = run_file
        self._writer = _PatientWriter(run_file)
        self._also = also
        self._waiting: deque[tuple[Entry, asyncio.Future[None]]] = deque()
        self._patience = -1.0 if run_file.can_reconnect else patience
        self._usual = 0.0
        self._in_thread = False
        self._turn = threading.Lock()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._home = threading.get_ident()
        self._run_file.wait_for_others(AGAIN_S / 4)
        atexit.register(self._write_all)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.drain()
        self._run_file.wait_for_others()
        atexit.unregister(self._write_all)

    def write(self, entry: Entry) -> asyncio.Future[None]:
        """Write an entry; the future is done when it is on the disk, or fails as the write did."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((entry, written))
        if len(self._waiting) == 1:
            self._loop.call_soon(self._due)
        return written

    def is_ready(self) -> bool:
        """Whether what is put is written; False while it cannot be."""
        return not self._writer.is_stuck

    async def drain(self) -> None:
        """Wait until everything is on the disk."""
        self._write_all()

    def put(self, entry: Entry) -> None:
        """Write an entry without waiting for it; it is on the disk when the block is left."""
        self.write(entry).add_done_callback(_retrieved)

    def _due(self) -> None:
        """Write what waits: here when that is quick, else in a thread."""
        if self._in_thread or not self._waiting:
            return
        if self._usual <= self._patience and self._write_now():
            return
        self._in_thread = True
        self._loop.run_in_executor(None, self._write_all).add_done_callback(self._back)

    def _back(self, _done: asyncio.Future[None]) -> None:
        self._in_thread = False
        self._due()

    def _write_now(self) -> bool:
        """Write everything that waits in one try; False when that has to be tried again."""
        with self._turn:
            return self._write_taken(self._writer.commit_once)

    def _write_all(self) -> None:
        """Write everything that waits, in any thread."""
        with self._turn:
            self._write_taken(self._writer.commit)

    def _write_taken(self, commit: Callable[[Sequence[Entry]], None]) -> bool:
        start = time.perf_counter()
        taken = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        if not taken:
            return True
        try:
            self._write(taken, commit)
        except self._writer.may_pass:
            self._waiting.extendleft(reversed(taken))
            return False
        self._usual += 0.2 * (time.perf_counter() - start - self._usual)
        return True

    def _write(
        self, taken: list[tuple[Entry, asyncio.Future[None]]], commit: Callable[[Sequence[Entry]], None]
    ) -> None:
        failure: Exception | None = None
        is_committed = False
        try:
            entries = [entry for entry, _ in taken]
            commit(entries)
            is_committed = True
            if self._also is not None:
                self._also(entries)
        except Exception as error:
            if not is_committed and commit == self._writer.commit_once and isinstance(error, self._writer.may_pass):
                raise
            if len(taken) > 1 and not is_committed and not isinstance(error, StoreError):
                for single in taken:  # an entry that cannot be written must not take others with it
                    self._write([single], self._writer.commit)
                return
            failure = error
        waiting = [written for _, written in taken]
        if threading.get_ident() == self._home:
            _settle(waiting, failure)
            return
        with suppress(RuntimeError):  # the loop is closed, and nothing waits
            self._loop.call_soon_threadsafe(_settle, waiting, failure)


def _settle(waiting: list[asyncio.Future[None]], failure: Exception | None) -> None:
    for written in waiting:
        if written.done():
            continue
        if failure is None:
            written.set_result(None)
        else:
            written.set_exception(failure)


def _retrieved(written: asyncio.Future[None]) -> None:
    """Mark the exception of a future that is not awaited as seen; the writes that are awaited raise it."""
    if not written.cancelled():
        written.exception()


class JournalWriter:
    """Writes entries in order, in the background; use it in a ``with`` block.

    :meth:`put` returns at once. What cannot be written now (the disk is full) is tried again for two minutes; after
    that, nothing later is written, and every further call raises the reason.

    Args:
        run_file: open for writing; it must stay open until the journal is closed.
    """

    _LINGER = 0.01  # seconds that the first of a group waits for others; a flush does not wait
    _MOST = 20_000  # entries that may wait; a caller with more waits for the disk

    def __init__(self, run_file: RunFile) -> None:
        self._writer = _PatientWriter(run_file)
        self._name = run_file.name
        self._changed = threading.Condition()
        self._waiting: list[Entry] = []
        self._accepted = 0
        self._written = 0
        self._hurry = False
        self._closing = False
        self._told = False
        self._writes_since: float | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="pairscale-journal", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_exc: object) -> None:
        self._told = self._told or kind is not None  # one error at a time
        self.close()

    def put(self, entry: Entry) -> None:
        """Have an entry written after all that came before it; the caller may change its rows of logs afterwards."""
        entry = replace(entry, rows=[(log, dict(row)) for log, row in entry.rows])
        with self._changed:
            while len(self._waiting) >= self._MOST and self._failure is None:
                self._changed.wait()
            self._raise()
            if self._closing:
                raise StoreError(f"{self._name}: the journal is closed")
            self._waiting.append(entry)
            self._accepted += 1
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def is_ready(self) -> bool:
        """Whether what is put is written; False while it cannot be, or while it takes long.

        Raises why when it was tried for long enough.
        """
        self._raise()
        since = self._writes_since
        return not self._writer.is_stuck and (since is None or time.monotonic() - since < AGAIN_S)

    def event(self, row: Mapping[str, Any]) -> None:
        """Have a row of ``adaptive_events`` written: a call, a limit, a join, a stop."""
        self.put(Entry(rows=[("adaptive_events", row)]))

    def flush(self) -> None:
        """Wait until everything is on the disk; raise what went wrong."""
        with self._changed:
            target = self._accepted
            self._hurry = self._written < target
            self._changed.notify_all()
            while self._written < target and self._failure is None:
                self._changed.wait()
            self._raise()

    def close(self) -> None:
        """Write what waits, and end; raise what went wrong, unless a call has raised it before."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        if not self._told:
            self._raise()

    def _raise(self) -> None:
        if self._failure is not None:
            self._told = True
            raise self._failure

    def _work(self) -> None:
        while batch := self._taken():
            failure: BaseException | None = None
            self._writes_since = time.monotonic()
            try:
                self._writer.commit(batch)
            except BaseException as error:  # noqa: BLE001 - it is raised by the next call
                failure = error
            self._writes_since = None
            with self._changed:
                self._failure = failure
                self._written += len(batch)
                self._changed.notify_all()
                if failure is not None:
                    self._waiting.clear()
                    return

    def _taken(self) -> list[Entry]:
        """Everything that waits, as soon as anything does; nothing when the journal is closed."""
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            if not self._hurry and not self._closing:
                self._changed.wait_for(lambda: self._hurry or self._closing, self._LINGER)
            self._hurry = False
            batch = self._waiting
            self._waiting = []
            return batch
