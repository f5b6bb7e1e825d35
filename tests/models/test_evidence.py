"""Copied rows and repeats are said, the spread of `map` is learned, and adaptively chosen pairs are named."""

import logging

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.models.data import as_results, count_pairs, read_outcomes
from pairscale.models.engines import learned_spread


def _table(seed, n_items=25, n_pairs=200, sd=1.0, distinct=True):
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, sd, n_items)
    i, j = np.triu_indices(n_items, 1)
    chosen = rng.choice(len(i), n_pairs, replace=not distinct)
    turned = rng.random(n_pairs) < 0.5
    first, second = np.where(turned, j[chosen], i[chosen]), np.where(turned, i[chosen], j[chosen])
    won = rng.random(n_pairs) < expit(theta[first] - theta[second])
    names = np.array([f"s{at:04}" for at in range(n_items)])
    table = {"object1": names[first], "object2": names[second], "result": won.astype(float)}
    return theta - theta.mean(), pl.DataFrame(table)


# Copies


def test_a_table_repeated_word_for_word_is_said_by_every_model(caplog):
    _, table = _table(1)
    ten = pl.concat([table] * 10)
    plain = ps.fit_bt_model(table)
    assert plain.notices == ()
    for fit in (ps.fit_bt_model(ten), ps.fit_elo_model(ten, seed=1)):
        [said] = [text for text in fit.notices if "word for word" in text]
        assert said.startswith("1,800 of 2,000 rows repeat another row word for word; each of them counts as")
    weighed = ps.fit_bt_model(ten, repeats="learned")
    assert "the 2,000 comparisons count as 20" in weighed.notices[0]
    assert weighed.repeat_agreement.rho > 0.99
    assert weighed.reliability == pytest.approx(plain.reliability, abs=0.02)
    assert ps.fit_bt_model(ten).reliability > plain.reliability + 0.15
    with caplog.at_level(logging.ERROR, logger="pairscale"):
        assert ps.fit_bt_model(ten, repeats=1.0).theta.equals(ps.fit_bt_model(ten, repeats=1.0).theta)


# Repeats in fit_bt_model


def test_repeats_given_as_a_number_weigh_every_pair():
    rows = [("a", "b", 1), ("a", "b", 0), ("b", "c", 1), ("c", "a", 1)]
    table = pl.DataFrame(rows, schema=["object1", "object2", "result"], orient="row")
    table = table.with_columns(pl.Series("light", [0.75, 0.75, 1, 1]), pl.Series("heavy", [2, 2, 1, 1]))
    fit = ps.fit_bt_model(table, engine="map", repeats=0.5)
    same = ps.fit_bt_model(table, engine="map", weights="light")
    assert fit.theta.equals(same.theta)
    assert (fit.repeat_agreement.rho, fit.repeat_agreement.n_repeats) == (0.5, 1)
    assert ps.fit_bt_model(table, engine="map").repeat_agreement is None
    both = ps.fit_bt_model(table, engine="map", repeats=0.5, weights="heavy")
    assert both.theta["comparisons"].sum() == pytest.approx(2 * (4 * 0.75 + 2))


# The learned spread of map


def test_the_learned_spread_is_where_the_evidence_is_largest():
    """Against the evidence by quadrature: two items have one difference, N(0, 2 s²)."""
    table = pl.DataFrame({"object1": ["a"] * 30, "object2": ["b"] * 30, "result": [1.0] * 24 + [0.0] * 6})
    found = learned_spread(count_pairs(read_outcomes(as_results(table)))[0])
    d = np.linspace(-30, 30, 6_001)
    log = 24 * np.log(expit(d)) + 6 * np.log(expit(-d))
    spread = np.exp(np.linspace(-3, 3, 301))
    evidence = [
        np.log(np.exp(log - log.max() - d**2 / (4 * s**2)).sum()) - np.log(s) - s**2 / (2 * 2.5**2) + np.log(s)
        for s in spread
    ]
    assert found == pytest.approx(spread[np.argmax(evidence)], rel=0.1)


@pytest.mark.slow
def test_intervals_of_many_wide_scores_cover():
    theta, table = _table(1, 1_500, 15_000, 1.5)
    fit = ps.fit_bt_model(table, engine="map", prior_sd="learned")
    items = fit.theta.sort("ID")
    inside = (items["lower"].to_numpy() <= theta) & (theta <= items["upper"].to_numpy())
    assert inside.mean() == pytest.approx(0.94, abs=0.02)
    assert fit.prior_sd == pytest.approx(1.5, rel=0.05)


# Pairs that were chosen adaptively


def test_intervals_on_adaptively_chosen_pairs_are_named(message_snapshot):
    _, table = _table(1)
    for engine in ("sirt", "mle", "firth", "map"):
        fit = ps.fit_bt_model(table, engine=engine, chosen="adaptive")
        assert "Then intervals are too narrow" in fit.notices[0]
    fit = ps.fit_bt_model(table, engine="map", prior_sd="learned", repeats="learned", chosen="adaptive")
    assert fit.reliability is None
    [said] = fit.notices
    assert said.startswith("no reliability")
    with pytest.raises(InputError) as refused:
        ps.fit_bt_model(table, chosen="random")
    message_snapshot(refused)
