"""How often the three checks of the model are wrong about clean judges, and how often they find the others.

Adaptive runs of the preset, with the normal approximation as refits, and the same number of random pairs. Figures go to
docs/validation.md by hand.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from joblib import Parallel, delayed

from pairscale.adaptive.engine import Starved
from pairscale.adaptive.refits import refit
from pairscale.models.model_checks import check_model
from validation.judges import World, make_world
from validation.rows import started

FIRST_SEED = 72_000  # seeds below this one were used while the checks were made
CLEAN = ("clean", "repeatable", "position_lapse")
OTHERS = ("two_traits", "two_genres", "drifting", "blunt_near", "blunt_far")
_PER_TEXT = 8  # comparisons
_LEVELS = (0.03, 0.05)


@dataclass(eq=False)
class Clock:
    """How much of a run is over, for judges that change."""

    over: float = 0.0


def world_of(kind: str, n: int, sd: float, seed: int, clock: Clock) -> World:
    """A judge of known kind.

    ``two_traits`` decides each pair by one of two traits that correlate .3; ``two_genres`` sees a quarter of the
    difference between texts of different genres; ``drifting`` goes over from one trait to another in the course of the
    run; ``blunt_near`` hardly tells near texts apart and is sure of far ones; ``blunt_far`` the other way round.
    """
    if kind in CLEAN:
        return make_world(kind, n, sd, seed)
    rng = np.random.default_rng((seed, 99))
    truth = rng.normal(0, sd, n)
    other = 0.3 * truth + np.sqrt(1 - 0.3**2) * rng.normal(0, sd, n)
    genre = rng.integers(0, 2, n)
    by_trait = np.triu(rng.integers(0, 2, (n, n)), 1)
    by_trait = by_trait + by_trait.T

    def gap(i: int, j: int) -> float:
        return float(truth[i] - truth[j])

    def of_other(i: int, j: int) -> float:
        return float(other[i] - other[j])

    logits: dict[str, Callable[[int, int], float]] = {
        "two_traits": lambda i, j: gap(i, j) if by_trait[i, j] else of_other(i, j),
        "two_genres": lambda i, j: gap(i, j) * (1.0 if genre[i] == genre[j] else 0.25),
        "drifting": lambda i, j: (1 - clock.over) * gap(i, j) + clock.over * of_other(i, j),
        "blunt_near": lambda i, j: 0.5 * np.sign(gap(i, j)) * gap(i, j) ** 2,
        "blunt_far": lambda i, j: 1.6 * float(np.tanh(gap(i, j) / 1.2)),
    }
    return World(truth, logits[kind], seed)


def answers_of(kind: str, n: int, sd: float, seed: int, *, adaptive: bool) -> pl.DataFrame:
    """The answers of one run, in their order."""
    clock = Clock()
    world = world_of(kind, n, sd, seed, clock)
    ids = [f"{number:03d}" for number in range(n)]
    size = _PER_TEXT * n
    if adaptive:
        history = _adaptive(world, n, seed, size, clock)
    else:
        rng = np.random.default_rng((seed, 5))
        history = []
        for place in range(size):
            first, second = rng.choice(n, 2, replace=False).tolist()
            clock.over = place / size
            history.append((first, second, world.answer(first, second)))
    rows = [(ids[first], ids[second], ids[first] if won else ids[second]) for first, second, won in history]
    return pl.DataFrame(rows, schema=["ID1", "ID2", "better_id"], orient="row")


def _adaptive(world: World, n: int, seed: int, size: int, clock: Clock) -> list[tuple[int, int, int]]:
    engine = started("pairscale", ("pollitt", "information")[seed % 2], n, seed)
    warm = None
    while engine.committed < size and not engine.is_flipping:
        if engine.pending is not None:
            outcome = refit(engine.pending, "laplace", warm)
            warm = outcome.warm
            engine.apply(outcome.belief, stop_reason=None)
            continue
        proposal = engine.propose()
        if proposal is None:
            break
        if not isinstance(proposal, Starved):
            clock.over = engine.committed / size
            engine.record(proposal.step_id, world.answer(proposal.first, proposal.second))
    return [tuple(row) for row in engine.ledger.history.astype(int).tolist()]


def checked(kind: str, n: int, sd: float, seed: int, adaptive: bool) -> dict[str, object]:
    """What the checks say of one run."""
    checks = check_model(answers_of(kind, n, sd, seed, adaptive=adaptive))
    row: dict[str, object] = {"judge": kind, "texts": n, "sd": sd, "pairs": "adaptive" if adaptive else "random"}
    return row | {check.name: check.p for check in checks}


def main() -> None:
    """Print a row per cell: how many runs, and the share in which each check fails, at some levels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clean", type=int, default=200, help="runs of each clean cell")
    parser.add_argument("--others", type=int, default=60, help="runs of each other cell")
    parser.add_argument("--large", type=int, default=40, help="adaptive runs of each cell of 60 texts, the slow ones")
    parser.add_argument("--kinds", default=",".join(CLEAN + OTHERS), help="judges, separated by commas")
    parser.add_argument("--jobs", type=int, default=-1, help="processes")
    given = parser.parse_args()
    tasks = []
    for kind in given.kinds.split(","):
        runs = given.clean if kind in CLEAN else given.others
        for n, sd, adaptive, size in (
            (30, 1.5, True, runs),
            (30, 1.5, False, runs),
            (60, 2.5, True, min(runs, given.large)),
            (60, 2.5, False, runs),
        ):
            tasks += [(kind, n, sd, FIRST_SEED + number, adaptive) for number in range(size)]
    rows = Parallel(n_jobs=given.jobs)(delayed(checked)(*task) for task in tasks)
    keys = ["judge", "texts", "sd", "pairs"]
    checks = pl.col("distance", "circles", "drift")
    shares = [(checks < level).mean().round(3).name.suffix(f" {level}") for level in _LEVELS]
    table = pl.DataFrame(rows).group_by(keys, maintain_order=True).agg(pl.len().alias("runs"), *shares)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200):
        print(table)


if __name__ == "__main__":
    main()
