"""Does a run stop in time? ``python -m validation.stopping``.

Runs to reliability .9 under the preset ``pairscale``, and under the same preset with refits every 100 comparisons and
two answers to a pair, as it was before. Both have the same texts and the same luck. Runs are kept in
``validation/data/stopping.csv``, one row each; cells take turns. ``--oracle`` prints instead how many comparisons one
would take who knows the true scores and always asks the pair that tells most.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairscale.adaptive.config import resolve_preset
from pairscale.adaptive.engine import Engine, Starved
from pairscale.adaptive.refits import RefitOutcome, refit
from validation.judges import World, make_world
from validation.rows import DATA, KeptRows, signed

FIRST_SEED = 40_000  # seeds below this one were used for tuning
CELLS = tuple(itertools.product((30, 60), (1.5, 2.5), ("clean", "repeatable")))
BEFORE: dict[str, dict[str, Any]] = {"adaptive_config": {"dup_max_obs": 2}, "btl_config": {"refit_often": False}}
TARGET = 0.9
COLUMNS = ("texts", "sd", "judge", "seed", "before", "now", "claimed", "true", "stop_reason")


@dataclass(frozen=True, eq=False)
class Stopped:
    """A run that came to its own stop.

    Attributes:
        engine: As it is then.
        last: What the last refit found.
        truth: The abilities.
    """

    engine: Engine
    last: RefitOutcome
    truth: np.ndarray

    @property
    def reliability(self) -> float:
        """The true one."""
        return float(np.corrcoef(self.last.items["theta_mean"], self.truth)[0, 1] ** 2)


def to_the_stop(
    n: int, sd: float, judge: str, seed: int, selector: str = "pollitt", fit: str = "exact", **settings: Any
) -> Stopped:
    """One run, as users run it."""
    return driven(make_world(judge, n, sd, seed), seed, selector, fit, **settings)


def driven(world: World, seed: int, selector: str = "pollitt", fit: str = "exact", **settings: Any) -> Stopped:
    """One run of a world to its stop."""
    adaptive, btl = resolve_preset("pairscale", **settings)
    ids = [f"t{number:03d}" for number in range(len(world.truth))]
    engine = Engine(ids, seed=seed, selector=selector, adaptive_config=adaptive, btl_config=btl)
    warm = None
    while True:
        if engine.pending is not None:
            last = refit(engine.pending, fit, warm)
            warm = last.warm
            engine.apply(last.belief, stop_reason=last.row["stop_reason"])
            continue
        found = engine.propose()
        if found is None:
            return Stopped(engine, last, world.truth)
        if not isinstance(found, Starved):
            engine.record(found.step_id, world.answer(found.first, found.second))


def run_once(n: int, sd: float, judge: str, seed: int) -> dict[str, Any]:
    """One world, before and now."""
    before = to_the_stop(n, sd, judge, seed, **BEFORE)
    now = to_the_stop(n, sd, judge, seed)
    return {
        "texts": n, "sd": sd, "judge": judge, "seed": seed,
        "before": before.engine.committed, "now": now.engine.committed,
        "claimed": round(now.last.row["reliability"], 4), "true": round(now.reliability, 4),
        "stop_reason": now.engine.stop_reason,
    }  # fmt: skip


def oracle(n: int, sd: float, judge: str, seed: int) -> int:
    """How many comparisons reach reliability .9 when each is chosen by the true scores."""
    truth = make_world(judge, n, sd, seed).truth
    first, second = np.triu_indices(n, k=1)
    weight = 1 / (2 + 2 * np.cosh(truth[first] - truth[second]))
    centred = np.eye(n) - 1 / n
    variance = sd**2 * centred
    total = np.square(truth - truth.mean()).sum()
    asked = 0
    while 1 - np.trace(variance) / total < TARGET and weight.any():
        moved = variance[:, first] - variance[:, second]
        spread = moved[first, np.arange(len(first))] - moved[second, np.arange(len(first))]
        gain = weight * np.square(moved).sum(axis=0) / (1 + weight * spread)
        best = int(gain.argmax())
        variance -= np.outer(moved[:, best], moved[:, best]) * weight[best] / (1 + weight[best] * spread[best])
        asked += 1
        if judge == "repeatable":  # the same pair tells nothing more
            weight[best] = 0.0
    return asked


def table(rows: list[dict[str, Any]]) -> str:
    """Per cell, the comparisons, and what the stop claims less the truth, in Markdown."""
    lines = ["| texts | SD | judge | runs | before | now | share | claimed less true |", "|" + " --- |" * 8]
    shares = []
    for cell in CELLS:
        runs = [row for row in rows if (row["texts"], row["sd"], row["judge"]) == cell]
        if len(runs) < 2:
            continue
        before = float(np.mean([row["before"] for row in runs]))
        now = float(np.mean([row["now"] for row in runs]))
        off = np.array([row["claimed"] - row["true"] for row in runs])
        shares.append(now / before)
        half = off.std(ddof=1) / math.sqrt(len(off))
        texts, sd, judge = cell
        lines.append(
            f"| {texts} | {sd:g} | {judge} | {len(runs)} | {before:.0f} | {now:.0f} | {now / before:.2f} | "
            f"{off.mean():+.3f} ± {half:.3f} |"
        )
    return "\n".join([*lines, "", f"Mean of the shares: {np.mean(shares):.3f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="runs a cell")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no run after so many seconds of CPU")
    parser.add_argument("--rows", type=Path, default=DATA / "stopping.csv", help="where runs are kept")
    parser.add_argument("--oracle", action="store_true", help="how few comparisons one who knows the scores takes")
    given = parser.parse_args()
    if given.oracle:
        for cell in CELLS:
            needed = [oracle(*cell, seed) for seed in range(FIRST_SEED, FIRST_SEED + given.runs)]
            print(*cell, f"{np.mean(needed):.0f}", flush=True)
        return
    kept = KeptRows(given.rows, COLUMNS)
    made_by = signed("pairscale", "pollitt")
    done = {(row["texts"], row["sd"], row["judge"], row["seed"]) for row in kept.read() if row["made_by"] == made_by}
    until = time.process_time() + given.seconds
    for seed in range(FIRST_SEED, FIRST_SEED + given.runs):
        for cell in CELLS:
            if (*cell, seed) not in done and time.process_time() < until:
                kept.append(run_once(*cell, seed), made_by)
    print(table([row for row in kept.read() if row["made_by"] == made_by]))


if __name__ == "__main__":
    main()
