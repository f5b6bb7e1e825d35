"""The choice among candidates, and the order of a pair (§4.2, §5.1, §6.1.1, §7.5, §7.6): case by case by hand."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from pairscale.adaptive.engine import Engine
from pairscale.adaptive.selection.ledger import Ledger
from pairscale.adaptive.selection.pollitt import EXPLOIT, FALLBACKS, BoundarySlots, Scene, choose_in_stage
from tests.adaptive.driving import belief_of, drive, logistic_judge, mu_belief, names
from tests.adaptive.scenes import attempt, round_of, scene_of


def test_exploration_rate() -> None:
    """§4.2, §5.3.1: as set; halved when the order is known; doubled, at most to one half, from uncertainty_pool on."""
    for rate, identified, fallback, used in (
        (0.2, False, "base", 0.2), (0.2, True, "base", 0.1), (0.2, False, "uncertainty_pool", 0.4),
        (0.2, True, "uncertainty_pool", 0.4), (0.4, False, "uncertainty_pool", 0.5),
    ):  # fmt: skip
        known = {"identified": identified, "belief": belief_of([3, 2, 1]), "explore_resample_max": 0}
        scene = scene_of([30.0, 20.0, 10.0], explore_rate=rate, **known)
        if fallback == "uncertainty_pool":  # exploring draws item 2, which has no partner, twice for some seed
            scene.ledger.degree[:] = [9, 0, 0]
            scene.ledger.closed[2, :] = scene.ledger.closed[:, 2] = True
        for seed in range(3000):
            _, fields = choose_in_stage(scene, round_of(3), "local_link", (1, seed))
            if fields["fallback_used"] == fallback:
                assert fields["explore_rate_used"] == pytest.approx(used)
                break
        else:
            raise AssertionError("not seen")


def test_the_posterior_gate_of_long_links() -> None:
    """§5.1.2: once the order is known, only long links whose outcome is open, by the posterior of the last refit."""
    n = 60
    mu = [50.0 - step for step in range(n)]
    theta = np.linspace(3, -3, n)
    shut = scene_of(mu, identified=True, belief=belief_of(theta, identified=True, sd=0.01))
    pair, fields = choose_in_stage(shut, round_of(n), "long_link", (1, 1))
    assert pair is None
    assert fields["long_gate_pass"] is False
    assert fields["long_gate_reason"] == "posterior_extreme"
    theta[59] = theta[0]  # by the posterior the last is as good as the first
    ajar = scene_of(mu, identified=True, belief=belief_of(theta, identified=True, sd=0.01))
    pair, fields = choose_in_stage(ajar, round_of(n), "long_link", (1, 1))
    assert pair == (0, 59)
    assert fields["long_gate_pass"] is True
    before = scene_of(mu)
    _, fields = choose_in_stage(before, round_of(n), "long_link", (1, 1))
    assert "long_gate_pass" not in fields
    proxy = scene_of(mu, identified=True)  # no posterior: TrueSkill's probability takes its place
    pair, fields = choose_in_stage(proxy, round_of(n), "long_link", (1, 1))
    assert fields["long_gate_reason"] in ("posterior_unavailable", "posterior_extreme")
    assert fields["n_candidates_generated"] == 0 or fields["long_gate_pass"]


def test_priority_of_the_border() -> None:
    """§5.1.4: once the order is known, a share of the local links goes to pairs around boundary_k by EAP rank."""
    n = 40
    mu = [40.0 - step + 0.001 * step**2 for step in range(n)]
    belief = belief_of(-np.arange(n), identified=True)
    round_, slots = round_of(n, local_link=20), BoundarySlots()
    modes = []
    for step in range(8):
        given: dict[str, Any] = {"boundary_k": 30, "boundary_window": 3, "boundary_due": slots.is_due(0.5)}
        scene = scene_of(mu, identified=True, belief=belief, **given)
        pair, fields = choose_in_stage(scene, round_, "local_link", (1, step))
        assert pair is not None
        modes.append(fields["local_priority_mode"])
        if modes[-1] == "boundary":
            assert all(abs(belief.rank[item] - 30) <= 3 for item in pair)
        round_.admit("local_link", *pair, override=False)
        slots.count(fields, 0.5)
    assert modes == ["near_tie", "boundary"] * 3 + ["near_tie", "near_tie"]  # the seven at the border are used up
    scene = scene_of(mu)
    assert choose_in_stage(scene, round_of(n), "local_link", (1, 1))[1]["local_priority_mode"] == "standard"
    assert choose_in_stage(scene, round_of(n), "mid_link", (1, 1))[1]["local_priority_mode"] is None


def test_a_slot_of_the_border_that_no_pair_can_take_waits_for_a_later_local_link() -> None:
    """§5.1.4: 15 % of the local links, whatever is in the way at the moment: a slot is carried over, not lost."""
    slots, modes = BoundarySlots(), list[str]()
    for link in range(1, 201):
        blocked = link % 20 < 10  # half of the time the border has no pair
        mode = "boundary" if slots.is_due(0.15) and not blocked else "near_tie"
        slots.count({"local_priority_mode": mode}, 0.15)
        modes.append(mode)
    assert modes.count("boundary") in (29, 30)
    waiting = BoundarySlots()
    waiting.count({"local_priority_mode": "near_tie"}, 1.0)
    assert waiting.is_due(0.0)
    for fields in ({"local_priority_mode": "standard"}, {"local_priority_mode": None}, {}):
        waiting.count(fields, 1.0)  # before the order is known, and in other stages, nothing is due
    waiting.count({"local_priority_mode": "boundary"}, 0.0)
    assert not waiting.is_due(0.5)
    waiting.count({"local_priority_mode": "boundary"}, 0.0, back=True)  # the answer was not valid: it is due again
    assert waiting.is_due(0.0)


@pytest.mark.parametrize(("n", "seed"), [(30, 3), (40, 1), (100, 1)])
def test_the_share_of_the_border_in_whole_runs(n: int, seed: int) -> None:
    """§5.1.4: boundary_frac of the local links, over rounds that are too short for a whole slot each."""
    rng = np.random.default_rng(seed)
    engine = Engine(names(n), seed=seed, btl_config={"refit_pairs_target": 50})
    judge = logistic_judge(rng.normal(0, 1.5, n), rng)
    run = drive(engine, judge, steps=10 * n, fit=lambda engine: (mu_belief(engine, identified=True), None))
    modes = Counter(row.get("local_priority_mode") for row in run.rows if row["status"] == "committed")
    links = modes["near_tie"] + modes["boundary"]
    assert links > 50
    assert modes["boundary"] == pytest.approx(0.15 * links, abs=2)


def test_star_cap_override() -> None:
    """§6.1.1, decision 6: known order, mid or local, a near tie, degrees not extreme, within the round's budget."""
    t = float(ndtri(0.55)) * math.sqrt(2 + 2 * (25 / 6) ** 2)

    def scene(apart: float = 0.1, **given: Any) -> Scene:
        found = scene_of([30.0, 30.0 - apart, 10.0, 0.0, -20.0, -50.0], **({"identified": True} | given))
        found.ledger.recent[0] = 10**6
        found.ledger.degree[:] = [5, 5, 5, 5, 5, 9]
        return found

    pairs = [(0, 1), (2, 3), (4, 5)]
    found = attempt(scene(), pairs, may_override=True)
    assert found.pair == (0, 1)
    assert found.fields["star_override_used"] is True
    assert found.fields["star_override_reason"] == "near_tie_override"
    assert found.fields["star_cap_rejects"] == 0
    for other, reason in (
        (scene(1.01 * t), None), (scene(identified=False), None), (scene(overrides_left=0), "budget_exhausted"),
    ):  # fmt: skip
        found = attempt(other, pairs, may_override=True)
        assert found.pair == (2, 3)
        assert found.fields["star_override_used"] is False
        assert found.fields["star_override_reason"] == reason
        assert found.fields["star_cap_rejects"] == found.fields["star_cap_reject_items"] == 1
    assert attempt(scene(0.99 * t), pairs, may_override=True).pair == (0, 1)
    assert attempt(scene(), pairs, may_override=False).pair == (2, 3)
    extreme = scene()
    extreme.ledger.degree[:] = [10, 5, 5, 5, 5, 9]  # the 90th percentile is 9.5
    found = attempt(extreme, pairs, may_override=True)
    assert found.pair == (2, 3)
    assert found.fields["star_override_reason"] == "deg_extreme"
    for stage, may in (("anchor_link", False), ("long_link", False), ("local_link", True)):
        one = scene(anchors=(0,), belief=belief_of(np.zeros(6), identified=True))
        one.ledger.recent[:] = 10**6
        assert (choose_in_stage(one, round_of(6), stage, (1, 1))[0] is not None) is may


# Routing


def test_coverage_quota() -> None:
    """§3.2, §7.5.1, decision 7: while some item has fewer than two, a share of steps takes one of those."""
    scene = scene_of([30.0, 29.9, 10.0, 0.0], quota_eps=0.2)
    scene.ledger.degree[:] = [2, 2, 1, 2]
    pairs = [(0, 1), (1, 2), (2, 3)]
    found = [attempt(scene, pairs, seed) for seed in range(2000)]
    forced = [one for one in found if one.fields.get("explore_reason") == "coverage_quota_override"]
    assert {one.pair for one in forced} == {(2, 3)}  # the better of the two with item 2
    assert all(one.fields["is_explore_step"] for one in forced)
    assert abs(len(forced) / 2000 - 0.2) < 0.03
    assert {one.pair for one in found if one not in forced} == {(0, 1)}
    nobody = [attempt(scene, [(0, 1)], seed) for seed in range(200)]
    assert 0 < sum(one.pair is None for one in nobody) < 200  # the ladder continues
    assert all(attempt(scene, [(0, 1)], seed, draws=EXPLOIT).pair == (0, 1) for seed in range(200))
    scene.ledger.degree[:] = 2
    assert all("explore_reason" not in attempt(scene, pairs, seed).fields for seed in range(200))
    scene.ledger.degree[:] = [2, 2, 1, 2]
    scene.ledger.set_aside[2] = True  # nobody waits for an item that is set aside
    assert all("explore_reason" not in attempt(scene, [(0, 1)], seed).fields for seed in range(200))


def test_exploration() -> None:
    """§7.4, §7.5.2: an item of degree up to D_min + 1, with the nearest mu or, now and then, the farthest rank."""
    scene = scene_of([30.0, 29.0, 27.0, 20.0, 10.0], explore_nonlocal_rate=0.25)
    scene.ledger.degree[:] = [5, 5, 3, 9, 9]
    pairs = list(combinations(range(5), 2))
    found = [attempt(scene, pairs, seed, explore_rate=1.0) for seed in range(1000)]
    # Items 0 and 4 are both two ranks away from item 2; with item 0 it is the more open.
    assert {(one.pair, one.fields["explore_mode"]) for one in found} == {((1, 2), "local"), ((0, 2), "nonlocal")}
    far = sum(one.fields["explore_mode"] == "nonlocal" for one in found)
    assert abs(far / 1000 - 0.25) < 0.05
    assert all(one.fields["explore_reason"] == "probabilistic" for one in found)
    scene.ledger.degree[:] = [4, 5, 3, 9, 9]  # items 0 and 2 are under-represented, as likely as each other
    near = Counter(one.pair for one in (attempt(scene, pairs, seed, explore_rate=1.0) for seed in range(1000))
                   if one.fields["explore_mode"] == "local")  # fmt: skip
    assert set(near) == {(0, 1), (1, 2)}
    assert abs(near[0, 1] / near.total() - 0.5) < 0.06
    some = [attempt(scene, pairs, seed, explore_rate=0.3).fields["is_explore_step"] for seed in range(1000)]
    assert abs(np.mean(some) - 0.3) < 0.05


def test_ties_of_exploration() -> None:
    """§7.5.2: as near, the more useful; as useful, the less busy; else by id."""
    scene = scene_of([30.0, 25.0, 20.0, 5.0], explore_nonlocal_rate=0.0)
    scene.ledger.degree[:] = [9, 0, 9, 9]
    pairs = [(0, 1), (1, 2)]

    def choice() -> Any:
        return attempt(scene, pairs, 1, explore_rate=1.0).pair

    assert choice() == (0, 1)  # by id
    scene.ledger.recent[0] = 1
    assert choice() == (1, 2)  # less busy
    scene.ledger.open_degree[2] = 2
    assert choice() == (0, 1)  # what is being asked counts
    scene.ledger.sigma[2] = 3.0
    assert choice() == (1, 2)  # more useful


def test_exploration_tries_again() -> None:
    """§7.5.2: an item without a partner is drawn anew, up to explore_resample_max times; then the ladder continues."""
    for resample in (0, 1, 10):
        scene = scene_of([30.0, 29.0, 20.0, 10.0], explore_resample_max=resample)
        found = [attempt(scene, [(0, 1)], seed, explore_rate=1.0).pair is None for seed in range(600)]
        assert abs(np.mean(found) - 0.5 ** (resample + 1)) < 0.07


def test_one_draw_of_the_route_holds_on_every_rung() -> None:
    """§7.5: whether a step covers, explores or exploits is drawn once per step, not once per rung of the ladder."""
    n, paths = 12, Counter[str]()
    for seed in range(400):
        scene = scene_of([30.0 - at for at in range(n)], explore_rate=0.2, explore_resample_max=0)
        scene.ledger.degree[:] = [0, *[9] * (n - 1)]  # exploring is about item 0 alone, and it has no partner
        scene.ledger.closed[0, :] = scene.ledger.closed[:, 0] = True
        pair, fields = choose_in_stage(scene, round_of(n), "local_link", (1, seed))
        assert pair is not None  # the best pair, when exploring finds none on any rung
        assert fields["is_explore_step"] is False
        paths[fields["fallback_path"]] += 1
    ladder = ">".join(FALLBACKS)
    assert set(paths) == {"base", f"{ladder}>base"}  # drawn for each rung, a step would end on a rung in between
    assert abs(paths[f"{ladder}>base"] / 400 - 0.2) < 0.06


def test_a_wider_rung_may_turn_to_exploring_with_the_same_draw() -> None:
    """§5.3.1: the rate of exploring is doubled from uncertainty_pool on; the draw that it is held against stays."""
    for seed in range(300):
        scene = scene_of([30.0, 29.0, 20.0], explore_rate=0.2, dup_p_margin=0.5, q=0)
        scene.ledger.seen[:] = 2  # no pair is left but for a third answer
        pair, fields = choose_in_stage(scene, round_of(3), "local_link", (1, seed))
        draw = np.random.default_rng((1, seed, 4)).random(3)[1]
        assert pair is not None
        assert fields["fallback_used"] == "dup_relax"
        assert fields["is_explore_step"] == (draw < 0.4)


def test_global_safe_keeps_the_distance_band_of_the_stage() -> None:
    """§5.3.1: the last rung looks at all pairs of the stage's type: what is logged as a long link is one."""
    n = 60
    for stage, allowed in (("long_link", range(4, n)), ("mid_link", range(1, 6)), ("local_link", range(3))):
        scene = scene_of([90.0 - at for at in range(n)])
        apart = abs(scene.stratum[:, None] - scene.stratum)
        scene.ledger.closed[:] = np.isin(apart, allowed)
        pair, fields = choose_in_stage(scene, round_of(n), stage, (1, 1))
        assert pair is None
        assert fields["fallback_used"] == "global_safe"
        scene.ledger.closed[:] = ~np.isin(apart, allowed)
        np.fill_diagonal(scene.ledger.closed, True)
        assert choose_in_stage(scene, round_of(n), stage, (1, 1))[0] is not None


def test_below_thirty_items_the_last_local_link_may_join_any_two() -> None:
    scene = scene_of([90.0 - at for at in range(29)])
    scene.ledger.closed[:] = abs(scene.stratum[:, None] - scene.stratum) <= 2
    pair, fields = choose_in_stage(scene, round_of(29), "local_link", (1, 1))
    assert pair is not None
    assert fields["fallback_used"] == "global_safe"


# Presentation order


def test_presentation_order() -> None:
    """§7.6, §2.2: a repeat reverses; else who stood second more often comes first; else the smaller number."""
    ledger = Ledger(4, 200)

    def ask(i: int, j: int) -> tuple[int, int]:
        first, second = ledger.order(i, j)
        ledger.open(first, second)
        ledger.commit(first, second, 1)
        return first, second

    assert ask(1, 0) == (0, 1)
    assert ask(0, 1) == (1, 0)
    assert ask(0, 1) == (0, 1)  # it reverses again
    assert ask(0, 2) == (2, 0)  # 0 was first twice and second once
    assert ask(1, 2) == (1, 2)
    assert (ledger.first - ledger.second).tolist() == [0, 0, 0, 0]
    ledger.open(3, 2)  # decision 13: what is being asked counts
    assert ledger.order(3, 0) == (0, 3)
    assert ledger.order(2, 1) == (2, 1)


def test_position_balance_over_a_run() -> None:
    """§2.2.4: about as often first as second."""
    engine = Engine(names(12), seed=4)
    rng = np.random.default_rng(4)
    drive(engine, logistic_judge(rng.normal(0, 1, 12), rng), steps=100)
    assert np.abs(engine.ledger.first - engine.ledger.second).max() <= 4
