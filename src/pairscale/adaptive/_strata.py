"""Who is near whom: ranks, strata with a finely divided top band, and anchors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pairscale.adaptive.config import AdaptiveConfig
    from pairscale.core.arrays import Floats, Ints

__all__ = ["anchor_items", "best_first", "best_first_again", "strata_by_rank"]


def best_first(score: Floats, by_id: Ints) -> Ints:
    """The items from the highest score down; equal ones by id.

    Args:
        score: per item.
        by_id: the items in the order of their ids.
    """
    order: Ints = by_id[np.argsort(-score[by_id], kind="stable")]
    return order


def best_first_again(score: Floats, before: Ints, id_place: Ints) -> Ints | None:
    """The same from the order of before, in which few items have moved: a fraction of the time.

    Args:
        score: per item.
        before: all items in their order when it was last asked for.
        id_place: per item, its place in the order of the ids.

    Returns:
        The order; None when an item has moved to a score that another one has, so that ids have to tell.
    """
    order = before[np.argsort(-score[before], kind="stable")]
    sorted_scores = score[order]
    equal = np.flatnonzero(sorted_scores[1:] == sorted_scores[:-1])
    if len(equal) and (id_place[order[equal + 1]] < id_place[order[equal]]).any():
        return None
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
