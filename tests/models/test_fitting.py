"""The verb `ps.fit`: one function for all models, with our own defaults."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.core.notices import is_told


def _results(seed=1, sd=2.0, n_items=15, n=150, ties=0.0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, sd, n_items)
    a = rng.integers(0, n_items, n)
    b = (a + rng.integers(1, n_items, n)) % n_items
    won = np.where(rng.random(n) < expit(theta[a] - theta[b]), a, b)
    tied = rng.random(n) < ties
    names = np.array([f"s{k:02}" for k in range(n_items)])
    better = [None if t else str(names[w]) for w, t in zip(won, tied, strict=True)]
    outcome = np.where(tied, "tie", "win")
    return pl.DataFrame({"ID1": names[a], "ID2": names[b], "better_id": better, "outcome": outcome})


@pytest.fixture(scope="module")
def table():
    return _results(3, sd=3.0)


def test_bradley_terry_has_the_figures_of_r_by_default(table):
    fit = ps.fit(table)
    assert fit.theta.equals(ps.fit_bt_model(table, seed=1).theta)
    assert (fit.engine, fit.repeat_agreement) == ("sirt", None)


def test_map_learns_spread_and_repeats(table):
    fit = ps.fit(table, engine="map")
    same = ps.fit_bt_model(table, engine="map", prior_sd="learned", repeats="learned", seed=1)
    assert fit.theta.equals(same.theta)
    assert fit.prior_sd > 1.3
    assert fit.repeat_agreement.how == "learned"
    plain = ps.fit(table, engine="map", prior_sd=1, repeats="independent")
    assert plain.theta.equals(ps.fit_bt_model(table, engine="map").theta)


def test_elo(table):
    assert ps.fit(table, "elo", seed=3).elo.equals(ps.fit_elo_model(table, runs=100, seed=3).elo)
    assert ps.fit(table, "elo", runs=7).fit.runs == 7


def test_the_normal_approximation_learns_spread_and_repeats_and_says_what_it_is(table):
    fit = ps.fit(table, "bayes", engine="laplace")
    assert fit.fit.prior_sd.mean() > 1.3
    assert fit.fit.repeat_agreement.how == "learned"
    assert fit.round_log["repeat_agreement"][0] == fit.fit.repeat_agreement.rho
    assert fit.fit.model_variant == "btl_e_b"
    assert [text for text in fit.notices if "laplace" in text]
    assert fit.item_summary["degree"].sum() == 2 * table.height
    assert "laplace" in fit.round_log["mcmc_engine_version"][0]
    assert ps.summarize_items(fit).height == 15
    assert str(fit)


def test_ties_and_flips_are_evidence_for_the_bayesian_model_alone():
    table = _results(ties=0.3)
    flips = table.with_columns(outcome=pl.when(pl.col("outcome") == "tie").then(pl.lit("flip")).otherwise("outcome"))
    kept, flipped, dropped = (
        ps.fit(data, "bayes", engine="laplace", **how).fit for data, how in
        ((table, {}), (flips, {}), (table, {"ties": "drop"}))
    )  # fmt: skip
    assert kept.n_comparisons == flipped.n_comparisons == table.height
    np.testing.assert_array_equal(kept.posterior.theta, flipped.posterior.theta)
    assert dropped.n_comparisons == table.height - table["better_id"].null_count()
    won = (pl.col("better_id") == pl.col("ID1")).cast(pl.Float64)
    halves = table.select(object1="ID1", object2="ID2", result=won.fill_null(0.5))
    again = ps.fit(halves, "bayes", engine="laplace").fit
    np.testing.assert_array_equal(kept.posterior.theta, again.posterior.theta)
    assert ps.fit(table, engine="map").theta["comparisons"].sum() < 2 * dropped.n_comparisons + 1


def test_a_file_of_results_and_a_run_file(message_snapshot, table, tmp_path):
    path = tmp_path / "results.csv"
    table.write_csv(path)
    assert ps.fit(path).theta.equals(ps.fit(table).theta)
    samples = [{"ID": f"t{k}", "text": "word " * (k + 1)} for k in range(5)]
    run = tmp_path / "run.db"
    ps.submit_pairs(ps.make_pairs(samples), "lexical", run=run, progress=False)
    fit = ps.fit(run)
    assert fit.theta.height == 5
    assert not [text for text in fit.notices if "chosen" in text]
    with ps.open_run(run) as store:
        assert ps.fit(store).theta.equals(fit.theta)
    with pytest.raises(InputError) as refused:
        ps.fit(path, condition="lexical")
    message_snapshot(refused)


def test_a_run_file_knows_that_its_pairs_were_chosen_adaptively(tmp_path):
    run = tmp_path / "run.db"
    samples = [{"ID": f"t{k}", "text": "word " * (k + 1)} for k in range(8)]
    ps.adaptive_rank(samples, judge="lexical", n_steps=30, run=run, progress="none", fit_fn="laplace", seed=1)
    [said] = [text for text in ps.fit(run, separate=True).notices if "chosen by what earlier answers said" in text]
    assert 'model="bayes"' in said
    assert not [text for text in ps.fit(run, engine="map").notices if "earlier answers" in text]
    assert not [text for text in ps.fit(run, chosen="beforehand", separate=True).notices if "earlier" in text]


def test_copies_are_said_by_the_bayesian_model(table):
    ten = pl.concat([table[:60]] * 10)
    once = ps.fit(table[:60].unique(maintain_order=True), "bayes", engine="laplace")
    fit = ps.fit(ten, "bayes", engine="laplace")
    assert "word for word; they count by what they add" in fit.notices[0]
    naive = ps.fit(ten, "bayes", engine="laplace", repeats="independent")
    assert "each of them counts as new evidence" in naive.notices[0]
    reliability = [x.round_log["reliability_EAP"][0] for x in (once, fit, naive)]
    assert reliability[1] == pytest.approx(reliability[0], abs=0.05)
    assert reliability[2] > reliability[0] + 0.1


def test_a_prior_that_is_too_narrow_is_said():
    wide = _results(2, sd=4.0, n_items=20, n=600)
    fit = ps.fit_bayes_btl_mcmc(wide, model_variant="btl", mcmc={"chains": 4}, seed=1)
    assert "and their prior one of 1: the scores at both ends" in fit.notices[0]
    plain = ps.fit_bayes_btl_mcmc(_results(2, sd=0.7), model_variant="btl", mcmc={"chains": 4}, seed=1)
    assert plain.notices == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "rasch"}, "model must be 'bt', 'elo' or 'bayes', not 'rasch'"),
        ({"model": "elo", "engine": "map"}, "engine belongs to model='bayes' or model='bt', not to model='elo'"),
        ({"model": "bayes", "bootstrap": 10}, "bootstrap belongs to model='bt', not to model='bayes'; leave it out"),
        ({"model": "bayes", "weights": "w"}, "weights belongs to model='bt'"),
        ({"variant": "btl"}, "variant belongs to model='bayes'"),
        ({"runs": 5}, "runs belongs to model='elo'"),
        ({"prior_sd": "learned"}, "prior_sd belongs to model='bayes' and to engine='map', not to engine='auto'"),
        ({"model": "bayes", "engine": "map"}, "engine must be 'auto', 'sampler' or 'laplace', not 'map'"),
        ({"repeats": 2}, "repeats must be a number from 0 to 1, or 'independent' or 'learned', not 2"),
    ],
)
def test_options_that_do_not_belong_are_refused(table, given, message):
    with pytest.raises(InputError) as caught:
        ps.fit(table, **given)
    assert message in str(caught.value)


# What is said with the figures


def _judged(b: float, seed: int, *, better_first: bool = False, m: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng([20261118, seed])
    truth = rng.normal(0, 1.5, 20)
    first = rng.integers(0, 20, m)
    second = (first + rng.integers(1, 20, m)) % 20
    if better_first:
        better = truth[first] > truth[second]
        first, second = np.where(better, first, second), np.where(better, second, first)
    ids = np.array([f"t{at:02d}" for at in range(20)])
    won = rng.random(m) < 1 / (1 + np.exp(truth[second] - truth[first] - b))
    return pl.DataFrame({"ID1": ids[first], "ID2": ids[second], "better_id": ids[np.where(won, first, second)]})


@pytest.mark.parametrize(("b", "better_first", "is_said"), [(0, False, False), (0, True, False), (2, False, True)])
def test_an_order_effect_is_said(b: float, better_first: bool, is_said: bool) -> None:
    rows = [_judged(b, seed, better_first=better_first) for seed in range(6)]
    said = sum(any("position=True" in text for text in ps.fit(table).notices) for table in rows)
    assert said == (6 if is_said else 0)
    assert not any("surely" in text for text in ps.fit(rows[0], position=True).notices)
    won = pl.col("better_id") == pl.col("ID1")
    listed = rows[0].select(winner="better_id", loser=pl.when(won).then("ID2").otherwise("ID1"))
    assert not any("position=True" in text for text in ps.fit(listed).notices)  # the winner stands first in the list


def test_one_data_set_has_one_reliability(tmp_path: Path) -> None:
    judge = ps.SimulatedJudge("theta_true", seed=2)
    options = {"max_comparisons": 40, "seed": 1, "fit": "laplace", "progress": False}
    ps.rank(ps.synthetic_essays(10, seed=1), judge=judge, run=tmp_path / "r.db", **options)
    ps.export(tmp_path / "r.db", tmp_path / "r.csv")
    figures = []
    for source in (tmp_path / "r.db", tmp_path / "r.csv"):
        fit = ps.fit(source)
        assert fit.reliability is None
        assert any("no reliability" in text for text in fit.notices)
        figures.append(ps.fit(source, "bayes", engine="laplace").fit.reliability().estimate)
    assert figures[0] == figures[1]
    table = pl.read_csv(tmp_path / "r.csv")
    assert ps.fit(table.drop("pairs_chosen")).reliability is not None


@pytest.mark.parametrize(("lapse", "sd", "m", "is_known"), [(0.2, 1.0, 300, False), (0.0, 3.0, 1500, True)])
def test_a_prior_on_its_own_is_no_finding(lapse: float, sd: float, m: int, is_known: bool) -> None:
    rng = np.random.default_rng(20261118)
    truth = rng.normal(0, sd, 20)
    first = rng.integers(0, 20, m)
    second = (first + rng.integers(1, 20, m)) % 20
    ids = np.array([f"t{at:02d}" for at in range(20)])
    chance = (1 - lapse) / (1 + np.exp(truth[second] - truth[first])) + lapse / 2
    better = ids[np.where(rng.random(m) < chance, first, second)]
    fit = ps.fit(pl.DataFrame({"ID1": ids[first], "ID2": ids[second], "better_id": better}), "bayes", engine="laplace")
    row = fit.round_log.row(0, named=True)
    assert is_told(row, "epsilon") == is_known
    assert is_told(row, "b")
    assert fit.fit.spread_told
    few = ps.fit(pl.DataFrame({"ID1": ["a"], "ID2": ["b"], "better_id": ["a"]}), "bayes", engine="laplace")
    assert not is_told(few.round_log.row(0, named=True), "b")
    assert not few.fit.spread_told
