"""Bootstrap rounds that are fitted together, beside the same rounds fitted one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.core.errors import FitError
from pairscale.models import _columns, _uncertainty
from pairscale.models._columns import connected_columns
from pairscale.models._counts import aggregate, connected_parts
from pairscale.models._engines import FitEngine
from pairscale.models._intervals import bootstrap_draws
from pairscale.models._rows import read_decided
from pairscale.models.bradley_terry import fit_bt_model


def games(n_items: int, n_games: int, seed: int, *, ties: bool = False, spread: float = 1.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    truth = spread * rng.normal(size=n_items)
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    won = (rng.random(n_games) < 1 / (1 + np.exp(truth[second] - truth[first] - 0.3))) * 1.0
    if ties:
        won[rng.random(n_games) < 0.2] = 0.5
    names = np.array([f"{at:03d}" for at in range(n_items)])
    return pl.DataFrame(
        {
            "object1": names[first],
            "object2": names[second],
            "result": won,
            "judge_id": [f"j{at}" for at in rng.integers(0, 25, n_games)],
            "w": rng.choice([0.5, 1.0, 2.5], n_games),
        }
    )


def asked_of(data: pl.DataFrame, **options: Any) -> tuple[Any, ...]:
    """What a fit with these options hands to the bootstrap: counts, units, root, engine, and the kind of draws."""
    caught: list[Any] = []

    def catch(counts: Any, units: Any, root: Any, engine: Any, *_: Any, smooth: bool, n_jobs: Any) -> Any:
        caught.append((counts, units, root, engine, smooth))
        return np.zeros((2, len(root.at.theta) + len(root.at.extra))), 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_uncertainty, "bootstrap_draws", catch)
        fit_bt_model(data, bootstrap=2, **options)
    (one,) = caught
    return tuple(one)


def drawn(asked: tuple[Any, ...], rounds: int, *, together: bool) -> tuple[Any, int, int]:
    """The draws, how many rounds failed, and how many were fitted by the engine alone."""
    *given_, smooth = asked
    alone: list[int] = []
    solve = FitEngine.solve
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FitEngine, "solve", lambda *args: (alone.append(1), solve(*args))[1])
        if not together:
            patch.setattr(FitEngine, "in_columns", lambda *_: None)
        draws, failed = bootstrap_draws(*given_, rounds, 5, smooth=smooth)
    return draws, failed, len(alone)


OPTIONS = {
    "plain": {},
    "position": {"position": True},
    "ties as half": {"ties": "half"},
    "davidson": {"ties": "davidson"},
    "davidson, position": {"ties": "davidson", "position": True},
    "clusters": {"cluster": "judge_id"},
    "weights": {"weights": "w"},
    "all": {"ties": "davidson", "position": True, "cluster": "judge_id", "weights": "w"},
    "repeats": {"repeats": "learned"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("engine", ["sirt", "mle", "map"])
def test_together_as_one_by_one(engine: str, options: dict[str, Any]) -> None:
    data = games(9, 500, 1, ties="ties" in options)
    asked = asked_of(data, engine=engine, **options)
    slow, slow_failed, fits = drawn(asked, 12, together=False)
    fast, fast_failed, alone = drawn(asked, 12, together=True)
    assert (fits, alone) == (12, 0)
    assert slow_failed == fast_failed == 0
    assert np.abs(slow - fast).max() < 1e-8
    assert np.ptp(slow, axis=0).min() > 0.01


def test_a_prior_that_is_learned_and_one_that_is_given() -> None:
    for prior in ("learned", 0.5):
        asked = asked_of(games(9, 60, 2), engine="map", prior_sd=prior)
        slow, fast = drawn(asked, 20, together=False), drawn(asked, 20, together=True)
        assert (slow[2], fast[2]) == (20, 0)
        assert np.abs(slow[0] - fast[0]).max() < 1e-8


def test_comparisons_of_an_item_with_itself() -> None:
    own = pl.DataFrame({"object1": ["001"] * 3, "object2": ["001"] * 3, "result": [1.0, 0.0, 1.0]})
    data = pl.concat([games(6, 200, 3).select("object1", "object2", "result"), own])
    asked = asked_of(data, engine="sirt")
    assert asked[0].self_pairs.sum() == 3
    slow, fast = drawn(asked, 20, together=False), drawn(asked, 20, together=True)
    assert fast[2] == 0
    assert np.abs(slow[0] - fast[0]).max() < 1e-8


def test_rounds_in_several_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in ("sirt", "mle"):
        asked = asked_of(games(9, 500, 1), engine=engine)
        whole = drawn(asked, 11, together=True)[0]
        with monkeypatch.context() as patch:
            patch.setattr(_columns, "_ROOM", 4 * len(asked[1].pair))
            lots, _, alone = drawn(asked, 11, together=True)
            slow = drawn(asked, 11, together=False)[0]
        assert alone == 0
        assert np.abs(lots - slow).max() < 1e-8
        assert len(np.unique(lots, axis=0)) == 11
        # The first lot has the seed of the whole; the others have their own.
        assert np.abs(lots[:4] - whole[:4]).max() < 1e-8
        assert np.abs(lots[4:] - whole[4:]).max() > 0.01


CASES = [
    (n_items, density, spread, engine, name)
    for n_items, density in ((3, 1.5), (6, 1.2), (7, 2.5), (8, 5.0))
    for spread in (0.0, 1.0, 4.0)
    for engine in ("sirt", "mle", "map")
    for name in OPTIONS
]
# A few go with the fast tests; 17 has no factor in common with the lengths above, so that all values are among them.
SOME = [at % 17 == 0 for at in range(len(CASES))]


@pytest.mark.parametrize(
    ("seed", "case"),
    [
        pytest.param(seed, case, id=f"{seed}", marks=() if some else pytest.mark.slow)
        for seed, (case, some) in enumerate(zip(CASES, SOME, strict=True))
        if some or seed % 3 == 1
    ],
)
def test_few_comparisons_fail_and_settle_alike(seed: int, case: tuple[int, float, float, str, str]) -> None:
    n_items, density, spread, engine, name = case
    options: dict[str, Any] = OPTIONS[name]
    data = games(n_items, int(n_items * density), seed, ties="ties" in options, spread=spread)
    found = []
    try:
        asked = asked_of(data, engine=engine, **options)
    except (FitError, ValueError):
        return  # no estimate, or parts that were never compared: nothing to resample
    for together in (False, True):
        try:
            found.append(drawn(asked, 10, together=together)[:2])
        except FitError as error:
            found.append(str(error))
    if isinstance(found[0], str) or isinstance(found[1], str):
        assert found[0] == found[1]
        return
    (slow, slow_failed), (fast, fast_failed) = found
    assert slow_failed == fast_failed
    assert np.abs(slow - fast).max() < 1e-8


def test_what_is_fitted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_columns(asked: tuple[Any, ...]) -> bool:
        counts, _, root, engine, _ = asked
        return engine.in_columns(counts, root) is not None

    data = games(6, 200, 4)
    assert in_columns(asked_of(data, engine="mle"))
    assert not in_columns(asked_of(data, engine="firth"))
    # Scores that are far apart by a chain of comparisons.
    chain = [(f"{at}", f"{at + 1}", won, w) for at in range(6) for won, w in ((1.0, 100.0), (0.0, 1.0))]
    far = pl.DataFrame(chain, schema=["object1", "object2", "result", "w"], orient="row")
    assert not in_columns(asked_of(far, engine="mle", weights="w"))
    # No finite scores solve sirt's equations.
    rows = [("d", "b", 1.0), ("a", "b", 1.0), ("d", "c", 1.0)]
    asked = asked_of(pl.DataFrame(rows, schema=["object1", "object2", "result"], orient="row"), engine="sirt")
    assert not asked[2].converged
    assert not in_columns(asked)
    monkeypatch.setattr(_columns, "FACTOR_LIMIT", 5)
    assert not in_columns(asked_of(data, engine="mle"))


@pytest.mark.slow
def test_a_position_effect_that_scores_can_stand_in_for_is_left_to_the_engine() -> None:
    # Each pair in one order only, and one cycle: without one of its pairs, a round cannot tell b from scores.
    rows = [("a", "b"), ("b", "c"), ("a", "c")]
    table = [(one, two, won) for one, two in rows for won in (1.0, 0.0, 1.0, 0.0)]
    asked = asked_of(pl.DataFrame(table, schema=["object1", "object2", "result"], orient="row"), position=True)
    slow, fast = drawn(asked, 200, together=False), drawn(asked, 200, together=True)
    assert slow[1] == fast[1] > 0
    assert fast[2] > 0
    assert np.abs(slow[0] - fast[0]).max() < 1e-8
    smooth = asked_of(
        pl.DataFrame(table, schema=["object1", "object2", "result"], orient="row"), position=True, engine="mle"
    )
    assert drawn(smooth, 10, together=True)[1:] == (0, 0)


@given(
    n_items=st.integers(2, 9),
    links=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=14),
    seed=st.integers(0, 100),
)
def test_connected_columns(n_items: int, links: list[tuple[int, int]], seed: int) -> None:
    pairs = [(f"{a % n_items}", f"{b % n_items}", 1.0) for a, b in links if a % n_items != b % n_items]
    if not pairs:
        return
    table = pl.DataFrame(pairs, schema=["object1", "object2", "result"], orient="row")
    counts = aggregate(read_decided(table))
    times = np.random.default_rng(seed).integers(0, 3, (len(counts.times), 7)).astype(float)
    if len(connected_parts(counts)) > 1:
        return  # such parts are fitted apart
    times[:, 0] = 1.0
    want = [len(connected_parts(counts, column > 0)) == 1 for column in times.T]
    assert connected_columns(counts, times).tolist() == want
