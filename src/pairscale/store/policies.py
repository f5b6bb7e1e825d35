"""When a run file is written: by a thread of its own, in order, around the one writer of the run file.

- :class:`JournalWriter`: calls return at once. The file holds, at every moment and however the process ends, a prefix
  of what happened. For adaptive runs, which must not wait for the disk at every step.
- :class:`GroupCommitWriter`: every entry has a future that is done once the entry is on the disk. For runs that
  continue only after an answer is durable.

Entries that wait share a transaction. What cannot be written now is tried again for two minutes; nothing is asked
meanwhile, and answers are kept.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeAlias

from pairscale.core.errors import (
    StoreBusyError,
    StoreConnectionError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from pairscale.core.notices import notice, plural
from pairscale.core.tables import Row
from pairscale.store.writer import Entry

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

WRITE_RETRY_INTERVAL_S = 1.0
WRITE_GIVE_UP_S = 120.0
_SLOW_S = 0.25  # a transaction that takes longer keeps further questions from being asked
_MAY_PASS = (StoreBusyError, StoreConnectionError, StoreFullError, StoreReadOnlyError)

_Pending: TypeAlias = asyncio.Future[None]
_Waiting: TypeAlias = tuple[Entry, _Pending | None]


class JournalWriter:
    """Writes entries in order, in the background; use it in a ``with`` block.

    :meth:`put` returns at once. After what could not be written, nothing later is written, and every further call
    raises the reason. Leaving the block waits until everything is written, and so does the end of the process.

    Args:
        run_file: open for writing; it must stay open until the journal is closed.
        also: called with the entries of each transaction after it, in the same thread.
    """

    _LINGER = 0.01  # seconds that the first of a group waits for others; a flush does not wait

    def __init__(self, run_file: RunFile, *, also: Callable[[Sequence[Entry]], None] | None = None) -> None:
        self._run_file = run_file
        self._also = also
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._n_open = 0  # entries that wait or are being written
        self._hurry = False
        self._closing = False
        self._is_raised = False
        self._is_stuck = False
        self._writes_since: float | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="pairscale-journal", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_exc: object) -> None:
        self._is_raised = self._is_raised or kind is not None  # one error at a time
        self.close()

    def put(self, entry: Entry) -> None:
        """Have an entry written after all that came before it; the caller may change its rows of logs afterwards."""
        self._add(replace(entry, rows=[(log, dict(row)) for log, row in entry.rows]), None)

    def is_ready(self) -> bool:
        """Whether entries are written as they come; False while writing fails, or takes long.

        Once writing has failed for long enough, it raises the reason.
        """
        self._raise()
        since = self._writes_since
        return not self._is_stuck and (since is None or time.monotonic() - since < _SLOW_S)

    def event(self, row: Row) -> None:
        """Have a row of ``adaptive_events`` written: a call, a limit, a join, a stop."""
        self.put(Entry(rows=[("adaptive_events", row)]))

    def flush(self) -> None:
        """Wait until everything is on the disk; raise what went wrong."""
        self._wait()
        self._raise()

    def close(self) -> None:
        """Write what waits, and end; raise what went wrong, unless a call has raised it before."""
        self._end()
        if not self._is_raised:
            self._raise()

    def _add(self, entry: Entry, written: _Pending | None) -> None:
        """Append an entry to those that wait, with the future that is done once it is written."""
        with self._changed:
            self._raise()
            if self._closing:
                raise StoreError(f"{self._run_file.name}: the journal is closed")
            self._waiting.append((entry, written))
            self._n_open += 1
            self._changed.notify_all()

    def _wait(self) -> None:
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._n_open or self._failure is not None)

    def _end(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        atexit.unregister(self._end)

    def _raise(self) -> None:
        if self._failure is not None:
            self._is_raised = True
            raise self._failure

    def _work(self) -> None:
        """The thread: write what waits, in groups, until the journal is closed."""
        while taken := self._taken():
            self._writes_since = time.monotonic()
            self._write(taken)
            self._writes_since = None
            with self._changed:
                self._n_open -= len(taken)
                self._changed.notify_all()

    def _taken(self) -> list[_Waiting]:
        """Everything that waits, as soon as anything does; nothing when the journal is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            self._changed.wait_for(lambda: self._hurry or self._closing, self._LINGER)
            self._hurry = False
            taken = self._waiting
            self._waiting = []
            return taken

    def _write(self, taken: list[_Waiting]) -> None:
        """Write entries in one transaction, and tell those who wait for them; after a failure, nothing is written."""
        entries = [entry for entry, _ in taken]
        futures = [written for _, written in taken if written is not None]
        failure = self._failure
        is_committed = False
        try:
            if failure is None:
                self._commit(entries)
                is_committed = True
                if self._also is not None:
                    self._also(entries)
        except Exception as error:  # noqa: BLE001 - it is raised by the next call, or by those who wait
            if len(taken) > 1 and not is_committed and not isinstance(error, StoreError):
                for single in taken:  # an entry that cannot be written must not take others with it
                    self._write([single])
                return
            failure = error
            if not futures or isinstance(error, StoreError):
                self._failure = error
        self._settle(futures, failure)

    def _settle(self, futures: Sequence[_Pending], failure: BaseException | None) -> None:
        """Tell those who wait for the entries; with a journal, no one does."""

    def _commit(self, entries: Sequence[Entry]) -> None:
        """Write entries, trying again for two minutes after a failure that may pass."""
        give_up_at = time.monotonic() + WRITE_GIVE_UP_S
        while True:
            try:
                if self._is_stuck and self._run_file.can_reconnect:
                    self._run_file.reconnect()
                self._run_file.writer.commit(entries)
                break
            except _MAY_PASS as error:
                if time.monotonic() > give_up_at:
                    raise
                if not self._is_stuck:
                    self._is_stuck = True
                    waiting = plural(len(entries), "answer waits", "answers wait")
                    notice(f"{error}. Trying again for {WRITE_GIVE_UP_S / 60:g} minutes; {waiting}")
            time.sleep(WRITE_RETRY_INTERVAL_S)
        if self._is_stuck:
            self._is_stuck = False
            notice("the run can be written again; everything is in it")


class GroupCommitWriter(JournalWriter):
    """Writes each entry before the caller continues; use it in an ``async with`` block."""

    _LINGER = 0.0

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._end()

    def write(self, entry: Entry) -> _Pending:
        """Write an entry; the future is done when it is on the disk, or fails as the write did."""
        written: _Pending = self._loop.create_future()
        self._add(entry, written)
        return written

    async def drain(self) -> None:
        """Wait until everything is on the disk."""
        self._wait()

    def put(self, entry: Entry) -> None:
        """Write an entry without waiting for it; it is on the disk when the block is left."""
        self.write(entry).add_done_callback(_retrieved)

    def _settle(self, futures: Sequence[_Pending], failure: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nothing waits
            self._loop.call_soon_threadsafe(_tell, futures, failure)


def _tell(futures: Sequence[_Pending], failure: BaseException | None) -> None:
    for written in futures:
        if written.done():
            continue
        if failure is None:
            written.set_result(None)
        else:
            written.set_exception(failure)


def _retrieved(written: _Pending) -> None:
    """Mark the exception of a future that is not awaited as seen; the writes that are awaited raise it."""
    if not written.cancelled():
        written.exception()
