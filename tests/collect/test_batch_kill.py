"""``kill -9`` at every step of the way, then go on: no batch is created twice, no result is lost or kept twice."""

import json
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from batching import expected, judge_of, pairs_of, simulator, with_desk

from pairscale.collect.batch import _collecting, _steps
from pairscale.store import open_run

N_PAIRS, CHUNK = 10, 2

# A process that has imported everything and done nothing forks for each order: Polars must not be forked once its
# threads run, and starting Python for each of them would take most of the time.
NURSERY = textwrap.dedent("""
    import json, os, signal, sys
    from types import SimpleNamespace

    sys.path.insert(0, sys.argv[1])
    import test_batch_kill as test
    from pairscale.collect.batch import _collecting, _steps

    def doomed(run, url, provider, step, occurrence):
        seen = 0

        def reached(name):
            nonlocal seen
            seen += name == step
            if seen == occurrence:
                os.kill(os.getpid(), signal.SIGKILL)

        _steps.reached, _collecting._CHUNK = reached, test.CHUNK
        test.whole(run, SimpleNamespace(url=url), provider)

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                doomed(*json.loads(line))
                os._exit(0)
            except BaseException as error:
                print(type(error), error, file=sys.stderr, flush=True)
                os._exit(1)
        print(os.waitpid(child, 0)[1], flush=True)
""")


@pytest.fixture(scope="module")
def nursery():
    arguments = [sys.executable, "-c", NURSERY, str(Path(__file__).parent)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def doomed(*order) -> int:
            """Do everything in a child that kills itself when it has reached a step so often; its exit status."""
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], 120)[0], "the child hangs"
            return int(process.stdout.readline())

        yield doomed
        process.stdin.close()


def whole(run, server, provider):
    async def work(desk):
        await desk.submit(pairs_of(5), judge_of(server, provider), n_segments=2)
        await desk.wait(interval=1)
        return desk.entries(), desk.results()[0]

    return with_desk(run, work)


@pytest.mark.parametrize("step", _steps.STEPS)
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "together"])
def test_kill_at_every_step(nursery, provider, step, tmp_path, monkeypatch):
    monkeypatch.setattr(_collecting, "_CHUNK", CHUNK)
    died = 0
    for occurrence in (1, 2):
        run = tmp_path / f"run-{occurrence}.db"
        with simulator() as server:
            status = nursery(str(run), server.url, provider, step, occurrence)
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
    never = step == "uploaded" and provider in {"anthropic", "gemini"}  # whose requests go with the creation
    assert died == (0 if never else 1 if step in {"written", "prepared"} else 2)
