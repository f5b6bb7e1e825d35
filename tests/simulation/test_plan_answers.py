"""Plans take the answer form, the goal and several judges into account."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.simulation.run import _Judge, simulate_run


def test_probabilities_need_fewer_comparisons() -> None:
    given: dict[str, Any] = {"sd": 2.0, "seeds": 2, "progress": False, "reliability": 0.8}
    winners, stated = ps.plan(16, **given), ps.plan(16, answer="probability", error=0.5, **given)
    assert stated.answer == "probability"
    assert stated.comparisons is not None
    assert stated.comparisons < winners.at_least


@pytest.mark.slow
def test_weak_judges_cost_comparisons() -> None:
    given: dict[str, Any] = {"sd": 2.0, "seeds": 1, "progress": False, "reliability": 0.8}
    good, poor = (ps.plan(16, judge_slopes=slopes, **given) for slopes in ((1.5, 1.5), (1.5, 0.0)))
    assert good.at_least < poor.at_least


def test_an_error_belongs_to_its_pair() -> None:
    run = simulate_run(6, "random", 1, error=1.0, max_comparisons=60, btl_config={"answer": "probability"})
    answers: dict[tuple[int, int], set[int]] = {}
    for first, second, won in run.history.tolist():
        low, high = sorted((first, second))
        answers.setdefault((low, high), set()).add(won if first == low else 1 - won)
    assert all(len(said) == 1 for said in answers.values())


@pytest.mark.parametrize(("repeats", "same"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_a_judge_repeats_its_first_answer_as_often_as_told(repeats: float, same: float) -> None:
    judge = _Judge(np.zeros(40), 3, ps.SimulatedJudge("truth"), repeats=repeats)
    pairs = [(first, second) for first in range(40) for second in range(first)]
    winners = [first if judge.answer(first, second)[0] else second for first, second in pairs]
    again = [second if judge.answer(second, first)[0] else first for first, second in pairs]
    agreeing = np.mean([one == other for one, other in zip(winners, again, strict=True)])
    assert agreeing == pytest.approx(same, abs=0.06 if repeats < 1 else 0)


def test_a_plan_tells_what_a_judge_that_repeats_itself_would_need() -> None:
    plan = ps.plan(8, seeds=1, progress=False)
    assert plan.repeating is not None
    assert (plan.repeats, plan.repeating.repeats, plan.repeating.repeating) == (0.0, 1.0, None)
    varies, repeating = str(plan).splitlines()
    assert varies.startswith("a judge that varies: 8 items to reliability 0.9: ")
    assert repeating == "a judge that repeats itself: at most 28 different pairs: 0% of such runs get there"
    assert ps.plan(8, seeds=1, repeats=0.0, progress=False).repeating is None
    with pytest.raises(InputError, match="repeats"):
        ps.plan(8, repeats=1.5, progress=False)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"error": 1.0}, "error belongs to answer='probability'"),
        ({"answer": "probability", "error": 0}, "error must be a number above 0"),
        ({"answer": "probability", "judge_slopes": (1, 1)}, "judge_slopes belongs to answer='winner'"),
        ({"judge_slopes": (1,)}, "two judges or more"),
        ({"judge_slopes": (1, float("nan"))}, "judge_slopes must be a"),
        ({"answer": "odds"}, "answer must be"),
    ],
)
def test_what_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.plan(10, seeds=1, progress=False, **more)
