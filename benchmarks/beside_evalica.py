"""Bradley-Terry beside evalica, in one run: the same comparisons, ours with exact standard errors, evalica's without.

Each call gets what it takes fastest: pairscale a table of ids, evalica lists of them. They take turns, so that a busy
machine slows all of them; the least processor time of each counts. One BLAS thread, for a second one that waits counts
as processor time. ``evalica.bradley_terry`` maximises the likelihood, as engine ``mle`` does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from benchmarks.fitting import ONE_THREAD, make_data

N_ITEMS, N_COMPARISONS = 1_000, 1_000_000
RUNS = 7


def measure() -> list[dict[str, float | str]]:
    import evalica
    import numpy as np

    import pairscale as ps

    data, names, _ = make_data(N_ITEMS, N_COMPARISONS)
    first, second = data["object1"].to_list(), data["object2"].to_list()
    winners = [evalica.Winner.X if won else evalica.Winner.Y for won in data["result"].to_list()]
    calls = {
        "pairscale sirt": lambda: ps.fit_bt_model(data),
        "pairscale mle": lambda: ps.fit_bt_model(data, engine="mle"),
        "evalica bradley_terry": lambda: evalica.bradley_terry(first, second, winners),
    }
    spent: dict[str, list[float]] = {name: [] for name in calls}
    theta = {}
    for turn in range(RUNS + 1):
        for name, call in calls.items():
            cpu = time.process_time()
            result = call()
            cpu = time.process_time() - cpu
            if turn:
                spent[name].append(cpu)
                continue
            # The first turn imports; its scores are those of every turn.
            if isinstance(result, ps.BTFit):
                scores = dict(zip(result.theta["ID"], result.theta["theta"], strict=True))
            else:
                scores = dict(zip(result.scores.index, np.log(result.scores), strict=True))
            theta[name] = np.array([scores[item] for item in names])
            theta[name] -= theta[name].mean()
    return [
        {
            "call": name,
            "items": N_ITEMS,
            "comparisons": N_COMPARISONS,
            "se": "exact" if name.startswith("pairscale") else "none",
            "cpu_s": round(min(spent[name]), 3),
            "cpu_s_median": round(float(np.median(spent[name])), 3),
            "times_ours": round(min(spent[name]) / min(spent["pairscale sirt"]), 1),
            "largest_difference_to_mle": float(f"{np.abs(theta[name] - theta['pairscale mle']).max():.1e}"),
        }
        for name in calls
    ]


def run() -> list[dict[str, float | str]]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.beside_evalica"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD},
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    print(json.dumps(measure()))
