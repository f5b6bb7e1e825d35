"""What functions return is taken as results: by the readers, the models and the checks."""

import json

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.core.tables import TIMES

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


def test_fit_statistics_of_a_fit_alone(message_snapshot, tmp_path, forward):
    forward.results.write_csv(tmp_path / "results.csv")
    fit = ps.fit(tmp_path / "results.csv")
    assert ps.fit_statistics(fit).items.equals(ps.fit_statistics(ps.fit(forward)).items)
    for wrong in (ps.fit(forward, "elo"), forward):
        with pytest.raises(InputError) as refused:
            ps.fit_statistics(wrong)
        message_snapshot(refused)


def test_fit_statistics_of_counted_comparisons(forward):
    rows = ps.build_bt_data(forward)
    counted = rows.with_columns(pl.lit(3).alias(TIMES))
    fit = ps.fit_bt_model(pl.concat([rows] * 3))
    whole, few = ps.fit_statistics(fit), ps.fit_statistics(ps.fit_bt_model(counted))
    assert few.items["comparisons"].equals(whole.items["comparisons"])
    assert few.items["infit"].to_list() == pytest.approx(whole.items["infit"].to_list(), rel=1e-12)
    assert few.items["outfit"].to_list() == pytest.approx(whole.items["outfit"].to_list(), rel=1e-12)


def test_the_shell_shows_fit_statistics(tmp_path, forward, capsys):
    from pairscale.cli import main

    def shell(*line):
        with pytest.raises(SystemExit):
            main(line)
        return capsys.readouterr()

    forward.results.write_csv(tmp_path / "results.csv")
    line = ["fit", str(tmp_path / "results.csv"), "--fit-statistics"]
    assert "infit  outfit" in shell(*line).out
    document = json.loads(shell(*line, "--json").out)
    expected = ps.fit_statistics(ps.fit(forward))
    assert [row["ID"] for row in document["fit_statistics"]["items"]] == expected.items["ID"].to_list()
    assert document["fit_statistics"]["judges"][0]["judge_id"] == "simulated"
    assert "--fit-statistics belongs to --model bt" in shell(*line, "--model", "elo").err


def test_agreement_takes_a_session_in_which_a_judge_met_a_pair_twice(caplog):
    rows = [("ann", "a", "b"), ("bob", "a", "b"), ("ann", "a", "c"), ("bob", "c", "a"), ("ann", "b", "a")]
    session = [{"judge": judge, "candidate_chosen": won, "candidate_not_chosen": lost} for judge, won, lost in rows]
    found = ps.agreement(session, n_boot=0)
    assert (found.n_units, found.table["estimate"][0]) == (2, 0.5)
    assert "answers left out because the judge had answered the same pair before: 1" in caplog.text
