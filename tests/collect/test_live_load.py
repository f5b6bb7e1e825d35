"""Live judging under load and under ``kill -9``, over HTTP: everything is accounted for, and little is paid twice.

The simulator runs here and keeps its journal; those who judge are processes of their own, which can be measured and
killed.
"""

import collections
import json
import subprocess
import sys
import textwrap

import pytest

from pairscale.store.runfile import open_run
from pairscale.testing import Faults, ProviderSimulator

pytestmark = pytest.mark.slow

CHILD = textwrap.dedent("""
    import json, resource, sys
    import pairscale as ps
    from pairscale.collect.live import PairSource

    url, run, n_texts, n_pairs, concurrency, told = json.loads(sys.argv[1])
    texts = [{"ID": f"s{n:03d}", "text": f"Text {n} about rain. " * 20} for n in range(n_texts)]
    pairs = ps.sample_pairs(ps.make_pairs(texts), n_pairs=n_pairs, seed=1)
    judge = ps.make_judge("openai:gpt-4.1", judge_args={"base_url": url, "api_key": "none-at-all"})
    sizes, done = [], 0

    def take(self, question, recorded):
        global done
        if recorded is None or not recorded.verdict.outcome.is_answer:
            return ()
        done += 1
        if told:
            print(question.uid, recorded.comparison["better_id"], flush=True)
        elif done % 500 == 0:
            with open("/proc/self/status") as status:
                sizes.append(next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS")))
        return ()

    PairSource.done = take
    result = ps.submit_pairs(
        pairs, judge, run=run, concurrency=concurrency, progress=False, retries=6, retry_wait=0.05,
    )
    used = resource.getrusage(resource.RUSAGE_SELF)
    if not told:
        counts = {"results": result.results.height, "failed": result.failed_pairs.height, "asked": result.asked}
        attempts = {"attempts": result.failed_attempts.height}
        print(json.dumps(counts | attempts | {"sizes": sizes, "cpu": used.ru_utime + used.ru_stime}))
""")


def child(server, run, n_texts, n_pairs, concurrency, *, told):
    given = json.dumps([f"{server.url}/v1", str(run), n_texts, n_pairs, concurrency, told])
    return subprocess.Popen([sys.executable, "-c", CHILD, given], stdout=subprocess.PIPE, text=True)


def asked_about(server) -> collections.Counter:
    """How often each question was asked, by its prompt."""
    return collections.Counter(json.dumps(entry.body["messages"]) for entry in server.journal)


def load(tmp_path, *, pairs: int, texts: int, concurrency: int) -> dict:
    """Judge with five faults in a hundred requests, and account for every one of them."""
    share = 0.01
    faults = Faults(rate_limited=share, server_error=share, overloaded=share, reset=share, truncated=share)
    with ProviderSimulator(faults=faults) as server:
        done = child(server, tmp_path / "run.db", texts, pairs, concurrency, told=False)
        found = json.loads(done.communicate()[0])
        assert done.returncode == 0
        served, fates = server.served, collections.Counter(entry.fault for entry in server.journal)
        again = asked_about(server)
    assert found["results"] + found["failed"] == pairs
    assert found["failed"] == 0
    assert found["asked"] == served  # every request is an attempt of the run file, and the other way round
    assert fates["ok"] == found["results"]
    assert served - fates["ok"] == found["attempts"]
    assert 0.03 < found["attempts"] / served < 0.07
    assert len(again) == pairs
    with open_run(tmp_path / "run.db") as store:
        assert store.counts()["attempts"] == served
        assert store.results()["custom_id"].n_unique() == pairs
    return found | {"served": served}


def test_load(tmp_path):
    load(tmp_path, pairs=400, texts=30, concurrency=64)


@pytest.mark.validate
def test_ten_thousand_judgements_with_256_open(tmp_path, capsys):
    found = load(tmp_path, pairs=10_000, texts=160, concurrency=256)
    sizes = found["sizes"]
    with capsys.disabled():
        print(
            f"\n10,000 judgements, 256 open, 5 % faults: {found['served']:,} requests, {found['attempts']} faults, "
            f"none lost; {sizes[4]} MB after 2,500 answers, at most {max(sizes[4:])} MB after that; "
            f"{found['cpu'] / 10:.2f} ms of processor time each"
        )
    assert max(sizes[4:]) - sizes[4] < 30


def killed_and_resumed(tmp_path, *, pairs: int, texts: int, concurrency: int, kills: int) -> int:
    """Kill a run several times in its middle and let it end; how many questions were asked a second time."""
    run, used = tmp_path / "run.db", {}
    with ProviderSimulator(latency_s=0.02) as server:
        for part in range(kills + 1):
            judging = child(server, run, texts, pairs, concurrency, told=True)
            for line in judging.stdout:
                name, better = line.split()
                assert name not in used, "a pair that was answered is answered again"
                used[name] = better
                if part < kills and len(used) >= pairs * (part + 1) // (kills + 1):
                    judging.kill()
                    break
            for line in judging.stdout:  # what it had said before it died
                name, better = line.split()
                used[name] = better
            judging.wait()
            judging.stdout.close()
            assert judging.returncode == (0 if part == kills else -9)
        again = asked_about(server)
    with open_run(run) as store:
        results = store.results()
        assert store.counts()["comparisons"] == pairs
    assert results["custom_id"].n_unique() == results.height == pairs
    standing = dict(results.select("custom_id", "better_id").iter_rows())
    assert {name: standing[name] for name in used} == used  # what was used once stands
    assert len(again) == pairs
    twice = sum(count - 1 for count in again.values())
    assert twice <= kills * concurrency  # no more than what was in flight
    return twice


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_killed_in_the_middle(tmp_path):
    killed_and_resumed(tmp_path, pairs=200, texts=24, concurrency=8, kills=1)


@pytest.mark.validate
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
@pytest.mark.parametrize("kills", [1, 5])
def test_two_thousand_calls_killed_in_the_middle(kills, tmp_path, capsys):
    twice = killed_and_resumed(tmp_path, pairs=2000, texts=64, concurrency=32, kills=kills)
    with capsys.disabled():
        print(f"\n2,000 calls, 32 open, killed {kills} times: {twice} asked twice, each pair judged once")
