"""What `best` itself costs beside its judge: a thousand sets in one call, and one set alone."""

from __future__ import annotations

import asyncio
import math
import random
import time

N_SETS = 1_000
CANDIDATES = 20
ONE = 16
JUDGE_S = 0.001
BOUNDS = {"1,000 sets of 20": 60.0, "one set of 16": 0.2}
"""CPU seconds of the call; seconds beside the judge, of one set after a first call."""


def run() -> list[dict[str, float | str]]:
    import pairscale as ps

    rng = random.Random(1)
    strengths = {f"text {t} {c}": rng.gauss(0, 1.5) for t in range(N_SETS) for c in range(CANDIDATES)}

    class Quick:
        condition = ps.Condition("quick")
        calls = 0

        async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
            self.calls += 1
            await asyncio.sleep(JUDGE_S)
            difference = strengths[str(pair.first["text"])] - strengths[str(pair.second["text"])]
            return ps.Verdict.win(1 if rng.random() < 1 / (1 + math.exp(-difference)) else 2)

    def rows(n_sets: int, n: int) -> list[dict[str, str]]:
        return [{"task": f"t{t}", "ID": f"c{c}", "text": f"text {t} {c}"} for t in range(n_sets) for c in range(n)]

    found: list[dict[str, float | str]] = []
    ps.best(rows(1, ONE), Quick(), by="task", progress=False)
    for what, table in {"one set of 16": rows(1, ONE), "1,000 sets of 20": rows(N_SETS, CANDIDATES)}.items():
        judge = Quick()
        started = time.perf_counter(), time.process_time()
        best = ps.best(table, judge, by="task", concurrency=64 if len(table) > ONE else 1, progress=False)
        wall, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
        found.append(
            {"what": what, "comparisons": best.comparisons, "wall_s": wall, "cpu_s": cpu, "bound_s": BOUNDS[what]}
        )
    return found


if __name__ == "__main__":
    for row in run():
        print(row)
