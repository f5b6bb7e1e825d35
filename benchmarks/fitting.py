"""Bradley-Terry by sirt's engine, from a table of ids: with standard errors, of the largest by random probes.

Every size runs in a process of its own, several times; the least processor time counts. One BLAS thread, for a second
one that waits for work counts as processor time.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

SIZES = ((1_000, 10_000), (1_000, 1_000_000), (3_000, 100_000), (10_000, 10_000_000))
RUNS = 5
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def make_data(n_items: int, n_comparisons: int) -> tuple[pl.DataFrame, pl.Series, np.ndarray]:
    """Comparisons of random pairs, the ids, and the true abilities."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    ability = rng.normal(size=n_items)
    first = rng.integers(0, n_items, n_comparisons)
    second = (first + rng.integers(1, n_items, n_comparisons)) % n_items
    won = rng.random(n_comparisons) < 1 / (1 + np.exp(ability[second] - ability[first]))
    names = pl.Series([f"S{n:05d}" for n in range(n_items)])
    data = pl.DataFrame({"object1": names.gather(first), "object2": names.gather(second), "result": won.astype(float)})
    return data, names, ability


def measure(n_items: int, n_comparisons: int) -> dict[str, float | str]:
    import polars as pl

    import pairscale as ps

    data, names, ability = make_data(n_items, n_comparisons)
    ps.fit_bt_model(data.head(1_000), unconnected="separate")  # what is imported at first use
    spent = []
    for _ in range(RUNS):
        cpu = time.process_time()
        fit = ps.fit_bt_model(data)
        spent.append(time.process_time() - cpu)
    truth = pl.DataFrame({"ID": names, "truth": ability})
    both = fit.theta.join(truth, on="ID")
    error = both.select(((pl.col("theta") - pl.col("truth")) / pl.col("se_mean")).std()).item()
    return {
        "items": n_items,
        "comparisons": n_comparisons,
        "se_mean": fit.provenance.settings["se_mean"],
        "cpu_s": round(min(spent), 2),
        "cpu_s_most": round(max(spent), 2),
        "iterations": fit.fit.iterations,
        "sd_of_z": round(error, 3),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def run() -> list[dict[str, float | str]]:
    rows = []
    for size in SIZES:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.fitting", *(str(int(number)) for number in size)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    return rows


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
