"""Formulas that are written out because scipy.stats takes most of a second to import, beside scipy.stats."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pairscale.checks import effect
from pairscale.models.bayes.convergence import by_rank

COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS)
def test_the_sign_test_is_the_binomial_test_of_a_fair_coin(counts):
    assert effect.sign_test(*counts) == pytest.approx(stats.binomtest(*counts).pvalue, rel=1e-9)


@pytest.mark.slow
@given(COUNTS, st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_of_a_share(counts, level):
    test = stats.binomtest(*counts)
    assert effect.wilson(*counts, level) == pytest.approx(tuple(test.proportion_ci(level, "wilson")), abs=1e-12)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=40))
def test_equal_values_share_a_rank(values):
    twice = by_rank(np.array([values], float), np.arange(2.0, 2 * len(values) + 1))[0]
    assert twice.tolist() == (2 * stats.rankdata(values)).tolist()


@pytest.mark.slow
def test_a_ranking_does_without_scipy_stats():
    code = "import sys, pairscale.adaptive, pairscale.simulation; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
