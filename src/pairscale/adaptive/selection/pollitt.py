"""The document's way of choosing: rounds of four stages, each with a ladder of fallbacks (§5, §7).

A step goes through the canonical pipeline (§5.2.1): generate, TrueSkill, hard filters, duplicates, star caps, utility,
choice. Closeness is kept as ``t``, the distance of two beliefs in units of its spread; the utility p (1 - p) falls with
``|t|``, so the pair of the greatest utility is the one of the smallest ``|t|``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from pairscale.adaptive.config import SMALL
from pairscale.adaptive.selectors import Attempt
from pairscale.models.trueskill import BETA

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.adaptive.config import AdaptiveConfig
    from pairscale.adaptive.logs import Columns, Row
    from pairscale.adaptive.refits import Belief
    from pairscale.adaptive.selection.ledger import Flags, Ledger, Pair, Rng
    from pairscale.core.arrays import Floats, Ints


# Rounds

STAGES = ("anchor_link", "long_link", "mid_link", "local_link")
"""The stages of a round, in their order."""

_KNOWN_ORDER = ("near_tie", "boundary")
"""What ``local_priority_mode`` is once the order is known."""
_LAST_DIGITS = 1e-6


class Round:
    """The state of a round; a stage is left when it is full or starved, and not entered again.

    Attributes:
        round_id: which round.
        stages: its stages in their order.
        quota: what each plans.
        done: what each has committed.
        open: what each is asking right now.
        at: which stage is active; behind the last one the round is over.
        used: per item, its uses in this round, with those being asked.
        repeats: second uses so far.
        overrides: star caps passed so far.
        selected: pairs chosen so far.
        is_stale: whether an answer, a refit, new items or settings came since it began.
        plan: the quotas, with what else the round log says of them.
    """

    def __init__(self, round_id: int, n_items: int, quota: dict[str, int], plan: Mapping[str, int] | None) -> None:
        self.round_id = round_id
        self.stages = tuple(quota)
        self.quota = quota
        self.done = dict.fromkeys(quota, 0)
        self.open = dict.fromkeys(quota, 0)
        self.at = 0
        self.used: Ints = np.zeros(n_items, dtype=np.int64)
        self.repeats = self.overrides = self.selected = 0
        self.is_stale = False
        self.plan = plan

    @property
    def stage(self) -> str | None:
        """The active stage: the first from here on that is not full; None when the round is over."""
        for name in self.stages[self.at :]:
            if self.done[name] + self.open[name] < self.quota[name]:
                return name
        return None

    def starve(self, stage: str) -> None:
        """A stage has nothing to choose from: on to the next."""
        self.at = self.stages.index(stage) + 1

    def admit(self, stage: str, i: int, j: int, *, override: bool) -> None:
        """A pair was chosen."""
        self.at = self.stages.index(stage)
        self.open[stage] += 1
        self.repeats += int(self.used[i] > 0) + int(self.used[j] > 0)
        self.used[[i, j]] += 1
        self.overrides += override
        self.selected += 1

    def committed(self, stage: str) -> None:
        """Its answer is valid."""
        self.open[stage] -= 1
        self.done[stage] += 1

    def rejected(self, stage: str, i: int, j: int, *, repeats: int, override: bool) -> None:
        """It is not: the pair counts as not asked in this round."""
        self.open[stage] -= 1
        self.used[[i, j]] -= 1
        self.repeats -= repeats
        self.overrides -= override


class BoundarySlots:
    """The share of the local links that is due to pairs at the border of the top, once the order is known (§5.1.4).

    Every local link earns a part of a slot. A slot that no pair could take waits for a later local link, in this round
    or in the next.
    """

    def __init__(self) -> None:
        self._left = 0.0  # earned and not taken

    def is_due(self, share: float) -> bool:
        """Whether the next local link has a slot."""
        return self._left + share >= 1 - _LAST_DIGITS

    def count(self, fields: Row, share: float, *, back: bool = False) -> None:
        """Count a link by the columns of its step; with ``back``, as if it had not been asked.

        Args:
            fields: Columns of the step log.
            share: The share of local links that is due.
            back: Whether the link has no valid answer, and so was not asked.
        """
        mode = fields.get("local_priority_mode")
        if mode in _KNOWN_ORDER:
            change = share - (mode == "boundary")
            self._left += -change if back else change


# Ranks, strata and anchors


def best_first(score: Floats, by_id: Ints) -> Ints:
    """The items from the highest score down; equal ones by id.

    Args:
        score: per item.
        by_id: the items in the order of their ids.
    """
    order: Ints = by_id[np.argsort(-score[by_id], kind="stable")]
    return order


def strata_by_rank(n_items: int, config: AdaptiveConfig) -> Ints:
    """The stratum (from 1) of every rank, best first: bins of equal count in the top band, then below it (§5.0)."""
    top = min(n_items, math.ceil(config.top_band_pct * n_items - 1e-9))
    upper = _bins(top, config.top_band_bins)
    lower = _bins(n_items - top, config.K_base)
    above = int(upper[-1]) if top else 0
    return np.concatenate([upper, lower + above])


def _bins(n: int, bins: int) -> Ints:
    k = min(bins, n)
    return np.arange(n) * k // max(n, 1) + 1


def anchor_items(order: Ints, config: AdaptiveConfig) -> Ints:
    """The anchors: the best, the last, and those around the median (§7.1)."""
    n = len(order)
    total = min(config.k_total, n)
    ends = min(config.k_top, total // 2)
    middle = total - 2 * ends
    start = math.ceil((n - middle) / 2)
    start = min(max(start, ends), n - ends - middle)
    return np.concatenate([order[:ends], order[start : start + middle], order[n - ends :]])


# Candidates: without ever listing all pairs of many items


def pairs_at_distance(items: Ints, strata: Ints, low: int, high: int | None, cap: int, rng: Rng) -> tuple[Ints, Ints]:
    """Pairs of items whose strata are ``low`` to ``high`` apart.

    Args:
        items: best first.
        strata: of these items, ascending.
        low: the least distance.
        high: the greatest, None for any.
        cap: how many pairs to give at most.
        rng: draws them when there are more.

    Returns:
        The better-ranked and the other item of each pair.
    """
    at = np.arange(len(items))
    start = np.maximum(at + 1, np.searchsorted(strata, strata + low, side="left"))
    end = np.full(len(items), len(items)) if high is None else np.searchsorted(strata, strata + high, side="right")
    counts = np.maximum(end - start, 0)
    before = np.cumsum(counts) - counts
    total = int(counts.sum())
    number = _drawn(total, cap, rng)
    if len(number) < total:
        counts = np.diff(np.searchsorted(number, before), append=len(number))  # of those that were drawn
    return np.repeat(items, counts), items[number + np.repeat(start - before, counts)]


def pairs_across(left: Ints, right: Ints, cap: int, rng: Rng) -> tuple[Ints, Ints]:
    """Pairs of one from the left with one from the right, at most ``cap`` of them."""
    number = _drawn(len(left) * len(right), cap, rng)
    return left[number // max(len(right), 1)], right[number % max(len(right), 1)]


def _drawn(total: int, cap: int, rng: Rng) -> Ints:
    """The numbers below ``total``, or ``cap`` of them, in ascending order; every set of them equally likely."""
    if total <= cap:
        return np.arange(total)
    drawn = np.empty(0, dtype=np.int64)
    if total >= 8 * cap:  # few come twice: leaving those out is faster than a draw that never does
        drawn = rng.integers(total, size=cap + cap // 8)
        drawn = np.sort(drawn.astype(np.uint32)).astype(np.int64) if total < 2**32 else np.sort(drawn)
        drawn = drawn[np.concatenate([[True], drawn[1:] != drawn[:-1]])]
    if len(drawn) < cap:
        return np.sort(rng.choice(total, cap, replace=False, shuffle=False))
    # What is too many goes by lot; by symmetry every set of the right size is as likely as any other.
    return np.delete(drawn, rng.choice(len(drawn), len(drawn) - cap, replace=False, shuffle=False))


# The pipeline


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """What all attempts of one step see.

    Attributes:
        ledger: counts and beliefs.
        config: the numbers to go by.
        order: the items, best first by TrueSkill mu.
        rank: per item, its rank from 1.
        stratum: per item, its stratum from 1.
        is_anchor: per item, whether it is an anchor.
        by_id: per item, its place in the order of ids.
        belief: the last passing posterior, if there is one.
        identified: whether the global order counts as known.
        overrides_left: star caps that may still be passed in this round.
        boundary_due: whether a local link is due to the border of the top.
    """

    ledger: Ledger
    config: AdaptiveConfig
    order: Ints
    rank: Ints
    stratum: Ints
    is_anchor: Flags
    by_id: Ints
    belief: Belief | None
    identified: bool
    overrides_left: int
    boundary_due: bool = False


@dataclass(frozen=True, slots=True)
class RouteDraws:
    """What chance decides about the route of a step: numbers from 0 to 1, drawn once, for all attempts (§7.5).

    Attributes:
        quota: The coverage quota holds when this is below ``quota_eps``.
        explore: The step explores when this is below the rate of exploring.
        far: It looks far away when this is below ``explore_nonlocal_rate``.
    """

    quota: float
    explore: float
    far: float

    @classmethod
    def of(cls, rng: Rng) -> RouteDraws:
        """Draw them."""
        return cls(*rng.random(3).tolist())

    def covers(self, ledger: Ledger, config: AdaptiveConfig) -> bool:
        """Whether the step must take a rarely seen item (§3.2)."""
        return self.quota < config.quota_eps and ledger.min_degree < 2


EXPLOIT = RouteDraws(1.0, 1.0, 1.0)
"""Neither coverage nor exploring: the pair of the greatest utility."""


@dataclass(frozen=True, slots=True)
class Routing:
    """How one attempt chooses.

    Attributes:
        max_obs: answers that a pair may have.
        explore_rate: the share of exploring.
        draws: what chance decided for this step.
        may_override: whether star caps may be passed here.
        boundary: whether pairs at the border of the top have priority.
        mode: what ``local_priority_mode`` says; None outside local links.
        lift_caps: whether star caps do not hold here.
    """

    max_obs: int
    explore_rate: float
    draws: RouteDraws
    may_override: bool = False
    boundary: bool = False
    mode: str | None = None
    lift_caps: bool = False


class Candidates(NamedTuple):
    """Candidate pairs: their items, how far these are apart (:func:`distance`), and how often the two have met."""

    i: Ints
    j: Ints
    t: Floats
    seen: npt.NDArray[np.uint8]


def run_attempt(scene: Scene, i: Ints, j: Ints, routing: Routing, rng: Rng) -> Attempt:
    """Take candidates through the pipeline.

    Args:
        scene: the state of things.
        i: one item of each candidate.
        j: the other.
        routing: how to choose.
        rng: of this attempt.
    """
    ledger = scene.ledger
    config = scene.config
    fields: Columns = {
        "n_candidates_generated": len(i),
        "explore_rate_used": routing.explore_rate,
        "local_priority_mode": routing.mode,
    }
    # Hard filters: self-pairs, and pairs that are in flight, resting or given up; reversal is always feasible (§7.6).
    # Flat positions: many times faster than pairs of them, and there may be twenty thousand in every step.
    free = ~ledger.closed.take(i * ledger.n + j)
    i = i[free]
    j = j[free]
    fields["n_candidates_after_hard_filters"] = len(i)
    found = Candidates(i, j, distance(ledger, i, j), ledger.seen.take(i * ledger.n + j))
    capped = ledger.busy > config.cap_count(ledger.n)
    over = capped[i] | capped[j]
    kept = _not_too_often(scene, found, over, routing.max_obs)
    fields["n_candidates_after_duplicates"] = int(kept.sum())
    over &= kept
    refused = np.zeros_like(over)
    reason = None
    if over.any() and not routing.lift_caps:
        passing, reason = _overrides(scene, found, over, routing)
        refused = over & ~passing
    fields["star_cap_rejects"] = int(refused.sum())
    fields["star_cap_reject_items"] = int(capped[np.union1d(i[refused], j[refused])].sum())
    left = np.flatnonzero(kept & ~refused)
    fields["n_candidates_after_star_caps"] = fields["n_candidates_scored"] = len(left)
    if not len(left):
        return Attempt(None, fields)
    rest = Candidates(i[left], j[left], found.t[left], found.seen[left])
    place = _chosen(scene, rest, routing, rng, fields)
    if place is None:
        return Attempt(None, fields)
    at = left[place]
    fields["star_override_used"] = bool(over[at])
    passed = "only_pairs_left" if routing.lift_caps else "near_tie_override"
    fields["star_override_reason"] = passed if over[at] else reason
    return Attempt((int(i[at]), int(j[at])), fields)


def distance(ledger: Ledger, i: Ints, j: Ints) -> Floats:
    """How far the beliefs about i and j are apart, in units of what the outcome varies by; Φ of it is p_ij (§6)."""
    variance = ledger.sigma**2 + BETA**2
    apart: Floats = (ledger.mu.take(i) - ledger.mu.take(j)) / np.sqrt(variance.take(i) + variance.take(j))
    return apart


def _utility(ledger: Ledger, found: Candidates) -> Floats:
    """The utility p (1 - p), and less for a pair with an answer where repeats are discounted."""
    value: Floats = ndtr(found.t) * ndtr(-found.t)
    if ledger.discount:
        value *= np.where(found.seen > 0, 1 - ledger.discount, 1.0)
    return value


def _not_too_often(scene: Scene, found: Candidates, over: Flags, max_obs: int) -> Flags:
    """The duplicate policy (§5.3.2): a third answer only for a persistent near tie of high utility."""
    config = scene.config
    kept: Flags = found.seen < max_obs
    again = np.flatnonzero(kept & (found.seen >= 2))
    if len(again):
        utility = _utility(scene.ledger, found)
        threshold = np.quantile(utility[~over], config.q) if not over.all() else np.inf
        near = np.abs(ndtr(found.t[again]) - 0.5) <= config.dup_p_margin
        kept[again] = near & (utility[again] >= threshold)
    return kept


def _overrides(scene: Scene, found: Candidates, over: Flags, routing: Routing) -> tuple[Flags, str | None]:
    """Which capped candidates pass nevertheless (§6.1.1), and, when none does, why."""
    none = np.zeros_like(over)
    if not (routing.may_override and scene.identified):
        return none, None
    near = over & (np.abs(found.t) <= ndtri(0.5 + scene.config.p_star_override_margin))
    degree = scene.ledger.degree
    calm = degree <= np.quantile(degree, 0.9)
    passing: Flags = near & calm[found.i] & calm[found.j]
    if not near.any():
        return none, None
    if not passing.any():
        return none, "deg_extreme"
    if scene.overrides_left <= 0:
        return none, "budget_exhausted"
    return passing, None


def _chosen(scene: Scene, found: Candidates, routing: Routing, rng: Rng, fields: Columns) -> int | None:
    """Coverage quota, exploring, or the greatest utility (§7.5)."""
    ledger = scene.ledger
    config = scene.config
    draws = routing.draws
    score = _score(scene, found)
    if draws.covers(ledger, config):
        fields.update(is_explore_step=True, explore_reason="coverage_quota_override")
        rare = ledger.degree < 2
        return _best(score, rare[found.i] | rare[found.j])
    if draws.explore < routing.explore_rate:
        mode = "nonlocal" if draws.far < config.explore_nonlocal_rate else "local"
        fields.update(is_explore_step=True, explore_reason="probabilistic", explore_mode=mode)
        return _explored(scene, found, mode, rng)
    fields["is_explore_step"] = False
    if routing.boundary:
        rank = scene.belief.rank if scene.belief is not None else scene.rank
        near = np.abs(rank - min(config.boundary_k, ledger.n - 1)) <= config.boundary_window
        at = _best(score, near[found.i] & near[found.j])
        if at is not None:
            fields["local_priority_mode"] = "boundary"
            return at
    return int(np.argmax(score))


def _score(scene: Scene, found: Candidates) -> Floats:
    """What the best pair has most of: utility with its penalty (§6.1.3), or a plain falling function of ``|t|``."""
    ledger = scene.ledger
    config = scene.config
    if not ledger.discount and not config.degree_alpha:
        return -np.abs(found.t)
    utility = _utility(ledger, found)
    if not config.degree_alpha:
        return utility
    degree_i = ledger.degree[found.i]
    degree_j = ledger.degree[found.j]
    penalty = ((degree_i + 1.0) * (degree_j + 1.0)) ** config.degree_alpha
    gated = (degree_i >= 2) & (degree_j >= 2)
    score: Floats = utility / np.where(gated, np.minimum(penalty, config.degree_penalty_max), 1.0)
    return score


def _best(score: Floats, among: Flags) -> int | None:
    return int(np.argmax(np.where(among, score, -np.inf))) if among.any() else None


def _explored(scene: Scene, found: Candidates, mode: str, rng: Rng) -> int | None:
    """An under-represented item with its nearest, or farthest, partner among the candidates (§7.5.2)."""
    ledger = scene.ledger
    i = found.i
    j = found.j
    few = np.flatnonzero((ledger.degree <= ledger.min_degree + 1) & ~ledger.set_aside)
    present = np.zeros(ledger.n, dtype=np.bool_)
    present[i] = present[j] = True
    drawn = rng.choice(few, size=scene.config.explore_resample_max + 1)
    hits = np.flatnonzero(present[drawn])
    if not hits.size:
        return None
    item = drawn[hits[0]]
    mine = np.flatnonzero((i == item) | (j == item))
    partner = np.where(i[mine] == item, j[mine], i[mine])
    if mode == "local":
        apart = np.abs(ledger.mu[partner] - ledger.mu[item])
    else:
        apart = -np.abs(scene.rank[partner] - scene.rank[item])
    keys = (scene.by_id[partner], ledger.busy[partner], np.abs(found.t[mine]), apart)
    return int(mine[np.lexsort(keys)[0]])


# The stages

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
    seeds: Pair
    draws: RouteDraws

    def attempt(self, fallback: str, *, repeats: bool) -> Attempt:
        rng = np.random.default_rng((*self.seeds, STAGES.index(self.stage), FALLBACKS.index(fallback), int(repeats)))
        items = self.scene.order[self._usable(repeats)[self.scene.order]]
        cap = self.scene.config.C_max
        all_pairs = len(items) * (len(items) - 1) // 2
        outcome = self._tried(fallback, items, repeats, cap, rng)
        if outcome.pair is not None or self.stage != STAGES[-1]:
            return outcome
        if fallback in _LAST and self.draws == EXPLOIT and all_pairs > cap:
            # A run does not end because a draw missed the few pairs that are left: here all are looked at.
            outcome = self._tried(fallback, items, repeats, all_pairs, rng)
        found_none = outcome.pair is None and self.round.selected == 0
        if found_none and fallback == FALLBACKS[-1] and self.scene.config.discount_repeats:
            # Nothing in a whole round: the last pairs that were not asked may all be far apart, or of items that were
            # asked about too often lately. They are taken rather than none.
            outcome = self._tried(fallback, items, repeats, all_pairs, rng, any_pair=True)
        return outcome

    def _tried(
        self,
        fallback: str,
        items: Ints,
        repeats: bool,
        cap: int,
        rng: Rng,
        *,
        any_pair: bool = False,
    ) -> Attempt:
        scene = self.scene
        config = self.scene.config
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
        if repeats:
            slots = (self.round.used[i] > 0).astype(np.int64) + (self.round.used[j] > 0)
            fits = slots <= config.repeat_in_round_budget - self.round.repeats
            i = i[fits]
            j = j[fits]
        fields: Columns = {}
        if self.stage == "long_link" and scene.identified:
            i, j, fields = _still_open(scene, i, j)
        outcome = run_attempt(scene, i, j, self._routing(fallback, lift_caps=any_pair), rng)
        return Attempt(outcome.pair, outcome.fields | fields)

    def _usable(self, repeats: bool) -> Flags:
        """One use a round (§5.1.6); when the stage would starve, rarely seen items may have a second one."""
        ledger = self.scene.ledger
        usable: Flags = (self.round.used == 0) & ~ledger.set_aside
        if repeats:
            recent = ledger.busy
            present = ~ledger.set_aside
            least = np.quantile(recent[present], self.scene.config.exposure_underrep_q) if present.any() else 0
            usable |= (self.round.used == 1) & (recent <= least) & present
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
        scene = self.scene
        config = self.scene.config
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


def choose_in_stage(scene: Scene, round_: Round, stage: str, seeds: Pair) -> Attempt:
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
    return Attempt(tried.pair, fields)


def _rungs(scene: Scene, round_: Round, seeds: Pair) -> Iterator[tuple[RouteDraws, bool, str]]:
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


def _still_open(scene: Scene, i: Ints, j: Ints) -> tuple[Ints, Ints, Columns]:
    """The posterior gate of long links (§5.1.2), by TrueSkill when there is no posterior."""
    config = scene.config
    if scene.belief is None:
        p = ndtr(distance(scene.ledger, i, j))
        reason = "posterior_unavailable"
    else:
        p = scene.belief.p_above(i, j)
        reason = None
    is_open = (p >= config.p_long_low) & (p <= config.p_long_high)
    passed = bool(is_open.any())
    decided = "posterior_extreme" if len(i) else None
    return i[is_open], j[is_open], {"long_gate_pass": passed, "long_gate_reason": reason if passed else decided}


def _reason(fields: Columns) -> str:
    """Where in the pipeline the last candidate was lost."""
    reasons = {
        "n_candidates_generated": "no_candidates",
        "n_candidates_after_hard_filters": "hard_filters",
        "n_candidates_after_duplicates": "duplicates",
        "n_candidates_after_star_caps": "star_caps",
    }
    return next((reason for name, reason in reasons.items() if not fields[name]), "routing")
