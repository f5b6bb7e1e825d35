"""Simulated runs, studies of them, and plans."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

import pairscale as ps
from pairscale.core.errors import InputError, UnknownNameError
from pairscale.models.correlations import spearman
from pairscale.simulation.planning import _plan
from pairscale.simulation.run import MapEstimate, SimulatedRun, _Judge, simulate_run
from pairscale.simulation.study import RUNS, SETTING, simulate

SELECTORS = ("pollitt", "random", "nearest", "information")


# One run


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_run_is_reproducible_and_measured(selector):
    runs = [simulate_run(16, selector, 3, max_comparisons=70, checkpoints=(20, 50)) for _ in range(2)]
    one, two = runs
    assert np.array_equal(one.history, two.history)
    assert one.curve.equals(two.curve)
    assert one.refits.equals(two.refits)
    assert (one.comparisons, one.asked, one.stop_reason) == (70, 70, "max_comparisons")
    assert one.curve["comparisons"].to_list() == [20, 50]
    last = one.refits.row(-1, named=True)
    assert (last["comparisons"], last["is_closing"]) == (70, True)
    assert last["reliability_true"] == pytest.approx(np.corrcoef(one.theta, one.abilities)[0, 1] ** 2)
    expected = spearman(MapEstimate(16).fit(one.history[:50]), one.abilities)
    assert one.curve["spearman_map"][-1] == pytest.approx(expected, abs=0.02)


@pytest.mark.slow
def test_selectors_share_abilities_and_luck():
    runs = {name: simulate_run(14, name, 5, max_comparisons=90) for name in SELECTORS}
    won: dict[tuple[int, int, int, int], int] = {}
    shared = 0
    for run in runs.values():
        assert np.array_equal(run.abilities, runs["random"].abilities)
        asked: dict[tuple[int, int], int] = {}
        for first, second, y in run.history.tolist():
            pair = min(first, second), max(first, second)
            asked[pair] = asked.get(pair, 0) + 1
            key = (first, second, *pair, asked[pair])
            shared += key in won
            assert won.setdefault(key, y) == y
    assert shared > 50
    other = simulate_run(14, "random", 6, max_comparisons=90)
    assert not np.array_equal(other.abilities, runs["random"].abilities)


def test_the_judge_errs_as_told():
    n, bias, lapse = 400, 0.7, 0.2
    truth = np.linspace(-2, 2, n)
    judge = _Judge(truth, 1, ps.SimulatedJudge("truth", bias=bias, lapse=lapse, invalid_rate=0.1))
    counted: dict[bool, list[tuple[int | None, float]]] = {True: [], False: []}
    rng = np.random.default_rng(2)
    for _ in range(20_000):
        i, j = rng.choice(n, 2, replace=False).tolist()
        chance = (1 - lapse) / (1 + math.exp(truth[j] - truth[i] - bias)) + lapse / 2
        counted[i < j].append((judge.answer(i, j)[0], chance))
    for answers in counted.values():
        said = [(y, chance) for y, chance in answers if y is not None]
        assert 1 - len(said) / len(answers) == pytest.approx(0.1, abs=0.015)
        off = sum(y - chance for y, chance in said) / math.sqrt(sum(c * (1 - c) for _, c in said))
        assert abs(off) < 4


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"n_items": 1}, "n_items must be a whole number of 2 or more, not 1"),
        ({"ability_sd": 0}, "ability_sd must be a number above 0, not 0"),
        ({"lapse": 1.5}, "lapse must be a number from 0 to 1, not 1.5"),
        ({"abilities": [1.0, 2.0]}, "abilities must be 5 numbers"),
        ({"concurrency": 0}, "concurrency must be a whole number of 1 or more"),
        ({"max_comparisons": 2.5}, "max_comparisons must be a whole number"),
        ({"selector": "best"}, "no selector 'best'"),
        ({"btl_config": {"reliability": 1}}, "btl_config: no field 'reliability'"),
    ],
)
def test_impossible_settings_are_refused(options, why):
    with pytest.raises(InputError, match=why):
        simulate_run(**({"n_items": 5} | options))


# The estimate


def test_the_estimate_is_the_mode():
    rng = np.random.default_rng(4)
    n = 9
    first = rng.integers(0, n, 120)
    second = (first + rng.integers(1, n, 120)) % n
    y = rng.integers(0, 2, 120)
    estimate = MapEstimate(n)
    theta = estimate.fit(np.stack([first, second, y], axis=1))

    def depth(x):
        d = x[first] - x[second]
        return np.logaddexp(0, np.where(y == 1, -d, d)).sum() + x @ x / (2 * estimate.sd**2)

    assert theta == pytest.approx(minimize(depth, np.zeros(n)).x, abs=1e-4)


@pytest.mark.slow
def test_the_width_of_the_prior_is_learned():
    narrow, wide = (simulate_run(60, "random", 1, ability_sd=sd, max_comparisons=900) for sd in (0.6, 2.5))
    widths = []
    for run in (narrow, wide):
        estimate = MapEstimate(60)
        estimate.fit(run.history)
        widths.append(estimate.sd / run.abilities.std())
    assert all(0.7 < ratio < 1.4 for ratio in widths)


# Studies


@pytest.fixture(scope="module")
def study():
    return simulate(
        (10, 14), selector=("random", "pollitt"), seeds=3, bias=0.5, lapse=0.2, per_item=5, preset="pairwiseLLM",
        progress=False,
    )  # fmt: skip


@pytest.mark.slow
def test_a_study_has_every_run_once(study):
    assert study.runs.schema == pl.Schema(RUNS)
    assert study.runs.height == 2 * 2 * 3
    assert study.runs.select(*SETTING, "seed").n_unique() == study.runs.height
    assert study.runs["per_item"].unique().to_list() == [5.0]
    assert study.curves.height == 12 * 5
    assert study.summary["n_runs"].unique().to_list() == [3]
    assert study.summary.height == study.stops.height * 5 == 4 * 5
    assert study.stops["selector"].to_list() == ["random", "pollitt"] * 2
    assert study.stops["judge"].to_list() == ["bias 0.5, lapse 0.2"] * 4
    assert str(study) == "12 runs of 4 settings"


@pytest.mark.slow
def test_its_means_and_differences_are_those_of_the_runs(study):
    row = study.summary.filter(n_items=14, selector="pollitt", comparisons=42).row(0, named=True)
    ours, theirs = (
        study.curves.filter(n_items=14, selector=name, comparisons=42).sort("seed")["spearman_map"]
        for name in ("pollitt", "random")
    )
    assert row["spearman_map"] == pytest.approx(ours.mean())
    assert row["spearman_map_upper"] == pytest.approx(ours.mean() + 4.302653 * ours.std() / math.sqrt(3))
    less = ours - theirs
    assert row["spearman_map_gain"] == pytest.approx(less.mean())
    assert row["spearman_map_gain_lower"] == pytest.approx(less.mean() - 4.302653 * less.std() / math.sqrt(3))
    base = study.summary.filter(selector="random")
    assert base["kendall_map_gain"].unique().to_list() == [0.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "selectors",
    [pytest.param(["pollitt"], id="one"), pytest.param(["random", "pollitt"], id="two", marks=pytest.mark.validate)],
)
def test_processes_give_the_same(study, selectors):
    again = simulate(
        10, selector=selectors, seeds=1, bias=0.5, lapse=0.2, per_item=5, preset="pairwiseLLM", n_jobs=2,
        progress=False,
    )  # fmt: skip
    there = study.curves.filter(pl.col("selector").is_in(selectors), n_items=10, seed=0)
    assert again.curves.sort("selector", "comparisons").equals(there.sort("selector", "comparisons"))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"items": ()}, "items must hold one number or more"),
        ({"lapse": 2}, "lapse must be a number from 0 to 1, not 2"),
        ({"sd": (1, -1)}, "sd must be a number above 0"),
        ({"per_item": 0}, "per_item must be a number above 0"),
        ({"seeds": 0}, "seeds must be a whole number of 1 or more"),
        ({"adaptive_config": {"explore_rate": 7}}, "explore_rate must be a number from 0 to 1"),
    ],
)
def test_an_impossible_study_is_refused_before_any_run(options, why, monkeypatch):
    monkeypatch.setattr("pairscale.simulation.run.simulate_run", None)
    with pytest.raises(InputError, match=why):
        simulate(**({"items": 5, "progress": False} | options))
    with pytest.raises(UnknownNameError, match="no selector 'best'"):
        simulate(5, selector=("pollitt", "best"), progress=False)


# Plans


@pytest.mark.slow
def test_a_plan_is_what_its_runs_needed():
    plan = ps.plan(
        16, reliability=0.6, sd=1.5, invalid_rate=0.1, seeds=3, concurrency=4, price=0.01, seconds=6, progress=False
    )
    assert plan.simulated_items == 16
    assert plan.n_reached == plan.n_seeds == plan.runs.height == 3
    ends = plan.runs["comparisons"]
    assert (plan.fewest, plan.comparisons, plan.most) == (ends.min(), round(ends.median()), ends.max())
    assert plan.at_least == plan.comparisons
    assert plan.per_item == plan.comparisons / 16
    assert plan.questions > plan.comparisons
    assert plan.cost == pytest.approx(plan.questions * 0.01)
    assert plan.minutes == pytest.approx(plan.questions * 6 / 4 / 60)
    assert plan.runs["reliability_claimed"].min() >= 0.6
    assert plan.notices == ()
    assert str(plan).startswith(
        f"a judge that varies: 16 items to reliability 0.6: about {plan.comparisons} comparisons"
    )


def planned(*ends: tuple[int, bool], asked_for_each: int = 1) -> ps.ComparisonPlan:
    """A plan of ten items from runs that ended so, and got there or not."""
    runs = [
        SimulatedRun(
            n_items=10, selector="pollitt", seed=at, abilities=np.zeros(10), theta=np.zeros(10),
            history=np.zeros((0, 3)), curve=pl.DataFrame(), refits=pl.DataFrame(), comparisons=end,
            stop_reason="btl_converged" if there else "max_comparisons", stopped_at=end if there else None,
            asked=asked_for_each * end,
        )
        for at, (end, there) in enumerate(ends)
    ]  # fmt: skip
    return _plan(10, 0.9, runs, 0.5, None, 1)


@pytest.mark.parametrize(
    ("ends", "comparisons", "at_least", "fewest", "most", "words"),
    [
        ([(100, True), (140, True), (300, True)], 140, 140, 100, 300, "about 140 comparisons (100 to 300)"),
        ([(100, True), (140, True)], 120, 120, 100, 140, "about 120 comparisons (100 to 140)"),
        # The mean of those that got there would be 120; the third one needs more than 1,000.
        ([(100, True), (140, True), (1000, False)], 140, 140, 100, None, "about 140 comparisons (100 to more)"),
        # No pair was left at 90, so it needs more than both.
        ([(100, True), (140, True), (90, False)], 140, 140, 100, None, "about 140 comparisons (100 to more)"),
        ([(100, True), (1000, False)], None, 550, 100, None, "more than 550 comparisons; 1 of 2 simulated runs"),
        ([(100, True), (900, False), (1000, False)], None, 900, 100, None, "more than 900 comparisons; 1 of 3"),
        ([(900, False), (1000, False), (1000, False)], None, 1000, None, None, "more than 1,000 comparisons; 0 of 3"),
    ],
)  # fmt: skip
def test_runs_that_did_not_get_there_count_as_needing_more(ends, comparisons, at_least, fewest, most, words):
    plan = planned(*ends, asked_for_each=2)
    assert (plan.comparisons, plan.at_least, plan.fewest, plan.most) == (comparisons, at_least, fewest, most)
    assert words in str(plan)
    assert ("simulated runs got there" in str(plan)) == (most is None)
    assert plan.n_reached == sum(there for _, there in ends)
    assert plan.cost == (None if comparisons is None else 2 * 0.5 * comparisons)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"reliability": 1}, "reliability must be a number above 0 and below 1, not 1"),
        ({"items": 1}, "items must be a whole number of 2 or more"),
        ({"price": -1}, "price must be a number of 0 or more"),
        ({"seconds": "2"}, "seconds must be a number of 0 or more"),
        ({"seeds": 0}, "seeds must be a whole number of 1 or more"),
    ],
)
def test_an_impossible_plan_is_refused(options, why):
    with pytest.raises(InputError, match=why):
        ps.plan(**({"items": 5, "progress": False} | options))
