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


def test_an_adaptive_run_is_results_and_says_how_its_pairs_were_chosen(ranked, tmp_path):
    for source in (ranked, ranked.state):
        table = ps.read_results(source)
        history = ps.adaptive_results_history(ranked.state)
        assert ps.build_bt_data(source).equals(history)
        assert table.height == history.height == 30
    assert ps.fit(ranked).options["chosen"] == "adaptive"
    kept = ps.rank(SAMPLES, judge=JUDGE, run=tmp_path / "r.db", max_comparisons=30, seed=1, progress=False)
    assert ps.fit(kept).theta.equals(ps.fit(tmp_path / "r.db").theta)
    assert ps.fit(kept).theta.equals(ps.fit(ranked).theta)


def test_read_results_reads_what_fit_reads(tmp_path, forward):
    forward.results.write_parquet(tmp_path / "one.parquet")
    assert ps.read_results(str(tmp_path / "*.parquet")).equals(ps.read_results(forward))
    (tmp_path / "votes.csv").write_text("x,y,vote\na,b,x\n", "utf-8")
    named = ps.read_results(tmp_path / "votes.csv", a_col="x", b_col="y", winner_col="vote")
    assert named.select("ID1", "ID2", "better_id").rows() == [("a", "b", "a")]
    with pytest.raises(InputError, match="are not results"):
        ps.read_results(tmp_path / "votes.csv")
