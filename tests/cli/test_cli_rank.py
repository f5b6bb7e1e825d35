"""`pairscale rank`, `audit` and `status`: an adaptive run from the shell."""

import sqlite3
import sys
from pathlib import Path

import polars as pl
import pytest

import pairscale as ps
from pairscale.auditing import audit
from pairscale.core.files import read_table

RANK = ("rank", "essays", "--judge", "mine:longer", "--fit", "laplace", "--progress", "none")
BEST = ["dot", "cem", "bob", "ann"]


@pytest.fixture
def ranked(cli):
    """A run file with a finished ranking."""
    assert cli(*RANK, "--run", "run.db", "--steps", "9").code == 0
    return Path("run.db")


def test_score_with_interval_and_the_columns_of_the_table_unless_all_are_wanted(cli):
    Path("class.csv").write_text(
        "ID,text,name\n" + "".join(f"{ID},{'word ' * n},N {ID}\n" for n, ID in enumerate("abcd", 1)), "utf-8"
    )
    line = ("rank", "class.csv", "--judge", "lexical", "--run", "few.db", "--steps", "5", "--progress", "none")
    line = (*line, "--fit", "laplace")
    short = ["rank", "ID", "name", "score", "95", "%"]
    assert cli(*line, "--out", "short.csv").out.splitlines()[0].split() == short
    assert Path("short.csv").read_text("utf-8").splitlines()[0] == "rank,ID,name,score,score_lower,score_upper"
    every = cli(*line, "--columns", "all", "--out", "all.csv")
    assert every.out.split()[:4] == ["refit_id", "ID", "score", "score_lower"]
    assert len(Path("all.csv").read_text("utf-8").splitlines()[0].split(",")) > 20
    assert cli("fit", "few.db").out.splitlines()[0].split()[-1] == "name"
    cli("fit", "few.db", "--columns", "short", "--out", "fit.csv")
    assert Path("fit.csv").read_text("utf-8").splitlines()[0] == "rank,ID,theta,lower,upper,name"


def test_a_ranking_and_the_same_line_again(cli):
    first = cli(*RANK, "--run", "run.db", "--steps", "5")
    assert first.code == 0
    assert "5 comparisons of 4 texts; preset pairscale\n  reliability 0." in first.out
    assert "paused; run the same command again to continue" in first.out
    assert "run file  run.db  (next: pairscale report run.db; to check it: pairscale audit run.db)" in first.out
    assert "must not reach standard output" not in first.out
    second = cli(*RANK, "--run", "run.db", "--steps", "4")
    assert second.code == 0
    assert "7 comparisons of 4 texts" in second.out
    assert [line.split()[1] for line in second.out.splitlines()[1:5]] == BEST
    assert "neither must this" not in second.out
    audit, status = cli("audit", "run.db"), cli("status", "run.db")
    first, rows, digest = audit.out.splitlines()
    assert (audit.code, audit.err, first) == (0, "", "preset pairscale: 9 steps, 2 refits, all reproduced")
    assert rows.endswith(" rows in 8 tables, all as they were written")
    assert digest in status.out.splitlines()
    assert digest == f"digest {cli('status', 'run.db', '--json').json['digest']}"
    assert cli("audit", "run.db", "--digest", digest.removeprefix("digest ")).code == 0
    other = cli("audit", "run.db", "--digest", "0" * 64)
    assert (other.code, "never closed with the digest 000" in other.out) == (1, True)
    assert cli("audit", "run.db", "--digest", "0").err.startswith("error: a digest has 64 hexadecimal digits")


def test_reliable_enough_and_more_reliable(cli):
    easy = ("--set", "stability_lag=1", "--set", "theta_corr_min=-1", "--set", "rank_spearman_min=-1")
    line = (*RANK, *easy, "--set", "theta_sd_rel_change_max=1000000", "--run", "run.db")
    done = cli(*line, "--reliability", "0.1")
    assert done.code == 0
    assert "stopped: the scores are reliable and stable" in done.out
    more = cli(*line, "--reliability", "0.99", "--max-comparisons", "11", "--json")
    assert more.code == 0
    assert more.json["summary"][0]["committed_pairs"] == 11
    assert more.json["summary"][0]["last_stop_reason"] == "max_comparisons"
    assert "paused at --max-comparisons" in cli(*line, "--reliability", "0.99", "--max-comparisons", "11").out
    lower = cli(*line, "--reliability", "0.1")  # of a paused run: its last refit meets the rule
    assert lower.code == 0
    assert "note: another stop rule from here on: eap_reliability_min is 0.1, was 0.99; the last refit" in lower.err
    assert "11 comparisons" in lower.out
    assert "stopped: the scores are reliable and stable" in lower.out
    assert "all reproduced\n" in cli("audit", "run.db").out
    assert "stopped: the scores are reliable and stable" in cli("status", "run.db").out


def test_json_and_out(cli):
    done = cli(*RANK, "--run", "run.db", "--steps", "8", "--json", "--out", "ranking.csv")
    assert done.code == 0
    assert set(done.json) == {"summary", "run", "items", "refits"}
    assert [row["ID"] for row in done.json["items"]] == BEST
    assert done.json["run"] == "run.db"
    assert "wrote 4 rows to ranking.csv" in done.err
    assert read_table("ranking.csv")["ID"].to_list() == BEST
    quiet = cli(*RANK, "--steps", "8", "--out", "other.xlsx")
    assert quiet.code == 0
    assert "7 comparisons of 4 texts; preset" in quiet.out
    assert "paused; run the same command again to continue" in quiet.out
    assert "note: without --run, nothing is saved" in quiet.err


def test_a_judge_that_fails_is_said(cli):
    # As many as four texts allow before every pair is given up.
    done = cli(*RANK, "--judge", "mine:shy", "--run", "run.db", "--set", "max_failures_in_row=10")
    assert done.code == 1  # what was asked for could not be done
    assert "paused: the judge gives no valid answers" in done.out
    assert "note: paused: 10 answers in a row were not valid; the last reason: I would rather" in done.err
    assert "\x1b" not in done.err
    assert "paused: the judge gives no valid answers; fix it" in cli("status", "run.db").out


def test_a_call_without_an_answer_is_no_success(cli):
    line = (*RANK, "--judge", "moody:judge", "--run", "run.db", "--steps", "2")
    moody = (
        "from pathlib import Path\n"
        "def judge(A, B):\n"
        "    return 1 if Path('awake').exists() else {'is_valid': False, 'invalid_reason': 'asleep'}\n"
    )
    Path("moody.py").write_text(moody)
    why = "error: no question got a valid answer (2 asked); the last reason: asleep"
    first = cli(*line)
    assert (first.code, first.lines[-1]) == (1, why)
    Path("awake").touch()
    assert cli(*line).code == 0
    Path("awake").unlink()
    resumed = cli(*line, "--json")
    assert (resumed.code, resumed.lines[-1]) == (1, why)
    assert resumed.json["summary"][0]["committed_pairs"] == 2


def test_a_judge_that_goes_by_position_is_said(cli):
    Path("places.py").write_text("def first(A, B):\n    return {'is_valid': True, 'Y': 1}\n")
    pl.DataFrame({"ID": [f"t{n}" for n in range(20)], "text": ["some words"] * 20}).write_csv("many.csv")
    line = ("rank", "many.csv", "--judge", "places:first", "--fit", "laplace", "--progress", "none", "--run", "run.db")
    more = ("--set", "reverse_rate=0.5", "--reliability", "0.999", "--set", "flip_share_max=")
    done = cli(*line, *more[:-1], f"{more[-1]}0.5")
    assert done.code == 1
    assert "paused: the judge goes by position" in done.out
    assert "30 of 30 reversed pairs got the opposite answer: this judge goes by position" in done.err
    status = cli("status", "run.db").out
    assert "paused: the judge goes by position; run the same command with" in status
    assert "judge: first text won 100%" in status
    assert "30 of 30 reversed pairs got the opposite answer" in status
    assert cli(*line, *more[:-1], f"{more[-1]}0.5").code == 1
    assert cli(*line, *more[:-1], f"{more[-1]}1", "--steps", "3").code == 0
    assert cli("audit", "run.db").code == 0


def test_a_run_keeps_to_what_fitted_first(cli, ranked):
    refused = cli(*RANK[:3], "mine:longer", "--run", ranked, "--progress", "none")
    assert refused.code == 1
    assert refused.lines[-1].startswith("error: run.db was started with --fit laplace, not 'exact'; give that")


def test_an_audit_that_does_not_pass_is_exit_code_1(cli, ranked):
    with sqlite3.connect("run.db") as connection:
        connection.execute("UPDATE logs SET data = replace(data, 'warm_start', 'long_link') WHERE log = 'step_log'")
    connection.close()
    report = cli("audit", "run.db")
    assert report.code == 1
    assert report.out.splitlines()[:2] == ["3 differences", "logs, row step_log 1: the row was changed"]
    document = cli("audit", "run.db", "--json")
    assert document.code == 1
    assert document.json["passed"] is False
    assert document.json["problem"] == "logs, row step_log 1: the row was changed"
    assert [problem[:18] for problem in document.json["problems"]] == ["logs, row step_log"] * 3
    assert cli("audit", "run.db", "--out", "report.csv").code == 1
    assert pl.read_csv("report.csv")["passed"].to_list() == [False]


def test_status_says_how_far_an_adaptive_run_is(cli, ranked):
    shown = cli("status", ranked)
    assert shown.code == 0
    line = next(
        line for line in shown.out.splitlines() if line.startswith("adaptive ranking (preset pairscale, goal order): ")
    )
    assert line.split(": ")[1].startswith("4 items (0 withdrawn), 7 comparisons, 0 invalid answers, reliability 0.")
    assert line.endswith(", paused; run the same command again to continue")
    known = cli("status", ranked, "--json").json["adaptive"]
    assert (known["n_items"], known["steps"], known["committed_pairs"], known["n_refits"]) == (4, 9, 7, 2)
    assert (known["stop_reason"], known["has_ended"], known["invalid"]) == (None, True, 0)
    cli(*RANK, "--run", ranked)
    assert cli("status", ranked).out.count(", stopped: no pair is left that may be asked") == 1


# Ctrl-C


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("concurrency", [1, 3])
def test_ctrl_c_leaves_scores_and_the_same_line_goes_on(interrupted, cli, monkeypatch, concurrency):
    line = ["rank", "essays", "--judge", "slow:judge", "--run", "run.db", "--fit", "laplace", "--progress", "none"]
    line += ["--concurrency", concurrency]
    code, out, err = interrupted(4, *line)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    assert err.endswith("note: interrupted. The answers so far are in run.db. Run it again to resume.\n")
    state = ps.load_adaptive_session("run.db")
    assert state.engine.committed == 4
    assert ps.summarize_items(state).height == 4  # scores are there
    closing = state.round_log.row(-1, named=True)
    assert (closing["total_pairs_done"], closing["is_closing"]) == (4, True)
    assert closing["stop_reason"] == state.stop_reason == "interrupted"
    assert ", paused; run the same command again" in cli("status", "run.db").out
    with sqlite3.connect("run.db") as connection:
        codes = connection.execute("SELECT error_code FROM attempts WHERE outcome = 'error'").fetchall()
    connection.close()
    assert codes == [("cancelled",)] * concurrency  # they may be paid for
    assert audit("run.db").passed
    monkeypatch.setenv("HURRY", "1")
    done = cli(*line, "--json", "--steps", "4")
    assert done.code == 0
    assert done.json["summary"][0]["committed_pairs"] == 7  # of four texts; a step found no pair
    report = audit("run.db")
    assert report.passed, report
