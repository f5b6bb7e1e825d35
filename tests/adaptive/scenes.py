"""Scenes and rounds built by hand, for one attempt or one stage."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairscale.adaptive.config import AdaptiveConfig
from pairscale.adaptive.selection.ledger import Ledger
from pairscale.adaptive.selection.pollitt import (
    Attempt,
    Round,
    RouteDraws,
    Routing,
    Scene,
    best_first,
    run_attempt,
    strata_by_rank,
)

STAGES = ("anchor_link", "long_link", "mid_link", "local_link")


def scene_of(mu: list[float], *, sigma: float = 1.0, window: int = 200, identified: bool = False, anchors: Any = (),
             belief: Any = None, overrides_left: int = 1, boundary_due: bool = False,
             **given: Any) -> Scene:  # fmt: skip
    n = len(mu)
    config = AdaptiveConfig.for_items(n, {"explore_rate": 0.0, "quota_eps": 0.0} | given)
    ledger = Ledger(n, window, np.array(mu), np.full(n, sigma))
    order = best_first(ledger.mu, np.arange(n))
    rank, stratum = np.empty_like(order), np.empty_like(order)
    rank[order] = np.arange(1, n + 1)
    stratum[order] = strata_by_rank(n, config)
    is_anchor = np.isin(np.arange(n), list(anchors))
    known = (np.arange(n), belief, identified, overrides_left, boundary_due)
    return Scene(ledger, config, order, rank, stratum, is_anchor, *known)


def round_of(n: int, **quota: int) -> Round:
    return Round(1, n, dict.fromkeys(STAGES, 5) | quota, None)


def attempt(scene: Scene, pairs: list[tuple[int, int]], seed: int = 0, **how: Any) -> Attempt:
    i, j = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    rng = np.random.default_rng(seed)
    routing = Routing(**({"max_obs": 2, "explore_rate": 0.0, "draws": RouteDraws.of(rng)} | how))
    return run_attempt(scene, i, j, routing, rng)


def counts(found: Attempt) -> list[int]:
    parts = ("generated", "after_hard_filters", "after_duplicates", "after_star_caps", "scored")
    return [found.fields[f"n_candidates_{part}"] for part in parts]


def met(scene: Scene, i: int, j: int, times: int) -> None:
    scene.ledger.seen[i, j] = scene.ledger.seen[j, i] = times


LADDER_MU = [30.0 - step for step in range(10)]  # items 0 to 9, best first, one apart
