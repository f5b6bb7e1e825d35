"""What do a goal and a criterion save? ``make validate-goals``.

Every arm chooses pairs of the same 100 texts, with the same luck: the answer to a question depends on the seed, the
pair and how often it was asked. What is known is the selector's own belief. Every run begins as the engine begins it:
with a chain of 99 comparisons, and for the top with 50 of its links. Calls are those until what is looked for is there
for the first time, looked at after every 5 comparisons. Three figures with upper 97.5 % limits compare them
with those of D-optimal pairs:

- the *share*: mean calls divided by mean calls;
- the *geometric mean* of the ratios per seed;
- the *mean* of the ratios per seed, which is above 1 for two arms that differ by luck alone.

Runs are kept in ``validation/data/goals.csv`` and ``goal_stops.csv``, one row each, with the pairs of a short run as
fingerprint, so that the command continues where it was interrupted; arms take turns.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from scipy.stats import rankdata

from pairscale.adaptive.selection.information import InformationSelector
from pairscale.adaptive.selection.ledger import Ledger, WarmStart
from validation.judges import make_world
from validation.rows import DATA, KeptRows
from validation.stopping import to_the_stop

FIRST_SEED = 20_000  # seeds below 10,000 were used for tuning, the next for an earlier start of runs for the top
FIRST_STOP_SEED = 60_000
SEEDS = 100
STOPS = tuple(itertools.product((30, 50), ("clean", "repeatable"), (1, 3, 5)))
"""Runs that go to their stop: texts of spread 1.5, judge, how many at the top."""
STOP_RUNS = 40
ROWS = KeptRows(DATA / "goals.csv", ("arm", "sd", "seed", "calls", "cpu"))
STOP_COLUMNS = ("texts", "judge", "top", "seed", "order", "comparisons", "passed", "expected", "wrong")
STOP_ROWS = KeptRows(DATA / "goal_stops.csv", STOP_COLUMNS)
N, TOP = 100, 10
EVERY = 5  # comparisons between two looks
MOST = {1.0: 3_000, 2.5: 2_000}
FOUND = {1.0: 7, 2.5: 8}
SPEARMAN = {1.0: 0.90, 2.5: 0.95}


@dataclass(frozen=True, eq=False)
class Arm:
    """What is compared with D-optimal pairs.

    Attributes:
        name: Of the file.
        measure: ``top`` (texts of the true ten best among the ten named) or ``order`` (Spearman's correlation).
        limit: What the upper limit of the mean ratio may be, by spread; infinite without a demand, None for the arm
            compared with.
        goal: Whether pairs are chosen for the ten best.
        ranks: Whether they are chosen by errors of ranks.
    """

    name: str
    measure: str
    limit: dict[float, float] | None = None
    goal: bool = False
    ranks: bool = False


ARMS = (
    Arm("determinant-top", "top"),
    Arm("top", "top", {1.0: 0.67, 2.5: 0.62}, goal=True),
    Arm("determinant", "order"),
    Arm("ranks", "order", {1.0: 1.0, 2.5: 1.0}, ranks=True),
)
BASE = {"top": "determinant-top", "order": "determinant"}


def driven(arm: Arm, sd: float, seed: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Every few comparisons: how many there are, what is believed of the abilities, and the truth."""
    world = make_world("clean", N, sd, seed)
    start = WarmStart(N, np.random.default_rng((seed, 4)), is_chain=not arm.goal).queue
    ledger, selector = Ledger(N, 200), InformationSelector()
    ledger.top, ledger.counts_ranks = TOP if arm.goal else None, arm.ranks
    selector.joined(ledger)
    rng = np.random.default_rng(0)
    for asked in range(1, MOST[sd] + 1):
        if asked <= len(start):
            i, j = start[asked - 1]
        else:
            choice = selector.choose(ledger, 2, rng) or selector.choose(ledger, 3, rng)
            if choice is None:
                return
            i, j = choice.i, choice.j
        a, b = ledger.order(i, j)
        y = world.answer(a, b)
        ledger.open(a, b)
        selector.opened(ledger, a, b)
        ledger.commit(a, b, y)
        ledger.is_linked = asked >= len(start)
        selector.committed(ledger, a, b, y)
        if asked % EVERY == 0:
            yield asked, selector.belief.mean, world.truth


def n_found(mean: np.ndarray, truth: np.ndarray) -> int:
    """How many of the ten with the highest means are of the ten best."""
    return len(set(np.argsort(-mean)[:TOP].tolist()) & set(np.argsort(-truth)[:TOP].tolist()))


def run_once(arm: Arm, sd: float, seed: int) -> dict[str, Any]:
    """One run until what is looked for is found."""
    started, calls = time.process_time(), 0
    for asked, mean, truth in driven(arm, sd, seed):
        calls = asked
        if arm.measure == "top":
            there = n_found(mean, truth) >= FOUND[sd]
        else:
            there = float(np.corrcoef(rankdata(mean), rankdata(truth))[0, 1]) >= SPEARMAN[sd]
        if there:
            break
    return {"arm": arm.name, "sd": sd, "seed": seed, "calls": calls, "cpu": round(time.process_time() - started, 3)}


@cache
def made_by(arm: Arm) -> str:
    """What rows of the present code say that they were made by: what is believed along a short run."""
    believed = [mean.round(3).tolist() for _, mean, _ in islice(driven(arm, 1.0, 1), 40)]
    return hashlib.sha256(repr(believed).encode()).hexdigest()[:10]


def stop_once(n: int, judge: str, top: int, seed: int) -> dict[str, Any]:
    """One run for the best to its stop: the shares of wrong members that are expected and that there are."""
    run = to_the_stop(n, 1.5, judge, seed, "information", "laplace", adaptive_config={"goal": f"top:{top}"})
    chosen, best = (
        set(np.argsort(-score)[:top].tolist()) for score in (run.last.items["theta_mean"].to_numpy(), run.truth)
    )
    return {
        "texts": n, "judge": judge, "top": top, "seed": seed,
        "order": to_the_stop(n, 1.5, judge, seed, fit="laplace").engine.committed, "comparisons": run.engine.committed,
        "passed": int(run.last.row["top_wrong_pass"]),
        "expected": round(run.last.row["top_wrong"] / top, 4), "wrong": len(chosen - best) / top,
    }  # fmt: skip


def stops(until: float) -> None:
    """Run to the stop what is missing; kinds of runs take turns."""
    goal = next(arm for arm in ARMS if arm.goal)
    rows = [row for row in STOP_ROWS.read() if row["made_by"] == made_by(goal)]
    done = {(row["texts"], row["judge"], row["top"], row["seed"]) for row in rows}
    for seed in range(FIRST_STOP_SEED, FIRST_STOP_SEED + STOP_RUNS):
        for cell in STOPS:
            if (*cell, seed) not in done and time.time() < until:
                STOP_ROWS.append(stop_once(*cell, seed), made_by(goal))


def stop_table() -> str:
    """Comparisons beside those of the whole order, and expected and true wrong members at the stop, in Markdown."""
    lines = ["| texts | judge | top | runs | comparisons | whole order | within | expected | there were |"]
    lines.append("|" + " --- |" * 9)
    goal = next(arm for arm in ARMS if arm.goal)
    for texts, judge, top in STOPS:
        rows = [
            row for row in STOP_ROWS.read()
            if (row["texts"], row["judge"], row["top"], row["made_by"]) == (texts, judge, top, made_by(goal))
        ]  # fmt: skip
        if len(rows) < 2:
            continue
        mean = {
            name: np.mean([float(row[name]) for row in rows])
            for name in ("comparisons", "order", "passed", "expected", "wrong")
        }
        half = np.std([row["wrong"] for row in rows], ddof=1) / math.sqrt(len(rows))
        lines.append(
            f"| {texts} | {judge} | {top} | {len(rows)} | {mean['comparisons']:.0f} | {mean['order']:.0f} | "
            f"{mean['passed']:.0%} | {mean['expected']:.3f} | {mean['wrong']:.3f} ± {half:.3f} |"
        )
    return "\n".join(lines)


def kept(arm: Arm, sd: float) -> dict[int, dict[str, Any]]:
    """The runs of one arm and spread that the present code would make, by seed."""
    return {
        row["seed"]: row
        for row in ROWS.read()
        if (row["arm"], row["sd"], row["made_by"]) == (arm.name, sd, made_by(arm))
    }


def run_all(arms: list[Arm], until: float) -> None:
    """Run what is missing, arms in turns."""
    cells = [(arm, sd) for arm in arms for sd in MOST]
    done = {cell: set(kept(*cell)) for cell in cells}
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        for cell in cells:
            if seed not in done[cell] and time.time() < until:
                ROWS.append(run_once(*cell, seed), made_by(cell[0]))


def table() -> str:
    """What is there, in Markdown."""
    lines = [
        "| | SD | seeds | calls, D-optimal | calls | share | geometric mean | mean of ratios | demand |",
        "|" + " --- |" * 9,
    ]
    arms = {arm.name: arm for arm in ARMS}
    for arm in ARMS:
        for sd in MOST if arm.limit is not None else ():
            base, own = kept(arms[BASE[arm.measure]], sd), kept(arm, sd)
            seeds = sorted(base.keys() & own.keys())
            if len(seeds) < 4:
                continue
            calls = [np.array([float(rows[seed]["calls"]) for seed in seeds]) for rows in (base, own)]
            shown = [f"{mean:.2f} ({upper:.2f})" for mean, upper in compared(*calls)]
            demand = f"{arm.limit[sd]:g}" if math.isfinite(arm.limit[sd]) else "none"
            lines.append(
                f"| {arm.name} | {sd:g} | {len(seeds)} | {calls[0].mean():.0f} | {calls[1].mean():.0f} | "
                f"{' | '.join(shown)} | {demand} |"
            )
    return "\n".join(lines)


def compared(base: np.ndarray, own: np.ndarray) -> list[tuple[float, float]]:
    """Share, geometric mean and mean of ratios of paired calls, each with its upper 97.5 % limit.

    The limit of the share is that of 10,000 bootstrap samples of seeds; the others are normal, of logarithms or ratios.
    """
    drawn = np.random.default_rng(1).integers(0, len(own), (10_000, len(own)))
    shares = own[drawn].mean(axis=1) / base[drawn].mean(axis=1)
    logs = _with_upper(np.log(own / base))
    return [
        (float(own.mean() / base.mean()), float(np.quantile(shares, 0.975))),
        (math.exp(logs[0]), math.exp(logs[1])),
        _with_upper(own / base),
    ]


def _with_upper(values: np.ndarray) -> tuple[float, float]:
    mean = float(values.mean())
    return mean, mean + 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="arms whose name contains this; stops for runs to their stop")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many minutes")
    given = parser.parse_args()
    until = time.time() + 60 * given.minutes
    run_all([arm for arm in ARMS if given.only in arm.name], until)
    if given.only in "stops":
        stops(until)
    print(table(), stop_table(), sep="\n\n")


if __name__ == "__main__":
    main()
