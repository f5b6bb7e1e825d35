"""``max_cost`` holds although no reply says what it cost, whichever way judges are asked."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import PairscaleError
from tests.runtime.across import across
from tests.runtime.server import COST, NO_USAGE, USAGE, Asked, Reply, Server
from tests.runtime.workflows import LIVE, MODELS, WORKFLOWS, Call, attempts_in, gate, spent_in

ROADS = (*MODELS, "gate")
LIMIT = 0.012
QUESTIONS = 24
BAD_USAGE: dict[str, Any] = {
    "left out": NO_USAGE,
    "null": None,
    "negative": {**USAGE, "prompt_tokens": -5},
    "nan": dict.fromkeys(USAGE, math.nan),
    "text": {**USAGE, "prompt_tokens": "200"},
    "true": {**USAGE, "completion_tokens": True, "total_tokens": True},
    "zeros": dict.fromkeys(USAGE, 0),
    "a text": "200 tokens",
}
UNREADABLE = Reply(body={"object": "something else"})


def ended(workflow: str, call: Call) -> None:
    """Make a call that may end early."""
    ask: Callable[[Call], Any] = gate if workflow == "gate" else WORKFLOWS[workflow]
    with contextlib.suppress(PairscaleError):  # too few answers, or ten alike failures
        ask(call)


def call_of(server: Server, folder: Path, max_cost: float | None = LIMIT, **given: Any) -> Call:
    options = {} if max_cost is None else {"max_cost": max_cost}
    return Call(str(folder / "run.db"), server.url, QUESTIONS, options={**options, **given.pop("options", {})}, **given)


def is_estimate(attempt: Any) -> bool:
    return bool(json.loads(attempt["request"] or "{}").get("cost_is_estimate"))


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if "cost is not known" in line]


def assert_kept_to(server: Server, call: Call) -> None:
    attempts = attempts_in(call.run)
    assert 0 < len(attempts) == len(server.questions) < QUESTIONS
    assert all(is_estimate(one) and one["cost"] > 0 for one in attempts)
    assert LIMIT / 2 < spent_in(call.run) <= LIMIT


@across(ROADS, "left out")
@across(("pairs", "batch"), *(name for name in BAD_USAGE if name != "left out"))
def test_answers_that_do_not_say_their_cost_count_as_the_most_they_may_cost(
    workflow: str, event: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Server(lambda _asked: Reply(usage=BAD_USAGE[event])) as server:
        call = call_of(server, tmp_path)
        ended(workflow, call)
        assert_kept_to(server, call)
        assert len(said(caplog)) == (len(server.batches) or 1)
        for _ in range(2):
            ended(workflow, call)
        assert_kept_to(server, call)


@across(ROADS, "unreadable")
def test_a_reply_that_cannot_be_read_counts_as_the_most_it_may_cost(workflow: str, event: str, tmp_path: Path) -> None:
    with Server(lambda _asked: UNREADABLE) as server:
        call = call_of(server, tmp_path, options={"retries": 0} if workflow != "batch" else {})
        for _ in range(3):
            ended(workflow, call)
        assert_kept_to(server, call)


@across(LIVE, "late in the run")
@across(("pairs",), "late in the client")
def test_a_call_that_timed_out_counts_as_the_most_it_may_cost(workflow: str, event: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"retries": 0}
    judge_args = {"timeout": 0.2} if event.endswith("client") else {}
    if not judge_args:
        options["timeout"] = 0.2
    with Server(lambda _asked: Reply(fate="never")) as server:
        call = call_of(server, tmp_path, options=options, judge_args=judge_args)
        for _ in range(3):
            ended(workflow, call)
        attempts = attempts_in(call.run)
        assert {(one["error_code"], is_estimate(one)) for one in attempts} == {("timeout", True)}
        assert len(server.questions) <= len(attempts) < QUESTIONS
        assert spent_in(call.run) <= LIMIT


@pytest.mark.parametrize("status", [429, 400, 404, 503])
def test_a_refusal_costs_nothing(status: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Server(lambda _asked: Reply(status, {"message": "No."}, headers={"Retry-After": "0"})) as server:
        call = call_of(server, tmp_path, options={"retries": 0})
        ended("pairs", call)
        assert {one["cost"] for one in attempts_in(call.run)} == {None}
    assert not said(caplog)


def test_a_connection_that_broke_may_have_cost_something(tmp_path: Path) -> None:
    with Server(lambda _asked: Reply(fate="reset")) as server:
        call = call_of(server, tmp_path, options={"retries": 0})
        ended("pairs", call)
        assert all(is_estimate(one) for one in attempts_in(call.run))
        assert spent_in(call.run) <= LIMIT


def test_without_a_limit_the_estimates_are_recorded_and_everything_is_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def script(asked: Asked) -> Reply | None:
        return Reply(usage=None) if asked.number <= 4 else None

    with Server(script) as server:
        call = call_of(server, tmp_path, max_cost=None)
        ended("pairs", call)
        attempts = attempts_in(call.run)
        assert len(attempts) == QUESTIONS
        assert sum(map(is_estimate, attempts)) == 4
        exact = [one["cost"] for one in attempts if not is_estimate(one)]
        assert exact == [pytest.approx(COST)] * (QUESTIONS - 4)
    (line,) = said(caplog)
    assert line.startswith("compatible:test-model: what a question cost is not known")


def test_the_answers_of_variants_count_as_the_most_they_may_cost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Server(lambda _asked: Reply(usage=None, content="An answer.")) as server:
        settings = call_of(server, tmp_path).settings()
        variants = [ps.ModelVariant("compatible:test-model", f"{name}: {{input}}", **settings) for name in "ab"]
        inputs = [f"Say [[t{at:02d}]] or [[t{at + 1:02d}]]." for at in range(20)]
        tasks = ps.Suite.from_list([{"input": words, "task_id": words} for words in inputs])
        judge = ps.pairwise_judge(lambda A, B: {"Y": 1, "cost": 0.0}, criterion="better", key="better")
        for _ in range(2):
            ps.run_pairwise(
                tasks, variant_a=variants[0], variant_b=variants[1], comparators=[judge], run=tmp_path / "run.db",
                max_cost=LIMIT, progress=False,
            )  # fmt: skip
        most = variants[0].max_cost_of(next(iter(tasks)))
        assert most is not None
        assert len(server.questions) <= LIMIT / most < 40
    assert len(said(caplog)) == 1
