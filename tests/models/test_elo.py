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

from pairscale.core.errors import FitError, InputError
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


def ratings(fit: EloFit) -> dict[str, float]:
    return dict(fit.elo.select("ID", "elo").iter_rows())


def random_games(n_items: int, n_games: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    names = np.array([f"item {number}" for number in range(n_items)])
    return pl.DataFrame({"winner": names[first], "loser": names[second]})


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


def test_long_one_sided_orders_reach_the_end_of_the_table() -> None:
    games = [(0, 1)] * 3_000 + [(1, 0)] * 3 + [(2, 0)] * 50 + [(3, 2)] * 200 + [(1, 3)] * 5
    rating, leads = slow_elo(games, 4, 100)
    order = np.array([winner * 4 + loser for winner, loser in games])
    assert module._rate_in_turn(order, 4, module._gains(100))[0].tolist() == rating
    assert max(leads) > len(module._gains(100)) // 2 - 5


def test_mean_and_deviation_over_orders() -> None:
    games = random_games(5, 30, seed=8)
    names = sorted({*games["winner"], *games["loser"]})
    places = sorted((names.index(winner), names.index(loser)) for winner, loser in games.iter_rows())
    codes = np.array([winner * 5 + loser for winner, loser in places])
    slow = []
    shares = []
    for run in range(4):
        order = np.random.default_rng([11, run]).permutation(codes)
        rating, leads = slow_elo([divmod(code, 5) for code in order.tolist()], 5, 100)
        slow.append(rating)
        apart = [lead for lead in leads if lead]
        right = [lead for lead in apart if lead > 0]
        shares.append((len(right) / len(apart), sum(right) / sum(map(abs, apart))))
    fit = fit_elo_model(games, runs=4, seed=11, start=1_500)
    table = fit.elo.sort("ID")
    assert table["elo"].to_list() == pytest.approx(1_500 + np.mean(slow, axis=0), abs=1e-9)
    assert table["elo_sd"].to_list() == pytest.approx(np.std(slow, axis=0, ddof=1), abs=1e-9)
    assert fit.fit.per_run.rows() == [pytest.approx(row, abs=1e-12) for row in shares]
    assert fit.reliability == pytest.approx(np.mean([row[0] for row in shares]), abs=1e-12)
    assert fit.reliability_weighted == pytest.approx(np.mean([row[1] for row in shares]), abs=1e-12)


# What must hold


@given(orders(), st.integers(0, 99))
def test_ratings_are_around_the_start(drawn: tuple[int, list[tuple[int, int]], int], seed: int) -> None:
    _, games, k = drawn
    fit = fit_elo_model([{"winner": a, "loser": b} for a, b in games], runs=2, k=k, start=1_000, seed=seed)
    assert fit.elo["elo"].mean() == pytest.approx(1_000)
    assert fit.elo["rank"].to_list() == fit.elo["elo"].rank("min", descending=True).to_list()
    assert fit.reliability is None or 0 <= fit.reliability <= 1


def test_order_of_rows_does_not_matter() -> None:
    games = random_games(9, 100, seed=1)
    again = fit_elo_model(games.sample(fraction=1, shuffle=True, seed=2), seed=3)
    assert again.elo.equals(fit_elo_model(games, seed=3).elo)
    assert again.provenance.inputs == fit_elo_model(games, seed=4).provenance.inputs


def test_a_single_game_says_nothing_of_reliability() -> None:
    fit = fit_elo_model(won("ab"))
    assert ratings(fit) == {"a": 50, "b": -50}
    assert fit.reliability is None
    assert fit.reliability_weighted is None
    assert "reliability none" in repr(fit)


def test_results_of_any_shape() -> None:
    results = [
        {"ID1": "a", "ID2": "b", "better_id": "b"},
        {"ID1": "a", "ID2": "c", "better_id": None},
        {"ID1": "b", "ID2": "a", "better_id": "b"},
        {"ID1": "d", "ID2": "d", "better_id": "d"},
    ]
    fit = fit_elo_model(results, seed=1)
    assert ratings(fit) == ratings(fit_elo_model(won("ba", "ba"), seed=1))
    assert [text.split(":")[0] for text in fit.notices] == ["left out 2 of 4 rows"]


@pytest.mark.parametrize(
    "options", [{"runs": 0}, {"runs": 1.5}, {"k": 0}, {"k": 0.5}, {"k": 10**7}, {"start": math.nan}, {"seed": -1}]
)
def test_options_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        fit_elo_model(won("ab"), **options)


@pytest.mark.parametrize("games", [[], won("aa"), [{"ID1": "a", "ID2": "b", "better_id": None}]])
def test_nothing_to_rate(games: list[dict[str, str]]) -> None:
    with pytest.raises(FitError, match="rows"):
        fit_elo_model(games)
