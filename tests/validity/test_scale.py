"""People's scale: beside a slow and obvious computation, and where the truth is known."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import spearmanr

from pairscale.validity.pairs import next_pairs
from pairscale.validity.scale import JudgeScale, PeopleAnswers, PeopleScale, people_scale

SPREAD = 1.5  # of people's scores
JUDGE_SPREAD = 1.7


def world(
    n: int, labels: int, r: float, reliability: float, seed: int, slopes: tuple[float, ...] = (1.0,)
) -> tuple[np.ndarray, np.ndarray, JudgeScale, PeopleAnswers]:
    """Scores of the judge and of people, what is known of the judge's, and answers of people to random pairs."""
    rng = np.random.default_rng((seed, n, labels, int(100 * r), int(100 * reliability)))
    z = rng.normal(0, JUDGE_SPREAD, n)
    h = SPREAD * (r * z / JUDGE_SPREAD + np.sqrt(1 - r * r) * rng.normal(0, 1, n))
    mean = reliability * z + rng.normal(0, JUDGE_SPREAD * np.sqrt(reliability * (1 - reliability)), n)
    draws = mean + rng.normal(0, JUDGE_SPREAD * np.sqrt(1 - reliability), (1000, n))
    judge = JudgeScale(tuple(f"t{number}" for number in range(n)), draws - draws.mean(axis=1, keepdims=True))
    first = rng.integers(0, n, labels)
    second = (first + rng.integers(1, n, labels)) % n
    person = rng.integers(0, len(slopes), labels)
    chance = expit(np.array(slopes)[person] * (h[first] - h[second]))
    result = (rng.random(labels) < chance).astype(float)
    return z, h, judge, PeopleAnswers(first, second, result, person, len(slopes))


def importance_sampled(judge: JudgeScale, answers: PeopleAnswers, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The posterior by weighing draws from the prior: means of people's scores, their sds, and the mean validity."""
    rng = np.random.default_rng(seed)
    size = 400_000
    r = rng.uniform(-1, 1, size)
    spread = np.abs(rng.normal(0, 2.5, size))
    z = judge.draws[rng.integers(len(judge.draws), size=size)]
    sd = np.sqrt(np.mean(judge.draws.var(axis=0)) + np.var(judge.draws.mean(axis=0)))
    h = (spread * r / sd)[:, None] * z + (spread * np.sqrt(1 - r * r))[:, None] * rng.standard_normal(z.shape)
    position = rng.normal(0, 0.3, size)
    logit = h[:, answers.first] - h[:, answers.second] + position[:, None]
    log_weight = np.where(answers.result > 0.5, -np.logaddexp(0, -logit), -np.logaddexp(0, logit)).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    z = z - z.mean(axis=1, keepdims=True)
    h = h - h.mean(axis=1, keepdims=True)
    validity = (z * h).sum(axis=1) / np.sqrt((z**2).sum(axis=1) * (h**2).sum(axis=1))
    mean = weight @ h
    return mean, np.sqrt(weight @ h**2 - mean**2), float(weight @ validity)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_the_posterior(seed: int) -> None:
    _, _, judge, answers = world(5, 24, 0.7, 0.9, seed)
    scale = people_scale(judge, answers, seed)
    mean, sd, validity = importance_sampled(judge, answers, seed)
    np.testing.assert_allclose(scale.people.mean(axis=0), mean, atol=0.3 * sd.max())  # by Laplace, of 24 answers
    np.testing.assert_allclose(scale.people.std(axis=0), sd, rtol=0.15)
    assert scale.validity.mean() == pytest.approx(validity, abs=0.05)


def test_without_answers_nothing_is_known_of_the_validity() -> None:
    _, _, judge, answers = world(30, 0, 0.8, 0.9, 1)
    lower, upper = people_scale(judge, answers).interval()
    assert lower < -0.85
    assert upper > 0.85


def test_intervals_cover_and_the_corrected_order_is_nearer_to_peoples() -> None:
    hits = []
    gains = []
    covered = []
    for seed in range(20):
        z, h, judge, answers = world(60, 100, 0.8, 0.9, 500 + seed)
        scale = people_scale(judge, answers, seed)
        lower, upper = scale.interval()
        hits.append(lower <= np.corrcoef(z, h)[0, 1] <= upper)
        gains.append(spearmanr(scale.people.mean(axis=0), h)[0] - spearmanr(judge.mean, h)[0])
        ends = np.quantile(scale.people, [0.025, 0.975], axis=0)
        covered.append(np.mean((ends[0] <= h - h.mean()) & (h - h.mean() <= ends[1])))
    assert sum(hits) >= 17
    assert np.mean(gains) > 0.03
    assert 0.9 < np.mean(covered) < 0.985


def test_a_person_who_answers_at_random_has_the_lowest_slope() -> None:
    lowest = []
    for seed in range(6):
        _, _, judge, answers = world(40, 240, 0.9, 0.95, 100 + seed, slopes=(1.5, 1.0, 0.0))
        slopes = people_scale(judge, answers).slopes.mean(axis=0)
        lowest.append(slopes[2] < slopes[:2].min() / 2)
    assert sum(lowest) >= 5


def test_a_position_effect_is_not_taken_for_quality() -> None:
    _, h, judge, answers = world(30, 300, 0.5, 0.9, 4)
    rng = np.random.default_rng(4)
    always_first = rng.random(len(answers)) < 0.3
    shifted = np.where(always_first, 1.0, answers.result)
    moved = PeopleAnswers(answers.first, answers.second, shifted, answers.person, 1)
    scale = people_scale(judge, moved)
    assert spearmanr(scale.people.mean(axis=0), h)[0] > 0.75


@pytest.mark.parametrize("n_answers", [0, 60])
def test_next_pairs_are_new_different_and_spread_over_the_texts(n_answers: int) -> None:
    _, _, judge, answers = world(20, n_answers, 0.8, 0.9, 5)
    known = {tuple(sorted(pair)) for pair in zip(answers.first.tolist(), answers.second.tolist(), strict=True)}
    pairs = next_pairs(people_scale(judge, answers), known, 20)  # type: ignore[arg-type]
    unordered = {tuple(sorted(pair)) for pair in pairs}
    assert len(unordered) == len(pairs) == 20
    assert not unordered & known
    counts = np.bincount(np.array(pairs).ravel(), minlength=20)
    assert counts.max() <= 3


def test_what_a_pair_tells_is_mutual_information() -> None:
    """Where the validity alone decides the answer of one pair, and the other is a coin, the first is asked."""
    rng = np.random.default_rng(6)
    validity = rng.uniform(-1, 1, 2000)
    people = np.zeros((2000, 4))
    people[:, 0] = 3 * np.sign(validity)
    scale = PeopleScale(people, people, validity, np.ones((2000, 1)))
    assert all(0 in pair for pair in next_pairs(scale, set(), 2))
