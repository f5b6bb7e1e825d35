"""The precision of scores, position effects and slopes: what comparisons and priors tell about them.

It is that of a graph: per cell the information of its predictor, per item the prior's. Of few items it is a dense
matrix (:class:`Dense`). Of many, conjugate gradients solve with it (:class:`Graph`). A draw is then the solution for a
right side of noise, that of every cell times the root of its information (Papandreou & Yuille 2010), many at a time.
Variances come from such draws, but only the part that the neighbours add: given them, an item (or the two of a cell)
has a variance that is known exactly, so that 32 draws do (Rao & Blackwell).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from pairscale.core.arrays import Floats, Ints
from pairscale.models.bayes.model import Cells
from pairscale.models.linalg import conjugate_gradients

_PROBES = 32
_PROBE_SEED = 20261116  # the distribution depends on the comparisons alone, its draws on the seed
_BLOCK = 100  # draws that are solved for at a time
_DRAWS_TOLERANCE = 3e-3
_MOST_STEPS = 300  # of conjugate gradients
_LEAST = 0.05  # of an item's information, what negative curvatures leave of it


class Precision:
    """What comparisons and priors tell about scores and linear parameters, at one position.

    Attributes:
        cells: the cells.
        weight: per cell, the information of its predictor.
        slope: per cell, that of its judge; None when judges are pooled.
        columns: what position effects and the parameters of slopes add to the predictors, a row each.
        prior: of each score.
        linear_prior: of position effects and slopes.
        diagonal: of the scores, with the prior.
    """

    def __init__(
        self, cells: Cells, weight: Floats, slope: Floats | None, columns: Floats, prior: Floats, linear_prior: Floats
    ) -> None:
        self.cells = cells
        self.weight = weight
        self.slope = slope
        self.columns = columns
        self.prior = prior
        self.linear_prior = linear_prior
        self.n = cells.n_items
        self.own = weight if slope is None else weight * slope**2
        self.diagonal = cells.sums(self.own, self.own) + prior

    def corner(self) -> Floats:
        """Of position effects and slopes."""
        return (self.weight * self.columns) @ self.columns.T + np.diag(self.linear_prior)

    def border(self) -> Floats:
        """Between them and the scores; a row each."""
        signed = self.weight * self.columns if self.slope is None else self.weight * self.slope * self.columns
        return np.reshape([self.cells.sums(row, -row) for row in signed], (len(signed), self.n))

    def of_linear(self) -> Floats:
        """The diagonal of position effects and slopes."""
        return np.asarray((self.weight * np.square(self.columns)).sum(axis=1) + self.linear_prior)


class Dense(Precision):
    """A precision as the lower Cholesky factor of a matrix."""

    def __init__(self, cells: Cells, weight: Floats, *rest: Any) -> None:
        # A lapse makes an upset's curvature negative; where that is too much, it counts as none.
        for positive in (weight, np.maximum(weight, 0.0)):
            super().__init__(cells, positive, *rest)
            self._lower, failed = scipy.linalg.lapack.dpotrf(self.matrix(), lower=True, clean=True)
            if not failed:
                break

    def matrix(self) -> Floats:
        """Scores first, then position effects; only the lower half of these."""
        n = self.n
        size = n + len(self.columns)
        out = np.zeros((size, size), order="F")
        between = np.bincount(self.cells.winner * n + self.cells.loser, self.own, n * n).reshape(n, n)
        out[:n, :n] = -between - between.T
        out[n:, :n] = self.border()
        out[n:, n:] = self.corner()
        out[np.diag_indices(n)] += self.diagonal
        return out

    @property
    def log_root(self) -> float | None:
        """The logarithm of the root of the determinant; None where it is not known."""
        return float(np.log(np.diag(self._lower)).sum())

    def solve(self, right: Floats, tolerance: float = 1e-4) -> Floats:
        """The inverse times ``right``; exact, whatever the tolerance."""
        del tolerance
        return np.asarray(scipy.linalg.lapack.dpotrs(self._lower, right, lower=True)[0])

    def noise(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws around a mean of zero, one per column, and the variances that they should have."""
        random = rng.standard_normal((len(self._lower), count))
        noise, _ = scipy.linalg.lapack.dtrtrs(self._lower, random, lower=True, trans=1)
        return noise, self.variances()[0]

    def variances(self) -> tuple[Floats, Floats]:
        """The diagonal of the covariance, and per cell the predictor's variance."""
        lower, _ = scipy.linalg.lapack.dpotri(self._lower, lower=True)
        diagonal = np.diag(lower).copy()
        winner = self.cells.winner
        loser = self.cells.loser
        spread = diagonal[winner] + diagonal[loser] - 2 * lower[np.maximum(winner, loser), np.minimum(winner, loser)]
        for at, column in enumerate(self.columns, start=self.n):
            along = lower[at, winner] - lower[at, loser]
            spread = spread + 2 * column * along + column**2 * diagonal[at]
        return diagonal, np.maximum(spread, 0.0)


class Layout:
    """What every graph of the same cells shares.

    Attributes:
        pair: per cell, the number of its pair.
        pattern: a matrix of items by items with the number of the pair at each place, from 1 on.
        incidence: items by cells, 1 for the winner and -1 for the loser.
        probes: noise for the variances: of every cell, and of every row.
        last: where the next solution for the probes begins.
    """

    def __init__(self, cells: Cells, size: int) -> None:
        n = cells.n_items
        k = len(cells.winner)
        low = np.minimum(cells.winner, cells.loser)
        high = np.maximum(cells.winner, cells.loser)
        pairs, pair = np.unique(low * n + high, return_inverse=True)
        self.pair: Ints = pair
        low_item = pairs // n
        high_item = pairs % n
        number = np.tile(np.arange(len(pairs)) + 1, 2)
        places = (np.append(low_item, high_item), np.append(high_item, low_item))
        self.pattern = scipy.sparse.csr_array((number, places), shape=(n, n))
        self.pattern.sort_indices()
        ends = (np.append(cells.winner, cells.loser), np.tile(np.arange(k), 2))
        self.incidence = scipy.sparse.csr_array((np.repeat([1.0, -1.0], k), ends), shape=(n, k))
        self._shape = (k, size)
        self.probes = self.random(_PROBES, np.random.default_rng(_PROBE_SEED))
        self.last: Floats | None = None

    def random(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Noise for each cell and row."""
        of_cells = rng.standard_normal((self._shape[0], count))
        return of_cells, rng.standard_normal((self._shape[1], count))


class Graph(Precision):
    """A precision as the information between neighbours; none of it is negative."""

    log_root = None

    def __init__(self, layout: Layout, cells: Cells, weight: Floats, *rest: Any) -> None:
        if (weight < 0).any():
            # What a negative curvature takes off is taken off the other comparisons of the same items instead, so that
            # all information is positive and has a root.
            positive = np.maximum(weight, 0.0)
            kept = np.maximum(cells.sums(positive, positive), 1e-300)
            share = np.sqrt(np.clip(cells.sums(weight, weight) / kept, _LEAST, 1.0))
            weight = positive * share[cells.winner] * share[cells.loser]
        super().__init__(cells, weight, *rest)
        self._layout = layout
        of_pair = np.bincount(layout.pair, self.own).astype(np.float64)
        pattern = layout.pattern
        matrix = (of_pair[pattern.data - 1], pattern.indices, pattern.indptr)
        self._between = scipy.sparse.csr_array(matrix, shape=pattern.shape)
        self._pair = of_pair[layout.pair]
        self._border = self.border().T
        self._whole_diagonal = np.append(self.diagonal, self.of_linear())

    def _times(self, x: Floats) -> Floats:
        n = self.n
        out = self._whole_diagonal[:, None] * x
        out[:n] -= np.asarray(self._between @ x[:n])
        if self._border.shape[1]:
            out[:n] += self._border @ x[n:]
            out[n:] += self._border.T @ x[:n]
        return out

    def solve(self, right: Floats, tolerance: float = 1e-4, start: Floats | None = None) -> Floats:
        """The inverse times ``right``, by conjugate gradients."""
        columns = right.reshape(len(right), -1)
        solution = conjugate_gradients(self._times, columns, self._whole_diagonal, tolerance, _MOST_STEPS, start)
        return solution.reshape(right.shape)

    def _right(self, random: tuple[Floats, Floats]) -> Floats:
        """Noise whose covariance is the precision."""
        of_cells, of_rows = random
        rooted = np.sqrt(self.weight)[:, None] * of_cells
        right = np.sqrt(np.append(self.prior, self.linear_prior))[:, None] * of_rows
        for at, column in enumerate(self.columns, start=self.n):
            right[at] += column @ rooted
        right[: self.n] += self._layout.incidence @ rooted
        return right

    def _variance(self, right: Floats, x: Floats) -> Floats:
        """The variances: that of each row given all others, and what the others add."""
        rest = x - right / self._whole_diagonal[:, None]
        return np.asarray(1 / self._whole_diagonal + np.einsum("ic,ic->i", rest, rest) / x.shape[1])

    def noise(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws around a mean of zero, one per column, and the variances that they should have."""
        size = len(self._whole_diagonal)
        out = np.empty((size, count))
        variance = np.zeros(size)
        for at in range(0, count, _BLOCK):
            stop = min(at + _BLOCK, count)
            right = self._right(self._layout.random(stop - at, rng))
            out[:, at:stop] = self.solve(right, _DRAWS_TOLERANCE)
            variance += (stop - at) / count * self._variance(right, out[:, at:stop])
        return out, variance

    def variances(self) -> tuple[Floats, Floats]:
        """The diagonal of the covariance, and per cell the predictor's variance."""
        winner = self.cells.winner
        loser = self.cells.loser
        right = self._right(self._layout.probes)
        x = self.solve(right, _DRAWS_TOLERANCE, self._layout.last)
        self._layout.last = x
        of_winner = self.diagonal[winner]
        of_loser = self.diagonal[loser]
        determinant = of_winner * of_loser - self._pair**2
        by_one = (of_loser - self._pair) / determinant
        by_two = (of_winner - self._pair) / determinant
        rest = x[winner] - x[loser]
        rest -= by_one[:, None] * right[winner] - by_two[:, None] * right[loser]
        for at, column in enumerate(self.columns, start=self.n):
            rest += column[:, None] * x[at]
        return self._variance(right, x), by_one + by_two + np.einsum("kc,kc->k", rest, rest) / _PROBES
