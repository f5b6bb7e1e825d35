"""Reading and counting comparisons: ids as numbers, pieces of long columns, cells of many items, and seeds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pairscale.core.errors import InputError
from pairscale.models import _counts, _rows
from pairscale.models.bradley_terry import fit_bt_model


def random_games(n_items: int, n_games: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    names = pl.Series([f"t{n:03d}" for n in range(n_items)])
    result = (rng.random(n_games) < 0.5).astype(float)
    return pl.DataFrame({"object1": names.gather(first), "object2": names.gather(second), "result": result})


def test_many_ids_are_told_apart_even_where_their_hashes_meet() -> None:
    # 2,000 ids in the 512 slots that so few rows get: most of them share one.
    rng = np.random.default_rng(15)
    names = np.array([f"{n:x}-{'long' * (n % 5)}" for n in range(2_000)])
    first, second = rng.permutation(names), rng.permutation(names)
    coded = _rows._coded(pl.Series(first), pl.Series(second))
    assert coded is not None
    ids, one, two = coded
    assert list(ids) == sorted(names)
    assert (np.array(ids)[one] == first).all()
    assert (np.array(ids)[two] == second).all()
    assert _rows._coded(pl.Series(["a", "b"]), pl.Series(["b", " "])) is None


@pytest.mark.parametrize("engine", ["sirt", "mle"])
def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    games = random_games(30, 900, seed=16)
    whole = fit_bt_model(games, engine=engine)
    monkeypatch.setattr(_counts, "_PIECE", 7)
    monkeypatch.setattr(_rows, "_PIECE", 11)
    pieces = fit_bt_model(games, engine=engine)
    assert pieces.theta["theta"].to_numpy() == pytest.approx(whole.theta["theta"].to_numpy(), abs=1e-9)
    assert pieces.fit.log_likelihood == pytest.approx(whole.fit.log_likelihood, rel=1e-12)
    assert pieces.provenance.inputs == whole.provenance.inputs


def test_cells_of_many_items_need_longer_numbers() -> None:
    # 20,000 items take 15 bits each, more than 32 with the outcome.
    ring = [f"{n:05d}" for n in range(20_000)]
    games = pl.DataFrame({"winner": ring + ring[1:] + ring[:1], "loser": ring[1:] + ring[:1] + ring})
    fit = fit_bt_model(games, se=False)
    assert fit.theta["wins"].to_list() == [2] * len(ring)
    assert np.abs(fit.theta["theta"].to_numpy()).max() < 1e-9


@pytest.mark.parametrize("seed", ["x", -1, 1.5, [1, 2]])
def test_a_seed_that_is_none(message_snapshot, seed: object) -> None:
    with pytest.raises(InputError) as refused:
        fit_bt_model(random_games(5, 60, seed=17), bootstrap=5, seed=seed)
    message_snapshot(refused)
