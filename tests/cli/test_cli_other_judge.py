"""What one judge has answered is never shown as the work of another, on any road."""

from pathlib import Path

import pytest

import pairscale as ps
from pairscale.store.audit import check_evidence

RANK = ("rank", "essays", "--run", "run.db", "--fit", "laplace", "--progress", "none")
ANSWERS = {"a": ["short", "a much longer answer", "hm"], "b": ["a much longer answer", "hm", "short"]}


def state_of(run="run.db"):
    """The digest of everything in a run file, and the judges of its commands."""
    with ps.open_run(run) as store:
        return check_evidence(store).digest, [row["settings"]["judge"] for row in store.read_log("commands")]


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (("--judge", "mine:tied"), "judge_id was 'lexical', is 'mine:tied'"),
        (("--judge", "openai:gpt-5.1"), "model was 'lexical-1', is 'gpt-5.1'"),
        (("--trait", "organization"), "trait was 'overall_quality', is 'organization'"),
    ],
)
def test_a_finished_ranking_is_refused_to_another_judge(cli, monkeypatch, other, difference):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    first = cli(*RANK)
    assert first.code == 0
    assert "stopped" in first.out
    before = state_of()
    Path("essays/new.txt").write_text("A text that would join.")
    refused = cli(*RANK, *other)
    assert refused.code == 1
    assert difference in refused.err
    assert "give the same judge, or take a new run file" in refused.err
    assert refused.out == ""
    assert state_of() == before
    Path("essays/new.txt").unlink()
    again = cli(*RANK)
    assert again.out == first.out
    assert "judged by lexical. Not for grading" in again.err
    assert state_of() == before


def test_judge_shows_the_answers_of_the_judge_that_is_named(cli, pairs):
    line = ("judge", pairs, "--run", "run.db", "--json")
    assert {row["better_id"] is None for row in cli(*line, "--judge", "mine:tied").json["results"]} == {True}
    other = cli(*line, "--judge", "mine:longer")
    assert "6 asked now" in other.err
    assert {row["judge_id"] for row in other.json["results"]} == {"mine:longer"}
    again = cli(*line, "--judge", "mine:tied")
    assert "nothing asked" in again.err
    assert {(row["judge_id"], row["outcome"]) for row in again.json["results"]} == {("mine:tied", "tie")}
    assert state_of()[1] == ["mine:tied", "mine:longer"]
