"""Another stop rule while a run is paused: logged, replayed, audited, and nothing else is otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.adaptive.config import STOP_SETTINGS
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.status import adaptive_status
from pairscale.core.errors import InputError, StoreMismatchError
from tests.adaptive.driving import names
from tests.adaptive.running import LATE, SOON, Tamper, audited, better, rank, simulated, steps

OTHER = {
    "eap_reliability_min": 0.97, "stability_lag": 3, "theta_corr_min": 0.99, "theta_sd_rel_change_max": 0.01,
    "rank_spearman_min": 0.99, "top_wrong_max": 0.05,
}  # fmt: skip


def events_of(run: Path, kind: str | None = None) -> list[dict[str, Any]]:
    with ps.open_run(run) as store:
        return [event for event in store.read_log("adaptive_events") if kind in (None, event["event"])]


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


def test_a_lower_reliability_continues_a_paused_run_and_stops_it_at_the_next_refit_that_meets_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run.db"
    paused = rank(10, better, n_steps=12, run=run, btl_config=LATE)
    assert paused.state.stop_reason is None
    low = rank(10, better, run=run, btl_config=SOON)
    assert low.state.stop_reason == "btl_converged"
    assert "another stop rule from here on: eap_reliability_min is 0.3, was 0.999" in caplog.text
    assert low.refits.row(-1, named=True)["eap_reliability_min"] == 0.3
    assert steps(low.state).equals(steps(rank(10, better, btl_config=SOON).state))
    assert ps.adaptive_rank_resume(run=run).settings["btl_config"] == SOON
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
    assert "'refit_pairs_target' would change" in str(ps.audit(run))


def test_a_change_back_is_said_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Leaving a setting out is asking for its default, and not silently."""
    run = tmp_path / "run.db"
    rank(8, n_steps=4, run=run, btl_config={"eap_reliability_min": 0.95})
    rank(8, n_steps=4, run=run)
    assert "eap_reliability_min is 0.9, was 0.95" in caplog.text
    caplog.clear()
    rank(8, n_steps=4, run=run)
    assert "stop rule" not in caplog.text
    assert len(events_of(run, "stop_rule")) == 1
    audited(run)


def test_other_settings_of_a_paused_run_stay_fixed_also_together_with_the_rule(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(8, n_steps=4, run=run)
    for more in ({"btl_config": {"max_rhat": 1.2}}, {"adaptive_config": {"cap_frac": 0.2}}):
        given: dict[str, Any] = {"btl_config": {}, **more}
        with pytest.raises(StoreMismatchError, match="was started with"):
            rank(8, n_steps=4, run=run, **given | {"btl_config": given["btl_config"] | {"eap_reliability_min": 0.8}})
    assert len(events_of(run)) == len(events_of(run, "start")) + len(events_of(run, "call")) * 3  # call, refit, end


def test_the_engine_refuses_what_is_more_than_a_stop_rule(message_snapshot) -> None:
    engine = Engine(names(6), seed=2)
    with pytest.raises(InputError) as refused:
        engine.configure(None, {"max_rhat": 1.5, "eap_reliability_min": 0.5})
    message_snapshot(refused)
    engine = Engine(names(6), seed=2)
    engine.configure(None, {"eap_reliability_min": 0.5})
    assert engine.btl.eap_reliability_min == 0.5
    assert engine.stop_reason is None
