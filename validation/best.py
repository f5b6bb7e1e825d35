"""How often are `best` and its probabilities right? Simulated judges, beside successive halving.

``python -m validation.best`` prints a row per cell. Figures go to docs/validation.md by hand.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
from tests.contest.worlds import halving, play, world

CELLS = ((8, 60, False), (30, 200, False), (50, 330, False), (8, 28, True), (30, 200, True), (50, 330, True))
"""Candidates, calls, and whether the judge repeats itself."""
HALVING = ((8, 72), (30, 248), (50, 411))
FIFTHS = np.linspace(0, 1, 6)


def cell(
    n: int, calls: int, fixed: bool, worlds: int, repeats: bool | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regrets and calls of some worlds, and probabilities beside the truth; prints a row."""
    began = time.process_time()
    regrets = []
    used = []
    twice = 0
    claims = []
    for number in range(worlds):
        of = world(n, number, fixed=fixed)
        contest, asked = play(of, calls, number, repeats=repeats)
        regrets.append(of.regret(int(contest.mean.argmax())))
        used.append(len(asked))
        twice += len(asked) - len({frozenset(pair) for pair in asked})
        claims.append(np.column_stack([contest.shares()[0], of.strengths == of.strengths.max()]))
    name = "told" if repeats is not None else "found out"
    judge = "repeats itself" if fixed else "independent"
    print(
        f"{n} candidates, {calls} calls, {judge}, {name}: regret {np.mean(regrets):.3f} "
        f"(se {np.std(regrets) / worlds**0.5:.3f}), right {np.mean(np.array(regrets) == 0):.2f}, "
        f"calls {np.mean(used):.1f}, repeats {twice / worlds:.1f}, cpu {time.process_time() - began:.1f} s",
        flush=True,
    )
    return np.array(regrets), np.array(used), np.concatenate(claims)


def calibration(claims: np.ndarray) -> None:
    """The probabilities of every fifth beside how often they were right."""
    for low, high in itertools.pairwise(FIFTHS):
        of_fifth = claims[(claims[:, 0] >= low) & ((claims[:, 0] < high) | (high == 1))]
        said, true = of_fifth.mean(axis=0)
        print(f"p_best {low:.1f} to {high:.1f}: said {said:.3f}, true {true:.3f}, {len(of_fifth):,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=300)
    worlds = parser.parse_args().worlds
    cells = [(*one, worlds, repeats) for one in CELLS for repeats in (not one[2], None)]
    claims = [cell(*one)[2] for one in cells]
    calibration(np.concatenate(claims))
    for n, calls in HALVING:
        ours = cell(n, calls, False, worlds, True)[0]
        theirs = np.array(
            [world(n, at, fixed=False).regret(halving(world(n, at, fixed=False), calls, at)) for at in range(worlds)]
        )
        print(f"{n} candidates, {calls} calls: halving {theirs.mean():.3f}, ours less it {np.mean(ours - theirs):+.3f}")


if __name__ == "__main__":
    main()
