"""Repeats of a pair count for what they add, and ties for half a win each."""

import dataclasses
import itertools

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from pairscale.models.bayes.fit import fit_btl, fit_btl_laplace
from pairscale.models.bayes.model import Answers, JudgeParameters, count_outcomes
from pairscale.models.bayes.normal import differences
from pairscale.models.bayes.repeats import RepeatAgreement, count_repeats, weigh_repeats
from pairscale.models.bayes.settings import MCMCSettings

FEW = MCMCSettings(chains=4, iter_warmup=60, iter_sampling=60, extend=1)
PLAIN = JudgeParameters(lapse=False, position=False)
WHOLE = JudgeParameters(lapse=True, position=True)


def _rows(*rows):
    return pl.DataFrame(rows, schema={"ID1": pl.String, "ID2": pl.String, "better_id": pl.String}, orient="row")


def _names(text):
    return pl.Series(list(text), dtype=pl.String)


def _counted(rows, names, model, repeats="independent"):
    return count_repeats(_answers(rows, names), model, repeats)


def _answers(rows, names):
    result = (rows["better_id"] == rows["ID1"]).cast(pl.Float64).fill_null(0.5).to_numpy()
    return Answers(*_numbers(rows, names), result, len(names))


def _simulated(seed, *, sd=1.0, n_items=15, n_pairs=60, n_repeats=60, copies=0.0, bias=0.0):
    """Pairs at random and then repeats of them, which copy the first answer with some probability."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, sd, n_items)
    i, j = np.triu_indices(n_items, 1)
    asked = rng.choice(len(i), n_pairs, replace=False)
    rows, before = [], {}
    for k in [*asked, *rng.choice(asked, n_repeats)]:
        a, b = (i[k], j[k]) if rng.random() < 0.5 else (j[k], i[k])
        won = a if rng.random() < expit(theta[a] - theta[b] + bias) else b
        if k in before and rng.random() < copies:
            won = before[k]
        before.setdefault(k, won)
        rows.append((str(a), str(b), str(won)))
    return _rows(*rows), [str(k) for k in range(n_items)]


# Counting


def test_a_tie_is_half_a_win_for_each():
    rows = _rows(("a", "b", "a"), ("a", "b", None), ("b", "a", None))
    cells = count_outcomes(_answers(rows, _names("ab")), position=True)
    found = {
        (w, s): t for w, s, t in zip(cells.winner.tolist(), cells.sign.tolist(), cells.times.tolist(), strict=True)
    }
    assert found == {(0, 1.0): 1.5, (0, -1.0): 0.5, (1, 1.0): 0.5, (1, -1.0): 0.5}
    without = count_outcomes(_answers(rows, _names("ab")), position=False)
    assert without.winner.tolist() == [0, 1]
    assert without.times.tolist() == [2.0, 1.0]


def test_a_pair_asked_n_times_counts_as_its_effective_number_with_its_own_share_of_wins():
    rows = _rows(*[("a", "b", "a")] * 3, ("b", "a", "b"), ("b", "c", "c"))
    cells, found = _counted(rows, "abc", WHOLE, 0.5)
    assert (found.rho, found.how, found.n_repeats) == (0.5, "given", 3)
    n_eff = 1 + 3 * 0.5
    assert cells.times.tolist() == pytest.approx([3 * n_eff / 4, n_eff / 4, 1.0])
    once, *_ = _counted(rows, "abc", WHOLE, 1.0)
    assert once.times.tolist() == pytest.approx([0.75, 0.25, 1.0])


def test_agreement_by_hand():
    # a-b: 2 wins of a with a first, 1 with b first, 1 loss with b first: 3 of 6 twos agree, weight 3.
    # b-c: one tie, which is no answer, and one answer: no repeat.
    # c-d: 2 answers that differ, in the same order: weight 1.
    rows = _rows(
        ("a", "b", "a"), ("a", "b", "a"), ("b", "a", "a"), ("b", "a", "b"),
        ("b", "c", None), ("b", "c", "c"), ("c", "d", "c"), ("c", "d", "d"),
    )  # fmt: skip
    *_, found = _counted(rows, "abcd", WHOLE)
    assert found == RepeatAgreement(
        rho=0.0,
        how="independent",
        n_repeats=4,
        agreement=(3 * 3 / 6 + 0) / 4,
        expected=None,
    )


@pytest.mark.parametrize("model", [PLAIN, WHOLE])
def test_expected_agreement_is_that_of_independent_answers_at_the_scores(model):
    rows, names = _simulated(1, bias=0.4, copies=0.4)
    *_, found = _counted(rows, names, model, "learned")
    # At the fixed point, every two answers on the same pair one by one.
    first, second = _numbers(rows, names)
    first_won = (rows["better_id"] == rows["ID1"]).to_numpy()
    cells = count_outcomes(_answers(rows, names), position=model.position)
    centre, variance, lapse = differences(weigh_repeats(cells, found.rho), dataclasses.replace(model, prior_sd=None))
    cell_of = {key: k for k, key in enumerate(zip(cells.winner, cells.loser, cells.sign, strict=True))}
    z, weight = np.polynomial.hermite_e.hermegauss(25)
    weight /= weight.sum()

    def chance(k, item):
        """In that row, that the item wins."""
        winner, loser = (first[k], second[k]) if first_won[k] else (second[k], first[k])
        cell = cell_of[winner, loser, 1.0 if first_won[k] or not model.position else -1.0]
        side = 1 if item == winner else -1
        difference = side * centre[cell] + np.sqrt(variance[cell]) * z
        return lapse / 2 + (1 - lapse) * expit(difference)

    expected = agreeing = total = 0.0
    pairs = [frozenset(pair) for pair in zip(first, second, strict=True)]
    for pair in set(pairs):
        members = [k for k, other in enumerate(pairs) if other == pair]
        for k, m in itertools.combinations(members, 2):
            p, q = chance(k, min(pair)), chance(m, min(pair))
            won = [first[x] if first_won[x] else second[x] for x in (k, m)]
            expected += 2 / len(members) * float(weight @ (p * q + (1 - p) * (1 - q)))
            agreeing += 2 / len(members) * (won[0] == won[1])
            total += 2 / len(members)
    assert found.n_repeats == pytest.approx(total)
    assert found.agreement == pytest.approx(agreeing / total)
    assert found.expected == pytest.approx(expected / total, abs=2e-3)
    assert found.rho == pytest.approx((agreeing - expected + 0.5) / (total - expected + 1), abs=5e-3)


def _numbers(rows, names):
    number = {name: k for k, name in enumerate(names)}
    return tuple(np.array([number[name] for name in rows[side]]) for side in ("ID1", "ID2"))


# Learning


@pytest.mark.parametrize(("copies", "low", "high"), [(0.0, 0.0, 0.15), (0.5, 0.3, 0.65), (1.0, 0.97, 1.0)])
@pytest.mark.parametrize("sd", [1.0, 2.5])
def test_the_excess_agreement_is_learned(copies, low, high, sd):
    found = []
    for seed in range(6):
        rows, names = _simulated(seed, sd=sd, n_items=25, n_pairs=180, n_repeats=120, copies=copies)
        found.append(fit_btl_laplace(rows, names, seed=1, repeats="learned").repeat_agreement.rho)
    assert low <= np.mean(found) <= high


@pytest.mark.parametrize("variant", ["btl", "btl_e_b"])
@pytest.mark.parametrize("fit", [fit_btl, fit_btl_laplace])
def test_without_repeats_the_fit_is_the_same_bit_for_bit(fit, variant):
    rows, names = _simulated(7, n_repeats=0)
    one = fit(rows, names, variant, FEW, 3, prior_sd="learned")
    two = fit(rows, names, variant, FEW, 3, prior_sd="learned", repeats="learned")
    np.testing.assert_array_equal(one.posterior.theta, two.posterior.theta)
    assert two.repeat_agreement == RepeatAgreement(0.0, "learned", 0, None, None)


@pytest.mark.slow_except("fit_btl_laplace")
@pytest.mark.parametrize("fit", [fit_btl, fit_btl_laplace])
def test_repeats_of_a_repeatable_judge_add_next_to_nothing(fit):
    rows, names = _simulated(2, n_repeats=0)
    ten = pl.concat([rows] * 10)
    settings = MCMCSettings(chains=4, extend=1)
    one = fit(rows, names, "btl_e_b", settings, 3)
    naive = fit(ten, names, "btl_e_b", settings, 3)
    counted = fit(ten, names, "btl_e_b", settings, 3, repeats="learned")
    assert counted.repeat_agreement.rho > 0.98
    assert counted.n_comparisons == 600
    spread = [f.posterior.theta.std(axis=0).mean() for f in (one, naive, counted)]
    assert spread[1] < 0.6 * spread[0]
    assert spread[2] == pytest.approx(spread[0], rel=0.08)


# Properties


@pytest.mark.slow
def test_ties_count_by_how_much_they_vary():
    """Close texts that tie: the spread of the estimates over many tables is that of the posterior."""
    rng = np.random.default_rng(1)
    i, j = np.triu_indices(8, 1)
    names, estimates, spreads = [str(k) for k in range(8)], [], []
    for _ in range(60):
        answers = rng.choice([0, 1, 2], size=(3, len(i)), p=[0.25, 0.25, 0.5])
        rows = [
            (str(a), str(b), (str(a), str(b), None)[kind])
            for round_ in answers
            for a, b, kind in zip(i, j, round_, strict=True)
        ]
        posterior = fit_btl_laplace(_rows(*rows), names, "btl", seed=1, prior_sd=3.0).posterior
        estimates.append(posterior.items.theta_mean)
        spreads.append(posterior.items.theta_sd)
    assert np.mean(spreads) == pytest.approx(np.std(estimates), rel=0.1)
