"""Runs that are taken up in other circumstances: begun by an older version, still working, or with other settings."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.adaptive import session
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.refits import fit_name
from pairscale.adaptive.status import adaptive_status
from pairscale.core.errors import InputError
from pairscale.models.bayes.fit import fit_btl_laplace
from pairscale.store.audit import check_evidence
from pairscale.store.runfile import RunFile
from tests.adaptive.driving import ask, drive, judge, mu_belief, names
from tests.adaptive.running import LATE, Tamper, audited, better, rank, simulated, steps


@pytest.mark.slow
def test_a_run_whose_log_does_not_say_what_fits_goes_on(message_snapshot, tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(8, n_steps=20, run=run)
    with Tamper(run) as log:  # as the first versions wrote it
        for event in log.logs["adaptive_events"]:
            event.pop("fit_fn", None)
    assert ps.adaptive_rank_resume(run=run).fit_fn is None
    audited(run)
    result = rank(8, n_steps=14, run=run)
    assert steps(result.state).equals(steps(rank(8, n_steps=34).state))
    assert ps.adaptive_rank_resume(run=run).fit_fn == "laplace"  # known from now on
    with pytest.raises(ps.StoreMismatchError) as refused:
        rank(8, n_steps=1, run=run, fit_fn=None)
    message_snapshot(refused)
    audited(run)


@pytest.mark.slow
@pytest.mark.parametrize("after", ["round_log", "adaptive_events"])
def test_a_run_that_goes_on_meanwhile_is_read_as_of_one_moment(
    after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, moving = tmp_path / "run.db", [False]

    def meanwhile(read: Any) -> Any:
        def reading(store: RunFile, name: str, **given: Any) -> list[dict[str, Any]]:
            rows = read(store, name, **given)
            if name == after and not moving[0]:
                moving[0] = True
                rank(8, n_steps=13, run=run, btl_config=LATE)  # another one writes steps, refits and events
            return rows

        return reading

    def while_it_goes_on(look: Any) -> Any:
        moving[0] = False
        found = look()
        assert moving[0]
        moving[0] = True
        return found

    rank(8, n_steps=20, run=run, btl_config=LATE)
    monkeypatch.setattr(RunFile, "read_log", meanwhile(RunFile.read_log))
    report = while_it_goes_on(lambda: ps.audit(run))
    assert (report.passed, report.steps) == (True, 20)
    state = while_it_goes_on(lambda: ps.adaptive_rank_resume(run=run))
    assert (state.step_log.height, state.engine.rows, state.needs_closing) == (33, 33, False)
    with ps.open_run(run) as store:
        status = while_it_goes_on(lambda: adaptive_status(store))
        assert (status["steps"], status["has_ended"]) == (46, True)
        later = adaptive_status(store)
    assert later is not None
    assert (later["steps"], later["n_refits"] > status["n_refits"]) == (59, True)
    audited(run)


def test_status_counts_what_the_log_holds(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    state = rank(5, simulated(invalid_rate=0.3), n_steps=25, run=run).state
    with ps.open_run(run) as store:
        status = adaptive_status(store)
        assert [row["step_id"] for row in store.read_log("step_log", last=3)] == state.step_log["step_id"][
            -3:
        ].to_list()
    assert status is not None
    assert status["committed_pairs"] == state.engine.committed
    assert status["invalid"] == state.invalid > 0
    assert (status["stage"], status["round_id"]) == state.step_log.select("round_stage", "round_id").row(-1)


@pytest.mark.parametrize("load", [ps.load_adaptive_session, ps.validate_session_dir])
def test_the_chain_is_checked_once(load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rank(5, n_steps=6, run=tmp_path / "run.db")
    checked: list[Any] = []
    check = lambda store, *tables: checked.append(tables) or check_evidence(store, *tables)  # noqa: E731
    monkeypatch.setattr(session, "check_evidence", check)
    load(tmp_path)
    assert checked == [("logs", "blobs")]


def test_fewer_in_flight_than_an_earlier_call_left_open(tmp_path: Path) -> None:
    run, left, now, most = tmp_path / "run.db", iter(range(5)), [0], [0]

    async def stopping(A: Any, B: Any) -> dict[str, Any]:
        if next(left, None) is None:
            raise KeyboardInterrupt
        await asyncio.Event().wait()  # until it is interrupted
        raise AssertionError

    async def counting(A: Any, B: Any) -> dict[str, Any]:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0)
        now[0] -= 1
        return better(A, B)

    with pytest.raises(KeyboardInterrupt):
        rank(12, ps.FunctionJudge(stopping, name="mine"), run=run, concurrency=6)
    assert len(ps.adaptive_rank_resume(run=run).engine.open) == 6
    result = rank(12, ps.FunctionJudge(counting, name="mine"), run=run, concurrency=2, n_steps=9)
    assert most == [2]
    assert result.state.engine.committed == 9
    audited(run)


def test_other_settings_hold_for_a_refit_that_is_due() -> None:
    engine = Engine(names(6), seed=2, btl_config={"refit_pairs_target": 6, "stability_lag": 2})
    run = drive(engine, judge(3), steps=17)
    assert [belief.refit_id for _, belief, _ in run.refits] == [1, 2]
    engine.record(ask(engine).step_id, 1)
    due = engine.pending
    assert due is not None
    assert due.lag is not None
    assert due.lag.refit_id == 1
    engine.configure({"cap_frac": 0.2}, {"refit_pairs_target": 6, "stability_lag": 1, "eap_reliability_min": 0.5})
    later = engine.pending
    assert later is not None
    assert (later.adaptive, later.btl) == (engine.config, engine.btl)
    assert (later.adaptive.cap_frac, later.btl.eap_reliability_min) == (0.2, 0.5)
    assert later.lag is not None
    assert later.lag.refit_id == 2
    assert (later.history == due.history).all()
    engine.apply(mu_belief(engine), stop_reason=None)
    assert engine.n_refits == 3


def test_settings_changed_while_a_refit_was_due_pass_the_audit(tmp_path: Path) -> None:
    run, given = tmp_path / "run.db", {"fit_fn": "laplace", "progress": "none"}
    broken = [True]

    def fit(*args: Any, **options: Any) -> Any:
        if broken[0]:
            raise KeyboardInterrupt
        return fit_btl_laplace(*args, **options)

    with pytest.raises(KeyboardInterrupt):
        rank(8, simulated(), run=run, fit_fn=fit)
    broken[0] = False
    state = ps.adaptive_rank_resume(run=run)
    assert state.engine.pending is not None
    btl = {"eap_reliability_min": 0.123}
    ps.adaptive_rank_run_live(state, simulated(), 3, btl_config=btl, **given)
    assert state.round_log["eap_reliability_min"].unique().to_list() == [0.123]
    audited(run)


def test_what_cannot_fit_is_refused_before_anything_is_asked(message_snapshot) -> None:
    for wrong in (7, [], {"fit": 1}):
        with pytest.raises(InputError) as refused:
            rank(5, better, fit_fn=wrong)
        message_snapshot(refused)


def own_fit(*args: Any, **given: Any) -> Any:
    return fit_btl_laplace(*args, **given)


def test_partials_are_told_apart() -> None:
    name = f"{__name__}.own_fit"
    assert fit_name(functools.partial(own_fit)) == f"{name}()"
    one, two = (functools.partial(own_fit, draws=n, by=object()) for n in (10, 20))
    assert fit_name(one) == f"{name}(by=<object object>, draws=10)"
    assert fit_name(one) != fit_name(two)
    assert fit_name(functools.partial(one, draws=20)) == fit_name(functools.partial(two, by=object()))


def test_the_sampler_has_no_seed_of_its_own(message_snapshot) -> None:
    with pytest.raises(InputError) as refused:
        Engine(names(3), btl_config={"mcmc": {"seed": 7}})
    message_snapshot(refused)
    assert Engine(names(3), btl_config={"mcmc": {"chains": 4}}).btl.mcmc == {"chains": 4}


def test_a_paused_run_goes_on_when_a_default_is_said(message_snapshot, tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    result = rank(8, n_steps=4, run=run)
    engine = result.state.engine
    said = {"adaptive_config": {"k_total": engine.config.k_total}, "btl_config": {"eap_reliability_min": 0.90}}
    again = rank(8, n_steps=4, run=run, **said)
    assert again.state.engine.committed == 8
    assert "configure" not in [event["event"] for event in events_of(run)]
    with pytest.raises(ps.StoreMismatchError) as refused:
        rank(8, n_steps=4, run=run, adaptive_config=said["adaptive_config"], btl_config={"max_rhat": 1.2})
    message_snapshot(refused)
    with pytest.raises(ps.StoreMismatchError) as refused:
        rank(8, n_steps=4, run=run, seed=99, **said)
    message_snapshot(refused)
    audited(run)


def test_the_items_of_a_result_can_be_summarised_again() -> None:
    result = rank(5, n_steps=6)
    assert ps.summarize_items(result).equals(ps.summarize_items(result.state))
    assert ps.summarize_items(ps.adaptive_get_logs(result.state)).height == 5


def events_of(run: Path) -> list[dict[str, Any]]:
    with ps.open_run(run) as store:
        return store.read_log("adaptive_events")
