"""What do probabilities buy? Calls to reach a rank correlation with the truth, against winners with chosen pairs.

Every answer of a judge at temperature 0 is a logit: the difference of two texts with an error that belongs to the pair.
Its winner is the sign of that logit. In the *plain* world errors are normal with standard deviation 1. In the *stress*
world they are Student's t with four degrees of freedom and a standard deviation of 1 + |difference| / 4, and logits are
cut at ±5: three things that the model does not assume. No pair is asked twice.

Run ``python -m validation.probabilities SEEDS FILE`` to add the seeds that FILE lacks, one line of JSON per run, and
``python -m validation.probabilities FILE`` for the table of docs/validation.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from pairscale.adaptive.engine import Engine, Starved
from pairscale.models.correlations import spearman
from pairscale.models.laplace import around_center
from pairscale.models.logits import _read, fit_logits_laplace
from pairscale.simulation._estimate import MapEstimate

N = 100
TARGETS = {1.0: 0.90, 2.5: 0.95}
EVERY, MOST = 25, 2400
FIRST_SEED = 50_000
"""Seeds below were used while the model was made."""

ARMS = ("winner:information", "probability:random", "probability:information")


class World:
    """Texts of known ability and the logits of every pair."""

    def __init__(self, kind: str, sd: float, seed: int) -> None:
        rng = np.random.default_rng((seed, 11))
        self.truth = rng.normal(0, sd, N)
        d = self.truth[:, None] - self.truth
        if kind == "plain":
            error = rng.normal(0, 1, (N, N))
        else:
            error = rng.standard_t(4, (N, N)) / np.sqrt(2) * (1 + np.abs(d) / 4)
        z = np.triu(d + error, 1)
        self.z = z - z.T
        if kind == "stress":
            self.z = np.clip(self.z, -5, 5)


def run(kind: str, sd: float, seed: int, arm: str) -> dict[str, Any]:
    """One run to its target: the number of calls, and whether intervals cover."""
    world = World(kind, sd, seed)
    form, selector = arm.split(":")
    ids = [f"t{number:03d}" for number in range(N)]
    names = np.array(ids)
    no_refits = {"refit_pairs_target": 10**6}
    engine = Engine(ids, seed=seed, selector=selector, adaptive_config={"dup_max_obs": 1}, btl_config=no_refits)
    estimate, before = MapEstimate(N), (0, 0.0)
    found: dict[str, Any] = {"world": kind, "sd": sd, "seed": seed, "arm": arm, "calls": None}
    while engine.committed < MOST:
        proposal = engine.propose()
        if proposal is None:
            break
        if isinstance(proposal, Starved):
            continue
        engine.record(proposal.step_id, int(world.z[proposal.first, proposal.second] > 0))
        if engine.committed % EVERY or engine.committed < N:
            continue
        history = engine.ledger.history
        if form == "winner":
            scores = estimate.fit(history)
        else:
            rows = _rows(history, world, names)
            target = _read(rows, ids, "btl_b", "learned", "independent").target
            scores = around_center(target)[0].mean[:N]
        r = spearman(scores, world.truth) or 0.0
        if r >= TARGETS[sd]:
            share = (TARGETS[sd] - before[1]) / (r - before[1])
            found["calls"] = before[0] + share * (engine.committed - before[0])
            if form == "probability":
                found["covered"] = _covered(rows, ids, world.truth)
            break
        before = engine.committed, r
    return found


def _rows(history: np.ndarray, world: World, names: np.ndarray) -> pl.DataFrame:
    first, second, won = history.T
    better = np.where(won == 1, first, second)
    columns = {"ID1": names[first], "ID2": names[second], "better_id": names[better]}
    return pl.DataFrame({**columns, "probability": expit(world.z[first, second])})


def _covered(rows: pl.DataFrame, ids: list[str], truth: np.ndarray) -> float:
    found = fit_logits_laplace(rows, ids, seed=1).posterior.items.theta
    centred = truth - truth.mean()
    return float(np.mean((found["p2.5"] <= centred) & (centred <= found["p97.5"])))


def wanted(seeds: int, first: int = FIRST_SEED) -> Iterator[tuple[str, float, int, str]]:
    """Every run of the table; seed by seed, so that a part of them is a table, too."""
    for seed in range(first, first + seeds):
        for sd in TARGETS:
            for arm in ARMS:
                yield "stress", sd, seed, arm
            yield "plain", sd, seed, "winner:information"
            yield "plain", sd, seed, "probability:random"


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The table: mean ratio of calls to those of winners, its upper 97.5 % limit, and coverage."""
    calls = {(row["world"], row["sd"], row["arm"], row["seed"]): row for row in rows}
    yield "| world | SD | pairs, probabilities | seeds | calls, winners | share of them, mean (97.5 %) | covered |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for kind, sd, arm in sorted({(row["world"], row["sd"], row["arm"]) for row in rows}):
        if arm.startswith("winner"):
            continue
        pairs = [
            (row, base) for (world, of, by, seed), row in calls.items()
            if (world, of, by) == (kind, sd, arm) and (base := calls.get((kind, sd, ARMS[0], seed)))
        ]  # fmt: skip
        known = [(row, base) for row, base in pairs if row["calls"] and base["calls"]]
        ratio = np.array([row["calls"] / base["calls"] for row, base in known])
        upper = ratio.mean() + 1.96 * ratio.std(ddof=1) / np.sqrt(len(ratio))
        base = np.mean([base["calls"] for _, base in known])
        covered = np.mean([row["covered"] for row, _ in known])
        unknown = f" ({len(pairs) - len(known)} without end)" if len(pairs) > len(known) else ""
        yield (
            f"| {kind} | {sd:g} | {arm.split(':')[1]} | {len(known)}{unknown} | {base:.0f} | "
            f"{ratio.mean():.2f} ({upper:.2f}) | {covered:.3f} |"
        )


def main() -> None:
    """Add runs to a file, or print its table."""
    path = Path(sys.argv[-1])
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if len(sys.argv) == 2:
        print("\n".join(table(rows)))
        return
    done = {(row["world"], row["sd"], row["seed"], row["arm"]) for row in rows}
    first = int(sys.argv[2]) if len(sys.argv) > 3 else FIRST_SEED
    with path.open("a") as file:
        for cell in wanted(int(sys.argv[1]), first):
            if cell not in done:
                file.write(json.dumps(run(*cell)) + "\n")
                file.flush()


if __name__ == "__main__":
    main()
