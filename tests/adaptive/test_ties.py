"""The setting ``ties``: invalid, as in the document, or half a win for each."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.selection.information import Laplace
from pairscale.adaptive.selection.ledger import TIE, Ledger
from pairscale.core.errors import InputError
from pairscale.judges.orders import BothOrders
from pairscale.models import trueskill
from pairscale.models.bayes.fit import fit_btl_laplace
from tests.adaptive.driving import ask, names
from tests.adaptive.running import FAST, answers, audited, better, rank, samples, steps

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


def test_ties_are_invalid_by_default(message_snapshot) -> None:
    log = rank(8, close_calls, n_steps=12).logs["step_log"]
    assert log["Y"].dtype == pl.Int64
    assert "the judge said tie" in log["invalid_reason"].to_list()
    engine = Engine(names(4))
    with pytest.raises(InputError) as refused:
        engine.record(ask(engine).step_id, 0.5)
    message_snapshot(refused)


def test_similar_texts_run_on(tmp_path: Any) -> None:
    """A judge that finds no difference used to pause the run after twenty answers."""
    texts = [{"ID": f"t{number}", "text": "The same words in every text of this folder."} for number in range(12)]
    how: dict[str, Any] = {"judge": "lexical", "n_steps": 60, **FAST}
    paused = ps.adaptive_rank(texts, **how)
    assert paused.state.stop_reason == "judge_failing"
    result = ps.adaptive_rank(texts, **how, **HALF, run=tmp_path / "run.db")
    assert result.state.stop_reason != "judge_failing"
    assert result.state.engine.committed == 60
    assert result.items["theta_mean"].abs().max() < 0.5
    audited(tmp_path / "run.db")


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


def test_another_answer_in_the_file_is_found(tmp_path: Any) -> None:
    from tests.adaptive.running import Tamper, audit

    run = tmp_path / "run.db"
    rank(6, close_calls, n_steps=10, run=run, **HALF)
    with Tamper(run) as log:
        row = next(row for row in log.logs["step_log"] if row.get("Y") == 0.5)
        row["Y"] = 1
    report = audit(run)
    assert not report.passed


def test_a_tie_moves_trueskill_halfway_between_a_win_and_a_loss() -> None:
    ledger = Ledger(2, 10, np.array([30.0, 24.0]), np.array([7.0, 4.0]))
    ledger.open(0, 1)
    ledger.commit(0, 1, 0.5)
    won, lost = trueskill.update(30, 7, 24, 4), trueskill.update(24, 4, 30, 7)
    assert ledger.mu.tolist() == [(won.mu_winner + lost.mu_loser) / 2, (won.mu_loser + lost.mu_winner) / 2]
    assert ledger.sigma[0] == (won.sigma_winner + lost.sigma_loser) / 2
    assert ledger.history.tolist() == [[0, 1, TIE]]
    assert 24 < ledger.mu[1] < ledger.mu[0] < 30
    assert (ledger.sigma < [7.0, 4.0]).all()


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
    assert np.allclose(ties.covariance.whole(), wins.covariance.whole())
    assert ties.mean[2] > 0 > ties.mean[3]
    gap = before[2] - before[3]
    ties.answer(2, 3, 0.5)
    assert 0 < ties.mean[2] - ties.mean[3] < gap
    ties.answer(3, 2, 0.5)
    assert ties.mean[2] > ties.mean[3]


def test_refits_get_a_tie_without_a_winner() -> None:
    seen: list[pl.DataFrame] = []

    def fit(rows: pl.DataFrame, ids: Any, **how: Any) -> Any:
        seen.append(rows)
        return fit_btl_laplace(rows, ids, **how)

    result = rank(8, close_calls, n_steps=20, fit_fn=fit, **HALF)
    history = ps.adaptive_results_history(result.state)
    assert seen[-1]["better_id"].null_count() == (history["result"] == 0.5).sum() > 0
    assert seen[-1]["ID1"].to_list() == history["object1"].to_list()


def test_a_report_counts_ties_as_comparisons(tmp_path: Any) -> None:
    run = tmp_path / "run.db"
    result = rank(samples(8), close_calls, n_steps=30, run=run, **HALF)
    from pairscale.reporting.verbs import report_of_result, report_of_run

    with ps.open_run(run) as store:
        content = report_of_run(store).content
    alone = report_of_result(result).content
    assert content["comparisons"] == result.state.engine.committed == alone["comparisons"]
    assert content["outcomes"]["tie"] == alone["outcomes"]["tie"] > 0


@pytest.mark.parametrize(("wins", "said"), [(0, True), (1, False)])
def test_answers_that_are_all_ties_are_said(wins: int, said: bool, caplog: pytest.LogCaptureFixture) -> None:
    asked = itertools.count()

    def judge(A: Any, B: Any) -> dict[str, Any]:
        return {"is_valid": True, "Y": 1 if next(asked) < wins else 0.5}

    rank(8, judge, n_steps=20, **HALF)
    assert ("answers are ties, so the order of the texts means nothing" in caplog.text) is said
