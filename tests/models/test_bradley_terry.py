"""Bradley–Terry scores against R's sirt, against a slow and obvious solver, and against what must not matter.

``golden/cj-sessions``: 24 sessions and what sirt::btm gave for them (Kinnear, Jones & Davies 2025, osf.io/c9q3b).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pairscale.core.errors import FitError, InputError, TableError, UnknownNameError
from pairscale.models.bradley_terry import BTFit, fit_bt_model, summarize_bt_fit

GOLDEN = Path(__file__).parents[1] / "golden"
SESSIONS = sorted(path.stem for path in (GOLDEN / "cj-sessions").glob("*.csv"))
COLUMNS = ["ID", "theta", "se", "rank", "se_mean", "lower", "upper", "wins", "comparisons"]


def session(name: str) -> pl.DataFrame:
    return pl.read_csv(GOLDEN / "cj-sessions" / f"{name}.csv", infer_schema=False)


def rows(*games: tuple[str, str, float | None]) -> list[dict[str, object]]:
    return [{"object1": first, "object2": second, "result": result} for first, second, result in games]


def won(*games: str) -> list[dict[str, object]]:
    """``won("ab", "bc")``: a beat b, b beat c."""
    return rows(*((game[0], game[1], 1) for game in games))


def thetas(fit: BTFit) -> dict[str, float]:
    return dict(fit.theta.select("ID", "theta").iter_rows())


def random_games(n_items: int, n_games: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1.5, n_items)
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    result = rng.random(n_games) < 1 / (1 + np.exp(truth[second] - truth[first]))
    names = np.array([f"item {number}" for number in range(n_items)])
    return pl.DataFrame({"object1": names[first], "object2": names[second], "result": result.astype(float)})


# Against sirt


@pytest.mark.parametrize("name", SESSIONS)
def test_session_as_published(name: str) -> None:
    fit = fit_bt_model(session(name))
    published = pl.read_csv(
        GOLDEN / "cj-sessions" / "published" / name / "sirt_btm.csv", schema_overrides={"individual": pl.String}
    )
    both = fit.theta.join(fit.fit.scores, on="ID").join(
        published, left_on="ID", right_on="individual", suffix="_sirt", validate="1:1"
    )
    assert both.height == published.height == fit.theta.height
    assert both["wins"].to_list() == both["N1"].to_list()
    assert both["comparisons"].to_list() == both["Ntot"].to_list()
    assert np.abs(both["score"] - both["score_sirt"]).max() < 1e-9
    assert np.abs(both["theta"] - both["theta_sirt"]).max() < 0.02
    assert np.abs(both["se"] - both["se.theta"]).max() < 0.002
    summary = pl.read_csv(GOLDEN / "cj-sessions" / "published" / "summary.csv")
    ssr = summary.row(by_predicate=pl.col("judging_session") == name, named=True)["ssr"]
    assert fit.reliability == pytest.approx(ssr, abs=0.002)
    assert fit.fit.converged
    assert fit.fit.iterations < 20


# Against a slow and obvious solver


def slow_sirt(games: list[tuple[int, int]], n_items: int, *, half: bool, steps: int, change: float) -> list[float]:
    """``sirt::btm`` as it is written: diagonal Newton steps, then centring.

    With ``half``, half steps of one length: the same resting place, but no swinging around it.
    """
    wins, total = [0.0] * n_items, [0.0] * n_items
    for winner, loser in games:
        wins[winner] += 1
        total[winner] += 1
        total[loser] += 1
    score = [0.3 + (total[i] - 0.6) / total[i] * wins[i] for i in range(n_items)]
    theta = [0.8 * math.log(score[i] / (total[i] - score[i])) for i in range(n_items)]
    theta = [value - sum(theta) / n_items for value in theta]
    longest = 1.0
    for _ in range(steps):
        longest *= 1.0 if half else 0.98
        gradient, information = list(score), [1e-20] * n_items
        for game in games:
            for me, other in (game, game[::-1]):
                p = 1 / (1 + math.exp(theta[other] - theta[me]))
                gradient[me] -= p
                information[me] += p * (1 - p)
        step = [
            max(-longest, min(longest, g / i)) / (2 if half else 1) for g, i in zip(gradient, information, strict=True)
        ]
        moved = [value + by for value, by in zip(theta, step, strict=True)]
        moved = [value - sum(moved) / n_items for value in moved]
        largest = max(abs(new - old) for new, old in zip(moved, theta, strict=True))
        theta = moved
        if largest <= change:
            break
    return theta


@st.composite
def connected_games(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    n_items = draw(st.integers(2, 6))
    tree = [(item, draw(st.integers(0, item - 1))) for item in range(1, n_items)]
    item = st.integers(0, n_items - 1)
    more = draw(st.lists(st.tuples(item, item), max_size=12))
    flips = draw(st.lists(st.booleans(), min_size=len(tree), max_size=len(tree)))
    return n_items, [pair[::-1] if flip else pair for pair, flip in zip(tree, flips, strict=True)] + more


@pytest.mark.slow
@given(connected_games())
@settings(max_examples=60, deadline=None)
def test_same_as_the_slow_solver(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    n_items, games = drawn
    fit = fit_bt_model(rows(*((str(winner), str(loser), 1) for winner, loser in games)))
    ours = [thetas(fit)[str(item)] for item in range(n_items)]
    if fit.fit.converged:
        # The slow one needs thousands of steps where a pair is far apart.
        assume(max(abs(ours[first] - ours[second]) for first, second in games) < 4)
        slow = slow_sirt(games, n_items, half=True, steps=20_000, change=1e-11)
    else:
        slow = slow_sirt(games, n_items, half=False, steps=400, change=1e-4)
    assert ours == pytest.approx(slow, abs=1e-6)


def test_no_finite_root_is_said_and_named() -> None:
    # d beat c, and d and a beat b: the adjustment leaves d exactly one whole win over b, which no distance explains.
    fit = fit_bt_model(won("db", "ab", "dc"))
    assert not fit.fit.converged
    assert np.isfinite(fit.theta["theta"].to_numpy()).all()
    assert len(fit.notices) == 1
    assert fit.notices[0].startswith("no finite scores solve sirt's equations")
    assert "2 items ('a', 'b'); 2 items ('c', 'd')" in fit.notices[0]


# Standard errors


def brute_force_se_mean(fit: BTFit, games: pl.DataFrame) -> list[float]:
    theta, ids = thetas(fit), fit.theta["ID"].to_list()
    laplacian = np.zeros((len(ids), len(ids)))
    for first, second, _ in games.iter_rows():
        p = 1 / (1 + math.exp(theta[second] - theta[first]))
        direction = np.zeros(len(ids))
        direction[ids.index(first)], direction[ids.index(second)] = 1, -1
        laplacian += p * (1 - p) * np.outer(direction, direction)
    return [float(value) for value in np.sqrt(np.diag(np.linalg.pinv(laplacian)))]


def test_se_mean_is_the_pseudo_inverse() -> None:
    games = random_games(25, 150, seed=5)
    fit = fit_bt_model(games)
    assert fit.theta["se_mean"].to_list() == pytest.approx(brute_force_se_mean(fit, games), rel=1e-8)


# What must not matter


def test_row_order_does_not_matter_at_all() -> None:
    games = random_games(30, 300, seed=8)
    fit, other = fit_bt_model(games), fit_bt_model(games.sample(fraction=1, shuffle=True, seed=1))
    assert other.theta.equals(fit.theta)
    assert other.provenance.inputs == fit.provenance.inputs


# The result


def test_summary() -> None:
    fit = fit_bt_model(random_games(9, 70, seed=14))
    summary = summarize_bt_fit(fit)
    assert summary.columns == ["ID", "theta", "se", "rank", "engine", "reliability", *COLUMNS[4:]]
    assert summary.select(COLUMNS).equals(fit.theta)
    assert set(summary["engine"]) == {"sirt"}
    assert set(summary["reliability"]) == {fit.reliability}


# What is left out


def test_rows_without_a_winner_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    games = rows(
        ("a", "b", 1), ("b", "c", 1), ("c", "a", 0), ("a", "b", 0.5), ("a", "c", None), ("a", "d", float("nan"))
    )
    fit = fit_bt_model(games)
    said = "left out 3 of 6 rows: a tie, no winner, or a winner that is not of the pair"
    assert fit.notices == (said, "no score, because no comparison was decided: 'd'")
    assert caplog.messages == list(fit.notices)
    assert fit.unjudged == ("d",)
    assert fit.theta["comparisons"].sum() == 6
    assert fit_bt_model(games[:3]).theta.equals(fit.theta)


# Separate parts

PARTS = won("ab", "bc", "ca", "ac", "xy", "xy", "yx")


def test_parts_are_an_error_that_names_them() -> None:
    with pytest.raises(FitError) as caught:
        fit_bt_model(PARTS)
    assert str(caught.value) == (
        "the comparisons fall into 2 parts never compared with each other: 3 items ('a', 'b', 'c'); 2 items ('x', 'y')"
        ". Their scores share no scale: add comparisons between these parts, or fit each on its own with "
        '`unconnected="separate"`'
    )


def test_parts_can_be_fitted_separately(caplog: pytest.LogCaptureFixture) -> None:
    fit = fit_bt_model(PARTS, unconnected="separate")
    assert fit.components == (("a", "b", "c"), ("x", "y"))
    assert fit.theta.columns == [*COLUMNS, "component"]
    assert fit.theta["rank"].null_count() == 5
    assert fit.reliability is None
    assert fit.notices[0].endswith("Each has a scale of its own, so there are no ranks across them")
    assert repr(fit) == "<BTFit by sirt: 5 items, 7 comparisons, 2 separate parts>"
    kept = [name for name in COLUMNS if name != "rank"]
    for number, games in ((1, PARTS[:4]), (2, PARTS[4:])):
        alone = fit_bt_model(games).theta
        assert fit.theta.filter(component=number).select(kept).equals(alone.select(kept))
    caplog.clear()
    summary = summarize_bt_fit(fit, decreasing=False)
    assert summary.columns[-1] == "component"
    assert summary["ID"].to_list() == ["c", "b", "a", "y", "x"]
    assert caplog.messages == ["no ranks: the 2 parts of this fit are on scales of their own"]
    caplog.clear()
    summarize_bt_fit(fit, verbose=False)
    assert caplog.messages == []


# What cannot be used

OK = won("ab", "bc", "ca")


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([], FitError, "the results have no rows: there are no comparisons to fit"),
        (pl.DataFrame({"object1": [], "object2": [], "result": []}), FitError, "the results have no rows"),
        (rows(("a", "b", 0.5), ("a", "b", None)), FitError, "none of the 2 rows of the results can be used"),
        (rows(("a", "b", float("nan"))), FitError, "none of the 1 rows of the results can be used"),
        (won("aa", "aa"), FitError, "no comparison is between two different items"),
        (
            rows(("a", "b", 1), ("a", "b", 2), ("a", "b", -1)),
            TableError,
            "result is '2' in rows 2, 3; it must be 1 (the first won), 0 (the second) or 0.5 (a tie)",
        ),
        (rows(("a", "b", float("inf"))), TableError, "result is 'inf' in row 1"),
        ({"a": ["x"], "b": ["y"], "who": ["x"]}, TableError, "columns 'a', 'b', 'who' are not results"),
        ([{"object1": "a", "object2": "b"}], TableError, "columns 'object1', 'object2' are not results"),
        ([{"ID1": "a", "ID2": "b", "x": 1, "y": 1}], TableError, "columns 'ID1', 'ID2', 'x', 'y' are not results"),
        (rows(("a", "b", 1), (" ", "b", 1)), TableError, "'object1' is empty in row 2"),
        ("ab", TableError, "results is a str"),
    ],
)
def test_data_that_cannot_be_used(data: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        fit_bt_model(data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"engine": "BradleyTerry2"}, UnknownNameError, "there is no engine 'BradleyTerry2'; there are 'auto', 'sirt'"),
        ({"ids": ["a", "d"]}, InputError, "ids must be unique, and name every item of the results; missing: 'b', 'c'"),
        ({"ids": ["a", "b", "c", None]}, InputError, "ids: column 'ID' is empty in row 4"),
        ({"eps": 0.0}, InputError, "eps must be a number above 0 and at most 0.5, not 0.0"),
        ({"eps": math.nan}, InputError, "eps must be a number above 0 and at most 0.5, not nan"),
        ({"level": 95}, InputError, "level must be a number above 0 and below 1, not 95"),
        ({"unconnected": "drop"}, InputError, "unconnected must be 'error' or 'separate', not 'drop'"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        fit_bt_model(OK, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)
