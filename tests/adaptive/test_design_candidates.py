"""Candidates, the pipeline, duplicates and fallbacks (§5.1 to §6): case by case by hand."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from pairscale.adaptive.selection.pollitt import Scene, choose_in_stage, pairs_across, pairs_at_distance
from tests.adaptive.reference import PHI
from tests.adaptive.scenes import LADDER_MU, attempt, counts, met, round_of, scene_of


def test_candidates_of_each_stage() -> None:
    """§5.1.1 to §5.1.4: who may be compared with whom, counted over all pairs."""
    mu = [50.0 - step for step in range(60)]
    scene = scene_of(mu, anchors=(0, 29, 59), explore_rate=0.0)
    anchor, stratum, config = scene.is_anchor, scene.stratum, scene.config
    pairs = list(combinations(range(60), 2))
    apart = {pair: abs(int(stratum[pair[0]] - stratum[pair[1]])) for pair in pairs}
    others = [pair for pair in pairs if not (anchor[pair[0]] or anchor[pair[1]])]
    expected = {
        "anchor_link": 3 * 57,
        "long_link": sum(apart[pair] >= config.long_min_dist for pair in others),
        "mid_link": sum(2 <= apart[pair] <= 4 for pair in others),
        "local_link": sum(apart[pair] <= 1 for pair in pairs),
    }
    for stage, number in expected.items():
        pair, fields = choose_in_stage(scene, round_of(60), stage, (1, 1))
        assert fields["n_candidates_generated"] == number, stage
        assert pair is not None
        assert fields["fallback_path"] == fields["fallback_used"] == "base"
    without = scene_of(mu, anchors=(0, 29, 59), local_anchors=False)
    _, fields = choose_in_stage(without, round_of(60), "local_link", (1, 1))
    assert fields["n_candidates_generated"] == sum(apart[pair] <= 1 for pair in others)


@pytest.mark.slow
def test_candidates_are_drawn_evenly_when_there_are_too_many() -> None:
    """§5.1.5: exactly C_max of them, none twice, each as likely as any other, the same for the same seed."""
    items, strata = np.arange(12), np.repeat([1, 2, 3, 4], 3)
    allowed = {(i, j) for i, j in combinations(range(12), 2) if 1 <= abs(strata[i] - strata[j]) <= 2}
    drawn: Counter[tuple[int, int]] = Counter()
    for seed in range(2000):
        found = list(zip(*pairs_at_distance(items, strata, 1, 2, 9, np.random.default_rng(seed)), strict=True))
        assert len(set(found)) == len(found) == 9
        drawn.update((int(i), int(j)) for i, j in found)
    assert set(drawn) == allowed
    expected = 2000 * 9 / len(allowed)
    assert sum((count - expected) ** 2 / expected for count in drawn.values()) < 80  # chi-square, 44 degrees of freedom
    # Of very many, another way of drawing is used.
    left, right = np.arange(12), np.arange(12, 28)
    counted: Counter[tuple[int, int]] = Counter()
    for seed in range(3000):
        found = list(zip(*pairs_across(left, right, 16, np.random.default_rng(seed)), strict=True))
        assert len(set(found)) == len(found) == 16
        counted.update((int(i), int(j)) for i, j in found)
    assert len(counted) == 192
    assert sum((count - 250) ** 2 / 250 for count in counted.values()) < 265  # 191 degrees of freedom
    again = pairs_across(items[:4], items[4:], 9, np.random.default_rng(3))
    assert [part.tolist() for part in again] == [
        part.tolist() for part in pairs_across(items[:4], items[4:], 9, np.random.default_rng(3))
    ]
    whole = pairs_across(items[:4], items[4:], 32, np.random.default_rng(3))
    assert sorted(zip(*map(np.ndarray.tolist, whole), strict=True)) == [(i, j) for i in range(4) for j in range(4, 12)]


def test_the_draw_depends_on_step_stage_and_fallback() -> None:
    """§5.1.5, decision 11: another generator for each run seed, step, stage and fallback; the same for the same."""
    scene = scene_of(LADDER_MU, C_max=3, explore_rate=0.0)
    first = [choose_in_stage(scene, round_of(10), "local_link", (1, step))[0] for step in range(20)]
    assert first == [choose_in_stage(scene, round_of(10), "local_link", (1, step))[0] for step in range(20)]
    assert len(set(first)) > 3
    assert first != [choose_in_stage(scene, round_of(10), "local_link", (2, step))[0] for step in range(20)]


def test_a_draw_that_misses_what_is_left_does_not_starve_the_last_stage() -> None:
    """§5.1.5, §5.3.1: before the last stage gives up, its backstop looks at all pairs."""
    scene = scene_of(LADDER_MU, C_max=1)
    for i, j in combinations(range(10), 2):
        met(scene, i, j, 0 if (i, j) == (2, 8) else 2)
    for seed in range(20):
        pair, fields = choose_in_stage(scene, round_of(10), "local_link", (1, seed))
        assert pair == (2, 8)
        assert fields["fallback_used"] in ("dup_relax", "global_safe")


def test_one_use_a_round_and_a_few_more_when_the_stage_would_starve() -> None:
    """§5.1.6: used items are out; then, within the budget, those in the bottom quartile of recent comparisons."""
    scene = scene_of([30.0, 29.0, 28.0, 27.0], repeat_in_round_budget=2)
    round_ = round_of(4)
    round_.admit("local_link", 0, 1, override=False)
    pair, fields = choose_in_stage(scene, round_, "local_link", (1, 1))
    assert pair == (2, 3)
    assert not fields["repeats_allowed"]
    round_.admit("local_link", 2, 3, override=False)
    scene.ledger.recent[:] = [5, 1, 5, 5]  # the quartile is 4
    assert choose_in_stage(scene, round_, "local_link", (1, 2))[0] is None  # one alone finds no partner
    scene.ledger.recent[:] = [5, 1, 1, 5]
    pair, fields = choose_in_stage(scene, round_, "local_link", (1, 2))
    assert pair == (1, 2)
    assert fields["repeats_allowed"]
    assert fields["fallback_path"].startswith("base>expand_locality>uncertainty_pool>dup_relax>global_safe>base")
    round_.admit("local_link", 1, 2, override=False)
    assert round_.repeats == 2
    scene.ledger.recent[:] = 0
    assert choose_in_stage(scene, round_, "local_link", (1, 3))[0] is None  # the budget is spent
    # No item a third time, however large the budget is.
    roomy = scene_of([30.0, 29.0], repeat_in_round_budget=50)
    round_ = round_of(2)
    for _ in range(2):
        round_.admit("local_link", 0, 1, override=False)
    assert choose_in_stage(roomy, round_, "local_link", (1, 3))[0] is None


def test_a_second_use_that_exceeds_the_budget_is_no_candidate() -> None:
    """§5.1.6: with one second use left, a pair of two used items is out, a pair of a used and a fresh one is in."""
    scene = scene_of([30.0, 29.9, 25.0], repeat_in_round_budget=1, local_max_dist=2)
    round_ = round_of(3)
    round_.admit("local_link", 0, 1, override=False)
    pair, fields = choose_in_stage(scene, round_, "local_link", (1, 1))
    assert pair == (1, 2)
    assert fields["n_candidates_generated"] == 2


def test_the_order_of_the_pipeline_and_its_counts() -> None:
    """§5.2.1, §7.3: hard filters, then duplicates, then star caps, each counted; all that is left is scored."""
    scene = scene_of(LADDER_MU, W_cap=10, cap_frac=0.1)
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 7)]
    scene.ledger.closed[0, 1] = scene.ledger.closed[1, 0] = True  # in flight, resting or given up
    met(scene, 1, 2, 2)
    scene.ledger.recent[3] = 4  # the cap of ten items is max(1, ceil(1.5 * 20 / 10)) = 3
    found = attempt(scene, pairs)
    assert counts(found) == [6, 5, 4, 2, 2]
    assert found.fields["star_cap_rejects"] == 2
    assert found.fields["star_cap_reject_items"] == 1
    assert found.pair == (4, 5)
    assert found.fields["star_override_used"] is False
    scene.ledger.recent[3] = 3  # at the cap is not above it
    assert counts(attempt(scene, pairs)) == [6, 5, 4, 4, 4]
    scene.ledger.open_degree[3] = 1  # decision 13: what is in flight counts
    assert counts(attempt(scene, pairs)) == [6, 5, 4, 2, 2]
    assert counts(attempt(scene, [(0, 1)])) == [1, 0, 0, 0, 0]
    assert attempt(scene, []).pair is None


def test_utility() -> None:
    """§6: the pair of the greatest p (1 - p) wins, also when a farther one is less certain."""
    scene = scene_of([30.0, 28.0, 20.0, 17.5])
    scene.ledger.sigma[:] = [1.0, 1.0, 8.0, 8.0]
    pairs = [(0, 1), (2, 3)]
    beta = 25 / 6

    def u0(i: int, j: int) -> float:
        mu, sigma = scene.ledger.mu, scene.ledger.sigma
        p = PHI((mu[i] - mu[j]) / math.sqrt(sigma[i] ** 2 + sigma[j] ** 2 + 2 * beta**2))
        return p * (1 - p)

    assert u0(2, 3) > u0(0, 1)
    assert attempt(scene, pairs).pair == (2, 3)
    scene.ledger.sigma[:] = 1.0
    assert attempt(scene, pairs).pair == (0, 1)


def test_degree_regularization() -> None:
    """§6.1.3: off by default; gated at degree 2, and capped."""
    mu = [30.0, 29.0, 20.0, 18.95]
    pairs = [(0, 1), (2, 3)]
    degrees = [40, 40, 3, 3]
    for alpha, gate, best in ((0.0, 2, (0, 1)), (0.1, 2, (2, 3)), (0.1, 1, (0, 1))):
        scene = scene_of(mu, degree_alpha=alpha)
        scene.ledger.degree[:] = degrees if gate == 2 else [40, 1, 3, 3]
        assert attempt(scene, pairs).pair == best
    capped = scene_of(mu, degree_alpha=0.1, degree_penalty_max=1.0)
    capped.ledger.degree[:] = degrees
    assert attempt(capped, pairs).pair == (0, 1)


@pytest.mark.parametrize("seen", [0, 1, 2, 3, 4])
def test_duplicate_policy(seen: int) -> None:
    """§5.3.2: up to dup_max_obs; beyond the second only when relaxed, and up to its limit."""
    scene = scene_of([30.0, 29.9, 20.0, 15.0, 10.0])
    met(scene, 0, 1, seen)
    pairs = [(0, 1), (2, 3), (3, 4)]
    assert ((0, 1) == attempt(scene, pairs, max_obs=2).pair) is (seen < 2)
    assert ((0, 1) == attempt(scene, pairs, max_obs=3).pair) is (seen < 3)


def test_a_third_answer_needs_a_near_tie_of_high_utility() -> None:
    """§5.3.2: |p - 0.5| within dup_p_margin, and U0 at least the q-quantile of what hard filters and caps leave."""
    t = float(ndtri(0.55)) * math.sqrt(2 + 2 * (25 / 6) ** 2)
    for apart, allowed in ((0.999 * t, True), (1.001 * t, False)):
        scene = scene_of([30.0, 30.0 - apart, 0.0, -30.0])
        met(scene, 0, 1, 2)
        assert (attempt(scene, [(0, 1), (2, 3)], max_obs=3).pair == (0, 1)) is allowed
    # 0.90-quantile of eleven utilities: only the best two reach it.
    mu = [30.0, 29.9, 20.0, 19.8, 10.0, 9.7, *np.linspace(0, -300, 10)]
    scene = scene_of([float(x) for x in mu])
    for i, j in ((0, 1), (2, 3), (4, 5)):
        met(scene, i, j, 2)
    pairs = [(0, 1), (2, 3), (4, 5), *((i, i + 1) for i in range(6, 14))]
    found = attempt(scene, pairs, max_obs=3)
    assert counts(found)[2] == 2 + 8
    assert found.pair == (0, 1)
    # Those above a star cap do not count for the quantile, however open they are.
    mu = [30.0, 29.95, 29.9, 20.0, 19.8, *np.linspace(0, -300, 9)]
    crowded = scene_of([float(x) for x in mu], W_cap=4, cap_frac=0.0)
    met(crowded, 3, 4, 2)
    crowded.ledger.recent[[0, 1, 2]] = 99
    found = attempt(crowded, [(0, 1), (0, 2), (1, 2), (3, 4), *((i, i + 1) for i in range(5, 13))], max_obs=3)
    assert counts(found) == [12, 12, 12, 9, 9]
    assert found.pair == (3, 4)


def test_relaxed_duplicates_only_in_dup_relax() -> None:
    """§5.3.1, §5.3.2: the ladder reaches a third answer in dup_relax, and nowhere else."""
    scene = scene_of([30.0, 29.9])
    met(scene, 0, 1, 2)
    pair, fields = choose_in_stage(scene, round_of(2), "local_link", (1, 1))
    assert pair == (0, 1)
    assert fields["fallback_path"] == "base>expand_locality>uncertainty_pool>dup_relax"
    far = scene_of(LADDER_MU, sigma=40.0, repeat_in_round_budget=0)  # all near ties, but too far apart in strata
    for i, j in combinations(range(10), 2):
        met(far, i, j, 2 if (i, j) == (0, 9) else 3)
    assert choose_in_stage(far, round_of(10), "local_link", (1, 1))[0] is None


def test_fallbacks_widen_in_their_order() -> None:
    """§5.3.1, decision 9: local 1 to 2 strata, mid 2–4 to 1–5, long by one; the band stays on every later rung."""
    mu = [60.0 - step for step in range(55)]  # three top strata of two, then five of about ten
    cases = {
        "local_link": {0: "base", 1: "base", 2: "expand_locality", 3: None},
        "mid_link": {0: None, 1: "expand_locality", 2: "base", 4: "base", 5: "expand_locality", 6: None},
        "long_link": {0: None, 1: None, 2: "expand_locality", 3: "base", 7: "base"},
    }
    for stage, by_distance in cases.items():
        for distance, fallback in by_distance.items():
            scene = scene_of(mu, repeat_in_round_budget=0)
            for i, j in combinations(range(55), 2):
                if abs(scene.stratum[i] - scene.stratum[j]) != distance:
                    scene.ledger.closed[i, j] = scene.ledger.closed[j, i] = True
            pair, fields = choose_in_stage(scene, round_of(55), stage, (1, 1))
            assert (fields["fallback_used"] if pair else None) == fallback, (stage, distance)
            if pair is None:
                assert fields["candidate_starved"]
                assert fields["fallback_path"] == "base>expand_locality>uncertainty_pool>dup_relax>global_safe"
                assert fields["starvation_reason"] == "hard_filters"


def test_starvation_says_where_the_last_candidate_was_lost() -> None:
    """§5.2, §5.3: candidate_starved only after the whole ladder, with its reason."""

    def starved(scene: Scene) -> Any:
        pair, fields = choose_in_stage(scene, round_of(scene.ledger.n), "local_link", (1, 1))
        assert pair is None
        assert fields["candidate_starved"]
        return fields["starvation_reason"]

    scene = scene_of([30.0, 29.0])
    scene.ledger.set_aside[:] = True
    assert starved(scene) == "no_candidates"
    scene = scene_of([30.0, 29.0])
    scene.ledger.closed[:] = True
    assert starved(scene) == "hard_filters"
    scene = scene_of([30.0, 29.0])
    met(scene, 0, 1, 3)
    assert starved(scene) == "duplicates"
    scene = scene_of([30.0, 29.0])
    scene.ledger.recent[:] = 10**6
    assert starved(scene) == "star_caps"
