"""Bad judges: whatever they do, the run continues or says why not, nothing is lost, and there are scores."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import polars as pl
import pytest

import pairscale as ps
from tests.adaptive.running import LATE, answers, asked, audited, better, rank


@pytest.mark.slow_except("*tie*", "broken*", "*surrogate*", "*ud800*")
@pytest.mark.parametrize(
    ("answer", "reason", "kind"),
    [
        (ValueError("broken"), "ValueError: broken", "failure"),
        (ValueError(), "ValueError", "failure"),
        ({"is_valid": True, "Y": 2}, "Y must be 1", "failure"),
        ({"is_valid": True, "Y": "1"}, "Y must be 1", "failure"),
        ({"is_valid": True, "Y": float("nan")}, "Y must be 1", "failure"),
        ({"is_valid": True}, "Y must be 1", "failure"),
        ({"is_valid": False, "Y": None, "invalid_reason": "cannot \ud800 say"}, "cannot", "abstention"),
        ({"is_valid": False}, "no valid answer", "abstention"),
        ({"is_valid": True, "Y": 0.5}, "the judge said tie", "abstention"),
    ],
    ids=str,
)
def test_an_answer_that_is_none_is_kept_with_its_reason(answer: Any, reason: str, kind: str, tmp_path: Any) -> None:
    run, calls = tmp_path / "run.db", []

    def judge(A: Any, B: Any) -> Any:
        calls.append(1)
        if len(calls) % 3 == 2:
            if isinstance(answer, Exception):
                raise answer
            return answer
        return better(A, B)

    result = rank(6, judge, n_steps=24, run=run)
    log = result.logs["step_log"]
    assert log["status"].to_list().count("invalid") == 8
    invalid = log.filter(status="invalid")
    assert invalid["invalid_kind"].unique().to_list() == [kind]
    assert all(reason in said for said in invalid["invalid_reason"])
    assert invalid["pair_id"].is_null().all()
    assert invalid["Y"].is_null().all()
    assert len(calls) == len(answers(run)) == 24 - log["status"].to_list().count("starved")
    assert result.items.height == 6
    audited(run)


@pytest.mark.slow_except("4")
@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_item_that_is_always_refused_is_set_aside_and_the_others_are_ranked(
    concurrency: int, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run.db"

    def judge(A: Any, B: Any) -> dict[str, Any]:
        if "s03" in (A["ID"], B["ID"]):
            return {"is_valid": False, "invalid_reason": "not that one"}
        return better(A, B)

    with caplog.at_level(logging.WARNING, "pairscale"):
        result = rank(12, judge, max_comparisons=100, run=run, concurrency=concurrency, btl_config=LATE)
    assert "s03: the judge gives no valid answer on it; it is set aside" in caplog.text
    log = result.logs["step_log"]
    about = log.filter((pl.col("A_id") == "s03") | (pl.col("B_id") == "s03"))
    assert 10 <= about.height < 10 + concurrency
    assert about["set_aside"].drop_nulls().to_list() == ["s03"]
    assert result.state.engine.committed == 100
    others = log.filter(status="ok").select("A_id", "B_id")
    assert set(others["A_id"]) | set(others["B_id"]) == {f"s{n:02d}" for n in range(12)} - {"s03"}
    linked = ps.adaptive_results_history(result.state)
    assert ps.fit_bt_model(ps.build_bt_data(linked), engine="map").theta.height == 11  # connected
    assert result.items.height == 12
    audited(run)


@pytest.mark.slow_except("pollitt")
@pytest.mark.parametrize("selector", ["pollitt", "random", "information"])
def test_a_raised_limit_takes_items_back_that_were_set_aside(
    selector: str, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run, well = tmp_path / "run.db", []

    def judge(A: Any, B: Any) -> dict[str, Any]:
        about = "s01" in (A["ID"], B["ID"])
        return {"is_valid": False, "invalid_reason": "not that one"} if about and not well else better(A, B)

    mine, given = ps.FunctionJudge(judge, name="mine"), {"run": run, "btl_config": LATE, "selector": selector}
    with caplog.at_level(logging.WARNING, "pairscale"):
        first = rank(5, mine, **given)
    assert first.state.stop_reason == "candidate_starvation"
    refused = len(first.state.engine.ledger.given_up)
    assert 0 < refused < 10
    assert f"On {refused} pairs the judge gave no valid answer (the last reason: not that one)" in caplog.text
    assert first.items.filter(ID="s01")["degree"].item() == 0
    well.append(True)
    wide = {"max_invalid_per_pair": 9, "max_invalid_per_item": 30}
    again = rank(5, mine, adaptive_config=wide, **given)
    assert again.items.filter(ID="s01")["degree"].item() >= 4
    audited(run)


def test_a_judge_that_cannot_judge_these_samples_ends_the_call_with_its_words(message_snapshot, tmp_path: Any) -> None:
    run = tmp_path / "run.db"
    known = {f"s{n:02d}": float(n) for n in range(8)}
    with pytest.raises(ps.PairscaleError) as refused:
        rank(10, ps.SimulatedJudge(known), run=run)
    message_snapshot(refused)
    state = ps.adaptive_rank_resume(run=run)
    assert state.stop_reason == "failed"
    done = state.step_log.height
    # Nothing hangs on a judge that gave no answer; on one that gave some, everything does.
    if done == 0:
        assert rank(10, run=run, n_steps=5).logs["step_log"].height == 5
    audited(run)


@pytest.mark.slow
def test_many_at_once_with_a_judge_that_does_everything_wrong(tmp_path: Any) -> None:
    run, count = tmp_path / "run.db", iter(range(10_000))

    async def judge(A: Any, B: Any) -> Any:
        turn = next(count)
        await asyncio.sleep((turn * 7 % 5) / 2000)
        if turn % 9 == 4:
            raise ConnectionError("gone")
        if turn % 11 == 5:
            return {"is_valid": True, "Y": 7}
        if turn % 13 == 6:
            return {"is_valid": False, "invalid_reason": "rather not"}
        return {"is_valid": True, "Y": 0.5} if turn % 17 == 7 else better(A, B)

    result = rank(15, judge, n_steps=120, run=run, concurrency=12, retry_wait=0, btl_config=LATE)
    log = result.logs["step_log"]
    assert log.height == 120
    assert set(log["status"]) >= {"ok", "invalid"}
    questions = asked(run)
    assert len(set(questions)) == len(questions) == next(count)
    assert result.items.height == 15
    audited(run)
