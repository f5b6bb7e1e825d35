"""Reliabilities against their definitions, and where there is nothing to say."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from pairscale.models.bayes.fit import BTLFit, fit_btl_laplace
from pairscale.models.bayes.results import gathered
from pairscale.models.reliability import expected_rank_correlation, reliability_of_draws, two_groups


def test_the_reliability_of_draws_is_what_they_say() -> None:
    rng = np.random.default_rng(2)
    draws = rng.normal(size=12) + 0.7 * rng.normal(size=(400, 12))
    known = reliability_of_draws(draws)
    means = draws.mean(axis=0)
    squares = [np.corrcoef(means, draw)[0, 1] ** 2 for draw in draws]
    assert known.estimate == pytest.approx(np.mean(squares), rel=1e-12)
    assert (known.lower, known.upper) == pytest.approx(tuple(np.quantile(squares, [0.025, 0.975])), rel=1e-12)
    ranks = [stats.spearmanr(means, draw).statistic for draw in draws]
    assert known.rank_correlation == pytest.approx(np.mean(ranks), rel=1e-12)
    assert (known.without_outliers, known.outliers) == (None, ())
    assert reliability_of_draws(np.zeros((5, 3))).estimate is None


KINDS = ["two of 40 six below", "one of 20 six above", "t3", "two classes", "clean"]


def simulated(kind: str, seed: int) -> tuple[np.ndarray, BTLFit]:
    """True scores, and a fit of comparisons with near neighbours, as adaptive runs choose them."""
    rng = np.random.default_rng([20261118, KINDS.index(kind), seed])
    truth = rng.standard_t(3, 40) if kind == "t3" else rng.normal(size=20 if kind == "one of 20 six above" else 40)
    if kind == "two of 40 six below":
        truth[:2] = -6
    if kind == "one of 20 six above":
        truth[0] = 6
    if kind == "two classes":
        truth = np.repeat([-2.0, 2.0], 20)
    n = len(truth)
    rating = np.zeros(n)
    rows = []
    for number in range(24):
        order = np.argsort(rating + rng.normal(0, 2 / np.sqrt(1 + number), n))[number % 2 :]
        for pair in order[: len(order) // 2 * 2].reshape(-1, 2):
            first, second = rng.permutation(pair)
            won = rng.random() < 1 / (1 + np.exp(truth[second] - truth[first]))
            change = 1.5 / np.sqrt(1 + number) * (won - 1 / (1 + np.exp(rating[second] - rating[first])))
            rating[first] += change
            rating[second] -= change
            rows.append((first, second, first if won else second))
    ids = [f"t{at:02d}" for at in range(n)]
    table = pl.DataFrame(np.array(ids)[np.array(rows)], schema=["ID1", "ID2", "better_id"], orient="row")
    return truth, fit_btl_laplace(table, ids, "btl_e_b", seed=seed, prior_sd="learned")


def claims(kind: str, runs: int) -> tuple[np.ndarray, int]:
    """Claimed less true reliability of each run, without outliers where there are some; and how many runs have some."""
    errors = []
    flagged = 0
    for seed in range(runs):
        truth, fit = simulated(kind, seed)
        known = fit.reliability()
        means = fit.posterior.theta.mean(axis=0)
        kept = np.ones(len(truth), dtype=bool)
        kept[list(known.outliers)] = False
        claimed = known.without_outliers if known.outliers else known.estimate
        flagged += bool(known.outliers)
        errors.append(claimed - np.corrcoef(means[kept], truth[kept])[0, 1] ** 2)
    return np.array(errors), flagged


def test_texts_that_lost_everything_are_named_and_left_out() -> None:
    _, fit = simulated("two of 40 six below", 1)
    known = fit.reliability()
    assert known.outliers == (0, 1)
    assert any("t00" in text and "not told" in text for text in gathered([fit], []).notices)
    assert known.without_outliers is not None
    assert known.without_outliers < known.estimate - 0.02
    assert simulated("clean", 1)[1].reliability().outliers == ()


def test_the_order_within_two_classes_is_not_claimed() -> None:
    truth, fit = simulated("two classes", 1)
    known = fit.reliability()
    means = fit.posterior.theta.mean(axis=0)
    assert known.p_two_groups > 0.95
    assert known.estimate is not None
    assert known.rank_correlation is not None
    assert known.estimate == pytest.approx(np.corrcoef(means, truth)[0, 1] ** 2, abs=0.03)
    assert known.rank_correlation < expected_rank_correlation(fit.posterior.theta, means) - 0.05
    assert any("two groups" in text for text in gathered([fit], []).notices)
    for seed in range(3):
        assert simulated("clean", seed)[1].reliability().p_two_groups < 0.05


def test_two_groups_are_cut_where_the_scores_part() -> None:
    means = np.array([2.1, -2.0, 1.9, -2.2, 2.0, -1.8])
    rows = pl.DataFrame(
        [("a", "b"), ("c", "d"), ("e", "f"), ("a", "c"), ("b", "d"), ("f", "b"), ("e", "a"), ("c", "f")] * 4,
        schema=["ID1", "ID2"],
        orient="row",
    ).with_columns(better_id="ID1")
    fit = fit_btl_laplace(rows, list("abcdef"), "btl", seed=1, prior_sd="learned")
    groups = two_groups(means, fit.evidence.cells, fit.evidence.model)
    assert groups is not None
    upper = groups.draws.mean(axis=0) > groups.draws.mean()
    assert upper.tolist() == [True, False, True, False, True, False]
    spaced = np.linspace(-1, 1, 6) ** 3  # thin tails: one group
    assert two_groups(spaced, fit.evidence.cells, fit.evidence.model) is None


@pytest.mark.validate
@pytest.mark.parametrize("kind", KINDS)
def test_the_claim_is_the_truth_with_texts_far_outside(kind: str) -> None:
    errors, flagged = claims(kind, 60)
    print(f"\n{kind}: claimed - true {errors.mean():+.3f} ± {errors.std() / 60**0.5:.3f}, outliers in {flagged} of 60")
    assert abs(errors.mean()) <= 0.03
    if kind in ("clean", "two classes"):
        assert flagged <= 12
    if kind == KINDS[0]:
        assert flagged >= 48


@pytest.mark.validate
@pytest.mark.parametrize(("n", "sd"), [(20, 1.0), (60, 1.0), (20, 2.5)])
def test_the_interval_of_the_reliability_covers(n: int, sd: float) -> None:
    covered = []
    for seed in range(150):
        rng = np.random.default_rng([5, n, seed])
        truth = rng.normal(0, sd, n)
        size = n * (6 if n == 60 else 10)
        first = rng.integers(0, n, size)
        second = (first + rng.integers(1, n, size)) % n
        chance = 0.95 / (1 + np.exp(truth[second] - truth[first] - 0.2)) + 0.025
        ids = np.array([f"t{at:02d}" for at in range(n)])
        better = ids[np.where(rng.random(size) < chance, first, second)]
        rows = pl.DataFrame({"ID1": ids[first], "ID2": ids[second], "better_id": better})
        fit = fit_btl_laplace(rows, ids.tolist(), "btl_e_b", seed=seed, prior_sd="learned")
        known = fit.reliability()
        true = np.corrcoef(fit.posterior.theta.mean(axis=0), truth)[0, 1] ** 2
        covered.append(known.lower <= true <= known.upper)
    print(f"\nN = {n}, SD {sd}: {np.mean(covered):.3f} of 150 inside")
    assert 0.93 <= np.mean(covered) <= 0.97
