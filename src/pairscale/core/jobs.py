"""Independent tasks, on as many cores or machines as joblib is told to use.

``n_jobs=2`` is two processes of this machine; inside ``joblib.parallel_config(backend="dask")`` it is a cluster. What a
task needs, its seed included, is in the task, and every task has one thread for linear algebra, so that results do not
depend on where it runs or on how many others run.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pairscale.core.errors import PairscaleError
from pairscale.core.notices import notice
from pairscale.core.options import require_int
from pairscale.core.tables import first_line

Task = TypeVar("Task")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Done(Generic[Value]):
    """The result of a task: a value, or why there is none.

    Attributes:
        value: the result; None for a task that failed.
        error: the exception's name and message; None for a task that did not fail.
        cause: the exception itself, if another process could send it.
    """

    value: Value | None
    error: str | None = None
    cause: Exception | None = None


def require_jobs(n_jobs: Any) -> int | None:
    """Validate ``n_jobs``: a number of workers, -1 for all cores, or None for what joblib is configured to use.

    Raises:
        InputError: when it is anything else.
    """
    if n_jobs is None or (n_jobs == -1 and isinstance(n_jobs, int)):
        return n_jobs
    return require_int(n_jobs, "n_jobs", least=1)


def run_tasks(
    function: Callable[[Task], Value], tasks: Sequence[Task], n_jobs: int | None = None
) -> Iterator[Done[Value]]:
    """Run a function on every task; yields the results in the order of the tasks, each as soon as it is there.

    A task that raises an exception is a :class:`Done` with an error, and the others are run all the same. Where a
    worker is ended (by a signal, for want of memory), so are all tasks that were not done.

    Args:
        function: called with one task; where processes are used it must be one that can be pickled.
        tasks: what to call it with.
        n_jobs: how many at once, see :func:`require_jobs`.
    """
    n_jobs = require_jobs(n_jobs)
    with _one_thread():
        # Nothing is configured where joblib was never imported, and importing it takes a tenth of a second.
        if n_jobs == 1 or (n_jobs is None and "joblib" not in sys.modules) or len(tasks) < 2:
            for task in tasks:
                yield _attempt(function, task)
            return
        yield from _in_workers(function, tasks, n_jobs)


def _in_workers(function: Callable[[Task], Value], tasks: Sequence[Task], n_jobs: int | None) -> Iterator[Done[Value]]:
    """The same in workers. What they raise is in what they send: an exception here is a worker that has died."""
    from joblib import Parallel, delayed

    n_done = 0
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        for done in parallel(delayed(_elsewhere)(function, task, os.getpid()) for task in tasks):
            n_done += 1
            yield done
    except Exception as error:  # noqa: BLE001 - whatever ended the workers, what was done before is kept
        reason = f"{type(error).__name__}: {first_line(error)}"
        yield from [Done(None, reason, error)] * (len(tasks) - n_done)


def _one_thread() -> AbstractContextManager[object]:
    """Have linear algebra use one thread: its last digits depend on their number."""
    import scipy.linalg  # noqa: F401 - the limit is of libraries that are loaded
    from threadpoolctl import threadpool_limits

    limit: AbstractContextManager[object] = threadpool_limits(1)
    return limit


def _attempt(function: Callable[[Task], Value], task: Task) -> Done[Value]:
    try:
        return Done(function(task))
    except Exception as error:  # noqa: BLE001 - a task that fails is a row, whatever it raised
        return Done(None, f"{type(error).__name__}: {error}", error)


_TURN = threading.Lock()
_LIMITS: list[object] = []  # of a process that works for another


def _elsewhere(function: Callable[[Task], Value], task: Task, parent: int) -> Done[Value]:
    """The same in another thread or process, from which not every exception can be sent.

    A process that works for another sets the limit once, and keeps it: to set it while others compute is not safe.
    """
    if os.getpid() != parent:
        with _TURN:
            if not _LIMITS:
                _LIMITS.append(_one_thread())
    done = _attempt(function, task)
    try:
        pickle.loads(pickle.dumps(done.cause))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - whatever it is, only its text is sent
        return Done(None, done.error)
    return done


def values_of(done: Sequence[Done[Value]], what: str) -> list[Value]:
    """The values of the tasks that did not fail; a notice says how many did.

    Args:
        done: the results of all tasks.
        what: what a task is, for the message.

    Raises:
        Exception: when all of them failed, that of the first.
    """
    values = [result.value for result in done if result.error is None and result.value is not None]
    if done and not values:
        raise done[0].cause or PairscaleError(f"every {what} failed; the first with {done[0].error}")
    failed = [result.error for result in done if result.error is not None]
    if failed:
        notice(f"{len(failed):,} of {len(done):,} {what}s failed and are left out; the first with {failed[0]}")
    return values
