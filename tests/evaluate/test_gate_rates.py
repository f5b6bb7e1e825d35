"""How often a gate is wrong, and what it spends: 2,000 simulated pull requests per scenario.

The long version (``make validate``) prints the figures of docs/validation.md. The short ones reject only what chance
would do once in ten thousand runs.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import gammaln, xlogy
from scipy.stats import binom
from tests.evaluate.gate_simulation import Scenario, drawn, fixed, sequential

from pairscale.core.errors import InputError
from pairscale.evaluate.inference.cases import Scores
from pairscale.evaluate.inference.gate import (
    GateRule,
    RunningVerdict,
    Shown,
    cases_to_decide,
    fixed_bounds,
    log_capital_above,
    log_capital_below,
    lower_bound,
    shown_by,
    tasks_to_fail,
    upper_bound,
    verdict_of_ways,
)
from pairscale.evaluate.inference.score import careful_limits, rate_ends, score_limits

SEED = 20261117
RARE = 1e-4
PASSES = ("better", "equivalent", "not-worse")

EQUAL = {
    "equal": Scenario(0.5),
    "equal, 40 % ties": Scenario(0.5, 0.4),
    "equal, 5 % failures of each": Scenario(0.5, 0.2, failing=(0.05, 0.05)),
    "equal, graded": Scenario(0.5, graded=True),
    "equal, margin .05": Scenario(0.5, tasks=1200, margin=0.05),
}
EDGE = {
    "worse by the margin": Scenario(0.4),
    "worse by the margin, 40 % ties": Scenario(0.4, 0.4),
    # B wins .4 of the cases without a failure, which is the edge; .41 if failures are losses.
    "worse by the margin, 5 % failures of each": Scenario(0.4, 0.2, failing=(0.05, 0.05)),
    "worse by the margin with failures": Scenario(0.44, failing=(0.0, 1 - 0.4 / 0.44)),
    "worse by the margin, graded": Scenario(0.4, graded=True),
    "worse by margin .05": Scenario(0.45, tasks=1200, margin=0.05),
}
EFFECTS = {
    "B wins 20 %": Scenario(0.2),
    "B wins 30 %": Scenario(0.3),
    "B wins 35 %": Scenario(0.35),
    "B wins 60 %": Scenario(0.6),
    "B wins 70 %": Scenario(0.7),
    "B wins 30 %, 40 % ties": Scenario(0.3, 0.4),
}


def gates(scenario, runs, seed):
    values, failed = drawn(scenario, runs, np.random.default_rng(seed))
    return sequential(scenario, values, failed), fixed(scenario, values, failed)


def at_most(share, runs, limit=0.05):
    """Whether a share may come from a chance of at most this."""
    return binom.sf(round(share * runs) - 1, runs, limit) > RARE


@pytest.mark.parametrize("scenario", [EQUAL["equal"], EQUAL["equal, 40 % ties"], EQUAL["equal, graded"]])
def test_an_equal_variant_is_seldom_called_worse(scenario):
    asked, all_asked = gates(scenario, 150, [SEED, 1])
    assert at_most(asked.share("worse"), 150)
    assert at_most(all_asked.share("worse"), 150)
    assert asked.share(*PASSES) > 0.8
    assert asked.tasks.mean() < 0.5 * scenario.tasks


@pytest.mark.parametrize("scenario", [EDGE["worse by the margin"], EDGE["worse by the margin with failures"]])
def test_a_variant_worse_by_the_margin_seldom_passes_as_not_worse(scenario):
    asked, all_asked = gates(scenario, 150, [SEED, 2])
    assert at_most(asked.share(*PASSES), 150)
    assert at_most(all_asked.share(*PASSES), 150)
    assert asked.share("worse") > 0.7


def ever_shown(mean, rate, margin, looks, capital):
    """The chance that a bound ever passes the mean, without ties: over all paths of wins and losses."""
    chance, found = np.array([1.0]), 0.0  # by the number of wins, of paths that have not passed it yet
    for n in range(1, looks + 1):
        chance = np.append(chance * (1 - rate), 0.0) + np.append(0.0, chance * rate)
        wins = np.arange(n + 1.0)
        passed = capital(mean, margin, np.array([0.0, 1.0]), np.stack([n - wins, wins], axis=1)) >= np.log(20)
        found += chance[passed].sum()
        chance[passed] = 0.0
    return float(found)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("margin", "looks"), [(0.1, 120), *(pytest.param(margin, 400, marks=SLOW) for margin in (0.0, 0.05, 0.1, 0.2))]
)
def test_no_error_is_more_frequent_than_the_level_says_counted_exactly(margin, looks):
    """At equality ``worse``, and at the edge ``not-worse``; away from the edge, less often still."""
    worse = ever_shown(0.5, 0.5, margin, looks, log_capital_below)
    not_worse = ever_shown(0.5 - margin, 0.5 - margin, margin, looks, log_capital_above)
    print(f"\nmargin {margin}, {looks} looks: worse of equals {worse:.4f}, not-worse at the edge {not_worse:.4f}")
    assert 0.025 < worse <= 0.05
    assert 0.025 < not_worse <= 0.05
    assert ever_shown(0.5, 0.55, margin, looks, log_capital_below) < 0.8 * worse


def outcomes(n):
    """All numbers of wins, ties and losses that n cases can have."""
    wins, ties = (part.ravel() for part in np.indices((n + 1, n + 1)))
    possible = wins + ties <= n
    return wins[possible], ties[possible], n - (wins + ties)[possible]


def chances(counts, rate, ties):
    """How likely these numbers are, if B's rate and the share of ties are so."""
    shares = np.array([rate - ties / 2, ties, 1 - rate - ties / 2])
    ways = gammaln(sum(counts) + 1) - sum(gammaln(one + 1) for one in counts)
    return np.exp(ways + sum(xlogy(one, share) for one, share in zip(counts, shares, strict=True)))


def fixed_errors(limits, margins=(0.0, 0.05, 0.1, 0.2), most=60):
    """Over 1 to 60 cases and shares of ties, how often at most B is wrongly above the edge, and wrongly below ½."""
    above, worse = dict.fromkeys(margins, 0.0), 0.0
    for n in range(1, most + 1):
        counts = outcomes(n)
        ends = limits((counts[0] + counts[1] / 2) / n, counts[1] / n, np.full(len(counts[0]), float(n)), 0.9)
        for ties in (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9):
            worse = max(worse, chances(counts, 0.5, ties)[ends[1] < 0.5].sum())
            for margin in margins:
                if ties / 2 <= 0.5 - margin:
                    wrong = chances(counts, 0.5 - margin, ties)[ends[0] > 0.5 - margin].sum()
                    above[margin] = max(above[margin], wrong)
    return worse, *above.values()


def test_a_gate_of_fixed_size_keeps_its_level_for_any_number_of_cases_counted_exactly():
    """``worse``, ``better`` (the margin 0) and ``not-worse``, with and without ties."""
    errors = fixed_errors(careful_limits)
    print(f"\nworse {errors[0]:.4f}, better and not-worse by margin {', '.join(f'{one:.4f}' for one in errors[1:])}")
    assert max(errors) <= 0.05
    assert min(errors) > 0.045, "none is wider than it must be"
    assert max(fixed_errors(score_limits, most=10)) > 0.1, "the usual interval calls four losses of four worse"


@pytest.mark.parametrize("ties", [0.3, pytest.param(0.05, marks=SLOW), pytest.param(0.7, marks=SLOW)])
@pytest.mark.parametrize("margin", [0.1, pytest.param(0.05, marks=SLOW), pytest.param(0.2, marks=SLOW)])
def test_a_gate_that_looks_after_every_task_keeps_its_level_with_ties_counted_exactly(margin, ties):
    for mean, capital in ((0.5, log_capital_below), (0.5, log_capital_above), (0.5 - margin, log_capital_above)):
        if ties / 2 > mean:
            continue
        shares = (mean - ties / 2, ties, 1 - mean - ties / 2)
        chance, found = np.ones((1, 1)), 0.0  # by wins and ties, of paths that have not passed it yet
        for n in range(1, 61):
            step = np.zeros((n + 1, n + 1))
            for (win, tie), share in zip(((1, 0), (0, 1), (0, 0)), shares, strict=True):
                step[win : win + n, tie : tie + n] += share * chance
            wins, tied, lost = outcomes(n)
            table = np.stack([lost, tied, wins], axis=1).astype(float)
            passed = capital(mean, margin, np.array([0.0, 0.5, 1.0]), table) >= np.log(20)
            found += step[wins[passed], tied[passed]].sum()
            step[wins[passed], tied[passed]] = 0.0
            chance = step
        assert 0 < found <= 0.05


def score_table(scores):
    """Of one case per task."""
    return Scores(scores, len(scores))


def test_few_grades_and_repeats_have_the_bounds_of_the_sequence():
    """A judge whose grades are near 0 and 1 says little more than one who names a winner."""
    four = Scores(np.array([0.01, 0.02, 0.01, 0.01]), 4)
    assert fixed_bounds(four, 0.05, 0.95)[1] > 0.5
    assert rate_ends(four, 0.9)[1] < 0.5, "which the usual interval takes for worse"
    thrice = Scores(np.zeros(4), 12)
    assert fixed_bounds(thrice, 0.05, 0.95)[1] > 0.5
    rng, wrong = np.random.default_rng([SEED, 6]), 0
    for _ in range(60):
        wrong += fixed_bounds(score_table(rng.beta(0.3, 0.3, 8)), 0.1, 0.95)[1] < 0.5
    assert at_most(wrong / 60, 60)


@pytest.mark.parametrize("scenario", [Scenario(0.4, 0.2, 80), Scenario(0.45, tasks=80, graded=True)])
def test_the_simulated_gate_of_fixed_size_is_the_gate(scenario):
    values, failed = drawn(scenario, 12, np.random.default_rng([SEED, 7]))
    simulated = fixed(scenario, values, failed)
    for run, verdict in enumerate(simulated.verdicts):
        ends = fixed_bounds(score_table(scenario.values[values[run]]), scenario.margin, 0.95)
        assert verdict == verdict_of_ways({"loss": shown_by(*ends, scenario.margin)}, "loss")


def test_the_bounds_of_a_single_look_would_not_hold_at_every_look():
    """So that the tests above can fail: the usual interval, looked at after every task."""
    scenario = Scenario(0.5, tasks=200)
    values, failed = drawn(scenario, 300, np.random.default_rng([SEED, 3]))
    ever = np.zeros(300, dtype=bool)
    for n in range(10, 201, 5):
        ever |= fixed(scenario, values[:, :n], failed[:, :n]).verdicts == "worse"
    assert not at_most(ever.mean(), 300)


@pytest.mark.parametrize("scenario", [Scenario(0.45, 0.2, 60), Scenario(0.3, 0.2, 60, failing=(0.1, 0.2))])
def test_the_simulated_gate_is_the_gate(scenario):
    """Task by task, with the class that a run uses."""
    values, failed = drawn(scenario, 12, np.random.default_rng([SEED, 4]))
    simulated = sequential(scenario, values, failed)
    rule = GateRule(scenario.margin, by_flips=False)
    for run in range(12):
        ways = {"loss": rule.sequence(), "excluded": rule.sequence()}
        look = SimpleNamespace(sequences=ways)
        for at in range(scenario.tasks):
            score = scenario.values[values[run, at]]
            ways["loss"].update(score)
            if not failed[run, at]:
                ways["excluded"].update(score)
            if rule.decided(look, "loss"):
                break
        assert simulated.verdicts[run] == rule.verdict(look, "loss")
        assert simulated.tasks[run] == at + 1


def test_how_many_cases_it_takes():
    assert [cases_to_decide(0.1, ties=ties) for ties in (0.0, 0.25, 0.5)] == [268, 194, 129]
    assert [cases_to_decide(0.1, ties=ties, fixed=True) for ties in (0.0, 0.5)] == [162, 87]
    assert cases_to_decide(0.1, level=0.99) > 268
    assert cases_to_decide(0.0) is None
    for margin in (0.05, 0.2):
        for is_fixed in (False, True):
            needed = tasks_to_fail(margin, fixed=is_fixed)
            for n, fails in ((needed - 1, False), (needed, True)):
                watch = RunningVerdict(margin)
                for _ in range(n):
                    watch.update(0.0)
                if is_fixed:
                    shown = careful_limits(np.zeros(1), np.zeros(1), np.array([float(n)]), 0.9)[1][0] < 0.5
                else:
                    shown = watch.shown.worse
                assert shown == fails, (margin, is_fixed, n)


def test_what_was_ruled_out_stays_outside_the_bounds():
    watch = RunningVerdict(0.2)
    for score in [1.0] * 12 + [0.0] * 6:
        watch.update(score)
    assert watch.shown.better
    assert watch.ci[0] >= 0.5
    watch = RunningVerdict(0.2)
    for score in [0.0] * 12 + [1.0] * 6:
        watch.update(score)
    assert watch.shown.worse
    assert watch.ci[1] <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("margin", [0.1, 0.2])
@pytest.mark.parametrize("ties", [0.0, 0.5])
def test_the_number_of_cases_that_is_named_is_about_enough(margin, ties):
    needed = cases_to_decide(margin, ties=ties)
    scenario = Scenario(0.5, ties, needed, margin)
    asked, _ = gates(scenario, 200, [SEED, 5])
    assert 0.65 < asked.share(*PASSES) < 0.92
    alone = cases_to_decide(margin, ties=ties, fixed=True)
    _, all_asked = gates(Scenario(0.5, ties, alone, margin), 200, [SEED, 6])
    assert 0.65 < all_asked.share(*PASSES) < 0.92


@pytest.mark.validate
def test_error_rates_and_power_over_2000_pull_requests():
    runs = 2000
    print(f"\n{'scenario':46} worse  passes  undecided  mean tasks  80 % of runs | fixed: worse  passes")
    for group, scenarios in enumerate((EQUAL, EDGE, EFFECTS)):
        for at, (name, scenario) in enumerate(scenarios.items()):
            asked, all_asked = gates(scenario, runs, [SEED, 10 + group, at])
            figures = asked.share("worse"), asked.share(*PASSES), asked.share("inconclusive")
            print(
                f"{name:46} {figures[0]:.3f}   {figures[1]:.3f}      {figures[2]:.3f} {asked.tasks.mean():11.0f} "
                f"{np.quantile(asked.tasks, 0.8):13.0f} | {all_asked.share('worse'):12.3f}   "
                f"{all_asked.share(*PASSES):.3f}"
            )
            if scenarios is EQUAL:
                assert at_most(figures[0], runs), name
            if scenarios is EDGE:
                assert at_most(figures[1], runs), name
            if scenario in (EFFECTS["B wins 20 %"], EFFECTS["B wins 30 %"]):
                assert figures[0] > 0.99, name


# By hand.


def test_what_a_bound_shows_lies_beyond_the_limit_and_not_at_it():
    assert shown_by(0.5, 0.5, 0.05) == Shown(better=False, not_worse=True, no_gain=True, worse=False)
    assert shown_by(0.45, 0.55, 0.05) == Shown()
    assert shown_by(0.501, 0.6, 0.05) == Shown(better=True, not_worse=True)
    assert shown_by(0.4, 0.499, 0.05) == Shown(no_gain=True, worse=True)
    assert GateRule() == GateRule(margin=0.05, level=0.95, fail_if=("worse",), by_flips=True)


def test_graded_tasks_have_the_bounds_of_the_sequence_below_sixty_and_of_their_spread_from_there():
    for n in (59, 60):
        means = np.linspace(0.3, 0.8, n)
        found = fixed_bounds(Scores(means, n), 0.05, 0.95)
        ones = np.ones(n)
        anytime = lower_bound(means, ones, 0.05, 0.95), upper_bound(means, ones, 0.05, 0.95)
        assert found == (anytime if n < 60 else rate_ends(Scores(means, n), 0.9))


def test_no_number_of_cases_decides_without_a_margin_or_with_a_tiny_one():
    assert cases_to_decide(0.0) is cases_to_decide(0.0, fixed=True) is cases_to_decide(1e-5, fixed=True) is None


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_a_bound_is_where_the_capital_rules_a_mean_out(margin):
    values, counts = np.array([0.0, 0.5, 1.0]), np.array([20.0, 10.0, 50.0])
    lower, upper = (bound(values, counts, margin, 0.9) for bound in (lower_bound, upper_bound))
    assert 0.5 < lower < 0.6875 < upper < 1
    bar = -np.log(1 - 0.9)
    assert log_capital_above(lower, margin, values, counts[None, :])[0] == pytest.approx(bar, abs=1e-4)
    assert log_capital_below(upper, margin, values, counts[None, :])[0] == pytest.approx(bar, abs=1e-4)


@pytest.mark.parametrize("side", [0, 1])
def test_what_was_ruled_out_stays_outside_of_the_bounds(side):
    """After 400 even scores the rate is neither .1 above nor below a half; 250 wins or losses do not change that."""
    running = RunningVerdict(margin=0.1)
    for at in range(400):
        running.update(at % 2)
    assert running.shown == Shown(not_worse=True, no_gain=True)
    for _ in range(250):
        running.update(side)
    values, counts = running.counted()
    bound, limit = (upper_bound, 0.6) if side else (lower_bound, 0.4)
    assert abs(bound(values, counts[0], 0.1, 0.95) - 0.5) > 0.1
    assert running.ci[side] == pytest.approx(limit)


@pytest.mark.parametrize("side", [0, 1])
def test_whoever_was_shown_to_be_better_stays_so(side):
    running = RunningVerdict(margin=0.1)
    for at in range(200):
        running.update(side if at < 60 else 1 - side)
    assert running.shown.better if side else running.shown.worse
    assert running.ci[1 - side] == pytest.approx(0.5)


@pytest.mark.parametrize("margin", [0.5, 0.7, -0.01])
def test_a_margin_is_below_a_half(margin):
    with pytest.raises(InputError, match="margin"):
        RunningVerdict(margin)


def test_without_a_word_a_gate_looks_after_every_task():
    assert tasks_to_fail(0.05) == tasks_to_fail(0.05, fixed=False) == 8
    assert cases_to_decide(0.1) == cases_to_decide(0.1, fixed=False) == 268
