"""Effective sample size per CPU second of winners, beside another commit: ``python -m benchmarks.ess OTHER/src``.

The two take turns, each in a process of its own, so that a busy machine slows both alike.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

SIZES = ((10, 100), (40, 400), (200, 2_000), (1_000, 10_000))
TURNS = 5

ONE = """
import json, logging, sys, time
import numpy as np
import polars as pl

logging.disable(logging.CRITICAL)
try:
    from pairscale.models.bayes.fit import fit_btl, fit_btl_laplace
except ImportError:
    from pairscale.models.bayes import fit_btl
    from pairscale.models.laplace import fit_btl_laplace

n, m = json.loads(sys.argv[1])
rng = np.random.default_rng(1)
ability = rng.normal(size=n)
first = rng.integers(0, n, m)
second = (first + rng.integers(1, n, m)) % n
chance = 0.95 / (1 + np.exp(ability[second] - ability[first] - 0.2)) + 0.025
names = pl.Series([f"S{at:05d}" for at in range(n)])
better = names.gather(np.where(rng.random(m) < chance, first, second))
rows = pl.DataFrame({"ID1": names.gather(first), "ID2": names.gather(second), "better_id": better})
fit_btl(rows[:20], names.to_list()[:], seed=1)
seconds, size = 0.0, 0.0
for seed in range(2 if n > 500 else 6):
    before = time.process_time()
    fit = fit_btl(rows, names.to_list(), seed=seed)
    seconds += time.process_time() - before
    size += fit.diagnostics.min_ess_bulk
before = time.process_time()
fit_btl_laplace(rows, names.to_list(), seed=1)
print(json.dumps([size / seconds, time.process_time() - before]))
"""


def measured(source: str | None, size: tuple[int, int]) -> tuple[float, float]:
    """Effective sample size per second of the sampler, and seconds of the normal approximation."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    if source is not None:
        environment["PYTHONPATH"] = source
    done = subprocess.run(
        [sys.executable, "-c", ONE, json.dumps(size)], capture_output=True, text=True, check=True, env=environment
    )
    rate, seconds = json.loads(done.stdout.splitlines()[-1])
    return rate, seconds


def run() -> list[dict[str, float | str]]:
    other = sys.argv[1] if len(sys.argv) > 1 else None
    rows: list[dict[str, float | str]] = []
    for size in SIZES:
        turns = [(measured(None, size), measured(other, size)) for _ in range(TURNS)]
        ours, theirs = (sorted(turn[side][0] for turn in turns)[TURNS // 2] for side in (0, 1))
        row: dict[str, float | str] = {"items": size[0], "ess_per_cpu_s": round(ours)}
        row["laplace_cpu_s"] = round(min(turn[0][1] for turn in turns), 3)
        if other is not None:
            row |= {"other": round(theirs), "ratio": round(ours / theirs, 2)}
        rows.append(row)
    return rows


if __name__ == "__main__":
    for found in run():
        print(found, flush=True)
