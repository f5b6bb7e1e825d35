"""Several processes on one A/B run in a PostgreSQL database: one works on the cases, all judge."""

import signal
import time

import pytest
from tests.workers import (
    asked,
    asked_in,
    by_process,
    finished,
    leader_of,
    none_left,  # noqa: F401 - a fixture
    start,
    wait_for,
)

import pairscale as ps
from pairscale.store.runfile import open_run

pytestmark = pytest.mark.slow

N = 40
COST = 0.01


def comparing(address, notes, **more):
    given = {"verb": "ab", "n_texts": N, "latency": 0.3, "concurrency": 2}
    return start(address, notes, **given | more)


def whole(address):
    report = ps.audit(address)
    assert report.passed, report
    with open_run(address) as store:
        counts = store.counts()
        with store.transaction() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM questions").scalar() == 0
    assert counts["comparisons"] == counts["pairs"] == 2 * N  # both orders
    return counts["attempts"]


def test_the_judging_is_shared(address, tmp_path):
    notes = tmp_path / "notes"
    found = finished([comparing(address, notes, latency=0.5, together=3) for _ in range(3)])
    assert [(one.get("error"), one["cases"], one["wins"]) for one in found] == [(None, N, N)] * 3
    assert asked_in(notes).total() == whole(address) == 2 * N
    assert len(by_process(notes)) == 3
    assert ps.status(address).workers["answered"].sum() == 2 * N


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_another_process_takes_the_lead(address, tmp_path, how):
    notes = tmp_path / "notes"
    processes = [comparing(address, notes, latency=1.0, together=3) for _ in range(3)]
    leader = leader_of(address, processes)
    wait_for(lambda: len(by_process(notes)) == 3)
    leader.send_signal(how)
    leader.communicate(timeout=600)
    found = finished([process for process in processes if process is not leader])
    assert [(one.get("error"), one["cases"], one["wins"]) for one in found] == [(None, N, N)] * 2
    assert asked(notes) - 2 * N <= 4  # its open calls, and answers that were on their way to the disk
    assert whole(address) <= asked(notes) + 8  # interrupted ones are attempts, too


def test_a_worker_and_the_server_are_killed(tmp_path):
    from tools.postgres import PostgresServer

    notes = tmp_path / "notes"
    with PostgresServer() as server:
        address = server.create("killed")
        processes = [comparing(address, notes, latency=0.5, together=3) for _ in range(3)]
        leader = leader_of(address, processes)
        killed = next(process for process in processes if process is not leader)
        wait_for(lambda: by_process(notes)[str(killed.pid)] > 2)
        killed.kill()
        killed.communicate()
        server.stop()
        time.sleep(2)
        server.start()
        found = finished([process for process in processes if process is not killed])
        assert [(one.get("error"), one["cases"], one["wins"]) for one in found] == [(None, N, N)] * 2
        assert asked(notes) - 2 * N <= 2 * 3
        whole(address)


def test_a_process_with_something_else_is_refused(address, tmp_path):
    processes = [comparing(address, tmp_path / "notes", max_cost=0.4, latency=3_000.0)]
    leader_of(address, processes)
    others = {
        "works on this run with other cases, and this process has 40 cases": {"text": "other"},
        "template concise": {"template": "concise"},
        "max_cost $0.4, and this process has none": {"max_cost": None},
    }
    for words, given in others.items():
        (found,) = finished([comparing(address, tmp_path / "none", **{"max_cost": 0.4} | given)])
        assert words in found["error"]
    assert not asked(tmp_path / "none")


def test_one_budget_for_all(address, tmp_path):
    notes = tmp_path / "notes"
    found = finished([comparing(address, notes, max_cost=0.4, latency=0.5, together=2) for _ in range(2)])
    assert [(one.get("error"), one["stopped"]) for one in found] == [(None, "max_cost")] * 2
    with open_run(address) as store:
        assert 0.4 - 2 * 2 * COST <= store.spent() <= 0.4 + 1e-9
        assert asked(notes) == round(store.spent() / COST)
