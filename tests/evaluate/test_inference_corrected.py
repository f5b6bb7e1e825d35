"""The label-corrected win rate: by hand, against a slow version, and at the ends of its range."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairscale.core.errors import InputError
from pairscale.evaluate.inference import corrected_win_rate
from pairscale.evaluate.inference.cases import Scores
from pairscale.evaluate.inference.score import half_share, rate_ends, score_interval

KINDS = {1.0: ("win", "b"), 0.0: ("win", "a"), 0.5: ("tie", None), None: ("abstention", None)}


def frame(scores, first=0):
    rows = [(f"task {first + at}", *KINDS[score]) for at, score in enumerate(scores)]
    return pl.DataFrame(rows, schema={"task_id": pl.String, "outcome": pl.String, "winner": pl.String}, orient="row")


def simulated(n, others, agree, seed, rate=0.6):
    rng = np.random.default_rng(seed)
    people = (rng.random(n + others) < rate).astype(float)
    model = np.where(rng.random(n + others) < agree, people, rng.random(n + others) < 0.5).astype(float)
    return model, people[:n]


def slow(model, people):
    """Number by number, as the docstring has it."""
    n, others = len(people), len(model) - len(people)
    y, f, u = list(people), list(model[:n]), list(model[n:])
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    pairs = [(a, b, 1.0) for a, b in zip(y, f, strict=True)] + [(1, 0, 0.25), (0, 1, 0.25)]

    def moment(g, h):
        return sum(w * g(a, b) * h(a, b) for a, b, w in pairs) / (n - 1 + 0.5)

    def off_y(a, b):
        return a - mean(y)

    def off_f(a, b):
        return b - mean(f)

    weight = min(1, max(0, moment(off_y, off_f) / (moment(off_f, off_f) * (1 + n / others))))
    rest = moment(lambda a, b: off_y(a, b) - weight * off_f(a, b), lambda a, b: off_y(a, b) - weight * off_f(a, b))
    variance = rest * (n - 1) / (n - 2) / n + weight**2 * sum((v - mean(u)) ** 2 for v in u) / others / others
    alone = sum((v - mean(y)) ** 2 for v in y) / (n - 1) / n
    return mean(y) + weight * (mean(u) - mean(f)), weight, n * alone / variance


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(3, 40), st.integers(1, 200), st.floats(0, 1))
def test_it_is_the_slow_version(seed, n, others, agree):
    require_slow_version(seed, n, others, agree)


@pytest.mark.parametrize(("seed", "n", "others", "agree"), [(1, 12, 60, 0.8), (2, 30, 200, 0.95), (3, 40, 90, 0.6)])
def test_examples_are_the_slow_version(seed, n, others, agree):
    require_slow_version(seed, n, others, agree)


def require_slow_version(seed, n, others, agree):
    model, people = simulated(n, others, agree, seed)
    result = corrected_win_rate(frame(model), frame(people))
    if len(set(people)) == 1:
        assert not result.helps
        return
    rate, weight, size = slow(model, people)
    if size >= 1.1 * n:
        assert result.helps
        assert result.rate == pytest.approx(min(1, max(0, rate)))
        assert (result.weight, result.effective_labels) == (pytest.approx(weight), pytest.approx(size))
        halves = min(0, 1 - abs(2 * result.rate - 1))
        assert result.ci == pytest.approx(score_interval(result.rate, halves, size, 0.95), abs=1e-7)
    else:
        assert (result.helps, result.weight, result.effective_labels) == (False, 0, n)
        assert (result.rate, result.ci) == (pytest.approx(people.mean()), pytest.approx(result.human_ci))
    assert result.human_ci == pytest.approx(score_interval(people.mean(), 0, n, 0.95), abs=1e-7)
    assert (result.labels, result.unlabelled, result.unmatched) == (n, others, 0)
    assert result.model_rate == pytest.approx(model.mean())


def test_a_biased_model_is_set_right():
    """The model favours B in a fifth of the cases that people give to A; its own interval would be far off."""
    rng = np.random.default_rng(5)
    people = (rng.random(3000) < 0.5).astype(float)
    model = np.where((people == 0) & (rng.random(3000) < 0.2), 1.0, people)
    result = corrected_win_rate(frame(model), frame(people[:300]))
    assert result.model_rate > 0.58
    assert abs(result.rate - 0.5) < 0.03
    assert result.ci[0] < 0.5 < result.ci[1]
    assert result.helps
    assert result.ci[1] - result.ci[0] < 0.75 * (result.human_ci[1] - result.human_ci[0])


def test_a_model_that_knows_nothing_is_left_out_with_a_warning(caplog):
    model, people = simulated(60, 400, 0.0, 7)
    result = corrected_win_rate(frame(model), frame(people))
    assert not result.helps
    assert (result.rate, result.ci) == (result.human_rate, result.human_ci)
    assert "do not help" in result.notices[0]
    assert "do not help" in caplog.text


def test_a_model_that_says_the_opposite_is_left_out():
    _, people = simulated(60, 0, 0, 8)
    model = np.concatenate([1 - people, np.ones(100)])
    result = corrected_win_rate(frame(model), frame(people))
    assert (result.weight, result.helps) == (0, False)


def test_a_perfect_model_is_worth_many_labels_but_not_endlessly_many():
    model, people = simulated(50, 1000, 1.0, 9)
    result = corrected_win_rate(frame(model), frame(people))
    assert result.helps
    assert 100 < result.effective_labels < 1050
    assert result.ci[0] < model.mean() < result.ci[1]


def test_swapping_the_variants_mirrors_the_rate():
    model, people = simulated(40, 200, 0.8, 10)
    here, there = (
        corrected_win_rate(frame(model), frame(people)),
        corrected_win_rate(frame(1 - model), frame(1 - people)),
    )
    assert here.rate == pytest.approx(1 - there.rate)
    assert here.ci == pytest.approx((1 - there.ci[1], 1 - there.ci[0]), abs=1e-9)
    assert here.weight == pytest.approx(there.weight)


def test_several_labels_of_a_task_are_one():
    model, people = frame([1.0, 0.0, 1.0, 0.5, 1.0, 0.0]), frame([1.0, 0.0, 1.0])
    again = pl.concat([people, frame([0.0])])
    result = corrected_win_rate(model, again)
    assert (result.labels, result.human_rate) == (3, pytest.approx((0.5 + 0 + 1) / 3))


def test_nothing_in_common_is_refused_and_little_is_said(message_snapshot):
    with pytest.raises(InputError) as refused:
        corrected_win_rate(frame([1.0]), frame([1.0], first=5))
    message_snapshot(refused)
    partly = corrected_win_rate(frame([1.0, 0.0, 1.0]), frame([1.0, 1.0], first=2))
    assert (partly.labels, partly.unmatched) == (1, 1)
    assert "1 labelled tasks have no verdict" in partly.notices[1]


@pytest.mark.parametrize("people", [[], [None, None]])
def test_without_a_label_there_is_no_rate(people):
    result = corrected_win_rate(frame([1.0, 0.0]), frame(people))
    assert (result.rate, result.ci, result.human_rate, result.model_rate) == (None, None, None, 0.5)
    assert "there is no label" in result.notices[0]
    assert "no verdict" in corrected_win_rate([], frame([1.0])).notices[0]


@pytest.mark.parametrize("people", [[1.0], [1.0, 0.0], [1.0] * 10, [0.5] * 10])
def test_labels_that_cannot_show_anything_stand_alone(people):
    result = corrected_win_rate(frame([1.0, 0.0] * 20), frame(people))
    assert not result.helps
    assert result.rate == np.mean(people)
    n, halves = len(people), people.count(0.5) / len(people)
    assert result.ci == pytest.approx(score_interval(float(np.mean(people)), halves, n, 0.95))


def test_every_task_labelled_is_no_fault_of_the_model():
    result = corrected_win_rate(frame([1.0, 0.0, 1.0]), frame([1.0, 0.0, 0.0]))
    assert (result.unlabelled, result.helps) == (0, False)
    assert not result.notices
    assert math.isclose(result.rate, 1 / 3)


def test_a_rate_that_the_model_lifts_leaves_less_room_for_ties():
    people = np.array([0.5] * 30 + [1.0] * 10)
    judged = np.where(people == 1, 1.0, 0.5)
    model = np.concatenate([judged, np.ones(400)])
    result = corrected_win_rate(frame(model), frame(people))
    assert result.helps
    room = 1 - abs(2 * result.rate - 1)
    assert room < 0.5 * half_share(people.mean(), people.var())
    assert result.ci == pytest.approx(score_interval(result.rate, room, result.effective_labels, 0.95))
    nobody = corrected_win_rate(frame(model), frame([]))
    assert (nobody.weight, nobody.helps, nobody.labels, nobody.effective_labels) == (0, False, 0, 0)


def test_graded_labels_have_the_interval_of_graded_scores():
    people = np.array([0.9, 0.8, 0.85, 0.3, 0.7, 0.95, 0.6])
    labels = pl.DataFrame({"task_id": [f"task {at}" for at in range(7)], "preference": people})
    result = corrected_win_rate(frame([1.0, 0.0] * 20), labels)
    assert result.human_ci == pytest.approx(rate_ends(Scores(people, 7), 0.95))


def test_a_model_that_varies_less_than_people_counts_once_at_most():
    _, people = simulated(60, 0, 0, 8)
    model = pl.DataFrame(
        {
            "task_id": [f"task {at}" for at in range(460)],
            "preference": np.concatenate([0.25 + 0.5 * people, np.full(400, 0.6)]),
        }
    )
    result = corrected_win_rate(model, frame(people))
    assert (result.helps, result.weight) == (True, 1.0)
    assert result.rate == pytest.approx(people.mean() + 0.6 - (0.25 + 0.5 * people.mean()))
