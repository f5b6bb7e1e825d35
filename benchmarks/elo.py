"""Elo ratings as EloChoice's, from a table of ids: few orders of many games, and many orders of few."""

from __future__ import annotations

import time

SIZES = ((10, 1_000_000, 1), (1_000, 1_000_000, 1), (1_000, 1_000_000, 5), (100_000, 1_000_000, 1), (100, 1_000, 1_000))


def run() -> list[dict[str, float]]:
    import numpy as np
    import polars as pl

    from pairscale.models.elo import fit_elo_model

    rows = []
    for n_items, n_games, runs in SIZES:
        rng = np.random.default_rng(0)
        ability = rng.normal(size=n_items)
        first = rng.integers(0, n_items, n_games)
        second = (first + rng.integers(1, n_items, n_games)) % n_items
        won = rng.random(n_games) < 1 / (1 + np.exp(ability[second] - ability[first]))
        names = pl.Series([f"S{n:06d}" for n in range(n_items)])
        winner, loser = np.where(won, first, second), np.where(won, second, first)
        data = pl.DataFrame({"winner": names.gather(winner), "loser": names.gather(loser)})
        cpu = time.process_time()
        fit = fit_elo_model(data, runs=runs, seed=0)
        cpu = time.process_time() - cpu
        truth = pl.DataFrame({"ID": names, "truth": ability})
        agreement = fit.elo.join(truth, on="ID").select(pl.corr("elo", "truth"))
        rows.append(
            {
                "items": n_items,
                "games": n_games,
                "runs": runs,
                "cpu_s": round(cpu, 2),
                "cpu_s_per_run": round(cpu / runs, 4),
                "correlation_with_truth": round(agreement.item(), 3),
            }
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
