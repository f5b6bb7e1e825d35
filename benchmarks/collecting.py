"""What pairscale itself costs per judgement, and whether its memory stays flat.

Each size runs in a process of its own with an instant judge, so that everything measured is ours.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = (10_000, 100_000)


def measure(n_pairs: int) -> dict[str, float]:
    import numpy as np
    import polars as pl

    import pairscale as ps

    class Instant:
        condition = ps.Condition("instant")

        async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
            return ps.Verdict.win(1)

    rng = np.random.default_rng(0)
    n_items = 2_000
    first = rng.integers(0, n_items, n_pairs)
    second = (first + rng.integers(1, n_items, n_pairs)) % n_items
    samples = pl.DataFrame(
        {"ID": [f"S{i:04d}" for i in range(n_items)], "text": [f"{i} " * 600 for i in range(n_items)]}
    )
    pairs = pl.DataFrame(
        {
            "ID1": samples["ID"].gather(first),
            "text1": samples["text"].gather(first),
            "ID2": samples["ID"].gather(second),
            "text2": samples["text"].gather(second),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        cpu, wall = time.process_time(), time.perf_counter()
        ps.submit_pairs(pairs, Instant(), run=Path(folder) / "run.db", concurrency=64, progress=False)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = (Path(folder) / "run.db").stat().st_size
    return {
        "pairs": n_pairs,
        "cpu_ms_per_pair": round(cpu / n_pairs * 1e3, 3),
        "wall_s": round(wall, 1),
        "rss_before_mb": before // 1024,
        "rss_growth_mb": (after - before) // 1024,
        "file_mb": size // 1_000_000,
    }


def run() -> list[dict[str, float]]:
    rows = []
    for size in SIZES:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.collecting", str(size)], check=True, capture_output=True, text=True
        )
        rows.append(json.loads(done.stdout))
    return rows


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
