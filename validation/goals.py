"""What do a goal, a criterion and a column known beforehand save? ``make validate-goals``.

Every arm chooses pairs of the same 100 texts, with the same luck: the answer to a question depends on the seed, the
pair and how often it was asked. What is known is the selector's own belief. The first 99 comparisons are the chain that
every run begins with. Per seed, the calls that an arm needs are divided by those of D-optimal pairs; the table has the
mean of these ratios and its upper 97.5 % limit. Runs are kept in ``build/goals``, one file per arm and spread, so that
the command continues where it was interrupted; arms take turns.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from pairscale.adaptive.engine import Engine, Starved
from pairscale.adaptive.information import InformationSelector
from pairscale.adaptive.ledger import Ledger
from pairscale.adaptive.presets import resolve_preset
from pairscale.adaptive.refits import refit
from validation.judges import make_world

FIRST_SEED = 10_000  # seeds below this one were used for tuning
SEEDS = 100
STOPS = 40  # runs that go to their stop
FOLDER = Path("build/goals")
N, TOP = 100, 10
EVERY = 5  # comparisons between two looks
HELD = 50  # comparisons over which what was found must stay found
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
        correlation: Of a column known beforehand with the truth; None without one.
    """

    name: str
    measure: str
    limit: dict[float, float] | None = None
    goal: bool = False
    ranks: bool = False
    correlation: float | None = None


ARMS = (
    Arm("determinant-top", "top"),
    Arm("top", "top", {1.0: 0.67, 2.5: 0.62}, goal=True),
    Arm("determinant", "order"),
    Arm("ranks", "order", {1.0: 1.0, 2.5: 1.0}, ranks=True),
    Arm("column-0", "order", {1.0: 1.10, 2.5: 1.10}, correlation=0.0),
    Arm("column-5", "order", {1.0: math.inf, 2.5: math.inf}, correlation=0.5),
    Arm("column-7", "order", {1.0: math.inf, 2.5: math.inf}, correlation=0.7),
)
BASE = {"top": "determinant-top", "order": "determinant"}


def driven(arm: Arm, sd: float, seed: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Every few comparisons: how many there are, what is believed of the abilities, and the truth."""
    world = make_world("clean", N, sd, seed)
    chain = np.random.default_rng((seed, 4)).permutation(N)
    known = None if arm.correlation is None else _column(world.truth, sd, arm.correlation, seed)
    ledger, selector = Ledger(N, 200, known=known), InformationSelector()
    ledger.top, ledger.counts_ranks = TOP if arm.goal else None, arm.ranks
    selector.joined(ledger)
    rng = np.random.default_rng(0)
    for asked in range(1, MOST[sd] + 1):
        if asked < N:
            i, j = int(chain[asked - 1]), int(chain[asked])
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
        selector.committed(ledger, a, b, y)
        if asked % EVERY == 0:
            yield asked, selector.belief.mean, world.truth


def n_found(mean: np.ndarray, truth: np.ndarray) -> int:
    """How many of the ten with the highest means are of the ten best."""
    return len(set(np.argsort(-mean)[:TOP].tolist()) & set(np.argsort(-truth)[:TOP].tolist()))


def run_once(arm: Arm, sd: float, seed: int) -> dict[str, Any]:
    """One run until what is looked for is found, and stays found."""
    started = time.process_time()
    first, since, asked = None, None, 0
    for asked, mean, truth in driven(arm, sd, seed):
        if arm.measure == "top":
            there = n_found(mean, truth) >= FOUND[sd]
        else:
            there = float(np.corrcoef(rankdata(mean), rankdata(truth))[0, 1]) >= SPEARMAN[sd]
        since = (since or asked) if there else None
        first = first or since
        if since is not None and asked - since >= HELD:
            break
    return {"seed": seed, "held": since or asked, "first": first or asked, "cpu": time.process_time() - started}


def _column(truth: np.ndarray, sd: float, correlation: float, seed: int) -> np.ndarray:
    noise = np.random.default_rng((seed, 5)).normal(0, 1, len(truth))
    return correlation * truth / sd + math.sqrt(1 - correlation**2) * noise


def stop_once(sd: float, seed: int) -> dict[str, Any]:
    """One run for the ten best to its stop: wrong members that are expected, by the sampler, and that there are."""
    world = make_world("clean", N, sd, seed)
    adaptive, btl = resolve_preset("pairscale", {"goal": f"top:{TOP}"})
    ids = [f"t{number:03d}" for number in range(N)]
    engine = Engine(ids, seed=seed, selector="information", adaptive_config=adaptive, btl_config=btl)
    claimed: float | None = None
    while engine.committed < 30 * N:
        if engine.pending is not None:
            outcome = refit(engine.pending, "laplace")
            if outcome.row["stop_decision"]:  # the approximation would stop here; the sampler decides
                outcome = refit(engine.pending)
            claimed = outcome.row["top_wrong"]
            engine.apply(outcome.belief, stop_reason=outcome.row["stop_reason"])
            continue
        found = engine.propose()
        if found is None:
            break
        if not isinstance(found, Starved):
            engine.record(found.step_id, world.answer(found.first, found.second))
    wrong = TOP - n_found(outcome.items["theta_mean"].to_numpy(), world.truth)
    return {
        "seed": seed, "comparisons": engine.committed, "stop_reason": engine.stop_reason, "expected": claimed,
        "wrong": wrong,
    }  # fmt: skip


def stops(folder: Path, until: float) -> None:
    """Run to the stop what is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(FIRST_SEED, FIRST_SEED + STOPS):
        for sd in MOST:
            path = folder / f"stops-sd{sd:g}.jsonl"
            done = {json.loads(line)["seed"] for line in path.read_text().splitlines()} if path.exists() else set()
            if seed in done:
                continue
            if time.time() > until:
                return
            row = stop_once(sd, seed)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def stop_table(folder: Path) -> str:
    """Expected and true wrong members at the stop, in Markdown."""
    lines = ["| SD | runs | stopped | comparisons | wrong members expected | there were |", "|" + " --- |" * 6]
    for sd in MOST:
        path = folder / f"stops-sd{sd:g}.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        ended = [row for row in rows if row["stop_reason"] == "btl_converged"]
        if len(ended) < 4:
            continue
        wrong = np.array([row["wrong"] for row in ended])
        half = 1.96 * wrong.std(ddof=1) / math.sqrt(len(wrong))
        lines.append(
            f"| {sd:g} | {len(rows)} | {len(ended)} | {np.mean([row['comparisons'] for row in ended]):.0f} | "
            f"{np.mean([row['expected'] for row in ended]):.2f} | {wrong.mean():.2f} ± {half:.2f} |"
        )
    return "\n".join(lines)


def path_of(arm: Arm, sd: float, folder: Path) -> Path:
    return folder / f"{arm.name}-sd{sd:g}.jsonl"


def kept(arm: Arm, sd: float, folder: Path) -> dict[int, dict[str, Any]]:
    path = path_of(arm, sd, folder)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {row["seed"]: row for row in rows}


def run_all(arms: list[Arm], folder: Path, until: float) -> None:
    """Run what is missing, arms in turns."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = [(arm, sd) for arm in arms for sd in MOST]
    done = {cell: set(kept(*cell, folder)) for cell in cells}
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        for cell in cells:
            if seed in done[cell]:
                continue
            if time.time() > until:
                return
            row = run_once(*cell, seed)
            with path_of(*cell, folder).open("a") as file:
                file.write(json.dumps(row) + "\n")


def table(folder: Path) -> str:
    """What is there, in Markdown."""
    lines = [
        "| arm | SD | seeds | calls, D-optimal | calls | mean ratio (upper limit) | of the first time | demand |",
        "|" + " --- |" * 8,
    ]
    arms = {arm.name: arm for arm in ARMS}
    for arm in ARMS:
        for sd in MOST if arm.limit is not None else ():
            base, own = kept(arms[BASE[arm.measure]], sd, folder), kept(arm, sd, folder)
            seeds = sorted(base.keys() & own.keys())
            if len(seeds) < 4:
                continue
            ratios = {
                when: np.array([own[seed][when] / base[seed][when] for seed in seeds]) for when in ("held", "first")
            }
            upper = {when: _upper(values) for when, values in ratios.items()}
            calls = [np.mean([rows[seed]["held"] for seed in seeds]) for rows in (base, own)]
            shown = [f"{values.mean():.2f} ({upper[when]:.2f})" for when, values in ratios.items()]
            met = "met" if upper["held"] <= arm.limit[sd] else "missed"
            demand = f"{arm.limit[sd]:g}: {met}" if math.isfinite(arm.limit[sd]) else "none"
            lines.append(
                f"| {arm.name} | {sd:g} | {len(seeds)} | {calls[0]:.0f} | {calls[1]:.0f} | {shown[0]} | {shown[1]} | "
                f"{demand} |"
            )
    return "\n".join(lines)


def _upper(ratios: np.ndarray) -> float:
    return float(ratios.mean() + 1.96 * ratios.std(ddof=1) / math.sqrt(len(ratios)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="arms whose name contains this")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many minutes")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where runs are kept")
    given = parser.parse_args()
    until = time.time() + 60 * given.minutes
    run_all([arm for arm in ARMS if given.only in arm.name], given.folder, until)
    if given.only in "stops":
        stops(given.folder, until)
    print(table(given.folder), stop_table(given.folder), sep="\n\n")


if __name__ == "__main__":
    main()
