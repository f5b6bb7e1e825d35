"""Which sample is shown first: at random, in turn, or the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairscale.core.errors import InputError
from pairscale.core.options import require_int
from pairscale.pairing.table import as_pairs, drawn, generator, share_of, swapped

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.tables import Table


def randomize_pair_order(pairs: Table, seed: int | None = None) -> pl.DataFrame:
    """The pairs, each with its two samples swapped or not by a coin toss.

    Example:
        >>> pairs = [{"ID1": "a", "text1": "A", "ID2": "b", "text2": "B"}]
        >>> sorted(randomize_pair_order(pairs, seed=1).select("ID1", "ID2").row(0))
        ['a', 'b']
    """
    frame = as_pairs(pairs)
    return swapped(frame, generator(seed).random(frame.height) < 0.5)


def alternate_pair_order(pairs: Table) -> pl.DataFrame:
    """The pairs with every second one (rows 2, 4, 6, …) swapped: balanced, without chance.

    Example:
        >>> pairs = [{"ID1": "a", "text1": "A", "ID2": "b", "text2": "B"}] * 2
        >>> alternate_pair_order(pairs)["ID1"].to_list()
        ['a', 'b']
    """
    frame = as_pairs(pairs)
    return swapped(frame, np.arange(frame.height) % 2 == 1)


def sample_reverse_pairs(
    pairs: Table, reverse_pct: float | None = None, n_reverse: int | None = None, seed: int | None = None
) -> pl.DataFrame:
    """A random part of the pairs, the other way round: the second half of a check on positional bias.

    Args:
        pairs: a table of pairs.
        reverse_pct: the share to take, 0 to 1; 1 reverses them all.
        n_reverse: how many to take; goes before ``reverse_pct``.
        seed: makes it reproducible.

    Returns:
        The reversed pairs only, in random order.

    Example:
        >>> pairs = [{"ID1": "a", "text1": "A", "ID2": "b", "text2": "B"}]
        >>> sample_reverse_pairs(pairs, reverse_pct=1).select("ID1", "ID2").rows()
        [('b', 'a')]
    """
    frame = as_pairs(pairs)
    if n_reverse is not None:
        count = min(require_int(n_reverse, "n_reverse", least=0), frame.height)
    elif reverse_pct is not None:
        count = share_of(frame.height, reverse_pct, "reverse_pct")
    else:
        raise InputError("say how many pairs to reverse: reverse_pct=1 for all of them, or n_reverse=")
    return swapped(drawn(frame, count, seed), np.ones(count, dtype=bool))
