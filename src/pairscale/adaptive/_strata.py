"""Who is near whom: ranks, strata with a finely divided top band, and anchors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pairscale.adaptive.config import AdaptiveConfig
    from pairscale.core.arrays import Floats, Ints

__all__ = ["anchor_items", "best_first", "strata_by_rank"]


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
