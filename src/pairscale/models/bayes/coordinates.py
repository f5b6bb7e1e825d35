"""Coordinates in which the posterior is round.

A larger lapse rate goes with a wider scale of all scores, as a larger error does with wider intervals, and a position
effect shifts scores that stood first more often. :class:`Coordinates` takes this out, so that the chains see a density
that is close to a unit normal; it is a change of variables with its exact Jacobian, so the draws are exact however good
it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from pairscale.core.arrays import Floats
from pairscale.models.bayes.density import Density

_MOST_MIX = 20.0  # of the directions in which the abilities follow eps; one is as much as their mode does
_KNEE = 0.05  # before there are draws
_LEAST_VALUE = 1e-3  # of a matrix of correlations
_LOW = -30.0  # from here down log(1 + exp(y)) is exp(y)
_ONE = np.ones(1)  # stands for what a variant does not have


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What draws teach about the shape of the posterior; it still holds with some more comparisons.

    Attributes:
        spread: the scale of each of the judge's parameters; those with a knee in its units.
        kappa: how the logarithm of the scores' spread moves with the noise and t.
        mix: how the scores move with the noise, in terms of ``Coordinates.basis``; one column, or none without noise.
        of_linear: how position effects and slopes move with the noise; one row each.
        offset: how far the means of scores, position effects and slopes lie from their conditional mode; else zero.
        widen: per score, the scale of z in units of its conditional spread; between that and the marginal one.
        knee: where the odds of a lapse, and tau, turn from logarithmic to linear; none with probabilities.
    """

    spread: dict[str, float]
    kappa: dict[str, float]
    mix: Floats
    of_linear: Floats
    offset: Floats
    widen: Floats
    knee: dict[str, float]


class _Placed(NamedTuple):
    """A position, and what was computed on the way to it."""

    x: Floats
    deviation: Floats  # what of the scores widens with the noise, but for c_t
    ys: dict[str, Floats]  # y of the noise and of t
    softs: dict[str, Floats]  # log(1 + exp(y))
    moved: Floats  # how far the noise is from the center
    of_noise: Floats  # c_u
    log_t: Floats  # log c_t
    slope_t: Floats  # its slope in t
    of_t: Floats  # c_t


@dataclass(slots=True, eq=False)
class Coordinates:
    """A change of variables, from z to the scores and the judge's parameters.

    The noise is the lapse rate, or the logarithm of the error's scale. The scores follow the judge:
    ``theta = c_t (center + c_u · spread · z + drift · (l', noise - noise0))``, where ``l'`` is what position effects
    and slopes themselves do not owe to the noise, and ``c_u = exp(kappa_u (noise - noise0))``: the spread of the scores
    moves with it. All of them move with t by c_t, which is ``tau / sqrt(1 + w tau²)``, one at the center: with
    a small tau the prior sets their size, and with a large one the comparisons do. ``kappa_t`` is the slope of log c_t
    at the center.
    The odds of a lapse are ``knee · log(1 + exp(y))`` with y linear in z: close to zero like its logarithm, further up
    like eps itself, which is nearer to normal there; and so it is with tau. With probabilities the priors are normal
    in the logarithms, and so are the coordinates. The Jacobian is
    ``n log c_u + n log c_t + log(du / dy) + log(dt / dy)``.

    Attributes:
        posterior: the density in its own variables.
        center: a position (one column): where z is zero.
        spread: per row, the scale of z; one for position effects and slopes.
        root: of the covariance of position effects and slopes.
        basis: directions in which the scores follow the noise: the derivative of their mode, and the center.
        drift: how the scores move with position effects, slopes and noise; one column each.
        of_linear: how position effects and slopes move with the noise; one row each.
        kappa: how the logarithm of the scale moves with the noise and, at the center, with t.
        knee: where the odds of a lapse, and tau, turn from logarithmic to linear; none with probabilities.
    """

    posterior: Density
    center: Floats
    spread: Floats
    root: Floats
    basis: Floats
    drift: Floats
    of_linear: Floats
    kappa: dict[str, float]
    knee: dict[str, float]
    _y0: dict[str, Floats] = field(init=False)  # y of the center
    _noise0: Floats = field(init=False)  # noise of the center
    _plain: list[str] = field(init=False)  # noise and t, those without a knee

    def __post_init__(self) -> None:
        row = self.posterior.row
        self._y0 = {name: self._to_y(name, self.center[row[name]]) for name in self.knee}
        self._noise0 = self.posterior.link(self.center)[0]
        self._plain = [name for name in row if name not in {*self.posterior.linear_names, *self.knee}]

    def to_x(self, z: Floats) -> Floats:
        """From z to the abilities and the judge's parameters."""
        return self._place(z).x

    def _place(self, z: Floats) -> _Placed:
        n = self.posterior.n
        row = self.posterior.row
        noise = self.posterior.noise
        x = self.spread[:, None] * z
        ys = {}
        softs = {}
        for name, knee in self.knee.items():
            y = ys[name] = x[row[name]] + self._y0[name]
            soft = softs[name] = np.maximum(np.logaddexp(0.0, y), 1e-300)
            x[row[name]] = np.log(knee) + np.where(y > _LOW, np.log(soft), y)
        for name in self._plain:
            x[row[name]] += self.center[row[name]]
        moved = moved_noise = self._moved(x)
        deviation = x[:n]
        of_noise = _ONE
        of_t = _ONE
        slope_t = _ONE
        if noise is not None:
            of_noise = np.exp(self.kappa[noise] * moved[0])
            deviation = deviation * of_noise
        linear = self.posterior.linear
        if linear:
            own = self.root @ x[linear]
            x[linear] = own + (self.center[linear] + self.of_linear @ moved)
            moved = np.concatenate([own, moved])
        x[:n] = deviation + self.center[:n]
        if len(moved):
            x[:n] += self.drift @ moved
        log_t = _ONE
        if "t" in row:
            log_t, slope_t = _widening(self.kappa["t"], x[row["t"]] - self.center[row["t"]])
            of_t = np.exp(log_t)
            x[:n] *= of_t
        return _Placed(x, deviation, ys, softs, moved_noise, of_noise, log_t, slope_t, of_t)

    def _moved(self, x: Floats) -> Floats:
        """How far the noise is from the center; no row when there is none."""
        if self.posterior.noise is None:
            return np.zeros((0, x.shape[1]))
        return np.asarray(self.posterior.link(x)[0] - self._noise0)[None]

    def _to_y(self, name: str, u: Floats) -> Floats:
        log = u - np.log(self.knee[name])
        ratio = np.exp(log)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(ratio > 1e-8, ratio + np.log(-np.expm1(-ratio)), log))

    def to_z(self, x: Floats) -> Floats:
        """The way back."""
        n = self.posterior.n
        row = self.posterior.row
        noise = self.posterior.noise
        z = x - self.center
        moved = self._moved(x)
        z[:n] = x[:n]
        scale = np.exp(self.kappa[noise] * moved[0]) if noise is not None else 1.0
        for name in self.knee:
            z[row[name]] = self._to_y(name, x[row[name]]) - self._y0[name]
        linear = self.posterior.linear
        if linear:
            own = z[linear] - self.of_linear @ moved
            z[linear] = np.linalg.solve(self.root, own)
            moved = np.concatenate([own, moved])
        if "t" in row:
            z[:n] /= np.exp(_widening(self.kappa["t"], x[row["t"]] - self.center[row["t"]])[0])
        z[:n] -= self.center[:n]
        z[:n] -= self.drift @ moved
        z[:n] /= scale
        return z / self.spread[:, None]

    def __call__(self, z: Floats, *, value: bool) -> tuple[Floats | None, Floats]:
        """The log density of z and its gradient."""
        n = self.posterior.n
        row = self.posterior.row
        noise = self.posterior.noise
        at = self._place(z)
        x = at.x
        density, out = self.posterior(x, value=value)
        theta = out[:n]
        log_jacobian = np.zeros(z.shape[1]) if value else None
        if "t" in row:
            out[row["t"]] += at.slope_t * (np.einsum("nc,nc->c", theta, x[:n]) + n)
            if log_jacobian is not None:
                log_jacobian += n * at.log_t
            theta *= at.of_t
            self._bend(out, at, "t", log_jacobian)
        along = self.drift.T @ theta  # in position effects, slopes and noise
        linear = self.posterior.linear
        if linear:
            in_linear = out[linear]
            out[linear] = self.root.T @ (in_linear + along[: len(linear)])
            along = along[len(linear) :] + self.of_linear.T @ in_linear
        if noise is not None:
            in_noise = along[0] + self.kappa[noise] * (np.einsum("nc,nc->c", theta, at.deviation) + n)
            out[row[noise]] += self.posterior.link(x)[1] * in_noise
            if log_jacobian is not None:
                log_jacobian += n * (self.kappa[noise] * at.moved[0])
            theta *= at.of_noise
            self._bend(out, at, noise, log_jacobian)
        out *= self.spread[:, None]
        return (None if density is None or log_jacobian is None else density + log_jacobian), out

    def _bend(self, out: Floats, placed: _Placed, name: str, log_jacobian: Floats | None) -> None:
        """From the slope in u (or t) to that in its y, and the Jacobian of that step; nothing without a knee."""
        if name not in self.knee:
            return
        y = placed.ys[name]
        at = self.posterior.row[name]
        rise = expit(y)
        slope = np.where(y > _LOW, rise / placed.softs[name], 1.0)  # du / dy
        out[at] = out[at] * slope + (1 - rise - slope)
        if log_jacobian is not None:
            log_jacobian += np.log(slope)

    @classmethod
    def around(cls, posterior: Density, x: Floats, learned: Learned | None = None) -> Coordinates:
        """Coordinates around the conditional mode at the judge's parameters of ``x`` (one column).

        Args:
            posterior: the density.
            x: where to start looking for the mode.
            learned: what earlier draws taught, instead of estimates.
        """
        n = posterior.n
        row = posterior.row
        noise = posterior.noise
        mode = posterior.conditional_mode(x)
        curvature = posterior.curvature(mode)
        border = curvature.border()
        shift = np.reshape([curvature.solve(-column, tolerance=1e-4) for column in border], border.shape)
        linear_spread, unit_root = _unit_root(curvature.corner() + border @ shift.T, curvature.linear_prior)
        linear_names = posterior.linear_names
        spread: dict[str, float] = dict(zip(linear_names, linear_spread, strict=True))
        follow = {name: _follow(posterior, mode, name) for name in (noise, "t") if name in row}
        kappa: dict[str, float] = {name: wider for name, (_, _, wider) in follow.items()}
        knee: dict[str, float] = {}
        for name in follow:
            spread[name] = wide = _guess_spread(posterior, name, kappa[name])
            if posterior.model.probabilities:  # where the priors are those of the logarithms
                continue
            at = np.exp(mode[row[name], 0])
            knee[name] = learned.knee[name] if learned is not None else _KNEE if name == "u" else wide * at
            y = at / knee[name]  # about
            spread[name] = wide * y / expit(y)
        free = [follow[noise]] if noise is not None else []
        basis = np.stack([*(by for by, _, _ in free), mode[:n, 0]], axis=1)
        mix = np.eye(len(free) + 1, len(free))
        of_linear = np.array([by for _, by, _ in free]).reshape(len(free), len(posterior.linear)).T
        center = mode.copy()
        scale = curvature.diagonal**-0.5
        if learned is not None:
            mix = learned.mix
            of_linear = learned.of_linear
            spread = spread | learned.spread
            kappa = learned.kappa
            center[:, 0] += learned.offset
            scale = scale * learned.widen
        root = np.array([spread[name] for name in linear_names])[:, None] * unit_root
        of_judge = np.array([1.0 if name in linear_names else spread[name] for name in row])
        drift = np.concatenate([shift.T, basis @ mix], axis=1)
        return cls(posterior, center, np.concatenate([scale, of_judge]), root, basis, drift, of_linear, kappa, knee)

    def learn(self, x: Floats) -> tuple[Floats, Learned]:
        """A center (one column) and the shape, from draws (parameters, draws): the mode is far from most of eps."""
        posterior = self.posterior
        n = posterior.n
        row = posterior.row
        noise = posterior.noise
        mean = x.mean(axis=1, keepdims=True)
        moved = self._moved(x)
        moved -= moved.mean(axis=1, keepdims=True)
        theta = x[:n].copy()
        spread = {}
        kappa = {}
        knee = {}
        linear = posterior.linear
        own = x[linear] - mean[linear]
        of_linear = _slopes(own, moved)
        own -= of_linear @ moved
        for name, values in zip(posterior.linear_names, own, strict=True):
            spread[name] = max(values.std(), 1e-6)
        for name in self.knee:
            knee[name] = max(np.exp(x[row[name]]).std(), 1e-6)
            spread[name] = max(replace(self, knee=knee)._to_y(name, x[row[name]]).std(), 1e-6)
        for name in self._plain:
            spread[name] = max(x[row[name]].std(), 1e-6)
        if "t" in row:
            t = x[row["t"]] - mean[row["t"]]
            both = np.concatenate([t[None], moved])
            kappa["t"] = _slopes(_log_size(theta), both)[0]
            theta /= np.exp(_widening(kappa["t"], t)[0])
        theta -= self.drift[:, : len(linear)] @ own
        center = theta.mean(axis=1, keepdims=True)
        theta -= center
        scale = self.spread[:n, None]
        mix = _mixed(self.basis / scale, _slopes(theta, moved) / scale)
        theta -= self.basis @ mix @ moved
        theta /= posterior.curvature(mean).diagonal[:, None] ** -0.5
        widen = np.clip(np.einsum("nd,nd->n", theta, theta) / theta.shape[1], 0.1, 100) ** 0.25
        if noise is not None:
            kappa[noise] = _slopes(_log_size(theta), moved)[0]
        mode = posterior.conditional_mode(mean)
        mean[:n] = center
        offset = (mean - mode)[:, 0]  # zero for noise and t, where the mode is taken
        return mode, Learned(spread, kappa, mix, of_linear, offset, widen, knee)


def _slopes(values: Floats, on: Floats) -> Floats:
    """How rows move with other rows, by least squares."""
    return np.asarray(np.linalg.lstsq(on.T, values.T, rcond=None)[0].T)


def _mixed(basis: Floats, follow: Floats) -> Floats:
    """How much of each direction of the basis the abilities follow, by least squares.

    With few comparisons the directions can be all but the same, or all but nothing, and a fit of both then gives
    coefficients of any size, which hold for no other basis. In that case the first alone is fitted, and if that will
    not do either, its coefficient is the one before there were draws: one.
    """
    mix = np.eye(basis.shape[1], follow.shape[1])
    for n in range(basis.shape[1], 0, -1):
        coefficients = np.linalg.lstsq(basis[:, :n], follow, rcond=None)[0]
        if coefficients.shape[1] and np.abs(coefficients).max() <= _MOST_MIX:
            mix = np.zeros_like(mix)
            mix[:n] = coefficients
            break
    return mix


def _log_size(theta: Floats) -> Floats:
    """The logarithm of the length of each column, from its mean."""
    size = 0.5 * np.log(np.maximum(np.einsum("nd,nd->d", theta, theta), 1e-300))
    return np.asarray(size - size.mean())


def _widening(kappa: float, t: Floats) -> tuple[Floats, Floats]:
    """The logarithm of ``c_t``, how much wider all abilities are than at the center, and its slope in t.

    Args:
        kappa: the slope at the center.
        t: how far t is from the center.
    """
    if kappa >= 1:
        return kappa * t, np.full_like(t, kappa)
    share = max(kappa, 1e-3)
    logit = float(np.log(share) - np.log1p(-share))
    log = t - 0.5 * (np.logaddexp(0.0, 2 * t - logit) - float(np.logaddexp(0.0, -logit)))
    return log, expit(logit - 2 * t)


def _guess_spread(posterior: Density, name: str, kappa: float) -> float:
    """The standard deviation of a parameter, about: n scores say as much of t as the comparisons say of them."""
    if name == "u":
        return 0.5
    told = posterior.cells.times.sum() if name == "s" else posterior.n * max(1 - kappa, 0.0)
    return float((2 * told + 2) ** -0.5)


def _unit_root(precision: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Standard deviations, and a root of the correlations, of what has this precision; none is below its prior's."""
    own = np.maximum(np.diag(precision), least)
    scaled = 0.5 * (precision + precision.T) / np.sqrt(np.outer(own, own))
    np.fill_diagonal(scaled, 1.0)
    values, vectors = np.linalg.eigh(scaled)
    root = vectors / np.sqrt(np.maximum(values, _LEAST_VALUE))
    sd = np.sqrt(np.square(root).sum(axis=1))
    return own**-0.5 * sd, root / sd[:, None]


def _follow(posterior: Density, mode: Floats, name: str) -> tuple[Floats, Floats, float]:
    """How the modes of scores, of position effects and slopes, and the log of the spread (of t: of the size) move."""
    n = posterior.n
    at = posterior.row[name]
    rows = posterior.mode_rows
    ends = []
    for change in (-0.1, 0.1):
        x = mode.copy()
        x[at] += change
        place = x[at, 0] if name == "t" else posterior.link(x)[0][0]
        ends.append((posterior(x, value=False)[1][rows, 0], place, x))
    (low, start, _), (high, stop, _) = ends
    by = posterior.curvature(mode).solve((high - low) / (stop - start), tolerance=1e-3)
    sizes = []
    for _, place, x in ends:
        x[rows, 0] += by * (place - (start + stop) / 2)
        variance = 1 / posterior.curvature(x).diagonal
        if name == "t":
            sizes.append(0.5 * np.log(np.sum(x[:n] ** 2) + variance.sum()))
        else:
            sizes.append(0.5 * np.log(variance).mean())
    return by[:n], by[n:], (sizes[1] - sizes[0]) / (stop - start)
