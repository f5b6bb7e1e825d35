"""``kill -9`` at random moments: no answer that was used is lost, none is asked for or kept twice."""

import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import pytest

from pairscale.core.files import read_table
from pairscale.store.runfile import open_run

CONCURRENCY = 4
N_ITEMS = 24
N_PAIRS = N_ITEMS * (N_ITEMS - 1) // 2

# The judge answers by a coin toss each time it is asked, so that an answer that was replaced by another, or
# taken twice, shows. It leaves a line for each question; the parent reads a line for each answer that was used.
CHILD = textwrap.dedent("""
    import asyncio, os, random, sys
    import pairscale as ps
    from pairscale.collect.live import PairSource

    def done(self, question, recorded):
        print(question.uid, recorded.comparison["better_id"], flush=True)
        return ()

    PairSource.done = done
    run, asked, save = sys.argv[1:4]
    log = os.open(asked, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    class Coin:
        condition = ps.Condition("coin")
        async def compare(self, pair):
            os.write(log, (pair.uid + "\\n").encode())
            await asyncio.sleep(random.random() * 0.01)
            return ps.Verdict.win(random.choice([1, 2]), content="x" * 300)

    samples = [{"ID": f"s{n:02d}", "text": f"text {n} " * 50} for n in range(%d)]
    ps.submit_pairs(
        ps.make_pairs(samples), Coin(), run=run, concurrency=%d, progress=False, save_path=save or None,
    )
""")


def kill_and_resume(tmp_path, kills: int, seed: int, *, save: bool) -> tuple[int, int]:
    """Kill runs until ``kills`` of them died, and let each run file be finished in the end.

    Returns how many questions were asked beyond one per pair, and how many processes were really killed.
    """
    rng = random.Random(seed)
    again = killed = rounds = 0
    while killed < kills:
        folder = tmp_path / f"round-{rounds}"
        folder.mkdir()
        more, died = _one_run(folder, rng, most=kills - killed, save=save)
        again, killed, rounds = again + more, killed + died, rounds + 1
    return again, killed


def _one_run(folder, rng: random.Random, *, most: int, save: bool) -> tuple[int, int]:
    run, asked, saved = folder / "run.db", folder / "asked.txt", folder / "saved.csv"
    arguments = [sys.executable, "-c", CHILD % (N_ITEMS, CONCURRENCY), run, asked, saved if save else ""]
    used: dict[str, str] = {}
    killed, code = 0, None
    while code != 0:
        process = subprocess.Popen([str(part) for part in arguments], stdout=subprocess.PIPE, text=True)
        if killed < most:
            if killed % 4 == 0:  # somewhere in the start: imports, schema, samples, pairs, the saved file
                time.sleep(rng.random())
            else:
                for _ in range(rng.randint(1, N_PAIRS // 12)):
                    _take(process.stdout.readline(), used)
                time.sleep(rng.random() * 0.02)
            process.send_signal(signal.SIGKILL)
        for line in process.stdout.read().splitlines(keepends=True):
            _take(line, used)
        code = process.wait()
        process.stdout.close()
        assert code in {0, -signal.SIGKILL}
        killed += code != 0
        stored = _stored(run)
        assert stored | used == stored, "an answer that was used is not in the run file"
    assert len(stored) == N_PAIRS
    with contextlib.closing(sqlite3.connect(run)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        outcomes = connection.execute("SELECT count(*), count(DISTINCT pair_id) FROM comparisons").fetchone()
        attempts = connection.execute("SELECT count(*) FROM attempts").fetchone()
    assert outcomes == (N_PAIRS, N_PAIRS)
    assert attempts == (N_PAIRS,)
    if save:
        rows = [(row["custom_id"], row["better_id"]) for row in read_table(saved).iter_rows(named=True)]
        assert len(rows) == N_PAIRS
        assert set(rows) == set(stored.items())
    return len(asked.read_text().splitlines()) - N_PAIRS, killed


def _take(line: str, used: dict[str, str]) -> None:
    if line.endswith("\n"):
        name, better = line.split()
        assert used.setdefault(name, better) == better, "an answer was used twice, and differently"


def _stored(run) -> dict[str, str]:
    if not run.exists() or not run.stat().st_size:
        return {}
    with contextlib.closing(sqlite3.connect(run)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'comparisons'").fetchone():
            return {}
    with open_run(run) as store:
        return dict(store.results().select("custom_id", "better_id").iter_rows())


@pytest.mark.parametrize("save", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_kill_9_loses_nothing_and_duplicates_nothing(tmp_path, save):
    again, killed = kill_and_resume(tmp_path, 4, seed=2026 + save, save=save)
    assert killed == 4
    assert 0 <= again <= killed * CONCURRENCY  # only what was open at a kill is asked again


@pytest.mark.validate
def test_kill_9_two_hundred_times(tmp_path):
    again, killed = kill_and_resume(tmp_path, 200, seed=1, save=True)
    print(f"\n{killed} kills: 0 answers lost, 0 doubled, {again} questions asked again, at most {killed * CONCURRENCY}")
    assert 0 <= again <= killed * CONCURRENCY
