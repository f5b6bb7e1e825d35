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
from pairscale.adaptive.live import AdaptiveSource
from pairscale.core.errors import InputError, UnknownNameError
from pairscale.models.bayes.fit import fit_btl_laplace
from pairscale.models.bayes.logs import ITEM_LOG
from pairscale.runtime import Runtime
from pairscale.testing import Behaviour, ProviderSimulator
from tests.adaptive.running import FAST, LATE, SOON, answers, asked, audited, better, rank, samples, simulated, steps

LONG = pytest.mark.validate


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


# Limits


@pytest.mark.parametrize("concurrency", [1, 8])
def test_n_steps_counts_invalid_answers_too(concurrency: int) -> None:
    result = rank(10, simulated(invalid_rate=0.3), n_steps=40, concurrency=concurrency)
    log = result.logs["step_log"]
    assert log.height == 40
    assert (log["status"] == "invalid").sum() > 5
    assert result.summary["steps_attempted"].item() == 40
    closed(result, None)
    assert result.logs["round_log"]["is_closing"][-1]


@pytest.mark.parametrize("selector", ["pollitt", "random", "information"])
def test_no_closing_refit_with_fewer_comparisons_than_the_model_needs(selector, caplog) -> None:
    """With the sampler: two comparisons of four texts kept it busy for ever."""
    few = ps.adaptive_rank(samples(4), judge=better, n_steps=2, selector=selector, progress="none")
    assert (few.refits.height, few.items.height, few.summary["reliability"].item()) == (0, 0, None)
    assert few.state.engine.committed == 2
    assert "there are no scores yet: they need 3 comparisons, and there are 2" in caplog.text
    caplog.clear()
    two = ps.rank(samples(2), judge=better, steps=1, selector=selector, fit="laplace", progress="none")
    assert (two.refits.height, two.items.height) == (1, 2)
    for n, n_steps in ((4, 3), (3, 2), (20, 3)):  # three, or all that it takes to tie them together
        enough = rank(n, better, n_steps=n_steps, selector=selector)
        assert (enough.refits.height, enough.items.height) == (1, n)
    assert "no scores yet" not in caplog.text


def test_a_run_that_paused_before_its_scores_gets_them_when_it_goes_on(tmp_path) -> None:
    run = tmp_path / "run.db"
    assert rank(6, better, n_steps=2, run=run).items.height == 0
    assert rank(6, better, n_steps=0, run=run).items.height == 0
    more = rank(6, better, n_steps=2, run=run)
    assert (more.items.height, more.refits["is_closing"].to_list()) == (6, [True])
    audited(run)
    assert rank(6, better, n_steps=0, run=run).refits.height == 1  # nothing is new


def test_no_steps_at_all() -> None:
    result = rank(10, n_steps=0)
    assert result.items.is_empty()
    assert result.summary.row(0)[:6] == (10, 0, 0, 0, False, None)


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


def test_a_price_that_is_not_known_yet_is_asked_for_with_one_question() -> None:
    judge = Priced(1.0)
    result = rank(10, judge, max_cost=1.5, concurrency=64)
    assert judge.asked == 1
    assert (result.state.ended, result.refits.height) == ("max_cost", 0)  # one comparison is too few for a fit
    assert rank(10, Priced(1.0), max_cost=0).logs["step_log"].is_empty()


class Foretelling(Priced):
    """One that says beforehand what the longest texts may cost."""

    def max_cost_of(self, pair: ps.JudgePair) -> float:
        return 1e-4 * (len(pair.first["text"]) + len(pair.second["text"]))


@pytest.mark.slow
def test_a_price_that_is_said_beforehand_is_not_found_out_by_paying_it() -> None:
    texts = [{"ID": f"t{n}", "text": "long " * (10 if n < 8 else 200)} for n in range(10)]  # at most 0.2 a question
    for limit, questions in ((0.19, 0), (0.21, 1)):
        judge = Foretelling(0.2)
        result = ps.adaptive_rank(
            texts, judge=judge, max_cost=limit, concurrency=8, seed=1, progress="none", n_steps=None
        )
        assert (judge.asked, result.state.ended) == (questions, "max_cost")
    cheap = Foretelling(0.001)  # what is open may cost 0.2 each, and costs less: it continues until 0.2 is not left
    ps.adaptive_rank(
        texts, judge=cheap, max_cost=0.3, concurrency=8, seed=1, progress="none", max_comparisons=150, n_steps=None
    )
    assert cheap.spent == pytest.approx(0.1005, abs=0.0006)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time by the clock of a run, in a list; what waits for it waits no longer than a moment."""
    seconds = [1000.0]

    async def at_once(_runtime: Runtime, _seconds: float) -> bool:
        await asyncio.sleep(0)
        return False

    for name, made in (("AdaptiveSource", AdaptiveSource), ("Runtime", Runtime)):
        monkeypatch.setattr(live, name, partial(made, clock=lambda: seconds[0]))
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


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(("wait", "attempts"), [(0.0, 3), (3600.0, 1)])
def test_when_the_time_is_up_nothing_is_asked_again(
    wait: float, attempts: int, concurrency: int, now: list[float], tmp_path: Any
) -> None:
    """Nor is anything that would have to wait for longer than there is time; the next call asks the same question."""
    given = {"run": tmp_path / "run.db", "concurrency": concurrency, "retries": 50, "retry_wait": wait}

    def failing(A: Any, B: Any) -> dict[str, Any]:
        now[0] += 20.0
        raise ConnectionError("gone")

    result = rank(10, ps.FunctionJudge(failing, name="mine"), max_minutes=1, **given)
    assert result.state.ended == "max_minutes"
    assert result.logs["step_log"].is_empty()
    tried = Counter(uid for uid, _ in asked(given["run"]))
    assert tried["step-000001"] == attempts if concurrency == 1 else len(tried) <= 4
    assert attempts <= tried.total() <= attempts + 2 * concurrency
    again = rank(10, ps.FunctionJudge(better, name="mine"), n_steps=12, **given)
    assert sorted(again.logs["step_log"]["step_id"]) == list(range(1, 13))
    audited(given["run"])


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


@pytest.mark.slow
def test_one_step_at_a_time_is_the_same_run() -> None:
    once = rank(5, n_steps=14)
    state = ps.adaptive_rank_start(samples(5))
    for _ in range(14):
        assert ps.adaptive_rank_run_live(state, simulated(), fit_fn="laplace", progress="none") is state
    assert steps(state).equals(steps(once.state))


def test_a_statistical_stop_ends_the_run_and_a_stricter_rule_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    result = rank(12, better, btl_config=SOON)
    closed(result, "btl_converged")
    stopping = result.logs["round_log"].row(-1, named=True)
    assert (stopping["is_closing"], stopping["stop_decision"]) == (False, True)  # no closing refit is needed
    before = result.state.step_log
    with caplog.at_level(logging.WARNING, "pairscale"):
        assert ps.adaptive_rank_run_live(result.state, better, 50, **FAST) is result.state
    assert "this run has stopped (btl_converged)" in caplog.text
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


def test_starvation_is_an_end_with_scores_and_more_answers_go_on(caplog: pytest.LogCaptureFixture) -> None:
    result = rank(3, better, btl_config={"eap_reliability_min": 1.0})
    closed(result, "candidate_starvation")
    with caplog.at_level(logging.WARNING, "pairscale"):
        ps.adaptive_rank_run_live(result.state, better, None, **FAST)
    assert "this run has stopped (candidate_starvation)" in caplog.text
    more = {"dup_max_obs": 6, "dup_max_obs_relaxed": 8, "dup_p_margin": 0.5}
    state = ps.adaptive_rank_run_live(result.state, better, None, adaptive_config=more, **FAST)
    assert state.engine.committed > result.summary["committed_pairs"].item()


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


@pytest.mark.slow
def test_judges_of_every_kind_give_the_same_run() -> None:
    class Called:
        def __call__(self, A: Any, B: Any, state: Any = None) -> dict[str, Any]:
            assert isinstance(state, ps.AdaptiveState)
            return better(A, B)

    class Object:
        condition = ps.Condition("object")

        async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
            assert isinstance(pair.state, ps.AdaptiveState)
            return ps.Verdict.win(1 if better(pair.first, pair.second)["Y"] else 2)

    async def later(A: Any, B: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return better(A, B)

    def verdict(A: Any, B: Any) -> ps.Verdict:
        return ps.Verdict.win(1 if A["theta_true"] > B["theta_true"] else 2)

    def awaited(A: Any, B: Any) -> Any:
        return later(A, B)

    kinds = [better, later, verdict, awaited, Called(), Object(), ps.FunctionJudge(better, name="mine")]
    kinds += ["tests.adaptive.running:better"]
    runs = [steps(rank(6, judge, n_steps=15).state) for judge in kinds]
    assert all(run.equals(runs[0]) for run in runs)
    assert rank(6, "lexical", n_steps=5).logs["step_log"].height == 5


def test_arguments_of_a_call_reach_the_judge() -> None:
    seen: list[Any] = []

    def judge(A: Any, B: Any, weight: float = 1.0, trait_name: str = "") -> dict[str, Any]:
        seen.append((weight, trait_name))
        return better(A, B)

    rank(5, judge, n_steps=1, judge_call_args={"weight": 3.0}, trait="organization")
    assert seen == [(3.0, ps.trait_description("organization").name)]
    state = ps.adaptive_rank_start(samples(5))
    ps.adaptive_rank_run_live(state, judge, 1, weight=2.0, **FAST)
    assert seen[1] == (2.0, "")
    with pytest.raises(InputError, match="has its settings"):
        rank(5, simulated(), n_steps=1, judge_args={"bias": 3})
    with pytest.raises(InputError, match="name a judge"):
        ps.adaptive_rank(samples(5), **FAST, n_steps=None)


def test_the_ranking_has_ranks_behind_the_columns_of_the_item_log() -> None:
    items = rank(6, better, n_steps=20).items
    assert items.columns == [*ITEM_LOG, "deg", "posA_prop"]
    assert items["rank"].to_list() == [1, 2, 3, 4, 5, 6]
    assert rank(6, better, n_steps=0).items.columns == items.columns


@pytest.mark.parametrize("given", [{"backend": "openai", "model": "gpt-4.1"}, {"judge": "openai:gpt-4.1"}])
def test_endpoint_and_key_are_those_of_the_model(given: dict[str, Any], tmp_path: Any) -> None:
    """As in the manual: they reach the model that judges; the key is kept nowhere."""
    run, key = tmp_path / "run.db", "sk-planted-0123456789"
    with ProviderSimulator(Behaviour()) as server:
        ps.adaptive_rank(
            samples(4), endpoint="responses", api_key=key, include_raw=True, run=run, n_steps=3,
            judge_args={"base_url": f"{server.url}/v1", "endpoint": "chat.completions"}, **given, **FAST,
        )  # fmt: skip
        paths = {request.path for request in server.journal}
    assert paths == {"/v1/responses"}
    assert key.encode() not in run.read_bytes()
    with ps.open_run(run) as store:
        assert store.results(raw=True)["raw_response"].is_not_null().all()


def test_endpoint_and_key_are_ignored_by_other_judges() -> None:
    for judge in ("lexical", better, simulated()):
        assert rank(4, judge, n_steps=2, endpoint="responses", api_key="sk-none-needed-0").state.engine.rows == 2


@pytest.mark.slow
def test_a_judge_may_read_the_log_of_the_run_from_its_thread() -> None:
    def judge(A: Any, B: Any, state: Any) -> dict[str, Any]:
        log = state.step_log
        done = log["pair_id"].drop_nulls().to_list()
        assert done == list(range(1, len(done) + 1))
        return better(A, B)

    log = rank(10, judge, n_steps=80, concurrency=8).logs["step_log"]
    assert log.height == 80
    assert log["pair_id"].drop_nulls().to_list() == list(range(1, 1 + (log["status"] == "ok").sum()))
    assert log["status"].is_in(["ok", "starved"]).all()


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


def test_in_sequence_a_refit_is_waited_for() -> None:
    log = rank(6, n_steps=30).logs["step_log"]
    assert log.filter(pl.col("belief_refit_id").is_not_null())["proposed_after"].min() == 6
    assert log.filter(pl.col("proposed_after") >= 6)["belief_refit_id"].is_not_null().all()


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


# What is shown


@pytest.mark.parametrize("mode", ["all", "refits", "steps", "line", "none"])
def test_progress_goes_to_standard_error(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    rank(10, simulated(invalid_rate=0.2), n_steps=60, progress=mode, progress_redraw_every=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("refit 1: " in err) == (mode != "none")
    assert ("no valid answer" in err) == (mode != "none")


def test_events_and_errors_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = {"progress_errors": False, "progress_show_events": False}
    rank(4, simulated(invalid_rate=0.4), n_steps=40, progress="steps", **quiet)
    err = capsys.readouterr().err
    assert "no valid answer" not in err


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


def test_what_was_answered_when_ctrl_c_came_is_taken_in(tmp_path: Any) -> None:
    """Answers that have come in are paid for, even if nobody has looked at them yet."""
    run, turns = tmp_path / "run.db", iter(range(1, 1000))

    async def judge(A: Any, B: Any) -> dict[str, Any]:
        if next(turns) == 20:
            raise KeyboardInterrupt
        return better(A, B)

    with pytest.raises(KeyboardInterrupt):
        rank(9, ps.FunctionJudge(judge, name="mine"), run=run, concurrency=6)
    log = ps.load_adaptive_session(run).step_log
    assert log.height == next(turns) - 2  # all but the one that was the interruption
    assert audited(run).steps == log.height


@pytest.mark.parametrize("is_over", [False, True])
def test_a_second_ctrl_c_leaves_a_run_that_is_storing_its_answers(is_over: bool) -> None:
    """Else two threads would continue one run."""
    closed, began, go = [], threading.Event(), threading.Event()

    class Slow:
        """A source and a runtime in one."""

        stopped, is_running = None, False

        async def run(self) -> None:
            self.is_running = True
            began.set()
            await asyncio.to_thread(go.wait)
            self.is_running = False

        async def close(self) -> None:
            closed.append(self.is_running)

        async def finish(self) -> None:
            pass

        def start(self) -> None:
            pass

        def end(self, reason: str | None) -> None:
            pass

        def reason(self, stopped: str | None) -> str | None:
            pass

        def flush(self) -> None:
            pass

    def twice(make: Any) -> None:
        thread = threading.Thread(target=lambda: asyncio.run(make()))
        thread.start()
        if make == slow.close:
            return thread.join()
        began.wait()
        if is_over:
            go.set()
            thread.join()
        raise KeyboardInterrupt

    slow: Any = Slow()
    view: Any = SimpleNamespace(note=lambda said: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "run_sync", twice)
        with pytest.raises(KeyboardInterrupt):
            live._run(slow, slow, slow, slow, view, closing=True)
    go.set()
    assert closed == ([False] if is_over else [])
