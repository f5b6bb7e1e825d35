"""The command with models: one pair, many pairs, what would be sent, and the server that plays the providers."""

import json
import signal
import urllib.request

import pytest

from pairscale.testing import Behaviour


@pytest.mark.parametrize(
    "judge", ["openai:gpt-4.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-3-pro-preview", "ollama:qwen3:32b"]
)
def test_compare(cli, server, judge):
    done = cli("compare", "essays/ann.txt", "A text that is given as it is.", "--judge", judge)
    assert done.code == 0
    assert done.out.startswith("better: the second text\n")
    assert "answer: <BETTER_SAMPLE>SAMPLE_2</BETTER_SAMPLE>" in done.out
    assert server.served == 1
    row = cli("compare", "essays/ann.txt", "essays/bob.txt", "--judge", judge, "--json").json["result"]
    assert (row["better_id"], row["judge_id"]) == ("second", judge)


def test_compare_when_there_is_no_answer(cli, server):
    server.behaviour = Behaviour(refusal_rate=1)
    done = cli("compare", "a", "b", "--judge", "openai:gpt-4.1")
    assert (done.code, done.out) == (1, "")
    assert done.lines[1] == "judge: openai:gpt-4.1"
    assert done.lines[-1].startswith("error: no answer: refusal")


def test_dry_run_shows_and_sends_nothing(cli, pairs, server):
    line = ("judge", pairs, "--judge", "openai:gpt-5.1", "--judge-arg", "reasoning=low", "--dry-run")
    done = cli(*line)
    assert done.code == 0
    assert done.out.startswith(f"6 calls to {server.url}/v1/responses, nothing was sent")
    shown = cli(*line, "--json").json
    assert (shown["calls"], shown["body"]["reasoning"]) == (6, {"effort": "low"})
    assert shown["prompt"] == shown["body"]["input"]
    assert server.served == 0
    assert "is not a model" in cli("judge", pairs, "--judge", "lexical", "--dry-run").err


def test_judge_and_max_cost(cli, pairs, server):
    done = cli("judge", pairs, "--judge", "openai:gpt-4.1", "--max-cost", "0", "--run", "run.db")
    assert done.code == 1
    assert server.served == 0
    done = cli("judge", pairs, "--judge", "openai:gpt-4.1", "--max-cost", "1", "--run", "run.db", "--concurrency", 4)
    assert done.code == 0
    assert server.served == 6


@pytest.mark.slow
def test_simulate_providers(process, cli, pairs):
    child = process("simulate-providers", "--bias", "50")
    variables = {}
    for _ in range(9):
        name, _, value = child.stdout.readline().removeprefix("export ").strip().partition("=")
        variables[name] = value
    assert variables["OPENAI_API_KEY"] == "simulated-key"
    assert child.stderr.readline().startswith("listening on http://127.0.0.1:")
    body = {"model": "any", "messages": [{"role": "user", "content": "Hello"}]}
    request = urllib.request.Request(
        f"{variables['OPENAI_BASE_URL']}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer x"},
    )
    with urllib.request.urlopen(request) as reply:
        assert json.load(reply)["choices"][0]["finish_reason"] == "stop"
    done = cli("judge", pairs, "--judge", "compatible:m", "--base-url", variables["OPENAI_BASE_URL"], "--json")
    assert {row["better_sample"] for row in done.json["results"]} == {"SAMPLE_1"}
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=600)
    assert "7 requests were answered" in err
    assert child.returncode == 130


def test_a_port_that_is_taken(cli, server):
    done = cli("simulate-providers", "--port", server.port)
    assert done.code == 1
    assert done.err.startswith("error: cannot listen")
