"""All pairs, a part of them, and which stands first: against R's figures, and by their properties."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy.stats import binom, chi2

import pairscale as ps
from pairscale.core.errors import InputError, TableError
from pairscale.pairing.make import _sides, some_pairs
from tests import strategies
from tests.strategies import golden

TINY = 1e-9  # the chance that a bound below is broken by a good generator


def side(row: dict, number: int) -> tuple:
    return tuple(value for name, value in row.items() if name.endswith(str(number)))


def numbered(n: int) -> pl.DataFrame:
    return ps.make_pairs({"ID": [f"s{i:03d}" for i in range(n)], "text": [f"text {i}" for i in range(n)]})


# R's figures.


@pytest.mark.parametrize("name", ["make_pairs", "alternate_pair_order"])
def test_deterministic_functions_match_r_exactly(name):
    case = golden(name)
    result = getattr(ps, name)(case["input"])
    assert result.columns == ["ID1", "text1", "ID2", "text2"]
    assert result.to_dicts() == case["output"]


@pytest.mark.parametrize("number", range(3))
def test_sample_pairs_takes_as_many_as_r(number):
    case = golden("sample_pairs")
    given_pairs, arguments = case["input"]["pairs"], case["input"]["cases"][number]
    result = ps.sample_pairs(given_pairs, **arguments).to_dicts()
    assert len(result) == len(case["output"][number])
    assert all(row in given_pairs for row in result)
    assert len({(row["ID1"], row["ID2"]) for row in result}) == len(result)


@pytest.mark.parametrize("number", range(2))
def test_sample_reverse_pairs_takes_as_many_as_r(number):
    case = golden("sample_reverse_pairs")
    given_pairs, arguments = case["input"]["pairs"], case["input"]["cases"][number]
    result = ps.sample_reverse_pairs(given_pairs, **arguments).to_dicts()
    assert len(result) == len(case["output"][number]["value"])
    back = [{"ID1": r["ID2"], "text1": r["text2"], "ID2": r["ID1"], "text2": r["text1"]} for r in result]
    assert all(row in given_pairs for row in back)
    assert len({row["ID1"] + row["ID2"] for row in back}) == len(back)


def test_randomize_pair_order_keeps_rows_and_sides_as_r_does():
    case = golden("randomize_pair_order")
    given_pairs = case["input"]["pairs"]
    for seed in range(20):
        result = ps.randomize_pair_order(given_pairs, seed=seed).to_dicts()
        for ours, theirs, before in zip(result, case["output"], given_pairs, strict=True):
            assert (
                {side(ours, 1), side(ours, 2)}
                == {side(theirs, 1), side(theirs, 2)}
                == {side(before, 1), side(before, 2)}
            )


# make_pairs.


@given(strategies.samples())
def test_every_pair_once_in_the_order_of_ids(samples):
    result = ps.make_pairs(samples)
    n = samples.height
    assert result.height == n * (n - 1) // 2
    # Python compares strings by code point, which is what is promised.
    assert result.select("ID1", "ID2").rows() == list(itertools.combinations(sorted(samples["ID"]), 2))
    assert result.columns == ["ID1", "text1", "ID2", "text2", "grade1", "grade2", "school1", "school2"]
    of = {row[0]: row for row in samples.iter_rows()}
    for row in result.iter_rows(named=True):
        assert side(row, 1) == of[row["ID1"]]
        assert side(row, 2) == of[row["ID2"]]


@pytest.mark.slow
@given(strategies.samples(), st.randoms(use_true_random=False))
def test_the_order_of_the_samples_does_not_matter(samples, random):
    rows = samples.to_dicts()
    random.shuffle(rows)
    assert_frame_equal(ps.make_pairs(pl.DataFrame(rows, schema=samples.schema)), ps.make_pairs(samples))


def test_columns_whose_names_end_in_digits_stay_apart():
    samples = {"ID": ["b", "a"], "text": ["B", "A"], "x": [2, 1], "x1": [20, 10], "": ["y", "z"]}
    result = ps.make_pairs(samples)
    assert result.columns[4:] == ["x1", "x2", "x11", "x12", "1", "2"]
    assert result.row(0) == ("a", "A", "b", "B", 1, 2, 10, 20, "z", "y")
    assert ps.sample_reverse_pairs(result, 1).row(0) == ("b", "B", "a", "A", 2, 1, 20, 10, "y", "z")


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([{"ID": "a", "text": "A"}], "only one; pairs need at least two"),
        ([], "no column"),
        ([{"id": "a", "text": "A"}] * 2, "no column 'ID'"),
        ([{"ID": "a", "text": "A"}] * 2, "'a' is in more than one row"),
        ([{"ID": "a", "text": "A"}, {"ID": "b", "text": " "}], "no text for 'b' in row 2"),
    ],
)
def test_samples_that_make_no_pairs_are_refused(samples, says):
    with pytest.raises(TableError, match=says):
        ps.make_pairs(samples)


# sample_pairs.


@pytest.mark.slow
@given(strategies.pairs(), st.integers(0, 100), st.none() | st.integers(0, 15), st.integers(0, 2**32))
def test_sampling_takes_rows_and_never_one_twice(pairs, percent, n_pairs, seed):
    marked = pairs.with_row_index("row")
    share = percent / 100
    result = ps.sample_pairs(marked, share, n_pairs, seed)
    exact = math.floor(Fraction(percent, 100) * pairs.height)
    assert result.height == (exact if n_pairs is None else min(exact, n_pairs))
    assert result["row"].n_unique() == result.height
    before = marked.rows(named=True)
    assert all(row == before[row["row"]] for row in result.iter_rows(named=True))
    assert_frame_equal(result, ps.sample_pairs(marked, share, n_pairs, seed))


def test_shares_are_the_numbers_that_people_write():
    pairs = numbered(25)  # 300
    whole = pl.concat([pairs] * 2).head(100)
    for percent in range(101):
        assert ps.sample_pairs(whole, percent / 100).height == percent
    assert ps.sample_pairs(pairs, 0.9999999999).height == 299
    assert ps.sample_pairs(pairs, np.float32(0.5)).height == 150


@pytest.mark.slow
def test_every_part_is_equally_likely():
    pairs = numbered(4)  # 6 pairs, and 6 * 5 ordered choices of two
    draws = 900
    seen = Counter(
        tuple(ps.sample_pairs(pairs, n_pairs=2, seed=seed).select("ID1", "ID2").rows()) for seed in range(draws)
    )
    assert len(seen) == 30
    statistic = sum((count - draws / 30) ** 2 / (draws / 30) for count in seen.values())
    assert chi2.sf(statistic, 29) > TINY


def test_different_seeds_give_different_samples_and_no_seed_a_new_one_each_time():
    pairs = numbered(30)
    first, second = (ps.sample_pairs(pairs, seed=seed)["ID1"].to_list() for seed in (1, 2))
    assert first != second
    assert ps.sample_pairs(pairs)["ID1"].to_list() != ps.sample_pairs(pairs)["ID1"].to_list()


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, "half", None])
def test_a_share_outside_of_0_to_1_is_refused(message_snapshot, bad):
    with pytest.raises(InputError) as refused:
        ps.sample_pairs(numbered(3), bad)
    message_snapshot(refused)


@pytest.mark.parametrize("bad", [-1, 1.5, math.nan, math.inf, "three"])
def test_a_count_that_is_none_is_refused(message_snapshot, bad):
    with pytest.raises(InputError) as refused:
        ps.sample_pairs(numbered(3), n_pairs=bad)
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.sample_reverse_pairs(numbered(3), n_reverse=bad)
    message_snapshot(refused)


@pytest.mark.parametrize("bad", [-1, 1.5, "one"])
@pytest.mark.parametrize("verb", [ps.sample_pairs, ps.randomize_pair_order])
def test_a_seed_that_is_none_is_refused(message_snapshot, verb, bad):
    with pytest.raises(InputError) as refused:
        verb(numbered(3), seed=bad)
    message_snapshot(refused)


# Order.


def turned(pairs: pl.DataFrame) -> pl.DataFrame:
    """Both sides exchanged, the obvious way."""
    names = {f"{name}{a}": f"{name}{b}" for name in ("ID", "text", "grade", "school") for a, b in ("12", "21")}
    return pairs.rename(names).select(pairs.columns)


@pytest.mark.slow
@given(strategies.pairs(), st.integers(0, 2**32))
def test_reversing_all_pairs_exchanges_both_sides_and_twice_is_nothing(pairs, seed):
    pairs = pairs.select("ID1", "text1", "ID2", "text2", pl.exclude("ID1", "text1", "ID2", "text2")).with_row_index(
        "row"
    )
    pairs = pairs.select(pl.exclude("row"), "row")
    once = ps.sample_reverse_pairs(pairs, 1, seed=seed).sort("row")
    assert_frame_equal(once, turned(pairs))
    assert_frame_equal(ps.sample_reverse_pairs(once, 1.0, seed=seed).sort("row"), pairs)


@pytest.mark.slow
@given(strategies.pairs(), st.integers(0, 2**32))
def test_randomizing_turns_rows_or_leaves_them(pairs, seed):
    result = ps.randomize_pair_order(pairs, seed)
    assert set(result.columns) == set(pairs.columns)
    kept, other = pairs.select(result.columns).rows(), turned(pairs).select(result.columns).rows()
    for row, same, reverse in zip(result.iter_rows(), kept, other, strict=True):
        assert row in {same, reverse}
    assert_frame_equal(result, ps.randomize_pair_order(pairs, seed))


@pytest.mark.slow
@given(strategies.pairs())
def test_alternating_turns_every_second_row(pairs):
    result = ps.alternate_pair_order(pairs)
    kept, other = pairs.select(result.columns).rows(), turned(pairs).select(result.columns).rows()
    assert result.rows() == [(kept, other)[at % 2][at] for at in range(pairs.height)]
    assert_frame_equal(ps.alternate_pair_order(result), pairs.select(result.columns))


def test_a_coin_decides_each_row_by_itself():
    pairs = numbered(501)  # 125,250
    flips = (ps.randomize_pair_order(pairs, seed=5)["ID1"] != pairs["ID1"]).to_numpy()
    low, high = binom.ppf([TINY, 1 - TINY], len(flips), 0.5)
    assert low <= flips.sum() <= high
    changes = int((flips[1:] != flips[:-1]).sum())  # independent coins change as often as they stay
    low, high = binom.ppf([TINY, 1 - TINY], len(flips) - 1, 0.5)
    assert low <= changes <= high


@pytest.mark.parametrize(
    ("arguments", "count"), [({"reverse_pct": 0.5}, 5), ({"n_reverse": 3}, 3), ({"n_reverse": 99}, 10)]
)
def test_how_many_are_reversed(arguments, count):
    assert ps.sample_reverse_pairs(numbered(5), **arguments, seed=1).height == count
    assert ps.sample_reverse_pairs(numbered(5), **{"reverse_pct": 0.1} | arguments, seed=1).height == count


def test_reversing_wants_a_number(message_snapshot):
    with pytest.raises(InputError) as refused:
        ps.sample_reverse_pairs(numbered(3))
    message_snapshot(refused)


def test_columns_of_two_kinds_change_places():
    row = {"ID1": "a", "text1": "A", "ID2": "b", "text2": "B", "n1": 1, "n2": 2.5, "m1": None, "m2": "x", "lone1": 5}
    result = ps.sample_reverse_pairs([row], 1).row(0, named=True)
    assert result == {
        "ID1": "b",
        "text1": "B",
        "ID2": "a",
        "text2": "A",
        "n1": 2.5,
        "n2": 1,
        "m1": "x",
        "m2": None,
        "lone1": 5,
    }


def test_columns_that_cannot_change_places_are_named(message_snapshot):
    frame = numbered(2).with_columns(k1=pl.lit(1), k2=pl.lit([1, 2], pl.List(pl.Int64)))
    frame = frame.with_columns(k1=pl.struct(a=pl.lit(1)))
    with pytest.raises(TableError) as refused:
        ps.randomize_pair_order(frame, 1)
    message_snapshot(refused)


ROW = {"ID1": "a", "text1": "A", "ID2": "b", "text2": "B"}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"ID2": "a"}, "pairs: 'a' is compared with itself in row 2"),
        ({"ID1": None}, "pairs: column 'ID1' is empty in row 2"),
        ({"ID2": " "}, "pairs: column 'ID2' is empty in row 2"),
        ({"text1": None}, "pairs: column 'text1' is empty in row 2"),
        ({"text2": "\n"}, "pairs: column 'text2' is empty in row 2"),
    ],
)
@pytest.mark.parametrize("verb", [ps.sample_pairs, ps.randomize_pair_order, ps.alternate_pair_order])
def test_pairs_that_are_none_are_refused(verb, changed, says):
    with pytest.raises(TableError, match=says):
        verb([ROW, ROW | changed])


@pytest.mark.parametrize("name", list(ROW))
def test_a_missing_column_is_named(message_snapshot, name):
    with pytest.raises(TableError) as refused:
        ps.alternate_pair_order([{key: value for key, value in ROW.items() if key != name}])
    message_snapshot(refused)


def test_numbers_as_ids_and_texts_are_text():
    pairs = {"ID1": [1, 2], "text1": [10, 20], "ID2": [3.0, 4.0], "text2": ["x", "y"]}
    assert ps.alternate_pair_order(pairs).rows() == [("1", "10", "3", "x"), ("4", "y", "2", "20")]


CHAIN = """
import resource
import polars as pl
import pairscale as ps
ids = [f"s{i:04d}" for i in range(2000)]
samples = pl.DataFrame({"ID": ids, "text": [i + "word " * 600 for i in ids]})
pairs = ps.make_pairs(samples)
random = ps.randomize_pair_order(pairs, 1)
part = ps.sample_pairs(random, 0.9, seed=2)
back = ps.sample_reverse_pairs(part, 1.0, seed=3)
turns = ps.alternate_pair_order(back)
assert turns.height == 1_799_100 and turns["text1"].str.len_bytes().min() == 3005
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs getrusage")
def test_texts_are_shared_not_copied():
    """2 million pairs of texts of 3 kB would be 12 GB, were they copied."""
    done = subprocess.run([sys.executable, "-c", CHAIN], capture_output=True, text=True, check=True)
    peak = int(done.stdout) * (1 if sys.platform == "darwin" else 1024)
    assert peak < 3e9  # 1.3 to 1.6 GB, by how busy the machine is


# Some of the pairs, without the others


@given(st.integers(2, 60))
def test_every_number_is_a_pair_in_the_order_of_make_pairs(n):
    first, second = np.triu_indices(n, 1)
    left, right = _sides(np.arange(n * (n - 1) // 2), n)
    assert left.tolist() == first.tolist()
    assert right.tolist() == second.tolist()


@given(strategies.samples(min_size=2), st.integers(0, 30), st.integers(0, 5))
def test_some_pairs_are_rows_of_all_pairs(samples, n_pairs, seed):
    everything, some = ps.make_pairs(samples), some_pairs(samples, n_pairs, seed)
    assert some.schema == everything.schema
    assert some.height == min(n_pairs, everything.height)
    known = {row["ID1"] + "\0" + row["ID2"]: row for row in everything.iter_rows(named=True)}
    found = [row["ID1"] + "\0" + row["ID2"] for row in some.iter_rows(named=True)]
    assert len(set(found)) == len(found)
    assert [known[name] for name in found] == some.to_dicts()
    assert some.equals(some_pairs(samples, n_pairs, seed))


@pytest.mark.slow
def test_some_pairs_are_all_equally_likely():
    samples = {"ID": list("abcde"), "text": list("abcde")}
    drawn = Counter(pair for seed in range(2000) for pair in some_pairs(samples, 3, seed).select("ID1", "ID2").rows())
    assert len(drawn) == 10
    assert all(binom.ppf(TINY, 2000, 0.3) <= times <= binom.isf(TINY, 2000, 0.3) for times in drawn.values())
