"""The setting ``ties``: invalid, as in the document, or half a win for each."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.adaptive.selection.information import Laplace
from pairscale.judges.orders import BothOrders
from tests.adaptive.running import answers, audited, better, rank, steps

HALF: dict[str, Any] = {"adaptive_config": {"ties": "half"}}


def close_calls(A: Any, B: Any) -> dict[str, Any]:
    """A judge that calls neighbours a tie, and abstains on one text."""
    if "s03" in (A["ID"], B["ID"]):
        return {"is_valid": False, "invalid_reason": "will not say"}
    apart = A["theta_true"] - B["theta_true"]
    return {"is_valid": True, "Y": 0.5 if abs(apart) < 1.5 else int(apart > 0)}


@pytest.mark.parametrize("selector", ["pollitt", "random", "nearest", "information"])
def test_a_tie_is_an_answer(selector: str, tmp_path: Any) -> None:
    run = tmp_path / "run.db"
    result = rank(8, close_calls, n_steps=30, selector=selector, run=run, **HALF)
    log = result.logs["step_log"]
    assert log["Y"].dtype == pl.Float64
    committed = log.filter(status="ok")
    assert set(committed["Y"]) == {0.0, 0.5, 1.0}
    assert committed["pair_id"].to_list() == list(range(1, committed.height + 1))
    assert set(log.filter(status="invalid")["invalid_reason"]) == {"will not say"}
    history = ps.adaptive_results_history(result.state)
    assert history["result"].to_list() == committed["Y"].to_list()
    tied = {row["custom_id"] for row in answers(run).iter_rows(named=True) if row["outcome"] == "tie"}
    assert tied == {f"step-{step:06d}" for step in committed.filter(Y=0.5)["step_id"]}
    assert result.items["degree"].sum() == 2 * committed.height
    audited(run)


def test_the_first_answers_may_be_ties() -> None:
    turn = itertools.count()

    def undecided_at_first(A: Any, B: Any) -> dict[str, Any]:
        return {"is_valid": True, "Y": 0.5} if next(turn) < 5 else better(A, B)

    result = rank(8, undecided_at_first, n_steps=30, **HALF)
    assert result.logs["step_log"]["Y"].head(5).to_list() == [0.5] * 5
    assert result.summary["n_refits"].item() > 0


def test_a_flip_between_orders_is_a_tie(tmp_path: Any) -> None:
    def first(A: Any, B: Any) -> dict[str, Any]:
        return better(A, B) if abs(A["theta_true"] - B["theta_true"]) > 1.5 else {"is_valid": True, "Y": 1}

    run = tmp_path / "run.db"
    judge = BothOrders(ps.FunctionJudge(first, name="first"))
    log = rank(8, judge, n_steps=30, run=run, **HALF).logs["step_log"]
    assert set(log["status"]) <= {"ok", "starved"}  # no answer was invalid
    assert set(answers(run)["outcome"]) == {"win", "flip"}
    assert log["Y"].to_list().count(0.5) == answers(run)["outcome"].to_list().count("flip")
    audited(run)


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("selector", ["pollitt", "information"])
def test_taken_up_a_run_with_ties_goes_on_as_one_in_a_piece(selector: str, concurrency: int, tmp_path: Any) -> None:
    how: dict[str, Any] = {**HALF, "selector": selector, "concurrency": concurrency}
    whole = rank(8, close_calls, n_steps=40, run=tmp_path / "whole.db", **how)
    for _ in range(4):
        parts = rank(8, close_calls, n_steps=10, run=tmp_path / "parts.db", **how)
    audited(tmp_path / "parts.db")
    audited(tmp_path / "whole.db")
    if concurrency == 1:
        assert steps(parts.state).equals(steps(whole.state))


def test_a_tie_is_half_a_win_for_each_to_the_information_selector() -> None:
    """The belief after ties, solved from scratch, has the mode of half wins; an even tie moves no mean."""
    ties, wins = Laplace(), Laplace()
    for belief in (ties, wins):
        belief.join(4)
    for a, b in ((0, 1), (1, 2), (0, 3)):
        for _ in range(2):
            ties.answer(a, b, 0.5)
        wins.answer(a, b, 1)
        wins.answer(a, b, 0)
    assert np.abs(ties.mean).max() < 1e-12
    ties.answer(2, 3, 1)
    wins.answer(2, 3, 1)
    before = ties.mean.copy()
    for belief in (ties, wins):
        belief.solve()
    assert np.allclose(ties.mean, wins.mean)
    assert np.allclose(ties.covariance, wins.covariance)
    assert ties.mean[2] > 0 > ties.mean[3]
    gap = before[2] - before[3]
    ties.answer(2, 3, 0.5)
    assert 0 < ties.mean[2] - ties.mean[3] < gap
    ties.answer(3, 2, 0.5)
    assert ties.mean[2] > ties.mean[3]


@pytest.mark.parametrize(("wins", "said"), [(0, True), (1, False)])
def test_answers_that_are_all_ties_are_said(wins: int, said: bool, caplog: pytest.LogCaptureFixture) -> None:
    asked = itertools.count()

    def judge(A: Any, B: Any) -> dict[str, Any]:
        return {"is_valid": True, "Y": 1 if next(asked) < wins else 0.5}

    rank(8, judge, n_steps=20, **HALF)
    assert ("answers are ties, so the order of the texts means nothing" in caplog.text) is said
