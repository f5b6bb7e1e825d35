"""Split R-hat and bulk ESS against arviz-stats, and against what must not matter."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats
from hypothesis import given, settings
from hypothesis import strategies as st

from pairscale.models.bayes.convergence import rhat_and_ess


def oracle(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    by_chain = np.moveaxis(draws, 1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it divides by zero where a parameter is constant
        rhat = array_stats.rhat(by_chain, chain_axis=0, draw_axis=1, method="rank")
        ess = array_stats.ess(by_chain, chain_axis=0, draw_axis=1, method="bulk")
    return np.asarray(rhat), np.asarray(ess)


def rhat_of(draws: np.ndarray) -> np.ndarray:
    return rhat_and_ess(draws)[0]


def chains(n_draws: int, n_chains: int, n_params: int, phi: float = 0.0, seed: int = 0) -> np.ndarray:
    """Normal draws with autocorrelation ``phi``."""
    draws = np.random.default_rng(seed).normal(size=(n_draws, n_chains, n_params))
    for t in range(1, n_draws):
        draws[t] += phi * draws[t - 1]
    return draws


def assert_as_arviz(draws: np.ndarray) -> None:
    rhat, ess = rhat_and_ess(draws)
    expected_rhat, expected_ess = oracle(draws)
    np.testing.assert_allclose(rhat, expected_rhat, rtol=1e-10)
    np.testing.assert_allclose(ess, expected_ess, rtol=1e-10)


# Against arviz-stats


@pytest.mark.slow_except("*-3-*")
@pytest.mark.parametrize("n_draws", [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 37, 100, 501])
@pytest.mark.parametrize("n_chains", [2, 3, 8])
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.95, -0.5, -0.95])
def test_autocorrelated(n_draws: int, n_chains: int, phi: float) -> None:
    assert_as_arviz(chains(n_draws, n_chains, 12, phi, seed=n_draws))


def test_chains_that_did_not_meet() -> None:
    apart = chains(300, 4, 10, 0.5)
    apart[:, 0] += 3
    wide = chains(300, 4, 10, 0.5, seed=1)
    wide[:, 0] *= 5
    drifting = chains(300, 4, 10, 0.5, seed=2) + np.linspace(0, 3, 300)[:, None, None]
    for draws in (apart, wide, drifting):
        assert_as_arviz(draws)
        assert rhat_of(draws).min() > 1.05


@settings(max_examples=60)
@given(
    st.integers(4, 90),
    st.integers(2, 5),
    st.floats(-0.99, 0.99),
    st.sampled_from([1, 3, 12]),
    st.integers(0, 2**32),
)
def test_any_chains(n_draws: int, n_chains: int, phi: float, digits: int, seed: int) -> None:
    assert_as_arviz(chains(n_draws, n_chains, 3, phi, seed).round(digits))


# Where arviz-stats and Stan's posterior differ, or have nothing to say


def test_constant_has_no_figures() -> None:
    draws = chains(100, 4, 3)
    draws[:, :, 1] = 0.1
    rhat, ess = rhat_and_ess(draws)
    expected_rhat, expected_ess = oracle(draws)
    assert np.isnan(rhat).tolist() == np.isnan(ess).tolist() == [False, True, False]
    assert np.isnan(expected_rhat).tolist() == [False, True, False]
    assert expected_ess[1] == 400  # a sampler that is stuck would be perfect


# What must not matter
