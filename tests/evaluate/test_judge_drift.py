"""A judge beside an earlier one on the same labels, and its scale of the texts beside people's."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import multinomial

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.evaluate.inference.score import careful_limits

TEXTS = ps.example_writing_samples


@pytest.fixture(scope="module")
def people():
    pairs = ps.sample_pairs(ps.make_pairs(TEXTS), n_pairs=60, seed=2)
    results = ps.judge(pairs, judge=ps.SimulatedJudge("quality_score", seed=3), progress=False).results
    return results.select("ID1", "ID2", "better_id")


def by_length(A, B):
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


def check(judge, people, **options):
    given = {"labels": people, "progress": False}
    return ps.check_judge(TEXTS, judge, **(given | options))


@pytest.fixture(scope="module")
def lexical(people):
    return check("lexical", people)


def test_the_card_says_how_the_judges_scale_correlates_with_peoples(lexical, people):
    measured = lexical.card.measures["correlation"]
    assert measured.n == 60
    assert measured.lower < measured.value < measured.upper
    ranked = ps.rank(TEXTS, judge="lexical", max_comparisons=150, seed=1, progress="none")
    assert measured.value == pytest.approx(ps.trust(ranked, people).validity.estimate, abs=0.1)
    assert f"correlate {measured.value:.2f} with people's (95 % interval {measured.lower:.2f} to" in str(lexical.card)
    few = check("lexical", people.head(19)).card.measures["correlation"]
    assert few.why == "it takes 20 answers of people to pairs that the judge answered"


def test_a_new_judge_is_compared_pair_by_pair(lexical, people, tmp_path):
    path = lexical.save_card(tmp_path / "card.json")
    new = check(by_length, people, since=path, seed=7)
    lengths = dict(TEXTS.select("ID", pl.col("text").str.len_chars()).iter_rows())
    right_now = []
    right_then = []
    lexical_wins = {frozenset(row[:2]): row[2] for row in ps.judge(people_pairs(people), progress=False).results.select(
        "ID1", "ID2", "better_id").iter_rows()}  # fmt: skip
    for first, second, better in people.unique(["ID1", "ID2"]).iter_rows():
        longer = first if lengths[first] > lengths[second] else second
        right_now.append(longer == better and lengths[first] != lengths[second])
        right_then.append(lexical_wins[frozenset((first, second))] == better)
    change = new.change
    assert change is not None
    assert change.n == len(right_now)
    assert change.agreement == pytest.approx(np.mean(right_now))
    assert change.agreement_earlier == pytest.approx(np.mean(right_then))
    assert change.difference == pytest.approx(np.mean(right_now) - np.mean(right_then))
    assert change.gained - change.lost == round(change.n * change.difference)
    assert change.lower <= change.difference <= change.upper
    assert str(change).startswith(
        f"{new.judge_id} agrees with people in {100 * change.agreement:.0f} % of {change.n} labels"
    )
    same = check("lexical", people, since=lexical.card).change
    assert same is not None
    assert (same.difference, same.gained, same.lost) == (0, 0, 0)
    assert "no difference (95 % confidence interval -" in str(same)


def people_pairs(people):
    texts = TEXTS.select("ID", "text")
    first = people.join(texts.rename({"ID": "ID1", "text": "text1"}), on="ID1")
    return first.join(texts.rename({"ID": "ID2", "text": "text2"}), on="ID2").select("ID1", "text1", "ID2", "text2")


@pytest.mark.parametrize("case", ["a pair more", "another label", "no labels", "no answers on the card"])
def test_what_cannot_be_compared_is_refused_before_anything_is_asked(lexical, people, case, message_snapshot, tmp_path):
    asked = []

    def judge(A, B):
        asked.append(1)
        return by_length(A, B)

    labels = people
    since = lexical.card
    if case == "a pair more":
        known = {frozenset(row) for row in people.select("ID1", "ID2").iter_rows()}
        other = next(row for row in ps.make_pairs(TEXTS).iter_rows(named=True) if {row["ID1"], row["ID2"]} not in known)
        labels = [*people.to_dicts(), {"ID1": other["ID1"], "ID2": other["ID2"], "better_id": other["ID1"]}]
    elif case == "another label":
        row = people.row(0, named=True)
        loser = row["ID1"] if row["better_id"] == row["ID2"] else row["ID2"]
        labels = [row | {"better_id": loser}, *people.to_dicts()[1:]]
    elif case == "no labels":
        labels = None
    else:
        document = json.loads(json.dumps(lexical.card.to_dict()))
        del document["data"]["answers"]
        since = type(lexical.card)(lexical.card.judge, lexical.card.measures, document["data"])
    with pytest.raises(InputError) as refused:
        check(judge, labels, since=since)
    message_snapshot(refused)
    assert not asked


@pytest.mark.parametrize("n", [20, 120])
def test_the_interval_of_the_change_holds_for_any_two_judges(n):
    """All outcomes counted: never less than .95 of them hold the true difference."""
    gained, lost = np.divmod(np.arange((n + 1) ** 2), n + 1)
    possible = gained + lost <= n
    gained = gained[possible]
    lost = lost[possible]
    rate = 0.5 + (gained - lost) / (2 * n)
    lower, upper = careful_limits(rate, 1 - (gained + lost) / n, np.full(len(rate), float(n)), 0.95)
    outcomes = np.stack([gained, lost, n - gained - lost], axis=1)
    for only_new, only_old in [(0.02, 0.02), (0.05, 0.1), (0.1, 0.1), (0.2, 0.05), (0.3, 0.0), (0.3, 0.3), (0.01, 0.2)]:
        chance = multinomial.pmf(outcomes, n, [only_new, only_old, 1 - only_new - only_old])
        true = 0.5 + (only_new - only_old) / 2
        assert chance[(lower <= true + 1e-12) & (true - 1e-12 <= upper)].sum() >= 0.95
