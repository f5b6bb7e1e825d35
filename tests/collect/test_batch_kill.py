"""``kill -9`` at every step of the way, then continue: no batch is created twice, no result is lost or kept twice.

The steps are those of the registry. A longer test kills at every moment between two of anything that lasts: before and
after each request to the provider, and before and after each transaction of the run file.
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

from pairscale.collect.batch import files, registry
from pairscale.store.runfile import open_run

pytestmark = pytest.mark.slow

N_PAIRS, CHUNK = 10, 2
FORMS = ("openai", "anthropic", "gemini", "gemini by file", "together")
ANY = "any moment"

# A process that has imported everything and done nothing forks for each order: Polars must not be forked once its
# threads run, and starting Python for each of them would take most of the time.
NURSERY = textwrap.dedent("""
    import json, os, signal, sys
    from types import SimpleNamespace

    sys.path.insert(0, sys.argv[1])
    import test_batch_kill as test
    from pairscale.collect.batch import files, registry
    from pairscale.providers import gemini
    from pairscale.providers.batch_http import BatchHTTP
    from pairscale.store.writer import Writer

    def doomed(run, url, form, step, occurrence):
        seen = 0

        def reached(name):
            nonlocal seen
            seen += step in (name, test.ANY)
            if seen == occurrence:
                os.kill(os.getpid(), signal.SIGKILL)

        def asked(method):
            async def between(*args, **settings):
                reached("before a request")
                answer = await method(*args, **settings)
                reached("after a request")
                return answer
            return between

        def written(method):
            def between(*args, **settings):
                reached("before a transaction")
                answer = method(*args, **settings)
                reached("after a transaction")
                return answer
            return between

        if step == test.ANY:
            BatchHTTP.call, BatchHTTP.fetch = asked(BatchHTTP.call), asked(BatchHTTP.fetch)
            Writer.commit = written(Writer.commit)
        if form == "gemini by file":
            gemini._INLINE = 100
        registry.reached, files._CHUNK = reached, test.CHUNK
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
            """Do everything in a child that kills itself when it has reached a step so often; its exit status."""
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], 600)[0], "the child hangs"
            return int(process.stdout.readline())

        yield doomed
        process.stdin.close()


def whole(run, server, form):
    async def work(desk):
        await desk.submit(pairs_of(5), judge_of(server, form.partition(" ")[0]), n_segments=2)
        await desk.wait(interval=1)
        return desk.entries(), desk.results()[0]

    return with_manager(run, work)


def killed_and_resumed(nursery, run, form, step, occurrence) -> int:
    """The exit status of the child; whatever it is, another process has everything in the end, and only once."""
    with simulator() as server:
        status = nursery(str(run), server.url, form, step, occurrence)
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


@pytest.fixture
def small_steps(monkeypatch, request):
    monkeypatch.setattr(files, "_CHUNK", CHUNK)
    if request.node.callspec.params["form"] == "gemini by file":
        monkeypatch.setattr("pairscale.providers.gemini._INLINE", 100)


BY_FILE = ("uploaded", "creating", "created", "downloaded")  # where Gemini's two forms differ


EVERY = [(form, step) for form in FORMS for step in (BY_FILE if form == "gemini by file" else registry.STEPS)]
SOON = {form: {"creating", "downloaded"} for form in FORMS} | {"openai": set(registry.STEPS)}
"""The other providers take the same steps; all of each are gone through by `make validate`."""


@pytest.mark.parametrize(
    ("form", "step"),
    [pytest.param(form, step, marks=[pytest.mark.validate] * (step not in SOON[form])) for form, step in EVERY],
)
@pytest.mark.usefixtures("small_steps")
def test_kill_at_every_step(nursery, form, step, tmp_path):
    runs = [(tmp_path / f"run-{occurrence}.db", occurrence) for occurrence in (1, 2)]
    died = sum(killed_and_resumed(nursery, run, form, step, occurrence) != 0 for run, occurrence in runs)
    never = step == "uploaded" and form in {"anthropic", "gemini"}  # whose requests go with the creation
    assert died == (0 if never else 1 if step in {"written", "prepared"} else 2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("small_steps")
def test_the_steps_are_all_that_is_written_down(form, tmp_path):
    """An event that the registry knows, and that is not among the steps, would be one that no test is killed at."""
    with simulator() as server:
        whole(tmp_path / "run.db", server, form)
    with open_run(tmp_path / "run.db") as store:
        kinds = {row["event"] for row in store.read_log("batches")}
    assert kinds <= set(registry.STEPS)
    assert {"prepared", "creating", "created", "recorded", "collected"} <= kinds
    assert ("uploaded" in kinds) == (form not in {"anthropic", "gemini"})


@pytest.mark.validate
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("small_steps")
def test_kill_at_any_moment(nursery, form, tmp_path):
    moment = 0
    while True:
        moment += 1
        if killed_and_resumed(nursery, tmp_path / f"run-{moment}.db", form, ANY, moment) == 0:
            break
    print(f"\n{form}: killed at each of {moment - 1} moments")
    assert moment > 40
