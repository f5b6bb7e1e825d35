"""A selector of the user's own: what it is shown, what is refused, and that its runs resume, replay and audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pairscale as ps
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.selectors import OwnSelector, Situation, selector_name
from pairscale.core.errors import InputError, StoreMismatchError, UnknownNameError
from tests.adaptive.driving import drive, finish_warm_start, judge, names
from tests.adaptive.running import FAST, LATE, audited, better, rank, samples, simulated, steps

NAME = f"{__name__}.most_uncertain"


def most_uncertain(now: Situation) -> tuple[int, int]:
    first, second = now.pairs
    best = np.argmax(now.sigma[first] + now.sigma[second])
    return first[best], second[best]


def by_chance(now: Situation) -> tuple[int, int]:
    first, second = now.pairs
    at = now.rng.integers(len(first))
    return int(second[at]), int(first[at])  # in any order


class Named:
    """An object with a name of its own."""

    name = "closest pair"

    def __call__(self, now: Situation) -> tuple[int, int] | None:
        first, second = now.pairs
        score = now.mu if now.theta is None else now.theta
        best = np.argmin(np.abs(score[first] - score[second]))
        return first[best], second[best]


def test_by_module_and_function_also_from_the_current_folder(
    message_snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_own_selector_module.py").write_text("def first(now):\n    return [at[0] for at in now.pairs]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    found = rank(5, n_steps=12, selector="my_own_selector_module:first")
    assert found.logs["step_log"]["selector"].unique().to_list() == ["my_own_selector_module.first"]
    with pytest.raises(UnknownNameError) as refused:
        rank(5, selector="my_own_selector_module:second")
    message_snapshot(refused)
    with pytest.raises(UnknownNameError, match="no module 'nowhere_at_all'"):
        rank(5, selector="nowhere_at_all:first")


# What it is shown


def test_it_is_shown_what_is_known_and_can_change_nothing() -> None:
    shown: list[Situation] = []

    def looking(now: Situation) -> tuple[int, int]:
        ledger = engine.ledger
        slow = {
            (i, j)
            for i in range(8)
            for j in range(8)
            if i != j and not ledger.closed[i, j] and ledger.seen[i, j] < engine.config.dup_max_obs
        }
        assert set(zip(*np.nonzero(now.allowed), strict=True)) == slow
        assert set(zip(*now.pairs, strict=True)) == {(i, j) for i, j in slow if i < j}
        assert list(now.ids) == engine.ids
        assert now.mu.tolist() == ledger.mu.tolist()
        assert now.sigma.tolist() == ledger.sigma.tolist()
        assert now.degree.tolist() == (ledger.degree + ledger.open_degree).tolist()
        assert now.seen.tolist() == ledger.seen.tolist()
        assert now.history.tolist() == ledger.history.tolist()
        assert now.theta is None if engine.belief is None else now.theta.tolist() == engine.belief.theta_mean.tolist()
        for name in ("mu", "sigma", "degree", "seen"):
            assert not np.shares_memory(getattr(now, name), getattr(ledger, name))
        shown.append(now)
        return by_chance(now)

    engine = Engine(names(8), seed=3, selector=looking)
    run = drive(engine, judge(2), steps=40, concurrency=3)
    assert len(shown) == 40 - 7  # all but the warm start
    assert {row["round_stage"] for row in run.rows} == {"warm_start", engine.selector}
    assert {now.theta is None for now in shown} == {True, False}
    chosen = sorted(run.rows, key=lambda row: row["step_id"])[7:]
    assert [row["n_candidates_scored"] for row in chosen] == [len(now.pairs[0]) for now in shown]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "numbers of two items"),
        ((1,), "numbers of two items"),
        ((0, 1, 2), "numbers of two items"),
        (("a", "b"), "numbers of two items"),
        ((0.0, 1.0), "numbers of two items"),
        ((2, 2), "may not be asked about now"),
        ((0, 99), "may not be asked about now"),
        ((-1, 0), "may not be asked about now"),
    ],
)
def test_an_answer_that_is_none_is_refused(answer: Any, words: str) -> None:
    engine = Engine(names(5), selector=lambda _now: answer)
    finish_warm_start(engine)
    with pytest.raises(InputError, match=f"selector .*<lambda> .*{words}"):
        engine.propose()


def test_one_that_wants_none_is_shown_more_and_then_the_run_ends(tmp_path: Path) -> None:
    most: list[int] = []

    def once(now: Situation) -> tuple[int, int] | None:
        most.append(int(now.seen[now.allowed].max()))
        first, second = now.pairs
        fresh = np.flatnonzero(now.seen[first, second] == 0)
        return None if not len(fresh) else (first[fresh[0]], second[fresh[0]])

    result = rank(5, better, selector=once, run=tmp_path / "run.db", btl_config=LATE)
    assert result.state.stop_reason == "candidate_starvation"
    assert result.state.engine.committed == 10  # every pair once
    assert result.logs["step_log"]["fallback_path"].to_list()[-1] == "base>dup_relax"
    assert ps.audit(tmp_path / "run.db", selector=once).passed


# Its runs


@pytest.mark.slow
@pytest.mark.parametrize("selector", [most_uncertain, by_chance, Named()])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_run_goes_on_and_is_audited(selector: OwnSelector, concurrency: int, tmp_path: Path) -> None:
    run, given = tmp_path / "run.db", {"selector": selector, "concurrency": concurrency, "btl_config": LATE}
    rank(8, simulated(invalid_rate=0.1), n_steps=21, run=run, **given)
    result = rank(8, simulated(invalid_rate=0.1), n_steps=21, run=run, **given)
    log = result.logs["step_log"]
    assert log.height == 42
    assert log["selector"].unique().to_list() == [selector_name(selector)]
    assert result.refits["selector"].unique().to_list() == [selector_name(selector)]
    if concurrency == 1:
        assert steps(result.state).equals(steps(rank(8, simulated(invalid_rate=0.1), n_steps=42, **given).state))
    assert ps.audit(run, selector=selector).passed
    late = ps.adaptive_rank_resume(run=run, selector=selector)
    ps.adaptive_rank_run_live(late, simulated(invalid_rate=0.1), 4, concurrency=concurrency, **FAST)
    rank(samples(10), simulated(invalid_rate=0.1), n_steps=12, run=run, **given)
    assert ps.audit(run, selector=selector).passed


def test_another_one_is_refused_and_without_it_a_run_can_be_looked_at(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    before = rank(6, selector=most_uncertain, n_steps=15, run=run)
    for other in ("pollitt", by_chance):
        with pytest.raises(
            StoreMismatchError, match=f"was started with selector='{NAME}', not '.*{selector_name(other)}"
        ):
            rank(6, selector=other, n_steps=3, run=run)
        with pytest.raises(StoreMismatchError, match="was started with selector="):
            ps.audit(run, selector=other)
    with pytest.raises(StoreMismatchError, match="was started with selector="):
        ps.load_adaptive_session(run, selector="random")
    looked_at = ps.load_adaptive_session(run)
    assert looked_at.step_log.equals(before.state.step_log)
    assert ps.summarize_items(looked_at).equals(ps.summarize_items(before.state))
    for refused in (
        lambda: ps.adaptive_rank_run_live(looked_at, simulated(), 3, **FAST),
        lambda: ps.audit(run),
        looked_at.engine.propose,
    ):
        with pytest.raises(InputError, match=f"chosen by '{NAME}'.*give it again .selector="):
            refused()
    assert ps.validate_session_dir(run)["steps"] == 15
    pollitt = tmp_path / "pollitt.db"
    rank(6, n_steps=8, run=pollitt)
    with pytest.raises(StoreMismatchError, match="was started with selector='pollitt', not"):
        ps.adaptive_rank_resume(run=pollitt, selector=most_uncertain)
    audited(pollitt)


def test_an_audit_tells_of_a_selector_that_remembers(tmp_path: Path) -> None:
    class Forgetting:
        name = "moody"
        calls = 0

        def __call__(self, now: Situation) -> tuple[int, int]:
            self.calls += 1
            first, second = now.pairs
            return first[self.calls % len(first)], second[self.calls % len(first)]

    rank(6, selector=Forgetting(), n_steps=12, run=tmp_path / "run.db")
    rank(6, selector=Forgetting(), n_steps=12, run=tmp_path / "run.db")
    report = ps.audit(tmp_path / "run.db", selector=Forgetting())
    assert not report.passed
    assert report.steps >= 12
