"""Graded preferences: from an outcome or a judge's probability to rates, intervals, files and sentences."""

import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import GOLDEN

import pairscale as ps
from pairscale.core.errors import InputError, TableError
from pairscale.evaluate import inference
from pairscale.evaluate.comparators import majority
from pairscale.evaluate.inference.sequence import log_capital, split_scores

PROBABILITIES = st.floats(0, 1)


class Graded:
    """A comparator that gives what it is told, by task."""

    def __init__(self, key, said):
        self.key, self._said = key, said

    async def compare(self, *, task, trace_a, trace_b, reference_outputs):
        return ps.PairwiseOutcome(self._said[task.task_id])


def graded_run(preferences, **options):
    tasks = {f"t{n}": p for n, p in enumerate(preferences)}
    a, b = ({name: f"{side} {name}" for name in tasks} for side in ("old", "new"))
    sources = [ps.InMemoryTraceSource(side) for side in (a, b)]
    options = {"progress": False} | options
    return ps.evaluate_pairwise(*sources, comparators=[Graded("g", tasks)], **options)


# The outcome.


@given(PROBABILITIES)
def test_a_number_is_the_probability_that_b_is_better(p):
    found = ps.PairwiseOutcome(p)
    assert found.preference == p
    assert found.winner == ("b" if p > 0.5 else "a" if p < 0.5 else "tie")
    assert ps.PairwiseOutcome(np.float64(p)).preference == p


@pytest.mark.parametrize("bad", [True, False, math.nan, math.inf, -0.01, 1.0001, "0.4", [0.4], 1 + 1j])
def test_what_is_no_probability_is_refused(bad):
    with pytest.raises(InputError):
        ps.PairwiseOutcome(bad)


@pytest.mark.parametrize(
    "given",
    [
        {"winner": "b", "preference": 0.4},
        {"winner": "a", "preference": 0.5},
        {"outcome": ps.Outcome.ERROR, "preference": 0.4},
        {"winner": "b", "preference": True},
    ],
)
def test_a_preference_that_contradicts_the_outcome_is_refused(given):
    with pytest.raises(InputError):
        ps.PairwiseOutcome(**given)


# A judge's p.


def judged(p_of_first, **options):
    """One task, judged by a function that is shown (text of A, text of B) or the reverse."""
    judge = ps.pairwise_judge(lambda A, B: p_of_first(A["text"], B["text"]), criterion="better", key="k", **options)
    old, new = ps.InMemoryTraceSource({"t": "old"}), ps.InMemoryTraceSource({"t": "new"})
    return ps.evaluate_pairwise(old, new, comparators=[judge], progress=False).cases[0]


def by_first(when_old, when_new):
    return lambda first, second: {"is_valid": True, "p": when_old if first == "old" else when_new}


@pytest.mark.parametrize(
    ("when_old", "when_new", "outcome", "winner", "preference"),
    [
        (0.1, 0.8, "win", "b", 0.85),  # B with .9 when A stands first, with .8 when B does
        (0.9, 0.4, "win", "a", 0.25),
        (0.1, 0.3, "flip", None, 0.6),  # the second place each time
        (0.5, 0.8, "tie", "tie", 0.65),  # a tie and a win: the judge did not stand by its preference
        (0.5, 0.5, "tie", "tie", 0.5),
    ],
)
def test_both_orders_merge_by_the_mean_and_hard_verdicts_as_ever(when_old, when_new, outcome, winner, preference):
    case = judged(by_first(when_old, when_new))
    assert (str(case.outcome), case.winner) == (outcome, winner)
    assert case.preference == pytest.approx(preference)
    assert case.probability == pytest.approx(1 - preference)


def test_a_panel_has_the_mean_and_is_divided_where_that_contradicts_the_vote():
    votes = [ps.PairwiseOutcome(p) for p in (0.6, 0.7, 0.2)]
    assert majority(votes, {}).preference == pytest.approx(0.5)
    assert majority(votes, {}).winner == "tie"
    assert majority([*votes[:2], ps.PairwiseOutcome("b")], {}).preference == pytest.approx(2.3 / 3)
    assert majority([ps.PairwiseOutcome("b")] * 2, {}).preference is None


# AlpacaEval.


@pytest.fixture(scope="module")
def alpaca():
    cases = pl.read_csv(GOLDEN / "alpaca" / "annotations.csv.gz").rename({"task": "task_id"})
    return cases.partition_by("model", as_dict=True)


@pytest.mark.parametrize(
    "row", pl.read_csv(GOLDEN / "alpaca" / "published.csv").to_dicts(), ids=lambda row: row["model"]
)
def test_alpacaeval_is_reproduced(alpaca, row):
    """The preferences of the golden file have six digits, so the published means come back to 5e-6 of a point."""
    cases = alpaca[(row["model"],)]
    found, hard = inference.win_rate(cases), inference.win_rate(cases, graded=False)
    assert (found.graded, hard.graded) == (True, False)
    assert 100 * found.rate == pytest.approx(row["win_rate"], abs=1e-5)
    assert 100 * found.rate == pytest.approx(100 * math.fsum(cases["preference"]) / cases.height, abs=1e-12)
    assert 100 * found.standard_error == pytest.approx(row["standard_error"], abs=1e-6)
    assert 100 * hard.rate == pytest.approx(row["discrete_win_rate"], abs=1e-12)
    assert found.ci[0] < found.rate < found.ci[1]
    assert found.rate + 1.96 * found.standard_error == pytest.approx(found.ci[1], abs=0.005)


# Intervals.


@pytest.mark.slow
@given(st.lists(st.sampled_from([0, 0.5, 1]), min_size=1, max_size=25))
def test_hard_scores_given_as_preferences_have_the_interval_of_hard_verdicts(scores):
    names = {0: ("win", "a"), 0.5: ("tie", None), 1: ("win", "b")}
    hard = [{"task_id": n, "outcome": names[p][0], "winner": names[p][1]} for n, p in enumerate(scores)]
    graded = [{"task_id": n, "preference": p} for n, p in enumerate(scores)]
    for interval in ("wilson", "betting"):
        assert inference.win_rate(graded, interval=interval).ci == inference.win_rate(hard, interval=interval).ci


def test_several_cases_of_a_task_widen_the_interval_and_the_standard_error():
    rng = np.random.default_rng(2)
    p = rng.beta(2, 2, 30)
    once = inference.win_rate([{"task_id": n, "preference": x} for n, x in enumerate(p)])
    thrice = inference.win_rate([{"task_id": n, "preference": x} for n, x in enumerate(p) for _ in range(3)])
    assert thrice.tasks == 30
    assert thrice.standard_error == pytest.approx(once.standard_error, rel=0.02)
    assert np.ptp(thrice.ci) == pytest.approx(np.ptp(once.ci), rel=0.02)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"task_id": 1, "preference": 1.4}], "from 0 to 1.*row 1.*subtract 1"),
        ([{"task_id": 1, "preference": True}], "numbers from 0 to 1"),
        ([{"task_id": 1, "preference": "high"}], "numbers from 0 to 1"),
        ([{"task_id": 1, "outcome": "win", "winner": "a", "preference": 0.9}], "row 1: .* as the preference"),
    ],
)
def test_tables_that_cannot_be_are_refused(rows, words):
    with pytest.raises(TableError, match=words):
        inference.win_rate(rows)


def test_the_other_figures_take_preferences():
    rng = np.random.default_rng(3)
    p = rng.beta(3, 2, 80)
    cases = pl.DataFrame(
        {"task_id": range(80), "preference": p, "tags": [["x"] if n % 2 else ["y"] for n in range(80)]}
    )
    assert inference.slices(cases).filter(slice="x")["rate"].item() == pytest.approx(p[1::2].mean())
    human = cases.head(40).select("task_id", preference=pl.Series((p[:40] > 0.5).astype(float)))
    found = inference.corrected_win_rate(cases, human)
    assert found.graded == ("model", "people")
    assert found.model_rate == pytest.approx(p.mean())
    assert inference.corrected_win_rate(cases, human, graded=False).graded == ()


# The sequence.


@given(st.lists(PROBABILITIES, min_size=61, max_size=90, unique=True), st.floats(0.05, 0.95))
def test_split_scores_keep_the_mean_and_never_earn_more(scores, mean):
    values, counts = np.array(scores), np.ones((1, len(scores)))
    steps, shares = split_scores(values, counts)
    assert shares.sum() == pytest.approx(len(scores))
    assert shares[0] @ steps == pytest.approx(values.sum())
    assert (shares >= -1e-12).all()
    assert log_capital(mean, steps, shares)[0] <= log_capital(mean, values, counts)[0] + 1e-6


# A run: figures, files, sentences.


def test_preferences_survive_the_run_file_and_the_saved_document(tmp_path):
    preferences = [0.9, 1 / 3, 0.5, 0.123456789]
    first = graded_run(preferences, run=tmp_path / "run.db")
    again = graded_run(preferences, run=tmp_path / "run.db")
    assert [case.preference for case in again.cases] == preferences == [case.preference for case in first.cases]
    saved = ps.PairwiseRunResult.load(first.save(tmp_path / "saved.json"))
    assert saved.cases == first.cases
    document = json.loads((tmp_path / "saved.json").read_text("utf-8"))
    assert document["win_rates"]["g"]["graded"] is True
    assert document["cases"][1]["preference"] == 1 / 3
    assert ps.export(tmp_path / "run.db", tmp_path / "pairs.jsonl", kind="preferences").name == "pairs.jsonl"
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text("utf-8").splitlines()]
    assert [row["probability"] for row in rows] == pytest.approx([0.9, 2 / 3, 1 - 0.123456789])
