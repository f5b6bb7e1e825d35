"""Is a stop ever delayed by the screen? At every refit that the normal approximation screened, the sampler fits too.

Runs are kept in ``validation/data/screening.csv``, one row each: the command continues where it stopped.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pairscale.adaptive.engine import Starved
from pairscale.adaptive.refits import refit
from validation.judges import make_world
from validation.rows import DATA, KeptRows, is_present, signed, started

FIRST_SEED = 20_000
COLUMNS = ("judge", "sd", "selector", "seed", "refits", "screened", "delayed", "comparisons", "stop_reason")
_JUDGES = ("clean", "repeatable", "half_repeatable", "position_lapse")


def screened_refits(
    judge: str, n: int, sd: float, seed: int, selector: str = "pollitt", found: dict[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """Run to the stop, and for every screened refit the row that the sampler gives for the same comparisons.

    Args:
        judge: who answers.
        n: how many texts.
        sd: standard deviation of their abilities.
        seed: of the run and the judge.
        selector: who chooses pairs.
        found: takes refits, comparisons and the reason of the stop.
    """
    world, engine = make_world(judge, n, sd, seed), started("pairscale", selector, n, seed)
    while engine.committed < 100 * n:
        if engine.pending is not None:
            request = engine.pending
            outcome = refit(request)
            if outcome.row["screened"]:
                yield refit(replace(request, btl=replace(request.btl, screen_refits=False))).row
            engine.apply(outcome.belief, stop_reason=outcome.row["stop_reason"])
            continue
        chosen = engine.propose()
        if chosen is None:
            break
        if not isinstance(chosen, Starved):
            engine.record(chosen.step_id, world.answer(chosen.first, chosen.second))
    if found is not None:
        reason = engine.stop_reason or "limit"
        found |= {"refits": engine.n_refits, "comparisons": engine.committed, "stop_reason": reason}


def run_once(number: int) -> dict[str, Any]:
    """One of the runs: judges, spreads and selectors take turns."""
    row: dict[str, Any] = {
        "judge": _JUDGES[number % 4],
        "sd": (1.0, 2.5)[number // 4 % 2],
        "selector": ("pollitt", "information")[number // 8 % 2],
        "seed": FIRST_SEED + number,
    }
    by_sampler = list(screened_refits(row["judge"], 30, row["sd"], row["seed"], row["selector"], row))
    delayed = sum(bool(found["stop_decision"]) for found in by_sampler)
    return row | {"screened": len(by_sampler), "delayed": delayed}


def main() -> None:
    """How many refits were screened, and at how many of these the sampler would have stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=100, help="how many runs, those kept included")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no run after so many seconds")
    given = parser.parse_args()
    rows, until = KeptRows(DATA / "screening.csv", COLUMNS), time.time() + given.seconds

    def fresh() -> list[dict[str, Any]]:
        return [row for row in rows.read() if is_present(row["made_by"], "pairscale", row["selector"])]

    done = {row["seed"] for row in fresh()}
    for number in range(given.runs):
        if time.time() > until:
            break
        if FIRST_SEED + number not in done:
            row = run_once(number)
            rows.append(row, signed("pairscale", row["selector"]))
    found = fresh()
    print(
        f"{len(found)} runs, {sum(row['refits'] for row in found)} refits, {sum(row['screened'] for row in found)} "
        f"screened; the sampler would have stopped at {sum(row['delayed'] for row in found)} of these"
    )
    if left := len(rows.read()) - len(found):
        print(f"{left} rows were made by other settings or another engine and are left out")


if __name__ == "__main__":
    main()
