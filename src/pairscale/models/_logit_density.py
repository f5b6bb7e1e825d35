"""The exact log density of scores, position effect, spread and error given logits, and coordinates to sample it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from pairscale.models._logits import KNOWN_SCALE, POSITION_SCALE, Logits, log_prior, logit_terms

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats
    from pairscale.models._cells import JudgeParameters
    from pairscale.models._slopes import SlopeDensity

__all__ = ["LogitDensity", "Whitened"]


class LogitDensity:
    """Log density and gradient for any number of chains at once.

    Columns are chains; the rows are the scores (beyond what was known beforehand), then ``b``, ``g`` (what a standard
    deviation of that is worth), ``t`` (the logarithm of the spread) and ``s`` (that of the error's scale), those of
    them that there are.
    """

    def __init__(self, logits: Logits, model: JudgeParameters) -> None:
        self.logits, self.model, self.n = logits, model, logits.n_items
        given = [*(["b"] if model.position else []), *(["g"] if model.known is not None else [])]
        names = [*given, *(["t"] if model.prior_sd is None else []), "s"]
        self.row = {name: self.n + at for at, name in enumerate(names)}
        self.size = self.n + len(names)
        k = len(logits.z)
        ends = np.concatenate([logits.first, logits.second]), np.tile(np.arange(k), 2)
        self._incidence = sparse.csr_array((np.repeat([1.0, -1.0], k), ends), shape=(self.n, k))
        self.known = np.zeros(self.n) if model.known is None else np.array(model.known)
        self._apart = (self.known[logits.first] - self.known[logits.second])[:, None]
        self._z, self._kind = logits.z[:, None], logits.kind[:, None]

    def __call__(self, x: Floats, *, value: bool) -> tuple[Floats | None, Floats]:
        """The log density of each column (up to a constant, when ``value``), and its gradient."""
        answers, n, row = self.logits, self.n, self.row
        theta, s = x[:n], x[row["s"]]
        expected = x[answers.first] - x[answers.second]
        if self.model.position:
            expected = expected + x[row["b"]]
        if "g" in row:
            expected = expected + self._apart * x[row["g"]]
        found = logit_terms(expected, self._z, self._kind, s)
        slope = answers.times[:, None] * found.slope
        gradient = np.zeros_like(x)
        gradient[:n] = self._incidence @ slope
        log, slope_s = log_prior("s", s)
        gradient[row["s"]] = answers.times @ found.in_error + slope_s
        squares = np.einsum("nc,nc->c", theta, theta)
        if self.model.prior_sd is None:
            t = x[row["t"]]
            precision = np.exp(-2 * t)
            of_t, slope_t = log_prior("t", t)
            gradient[row["t"]] = precision * squares - n + slope_t
            log = log + of_t - n * t
        else:
            precision = np.full(x.shape[1], self.model.prior_sd**-2)
        gradient[:n] -= precision * theta
        log = log - 0.5 * precision * squares
        if self.model.position:
            b = x[row["b"]]
            gradient[row["b"]] = slope.sum(axis=0) - b / POSITION_SCALE**2
            log = log - 0.5 * (b / POSITION_SCALE) ** 2
        if "g" in row:
            g = x[row["g"]]
            gradient[row["g"]] = (self._apart * slope).sum(axis=0) - g / KNOWN_SCALE**2
            log = log - 0.5 * (g / KNOWN_SCALE) ** 2
        return (log + answers.times @ found.value if value else None), gradient


@dataclass(frozen=True, slots=True, eq=False)
class Whitened:
    """Coordinates in which the normal approximation is a unit normal.

    ``y = center + root z`` is linear; scores are ``y`` times ``exp(kappa (t - t0))``, so that they widen with their
    spread as far as it is the prior, and not the answers, that holds them.

    Attributes:
        posterior: The density in its own variables.
        center: Where z is zero, one column.
        root: A root of the covariance.
        kappa: How the logarithm of the scores moves with that of their spread, from 0 to 1.
    """

    posterior: LogitDensity | SlopeDensity
    center: Floats
    root: Floats
    kappa: float

    def to_x(self, z: Floats) -> Floats:
        """From z to scores and parameters."""
        x = np.asarray(self.center + self.root @ z)
        if self.kappa:
            x[: self.posterior.n] *= np.exp(self._wider(x))
        return x

    def to_z(self, x: Floats) -> Floats:
        """The way back."""
        y = x.copy()
        if self.kappa:
            y[: self.posterior.n] *= np.exp(-self._wider(x))
        return np.asarray(np.linalg.solve(self.root, y - self.center))

    def _wider(self, x: Floats) -> Floats:
        at = self.posterior.row["t"]
        return np.asarray(self.kappa * (x[at] - self.center[at]))

    def __call__(self, z: Floats, *, value: bool) -> tuple[Floats | None, Floats]:
        """The log density of z and its gradient."""
        x = self.to_x(z)
        log, gradient = self.posterior(x, value=value)
        if self.kappa:
            n, at, wider = self.posterior.n, self.posterior.row["t"], self._wider(x)
            gradient[at] += self.kappa * (np.einsum("nc,nc->c", gradient[:n], x[:n]) + n)
            gradient[:n] *= np.exp(wider)
            log = None if log is None else log + n * wider
        return log, np.asarray(self.root.T @ gradient)

    @classmethod
    def of_draws(cls, posterior: LogitDensity, factor: Floats, draws: Floats) -> Whitened:
        """From draws of scores and parameters, a row each.

        Args:
            posterior: The density.
            factor: The lower Cholesky factor of the precision of scores and position effect, given the others.
            draws: Draws of the normal approximation, or of a warm-up.
        """
        n, kappa = posterior.n, 0.0
        y = draws.copy()
        if posterior.model.prior_sd is None:
            t = draws[:, posterior.row["t"]]
            variance = np.square(np.linalg.inv(factor)).sum(axis=0)[:n]
            kappa = float(np.clip(np.mean(variance) / np.exp(2 * t.mean()), 0.0, 1.0))
            y[:, :n] *= np.exp(-kappa * (t - t.mean()))[:, None]
        return cls._of(posterior, factor, y, kappa)

    @classmethod
    def of_linear_draws(cls, posterior: SlopeDensity, factor: Floats, draws: Floats) -> Whitened:
        """The same where scores have a prior of fixed width, and so do not widen with anything."""
        return cls._of(posterior, factor, draws, 0.0)

    @classmethod
    def _of(cls, posterior: LogitDensity | SlopeDensity, factor: Floats, y: Floats, kappa: float) -> Whitened:
        size = len(factor)
        mean = y.mean(axis=0)
        moved = y[:, size:] - mean[size:]
        drift = np.linalg.lstsq(moved, y[:, :size] - mean[:size], rcond=None)[0].T  # how scores follow the others
        spread = np.linalg.cholesky(np.atleast_2d(np.cov(moved.T)) + 1e-8 * np.eye(moved.shape[1]))
        root = np.zeros((posterior.size, posterior.size))
        root[:size, :size] = np.linalg.inv(factor).T
        root[:size, size:] = drift @ spread
        root[size:, size:] = spread
        return cls(posterior, mean[:, None], root, kappa)
