"""The Bayesian fit with lapse and position: cold, and warm (from 95 % of the comparisons) to the gates near a stop."""

from __future__ import annotations

import time

SIZES = ((200, 2_000), (1_000, 10_000), (2_000, 40_000))


def run() -> list[dict[str, float | str]]:
    import numpy as np
    import polars as pl

    from pairscale.models.bayes.fit import fit_btl

    rows: list[dict[str, float | str]] = []
    for n_items, n_comparisons in SIZES:
        rng = np.random.default_rng(1)
        ability = rng.normal(size=n_items)
        first = rng.integers(0, n_items, n_comparisons)
        second = (first + rng.integers(1, n_items, n_comparisons)) % n_items
        chance = 0.95 / (1 + np.exp(ability[second] - ability[first] - 0.2)) + 0.025
        names = pl.Series([f"S{n:05d}" for n in range(n_items)])
        better = names.gather(np.where(rng.random(n_comparisons) < chance, first, second))
        data = pl.DataFrame({"ID1": names.gather(first), "ID2": names.gather(second), "better_id": better})
        earlier = fit_btl(data[: n_comparisons * 95 // 100], names.to_list(), seed=2)
        for kind, warm in (("cold", None), ("warm", earlier), ("warm, near stop", earlier)):
            cpu = time.process_time()
            fit = fit_btl(data, names.to_list(), seed=3, warm=warm, near_stop="near" in kind)
            cpu = time.process_time() - cpu
            found = fit.diagnostics
            rows.append(
                {
                    "items": n_items,
                    "comparisons": n_comparisons,
                    "start": kind,
                    "cpu_s": round(cpu, 1),
                    "draws": fit.posterior.n_draws,
                    "min_ess": round(found.min_ess_bulk),
                    "needed": round(found.ess_bulk_required),
                    "max_rhat": round(found.max_rhat, 4),
                    "divergences": found.divergences,
                    "ess_per_cpu_s": round(found.min_ess_bulk / cpu),
                }
            )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
