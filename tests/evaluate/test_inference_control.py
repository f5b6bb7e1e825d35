"""The win rate at equal style: against a general optimiser, known truths, and what it must refuse or say."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import t

from pairscale.core.errors import InputError, TableError
from pairscale.evaluate.inference.control import (
    LENGTH,
    OTHER,
    Penalty,
    control_names,
    controlled_rate,
    fit_penalised,
    scales_of,
)


def frame(won, length_a, length_b, tasks=None):
    tasks = range(len(won)) if tasks is None else tasks
    return pl.DataFrame(
        {
            "task_id": [str(task) for task in tasks],
            "outcome": ["tie" if each is None else "win" for each in won],
            "winner": [None if each is None else "b" if each else "a" for each in won],
            "length_a": length_a,
            "length_b": length_b,
        },
        schema_overrides={"winner": pl.String, "length_a": pl.Int64, "length_b": pl.Int64},
    )


def simulated(n, seed, rate=0.6, effect=1.0, shift=0.4):
    rng = np.random.default_rng(seed)
    a = rng.integers(100, 3000, n)
    b = np.maximum(1, (a * 2 ** rng.normal(shift, 0.7, n)).astype(int))
    x = np.tanh((b - a)[:, None] / scales_of(a[:, None].astype(float), b[:, None].astype(float)))
    return x, rng.random(n) < expit(logit(rate) + effect * x[:, 0]), a, b


def objective(theta, x, y, penalties):
    eta = theta[0] + x @ theta[1:]
    pulls = sum(
        (b - one.centre) ** 2 / (2 * (one.above if b > one.centre else one.below) ** 2)
        for b, one in zip(theta[1:], penalties, strict=True)
    )
    return -(y @ eta - np.logaddexp(0, eta).sum() + theta[0] / 2 - np.logaddexp(0, theta[0]) - pulls)


@pytest.mark.parametrize(("n", "seed", "effect"), [(12, 1, 0.0), (40, 2, 3.0), (300, 3, -2.0), (300, 4, 4.0)])
def test_the_fit_is_that_of_a_general_optimiser(n, seed, effect):
    x, y, _, _ = simulated(n, seed, effect=effect)
    x = np.column_stack([x, np.random.default_rng(seed).uniform(-1, 1, n)])
    for scores in (y.astype(float), np.clip(0.8 * y + 0.1, 0, 1)):
        fit = fit_penalised(x, scores, (LENGTH, OTHER))
        best = minimize(objective, np.zeros(3), (x, scores, (LENGTH, OTHER)), method="Nelder-Mead",
                        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000})  # fmt: skip
        assert fit[0] == pytest.approx(best.x, abs=1e-4)


def test_without_a_penalty_it_is_maximum_likelihood_with_its_errors():
    x, y, _, _ = simulated(20_000, 4)
    free = Penalty(0.0, 1e6, 1e6, 1.0)
    fit = fit_penalised(x, y.astype(float), (free,))
    design = np.column_stack([np.ones(len(x)), x])
    p = expit(design @ fit[0])
    assert design.T @ (y - p) == pytest.approx([0, 0], abs=0.6)  # half a win and half a loss more
    plain = np.sqrt(np.diag(np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)))
    assert fit[1] == pytest.approx(plain, rel=1e-3)


@pytest.mark.parametrize("n", [3, 30])
def test_the_errors_of_graded_scores_are_smaller_by_their_dispersion(n):
    x, y, _, _ = simulated(n, 4)
    scores = 0.3 * y + 0.35
    theta, errors = fit_penalised(x, scores, (Penalty(0.0, 1e6, 1e6, 1.0),))
    design = np.column_stack([np.ones(n), x])
    p = expit(design @ theta)
    information = (design * (p * (1 - p))[:, None]).T @ design
    half_a_win = np.diag([expit(theta[0]) * (1 - expit(theta[0])), 0])
    inverse = np.linalg.inv(information + half_a_win)
    dispersion = ((scores - p) ** 2).sum() / (p * (1 - p)).sum() * n / (n - 2)
    assert dispersion < 0.5
    assert errors == pytest.approx(np.sqrt(np.diag(inverse @ information @ inverse) * dispersion), rel=1e-5)


@pytest.mark.parametrize("effect", [0.0, 1.0, -2.0])
def test_with_many_cases_the_truth_comes_out_whatever_the_usual_effect(effect):
    _, y, a, b = simulated(20_000, 6, rate=0.7, effect=effect)
    found = controlled_rate(frame(y, a, b))
    assert found.rate == pytest.approx(0.7, abs=0.015)
    x = np.tanh((b - a) / scales_of(a[:, None] * 1.0, b[:, None] * 1.0)[0])[:, None]
    assert fit_penalised(x, y.astype(float), (LENGTH,))[0][1] == pytest.approx(effect, abs=0.12)
    assert found.overlap > 2000
    assert not found.notices


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 25), st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([-3.0, 0.0, 5.0]))
def test_swapping_the_variants_mirrors_the_rate(seed, n, rate, effect):
    _, y, a, b = simulated(n, seed, rate, effect)
    here, there = controlled_rate(frame(y, a, b)), controlled_rate(frame(~y, b, a))
    assert here.rate == pytest.approx(1 - there.rate, abs=1e-6)
    assert here.ci == pytest.approx((1 - there.ci[1], 1 - there.ci[0]), abs=1e-6)
    assert 0 <= here.ci[0] <= here.rate <= here.ci[1] <= 1
    assert here.overlap == there.overlap


def test_ten_characters_that_lose_nearly_always_are_not_lifted_to_a_win():
    """As the answers that were made to game AlpacaEval: a straight line in log length gave more than nine in ten."""
    rng = np.random.default_rng(8)
    a = np.maximum(3, np.exp(rng.normal(7.3, 1.0, 800)).astype(int))
    won = (a < 30) | (rng.random(800) < 0.02)
    found = controlled_rate(frame(won, a, np.full(800, 10)))
    assert found.raw_rate < 0.05
    assert found.rate < 0.2
    assert found.overlap < 20
    assert f"only {found.overlap} of 800 cases" in found.notices[-1] or "no case" in found.notices[-1]


def test_several_cases_of_a_task_widen_the_interval():
    rng = np.random.default_rng(8)
    _, y, a, b = simulated(400, 8)
    thrice = [np.repeat(each, 3) for each in (y, a, b)]
    tasks = np.repeat(np.arange(400), 3)
    once, again = controlled_rate(frame(y, a, b)), controlled_rate(frame(*thrice, tasks))
    wrong = controlled_rate(frame(*thrice))
    assert again.n == 1200
    assert "400 tasks" in again.notices[0]
    width = [each.ci[1] - each.ci[0] for each in (once, again, wrong)]
    assert width[1] == pytest.approx(width[0], rel=0.15)
    assert width[2] < width[1]
    shuffled = rng.permutation(1200)
    assert controlled_rate(frame(*(each[shuffled] for each in thrice), tasks[shuffled])).ci == pytest.approx(again.ci)


def test_the_interval_of_few_tasks_with_several_cases_is_students():
    _, y, a, b = simulated(16, 8)
    tasks = np.arange(16) // 2
    found = controlled_rate(frame(y, a, b, tasks))
    a, b = a[:, None].astype(float), b[:, None].astype(float)
    x = np.tanh((b - a) / scales_of(a, b))
    (level, _), (error, _) = fit_penalised(
        x.reshape(8, 2).mean(axis=1)[:, None], y.reshape(8, 2).mean(axis=1), (LENGTH,)
    )
    reach = t.ppf(0.975, 7) * error
    assert found.ci == pytest.approx(tuple(expit([level - reach, level + reach])))


def test_ties_are_half_and_missing_lengths_are_left_out():
    _, y, a, b = simulated(30, 9)
    more = frame([*y, None, True], [*a, 5, None], [*b, 900, 80], range(32))
    found = controlled_rate(more)
    assert found.n == 31
    assert found.raw_rate == pytest.approx((y.sum() + 0.5) / 31)


def test_graded_scores_count_as_they_are(message_snapshot):
    _, y, a, b = simulated(80, 10)
    wins = frame(y, a, b)
    plain = wins.select("task_id", "length_a", "length_b", preference=pl.Series(y.astype(float)))
    assert controlled_rate(plain).ci == pytest.approx(controlled_rate(wins).ci)
    graded = plain.with_columns(preference=0.2 + 0.6 * pl.col("preference"))
    found = controlled_rate(graded)
    assert found.raw_rate == pytest.approx(0.2 + 0.6 * y.mean())
    assert found.ci[1] - found.ci[0] < controlled_rate(wins).ci[1] - controlled_rate(wins).ci[0]
    with pytest.raises(TableError) as refused:
        controlled_rate(plain.with_columns(preference=pl.Series([0.5, 1, 1.5] + [0.0] * 77)))
    message_snapshot(refused)


@pytest.mark.parametrize(("won", "n"), [([], 0), ([True], 1), ([None] * 2, 2)])
def test_too_little_to_tell(won, n):
    found = controlled_rate(frame(won, [5] * n, [7] * n))
    assert (found.rate, found.ci) == (None, None)
    assert f"{n} answered case" in found.notices[0]
    assert str(found) == found.notices[0]


def test_several_styles_are_told_apart():
    rng = np.random.default_rng(12)
    n = 4000
    a, b = rng.integers(500, 1500, n), rng.integers(700, 1700, n)
    lists = rng.poisson([[3.0], [6.0]], (2, n))
    x = [np.tanh((two - one) / scales_of(one[:, None] * 1.0, two[:, None] * 1.0)) for one, two in ((a, b), lists)]
    won = rng.random(n) < expit(logit(0.4) + 0.8 * x[0] + 1.5 * x[1])
    cases = frame(won, a, b).with_columns(lists_a=lists[0], lists_b=lists[1])
    length, both = controlled_rate(cases), controlled_rate(cases, ["length", "lists"])
    assert both.rate == pytest.approx(0.4, abs=0.04)
    assert both.ci[0] < 0.4 < both.ci[1]
    assert length.rate > 0.5
    estimate, se = fit_penalised(np.column_stack(x), won.astype(float), (LENGTH, OTHER))
    assert estimate[2] == pytest.approx(1.5, abs=1.96 * se[2])
    assert both.overlap < length.overlap


def test_answers_are_nearly_alike_up_to_a_quarter_of_their_mean_and_ten_such_cases_are_not_few():
    near, far = ([7, 9], [9, 7]), ([7, 10], [10, 7])  # 2 of 8, and 3 of 8.5
    assert controlled_rate(frame([True, False, True], [7, 9, 7], [9, 7, 10])).overlap == 2
    for n_near, is_few in ((10, False), (9, True)):
        pairs = [near] * n_near + [far] * (40 - n_near)
        lengths = [[pair[side][at % 2] for at, pair in enumerate(pairs)] for side in (0, 1)]
        found = controlled_rate(frame([at % 3 > 0 for at in range(40)], *lengths))
        assert found.overlap == n_near
        assert any(f"only {n_near} of 40 cases" in notice for notice in found.notices) is is_few


def test_the_usual_difference_by_hand():
    a, b = np.arange(10.0, 21.0), np.arange(10.0, 21.0) + np.arange(-5.0, 6.0)
    spread = 8 / 2.5631  # from the 10th to the 90th percentile, -4 to 4
    assert scales_of(a[:, None], b[:, None])[0] == pytest.approx(np.hypot(spread, 0.25 * np.median((a + b) / 2)))
    few = a + np.eye(11)[3] * 6  # where most do not differ, the standard deviation
    expected = np.hypot(np.std(few - a), 0.25 * np.median((a + few) / 2))
    assert scales_of(a[:, None], few[:, None])[0] == pytest.approx(expected)
    assert scales_of(np.zeros((4, 1)), np.zeros((4, 1)))[0] == 1
    one = np.eye(11)[3]  # differences that are seldom and small
    assert scales_of(np.zeros((11, 1)), one[:, None])[0] == pytest.approx(one.std())


def test_coefficients_are_drawn_towards_what_the_documentation_says():
    """Other figures need the replay of AlpacaEval again."""
    assert LENGTH == Penalty(centre=1.0, above=0.15, below=1.0, spread=1.25)
    assert OTHER == Penalty(centre=0.0, above=0.5, below=0.5, spread=1.0)
    for penalty, centre in ((LENGTH, 1.0), (OTHER, 0.0)):  # where nothing differs, that is all there is
        assert fit_penalised(np.zeros((5, 1)), np.full(5, 0.5), (penalty,))[0][1] == pytest.approx(centre)


def test_names_of_styles(message_snapshot):
    assert control_names("markdown") == ("headers", "lists", "bold")
    assert control_names(["markdown", "length"]) == ("headers", "lists", "bold", "length")
    assert control_names(["lists", "markdown", "length", "length"]) == ("lists", "headers", "bold", "length")
    for wrong in ([], [""]):
        with pytest.raises(InputError) as refused:
            control_names(wrong)
        message_snapshot(refused)


def test_wrong_columns_are_refused(message_snapshot):
    with pytest.raises(TableError, match="'length_a'"):
        controlled_rate([{"task_id": "x", "outcome": "win", "winner": "b"}])
    with pytest.raises(TableError) as refused:
        controlled_rate(frame([True] * 3, [1, 2, 3], [1, -2, 3]))
    message_snapshot(refused)
    cases = frame([True] * 3, [1, 2, 3], [1, 2, 3])
    with pytest.raises(TableError, match="'length_a' must hold numbers"):
        controlled_rate(cases.with_columns(length_a=pl.lit("7")))
    with pytest.raises(TableError) as refused:
        controlled_rate(cases.with_columns(tone_a=-1.5, tone_b=pl.Series([1.0, -np.inf, 2.0])), ["tone"])
    message_snapshot(refused)
    with pytest.raises(TableError, match="'tone_a'"):
        controlled_rate(cases, ["tone"])
    assert controlled_rate(cases.with_columns(tone_a=-1.5, tone_b=pl.Series([1.0, np.nan, 2.0])), "tone").n == 2
