"""A reply without an answer was paid for: what came back is kept, for every provider and every way of asking."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.collect.batch.manager import BatchManager
from pairscale.runtime import run_sync
from pairscale.testing import Behaviour, ProviderSimulator

MODELS = {
    "openai": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "together": "deepseek-ai/DeepSeek-V3",
    "ollama": "qwen3:32b",
    "compatible": "my-model",
}
BATCHES = ("openai", "anthropic", "gemini", "together")
PRICE = {"input": 1.0, "output": 4.0, "batch": 0.5}
TEXTS = [{"ID": f"t{at}", "text": f"Text {at}, {'and more, ' * at}and no more."} for at in range(4)]
PAIRS = [{"ID1": a["ID"], "text1": a["text"], "ID2": b["ID"], "text2": b["text"]} for a, b in pairwise(TEXTS)]
# Of each kind of reply: what makes the simulator give it, its code, and what the model said.
KINDS: dict[str, tuple[dict[str, Any], set[str], str]] = {
    "refused": ({"refusal_rate": 1.0}, {"refusal", "content_filter"}, ""),
    "filtered": ({"filtered_rate": 1.0}, {"content_filter", "refusal", "empty_answer"}, ""),
    "unparsable": ({"malformed_rate": 1.0}, {"parse_error"}, "Both have their merits, but on balance the first."),
    "cut off": ({"truncated_rate": 1.0}, {"truncated"}, "Let me see. The first text"),
    "empty": ({"empty_rate": 1.0}, {"empty_answer"}, ""),
}


def settings_of(server: ProviderSimulator, provider: str) -> dict[str, Any]:
    roots = {"openai": "/v1", "compatible": "/v1", "together": "/together/v1"}
    return {"base_url": server.url + roots.get(provider, ""), "api_key": "a-key", "price": PRICE, "cache": False}


def judge_of(server: ProviderSimulator, provider: str) -> ps.LLMJudge:
    judge = ps.make_judge(f"{provider}:{MODELS[provider]}", judge_args=settings_of(server, provider))
    assert isinstance(judge, ps.LLMJudge)
    return judge


def live(server: ProviderSimulator, provider: str, run: Path) -> Any:
    return ps.submit_pairs(PAIRS, judge_of(server, provider), run=run, retries=0, progress=False, include_raw=True)


def adaptive(server: ProviderSimulator, provider: str, run: Path) -> None:
    state = ps.adaptive_rank_start(TEXTS, seed=1, session_dir=run.parent / "session")
    ps.adaptive_rank_run_live(state, judge_of(server, provider), n_steps=3, fit_fn="laplace", progress="none")
    (run.parent / "session" / "run.db").rename(run)


def ab(server: ProviderSimulator, provider: str, run: Path) -> None:
    judge = ps.pairwise_judge(
        f"{provider}:{MODELS[provider]}", criterion="better", key="better", judge_args=settings_of(server, provider),
        retries=0,
    )  # fmt: skip
    tasks = ps.Suite.from_list([{"input": "Say something.", "task_id": f"{at}"} for at in range(2)])
    ps.run_pairwise(
        tasks, variant_a=lambda task: f"First {task.task_id}.", variant_b=lambda task: f"Second {task.task_id}.",
        comparators=[judge], run=run, progress=False,
    )  # fmt: skip


def batch(server: ProviderSimulator, provider: str, run: Path) -> tuple[Any, Any]:
    async def work() -> tuple[Any, Any]:
        async with BatchManager(run, api_key="a-key") as manager:
            await manager.submit(PAIRS, judge_of(server, provider))
            await manager.wait(interval=0.01)
            return manager.results(raw=True)

    return run_sync(work)


WORKFLOWS = {"live": live, "adaptive": adaptive, "A/B": ab, "batch": batch}
CASES = [
    pytest.param(workflow, provider, kind, id=f"{workflow}, {provider}: {kind}")
    for workflow in WORKFLOWS
    for provider in (BATCHES if workflow == "batch" else MODELS)
    for kind in KINDS
]


@pytest.mark.slow_except("*openai*", "*anthropic: unparsable")
@pytest.mark.parametrize(("workflow", "provider", "kind"), CASES)
def test_a_reply_without_an_answer_is_kept(workflow: str, provider: str, kind: str, tmp_path: Path) -> None:
    """Content, tokens, cost and raw reply are in ``failed_attempts``, and in the results of the run file."""
    behaviour, codes, said = KINDS[kind]
    run = tmp_path / "run.db"
    with ProviderSimulator(Behaviour(**behaviour)) as server:
        WORKFLOWS[workflow](server, provider, run)
    with ps.open_run(run) as store:
        failed, results, spent = store.failed_attempts().to_dicts(), store.results(raw=True).to_dicts(), store.spent()
    assert len(failed) >= 2
    assert {row["failure"] for row in failed} == {"question"}
    for row in failed:
        assert row["error_code"] in codes
        assert row["status_code"] == 200
        assert_all_there(row, said)
    assert spent == pytest.approx(sum(row["cost"] for row in failed))
    standing = [row for row in results if row["outcome"] in {"error", "abstention"}]
    assert len(standing) == len(results) == len({row["custom_id"] for row in failed})
    for row in standing:
        assert_all_there(row, said)


def assert_all_there(row: dict[str, Any], said: str) -> None:
    """Everything that a reply of the simulator has."""
    if said:
        assert row["content"] == said
    assert row["content"] is not None
    assert row["prompt_tokens"] > 10
    if row["completion_tokens"] is None:  # Gemini counts no answer for a prompt that it blocks
        assert "promptFeedback" in row["raw_response"]
        assert row["total_tokens"] >= row["prompt_tokens"]
    else:
        assert row["total_tokens"] == row["prompt_tokens"] + row["completion_tokens"]
    assert row["cost"] > 0
    raw = json.loads(row["raw_response"])
    assert isinstance(raw, dict)
    assert said in json.dumps(raw, ensure_ascii=False)
