"""What only a process of its own can show: imports, pipes, signals, a full disk."""

import json
import sys
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.__main__ import start

_PATIENCE = 600
"""Seconds after which a process is taken to be stuck; nothing here is measured by the clock."""


def _finished(child):
    out, err = child.communicate(timeout=_PATIENCE)
    return child.returncode, out, err


def test_an_interrupt_while_the_command_is_loading_is_one_line(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("pairscale.cli.main", interrupted)
    with pytest.raises(SystemExit) as stopped:
        start()
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_that_goes_away_is_no_catastrophe(process):
    child = process("traits", "--json")
    child.stdout.close()
    child.stdout = None
    code, _, err = _finished(child)
    assert (code, err) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_standard_output_on_a_full_disk_is_one_line(process):
    with Path("/dev/full").open("w") as full:
        code, _, err = _finished(process("traits", stdout=full))
    assert code == 1
    assert err == "error: the output cannot be written: No space left on device\n"


@pytest.mark.slow
def test_a_terminal_without_unicode_gets_the_numbers_all_the_same(process, run):
    _, out, err = _finished(process("fit", run, env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)}))
    assert "reliability" in out
    assert err == "run.db: 6 comparisons of a run file, judged by mine:longer\n"


@pytest.mark.slow_except("with a run file")
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("kept", [True, False], ids=["with a run file", "without"])
def test_ctrl_c_keeps_the_answers_and_the_same_line_goes_on(interrupted, process, pairs, kept, monkeypatch):
    line = ["judge", pairs, "--judge", "slow:judge", "--concurrency", 1, *(["--run", "run.db"] if kept else [])]
    code, out, err = interrupted(3, *line)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    if not kept:
        assert err.splitlines()[-1] == "note: interrupted. Nothing was kept."
        return
    assert err.splitlines() == [
        "6 pairs of 4 texts from pairs.csv",
        "judge: slow:judge",
        "note: waiting for 1 open question; Ctrl-C again to leave them",
        "note: interrupted. The answers so far are in run.db. Run it again to resume.",
    ]
    with ps.open_run("run.db") as store:
        before = store.results()["custom_id"].to_list()
    assert len(before) == 3
    monkeypatch.setenv("HURRY", "1")
    code, out, _ = _finished(process(*line, "--json"))
    assert code == 0
    document = json.loads(out)
    assert document["asked"] == 3
    assert {row["custom_id"] for row in document["results"]} > set(before)


_WORDY = """
import pairscale as ps

def judge(A, B):
    return ps.Verdict.win(1, content="word " * 2000)
"""

_SMALL = """
import resource
from pairscale.store import policies

resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
policies.WRITE_GIVE_UP_S = 3.0  # instead of two minutes
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process")
def test_a_full_disk_ends_the_run_with_every_earlier_answer_kept(process, cli):
    Path("wordy.py").write_text(_WORDY)
    samples = [{"ID": f"s{n:02}", "text": f"text {n}"} for n in range(16)]
    ps.make_pairs(samples).write_csv("pairs.csv")
    line = ["judge", "pairs.csv", "--judge", "wordy:judge", "--run", "run.db"]
    code, out, err = _finished(process(*line, before=_SMALL))
    assert (code, out) == (1, "")
    pairs, judge, waits, *others, line_of_error = err.splitlines()
    assert (judge, pairs) == ("judge: wordy:judge", "120 pairs of 16 texts from pairs.csv")
    assert waits.startswith("note: run.db: the disk ")
    assert waits.endswith(". Trying again for 0.05 minutes; 8 answers wait")
    assert all(line.startswith("note: ") for line in others)  # a checkpoint may make room for some more
    assert line_of_error.startswith("error: run.db: the disk ")
    with ps.open_run("run.db") as store:
        before = store.results()
    assert 0 < before.height < 120

    code, out, err = _finished(process(*line, "--json"))
    assert code == 0
    document = json.loads(out)
    assert len(document["results"]) == 120
    with ps.open_run("run.db") as store:
        assert store.results().head(before.height).equals(before)
        assert store.conditions()["win"].to_list() == [120]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process")
def test_a_table_that_does_not_fit_on_the_disk_leaves_the_old_file(process, run):
    Path("ranking.csv").write_text("old")
    small = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    code, out, err = _finished(process("traits", "--out", "ranking.csv", before=small))
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("error: ranking.csv cannot be written")
    assert Path("ranking.csv").read_text() == "old"
    assert not list(Path().glob(".ranking*"))
