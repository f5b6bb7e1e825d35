"""Studies on a cluster: Dask with workers in processes of their own gives the results of one process."""

import os

import joblib
import pytest

import pairscale as ps

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


def fails(*_args: object, **_kwargs: object) -> None:
    raise RuntimeError(f"no pair for you in process {os.getpid()}")


def test_a_study_on_a_cluster(cluster) -> None:
    """A task that fails is a row, which says in which of the workers it ran."""

    def study(*selectors: object) -> ps.SimulationStudy:
        return ps.simulate(8, selector=("pollitt", *selectors), seeds=3, per_item=3, progress=False)

    alone = study()
    with joblib.parallel_config(backend="dask"):
        found = study(fails)
    failed = found.runs["error"].drop_nulls().to_list()
    workers = set(cluster.run(os.getpid).values())
    assert len(failed) == 3
    assert set(failed) <= {f"RuntimeError: no pair for you in process {worker}" for worker in workers}
    assert found.runs.filter(selector="pollitt").equals(alone.runs, null_equal=True)
    assert found.curves.filter(selector="pollitt").equals(alone.curves, null_equal=True)


def test_a_bootstrap_on_a_cluster(cluster) -> None:
    def theta():
        return ps.fit(ps.example_writing_results, bootstrap=60).theta

    alone = theta()
    with joblib.parallel_config(backend="dask"):
        assert theta().equals(alone)
