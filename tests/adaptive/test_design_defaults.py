"""The design document's defaults, quotas, strata and anchors (§4, §5.0, §7.1), against hand and the R package."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.selection.pollitt import anchor_items, best_first, strata_by_rank
from pairscale.core.errors import InputError
from tests.adaptive.driving import names
from tests.adaptive.reference import is_chain, strata
from tests.strategies import golden

DEFAULTS = golden("defaults_by_N")["output"]
STRATA = golden("strata_anchors")["output"]
RENAMED = {"k_base": "K_base"}
NOT_OURS = {  # the R package's own way of writing the anchors' sizes and a few numbers that no rule uses
    "W", "anchor_frac_total", "anchor_count_min", "anchor_top_weight", "anchor_mid_weight", "anchor_bottom_weight",
    "anchor_refresh_on_round", "local_expand_max_dist", "refit_pairs_target",
}  # fmt: skip
STAGES = ("anchor_link", "long_link", "mid_link", "local_link")
by_n = pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: f"N={case['N']}")


def config(n: int, **given: Any) -> AdaptiveConfig:
    btl = BTLConfig.for_items(n)
    return AdaptiveConfig.for_items(n, given, refit_pairs_target=btl.refit_pairs_target)


@by_n
def test_defaults_by_number_of_items(case: dict[str, Any]) -> None:
    """§4.2, §4.3, §4.4, §4.5: every default; below N = 30 decision 18 changes the refits, and with them the rounds."""
    n = case["N"]
    ours, btl = config(n), BTLConfig.for_items(n)
    skipped = NOT_OURS | (set() if n >= 30 else {"round_pairs_target"})
    for name, value in case["adaptive_defaults"].items():
        if name not in skipped:
            assert getattr(ours, RENAMED.get(name, name)) == pytest.approx(value, abs=1e-12), name
    for name, value in case["btl_defaults"].items():
        assert getattr(btl, name) == value, name
    refit = case["adaptive_defaults"]["refit_pairs_target"] if n >= 30 else max(5, n)
    assert btl.refit_pairs_target == refit
    assert ours.round_pairs_target == math.ceil(refit / 2)
    if n >= 30:
        assert ours.cap_count(n) == case["cap_count"]


@by_n
def test_quotas_by_number_of_items(case: dict[str, Any]) -> None:
    """§4.6.2: quotas with the taper; where decision 4 makes the round smaller, by the same formula from its size."""
    ours = config(case["N"])
    for early, identified in product((True, False), repeat=2):
        require_quotas(case, ours, early=early, identified=identified)


def require_quotas(case: dict[str, Any], ours: AdaptiveConfig, *, early: bool, identified: bool) -> None:
    n = case["N"]
    said = case[f"quotas_round{'1_4' if early else '5plus'}{'_identified' if identified else ''}"]
    for round_id in (1, 4) if early else (5, 99):
        plan = ours.quotas(round_id, n, global_identified=identified)
        assert sum(plan[stage] for stage in STAGES) == plan["round_pairs_effective"]
        assert all(plan[stage] >= 0 for stage in STAGES)
        if plan["round_pairs_effective"] == case["adaptive_defaults"]["round_pairs_target"]:
            assert {stage: plan[stage] for stage in STAGES} == said["quotas"]
            for name in ("long_quota_raw", "long_quota_effective", "long_quota_removed", "realloc_to_mid",
                         "realloc_to_local"):  # fmt: skip
                assert plan[name] == said["meta"][name]
        else:
            assert n < 98  # 50 pairs need 98 items and two second uses


@pytest.mark.parametrize(
    ("n", "round_id", "identified", "quotas"),
    [
        (30, 1, False, (5, 2, 2, 7)),  # 16 pairs: ceil(4.8), ceil(1.6), ceil(1.6)
        (30, 5, False, (4, 1, 2, 9)),  # ceil(3.2), ceil(0.8)
        (30, 1, True, (5, 1, 3, 7)),  # long ceil(0.4) = 1; of the one taken away ceil(0.2) = 1 goes to mid
        (50, 1, False, (8, 3, 3, 12)),  # 26 pairs: ceil(7.8), ceil(2.6)
        (50, 5, True, (6, 1, 4, 15)),  # ceil(5.2); 2 long less one, which goes to mid
        (2, 1, False, (0, 1, 0, 1)),  # no anchors; a local link always stays, a mid link goes first
        (5, 1, False, (0, 1, 1, 1)),
        (10, 1, False, (2, 1, 1, 1)),  # 5 = ceil(10 / 2)
    ],
)
def test_small_rounds(n: int, round_id: int, identified: bool, quotas: tuple[int, ...]) -> None:
    """§4.6.2 with decision 4: at most floor((N + repeat_in_round_budget) / 2) pairs, never a negative quota."""
    ours = config(n)
    plan = ours.quotas(round_id, n, global_identified=identified, anchors=n >= 6)
    assert tuple(plan[stage] for stage in STAGES) == quotas
    assert plan["round_pairs_effective"] == min(ours.round_pairs_target, (n + 2) // 2) == sum(quotas)
    assert plan["round_pairs_target"] == ours.round_pairs_target


def test_early_rounds_end_where_they_are_told_to() -> None:
    """§4.6.2: the shares of anchor and long links change after their own numbers of rounds."""
    ours = config(200, anchor_rounds_early=2, long_rounds_early=6)
    found = [ours.quotas(at, 200, global_identified=False) for at in (2, 3, 6, 7)]
    assert [plan["anchor_link"] for plan in found] == [15, 10, 10, 10]
    assert [plan["long_link"] for plan in found] == [5, 5, 5, 3]


@pytest.mark.parametrize(("n", "cap"), [(2, 300), (3, 200), (10, 60), (29, 21), (30, 16), (100, 16), (1000, 40)])
def test_star_caps_by_number_of_items(n: int, cap: int) -> None:
    """§6.1.1 from N = 30 on; below, decision 6: never under one and a half times the mean."""
    assert config(n).cap_count(n) == cap


@pytest.mark.parametrize(
    ("n", "total", "top"),
    [(2, 0, 0), (5, 0, 0), (6, 2, 1), (9, 3, 1), (29, 10, 3), (30, 10, 3), (100, 10, 3), (150, 15, 4), (200, 20, 6),
     (400, 40, 12), (2000, 40, 12)],
)  # fmt: skip
def test_number_of_anchors(n: int, total: int, top: int) -> None:
    """§7.1 from N = 30 on; below, decision 3; none below N = 6."""
    ours = config(n)
    assert (ours.k_total, ours.k_top) == (total, top)


@pytest.mark.parametrize("case", STRATA, ids=lambda case: f"N={case['N']}")
def test_strata(case: dict[str, Any]) -> None:
    """§5.0.1, §5.0.2: ranks by mu, ties by id; a fine top band, then bins of equal count."""
    n = case["N"]
    mu = np.array(case["mu"])
    order = best_first(mu, np.arange(n))
    assert [f"i{item + 1:04d}" for item in order] == case["ids_ranked"]
    by_rank = strata_by_rank(n, config(n))
    found = np.empty(n, dtype=np.int64)
    found[order] = by_rank
    assert found.tolist() == case["stratum_by_input_order"]
    assert np.bincount(by_rank)[1:].tolist() == case["stratum_sizes"]


@pytest.mark.parametrize("n", [2, 3, 7, 31, 64, 333, 2000])
@pytest.mark.parametrize("given", [{}, *({"top_band_pct": share, "K_base": 3} for share in (0.0, 0.37, 1.0))])
def test_strata_of_equal_count(n: int, given: dict[str, Any]) -> None:
    """§5.0: bins differ by at most one within the top band and within the rest, whatever the settings."""
    ours = config(n, **given)
    found = strata_by_rank(n, ours)
    assert found.tolist() == strata(n, ours)
    assert (np.diff(found) >= 0).all()
    assert (np.diff(found) <= 1).all()
    top = math.ceil(round(ours.top_band_pct * n, 9))
    for part in (found[:top], found[top:]):
        if len(part):
            sizes = np.unique(part, return_counts=True)[1]
            assert sizes.max() - sizes.min() <= 1


def test_ranks_of_equal_mu_are_by_id() -> None:
    """§5.0: the tie-break is the id, not the order in which items came in."""
    engine = Engine(["c", "a", "d", "b"])
    assert [engine.ids[item] for item in engine._scene().order] == ["a", "b", "c", "d"]
    engine.ledger.mu[0] = 26
    assert [engine.ids[item] for item in engine._scene().order] == ["c", "a", "b", "d"]


@pytest.mark.parametrize("case", [case for case in STRATA if case["N"] >= 30], ids=lambda case: f"N={case['N']}")
def test_anchors(case: dict[str, Any]) -> None:
    """§7.1: the best, the last and those around the median."""
    n = case["N"]
    ours = config(n)
    ranks = sorted((anchor_items(np.arange(n), ours) + 1).tolist())
    if n == 150:
        # 0.30 * 15 is 4.5. By the document k_top = round(4.5) = 4 and k_bot = k_top, hence seven in the middle. The R
        # package has five at the top, four at the bottom and six in the middle: not the document's formula.
        assert case["bucket_counts"] == [5, 6, 4]
        assert ranks == [1, 2, 3, 4, *range(73, 80), 147, 148, 149, 150]
    else:
        assert ranks == sorted(case["anchor_ranks"])


@pytest.mark.parametrize("n", [6, 7, 11, 29])
def test_few_anchors_are_different_items(n: int) -> None:
    """Decision 3: below N = 30 a third of the items."""
    found = anchor_items(np.arange(n), config(n)).tolist()
    assert len(set(found)) == len(found) == max(2, round(n / 3))
    assert {0, n - 1} <= set(found)


@pytest.mark.parametrize("case", golden("warm_start")["output"], ids=lambda case: f"N={case['N']}, seed {case['seed']}")
def test_warm_start_like_the_r_package(case: dict[str, Any]) -> None:
    """§3.1: in both a chain through all items, each but the ends twice (which chain is a matter of the generator)."""
    n, seed = case["N"], case["seed"]
    ids = names(n)
    ours = [(ids[i], ids[j]) for i, j in Engine(ids, seed=seed)._warm.queue]
    theirs = [(pair["i_id"], pair["j_id"]) for pair in case["pairs"]]
    for chain in (ours, theirs):
        assert len(chain) == n - 1
        assert is_chain(chain)
        assert len({chain[0][0], *(pair[1] for pair in chain)}) == n


# What a user gives


@pytest.mark.parametrize("field", AdaptiveConfig.describe(), ids=lambda field: field["name"])
def test_impossible_settings_are_refused_by_name(field: dict[str, Any]) -> None:
    """§4.5: every field has a meaning, a section and a range; what is outside is refused with both."""
    assert field["meaning"]
    assert field["section"]
    wrong: list[Any] = ["x", None, math.nan]
    if not isinstance(field["default"], bool):
        wrong += [field["low"] - 1, field["high"] + 1, math.inf, True]
    for value in wrong:
        with pytest.raises(InputError, match=field["name"]):
            AdaptiveConfig.for_items(40, {field["name"]: value})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"explore": 1}, "no field 'explore'"),
        ({"p_long_low": 0.95}, "p_long_low"),
        ({"mid_min_dist": 5, "mid_max_dist": 4}, "mid_min_dist"),
        ({"dup_max_obs": 4, "dup_max_obs_relaxed": 3}, "dup_max_obs_relaxed"),
        ({"k_total": 4, "k_top": 3}, "k_top"),
    ],
)
def test_settings_that_contradict_each_other(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Engine(names(40), adaptive_config=given)


@pytest.mark.parametrize("n", [2, 5, 29, 30, 200, 20_000])
@pytest.mark.parametrize("kind", [AdaptiveConfig, BTLConfig])
def test_every_setting_may_be_at_either_end_of_its_range(kind: type[AdaptiveConfig | BTLConfig], n: int) -> None:
    """What follows from a setting stays inside its own range; only two settings that contradict are refused."""
    for field in kind.describe():
        if isinstance(field["default"], bool | str) or field["name"] in ("mcmc", "prior_sd"):
            continue
        for value in (field["low"], field["high"]):
            given = {field["name"]: value}
            try:
                btl = BTLConfig.for_items(n, given if kind is BTLConfig else None)
                ours = AdaptiveConfig.for_items(
                    n, given if kind is AdaptiveConfig else None, refit_pairs_target=btl.refit_pairs_target
                )
            except InputError as error:
                form = r"\w+: (\w+) \(.+\) must (?:not be above|be at most half of) (\w+) \(.+\)"
                contradiction = re.fullmatch(form, str(error))
                if contradiction is None or field["name"] not in contradiction.groups():
                    pytest.fail(f"{field['name']}={value}: {error}")
            else:
                assert getattr(btl if kind is BTLConfig else ours, field["name"]) == value


def test_defaults_follow_what_is_given() -> None:
    """§4.5: defaults that are functions of others follow those."""
    ours = config(200, K_base=6, k_total=31)
    assert (ours.long_min_dist, ours.mid_max_dist, ours.k_top) == (3, 4, 9)
    assert AdaptiveConfig.for_items(200, refit_pairs_target=501).round_pairs_target == 251
    assert config(50, K_base=2).mid_max_dist == 1
    assert [config(50, dup_max_obs=n).dup_max_obs_relaxed for n in (1, 2, 3, 4, 100)] == [3, 3, 3, 4, 100]
    assert Engine(names(300), btl_config={"refit_pairs_target": 3000}).config.W_cap == 2000
