"""Unequal numbers of cases per task: equal variants are seldom called different, by ``ab`` and by ``gate --fixed``."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import pairscale as ps
from pairscale.evaluate.inference.cases import Scores
from pairscale.evaluate.inference.gate import fixed_bounds, log_capital_above, log_capital_below
from pairscale.evaluate.inference.score import rate_ends, score_interval

MOST = 0.07
RARE = 1e-4
SEED = 20261203


def zipf(tasks, cases):
    weights = 1 / np.arange(1, tasks + 1)
    return np.maximum(1, np.round(cases * weights / weights.sum())).astype(int)


CELLS = {
    "30 + 9x1": [30] + [1] * 9,
    "2x20 + 18x1": [20] * 2 + [1] * 18,
    "40 + 29x1": [40] + [1] * 29,
    "4x8 + 8x1": [8] * 4 + [1] * 8,
    "Zipf 30": zipf(30, 120),
    "Zipf 100": zipf(100, 400),
    "equal 5x10": [10] * 5,
    "equal 15x3": [3] * 15,
    "equal 10x5": [5] * 10,
}
AGREEMENTS = (0.2, 0.5, 0.9)


def drawn(sizes, icc, sets, rng, ties=0.0):
    """Wins of B per task, whose chances vary with this intraclass correlation around one half; ties as half a win."""
    spread = (1 / icc - 1) / 2
    tied = rng.binomial(sizes, ties, (sets, len(sizes)))
    wins = rng.binomial(np.asarray(sizes) - tied, rng.beta(spread, spread, tied.shape))
    return (wins + tied / 2) / sizes


def excludes_half(ends):
    return ends[0] > 0.5 or ends[1] < 0.5


def gate_says(means, n, level=0.95):
    """What a gate of fixed size says of B, by the bounds that it uses; of few tasks, by whether ½ is ruled out."""
    scores = Scores(means, n)
    if scores.tasks >= 60 or not (scores.graded or scores.repeated):
        lower, upper = fixed_bounds(scores, 0.1, level)
        return "better" if lower > 0.5 else "worse" if upper < 0.5 else ""
    counts = np.ones((1, len(means)))
    bar = -math.log(1 - level)
    if log_capital_above(0.5, 0.1, means, counts)[0] >= bar:
        return "better"
    return "worse" if log_capital_below(0.5, 0.1, means, counts)[0] >= bar else ""


def called_different(name, icc, sets, seed, ties=0.0):
    """Of so many sets of equal variants, those called different by ``ab``, and by a gate of fixed size."""
    sizes = np.asarray(CELLS[name])
    rng = np.random.default_rng([SEED, seed, list(CELLS).index(name), round(10 * icc), round(10 * ties)])
    sets_of_means = drawn(sizes, icc, sets, rng, ties)
    n = int(sizes.sum())
    by_ab = sum(excludes_half(rate_ends(Scores(means, n), 0.95)) for means in sets_of_means)
    by_gate = [gate_says(means, n) for means in sets_of_means]
    return by_ab, sets - by_gate.count("")


@pytest.mark.parametrize("name", ["30 + 9x1", "4x8 + 8x1", "equal 5x10"])
def test_equal_variants_are_seldom_called_different(name):
    sets = 300
    for found in called_different(name, 0.9, sets, seed=1):
        assert binom.sf(found - 1, sets, MOST) > RARE


@pytest.mark.validate
@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_equal_variants_are_seldom_called_different_in_every_cell(ties):
    sets, wrong = 2000, []
    print(f"\nequal variants called different, ties {ties}: ab, gate; at an intraclass correlation of {AGREEMENTS}")
    for name in CELLS:
        found = {icc: [count / sets for count in called_different(name, icc, sets, 2, ties)] for icc in AGREEMENTS}
        print(
            f"  {name:12}", "  ".join(f"{ab:.3f}; {worse:.3f} / {better:.3f}" for ab, worse, better in found.values())
        )
        wrong += [(name, icc) for icc, shares in found.items() if max(shares) > MOST]
    assert not wrong


def test_a_popular_task_weighed_by_its_cases_would_be_called_different():
    """So that the tests above can fail: the same sets with every case a task of its own."""
    sizes = np.asarray(CELLS["30 + 9x1"])
    means = drawn(sizes, 0.9, 300, np.random.default_rng(SEED))
    rates = means @ sizes / sizes.sum()
    assert sum(excludes_half(score_interval(rate, 0.0, 39, 0.95)) for rate in rates) > 0.3 * 300


def test_the_rate_is_the_mean_over_tasks_and_the_verdict_says_so():
    wins = {"popular": [True] * 30} | {f"t{n}": [n < 3] for n in range(9)}
    cases = tuple(
        ps.PairwiseCase(task, "k", "b" if won else "a", "", {}, ps.Outcome.WIN, repeat=repeat)
        for task, outcomes in wins.items()
        for repeat, won in enumerate(outcomes, start=1)
    )
    run = ps.PairwiseRunResult("r", cases, ("k",))
    rate = run.win_rate("k")
    assert (rate.rate, rate.n, rate.tasks) == (0.4, 39, 10)
    assert rate.notices == ("39 cases of 10 tasks: every task counts once, by their mean",)
    weighed = "it won 40 % of 39 cases with a winner of 10 tasks, every task counting once"
    assert weighed.removeprefix("it ") in run.verdict("k")


def test_a_gate_of_fixed_size_says_how_tasks_were_weighed():
    def longer(A, B):
        return {"Y": int(len(A["text"]) > len(B["text"]))}

    names = ["popular", *(f"t{n}" for n in range(70))] * 2
    a = ps.InMemoryTraceSource((name, "x" * 5) for name in names)
    b = ps.InMemoryTraceSource((name, "x" * (9 if "7" in name else 3)) for name in names)
    found = ps.gate(a, b, criterion="c", judge=longer, fixed=True, progress=False, concurrency=1)
    assert found.verdict == "worse"
    assert "of 142 cases, every task counting once" in found.criteria[0].sentence


def test_what_is_simulated_is_what_ab_says():
    sizes = np.asarray(CELLS["4x8 + 8x1"])
    rng = np.random.default_rng(SEED + 1)
    said, simulated = [], []
    for chances in rng.beta(3, 1.2, (12, len(sizes))):
        wins = [rng.random(size) < chance for size, chance in zip(sizes, chances, strict=True)]
        cases = tuple(
            ps.PairwiseCase(f"t{task}", "k", "b" if won else "a", "", {}, ps.Outcome.WIN, repeat=repeat)
            for task, outcomes in enumerate(wins)
            for repeat, won in enumerate(outcomes, start=1)
        )
        said.append(" is better: it won " in ps.PairwiseRunResult("r", cases, ("k",)).verdict("k"))
        simulated.append(excludes_half(rate_ends(Scores(np.array([np.mean(won) for won in wins]), len(cases)), 0.95)))
    assert said == simulated
    assert 0 < sum(said) < len(said)
