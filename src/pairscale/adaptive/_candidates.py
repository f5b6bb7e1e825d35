"""Candidate pairs by stage, without ever listing all pairs of many items.

In rank order the strata are ascending, so the partners that a distance allows are a run of positions. Pairs are
numbered along these runs; all of them are listed when they are few, and drawn by number, evenly and without repetition,
when there are more than the cap (§5.1.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pairscale.core.arrays import Ints

__all__ = ["pairs_across", "pairs_at_distance"]


def pairs_at_distance(
    items: Ints, strata: Ints, low: int, high: int | None, cap: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
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


def pairs_across(left: Ints, right: Ints, cap: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Pairs of one from the left with one from the right, at most ``cap`` of them."""
    number = _drawn(len(left) * len(right), cap, rng)
    return left[number // max(len(right), 1)], right[number % max(len(right), 1)]


def _drawn(total: int, cap: int, rng: np.random.Generator) -> Ints:
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
