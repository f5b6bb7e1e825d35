"""The confidence sequence: by closed forms, against slow versions, and by its properties."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, comb

from pairscale.core.errors import InputError
from pairscale.evaluate.inference import RunningSequence, win_rate
from pairscale.evaluate.inference.cases import task_means
from pairscale.evaluate.inference.sequence import RunningScores, log_capital, split_scores

SCORES = st.sampled_from([0.0, 0.5, 1.0])


def frame(scores, tasks=None):
    kinds = {1.0: ("win", "b"), 0.0: ("win", "a"), 0.5: ("tie", None), None: ("error", None)}
    tasks = range(len(scores)) if tasks is None else tasks
    rows = [(str(task), *kinds[score]) for task, score in zip(tasks, scores, strict=True)]
    return pl.DataFrame(rows, schema={"task_id": pl.String, "outcome": pl.String, "winner": pl.String}, orient="row")


def looked(cases, level=0.95):
    """The sequence after all tasks of a table."""
    sequence = RunningSequence(level)
    for score in task_means(cases, "cases")["score"]:
        sequence.update(score)
    return sequence


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 8), st.one_of(SCORES, st.none())), max_size=30))
def test_a_win_rate_by_betting_is_the_last_look(rows):
    cases = frame([score for _, score in rows], [task for task, _ in rows])
    for ties, used in (("half", cases), ("excluded", cases.filter(pl.col("outcome") == "win"))):
        rate, looks = win_rate(cases, ties=ties, interval="betting", level=0.9), looked(used, level=0.9)
        assert rate.tasks == looks.n
        assert rate.errors == sum(score is None for _, score in rows)
        assert (rate.rate is None) == (rate.ci is None) == (looks.n == 0)
        if looks.n:
            assert (rate.rate, *rate.ci) == pytest.approx((looks.mean, looks.lower, looks.upper), abs=1e-8)


def fast_log_capital(scores, m):
    values, counts = np.unique(scores, return_counts=True)
    return log_capital(m, values, counts[None, :].astype(float))[0]


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 40), st.floats(0.02, 0.98))
def test_the_capital_has_a_closed_form(wins, losses, ties, m):
    """A tie earns the mean of a win and a loss, so T ties are a binomial sum of Beta functions."""
    n = wins + losses + ties
    if n == 0:
        return
    k = np.arange(ties + 1)
    w, x = wins + k, losses + ties - k
    terms = np.log(comb(ties, k)) - ties * math.log(2) + betaln(w + 1.5, x + 1.5) - w * np.log(m) - x * np.log1p(-m)
    exact = np.logaddexp.reduce(terms) - betaln(1.5, 1.5)
    counts = np.array([[losses, ties, wins]], dtype=float)
    ours = log_capital(m, np.array([0, 0.5, 1]), counts)[0]
    assert ours == pytest.approx(exact, abs=1e-6, rel=1e-9)


@settings(max_examples=25)
@given(st.lists(SCORES, min_size=1, max_size=30))
def test_the_interval_is_what_a_grid_of_means_leaves(scores):
    sequence = RunningSequence()
    for score in scores:
        sequence.update(score)
    inside = [fast_log_capital(scores, m) < math.log(20) for m in np.linspace(0.01, 0.99, 99)]
    expected = [sequence.lower < m < sequence.upper for m in np.linspace(0.01, 0.99, 99)]
    assert inside == expected


def test_the_capital_stays_what_it_was_on_average():
    """Over all continuations, weighted by their chances, the next capital is the present one: a fair game."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        m, ties = rng.uniform(0.2, 0.8), 0.2
        before = rng.choice([0, 0.5, 1], 15).tolist()
        after = [fast_log_capital([*before, x], m) for x in (0, 0.5, 1)]
        average = np.dot([1 - m - ties / 2, ties, m - ties / 2], np.exp(after))
        assert average == pytest.approx(math.exp(fast_log_capital(before, m)), rel=1e-9)


@pytest.mark.slow
@given(st.lists(SCORES, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_order_and_sides_do_not_matter(scores, random):
    shuffled = random.sample(scores, len(scores))
    here, there, mirrored = RunningSequence(), RunningSequence(), RunningSequence()
    for x, y in zip(scores, shuffled, strict=True):
        here.update(x)
        there.update(y)
        mirrored.update(1 - x)
    assert (here.lower, here.upper) == pytest.approx((there.lower, there.upper), abs=1e-8)
    assert (here.lower, here.upper) == pytest.approx((1 - mirrored.upper, 1 - mirrored.lower), abs=1e-8)
    assert 0 <= here.lower <= here.mean <= here.upper <= 1
    assert {here.better, mirrored.better} in ({None}, {"a", "b"})


def test_what_is_decided_stays_decided():
    sequence = RunningSequence()
    for score in [1] * 9 + [0] * 20:
        sequence.update(score)
    assert sequence.decided
    assert sequence.better == "b"
    assert sequence.lower < 0.5 < sequence.upper


def test_wrong_scores_are_refused(message_snapshot):
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError) as refused:
            RunningSequence().update(wrong)
        message_snapshot(refused)
    with pytest.raises(InputError, match="level"):
        RunningSequence(1.0)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_ends_are_where_the_capital_rules_a_mean_out(level):
    scores = [1.0] * 30 + [0.0] * 10 + [0.5] * 5
    sequence = RunningSequence(level)
    for score in scores:
        sequence.update(score)
    assert 0 < sequence.lower < sequence.mean < sequence.upper < 1
    for end in (sequence.lower, sequence.upper):
        assert fast_log_capital(np.array(scores), end) == pytest.approx(-math.log(1 - level), abs=1e-4)
    scored = RunningScores(level)
    assert scored.bar == pytest.approx(-math.log(1 - level))


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 50)), min_size=1, max_size=20))
def test_scores_that_are_split_keep_their_number_and_their_mean(rows):
    values, counts = np.array([value for value, _ in rows]), np.array([[count for _, count in rows]], float)
    steps, split = split_scores(values, counts)
    assert split.min() >= 0
    assert split.sum() == pytest.approx(counts.sum())
    assert (split @ steps)[0] == pytest.approx((counts @ values)[0], abs=1e-9)


def test_before_the_first_score_nothing_is_known():
    sequence = RunningSequence()
    assert (sequence.lower, sequence.mean, sequence.upper) == (0.0, 0.5, 1.0)
    assert (sequence.better, sequence.n) == (None, 0)


@pytest.mark.parametrize("parts", [2, 3, 4, 5, 6, 10, 12])
def test_simple_fractions_lie_on_the_grid_and_are_not_split(parts):
    values = np.arange(parts + 1) / parts
    steps, split = split_scores(values, np.full((1, parts + 1), 3.0))
    assert split[0][split[0] > 1e-9] == pytest.approx([3.0] * (parts + 1))
    assert steps[split[0] > 1e-9] == pytest.approx(values)


def test_a_rate_by_betting_says_that_it_is_a_sequence():
    rates = [str(win_rate(frame([1, 0, 1]), interval=interval)) for interval in ("betting", "wilson")]
    assert ["confidence sequence" in said for said in rates] == [True, False]
    assert ["confidence interval" in said for said in rates] == [False, True]
