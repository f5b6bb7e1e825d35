"""The manual's verbs over real HTTP: one pair, many pairs, limits of money, crashes, and an adaptive run."""

import json
import logging

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.core.tables import COMPARISON_COLUMNS, RESULTS
from pairscale.testing import Behaviour, Faults, ProviderSimulator

BEFORE = [name for name in RESULTS if name not in COMPARISON_COLUMNS]
KEY = "sk-simulated-0123456789abcdef"
TD = ps.trait_description("overall_quality")
ESSAYS = ps.example_writing_samples
PAIRS = ps.randomize_pair_order(ps.sample_pairs(ps.make_pairs(ESSAYS), n_pairs=20, seed=1), seed=2)
MODELS = {
    "openai": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-pro-preview",
    "together": "deepseek-ai/DeepSeek-R1",
    "ollama": "mistral-small3.2:24b",
}


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, "pairscale")
    return lambda: [record.getMessage() for record in caplog.records]


def longer(row) -> str:
    return row["ID1"] if len(row["text1"]) > len(row["text2"]) else row["ID2"]


# One pair, with the arguments of the manual


def one_pair():
    first, second = ESSAYS.select("ID", "text").head(2).iter_rows()
    return {"ID1": first[0], "text1": first[1], "ID2": second[0], "text2": second[1]}


@pytest.mark.parametrize(
    ("backend", "more"),
    [
        ("openai", {"endpoint": "chat.completions", "temperature": 0}),
        ("openai", {"model": "gpt-5.1", "endpoint": "responses", "reasoning": "low", "include_thoughts": True,
                    "temperature": None, "top_p": None, "logprobs": None}),
        ("anthropic", {"anthropic_version": "2023-06-01", "reasoning": "none", "max_tokens": 500}),
        ("anthropic", {"reasoning": "enabled", "thinking_budget_tokens": 1500, "max_tokens": 4000}),
        ("gemini", {"thinking_level": "low", "max_output_tokens": 300, "api_version": "v1beta"}),
        ("gemini", {"thinking_level": "high", "include_thoughts": True, "temperature": 0.5, "top_p": 0.9, "top_k": 3}),
        ("together", {"temperature": 0.2}),
        ("ollama", {"think": False, "num_ctx": 4096}),
        ("ollama", {"model": "qwen3:32b", "think": True, "verbose": True}),
    ],
)  # fmt: skip
def test_llm_compare_pair_and_the_functions_of_each_backend(server, backend, more):
    given = {"model": MODELS[backend]} | more
    arguments = one_pair() | {"trait_name": TD.name, "trait_description": TD.description} | given
    arguments["prompt_template"] = ps.set_prompt_template()
    row = ps.llm_compare_pair(**arguments, backend=backend, include_raw=True, pair_uid="my-pair")
    assert row.height == 1
    assert row.columns == [*BEFORE, "raw_response", *COMPARISON_COLUMNS]
    assert row["custom_id"].to_list() == ["my-pair"]
    assert row["better_id"].to_list() == [longer(one_pair())]
    assert row["model"].to_list() == [given["model"]]
    assert row["status_code"].to_list() == [200]
    assert row["error_message"].to_list() == [None]
    assert row["prompt_tokens"][0] > 100
    assert given["model"] in row["raw_response"][0]
    assert (row["thoughts"][0] is not None) == bool(
        more.get("include_thoughts") or more.get("think") or more.get("reasoning") == "enabled" or backend == "together"
    )
    if backend == "openai":
        arguments["endpoint"] = more["endpoint"]
    single = getattr(ps, f"{backend}_compare_pair_live")(**arguments)
    assert single["better_id"].to_list() == row["better_id"].to_list()
    assert single["custom_id"].to_list() == [f"LIVE_{row['ID1'][0]}_vs_{row['ID2'][0]}"]
    sent = [entry.body for entry in server.journal]
    assert sent[0] == sent[1]


def test_a_pair_without_an_answer_is_a_row_that_says_why(server):
    server.behaviour = Behaviour(malformed_rate=1.0)
    row = ps.llm_compare_pair(**one_pair(), model="gpt-4.1", include_raw=True)
    assert row.columns == [*BEFORE, "raw_response", *COMPARISON_COLUMNS]
    assert row["better_id"].to_list() == row["better_sample"].to_list() == [None]
    assert row["outcome"].to_list() == ["error"]
    assert "BETTER_SAMPLE" in row["error_message"][0]
    assert row["status_code"].item() == 200
    assert row["content"].item() in json.loads(row["raw_response"].item())["choices"][0]["message"]["content"]
    assert min(row["total_tokens"].item(), row["cost"].item()) > 0  # what came back was paid for
    with pytest.raises(InputError, match="no setting warmth"):
        ps.llm_compare_pair(**one_pair(), model="gpt-4.1", warmth=3)


# Many


@pytest.mark.parametrize("backend", MODELS)
def test_submit_pairs_of_each_backend(server, backend, tmp_path):
    server.behaviour = Behaviour(quality=len, sharpness=50.0)  # the longer one always wins
    saved = tmp_path / "results.csv"
    arguments = {
        "pairs": PAIRS,
        "model": MODELS[backend],
        "trait_name": TD.name,
        "trait_description": TD.description,
        "prompt_template": ps.set_prompt_template(),
    }
    submit = getattr(ps, f"submit_{backend}_pairs_live")
    done = submit(
        **arguments, verbose=False, status_every=5, progress=False, include_raw=True, save_path=saved, parallel=True,
        workers=4,
    )  # fmt: skip
    assert done.results["better_id"].to_list() == [longer(row) for row in PAIRS.iter_rows(named=True)]
    assert done.results.columns == [*BEFORE, "raw_response", *COMPARISON_COLUMNS]
    assert done.failed_pairs.height == done.failed_attempts.height == 0
    assert server.served == 20
    assert "raw_response" not in saved.read_text().splitlines()[0]
    again = ps.submit_llm_pairs(**arguments, backend=backend, progress=False, save_path=saved)  # takes up the file
    assert again.asked == 0
    assert server.served == 20
    assert again.results["better_id"].to_list() == done.results["better_id"].to_list()


def test_a_trait_of_your_own_needs_both(message_snapshot):
    with pytest.raises(InputError) as refused:
        ps.submit_llm_pairs(PAIRS, "gpt-4.1", trait_name="Warmth", api_key=KEY)
    message_snapshot(refused)
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        ps.submit_llm_pairs(PAIRS, "gpt-4.1")


# Money


@pytest.mark.parametrize("backend", ["openai", "together"])
def test_a_price_is_no_field_of_the_request(backend) -> None:
    pairs = ps.make_pairs(ps.synthetic_essays(3, seed=1))
    path = {"openai": "/v1", "together": "/together/v1"}[backend]
    with ProviderSimulator() as server:
        results = ps.submit_llm_pairs(
            pairs, "some-model", backend=backend, api_key="simulated-key", base_url=server.url + path,
            price={"input": 1.0, "output": 2.0}, timeout=60.0, cache=False, progress=False,
        ).results  # fmt: skip
        asked = [str(entry.body) for entry in server.journal]
    assert len(asked) == 3
    assert not any(name in body for body in asked for name in ("'price'", "'timeout'", "'cache'", '"price"'))
    assert (results["cost"] > 0).all()


# Keys and Ollama


def test_check_llm_api_keys(monkeypatch, said):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", "  ")
    table = ps.check_llm_api_keys()
    assert table.columns == ["backend", "service", "env_var", "has_key"]
    assert table["backend"].to_list() == ["openai", "anthropic", "gemini", "together"]
    assert table["env_var"].to_list() == [f"{name}_API_KEY" for name in ("OPENAI", "ANTHROPIC", "GEMINI", "TOGETHER")]
    assert table["has_key"].to_list() == [False, True, False, False]
    assert len(said()) == 1
    assert "ANTHROPIC" not in said()[0]
    assert KEY not in str(table) + said()[0]
    ps.check_llm_api_keys(verbose=False)
    assert len(said()) == 1


def test_ensure_only_ollama_model_loaded(server, said):
    server.loaded[:] = ["qwen3:32b", "gemma3:27b", "mistral:latest"]
    assert ps.ensure_only_ollama_model_loaded("mistral") == ["qwen3:32b", "gemma3:27b"]
    assert server.loaded == ["mistral:latest"]
    assert said() == ["Ollama: unloaded qwen3:32b, gemma3:27b"]
    assert ps.ensure_only_ollama_model_loaded("mistral", verbose=False, host=server.url) == []
    assert len(said()) == 1


def test_ensure_only_ollama_model_loaded_without_a_server(said):
    with ProviderSimulator() as gone:
        pass
    assert ps.ensure_only_ollama_model_loaded("qwen3:32b", host=gone.url) == []
    assert "nothing was unloaded" in said()[0]
    assert ps.ensure_only_ollama_model_loaded("qwen3:32b", verbose=False, host=gone.url) == []
    assert len(said()) == 1
    with pytest.raises(InputError, match="name the model"):
        ps.ensure_only_ollama_model_loaded("")


# Adaptive runs


@pytest.mark.slow_except("4")
@pytest.mark.parametrize("concurrency", [1, 4])
def test_adaptive_rank_with_a_backend_and_a_model(server, tmp_path, concurrency):
    server.behaviour = Behaviour(quality=len, sharpness=1.0)
    server.faults = Faults(rate_limited=0.05, server_error=0.05)
    texts = [{"ID": f"s{n}", "text": "word " * (n + 1)} for n in range(6)]
    settings = {
        "backend": "anthropic", "model": "claude-sonnet-4-5", "judge_args": {"thinking_budget_tokens": 2000},
        "fit_fn": "laplace", "progress": "none", "run": tmp_path / "run.db", "concurrency": concurrency,
        "retry_wait": 0.001,
    }  # fmt: skip
    settings["judge_args"] |= {"max_tokens": 4000, "reasoning": "enabled"}
    first = ps.adaptive_rank(texts, n_steps=12, **settings)
    out = ps.adaptive_rank(texts, n_steps=18, **settings)
    assert out.items["ID"].to_list() == [f"s{n}" for n in reversed(range(6))]
    assert first.summary["committed_pairs"][0] <= 12
    assert out.summary["committed_pairs"][0] <= 30
    asked = out.logs["step_log"].filter(pl.col("status") != "starved").height  # six items have few pairs
    assert sum(entry.status == 200 for entry in server.journal) == asked
