"""One meaning of ``max_cost``, whichever way judges are asked: what the run has spent, all calls together."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, PairscaleError
from tests.runtime.across import across
from tests.runtime.server import COST, Server
from tests.runtime.workflows import FUNCTIONS, MODELS, WORKFLOWS, Call, attempts_in, known_judge, outcomes_in, spent_in

LIMIT = 6 * COST
QUESTIONS = 12


def ask(workflow: str, call: Call) -> Any:
    return WORKFLOWS[workflow](call)


def ended(workflow: str, call: Call, caplog: pytest.LogCaptureFixture) -> str:
    """What a call that may not be complete says: in notices, in its result, or in the error that it ends with."""
    caplog.clear()
    try:
        result = ask(workflow, call)
    except PairscaleError as error:
        return f"{caplog.text}\n{error}"
    return f"{caplog.text}\n{result.state.ended if workflow == 'adaptive' else ''}"


def call_of(server: Server, folder: Path, max_cost: Any = LIMIT, **given: Any) -> Call:
    options = {} if max_cost is None else {"max_cost": max_cost}
    return Call(run=str(folder / "run.db"), url=server.url, questions=QUESTIONS, options=options, **given)


@across(MODELS, "budget")
def test_a_run_stops_before_it_costs_more_again_and_again_and_goes_on_with_a_higher_budget(
    workflow: str, event: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Server() as server:
        call = call_of(server, tmp_path)
        for _ in range(3):
            assert "max_cost" in ended(workflow, call, caplog)
            assert spent_in(call.run) == pytest.approx(len(server.good) * COST)
            assert LIMIT / 2 <= spent_in(call.run) <= LIMIT
        ask(workflow, call_of(server, tmp_path, max_cost=1.0))
        assert len(server.good) == len(outcomes_in(call.run)) == QUESTIONS
        assert spent_in(call.run) == pytest.approx(QUESTIONS * COST)


@across(MODELS, "unknown price")
def test_a_budget_without_a_price_is_refused_before_anything_is_asked(
    workflow: str, event: str, tmp_path: Path
) -> None:
    with Server() as server:
        with pytest.raises(InputError, match=r"(?s)max_cost.*price|price.*max_cost"):
            ask(workflow, call_of(server, tmp_path, max_cost=1.0, priced=False))
        assert server.asked == []


class Charging:
    """A judge of one's own: says afterwards what an answer cost, and never beforehand."""

    def __init__(self, priced: int = 1000) -> None:
        self.asked = self.open = self.open_before_the_first = 0
        self._priced = priced
        self._known = False

    async def judge(self, A: Any, B: Any) -> ps.Verdict:
        self.asked += 1
        self.open += 1
        number = self.asked
        if not self._known:
            self.open_before_the_first = max(self.open_before_the_first, self.open)
            await asyncio.sleep(0.02)
        self.open -= 1
        self._known = True
        cost = COST if number <= self._priced else None
        return ps.Verdict.win(1 if A["text"] > B["text"] else 2, cost=cost)


@across(FUNCTIONS, "own judge")
def test_a_judge_of_ones_own_is_asked_one_question_first(
    workflow: str, event: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    charging = Charging()
    call = Call(
        str(tmp_path / "run.db"), questions=QUESTIONS, function=known_judge(charging.judge),
        options={"max_cost": LIMIT},
    )  # fmt: skip
    assert "max_cost" in ended(workflow, call, caplog)
    assert charging.open_before_the_first == 1
    assert charging.asked == 6
    assert spent_in(call.run) == pytest.approx(LIMIT)


@across(FUNCTIONS, "own judge without a cost")
def test_an_answer_without_a_cost_ends_a_run_with_a_budget(
    workflow: str, event: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    charging = Charging(priced=3)
    call = Call(
        str(tmp_path / "run.db"), questions=QUESTIONS, concurrency=1, function=known_judge(charging.judge),
        options={"max_cost": 1.0},
    )  # fmt: skip
    assert "cost" in ended(workflow, call, caplog)
    both_orders = workflow == "ab"
    assert charging.asked <= 4 + both_orders
    assert len(attempts_in(call.run)) == charging.asked
