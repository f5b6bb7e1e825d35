"""``pairscale cost``, and what ``pairscale status`` says was spent."""

import polars as pl

COUNTING = """
from pairscale.judges.base import Verdict


def counting(A, B):
    return Verdict.win(1, prompt_tokens=len(A["text"]) + len(B["text"]), completion_tokens=10)
"""


def test_a_pilot_is_kept_and_judging_goes_on_from_it(cli, pairs, server):
    line = ("cost", pairs, "--judge", "openai:gpt-5.1", "--pilot", 3, "--run", "run.db")
    outcome = cli(*line)
    assert outcome.code == 0
    assert outcome.out.startswith(
        "Cost estimate: openai gpt-5.1, live\npairs          6: 3 in the pilot, 3 remaining\n"
    )
    assert "next: pairscale judge pairs.csv --judge openai:gpt-5.1 --run run.db" in outcome.err
    assert "next: pairscale batch submit pairs.csv --judge openai:gpt-5.1 --run run.db" in cli(*line, "--batch").err
    assert server.served == 3
    assert cli(*line).out == outcome.out
    assert server.served == 3
    assert cli("judge", pairs, "--judge", "openai:gpt-5.1", "--run", "run.db").code == 0
    assert server.served == 6


def test_json_and_out(cli, pairs, server):
    line = ("cost", pairs, "--judge", "openai:gpt-5.1", "--pilot", 3, "--batch")
    outcome = cli(*line, "--json", "--out", "cost.csv")
    found = outcome.json
    assert (found["mode"], found["batch_discount"]) == ("batch", 0.5)
    assert found["calibration"]["n"] == 3
    assert found["expected_cost_total"] > found["pilot_cost"] > 0
    assert pl.read_csv("cost.csv")["n_remaining"].to_list() == [3]
    assert any("a pilot of 3" in line for line in outcome.lines)


def test_offline_needs_no_key(cli, pairs, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    outcome = cli("cost", pairs, "--judge", "openai:gpt-5.1", "--offline")
    assert outcome.code == 0
    assert outcome.out.startswith("Rough cost estimate without a pilot: openai gpt-5.1, live")
    whole = cli("cost", "essays", "--judge", "openai:gpt-5.1", "--offline", "--json").json
    assert whole["n_total"] == 6
    failed = cli("cost", pairs, "--judge", "openai:gpt-5.1")
    assert (failed.code, failed.out) == (1, "")
    assert "there is no key for openai" in failed.err


def test_status_shows_what_was_spent(cli, pairs, run, server):
    assert "prices_as_of" not in cli("status", run).out
    assert cli("judge", pairs, "--judge", "openai:gpt-5.1", "--run", run, "--template", "concise").code == 0
    assert cli("judge", pairs, "--judge", "openai:gpt-4.1", "--run", run).code == 0
    out = cli("status", run).out
    assert "prices_as_of" in out
    spending = {(row["model"], row["template_id"]): row for row in cli("status", run, "--json").json["spending"]}
    assert {"mine:longer", "gpt-5.1", "gpt-4.1"} == {model for model, _ in spending}
    assert spending["gpt-5.1", "concise"]["attempts"] == 6
    assert spending["gpt-4.1", "default"]["cost"] > 0
