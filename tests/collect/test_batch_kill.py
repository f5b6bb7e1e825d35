"""``kill -9`` at every moment, then continue: no batch is created twice, no result is lost or kept twice.

A moment is one between two of anything that lasts: before and after each request to the provider, and before and after
each transaction of the run file.
"""

import json
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.batching import expected, judge_of, pairs_of, simulator, with_manager

from pairscale.collect.batch import files
from pairscale.store.runfile import open_run

pytestmark = pytest.mark.slow

N_PAIRS, CHUNK = 10, 2
FORMS = ("openai", "anthropic", "gemini", "together")

# A process that has imported everything and done nothing forks for each order: Polars must not be forked once its
# threads run, and starting Python for each of them would take most of the time.
NURSERY = textwrap.dedent("""
    import json, os, signal, sys
    from types import SimpleNamespace

    sys.path.insert(0, sys.argv[1])
    import test_batch_kill as test
    from pairscale.collect.batch import files
    from pairscale.providers.batch_http import BatchHTTP
    from pairscale.store.writer import Writer

    def doomed(run, url, form, moment):
        seen = 0

        def passed():
            nonlocal seen
            seen += 1
            if seen == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        def asked(method):
            async def between(*args, **settings):
                passed()
                answer = await method(*args, **settings)
                passed()
                return answer
            return between

        def written(method):
            def between(*args, **settings):
                passed()
                answer = method(*args, **settings)
                passed()
                return answer
            return between

        BatchHTTP.call, BatchHTTP.fetch = asked(BatchHTTP.call), asked(BatchHTTP.fetch)
        Writer.commit = written(Writer.commit)
        files._CHUNK = test.CHUNK
        test.whole(run, SimpleNamespace(url=url), form)

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
            """Do everything in a child that kills itself at a moment; its exit status."""
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], 600)[0], "the child hangs"
            return int(process.stdout.readline())

        yield doomed
        process.stdin.close()


def whole(run, server, form):
    async def work(desk):
        await desk.submit(pairs_of(5), judge_of(server, form), n_segments=2)
        await desk.wait(interval=1)
        return desk.entries(), desk.results()[0]

    return with_manager(run, work)


def killed_and_resumed(nursery, run, form, moment) -> int:
    """The exit status of the child; whatever it is, another process has everything in the end, and only once."""
    with simulator() as server:
        status = nursery(str(run), server.url, form, moment)
        assert status in {0, signal.SIGKILL}
        found, results = whole(run, server, form)
        assert server.batches.created == 2
        assert {entry.batch_id for entry in found} == set(server.batches.jobs)
    assert not any(entry.open for entry in found)
    assert results.height == results["custom_id"].n_unique() == N_PAIRS
    ordered = pairs_of(5).select("ID1", "ID2").join(results, on=["ID1", "ID2"], maintain_order="left")
    assert ordered["better_id"].to_list() == expected(pairs_of(5))
    with open_run(run) as store:
        assert store.counts()["attempts"] == store.counts()["comparisons"] == N_PAIRS
    return status


@pytest.mark.parametrize(
    ("form", "stride"),
    [("openai", 3)]
    + [(form, 9) for form in FORMS[1:]]
    + [pytest.param(form, 1, marks=pytest.mark.validate) for form in FORMS],
)
def test_kill_at_every_moment(nursery, form, stride, tmp_path, monkeypatch):
    """Some moments of every provider, of which each takes the same way; `make validate` goes through all of them."""
    monkeypatch.setattr(files, "_CHUNK", CHUNK)
    moment = 1
    while killed_and_resumed(nursery, tmp_path / f"run-{moment}.db", form, moment) != 0:
        moment += stride
    print(f"\n{form}: killed at moments up to {moment}")
    assert moment > 40
