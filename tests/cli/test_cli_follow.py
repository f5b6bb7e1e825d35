"""`pairscale status --follow`: a line for every change, and no longer than the run."""

import itertools
import re

import pairscale as ps
from pairscale.cli import status


def judge(A, B, **_more):
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"])), "invalid_reason": None}


def rank(steps):
    texts = [{"ID": name, "text": name * 3} for name in ("a", "bb", "ccc", "dddd")]
    ps.adaptive_rank(texts, judge=judge, run="run.db", n_steps=steps, fit_fn="laplace", progress="none")


def test_a_run_that_has_ended_is_said_once(cli):
    rank(4)
    done = cli("status", "run.db", "--follow")
    assert done.code == 0
    assert len(done.out.splitlines()) == 1
    assert re.match(r"\d\d:\d\d:\d\d  run.db: .*: 4 items \(0 withdrawn\), 4 comparisons, ", done.out)


def test_changes_are_shown_as_they_come_and_nothing_else(cli, monkeypatch):
    """Between two looks, time passes: another process writes, or nothing happens, until the user has had enough."""
    texts = [{"ID": name, "text": name} for name in "abcd"]
    pairs = ps.make_pairs(texts)
    ps.submit_pairs(pairs.head(2), judge, run="run.db", progress=False)
    turns = itertools.count(1)

    def pause(_seconds):
        turn = next(turns)
        if turn == 2:
            ps.submit_pairs(pairs, judge, run="run.db", progress=False)
        if turn == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(status.time, "sleep", pause)
    done = cli("status", "run.db", "--follow")
    assert done.code == 130
    first, second = done.out.splitlines()
    assert "2 attempts" in first
    assert "6 attempts" in second
