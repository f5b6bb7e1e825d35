"""A hundred million rows of ten thousand texts: what ``pairscale.fit`` takes beside Polars, which only groups them.

``python -m benchmarks.rows [ROWS] [OPPONENTS]`` writes Parquet files in pieces, then Polars and pairscale take turns,
each in a process of its own; the files are deleted at the end. OPPONENTS is how many others each text is compared
with: the number of different pairs is 10,000 times that, at most.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TEXTS = 10_000
PIECE = 5_000_000
TURNS = 2


def write_rows(folder: Path, rows: int, opponents: int) -> None:
    """Comparisons of random pairs that follow the model, in files of five million."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(1)
    theta = rng.normal(size=TEXTS)
    names = pl.Series([f"text-{at:05d}" for at in range(TEXTS)])
    steps = rng.choice(np.arange(1, TEXTS), size=opponents, replace=False)
    for begin in range(0, rows, PIECE):
        n = min(PIECE, rows - begin)
        one = rng.integers(TEXTS, size=n)
        two = (one + steps[rng.integers(opponents, size=n)]) % TEXTS
        swapped = rng.random(n) < 0.5
        one, two = np.where(swapped, two, one), np.where(swapped, one, two)
        won = rng.random(n) < 1 / (1 + np.exp(theta[two] - theta[one]))
        table = {"ID1": one, "ID2": two, "better_id": np.where(won, one, two)}
        frame = pl.DataFrame({name: names.gather(places) for name, places in table.items()})
        frame.write_parquet(folder / f"part-{begin // PIECE:04d}.parquet")


def measure(what: str, pattern: str) -> dict[str, Any]:
    import polars as pl

    import pairscale as ps

    wall, cpu = time.perf_counter(), time.process_time()
    if what == "polars":
        columns = ("ID1", "ID2", "better_id")
        different = pl.scan_parquet(pattern).group_by(columns).len().collect(engine="streaming").height
    else:
        fit = ps.fit(pattern)
        different = int(fit.theta["comparisons"].sum()) // 2
    return {
        "what": what,
        "different rows" if what == "polars" else "comparisons": different,
        "wall_s": round(time.perf_counter() - wall, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
        "memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
    }


def run(rows: int = 10_000_000, opponents: int = 100) -> list[dict[str, Any]]:
    found = []
    Path("build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rows-", dir="build") as folder:
        write_rows(Path(folder), rows, opponents)
        for _ in range(TURNS):
            for what in ("polars", "pairscale"):
                command = [sys.executable, "-m", "benchmarks.rows", what, f"{folder}/*.parquet"]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                found.append(json.loads(done.stdout.splitlines()[-1]))
                print(found[-1], flush=True)
    return found


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in {"polars", "pairscale"}:
        print(json.dumps(measure(*sys.argv[1:3])))
    else:
        run(*(int(float(value)) for value in sys.argv[1:3]))
