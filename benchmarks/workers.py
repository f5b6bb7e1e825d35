"""Several workers on one run in PostgreSQL: their rate beside one worker's, and processor time beside SQLite's.

The server is set up from Debian's packages in a temporary folder. Each worker is a process of its own. Given pairs
(``judge``) are asked of the provider simulator through HTTP, which counts the requests. In an adaptive ranking
(``rank``), where one process chooses and all answer, and an A/B comparison (``ab``), the judge waits and answers in the
process.
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
SIZES, INSTANT_SIZE, HTTP_SIZE = {"rank": 1_600, "ab": 1_600}, 10_000, 20_000
N_TEXTS = 500


def work(verb: str, run: str, size: int, latency: float, concurrency: int) -> dict[str, float]:
    """One worker: what it asked, when its first and last answers came, and its processor time."""
    import asyncio

    import pairscale as ps

    moments: list[float] = []

    class Waiting:
        condition = ps.Condition("waiting")

        async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
            if latency:
                await asyncio.sleep(latency)
            moments.append(time.time())
            return ps.Verdict.win(1 if str(pair.first["text"]) > str(pair.second["text"]) else 2)

    if verb.startswith("http"):
        judge_args = {"base_url": f"{verb}/v1", "api_key": "none-at-all", "cache": False}
        judge = ps.make_judge("openai:gpt-4.1", judge_args=judge_args)
        asked = ps.submit_pairs(_pairs(size), judge, run=run, concurrency=concurrency, progress=False).asked
        return {"asked": asked or 0}
    cpu = time.process_time()
    asking: dict[str, Any] = {"judge": Waiting(), "run": run, "concurrency": concurrency, "progress": False}
    if verb == "judge":
        ps.submit_pairs(_pairs(size), asking.pop("judge"), **asking)
    elif verb == "rank":
        samples = [{"ID": f"S{n:04d}", "text": f"{n:04d} " * 600} for n in range(N_TEXTS)]
        ps.rank(samples, max_comparisons=size, reliability=1.0, **asking)
    else:
        a, b = ({str(n): f"{side} {n} " * 300 for n in range(size // 2)} for side in "AB")
        ps.ab(a, b, criterion="better", **asking)  # in both orders
    cpu = time.process_time() - cpu
    return {"asked": len(moments), "cpu_s": cpu, "first": min(moments, default=0.0), "last": max(moments, default=0.0)}


def _pairs(size: int) -> Any:
    import polars as pl

    first = [n % N_TEXTS for n in range(size)]
    second = [(n + 1 + n // N_TEXTS) % N_TEXTS for n in range(size)]
    texts = [f"{n} " * 600 for n in range(N_TEXTS)]
    sides = {"1": first, "2": second}
    return pl.DataFrame(
        {f"ID{side}": [f"S{n:04d}" for n in there] for side, there in sides.items()}
        | {f"text{side}": [texts[n] for n in there] for side, there in sides.items()}
    )


def started(verb: str, run: str, *given: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.workers", verb, run, *map(str, given)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def together(verb: str, run: str, workers: int, *given: float) -> dict[str, Any]:
    """Several workers at once; the rate counts from the first answer to the last."""
    children = [started(verb, run, *given) for _ in range(workers)]
    found = [json.loads(child.communicate()[0]) for child in children]
    asked = sum(one["asked"] for one in found)
    busy = [one for one in found if one["asked"]]
    seconds = max(one["last"] for one in busy) - min(one["first"] for one in busy)
    ms = round(sum(one["cpu_s"] for one in found) / asked * 1e3, 3)
    return {
        "verb": verb,
        "asked": asked,
        "per_second": round(asked / seconds, 1) if seconds else None,
        "cpu_ms_per_pair": ms,
    }


def through_http(run: str, workers: int, size: int, latency: float, concurrency: int) -> dict[str, Any]:
    """The same against the provider simulator, by its own count of requests."""
    from pairscale.testing import ProviderSimulator

    with ProviderSimulator(latency_s=latency, keep=10) as server:
        children = [started(server.url, run, size, latency, concurrency) for _ in range(workers)]
        first = last = seen = 0
        while any(child.poll() is None for child in children):
            time.sleep(0.02)
            if server.served > seen:
                last, first, seen = time.monotonic(), first or time.monotonic(), server.served
        shares = [json.loads(child.communicate()[0])["asked"] for child in children]
        assert server.served == sum(shares) == size, (server.served, shares)  # nothing was asked twice
    return {
        "verb": f"judge, HTTP, {latency * 1e3:.0f} ms",
        "asked": size,
        "per_second": round(size / (last - first), 1),
    }


def run() -> list[dict[str, Any]]:
    from tools.postgres import PostgresServer

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, PostgresServer() as server:
        for turn in range(3):
            for store in ("SQLite", "PostgreSQL"):
                where = server.create(f"instant{turn}") if store == "PostgreSQL" else str(Path(folder) / f"{turn}.db")
                rows.append({"store": store, "workers": 1} | together("judge", where, 1, INSTANT_SIZE, 0, 64))
        for latency in (0.05, LATENCY_S):
            for workers in (1, WORKERS):
                where = server.create(f"http{workers}_{latency * 1e3:.0f}")
                found = through_http(where, workers, HTTP_SIZE, latency, CONCURRENCY)
                rows.append({"store": "PostgreSQL", "workers": workers} | found)
        for verb, size in SIZES.items():
            for workers in (1, WORKERS):
                found = together(verb, server.create(f"{verb}{workers}"), workers, size, LATENCY_S, CONCURRENCY)
                rows.append({"store": "PostgreSQL", "workers": workers} | found)
    return rows


if __name__ == "__main__":
    if len(sys.argv) > 1:
        verb, where, *given = sys.argv[1:]
        print(json.dumps(work(verb, where, *(kind(x) for kind, x in zip((int, float, int), given, strict=True)))))
    else:
        print(json.dumps(run(), indent=2))
