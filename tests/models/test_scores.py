"""Readable scores: beside draws, and the same for a run that is read again."""

import numpy as np
import pytest
from scipy.special import expit

import pairscale as ps
from pairscale.models.scores import SCORES, win_scores


def test_a_score_is_the_expected_share_of_wins() -> None:
    rng = np.random.default_rng(1)
    mean = rng.normal(0, 2, 30)
    sd = rng.uniform(0.2, 1.0, 30)
    draws = mean + sd * rng.standard_normal((4000, 30))
    shares = expit(draws[:, :, None] - draws[:, None, :]).sum(axis=2) - 0.5
    shares *= 100 / 29
    score, lower, upper = win_scores(mean, sd, mean - 1.96 * sd, mean + 1.96 * sd)
    np.testing.assert_allclose(score, shares.mean(axis=0), atol=0.8)
    np.testing.assert_allclose(lower, np.quantile(shares, 0.025, axis=0), atol=2.5)
    np.testing.assert_allclose(upper, np.quantile(shares, 0.975, axis=0), atol=2.5)
    assert score.mean() == pytest.approx(50)  # every comparison has one winner


def test_more_texts_than_are_compared_at_once() -> None:
    mean = np.linspace(-3, 3, 1201)
    score, lower, upper = win_scores(mean, np.zeros(1201), mean, mean)
    by_hand = 100 * (expit(mean[700] - mean).sum() - 0.5) / 1200
    assert (score[700], lower[700], upper[700]) == pytest.approx((by_hand,) * 3)


def test_a_run_that_is_read_again_has_the_same_scores(tmp_path) -> None:
    line = {"judge": "lexical", "max_comparisons": 40, "fit": "laplace", "progress": "none", "run": tmp_path / "run.db"}
    first = ps.rank(ps.example_writing_samples, **line).items
    assert first.columns[:5] == ["refit_id", "ID", *SCORES]
    assert (first["score_lower"] <= first["score"]).all()
    assert (first["score"] <= first["score_upper"]).all()
    again = ps.rank(ps.example_writing_samples, **line).items
    assert again.select(SCORES).equals(first.select(SCORES))
