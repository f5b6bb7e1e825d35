"""Comparisons as counts: aggregated once, and looked at for what holds them together.

Everything behind this module works with a few arrays over items and over distinct pairs; none of it loops over
comparisons, so a million of them cost no more than their distinct pairs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pairscale.models._rows import Decided, Floats, Ints, read_decided
from pairscale.pairs._edges import linked_groups
from pairscale.provenance import fingerprint
from pairscale.tables import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pairscale.models._rows import Ties

__all__ = [
    "Counts",
    "Decided",
    "Floats",
    "Ints",
    "Units",
    "aggregate",
    "connected_parts",
    "count_units",
    "named_parts",
    "read_decided",
    "reweighted",
    "thinned",
]


_PLENTY = 40  # pairs an item


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Who was compared with whom how often, and who won how often.

    The distinct pairs are a sparse matrix in row order, so that ``start`` and ``column`` are the index arrays of a CSR
    matrix whose data are any numbers per pair. Where it matters who came first, a pair and its reverse are two;
    otherwise the lower index is the first, and the matrix an upper triangle.

    Attributes:
        ids: the items, in code-point order; every index below counts in it.
        start: where each item's pairs start in the arrays below, and their end.
        column: the second item once more, as small numbers, in which sparse matrices are faster.
        first: per pair, the first item.
        second: per pair, the second item.
        times: per pair, how often it was compared.
        won: per pair, how often the first won; half a win for a tie.
        tied: per pair, how often nobody won, where ties are modelled.
        wins: per item, comparisons won; half a win for a tie.
        comparisons: per item, comparisons; a comparison of an item with itself counts twice, as one win and one loss.
        self_pairs: per item, comparisons with itself.
        digest: fingerprint of the counts; the order of the rows does not matter for it.
    """

    ids: tuple[str, ...]
    start: npt.NDArray[np.integer]
    column: npt.NDArray[np.int32]
    first: Ints
    second: Ints
    times: Floats
    won: Floats
    tied: Floats | None
    wins: Floats
    comparisons: Floats
    self_pairs: Floats
    digest: str

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.ids)

    def part(self, members: Ints) -> Counts:
        """The counts among some of the items, which no pair may leave (ascending indices)."""
        renumbered = np.full(self.n_items, -1, dtype=np.int64)
        renumbered[members] = np.arange(len(members))
        inside = renumbered[self.first] >= 0
        first, second = renumbered[self.first[inside]], renumbered[self.second[inside]]
        return replace(
            self,
            ids=tuple(self.ids[at] for at in members),
            start=_starts(first, len(members)),
            column=second.astype(np.int32),
            first=first,
            second=second,
            times=self.times[inside],
            won=self.won[inside],
            tied=None if self.tied is None else self.tied[inside],
            wins=self.wins[members],
            comparisons=self.comparisons[members],
            self_pairs=self.self_pairs[members],
        )

    def without_self_pairs(self) -> Counts:
        """The same, with comparisons of an item with itself left out."""
        return replace(
            self,
            wins=self.wins - self.self_pairs,
            comparisons=self.comparisons - 2 * self.self_pairs,
            self_pairs=np.zeros_like(self.self_pairs),
        )


def aggregate(decided: Decided, *, ties: Ties = "drop", ordered: bool = False) -> Counts:
    """Count the comparisons of all items seen.

    Ids are numbered in code-point order, so that neither the order of the rows nor the locale changes a result.

    Args:
        decided: the comparisons.
        ties: how ties were read; only ``davidson`` counts them apart.
        ordered: whether a pair and its reverse are two.
    """
    size, bits = len(decided.ids), _bits(decided)
    cell, times = _sums(_outcome_cells(decided, ordered), decided.weight, 1 << (2 * bits + 2))
    digest = hashlib.sha256(cell.astype("<i8", copy=False).data)
    digest.update(times.astype("<f8", copy=False).data)
    self_pairs = _self_pairs(decided)
    if self_pairs.any():
        apart = (cell >> (2 + bits)) != ((cell >> 2) & ((1 << bits) - 1))
        cell, times = cell[apart], times[apart]
    code = (cell & 3).astype(np.int8)
    # Arrays of this size are changed in place: room for new ones costs more than the sums.
    cell >>= 2
    # The outcomes of a pair are cells of their own, one behind the other: at most three to add up.
    starts = _changes(cell)
    more = np.ones(len(cell), dtype=np.bool_)
    more[starts] = False
    later = np.flatnonzero(more)
    owner = np.searchsorted(starts, later, side="right") - 1

    def added(values: Floats) -> Floats:
        total = values[starts]
        np.add.at(total, owner, values[later])
        return total

    first = cell[starts]
    second = first & ((1 << bits) - 1)
    first >>= bits
    total, won = added(times), added(times * code)
    won /= 2
    return Counts(
        ids=decided.ids,
        start=_starts(first, size),
        column=second.astype(np.int32),
        first=first,
        second=second,
        times=total,
        won=won,
        tied=added(np.where(code == 1, times, 0.0)) if ties == "davidson" else None,
        wins=_per_number(first, won, size) + _per_number(second, total - won, size) + self_pairs,
        comparisons=_per_number(first, total, size) + _per_number(second, total, size) + 2 * self_pairs,
        self_pairs=self_pairs,
        digest=fingerprint([decided.ids, digest.hexdigest()]),
    )


def _self_pairs(decided: Decided) -> Floats:
    own = decided.first == decided.second
    weight = np.ones(int(own.sum())) if decided.weight is None else decided.weight[own]
    return _per_number(decided.first[own], weight, len(decided.ids))


def _outcome_cells(decided: Decided, ordered: bool) -> Ints:
    """Per comparison, the number of its pair and outcome, put together bit by bit: first, second, 2 · result."""
    first, second, code = decided.first, decided.second, (2 * decided.result).astype(np.int8)
    if not ordered:
        # With itself, an item is on both sides: only that it happened counts.
        turned = (first > second) | ((first == second) & (code == 0))
        first, second = np.minimum(first, second), np.maximum(first, second)
        code = np.where(turned, 2 - code, code)
        first <<= _bits(decided)
    else:
        first = first << _bits(decided)
    cells = first
    cells |= second
    cells <<= 2
    cells |= code
    return cells


def _bits(decided: Decided) -> int:
    """How many bits the number of an item takes."""
    return max(len(decided.ids) - 1, 1).bit_length()


def _sums(cell: Ints, weight: Floats | None, bins: int) -> tuple[Ints, Floats]:
    """The different cells in order, and the number or the weight of each; ``cell`` is used up."""
    if bins <= 8 * len(cell):
        times = np.bincount(cell, minlength=bins)
        there = np.flatnonzero(times)
        return there, (times.astype(np.float64) if weight is None else _per_number(cell, weight, bins))[there]
    if weight is not None:
        # Within a cell in order of size, so that the order of the rows does not change a sum's last digit.
        order = np.lexsort((weight, cell))
        cell, weight = cell[order], weight[order]
        starts = _changes(cell)
        return cell[starts], _added(weight, starts)
    cell.sort()
    starts = _changes(cell)
    return cell[starts], np.diff(starts, append=len(cell)).astype(np.float64)


def _per_number(numbers: Ints, values: Floats, size: int) -> Floats:
    return np.bincount(numbers, values, size).astype(np.float64, copy=False)


def _changes(ordered: Ints) -> Ints:
    """Where each different number of an ordered array starts."""
    new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)


def _added(values: Floats, starts: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, starts) if len(starts) else values[:0], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Comparisons that nothing tells apart, counted: the same pair, outcome, weight and cluster.

    Attributes:
        pair: the place of the pair in the arrays of :class:`Counts`.
        result: 1 when its first won, 0 when its second did, 0.5 for a tie.
        weight: what each of them counts.
        times: how many there are.
        cluster: the number of their cluster, or None.
        n_clusters: how many clusters there are.
    """

    pair: Ints
    result: Floats
    weight: Floats
    times: Ints
    cluster: Ints | None
    n_clusters: int


def count_units(decided: Decided, counts: Counts, *, ordered: bool) -> Units:
    """The units of comparisons between different items; ``counts`` are those of all or of some of the items."""
    import polars as pl

    cell = pl.Series("cell", _outcome_cells(decided, ordered))
    table = pl.DataFrame(
        {
            "cell": cell,
            "weight": np.ones(len(cell)) if decided.weight is None else decided.weight,
            "cluster": np.zeros(len(cell), np.int64) if decided.cluster is None else decided.cluster,
        }
    )
    table = table.filter(pl.Series(decided.first != decided.second))
    table = table.group_by("cell", "cluster", "weight").len("times").sort("cell", "cluster", "weight")
    key, code = table["cell"].to_numpy() >> 2, table["cell"].to_numpy() & 3
    place = {name: at for at, name in enumerate(decided.ids)}
    number = np.array([place[name] for name in counts.ids], dtype=np.int64)
    pairs = (number[counts.first] << _bits(decided)) | number[counts.second]
    cluster = None if decided.cluster is None else table["cluster"].to_numpy()
    groups = 0
    if cluster is not None:
        there, cluster = np.unique(cluster, return_inverse=True)
        groups = len(there)
    return Units(
        pair=np.searchsorted(pairs, key),
        result=code / 2,
        weight=table["weight"].to_numpy(),
        times=table["times"].to_numpy().astype(np.int64),
        cluster=cluster,
        n_clusters=groups,
    )


def reweighted(counts: Counts, units: Units, weight: Floats) -> Counts:
    """The same pairs with other weights, one number a unit; comparisons of an item with itself stay as they are."""
    size, pairs = counts.n_items, len(counts.times)
    times = _per_number(units.pair, weight, pairs)
    won = _per_number(units.pair, weight * units.result, pairs)
    own = counts.self_pairs
    return replace(
        counts,
        times=times,
        won=won,
        tied=None if counts.tied is None else _per_number(units.pair, weight * (units.result == 0.5), pairs),
        wins=_per_number(counts.first, won, size) + _per_number(counts.second, times - won, size) + own,
        comparisons=_per_number(counts.first, times, size) + _per_number(counts.second, times, size) + 2 * own,
    )


def thinned(counts: Counts, every: int) -> Counts:
    """Every so-manieth pair, without comparisons of an item with itself: enough to guess the scores from."""
    chosen, size = slice(None, None, every), counts.n_items
    first, second, times, won = counts.first[chosen], counts.second[chosen], counts.times[chosen], counts.won[chosen]
    return replace(
        counts,
        start=_starts(first, size),
        column=counts.column[chosen],
        first=first,
        second=second,
        times=times,
        won=won,
        tied=None if counts.tied is None else counts.tied[chosen],
        wins=_per_number(first, won, size) + _per_number(second, times - won, size),
        comparisons=_per_number(first, times, size) + _per_number(second, times, size),
        self_pairs=np.zeros(size),
    )


def connected_parts(counts: Counts, links: npt.NDArray[np.bool_] | None = None) -> list[Ints]:
    """The parts that the pairs (or those of them in ``links``) hold together, largest first, then in order of ids."""
    first, second, size = counts.first, counts.second, counts.n_items
    if links is not None:
        first, second = first[links], second[links]
    if len(first) > _PLENTY * size:
        # Where there are so many pairs, a few of them mostly hold everything together already.
        some = slice(None, None, 2 * len(first) // (_PLENTY * size))
        few = linked_groups(first[some], second[some], size)
        if len(few) == 1:
            return few
    return linked_groups(first, second, size)


def named_parts(ids: Sequence[str], parts: Sequence[Ints], shown: int = 5) -> str:
    """Parts for a message: the size and the first items of each, and how many more parts there are."""
    texts = [
        f"{len(part):,} {'item' if len(part) == 1 else 'items'} ({listed([ids[at] for at in part], 3)})"
        for part in parts[:shown]
    ]
    more = [f"{len(parts) - shown:,} more parts"] if len(parts) > shown else []
    return "; ".join(texts + more)


def _starts(first: Ints, size: int) -> npt.NDArray[np.integer]:
    starts = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=size))])
    return starts.astype(np.int32 if starts[-1] < 2**31 else np.int64)
