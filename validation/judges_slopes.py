"""What do slopes per judge buy? Four judges of slopes 1.5, 1, 0.5 and 0 share the comparisons of one set of texts.

Scores are normal with standard deviation 1, judges prefer the first position by normal amounts of standard deviation
0.3, and every comparison is answered by one judge. Both fits get the same data: ``ps.fit(model="bayes")`` with and
without ``judges="slopes"``. True slopes are in the unit of the fit, the mean slope.

Run ``python -m validation.judges_slopes SEEDS FILE`` to add the seeds that FILE lacks, one line of JSON per run, and
``python -m validation.judges_slopes FILE`` for the table of docs/validation.md. ``SEEDS:FIRST`` starts at another seed.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

import pairscale as ps
from pairscale.models.correlations import spearman

N = 100
SLOPES = (1.5, 1.0, 0.5, 0.0)
PER_TEXT = (8, 4)
"""Comparisons divided by texts."""
FIRST_SEED = 70_000
"""Seeds below 1,000 were used to choose the limit for weak judges."""


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
    return {
        "seed": seed,
        "per_text": per_text,
        "slopes": spearman(scores.theta_mean, truth),
        "pooled": spearman(pooled.fit.posterior.items.theta_mean, truth),
        "slope": judges["slope"].to_list(),
        "covered": pl.Series(true).is_between(judges["lower"], judges["upper"]).to_list(),
        "position_covered": (
            pl.Series(effects).is_between(judges["position_lower"], judges["position_upper"]).to_list()
        ),
        "score_covered": float(np.mean((scores.theta["p2.5"] <= centred) & (centred <= scores.theta["p97.5"]))),
        "weak": judges["weak"].to_list(),
        "diagnostics": slopes.fit.diagnostics.diagnostics_pass,
    }


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
        weak = np.sum([row["weak"] for row in of], axis=0)
        covered = np.mean([row["covered"] for row in of], axis=0)
        means = [np.mean([row[name] for row in of]) for name in ("pooled", "slopes")]
        limits = f"{gain.mean():.3f} ({gain.mean() - off:.3f} to {gain.mean() + off:.3f})"
        yield (
            f"| {per_text} | {len(of)} | {means[0]:.3f} | {means[1]:.3f} | {limits} | "
            f"{', '.join(str(one) for one in weak)} | "
            f"{', '.join(f'{one:.2f}' for one in covered)} | {covered.mean():.3f} | "
            f"{np.mean([row['position_covered'] for row in of]):.3f} | "
            f"{np.mean([row['score_covered'] for row in of]):.3f} |"
        )
    passed = sum(row["diagnostics"] for row in rows)
    yield ""
    yield f"Diagnostics pass in {passed} of {len(rows)} fits with slopes."


def main(arguments: list[str]) -> None:
    """Add runs to a file, or print its table."""
    path = Path(arguments[-1])
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if len(arguments) == 1:
        print("\n".join(table(rows)))
        return
    count, _, first = arguments[0].partition(":")
    done = {(row["seed"], row["per_text"]) for row in rows}
    begin = int(first or FIRST_SEED)
    wanted = [(seed, per_text) for per_text in PER_TEXT for seed in range(begin, begin + int(count))]
    for seed, per_text in wanted:
        if (seed, per_text) not in done:
            with warnings.catch_warnings(), path.open("a") as file:
                warnings.simplefilter("ignore")
                print(json.dumps(run(seed, per_text)), file=file, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
