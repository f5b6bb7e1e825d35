"""Positional bias: R's figures, a naive reference, and judges whose bias is known."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from tests import strategies
from tests.strategies import golden

import pairscale as ps
from pairscale.checks.effect import p_words, sign_test, surely_above, wilson
from pairscale.checks.position import compute_reverse_consistency, measure_bias
from pairscale.core.errors import InputError
from pairscale.r import check_positional_bias

CONSISTENCY, BIAS = golden("compute_reverse_consistency"), golden("check_positional_bias")
RANDOM = ("boot_mean", "boot_lwr", "boot_upr")
REJECT = 1e-4


def rows(*triples: tuple) -> list[dict]:
    return [dict(zip(("ID1", "ID2", "better_id"), triple, strict=True)) for triple in triples]


def said(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "pairscale"]


# R's figures.


def test_consistency_matches_r_exactly_and_says_what_it_leaves_out(caplog):
    result = compute_reverse_consistency(CONSISTENCY["input"]["main"], CONSISTENCY["input"]["reverse"])
    expected = CONSISTENCY["output"]
    assert result.summary.columns == list(expected["summary"][0])
    assert result.summary.to_dicts() == expected["summary"]
    assert result.details.columns == list(expected["details"][0])
    assert result.details.to_dicts() == expected["details"]
    assert result.without_winner == 1
    assert said(caplog) == list(result.notices)
    assert result.notices == (
        "reverse_results: left out 1 of 8 rows, which name no winner of their pair",
        "left out, judged in one direction only: 1 pair",
        "left out, no majority winner in a direction: 1 pair",
    )


@pytest.mark.parametrize("case", BIAS["input"])
def test_bias_matches_r_exactly_but_for_its_random_numbers(case):
    given_, expected = BIAS["input"][case], BIAS["output"][case]
    consistency = compute_reverse_consistency(given_["main"], given_["reverse"])
    result = check_positional_bias(consistency, n_boot=given_["n_boot"], seed=given_["seed"])
    (summary,) = expected["summary"]
    assert result.summary.columns == list(summary)
    for name, value in summary.items():
        if name not in RANDOM:
            assert result.summary[name][0] == pytest.approx(value, rel=1e-12), name
    assert result.details.columns == list(expected["details"][0])
    assert result.details.to_dicts() == expected["details"]
    # The mean of R's resamples is a draw from a known distribution.
    n, share, boots = summary["n_pairs"], summary["prop_consistent"], given_["n_boot"]
    z = (summary["boot_mean"] - share) / math.sqrt(share * (1 - share) / n / boots)
    assert abs(z) < 4
    for name, tail in (("boot_lwr", 0.025), ("boot_upr", 0.975)):
        assert abs(summary[name] - binom.ppf(tail, n, share) / n) <= 1.0 / n + 1e-9, name
        assert abs(result.summary[name][0] - binom.ppf(tail, n, share) / n) <= 1.0 / n + 1e-9, name


def test_details_alone_are_enough_in_any_kind_of_table():
    consistency = compute_reverse_consistency(BIAS["input"]["case_40"]["main"], BIAS["input"]["case_40"]["reverse"])
    expected = check_positional_bias(consistency, seed=1)
    needed = ["key", "ID1_main", "ID2_main", "better_id_main", "ID1_rev", "ID2_rev", "better_id_rev", "is_consistent"]
    bare = consistency.details.select(needed)
    for table in (consistency.details, bare, bare.to_dicts(), bare.to_pandas(), {"details": bare}):
        assert check_positional_bias(table, seed=1).summary.equals(expected.summary)


# A naive reference.


@st.composite
def judgements(draw) -> list[dict]:
    names = draw(st.lists(strategies.ids(), min_size=2, max_size=5, unique=True))
    picked = st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True)
    return rows(
        *(
            (a, b, draw(st.sampled_from([a, b, None, "", "somebody else"])))
            for a, b in draw(st.lists(picked, max_size=25))
        )
    )


def naive(results: list[dict]) -> dict[tuple, list[tuple[str, str]]]:
    found = defaultdict(list)
    for row in results:
        if row["better_id"] in (row["ID1"], row["ID2"]):
            found[tuple(sorted((row["ID1"], row["ID2"])))].append((row["ID1"], row["better_id"]))
    return found


def majority(votes: list[tuple[str, str]], pair: tuple[str, str]) -> str | None:
    wins = [sum(won == one for _, won in votes) for one in pair]
    return None if wins[0] == wins[1] else pair[wins[1] > wins[0]]


@pytest.mark.slow
@given(judgements(), judgements())
@settings(max_examples=60)
def test_consistency_is_what_a_loop_finds(main, reverse):
    one, two = naive(main), naive(reverse)
    empty = {"ID1": pl.String, "ID2": pl.String, "better_id": pl.String}
    result = compute_reverse_consistency(pl.DataFrame(main, schema=empty), pl.DataFrame(reverse, schema=empty))
    expected = {}
    for pair in one.keys() & two.keys():
        winners = majority(one[pair], pair), majority(two[pair], pair)
        if None not in winners:
            expected[pair] = winners
    found = {
        tuple(sorted((row["ID1_main"], row["ID2_main"]))): (row["better_id_main"], row["better_id_rev"])
        for row in result.details.iter_rows(named=True)
    }
    assert found == expected
    assert result.summary.row(0)[:2] == (len(expected), sum(a == b for a, b in expected.values()))
    kept = one.keys() & two.keys()
    assert result.comparisons.height == sum(len(one[pair]) + len(two[pair]) for pair in kept)


def test_ids_that_hold_the_separator_stay_apart():
    main, back = rows(("a||b", "c", "c"), ("a", "b||c", "a")), rows(("c", "a||b", "c"), ("b||c", "a", "b||c"))
    details = compute_reverse_consistency(main, back).details
    assert details["key"].to_list() == ["a||b||c"] * 2
    assert sorted(details["is_consistent"]) == [False, True]


def test_orders_that_do_not_differ_or_are_mixed_are_said(caplog):
    same = rows(("a", "b", "a"))
    assert compute_reverse_consistency(same, same).notices == (
        "in the same order in both tables, which says nothing of position: 1 pair",
    )
    mixed = rows(("a", "b", "a"), ("b", "a", "a"), ("b", "a", "b"))
    result = compute_reverse_consistency(mixed, same)
    assert result.details.select("ID1_main", "n_main_A", "n_main_B").row(0) == ("b", 1, 2)
    assert result.notices == ("in both orders within one table, of which the more frequent was taken: 1 pair",)


# The effect.


def answers(bias: float, n_texts: int, n_pairs: int, rng: np.random.Generator, *, repeats_itself: bool):
    """Both orders of some pairs by a judge that repeats its error about a pair, or makes a new one each time."""
    abilities = rng.normal(0, 1.5, n_texts)
    pairs = np.stack(np.triu_indices(n_texts, 1), axis=1)[rng.permutation(n_texts * (n_texts - 1) // 2)[:n_pairs]]
    halves: tuple[list, list] = ([], [])
    for one, two in pairs.tolist():
        error, other = rng.logistic(size=2)
        difference = abilities[one] - abilities[two]
        for half, sign, noise in ((halves[0], 1, error), (halves[1], -1, error if repeats_itself else other)):
            one_won = difference + noise + sign * bias > 0
            order = (f"t{one}", f"t{two}")[::sign]
            half.append((*order, f"t{one}" if one_won else f"t{two}"))
    return rows(*halves[0]), rows(*halves[1])


def effects(n_pairs: int, runs: int, seed: int, *, repeats_itself: bool) -> tuple[float, float, int]:
    """Mean and standard error of the estimates of an effect of .3, and how many intervals hold it."""
    rng = np.random.default_rng(seed)
    size = {50: 15, 200: 40, 1000: 60}[n_pairs]
    found = []
    for _ in range(runs):
        halves = answers(0.3, size, n_pairs, rng, repeats_itself=repeats_itself)
        effect = measure_bias(compute_reverse_consistency(*halves), 0.95).effect
        assert effect is not None
        found.append(effect)
    estimates = [effect.b for effect in found]
    held = sum(effect.lower <= 0.3 <= effect.upper for effect in found)
    return float(np.mean(estimates)), float(np.std(estimates, ddof=1) / math.sqrt(runs)), held


@pytest.mark.parametrize("repeats_itself", [True, False])
def test_the_effect_does_not_grow_with_the_pairs_of_a_judge_that_repeats_itself(repeats_itself):
    mean, error, held = effects(200, 12, 5, repeats_itself=repeats_itself)
    assert abs(mean - 0.3) < 3.9 * error + 0.03
    assert held >= 8


@pytest.mark.slow
@pytest.mark.parametrize("repeats_itself", [True, False])
@pytest.mark.parametrize("n_pairs", [50, 200, 1000])
def test_intervals_of_the_effect_cover(n_pairs, repeats_itself):
    mean, error, held = effects(n_pairs, 60, n_pairs, repeats_itself=repeats_itself)
    assert abs(mean - 0.3) < 3.9 * error + 0.05
    assert binomtest(held, 60, 0.95, alternative="less").pvalue > REJECT


def tally(first: int, second: int, same: int):
    """Both orders of pairs of texts of their own, of which so many went to a position both times."""
    cells = ["first"] * first + ["second"] * second + ["same"] * same
    main = rows(*((f"a{i}", f"b{i}", f"{'b' if kind == 'second' else 'a'}{i}") for i, kind in enumerate(cells)))
    back = rows(*((f"b{i}", f"a{i}", f"{'b' if kind == 'first' else 'a'}{i}") for i, kind in enumerate(cells)))
    return ps.bias(main, back)


def test_the_share_that_position_decided_has_wilsons_interval():
    bias = tally(12, 3, 25)
    row = bias.summary.row(0, named=True)
    assert (row["n_pairs"], row["n_both_first"], row["n_both_second"], row["prop_decided"]) == (40, 12, 3, 0.375)
    assert row["prop_pos1"] == (25 + 2 * 12) / 80
    assert row["p_paired"] == pytest.approx(binomtest(12, 15).pvalue)
    for name, count in (("decided", 15), ("consistent", 25)):
        interval = binomtest(count, 40).proportion_ci(method="wilson")
        assert (row[f"{name}_lower"], row[f"{name}_upper"]) == pytest.approx((interval.low, interval.high))
    assert bias.details["position"].value_counts().sort("position").rows() == [(None, 25), ("first", 12), ("second", 3)]


def test_twelve_consistent_pairs_of_twelve_are_not_certain():
    row = tally(0, 0, 12).summary.row(0, named=True)
    assert (row["prop_consistent"], row["consistent_upper"]) == (1.0, 1.0)
    assert row["consistent_lower"] == pytest.approx(0.757, abs=1e-3)


def test_an_effect_that_is_not_told_has_its_reason():
    assert tally(3, 1, 5).why == "it takes 20 pairs"
    assert tally(12, 3, 25).why == "the pairs do not join all texts"
    always = [(one, two, one) for one in "abcdefg" for two in "abcdefg" if one < two]
    bias = ps.bias(rows(*always), rows(*((two, one, two) for one, two, _ in always)))
    assert (bias.effect, bias.why) == (None, "every answer names the same position")
    same = ps.bias(rows(*always), rows(*((two, one, one) for one, two, _ in always)))
    assert (same.effect, same.why) == (None, "no winner changed with the order")


def test_the_pooled_test_is_blunter_than_the_paired_one():
    """A consistent pair gives position 1 one win of two, always; counting it as two tosses hides the preference."""
    main = rows(*((f"a{at}", f"b{at}", f"a{at}") for at in range(100)))
    back = rows(*((f"b{at}", f"a{at}", f"{'b' if at < 10 else 'a'}{at}") for at in range(100)))
    consistency = compute_reverse_consistency(main, back)
    pooled = check_positional_bias(consistency, seed=1).summary["p_sample1_overall"].item()
    assert pooled == pytest.approx(binomtest(110, 200).pvalue)
    assert pooled > 0.15
    assert measure_bias(consistency, 0.95).summary["p_paired"].item() == pytest.approx(2**-9)


# Words and refusals.


def test_verdicts():
    assert tally(3, 1, 5).verdict.startswith(
        "too few pairs to tell; the winner changed with the order in 44 % of 9 pairs"
    )
    assert tally(5, 5, 5).verdict.startswith("no sign of position bias; the winner changed")
    assert tally(0, 12, 5).verdict == (
        "position bias: the second position is favoured; position decided 71 % of 17 pairs (95 % confidence interval "
        "47 to 87 %): 0 went to the first both times, 12 to the second, p < 0.001; the effect in logits is not told: "
        "it takes 20 pairs"
    )
    assert [p_words(p) for p in (None, 0.0004, 0.001, 1.0)] == ["no test", "p < 0.001", "p = 0.001", "p = 1.000"]


def test_nothing_in_common_is_an_empty_result_and_cannot_be_checked(message_snapshot):
    result = compute_reverse_consistency(rows(("a", "b", "a")), rows(("d", "c", "c")))
    assert result.summary.row(0) == (0, 0, None)
    assert repr(result) == "<ReverseConsistency: 0 of 0 pairs consistent>"
    with pytest.raises(InputError) as refused:
        check_positional_bias(result)
    message_snapshot(refused)


GOOD = compute_reverse_consistency(rows(("a", "b", "a")), rows(("b", "a", "a")))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compute_reverse_consistency([{"x": 1}], []), "main_results: columns 'x' are not results"),
        (
            lambda: compute_reverse_consistency([{"winner": "a", "loser": "b"}], []),
            "main_results: the columns do not say which sample stood first; give ID1 ID2 better_id",
        ),
        (lambda: compute_reverse_consistency(3, []), "main_results is a int"),
        (lambda: check_positional_bias([{"key": "a"}]), "details: no column 'ID1_main', 'ID2_main'"),
        (lambda: check_positional_bias(GOOD, n_boot=0), "n_boot must be a whole number of 1 or more, not 0"),
        (lambda: check_positional_bias(GOOD, n_boot=1.5), "n_boot must be a whole number of 1 or more, not 1.5"),
        (lambda: check_positional_bias(GOOD, conf_level=95), "conf_level must be a number above 0 and below 1, not 95"),
        (lambda: check_positional_bias(GOOD, seed="x"), "seed must be a whole number of 0 or more, not 'x'"),
        (
            lambda: check_positional_bias(GOOD.details.with_columns(is_consistent=pl.lit("yes"))),
            "details: column 'is_consistent' must be true or false in every row",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_small_helpers():
    assert sign_test(0, 0) is None
    assert wilson(0, 0, 0.95) == (None, None)


# A limit that holds over all looks


def boundary(share: float, looks: range) -> dict[int, int]:
    """The fewest successes of each look that are surely above a share; they only grow."""
    least, found = 0, {}
    for total in looks:
        while least <= total and not surely_above(least, total, share, 0.95):
            least += 1
        found[total] = least
    return found


def chance_by_look(rate: float, stops: dict[int, int]) -> np.ndarray:
    """The chance that a series with this rate of successes has been called above by each look; exact."""
    left, gone = np.ones(1), []
    for total in range(1, max(stops) + 1):
        left = np.append(left, 0.0) * (1 - rate) + np.append(0.0, left) * rate
        left[stops.get(total, total + 1) :] = 0.0
        gone.append(1 - left.sum())
    return np.array(gone)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_a_series_that_is_not_above_is_called_above_at_one_of_all_looks_in_one_of_twenty_series(share):
    stops = boundary(share, range(1, 601))
    assert 0.005 < chance_by_look(share, stops)[-1] <= 0.05
    assert chance_by_look(share - 0.05, stops)[-1] < chance_by_look(share, stops)[-1]
    from_thirty = {look: least for look, least in stops.items() if look >= 30}
    assert 0.005 < chance_by_look(share, from_thirty)[-1] <= 0.05


def test_a_series_that_is_above_is_soon_called_so():
    stops = boundary(0.5, range(30, 201))
    assert chance_by_look(0.7, stops)[45 - 1] > 0.5  # the median of seven flips in ten is 43
    assert chance_by_look(0.9, stops)[30 - 1] > 0.95
    assert surely_above(30, 30, 0.5, 0.95)
    assert not surely_above(3, 3, 0.5, 0.95)  # even if all went one way


@pytest.mark.parametrize("counts", [(0, 0), (0, 40), (20, 40)])
def test_a_share_that_was_not_seen_to_be_exceeded_is_not_surely_exceeded(counts):
    assert not surely_above(*counts, 0.5, 0.95)
    assert not surely_above(counts[0], counts[1], 1.0, 0.95)


def test_at_a_share_of_zero_one_success_is_enough():
    assert surely_above(1, 40, 0.0, 0.95)
    assert not surely_above(0, 40, 0.0, 0.95)
    assert surely_above(10**6, 10**6, 0.5, 0.95)
