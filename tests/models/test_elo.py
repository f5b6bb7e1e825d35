"""Elo ratings against EloChoice's published figures, against a slow and obvious loop, and against what must not matter.

``golden/cj-sessions``: 24 sessions, and what EloChoice gave for them over 1,000 random orders (Kinnear, Jones & Davies
2025, osf.io/c9q3b). Theirs are other random orders, so every figure is compared in units of its standard error.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.core.errors import FitError
from pairscale.models import elo as module
from pairscale.models.elo import EloFit, fit_elo_model

GOLDEN = Path(__file__).parents[1] / "golden" / "cj-sessions"
SESSIONS = sorted(path.stem for path in GOLDEN.glob("*.csv"))
RUNS_THERE = 1_000
# Items that differ less (36 and 56 points) than one order does from the next (100 and 92): a correlation above 0.99
# with other orders takes this many. Twelve seeds of twelve reach it; with 400 orders, four and ten of twelve.
MORE_RUNS = {"Spehar2016_expt2-Plain": 4_000, "Luckett2018_pizza": 4_000}


def won(*games: str) -> list[dict[str, str]]:
    """``won("ab", "bc")``: a beat b, b beat c."""
    return [{"winner": game[0], "loser": game[1]} for game in games]


# Against EloChoice


@cache
def session(name: str) -> EloFit:
    games = pl.read_csv(GOLDEN / f"{name}.csv", infer_schema=False)
    return fit_elo_model(games, runs=MORE_RUNS.get(name, 400), seed=20)


@cache
def published() -> dict[str, dict[str, float]]:
    summary = pl.read_csv(GOLDEN / "published" / "summary.csv")
    return {row["judging_session"]: row for row in summary.iter_rows(named=True)}


def distance(name: str, index: str, column: str) -> float:
    """How far a mean over our orders is from theirs, in standard errors of the difference."""
    per_run = session(name).fit.per_run[index].to_numpy()
    error = per_run.std(ddof=1) * math.sqrt(1 / len(per_run) + 1 / RUNS_THERE)
    return float((per_run.mean() - published()[name][column]) / error)


@pytest.mark.slow_except("*Plain")
@pytest.mark.parametrize("name", SESSIONS)
def test_session_as_published(name: str) -> None:
    fit = session(name)
    assert abs(distance(name, "reliability", "mean_eloR")) < 5
    assert abs(distance(name, "reliability_weighted", "mean_eloR_weighted")) < 5
    theirs = pl.read_csv(GOLDEN / "published" / name / "elochoice.csv", schema_overrides={"name": pl.String})
    both = fit.elo.join(theirs, left_on="ID", right_on="name", validate="1:1")
    assert both.height == fit.elo.height == theirs.height
    error = both["elo_sd"] * math.sqrt(1 / fit.fit.runs + 1 / RUNS_THERE)
    assert ((both["elo"] - both["value"]) / error).abs().max() < 6  # of up to 564 items
    assert np.corrcoef(both["elo"], both["value"])[0, 1] > 0.99


@pytest.mark.slow
def test_all_sessions_together() -> None:
    """24 distances of one figure have mean 0 and deviation 1: a bias too small for one session would show here."""
    for index, column in (("reliability", "mean_eloR"), ("reliability_weighted", "mean_eloR_weighted")):
        away = np.array([distance(name, index, column) for name in SESSIONS])
        assert len(away) == 24
        assert abs(away.mean()) < 4 / math.sqrt(24)
        assert away.std(ddof=1) < 1.7


# Against a slow and obvious loop


def slow_elo(order: list[tuple[int, int]], n_items: int, k: int) -> tuple[list[int], list[int]]:
    rating, leads = [0] * n_items, []
    for winner, loser in order:
        lead = rating[winner] - rating[loser]
        expected = 1 - 1 / (1 + 10 ** (lead / 400))
        gain = math.floor(k * (1 - expected) + 0.5)
        leads.append(lead)
        rating[winner] += gain
        rating[loser] -= gain
    return rating, leads


@st.composite
def orders(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], int]:
    n_items = draw(st.integers(2, 6))
    item = st.integers(0, n_items - 1)
    games = draw(st.lists(st.tuples(item, item).filter(lambda game: game[0] != game[1]), min_size=1, max_size=60))
    return n_items, games, draw(st.sampled_from([1, 2, 7, 32, 100, 101, 5_000]))


@given(orders())
def test_an_order_is_the_plain_loop(drawn: tuple[int, list[tuple[int, int]], int]) -> None:
    n_items, games, k = drawn
    rating, leads = slow_elo(games, n_items, k)
    order = np.array([winner * n_items + loser for winner, loser in games])
    gains = module._gains(k)
    in_turn = module._rate_in_turn(order, n_items, gains)
    assert in_turn[0].tolist() == rating
    assert in_turn[1].tolist() == leads


# What must hold


@pytest.mark.parametrize("games", [[], won("aa"), [{"ID1": "a", "ID2": "b", "better_id": None}]])
def test_nothing_to_rate(games: list[dict[str, str]]) -> None:
    with pytest.raises(FitError, match="no comparison"):
        fit_elo_model(games)
