"""What functions return is taken as results: by the readers, the models and the checks."""

import pytest

import pairscale as ps
from pairscale.core.errors import InputError

SAMPLES = ps.synthetic_essays(8, seed=1)
PAIRS = ps.make_pairs(SAMPLES)
JUDGE = ps.SimulatedJudge("theta_true", seed=2, bias=1.0)


@pytest.fixture(scope="module")
def forward():
    return ps.submit_pairs(PAIRS, JUDGE, progress=False)


@pytest.fixture(scope="module")
def reverse():
    return ps.judge(ps.sample_reverse_pairs(PAIRS, 1.0), judge=JUDGE, progress=False)


@pytest.fixture(scope="module")
def ranked():
    return ps.rank(SAMPLES, judge=JUDGE, max_comparisons=30, seed=1, progress=False)


def test_submitted_pairs_are_results(forward, reverse):
    table = forward.results
    assert ps.read_results(forward).equals(ps.read_results(table))
    assert ps.build_bt_data(forward).equals(ps.build_bt_data(table))
    assert ps.build_elo_data(forward).equals(ps.build_elo_data(table))
    assert ps.build_btl_results_data(forward).equals(ps.build_btl_results_data(table))
    assert ps.fit(forward).theta.equals(ps.fit(table).theta)
    assert ps.fit_bt_model(forward).theta.equals(ps.fit_bt_model(table).theta)
    consistency = ps.compute_reverse_consistency(forward, reverse)
    assert consistency.details.equals(ps.compute_reverse_consistency(table, reverse.results).details)
    assert ps.bias(forward, reverse).summary.equals(ps.bias(table, reverse.results).summary)


def test_results_of_both_orders_are_checked_for_bias(forward, reverse):
    both = ps.submit_pairs(
        pl.concat([PAIRS, ps.sample_reverse_pairs(PAIRS, 1.0)], how="diagonal"), JUDGE, progress=False
    )
    assert ps.bias(both).summary.equals(ps.bias(forward, reverse).summary)


