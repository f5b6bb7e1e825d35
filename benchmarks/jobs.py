"""Two workers beside one, for a simulation study and for a bootstrap: ``python -m benchmarks.jobs [NAME]``.

On a quiet machine the ratio of wall times is the figure. On a busy one it means nothing; the processor time of the
parent and of the busiest worker then says how fast it could be: ``possible`` is the time of one process divided by
their sum.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import psutil


def _spent(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def _measured(work: Callable[[int], Any], n_jobs: int) -> tuple[float, float, list[float]]:
    """Wall time, processor time of this process, and that of each worker."""
    me = psutil.Process()
    before = {child.pid: _spent(child) for child in me.children(recursive=True)}
    wall, own = time.perf_counter(), _spent(me)
    work(n_jobs)
    wall, own = time.perf_counter() - wall, _spent(me) - own
    workers = [_spent(child) - before.get(child.pid, 0.0) for child in me.children(recursive=True)]
    return wall, own, sorted(workers, reverse=True)


def run() -> list[dict[str, Any]]:
    import pairscale as ps
    from benchmarks.fitting import make_data

    data, _, _ = make_data(1_000, 100_000)
    works: dict[str, Callable[[int], Any]] = {
        "simulate": lambda n: ps.simulate(50, selector="random", seeds=16, n_jobs=n, progress=False),
        "bootstrap": lambda n: ps.fit(data, bootstrap=400, n_jobs=n),
    }
    rows = []
    for name, work in works.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        ps.simulate(
            8, selector="random", seeds=4, per_item=2, n_jobs=2, progress=False
        )  # the workers start, and import
        one, two = _measured(work, 1), _measured(work, 2)
        rows.append(
            {
                "work": name,
                "wall_1": round(one[0], 1),
                "wall_2": round(two[0], 1),
                "ratio": round(one[0] / two[0], 2),
                "cpu_1": round(one[1], 1),
                "cpu_2_parent": round(two[1], 1),
                "cpu_2_workers": [round(spent, 1) for spent in two[2][:2]],
                "possible": round(one[1] / (two[1] + two[2][0]), 2),
            }
        )
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    run()
