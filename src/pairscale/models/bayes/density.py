"""The log density of scores and judges given the answers, its gradient, and its mode given noise and spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from pairscale.core.arrays import Floats, Ints
from pairscale.models.bayes.model import SLOPE_SD, Cells, JudgeParameters, Probabilities, Winners
from pairscale.models.bayes.precision import Precision

_BLOCK = 1024
_FAR = 300.0  # exp(2 * 300) is finite
_MODE_STEPS = 50
_NOTHING = np.zeros(1)


def slope_basis(cells: Cells) -> Floats | None:
    """Q: what alpha adds to the slopes, whose mean over all comparisons stays 1; None when judges are pooled."""
    return None if cells.share is None else np.asarray(scipy.linalg.qr(cells.share[:, None])[0][:, 1:])


class _Room:
    """Room to compute in: to ask the system for it again and again would take longer than the arithmetic."""

    def __init__(self, density: Density, chains: int) -> None:
        self.chains = chains
        self._row = density.row
        self._n = density.n
        tables = 2 if "b" in density.row else 1
        self.slope = np.empty((len(density.cells.winner), chains))
        self.s = np.empty((_BLOCK, chains))
        self.k = np.empty((_BLOCK, chains))
        self.winner = np.empty((self._n, chains))
        self.loser = np.empty((tables * self._n, chains))
        self.lapsed = np.empty((tables * self._n if density.model.lapse else 0, chains))

    def look_up(self, theta: Floats, x: Floats, eps: Floats) -> None:
        """Fill the tables: exp of the scores, with b for losers, and that times ``eps / (2 - eps)``."""
        n = self._n
        np.exp(theta, out=self.winner)
        if "b" in self._row:
            b = np.exp(x[self._row["b"]])
            np.divide(self.winner, b, out=self.loser[:n])
            np.multiply(self.winner, b, out=self.loser[n:])
        else:
            self.loser[:] = self.winner
        if "u" in self._row:
            np.multiply(self.loser, eps / (2 - eps), out=self.lapsed)


class Density:
    """Log density and gradient for any number of chains at once.

    Columns are chains; the rows are the scores, and then ``JudgeParameters.names``.

    Winners of pooled judges take one exponential an item, not one a cell, and two divisions a cell: with W = exp(score
    of the winner) and L that of the loser (both with b where they stood first), ``s = W / (W + L)`` and
    ``k = W / (W + g L)``, see :class:`pairscale.models.bayes.model.Winners`.
    """

    def __init__(self, cells: Cells, model: JudgeParameters) -> None:
        self.cells = cells
        self.model = model
        self.n = cells.n_items
        self.likelihood = Probabilities(cells) if model.probabilities else Winners(model)
        self.noise = self.likelihood.noise
        self.row = {name: self.n + at for at, name in enumerate(model.names)}
        self.size = self.n + len(self.row)
        self.basis = slope_basis(cells)
        # The rows of position effects and slopes, whose mode is found with that of the scores.
        self.linear_names = model.position_names + model.slope_names
        self.linear = [self.row[name] for name in self.linear_names]
        self._position = self.linear[: len(model.position_names)]
        self._slopes = self.linear[len(self._position) :]
        sds = [model.position_sd] * len(self._position) + [SLOPE_SD] * len(self._slopes)
        self.linear_sd = np.array(sds)
        k = len(cells.winner)
        sides = (np.concatenate([cells.winner, cells.loser]), np.tile(np.arange(k), 2))
        values = np.concatenate([cells.times, -cells.times])
        self._incidence = scipy.sparse.csr_array((values, sides), shape=(self.n, k))
        members = np.ones((1, k))
        if cells.judge is not None:
            members = np.asarray(np.arange(model.judges)[:, None] == cells.judge, dtype=np.float64)
        self.members = members * cells.times  # per judge, how often each answer is theirs
        self.columns = cells.sign * members if model.position else np.zeros((0, k))  # what position effects add
        self._signed = self.columns * cells.times
        self._total = cells.times.sum()
        self._linear_variance = self.linear_sd[:, None] ** 2
        self._by_table = self.basis is None and not model.probabilities
        self._judge = np.zeros(k, dtype=np.int64) if cells.judge is None else cells.judge
        # Losers are looked up in one of two tables: divided by exp(b) where the winner stood first, else times it.
        self._loser = cells.loser + (np.where(cells.sign > 0, 0, self.n) if model.position else 0)
        self._blocks = [slice(at, min(at + _BLOCK, k)) for at in range(0, k, _BLOCK)]
        self._room = _Room(self, 0)

    def start(self) -> Floats:
        """Where searches for the mode begin (one column)."""
        x = np.zeros((self.size, 1))
        for name, value in self.likelihood.start.items():
            if name in self.row:
                x[self.row[name]] = value
        return x

    def link(self, x: Floats) -> tuple[Floats, Floats]:
        """The lapse rate of each chain, or the logarithm of the error's scale, and its slope; zeros without either."""
        if self.noise is None:
            return np.zeros(x.shape[1]), np.zeros(x.shape[1])
        return self.likelihood.link(x[self.row[self.noise]])

    def slopes(self, x: Floats) -> Floats:
        """The slope of each judge, of each column; their mean over the comparisons is 1."""
        return np.ones((1, x.shape[1])) if self.basis is None else 1 + self.basis @ x[self._slopes]

    def predictors(self, x: Floats, block: slice = slice(None)) -> tuple[Floats, Floats, Floats | None]:
        """Of a block of cells: the predictor, the difference of the scores, and the slope; None for pooled judges."""
        cells = self.cells
        judge = self._judge[block]
        theta = x[: self.n]
        d = theta[cells.winner[block]] - theta[cells.loser[block]]
        slope = None if self.basis is None else self.slopes(x)[judge]
        eta = d if slope is None else slope * d
        if self._position:
            eta = eta + cells.sign[block, None] * x[self._position][judge]
        return eta, d, slope

    def __call__(self, x: Floats, *, value: bool) -> tuple[Floats | None, Floats]:
        """The log density of each column (up to a constant, when ``value``), and its gradient."""
        room = self._room
        if room.chains != x.shape[1]:
            room = self._room = _Room(self, x.shape[1])
        noise, _ = self.link(x)
        log = np.zeros(room.chains)
        in_noise = np.zeros(room.chains)  # of winners, the sum of k over all comparisons
        in_position = np.zeros((len(self._position), room.chains))
        in_slope = np.zeros((self.model.judges if self.basis is not None else 0, room.chains))
        # Far out, where exp of a score would overflow, each difference is taken first; so it is with NaN.
        theta = x[: self.n]
        near = bool(max(theta.max(), -theta.min()) + np.abs(x[self.n :]).max(initial=0.0) < _FAR)
        near = near and self._by_table
        if near:
            room.look_up(theta, x, noise)
        for block in self._blocks:
            slope = room.slope[block]
            eta, d, a = (None, None, None) if near else self.predictors(x, block)
            of_value, of_noise = self._filled(room, block, slope, eta, noise, value=value)
            if value:
                log += of_value
            in_noise += of_noise
            if self._position:
                in_position += self._signed[:, block] @ slope
            if a is not None and d is not None:
                in_slope += self.members[:, block] @ (slope * d)
                slope *= a
        gradient = np.empty_like(x)
        gradient[: self.n] = self._incidence @ room.slope
        log_prior = self._prior(x, noise, in_noise, gradient, value=value)
        if self._position:
            gradient[self._position] += in_position
        if self.basis is not None:
            gradient[self._slopes] += self.basis.T @ in_slope
        return (log + log_prior if value else None), gradient

    def _filled(
        self, room: _Room, block: slice, slope: Floats, eta: Floats | None, noise: Floats, *, value: bool
    ) -> tuple[Floats, Floats]:
        """Fill in the slopes of a block; sums of its log likelihoods (if ``value``), and of what the noise needs."""
        times = self.cells.times[block]
        if isinstance(self.likelihood, Probabilities):
            terms = self.likelihood.terms(np.asarray(eta), noise, block)
            slope[:] = terms.slope
            return times @ terms.value, times @ terms.in_noise
        rows = block.stop - block.start
        s = room.s[:rows]
        k = room.k[:rows]
        if eta is None:
            np.take(room.winner, self.cells.winner[block], axis=0, out=slope, mode="clip")
            np.take(room.loser, self._loser[block], axis=0, out=s, mode="clip")
            s += slope
            np.divide(slope, s, out=s)
            if self.model.lapse:
                np.take(room.lapsed, self._loser[block], axis=0, out=k, mode="clip")
                k += slope
                np.divide(slope, k, out=k)
        else:
            ratio = np.exp(np.minimum(-eta, 2 * _FAR))
            np.divide(1.0, 1.0 + ratio, out=s)
            np.divide(1.0, 1.0 + noise / (2 - noise) * ratio, out=k)
        if self.model.lapse:
            np.subtract(k, s, out=slope)
            return times @ np.log(s / k) if value else _NOTHING, times @ k
        np.subtract(1.0, s, out=slope)
        if not value:
            return _NOTHING, _NOTHING
        return times @ (np.log(s) if eta is None else scipy.special.log_expit(eta)), _NOTHING

    def _prior(self, x: Floats, noise: Floats, in_noise: Floats, gradient: Floats, *, value: bool) -> Floats:
        """Add the priors to the gradient; return their log density with the Jacobians of u and t (if ``value``)."""
        theta = x[: self.n]
        log = _NOTHING
        if self.model.prior_sd is None:
            squares = np.einsum("nc,nc->c", theta, theta)
            t = x[self.row["t"]]
            of_t, gradient[self.row["t"]] = self.likelihood.spread_prior(t, squares, self.n)
            variance = np.exp(2 * t)
            log = of_t - 0.5 * squares / variance
            gradient[: self.n] -= theta / variance
        else:
            pull = theta * self.prior_precision(x)
            gradient[: self.n] -= pull
            if value:
                log = -0.5 * np.einsum("nc,nc->c", theta, pull)
        if self.noise is not None:
            if self.model.lapse:
                in_noise = (1 - noise) * (self._total - in_noise / (1 - noise / 2))
                if value:
                    log = log + self._total * np.log1p(-noise / 2)
            at = self.row[self.noise]
            of_noise, gradient[at] = self.likelihood.noise_prior(x[at], in_noise, value=value)
            log = log + of_noise
        if self.linear:
            linear = x[self.linear]
            gradient[self.linear] = -linear / self._linear_variance
            if value:
                log = log - 0.5 * (np.square(linear) / self._linear_variance).sum(axis=0)
        return log

    # The mode of scores, position effects and slopes, given noise and spread

    def prior_precision(self, x: Floats) -> float:
        """That of the scores at one position."""
        sd = self.model.prior_sd
        if sd is None:
            sd = float(np.exp(x[self.row["t"], 0]))
        return 1 / sd**2

    @property
    def mode_rows(self) -> Ints:
        """The rows of what :meth:`conditional_mode` finds: scores, position effects and slopes."""
        return np.append(np.arange(self.n), self.linear).astype(np.intp)

    def conditional_mode(self, x: Floats) -> Floats:
        """The most probable scores, position effects and slopes with the noise and the spread of ``x``, by Newton."""
        x = x.copy()
        rows = self.mode_rows
        for _ in range(_MODE_STEPS):
            _, gradient = self(x, value=False)
            step = self.curvature(x).solve(gradient[rows, 0], tolerance=1e-3)
            largest = np.abs(step).max()
            x[rows, 0] += step * min(1.0, 2.0 / max(largest, 1e-12))
            if largest < 1e-4:
                break
        return x

    def curvature(self, x: Floats) -> Curvature:
        """The expected information at one position (a single column)."""
        eta, d, slope = self.predictors(x)
        noise = float(self.link(x)[0][0])
        weight = self.cells.times * self.likelihood.information(eta[:, 0], noise)
        columns = self.columns
        if slope is not None and self.basis is not None:
            columns = np.concatenate([columns, self.basis[self._judge].T * d[:, 0]])
        prior = np.full(self.n, self.prior_precision(x))
        of_cell = None if slope is None else slope[:, 0]
        return Curvature(self._incidence, self.cells, weight, of_cell, columns, prior, self.linear_sd**-2)


class Curvature(Precision):
    """The expected information of scores, position effects and slopes at one position."""

    def __init__(self, incidence: scipy.sparse.csr_array, *rest: Any) -> None:
        super().__init__(*rest)
        self._incidence = incidence  # which scores a cell compares, times how often

    def solve(self, right: Floats, tolerance: float) -> Floats:
        """By conjugate gradients; ``right`` is for the scores alone, or for all."""
        from scipy.sparse.linalg import LinearOperator, cg

        n = self.n
        size = len(right)
        columns = self.columns[: size - n]
        prior = self.linear_prior[: size - n]
        of_one = self.weight / np.maximum(self.cells.times, 1e-300)
        counted = columns * self.cells.times

        def product(v: Floats) -> Floats:
            v = v.ravel()
            d = v[self.cells.winner] - v[self.cells.loser]
            if self.slope is not None:
                d = self.slope * d
            d = of_one * (d + v[n:] @ columns)
            of_linear = counted @ d + v[n:] * prior
            if self.slope is not None:
                d = self.slope * d
            return np.append(self._incidence @ d + self.prior * v[:n], of_linear)

        scale = 1 / np.append(self.diagonal, self.of_linear()[: size - n])
        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        precondition = LinearOperator((size, size), matvec=lambda v: scale * v.ravel(), dtype=np.float64)
        solution, _ = cg(operator, right, rtol=tolerance, maxiter=500, M=precondition)
        return solution
