"""The one bridge from async to sync: an event loop in a thread, so that scripts and notebooks work alike."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

from pairscale.core.errors import without_login
from pairscale.core.notices import notice

T = TypeVar("T")
P = ParamSpec("P")
_NO_RUN: Final = object()
_WAKE_S = 0.2
_CLOSE_S = 5.0
_MOST_STOPS = 2
"""The first Ctrl-C waits for open questions, the second leaves them, and a third leaves the process at once."""


class Terminated(SystemExit):
    """The process was told to end (SIGTERM); it ends as on Ctrl-C, with exit code 143."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


class Interrupt:
    """Ends a call that is interrupted: it asks nothing more, and is cancelled when nothing that it asked is open.

    Attributes:
        is_stopping: whether nothing more may be asked.
        is_cut: whether the call was cancelled.
    """

    def __init__(self) -> None:
        self.is_stopping = False
        self.is_cut = False
        self._n_open = 0
        self._stops: list[Callable[[], None]] = []
        self._task: asyncio.Task[Any] | None = None  # that is being stopped

    @contextmanager
    def tells(self, stop: Callable[[], None]) -> Iterator[None]:
        """While the block runs, an interrupt calls ``stop``."""
        self._stops.append(stop)
        try:
            yield
        finally:
            self._stops.remove(stop)

    @contextmanager
    def waits(self) -> Iterator[None]:
        """While the block runs, a question is open: an interrupt waits for its end."""
        self._n_open += 1
        try:
            yield
        finally:
            self._n_open -= 1
            self._cut_if_done()

    async def wait_if_stopping(self) -> None:
        """Ask nothing more in a call that is being interrupted: wait to be cancelled."""
        if self.is_stopping:
            await asyncio.get_running_loop().create_future()

    def begin(self, task: asyncio.Task[Any]) -> None:
        """Ask nothing more, and cancel the task when nothing is open."""
        if self.is_stopping:
            return
        self.is_stopping = True
        self._task = task
        for stop in self._stops:
            stop()
        if self._n_open:
            questions = "question" if self._n_open == 1 else "questions"
            notice(f"waiting for {self._n_open:,} open {questions}; Ctrl-C again to leave them")
        self._cut_if_done()

    def cut(self, task: asyncio.Task[Any]) -> None:
        """Cancel the task once, whatever is open: a second time would cut short what it stores."""
        if not self.is_cut:
            self.is_stopping = True
            self.is_cut = True
            task.cancel()

    def _cut_if_done(self) -> None:
        if self._task is not None and self._n_open == 0:
            self.cut(self._task)


_INTERRUPT: ContextVar[Interrupt | None] = ContextVar("interrupt", default=None)


def interrupt_of_call() -> Interrupt:
    """The interrupt of the call around; one that never happens where the program runs its own event loop."""
    return _INTERRUPT.get() or Interrupt()


def run_sync(make: Callable[[], Coroutine[Any, Any, T]], *, run: object = _NO_RUN) -> T:
    """Run a coroutine to its end in a thread of its own, with the caller's context variables, and return its result.

    On Ctrl-C and on SIGTERM nothing more is asked, and what is open is waited for; on a second one it is left. Then the
    coroutine is cancelled and given the time to store what was answered, and KeyboardInterrupt or :class:`Terminated`
    is raised.

    Args:
        make: Makes the coroutine.
        run: The file that holds the answers, to say on an interrupt how to resume; None when nothing is kept. Without
            it, there is no notice.
    """
    if run is _NO_RUN:
        return _in_thread(make)
    with resumable(run):
        return _in_thread(make)


def blocking(*kept: str) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, T]]:
    """Turn an async function into one that blocks until it is done; :func:`awaitable` gives back the async one.

    So a public function has one signature and one docstring in both forms.

    Args:
        kept: The parameters, by name, that may say which file holds the answers; see :func:`run_sync`.
    """

    def decorate(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
        @wraps(function)
        def blocked(*args: P.args, **settings: P.kwargs) -> T:
            run = next((settings[name] for name in kept if settings.get(name)), None) if kept else _NO_RUN
            return run_sync(lambda: function(*args, **settings), run=run)

        return blocked

    return decorate


def awaitable(
    blocked: Callable[P, T],
) -> Callable[[Callable[..., Coroutine[Any, Any, Any]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Turn a stub, of which only the name and docstring count, into the async function behind ``blocked``.

    Args:
        blocked: A function that was made by :func:`blocking`.
    """
    function: Callable[P, Coroutine[Any, Any, T]] = blocked.__wrapped__  # type: ignore[attr-defined]

    def decorate(named: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(function)
        async def awaited(*args: P.args, **settings: P.kwargs) -> T:
            return await function(*args, **settings)

        awaited.__name__ = named.__name__
        awaited.__qualname__ = named.__qualname__
        awaited.__doc__ = named.__doc__
        return awaited

    return decorate


@contextmanager
def resumable(run: object | None) -> Iterator[None]:
    """On Ctrl-C and SIGTERM, log once where the answers are and how to resume.

    Args:
        run: The file that holds the answers; None when nothing is kept.
    """
    try:
        yield
    except (KeyboardInterrupt, Terminated) as stop:
        if not getattr(stop, "is_told", False):
            stop.is_told = True  # type: ignore[union-attr]
            what = "terminated" if isinstance(stop, Terminated) else "interrupted"
            kept = f"The answers so far are in {without_login(str(run))}. Run it again to resume."
            notice(f"{what}. {'Nothing was kept.' if run is None else kept}")
        raise


class _Stops:
    """Ctrl-C and SIGTERM on their way from the thread that waits to the call."""

    def __init__(self, interrupt: Interrupt) -> None:
        self.seen: list[KeyboardInterrupt | Terminated] = []
        self._interrupt = interrupt
        self._call: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None

    def begun(self, task: asyncio.Task[Any]) -> None:
        """Deliver stops to this call, also those that came before it began."""
        self._call = (task.get_loop(), task)
        self._deliver()

    def handle(self, number: int, _frame: object) -> None:
        """The handler of the signals."""
        self.seen.append(Terminated() if number == signal.SIGTERM else KeyboardInterrupt())
        if self._interrupt.is_cut or len(self.seen) > _MOST_STOPS:
            raise self.seen[0]
        self._deliver()

    def leave(self) -> None:
        """Cancel the call, whatever is open."""
        self.seen += [KeyboardInterrupt(), KeyboardInterrupt()]
        self._deliver()

    def _deliver(self) -> None:
        if self._call is None or not self.seen:
            return
        loop, task = self._call
        step = self._interrupt.begin if len(self.seen) == 1 else self._interrupt.cut
        with suppress(RuntimeError):  # the loop is closed: the call has ended
            loop.call_soon_threadsafe(step, task)


def _in_thread(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    outcome: Future[T] = Future()
    interrupt = Interrupt()
    stops = _Stops(interrupt)

    async def main() -> T:
        _INTERRUPT.set(interrupt)
        task = asyncio.ensure_future(make())
        stops.begun(task)
        return await task

    def target() -> None:
        with asyncio.Runner() as runner:
            try:
                outcome.set_result(runner.run(main()))
            except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
                outcome.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(target,), name="pairscale", daemon=True)
    with _handled(stops.handle):
        thread.start()
        try:
            # In short waits: another thread may get the signal, and only a waking main thread sees it.
            while not outcome.done():
                wait([outcome], _WAKE_S)
        except (KeyboardInterrupt, Terminated):
            if not stops.seen:  # raised by a handler of the program's own
                stops.leave()
                thread.join()
            raise
        thread.join(None if stops.seen else _CLOSE_S)  # what does not end when it is cancelled holds up nothing
    if stops.seen:
        raise stops.seen[0]
    try:
        return outcome.result()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def _handled(stop: Callable[[int, Any], None]) -> Iterator[None]:
    """While the block runs, Ctrl-C and SIGTERM call ``stop`` instead of raising at any point of the waiting thread.

    Handlers that the program has set itself stay in place, and outside the main thread none is set.
    """
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        usual = {signal.SIGINT: (signal.default_int_handler,), signal.SIGTERM: (signal.SIG_DFL, _terminate)}
        before = {number: signal.getsignal(number) for number in usual if signal.getsignal(number) in usual[number]}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def terminable() -> Iterator[None]:
    """While the block runs, SIGTERM raises :class:`Terminated`, until :func:`leave_sigterm`.

    Afterwards SIGTERM does what it did before. A handler that the program has set itself stays in place, and outside
    the main thread none is set: in both cases it is the program that decides when to stop.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def leave_sigterm() -> None:
    """Let the next SIGTERM end the process at once."""
    if signal.getsignal(signal.SIGTERM) is _terminate:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(_signal: int, _frame: object) -> NoReturn:
    raise Terminated
