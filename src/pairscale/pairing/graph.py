"""Which samples are paired: degrees, positions, and whether all of them are linked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from pairscale.core.display import ReprMixin
from pairscale.core.errors import TableError
from pairscale.core.notices import plural
from pairscale.core.tables import Table, listed, require_ids, to_frame
from pairscale.pairing.table import count_cells, linked_groups, numbered, require_two


@dataclass(frozen=True, slots=True, repr=False)
class PairSummary(ReprMixin, table="degrees"):
    """The graph that a table of pairs (or results) makes.

    Attributes:
        n_items: samples that occur, or were named.
        n_pairs: rows.
        n_unordered: different pairs, in whichever order.
        degrees: ``ID``, ``degree`` (rows that it is in), ``pos_count_1``, ``pos_count_2``, ``component`` (1 is the
            largest), in the order of the ids.
        components: the linked groups, largest first; scores can only be compared within one.
        unpaired: named samples that are in no pair.
    """

    n_items: int
    n_pairs: int
    n_unordered: int
    degrees: pl.DataFrame
    components: tuple[tuple[str, ...], ...]
    unpaired: tuple[str, ...]

    @property
    def connected(self) -> bool:
        """Whether every sample is linked to every other by some chain of pairs."""
        return len(self.components) == 1

    def __str__(self) -> str:
        degrees = self.degrees["degree"].to_numpy()
        low = degrees.min()
        high = degrees.max()
        each = f"{low} each" if low == high else f"{low} to {high} each"
        linked = "all linked" if self.connected else f"{len(self.components)} separate groups"
        return f"{self.n_items:,} samples in {plural(self.n_pairs, 'pair')}, {each}, {linked}"


def summarize_pairs(pairs: Table, ids: Sequence[str] | None = None) -> PairSummary:
    """Degrees and connectivity of a table with ``ID1`` and ``ID2`` (pairs or results).

    Args:
        pairs: the table.
        ids: all the samples there are, so that those in no pair are seen too.

    Raises:
        TableError: when a sample meets itself, or is not among ``ids``.

    Example:
        >>> summary = summarize_pairs([{"ID1": "a", "ID2": "b"}, {"ID1": "c", "ID2": "d"}])
        >>> summary.connected, summary.components
        (False, (('a', 'b'), ('c', 'd')))
    """
    frame = require_ids(to_frame(pairs, "pairs"), ["ID1", "ID2"], "pairs")
    require_two(frame)
    names = pl.concat([frame["ID1"], frame["ID2"].alias("ID1")])
    if ids is not None:
        named = require_ids(to_frame({"ID": list(ids)}, "ids"), ["ID"], "ids")["ID"]
        unknown = sorted(set(names) - set(named))
        if unknown:
            raise TableError(f"pairs: {listed(unknown)} not among the samples (ids=)")
        names = named
    names = names.unique().sort()
    n = len(names)
    if n == 0:
        raise TableError("pairs: no rows; there is nothing to summarize")
    first = numbered(frame["ID1"], names)
    second = numbered(frame["ID2"], names)
    low, high, _ = count_cells(np.minimum(first, second), np.maximum(first, second), n)
    groups = linked_groups(low, high, n)
    component = np.empty(n, dtype=np.int64)
    for number, group in enumerate(groups, start=1):
        component[group] = number
    degrees = pl.DataFrame(
        {
            "ID": names,
            "degree": np.bincount(first, minlength=n) + np.bincount(second, minlength=n),
            "pos_count_1": np.bincount(first, minlength=n),
            "pos_count_2": np.bincount(second, minlength=n),
            "component": component,
        }
    )
    return PairSummary(
        n_items=n,
        n_pairs=frame.height,
        n_unordered=len(low),
        degrees=degrees,
        components=tuple(tuple(names.gather(group)) for group in groups),
        unpaired=tuple(degrees.filter(pl.col("degree") == 0)["ID"]),
    )
