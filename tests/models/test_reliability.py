"""Reliabilities against published figures, against their definitions, and where there is nothing to say.

``golden/cj-sessions``: 24 sessions with their separation and split-half figures (Kinnear, Jones & Davies 2025,
osf.io/c9q3b; 100 random splits of the judges each). ``golden/reliability_EAP.json``: R pairwiseLLM 1.3.0.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.core.errors import FitError, InputError, TableError
from pairscale.models.bradley_terry import fit_bt_model
from pairscale.models.fit_statistics import fit_statistics
from pairscale.models.reliability import (
    SplitHalf,
    eap_reliability,
    scale_separation_reliability,
    split_half_reliability,
)

GOLDEN = Path(__file__).parents[1] / "golden"
SESSIONS = sorted(path.stem for path in (GOLDEN / "cj-sessions").glob("*.csv"))
SPLITS_THERE = 100


@cache
def published() -> dict[str, dict[str, float]]:
    summary = pl.read_csv(GOLDEN / "cj-sessions" / "published" / "summary.csv")
    return {row["judging_session"]: row for row in summary.iter_rows(named=True)}


def session(name: str) -> pl.DataFrame:
    return pl.read_csv(GOLDEN / "cj-sessions" / f"{name}.csv", infer_schema=False)


def judged(n_items: int, n_judges: int, each: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 2, n_items)
    first = rng.integers(0, n_items, n_judges * each)
    second = (first + rng.integers(1, n_items, len(first))) % n_items
    won = rng.random(len(first)) < 1 / (1 + np.exp(truth[second] - truth[first]))
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    return pl.DataFrame({"judge": np.repeat(np.arange(n_judges), each), "winner": winner, "loser": loser})


# Scale separation


@pytest.mark.parametrize("name", SESSIONS)
def test_separation_of_published_scores(name: str) -> None:
    path = GOLDEN / "cj-sessions" / "published" / name / "sirt_btm.csv"
    scores = pl.read_csv(path, schema_overrides={"individual": pl.String})
    ours = scale_separation_reliability(scores["theta"], scores["se.theta"])
    assert ours.ssr == pytest.approx(published()[name]["ssr"], abs=1e-12)
    assert ours.separation == pytest.approx(published()[name]["sepG"], abs=1e-12)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 3)), min_size=2, max_size=9))
def test_separation_and_reliability_say_the_same(rows: list[tuple[float, float]]) -> None:
    theta, se = np.array(rows).T
    if np.ptp(theta) < 1e-6:
        return
    ours = scale_separation_reliability(theta, se)
    assert ours.ssr <= 1
    assert ours.ssr == pytest.approx(1 - 1 / ours.separation**2)
    expected = math.sqrt(ours.ssr / (1 - ours.ssr)) if ours.ssr > 0 else 0
    assert ours.true_separation == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("theta", "se"),
    [([1], [1]), ([1, 1], [1, 1]), ([1, 2], [1]), ([1, 2], [1, 0]), ([1, math.nan], [1, 1]), ("ab", "cd"), ([], [])],
)
def test_no_separation(theta: object, se: object) -> None:
    with pytest.raises(InputError):
        scale_separation_reliability(theta, se)


# EAP


def test_eap_reliability_of_the_recorded_draws() -> None:
    golden = json.loads((GOLDEN / "reliability_EAP.json").read_text("utf-8"))
    draws = np.array(golden["input"]["draws"])
    assert eap_reliability(draws) == pytest.approx(golden["output"], abs=1e-13)
    assert eap_reliability(draws.mean(axis=0), draws.std(axis=0, ddof=1)) == pytest.approx(golden["output"], abs=1e-13)


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(0.001, 9)), min_size=2, max_size=9))
def test_eap_reliability_is_a_share(rows: list[tuple[float, float]]) -> None:
    means, sds = np.array(rows).T
    assert 0 <= eap_reliability(means, sds) <= 1


def test_eap_reliability_at_its_ends() -> None:
    assert eap_reliability([1, 2, 3], [0, 0, 0]) == 1
    assert eap_reliability([1, 1, 1], [1, 1, 1]) == 0


@pytest.mark.parametrize(
    ("theta", "sds"),
    [([1, 2], None), ([[1, 2]], None), ([[1], [2]], None), ([1, 2], [1]), ([1, 2], [1, -1]), ([1, 1], [0, 0])],
)
def test_no_eap_reliability(theta: object, sds: object) -> None:
    with pytest.raises(InputError):
        eap_reliability(theta, sds)


# Split halves


def distance(ours: pl.Series, median_there: float) -> float:
    """How far the median of their 100 splits is from the middle of ours, in standard errors, whatever the distribution.

    The place of a median of n among all possible splits has a standard deviation of 0.5 / sqrt(n), and so has the share
    of ours below it. With few judges many splits are the same one, which counts half; sirt's four digits tell it from
    another.
    """
    values, same = ours.to_numpy(), 5e-4
    below = (np.mean(values < median_there - same) + np.mean(values <= median_there + same)) / 2
    return float((below - 0.5) / (0.5 * math.sqrt(1 / SPLITS_THERE + 1 / len(values))))


def check_session(name: str, splits: int) -> SplitHalf:
    ours = split_half_reliability(session(name), splits=splits, seed=4)
    there = published()[name]
    assert abs(distance(ours.splits["correlation"], there["median_split_corr"])) < 4
    # Their ssr_x is G² / (1 + G²) with G the separation of the observed scores in one half: not 1 - 1 / G².
    square = ours.splits["separation_1"] ** 2
    assert abs(distance(square / (1 + square), there["median_ssr_x"])) < 4
    return ours


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Bisson2016_stats", "Clark2018_Study1", "Daal2017_sample2", "Jones2013b"])
def test_split_halves_as_published(name: str) -> None:
    check_session(name, splits=30)


@pytest.mark.validate
@pytest.mark.parametrize("name", SESSIONS)
def test_all_split_halves_as_published(name: str) -> None:
    assert check_session(name, splits=200).left_out == 0


def test_halves_are_what_they_say() -> None:
    """Four judges: the three ways to split them in two are all there is, whichever half comes first."""
    data = judged(6, 4, 40, seed=1)
    ours = split_half_reliability(data, splits=24, seed=2)
    assert len(set(ours.splits["correlation"].round(9))) == 3
    assert ours.splits.columns == ["split", "correlation", "items", "separation_1", "separation_2"]
    assert ours.splits["items"].to_list() == [6] * 24
    assert ours.correlation == pytest.approx(ours.splits["correlation"].median())
    assert ours.lower <= ours.correlation <= ours.upper
    assert ours.full == pytest.approx(2 * ours.correlation / (1 + ours.correlation))
    assert (ours.by, ours.engine, ours.left_out) == ("judge", "sirt", 0)
    assert [text for text in ours.notices if "rows repeat another row word for word" not in text] == []


def test_one_split_by_hand() -> None:
    from pairscale.models.bradley_terry import fit_bt_model

    data = judged(6, 2, 60, seed=3)
    one, two = (fit_bt_model(data.filter(pl.col("judge") == who)).theta.sort("ID") for who in (0, 1))
    ours = split_half_reliability(data, splits=1, seed=2)
    assert ours.correlation == pytest.approx(np.corrcoef(one["theta"], two["theta"])[0, 1])
    separations = [scale_separation_reliability(half["theta"], half["se"]).separation for half in (one, two)]
    assert sorted(ours.splits.select("separation_1", "separation_2").row(0)) == pytest.approx(sorted(separations))


def test_judges_that_disagree() -> None:
    forth = judged(8, 1, 300, seed=4)
    back = forth.select(judge=pl.col("judge") + 1, winner="loser", loser="winner")
    assert split_half_reliability(pl.concat([forth, back]), splits=3, seed=1).correlation == pytest.approx(-1, abs=1e-6)


def test_halves_of_comparisons_need_no_judges() -> None:
    ours = split_half_reliability(judged(8, 1, 400, seed=4).drop("judge"), by="comparison", splits=20, seed=1)
    assert ours.by == "comparison"
    assert ours.correlation > 0.9
    assert ours.splits["correlation"].n_unique() == 20


@pytest.mark.slow
def test_more_comparisons_more_agreement() -> None:
    few, many = (split_half_reliability(judged(10, 8, n, seed=5), splits=20, seed=1).correlation for n in (10, 200))
    assert few < many
    assert many > 0.95


def test_seeds() -> None:
    data = judged(6, 6, 20, seed=6)
    ours = split_half_reliability(data, splits=5)
    again = split_half_reliability(data, splits=5, seed=ours.provenance.seed)
    assert ours.splits.equals(again.splits)
    assert split_half_reliability(data, splits=3, seed=again.provenance.seed).splits.equals(again.splits.head(3))


def test_halves_without_an_estimate_are_left_out_and_counted(message_snapshot) -> None:
    # Judge 2 alone joins abc and xyz; of a split, one half is always without that judge.
    alone = [("1", "ab"), ("1", "bc"), ("1", "xy"), ("1", "yz")]
    bridge = [("2", "ab"), ("2", "bc"), ("2", "cx"), ("2", "xy"), ("2", "yz")]
    data = [{"judge": judge, "winner": game[0], "loser": game[1]} for judge, game in alone + bridge]
    with pytest.raises(FitError) as refused:
        split_half_reliability(data, splits=7, seed=1)
    message_snapshot(refused)
    # A third judge who joins them too: of three, judge 1 is the half of one in a third of the splits.
    data += [{**row, "judge": "3"} for row in data if row["judge"] == "2"]
    ours = split_half_reliability(data, splits=30, seed=1)
    assert 0 < ours.left_out < 30
    assert ours.splits.height + ours.left_out == 30
    assert f"left out {ours.left_out} of 30 splits" in ours.notices[0]


def test_too_few_items() -> None:
    data = [{"judge": judge, "winner": "a", "loser": "b"} for judge in range(4)]
    with pytest.raises(FitError, match="fewer than 3 items"):
        split_half_reliability(data, splits=3, seed=1)


def test_rows_without_a_winner_are_left_out() -> None:
    data = judged(5, 4, 30, seed=7).select("judge", ID1="winner", ID2="loser", better_id="winner")
    tie = pl.DataFrame({"judge": [0], "ID1": [0], "ID2": [1], "better_id": [None]}, schema=data.schema)
    ours = split_half_reliability(pl.concat([data, tie]), splits=2, seed=1)
    assert "left out 1 of 121 rows" in ours.notices[0]
    assert ours.splits.equals(split_half_reliability(data, splits=2, seed=1).splits)


def test_the_column_of_judges() -> None:
    data = judged(5, 4, 30, seed=7)
    expected = split_half_reliability(data, splits=2, seed=1).splits
    assert split_half_reliability(data.rename({"judge": "judge_id"}), splits=2, seed=1).splits.equals(expected)
    assert split_half_reliability(data.rename({"judge": "who"}), splits=2, seed=1, judge="who").splits.equals(expected)
    both = data.with_columns(judge_id=pl.col("judge"), judge=pl.lit("one"))
    assert split_half_reliability(both, splits=2, seed=1).splits.equals(expected)
    assert fit_statistics(fit_bt_model(both)).judges.height == 4
    with pytest.raises(TableError, match="`judge=`"):
        split_half_reliability(data.drop("judge"))
    with pytest.raises(TableError, match="who"):
        split_half_reliability(data, judge="who")


def test_nothing_to_split() -> None:
    with pytest.raises(FitError, match="fewer than two judges"):
        split_half_reliability(judged(5, 1, 30, seed=7))


@pytest.mark.parametrize(
    "options", [{"by": "text"}, {"splits": 0}, {"splits": 1.5}, {"seed": -1}, {"seed": "x"}, {"engine": "none"}]
)
def test_options_out_of_range(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        split_half_reliability(judged(5, 4, 30, seed=7), **options)
