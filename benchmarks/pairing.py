"""All pairs of 2,000 samples of 3 kB: two million rows, whose texts must be shared and not copied."""

from __future__ import annotations

import json
import random
import resource
import string
import subprocess
import sys
import time


def measure() -> list[dict[str, float | str]]:
    import polars as pl

    import pairscale as ps

    rng = random.Random(0)
    letters = string.ascii_letters + "    "
    samples = pl.DataFrame(
        {
            "ID": [f"S{n:04d}" for n in range(2_000)],
            "text": ["".join(rng.choices(letters, k=3_000)) for _ in range(2_000)],
        }
    )
    rows: list[dict[str, float | str]] = []
    pairs = samples
    for name, step in (
        ("make_pairs", ps.make_pairs),
        ("randomize_pair_order", lambda table: ps.randomize_pair_order(table, seed=1)),
        ("alternate_pair_order", ps.alternate_pair_order),
        ("sample_pairs (half)", lambda table: ps.sample_pairs(table, 0.5, seed=1)),
        ("sample_reverse_pairs (all)", lambda table: ps.sample_reverse_pairs(table, 1.0, seed=1)),
        ("summarize_pairs", ps.summarize_pairs),
    ):
        cpu, wall = time.process_time(), time.perf_counter()
        result = step(pairs)
        if name == "make_pairs":
            pairs = result
        rows.append(
            {
                "step": name,
                "rows": pairs.height,
                "wall_s": round(time.perf_counter() - wall, 2),
                "cpu_s": round(time.process_time() - cpu, 2),
                "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
        del result
    return rows


def run() -> list[dict[str, float | str]]:
    done = subprocess.run([sys.executable, "-m", "benchmarks.pairing"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    print(json.dumps(measure()))
