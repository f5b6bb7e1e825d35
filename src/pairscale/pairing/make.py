"""All pairs of samples, or a random part of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pairscale.core.errors import TableError
from pairscale.core.options import require_int
from pairscale.core.samples import read_samples_df
from pairscale.core.tables import Table
from pairscale.pairing.table import as_pairs, drawn, generator, share_of

if TYPE_CHECKING:
    from pairscale.core.arrays import Ints


def make_pairs(samples: Table) -> pl.DataFrame:
    """All unordered pairs of samples, each once, with ``ID1 < ID2``.

    Args:
        samples: a table with ``ID`` and ``text``.

    Returns:
        ``ID1 text1 ID2 text2``, then every other column ``c`` of the samples as ``c1`` and ``c2``; in the order of
        the ids. Texts are shared, not copied: 2,000 samples give 2 million rows in a moment.

    Example:
        >>> make_pairs([{"ID": i, "text": i.upper()} for i in "bac"]).select("ID1", "ID2").rows()
        [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    frame = _in_order(samples)
    return _paired(frame, *np.triu_indices(frame.height, 1))


def some_pairs(samples: Table, n_pairs: int, seed: int | None = None) -> pl.DataFrame:
    """A number of all pairs, all equally likely, in random order, without making the others.

    Args:
        samples: a table with ``ID`` and ``text``.
        n_pairs: how many; all of them when there are fewer.
        seed: makes it reproducible.

    Returns:
        As :func:`make_pairs`.
    """
    frame = _in_order(samples)
    total = frame.height * (frame.height - 1) // 2
    numbers = generator(seed).choice(total, min(total, require_int(n_pairs, "n_pairs", least=0)), replace=False)
    first, second = _sides(numbers, frame.height)
    return _paired(frame, first, second)


def _sides(numbers: Ints, n: int) -> tuple[Ints, Ints]:
    """The two rows of pairs by their numbers among all pairs of ``n``, in the order of :func:`make_pairs`."""
    ends = np.cumsum(np.arange(n - 1, 0, -1))  # of each first row, how many pairs there are up to its last
    first = np.searchsorted(ends, numbers, side="right")
    return first, numbers - ends[first] + n


def _in_order(samples: Table) -> pl.DataFrame:
    frame = read_samples_df(samples, "ID", "text").sort("ID").rechunk()
    if frame.height < 2:
        raise TableError("samples: there is only one; pairs need at least two")
    return frame


def _paired(frame: pl.DataFrame, first: Ints, second: Ints) -> pl.DataFrame:
    columns = {}
    for name in frame.columns:
        columns[f"{name}1"] = frame[name].gather(first)
        columns[f"{name}2"] = frame[name].gather(second)
    pairs = pl.DataFrame(columns)
    return pairs.select("ID1", "text1", "ID2", "text2", pl.exclude("ID1", "text1", "ID2", "text2"))


def sample_pairs(
    pairs: Table, pair_pct: float = 1.0, n_pairs: int | None = None, seed: int | None = None
) -> pl.DataFrame:
    """A random part of the pairs, in random order, without repetition.

    Args:
        pairs: a table of pairs.
        pair_pct: the share to keep, 0 to 1.
        n_pairs: the most to keep; with ``pair_pct`` the smaller of the two counts.
        seed: makes it reproducible.

    Example:
        >>> pairs = make_pairs([{"ID": i, "text": i} for i in "abcd"])
        >>> sample_pairs(pairs, pair_pct=0.5, seed=1).height
        3
    """
    frame = as_pairs(pairs)
    count = share_of(frame.height, pair_pct, "pair_pct")
    if n_pairs is not None:
        count = min(count, require_int(n_pairs, "n_pairs", least=0))
    return drawn(frame, count, seed)
