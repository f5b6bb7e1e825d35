"""Positional bias: R's figures, a naive reference, and judges whose bias is known."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, kstest, nchypergeom_fisher
from tests import strategies
from tests.strategies import golden

import pairscale as ps
from pairscale.checks.effect import VOTES, position_effect, sign_test, surely_above, wilson
from pairscale.checks.orders import split_orders
from pairscale.checks.position import check_positional_bias, compute_reverse_consistency
from pairscale.core.errors import InputError, TableError

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
    assert (result.only_main, result.only_reverse, result.tied, result.without_winner) == (1, 0, 1, 1)
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
    assert result.summary.columns[: len(summary)] == list(summary)
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


@pytest.mark.slow
def test_the_bootstrap_draws_pairs_with_replacement():
    consistency = compute_reverse_consistency(BIAS["input"]["case_40"]["main"], BIAS["input"]["case_40"]["reverse"])
    flags = consistency.details["is_consistent"].to_numpy()
    rng = np.random.default_rng(5)
    looped = [rng.choice(flags, len(flags)).mean() for _ in range(4000)]
    means = [check_positional_bias(consistency, n_boot=1, seed=seed).summary["boot_mean"][0] for seed in range(100)]
    assert kstest(means, looped).pvalue > REJECT
    one, two = (check_positional_bias(consistency, seed=3).summary for _ in range(2))
    assert one.equals(two)


def test_details_alone_are_enough_in_any_kind_of_table():
    consistency = compute_reverse_consistency(BIAS["input"]["case_40"]["main"], BIAS["input"]["case_40"]["reverse"])
    expected = check_positional_bias(consistency, seed=1)
    needed = ["key", "ID1_main", "ID2_main", "better_id_main", "ID1_rev", "ID2_rev", "better_id_rev", "is_consistent"]
    bare = consistency.details.select(needed)
    for table in (consistency.details, bare, bare.to_dicts(), bare.to_pandas(), {"details": bare}):
        assert check_positional_bias(table, seed=1).summary.equals(expected.summary)


def test_all_consistent_pairs_are_said_to_be_without_bias():
    main, back = rows(("a", "b", "a"), ("a", "c", "c")), rows(("b", "a", "a"), ("c", "a", "c"))
    result = check_positional_bias(compute_reverse_consistency(main, back), seed=1)
    assert result.details.select("is_pos1_bias", "is_pos2_bias").rows() == [(False, False)] * 2
    assert (result.p_paired, result.effect.estimate, result.effect.informative) == (None, None, 0)
    assert result.verdict == "no sign of position bias: of 2 pairs none went to one position in both orders"


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
    assert result.only_main == len(one.keys() - two.keys())
    assert result.only_reverse == len(two.keys() - one.keys())
    assert result.tied == len(one.keys() & two.keys()) - len(expected)
    for row in result.votes.iter_rows(named=True):
        cast = one[row["ID1"], row["ID2"]] + two[row["ID1"], row["ID2"]]
        firsts = [won for first, won in cast if first == row["ID1"]]
        seconds = [won for first, won in cast if first != row["ID1"]]
        assert (row["n_first"], row["won_first"]) == (len(firsts), firsts.count(row["ID1"]))
        assert (row["n_second"], row["won_second"]) == (len(seconds), seconds.count(row["ID1"]))


SHAPES = {
    "canonical": lambda r: [{"A_id": x["ID1"], "B_id": x["ID2"], "better_id": x["better_id"]} for x in r],
    "objects": lambda r: [
        {"object1": x["ID1"], "object2": x["ID2"], "result": {x["ID1"]: 1, x["ID2"]: 0}.get(x["better_id"], 0.5)}
        for x in r
    ],
    "pandas": pd.DataFrame,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_says_the_same(shape):
    tables = [CONSISTENCY["input"][name] for name in ("main", "reverse")]
    result = compute_reverse_consistency(*map(SHAPES[shape], tables))
    assert result.details.to_dicts() == CONSISTENCY["output"]["details"]


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


def test_orders_in_one_table_are_told_apart():
    table = pl.DataFrame(rows(("b", "a", "a"), ("a", "b", "b"), ("b", "a", "b"), ("a", "c", None))).with_columns(low=1)
    forward, reverse = split_orders(table)
    assert forward.select("ID1", "better_id").rows() == [("b", "a"), ("b", "b"), ("a", None)]
    assert reverse.rows() == [("a", "b", "b", 1)]


# The effect.


def votes(*counts: tuple[int, int, int, int]) -> pl.DataFrame:
    schema = {name: kind for name, kind in VOTES.items() if not name.startswith(("key", "ID"))}
    return pl.DataFrame(counts, schema=schema, orient="row")


BOTH_FIRST, BOTH_SECOND, SAME = (1, 1, 1, 0), (1, 0, 1, 1), (1, 1, 1, 1)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5), st.sampled_from([0.5, 0.9, 0.95]))
@settings(max_examples=40)
def test_one_answer_an_order_has_a_closed_form(first, second, same, level):
    effect = position_effect(votes(*[BOTH_FIRST] * first, *[BOTH_SECOND] * second, *[SAME] * same), level)
    assert (effect.informative, effect.method) == (first + second, "exact")
    if first + second == 0:
        assert (effect.estimate, effect.lower, effect.upper) == (None, None, None)
        return
    assert effect.estimate == pytest.approx(math.log((first + 0.5) / (second + 0.5)) / 2, abs=1e-9)
    assert effect.lower < effect.estimate < effect.upper
    assert math.isinf(effect.lower) == (first == 0)
    assert math.isinf(effect.upper) == (second == 0)
    # The interval leaves 0 out exactly when the sign test rejects.
    assert (effect.lower > 0 or effect.upper < 0) == (sign_test(first, first + second) < 1 - level)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4), st.integers(1, 4), st.integers(0, 4)), max_size=12))
@settings(max_examples=40)
def test_repeated_answers_solve_the_conditional_equations(drawn):
    cells = [(n1, min(w1, n1), n2, min(w2, n2)) for n1, w1, n2, w2 in drawn]
    effect = position_effect(votes(*cells), 0.95)
    telling = [(n1, w1, n2, w2) for n1, w1, n2, w2 in cells if 0 < w1 + w2 < n1 + n2]
    assert effect.informative == len(telling)
    if not telling or effect.method == "exact":
        return

    def moments(b: float) -> tuple[float, float]:
        laws = [nchypergeom_fisher(n1 + n2, n1, w1 + w2, math.exp(2 * b)) for n1, w1, n2, w2 in telling]
        return sum(law.mean() for law in laws), sum(law.var() for law in laws)

    seen = sum(w1 for _, w1, _, _ in telling)
    for bound, sign in ((effect.lower, 1), (effect.upper, -1)):
        if math.isfinite(bound) and abs(bound) < 4:
            mean, variance = moments(bound)
            assert (seen - mean) / math.sqrt(variance) == pytest.approx(sign * 1.959964, abs=1e-4)
    assert effect.lower < effect.estimate < effect.upper


def simulated(
    bias: float, abilities: dict[str, float], rng: np.random.Generator, repeats: int = 1
) -> tuple[list, list]:
    """Both orders of all pairs as the simulated judge would decide them, without asking it one by one."""
    judge, halves = ps.SimulatedJudge(abilities, bias=bias), ([], [])
    names = sorted(abilities)
    for at, a in enumerate(names):
        for b in names[at + 1 :]:
            for half, (one, two) in zip(halves, ((a, b), (b, a)), strict=True):
                chance = judge.probability({"ID": one}, {"ID": two})
                half.extend((one, two, one if rng.random() < chance else two) for _ in range(repeats))
    return rows(*halves[0]), rows(*halves[1])


@pytest.mark.slow
def test_the_bias_of_a_simulated_judge_is_found_again():
    essays = ps.synthetic_essays(40, seed=4)
    pairs = ps.randomize_pair_order(ps.make_pairs(essays), seed=1)
    judge = ps.SimulatedJudge("theta_true", bias=0.3, seed=2)
    forward = ps.submit_pairs(pairs, judge, progress=False).results
    reverse = ps.submit_pairs(ps.sample_reverse_pairs(pairs, 1, seed=1), judge, progress=False).results
    result = check_positional_bias(compute_reverse_consistency(forward, reverse), seed=1)
    row = result.summary.row(0, named=True)
    first, second = row["n_inconsistent_pos1_bias"], row["n_inconsistent_pos2_bias"]
    chance = 1 / (1 + math.exp(-2 * 0.3))
    assert binomtest(first, first + second, chance).pvalue > REJECT
    assert result.effect.lower < 0.3 < result.effect.upper
    assert abs(result.effect.estimate - 0.3) < 0.2
    assert result.verdict.startswith("position bias: the first position is favoured: of ")


@pytest.mark.slow
@pytest.mark.parametrize(("repeats", "method"), [(1, "exact"), (3, "score")])
@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_intervals_cover_and_estimates_are_centred(bias, repeats, method):
    rng = np.random.default_rng(17)
    covered, estimates, rejected, n = 0, [], 0, 60
    for _ in range(n):
        abilities = {f"s{at}": float(x) for at, x in enumerate(rng.normal(0, 1.5, 13))}
        found = compute_reverse_consistency(*simulated(bias, abilities, rng, repeats))
        effect = position_effect(found.votes, 0.95)
        assert effect.method == method
        covered += effect.lower <= bias <= effect.upper
        estimates.append(effect.estimate)
        rejected += check_positional_bias(found, n_boot=1, seed=0).p_paired < 0.05
    assert binomtest(covered, n, 0.95, alternative="less").pvalue > REJECT
    z = (np.mean(estimates) - bias) / (np.std(estimates) / math.sqrt(n))
    assert abs(z) < 3.9
    if bias == 0:
        assert binomtest(rejected, n, 0.05, alternative="greater").pvalue > REJECT


def test_the_pooled_test_is_blunter_than_the_paired_one():
    """A consistent pair gives position 1 one win of two, always; counting it as two tosses hides the preference."""
    main = rows(*((f"a{at}", f"b{at}", f"a{at}") for at in range(100)))
    back = rows(*((f"b{at}", f"a{at}", f"{'b' if at < 10 else 'a'}{at}") for at in range(100)))
    row = check_positional_bias(compute_reverse_consistency(main, back), seed=1).summary.row(0, named=True)
    assert row["p_sample1_overall"] == pytest.approx(binomtest(110, 200).pvalue)
    assert row["p_sample1_overall"] > 0.15
    assert row["p_paired"] == pytest.approx(2**-9)


# Words and refusals.


def test_verdicts():
    def verdict(first: int, second: int, same: int) -> str:
        cells = ["first"] * first + ["second"] * second + ["same"] * same
        main = rows(*((f"a{i}", f"b{i}", f"{'b' if kind == 'second' else 'a'}{i}") for i, kind in enumerate(cells)))
        back = rows(*((f"b{i}", f"a{i}", f"{'b' if kind == 'first' else 'a'}{i}") for i, kind in enumerate(cells)))
        return check_positional_bias(compute_reverse_consistency(main, back), seed=1).verdict

    assert verdict(3, 1, 5).startswith("too few pairs to tell: of 4 pairs that went to the same position")
    assert verdict(5, 5, 5).startswith("no sign of position bias: of 10 pairs")
    assert "the second position is favoured: of 12 pairs" in verdict(0, 12, 5)
    assert verdict(0, 12, 5).endswith("(95% interval -inf to -0.51): the first of two equal samples wins 17%")
    assert "p = below 0.001" in verdict(0, 12, 5)


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
    lower, upper = wilson(9, 10, 0.95)
    assert (lower, upper) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert issubclass(TableError, InputError)


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
