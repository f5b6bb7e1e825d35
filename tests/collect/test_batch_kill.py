"""``kill -9`` at every step of the way, then go on: no batch is created twice, no result is lost or kept twice."""

import os
import signal

import pytest
from batching import expected, judge_of, pairs_of, simulator, with_desk

from pairscale.collect.batch import _collecting, _steps
from pairscale.store import open_run

N_PAIRS = 10


def doomed(run, server, provider, step, occurrence) -> int:
    """Do everything in a child that kills itself when it has reached a step for so many times; its exit status."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    seen = 0

    def reached(name: str) -> None:
        nonlocal seen
        seen += name == step
        if seen == occurrence:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        _steps.reached = reached
        whole(run, server, provider)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - told by the exit status
        os._exit(1)


def whole(run, server, provider):
    async def work(desk):
        await desk.submit(pairs_of(5), judge_of(server, provider), n_segments=2)
        await desk.wait(interval=1)
        return desk.entries(), desk.results()[0]

    return with_desk(run, work)


@pytest.mark.parametrize("step", _steps.STEPS)
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "together"])
def test_kill_at_every_step(provider, step, tmp_path, monkeypatch):
    monkeypatch.setattr(_collecting, "_CHUNK", 2)
    died = 0
    for occurrence in (1, 2):
        run = tmp_path / f"run-{occurrence}.db"
        with simulator() as server:
            status = doomed(run, server, provider, step, occurrence)
            assert status in {0, signal.SIGKILL}
            died += status != 0
            found, results = whole(run, server, provider)
            assert server.batches.created == 2
            assert {entry.batch_id for entry in found} == set(server.batches.jobs)
        assert not any(entry.open for entry in found)
        assert results.height == results["custom_id"].n_unique() == N_PAIRS
        ordered = pairs_of(5).select("ID1", "ID2").join(results, on=["ID1", "ID2"], maintain_order="left")
        assert ordered["better_id"].to_list() == expected(pairs_of(5))
        with open_run(run) as store:
            assert store.counts()["attempts"] == store.counts()["comparisons"] == N_PAIRS
    once = step in {"written", "prepared"} or (step, provider) in {("uploaded", "anthropic"), ("uploaded", "gemini")}
    never = (step, provider) in {("uploaded", "anthropic"), ("uploaded", "gemini")}
    assert died == (0 if never else 1 if once else 2)
