"""The Bradley–Terry–Luce posterior: its density, and its mode given the judge.

``theta_raw ~ N(0, tau²)``, ``P(A wins) = (1 - eps) logistic(theta_A - theta_B + b) + eps / 2``. The judge's parameters
are sampled as ``u = logit(eps)``, ``b`` and ``t = log(tau)``; each is there only when the variant has it.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, log_expit

from pairscale.core.arrays import Floats
from pairscale.models._cells import Cells, JudgeParameters, count_outcomes

__all__ = ["BTLDensity", "Cells", "JudgeParameters", "count_outcomes"]

LAPSE_PRIOR = (2.0, 20.0)
POSITION_SD = 0.3
LEARNED_SCALE = 2.5
_BLOCK = 1024
_FAR = 300.0  # exp(2 * 300) is finite


class _Room:
    """Room to compute in: to ask the system for it again and again would take longer than the arithmetic."""

    def __init__(self, density: BTLDensity, chains: int) -> None:
        self.chains = chains
        self._row, self._n = density.row, density.n
        k, tables = len(density.cells.winner), 2 if density.model.position else 1
        self.slope = np.empty((k, chains))
        self.s, self.k = np.empty((_BLOCK, chains)), np.empty((_BLOCK, chains))
        self.winner = np.empty((self._n, chains))
        self.loser = np.empty((tables * self._n, chains))
        self.lapsed = np.empty((tables * self._n if density.model.lapse else 0, chains))

    def look_up(self, x: Floats, eps: Floats) -> None:
        """Fill the tables: exp of the abilities, with b for losers, and that times ``eps / (2 - eps)``."""
        n = self._n
        np.exp(x[:n], out=self.winner)
        if "b" in self._row:
            b = np.exp(x[self._row["b"]])
            np.divide(self.winner, b, out=self.loser[:n])
            np.multiply(self.winner, b, out=self.loser[n:])
        else:
            self.loser[:] = self.winner
        if "u" in self._row:
            np.multiply(self.loser, eps / (2 - eps), out=self.lapsed)


class BTLDensity:
    """Log density and gradient for any number of chains at once.

    Columns are chains; the rows are the abilities and then the judge's parameters (``JudgeParameters.names``).

    With W = exp(ability of the winner), L that of the loser (both with b where they stood first), the chance of a cell
    is ``p = (1 - eps / 2) s / k``, where ``s = W / (W + L)``, ``k = W / (W + g L)`` and ``g = eps / (2 - eps)``. The
    slope of log p in the difference is ``k - s`` and in u it is ``(1 - eps) - k (1 - eps) / (1 - eps / 2)``. So a
    gradient takes one exponential an item, not one a cell, and two divisions a cell.
    """

    def __init__(self, cells: Cells, model: JudgeParameters) -> None:
        self.cells, self.model, self.n = cells, model, cells.n_items
        self.row = {name: self.n + at for at, name in enumerate(model.names)}
        self.size = self.n + len(self.row)
        k = len(cells.winner)
        index = np.concatenate([np.arange(k), np.arange(k)])
        sides = (np.concatenate([cells.winner, cells.loser]), index)
        values = np.concatenate([cells.times, -cells.times])
        self._incidence = sparse.csr_array((values, sides), shape=(self.n, k))
        self._signed, self._total = cells.sign * cells.times, float(cells.times.sum())
        # Losers are looked up in one of two tables: divided by exp(b) where the winner stood first, else times it.
        self._loser = cells.loser + (np.where(cells.sign > 0, 0, self.n) if model.position else 0)
        self._blocks = [slice(at, min(at + _BLOCK, k)) for at in range(0, k, _BLOCK)]
        self._room = _Room(self, 0)

    def eps(self, x: Floats) -> Floats:
        """The lapse rate of each chain; zero when the model has none."""
        return np.asarray(expit(x[self.row["u"]])) if self.model.lapse else np.zeros(x.shape[1])

    def __call__(self, x: Floats, *, value: bool) -> tuple[Floats | None, Floats]:
        """The log density of each column (up to a constant, when ``value``), and its gradient."""
        room = self._room
        if room.chains != x.shape[1]:
            room = self._room = _Room(self, x.shape[1])
        eps = self.eps(x)
        in_k = np.zeros(room.chains)  # the sum of k over all comparisons
        likelihood, in_b = np.zeros(room.chains), np.zeros(room.chains)
        theta = x[: self.n]
        # Far out, where exp of an ability would overflow, each difference is taken first; so it is with NaN.
        near = bool(max(theta.max(), -theta.min()) + np.abs(x[self.n :]).max(initial=0.0) < _FAR)
        if near:
            room.look_up(x, eps)
        for block in self._blocks:
            rows = block.stop - block.start
            s, k, slope = room.s[:rows], room.k[:rows], room.slope[block]
            if near:
                np.take(room.winner, self.cells.winner[block], axis=0, out=slope, mode="clip")
                np.take(room.loser, self._loser[block], axis=0, out=s, mode="clip")
                s += slope
                np.divide(slope, s, out=s)
                if self.model.lapse:
                    np.take(room.lapsed, self._loser[block], axis=0, out=k, mode="clip")
                    k += slope
                    np.divide(slope, k, out=k)
            else:
                self._far(x, block, eps, s, k)
            if value:
                likelihood += self._log_likelihood(x, block, s, k, near=near)
            if self.model.lapse:
                in_k += self.cells.times[block] @ k
                np.subtract(k, s, out=slope)
            else:
                np.subtract(1.0, s, out=slope)
            if self.model.position:
                in_b += self._signed[block] @ slope
        gradient = np.empty_like(x)
        gradient[: self.n] = self._incidence @ room.slope
        log_prior = self._prior(x, eps, in_k, gradient, value=value)
        if self.model.position:
            gradient[self.row["b"]] += in_b
        return (likelihood + self._total * np.log1p(-eps / 2) + log_prior if value else None), gradient

    def _difference(self, x: Floats, block: slice) -> Floats:
        """How far the loser stands above the winner, b included."""
        cells = self.cells
        d = x[cells.loser[block]] - x[cells.winner[block]]
        return d - cells.sign[block, None] * x[self.row["b"]] if self.model.position else d

    def _far(self, x: Floats, block: slice, eps: Floats, s: Floats, k: Floats) -> None:
        ratio = np.exp(np.minimum(self._difference(x, block), 2 * _FAR))
        np.divide(1.0, 1.0 + ratio, out=s)
        np.divide(1.0, 1.0 + eps / (2 - eps) * ratio, out=k)

    def _log_likelihood(self, x: Floats, block: slice, s: Floats, k: Floats, *, near: bool) -> Floats:
        """Without the constant ``log(1 - eps / 2)`` of each comparison."""
        times = self.cells.times[block]
        if self.model.lapse:
            return np.asarray(times @ np.log(s / k))
        return np.asarray(times @ (np.log(s) if near else log_expit(-self._difference(x, block))))

    def _prior(self, x: Floats, eps: Floats, in_k: Floats, gradient: Floats, *, value: bool) -> Floats:
        """Add the priors to the gradient; return their log density with the Jacobians of u and t (if ``value``)."""
        theta = x[: self.n]
        learned = self.model.prior_sd is None
        squares = np.einsum("nc,nc->c", theta, theta) if value or learned else np.zeros(x.shape[1])
        if self.model.prior_sd is None:
            t = x[self.row["t"]]
            variance = np.exp(2 * t)
            log = -self.n * t - 0.5 * squares / variance - 0.5 * variance / LEARNED_SCALE**2 + t
            gradient[self.row["t"]] = -self.n + squares / variance - variance / LEARNED_SCALE**2 + 1
            gradient[: self.n] -= theta / variance
        else:
            precision = self.model.prior_sd**-2
            log = -0.5 * squares * precision
            gradient[: self.n] -= theta if precision == 1 else theta * precision
        if self.model.lapse:
            alpha, beta = LAPSE_PRIOR
            in_u = (1 - eps) * (self._total - in_k / (1 - eps / 2))
            gradient[self.row["u"]] = in_u + alpha * (1 - eps) - beta * eps
            if value:
                log = log + alpha * log_expit(x[self.row["u"]]) + beta * log_expit(-x[self.row["u"]])
        if self.model.position:
            b = x[self.row["b"]]
            log = log - 0.5 * (b / POSITION_SD) ** 2
            gradient[self.row["b"]] = -b / POSITION_SD**2
        return np.asarray(log)

    # The mode of the abilities and the position, given the lapse rate and the scale

    def information(self, x: Floats) -> Floats:
        """The expected information of each cell at one position (a single column)."""
        eps = self.eps(x)[0]
        d = -self._difference(x, slice(None))[:, 0]
        s = expit(d)
        p = (1 - eps) * s + eps / 2
        return np.asarray(self.cells.times * ((1 - eps) * s * (1 - s)) ** 2 / np.maximum(p * (1 - p), 1e-300))

    def precision(self, x: Floats) -> tuple[Floats, float, float, Floats]:
        """Diagonal precision of the abilities, that of b, the prior's, and the information of the cells."""
        weight = self.information(x)
        tau = np.exp(x[self.row["t"], 0]) if self.model.prior_sd is None else self.model.prior_sd
        prior = float(1 / tau**2)
        cells = self.cells
        diagonal = np.bincount(cells.winner, weight, self.n) + np.bincount(cells.loser, weight, self.n) + prior
        return np.asarray(diagonal, dtype=np.float64), float(weight.sum() + POSITION_SD**-2), prior, weight

    def conditional_mode(self, x: Floats, steps: int = 50) -> Floats:
        """The most probable abilities (and b) with the lapse rate and the scale of ``x``, by Newton steps."""
        x = x.copy()
        free = np.arange(self.n + 1 if self.model.position else self.n)
        rows = free if not self.model.position else np.append(free[:-1], self.row["b"])
        for _ in range(steps):
            _, gradient = self(x, value=False)
            step = self.solve(x, gradient[rows, 0], tolerance=1e-3)
            largest = float(np.abs(step).max())
            x[rows, 0] += step * min(1.0, 2.0 / max(largest, 1e-12))
            if largest < 1e-4:
                break
        return x

    def solve(self, x: Floats, right: Floats, tolerance: float) -> Floats:
        """Solve the expected information of (theta[, b]) at ``x`` against ``right``, by conjugate gradients."""
        diagonal, of_b, prior, weight = self.precision(x)
        cells, n = self.cells, self.n
        with_b = len(right) > n
        of_one = weight / np.maximum(cells.times, 1e-300)

        def product(v: Floats) -> Floats:
            v = v.ravel()
            d = of_one * (v[cells.winner] - v[cells.loser] + (cells.sign * v[n] if with_b else 0.0))
            theta = self._incidence @ d + prior * v[:n]
            return np.append(theta, self._signed @ d + v[n] / POSITION_SD**2) if with_b else theta

        size = len(right)
        scale = 1 / (np.append(diagonal, of_b) if with_b else diagonal)
        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        precondition = LinearOperator((size, size), matvec=lambda v: scale * v.ravel(), dtype=np.float64)
        solution, _ = cg(operator, right, rtol=tolerance, maxiter=500, M=precondition)
        return np.asarray(solution)
