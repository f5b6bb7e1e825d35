"""The bridge from async to sync: what the caller's code knows, the loop's thread knows too."""

import contextvars
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.collect._background import run_sync
from pairscale.store._opened import on_writing

PAIRS = ps.make_pairs([{"ID": name, "text": f"text {name}"} for name in "abc"])
VALUE = contextvars.ContextVar("value", default="none")


def test_the_context_of_the_caller_is_seen_and_left_as_it_is():
    async def look():
        seen = VALUE.get()
        VALUE.set("changed inside")
        return seen

    token = VALUE.set("of the caller")
    try:
        assert run_sync(look) == "of the caller"
        assert VALUE.get() == "of the caller"
    finally:
        VALUE.reset(token)


def test_what_is_to_be_written_first_is_in_the_file_before_any_answer(tmp_path):
    run = tmp_path / "run.db"
    opened = []
    with on_writing(lambda store: opened.append((Path(store.name), store.counts()["attempts"]))):
        ps.submit_pairs(PAIRS, "lexical", run=run, progress=False)
    assert opened == [(run, 0)]


@pytest.mark.slow
def test_a_command_that_is_killed_has_left_its_settings(tmp_path):
    judge = "import os, signal\n\n\ndef judge(A, B):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    (tmp_path / "dying.py").write_text(judge, "utf-8")
    PAIRS.write_csv(tmp_path / "pairs.csv")
    line = [sys.executable, "-m", "pairscale", "judge", "pairs.csv", "--judge", "dying:judge", "--run", "run.db"]
    done = subprocess.run(line, check=False, capture_output=True, cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with ps.open_run(tmp_path / "run.db") as store:
        (row,) = store.read_log("commands")
        assert store.counts()["comparisons"] == 0
    assert (row["command"], row["settings"]["judge"]) == ("judge", "dying:judge")
