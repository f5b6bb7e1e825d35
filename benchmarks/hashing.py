"""What the hash chain costs per judgement: the same run with and without it, in turns, and the audit of it.

The judge answers at once with a reply of ordinary size, so that everything measured is ours. Ratios are of CPU time in
one process, the median of several turns.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pairscale as ps
from pairscale.store import chain

TURNS = 5
PAIRS = 10_000
ITEMS = 500
REPLY = {"id": "x" * 30, "choices": [{"message": {"role": "assistant", "content": "y" * 400}}], "usage": {"total": 900}}


class Instant:
    condition = ps.Condition("instant")

    async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
        return ps.Verdict.win(1, content="y" * 400, raw_response=REPLY, prompt_tokens=800, cost=0.001)


@contextmanager
def without_hashes() -> Iterator[None]:
    """Inside the block, no row is hashed."""

    def skip(table: Any, values: Any) -> list[Any]:
        return [*values[: len(table.primary_key)], ""]

    row_hash, chain.row_hash = chain.row_hash, skip
    try:
        yield
    finally:
        chain.row_hash = row_hash


def _pairs() -> list[dict[str, str]]:
    texts = [f"{at} " * 600 for at in range(ITEMS)]
    chosen = ((at % ITEMS, (at * 7 + at // ITEMS + 1) % ITEMS) for at in range(3 * PAIRS))
    kept = list(dict.fromkeys((a, b) for a, b in chosen if a != b))[:PAIRS]
    return [{"ID1": f"S{a}", "text1": texts[a], "ID2": f"S{b}", "text2": texts[b]} for a, b in kept]


def _timed(pairs: list[dict[str, str]], folder: Path, name: str) -> tuple[float, Path]:
    run = folder / f"{name}.db"
    start = time.process_time()
    ps.submit_pairs(pairs, Instant(), run=run, concurrency=64, progress=False)
    return time.process_time() - start, run


def run() -> list[dict[str, Any]]:
    pairs = _pairs()
    hashed, plain, audits = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _timed(pairs[:500], folder, "warm")
        for turn in range(TURNS):
            with without_hashes():
                seconds, bare = _timed(pairs, folder, f"plain{turn}")
            plain.append(seconds)
            seconds, full = _timed(pairs, folder, f"hashed{turn}")
            hashed.append(seconds)
            start = time.process_time()
            assert ps.audit(full).passed
            audits.append(time.process_time() - start)
        larger = full.stat().st_size / bare.stat().st_size
    n = len(pairs)
    return [
        {
            "pairs": n,
            "without_ms_per_pair": round(statistics.median(plain) / n * 1e3, 3),
            "with_ms_per_pair": round(statistics.median(hashed) / n * 1e3, 3),
            "ratio": round(statistics.median(a / b for a, b in zip(hashed, plain, strict=True)), 2),
            "file_ratio": round(larger, 2),
            "audit_ms_per_pair": round(statistics.median(audits) / n * 1e3, 3),
        }
    ]


if __name__ == "__main__":
    print(run())
