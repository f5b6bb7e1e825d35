"""Pairs that are asked again: reversed ones, discounted repeats, and judges that go by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pairscale as ps
from pairscale.adaptive.engine import Engine, Proposal
from pairscale.adaptive.selection.ledger import RepeatCounts
from pairscale.adaptive.selectors import Situation
from pairscale.adaptive.status import adaptive_status
from pairscale.core.errors import InputError, StoreMismatchError
from pairscale.judges.orders import BothOrders
from tests.adaptive.driving import Answer, Run, drive, judge, mu_belief, names
from tests.adaptive.running import LATE, audited, better, rank, samples, steps

SELECTORS = ["pollitt", "random", "nearest", "information"]
LEARNED: dict[str, Any] = {**LATE, "repeats": "learned"}
OURS: dict[str, Any] = {"ties": "half", "reverse_rate": 0.1, "discount_repeats": True, "flip_share_max": 0.5}


def run_of(n: int, *, selector: Any = "pollitt", steps: int = 300, agreement: float = 0.0, **more: Any) -> Run:
    """A run of the engine alone, with a judge without memory; refits say that repeats agree so far."""
    concurrency = more.pop("concurrency", 1)
    answer: Answer = more.pop("answer", None) or judge(3)
    engine = Engine(names(n), seed=4, selector=selector, adaptive_config=more, btl_config={"repeats": "learned"})
    fit = lambda engine: (mu_belief(engine, agreement=agreement), None)  # noqa: E731
    return drive(engine, answer, steps=steps, concurrency=concurrency, fit=fit)


def repeats_in(run: Run) -> int:
    """Comparisons of pairs that were asked before, but for reversed ones."""
    counts: dict[frozenset[int], int] = {}
    found = 0
    for row in run.rows:
        if row["status"] == "committed":
            pair = frozenset((row["A"], row["B"]))
            found += pair in counts and row["round_stage"] != "reverse"
            counts[pair] = counts.get(pair, 0) + 1
    return found


def first_of_two(now: Situation) -> tuple[int, int]:
    first, second = now.pairs
    return int(first[0]), int(second[0])


@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize("selector", [*SELECTORS, first_of_two])
def test_one_comparison_in_ten_is_reversed(selector: Any, concurrency: int) -> None:
    run = run_of(30, selector=selector, steps=200, concurrency=concurrency, reverse_rate=0.1)
    done = [row for row in run.rows if row["status"] == "committed"]
    rows = [row for row in done if row["round_stage"] == "reverse"]
    assert len(rows) == len(done) // 10
    for at, row in enumerate(done):
        if row["round_stage"] == "reverse":
            assert row["pair_type"] == "reverse"
            assert row["stage_quota"] is None
            before = [(o["A"], o["B"]) for o in done[:at] if {o["A"], o["B"]} == {row["A"], row["B"]}]
            assert before == [(row["B"], row["A"])]
    assert run.engine.ledger.repeats.n_reversed >= len(rows)


def test_reversed_pairs_are_in_no_quota() -> None:
    run = run_of(40, steps=250, reverse_rate=0.2)
    planned = run.engine.config.round_pairs_effective(40)
    rounds = [row["round_id"] for row in run.rows if row["round_stage"] not in ("reverse", "warm_start")]
    assert {rounds.count(number) for number in range(1, max(rounds))} == {planned}


def test_without_a_candidate_the_run_goes_on() -> None:
    """All of three pairs were asked twice: nothing can be reversed, and nothing waits for it."""
    run = run_of(3, steps=40, reverse_rate=1.0, dup_max_obs=8, dup_max_obs_relaxed=8, dup_p_margin=0.5, q=0.0)
    stages = [row["round_stage"] for row in run.rows if row["status"] == "committed"]
    assert stages.count("reverse") == 3
    assert len(stages) > 10


@pytest.mark.parametrize("selector", [*SELECTORS, first_of_two])
def test_a_repeat_that_tells_nothing_is_not_asked(selector: Any) -> None:
    """Of 10 texts all 45 pairs are asked, 30 of them once more to be sure, and that is the end."""
    run = run_of(10, selector=selector, agreement=1.0, discount_repeats=True, reverse_rate=0.1)
    assert run.engine.stop_reason == "pairs_exhausted"
    ledger = run.engine.ledger
    assert ledger.n_unique_pairs == 45
    assert ledger.repeats.n_repeats == 30
    assert repeats_in(run) <= 10  # chosen before the first refit


@pytest.mark.slow_except("*-10")
@pytest.mark.parametrize("n", [10, 25, 40, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("selector", ["pollitt", "information"])
def test_rounds_make_progress_until_every_pair_was_asked(selector: str, n: int) -> None:
    pairs = n * (n - 1) // 2
    run = run_of(n, selector=selector, steps=20 * pairs, agreement=1.0, discount_repeats=True, reverse_rate=0.1)
    assert run.engine.stop_reason == "pairs_exhausted"
    assert run.engine.ledger.n_unique_pairs == pairs
    starved = sum(row["status"] == "starved" for row in run.rows)
    assert starved < 4 * pairs
    most = max(pairs * 10 // 9, pairs + 30) + run.engine.btl.refit_pairs_target
    assert run.engine.committed <= most


@pytest.mark.parametrize("selector", ["pollitt", "random", "information"])
def test_pairs_that_were_asked_are_worth_less(selector: str) -> None:
    found = [
        repeats_in(run_of(20, selector=selector, steps=170, agreement=agreement, discount_repeats=True))
        for agreement in (0.0, 0.8)
    ]
    assert found[1] < 0.7 * found[0]


def test_a_low_agreement_takes_the_discount_back() -> None:
    engine = run_of(12, steps=30, agreement=1.0, discount_repeats=True).engine
    assert engine.ledger.repeats_are_worthless
    engine.configure({"discount_repeats": False}, {})
    assert engine.ledger.discount == 0
    engine.configure({"discount_repeats": True}, {"repeats": "learned"})
    assert engine.ledger.discount == 1.0


def test_what_is_discounted_must_be_known() -> None:
    with pytest.raises(InputError, match="repeats='learned'"):
        Engine(names(4), adaptive_config={"discount_repeats": True})


# Whole runs


def steady(A: Any, B: Any) -> dict[str, Any]:
    """Always the same answer, in either order, and often a wrong one."""
    low, high = sorted((A["ID"], B["ID"]))
    luck = np.random.default_rng([ord(letter) for letter in low + high]).random()
    won = luck < 1 / (1 + np.exp(-0.5 * (int(low[1:]) - int(high[1:]))))
    return {"is_valid": True, "Y": int(won == (A["ID"] == low))}


def first(A: Any, B: Any) -> dict[str, Any]:
    """Always the text that stands first."""
    return {"is_valid": True, "Y": 1}


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_judge_that_repeats_itself_is_asked_every_pair_once(
    concurrency: int, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run.db"
    how: dict[str, Any] = {"adaptive_config": OURS, "btl_config": LEARNED, "concurrency": concurrency, "run": run}
    result = rank(12, steady, **how)
    assert result.state.stop_reason == "pairs_exhausted"
    repeats = result.state.engine.ledger.repeats
    assert result.state.engine.ledger.n_unique_pairs == 66
    assert repeats.n_flips == 0
    assert repeats.n_repeats >= 30
    last = result.refits.row(-1, named=True)
    assert last["repeat_agreement"] >= 0.90
    assert result.summary["last_stop_reason"].to_list() == ["pairs_exhausted"]
    assert last["total_pairs_done"] == result.state.engine.committed
    assert last["n_repeats_agreeing"] == last["n_reversed"] + last["n_repeated_same_order"] == repeats.n_repeats
    said = caplog.text
    assert "every pair was asked once, and this judge repeats itself: more comparisons would tell nothing new" in said
    assert "short of the target" in said
    audited(run)
    again = rank(12, steady, **how)
    assert again.state.engine.committed == result.state.engine.committed
    assert again.state.stop_reason == "pairs_exhausted"
    more = {**how, "adaptive_config": {**OURS, "discount_repeats": False}}
    assert rank(12, steady, **more, n_steps=9).state.engine.committed > result.state.engine.committed
    audited(run)


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_judge_that_goes_by_position_is_paused(
    concurrency: int, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run.db"
    how: dict[str, Any] = {"btl_config": LEARNED, "concurrency": concurrency, "run": run}
    result = rank(40, first, adaptive_config=OURS, **how)
    assert result.state.stop_reason == "judge_flips"
    assert result.state.engine.committed <= 310
    repeats = result.state.engine.ledger.repeats
    assert repeats.n_flips == repeats.n_reversed >= 30
    assert f"{repeats.n_flips} of {repeats.n_reversed} reversed pairs got the opposite answer" in caplog.text
    assert "this judge goes by position" in caplog.text
    assert "check-judge" in caplog.text
    assert result.refits["n_flips"].to_list()[-1] == repeats.n_flips
    assert result.refits["first_win_rate"].to_list()[-1] == 1.0
    audited(run)
    again = rank(40, first, adaptive_config=OURS, **how)
    assert again.state.engine.committed == result.state.engine.committed
    assert again.state.stop_reason == "judge_flips"
    with pytest.raises(StoreMismatchError, match="reverse_rate"):
        rank(40, first, adaptive_config={**OURS, "flip_share_max": 1.0, "reverse_rate": 0.2}, **how)
    more = rank(40, first, adaptive_config={**OURS, "flip_share_max": 1.0}, n_steps=12, **how)
    assert more.state.engine.committed == result.state.engine.committed + 12
    audited(run)


def test_flips_pause_nothing_by_default() -> None:
    result = rank(20, first, n_steps=150, btl_config=LATE, adaptive_config={"reverse_rate": 0.5})
    assert result.state.stop_reason is None
    assert result.state.engine.ledger.repeats.n_flips > 30


def test_a_judge_asked_in_both_orders_is_paused_by_its_own_flips(tmp_path: Any) -> None:
    """Each question shows both orders at once, so that no pair has to be asked again."""
    run = tmp_path / "run.db"
    how: dict[str, Any] = {"adaptive_config": {"ties": "half", "flip_share_max": 0.5}, "btl_config": LATE, "run": run}
    result = rank(40, BothOrders(ps.FunctionJudge(first, name="first")), **how)
    assert result.state.stop_reason == "judge_flips"
    assert result.state.engine.committed == 30
    assert result.logs["step_log"]["orders_agree"].to_list() == [False] * 30
    audited(run)
    assert ps.load_adaptive_session(run).engine.ledger.repeats.n_flips == 30
    fair = rank(40, BothOrders(ps.FunctionJudge(better, name="fair")), **{**how, "run": None}, n_steps=60)
    assert fair.state.stop_reason is None
    assert fair.state.engine.ledger.repeats.n_reversed >= 60


@pytest.mark.slow_except("pollitt")
@pytest.mark.parametrize("selector", SELECTORS)
def test_taken_up_it_is_the_same_run(selector: str, tmp_path: Any) -> None:
    how: dict[str, Any] = {"adaptive_config": OURS, "btl_config": LEARNED, "selector": selector}
    whole = rank(9, steady, n_steps=70, run=tmp_path / "whole.db", **how)
    for _ in range(7):
        parts = rank(9, steady, n_steps=10, run=tmp_path / "parts.db", **how)
    assert steps(parts.state).equals(steps(whole.state))
    audited(tmp_path / "parts.db")
    audited(tmp_path / "whole.db")


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 5])
def test_late_and_withdrawn_texts(concurrency: int, tmp_path: Any) -> None:
    run = tmp_path / "run.db"
    how: dict[str, Any] = {"adaptive_config": OURS, "btl_config": LEARNED, "concurrency": concurrency, "run": run}
    rank(8, steady, n_steps=25, **how)
    rank(11, steady, n_steps=25, without="s02", **how)
    result = rank(11, steady, **how)
    assert result.state.stop_reason == "pairs_exhausted"
    assert result.state.engine.ledger.n_unique_pairs >= 45
    audited(run)


def test_a_changed_count_is_found(tmp_path: Any) -> None:
    from tests.adaptive.running import Tamper, audit

    run = tmp_path / "run.db"
    rank(8, steady, n_steps=40, adaptive_config=OURS, btl_config=LEARNED, run=run)
    with Tamper(run) as log:
        log.logs["round_log"][-1]["n_flips"] += 1
    report = audit(run)
    assert "n_flips" in str(report.problem)


def test_an_end_that_was_not_so_is_found(tmp_path: Any) -> None:
    from tests.adaptive.running import Tamper, audit

    run = tmp_path / "run.db"
    rank(8, steady, n_steps=40, adaptive_config=OURS, btl_config=LEARNED, run=run)
    for reason in ("judge_flips", "pairs_exhausted"):
        with Tamper(run) as log:
            end = next(event for event in reversed(log.logs["adaptive_events"]) if event["event"] == "end")
            end["reason"] = reason
        assert reason in str(audit(run).problem)


def test_ties_neither_agree_with_a_win_nor_contradict_it() -> None:
    counts = RepeatCounts()
    for times, (a, b, y) in enumerate([(0, 1, 1), (1, 0, 0.5), (0, 1, 0.5), (1, 0, 1), (0, 1, 1)]):
        counts.committed(a, b, y, times=times, orders_agree=None)
    # Reversed: 1 then a tie; tie, tie; tie then a win; a win of 1, then one of 0. In the same order: three times.
    assert (counts.n_reversed, counts.n_flips, counts.n_same_order, counts.n_agreeing) == (4, 1, 3, 1)
    assert counts.points_of_first == 4


def test_the_limit_of_flips_holds_over_all_looks() -> None:
    assert not RepeatCounts(n_reversed=29, n_flips=29).flips_more_than(0.5)
    assert RepeatCounts(n_reversed=30, n_flips=23).flips_more_than(0.5)
    assert not RepeatCounts(n_reversed=30, n_flips=22).flips_more_than(0.5)
    assert not RepeatCounts(n_reversed=100, n_flips=64).flips_more_than(0.5)
    assert RepeatCounts(n_reversed=100, n_flips=65).flips_more_than(0.5)
    assert not RepeatCounts(n_reversed=10**6, n_flips=10**6).flips_more_than(1.0)


def test_status_page_and_report_say_how_the_judge_answers(tmp_path: Any) -> None:
    from pairscale.people.watch import look_at
    from pairscale.reporting.verbs import report_of_run

    run = tmp_path / "run.db"
    result = rank(
        samples(12), first, n_steps=60, adaptive_config={**OURS, "reverse_rate": 0.3}, btl_config=LEARNED, run=run
    )
    repeats = result.state.engine.ledger.repeats
    with ps.open_run(run) as store:
        status = adaptive_status(store)
        tiles = {label.partition(" (")[0]: figure for figure, label in look_at(store).tiles}
        last = report_of_run(store).content["last"]
    assert status is not None
    assert (status["judge"]["n_reversed"], status["judge"]["first_win_rate"]) == (repeats.n_reversed, 1.0)
    both = f"{repeats.n_flips} of {repeats.n_reversed}"
    assert tiles["reversed pairs with the opposite answer"] == both
    assert tiles["won by the text shown first"] == "100%"
    assert f"{last['n_flips']} of {last['n_reversed']}" == both


def test_a_proposal_of_the_past_is_admitted_as_it_was() -> None:
    """A reversed pair that was open when the process died."""
    engine = run_of(12, steps=19, reverse_rate=0.1).engine
    before = engine.propose()
    assert isinstance(before, Proposal)
    assert before.fields["round_stage"] == "reverse"
    fresh = run_of(12, steps=19, reverse_rate=0.1).engine
    fresh.admit(before)
    assert fresh.propose() is not None
    assert fresh._reversals == engine._reversals
