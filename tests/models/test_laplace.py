"""The normal approximation, beside the sampler that it stands in for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta
from tests.models.test_bayes import VARIANTS, simulated, table

from pairscale.models.bayes import normal
from pairscale.models.bayes.fit import fit_btl, fit_btl_laplace, judge_parameters
from pairscale.models.bayes.model import Answers, count_outcomes
from pairscale.models.bayes.normal import Target
from pairscale.models.bayes.posterior import round_figures
from pairscale.models.bayes.settings import MCMCSettings


def compared(n: int, m: int, seed: int) -> tuple[pl.DataFrame, list[str]]:
    return table(n, *simulated(n, m, seed)[1:])


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_posterior_is_that_of_the_sampler(variant: Any) -> None:
    rows, ids = compared(25, 250, seed=3)
    exact = fit_btl(rows, ids, variant, MCMCSettings(iter_sampling=1200), seed=1).posterior
    found = fit_btl_laplace(rows, ids, variant, seed=1).posterior
    off = (found.items.theta_mean - exact.items.theta_mean) / exact.items.theta_sd
    assert np.abs(off).max() < 0.05
    ratio = found.items.theta_sd / exact.items.theta_sd
    assert 0.9 < ratio.min() < ratio.max() < 1.1
    assert abs(ratio.mean() - 1) < 0.02
    counts = np.full(25, 20)
    one, two = (round_figures(each, counts, counts, counts) for each in (found, exact))
    assert one["reliability_EAP"] == pytest.approx(two["reliability_EAP"], abs=0.01)
    if "e" in variant.split("_"):
        assert found.epsilon is not None
        assert exact.epsilon is not None
        levels = np.quantile(exact.epsilon, [0.05, 0.5, 0.95])
        np.testing.assert_allclose(np.quantile(found.epsilon, [0.05, 0.5, 0.95]), levels, rtol=0.1, atol=0.004)
    if "b" in variant.split("_"):
        assert found.b is not None
        assert exact.b is not None
        assert found.b.mean() == pytest.approx(exact.b.mean(), abs=0.05 * exact.b.std())
        assert found.b.std() == pytest.approx(exact.b.std(), rel=0.1)
    assert (found.epsilon is None, found.b is None) == (exact.epsilon is None, exact.b is None)


def test_without_comparisons_the_prior_stays() -> None:
    rows = pl.DataFrame(schema={"ID1": pl.String, "ID2": pl.String, "better_id": pl.String})
    found = fit_btl_laplace(rows, [f"S{at}" for at in range(40)], seed=1).posterior
    np.testing.assert_allclose(found.items.theta_mean, 0, atol=1e-9)
    np.testing.assert_allclose(found.items.theta_sd, np.sqrt(39 / 40), rtol=0.05)
    assert found.b is not None
    assert found.b.std() == pytest.approx(0.3, rel=0.01)
    assert found.epsilon is not None
    levels = np.quantile(found.epsilon, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(levels, beta(2, 20).ppf([0.1, 0.5, 0.9]), rtol=0.06)


def test_what_no_comparison_ties_together_does_not_run_away() -> None:
    """A pair apart from the others, twice the same winner: with a wide prior its winner came out last (-1.0 ± 7.3)."""
    told = (
        "26>28 01<07 03<29 11>17 21>23 16>30 20>24 02<15 12>25 04<10 05>08 00<09 14<18 13<22 06<27 19>06 22>13 07>05 "
        "09>10 29>03 11>12 15<16 18>20 21>26 22<29 07<09 16>11 18<21 27<19 20<18"
    )
    sides = [(one[:2], one[3:], one[:2] if one[2] == ">" else one[3:]) for one in told.split()]
    rows = pl.DataFrame(sides, schema=["ID1", "ID2", "better_id"], orient="row")
    ids = [f"{number:02d}" for number in range(31)]
    items = fit_btl_laplace(rows, ids, "btl_e_b", seed=1, prior_sd="learned", repeats="learned").posterior.items
    assert items.theta_mean[29] > 1
    assert items.theta_mean[3] < 0
    assert max(items.theta_sd) < 3.5


# Many items


def whole(factor: Any) -> np.ndarray:
    """A precision, of which only the lower half is filled in."""
    lower = np.tril(factor.matrix())
    return np.asarray(lower + np.tril(lower, -1).T)


@pytest.mark.slow
@pytest.mark.parametrize("prior_sd", [1.0, "learned"])
def test_many_items_without_a_dense_matrix(monkeypatch: pytest.MonkeyPatch, prior_sd: Any) -> None:
    """The two ways agree; the second never sees a matrix of all pairs."""
    n = 1000
    rows, ids = compared(n, 10_000, seed=1)
    monkeypatch.setattr(normal, "DENSE", n)
    dense = fit_btl_laplace(rows, ids, "btl_e_b", seed=1, prior_sd=prior_sd).posterior
    monkeypatch.setattr(normal, "DENSE", n - 1)
    monkeypatch.delattr(normal.Dense, "matrix")
    found, again, other = (
        fit_btl_laplace(rows, ids, "btl_e_b", seed=seed, prior_sd=prior_sd).posterior for seed in (1, 1, 2)
    )
    assert np.corrcoef(found.items.theta_mean, dense.items.theta_mean)[0, 1] > 0.9999
    assert np.abs((found.items.theta_mean - dense.items.theta_mean) / dense.items.theta_sd).max() < 0.03
    ratio = found.items.theta_sd / dense.items.theta_sd
    assert abs(ratio.mean() - 1) < 0.01
    assert np.abs(ratio - 1).mean() < 0.015
    pairs = np.random.default_rng(1).integers(0, n, (2, 400))
    of_differences = [np.mean((one.theta[:, pairs[0]] - one.theta[:, pairs[1]]).std(axis=0)) for one in (found, dense)]
    assert of_differences[0] == pytest.approx(of_differences[1], rel=0.02)
    for one, two in ((found.epsilon, dense.epsilon), (found.b, dense.b)):
        assert one is not None
        assert two is not None
        assert one.mean() == pytest.approx(two.mean(), abs=0.15 * two.std())
        assert one.std() == pytest.approx(two.std(), rel=0.2)  # the evidence comes from slopes alone
    np.testing.assert_array_equal(found.theta, again.theta)
    np.testing.assert_allclose(found.items.theta_mean, other.items.theta_mean, atol=0.01)


@pytest.mark.parametrize("variant", VARIANTS)
def test_solutions_and_variances_without_a_dense_matrix(variant: Any) -> None:
    """With fractional counts, repeated pairs, upsets, and items that were never compared."""
    rows, ids = compared(40, 300, seed=7)
    model = judge_parameters(variant, 1.0)
    codes = {name: at for at, name in enumerate(ids)}
    first, second = (np.array([codes[name] for name in rows[side]]) for side in ("ID1", "ID2"))
    won = (rows["better_id"] == rows["ID1"]).cast(float).to_numpy()
    cells = count_outcomes(Answers(first, second, won, 45), position=model.position)
    cells = replace(cells, times=cells.times * np.random.default_rng(2).uniform(0.3, 1.7, len(cells.times)))
    dense, sparse = (Target(cells, model, dense=dense) for dense in (True, False))
    weight = np.random.default_rng(3).uniform(0.05, 0.3, len(cells.times))
    right = np.random.default_rng(4).normal(size=dense.size)
    exact, graph = (target.factor(weight, target.start()) for target in (dense, sparse))
    np.testing.assert_allclose(graph.solve(right, 1e-10), exact.solve(right), atol=1e-8)
    variance, spread = exact.variances()
    found = graph.variances()
    np.testing.assert_allclose(found[0], variance, rtol=0.2)
    assert abs(np.mean(found[0] / variance) - 1) < 0.03
    assert abs(np.mean(found[1] / spread) - 1) < 0.03
    noise, wanted = graph.noise(4000, np.random.default_rng(5))
    np.testing.assert_allclose(wanted, variance, rtol=0.03)
    covariance = np.linalg.inv(whole(exact))
    off = (noise @ noise.T / 4000 - covariance) / np.sqrt(np.outer(variance, variance))
    assert np.abs(off).max() < 0.1
    # Negative curvatures are taken off the other comparisons of the same items.
    weight[::10] *= -1
    bent = sparse.factor(weight, sparse.start())
    assert (bent.weight >= 0).all()
    np.testing.assert_allclose(bent.diagonal[:40], dense.factor(weight, dense.start()).diagonal[:40], rtol=0.5)
