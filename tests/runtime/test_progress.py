"""Progress: lines after five seconds and every half minute, a line per so many pairs, a bar in a terminal."""

import io
import sys

import pytest

from pairscale import Verdict
from pairscale.runtime import Progress

WIN, FAILED = Verdict.win(1), Verdict.fail("timeout", "late", failure="transient")


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def lines_of(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_a_short_run_shows_nothing(capsys):
    clock = Clock()
    with Progress(3, clock=clock) as bar:
        for _ in range(3):
            clock.now += 1.5
            bar.advance(WIN)
    assert lines_of(capsys) == []


def test_a_line_after_five_seconds_then_every_half_minute_and_at_the_end(capsys):
    clock = Clock()
    with Progress(1_200, done=200, clock=clock) as bar:
        for second in range(1, 81):
            clock.now = 100.0 + second
            bar.advance(WIN)
    assert lines_of(capsys) == [
        "judging: 205 of 1,200, 1.0 per second",
        "judging: 235 of 1,200, 1.0 per second",
        "judging: 265 of 1,200, 1.0 per second",
        "judging: 280 of 1,200, 1.0 per second",
    ]


def test_a_line_per_so_many_pairs_and_one_at_the_end_also_in_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(7, every=3, clock=Clock()) as bar:
        for _ in range(7):
            bar.advance(WIN)
    assert sys.stderr.getvalue().splitlines() == ["judging: 3 of 7", "judging: 6 of 7", "judging: 7 of 7"]


def test_a_terminal_has_a_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with Progress(5, done=1, label="judging") as bar:
        bar.advance(Verdict.win(1, cost=0.25))
        bar.advance(FAILED)
    shown = sys.stderr.getvalue()
    assert "3/5" in shown
    assert "1 failed, $0.2500" in shown


@pytest.mark.parametrize("stderr", [None, "closed", "terminal"])
def test_nothing_is_shown_unless_wanted_or_possible_and_the_run_continues(stderr, monkeypatch):
    stream = Terminal() if stderr == "terminal" else io.StringIO()
    monkeypatch.setattr(sys, "stderr", None if stderr is None else stream)
    if stderr == "closed":
        stream.close()
    clock = Clock()
    with Progress(2, show=stderr != "terminal", clock=clock) as bar:
        clock.now += 6
        bar.advance(WIN)
        bar.advance(WIN)
    if stderr == "terminal":
        assert stream.getvalue() == ""
