"""What do slopes per judge buy? Four judges of slopes 1.5, 1, 0.5 and 0 share the comparisons of one set of texts.

Scores are normal with standard deviation 1, judges prefer the first position by normal amounts of standard deviation
0.3, and every comparison is answered by one judge. Both fits get the same data: ``ps.fit(model="bayes")`` with and
without ``judges="slopes"``. True slopes are in the unit of the fit, the mean slope.

Runs are kept in ``validation/data/judges_slopes.csv``, one row each, so that ``python -m validation.judges_slopes``
continues where it stopped; it prints the table of docs/validation.md.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import time
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

import pairscale as ps
from pairscale.models.bayes.density import Density
from pairscale.models.bayes.fit import WEAK_SLOPE
from pairscale.models.bayes.model import Answers, JudgeParameters, count_outcomes
from pairscale.models.reliability import spearman
from validation.rows import DATA, KeptRows

N = 100
SLOPES = (1.5, 1.0, 0.5, 0.0)
PER_TEXT = (8, 4)
"""Comparisons divided by texts."""
SEEDS = 100
FIRST_SEED = 70_000
"""Seeds below 1,000 were used to choose the limit for weak judges."""
PER_JUDGE = ("slope", "covered", "position_covered", "weak")
ROWS = KeptRows(
    DATA / "judges_slopes.csv",
    (
        "seed", "per_text", "slopes", "pooled", "score_covered", "diagnostics",
        *(f"{name}_{slope:g}" for name in PER_JUDGE for slope in SLOPES),
    ),
)  # fmt: skip


@cache
def made_by() -> str:
    """What rows of the present model say that they were made by: its density at some points, and the rule for weak."""
    rng = np.random.default_rng(1)
    first, judge = rng.integers(0, 5, 30), rng.integers(0, 3, 30)
    second = (first + rng.integers(1, 5, 30)) % 5
    answers = Answers(first, second, rng.choice([0.0, 0.5, 1.0], 30), 5, judge=judge)
    cells = count_outcomes(answers, position=True)
    density = Density(cells, JudgeParameters(lapse=False, position=True, prior_sd=None, judges=3))
    x = rng.normal(0, 0.7, (density.size, 4))
    x[:5] *= np.exp(x[-1])  # scores, not standardised ones
    value, _ = density(x, value=True)
    assert value is not None
    told = [f"{one:.6f}" for one in value + 5 * x[-1]], f"{WEAK_SLOPE:.6f}"
    return hashlib.sha256(repr(told).encode()).hexdigest()[:10]


def world(seed: int, per_text: int, n: int = N) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """Results of one panel, the true scores, and the true position effects."""
    rng = np.random.default_rng((seed, 20))
    truth, m = rng.normal(0, 1, n), n * per_text
    order = np.concatenate([rng.permutation(n).reshape(2, -1) for _ in range(2 * per_text)], axis=1)
    first, second = order
    judge = rng.permutation(np.arange(m) % len(SLOPES))
    effects = rng.normal(0, 0.3, len(SLOPES))
    p = expit(np.array(SLOPES)[judge] * (truth[first] - truth[second]) + effects[judge])
    names = np.array([f"t{number:03d}" for number in range(n)])
    better = names[np.where(rng.random(m) < p, first, second)]
    columns = {"ID1": names[first], "ID2": names[second], "better_id": better}
    return pl.DataFrame({**columns, "judge_id": [f"judge {one}" for one in judge]}), truth, effects


def run(seed: int, per_text: int, n: int = N) -> dict[str, Any]:
    """Both fits of one panel."""
    rows, truth, effects = world(seed, per_text, n)
    ids = [f"t{number:03d}" for number in range(n)]
    slopes = ps.fit(rows, "bayes", judges="slopes", ids=ids, seed=1)
    pooled = ps.fit(rows, "bayes", ids=ids, seed=1)
    judges = slopes.judges.sort("judge_id")
    true = np.array(SLOPES) / np.mean(SLOPES)
    scores = slopes.fit.posterior.items
    # The truth in the same unit: centred, and in logits of the average judge.
    centred = (truth - truth.mean()) * np.mean(SLOPES)
    per_judge = {
        "slope": judges["slope"],
        "covered": pl.Series(true).is_between(judges["lower"], judges["upper"]).cast(int),
        "position_covered": (
            pl.Series(effects).is_between(judges["position_lower"], judges["position_upper"]).cast(int)
        ),
        "weak": judges["weak"].cast(int),
    }
    return {
        "seed": seed,
        "per_text": per_text,
        "slopes": spearman(scores.theta_mean, truth),
        "pooled": spearman(pooled.fit.posterior.items.theta_mean, truth),
        "score_covered": float(np.mean((scores.theta["p2.5"] <= centred) & (centred <= scores.theta["p97.5"]))),
        "diagnostics": int(slopes.fit.diagnostics.diagnostics_pass),
        **{f"{name}_{SLOPES[at]:g}": one for name, values in per_judge.items() for at, one in enumerate(values)},
    }


def kept() -> list[dict[str, Any]]:
    """The runs of the present model."""
    return [row for row in ROWS.read() if row["made_by"] == made_by()]


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """One line per number of comparisons."""
    yield (
        "| comparisons per text | seeds | Spearman, pooled | slopes | gain (95 % limits) | named weak, by slope "
        "(1.5, 1, 0.5, 0) | slopes covered, each | all | position effects covered | scores covered |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for per_text in sorted({row["per_text"] for row in rows}, reverse=True):
        of = [row for row in rows if row["per_text"] == per_text]
        gain = np.array([row["slopes"] - row["pooled"] for row in of])
        off = 1.96 * gain.std(ddof=1) / np.sqrt(len(gain))
        weak, covered, positions = (_per_judge(of, name) for name in ("weak", "covered", "position_covered"))
        means = [np.mean([row[name] for row in of]) for name in ("pooled", "slopes")]
        limits = f"{gain.mean():.3f} ({gain.mean() - off:.3f} to {gain.mean() + off:.3f})"
        yield (
            f"| {per_text} | {len(of)} | {means[0]:.3f} | {means[1]:.3f} | {limits} | "
            f"{', '.join(str(one) for one in weak.sum(axis=0))} | "
            f"{', '.join(f'{one:.2f}' for one in covered.mean(axis=0))} | {covered.mean():.3f} | "
            f"{positions.mean():.3f} | "
            f"{np.mean([row['score_covered'] for row in of]):.3f} |"
        )
    passed = sum(row["diagnostics"] for row in rows)
    yield ""
    yield f"Diagnostics pass in {passed} of {len(rows)} fits with slopes."


def _per_judge(rows: list[dict[str, Any]], name: str) -> np.ndarray:
    return np.array([[row[f"{name}_{slope:g}"] for slope in SLOPES] for row in rows])


def main() -> None:
    """Add the runs that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds, those kept included")
    parser.add_argument("--per-text", type=int, default=PER_TEXT[0], help="comparisons divided by texts")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start none after so many seconds")
    given = parser.parse_args()
    until, done = time.time() + given.seconds, {(row["seed"], row["per_text"]) for row in kept()}
    for seed in range(FIRST_SEED, FIRST_SEED + given.seeds):
        if (seed, given.per_text) not in done and time.time() < until:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ROWS.append(run(seed, given.per_text), made_by())
    print("\n".join(table(kept())))


if __name__ == "__main__":
    main()
