"""The canonical pipeline (§5.2.1): candidates in, one pair out, with a count after each part.

The parts and their order are the document's: generate, TrueSkill, hard filters, duplicates, star caps, utility, choice.
Closeness is kept as ``t``, the distance of two beliefs in units of its spread; the utility p (1 - p) falls with
``|t|``, so the pair of the greatest utility is the one of the smallest ``|t|``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from pairscale.models.trueskill import BETA

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pairscale.adaptive.config import AdaptiveConfig
    from pairscale.adaptive.ledger import Flags, Ledger
    from pairscale.adaptive.refits import Belief
    from pairscale.core.arrays import Floats, Ints

__all__ = ["EXPLOIT", "Attempt", "RouteDraws", "Routing", "Scene", "distance", "quantile", "run_attempt"]


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
    def of(cls, rng: np.random.Generator) -> RouteDraws:
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


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of one attempt.

    Attributes:
        pair: the two items, or None.
        fields: columns of the step log.
    """

    pair: tuple[int, int] | None
    fields: dict[str, Any]


def run_attempt(scene: Scene, i: Ints, j: Ints, routing: Routing, rng: np.random.Generator) -> Attempt:
    """Take candidates through the pipeline.

    Args:
        scene: the state of things.
        i: one item of each candidate.
        j: the other.
        routing: how to choose.
        rng: of this attempt.
    """
    ledger, config = scene.ledger, scene.config
    fields: dict[str, Any] = {
        "n_candidates_generated": len(i),
        "explore_rate_used": routing.explore_rate,
        "local_priority_mode": routing.mode,
    }
    # Hard filters: self-pairs, and pairs that are in flight, resting or given up; reversal is always feasible (§7.6).
    # Flat positions: many times faster than pairs of them, and there may be twenty thousand in every step.
    cell = i * ledger.n + j
    closed = ledger.closed.take(cell)
    if closed.any():
        free = np.flatnonzero(~closed)
        i, j, cell = i[free], j[free], cell[free]
    fields["n_candidates_after_hard_filters"] = len(i)
    t = distance(ledger, i, j)
    busy = ledger.busy
    capped = busy > config.cap_count(ledger.n)
    over = capped[i] | capped[j] if capped.any() else np.zeros(len(i), dtype=np.bool_)
    seen = ledger.seen.take(cell)
    worth = np.where(seen > 0, 1 - ledger.discount, 1.0) if ledger.discount else None
    kept = _not_too_often(config, seen, t, worth, over, routing.max_obs)
    if not kept.all():
        i, j, t, over, seen = i[kept], j[kept], t[kept], over[kept], seen[kept]
    fields["n_candidates_after_duplicates"] = len(i)
    fields["star_cap_rejects"] = fields["star_cap_reject_items"] = 0
    reason = None
    if over.any() and not routing.lift_caps:
        passing, reason = _overrides(scene, i, j, t, over, routing)
        left = ~over | passing
        fields["star_cap_rejects"] = int((~left).sum())
        fields["star_cap_reject_items"] = int(capped[np.unique(np.concatenate([i[~left], j[~left]]))].sum())
        i, j, t, over, seen = i[left], j[left], t[left], over[left], seen[left]
    fields["n_candidates_after_star_caps"] = fields["n_candidates_scored"] = len(i)
    if not len(i):
        return Attempt(None, fields)
    at = _chosen(scene, i, j, t, seen, routing, rng, fields)
    if at is None:
        return Attempt(None, fields)
    fields["star_override_used"] = bool(over[at])
    passed = "only_pairs_left" if routing.lift_caps else "near_tie_override"
    fields["star_override_reason"] = passed if over[at] else reason
    return Attempt((int(i[at]), int(j[at])), fields)


def distance(ledger: Ledger, i: Ints, j: Ints) -> Floats:
    """How far the beliefs about i and j are apart, in units of what the outcome varies by; Φ of it is p_ij (§6)."""
    variance = ledger.sigma**2 + BETA**2
    apart: Floats = (ledger.mu.take(i) - ledger.mu.take(j)) / np.sqrt(variance.take(i) + variance.take(j))
    return apart


def quantile(values: Floats | Ints, q: float) -> float:
    """``np.quantile`` of one or more numbers, to the bit, in a fraction of its time: most steps need one."""
    place = q * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    below, above = np.partition(values, (low, high))[[low, high]].tolist()
    part = place - low
    if part < 0.5:
        return float(below + (above - below) * part)
    return float(above - (above - below) * (1 - part))


def _utility(t: Floats) -> Floats:
    value: Floats = ndtr(t) * ndtr(-t)
    return value


def _not_too_often(
    config: AdaptiveConfig,
    seen: npt.NDArray[np.uint8],
    t: Floats,
    worth: Floats | None,
    over: Flags,
    max_obs: int,
) -> Flags:
    """The duplicate policy (§5.3.2): a third answer only for a persistent near tie of high utility."""
    kept: Flags = seen < max_obs
    again = np.flatnonzero(kept & (seen >= 2))
    if len(again):
        utility = _utility(t) if worth is None else _utility(t) * worth
        threshold = quantile(utility[~over], config.q) if not over.all() else np.inf
        near = np.abs(ndtr(t[again]) - 0.5) <= config.dup_p_margin
        kept[again] = near & (utility[again] >= threshold)
    return kept


def _overrides(scene: Scene, i: Ints, j: Ints, t: Floats, over: Flags, routing: Routing) -> tuple[Flags, str | None]:
    """Which capped candidates pass nevertheless (§6.1.1), and, when none does, why."""
    config = scene.config
    if not (routing.may_override and scene.identified and over.any()):
        return np.zeros(len(i), dtype=np.bool_), None
    near = over & (np.abs(t) <= ndtri(0.5 + config.p_star_override_margin))
    degree = scene.ledger.degree
    calm = degree <= quantile(degree, 0.9)
    passing: Flags = near & calm[i] & calm[j]
    if passing.any() and scene.overrides_left > 0:
        return passing, None
    reason = None if not near.any() else "deg_extreme" if not passing.any() else "budget_exhausted"
    return np.zeros(len(i), dtype=np.bool_), reason


def _chosen(
    scene: Scene,
    i: Ints,
    j: Ints,
    t: Floats,
    seen: npt.NDArray[np.uint8],
    routing: Routing,
    rng: np.random.Generator,
    fields: dict[str, Any],
) -> int | None:
    """Coverage quota, exploring, or the greatest utility (§7.5)."""
    ledger, config = scene.ledger, scene.config
    score, draws = _penalised(ledger, config, i, j, t, seen), routing.draws
    if draws.covers(ledger, config):
        fields.update(is_explore_step=True, explore_reason="coverage_quota_override")
        rare = ledger.degree < 2
        return _best(score, rare[i] | rare[j])
    if draws.explore < routing.explore_rate:
        mode = "nonlocal" if draws.far < config.explore_nonlocal_rate else "local"
        fields.update(is_explore_step=True, explore_reason="probabilistic", explore_mode=mode)
        return _explored(scene, i, j, t, mode, rng)
    fields["is_explore_step"] = False
    if routing.boundary:
        rank = scene.belief.rank if scene.belief is not None else scene.rank
        near = np.abs(rank - min(config.boundary_k, ledger.n - 1)) <= config.boundary_window
        at = _best(score, near[i] & near[j])
        if at is not None:
            fields["local_priority_mode"] = "boundary"
            return at
    return _best(score, None)


def _penalised(
    ledger: Ledger, config: AdaptiveConfig, i: Ints, j: Ints, t: Floats, seen: npt.NDArray[np.uint8]
) -> Floats:
    """What the best pair has most of: utility, or any other falling function of ``|t|``."""
    if ledger.discount:
        utility = _utility(t) * np.where(seen > 0, 1 - ledger.discount, 1.0)
    elif config.degree_alpha:
        utility = _utility(t)
    else:
        return -np.abs(t)
    if not config.degree_alpha:
        return utility
    penalty = ((ledger.degree[i] + 1.0) * (ledger.degree[j] + 1.0)) ** config.degree_alpha
    gated = (ledger.degree[i] >= 2) & (ledger.degree[j] >= 2)
    score: Floats = utility / np.where(gated, np.minimum(penalty, config.degree_penalty_max), 1.0)
    return score


def _best(score: Floats, among: Flags | None) -> int | None:
    if among is None:
        return int(np.argmax(score))
    return int(np.argmax(np.where(among, score, -np.inf))) if among.any() else None


def _explored(scene: Scene, i: Ints, j: Ints, t: Floats, mode: str, rng: np.random.Generator) -> int | None:
    """An under-represented item with its nearest, or farthest, partner among the candidates (§7.5.2)."""
    ledger = scene.ledger
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
    first_key: Callable[[], Any] = {
        "local": lambda: np.abs(ledger.mu[partner] - ledger.mu[item]),
        "nonlocal": lambda: -np.abs(scene.rank[partner] - scene.rank[item]),
    }[mode]
    keys = (scene.by_id[partner], ledger.busy[partner], np.abs(t[mine]), first_key())
    return int(mine[np.lexsort(keys)[0]])
