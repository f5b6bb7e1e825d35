"""Comparisons as counts: aggregated once, and looked at for what holds them together.

Everything behind this module works with a few arrays over items and over distinct pairs; none of it loops over
comparisons, so a million of them cost no more than their distinct pairs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pairscale.core.arrays import Floats, Ints
from pairscale.core.provenance import fingerprint
from pairscale.core.tables import listed
from pairscale.models._rows import Decided, read_decided
from pairscale.pairing.edges import linked_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    from pairscale.models._rows import Ties

    Cells: TypeAlias = npt.NDArray[np.integer]

__all__ = [
    "Counts",
    "Decided",
    "Units",
    "aggregate",
    "connected_parts",
    "count_units",
    "named_parts",
    "pieces",
    "read_decided",
    "reweighted",
]


_PLENTY = 40  # pairs an item
_PIECE = 1 << 16


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
        tied: per pair, how often neither won, where ties are modelled.
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
    cell, times = _sums(_outcome_cells(decided, ordered), decided.mass, 1 << (2 * bits + 2))
    digest = hashlib.sha256()
    for piece in pieces(len(cell)):
        digest.update(cell[piece].astype("<i8", copy=False).data)
    digest.update(times.astype("<f8", copy=False).data)
    self_pairs = _self_pairs(decided)
    if self_pairs.any():
        apart = (cell >> (2 + bits)) != ((cell >> 2) & ((1 << bits) - 1))
        cell, times = cell[apart], times[apart]
    code = (cell & 3).astype(np.int8)
    # Arrays of this size are changed in place, and let go of early: room for new ones costs more than the sums.
    cell >>= 2
    # The outcomes of a pair are cells of their own, one behind the other: at most three to add up, mostly one.
    new = _is_new(cell)
    later = np.flatnonzero(~new)
    owner = later - np.arange(1, len(later) + 1)
    begin = np.flatnonzero(new)  # a mask would be several times slower
    key, cell = cell[begin], cell[:0]
    total, first_code = times[begin], code[begin]
    won = total * first_code
    tied = np.where(first_code == 1, total, 0.0) if ties == "davidson" else None
    for values, more in ((total, times[later]), (won, times[later] * code[later])):
        np.add.at(values, owner, more)
    if tied is not None:
        np.add.at(tied, owner, np.where(code[later] == 1, times[later], 0.0))
    del times, code, new, begin
    won /= 2
    second = key & ((1 << bits) - 1)
    key >>= bits
    first, column, second = key.astype(np.int64), second.astype(np.int32, copy=False), second.astype(np.int64)
    return Counts(
        ids=decided.ids,
        start=_starts(first, size),
        column=column,
        first=first,
        second=second,
        times=total,
        won=won,
        tied=tied,
        wins=_per_number(first, won, size) + _per_number(second, total - won, size) + self_pairs,
        comparisons=_per_number(first, total, size) + _per_number(second, total, size) + 2 * self_pairs,
        self_pairs=self_pairs,
        digest=fingerprint([decided.ids, digest.hexdigest()]),
    )


def pieces(length: int) -> Iterator[slice]:
    """Slices of long arrays that stay in the processor's cache."""
    for begin in range(0, length, _PIECE):
        yield slice(begin, begin + _PIECE)


def _self_pairs(decided: Decided) -> Floats:
    own = decided.first == decided.second
    mass = decided.mass if own.any() else None
    weight = np.ones(int(own.sum())) if mass is None else mass[own]
    return _per_number(decided.first[own], weight, len(decided.ids))


def _outcome_cells(decided: Decided, ordered: bool) -> Cells:
    """Per comparison, the number of its pair and outcome, put together bit by bit: first, second, 2 · result."""
    bits = _bits(decided)
    # Half the bytes are sorted in half the time.
    cells: Cells = np.empty(len(decided.result), dtype=np.int32 if 2 * bits + 2 < 32 else np.int64)
    for piece in pieces(len(cells)):
        first, second = decided.first[piece], decided.second[piece]
        code = (2 * decided.result[piece]).astype(np.int8)
        if not ordered:
            # With itself, an item is on both sides: only that it happened counts.
            turned = first >= second
            turned &= (first > second) | (code == 0)
            first, second = np.minimum(first, second), np.maximum(first, second)
            code = np.where(turned, 2 - code, code)
        part = first.astype(cells.dtype)
        for width, value in ((bits, second), (2, code)):
            part <<= width
            part |= value
        cells[piece] = part
    return cells


def _bits(decided: Decided) -> int:
    """How many bits the number of an item takes."""
    return max(len(decided.ids) - 1, 1).bit_length()


def _sums(cell: Cells, weight: Floats | None, bins: int) -> tuple[Cells, Floats]:
    """The different cells in order, and the number or the weight of each; ``cell`` is used up."""
    # Numbers are sorted faster than they are counted, unless there are few different ones; with weights it is slower.
    if bins <= (len(cell) // 4 if weight is None else 8 * len(cell)):
        times = np.bincount(cell, minlength=bins)
        there = np.flatnonzero(times)
        return there, (times.astype(np.float64) if weight is None else _per_number(cell, weight, bins))[there]
    if weight is not None:
        # Within a cell in order of size, so that the order of the rows does not change a sum's last digit.
        order = np.lexsort((weight, cell))
        cell, weight = cell[order], weight[order]
        starts = np.flatnonzero(_is_new(cell))
        return cell[starts], _added(weight, starts)
    cell.sort()
    starts = np.flatnonzero(_is_new(cell))
    number = np.empty(len(starts))
    np.subtract(starts[1:], starts[:-1], out=number[:-1], casting="unsafe")
    number[-1:] = len(cell) - starts[-1:]
    return cell[starts], number


def _per_number(numbers: npt.NDArray[np.integer], values: Floats, size: int) -> Floats:
    return np.bincount(numbers, values, size).astype(np.float64, copy=False)


def _is_new(ordered: Cells) -> npt.NDArray[np.bool_]:
    """Whether a number of an ordered array is another one than that before it."""
    new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


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
    number_of = pl.len()
    if decided.times is not None:
        table, number_of = table.with_columns(n=decided.times), pl.col("n").sum()
    table = table.filter(pl.Series(decided.first != decided.second))
    table = table.group_by("cell", "cluster", "weight").agg(number_of.alias("times")).sort("cell", "cluster", "weight")
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
