"""``pairscale simulate`` and ``pairscale plan``."""

import polars as pl
import pytest

import pairscale as ps

SELECTORS = "'pollitt', 'random', 'nearest', 'information'"

SMALL = ("simulate", "--items", 10, "--seeds", 2, "--per-item", 3, "--bias", 0.3, "--lapse", 0.05)


def test_simulate_shows_curves_and_ends(cli):
    done = cli(*SMALL)
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0][:4] == ["selector", "n_runs", "per_item", "spearman_map"]
    assert [[line[0], line[2]] for line in lines[1:7]] == [
        [name, f"{k}.000"] for name in ("pollitt", "random") for k in (1, 2, 3)
    ]
    assert "4 runs of " in done.out


@pytest.mark.slow
def test_simulate_writes_json_table_and_chart(cli):
    done = cli(*SMALL, "--concurrency", 4, "--selector", "random", "--out", "curves.csv", "--json")
    assert done.code == 0, done.err
    assert done.lines[-1] == "wrote 3 rows to curves.csv"
    assert done.json["settings"]["judge"] == "bias 0.3, lapse 0.05"
    assert done.json["settings"]["concurrency"] == [4]
    assert len(done.json["runs"]) == 2
    assert pl.read_csv("curves.csv")["per_item"].to_list() == [1.0, 2.0, 3.0]


def test_plan_answers_the_question(cli):
    done = cli("plan", "--items", 12, "--reliability", 0.6, "--price", 0.5, "--seconds", 2, "--seeds", 2)
    assert done.code == 0
    assert "12 items to reliability 0.6: " in done.out
    assert " comparisons were enough in 2 simulated runs, " in done.out
    assert ", cost " in done.out
    assert " minutes" in done.out


def test_plan_writes_json_and_says_what_to_know(cli):
    done = cli("plan", "--items", 3, "--reliability", 0.99, "--seeds", 1, "--json", "--out", "runs.csv")
    assert done.code == 0
    assert done.lines[0] == "note: 1 of 1 runs did not get there: every pair was asked as often as is allowed"
    assert done.json["comparisons"] is None
    assert done.json["runs"][0]["stop_reason"] == "candidate_starvation"
    assert pl.read_csv("runs.csv").height == 1


def test_check_judge_plans_with_the_spread_that_the_answers_show(cli):
    """With a spread of 1 for whatever texts, it said "more than 142" for texts that a run of 72 ranked."""
    ps.example_writing_samples.select("ID", "text").head(12).write_csv("texts.csv")
    found = cli("check-judge", "texts.csv", "--judge", "lexical", "--json").json
    done = cli("rank", "texts.csv", "--judge", "lexical", "--fit", "laplace", "--json").json
    assert found["spread"] > 2
    needed = done["summary"][0]["committed_pairs"]
    assert needed / 1.5 < found["plan"]["half"] < 1.5 * needed
    assert found["plan"]["half"] <= found["plan"]["comparisons"]
    shown = cli("check-judge", "texts.csv", "--judge", "lexical").out
    assert f"simulated with scores of a standard deviation of {found['spread']:.1f} logits" in shown
