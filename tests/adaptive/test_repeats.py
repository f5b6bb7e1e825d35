"""Pairs that are asked again: reversed ones, discounted repeats, and judges that go by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pairscale.adaptive.engine import Engine
from pairscale.adaptive.selection.ledger import RepeatCounts
from pairscale.adaptive.selectors import Situation
from pairscale.core.errors import StoreMismatchError
from tests.adaptive.driving import Answer, Run, drive, judge, mu_belief, names
from tests.adaptive.running import LATE, audited, rank, steps

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


@pytest.mark.parametrize("selector", [*SELECTORS, first_of_two])
def test_a_repeat_that_tells_nothing_is_not_asked(selector: Any) -> None:
    """Of 10 texts all 45 pairs are asked, 30 of them once more to be sure, and that is the end."""
    run = run_of(10, selector=selector, agreement=1.0, discount_repeats=True, reverse_rate=0.1)
    assert run.engine.stop_reason == "pairs_exhausted"
    ledger = run.engine.ledger
    assert ledger.n_unique_pairs == 45
    assert ledger.repeats.n_repeats == 30
    assert repeats_in(run) <= 10  # chosen before the first refit


@pytest.mark.parametrize("selector", ["pollitt", "random", "information"])
def test_pairs_that_were_asked_are_worth_less(selector: str) -> None:
    found = [
        repeats_in(run_of(20, selector=selector, steps=170, agreement=agreement, discount_repeats=True))
        for agreement in (0.0, 0.8)
    ]
    assert found[1] < 0.7 * found[0]


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
    assert "So far: reliability" in said
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
