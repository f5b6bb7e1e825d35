"""Runs that are taken up in other circumstances: with fewer questions open, or with other settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.models.bayes.fit import fit_btl_laplace
from tests.adaptive.running import audited, better, events_of, rank, simulated


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
