"""Another stop rule while a run is paused: logged, replayed, audited, and nothing else is otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.adaptive.config import STOP_SETTINGS
from pairscale.adaptive.messages import adaptive_status
from tests.adaptive.running import LATE, SOON, Tamper, audited, better, events_of, rank, simulated, steps

OTHER = {
    "eap_reliability_min": 0.97, "stability_lag": 3, "theta_corr_min": 0.99, "theta_sd_rel_change_max": 0.01,
    "rank_spearman_min": 0.99, "top_wrong_max": 0.05,
}  # fmt: skip


def status_of(run: Path) -> dict[str, Any]:
    with ps.open_run(run) as store:
        status = adaptive_status(store)
    assert status is not None
    return status


@pytest.mark.slow_except("eap_reliability_min-*")
@pytest.mark.parametrize("selector", ["pollitt", "information"])
@pytest.mark.parametrize("name", STOP_SETTINGS)
def test_every_choice_stays_as_it_would_have_been(name: str, selector: str, tmp_path: Path) -> None:
    """Also where answers were invalid and pairs rest, which other settings would take back."""
    run, judge = tmp_path / "run.db", simulated(invalid_rate=0.2)
    rank(9, judge, n_steps=31, run=run, selector=selector, btl_config=LATE)
    changed = rank(9, judge, n_steps=40, run=run, selector=selector, btl_config=LATE | {name: OTHER[name]})
    whole = rank(9, judge, n_steps=71, selector=selector, btl_config=LATE)
    assert changed.state.engine.stop_reason is None
    assert steps(changed.state).equals(steps(whole.state))
    (event,) = events_of(run, "stop_rule")
    assert (event["btl_config"][name], event["stop_reason"], event["after"]) == (OTHER[name], None, 31)
    assert events_of(run, "configure") == []
    audited(run)


@pytest.mark.slow
def test_a_rule_that_the_last_refit_meets_stops_the_run_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run.db"
    paused = rank(10, better, n_steps=47, run=run, btl_config=LATE)
    assert status_of(run)["stop_reason"] is None
    asked: list[Any] = []

    def counting(A: Any, B: Any) -> dict[str, Any]:
        asked.append((A, B))
        return better(A, B)

    done = rank(10, ps.FunctionJudge(counting, name=ps.make_judge(better).condition.judge_id), run=run, btl_config=SOON)
    assert asked == []
    assert done.state.stop_reason == "btl_converged"
    assert "the last refit meets it, so that the run stops here" in caplog.text
    assert done.summary["last_stop_decision"].item() is True
    assert done.logs["step_log"].equals(paused.logs["step_log"])
    (event,) = events_of(run, "stop_rule")
    assert event["stop_reason"] == "btl_converged"
    assert (status_of(run)["has_ended"], status_of(run)["stop_reason"]) == (True, "btl_converged")
    assert ps.adaptive_rank_resume(run=run).stop_reason == "btl_converged"
    audited(run)
    again = rank(10, better, n_steps=5, run=run, btl_config=LATE)  # a stopped run continues with other settings
    assert again.state.engine.rows == paused.state.engine.rows + 5
    assert again.state.engine.committed > paused.state.engine.committed
    audited(run)


@pytest.mark.slow
def test_a_stop_that_was_not_earned_is_found(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(10, better, n_steps=12, run=run, btl_config=LATE)
    rank(10, better, n_steps=12, run=run, btl_config=LATE | {"rank_spearman_min": 0.99})
    audited(run)
    with Tamper(run) as log:
        next(event for event in log.logs["adaptive_events"] if event["event"] == "stop_rule")["stop_reason"] = "x"
    assert "stop_reason is 'x' in the log and None in the replay" in str(ps.audit(run))
    with Tamper(run) as log:
        event = next(event for event in log.logs["adaptive_events"] if event["event"] == "stop_rule")
        event |= {"stop_reason": None, "btl_config": LATE | {"refit_pairs_target": 7}}
    assert not ps.audit(run).passed
