"""The length-controlled win rate: against statsmodels, a brute-force profile, and known truths."""

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import chi2, t

from pairscale.errors import TableError
from pairscale.evaluate.inference import length_controlled
from pairscale.evaluate.inference._logistic import fit_curve, profile


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


def simulated(n, seed, intercept=0.5, slope=1.0):
    rng = np.random.default_rng(seed)
    a = rng.integers(100, 3000, n)
    b = np.maximum(1, (a * 2 ** rng.normal(0.4, 0.7, n)).astype(int))
    x = np.log2((b + 1) / (a + 1))
    return x, rng.random(n) < expit(intercept + slope * x), a, b


def firth_by_statsmodels(x, y):
    """Firth's fit is a fixed point: each case once as it is and once turned, weighted 1 + h/2 and h/2."""
    design = sm.add_constant(x)
    h = np.full(len(x), 2 / len(x))
    for _ in range(500):
        weights = np.concatenate([1 + h / 2, h / 2])
        both, turned = np.vstack([design, design]), np.concatenate([y, 1 - y]).astype(float)
        fit = sm.GLM(turned, both, family=sm.families.Binomial(), var_weights=weights).fit(tol=1e-13)
        p = expit(design @ fit.params)
        root = design * np.sqrt(p * (1 - p))[:, None]
        new = np.einsum("ij,jk,ik->i", root, np.linalg.inv(root.T @ root), root)
        if np.abs(new - h).max() < 1e-12:
            break
        h = new
    return fit.params, np.linalg.inv(root.T @ root)


def penalised(parameters, x, y):
    a, b = parameters
    eta = a + b * x
    p = expit(eta)
    v = p * (1 - p)
    information = np.array([[v.sum(), (v * x).sum()], [(v * x).sum(), (v * x * x).sum()]])
    return float(np.sum(y * eta - np.logaddexp(0, eta))) + 0.5 * np.linalg.slogdet(information)[1]


@pytest.mark.parametrize(("n", "seed"), [(12, 1), (40, 2), (300, 3)])
def test_the_fit_is_statsmodels(n, seed):
    x, y, a, b = simulated(n, seed)
    (intercept, slope), covariance = firth_by_statsmodels(x, y)
    result = length_controlled(frame(y, a, b))
    assert result.rate == pytest.approx(expit(intercept), abs=1e-7)
    assert result.slope == pytest.approx(slope, abs=1e-6)
    assert result.slope_se == pytest.approx(np.sqrt(covariance[1, 1]), rel=1e-6)
    assert (result.n, result.raw_rate) == (n, pytest.approx(y.mean()))
    assert result.doubling == pytest.approx(x.mean())


def test_with_many_cases_it_is_plain_maximum_likelihood():
    x, y, a, b = simulated(20_000, 4)
    plain = sm.Logit(y.astype(float), sm.add_constant(x)).fit(disp=False)
    result = length_controlled(frame(y, a, b))
    assert result.rate == pytest.approx(expit(plain.params[0]), abs=1e-4)
    assert result.slope_se == pytest.approx(plain.bse[1], rel=1e-3)
    lower, upper = expit(plain.params[0] + np.array([-1, 1]) * 1.959964 * plain.bse[0])
    assert result.ci == pytest.approx((lower, upper), abs=5e-4)


@pytest.mark.parametrize(("n", "seed", "level"), [(12, 5, 0.95), (30, 6, 0.9)])
def test_the_interval_is_where_the_profile_falls(n, seed, level):
    """The likelihood maximised over the slope by a general optimiser."""
    x, y, a, b = simulated(n, seed)
    result = length_controlled(frame(y, a, b), level=level)
    exactly = {"method": "Nelder-Mead", "options": {"xatol": 1e-9, "fatol": 1e-12}}
    top = -minimize(lambda p: -penalised(p, x, y), [0, 0], **exactly).fun
    for end in result.ci:
        at = np.log(end / (1 - end))
        best = -minimize(lambda b, at=at: -penalised((at, b[0]), x, y), [0.5], **exactly).fun
        assert 2 * (top - best) == pytest.approx(chi2.ppf(level, 1), abs=1e-5)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(4, 25), st.sampled_from([-2.0, 0.0, 1.5]), st.sampled_from([-3.0, 0.0, 5.0]))
def test_swapping_the_variants_mirrors_the_rate(seed, n, intercept, slope):
    _, y, a, b = simulated(n, seed, intercept, slope)
    here, there = length_controlled(frame(y, a, b)), length_controlled(frame(~y, b, a))
    assert here.rate == pytest.approx(1 - there.rate, abs=1e-6)
    assert here.slope == pytest.approx(there.slope, abs=1e-5)
    assert here.ci == pytest.approx((1 - there.ci[1], 1 - there.ci[0]), abs=1e-6)
    assert 0 <= here.ci[0] <= here.rate <= here.ci[1] <= 1


def test_length_alone_wins_and_nothing_is_left():
    """B is longer in most cases and the longer answer always wins: at equal length nothing speaks for B."""
    a = np.full(60, 1000)
    b = np.concatenate([np.linspace(1100, 2500, 45), np.linspace(400, 900, 15)]).astype(int)
    result = length_controlled(frame(b > a, a, b))
    assert result.raw_rate == 0.75
    assert result.raw_ci[0] > 0.5
    assert result.ci[0] < 0.5 < result.ci[1]
    assert result.slope > 3


def test_several_cases_of_a_task_widen_the_interval_as_robust_errors_do():
    rng = np.random.default_rng(8)
    x, y, a, b = simulated(400, 8)
    thrice = [np.repeat(each, 3) for each in (y, a, b)]
    tasks = np.repeat(np.arange(400), 3)
    once, again = length_controlled(frame(y, a, b)), length_controlled(frame(*thrice, tasks))
    assert (again.n, again.tasks) == (1200, 400)
    assert again.rate == pytest.approx(once.rate, abs=0.002)
    assert again.ci[1] - again.ci[0] == pytest.approx(once.ci[1] - once.ci[0], rel=0.05)
    assert "400 tasks" in again.notices[0]
    robust = sm.Logit(thrice[0].astype(float), sm.add_constant(np.repeat(x, 3))).fit(
        disp=False, cov_type="cluster", cov_kwds={"groups": tasks}
    )
    width = np.diff(expit(robust.params[0] + np.array([-1, 1]) * t.ppf(0.975, 399) * robust.bse[0]))[0]
    assert again.ci[1] - again.ci[0] == pytest.approx(width, rel=0.02)
    shuffled = rng.permutation(1200)
    assert length_controlled(frame(*(each[shuffled] for each in thrice), tasks[shuffled])).ci == pytest.approx(again.ci)


def test_ties_and_missing_lengths_are_left_out():
    _, y, a, b = simulated(30, 9)
    plain = length_controlled(frame(y, a, b))
    more = frame([*y, None, True], [*a, 5, None], [*b, 900, 80], range(32))
    result = length_controlled(more)
    assert (result.rate, result.ci, result.n, result.missing) == (plain.rate, plain.ci, 30, 1)
    assert result.used == ("win",)


def test_all_wins_have_a_finite_answer():
    a, b = np.arange(100, 130), np.arange(160, 100, -2)
    result = length_controlled(frame([True] * 30, a, b))
    assert 0.8 < result.rate < 1
    assert 0.5 < result.ci[0] < result.rate < result.ci[1] <= 1


@pytest.mark.parametrize(
    ("won", "a", "b", "why"),
    [
        ([], [], [], "0 decided cases"),
        ([True], [5], [7], "1 decided cases"),
        ([None] * 5, [5] * 5, [7] * 5, "0 decided cases"),
        ([True, False, True, True], [10] * 4, [10] * 4, "the same in all cases"),
        ([True, False, True, True], [10] * 4, [21] * 4, "the same in all cases"),
    ],
)
def test_too_little_to_tell(won, a, b, why):
    result = length_controlled(frame(won, a, b))
    assert (result.rate, result.ci, result.slope) == (None, None, None)
    assert why in result.notices[0]
    decided = [each for each in won if each is not None]
    assert result.raw_rate == (np.mean(decided) if decided else None)


def test_one_task_tells_nothing():
    _, y, a, b = simulated(30, 10)
    result = length_controlled(frame(y, a, b, ["only"] * 30))
    assert result.ci == (0, 1)


def test_wrong_lengths_are_refused():
    with pytest.raises(TableError, match="'length_a'"):
        length_controlled([{"task_id": "x", "outcome": "win", "winner": "b"}])
    with pytest.raises(TableError, match="'length_b' is below 0"):
        length_controlled(frame([True] * 3, [1, 2, 3], [1, -2, 3]))
    words = frame([True] * 3, [1, 2, 3], [1, 2, 3]).with_columns(length_a=pl.lit("long"))
    with pytest.raises(TableError, match="'length_a' holds String"):
        length_controlled(words)


def test_many_fits_at_once_are_the_fits_one_by_one():
    data = [simulated(20, seed)[:2] for seed in range(6)]
    x, y = np.array([each[0] for each in data]), np.array([each[1] for each in data], dtype=float)
    weights = (np.random.default_rng(1).random(x.shape) < 0.8).astype(float)
    together = fit_curve(x, y, weights)
    for at in range(6):
        keep = weights[at] == 1
        one = fit_curve(x[at][None, keep], y[at][None, keep], np.ones((1, keep.sum())))
        assert (one.a[0], one.b[0], one.top[0]) == pytest.approx((together.a[at], together.b[at], together.top[at]))
    low = profile(x, y, weights, np.zeros(6), together.b)
    assert (low <= together.top + 1e-9).all()
