"""The statistics of marks: beside a slow and obvious computation, and where the truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.grading.levels import cut_at_marks, cut_at_quotas, cut_at_texts, placed
from pairscale.grading.marks import FEWEST_FOR_CURVE, KnownMarks, drift_threshold, mark_scale
from pairscale.validity.scale import JudgeScale


def judge_of(n: int, seed: int, error: float = 0.4) -> tuple[np.ndarray, JudgeScale]:
    """True scores and draws from a posterior of them."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 1.5, n)
    mean = theta + rng.normal(0, error, n)
    draws = 0.93 * mean + rng.normal(0, error, (2000, n))
    return theta, JudgeScale(tuple(f"t{place}" for place in range(n)), draws)


def by_weights(judge: JudgeScale, known: KnownMarks, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of all marks, by weighing draws of line and scores from the prior; no scatter."""
    rng = np.random.default_rng(seed)
    size = 600_000
    slope = np.exp(rng.uniform(np.log(2), np.log(60), size))
    theta = judge.draws[rng.integers(len(judge.draws), size=size)]
    sd = np.sqrt(np.diag(known.errors))
    # Given slope and scores, the intercept is normal about the mean residual, with a flat prior.
    residual = known.marks - slope[:, None] * theta[:, known.texts]
    precision = (1 / sd**2).sum()
    intercept = (residual / sd**2).sum(axis=1) / precision + rng.standard_normal(size) / np.sqrt(precision)
    centred = residual - (residual / sd**2).sum(axis=1)[:, None] / precision
    log_weight = -0.5 * np.square(centred / sd).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert 1 / np.square(weight).sum() > 300
    marks = intercept[:, None] + slope[:, None] * theta
    mean = weight @ marks
    return mean, np.sqrt(weight @ np.square(marks) - mean**2)


@pytest.mark.parametrize("seed", [1, 2])
def test_marks_are_their_posterior(seed, monkeypatch):
    monkeypatch.setattr("pairscale.grading.marks._SCATTERS", np.array([0.0]))
    monkeypatch.setattr("pairscale.grading.marks._SCATTER_PRIOR", np.array([1.0]))
    theta, judge = judge_of(8, seed)
    texts = np.argsort(theta)[[0, 2, 5, 7]]  # spread, so that the line is known
    rng = np.random.default_rng(seed)
    known = KnownMarks(texts, 55 + 10 * theta[texts] + rng.normal(0, 4, 4), 16 * np.eye(4))
    scale = mark_scale(judge, known, seed)
    mean, sd = by_weights(judge, known, seed)
    np.testing.assert_allclose(scale.marks.mean(axis=0), mean, atol=0.15 * sd.max())
    np.testing.assert_allclose(scale.marks.std(axis=0), sd, rtol=0.15)


def test_exact_marks_stay_as_they_are_and_others_lie_between() -> None:
    theta, judge = judge_of(30, 3)
    texts = np.array([3, 9, 14, 21, 25])
    marks = 60 + 8 * theta[texts]
    scale = mark_scale(judge, KnownMarks(texts, marks, np.zeros((5, 5))))
    np.testing.assert_allclose(scale.marks[:, texts], np.broadcast_to(marks, (len(scale.marks), 5)), atol=1e-5)
    assert np.corrcoef(scale.marks.mean(axis=0), theta)[0, 1] > 0.95


def test_a_moved_text_is_found_and_left_out_of_its_own_prediction() -> None:
    theta, judge = judge_of(40, 5)
    texts = np.arange(10)
    marks = 55 + 10 * theta[texts]
    marks[4] += 40
    scale = mark_scale(judge, KnownMarks(texts, marks, np.zeros((10, 10))))
    drifted = np.abs(scale.z) > drift_threshold(10)
    assert drifted.tolist() == [place == 4 for place in range(10)]
    without = mark_scale(judge, KnownMarks(np.delete(texts, 4), np.delete(marks, 4), np.zeros((9, 9))))
    assert scale.predicted[4] == pytest.approx(without.marks[:, 4].mean(), abs=1.5)


def test_with_many_known_texts_the_line_bends() -> None:
    theta, judge = judge_of(80, 7, error=0.05)
    true = 100 / (1 + np.exp(-0.7 * theta))
    texts = np.arange(0, 80, 2)
    assert len(texts) >= FEWEST_FOR_CURVE
    scale = mark_scale(judge, KnownMarks(texts, true[texts], np.eye(40)))
    straight = np.polyval(np.polyfit(judge.mean[texts], true[texts], 1), judge.mean[1::2])
    error = np.sqrt(np.mean((scale.marks.mean(axis=0) - true)[1::2] ** 2))
    assert error < 0.6 * np.sqrt(np.mean((straight - true[1::2]) ** 2))


def test_a_score_has_the_mark_it_came_from() -> None:
    theta, judge = judge_of(40, 8)
    texts = np.arange(20)
    scale = mark_scale(judge, KnownMarks(texts, 50 + 10 * theta[texts], np.eye(20)))
    np.testing.assert_allclose(scale.marks_at(scale.theta_at(62.0)), 62.0)


def test_the_threshold_rises_with_the_number_of_known_texts() -> None:
    assert [round(drift_threshold(n), 2) for n in (5, 10, 20)] == [2.56, 2.70, 2.88]


@given(st.integers(2, 40), st.lists(st.floats(0.01, 1), min_size=1, max_size=5))
def test_quotas_give_each_level_its_share(n, weights):
    shares = np.array(weights) / sum(weights)
    draws = np.random.default_rng(n).normal(size=(50, n)) + np.arange(n)
    names = [f"L{place}" for place in range(len(shares))]
    found = placed(cut_at_quotas(names, shares, draws))
    sizes = np.diff(np.round(np.cumsum([0, *shares]) * n)).astype(int)
    assert np.bincount(found.level, minlength=len(shares)).tolist() == sizes.tolist()
    np.testing.assert_allclose(found.probability.sum(axis=0), sizes)  # the same number in every draw
    np.testing.assert_allclose(found.probability.sum(axis=1), 1)


def test_levels_by_hand() -> None:
    marks = np.array([[81.0, 79, 40], [79, 79, 40], [83, 70, 60], [85, 80, 40]])
    found = placed(cut_at_marks(["A", "B", "C"], [80, 60], marks))
    assert found.level.tolist() == [0, 1, 2]
    assert found.probability.tolist() == [[0.75, 0.25, 0], [0.25, 0.75, 0], [0, 0.25, 0.75]]
    assert found.misgrade.tolist() == [0.25, 0.25, 0.25]
    assert found.expected_distance.tolist() == [0.25, 0.25, 0.25]
    by_text = placed(cut_at_texts(["A", "below A"], [1], marks))
    assert by_text.level.tolist() == [0, 0, 1]
    assert by_text.probability[1].tolist() == [1, 0]  # the boundary text itself
