"""Bad judges: whatever they do, the run continues or says why not, nothing is lost, and there are scores."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import JudgeError
from pairscale.judges.function import in_thread
from tests.adaptive.running import FAST, LATE, answers, asked, audited, better, rank, samples, simulated, steps


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


@pytest.mark.parametrize("answer", [None, "SAMPLE_1", {"winner": 1}], ids=str)
def test_an_answer_of_no_known_kind_stops_the_run(message_snapshot, answer: Any) -> None:
    with pytest.raises(JudgeError) as caught:
        rank(6, lambda A, B: answer, n_steps=24)
    message_snapshot(caught)
    assert caught.value.result.logs["step_log"].height == 0


def test_a_judge_may_return_a_plain_value() -> None:
    """Every kind of plain answer gives the same run as a mapping."""
    usual = rank(6, better, n_steps=10).logs["step_log"]["Y"].to_list()
    assert set(usual) == {0, 1}
    forms = (
        lambda first, A, B: 1 if first else 2,
        lambda first, A, B: first,
        lambda first, A, B: "A" if first else "B",
        lambda first, A, B: A["ID"] if first else B["ID"],
        lambda first, A, B: 0.9 if first else 0.1,
    )
    for form in forms:

        def judge(A: Any, B: Any, form: Any = form) -> Any:
            return form(better(A, B)["Y"] == 1, A, B)

        assert rank(6, judge, n_steps=10).logs["step_log"]["Y"].to_list() == usual


def test_a_judge_that_hangs_is_asked_again_and_then_let_be(tmp_path: Any) -> None:
    hanging, calls = threading.Event(), []

    async def judge(A: Any, B: Any) -> dict[str, Any]:  # those that answer do so at once, however slow the machine is
        calls.append(A["ID"])
        if len(calls) in {3, 4, 5}:
            await in_thread(hanging.wait)
        return better(A, B)

    run = tmp_path / "run.db"
    result = rank(5, judge, n_steps=6, run=run, timeout=0.05, retries=2, retry_wait=0)
    hanging.set()
    row = result.logs["step_log"].row(2, named=True)
    assert (row["status"], row["invalid_kind"]) == ("invalid", "error")
    assert row["invalid_reason"] == "no answer within 0.05 seconds"
    assert [attempt for uid, attempt in asked(run) if uid == "step-000003"] == [1, 2, 3]
    assert result.logs["step_log"]["status"].to_list().count("ok") == 5


def test_errors_that_pass_are_asked_again_until_they_do(tmp_path: Any) -> None:
    calls: list[int] = []

    def judge(A: Any, B: Any) -> dict[str, Any]:
        calls.append(1)
        if len(calls) % 2:
            raise ConnectionError("gone")
        return better(A, B)

    run = tmp_path / "run.db"
    result = rank(5, judge, n_steps=10, run=run, retry_wait=0, concurrency=1)
    assert result.logs["step_log"]["status"].unique().to_list() == ["ok"]
    assert len(calls) == len(asked(run)) == 20
    assert steps(result.state).equals(steps(rank(5, better, n_steps=10).state))


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


@pytest.mark.slow
def test_a_judge_that_refuses_everything_pauses_the_run_and_the_same_call_goes_on(
    message_snapshot, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run, well = tmp_path / "run.db", []

    def judge(A: Any, B: Any) -> dict[str, Any]:
        return better(A, B) if well else {"is_valid": False, "invalid_reason": "no credit left"}

    mine = ps.FunctionJudge(judge, name="mine")
    with pytest.raises(ps.errors.JudgeError) as failed:
        rank(12, mine, run=run)
    message_snapshot(failed)
    first = failed.value.result
    assert first.state.stop_reason == "judge_failed"
    assert first.logs["step_log"].height == 10
    assert first.items.is_empty()
    with pytest.raises(ps.errors.JudgeError, match="no credit left") as failed:
        rank(12, mine, run=run)  # no better yet: another ten, not none
    assert failed.value.result.logs["step_log"].height > 10
    well.append(True)
    result = rank(12, mine, run=run, max_comparisons=30)
    assert result.state.stop_reason == "max_comparisons"
    assert result.items.height == 12
    audited(run)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_so_few_items_that_every_pair_is_given_up_first(
    n: int, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Decision 8 with fewer than twenty questions to ask: the run says that it is the judge, and can be asked on."""
    run, well, pairs = tmp_path / "run.db", [], n * (n - 1) // 2

    def judge(A: Any, B: Any) -> dict[str, Any]:
        return better(A, B) if well else {"is_valid": False, "invalid_reason": "no credit left"}

    mine = ps.FunctionJudge(judge, name="mine")
    with caplog.at_level(logging.WARNING, "pairscale"):
        first = rank(n, mine, run=run)
    assert first.state.stop_reason == "candidate_starvation"
    assert (first.state.engine.committed, first.state.invalid) == (0, 3 * pairs)
    cause = f"On {pairs} pairs the judge gave no valid answer (the last reason: no credit left)"
    assert cause in caplog.text
    assert "max_invalid_per_pair to ask about what was refused" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "pairscale"):
        assert rank(n, mine, run=run).state.invalid == 3 * pairs  # stopped, and it says why again
    assert cause in caplog.text
    well.append(True)
    result = rank(n, mine, run=run, adaptive_config={"max_invalid_per_pair": 4}, btl_config=LATE)
    assert result.state.engine.committed >= 2 * pairs
    assert result.items["rank"].to_list() == list(range(1, n + 1))
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


def test_a_judge_that_breaks_down_in_the_middle_leaves_scores(tmp_path: Any) -> None:
    run, calls = tmp_path / "run.db", []

    def judge(A: Any, B: Any) -> dict[str, Any]:
        calls.append(1)
        if len(calls) > 30:
            raise RuntimeError("down")
        return better(A, B)

    with pytest.raises(ps.errors.JudgeError, match="RuntimeError: down") as failed:
        rank(10, judge, run=run, concurrency=8)
    result = failed.value.result
    assert result.state.stop_reason == "judge_failed"
    assert result.state.engine.committed == 30
    assert result.refits["total_pairs_done"][-1] == 30
    assert result.items.height == 10
    assert result.logs["round_log"]["stop_reason"][-1] in {"judge_failed", None}
    audited(run)


def test_a_judge_that_only_ties_pauses_too() -> None:
    result = rank(10, lambda A, B: {"is_valid": True, "Y": 0.5})
    assert result.state.stop_reason == "judge_failing"
    assert result.items.is_empty()


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


def test_a_stop_iteration_does_not_hang() -> None:
    """It means something else to the machinery below."""
    empty = iter(())

    def judge(A: Any, B: Any) -> Any:
        return next(empty)

    async def later(A: Any, B: Any) -> Any:
        return next(empty)

    for kind in (judge, later):
        result = rank(4, kind, n_steps=2, timeout=600, retries=0)
        assert result.logs["step_log"]["status"].to_list() == ["invalid", "invalid"]
        assert "no answer within" not in result.logs["step_log"]["invalid_reason"][0]


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


@pytest.mark.slow
def test_a_run_with_faults_of_every_kind_is_the_same_in_two_calls() -> None:
    judge = simulated(invalid_rate=0.1, tie_rate=0.1, error_rate=0.2, lapse=0.1, bias=0.5)
    given = {"retry_wait": 0, "btl_config": LATE}
    once, twice = rank(9, judge, n_steps=60, **given), rank(9, judge, n_steps=31, **given)
    ps.adaptive_rank_run_live(twice.state, judge, 29, retry_wait=0, **FAST)
    assert steps(twice.state).equals(steps(once.state))


@pytest.mark.parametrize("n", [pytest.param(n, marks=pytest.mark.validate) for n in (30, 50)])
def test_a_consistent_judge_reaches_the_stop_rule_with_the_real_sampler(n: int, tmp_path: Any) -> None:
    result = ps.adaptive_rank(samples(n), judge=better, run=tmp_path / "run.db", progress="none", n_steps=None)
    print(f"\n{n} items: stopped after {result.state.engine.committed} comparisons")
    assert result.state.stop_reason == "btl_converged"
    assert result.items.height == n
    audited(tmp_path / "run.db")
