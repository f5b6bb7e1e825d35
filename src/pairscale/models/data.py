"""Comparisons as the models need them: read once, ids as numbers, and counted.

Everything behind this module works with a few arrays over items and over distinct pairs. None of it loops over
comparisons, so a million of them cost no more than their distinct pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from pairscale.core.arrays import Floats, Ints
from pairscale.core.comparisons import say_left_out
from pairscale.core.errors import FitError, InputError, TableError
from pairscale.core.notices import plural
from pairscale.core.provenance import fingerprint
from pairscale.core.results import ORDER_KNOWN, Results, as_comparisons
from pairscale.core.tables import Table, as_text, listed, require_columns, require_ids, times_of, to_frame
from pairscale.pairing.table import numbered

Ties = Literal["drop", "half"]
"""What to do with ties: leave them out, or count half a win each."""

_PARTS_NAMED = 5
_MANY_PAIRS = 10_000  # from here on a sparse matrix adds faster, in the same order


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """The comparisons that can be used, one element per row of the table.

    Attributes:
        ids: every id of the table, in code-point order, also those of rows that were left out.
        first: the first item, as its place in ``ids``.
        second: the second item.
        result: 1 when the first won, 0 when the second did, 0.5 for a tie.
        weight: what each comparison counts; None when all count the same.
        times: how many comparisons the row stands for; None when each is one.
        cluster: the number of the cluster it belongs to, where clusters were asked for.
        clusters: the names of the clusters.
        notices: what was left out.
        table: the rows of the table that they are from.
    """

    ids: tuple[str, ...]
    first: Ints
    second: Ints
    result: Floats
    weight: Floats | None
    times: Ints | None
    cluster: Ints | None
    clusters: tuple[str, ...]
    notices: tuple[str, ...]
    table: pl.DataFrame


def as_results(data: Table | Results) -> Results:
    """Results of any shape; those that were read already are not read again.

    Raises:
        TableError: when the columns are of no known shape.
        FitError: when there is no row.
    """
    if not isinstance(data, Results):
        table = data if hasattr(data, "iloc") else to_frame(data, "results")  # of pandas, the index may name the rows
        if len(table):
            return Results(as_comparisons(table, "results"))
    elif len(data.table):
        return data
    raise FitError("the results have no rows: there are no comparisons to fit")


def order_is_known(table: pl.DataFrame) -> bool:
    """Whether results that were read say of every row which text stood first."""
    return ORDER_KNOWN not in table.columns or bool(table[ORDER_KNOWN].fill_null(value=True).all())


def read_outcomes(
    results: Results, *, ties: Ties = "drop", weights: str | None = None, cluster: str | None = None
) -> Outcomes:
    """The comparisons of a table; rows without a winner of their own pair are left out, with a notice.

    Args:
        results: results that were read.
        ties: whether ties (a result of 0.5, or no winner and the outcome ``tie``) are kept; ``drop`` leaves them out.
        weights: the column of what each comparison counts.
        cluster: the column of the cluster that each belongs to.

    Raises:
        TableError: when there is no such column, or a value in it is missing.
        FitError: when no row is left.
    """
    table = results.table
    require_columns(table, [name for name in (weights, cluster) if name is not None], "the results")
    ids, first, second = _numbered_sides(table)
    result = table.select(outcome_figures(table, "tie").fill_null(np.nan)).to_series().to_numpy()
    kept = np.isfinite(result)
    why = "no winner, or a winner that is not of the pair"
    if ties == "drop":
        kept &= result != 0.5
        why = f"a tie, {why}"
    weight = None
    if weights is not None:
        weight = _weight(table, weights)
        kept &= weight > 0
        weight = weight[kept]
        why = f"a weight of 0, {why}"
    if not kept.any():
        raise FitError(f"none of the {table.height:,} rows of the results can be used: {why}")
    notices: tuple[str, ...] = ()
    if not kept.all():
        everything = table
        table = table.filter(kept)
        first = first[kept]
        second = second[kept]
        result = result[kept]
        notices = tuple(say_left_out(everything, table, why))
    counted = times_of(table)
    members = None
    clusters: tuple[str, ...] = ()
    if cluster is not None:
        names = as_text(table[cluster], cluster)
        if names.has_nulls():
            raise TableError(f"column {cluster!r} has no value in {names.null_count():,} rows; every row needs one")
        present = names.unique().sort()
        members = numbered(names, present)
        clusters = tuple(present)
    return Outcomes(
        ids=ids,
        first=first,
        second=second,
        result=result,
        weight=weight,
        times=None if counted is None else counted.to_numpy(),
        cluster=members,
        clusters=clusters,
        notices=notices,
        table=table,
    )


def _numbered_sides(table: pl.DataFrame) -> tuple[tuple[str, ...], Ints, Ints]:
    """All ids in code-point order, and the two of each row as places among them; every id is hashed once."""
    codes = table.select(pl.col("ID1", "ID2").cast(pl.Categorical).to_physical())
    first = codes["ID1"].to_numpy().astype(np.int64)
    second = codes["ID2"].to_numpy().astype(np.int64)
    n = table.height
    row_of = np.full(max(first.max(), second.max()) + 1, -1)  # a row that each code occurs in
    rows = np.arange(2 * n)
    row_of[first] = rows[:n]
    row_of[second] = rows[n:]
    used = np.flatnonzero(row_of >= 0)
    ids = pl.concat([table["ID1"], table["ID2"].alias("ID1")]).gather(row_of[used])
    order = ids.arg_sort().to_numpy()
    place = np.empty(len(row_of), dtype=np.int64)
    place[used[order]] = np.arange(len(order))
    return tuple(ids.gather(order)), place[first], place[second]


def outcome_figures(table: pl.DataFrame, *close: str) -> pl.Expr:
    """1 where the first won, 0 where the second did, 0.5 for these outcomes without a winner, null for all else."""
    better = pl.col("better_id")
    result = pl.when(better == pl.col("ID1")).then(1.0).when(better == pl.col("ID2")).then(0.0)
    if "outcome" not in table.columns:
        return result
    return result.when(better.is_null() & pl.col("outcome").cast(pl.String).is_in(close)).then(0.5)


def require_all(ids: Iterable[Any] | None, seen: Sequence[str]) -> list[str]:
    """All items: those given, which must include those seen; by default, those seen.

    Raises:
        InputError: when one is missing, or given twice.
    """
    if ids is None:
        return list(seen)
    names = require_ids(to_frame({"ID": list(ids)}, "ids"), ["ID"], "ids")["ID"].to_list()
    missing = sorted(set(seen) - set(names))
    if missing or len(set(names)) < len(names):
        raise InputError(f"ids must be unique, and name every item of the results; missing: {listed(missing)}", "ids")
    return names


def _weight(table: pl.DataFrame, name: str) -> Floats:
    weight = table[name].cast(pl.Float64, strict=False)
    if not (weight.is_finite() & (weight >= 0)).fill_null(value=False).all():
        raise TableError(f"column {name!r} has a value that is no weight; a weight is a number, 0 or more")
    return weight.to_numpy()


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Comparisons of two items that nothing tells apart, counted: the same pair, outcome, weight and cluster.

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


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Who was compared with whom how often, and who won how often.

    Where it matters who came first, a pair and its reverse are two; otherwise the lower index is the first.

    Attributes:
        ids: the items, in code-point order; every index below counts in it.
        first: per pair, the first item; pairs are in the order of these.
        second: per pair, the second item.
        self_pairs: per item, comparisons with itself.
        digest: fingerprint of the counts; the order of the rows does not matter for it.
        times: per pair, how often it was compared.
        won: per pair, how often the first won; half a win for a tie.
        wins: per item, comparisons won; half a win for a tie.
        comparisons: per item, comparisons; a comparison of an item with itself counts twice, as one win and one loss.
    """

    ids: tuple[str, ...]
    first: Ints
    second: Ints
    self_pairs: Floats
    digest: str
    times: Floats
    won: Floats
    wins: Floats
    comparisons: Floats

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.ids)

    def sums(self, of_first: Floats, of_second: Floats) -> Floats:
        """Per item, the sum over its pairs of a number for the first and one for the second of each pair."""
        if len(self.first) < _MANY_PAIRS:
            return side_sums(self.first, self.second, of_first, of_second, self.n_items)
        ones = np.ones(self.n_items)
        return np.asarray(self.matrix(of_first) @ ones + self.matrix(of_second).T @ ones)

    def matrix(self, values: Floats) -> Any:
        """A sparse matrix of a value for every pair, in the row of its first item and the column of its second."""
        from scipy.sparse import csr_array

        begins = np.searchsorted(self.first, np.arange(self.n_items + 1))
        return csr_array((values, self.second, begins), shape=(self.n_items, self.n_items))

    def part(self, members: Ints) -> Counts:
        """The counts among some of the items, which no pair may leave (ascending indices)."""
        renumbered = np.full(self.n_items, -1, dtype=np.int64)
        renumbered[members] = np.arange(len(members))
        inside = renumbered[self.first] >= 0
        first = renumbered[self.first[inside]]
        second = renumbered[self.second[inside]]
        return replace(
            self,
            ids=tuple(self.ids[place] for place in members),
            first=first,
            second=second,
            self_pairs=self.self_pairs[members],
            times=self.times[inside],
            won=self.won[inside],
            wins=self.wins[members],
            comparisons=self.comparisons[members],
        )

    def reweighted(self, units: Units, weight: Floats) -> Counts:
        """The same pairs with other weights, one per unit; comparisons of an item with itself stay as they are."""
        n_pairs = len(self.first)
        times = _sums(units.pair, weight, n_pairs)
        won = _sums(units.pair, weight * units.result, n_pairs)
        return replace(
            self,
            times=times,
            won=won,
            wins=self.sums(won, times - won) + self.self_pairs,
            comparisons=self.sums(times, times) + 2 * self.self_pairs,
        )


def count_pairs(outcomes: Outcomes, *, ordered: bool = False, with_self: bool = True) -> tuple[Counts, Units]:
    """Count the comparisons of all items seen.

    Args:
        outcomes: the comparisons.
        ordered: whether a pair and its reverse are two.
        with_self: whether comparisons of an item with itself count.
    """
    size = len(outcomes.ids)
    counted = _counted_cells(_cells(outcomes, ordered), outcomes)
    digest = hashlib.sha256(counted["cell"].tobytes())
    digest.update(counted["times"].tobytes())
    if outcomes.weight is not None:
        digest.update(counted["weight"].tobytes())
    counted["pair"] = counted["cell"] // 3  # one division of many numbers is faster than np.divmod
    self_pairs = np.zeros(size)
    if (outcomes.first == outcomes.second).any():
        with_itself = counted["pair"] % (size + 1) == 0
        if with_self:
            own = (counted["weight"] * counted["times"])[with_itself]
            self_pairs = _sums(counted["pair"][with_itself] // size, own, size)
        counted = {name: values[~with_itself] for name, values in counted.items()}
    pair = counted["pair"]
    is_new = np.append(True, pair[1:] != pair[:-1])[: len(pair)]
    cluster = counted.get("cluster")
    n_clusters = 0
    if cluster is not None:
        present, cluster = np.unique(cluster, return_inverse=True)
        n_clusters = len(present)
    number = np.cumsum(is_new) - 1
    code = -3 * pair
    code += counted["cell"]
    units = Units(number, code / 2, counted["weight"], counted["times"], cluster, n_clusters)
    pairs = pair[np.flatnonzero(is_new)]
    first = pairs // size
    second = -size * first
    second += pairs
    nothing = np.zeros(len(first))
    empty = Counts(
        ids=outcomes.ids,
        first=first,
        second=second,
        self_pairs=self_pairs,
        digest=fingerprint([outcomes.ids, digest.hexdigest()]),
        times=nothing,
        won=nothing,
        wins=self_pairs,
        comparisons=self_pairs,
    )
    return empty.reweighted(units, units.weight * units.times), units


def _cells(outcomes: Outcomes, ordered: bool) -> Ints:
    """Per row, its pair and outcome as one number."""
    size = len(outcomes.ids)
    first = outcomes.first
    second = outcomes.second
    code = (2 * outcomes.result).astype(np.int8)
    if not ordered:
        # With itself, an item is on both sides: only that it happened counts.
        turned = (first > second) | ((first == second) & (code == 0))
        first = np.minimum(outcomes.first, outcomes.second)
        second = np.maximum(outcomes.first, outcomes.second)
        code += turned * (2 - 2 * code)
    cell = first * size
    cell += second  # in place: of a million rows, each new array takes longer than the arithmetic
    cell *= 3
    cell += code
    return cell


def _counted_cells(cell: Ints, outcomes: Outcomes) -> dict[str, Any]:
    """The different cells with their cluster and weight, in order, and how often each occurs."""
    if outcomes.times is None and outcomes.weight is None and outcomes.cluster is None:
        is_small = 3 * len(outcomes.ids) ** 2 < 2**31  # half as wide numbers are sorted faster
        cells, times = np.unique(cell.astype(np.int32) if is_small else cell, return_counts=True)
        return {"cell": cells.astype(np.int64), "weight": np.broadcast_to(1.0, len(cells)), "times": times}
    n = len(cell)
    columns = {
        "cell": cell,
        "weight": np.ones(n) if outcomes.weight is None else outcomes.weight,
        "times": np.ones(n, dtype=np.int64) if outcomes.times is None else outcomes.times,
    }
    keys = ["cell", "weight"]
    if outcomes.cluster is not None:
        columns["cluster"] = outcomes.cluster
        keys.insert(1, "cluster")
    counted = pl.DataFrame(columns).group_by(keys).agg(pl.col("times").sum()).sort(keys)
    return {name: counted[name].to_numpy() for name in columns}


def _sums(numbers: Ints, values: Floats | Ints | None, size: int) -> Floats:
    """Per number below ``size``, the sum of its values, each 1 by default."""
    return np.asarray(np.bincount(numbers, values, size), dtype=np.float64)


def side_sums(
    first: Ints, second: Ints, of_first: Floats | Ints | None, of_second: Floats | Ints | None, size: int
) -> Floats:
    """Per item below ``size``, the sum over its pairs of a number for the first and one for the second of each."""
    return _sums(first, of_first, size) + _sums(second, of_second, size)


def named_parts(ids: Sequence[str], parts: Sequence[Ints]) -> str:
    """Parts for a message: the size and the first items of each, and how many more parts there are."""
    texts = [f"{plural(len(part), 'item')} ({listed([ids[at] for at in part], 3)})" for part in parts[:_PARTS_NAMED]]
    if len(parts) > _PARTS_NAMED:
        texts.append(f"{len(parts) - _PARTS_NAMED:,} more parts")
    return "; ".join(texts)
