"""Independent tasks: the same results wherever they run, and a failed one does not end the others."""

import os
import pickle
import signal
import threading
import time
from functools import cache

import joblib
import pytest
from threadpoolctl import threadpool_info

import pairscale as ps
from pairscale.core.errors import InputError, MissingExtraError, PairscaleError
from pairscale.core.jobs import Done, require_jobs, run_tasks, values_of

BACKENDS = [(1, "loky"), (None, "loky"), (2, "threading"), pytest.param(2, "loky", marks=pytest.mark.slow)]


def square(n: int) -> int:
    if n == 3:
        raise MissingExtraError("three", "extra")  # which cannot be pickled and read back
    if n == 4:
        raise ValueError("four")
    return n * n


@pytest.mark.parametrize(("n_jobs", "backend"), BACKENDS)
def test_every_backend_gives_the_same_in_order(n_jobs: int | None, backend: str) -> None:
    with joblib.parallel_config(backend=backend):
        done = list(run_tasks(square, range(6), n_jobs))
    assert [one.value for one in done] == [0, 1, 4, None, None, 25]
    assert done[4].error == "ValueError: four"
    assert isinstance(done[4].cause, ValueError)
    assert done[3].error is not None
    assert done[3].error.startswith("MissingExtraError: ")


def test_when_all_failed_the_first_exception_is_raised(message_snapshot) -> None:
    with pytest.raises(ValueError, match="four"):
        values_of(list(run_tasks(square, [4, 3])), "run")
    with pytest.raises(PairscaleError) as refused:
        values_of([Done(None, "KeyError: 1")], "run")
    message_snapshot(refused)


def _ends_its_worker(task: tuple[int, int]) -> int:
    n, parent = task
    if n in (2, 5) and os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return n * n


@pytest.mark.slow
def test_a_task_that_ends_its_worker_is_a_row() -> None:
    done = list(run_tasks(_ends_its_worker, [(n, os.getpid()) for n in range(12)], 2))
    assert len(done) == 12
    assert {one.error.split(":")[0] for one in done if one.error} == {"TerminatedWorkerError"}


@pytest.mark.slow
def test_where_nothing_can_be_sent_the_exception_is_raised() -> None:
    lock = threading.Lock()  # cannot be sent
    with pytest.raises(pickle.PicklingError):
        values_of(list(run_tasks(lambda _: lock.locked(), range(30), 2)), "run")


@pytest.mark.parametrize("wrong", [0, -2, 1.5, True, "2"])
def test_wrong_numbers_are_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="n_jobs must be"):
        require_jobs(wrong)


def _studied(n_jobs: int | None) -> ps.SimulationStudy:
    return ps.simulate(8, selector=("pollitt", "random"), seeds=2, per_item=3, n_jobs=n_jobs, progress=False)


@cache
def _alone() -> ps.SimulationStudy:
    return _studied(1)


@pytest.mark.parametrize(("n_jobs", "backend"), BACKENDS)
def test_a_study_is_the_same_on_every_backend(n_jobs: int | None, backend: str) -> None:
    with joblib.parallel_config(backend=backend):
        found = _studied(n_jobs)
    assert found.runs.equals(_alone().runs, null_equal=True)
    assert found.curves.equals(_alone().curves, null_equal=True)


def _blas_threads(_task: int) -> set[int]:
    time.sleep(0.02)
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.mark.parametrize(("n_jobs", "backend"), BACKENDS)
def test_a_task_has_one_thread_for_linear_algebra(n_jobs: int | None, backend: str) -> None:
    """Also when others that run beside it begin and end: their last digits must not depend on it."""
    before = _blas_threads(0)
    with joblib.parallel_config(backend=backend):
        assert {n for done in run_tasks(_blas_threads, range(9), n_jobs) for n in done.value or {0}} == {1}
    assert _blas_threads(0) == before
