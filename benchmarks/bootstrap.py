"""A bootstrap of Bradley-Terry scores beside evalica's, in one run: 100 rounds of the same comparisons.

They take turns, and the least processor time of each counts, with one BLAS thread. evalica makes percentile intervals
here; its default, BCa, also fits once per comparison left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from benchmarks.fitting import ONE_THREAD, make_data

N_ITEMS, N_COMPARISONS, ROUNDS = 100, 10_000, 100
RUNS = 7


def measure() -> list[dict[str, float | str]]:
    import evalica

    import pairscale as ps

    data, _, _ = make_data(N_ITEMS, N_COMPARISONS)
    first, second = data["object1"].to_list(), data["object2"].to_list()
    winners = [evalica.Winner.X if won else evalica.Winner.Y for won in data["result"].to_list()]
    calls = {
        "pairscale sirt": lambda: ps.fit_bt_model(data, bootstrap=ROUNDS),
        "pairscale mle": lambda: ps.fit_bt_model(data, engine="mle", bootstrap=ROUNDS),
        "pairscale map": lambda: ps.fit_bt_model(data, engine="map", bootstrap=ROUNDS),
        "evalica bootstrap": lambda: evalica.bootstrap(
            evalica.bradley_terry, first, second, winners, n_resamples=ROUNDS, bootstrap_method="percentile"
        ),
    }
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(RUNS + 1):
        for name, call in calls.items():
            cpu = time.process_time()
            call()
            if turn:  # the first imports
                spent[name].append(time.process_time() - cpu)
    theirs = min(spent["evalica bootstrap"])
    return [
        {
            "call": name,
            "items": N_ITEMS,
            "comparisons": N_COMPARISONS,
            "rounds": ROUNDS,
            "cpu_s": round(min(spent[name]), 3),
            "as_fast_as_evalica": round(theirs / min(spent[name]), 1),
        }
        for name in calls
    ]


def run() -> list[dict[str, float | str]]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bootstrap"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD},
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    print(json.dumps(measure()))
