"""Are the claims of an adaptive run true? ``make validate-claims``.

Each cell is a judge, a spread of abilities, a selector and a number of texts. Every run goes to its own stop under both
presets. What it claims (reliability, 95 % intervals of scores and ranks) is compared with the truth. Runs are kept in
``validation/data/claims.csv``, one row each, so that the command continues where it was interrupted; cells take turns,
so that all have equally many runs.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pairscale.adaptive.engine import Engine, Starved
from pairscale.adaptive.refits import RefitOutcome, refit
from validation.claims_tables import Cell, tables
from validation.judges import JUDGES, World, make_world
from validation.rows import DATA, KeptRows, is_present, signed, started

FIRST_SEED = 10_000  # seeds below this one were used for tuning
SELECTORS = ("pollitt", "information")
PRESETS = ("pairscale", "pairwiseLLM")
COLUMNS = (
    "cell", "preset", "seed", "claimed", "true", "theta", "rank", "theta_width", "rank_width", "comparisons", "pairs",
    "stop_reason", "path",
)  # fmt: skip


def cells() -> Iterator[Cell]:
    """Every cell of the demands."""
    for selector in SELECTORS:
        for sd in (1.0, 2.5):
            for judge in JUDGES:
                yield Cell(judge, 40, sd, selector, 40)
    for selector in SELECTORS:
        for judge in ("clean", "repeatable"):
            for sd in (0.5, 4.0):
                yield Cell(judge, 40, sd, selector, 20)
            for sd in (1.0, 2.5):
                yield Cell(judge, 100, sd, selector, 20)


def run_once(cell: Cell, preset: str, seed: int) -> dict[str, Any]:
    """One run to its stop, and what it claims beside the truth.

    Ours goes as users run it, the document's by the normal approximation throughout: only its length and how far its
    claims are off are needed.
    """
    world = make_world(cell.judge, cell.n, cell.sd, seed)
    engine = started(preset, cell.selector, cell.n, seed)
    fit_fn = None if preset == "pairscale" else "laplace"
    outcome, path = _driven(engine, world, fit_fn)
    if outcome is None or not outcome.row["stop_decision"]:
        outcome = refit(replace(engine.refit_request(), refit_id=engine.n_refits + 1, is_closing=True), fit_fn)
    return {
        "cell": cell.name,
        "preset": preset,
        "seed": seed,
        **{name: round(value, 4) for name, value in _claims(outcome, world).items()},
        "comparisons": engine.committed,
        "pairs": engine.ledger.n_unique_pairs,
        "stop_reason": engine.stop_reason or ("judge_flips" if engine.is_flipping else "limit"),
        "path": path if preset == "pairscale" else "",
    }


def _driven(engine: Engine, world: World, fit_fn: str | None) -> tuple[RefitOutcome | None, str]:
    """Ask until the run stops: the last refit, and per refit the comparisons and the true reliability."""
    last, warm, path = None, None, []
    while engine.committed < 100 * len(engine.ids) and not engine.is_flipping:
        if engine.pending is not None:
            last = refit(engine.pending, fit_fn, warm)
            warm = last.warm
            path.append(f"{engine.committed}:{_true(last, world):.4f}")
            engine.apply(last.belief, stop_reason=last.row["stop_reason"] if last.row["stop_decision"] else None)
            continue
        found = engine.propose()
        if found is None:
            break
        if not isinstance(found, Starved):
            engine.record(found.step_id, world.answer(found.first, found.second))
    return last, " ".join(path)


def _true(outcome: RefitOutcome, world: World) -> float:
    return float(np.corrcoef(outcome.items["theta_mean"], world.truth)[0, 1] ** 2)


def _claims(outcome: RefitOutcome, world: World) -> dict[str, float]:
    items, truth = outcome.items, world.truth - world.truth.mean()
    rank = np.empty(len(truth))
    rank[np.argsort(-truth)] = np.arange(1, len(truth) + 1)
    low, high, rank_low, rank_high = (
        items[name].to_numpy() for name in ("theta_p2.5", "theta_p97.5", "rank_p2.5", "rank_p97.5")
    )
    return {
        "claimed": outcome.row["reliability"],
        "true": _true(outcome, world),
        "theta": float(np.mean((low <= truth) & (truth <= high))),
        "rank": float(np.mean((rank_low <= rank) & (rank <= rank_high))),
        "theta_width": float(np.mean(high - low)),
        "rank_width": float(np.mean(rank_high - rank_low)),
    }


def kept(rows: KeptRows) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """The rows of the present code by cell, and those of an earlier one."""
    selectors = {cell.name: cell.selector for cell in cells()}
    fresh: dict[str, list[dict[str, Any]]] = {name: [] for name in selectors}
    stale, current = [], dict[tuple[str, str, str], bool]()
    for row in rows.read():
        key = row["made_by"], row["preset"], selectors.get(row["cell"], "")
        if key not in current:
            current[key] = bool(key[2]) and is_present(*key)
        if current[key]:
            fresh[row["cell"]].append(row)
        else:
            stale.append(row)
    return fresh, stale


def run_all(chosen: list[Cell], rows: KeptRows, until: float, presets: tuple[str, ...]) -> None:
    """Run what is missing, cells in turns."""
    fresh, _ = kept(rows)
    done = {(row["cell"], row["seed"], row["preset"]) for found in fresh.values() for row in found}
    for number in range(max(cell.runs for cell in chosen)):
        for cell in chosen:
            for preset in presets if number < cell.runs else ():
                if (cell.name, FIRST_SEED + number, preset) in done:
                    continue
                if time.time() > until:
                    return
                rows.append(run_once(cell, preset, FIRST_SEED + number), signed(preset, cell.selector))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", nargs="*", default=[""], help="cells whose name contains one of these")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no run after so many seconds")
    parser.add_argument("--rows", type=Path, default=DATA / "claims.csv", help="where runs are kept")
    parser.add_argument("--preset", choices=PRESETS, action="append", help="one preset alone")
    parser.add_argument("--drop-stale", action="store_true", help="delete the rows of an earlier code")
    given = parser.parse_args()
    rows = KeptRows(given.rows, COLUMNS)
    chosen = [cell for cell in cells() if any(part in cell.name for part in given.cells)]
    if given.drop_stale:
        rows.drop(kept(rows)[1])
    run_all(chosen, rows, time.time() + given.seconds, tuple(given.preset or PRESETS))
    fresh, stale = kept(rows)
    print(tables(chosen, fresh))
    if stale:
        print(f"{len(stale)} rows were made by other settings or another engine and are left out (--drop-stale)")


if __name__ == "__main__":
    main()
