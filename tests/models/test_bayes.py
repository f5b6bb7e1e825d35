"""The Bayesian model: exact density, exact posterior, calibrated, reproducible."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import expit
from validation.calibration import PARAMETERS, calibrated, uniform_p

from pairscale.core.errors import InputError
from pairscale.models.bayes.diagnostics import DiagnosticsGate
from pairscale.models.bayes.fit import fit_btl
from pairscale.models.bayes.hmc import LockStepHMC
from pairscale.models.bayes.results import fit_bayes_btl_mcmc
from pairscale.models.bayes.settings import MCMCSettings

VARIANTS = ("btl", "btl_e", "btl_b", "btl_e_b")


def simulated(n_items, n_pairs, seed, eps=0.05, b=0.2, spread=1.0):
    rng = np.random.default_rng(seed)
    theta = spread * rng.normal(size=n_items)
    first = rng.integers(0, n_items, n_pairs)
    second = (first + rng.integers(1, n_items, n_pairs)) % n_items
    won = rng.random(n_pairs) < (1 - eps) * expit(theta[first] - theta[second] + b) + eps / 2
    return theta, first, second, won


def table(n_items, first, second, won):
    names = pl.Series([f"S{n:03d}" for n in range(n_items)])
    columns = {"ID1": first, "ID2": second, "better_id": np.where(won, first, second)}
    return pl.DataFrame({name: names.gather(values) for name, values in columns.items()}), names.to_list()


def test_a_unit_normal_is_followed_without_error():
    sampler = LockStepHMC(
        lambda z, *, value: (-0.5 * np.sum(z**2, axis=0) if value else None, -z),
        np.zeros((50, 4)), np.random.default_rng(1), path=1.7, step=0.9,
    )  # fmt: skip
    for _ in range(100):
        chance, _ = sampler._transition()
        assert chance == pytest.approx(1.0, abs=1e-12)


def two_items(variant, wins):
    """Mean and standard deviation of theta_A - theta_B, eps and b for two items, by brute force on a grid."""
    delta = np.linspace(-7, 7, 281)[:, None, None]
    eps = np.linspace(1e-4, 0.6, 121)[None, :, None] if "e" in variant else np.zeros((1, 1, 1))
    b = np.linspace(-1.4, 1.4, 81)[None, None, :] if variant.endswith("b") else np.zeros((1, 1, 1))
    log = stats.norm(0, np.sqrt(2)).logpdf(delta) + 0 * eps + 0 * b
    if "e" in variant:
        log = log + stats.beta(2, 20).logpdf(eps)
    if variant.endswith("b"):
        log = log + stats.norm(0, 0.3).logpdf(b)
    for sign, won, lost in wins:  # +1: A stands first
        p = (1 - eps) * expit(sign * delta + b) + eps / 2  # the first wins
        first_won, first_lost = (won, lost) if sign > 0 else (lost, won)
        log = log + first_won * np.log(p) + first_lost * np.log1p(-p)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    return {
        name: (float((weight * grid).sum()), float(np.sqrt((weight * grid**2).sum() - (weight * grid).sum() ** 2)))
        for name, grid in (("delta", delta), ("eps", eps), ("b", b))
    }


@pytest.mark.slow_except("btl")
@pytest.mark.parametrize(
    "variant", [pytest.param(variant, marks=[pytest.mark.slow] * (variant != "btl_e_b")) for variant in VARIANTS]
)
def test_two_items_agree_with_brute_force(variant):
    wins = ((1, 14, 4), (-1, 9, 7))  # (who stands first, A won, A lost)
    rows = []
    for sign, won, lost in wins:
        pair = ("A", "B") if sign > 0 else ("B", "A")
        rows += [{"ID1": pair[0], "ID2": pair[1], "better_id": "A"}] * won
        rows += [{"ID1": pair[0], "ID2": pair[1], "better_id": "B"}] * lost
    fit = fit_bayes_btl_mcmc(rows, ids=["A", "B"], model_variant=variant, mcmc={"iter_sampling": 3000}, seed=1).fit
    exact = two_items(variant, wins)
    draws = {"delta": fit.posterior.theta[:, 0] - fit.posterior.theta[:, 1], "eps": fit.posterior.epsilon,
             "b": fit.posterior.b}  # fmt: skip
    assert (fit.posterior.epsilon is None, fit.posterior.b is None) == ("e" not in variant, not variant.endswith("b"))
    size = fit.diagnostics.min_ess_bulk
    for name, values in draws.items():
        if values is not None:
            mean, sd = exact[name]
            assert abs(values.mean() - mean) < 5 * sd / np.sqrt(size)
            assert values.std() == pytest.approx(sd, rel=0.06)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_same_seed_gives_the_same_draws(variant):
    rows, names = table(12, *simulated(12, 150, seed=4)[1:])
    settings = {"iter_warmup": 60, "iter_sampling": 100, "extend": 1}
    one, two = (fit_bayes_btl_mcmc(rows, names, variant, settings, seed=9).fit.posterior for _ in range(2))
    assert np.array_equal(one.theta, two.theta)
    other = fit_bayes_btl_mcmc(rows, names, variant, settings, seed=10).fit.posterior
    assert not np.array_equal(one.theta, other.theta)
    np.testing.assert_allclose(one.theta.mean(axis=1), 0, atol=1e-12)


@pytest.mark.slow
def test_it_draws_until_the_gate_passes_and_no_further_than_it_may():
    rows, names = table(30, *simulated(30, 400, seed=8)[1:])
    settings = MCMCSettings(iter_sampling=50, extend=20)
    drawn = {}
    for needed in (0.0, 600.0, 1500.0, 1e9):
        gate = DiagnosticsGate(needed, needed, max_rhat=5.0 if needed == 0 else 1.01)
        one, two = (fit_btl(rows, names, settings=settings, seed=1, gate=gate) for _ in range(2))
        assert np.array_equal(one.posterior.theta, two.posterior.theta)
        assert one.diagnostics.diagnostics_pass == (needed < 1e9)
        drawn[needed] = one.posterior.n_draws // settings.chains
    assert list(drawn.values()) == sorted(drawn.values())
    assert drawn[0.0] == 50 < drawn[600.0] < drawn[1500.0] < drawn[1e9] == 1000
    # A chain of draws is the beginning of a longer one: stopping changes none of them.
    kept = fit_btl(rows, names, settings=settings, seed=1, gate=DiagnosticsGate(0, 0, 5.0)).posterior.theta
    more = fit_btl(rows, names, settings=MCMCSettings(iter_sampling=90, extend=1), seed=1).posterior.theta
    assert np.array_equal(kept, more[: len(kept)])


def test_it_finds_the_truth_and_passes_its_gate():
    theta, *rest = simulated(40, 3000, seed=11, eps=0.1, b=0.3)
    rows, names = table(40, *rest)
    fit = fit_bayes_btl_mcmc(rows, names, seed=2)
    posterior = fit.fit.posterior
    assert fit.fit.diagnostics.diagnostics_pass, fit.fit.diagnostics.reasons
    z = (posterior.theta.mean(axis=0) - (theta - theta.mean())) / posterior.theta.std(axis=0)
    assert stats.chi2(40).sf(float(z @ z)) > 1e-4
    assert abs(posterior.b.mean() - 0.3) < 4 * posterior.b.std()
    assert abs(posterior.epsilon.mean() - 0.1) < 4 * posterior.epsilon.std()
    assert fit.item_summary["ID"].to_list() == names
    assert fit.round_log["reliability_EAP"][0] > 0.9


@pytest.mark.slow
def test_growing_subsets_are_warm_and_agree_with_cold_fits():
    rows, names = table(30, *simulated(30, 900, seed=6)[1:])
    fit = fit_bayes_btl_mcmc(rows, names, pair_counts=[900, 300], seed=3)
    assert fit.round_log["total_pairs_done"].to_list() == [300, 900]
    assert fit.round_log["new_pairs_since_last_refit"].to_list() == [300, 600]
    assert fit.item_summary["refit_id"].unique().sort().to_list() == [1, 2]
    assert [log["degree"].sum() for log in fit.item_log_list] == [600, 1800]
    assert fit.fits[1].provenance.settings["warm"]
    cold = fit_bayes_btl_mcmc(rows, names, seed=4).fit.posterior
    warm = fit.fit.posterior
    difference = (warm.theta.mean(axis=0) - cold.theta.mean(axis=0)) / cold.theta.std(axis=0)
    assert np.abs(difference).max() < 0.2
    sampled = fit_bayes_btl_mcmc(rows, names, pair_counts=[300], subset_method="sample", seed=3)
    assert sampled.fit.n_comparisons == 300


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_variant": "btl_x"}, "model_variant must be 'btl', .* or 'btl_e_b', not 'btl_x'"),
        ({"mcmc": {"iterations": 5}}, "no field 'iterations'"),
        ({"mcmc": {"chains": 0}}, "mcmc: chains must be a whole number of 1 or more, not 0"),
        ({"mcmc": {"iter_sampling": 100.5}}, "iter_sampling must be a whole number"),
        ({"mcmc": 5}, "mcmc must be a mapping"),
        ({"prior_sd": None}, "prior_sd"),
        ({"seed": -1}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"pair_counts": [3, 3.7]}, "each of pair_counts must be a whole number from 1 to 40, not 3.7"),
        ({"mcmc": {"target_accept": 1.5}}, "target_accept"),
        ({"prior_sd": -1}, "prior_sd"),
        ({"prior_sd": "big"}, "prior_sd"),
        ({"pair_counts": [5000]}, "each of pair_counts must be a whole number from 1 to 40, not 5000"),
        ({"subset_method": "last"}, "subset_method"),
        ({"ids": ["S000"]}, "name every item"),
        ({"ids": ["S000", "S000"]}, "unique"),
    ],
)
def test_bad_input_is_told_in_a_line(change, says):
    rows, _ = table(5, *simulated(5, 40, seed=1)[1:])
    with pytest.raises(InputError, match=says):
        fit_bayes_btl_mcmc(rows, **change)


def calibration(variant, sets, seed, prior_sd=1.0):
    """Per parameter: ranks of the truth among its draws, and whether 90 % intervals hold it; and how many draws."""
    rows = [calibrated(variant, number, seed, prior_sd) for number in range(sets)]
    names = [name for name in PARAMETERS if name in rows[0]]
    covered = pl.DataFrame({name: [row[f"{name}_covered"] for row in rows] for name in names})
    return pl.DataFrame(rows).select(names), covered, rows[0]["size"]


@pytest.mark.validate
@pytest.mark.parametrize("prior_sd", [1.0, "learned"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_simulation_based_calibration(variant, prior_sd):
    ranks, covered, size = calibration(variant, 500, seed=8, prior_sd=prior_sd)
    for name in ranks.columns:
        p, share = uniform_p(ranks[name].to_list(), size), covered[name].mean()
        print(f"\n{variant}, prior {prior_sd}, {name}: p of uniform ranks {p:.3f}, 90 % intervals cover {share:.3f}")
        assert p > 1e-4
        assert stats.binomtest(int(covered[name].sum()), covered.height, 0.9).pvalue > 1e-4
