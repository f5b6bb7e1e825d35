"""What do real log-probabilities gain on balanced pairs? AlpacaEval's annotations, as far as they can tell.

Every annotation compares a model with one and the same baseline, so no judge was asked about two of the models. A pair
of models is made of two annotations of one task: the logit of the one less that of the other, as if the judge were
transitive, and the winner is the model with the larger one. Every pair of models is drawn equally often, from half of
the tasks; the order to be found is that of the mean preferences on the other half. ``python -m
validation.balanced_alpaca ANNOTATIONS.csv [SEEDS]`` prints the mean rank correlation of both fits with that order.
"""

from __future__ import annotations

import itertools
import sys
import warnings

import numpy as np
import polars as pl

from pairscale.models.bayes.fit import fit_btl_laplace
from pairscale.models.reliability import spearman

PER_PAIR = (1, 2, 4, 8)
"""Comparisons per pair of models."""
LIMIT = 1e-9


def drawn(table: pl.DataFrame, seed: int, most: int) -> tuple[pl.DataFrame, list[str], np.ndarray]:
    """Comparisons of all pairs of models, the models, and their mean preferences on the other half of the tasks."""
    rng = np.random.default_rng(seed)
    wide = table.pivot("model", index="task", values="preference").drop_nulls().sort("task")
    models = [name for name in wide.columns if name != "task"]
    q = np.clip(wide.select(models).to_numpy(), LIMIT, 1 - LIMIT)
    order = rng.permutation(len(q))
    asked, kept = order[: len(q) // 2], order[len(q) // 2 :]
    z = np.log(q) - np.log1p(-q)
    rows = []
    for _ in range(most):
        for one, two in itertools.combinations(range(len(models)), 2):
            first, second = (one, two) if rng.random() < 0.5 else (two, one)
            task = rng.choice(asked)
            apart = z[task, first] - z[task, second]
            winner = None if apart == 0 else models[first if apart > 0 else second]
            rows.append((models[first], models[second], winner, float(1 / (1 + np.exp(-apart)))))
    schema = {"ID1": pl.String, "ID2": pl.String, "better_id": pl.String, "probability": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row"), models, q[kept].mean(axis=0)


def run(table: pl.DataFrame, seed: int) -> list[tuple[int, float, float]]:
    """Per number of comparisons, the rank correlation of winners and of probabilities."""
    rows, models, truth = drawn(table, seed, max(PER_PAIR))
    each, found = len(models) * (len(models) - 1) // 2, []
    for per_pair in PER_PAIR:
        part = rows.head(per_pair * each)
        winners = fit_btl_laplace(part.drop("probability"), models, "btl", seed=1, prior_sd="learned")
        stated = fit_btl_laplace(part, models, "btl", seed=1, prior_sd="learned")
        figures = [spearman(fit.posterior.items.theta_mean, truth) or 0.0 for fit in (winners, stated)]
        found.append((part.height, *figures))
    return found


def main(arguments: list[str]) -> None:
    table = pl.read_csv(arguments[0])
    seeds = int(arguments[1]) if len(arguments) > 1 else 40
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = np.array([run(table, seed) for seed in range(seeds)])
    certain = 1 / (1 + np.exp(-5))
    beyond = (~table["preference"].is_between(1 - certain, certain)).to_numpy().mean()
    print(f"{beyond:.0%} of the logits are beyond 5\n")
    print("| comparisons | winners | probabilities | gain (95 % limits) |\n| --- | --- | --- | --- |")
    for at in range(len(PER_PAIR)):
        n, winners, stated = runs[:, at].T
        gain = stated - winners
        off = 1.96 * gain.std(ddof=1) / np.sqrt(len(gain))
        limits = f"{gain.mean():+.3f} ({gain.mean() - off:+.3f} to {gain.mean() + off:+.3f})"
        print(f"| {n[0]:.0f} | {winners.mean():.3f} | {stated.mean():.3f} | {limits} |")


if __name__ == "__main__":
    main(sys.argv[1:])
