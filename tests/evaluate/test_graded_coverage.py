"""Do the intervals of graded preferences hold what they promise?

The long version (``make validate``) prints the figures of docs/validation.md. The short ones reject only what chance
would do once in ten thousand runs.
"""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from pairscale.evaluate.inference.cases import Scores
from pairscale.evaluate.inference.corrected import correct
from pairscale.evaluate.inference.score import graded_limits, rate_ends
from pairscale.evaluate.inference.sequence import portfolio

SIZES, RATES = (30, 100, 400), (0.5, 0.6, 0.8)
SHAPES = ("beta", "bimodal", "narrow", "five points", "ties", "skew")
SEED = 20261117
RARE = 1e-4
LOW, HIGH = 0.92, 0.985


def acceptable(covered, runs):
    """Whether so many of so many runs may come from a coverage between the two limits."""
    return binom.cdf(covered, runs, LOW) > RARE and binom.sf(covered - 1, runs, HIGH) > RARE


def drawn(rng, shape, mean, size):
    """Graded scores with a known mean."""
    if shape in {"beta", "bimodal", "narrow"}:
        weight = {"beta": 3.0, "bimodal": 0.3, "narrow": 30.0}[shape]
        return rng.beta(weight * mean, weight * (1 - mean), size)
    if shape == "five points":
        return rng.binomial(4, rng.beta(2 * mean, 2 * (1 - mean), size)) / 4
    if shape == "skew":  # nine in ten a little above the mean, one in ten far below
        low, high = rng.beta(1, 20, size), (mean - 0.1 / 21) / 0.9
        return np.where(rng.random(size) < 0.1, low, rng.beta(40 * high, 40 * (1 - high), size))
    inner = (mean - 0.15) / 0.7  # three in ten are ties
    return np.where(rng.random(size) < 0.3, 0.5, rng.beta(1.5 * inner, 1.5 * (1 - inner), size))


def repeated(rng, shape, mean, tasks):
    """Three cases of a task: with a chance of 0.55 each, the score of the first once more."""
    own, first = drawn(rng, shape, mean, (tasks, 3)), drawn(rng, shape, mean, (tasks, 1))
    return np.where(rng.random((tasks, 3)) < 0.55, first, own)


def scores_of(score):
    """Of a row of cases a task."""
    return Scores(score.mean(axis=1), score.size)


def wilson_covered(rng, runs, n, mean, shape):
    score = drawn(rng, shape, mean, (runs, n))
    rest = score - score.mean(axis=1)[:, None]
    skew = (rest**3).sum(axis=1) / (rest**2).sum(axis=1) ** 1.5
    size = np.full(runs, float(n))
    lower, upper = graded_limits(score.mean(axis=1), score.var(axis=1, ddof=1), n, size, 0.95, skew)
    return int(((lower <= mean) & (mean <= upper)).sum())


def task_wilson_covered(rng, runs, n, mean, shape):
    ends = [rate_ends(scores_of(repeated(rng, shape, mean, n)), 0.95) for _ in range(runs)]
    return sum(lower <= mean <= upper for lower, upper in ends)


def corrected_covered(rng, runs, n, mean, shape, agree, graded):
    """People's labels, hard or graded; the judge's preference is near theirs with the chance ``agree``."""
    people = drawn(rng, shape, mean, (runs, 5 * n))
    if not graded:
        people = (rng.random(people.shape) < people).astype(float)
    near = np.clip(people + rng.normal(0, 0.15, people.shape), 0, 1)
    judge = np.where(rng.random(people.shape) < agree, near, rng.beta(2, 1, people.shape))
    sets = zip(people[:, :n], judge[:, :n], judge[:, n:], strict=True)
    ends = [correct(*scores, 0.95, graded=graded)[3] for scores in sets]
    return sum(lower <= mean <= upper for lower, upper in ends)


def missed(rng, runs, looks, mean, shape):
    """Of so many paths, those on which the truth is outside at some look, bet by bet, without splitting scores."""
    q, first = portfolio(looks)
    capital, out = np.zeros((runs, len(q))), np.zeros(runs, dtype=bool)
    for _ in range(looks):
        score = drawn(rng, shape, mean, runs)[:, None]
        capital += np.log(score * q / mean + (1 - score) * (1 - q) / (1 - mean))
        most = capital.max(axis=1)
        out |= most + np.log(np.exp(capital - most[:, None]) @ first) >= math.log(20)
    return int(out.sum())


@pytest.mark.parametrize("shape", SHAPES)
def test_graded_rates_are_covered(shape):
    rng = np.random.default_rng([SEED, 1, SHAPES.index(shape)])
    for n, mean in ((30, 0.8), (100, 0.6)):
        assert acceptable(wilson_covered(rng, 1500, n, mean, shape), 1500), (n, mean)


def test_wilsons_interval_of_the_mean_alone_would_be_far_too_wide():
    """So that the test above can fail: as if graded scores varied as wins and losses do."""
    rng = np.random.default_rng([SEED, 2])
    score = drawn(rng, "narrow", 0.6, (500, 100))
    lower, upper = graded_limits(score.mean(axis=1), np.zeros(500), 100, np.full(500, 100.0), 0.95)
    assert ((lower <= 0.6) & (upper >= 0.6)).all()


def test_repeats_taken_for_cases_would_not_be_covered():
    rng = np.random.default_rng([SEED, 3])
    score = np.stack([repeated(rng, "beta", 0.6, 100).ravel() for _ in range(800)])
    lower, upper = graded_limits(score.mean(axis=1), score.var(axis=1, ddof=1), 300, np.full(800, 300.0), 0.95)
    assert not acceptable(int(((lower <= 0.6) & (upper >= 0.6)).sum()), 800)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["beta", "five points", "skew"])
def test_repeats_corrections_and_sequences_of_graded_scores_hold(shape):
    rng = np.random.default_rng([SEED, 4, SHAPES.index(shape)])
    assert acceptable(task_wilson_covered(rng, 400, 40, 0.6, shape), 400)
    for graded in (True, False):
        assert acceptable(corrected_covered(rng, 600, 60, 0.6, shape, 0.7, graded), 600)
    assert binom.sf(missed(rng, 200, 100, 0.6, shape) - 1, 200, 0.05) > RARE


@pytest.mark.validate
def test_graded_rates_are_covered_in_every_cell():
    many = {"wilson": 5000, "wilson, 3 cases a task": 1500, "corrected, people graded": 3000}
    counted = {
        "wilson": wilson_covered,
        "wilson, 3 cases a task": task_wilson_covered,
        "corrected, people graded": lambda *cell: corrected_covered(*cell, 0.7, True),
        "corrected, people hard": lambda *cell: corrected_covered(*cell, 0.7, False),
    }
    wrong = []
    for at, (name, shape, n) in enumerate(product(counted, SHAPES, SIZES)):
        rng = np.random.default_rng([SEED, 5, at])
        runs = many.get(name, 3000)
        found = [counted[name](rng, runs, n, mean, shape) for mean in RATES]
        print(f"  {name}, {shape}, n {n}: " + " / ".join(f"{one / runs:.3f}" for one in found), flush=True)
        wrong += [(name, shape, n, one / runs) for one in found if not acceptable(one, runs)]
    assert not wrong


@pytest.mark.validate
def test_sequences_of_graded_scores_hold_under_continuous_looking():
    for at, (shape, mean) in enumerate(product(SHAPES, RATES)):
        rng = np.random.default_rng([SEED, 6, at])
        out = missed(rng, 1000, 500, mean, shape)
        print(f"  {shape}, {mean}: {out / 1000:.3f}", flush=True)
        assert binom.sf(out - 1, 1000, 0.05) > 0.01
