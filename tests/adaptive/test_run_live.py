"""Adaptive runs: limits, judges of every kind, many questions at once, refits in the background, Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import pairscale as ps
from pairscale.adaptive import live
from pairscale.core.errors import InputError, UnknownNameError
from pairscale.models.bayes.fit import fit_btl_laplace
from pairscale.runtime import Runtime
from tests.adaptive.running import FAST, LATE, SOON, answers, asked, audited, better, rank, samples, simulated, steps

LONG = pytest.mark.validate


# Limits


def closed(result: ps.AdaptiveResult, reason: str | None) -> None:
    """The end of a run: its reason, and scores of all comparisons."""
    assert result.state.stop_reason == reason
    summary = result.summary.row(0, named=True)
    assert (summary["last_stop_reason"], summary["last_stop_decision"]) == (reason, reason is not None)
    stands = "stopped" if reason in {"btl_converged", "candidate_starvation"} else "paused"
    assert str(result.state).endswith(f", {stands}: {reason}" if reason else f", next: {result.state.engine.stage}")
    last = result.logs["round_log"].row(-1, named=True)
    assert last["total_pairs_done"] == summary["committed_pairs"] > 0
    if last["is_closing"] or reason == "btl_converged":
        assert (last["stop_reason"], last["stop_decision"]) == (reason, reason is not None)
    assert result.items.height == summary["n_items"]
    assert result.items["theta_mean"].is_not_null().all()
    assert result.items["rank"].is_sorted()
    assert result.items["theta_mean"].is_sorted(descending=True)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_n_steps_counts_invalid_answers_too(concurrency: int) -> None:
    result = rank(10, simulated(invalid_rate=0.3), n_steps=40, concurrency=concurrency)
    log = result.logs["step_log"]
    assert log.height == 40
    assert (log["status"] == "invalid").sum() > 5
    assert result.summary["steps_attempted"].item() == 40
    closed(result, None)
    assert result.logs["round_log"]["is_closing"][-1]


@pytest.mark.slow_except("7")
@pytest.mark.parametrize("concurrency", [1, 7, 64])
def test_max_comparisons_is_of_the_whole_run(concurrency: int, tmp_path: Any) -> None:
    given = {"run": tmp_path / "run.db", "concurrency": concurrency, "judge": simulated(invalid_rate=0.2)}
    result = rank(10, max_comparisons=23, **given)
    assert result.state.engine.committed == 23
    closed(result, "max_comparisons")
    again = rank(10, max_comparisons=23, **given)
    assert again.logs["step_log"].height == result.logs["step_log"].height
    assert again.refits.height == result.refits.height  # nothing new, no other closing refit
    closed(again, "max_comparisons")
    closed(rank(10, max_comparisons=30, **given), "max_comparisons")
    assert audited(given["run"]).steps == len(answers(given["run"]))


class Priced:
    """A judge that takes money, and keeps the most that was ever owed."""

    condition = ps.Condition("priced")

    def __init__(self, *prices: float) -> None:
        self.prices, self.spent, self.asked = prices, 0.0, 0

    async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
        price = self.prices[self.asked % len(self.prices)]
        self.asked, self.spent = self.asked + 1, self.spent + price
        await asyncio.sleep(0)
        if self.asked % 5 == 0:
            return ps.Verdict.fail("rate_limited", "later", failure="transient", cost=price, retry_after=0)
        return ps.Verdict.win(1 if pair.first["ID"] > pair.second["ID"] else 2, cost=price)


@pytest.mark.slow_except("8")
@pytest.mark.parametrize("concurrency", [1, 8, 64])
def test_max_cost_is_never_passed(concurrency: int, tmp_path: Any) -> None:
    judge, given = Priced(0.1), {"run": tmp_path / "run.db", "concurrency": concurrency}
    result = rank(10, judge, max_cost=2.5, **given)
    assert 2.2 <= judge.spent <= 2.5 + 1e-9
    assert result.state.cost == pytest.approx(judge.spent)  # also what was asked in vain
    closed(result, "max_cost")
    for _ in range(3):  # not a little at every call, either
        rank(10, judge, max_cost=2.5, **given)
    assert judge.spent <= 2.5 + 1e-9
    again = rank(10, judge, max_cost=3.3, **given)
    assert 3.0 <= judge.spent <= 3.3 + 1e-9
    assert again.state.cost == pytest.approx(judge.spent)
    assert audited(given["run"]).steps == again.logs["step_log"].height


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time by the clock of a run, in a list; what waits for it waits no longer than a moment."""
    seconds = [1000.0]

    async def at_once(_runtime: Runtime, _seconds: float) -> bool:
        await asyncio.sleep(0)
        return False

    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    monkeypatch.setattr(live, "Runtime", partial(Runtime, clock=lambda: seconds[0]))
    monkeypatch.setattr(Runtime, "_stopped_within", at_once)
    return seconds


def test_max_minutes_by_the_clock_of_this_call(now: list[float]) -> None:

    def slow(A: Any, B: Any) -> dict[str, Any]:
        now[0] += 6.0
        return better(A, B)

    result = rank(10, slow, max_minutes=2)
    assert result.state.engine.committed == 20
    closed(result, "max_minutes")
    again = ps.adaptive_rank_run_live(result.state, slow, None, max_minutes=1, **FAST)
    assert again.engine.committed == 30
    assert again.stop_reason == "max_minutes"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_steps": -1}, "n_steps"),
        ({"n_steps": 2.5}, "n_steps"),
        ({"max_comparisons": True}, "max_comparisons"),
        ({"max_cost": -0.1}, "max_cost"),
        ({"max_cost": float("nan")}, "max_cost"),
        ({"max_minutes": "2"}, "max_minutes"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 1.5}, "concurrency"),
        ({"retries": -1}, "retries"),
        ({"retry_wait": -1}, "retry_wait"),
        ({"timeout": 0}, "timeout"),
        ({"progress": "loud"}, "progress"),
        ({"progress_redraw_every": 0}, "progress_redraw_every"),
        ({"fit_fn": "best"}, "fit_fn"),
        ({"selector": "magic"}, "magic"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"adaptive_config": {"cap_frac": 7}}, "cap_frac"),
        ({"adaptive_config": {"nonsense": 7}}, "nonsense"),
        ({"adaptive_config": "cap_frac"}, "adaptive_config"),
        ({"btl_config": {"eap_reliability_min": "high"}}, "eap_reliability_min"),
        ({"concurency": 8}, "concurency"),
        ({"judge": "no such judge"}, "no such judge"),
        ({"trait_name": "wit"}, "trait_description"),
        ({"output_file": "outputs.rds"}, "outputs.rds"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_used_is_named_before_anything_is_asked(given: dict[str, Any], words: str) -> None:
    calls: list[int] = []

    def judge(A: Any, B: Any) -> dict[str, Any]:
        calls.append(1)
        return better(A, B)

    with pytest.raises((InputError, UnknownNameError)) as error:
        ps.adaptive_rank(samples(), **{**FAST, "judge": judge, "n_steps": 9, **given})
    assert words in str(error.value)
    assert not calls


# Calls


@pytest.mark.slow_except("pollitt")
@pytest.mark.parametrize("selector", ["pollitt", "random", "nearest", "information"])
def test_fifty_twice_is_a_hundred_once(selector: str) -> None:
    """A closing refit guides no choice."""
    once = rank(9, n_steps=100, selector=selector, judge=simulated(invalid_rate=0.05), btl_config=LATE)
    twice = rank(9, n_steps=47, selector=selector, judge=simulated(invalid_rate=0.05), btl_config=LATE)
    assert twice.refits.height > 1
    ps.adaptive_rank_run_live(twice.state, simulated(invalid_rate=0.05), 53, **FAST)
    assert steps(twice.state).equals(steps(once.state))
    own = [table["is_closing"].to_list() for table in (once.logs["round_log"], twice.state.round_log)]
    assert (sum(own[0]), sum(own[1])) == (1, 2)
    figures = ["total_pairs_done", "reliability_EAP", "rho_theta", "max_rhat", "stop_decision"]
    assert twice.state.round_log.filter(~pl.col("is_closing"))[figures].equals(
        once.logs["round_log"].filter(~pl.col("is_closing"))[figures]
    )
    assert ps.adaptive_results_history(twice.state).equals(ps.adaptive_results_history(once.state))


def test_a_statistical_stop_ends_the_run_and_a_stricter_rule_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    result = rank(12, better, btl_config=SOON)
    closed(result, "btl_converged")
    stopping = result.logs["round_log"].row(-1, named=True)
    assert (stopping["is_closing"], stopping["stop_decision"]) == (False, True)  # no closing refit is needed
    before = result.state.step_log
    with caplog.at_level(logging.WARNING, "pairscale"):
        assert ps.adaptive_rank_run_live(result.state, better, 50, **FAST) is result.state
    assert "this run has stopped: the scores are reliable and stable" in caplog.text
    assert "ask for a higher reliability" in caplog.text
    assert result.state.step_log.equals(before)
    assert result.state.round_log.height == result.refits.height
    state = ps.adaptive_rank_run_live(result.state, better, 50, btl_config=LATE, **FAST)
    assert state.engine.committed == before["pair_id"].max() + 50
    assert state.stop_reason is None
    assert state.round_log["eap_reliability_min"][-1] == 0.999


@pytest.mark.slow_except("8")
@pytest.mark.parametrize("concurrency", [8, 24])
def test_what_comes_in_after_the_stop_cannot_take_it_back(concurrency: int, tmp_path: Any) -> None:
    """With more in flight than a refit takes, several refits would fall due behind the stop."""
    run = tmp_path / "run.db"
    result = rank(12, better, btl_config=SOON, concurrency=concurrency, run=run)
    closed(result, "btl_converged")
    own = result.logs["round_log"].filter(~pl.col("is_closing"))
    assert own["stop_decision"].to_list() == [False] * (own.height - 1) + [True]
    audited(run)
    again = rank(12, better, btl_config=LATE, concurrency=concurrency, run=run, n_steps=10)
    assert again.logs["step_log"].height == result.logs["step_log"].height + 10
    audited(run)


# Judges


def test_a_judge_sees_both_items_with_all_their_columns_and_the_run() -> None:
    seen: list[tuple[Any, ...]] = []

    def judge(A: Any, B: Any, state: Any) -> dict[str, Any]:
        seen.append((A, B, state))
        return better(A, B)

    result = rank(5, judge, n_steps=6)
    first, second, state = seen[0]
    assert set(first) == set(second) == {"ID", "item_id", "text", "theta_true"}
    assert first["ID"] == first["item_id"] == result.logs["step_log"]["A_id"][0]
    assert second["ID"] == second["item_id"] == result.logs["step_log"]["B_id"][0]
    assert first["text"] == f"text {int(first['ID'][1:])} of s"
    assert state is result.state


# Many at once


@pytest.mark.slow_except("pollitt-8")
@pytest.mark.parametrize("concurrency", [8, 64])
@pytest.mark.parametrize("selector", ["pollitt", "information"])
def test_answers_out_of_order(concurrency: int, selector: str, tmp_path: Any) -> None:
    """Nothing is asked twice, the log is in the order of the answers, and it replays."""
    judge = simulated(latency_s=0.002, error_rate=0.1, invalid_rate=0.05)
    run = tmp_path / "run.db"
    result = rank(20, judge, n_steps=120, concurrency=concurrency, run=run, retry_wait=0, selector=selector)
    log = result.logs["step_log"]
    assert log["step_id"].sort().to_list() == list(range(1, 121))
    assert log["step_id"].to_list() != list(range(1, 121))
    assert log["in_flight"].max() == concurrency - 1 or concurrency > 20
    counts = Counter(asked(run))
    assert set(counts.values()) == {1}
    assert sum(attempt > 1 for _, attempt in counts) > 5
    assert audited(run).steps == 120
    loaded = ps.load_adaptive_session(run)
    assert loaded.step_log.equals(result.state.step_log)
    assert loaded.round_log.equals(result.state.round_log)
    rows = log.to_dicts()
    for row in rows:  # a pair is never in flight twice
        answered = {other["step_id"] for other in rows[: row["proposed_after"]]}
        flying = [other for other in rows if other["step_id"] < row["step_id"] and other["step_id"] not in answered]
        assert {row["i"], row["j"]} not in [{other["i"], other["j"]} for other in flying]
        assert row["in_flight"] == len(flying)


def test_a_refit_runs_while_judging_goes_on_and_takes_effect_in_its_turn() -> None:
    """The fit waits for answers that are given after it began: blocking either would never end."""
    lag, n = 4, 6
    answered, fitting, release = 0, threading.Event(), threading.Event()
    while_fitting = []

    def judge(A: Any, B: Any) -> dict[str, Any]:
        nonlocal answered
        answered += 1
        if answered >= n + lag:  # proposed after the refit was due: they wait until it runs
            assert fitting.wait(600), "the fit was never begun"
        if fitting.is_set() and not release.is_set():
            while_fitting.append(answered)
            if len(while_fitting) == 3:
                release.set()
        return better(A, B)

    def fit(*args: Any, **options: Any) -> Any:
        if not fitting.is_set():
            fitting.set()
            assert release.wait(600), "nothing was asked while the fit ran"
        return fit_btl_laplace(*args, **options)

    result = rank(n, judge, n_steps=30, concurrency=lag, fit_fn=fit)
    log = result.logs["step_log"]
    first = result.logs["round_log"].row(0, named=True)
    assert not first["is_closing"]
    # Due at comparison 6; those proposed from comparison 6 + lag on know of it, and none before.
    due, effective = first["total_pairs_done"], first["total_pairs_done"] + lag
    assert due >= n
    knew = log.filter(pl.col("belief_refit_id") >= 1)["proposed_after"].min()
    assert knew == effective
    assert log.filter(pl.col("proposed_after") < effective)["belief_refit_id"].is_null().all()


def test_a_fit_that_fails_ends_the_run_and_loses_nothing(tmp_path: Any) -> None:
    def fit(*args: Any, **options: Any) -> Any:
        raise ZeroDivisionError("no luck")

    run = tmp_path / "run.db"
    with pytest.raises(ZeroDivisionError):
        rank(6, run=run, n_steps=30, fit_fn=fit)
    assert len(answers(run)) == 6
    result = rank(6, run=run, n_steps=24)
    closed(result, None)
    assert steps(result.state).equals(steps(rank(6, n_steps=30).state))
    audited(run)


# Small and larger runs


@pytest.mark.slow_except("5")
@pytest.mark.parametrize("n", [2, 3, 5, 10, pytest.param(30, marks=LONG), pytest.param(50, marks=LONG)])
def test_a_consistent_judge_takes_runs_of_every_size_to_their_stop(n: int, tmp_path: Any) -> None:
    result = rank(n, better, run=tmp_path / "run.db", max_comparisons=60 * n)
    assert result.state.stop_reason in {"btl_converged", "candidate_starvation"}
    closed(result, result.state.stop_reason)
    # Thirty texts have about 800 questions in all, and the stop rule needs as many: some runs end just before it.
    assert n < 50 or result.state.stop_reason == "btl_converged"
    if n > 3:
        assert result.items["ID"].head(2).to_list() == [f"s{n - 1:02d}", f"s{n - 2:02d}"]
    audited(tmp_path / "run.db")
