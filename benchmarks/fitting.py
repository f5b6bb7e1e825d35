"""Bradley-Terry by sirt's engine, with exact standard errors, from a table of ids."""

from __future__ import annotations

import time

SIZES = ((1_000, 10_000), (1_000, 1_000_000), (3_000, 100_000))


def run() -> list[dict[str, float]]:
    import numpy as np
    import polars as pl

    import pairscale as ps

    rows = []
    for n_items, n_comparisons in SIZES:
        rng = np.random.default_rng(0)
        ability = rng.normal(size=n_items)
        first = rng.integers(0, n_items, n_comparisons)
        second = (first + rng.integers(1, n_items, n_comparisons)) % n_items
        won = rng.random(n_comparisons) < 1 / (1 + np.exp(ability[second] - ability[first]))
        names = pl.Series([f"S{n:05d}" for n in range(n_items)])
        data = pl.DataFrame(
            {"object1": names.gather(first), "object2": names.gather(second), "result": won.astype(float)}
        )
        cpu = time.process_time()
        fit = ps.fit_bt_model(data)
        cpu = time.process_time() - cpu
        truth = pl.DataFrame({"ID": names, "truth": ability})
        error = fit.theta.join(truth, on="ID").select(((pl.col("theta") - pl.col("truth")) / pl.col("se_mean")).std())
        rows.append(
            {
                "items": n_items,
                "comparisons": n_comparisons,
                "cpu_s": round(cpu, 2),
                "iterations": fit.fit.iterations,
                "sd_of_z": round(error.item(), 3),
            }
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
