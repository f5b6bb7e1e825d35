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

from pairscale.models.bayes.logs import ITEM_LOG
from pairscale.models.bayes.posterior import Posterior, item_log, round_figures

THETA_LEVELS = {"p2.5": 0.025, "p5": 0.05, "p50": 0.5, "p95": 0.95, "p97.5": 0.975}


def make(n_items: int, n_draws: int = 40, chains: int = 4, seed: int = 0, digits: int | None = None) -> Posterior:
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_items) + 0.5 * rng.normal(size=(n_draws, chains, n_items))
    if digits is not None:
        theta = theta.round(digits)
    epsilon, b = rng.beta(2, 20, (n_draws, chains)), rng.normal(size=(n_draws, chains))
    rows = theta.reshape(-1, n_items)
    rows = rows - rows.mean(axis=1, keepdims=True)
    return Posterior(tuple(f"i{at:03d}" for at in range(n_items)), rows, epsilon.ravel(), b.ravel(), theta.shape[1])


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


def test_reliability_of_the_r_package() -> None:
    golden = json.loads((GOLDEN / "reliability_EAP.json").read_text())
    theta = np.array(golden["input"]["draws"])
    none = np.zeros(theta.shape[1], dtype=int)
    found = round_figures(Posterior(tuple(f"i{at}" for at in range(theta.shape[1])), theta), none, none, none)
    assert found["reliability_EAP"] == pytest.approx(golden["output"], rel=1e-12)
