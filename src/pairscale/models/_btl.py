"""The Bradley–Terry–Luce posterior: its density, its mode given the judge, and coordinates in which it is round.

``theta_raw ~ N(0, tau²)``, ``P(A wins) = (1 - eps) logistic(theta_A - theta_B + b) + eps / 2``. The judge's parameters
are sampled as ``u = logit(eps)``, ``b`` and ``t = log(tau)``; each is there only when the variant has it.

A larger lapse rate goes with a wider scale of all abilities, and a position effect shifts abilities that stood first
more often. :class:`Coordinates` takes both out, so that the chains see a density that is close to a unit normal; it is
a change of variables with its exact Jacobian, so the draws are exact however good it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, log_expit

from pairscale.models._counts import Floats, Ints
from pairscale.pairs._edges import count_cells

__all__ = ["BTLDensity", "Cells", "Coordinates", "Model", "count_outcomes"]

LAPSE_PRIOR = (2.0, 20.0)
POSITION_SD = 0.3
LEARNED_SCALE = 2.5
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Model:
    """Which parameters the judge has.

    Attributes:
        lapse: ``eps ~ Beta(2, 20)``.
        position: ``b ~ N(0, 0.3)``.
        prior_sd: of the abilities; None when it is learned, ``tau ~ half-normal(2.5)``.
    """

    lapse: bool
    position: bool
    prior_sd: float | None = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """The judge's parameters, in the order of the rows behind the abilities."""
        present = (("u", self.lapse), ("b", self.position), ("t", self.prior_sd is None))
        return tuple(name for name, there in present if there)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Outcomes counted: who beat whom, standing where, how often.

    Attributes:
        winner: index of the winner.
        loser: index of the loser.
        sign: +1 when the winner stood first, -1 when second.
        times: how often.
        n_items: how many items there are.
    """

    winner: Ints
    loser: Ints
    sign: Floats
    times: Floats
    n_items: int


def count_outcomes(first: Ints, second: Ints, first_won: pl.Series, n_items: int, *, position: bool) -> Cells:
    """Count outcomes; without a position effect, where the winner stood does not matter."""
    won = first_won.to_numpy()
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    place = won.astype(np.int64) if position else np.ones_like(winner)
    coded, lost, times = count_cells(winner * 2 + place, loser, n_items)
    return Cells(coded // 2, lost, np.where(coded % 2 == 1, 1.0, -1.0), times.astype(np.float64), n_items)


class BTLDensity:
    """Log density and gradient for any number of chains at once.

    Columns are chains; the rows are the abilities and then the judge's parameters (``Model.names``).
    """

    def __init__(self, cells: Cells, model: Model) -> None:
        self.cells, self.model, self.n = cells, model, cells.n_items
        self.row = {name: self.n + at for at, name in enumerate(model.names)}
        self.size = self.n + len(self.row)
        k = len(cells.winner)
        index = np.concatenate([np.arange(k), np.arange(k)])
        values = np.concatenate([np.ones(k), -np.ones(k)])
        self._incidence = sparse.csr_array(
            (values, (np.concatenate([cells.winner, cells.loser]), index)), shape=(self.n, k)
        )
        self._room: tuple[Floats, Floats] | None = None
        self._blocks = [slice(at, min(at + _BLOCK, k)) for at in range(0, k, _BLOCK)]

    def eps(self, x: Floats) -> Floats:
        """The lapse rate of each chain; zero when the model has none."""
        return np.asarray(expit(x[self.row["u"]])) if self.model.lapse else np.zeros(x.shape[1])

    def __call__(self, x: Floats, *, value: bool) -> tuple[Floats | None, Floats]:
        """The log density of each column (up to a constant, when ``value``), and its gradient."""
        eps, b = self.eps(x), self._b(x)
        chains = x.shape[1]
        slope = np.empty((len(self.cells.winner), chains))  # of each cell's log likelihood in its difference
        likelihood, in_eps = np.zeros(chains), np.zeros(chains)
        with np.errstate(over="ignore"):
            for block in self._blocks:
                part, of_eps = self._cell_block(x, block, eps, b, slope[block], value=value)
                likelihood += part
                in_eps += of_eps
        gradient = np.empty_like(x)
        gradient[: self.n] = self._incidence @ slope
        log_prior = self._prior(x, eps, in_eps, gradient)
        if self.model.position:
            gradient[self.row["b"]] += self.cells.sign @ slope
        return (likelihood + log_prior if value else None), gradient

    def _cell_block(
        self, x: Floats, block: slice, eps: Floats, b: Floats | None, slope: Floats, *, value: bool
    ) -> tuple[Floats, Floats]:
        cells = self.cells
        times = cells.times[block, None]
        rows = block.stop - block.start
        d, p = (buffer[:rows, : x.shape[1]] for buffer in self._buffers(x.shape[1]))
        theta = x[: self.n]
        np.take(theta, cells.loser[block], axis=0, out=d, mode="clip")  # exp wants the negative difference
        np.take(theta, cells.winner[block], axis=0, out=p, mode="clip")
        d -= p
        if b is not None:
            np.multiply(cells.sign[block, None], b, out=p)
            d -= p
        nothing = np.zeros(x.shape[1])
        if not self.model.lapse:
            part = np.asarray(times.T @ log_expit(-d))[0] if value else nothing
            np.exp(d, out=d)
            np.divide(d, 1 + d, out=slope, where=np.isfinite(d))
            slope[~np.isfinite(d)] = 1.0
            slope *= times
            return part, nothing
        np.exp(d, out=d)
        d += 1
        s = np.reciprocal(d, out=d)
        np.multiply(s, 1 - eps, out=p)
        p += eps / 2
        part = np.asarray(times.T @ np.log(p))[0] if value else nothing
        np.divide(times, p, out=p)
        np.subtract(0.5, s, out=slope)
        in_eps = np.einsum("kc,kc->c", slope, p)
        np.subtract(1.0, s, out=slope)
        slope *= s
        slope *= p
        slope *= 1 - eps
        return part, in_eps

    def _buffers(self, chains: int) -> tuple[Floats, Floats]:
        """Room for one block: to ask the system for it again and again would take longer than the arithmetic."""
        if self._room is None or self._room[0].shape[1] != chains:
            self._room = (np.empty((_BLOCK, chains)), np.empty((_BLOCK, chains)))
        return self._room

    def _b(self, x: Floats) -> Floats | None:
        return x[self.row["b"]] if self.model.position else None

    def _prior(self, x: Floats, eps: Floats, in_eps: Floats, gradient: Floats) -> Floats:
        """Add the priors to the gradient, and return their log density (with the Jacobians of u and t)."""
        theta = x[: self.n]
        squares = np.einsum("nc,nc->c", theta, theta)
        if self.model.prior_sd is None:
            t = x[self.row["t"]]
            variance = np.exp(2 * t)
            log = -self.n * t - 0.5 * squares / variance - 0.5 * variance / LEARNED_SCALE**2 + t
            gradient[self.row["t"]] = -self.n + squares / variance - variance / LEARNED_SCALE**2 + 1
        else:
            variance = np.full(x.shape[1], self.model.prior_sd**2)
            log = -0.5 * squares / variance
        gradient[: self.n] -= theta / variance
        if self.model.lapse:
            alpha, beta = LAPSE_PRIOR
            log = log + alpha * log_expit(x[self.row["u"]]) + beta * log_expit(-x[self.row["u"]])
            gradient[self.row["u"]] = in_eps * eps * (1 - eps) + alpha * (1 - eps) - beta * eps
        if self.model.position:
            b = x[self.row["b"]]
            log = log - 0.5 * (b / POSITION_SD) ** 2
            gradient[self.row["b"]] = -b / POSITION_SD**2
        return np.asarray(log)

    # The mode of the abilities and the position, given the lapse rate and the scale

    def information(self, x: Floats) -> Floats:
        """The expected information of each cell at one position (a single column)."""
        eps, b = self.eps(x)[0], self._b(x)
        d = x[self.cells.winner, 0] - x[self.cells.loser, 0]
        if b is not None:
            d = d + self.cells.sign * b[0]
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

        def product(v: Floats) -> Floats:
            v = v.ravel()
            d = weight * (v[cells.winner] - v[cells.loser] + (cells.sign * v[n] if with_b else 0.0))
            theta = self._incidence @ d + prior * v[:n]
            return np.append(theta, cells.sign @ d + v[n] / POSITION_SD**2) if with_b else theta

        size = len(right)
        scale = 1 / (np.append(diagonal, of_b) if with_b else diagonal)
        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        precondition = LinearOperator((size, size), matvec=lambda v: scale * v.ravel(), dtype=np.float64)
        solution, _ = cg(operator, right, rtol=tolerance, maxiter=500, M=precondition)
        return np.asarray(solution)


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """A change of variables: ``theta = c(z) · (center + spread · z) + shift · (b - b0)``.

    ``c = exp(kappa_u (eps - eps0) + kappa_t (t - t0))``: all abilities widen together. The Jacobian is ``n log c``.

    Attributes:
        posterior: the density in its own variables.
        center: a position (one column): the conditional mode, and the judge's parameters around which it was taken.
        spread: per row, the scale of z.
        shift: how the abilities move with b.
        kappa: how the logarithm of the scale moves with eps and with t.
    """

    posterior: BTLDensity
    center: Floats
    spread: Floats
    shift: Floats
    kappa: dict[str, float]

    def _log_scale(self, x: Floats) -> Floats:
        row, log = self.posterior.row, np.zeros(x.shape[1])
        if "u" in row:
            log = log + self.kappa["u"] * (expit(x[row["u"]]) - expit(self.center[row["u"]]))
        if "t" in row:
            log = log + self.kappa["t"] * (x[row["t"]] - self.center[row["t"]])
        return np.asarray(log)

    def _moved(self, x: Floats) -> Floats | float:
        row = self.posterior.row
        return self.shift[:, None] * (x[row["b"]] - self.center[row["b"]]) if "b" in row else 0.0

    def to_x(self, z: Floats) -> Floats:
        """From z to the abilities and the judge's parameters."""
        x = self.center + self.spread[:, None] * z
        n = self.posterior.n
        x[:n] *= np.exp(self._log_scale(x))
        x[:n] += self._moved(x)
        return x

    def to_z(self, x: Floats) -> Floats:
        """The way back."""
        n = self.posterior.n
        y = x.copy()
        y[:n] = (x[:n] - self._moved(x)) / np.exp(self._log_scale(x))
        return (y - self.center) / self.spread[:, None]

    def __call__(self, z: Floats, *, value: bool) -> tuple[Floats | None, Floats]:
        """The log density of z and its gradient."""
        n, row = self.posterior.n, self.posterior.row
        x = self.center + self.spread[:, None] * z
        log_scale = self._log_scale(x)
        scale = np.exp(log_scale)
        widened = x[:n] * scale
        x[:n] = widened + self._moved(x)
        density, out = self.posterior(x, value=value)
        theta = out[:n]
        if "u" in row or "t" in row:
            along = np.einsum("nc,nc->c", theta, widened) + n
            if "u" in row:
                eps = expit(x[row["u"]])
                out[row["u"]] += eps * (1 - eps) * self.kappa["u"] * along
            if "t" in row:
                out[row["t"]] += self.kappa["t"] * along
        if "b" in row:
            out[row["b"]] += self.shift @ theta
        theta *= scale
        out *= self.spread[:, None]
        return (None if density is None else density + n * log_scale), out

    @classmethod
    def around(cls, posterior: BTLDensity, x: Floats, spread: dict[str, float], kappa: dict[str, float]) -> Coordinates:
        """Coordinates around the conditional mode at the judge's parameters of ``x`` (one column).

        Args:
            posterior: the density.
            x: where to start looking for the mode.
            spread: the scale of each of the judge's parameters; estimated when it is missing.
            kappa: how the scale of the abilities moves; estimated when it is missing.
        """
        center = posterior.conditional_mode(x)
        diagonal, of_b, _, weight = posterior.precision(center)
        shift = np.zeros(posterior.n)
        guess = {"u": 0.5, "b": of_b**-0.5, "t": 0.1}
        if "b" in posterior.row:
            cells = posterior.cells
            signed = weight * cells.sign
            column: Floats = np.bincount(cells.winner, signed, posterior.n).astype(np.float64)
            column -= np.bincount(cells.loser, signed, posterior.n)
            shift = posterior.solve(center, -column, tolerance=1e-4)
            guess["b"] = max(of_b + float(column @ shift), POSITION_SD**-2) ** -0.5
        found = cls(posterior, center, np.ones(posterior.size), shift, {})
        of_judge = np.array([(guess | spread)[name] for name in posterior.row])
        missing = {
            name: found._slope_of_scale(name) for name in ("u", "t") if name in posterior.row and name not in kappa
        }
        return replace(found, spread=np.concatenate([diagonal**-0.5, of_judge]), kappa=kappa | missing)

    def _slope_of_scale(self, name: str) -> float:
        """How the logarithm of the spread of the abilities moves with eps or t, by differences between modes."""
        posterior, at = self.posterior, []
        for change in (-0.3, 0.3):
            x = self.center.copy()
            x[posterior.row[name]] += change
            x = posterior.conditional_mode(x, steps=8)
            diagonal, *_ = posterior.precision(x)
            size = 0.5 * np.log(np.sum(x[: posterior.n] ** 2) + np.sum(1 / diagonal))
            value = x[posterior.row[name], 0]
            at.append((float(expit(value)) if name == "u" else float(value), float(size)))
        return (at[1][1] - at[0][1]) / (at[1][0] - at[0][0])
