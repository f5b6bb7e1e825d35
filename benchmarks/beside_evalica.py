"""Bradley-Terry beside evalica, in one run: the same comparisons, ours with standard errors, evalica's without.

Each call gets what it takes fastest: pairscale a table of ids, evalica lists of them. They take turns, so that a busy
machine slows all of them; the least time of each counts. One BLAS thread, for a second one that waits counts as
processor time. ``evalica.bradley_terry`` maximises the likelihood, as engine ``mle`` does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from benchmarks.fitting import ONE_THREAD, make_data

SIZES = ((100, 10_000, 15), (1_000, 1_000_000, 5), (10_000, 3_000_000, 2))  # texts, comparisons, runs


def measure(n_items: int, n_comparisons: int, runs: int) -> list[dict[str, Any]]:
    import evalica
    import numpy as np
    import polars as pl

    import pairscale as ps

    data, names, _ = make_data(n_items, n_comparisons)
    won = pl.col("result") == 1
    games = data.select(
        winner=pl.when(won).then("object1").otherwise("object2"),
        loser=pl.when(won).then("object2").otherwise("object1"),
    )
    first = games["winner"].to_list()
    second = games["loser"].to_list()
    winners = [evalica.Winner.X] * len(first)
    calls = {
        "ps.fit(games)": lambda: ps.fit(games),
        'ps.fit(games, engine="mle")': lambda: ps.fit(games, engine="mle"),
        "evalica.bradley_terry(xs, ys, winners)": lambda: evalica.bradley_terry(first, second, winners),
    }
    wall: dict[str, list[float]] = {name: [] for name in calls}
    cpu: dict[str, list[float]] = {name: [] for name in calls}
    theta = {}
    for _ in range(runs + 1):  # the first turn imports
        for name, call in calls.items():
            began = time.perf_counter()
            used = time.process_time()
            result: Any = call()
            wall[name].append(time.perf_counter() - began)
            cpu[name].append(time.process_time() - used)
            if isinstance(result, ps.BTFit):
                scores = dict(zip(result.theta["ID"], result.theta["theta"], strict=True))
            else:
                scores = dict(zip(result.scores.index, np.log(result.scores), strict=True))
            theta[name] = np.array([scores[item] for item in names])
            theta[name] -= theta[name].mean()
    _, mle, evalicas = calls
    return [
        {
            "call": name,
            "items": n_items,
            "comparisons": n_comparisons,
            "wall_s": round(min(wall[name][1:]), 4),
            "cpu_s": round(min(cpu[name][1:]), 4),
            "times_evalica": round(min(wall[evalicas][1:]) / min(wall[name][1:]), 2),
            "difference_to_mle": float(f"{np.abs(theta[name] - theta[mle]).max():.1e}"),
        }
        for name in calls
    ]


def run() -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.beside_evalica"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD},
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    print(json.dumps([row for size in SIZES for row in measure(*size)]))
