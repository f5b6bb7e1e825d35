"""Studies on a cluster: Dask with workers in processes of their own gives the results of one process."""

import os

import joblib
import pytest

import pairscale as ps
from pairscale.core.jobs import run_tasks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # those of Dask and of its event loop are not ours
]


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


def test_a_study_on_a_cluster(cluster) -> None:
    def study() -> ps.SimulationStudy:
        return ps.simulate(8, selector=("pollitt", "random"), seeds=3, per_item=3, progress=False)

    alone = study()
    with joblib.parallel_config(backend="dask"):
        found = study()
    assert found.runs.equals(alone.runs, null_equal=True)
    assert found.curves.equals(alone.curves, null_equal=True)


def test_tasks_run_in_the_workers(cluster) -> None:
    with joblib.parallel_config(backend="dask"):
        found = {one.value for one in run_tasks(_process, range(8))}
    assert os.getpid() not in found
    assert found <= set(cluster.run(os.getpid).values())


def _process(_: int) -> int:
    return os.getpid()


def test_a_bootstrap_on_a_cluster(cluster) -> None:
    def theta():
        return ps.fit(ps.example_writing_results, bootstrap=60).theta

    alone = theta()
    with joblib.parallel_config(backend="dask"):
        assert theta().equals(alone)


def test_a_failed_task_on_a_cluster_is_a_row(cluster) -> None:
    def fails(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("no pair for you")

    with joblib.parallel_config(backend="dask"):
        study = ps.simulate(8, selector=("random", fails), seeds=2, per_item=2, progress=False)
    assert study.runs["error"].drop_nulls().to_list() == ["RuntimeError: no pair for you"] * 2
    assert study.stops["n_runs"].to_list() == [2]
