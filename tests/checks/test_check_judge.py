"""A judge tried on some pairs in both orders."""

import polars as pl
import pytest

import pairscale as ps

TEXTS = pl.DataFrame(
    {"ID": [f"t{n:02d}" for n in range(12)], "text": [f"text {n}" for n in range(12)], "grade": range(12), "q1": "x"}
)


def asked_of(judge, **options):
    """What a judge was asked, as pairs of samples, and what came of it."""
    seen = []

    def noted(A, B):
        seen.append((dict(A), dict(B)))
        return judge(A, B)

    return seen, ps.check_judge(TEXTS, noted, progress=False, concurrency=1, **options)


def better(A, B):
    return {"is_valid": True, "Y": int(A["grade"] > B["grade"]), "invalid_reason": None}


def test_every_pair_is_asked_both_ways_round_with_all_that_is_known_of_its_texts():
    seen, check = asked_of(better, n_pairs=7)
    assert (check.n_pairs, check.n_asked, check.n_valid, check.prop_consistent) == (7, 14, 14, 1.0)
    ways = [(a["ID"], b["ID"]) for a, b in seen]
    assert len(set(ways)) == 14
    assert {(b, a) for a, b in ways} == set(ways)
    known = {row["ID"]: row for row in TEXTS.iter_rows(named=True)}
    for sample in (side for pair in seen for side in pair):
        row = known[sample["ID"]]
        assert {name: sample[name] for name in row} == row


@pytest.mark.slow
def test_the_same_seed_asks_about_the_same_pairs_and_more_than_there_are_about_all():
    first, again, other = (asked_of(better, n_pairs=7, seed=seed)[0] for seed in (3, 3, 4))
    assert first == again != other
    assert asked_of(better, n_pairs=1000)[1].n_pairs == 66
