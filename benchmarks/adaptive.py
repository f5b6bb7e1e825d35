"""Adaptive ranking: what a step costs, whether that grows, a whole run with real refits, and many in flight.

A step is everything: choose, record, and log into a run file on the disk (through the journal), with an instant judge.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

STEPS = ((200, 1_000, 2_000), (200, 50_000, 2_000), (2_000, 3_000, 1_000), (2_000, 50_000, 1_000))
"""Items, the step at which measuring begins, and how many steps are measured."""

WHOLE = (1_000, 12_000)
FLIGHT = (200, 64, 1.0, 1_200)


def steps(n_items: int, start: int, n: int) -> dict[str, float | str]:
    """CPU of a step, sequentially, from a given step on; earlier steps are not logged, to get there."""
    import numpy as np

    import pairscale as ps
    from pairscale.adaptive.engine import Engine, Proposal
    from pairscale.store.policies import JournalWriter
    from pairscale.store.writer import Asked, Entry

    rng = np.random.default_rng(0)
    truth = rng.normal(size=n_items)
    # More answers a pair than by default, so that few items can be asked about fifty thousand times.
    config = {"dup_max_obs": 100, "dup_max_obs_relaxed": 100, "dup_p_margin": 0.5, "q": 0.0}
    engine = Engine([f"S{i:04d}" for i in range(n_items)], seed=1, adaptive_config=config)
    ids = engine.ids

    def step() -> tuple[Proposal, dict[str, object]] | None:
        found = engine.propose()
        if not isinstance(found, Proposal):
            return None
        chance = 1 / (1 + np.exp(truth[found.second] - truth[found.first]))
        row = engine.record(found.step_id, int(rng.random() < chance))
        engine.pending = None  # refits are measured apart
        return found, row

    while engine.steps < start:
        step()
    with tempfile.TemporaryDirectory() as folder, ps.open_run(Path(folder) / "run.db", write=True) as store:
        store.add_items({"ID": name, "text": name} for name in ids)
        condition = store.add_condition(ps.Condition("instant"))
        with JournalWriter(store) as journal:
            cpu = time.process_time()
            done = 0
            while done < n:
                made = step()
                if made is None:
                    continue
                found, row = made
                row["timestamp"] = "2026-01-01T00:00:00+00:00"
                first, second = ids[found.first], ids[found.second]
                attempt = {"attempt": 1, "attempted_at": "2026-01-01", "outcome": "win"}
                settled = {"outcome": "win", "winner_pos": 1, "better_id": first, "received_at": "2026-01-01"}
                uid = f"step-{found.step_id:06d}"
                asked = Asked(condition, [attempt], settled, None, uid, first, second, {"step_id": found.step_id})
                journal.put(Entry(asked, [("step_log", row)]))
                done += 1
            journal.flush()
            cpu = time.process_time() - cpu
    return {"what": "step", "items": n_items, "from": start, "ms_of_cpu": round(cpu / n * 1e3, 3)}


def whole() -> dict[str, float | str]:
    """A run of a thousand items to twelve thousand comparisons, with refits by the sampler."""
    import numpy as np

    import pairscale as ps

    n_items, comparisons = WHOLE
    truth = np.random.default_rng(0).normal(size=n_items)
    judge = ps.SimulatedJudge({f"S{i:04d}": float(value) for i, value in enumerate(truth)}, seed=1)
    items = [{"ID": f"S{i:04d}", "text": f"text {i}"} for i in range(n_items)]
    with tempfile.TemporaryDirectory() as folder:
        cpu, wall = time.process_time(), time.perf_counter()
        out = ps.adaptive_rank(
            items,
            judge=judge,
            run=Path(folder) / "run.db",
            max_comparisons=comparisons,
            concurrency=8,
            progress="none",
            n_steps=None,
        )
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    ability = np.array([truth[int(name[1:])] for name in out.items["ID"]])
    agreement = np.corrcoef(out.items["theta_mean"].to_numpy(), ability)[0, 1]
    return {
        "what": "whole run",
        "items": n_items,
        "comparisons": comparisons,
        "refits": out.refits.height,
        "cpu_s": round(cpu, 1),
        "wall_s": round(wall, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "correlation_with_truth": round(float(agreement), 3),
    }


def in_flight() -> dict[str, float | str]:
    """Judgements a second with many in flight and a judge that takes a second.

    The sustained rate is that of the middle half of the answers: it has all refits of that time in it, and neither the
    start, in which nothing has come back yet, nor the closing refit.
    """
    import asyncio

    import numpy as np

    import pairscale as ps

    n_items, concurrency, latency, comparisons = FLIGHT
    truth = np.random.default_rng(0).normal(size=n_items)
    answered: list[float] = []

    class Slow:
        condition = ps.Condition("slow")

        async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
            await asyncio.sleep(latency)
            answered.append(time.perf_counter())
            return ps.Verdict.win(1 if truth[int(pair.first["ID"][1:])] > truth[int(pair.second["ID"][1:])] else 2)

    items = [{"ID": f"S{i:04d}", "text": f"text {i}"} for i in range(n_items)]
    with tempfile.TemporaryDirectory() as folder:
        wall = time.perf_counter()
        ps.adaptive_rank(
            items, judge=Slow(), run=Path(folder) / "run.db", max_comparisons=comparisons, concurrency=concurrency,
            progress="none", btl_config={"eap_reliability_min": 1.0}, n_steps=None,
        )  # fmt: skip
        wall = time.perf_counter() - wall
    first, last = comparisons // 4, comparisons * 3 // 4
    return {
        "what": "in flight",
        "items": n_items,
        "in_flight": concurrency,
        "latency_s": latency,
        "sustained_a_second": round((last - first) / (answered[last] - answered[first]), 1),
        "with_start_and_end": round(comparisons / wall, 1),
    }


def run() -> list[dict[str, float | str]]:
    rows = [steps(*size) for size in STEPS] + [whole(), in_flight()]
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name, "") for name in names} for row in rows]


if __name__ == "__main__":
    for row in run():
        print(row)
