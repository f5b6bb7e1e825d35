"""Several variants on one scale by graded preferences: the scores, and how often their intervals hold the truth."""

from itertools import combinations

import numpy as np
import pytest

import pairscale as ps
from pairscale.core.comparisons import Outcome
from pairscale.evaluate.ranking import VariantsResult, differences_of, fit_variants, saved_variants
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult
from pairscale.store.runfile import open_run

NAMES = ("w", "x", "y", "z")
SEED = 20261118


def case(at, preference, **more):
    winner = "b" if preference > 0.5 else "a" if preference < 0.5 else "tie"
    kind = Outcome.TIE if winner == "tie" else Outcome.WIN
    graded = {} if preference in (0, 0.5, 1) else {"preference": preference}
    return PairwiseCase(f"t{at}", "k", winner, "", {}, kind, **graded, **more)


def results_of(preferences):
    """By two names, the preferences for the first of them, task by task."""
    return [
        PairwiseRunResult("r", tuple(case(at, 1 - float(p)) for at, p in enumerate(row)), ("k",), one, two)
        for (one, two), row in preferences.items()
    ]


def fitted(preferences, names=NAMES):
    return fit_variants(results_of(preferences), "k", names, 1)


def drawn(rng, n, spread=1.0, sharp=1.0, noise=0.5, theta=(0.0, 0.3, 0.6, 1.5)):
    """Preferences of a judge who sees the quality of answers, which varies from task to task."""
    quality = np.array(theta) + rng.normal(0, spread, (n, len(theta)))
    return {
        (NAMES[i], NAMES[j]): 1 / (1 + np.exp(-sharp * (quality[:, i] - quality[:, j]) - rng.normal(0, noise, n)))
        for i, j in combinations(range(len(theta)), 2)
    }


def test_scores_balance_preferences_and_expectation():
    preferences = drawn(np.random.default_rng(1), 300)
    fit = fitted(preferences)
    theta = dict(fit.theta.select("ID", "theta").iter_rows())
    for name in NAMES:
        told = sum((p if name == one else 1 - p).sum() for (one, two), p in preferences.items() if name in (one, two))
        gaps = [theta[name] - theta[other] for other in NAMES if other != name]
        assert sum(300 / (1 + np.exp(-np.array(gaps)))) == pytest.approx(told, abs=1)


def test_equal_preferences_and_a_single_task_are_no_reason_to_be_sure():
    steady = fitted({two: [0.6] * 20 for two in combinations(NAMES, 2)}).theta
    assert float((steady["upper"] - steady["lower"]).min()) > 0.5
    single = fitted({two: [0.7] for two in combinations(NAMES, 2)}).theta
    assert float((single["upper"] - single["lower"]).min()) > 2


def test_intervals_of_ranks_and_differences_go_with_those_of_scores():
    fit = fitted(drawn(np.random.default_rng(2), 400))
    table = fit.theta
    assert table["ID"].to_list() == ["z", "y", "x", "w"]
    assert table["rank_lower"].to_list() == [1, 2, 3, 4] == table["rank_upper"].to_list()
    se = (table["upper"] - table["theta"]).to_numpy() / 1.96
    assert np.sqrt(np.diag(fit.covariance)) == pytest.approx(se, rel=1e-4)
    assert differences_of(fit, 1)["differ"].all()


def test_a_failed_variant_has_lost_and_other_tasks_are_no_repeats(caplog):
    results = results_of({two: [0.9] * 25 for two in combinations(("w", "x", "y"), 2)})
    failing = tuple(case(at, 1.0, failed="a") for at in range(25))
    results[0] = PairwiseRunResult("r", failing, ("k",), "w", "x")
    fit = fit_variants(results, "k", ("w", "x", "y"), 1)
    assert fit.theta["ID"][0] == "x"
    assert not [words for words in (*fit.notices, caplog.text) if "repeat" in words]


def test_the_best_is_never_one_that_cannot_be_told_apart():
    """Eight wins of eight: the rank is 1 for certain, but the difference is not shown while three are looked at."""
    clear = {("w", "x"): [0.0] * 8, ("w", "y"): [1.0] * 8, ("x", "y"): [1.0] * 8}
    for times in (1, 4):
        rows = {
            (result.variant_a, result.variant_b): result
            for result in results_of({k: v * times for k, v in clear.items()})
        }
        found = VariantsResult(rows)
        told_apart = not found.alike()["x"]
        assert found.best() == ("x" if told_apart else None)
        assert told_apart == (times == 4)


def graded_judge(A, B):
    return {"is_valid": True, "p": float(np.clip(0.5 + (len(A["text"]) - len(B["text"])) / 20, 0.02, 0.98))}


@pytest.mark.slow
def test_a_graded_run_keeps_its_ranking(tmp_path):
    variants = {name: lambda task, n=n: "y" * (n + len(task.task_id) % 3) for n, name in enumerate("abc", start=2)}
    judge = ps.pairwise_judge(ps.FunctionJudge(graded_judge, name="g"), criterion="c", key="k")
    tasks = [{"task_id": "t" * n, "input": "?"} for n in range(1, 25)]
    found = ps.run_variants(tasks, variants, comparators=[judge], run=tmp_path / "v.db", progress=False)
    gaps = found.ranking()["theta"].to_list()
    assert found.ranking()["variant"].to_list() == ["c", "b", "a"]
    assert gaps[0] - gaps[1] == pytest.approx(np.log(0.55 / 0.45), rel=0.1)
    with open_run(tmp_path / "v.db") as store:
        assert saved_variants(store).ranking().equals(found.ranking())


WORLDS = {"moderate": (1.0, 1.0, 0.5), "saturated": (1.5, 3.0, 1.0), "mild": (0.3, 0.7, 0.2)}


def truth_of(world):
    """The scores that endless tasks would give."""
    means = {two: row.mean() for two, row in drawn(np.random.default_rng(0), 400_000, *world).items()}
    rows = [
        {"object1": one, "object2": two, "result": float(won), "weight": 1e6 * (mean if won else 1 - mean)}
        for (one, two), mean in means.items()
        for won in (0, 1)
    ]
    return dict(ps.fit_bt_model(rows, engine="firth", weights="weight").theta.select("ID", "theta").iter_rows())


def coverage(world, n, runs, seed):
    truth, rng, held = truth_of(world), np.random.default_rng(seed), []
    for _ in range(runs):
        table = fitted(drawn(rng, n, *world)).theta
        held.append([lower <= truth[name] <= upper for name, lower, upper in table["ID", "lower", "upper"].iter_rows()])
    return float(np.mean(held))


@pytest.mark.slow
def test_intervals_hold_the_scores_that_endless_tasks_would_give():
    assert coverage(WORLDS["saturated"], 15, 40, [SEED, 1]) > 0.88


@pytest.mark.validate
def test_coverage_of_the_scores_by_graded_preferences():
    print("\nscores of four variants by graded preferences: coverage, 400 runs each")
    for number, (name, world) in enumerate(WORLDS.items()):
        row = [coverage(world, n, 400, [SEED, 2, number, n]) for n in (5, 10, 20, 50, 200)]
        print(f"{name:10}", *(f"{share:.3f}" for share in row), flush=True)
        assert min(row) > 0.92
