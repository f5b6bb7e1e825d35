"""Is the claimed reliability true of texts that are not normal? ``python -m validation.kinds_of_texts``.

Adaptive runs to their own stop, by the normal approximation: texts far outside, heavy tails, two classes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from validation.judges import World
from validation.stopping import driven

FIRST_SEED = 70_000


def _two_below(rng: np.random.Generator) -> np.ndarray:
    return np.append(rng.normal(size=38), [-6.0, -6.0])


def _one_above(rng: np.random.Generator) -> np.ndarray:
    return np.append(rng.normal(size=19), 6.0)


KINDS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal, SD 1": lambda rng: rng.normal(size=40),
    "normal, SD 2": lambda rng: rng.normal(0, 2, 40),
    "2 of 40 six below": _two_below,
    "1 of 20 six above": _one_above,
    "t3": lambda rng: rng.standard_t(3, 40),
    "two classes at ±2": lambda _: np.repeat([-2.0, 2.0], 20),
    "two classes at ±2, SD .7 within": lambda rng: np.repeat([-2.0, 2.0], 20) + rng.normal(0, 0.7, 40),
    "uniform from -3 to 3": lambda rng: rng.uniform(-3, 3, 40),
}
"""True scores, by name."""


def one_run(kind: str, seed: int) -> tuple[float, float, float, int]:
    """Claimed and true reliability of the texts that do not lie outside, how probable two groups are, comparisons."""
    truth = KINDS[kind](np.random.default_rng((seed, 1)))
    world = World(truth, lambda i, j: float(truth[i] - truth[j]), seed)
    run = driven(world, seed, fit="laplace")
    row = run.last.row
    claimed = row["reliability"]
    kept = np.ones(len(truth), dtype=bool)
    if row["reliability_without_outliers"] is not None:
        claimed = row["reliability_without_outliers"]
        kept = np.abs(truth) < 6
    means = run.last.items["theta_mean"].to_numpy()
    true = np.corrcoef(means[kept], truth[kept])[0, 1] ** 2
    return claimed, float(true), row["p_two_groups"], run.engine.committed


def main() -> None:
    """Print a line per kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60, help="runs of each kind")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="which kinds")
    given = parser.parse_args()
    print("| texts | comparisons | claimed less true | two groups more probable than not |")
    print("| --- | --- | --- | --- |")
    for kind in given.kinds:
        runs = np.array([one_run(kind, FIRST_SEED + number) for number in range(given.runs)])
        off = runs[:, 0] - runs[:, 1]
        error = off.std(ddof=1) / np.sqrt(len(off))
        groups = int((runs[:, 2] > 0.5).sum())
        print(
            f"| {kind} | {runs[:, 3].mean():.0f} | {off.mean():+.3f} ± {error:.3f} | {groups} of {len(runs)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
