"""The win rate by a judge card: its formula, its limits, and whether its intervals hold.

The long version (``make validate``) prints the figures of docs/validation.md.
"""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pairscale.evaluate.inference import calibrated_rate, win_rate
from pairscale.evaluate.inference.calibrated import calibrate
from pairscale.evaluate.inference.score import score_interval, score_limits

SEED = 20261117


def cases(wins, losses, ties=0, failed=()):
    rows = [{"outcome": "win", "winner": "b"}] * wins + [{"outcome": "win", "winner": "a"}] * losses
    rows += [{"outcome": "tie", "winner": None}] * ties
    rows = [{**row, "failed": None} for row in rows]
    rows += [{"outcome": "win", "winner": "a" if side == "b" else "b", "failed": side} for side in failed]
    return [{"task_id": f"t{n}", **row} for n, row in enumerate(rows)]


def slow(rate, ci, net, net_ci):
    """The limits by a walk over all rates, instead of by halving."""
    inside = []
    for value in np.linspace(-1, 1, 40_001):
        up, down = (net - net_ci[0], net_ci[1] - net) if value > 0 else (net_ci[1] - net, net - net_ci[0])
        gap = rate - 0.5 - net * value
        if gap - math.hypot(rate - ci[0], value * down) <= 0 <= gap + math.hypot(ci[1] - rate, value * up):
            inside.append(value)
    return max(0.0, 0.5 + inside[0]), min(1.0, 0.5 + inside[-1])


@pytest.mark.parametrize(("wins", "losses", "ties"), [(60, 30, 10), (20, 70, 0), (50, 50, 5), (8, 2, 0)])
def test_the_rate_is_the_formula_and_the_limits_those_of_a_walk(wins, losses, ties):
    found = calibrated_rate(cases(wins, losses, ties), agreed=80, against=12, undecided=8)
    raw = win_rate(cases(wins, losses, ties))
    assert found.net_agreement == pytest.approx(0.68)
    assert found.rate == pytest.approx(min(1, max(0, 0.5 + (raw.rate - 0.5) / 0.68)))
    assert found.ci == pytest.approx(slow(raw.rate, raw.ci, 0.68, found.net_ci), abs=1e-4)
    assert (found.raw_rate, found.raw_ci, found.n, found.labels) == (raw.rate, raw.ci, raw.n, 100)


@pytest.mark.slow
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 20), st.integers(20, 400))
def test_both_variants_are_treated_alike_and_the_interval_is_never_narrower(wins, losses, ties, agreed):
    if wins + losses + ties == 0:
        return
    given_card = {"agreed": agreed, "against": agreed // 5, "undecided": agreed // 10}
    one = calibrated_rate(cases(wins, losses, ties), **given_card)
    other = calibrated_rate(cases(losses, wins, ties), **given_card)
    assert (one.rate is None) == (other.rate is None)
    if one.rate is None:
        return
    assert one.rate == pytest.approx(1 - other.rate)
    assert one.ci == pytest.approx((1 - other.ci[1], 1 - other.ci[0]), abs=1e-9)
    assert one.ci[0] <= one.rate <= one.ci[1]
    assert (one.ci[0] > 0.5) == (one.raw_ci[0] > 0.5), "the card does not change who is better"


def test_a_perfect_judge_with_many_labels_changes_nothing():
    found = calibrated_rate(cases(60, 30, 10), agreed=10**7, against=0, undecided=0)
    assert found.rate == pytest.approx(found.raw_rate)
    assert found.ci == pytest.approx(found.raw_ci, abs=1e-5)


def test_failures_count_as_they_are():
    """80 judged cases at k = 0.5, 20 lost by failing: the judged part is corrected, the failures are not."""
    found = calibrated_rate(cases(50, 30, 0, failed="b" * 20), agreed=300, against=100, undecided=0)
    judged = 0.5 + (50 / 80 - 0.5) / 0.5
    assert found.rate == pytest.approx(0.8 * judged + 0.2 * 0)
    wholly = calibrated_rate(cases(50, 50, 0), agreed=300, against=100, undecided=0)
    assert found.rate != pytest.approx(wholly.rate)


@pytest.mark.parametrize(
    ("given", "card", "words"),
    [
        (cases(60, 40), (20, 15, 0), "do not show that the judge agrees with people"),
        (cases(60, 40), (0, 0, 0), "no pair of the card was decided by people"),
        (cases(98, 2), (300, 200, 0), "does not agree with people here as on its card"),
        ([], (80, 10, 0), "no case was answered"),
    ],
)
def test_where_there_is_no_corrected_rate_it_says_why(given, card, words):
    found = calibrated_rate(given, agreed=card[0], against=card[1], undecided=card[2])
    assert (found.rate, found.ci) == (None, None)
    assert words in found.notices[0]


def test_after_looks_the_interval_is_that_of_the_sequence():
    fixed, looked = (
        calibrated_rate(cases(60, 40), agreed=80, against=10, undecided=0, sequential=way) for way in (False, True)
    )
    assert looked.ci[0] < fixed.ci[0]
    assert fixed.ci[1] <= looked.ci[1]


# Coverage: people and judge drawn anew each time, the card from pairs of its own.

JUDGES = {"good": (0.90, 0.05), "middling": (0.75, 0.15), "poor": (0.60, 0.25)}
CELLS = list(product((50, 100, 300), (50, 200), JUDGES, (0.5, 0.65, 0.85)))


def coverage(labels, n, judge, rate, runs, ties=0.1):
    rng = np.random.default_rng([SEED, labels, n, *judge.encode(), int(100 * rate)])
    p, q = JUDGES[judge]
    card = rng.multinomial(labels, [p, q, 1 - p - q], runs)
    net = (card[:, 0] - card[:, 1]) / labels
    lower, upper = (
        2 * end - 1 for end in score_limits((1 + net) / 2, card[:, 2] / labels, np.full(runs, 1.0 * labels), 0.95)
    )
    b, a = rate - ties / 2, 1 - rate - ties / 2
    wins, losses = b * p + a * q + ties / 4, a * p + b * q + ties / 4
    drawn = rng.multinomial(n, [wins, 1 - wins - losses, losses], runs)
    score = (drawn[:, 0] + drawn[:, 1] / 2) / n
    low, high = score_limits(score, drawn[:, 1] / n, np.full(runs, 1.0 * n), 0.95)
    there = lower > 0
    safe = [np.where(there, one, 1.0) for one in (net, lower, upper)]
    _, below, above = calibrate(score - 0.5, score - low, high - score, *safe)
    held = np.where(there, (0.5 + below <= rate) & (rate <= 0.5 + above), True)
    return int(held.sum()), int((~there).sum()), float(((low <= rate) & (rate <= high)).mean())


@pytest.mark.slow
@pytest.mark.parametrize("cell", [(50, 200, "middling", 0.65), (100, 200, "good", 0.85), (300, 50, "poor", 0.85)])
def test_the_interval_holds(cell):
    held, _, raw = coverage(*cell, runs=2000)
    assert binom.cdf(held, 2000, 0.94) > 1e-4, held
    assert raw < 0.9, "so that this can fail: the judge's own interval does not hold"


@pytest.mark.validate
def test_the_interval_holds_in_every_cell():
    runs, found = 20_000, {}
    for cell in CELLS:
        found[cell] = coverage(*cell, runs=runs)
    print("\nCorrected by a judge card (coverage; refused; the judge's own interval), true rate .5 / .65 / .85")
    for labels, n, judge in product((50, 100, 300), (50, 200), JUDGES):
        three = [found[labels, n, judge, rate] for rate in (0.5, 0.65, 0.85)]
        figures = " / ".join(f"{held / runs:.3f}" for held, _, _ in three)
        others = " / ".join(f"{raw:.3f}" for _, _, raw in three)
        print(f"  {labels} labels, {n} cases, {judge}: {figures}; {three[0][1] / runs:.3f}; {others}")
    assert min(held / runs for held, _, _ in found.values()) > 0.935


def test_the_interval_of_the_net_agreement_is_that_of_paired_shares():
    found = calibrated_rate(cases(6, 4), agreed=40, against=6, undecided=4)
    lower, upper = score_interval(0.5 + 0.34, 4 / 50, 50, 0.95)
    assert found.net_ci == pytest.approx((2 * lower - 1, 2 * upper - 1))
