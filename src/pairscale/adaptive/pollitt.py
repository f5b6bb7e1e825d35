"""The document's way of choosing: rounds of four stages, each with a ladder of fallbacks (§5, §7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from pairscale.adaptive._candidates import pairs_across, pairs_at_distance
from pairscale.adaptive._pipeline import EXPLOIT, Attempt, RouteDraws, Routing, Scene, distance, quantile, run_attempt
from pairscale.adaptive._round import STAGES
from pairscale.adaptive.config import SMALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pairscale.adaptive._round import Round
    from pairscale.adaptive.ledger import Flags
    from pairscale.core.arrays import Ints

__all__ = ["FALLBACKS", "choose_in_stage"]

FALLBACKS = ("base", "expand_locality", "uncertainty_pool", "dup_relax", "global_safe")
"""The ladder within a stage, in its order (§5.3.1)."""

_LAST = ("dup_relax", "global_safe")
"""The last rungs for a third answer and for any other."""


@dataclass(frozen=True, slots=True)
class _Ladder:
    """One stage of one step, tried with one fallback after the other."""

    scene: Scene
    round: Round
    stage: str
    seeds: tuple[int, ...]
    draws: RouteDraws

    def attempt(self, fallback: str, *, repeats: bool) -> Attempt:
        rng = np.random.default_rng((*self.seeds, STAGES.index(self.stage), FALLBACKS.index(fallback), int(repeats)))
        items = self.scene.order[self._usable(repeats)[self.scene.order]]
        cap, all_pairs = self.scene.config.C_max, len(items) * (len(items) - 1) // 2
        found = self._tried(fallback, items, repeats, cap, rng)
        last = self.stage == STAGES[-1] and fallback in _LAST and self.draws == EXPLOIT
        if found.pair is None and last and all_pairs > cap:
            # A run does not end because a draw missed the few pairs that are left: here all are looked at.
            found = self._tried(fallback, items, repeats, all_pairs, rng)
        if found.pair is None and fallback == FALLBACKS[-1] and self._is_about_to_starve():
            found = self._tried(fallback, items, repeats, all_pairs, rng, any_pair=True)
        return found

    def _is_about_to_starve(self) -> bool:
        """Whether nothing was found in a whole round of a run that discounts repeats.

        The last pairs that were not asked may all be far apart, or of items that were asked about too often lately.
        They are taken rather than none.
        """
        return self.stage == STAGES[-1] and self.round.selected == 0 and self.scene.config.discount_repeats

    def _tried(
        self,
        fallback: str,
        items: Ints,
        repeats: bool,
        cap: int,
        rng: np.random.Generator,
        *,
        any_pair: bool = False,
    ) -> Attempt:
        i, j = self._candidates(fallback, items, repeats, cap, rng, any_pair=any_pair)
        fields: dict[str, Any] = {}
        if self.stage == "long_link" and self.scene.identified:
            i, j, fields = _still_open(self.scene, i, j)
        found = run_attempt(self.scene, i, j, self._routing(fallback, lift_caps=any_pair), rng)
        return Attempt(found.pair, found.fields | fields)

    def _candidates(
        self, fallback: str, items: Ints, repeats: bool, cap: int, rng: np.random.Generator, *, any_pair: bool
    ) -> tuple[Ints, Ints]:
        scene, config = self.scene, self.scene.config
        is_anchor = scene.is_anchor[items]
        if any_pair:
            i, j = pairs_at_distance(items, scene.stratum[items], 0, None, cap, rng)
        elif self.stage == "anchor_link":
            i, j = pairs_across(items[is_anchor], items[~is_anchor], cap, rng)
        else:
            if self.stage != "local_link" or not config.local_anchors:
                items = items[~is_anchor]
            low, high = self._distances(fallback)
            i, j = pairs_at_distance(items, scene.stratum[items], low, high, cap, rng)
        if not repeats:
            return i, j
        slots = (self.round.used[i] > 0).astype(np.int64) + (self.round.used[j] > 0)
        fits = slots <= config.repeat_in_round_budget - self.round.repeats
        return i[fits], j[fits]

    def _usable(self, repeats: bool) -> Flags:
        """One use a round (§5.1.6); when the stage would starve, rarely seen items may have a second one."""
        ledger = self.scene.ledger
        usable: Flags = (self.round.used == 0) & ~ledger.set_aside
        if repeats:
            recent = ledger.busy
            there = ~ledger.set_aside
            least = quantile(recent[there], self.scene.config.exposure_underrep_q) if there.any() else 0
            usable |= (self.round.used == 1) & (recent <= least) & there
        return usable

    def _distances(self, fallback: str) -> tuple[int, int | None]:
        """The strata that the two may be apart: the stage's own, or one more on either side (§5.3.1)."""
        config = self.scene.config
        if fallback == "global_safe" and self.stage == "local_link" and self.scene.ledger.n < SMALL:
            return 0, None
        wider = fallback != "base"
        if self.stage == "long_link":
            return max(1, config.long_min_dist - wider), None
        if self.stage == "mid_link":
            return max(1, config.mid_min_dist - wider), config.mid_max_dist + wider
        return 0, config.local_max_dist + wider

    def _routing(self, fallback: str, *, lift_caps: bool) -> Routing:
        scene, config = self.scene, self.scene.config
        is_local = self.stage == "local_link"
        max_obs = config.dup_max_obs_relaxed if fallback == "dup_relax" else config.dup_max_obs
        return Routing(
            max_obs=1 if scene.ledger.repeats_are_worthless else max_obs,
            explore_rate=_explore_rate(scene, fallback),
            draws=self.draws,
            may_override=self.stage in {"mid_link", "local_link"},
            boundary=is_local and scene.identified and scene.boundary_due,
            mode=("near_tie" if scene.identified else "standard") if is_local else None,
            lift_caps=lift_caps,
        )


def _explore_rate(scene: Scene, fallback: str) -> float:
    """The rate of exploring on a rung (§4.2, §5.3.1)."""
    rate = scene.config.explore_rate
    if fallback not in {"base", "expand_locality"}:
        return min(0.50, 2 * rate)
    return rate * (scene.config.explore_taper_mult if scene.identified else 1.0)


def choose_in_stage(
    scene: Scene, round_: Round, stage: str, seeds: tuple[int, ...]
) -> tuple[tuple[int, int] | None, dict[str, Any]]:
    """The next pair of a stage, or None when it is starved; with the columns of the step log that tell how.

    Args:
        scene: the state of things.
        round_: the round.
        stage: one of its stages.
        seeds: the run's seed and the step, which with stage and fallback seed each attempt.
    """
    path: list[str] = []
    for draws, repeats, fallback in _rungs(scene, round_, seeds):
        path.append(fallback)
        tried = _Ladder(scene, round_, stage, seeds, draws).attempt(fallback, repeats=repeats)
        if tried.pair is not None:
            break
    fields = {
        **tried.fields,
        "candidate_starved": tried.pair is None,
        "fallback_used": path[-1],
        "fallback_path": ">".join(path),
        "starvation_reason": _reason(tried.fields) if tried.pair is None else None,
        "repeats_allowed": repeats,
    }
    return tried.pair, fields


def _rungs(scene: Scene, round_: Round, seeds: tuple[int, ...]) -> Iterator[tuple[RouteDraws, bool, str]]:
    """The attempts of a step: its route, whether second uses in the round are allowed, and the rung.

    The route is drawn once for the step (§7.5) and holds on every rung. When coverage or exploring finds no pair on any
    of them, the best pair takes its place, so that a stage starves only when it has no pair at all.
    """
    draws = RouteDraws.of(np.random.default_rng((*seeds, len(STAGES))))  # no stage has this number
    most = max(_explore_rate(scene, FALLBACKS[0]), _explore_rate(scene, FALLBACKS[-1]))
    is_routed = draws.covers(scene.ledger, scene.config) or draws.explore < most
    budget_left = scene.config.repeat_in_round_budget > round_.repeats
    for repeats in (False, True) if budget_left else (False,):
        for route in (draws, EXPLOIT) if is_routed else (EXPLOIT,):
            for fallback in FALLBACKS:
                yield route, repeats, fallback


def _still_open(scene: Scene, i: Ints, j: Ints) -> tuple[Ints, Ints, dict[str, Any]]:
    """The posterior gate of long links (§5.1.2), by TrueSkill when there is no posterior."""
    config = scene.config
    if scene.belief is None:
        p, reason = ndtr(distance(scene.ledger, i, j)), "posterior_unavailable"
    else:
        p, reason = scene.belief.p_above(i, j), None
    is_open = (p >= config.p_long_low) & (p <= config.p_long_high)
    passed = bool(is_open.any())
    decided = "posterior_extreme" if len(i) else None
    return i[is_open], j[is_open], {"long_gate_pass": passed, "long_gate_reason": reason if passed else decided}


def _reason(fields: dict[str, Any]) -> str:
    """Where in the pipeline the last candidate was lost."""
    for name, reason in (
        ("n_candidates_generated", "no_candidates"),
        ("n_candidates_after_hard_filters", "hard_filters"),
        ("n_candidates_after_duplicates", "duplicates"),
        ("n_candidates_after_star_caps", "star_caps"),
    ):
        if not fields[name]:
            return reason
    return "routing"
