"""``kill -9`` in the middle of a comparison: nothing that was used is lost, and nothing is asked twice for nothing."""

import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import pairscale as ps

pytestmark = pytest.mark.slow

N, CONCURRENCY = 40, 4

# Variants and judge answer by a coin toss each time that they are asked, so that an answer that was lost and
# asked anew shows. Each question leaves a line; each case that was used, too.
CHILD = textwrap.dedent("""
    import asyncio, os, random, sys
    import pairscale as ps

    run, asked = sys.argv[1:3]
    log = os.open(asked, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    class Coin:
        condition = ps.Condition("coin")
        async def compare(self, pair):
            os.write(log, f"judge {pair.uid}\\n".encode())
            await asyncio.sleep(random.random() * 0.01)
            return ps.Verdict.win(random.choice([1, 2]), cost=0.001)

    class Variant:
        def __init__(self, name):
            self.identity = name
        async def answer(self, task, repeat):
            os.write(log, f"{self.identity} {task.task_id}\\n".encode())
            await asyncio.sleep(random.random() * 0.01)
            return ps.Trace(f"{task.input} {random.random()}", cost=0.01)

    ps.run_pairwise(
        ps.Suite.from_list([f"q{n}" for n in range(%d)]),
        variant_a=Variant("va"), variant_b=Variant("vb"), concurrency=%d, run=run, progress=False,
        comparators=[ps.pairwise_judge(Coin(), criterion="c", key="k")],
        on_case=lambda case: print(case.task_id, case.outcome, case.winner, case.length_a, case.length_b, flush=True),
    )
""") % (N, CONCURRENCY)


def killed_and_resumed(folder, kills: int, seed: int) -> tuple[int, int]:
    """Kill a run so often, then let it end: how often something was asked beyond once, and how many kills struck."""
    rng = random.Random(seed)
    run, asked = folder / "ab.db", folder / "asked.txt"
    used: dict[str, str] = {}
    struck, code = 0, None
    while code != 0:
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(run), str(asked)], stdout=subprocess.PIPE, text=True)
        if struck < kills:
            for _ in range(rng.randint(1, N // 3)):
                take(child.stdout.readline(), used)
            time.sleep(rng.random() * 0.02)
            child.send_signal(signal.SIGKILL)
        for line in child.stdout.read().splitlines(keepends=True):
            take(line, used)
        code = child.wait()
        child.stdout.close()
        assert code in {0, -signal.SIGKILL}
        struck += code != 0
    assert len(used) == N
    with ps.open_run(run) as store:
        assert store.counts()["comparisons"] == 2 * N, "each order once"
        answers = store.read_log("ab_answers")
    assert len({(row["variant"], row["task"]) for row in answers}) == len(answers) == 2 * N
    questions = asked.read_text().splitlines()
    return len(questions) - len(set(questions)), struck


def take(line: str, used: dict[str, str]) -> None:
    """A case that was used must be used again just so."""
    if line.endswith("\n"):
        name, rest = line.strip().split(" ", 1)
        assert used.setdefault(name, rest) == rest


def test_kills_lose_nothing(tmp_path):
    again, struck = killed_and_resumed(tmp_path, kills=2, seed=1)
    assert struck >= 1
    # What was open when it was killed is asked again: of each case, at most its two answers or its two verdicts.
    assert again <= struck * CONCURRENCY * 2


@pytest.mark.validate
@pytest.mark.parametrize("seed", range(5))
def test_many_kills_lose_nothing(tmp_path, seed):
    again, struck = killed_and_resumed(tmp_path, kills=12, seed=seed)
    assert again <= struck * CONCURRENCY * 2
