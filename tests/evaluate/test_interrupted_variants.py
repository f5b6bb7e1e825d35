"""An interrupt waits for the answers of variants, too: they may be paid for."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SCRIPT = """
import asyncio, logging, os, signal
import pairscale as ps

asked, noticed = [], []

class Listen(logging.Handler):
    def emit(self, record):
        noticed.append("waiting for" in record.getMessage())

logging.getLogger("pairscale").addHandler(Listen())

class Variant:
    def __init__(self, name):
        self.identity = name

    async def answer(self, task, repeat):
        asked.append((self.identity, task.task_id))
        if len(asked) == 1:
            os.kill(os.getpid(), getattr(signal, SIGNAL))
        while not any(noticed):
            await asyncio.sleep(0.01)
        return ps.Trace(f"{self.identity} says {task.task_id}")

def call():
    judge = ps.pairwise_judge(lambda A, B: {"Y": 1}, criterion="better", key="better")
    tasks = ps.Suite.from_list([{"input": "Say something.", "task_id": f"{at}"} for at in range(3)])
    ps.run_pairwise(
        tasks, variant_a=Variant("a"), variant_b=Variant("b"), comparators=[judge], run="run.db", concurrency=1,
        progress=False,
    )

try:
    call()
except (KeyboardInterrupt, SystemExit):
    print(len(asked))
call()
print(len(asked), len(set(asked)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
def test_answers_of_variants_are_waited_for_and_stored(signal: str, tmp_path: Path) -> None:
    script = textwrap.dedent(SCRIPT).replace("SIGNAL)", f"{signal!r})")
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, cwd=tmp_path, timeout=600
    )
    assert done.stdout.split() == ["2", "6", "6"], done.stderr
