"""Checks of the model: they find what they are for, and pass clean judges."""

import numpy as np
import polars as pl
import pytest

from pairscale.models.model_checks import MAX_ANSWERS, check_model


def _answers(n: int, size: int, seed: int, chance) -> pl.DataFrame:
    """Answers to random pairs; ``chance(i, j, share)`` is the probability that the first wins, by then."""
    rng = np.random.default_rng(seed)
    rows = []
    for place in range(size):
        first, second = rng.choice(n, 2, replace=False).tolist()
        won = rng.random() < chance(first, second, place / size)
        rows.append((f"t{first:02d}", f"t{second:02d}", f"t{first if won else second:02d}"))
    return pl.DataFrame(rows, schema=["ID1", "ID2", "better_id"], orient="row")


def _logistic(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))


TRUTH = np.random.default_rng(5).normal(0, 2, 40)
OTHER = np.random.default_rng(6).normal(0, 2, 40)


def _named(rows: pl.DataFrame) -> dict[str, tuple[float, bool]]:
    return {check.name: (check.z, check.passes) for check in check_model(rows)}


def test_a_clean_judge_passes() -> None:
    made = _named(_answers(40, 480, 3, lambda i, j, _: _logistic(TRUTH[i] - TRUTH[j])))
    assert {name: passes for name, (_, passes) in made.items()} == dict.fromkeys(("distance", "circles", "drift"), True)


def test_false_alarms_are_as_rare_as_claimed() -> None:
    flags = [
        check.passes
        for seed in range(30)
        for check in check_model(_answers(20, 160, 100 + seed, lambda i, j, _: _logistic(TRUTH[i] - TRUTH[j])))
    ]
    assert len(flags) == 90
    assert flags.count(False) <= 8  # 2.7 are expected at .03


def test_a_judge_that_changes_its_mind_drifts() -> None:
    made = _named(_answers(40, 800, 4, lambda i, j, t: _logistic((TRUTH if t < 0.5 else OTHER)[[i, j]] @ [1, -1])))
    assert made["drift"][0] < -3
    assert not made["drift"][1]


def test_a_judge_that_tells_only_far_pairs() -> None:
    def steep(i: int, j: int, _: float) -> float:
        gap = TRUTH[i] - TRUTH[j]
        return _logistic(3 * gap if abs(gap) > 1.5 else 0.0)

    made = _named(_answers(40, 2000, 4, steep))
    assert made["distance"][0] > 3
    assert not made["distance"][1]


def test_circles() -> None:
    """A judge that closes every second chain to a circle: A beat B and B beat C, but C beats A."""
    beat = np.zeros((30, 30), dtype=bool)

    def chance(i: int, j: int, _: float) -> float:
        chains = int((beat[i] & beat[:, j]).sum()) - int((beat[j] & beat[:, i]).sum())
        probability = _logistic(0.5 * (TRUTH[i] - TRUTH[j]))
        if chains:
            probability = (probability + float(chains < 0)) / 2
        winner, loser = (i, j) if probability > 0.5 else (j, i)
        beat[winner, loser] = True
        return float(winner == i)

    made = _named(_answers(30, 300, 4, chance))
    assert made["circles"][0] < -3
    assert not made["circles"][1]


def test_repeats_of_a_judge_that_repeats_itself_count_once() -> None:
    rows = _answers(20, 160, 9, lambda i, j, _: _logistic(TRUTH[i] - TRUTH[j]))
    same = pl.struct(pl.min_horizontal("ID1", "ID2").alias("a"), pl.max_horizontal("ID1", "ID2").alias("b"))
    firsts = rows.filter(same.is_first_distinct())
    repeated = pl.concat([firsts] * 4)
    assert all(abs(z) < 2.5 for z, _ in _named(repeated).values())


@pytest.mark.parametrize("size", [0, 30, MAX_ANSWERS + 1])
def test_too_few_or_too_many_answers_are_not_checked(size: int) -> None:
    assert check_model(_answers(20, size, 1, lambda *_: 0.5)) == []


def test_the_same_answers_give_the_same_checks() -> None:
    rows = _answers(20, 160, 9, lambda i, j, _: _logistic(TRUTH[i] - TRUTH[j]))
    assert check_model(rows) == check_model(rows)
