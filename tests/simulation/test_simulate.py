"""Simulated runs, studies of them, and plans."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.stats import beta

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.models.reliability import spearman
from pairscale.simulation.planning import _enough, _plan
from pairscale.simulation.run import MapEstimate, SimulatedRun, _Judge, simulate_run
from pairscale.simulation.study import RUNS, SETTING, simulate

SELECTORS = ("pollitt", "random", "nearest", "information")


IMPOSSIBLE = [
    (simulate_run, {"n_items": 1}, "n_items must be a whole number of 2 or more, not 1"),
    (simulate_run, {"ability_sd": 0}, "ability_sd must be a number above 0, not 0"),
    (simulate_run, {"lapse": 1.5}, "lapse must be a number from 0 to 1, not 1.5"),
    (simulate_run, {"abilities": [1.0, 2.0]}, "abilities must be 5 numbers"),
    (simulate_run, {"concurrency": 0}, "concurrency must be a whole number of 1 or more"),
    (simulate_run, {"max_comparisons": 2.5}, "max_comparisons must be a whole number"),
    (simulate_run, {"btl_config": {"reliability": 1}}, "btl_config: no field 'reliability'"),
    (simulate, {"items": ()}, "items must hold one number or more"),
    (simulate, {"lapse": 2}, "lapse must be a number from 0 to 1, not 2"),
    (simulate, {"sd": (1, -1)}, "sd must be a number above 0"),
    (simulate, {"per_item": 0}, "per_item must be a number above 0"),
    (simulate, {"seeds": 0}, "seeds must be a whole number of 1 or more"),
    (simulate, {"adaptive_config": {"explore_rate": 7}}, "explore_rate must be a number from 0 to 1"),
    (simulate, {"selector": ("pollitt", "best")}, "no selector 'best'"),
    (ps.plan, {"reliability": 1}, "reliability must be a number above 0 and below 1, not 1"),
    (ps.plan, {"items": 1}, "items must be a whole number of 2 or more"),
    (ps.plan, {"price": -1}, "price must be a number of 0 or more"),
    (ps.plan, {"seconds": "2"}, "seconds must be a number of 0 or more"),
    (ps.plan, {"seeds": 0}, "seeds must be a whole number of 1 or more"),
    (ps.plan, {"repeats": 1.5}, "repeats must be a number from 0 to 1"),
    (ps.plan, {"error": 1.0}, "error belongs to answer='probability'"),
    (ps.plan, {"answer": "probability", "error": 0}, "error must be a number above 0"),
    (ps.plan, {"answer": "odds"}, "answer must be"),
]


@pytest.mark.parametrize(("verb", "options", "why"), IMPOSSIBLE)
def test_what_is_impossible_is_refused_before_any_run(verb, options, why, monkeypatch):
    monkeypatch.setattr("pairscale.simulation.run.run_tasks", None)
    given = {"n_items": 5} if verb is simulate_run else {"items": 5, "progress": False}
    with pytest.raises(InputError, match=why):
        verb(**(given | options))


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


def test_an_error_belongs_to_its_pair():
    run = simulate_run(6, "random", 1, error=1.0, max_comparisons=60, btl_config={"answer": "probability"})
    answers: dict[tuple[int, int], set[int]] = {}
    for first, second, won in run.history.tolist():
        low, high = sorted((first, second))
        answers.setdefault((low, high), set()).add(won if first == low else 1 - won)
    assert all(len(winners) == 1 for winners in answers.values())


@pytest.mark.parametrize(("repeats", "same"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_a_judge_repeats_its_first_answer_as_often_as_told(repeats, same):
    judge = _Judge(np.zeros(40), 3, ps.SimulatedJudge("truth"), repeats=repeats)
    pairs = [(first, second) for first in range(40) for second in range(first)]
    winners = [first if judge.answer(first, second)[0] else second for first, second in pairs]
    again = [second if judge.answer(second, first)[0] else first for first, second in pairs]
    agreeing = np.mean([one == other for one, other in zip(winners, again, strict=True)])
    assert agreeing == pytest.approx(same, abs=0.06 if repeats < 1 else 0)


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


# Plans


@pytest.mark.slow
def test_a_plan_is_what_its_runs_needed():
    plan = ps.plan(
        16, reliability=0.6, sd=1.5, invalid_rate=0.1, repeats=0.0, seeds=8, concurrency=4, price=0.01, seconds=6,
        progress=False,
    )  # fmt: skip
    assert plan.simulated_items == 16
    assert plan.n_reached == plan.n_seeds == plan.runs.height == 8
    ends = plan.runs["comparisons"].sort()
    assert (plan.half, plan.comparisons, plan.at_least) == (ends[3], ends[7], ends[7])
    assert plan.per_item == plan.comparisons / 16
    assert plan.questions > plan.comparisons
    assert plan.cost == pytest.approx(plan.questions * 0.01)
    assert plan.minutes == pytest.approx(plan.questions * 6 / 4 / 60)
    assert plan.runs["reliability_claimed"].min() >= 0.6
    assert plan.notices == ()
    assert str(plan).startswith(
        f"16 items to reliability 0.6: {plan.comparisons} comparisons are enough for 80 % of runs (half of them need "
        f"{plan.half}), {plan.per_item:.1f} per item, cost"
    )


@pytest.mark.parametrize(
    ("needed", "ends", "comparisons", "half", "at_least", "words"),
    [
        (range(100, 1100, 100), (), 1000, 500, 1000, "1,000 comparisons are enough for 80 % of runs"),
        (range(100, 2100, 100), (), 1800, 1000, 1800, "1,800 comparisons are enough"),
        # One needs more than 3,000, or more pairs than there are.
        (range(100, 2000, 100), (3000,), 1800, 1000, 1800, "1,800 comparisons are enough"),
        (range(100, 1000, 100), (50,), 900, 500, 900, "900 comparisons are enough"),
        (range(100, 800, 100), (3000,) * 3, None, 500, 3000, "more than 3,000 comparisons; 7 of 10 simulated runs"),
        (range(100, 800, 100), (50,) * 3, None, 500, 500, "more than 500 comparisons; 7 of 10"),
        ((), (900, 1000, 1000), None, None, 1000, "more than 1,000 comparisons; 0 of 3"),
        ((100, 140), (), 140, 100, 140, "140 comparisons were enough in 2 simulated runs, 14.0 per item"),
    ],
)  # fmt: skip
def test_runs_that_did_not_get_there_count_as_needing_more(needed, ends, comparisons, half, at_least, words):
    runs = [
        SimulatedRun(
            n_items=10, selector="pollitt", seed=1, abilities=np.zeros(10), theta=np.zeros(10),
            history=np.zeros((0, 3)), curve=pl.DataFrame(), refits=pl.DataFrame(), comparisons=end,
            stop_reason="btl_converged" if end in needed else "max_comparisons",
            stopped_at=end if end in needed else None, asked=2 * end,
        )
        for end in (*needed, *ends)
    ]  # fmt: skip
    plan = _plan(10, runs, 0.5, None, 1, reliability=0.9, notices=())
    assert (plan.comparisons, plan.half, plan.at_least) == (comparisons, half, at_least)
    assert words in str(plan)
    assert plan.n_reached == len(needed)
    assert plan.cost == (None if comparisons is None else 2 * 0.5 * comparisons)


@pytest.mark.parametrize("n_runs", [7, 10, 20, 57])
def test_the_advice_is_enough_for_80_of_100_runs_with_a_certainty_of_75_in_100(n_runs):
    place = _enough(n_runs)
    assert beta.sf(0.8, place, n_runs + 1 - place) >= 0.75
    assert beta.sf(0.8, place - 1, n_runs + 2 - place) < 0.75
    assert _enough(6) is None


@pytest.mark.validate
@pytest.mark.parametrize(("n", "sd", "reliability"), [(20, 1.5, 0.8), (30, 2.0, 0.9), (30, 1.0, 0.8), (40, 2.5, 0.9)])
def test_who_follows_the_advice_gets_there_in_80_of_100_runs(n, sd, reliability):
    advised = ps.plan(n, sd=sd, reliability=reliability, repeats=0.0, seed=20_000, progress=False).comparisons
    further = ps.plan(n, sd=sd, reliability=reliability, repeats=0.0, seed=30_000, seeds=40, progress=False).runs
    there = further.filter(pl.col("stop_reason") == "btl_converged", pl.col("comparisons") <= advised).height
    print(f"\n{n} texts, SD {sd}, to {reliability}: {advised} comparisons, enough for {there} of 40 runs")
    assert there >= 32


def test_probabilities_need_fewer_comparisons():
    given = {"sd": 2.0, "seeds": 2, "progress": False, "reliability": 0.8}
    winners, stated = ps.plan(16, **given), ps.plan(16, answer="probability", error=0.5, **given)
    assert stated.answer == "probability"
    assert stated.repeating is None
    assert stated.comparisons < winners.at_least


def test_a_plan_tells_what_a_judge_that_repeats_itself_would_need():
    plan = ps.plan(8, seeds=1, progress=False)
    assert (plan.repeats, plan.repeating.repeats, plan.repeating.repeating) == (0.0, 1.0, None)
    varies, repeating = str(plan).splitlines()
    assert varies.startswith("a judge that varies: 8 items to reliability 0.9: ")
    assert repeating == (
        "a judge that repeats itself: at most 28 different pairs: 0 % of such runs reach reliability 0.9"
    )
