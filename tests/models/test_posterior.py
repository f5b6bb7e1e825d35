"""What is computed from draws, against loops over draws that anybody can read."""

from __future__ import annotations

import json
import math
import statistics
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import GOLDEN

from pairscale.core.errors import InputError
from pairscale.models.bayes import posterior as module
from pairscale.models.bayes.logs import ITEM_LOG, ROUND_LOG, round_log_row
from pairscale.models.bayes.posterior import Posterior, item_log, round_figures

THETA_LEVELS = {"p2.5": 0.025, "p5": 0.05, "p50": 0.5, "p95": 0.95, "p97.5": 0.975}


def make(n_items: int, n_draws: int = 40, chains: int = 4, seed: int = 0, digits: int | None = None) -> Posterior:
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_items) + 0.5 * rng.normal(size=(n_draws, chains, n_items))
    if digits is not None:
        theta = theta.round(digits)
    epsilon, b = rng.beta(2, 20, (n_draws, chains)), rng.normal(size=(n_draws, chains))
    return Posterior.from_chains([f"i{at:03d}" for at in range(n_items)], theta, epsilon, b)


def exposure(n_items: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first, second = np.random.default_rng(seed).integers(0, 9, (2, n_items))
    return first + second, first, second


def naive_ranks(draw: list[float]) -> list[float]:
    """Best first; equal items share the mean of their places."""
    places = sorted(draw, reverse=True)
    return [statistics.fmean(at + 1 for at, value in enumerate(places) if value == mine) for mine in draw]


def naive_items(posterior: Posterior) -> list[dict[str, float]]:
    draws = posterior.theta.tolist()
    ranks = [naive_ranks(draw) for draw in draws]
    top = min(20, max(1, posterior.n_items - 1))
    rows = []
    for at in range(posterior.n_items):
        theta, rank = [draw[at] for draw in draws], [one[at] for one in ranks]
        row = {"theta_mean": statistics.fmean(theta), "theta_sd": statistics.stdev(theta)}
        row |= {f"theta_{name}": float(np.quantile(theta, level)) for name, level in THETA_LEVELS.items()}
        row["rank_mean"] = statistics.fmean(rank)
        row |= {f"rank_{name}": float(np.quantile(rank, THETA_LEVELS[name])) for name in ("p2.5", "p50", "p97.5")}
        row["p_top"] = statistics.fmean(one <= top for one in rank)
        rows.append(row)
    return rows


def naive_figures(posterior: Posterior, first: list[int], second: list[int]) -> dict[str, Any]:
    items = naive_items(posterior)
    eap = posterior.items.theta_mean.tolist()  # rounding must not decide a tie differently here
    order = sorted(range(posterior.n_items), key=lambda at: (-eap[at], posterior.ids[at]))
    widths = [item["theta_p97.5"] - item["theta_p2.5"] for item in items]
    sds = [item["theta_sd"] for item in items]
    draws = posterior.theta.tolist()
    pairs = list(pairwise(order))
    p_adj = [statistics.fmean(draw[up] > draw[down] for draw in draws) for up, down in pairs]
    differences = [statistics.stdev(draw[up] - draw[down] for draw in draws) for up, down in pairs]
    top = min(20, posterior.n_items - 1)
    border = [items[at]["p_top"] for place, at in enumerate(order, 1) if abs(place - top) <= 2]
    entropy = [-sum(q * math.log(q) for q in (p, 1 - p) if q > 0) for p in border]
    between, within = statistics.variance(eap), statistics.fmean(sd**2 for sd in sds)
    return {
        "mean_degree": statistics.fmean(a + b for a, b in zip(first, second, strict=True)),
        "min_degree": min(a + b for a, b in zip(first, second, strict=True)),
        "pos_balance_sd": statistics.stdev(a - b for a, b in zip(first, second, strict=True)),
        "ci95_theta_width_mean": statistics.fmean(widths),
        "ci95_theta_width_median": statistics.median(widths),
        "ci95_theta_width_p90": np.quantile(widths, 0.9),
        "ci95_theta_width_max": max(widths),
        "near_tie_adj_frac": statistics.fmean(0.4 <= p <= 0.6 for p in p_adj),
        "near_tie_adj_count": sum(0.4 <= p <= 0.6 for p in p_adj),
        "p_adj_median": statistics.median(p_adj),
        "cov_trace_theta": sum(sd**2 for sd in sds),
        "cov_logdet_diag_theta": sum(2 * math.log(sd) for sd in sds),
        "post_sd_theta_p10": np.quantile(sds, 0.1),
        "post_sd_theta_p50": np.quantile(sds, 0.5),
        "post_sd_theta_p90": np.quantile(sds, 0.9),
        "top20_boundary_entropy_mean": statistics.fmean(entropy),
        "top20_boundary_entropy_p90": np.quantile(entropy, 0.9),
        "nn_diff_sd_mean": statistics.fmean(differences),
        "nn_diff_sd_p90": np.quantile(differences, 0.9),
        "reliability_EAP": between / (between + within),
        "theta_sd_eap": math.sqrt(between),
    }


# Against loops

SIZES = st.sampled_from([2, 3, 4, 7, 20, 21, 22, 23, 30])


@settings(max_examples=30)
@given(SIZES, st.integers(1, 12), st.integers(1, 4), st.sampled_from([None, 1, 0]), st.integers(0, 2**32))
def test_items_against_loops(n_items: int, half: int, chains: int, digits: int | None, seed: int) -> None:
    posterior = make(n_items, 2 * half, chains, seed, digits)
    log = item_log(posterior, 3, *exposure(n_items), [0] * n_items)
    for row, p_top, expected in zip(
        log.iter_rows(named=True), posterior.items.p_top, naive_items(posterior), strict=True
    ):
        assert p_top == pytest.approx(expected.pop("p_top"), abs=1e-12)
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-10, abs=1e-10)


@settings(max_examples=30)
@given(SIZES, st.integers(1, 12), st.sampled_from([None, 1]), st.integers(0, 2**32))
def test_figures_against_loops(n_items: int, half: int, digits: int | None, seed: int) -> None:
    posterior = make(n_items, 2 * half, 2, seed, digits)
    degree, first, second = exposure(n_items, seed)
    found = round_figures(posterior, degree, first, second)
    if found["cov_logdet_diag_theta"] is None:  # a rounded item that did not move
        assert posterior.items.theta_sd.min() == 0
        return
    expected = naive_figures(posterior, first.tolist(), second.tolist())
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = round_figures(make(37), *exposure(37)), item_log(make(37), 1, *exposure(37), [0] * 37)
    monkeypatch.setattr(module, "BLOCK", 500)
    parts = round_figures(make(37), *exposure(37)), item_log(make(37), 1, *exposure(37), [0] * 37)
    assert parts[0] == pytest.approx(whole[0], rel=1e-12)
    for name, dtype in ITEM_LOG.items():
        if dtype == pl.Float64:
            np.testing.assert_allclose(parts[1][name].fill_null(-1), whole[1][name].fill_null(-1), rtol=1e-12)


# The tables


def test_item_log_columns() -> None:
    posterior = make(4)
    log = item_log(posterior, 2, [3, 0, 2, 1], [3, 0, 1, 0], [0, 0, 1, 1], [1, 0, 1, 0])
    assert log.schema == pl.Schema(ITEM_LOG)
    assert (
        log.columns
        == (
            "refit_id ID theta_mean theta_sd theta_p2.5 theta_p5 theta_p50 theta_p95 theta_p97.5 rank_mean rank_p2.5 "
            "rank_p50 rank_p97.5 degree pos_count_A pos_count_B pos_A_rate rank rank_sd "
            "rank_p5 rank_p95 repeated_pairs adjacent_prev_prob adjacent_next_prob top_prob"
        ).split()
    )
    assert log["refit_id"].to_list() == [2] * 4
    assert log["ID"].to_list() == list(posterior.ids)
    assert log["pos_A_rate"].to_list() == [1.0, None, 0.5, 0.0]
    assert log["repeated_pairs"].to_list() == [1, 0, 1, 0]
    assert log["rank_mean"].sum() == pytest.approx(10)


def test_figures_are_columns_of_the_round_log() -> None:
    found = round_figures(make(5), *exposure(5))
    assert list(found) == [name for name in ROUND_LOG if name in found]
    row = round_log_row(refit_id=1, **found)
    assert row["b_p97.5"].item() == found["b_p97.5"]
    assert type(found["near_tie_adj_count"]) is int


# Ranks, ties and borders


def test_equal_items_share_their_rank_and_go_by_id() -> None:
    posterior = Posterior(("c", "a", "b"), np.zeros((4, 3)))
    assert posterior.items.rank_mean.tolist() == [2, 2, 2]
    assert posterior.items.order.tolist() == [1, 2, 0]
    found = round_figures(posterior, *exposure(3))
    assert found["reliability_EAP"] is None  # there is nothing to tell apart
    assert found["cov_logdet_diag_theta"] is None


def test_near_ties_at_the_limits() -> None:
    theta = np.array([[1.0, -1.0]] * 6 + [[-1.0, 1.0]] * 4)
    posterior = Posterior(("a", "b"), theta)
    assert round_figures(posterior, *exposure(2))["near_tie_adj_count"] == 1
    assert round_figures(posterior, *exposure(2), near_tie_p_high=0.59)["near_tie_adj_frac"] == 0
    assert round_figures(posterior, *exposure(2), near_tie_p_low=0.6)["near_tie_adj_frac"] == 1


def test_border_is_by_rank_not_by_input() -> None:
    # Items 0 to 29, worst first. The 20th and 21st by rank (10 and 9) change places in every second draw.
    theta = np.tile(np.arange(30.0) - 14.5, (10, 1))
    theta[::2, [9, 10]] = theta[::2, [10, 9]]
    found = round_figures(Posterior(tuple(f"{at:02d}" for at in range(30)), theta), *exposure(30))
    assert found["top20_boundary_entropy_mean"] == pytest.approx(2 * math.log(2) / 5)
    assert found["top20_boundary_entropy_p90"] == pytest.approx(math.log(2))


# A posterior


def test_from_chains_centres_and_keeps_the_order() -> None:
    rng = np.random.default_rng(0)
    theta, epsilon = rng.normal(3, 1, (5, 2, 3)), rng.random((5, 2))
    kept = theta.copy()
    posterior = Posterior.from_chains(["a", "b", "c"], theta, epsilon)
    assert np.abs(posterior.theta.mean(axis=1)).max() < 1e-15
    assert (posterior.n_draws, posterior.n_items, posterior.chains) == (10, 3, 2)
    assert posterior.epsilon[3] == epsilon[1, 1]
    assert posterior.b is None
    assert (theta == kept).all()
    again = posterior.theta.reshape(5, 2, 3)
    np.testing.assert_allclose(again - again[:, :, :1], theta - theta[:, :, :1], atol=1e-14)
    assert posterior.items is posterior.items


@pytest.mark.parametrize(
    "theta", [np.zeros((4, 3)), np.zeros(4), np.array([[0, 0], [np.inf, 0]])], ids=["items", "flat", "infinite"]
)
def test_what_is_no_posterior(theta: Any) -> None:
    with pytest.raises(InputError, match="theta must have a row for each draw"):
        Posterior(("a", "b"), theta)


def test_reliability_of_the_r_package() -> None:
    golden = json.loads((GOLDEN / "reliability_EAP.json").read_text())
    theta = np.array(golden["input"]["draws"])
    none = [0] * theta.shape[1]
    found = round_figures(Posterior(tuple(f"i{at}" for at in range(theta.shape[1])), theta), none, none, none)
    assert found["reliability_EAP"] == pytest.approx(golden["output"], rel=1e-12)
