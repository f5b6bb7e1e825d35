"""Do the intervals of A/B evaluation hold what they promise? Counted exactly where possible, simulated elsewhere.

The long versions (``make validate``) print the figures of docs/validation.md and demand 93 to 97 % of the fixed-n
intervals, and at least 95 % of the sequence. The short ones reject only what chance would do once in ten thousand runs.
"""

import math
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.special import betaln, expit, logit
from scipy.stats import binom, multinomial, norm

from pairscale.evaluate.inference.cases import Scores
from pairscale.evaluate.inference.control import LENGTH, controlled_rate, fit_penalised, scales_of
from pairscale.evaluate.inference.corrected import correct, corrected_win_rate
from pairscale.evaluate.inference.score import rate_ends, score_limits
from pairscale.evaluate.inference.sequence import portfolio

SIZES, RATES, TIES = (30, 100, 400), (0.5, 0.6, 0.8), (0.0, 0.3)
CELLS = list(product(SIZES, RATES, TIES))
SEED = 20261116
VALUES = np.array([0.0, 0.5, 1.0])
RARE = 1e-4
JUDGES = {"good": 0.8, "middling": 0.4, "useless": 0.0}


def shares(rate, ties):
    """Of losses, ties and wins."""
    return np.array([1 - rate - ties / 2, ties, rate - ties / 2])


def acceptable(covered, runs):
    """Whether so many of so many runs may come from a coverage between 93 and 97 %."""
    return binom.cdf(covered, runs, 0.93) > RARE and binom.sf(covered - 1, runs, 0.97) > RARE


def show(name, coverage):
    """A line a size and share of ties, a column a rate."""
    print(f"\n{name}")
    for n, ties in product(SIZES, TIES):
        print(f"  n {n}, ties {ties}: " + " ".join(f"{coverage[n, rate, ties]:.3f}" for rate in RATES))


# Wilson, exactly: all outcomes of n cases with their chances.


def wilson_coverage(n, rate, ties):
    wins, halves = np.divmod(np.arange((n + 1) ** 2), n + 1)
    possible = wins + halves <= n
    if not ties:
        possible &= halves == 0
    wins, halves = wins[possible], halves[possible]
    lower, upper = score_limits((wins + halves / 2) / n, halves / n, np.full(len(wins), float(n)), 0.95)
    chance = multinomial.pmf(np.stack([n - wins - halves, halves, wins], axis=1), n, shares(rate, ties))
    return float(chance[(lower <= rate) & (rate <= upper)].sum())


@pytest.mark.slow
def test_wilson_covers_in_every_cell_counted_exactly():
    coverage = {cell: wilson_coverage(*cell) for cell in CELLS}
    show("Wilson, exact", coverage)
    assert all(0.93 <= share <= 0.97 for share in coverage.values()), coverage


# Bootstrap, and tasks with several cases.


def drawn_scores(rng, tasks, rate, ties, repeats, concentration=7 / 3):
    """Scores of tasks, whose chances vary (intraclass correlation 0.3): a row of cases per task."""
    chances = rng.gamma(np.maximum(concentration * shares(rate, ties), 1e-12), size=(tasks, 3))
    chances = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
    draws = rng.random((tasks, repeats))
    return ((draws > chances[:, :1]).astype(float) + (draws > chances[:, 1:2])) / 2


def clustered_wilson(rng, runs, tasks, rate, ties):
    drawn = [Scores(drawn_scores(rng, tasks, rate, ties, 3).mean(axis=1), 3 * tasks) for _ in range(runs)]
    ends = [rate_ends(scores, 0.95) for scores in drawn]
    return sum(lower <= rate <= upper for lower, upper in ends)


@pytest.mark.slow
@pytest.mark.parametrize("cell", [(30, 0.8, 0.0), (100, 0.6, 0.3)])
def test_several_cases_a_task_are_covered(cell):
    rng = np.random.default_rng([SEED, *(int(100 * part) for part in cell)])
    assert acceptable(clustered_wilson(rng, 1000, *cell), 1000)


def test_counting_repeats_as_cases_would_not_cover():
    """So that the test above can fail: the same data as if every case were a task of its own."""
    rng = np.random.default_rng(SEED)
    drawn = [drawn_scores(rng, 100, 0.6, 0.3, 3) for _ in range(1000)]
    means, halves = np.array([s.mean() for s in drawn]), np.array([(s == 0.5).mean() for s in drawn])
    lower, upper = score_limits(means, halves, np.full(1000, 300.0), 0.95)
    assert not acceptable(int(((lower <= 0.6) & (upper >= 0.6)).sum()), 1000)


@pytest.mark.validate
def test_several_cases_a_task_are_covered_in_every_cell():
    coverage = {}
    for at, cell in enumerate(CELLS):
        rng = np.random.default_rng([SEED, 1, at])
        coverage[cell] = clustered_wilson(rng, 2000, *cell) / 2000
    show("Wilson, 3 cases a task", coverage)
    for cell, share in coverage.items():
        assert acceptable(round(share * 2000), 2000), (cell, share)


# At equal length.

KINDS = ("wins", "ties", "graded")
EFFECTS = (0.0, 1.0, 2.0)
LENGTH_CELLS = list(product(KINDS, SIZES, EFFECTS))


def drawn_lengths(rng, n, rate, effect, kind, longer=0.3):
    """Lengths and scores with a known effect of length; B's answers are longer, by ``longer`` doublings on average."""
    a = np.exp(rng.normal(7, 0.6, n))[:, None]
    b = a * 2 ** rng.normal(longer, 0.6, (n, 1))
    x = np.tanh((b - a) / scales_of(a, b))
    chance = expit(logit(rate) + effect * x[:, 0])
    if kind == "graded":
        score = rng.beta(np.maximum(chance, 1e-6), np.maximum(1 - chance, 1e-6))
    else:
        ties = 0.6 * np.minimum(chance, 1 - chance) * (kind == "ties")
        drawn = rng.random(n)
        score = np.where(drawn < ties, 0.5, drawn < ties / 2 + chance)
    return x, score, a[:, 0], b[:, 0]


def length_cases(score, a, b):
    return pl.DataFrame({"task_id": range(len(score)), "preference": score, "length_a": a, "length_b": b})


def length_covered(rng, runs, n, rate, effect, kind, longer=0.3):
    """How often the intervals hold the rate at equal length, and the effect, of which the truths are known."""
    truth, covered = np.array([logit(rate), effect]), np.zeros(2, dtype=int)
    for _ in range(runs):
        x, score, *_ = drawn_lengths(rng, n, rate, effect, kind, longer)
        fit = fit_penalised(x, score, (LENGTH,))
        covered += np.abs(fit[0] - truth) <= norm.ppf(0.975) * fit[1]
    return covered


def test_the_rate_at_equal_length_is_covered():
    rng = np.random.default_rng([SEED, 2])
    for kind, n, effect, rate in (("ties", 30, 0.0, 0.6), ("wins", 100, 0.0, 0.8), ("graded", 100, 2.0, 0.5)):
        for covered in length_covered(rng, 400, n, rate, effect, kind):
            assert binom.cdf(covered, 400, 0.93) > RARE, (kind, n, effect, rate, covered)


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_is_that_of_the_fit(kind):
    """The whole function beside what the simulations count."""
    x, *cases = drawn_lengths(np.random.default_rng([SEED, 5]), 40, 0.6, 1.0, kind)
    fit, found = fit_penalised(x, cases[0], (LENGTH,)), controlled_rate(length_cases(*cases))
    ends = fit[0][:, None] + np.outer(fit[1], [-1, 1]) * norm.ppf(0.975)
    assert found.ci == pytest.approx(expit(ends[0]))


@pytest.mark.validate
def test_the_rate_at_equal_length_is_covered_in_every_cell():
    """At least 93 %; more is to be expected, because the interval allows for effects that lie elsewhere."""
    runs, wrong = 1000, []
    print("\nlength-controlled: coverage of the rate at 0.5 / 0.6 / 0.8 (of the effect)")
    for at, (kind, n, effect) in enumerate(LENGTH_CELLS):
        rng = np.random.default_rng([SEED, 4, at])
        covered = [length_covered(rng, runs, n, rate, effect, kind) for rate in RATES]
        figures = " / ".join(f"{rate / runs:.3f} ({slope / runs:.3f})" for rate, slope in covered)
        print(f"  {kind}, n {n}, effect {effect}: {figures}")
        wrong += [(kind, n, effect, one) for one in covered if binom.cdf(one.min(), runs, 0.93) <= RARE]
    assert not wrong


# Corrected by labels.


def drawn_labels(rng, runs, labels, others, rate, ties, agree):
    """The model repeats people's choice with the chance ``agree``, and else favours B whatever they say."""
    people = rng.choice(VALUES, (runs, labels + others), p=shares(rate, ties))
    own = rng.choice(VALUES, people.shape, p=[0.4, 0.1, 0.5])
    model = np.where(rng.random(people.shape) < agree, people, own)
    return people[:, :labels], model[:, :labels], model[:, labels:]


def corrected_covered(rng, runs, n, rate, ties, agree, times=4):
    """Covered, helped, and the mean width over that of the labels alone."""
    sets = zip(*drawn_labels(rng, runs, n, times * n, rate, ties, agree), strict=True)
    found = [correct(*scores, 0.95) for scores in sets]
    size = np.array([worth for _, _, worth, _, _ in found])
    covered = sum(lower <= rate <= upper for _, _, _, (lower, upper), _ in found)
    return covered, float((size > n).mean()), float(np.sqrt(n / size).mean())


def test_the_corrected_rate_is_covered():
    rng = np.random.default_rng([SEED, 5])
    for cell, agree in (((30, 0.8, 0.3), 0.8), ((100, 0.6, 0.0), 0.4), ((30, 0.5, 0.3), 0.0)):
        assert acceptable(corrected_covered(rng, 1000, *cell, agree)[0], 1000)


@pytest.mark.validate
@pytest.mark.parametrize("judge", JUDGES)
def test_the_corrected_rate_is_covered_in_every_cell(judge):
    coverage, helped, width = {}, {}, {}
    for at, cell in enumerate(CELLS):
        runs = 1500 if cell[0] == 400 else 4000
        rng = np.random.default_rng([SEED, 7, at])
        covered, helped[cell], width[cell] = corrected_covered(rng, runs, *cell, JUDGES[judge])
        coverage[cell] = covered / runs
    show(f"corrected, {judge} judge", coverage)
    show("  helped", helped)
    show("  width over that of the labels", width)
    for cell, share in coverage.items():
        runs = 1500 if cell[0] == 400 else 4000
        assert acceptable(round(share * runs), runs), (cell, share)


@pytest.mark.validate
def test_the_corrected_rate_of_few_labels_and_a_very_good_judge_errs_on_the_safe_side():
    """30 labels, 19 times as many other tasks, and a judge that disagrees in one case of twenty."""
    for rate, ties in product(RATES, TIES):
        rng = np.random.default_rng([SEED, 8, round(100 * rate), round(100 * ties)])
        covered, helped, width = corrected_covered(rng, 3000, 30, rate, ties, 0.9, times=19)
        print(f"rate {rate}, ties {ties}: {covered / 3000:.3f}, helped {helped:.2f}, width {width:.2f}")
        assert binom.cdf(covered, 3000, 0.93) > RARE


# The sequence, under continuous looking.


def miss_within(rate, looks, *, wilson=False):
    """The exact chance that the truth is outside at some look, without ties: all paths of wins and losses.

    With ``wilson``, for contrast, the fixed-n interval is looked at instead, from the tenth case on.
    """
    z2 = norm.ppf(0.975) ** 2
    chance, missed = np.array([1.0]), 0.0
    for n in range(1, looks + 1):
        chance = np.append(chance * (1 - rate), 0) + np.append(0, chance * rate)
        wins = np.arange(n + 1)
        if wilson:
            out = (n * (wins / n - rate) ** 2 > z2 * rate * (1 - rate)) & (n >= 10)
        else:
            capital = betaln(wins + 1.5, n - wins + 1.5) - betaln(1.5, 1.5)
            out = capital - wins * math.log(rate) - (n - wins) * math.log1p(-rate) >= math.log(20)
        missed += float(chance[out].sum())
        chance[out] = 0
    return missed


def test_the_sequence_never_misses_more_than_it_may_counted_exactly():
    for rate in RATES:
        assert miss_within(rate, 600) < 0.05
    assert miss_within(0.5, 600, wilson=True) > 0.3


def followed(rng, runs, looks, rate, ties, doubted):
    """For each path: the first look at which each of the doubted means is outside, or 0. Score by score, bet by bet."""
    q, first_share = portfolio(looks)
    first = np.zeros((len(doubted), runs), dtype=int)
    capital = np.zeros((len(doubted), runs, len(q)))
    gains = np.stack([[np.log(x * q / m + (1 - x) * (1 - q) / (1 - m)) for x in VALUES] for m in doubted])
    for look in range(1, looks + 1):
        score = rng.choice(3, runs, p=shares(rate, ties))
        capital += gains[:, score]
        most = capital.max(axis=2)
        total = most + np.log(np.exp(capital - most[:, :, None]) @ first_share)
        first = np.where((first == 0) & (total >= math.log(20)), look, first)
    return first


def test_with_ties_the_sequence_covers_and_raises_no_false_alarm():
    for rate in (0.5, 0.8):
        first = followed(np.random.default_rng([SEED, 9]), 300, 150, rate, 0.3, [rate])
        assert binom.sf((first > 0).sum() - 1, 300, 0.05) > RARE


@pytest.mark.validate
def test_the_sequence_covers_under_continuous_looking():
    truths = (0.5, 0.55, 0.6, 0.7, 0.8)
    print("\nsequence, no ties, exact: chance of a miss within 5,000 looks")
    for rate in truths:
        missed = miss_within(rate, 5000)
        print(f"  rate {rate}: {missed:.4f}")
        assert missed < 0.05
    print(f"  Wilson's interval looked at as often (rate 0.5): {miss_within(0.5, 5000, wilson=True):.3f}")
    print("sequence with 30 % ties, 2,000 paths of 1,000 looks: missed the truth; ½ outside (decided), median look")
    for at, rate in enumerate(truths):
        truth, even = followed(np.random.default_rng([SEED, 10, at]), 2000, 1000, rate, 0.3, [rate, 0.5])
        looks = np.where(even > 0, even, np.inf)
        print(f"  rate {rate}: {(truth > 0).mean():.4f}; {(even > 0).mean():.4f}, {np.median(looks):.0f}")
        assert (truth > 0).mean() < 0.05
        if rate == 0.5:
            assert (even > 0).mean() < 0.05


# The public functions, so that the vectorised parts above are the ones that users meet.


def test_what_is_simulated_is_what_users_get():
    rng = np.random.default_rng([SEED, 11])
    people, here, there = drawn_labels(rng, 5, 40, 160, 0.6, 0.3, 0.8)

    def frame(scores):
        outcome = np.where(scores == 0.5, "tie", "win")
        winner = np.where(scores == 1, "b", np.where(scores == 0, "a", None))
        ids = [str(at) for at in range(len(scores))]
        return pl.DataFrame({"task_id": ids, "outcome": outcome, "winner": winner.tolist()})

    for row in range(5):
        result = corrected_win_rate(frame(np.concatenate([here[row], there[row]])), frame(people[row]))
        assert result.ci == pytest.approx(correct(people[row], here[row], there[row], 0.95)[3])
