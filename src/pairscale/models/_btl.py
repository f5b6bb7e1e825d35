"""The Bradley–Terry–Luce posterior: its density, and its mode given the judge.

``theta_raw ~ N(0, tau²)``, ``P(A wins) = (1 - eps) logistic(theta_A - theta_B + b) + eps / 2``. The judge's parameters
are sampled as ``u = logit(eps)``, ``b`` and ``t = log(tau)``; each is there only when the variant has it.

With something known of the items beforehand, x, ``theta_raw ~ N(g x, tau²)``. The rows of the abilities then hold what
they have beyond it, ``r = theta_raw - g x``, so that their prior is the same as without.
"""

from __future__ import annotations

import numpy as np
import scipy

from pairscale.core.arrays import Floats, Ints
from pairscale.models._cells import Cells, JudgeParameters, count_outcomes
from pairscale.models.prior_mode import SLOPE_SD

__all__ = ["BTLDensity", "Cells", "JudgeParameters", "count_outcomes"]

LAPSE_PRIOR = (2.0, 20.0)
POSITION_SD = 0.3
LEARNED_SCALE = 2.5
_BLOCK = 1024
_FAR = 300.0  # exp(2 * 300) is finite
_NOTHING = np.zeros(1)


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

    def look_up(self, theta: Floats, x: Floats, eps: Floats) -> None:
        """Fill the tables: exp of the abilities, with b for losers, and that times ``eps / (2 - eps)``."""
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


class BTLDensity:
    """Log density and gradient for any number of chains at once.

    Columns are chains; the rows are the abilities (beyond what was known beforehand) and then the judge's parameters
    (``JudgeParameters.names``).

    With W = exp(ability of the winner), L that of the loser (both with b where they stood first), the chance of a cell
    is ``p = (1 - eps / 2) s / k``, where ``s = W / (W + L)``, ``k = W / (W + g L)`` and ``g = eps / (2 - eps)``. The
    slope of log p in the difference is ``k - s`` and in u it is ``(1 - eps) - k (1 - eps) / (1 - eps / 2)``. So a
    gradient takes one exponential an item, not one a cell, and two divisions a cell.
    """

    def __init__(self, cells: Cells, model: JudgeParameters) -> None:
        self.cells, self.model, self.n = cells, model, cells.n_items
        self.row = {name: self.n + at for at, name in enumerate(model.names)}
        self.known = np.zeros(0) if model.known is None else np.array(model.known, dtype=np.float64)
        self.size = self.n + len(self.row)
        k = len(cells.winner)
        index = np.concatenate([np.arange(k), np.arange(k)])
        sides = (np.concatenate([cells.winner, cells.loser]), index)
        values = np.concatenate([cells.times, -cells.times])
        self._incidence = scipy.sparse.csr_array((values, sides), shape=(self.n, k))
        self._signed, self._total = cells.sign * cells.times, float(cells.times.sum())
        # What b and g add to the difference of a cell per unit, and the precision of their priors.
        self.linear: dict[str, Floats] = {"b": cells.sign} if model.position else {}
        if len(self.known):
            self.linear["g"] = self.known[cells.winner] - self.known[cells.loser]
        self.linear_precision = {"b": POSITION_SD**-2, "g": SLOPE_SD**-2}
        # Losers are looked up in one of two tables: divided by exp(b) where the winner stood first, else times it.
        self._loser = cells.loser + (np.where(cells.sign > 0, 0, self.n) if model.position else 0)
        self._blocks = [slice(at, min(at + _BLOCK, k)) for at in range(0, k, _BLOCK)]
        self._room = _Room(self, 0)

    def eps(self, x: Floats) -> Floats:
        """The lapse rate of each chain; zero when the model has none."""
        return np.asarray(scipy.special.expit(x[self.row["u"]])) if self.model.lapse else np.zeros(x.shape[1])

    def abilities(self, x: Floats) -> Floats:
        """The abilities of each column."""
        return x[: self.n] + np.outer(self.known, x[self.row["g"]]) if "g" in self.row else x[: self.n]

    def __call__(self, x: Floats, *, value: bool) -> tuple[Floats | None, Floats]:
        """The log density of each column (up to a constant, when ``value``), and its gradient."""
        room = self._room
        if room.chains != x.shape[1]:
            room = self._room = _Room(self, x.shape[1])
        eps = self.eps(x)
        in_k = np.zeros(room.chains)  # the sum of k over all comparisons
        likelihood, in_b = np.zeros(room.chains), np.zeros(room.chains)
        theta = self.abilities(x)
        # Far out, where exp of an ability would overflow, each difference is taken first; so it is with NaN.
        near = bool(max(theta.max(), -theta.min()) + np.abs(x[self.n :]).max(initial=0.0) < _FAR)
        if near:
            room.look_up(theta, x, eps)
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
                self._far(theta, x, block, eps, s, k)
            if value:
                likelihood += self._log_likelihood(theta, x, block, s, k, near=near)
            if self.model.lapse:
                in_k += self.cells.times[block] @ k
                np.subtract(k, s, out=slope)
            else:
                np.subtract(1.0, s, out=slope)
            if self.model.position:
                in_b += self._signed[block] @ slope
        gradient = np.empty_like(x)
        gradient[: self.n] = self._incidence @ room.slope
        in_g = self.known @ gradient[: self.n] if "g" in self.row else None
        log_prior = self._prior(x, eps, in_k, gradient, value=value)
        if self.model.position:
            gradient[self.row["b"]] += in_b
        if in_g is not None:
            gradient[self.row["g"]] += in_g
        return (likelihood + self._total * np.log1p(-eps / 2) + log_prior if value else None), gradient

    def _difference(self, theta: Floats, x: Floats, block: slice) -> Floats:
        """How far the loser stands above the winner, b included."""
        cells = self.cells
        d = theta[cells.loser[block]] - theta[cells.winner[block]]
        return d - cells.sign[block, None] * x[self.row["b"]] if self.model.position else d

    def _far(self, theta: Floats, x: Floats, block: slice, eps: Floats, s: Floats, k: Floats) -> None:
        ratio = np.exp(np.minimum(self._difference(theta, x, block), 2 * _FAR))
        np.divide(1.0, 1.0 + ratio, out=s)
        np.divide(1.0, 1.0 + eps / (2 - eps) * ratio, out=k)

    def _log_likelihood(self, theta: Floats, x: Floats, block: slice, s: Floats, k: Floats, *, near: bool) -> Floats:
        """Without the constant ``log(1 - eps / 2)`` of each comparison."""
        times = self.cells.times[block]
        if self.model.lapse:
            return np.asarray(times @ np.log(s / k))
        return np.asarray(times @ (np.log(s) if near else scipy.special.log_expit(-self._difference(theta, x, block))))

    def _prior(self, x: Floats, eps: Floats, in_k: Floats, gradient: Floats, *, value: bool) -> Floats:
        """Add the priors to the gradient; return their log density with the Jacobians of u and t (if ``value``)."""
        theta = x[: self.n]
        learned = self.model.prior_sd is None
        squares = np.einsum("nc,nc->c", theta, theta) if value or learned else _NOTHING
        log = _NOTHING
        if self.model.prior_sd is None:
            t = x[self.row["t"]]
            variance = np.exp(2 * t)
            if value:
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
                log = (
                    log
                    + alpha * scipy.special.log_expit(x[self.row["u"]])
                    + beta * scipy.special.log_expit(-x[self.row["u"]])
                )
        for name, sd in (("b", POSITION_SD), ("g", SLOPE_SD)):
            if name in self.row:
                linear = x[self.row[name]]
                gradient[self.row[name]] = -linear / sd**2
                if value:
                    log = log - 0.5 * (linear / sd) ** 2
        return np.asarray(log)

    # The mode of the abilities, the position and the slope, given the lapse rate and the scale

    def information(self, x: Floats) -> Floats:
        """The expected information of each cell at one position (a single column)."""
        eps = self.eps(x)[0]
        d = -self._difference(self.abilities(x), x, slice(None))[:, 0]
        s = scipy.special.expit(d)
        p = (1 - eps) * s + eps / 2
        return np.asarray(self.cells.times * ((1 - eps) * s * (1 - s)) ** 2 / np.maximum(p * (1 - p), 1e-300))

    def precision(self, x: Floats) -> tuple[Floats, dict[str, float], float, Floats]:
        """Diagonal precision of the abilities, that of b and g, the prior's, and the information of the cells."""
        weight = self.information(x)
        tau = np.exp(x[self.row["t"], 0]) if self.model.prior_sd is None else self.model.prior_sd
        prior = float(1 / tau**2)
        cells = self.cells
        diagonal = np.bincount(cells.winner, weight, self.n) + np.bincount(cells.loser, weight, self.n) + prior
        of_linear = {
            name: float((weight * np.square(column)).sum()) + self.linear_precision[name]
            for name, column in self.linear.items()
        }
        return np.asarray(diagonal, dtype=np.float64), of_linear, prior, weight

    @property
    def mode_rows(self) -> Ints:
        """The rows of what :meth:`conditional_mode` finds: the abilities, b and g, as far as they are there."""
        return np.append(np.arange(self.n), [self.row[name] for name in self.linear]).astype(np.intp)

    def conditional_mode(self, x: Floats, steps: int = 50) -> Floats:
        """The most probable abilities (and b and g) with the lapse rate and the scale of ``x``, by Newton steps."""
        x = x.copy()
        rows = self.mode_rows
        for _ in range(steps):
            _, gradient = self(x, value=False)
            step = self.solve(x, gradient[rows, 0], tolerance=1e-3)
            largest = float(np.abs(step).max())
            x[rows, 0] += step * min(1.0, 2.0 / max(largest, 1e-12))
            if largest < 1e-4:
                break
        return x

    def solve(self, x: Floats, right: Floats, tolerance: float) -> Floats:
        """Solve the expected information of (theta[, b, g]) at ``x`` against ``right``, by conjugate gradients.

        Args:
            x: Where.
            right: For the abilities alone, or for all of :attr:`mode_rows`.
            tolerance: Of the solution, relative.
        """
        diagonal, of_linear, prior, weight = self.precision(x)
        cells, n = self.cells, self.n
        linear = list(self.linear) if len(right) > n else []
        of_one = weight / np.maximum(cells.times, 1e-300)
        sds = {"b": POSITION_SD, "g": SLOPE_SD}
        per_unit = [(self.linear[name], sds[name]) for name in linear]

        def product(v: Floats) -> Floats:
            v = v.ravel()
            d = v[cells.winner] - v[cells.loser]
            for at, (column, _) in enumerate(per_unit):
                d = d + column * v[n + at]
            d = of_one * d
            theta = self._incidence @ d + prior * v[:n]
            more = [(column * cells.times) @ d + v[n + at] / sd**2 for at, (column, sd) in enumerate(per_unit)]
            return np.append(theta, more)

        size = len(right)
        scale = 1 / np.append(diagonal, [of_linear[name] for name in linear])
        from scipy.sparse.linalg import LinearOperator, cg

        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        precondition = LinearOperator((size, size), matvec=lambda v: scale * v.ravel(), dtype=np.float64)
        solution, _ = cg(operator, right, rtol=tolerance, maxiter=500, M=precondition)
        return np.asarray(solution)
