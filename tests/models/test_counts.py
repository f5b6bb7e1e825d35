"""Counting comparisons of many items, and seeds."""

from __future__ import annotations

import numpy as np
import polars as pl

from pairscale.models.bradley_terry import fit_bt_model


def random_games(n_items: int, n_games: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    names = pl.Series([f"t{n:03d}" for n in range(n_items)])
    result = (rng.random(n_games) < 0.5).astype(float)
    return pl.DataFrame({"object1": names.gather(first), "object2": names.gather(second), "result": result})


def test_a_ring_of_many_items() -> None:
    ring = [f"{n:05d}" for n in range(20_000)]
    games = pl.DataFrame({"winner": ring + ring[1:] + ring[:1], "loser": ring[1:] + ring[:1] + ring})
    fit = fit_bt_model(games, se=False)
    assert fit.theta["wins"].to_list() == [2] * len(ring)
    assert np.abs(fit.theta["theta"].to_numpy()).max() < 1e-9
