"""What a long fit shows: in a real terminal, and that it can be interrupted there."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.models._progress import at_work, showing_progress


class Terminal:
    """Standard error that is a terminal, and keeps what it gets."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_a_line_is_shown_after_a_second_updated_and_cleared(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    times = iter([0.0, 0.5, 1.1, 1.2, 9.0])
    with showing_progress(show=True, clock=lambda: next(times)):
        at_work("too soon")
        at_work("step 10")
        at_work("not yet again")
        at_work("step 9")
    assert terminal.text == "\rstep 10\rstep 9 \r      \r"
    at_work("nobody looks")
    assert "nobody" not in terminal.text


def test_nothing_is_shown_unless_wanted(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with showing_progress(show=False, clock=lambda: 99.0):
        at_work("step 1")
    assert terminal.text == ""


def test_what_is_piped_gets_no_line(capsys):
    with showing_progress(show=True, clock=iter([0.0, 9.0, 19.0]).__next__):
        at_work("step 1")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": "firth"}, "firth: step 1 over 3 texts"),
        ({"bootstrap": 3}, "bootstrap: 0 of 3 rounds"),
        ({"cluster": "judge_id"}, "robust errors: the covariance of 3 scores, 2 clusters"),
    ],
)
def test_the_long_parts_say_what_they_work_at(options, words, monkeypatch):
    said = []
    for module in ("likelihood", "uncertainty"):
        monkeypatch.setattr(f"pairscale.models.{module}.at_work", said.append)
    rows = [
        {"ID1": a, "ID2": b, "better_id": a, "judge_id": "xy"[n % 2]} for n, (a, b) in enumerate(["ab", "bc", "ca"] * 4)
    ]
    ps.fit(rows, **options)
    words = {
        "engine": "firth: step 1 over 3 texts",
        "bootstrap": "bootstrap: 0 of 3 rounds",
        "cluster": "robust errors: the covariance of 3 scores, 2 clusters",
    }
    assert words[next(iter(options))] in said


@pytest.mark.slow
def test_a_long_fit_in_a_terminal_shows_its_line_and_is_interrupted(tmp_path):
    n = 4000
    rng = np.random.default_rng(1)
    first = rng.integers(0, n, 40 * n)
    second = (first + rng.integers(1, n, 40 * n)) % n
    won = np.where(rng.random(40 * n) < 0.5, first, second)
    names = np.array([f"S{k:05d}" for k in range(n)])
    table = pl.DataFrame({"ID1": names[first], "ID2": names[second], "better_id": names[won]})
    table.write_parquet(tmp_path / "big.parquet")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pairscale", "fit", "big.parquet", "--engine", "firth"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True)
    os.close(theirs)
    seen, interrupted, until = b"", False, time.monotonic() + 600
    while time.monotonic() < until:
        if select.select([ours], [], [], 1.0)[0]:
            try:
                more = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            seen += more
        if b"firth: step" in seen and not interrupted:
            interrupted = True
            os.killpg(running.pid, signal.SIGINT)
    assert running.wait(timeout=600) == 130
    os.close(ours)
    assert b"over 4,000 texts" in seen
    assert seen.rstrip().endswith(b"interrupted")
