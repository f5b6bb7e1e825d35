"""The normal distributions of :mod:`pairscale.models._normal` for many items, without a dense matrix.

The precision is that of a graph: per pair the information of its comparisons, per item the prior's. Conjugate gradients
solve with it. A draw is the solution for a right side of noise, that of every cell times the root of its information
(Papandreou & Yuille 2010), many at a time. Variances come from such draws, but only the part that the neighbours add:
given them, an item (or the two of a cell) has a variance that is known exactly, so that 32 draws do
(Rao & Blackwell). The noise is the same for every value of the judge's parameters, so that differences between these
are not left to chance. The evidence needs no determinant: its slope is known, and is added up along the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from pairscale.models._normal import OUT, Normal, Target

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats
    from pairscale.models._cells import Cells, JudgeParameters

__all__ = ["SparseTarget"]

_PROBES = 32
_PROBE_SEED = 20261116  # the distribution depends on the comparisons alone, its draws on the seed
_BLOCK = 100  # draws that are solved for at a time
_DRAWS_TOLERANCE = 3e-3
_MOST_STEPS = 300  # of conjugate gradients
_LEAST = 0.05  # of an item's information, what negative curvatures leave of it


@dataclass(frozen=True, slots=True, eq=False)
class _Graph:
    """A precision.

    Attributes:
        weight: per cell, its information; none is negative.
        diagonal: per row.
        between: the information between items (off the diagonal, with the sign changed).
        pair: per cell, the information of its pair.
        border: between each item and b, and g; no column without them.
        corner: between b and g; its diagonal stands in ``diagonal``.
        precision: the prior's, per row.
    """

    weight: Floats
    diagonal: Floats
    between: sparse.csr_array
    pair: Floats
    border: Floats
    corner: Floats
    precision: Floats

    def times(self, x: Floats) -> Floats:
        """The precision times columns."""
        n = self.between.shape[0]
        out = self.diagonal[:, None] * x
        out[:n] -= self.between @ x[:n]
        if self.border.shape[1]:
            out[:n] += self.border @ x[n:]
            out[n:] += self.border.T @ x[:n] + self.corner @ x[n:]
        return np.asarray(out)

    def solve(self, right: Floats, tolerance: float, start: Floats | None = None) -> Floats:
        """Conjugate gradients, all columns at once, scaled by the diagonal."""
        x = np.zeros_like(right) if start is None else start.copy()
        left = right.copy() if start is None else right - self.times(x)
        scale = 1 / self.diagonal[:, None]
        limit = tolerance**2 * np.einsum("ic,ic->c", right, right * scale) + 1e-300
        along, before = np.zeros_like(right), np.ones(right.shape[1])
        for _ in range(_MOST_STEPS):
            scaled = scale * left
            size = np.einsum("ic,ic->c", left, scaled)
            if (size <= limit).all():
                break
            along *= size / before
            along += scaled
            product = self.times(along)
            step = size / np.maximum(np.einsum("ic,ic->c", along, product), 1e-300)
            x += step * along
            left -= step * product
            before = np.maximum(size, 1e-300)
        return x


class SparseTarget(Target):
    """The posterior of many items."""

    def __init__(self, cells: Cells, model: JudgeParameters) -> None:
        super().__init__(cells, model)
        n, k = self.n, len(cells.winner)
        low, high = np.minimum(cells.winner, cells.loser), np.maximum(cells.winner, cells.loser)
        pairs, self._pair = np.unique(low * n + high, return_inverse=True)
        one, two = pairs // n, pairs % n
        at = np.arange(len(pairs))
        # Which pair each entry of the matrix is of: numbers from 1, so that none of them is taken for nothing.
        order = sparse.csr_array((np.tile(at + 1, 2), (np.append(one, two), np.append(two, one))), shape=(n, n))
        order.sort_indices()
        self._entry, self._pattern = order.data - 1, order
        ends = (np.append(cells.winner, cells.loser), np.tile(np.arange(k), 2))
        self._incidence = sparse.csr_array((np.repeat([1.0, -1.0], k), ends), shape=(n, k))
        self._probes = self._random(_PROBES, np.random.default_rng(_PROBE_SEED))
        self._last: Floats | None = None

    def _random(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        return rng.standard_normal((len(self.cells.winner), count)), rng.standard_normal((self.size, count))

    def factor(self, curvature: Floats, precision: Floats) -> Any:
        """The precision that these curvatures give.

        A lapse makes an upset's curvature negative. What it takes off is taken off the other comparisons of the same
        items instead, so that all information is positive and has a root.
        """
        cells, n = self.cells, self.n
        weight = curvature * cells.times
        if (weight < 0).any():
            positive = np.maximum(weight, 0.0)
            whole, kept = (
                np.bincount(cells.winner, values, n) + np.bincount(cells.loser, values, n)
                for values in (weight, positive)
            )
            share = np.sqrt(np.clip(whole / np.maximum(kept, 1e-300), _LEAST, 1.0))
            weight = positive * share[cells.winner] * share[cells.loser]
        diagonal = np.bincount(cells.winner, weight, n) + np.bincount(cells.loser, weight, n)
        of_pair = np.bincount(self._pair, weight).astype(np.float64)
        between = sparse.csr_array((of_pair[self._entry], self._pattern.indices, self._pattern.indptr), shape=(n, n))
        signed = [weight * per_unit for per_unit in self.linear]
        columns = [np.bincount(cells.winner, each, n) - np.bincount(cells.loser, each, n) for each in signed]
        border = np.reshape(columns, (len(columns), n)).T.astype(np.float64)
        corner = np.array([[(each * per_unit).sum() for per_unit in self.linear] for each in signed])
        corner = corner.reshape(len(signed), len(signed))
        diagonal = np.append(diagonal, np.diag(corner))
        np.fill_diagonal(corner, 0.0)
        return _Graph(weight, diagonal + precision, between, of_pair[self._pair], border, corner, precision)

    def solved(self, factor: Any, right: Floats, tolerance: float = 1e-4) -> Floats:
        """The precision's inverse times ``right``."""
        return np.asarray(factor.solve(right[:, None], tolerance)[:, 0])

    def _right(self, factor: _Graph, random: tuple[Floats, Floats]) -> Floats:
        """Noise whose covariance is the precision."""
        of_cells, of_rows = random
        rooted = np.sqrt(factor.weight)[:, None] * of_cells
        right = np.sqrt(factor.precision)[:, None] * of_rows
        right[: self.n] += self._incidence @ rooted
        for at, per_unit in enumerate(self.linear, start=self.n):
            right[at] += per_unit @ rooted
        return right

    def variances(self, factor: Any) -> tuple[Floats, Floats]:
        """The diagonal of the covariance, and the variance of each cell's difference."""
        right = self._right(factor, self._probes)
        self._last = x = factor.solve(right, _DRAWS_TOLERANCE, self._last)
        cells, d = self.cells, factor.diagonal
        one, two = d[cells.winner], d[cells.loser]
        determinant = one * two - factor.pair**2
        by_one, by_two = (two - factor.pair) / determinant, (one - factor.pair) / determinant
        rest = x[cells.winner] - x[cells.loser]
        rest -= by_one[:, None] * right[cells.winner] - by_two[:, None] * right[cells.loser]
        for at, per_unit in enumerate(self.linear, start=self.n):
            rest += per_unit[:, None] * x[at]
        spread = by_one + by_two + np.einsum("kc,kc->k", rest, rest) / _PROBES
        return _diagonal(factor, right, x), spread

    def noise(self, factor: Any, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws around a mean of zero, one per column, and the variances that they should have."""
        out, variance = np.empty((self.size, count)), np.zeros(self.size)
        for at in range(0, count, _BLOCK):
            stop = min(at + _BLOCK, count)
            right = self._right(factor, self._random(stop - at, rng))
            out[:, at:stop] = factor.solve(right, _DRAWS_TOLERANCE)
            variance += (stop - at) / count * _diagonal(factor, right, out[:, at:stop])
        return out, variance

    def _evidence(self, bound: float, factor: Any, judge: Floats, slope: Floats, since: Normal | None) -> float:
        del bound, factor
        return 0.0 if since is None else since.evidence + 0.5 * float((judge - since.judge) @ (slope + since.slope))

    def settled(self, low: Normal, center: Normal, high: Normal, axis: Floats) -> tuple[Normal, Normal]:
        """The two ends of an axis, with the evidence that the parabola through three slopes gives."""
        down, here, up = (float(one.slope @ axis) for one in (low, center, high))
        below = center.evidence - OUT * (5 * down + 8 * here - up) / 12
        above = center.evidence + OUT * (5 * up + 8 * here - down) / 12
        return replace(low, evidence=below), replace(high, evidence=above)


def _diagonal(factor: _Graph, right: Floats, x: Floats) -> Floats:
    """The variances: that of each row given all others, and what the others add."""
    rest = x - right / factor.diagonal[:, None]
    return np.asarray(1 / factor.diagonal + np.einsum("ic,ic->i", rest, rest) / x.shape[1])
