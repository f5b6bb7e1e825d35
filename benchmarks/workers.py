"""Several workers on one run in PostgreSQL: their rate beside one worker's, and processor time beside SQLite's.

The server is set up from Debian's packages in a temporary folder. Each worker is a process of its own, whose judge
waits and answers, so that everything measured is ours.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LATENCY_S, CONCURRENCY, WORKERS = 0.5, 16, 4
SIZE, INSTANT_SIZE = 4_000, 10_000


def work(run: str, n_pairs: int, latency: float, concurrency: int) -> dict[str, float]:
    """One worker: what it asked, when its first and last answers came, and its processor time."""
    import asyncio

    import polars as pl

    import pairscale as ps

    moments: list[float] = []

    class Waiting:
        condition = ps.Condition("waiting")

        async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
            if latency:
                await asyncio.sleep(latency)
                moments.append(time.time())
            return ps.Verdict.win(1)

    n_items = 500
    first = [n % n_items for n in range(n_pairs)]
    second = [(n + 1 + n // n_items) % n_items for n in range(n_pairs)]
    texts = [f"{n} " * 600 for n in range(n_items)]
    pairs = pl.DataFrame(
        {
            "ID1": [f"S{n:04d}" for n in first],
            "text1": [texts[n] for n in first],
            "ID2": [f"S{n:04d}" for n in second],
            "text2": [texts[n] for n in second],
        }
    )
    cpu = time.process_time()
    result = ps.submit_pairs(pairs, Waiting(), run=run, concurrency=concurrency, progress=False)
    cpu = time.process_time() - cpu
    return {"asked": result.asked, "cpu_s": cpu, "first": min(moments, default=0.0), "last": max(moments, default=0.0)}


def started(run: str, *given: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.workers", run, *map(str, given)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def together(run: str, workers: int, *given: float) -> dict[str, Any]:
    """Several workers at once; the rate counts from the first answer to the last."""
    children = [started(run, *given) for _ in range(workers)]
    found = [json.loads(child.communicate()[0]) for child in children]
    asked = sum(one["asked"] for one in found)
    busy = [one for one in found if one["asked"]]
    seconds = max(one["last"] for one in busy) - min(one["first"] for one in busy)
    ms = round(sum(one["cpu_s"] for one in found) / asked * 1e3, 3)
    return {"asked": asked, "per_second": round(asked / seconds, 1) if seconds else None, "cpu_ms_per_pair": ms}


def run() -> list[dict[str, Any]]:
    from tools.postgres import PostgresServer

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, PostgresServer() as server:
        for turn in range(3):
            for store in ("SQLite", "PostgreSQL"):
                where = server.create(f"instant{turn}") if store == "PostgreSQL" else str(Path(folder) / f"{turn}.db")
                rows.append({"store": store, "workers": 1} | together(where, 1, INSTANT_SIZE, 0, 64))
        for workers in (1, WORKERS):
            found = together(server.create(f"waiting{workers}"), workers, SIZE, LATENCY_S, CONCURRENCY)
            rows.append({"store": "PostgreSQL", "workers": workers} | found)
    return rows


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(
            json.dumps(work(sys.argv[1], *(kind(x) for kind, x in zip((int, float, int), sys.argv[2:], strict=True))))
        )
    else:
        print(json.dumps(run(), indent=2))
