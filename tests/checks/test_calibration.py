"""Are a judge's probabilities right? The figures against slow versions, the sentence, the card, bad input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import pairscale as ps
from pairscale.checks.calibration import answers_of, calibrate
from pairscale.core.errors import InputError

TRUTH = {f"t{n:02d}": value for n, value in enumerate(np.random.default_rng(3).normal(0, 1.5, 20).tolist())}
SAMPLES = pl.DataFrame({"ID": list(TRUTH), "text": [f"Text {name}" for name in TRUTH], "truth": list(TRUTH.values())})


def answers(n: int, slope: float, intercept: float = 0.0, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Stated probabilities whose recalibration is known."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, n)
    return expit(z), (rng.random(n) < expit(intercept + slope * z)).astype(float)


@pytest.fixture(scope="module")
def checked() -> ps.JudgeCheck:
    """A judge with a position effect, held against people who see the truth with errors."""
    judge = ps.SimulatedJudge("truth", error=1.0, error_df=4, bias=0.4, seed=7)
    rng = np.random.default_rng(5)
    names = list(TRUTH)
    people = [
        {"ID1": one, "ID2": two, "better_id": one if rng.random() < expit(TRUTH[one] - TRUTH[two]) else two}
        for at, one in enumerate(names)
        for two in names[:at]
        if rng.random() < 0.4
    ]
    return ps.check_judge(SAMPLES, judge, labels=people, answer="probability", progress=False)


def first_wins(A: Any, B: Any) -> dict[str, Any]:
    """A judge without probabilities."""
    return {"is_valid": True, "Y": int(A["ID"] < B["ID"])}


def test_figures_are_those_of_a_slow_version() -> None:
    q, y = answers(300, 0.6, -0.3)
    y[:20] = 0.5
    found = calibrate(q, y)
    brier = sum(w * (1 - p) ** 2 + (1 - w) * p**2 for p, w in zip(q, y, strict=True)) / len(q)
    assert found.brier == pytest.approx(brier)
    ece, rows = 0.0, found.bins.to_dicts()
    for low in range(10):
        inside = [(p, w) for p, w in zip(q, y, strict=True) if low / 10 <= p < (low + 1) / 10]
        if not inside:
            continue
        stated, observed = (sum(column) / len(inside) for column in zip(*inside, strict=True))
        ece += len(inside) / len(q) * abs(stated - observed)
        row = rows.pop(0)
        assert (row["n"], row["from"]) == (len(inside), pytest.approx(low / 10))
        assert (row["stated"], row["observed"]) == (pytest.approx(stated), pytest.approx(observed))
        assert row["lower"] <= observed <= row["upper"]
    assert found.ece == pytest.approx(ece)
    z = np.log(q / (1 - q))

    def loss(x: np.ndarray) -> float:
        logit = x[0] * z + x[1]
        return -float(y @ log_expit(logit) + (1 - y) @ log_expit(-logit))

    best = minimize(loss, np.zeros(2)).x
    assert (found.slope, found.intercept) == (pytest.approx(best[0], abs=1e-3), pytest.approx(best[1], abs=1e-3))


def test_pairs_asked_twice_are_no_new_evidence() -> None:
    q, y = answers(200, 0.8)
    once = calibrate(q, y)
    again = calibrate(np.tile(q, 2), np.tile(y, 2), np.tile(np.arange(200), 2))
    assert again.n_pairs == once.n_pairs == 200
    assert again.slope == pytest.approx(once.slope)
    assert again.slope_lower == pytest.approx(once.slope_lower, abs=0.01)


@pytest.mark.slow
def test_intervals_cover() -> None:
    covered = []
    for seed in range(400):
        found = calibrate(*answers(120, 0.7, 0.3, seed))
        assert found.slope_lower is not None
        assert found.slope_upper is not None
        assert found.intercept_lower is not None
        assert found.intercept_upper is not None
        covered.append(
            (found.slope_lower <= 0.7 <= found.slope_upper, found.intercept_lower <= 0.3 <= found.intercept_upper)
        )
    assert (np.abs(np.mean(covered, axis=0) - 0.95) < 0.035).all()


@pytest.mark.parametrize(
    ("slope", "intercept", "words"),
    [
        (0.4, 0.0, "more certain than it should be"),
        (2.5, 0.0, "less certain than it could be"),
        (1.0, 0.0, "nothing speaks against"),
        (0.0, 0.0, "not shown to say anything"),
        (1.0, -1.0, "too much for the text shown first"),
        (1.0, 1.0, "too much for the text shown second"),
    ],
)
def test_the_sentence_says_what_it_comes_to(slope: float, intercept: float, words: str) -> None:
    assert words in calibrate(*answers(600, slope, intercept)).verdict


def test_few_answers_conclude_nothing() -> None:
    assert "too few to tell" in calibrate(*answers(19, 0.1)).verdict


@pytest.mark.parametrize(
    ("q", "y"),
    [
        ([0.2, 0.8] * 20, [1.0, 0.0] * 20),
        ([0.6, 0.8] * 20, [0.0, 1.0] * 20),
        ([0.6, 0.6] * 20, [0.0, 1.0] * 20),
        ([0.2, 0.8] * 20, [1.0, 1.0] * 20),
        ([0.2, 0.8], [0.0, 1.0]),
    ],
)
def test_where_no_slope_is_finite_there_is_none(q: list[float], y: list[float]) -> None:
    found = calibrate(q, y)
    assert (found.slope, found.slope_lower, found.intercept) == (None, None, None)
    assert found.n_pairs < 20 or "no slope can be estimated" in found.verdict
    assert math.isfinite(found.brier)
    assert math.isfinite(found.ece)


def test_certain_answers_are_finite() -> None:
    found = calibrate([0.0, 1.0, 0.5, 1.0, 0.0] * 6, [0.0, 1.0, 1.0, 0.0, 0.0] * 6)
    assert found.slope is not None
    assert math.isfinite(found.slope)


def test_reversed_answers_are_held_against_each_other() -> None:
    rows = [
        {"ID1": "a", "ID2": "b", "probability": 0.9, "better_id": "a"},
        {"ID1": "b", "ID2": "a", "probability": 0.3, "better_id": "a"},
        {"ID1": "c", "ID2": "d", "probability": 0.7, "better_id": "c"},
    ]
    found = answers_of(pl.DataFrame(rows))
    assert found is not None
    assert [column.tolist() for column in found] == [[0.9, 0.3], [1.0, 0.0], [0, 0]]


def test_of_several_people_the_majority_counts() -> None:
    judged = pl.DataFrame([{"ID1": "b", "ID2": "a", "probability": 0.9, "better_id": "b"}])
    said = ["a", "a", "b"]
    people = pl.DataFrame([{"ID1": "a", "ID2": "b", "better_id": one} for one in said])
    found = answers_of(judged, people)
    assert found is not None
    assert found[1].tolist() == [0.0]
    tied = answers_of(judged, people.head(3).vstack(people.tail(1)))
    assert tied is not None
    assert tied[1].tolist() == [0.5]


def test_check_judge_shows_both_and_keeps_them(checked: ps.JudgeCheck, tmp_path: Any) -> None:
    people, own = checked.calibrations
    assert (people.against, own.against) == ("people", "reversed")
    assert people.n == own.n == 2 * checked.n_pairs
    assert people.intercept_upper is not None
    assert people.intercept_upper < 0
    path = checked.save_card(tmp_path / "card.json")
    card = ps.read_judge_card(path)
    assert [one.to_dict() for one in card.calibrations] == [one.to_dict() for one in checked.calibrations]
    page = ps.report(path, out=tmp_path / "card.html").read_text("utf-8")
    assert ">Calibration</h2>" in page
    for one in checked.calibrations:
        assert f"Brier score</dt><dd>{one.brier:.3f}" in page


def test_a_check_of_winners_has_none() -> None:
    found = ps.check_judge(SAMPLES, first_wins, n_pairs=3, progress=False)
    assert found.calibrations == []
    assert "calibration" not in found.card.data


def test_a_judge_without_probabilities_is_named(caplog: pytest.LogCaptureFixture) -> None:
    ps.check_judge(SAMPLES, first_wins, n_pairs=3, answer="probability", progress=False)
    assert "the judge gave no probability" in caplog.text


def test_bad_input_is_refused(message_snapshot) -> None:
    row = {"ID1": "a", "ID2": "b", "better_id": "a", "probability": 0.7}
    label = [{"ID1": "a", "ID2": "c", "better_id": "a"}]
    with pytest.raises(InputError, match="answer='probability'"):
        ps.check_calibration([{"ID1": "a", "ID2": "b", "better_id": "a"}])
    with pytest.raises(InputError) as refused:
        ps.check_calibration([row])
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.check_calibration([row], label)
    message_snapshot(refused)
    with pytest.raises(InputError, match="bins"):
        ps.check_calibration([row], label, bins=1)
    with pytest.raises(InputError, match="level"):
        ps.check_calibration([row], label, level=2)
    with pytest.raises(InputError) as refused:
        ps.check_calibration([row], key="key.jsonl")
    message_snapshot(refused)
    with pytest.raises(InputError, match="answer"):
        ps.check_judge(SAMPLES, "lexical", answer="odds", progress=False)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="probabilit"):
        ps.check_calibration([row | {"probability": 1.7}])


def test_the_report_of_a_run_holds_them_against_labels(tmp_path: Any) -> None:
    judge = ps.SimulatedJudge(TRUTH, error=1.0, error_df=4, bias=0.4, seed=7)
    pairs = ps.sample_pairs(ps.make_pairs(SAMPLES), n_pairs=60, seed=1)
    run = tmp_path / "run.db"
    for table in (pairs, ps.sample_reverse_pairs(pairs, 1.0)):
        ps.judge(table, judge=judge, run=run, progress=False)
    page = ps.report(run, out=tmp_path / "run.html").read_text("utf-8")
    assert "Against its own answers in the other order" in page
    found = ps.check_calibration(run)
    assert f"Brier score</dt><dd>{found.brier:.3f}" in page
