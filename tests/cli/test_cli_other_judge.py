"""What one judge has answered is never shown as the work of another, on any road."""

import json
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.store.audit import check_evidence
from pairscale.testing import ProviderSimulator

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


def test_a_finished_ranking_names_the_setting_of_a_judge_that_differs(message_snapshot, folder):
    samples = ps.synthetic_essays(4, seed=1)

    def rank(seed):
        judge = ps.make_judge("simulated:theta_true", judge_args={"seed": seed})
        return ps.rank(samples, judge=judge, run="run.db", fit="laplace", progress="none")

    assert rank(1).state.stop_reason is not None
    with pytest.raises(ps.StoreMismatchError) as refused:
        rank(2)
    message_snapshot(refused)


def test_a_finished_ranking_says_that_its_function_was_changed(cli):
    line = ("rank", "essays", "--run", "run.db", "--fit", "laplace", "--progress", "none", "--judge", "mine:weighed")
    assert cli(*line, "--judge-arg", "weight=1").code == 0
    done = cli(*line, "--judge-arg", "weight=-1")
    assert done.code == 0
    assert "note: the judge's code or its arguments have changed since the last call" in done.err


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


@pytest.mark.parametrize("command", ["ab", "gate"])
def test_a_comparison_shows_the_answers_of_the_judge_that_is_named(cli, command):
    for name, outputs in ANSWERS.items():
        rows = [json.dumps({"id": str(number), "output": text}) for number, text in enumerate(outputs)]
        Path(f"{name}.jsonl").write_text("\n".join(rows))
    line = (command, "a.jsonl", "b.jsonl", "--criterion", "clearer", "--run", "run.db")
    tied = cli(*line, "--judge", "mine:tied")
    longer = cli(*line, "--judge", "mine:longer")
    assert "questions asked" in longer.err
    assert "judged by mine:longer" in longer.err
    assert longer.out != tied.out
    again = cli(*line, "--judge", "mine:tied")
    assert "nothing asked" in again.err
    assert again.out == tied.out


def test_a_batch_is_made_anew_for_another_model(cli, pairs, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    with ProviderSimulator() as server:
        line = ("batch", "submit", pairs, "--run", "run.db", "--base-url", f"{server.url}/v1", "--json")
        made = [cli(*line, "--judge", f"openai:{model}") for model in ("gpt-4.1", "gpt-4.1-mini", "gpt-4.1")]
    assert [[batch["model"] for batch in done.json["batches"]] for done in made] == [["gpt-4.1"], ["gpt-4.1-mini"], []]
    assert state_of()[1] == ["openai:gpt-4.1", "openai:gpt-4.1-mini"]
