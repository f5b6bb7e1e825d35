"""``pairscale prices`` and ``pairscale providers``: what is known, from where, of when; and adding to it."""

import json
from datetime import date
from pathlib import Path

import pytest

from pairscale.providers import catalog
from pairscale.providers.catalog import PROVIDERS, UNIT, own_file, price_table
from pairscale.testing import ProviderSimulator

MINE = {
    "unit": UNIT, "as_of": "2026-11-02", "source": "our contract",
    "prices": [{"provider": "openai", "model": "^gpt-4\\.1$", "input": 1.0, "output": 3.0}],
}  # fmt: skip


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(MINE), "utf-8")
    return path


def test_prices_are_listed_and_shown(cli, monkeypatch):
    monkeypatch.setattr(catalog, "today", lambda: date(2026, 11, 16))
    every = cli("prices", "--json").json["prices"]
    assert {"openai", "anthropic", "gemini", "together", "deepseek", "groq"} <= {row["provider"] for row in every}
    assert all(row["source"] and row["as_of"] for row in every)
    listed = cli("prices", "deepseek")
    assert "2026-10-26" in listed.out
    assert "US dollars per million tokens" in listed.err
    one = cli("prices", "openai:gpt-6-sol")
    for words in ("2026-10-14", "https://developers.openai.com", "genai-prices 0.2.1", "flex 0.5, priority 2.0"):
        assert words in one.out
    found = cli("prices", "openai:gpt-6-sol", "--json").json
    assert (found["tiers"]["flex"], found["long"]["above"]) == (0.5, 272000)  # not a text of Python
    assert cli("prices", "gemini:gemini-3.8-flash", "--json").json["later"] == "another price from 2027-01-01 on"
    assert cli("prices", "ollama:qwen3").out.count("0.0") == 2


def test_prices_are_added(cli, mine):
    assert f"added 1 row to {own_file()}" in cli("prices", "add", mine).err
    shown = cli("prices", "openai:gpt-4.1", "--json").json
    assert (shown["input"], shown["as_of"], shown["source"], shown["yours"]) == (
        1.0,
        "2026-11-02",
        "our contract",
        True,
    )
    assert "1 of them in place of yours" in cli("prices", "add", mine).err
    assert "yours" in cli("prices", "openai").out.splitlines()[0]


def test_providers_are_listed_and_shown(cli, monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "planted-key-5")
    every = cli("providers", "--json")
    rows = {row["provider"]: row for row in every.json["providers"]}
    assert rows["groq"]["key_is"] == "set"
    assert rows["openai"]["key_is"] == "not set"
    assert rows["vllm"]["key_is"] == "not needed"
    assert "planted-key-5" not in every.out + cli("providers").out + cli("providers", "groq").out
    assert "SigV4" in cli("providers", "bedrock").out
    shown = cli("providers", "anthropic:claude-sonnet-5-5").out
    for words in ("between_tools", "platform.claude.com", "2026-11-16"):
        assert words in shown


def test_the_date_of_prices_stands_beside_every_cost(cli, pairs, mine, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k-1234567")
    dated, given = "(prices of 2026-10-14)", "given prices without a date"
    with ProviderSimulator() as server:
        model = ["--judge", "openai:gpt-4.1", "--base-url", f"{server.url}/v1", "--no-cache"]
        assert dated in cli("compare", "One.", "Two texts.", *model).out
        assert dated in cli("check-judge", "essays", "--n-pairs", "2", *model).out
        offline = ["cost", pairs, "--judge", "openai:gpt-4.1", "--offline"]
        assert dated in cli(*offline).out
        assert given in cli(*offline, "--price", "input=1,output=2").out
        cli("judge", pairs, "--run", "paid.db", *model)
        assert "2026-10-14" in cli("status", "paid.db").out
        assert {row["prices_as_of"] for row in cli("status", "paid.db", "--json").json["spending"]} == {"2026-10-14"}
        cli("report", "paid.db", "--out", "page.html")
        assert "prices of 2026-10-14" in Path("page.html").read_text("utf-8")
        cli("prices", "add", mine)
        cli("judge", pairs, "--run", "paid.db", "--judge-arg", "seed=2", *model)
        assert "2026-11-02" in cli("status", "paid.db").out
        line = ["ab", "a.jsonl", "b.jsonl", "--criterion", "better", *model[:-1]]
        for name in "ab":
            Path(f"{name}.jsonl").write_text(json.dumps({"task_id": "t", "output": f"{name} text"}), "utf-8")
        assert "(prices of 2026-11-02)" in cli(*line).err


def test_every_row_has_a_source_and_a_date(cli):
    prices, providers = cli("prices", "--json").json["prices"], cli("providers", "--json").json["providers"]
    assert (len(prices), len(providers)) == (len(price_table()), len(list(PROVIDERS)))
    assert len(prices) > 700
    for row in (*prices, *providers):
        assert row["source"], row
        assert date.fromisoformat(row["as_of"]) <= date(2026, 12, 31), row
    for model in ("openai:gpt-5.1", "mistral:mistral-large-2512", "sglang:Qwen/Qwen3-8B"):
        row = cli("providers", model, "--json").json
        assert row["source"], row
        assert date.fromisoformat(row["as_of"])
