"""What do probabilities buy? Calls to reach a rank correlation with the truth, against winners with chosen pairs.

Every answer of a judge at temperature 0 is a logit: the difference of two texts with an error that belongs to the pair.
Its winner is the sign of that logit. In the *plain* world errors are normal with standard deviation 1. In the *stress*
world they are Student's t with four degrees of freedom and a standard deviation of 1 + |difference| / 4, and logits are
cut at ±5: three things that the model does not assume. No pair is asked twice.

Run ``python -m validation.probabilities SEEDS FILE`` to add the seeds that FILE lacks, one line of JSON per run,
``python -m validation.probabilities FILE`` for the table of docs/validation.md, and ``python -m
validation.probabilities FILE PICTURE.svg`` for the picture of the guide.
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
from pairscale.models.bayes.fit import fit_btl_laplace, judge_parameters, read_evidence
from pairscale.models.bayes.normal import Target, around_center
from pairscale.models.reliability import spearman
from pairscale.simulation.run import MapEstimate

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
            evidence = read_evidence(rows, ids, judge_parameters("btl_b", "learned"), "independent")
            scores = around_center(Target(evidence.cells, evidence.model))[0].mean[:N]
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
    found = fit_btl_laplace(rows, ids, "btl_b", seed=1, prior_sd="learned", repeats="learned").posterior.items.theta
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


def picture(rows: list[dict[str, Any]]) -> str:
    """Share of runs that have reached their target, by calls: winners and probabilities, in the stress world."""
    parts, width, height, most = [], 300, 170, 900
    colours = {"winner:information": ("#8a5a00", "winners"), "probability:information": ("#1f5f99", "probabilities")}
    for panel, (sd, target) in enumerate(TARGETS.items()):
        left, bottom = 50 + panel * (width + 50), height + 40
        parts.append(f'<text x="{left}" y="22" font-weight="bold">Spearman {target:.2f}, scores of SD {sd:g}</text>')
        parts += [
            f'<line x1="{left}" x2="{left + width}" y1="{y}" y2="{y}" stroke="#bbb"/>'
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{share:.0%}</text>'
            for share in (0, 0.5, 1) if (y := bottom - share * height) is not None
        ]  # fmt: skip
        parts += [
            f'<text x="{left + calls / most * width:.0f}" y="{bottom + 18}" text-anchor="middle">{calls}</text>'
            for calls in range(0, most + 1, 300)
        ]
        for arm, (colour, word) in colours.items():
            found = [row for row in rows if (row["world"], row["sd"], row["arm"]) == ("stress", sd, arm)]
            ends = sorted(row["calls"] for row in found if row["calls"])
            steps = [(0.0, 0.0), *((calls, (at + 1) / len(found)) for at, calls in enumerate(ends))]
            points = " ".join(f"{left + min(x, most) / most * width:.1f},{bottom - y * height:.1f}" for x, y in steps)
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
            middle = left + float(np.median(ends)) / most * width
            place = (middle - 8, "end") if word == "probabilities" else (middle + 10, "start")
            parts.append(
                f'<text x="{place[0]:.0f}" y="{bottom - 0.55 * height:.0f}" text-anchor="{place[1]}" fill="{colour}">'
                f"{word}</text>"
            )
    parts.append(f'<text x="{50 + width + 25}" y="{height + 80}" text-anchor="middle">calls</text>')
    size = f'width="{2 * width + 130}" height="{height + 92}" viewBox="0 0 {2 * width + 130} {height + 92}"'
    style = "font-family:sans-serif;font-size:13px;background:#fff"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{style}">{"".join(parts)}</svg>\n'


def main() -> None:
    """Add runs to a file, print its table, or draw its picture."""
    if sys.argv[-1].endswith(".svg"):
        lines = Path(sys.argv[1]).read_text().splitlines()
        Path(sys.argv[2]).write_text(picture([json.loads(line) for line in lines]))
        return
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
