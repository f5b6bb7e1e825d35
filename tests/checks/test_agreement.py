"""Agreement: published worked examples, other people's programs, and naive loops."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from pairscale.checks.agreement import agreement
from pairscale.core.errors import InputError, TableError

ORACLE = json.loads(Path(__file__).with_name("agreement_oracle.json").read_text("utf-8"))["cases"]
_ = None
# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section C: four observers, twelve units.
KRIPPENDORFF = {
    "A": [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    "B": [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    "C": [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    "D": [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
}


def raters(table: list[list[int]], names: list) -> dict[str, list]:
    cells = [
        (a, b) for a, row in zip(names, table, strict=True) for b, n in zip(names, row, strict=True) for _n in range(n)
    ]
    return {"one": [a for a, _b in cells], "two": [b for _a, b in cells]}


def figures(result) -> dict[str, float]:
    named = result.table.select(pl.concat_str("statistic", "weights", separator=" ", ignore_nulls=True), "estimate")
    return dict(named.iter_rows())


# Published worked examples.


def test_krippendorffs_own_example():
    found = figures(agreement(KRIPPENDORFF, seed=1))
    for metric, value in (("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)):
        assert found[f"krippendorff_alpha {metric}"] == pytest.approx(value, abs=5e-4)
    # The same data in Gwet's irrCAC: AC1 0.77544, percent agreement 0.81818.
    assert found["gwet_ac1"] == pytest.approx(0.77544, abs=5e-6)
    assert found["percent_agreement"] == pytest.approx(0.81818, abs=5e-6)


def test_fleiss_levin_and_paik_table_18_1():
    """Statistical Methods for Rates and Proportions, 3rd ed.: 100 diagnoses by two raters, kappa 0.68."""
    labels = raters([[75, 1, 4], [5, 4, 1], [0, 0, 10]], ["psychotic", "neurotic", "organic"])
    result = agreement(labels, seed=1)
    assert figures(result)["cohen_kappa unweighted"] == pytest.approx(0.6765, abs=5e-5)
    assert figures(result)["percent_agreement"] == 0.89
    assert not result.ordered
    assert "cohen_kappa linear" not in figures(result)


def test_agresti_sexual_fun_as_in_r_vcd():
    """Ninety-one couples (Hout et al. 1987; Agresti): R's vcd::Kappa gives 0.1293 and, with equal spacing, 0.2374."""
    labels = raters([[7, 7, 2, 3], [2, 8, 3, 7], [1, 5, 4, 9], [2, 8, 9, 14]], [1, 2, 3, 4])
    found = figures(agreement(labels, seed=1))
    assert found["cohen_kappa unweighted"] == pytest.approx(0.1293, abs=5e-5)
    assert found["cohen_kappa linear"] == pytest.approx(0.2374, abs=5e-5)


@pytest.mark.parametrize("case", ORACLE)
def test_other_programs_find_the_same(case):
    found = figures(agreement(case["labels"], n_boot=0))
    for name, value in case["expected"].items():
        assert found[name] == pytest.approx(value, abs=1e-9), name


# Naive loops.

MARKS = st.lists(st.lists(st.none() | st.integers(1, 4), min_size=3, max_size=3), min_size=1, max_size=12)


def naive_alpha(units: list[list[int]], distance) -> float:
    """By its definition: disagreement within units over disagreement between all labels that can be paired."""
    units = [unit for unit in units if len(unit) >= 2]
    labels = [label for unit in units for label in unit]
    n = len(labels)
    observed = sum(
        distance(a, b) / (len(unit) - 1)
        for unit in units
        for i, a in enumerate(unit)
        for j, b in enumerate(unit)
        if i != j
    )
    expected = sum(2 * distance(a, b) for a, b in combinations(labels, 2))
    return 1 - (observed / n) / (expected / (n * (n - 1))) if expected else math.nan


@given(MARKS)
@settings(max_examples=60)
def test_alpha_percent_and_ac1_are_what_loops_find(marks):
    units = [[mark for mark in row if mark is not None] for row in marks]
    several = [unit for unit in units if len(unit) >= 2]
    if not several:
        return
    wide = pl.DataFrame(marks, schema={"a": pl.Int64, "b": pl.Int64, "c": pl.Int64}, orient="row")
    found = figures(agreement(wide, n_boot=0))
    counts = {x: sum(unit.count(x) for unit in several) for x in range(1, 5)}

    def ordinal(a: int, b: int) -> float:
        low, high = sorted((a, b))
        return (sum(counts[x] for x in range(low, high + 1)) - (counts[low] + counts[high]) / 2) ** 2 if a != b else 0

    for name, distance in (
        ("nominal", lambda a, b: a != b),
        ("interval", lambda a, b: (a - b) ** 2),
        ("ordinal", ordinal),
    ):
        value, expected = found[f"krippendorff_alpha {name}"], naive_alpha(units, distance)
        assert value == pytest.approx(expected) if not math.isnan(expected) else value is None
    agreed = [np.mean([a == b for a, b in combinations(unit, 2)]) for unit in several]
    assert found["percent_agreement"] == pytest.approx(np.mean(agreed))
    names = sorted({mark for unit in units for mark in unit})
    if len(names) > 1:
        shares = [np.mean([unit.count(x) / len(unit) for unit in units if unit]) for x in names]
        chance = sum(share * (1 - share) for share in shares) / (len(names) - 1)
        assert found["gwet_ac1"] == pytest.approx((np.mean(agreed) - chance) / (1 - chance))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=20))
@settings(max_examples=40)
def test_kappa_is_what_loops_find(pairs):
    found = figures(agreement({"a": [a for a, _b in pairs], "b": [b for _a, b in pairs]}, n_boot=0))
    for kind, weight in (("unweighted", lambda d: d != 0), ("linear", abs), ("quadratic", lambda d: d * d)):
        observed = np.mean([weight(a - b) for a, b in pairs])
        expected = np.mean([weight(a - b) for a, _b in pairs for _a, b in pairs])
        value = found[f"cohen_kappa {kind}"]
        assert value == pytest.approx(1 - observed / expected) if expected else value is None


# Shapes, and what the figures rest on.


def test_long_and_wide_tables_say_the_same():
    wide = pl.DataFrame(KRIPPENDORFF).with_columns(unit=pl.int_range(pl.len()))
    long = wide.unpivot(list("ABCD"), index="unit", variable_name="rater", value_name="label")
    expected = agreement(KRIPPENDORFF, seed=1)
    for table in (wide, long, long.drop_nulls(), long.to_pandas(), long.to_dicts()):
        assert agreement(table, seed=1).table.equals(expected.table)
    renamed = long.rename({"unit": "essay", "rater": "who", "label": "mark"})
    assert agreement(renamed, unit="essay", rater="who", label="mark", seed=1).table.equals(expected.table)
    assert (expected.n_raters, expected.n_units, expected.categories) == (4, 12, (1, 2, 3, 4, 5))


def test_two_raters_at_a_time():
    pairs = agreement(KRIPPENDORFF, n_boot=0).pairs
    assert pairs.columns[:5] == ["rater1", "rater2", "n_units", "percent_agreement", "cohen_kappa"]
    assert pairs.select("rater1", "rater2").rows() == list(combinations("ABCD", 2))
    light = figures(agreement(KRIPPENDORFF, n_boot=0))["light_kappa unweighted"]
    assert light == pytest.approx(pairs["cohen_kappa"].mean())


def test_categories_give_texts_an_order_and_count_labels_that_never_occur():
    labels = {"a": ["low", "mid", "low", "mid"], "b": ["low", "mid", "mid", "mid"]}
    plain, ordered = agreement(labels, n_boot=0), agreement(labels, categories=["low", "mid", "high"], n_boot=0)
    assert "krippendorff_alpha ordinal" in figures(ordered)
    assert "krippendorff_alpha interval" not in figures(ordered)
    assert figures(plain)["cohen_kappa unweighted"] == figures(ordered)["cohen_kappa unweighted"]
    assert figures(plain)["gwet_ac1"] < figures(ordered)["gwet_ac1"]


def test_perfect_agreement_has_no_bootstrap_interval():
    same = ["x", "y", "x"] * 8
    result = agreement({"a": same, "b": same, "c": same}, seed=1)
    assert result.table["estimate"].to_list() == [1.0] * 4
    assert result.table["interval"].to_list() == [None] * 4
    assert result.notices[0].startswith("all labels agree; resampling them cannot say how sure that is")
    few = agreement({"a": same[:3], "b": same[:3]}, seed=1)
    assert few.table["interval"].to_list() == ["wilson", None, None, None]
    assert few.notices == ("no intervals: 3 units are too few, it takes 20",)
    single = agreement({"a": ["x", "x"], "b": ["x", "x"]}, seed=1)
    assert single.table["estimate"].to_list() == [1.0, None, None, None]
    assert "undefined" in single.notices[-1]


# Intervals.


@pytest.mark.slow
def test_intervals_cover():
    """Two raters who see the truth in 80 of 100 cases and toss a coin otherwise: kappa is 0.64 (alpha too)."""
    rng = np.random.default_rng(23)
    hits, n = dict.fromkeys(("percent_agreement", "cohen_kappa", "krippendorff_alpha", "gwet_ac1"), 0), 120
    truth = {"percent_agreement": 0.82, "cohen_kappa": 0.64, "krippendorff_alpha": 0.64, "gwet_ac1": 0.64}
    for at in range(n):
        real = rng.integers(0, 2, 150)
        said = np.where(rng.random((2, 150)) < 0.8, real, rng.integers(0, 2, (2, 150)))
        labels = {"a": np.array(["x", "y"])[said[0]], "b": np.array(["x", "y"])[said[1]]}
        for row in agreement(labels, n_boot=300, seed=at).table.iter_rows(named=True):
            hits[row["statistic"]] += row["lower"] <= truth[row["statistic"]] <= row["upper"]
    for name, count in hits.items():
        assert binomtest(count, n, 0.94, alternative="less").pvalue > 1e-4, name


def test_the_seed_decides_the_intervals():
    many = {name: list(said) * 2 for name, said in KRIPPENDORFF.items()}  # 24 units
    one, two, other = (agreement(many, seed=seed).table for seed in (1, 1, 2))
    assert one.equals(two)
    assert not one.equals(other)
    assert one["estimate"].equals(other["estimate"])
    assert set(one["interval"]) == {"bootstrap"}


# Refusals.


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ({"a": [1]}, {}, "labels: give columns 'unit', 'rater' and 'label', or a column for each of two raters"),
        ([{"unit": 1, "rater": "a", "label": "x"}], {}, "agreement needs two raters or more; there are 1"),
        ([{"unit": 1, "rater": "a", "label": None}], {}, "agreement needs two raters or more; there are 0"),
        ([{"rater": "a", "label": "x"}], {}, "labels: no column 'unit'"),
        ([{"unit": 1, "rater": "a", "label": "x"}] * 2, {}, "labels: 'a' labels '1' more than once"),
        ({"a": ["x", None], "b": [None, "x"]}, {}, "no unit was labelled by two raters"),
        ({"a": ["x"], "b": ["z"]}, {"categories": ["x", "y"]}, "labels: 'z' is not one of the categories 'x', 'y'"),
        ({"a": ["x"], "b": ["x"]}, {"categories": ["x", "x"]}, "categories: every label may be named once"),
        ({"a": ["x"], "b": ["x"]}, {"level": 95}, "level must be a number above 0 and below 1, not 95"),
        ({"a": ["x"], "b": ["x"]}, {"n_boot": -1}, "n_boot must be a whole number of 0 or more, not -1"),
    ],
)
def test_bad_input_is_refused_in_one_line(labels, options, message):
    with pytest.raises(InputError) as caught:
        agreement(labels, **options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert issubclass(TableError, InputError)


def test_results_under_other_names():
    votes = [
        {"x": a, "y": b, "won": winner, "judge": who}
        for a, b in (("p", "q"), ("q", "r"), ("p", "r"))
        for who, winner in (("ann", a), ("bob", b if b == "q" else a))
    ]
    found = agreement(votes, a_col="x", b_col="y", winner_col="won", n_boot=0)
    assert (found.n_units, found.n_raters) == (3, 2)
    assert found.table["estimate"][0] == pytest.approx(2 / 3)
    with pytest.raises(InputError, match="belong to results"):
        agreement(votes, a_col="x", b_col="y", winner_col="won", rater="judge", n_boot=0)


def test_judges_of_many_texts_who_toss_a_coin_agree_by_chance_alone():
    """A text of each pair is a label of its own otherwise, and kappa is near 0.5 here."""
    rng = np.random.default_rng(5)
    rows = [
        {"ID1": f"t{at:03}", "ID2": f"t{at + 1:03}", "better_id": f"t{at + int(rng.integers(2)):03}", "judge": judge}
        for at in range(400)
        for judge in ("ann", "bob")
    ]
    found = agreement(rows, n_boot=0)
    assert found.categories == ("1", "2")
    table = dict(found.table.select("statistic", "estimate").iter_rows())
    assert table["percent_agreement"] == pytest.approx(0.5, abs=0.1)
    assert table["cohen_kappa"] == pytest.approx(0, abs=0.15)
    assert table["krippendorff_alpha"] == pytest.approx(0, abs=0.15)
    turned = [{**row, "ID1": row["ID2"], "ID2": row["ID1"]} for row in rows]  # the order says nothing about it
    assert agreement(turned, n_boot=0).table.equals(found.table)


def test_columns_that_are_taken_for_raters_are_named(caplog):
    agreement({"ann": ["a", "a", "b"], "bob": ["a", "b", "b"]}, n_boot=0)
    assert "one column per rater: 'ann', 'bob'" in caplog.text
