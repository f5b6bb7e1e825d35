"""The Bradley–Terry–Luce posterior: its density, its mode given the judge, and coordinates in which it is round.

``theta_raw ~ N(0, tau²)``, ``P(A wins) = (1 - eps) logistic(theta_A - theta_B + b) + eps / 2``. The judge's parameters
are sampled as ``u = logit(eps)``, ``b`` and ``t = log(tau)``; each is there only when the variant has it.

A larger lapse rate goes with a wider scale of all abilities, and a position effect shifts abilities that stood first
more often. :class:`Coordinates` takes this out, so that the chains see a density that is close to a unit normal; it is
a change of variables with its exact Jacobian, so the draws are exact however good it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, log_expit

from pairscale.models._cells import Cells, Model, count_outcomes
from pairscale.models._counts import Floats

__all__ = ["BTLDensity", "Cells", "Coordinates", "Learned", "Model", "count_outcomes"]

LAPSE_PRIOR = (2.0, 20.0)
POSITION_SD = 0.3
LEARNED_SCALE = 2.5
_BLOCK = 1024
_KNEE = 0.05  # before there are draws
_LOW = -30.0  # from here down log(1 + exp(y)) is exp(y)
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

    Columns are chains; the rows are the abilities and then the judge's parameters (``Model.names``).

    With W = exp(ability of the winner), L that of the loser (both with b where they stood first), the chance of a cell
    is ``p = (1 - eps / 2) s / k``, where ``s = W / (W + L)``, ``k = W / (W + g L)`` and ``g = eps / (2 - eps)``. The
    slope of log p in the difference is ``k - s`` and in u it is ``(1 - eps) - k (1 - eps) / (1 - eps / 2)``. So a
    gradient takes one exponential an item, not one a cell, and two divisions a cell.
    """

    def __init__(self, cells: Cells, model: Model) -> None:
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
        of_one = weight / cells.times

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


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What draws teach about the shape of the posterior; it still holds with some more comparisons.

    Attributes:
        spread: the scale of each of the judge's parameters, u in the units of its knee.
        kappa: how the logarithm of the abilities' spread moves with eps and t.
        mix: how the abilities move with eps, in terms of ``Coordinates.basis``; one column, or none without eps.
        of_b: how b moves with eps.
        offset: how far the means of abilities and b lie from their conditional mode; zero for u and t.
        widen: per ability, the scale of z in units of its conditional spread; between that and the marginal one.
        knee: where odds of a lapse turn from logarithmic to linear.
    """

    spread: dict[str, float]
    kappa: dict[str, float]
    mix: Floats
    of_b: Floats
    offset: Floats
    widen: Floats
    knee: float


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """A change of variables, from z to the abilities and the judge's parameters.

    The abilities follow the judge: ``theta = c_t (center + c_u · spread · z + drift · (b', eps - eps0))``, where ``b'``
    is what b itself does not owe to eps, ``c_u = exp(kappa_u (eps - eps0))`` and ``c_t = exp(kappa_t (t - t0))``: their
    spread moves with eps, all of them with t. The odds of a lapse are ``knee · log(1 + exp(y))`` with y linear in z:
    close to zero like its logarithm, further up like eps itself, which is nearer to normal there. The Jacobian is
    ``n log c_u + n log c_t + log(du / dy)``.

    Attributes:
        posterior: the density in its own variables.
        center: a position (one column): where z is zero.
        spread: per row, the scale of z.
        basis: directions in which the abilities follow eps: the derivative of their mode, and the center.
        drift: how the abilities move with b and eps, those of them that there are; one column each.
        of_b: how b moves with eps.
        kappa: how the logarithm of the scale moves with eps and with t.
        knee: where odds of a lapse turn from logarithmic to linear.
    """

    posterior: BTLDensity
    center: Floats
    spread: Floats
    basis: Floats
    drift: Floats
    of_b: Floats
    kappa: dict[str, float]
    knee: float

    def to_x(self, z: Floats) -> Floats:
        """From z to the abilities and the judge's parameters."""
        return self._place(z)[0]

    def _place(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """The position, what of the abilities widens with eps (but for c_t), and y."""
        n, row = self.posterior.n, self.posterior.row
        x = self.spread[:, None] * z
        y = np.zeros(z.shape[1])
        if "u" in row:
            y = x[row["u"]] + self._to_y(self.center[row["u"]])
            x[row["u"]] = np.log(self.knee) + _log_softplus(y)
        if "t" in row:
            x[row["t"]] += self.center[row["t"]]
        moved = self._moved(x)
        deviation = x[:n]
        if "u" in row:
            deviation = deviation * np.exp(self.kappa["u"] * moved[0])
        if "b" in row:
            moved = np.concatenate([x[row["b"]][None], moved])
            x[row["b"]] += self.center[row["b"]] + self.of_b @ moved[1:]
        x[:n] = deviation + self.center[:n]
        if len(moved):
            x[:n] += self.drift @ moved
        if "t" in row:
            x[:n] *= np.exp(self._log_wide(x))
        return x, deviation, y

    def _moved(self, x: Floats) -> Floats:
        """How far eps is from the center; no row when there is no eps."""
        row = self.posterior.row
        if "u" not in row:
            return np.zeros((0, x.shape[1]))
        return np.asarray(expit(x[row["u"]]) - expit(self.center[row["u"]]))[None]

    def _log_wide(self, x: Floats) -> Floats:
        """How much wider all abilities are than at the center, because of t."""
        at = self.posterior.row["t"]
        return np.asarray(self.kappa["t"] * (x[at] - self.center[at]))

    def _to_y(self, u: Floats) -> Floats:
        ratio = np.exp(u - np.log(self.knee))
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(ratio > 1e-8, ratio + np.log(-np.expm1(-ratio)), u - np.log(self.knee)))

    def to_z(self, x: Floats) -> Floats:
        """The way back."""
        n, row = self.posterior.n, self.posterior.row
        z, moved = x - self.center, self._moved(x)
        z[:n] = x[:n]
        scale = np.exp(self.kappa["u"] * moved[0]) if "u" in row else 1.0
        if "u" in row:
            z[row["u"]] = self._to_y(x[row["u"]]) - self._to_y(self.center[row["u"]])
        if "b" in row:
            z[row["b"]] -= self.of_b @ moved
            moved = np.concatenate([z[row["b"]][None], moved])
        if "t" in row:
            z[:n] /= np.exp(self._log_wide(x))
        z[:n] -= self.center[:n]
        z[:n] -= self.drift @ moved
        z[:n] /= scale
        return z / self.spread[:, None]

    def __call__(self, z: Floats, *, value: bool) -> tuple[Floats | None, Floats]:
        """The log density of z and its gradient."""
        n, row = self.posterior.n, self.posterior.row
        x, deviation, y = self._place(z)
        density, out = self.posterior(x, value=value)
        theta = out[:n]
        log_scale, log_jacobian = np.zeros(z.shape[1]), np.zeros(z.shape[1])
        if "t" in row:
            out[row["t"]] += self.kappa["t"] * (np.einsum("nc,nc->c", theta, x[:n]) + n)
            log_scale = self._log_wide(x)
            theta *= np.exp(log_scale)
        along = self.drift.T @ theta  # in b and eps
        if "b" in row:
            of_b, along = along[0], along[1:] + self.of_b[:, None] * out[row["b"]]
            out[row["b"]] += of_b
        if "u" in row:
            eps, soft, rise = expit(x[row["u"]]), np.maximum(np.logaddexp(0.0, y), 1e-300), expit(y)
            in_eps = along[0] + self.kappa["u"] * (np.einsum("nc,nc->c", theta, deviation) + n)
            slope = np.where(y > _LOW, rise / soft, 1.0)  # du / dy
            out[row["u"]] = (out[row["u"]] + eps * (1 - eps) * in_eps) * slope + (1 - rise - slope)
            log_u = self.kappa["u"] * self._moved(x)[0]
            theta *= np.exp(log_u)
            log_scale, log_jacobian = log_scale + log_u, np.log(slope)
        out *= self.spread[:, None]
        return (None if density is None else density + n * log_scale + log_jacobian), out

    @classmethod
    def around(cls, posterior: BTLDensity, x: Floats, learned: Learned | None = None) -> Coordinates:
        """Coordinates around the conditional mode at the judge's parameters of ``x`` (one column).

        Args:
            posterior: the density.
            x: where to start looking for the mode.
            learned: what earlier draws taught, instead of estimates.
        """
        n, row = posterior.n, posterior.row
        mode = posterior.conditional_mode(x)
        diagonal, of_b, _, weight = posterior.precision(mode)
        spread = {"u": 0.5, "b": of_b**-0.5, "t": 0.1}
        shift: list[Floats] = []
        if "b" in row:
            cells = posterior.cells
            signed = weight * cells.sign
            column: Floats = np.bincount(cells.winner, signed, n).astype(np.float64)
            column -= np.bincount(cells.loser, signed, n)
            shift = [posterior.solve(mode, -column, tolerance=1e-4)]
            spread["b"] = max(of_b + float(column @ shift[0]), POSITION_SD**-2) ** -0.5
        knee = learned.knee if learned is not None else _KNEE
        if "u" in row:
            y = np.exp(mode[row["u"], 0]) / knee  # about
            spread["u"] = 0.5 * y / float(expit(y))
        follow = {name: _follow(posterior, mode, name) for name in ("u", "t") if name in row}
        kappa: dict[str, float] = {name: wider for name, (_, _, wider) in follow.items()}
        free = [follow["u"]] if "u" in row else []
        basis = np.stack([*(by for by, _, _ in free), mode[:n, 0]], axis=1)
        mix, b_too = np.eye(len(free) + 1, len(free)), np.array([by for _, by, _ in free])
        center, scale = mode.copy(), diagonal**-0.5
        if learned is not None:
            mix, b_too, spread, kappa = learned.mix, learned.of_b, spread | learned.spread, learned.kappa
            center[:, 0] += learned.offset
            scale = scale * learned.widen
        of_judge = np.array([spread[name] for name in row])
        drift = np.concatenate([np.reshape(shift, (len(shift), n)).T, basis @ mix], axis=1)
        return cls(posterior, center, np.concatenate([scale, of_judge]), basis, drift, b_too, kappa, knee)

    def learn(self, x: Floats) -> tuple[Floats, Learned]:
        """A center (one column) and the shape, from draws (parameters, draws): the mode is far from most of eps."""
        posterior, n, row = self.posterior, self.posterior.n, self.posterior.row
        mean = x.mean(axis=1, keepdims=True)
        moved = self._moved(x)
        moved -= moved.mean(axis=1, keepdims=True)

        def slopes(values: Floats, on: Floats) -> Floats:
            if not len(on):
                return np.zeros((*values.shape[:-1], 0))
            return np.asarray(np.linalg.lstsq(on.T, values.T, rcond=None)[0].T)

        theta = x[:n].copy()
        spread, kappa, knee, of_b = {}, {}, self.knee, np.zeros(len(moved))
        if "b" in row:
            b = x[row["b"]] - mean[row["b"]]
            of_b = slopes(b, moved)
            b -= of_b @ moved
            spread["b"] = float(max(b.std(), 1e-6))
        if "u" in row:
            knee = float(max(np.exp(x[row["u"]]).std(), 1e-6))
            spread["u"] = float(max(replace(self, knee=knee)._to_y(x[row["u"]]).std(), 1e-6))
        if "t" in row:
            t = x[row["t"]] - mean[row["t"]]
            spread["t"] = float(max(t.std(), 1e-6))
            both = np.concatenate([t[None], moved])
            kappa["t"] = float(slopes(_log_size(theta), both)[0])
            theta /= np.exp(kappa["t"] * t)
        if "b" in row:
            theta -= self.drift[:, :1] * b
        center = theta.mean(axis=1, keepdims=True)
        theta -= center
        scale = self.spread[:n, None]
        mix = np.linalg.lstsq(self.basis / scale, slopes(theta, moved) / scale, rcond=None)[0]
        theta -= self.basis @ mix @ moved
        theta /= posterior.precision(mean)[0][:, None] ** -0.5
        widen = np.clip(np.einsum("nd,nd->n", theta, theta) / theta.shape[1], 0.1, 100) ** 0.25
        if "u" in row:
            kappa["u"] = float(slopes(_log_size(theta), moved)[0])
        mode = posterior.conditional_mode(mean)
        mean[:n] = center
        offset = (mean - mode)[:, 0]  # zero for u and t, where the mode is taken
        return mode, Learned(spread, kappa, np.asarray(mix, np.float64), of_b, offset, widen, knee)


def _log_size(theta: Floats) -> Floats:
    """The logarithm of the length of each column, from its mean."""
    size = 0.5 * np.log(np.maximum(np.einsum("nd,nd->d", theta, theta), 1e-300))
    return np.asarray(size - size.mean())


def _log_softplus(y: Floats) -> Floats:
    return np.asarray(np.where(y > _LOW, np.log(np.maximum(np.logaddexp(0.0, y), 1e-300)), y))


def _follow(posterior: BTLDensity, mode: Floats, name: str) -> tuple[Floats, float, float]:
    """How the mode of the abilities, that of b, and the log of the spread (for t, of the size) move with eps or t."""
    n, row = posterior.n, posterior.row
    rows = np.append(np.arange(n), [row["b"]] if "b" in row else []).astype(np.intp)
    ends = []
    for change in (-0.1, 0.1):
        x = mode.copy()
        x[row[name]] += change
        at = x[row[name], 0]
        ends.append((posterior(x, value=False)[1][rows, 0], float(expit(at)) if name == "u" else float(at), x))
    (low, start, _), (high, stop, _) = ends
    by = posterior.solve(mode, (high - low) / (stop - start), tolerance=1e-3)
    sizes = []
    for _, at, x in ends:
        x[rows, 0] += by * (at - (start + stop) / 2)
        variance = 1 / posterior.precision(x)[0]
        if name == "u":
            sizes.append(0.5 * np.log(variance).mean())
        else:
            sizes.append(0.5 * np.log(np.sum(x[:n] ** 2) + variance.sum()))
    return by[:n], float(by[n]) if "b" in row else 0.0, float(sizes[1] - sizes[0]) / (stop - start)
