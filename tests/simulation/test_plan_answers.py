"""Plans take the answer form, the goal and several judges into account."""

from __future__ import annotations

from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.simulation.run import simulate_run


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
