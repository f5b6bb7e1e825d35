"""Bad judges: whatever they do, the run continues or says why not, nothing is lost, and there are scores."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import pairscale as ps
from tests.adaptive.running import LATE, answers, audited, better, rank


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
    assert "s01: the judge gives no valid answer on it; it is set aside" in caplog.text
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
