"""Hamiltonian Monte Carlo in lock-step: all chains advance together, as the columns of one array.

NumPy then works on arrays that are long enough to be fast, without a compiler. Each transition draws a momentum,
follows the integrator for a random time and accepts by Metropolis on the full energy, so the draws are exact whatever
the step size. The number of steps is drawn before the trajectory and is the same for all chains; it depends on no
chain's state.

The density should be close to a unit normal, whose trajectories are turns on a circle and known exactly. A step is half
a kick by what the gradient has beyond that of the unit normal, a turn, and half a kick (split Hamiltonian Monte Carlo:
Shahbaba, Lan, Johnson & Neal 2014). It is reversible and keeps volume like leapfrog, and its error is that of the
difference to a normal alone, so that steps can be twice as long.

A transition makes at most six times the steps that a density of its dimension needs when it is close to normal. So the
number of gradients is bounded before the first draw, and a path that would need more is cut short: the draws stay
exact, they only move less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from pairscale.core.arrays import Floats

_DIVERGENCE = 1000.0
_LONGEST_STEP = 0.9  # two or three steps a path: a turn is exact for any step, the kicks are not
_MOST_STEPS = 6.0  # per path, in units of those that the usual step makes
_SHORTEST = 1e-3  # of the usual step: adaptation goes no further down
_COLLAPSED = 0.1  # of the usual step: coordinates that need shorter steps do not fit the density
_JITTER = (0.7, 1.3)  # of the length of a path, so that no direction comes round to where it began every time
# Dual averaging, with the constants of Hoffman and Gelman (2014).
_GAMMA = 0.05
_DELAY = 10.0
_DECAY = 0.75


LogDensity: TypeAlias = Callable[..., tuple[Floats | None, Floats]]
"""The log density of columns of positions (if ``value``) and its gradient, scaled to a curvature near one."""


class LockStepHMC:
    """Chains that advance together.

    Attributes:
        step: the time of a step; adapted while ``advance(adapt=True)``.
        usual: the step that a density of this dimension allows when it is close to a unit normal.
        most_steps: the largest number of steps, and so of gradients, of one transition.
        gradients: how many gradients were computed so far.
    """

    def __init__(
        self,
        density: LogDensity,
        z: Floats,
        rng: np.random.Generator,
        *,
        path: float,
        step: float | None = None,
        target_accept: float = 0.8,
    ) -> None:
        self._rng = rng
        self._path = path
        self._target = target_accept
        # Optimal scaling: the error of a trajectory grows with the fourth root of the dimension.
        self.usual = min(1.8 * z.shape[0] ** -0.25, _LONGEST_STEP)
        self.most_steps = int(np.ceil(_MOST_STEPS * _JITTER[1] * path / self.usual))
        self.gradients = 0
        self.step = step if step is not None else self.usual
        self.move(density, z)

    @property
    def collapsed(self) -> bool:
        """Whether these coordinates do not fit: the step is far below the usual one, or the density is not finite."""
        return not (self.step > _COLLAPSED * self.usual and bool(np.isfinite(self._value).all()))

    def move(self, density: LogDensity, z: Floats) -> None:
        """Continue in other coordinates: the same chains, at ``z`` of another density."""
        self._density = density
        self._z = z
        value, self._gradient = density(z, value=True)
        self._value = np.asarray(value)
        self.gradients += 1
        self._aim = np.log(1.5 * self.step)
        self._error = 0.0
        self._count = 0
        self._mean_log = np.log(self.step)

    def advance(self, n: int, *, adapt: bool, on_draw: Callable[[], None] | None = None) -> tuple[Floats, int]:
        """Make ``n`` transitions; with ``adapt`` the step size follows the acceptance, and ends at its average.

        Returns:
            The positions (transitions, parameters, chains), and how many transitions had an energy error above 1000.
        """
        kept = np.empty((n, *self._z.shape))
        divergences = 0
        for at in range(n):
            chance, diverged = self._transition()
            divergences += diverged
            if adapt:
                self._adapt(float(chance.mean()))
            kept[at] = self._z
            if on_draw is not None:
                on_draw()
        if adapt and n:
            self.step = float(np.exp(self._mean_log))
        return kept, divergences

    def _transition(self) -> tuple[Floats, int]:
        time = self._path * self._rng.uniform(*_JITTER)
        n_steps = int(min(max(1.0, np.ceil(time / self.step)), self.most_steps))
        self.gradients += n_steps
        step = min(time / n_steps, self.step)
        momentum = self._rng.standard_normal(self._z.shape)
        energy = self._value - 0.5 * np.einsum("pc,pc->c", momentum, momentum)
        z = self._z.copy()
        gradient = self._gradient
        value: Floats | None = None
        cos = np.cos(step)
        sin = np.sin(step)
        momentum += 0.5 * step * (gradient + z)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for at in range(n_steps):
                last = at == n_steps - 1
                turned = sin * momentum
                momentum *= cos
                momentum -= sin * z
                z *= cos
                z += turned
                value, gradient = self._density(z, value=last)
                np.add(gradient, z, out=turned)
                turned *= 0.5 * step if last else step
                momentum += turned
            change = value - 0.5 * np.einsum("pc,pc->c", momentum, momentum) - energy
        change = np.where(np.isfinite(change), change, -np.inf)
        chance = np.exp(np.minimum(change, 0.0))
        taken = self._rng.random(chance.shape) < chance
        self._z = np.where(taken, z, self._z)
        self._gradient = np.where(taken, gradient, self._gradient)
        self._value = np.where(taken, np.asarray(value), self._value)
        return chance, int((change < -_DIVERGENCE).sum())

    def _adapt(self, accept: float) -> None:
        self._count += 1
        share = 1.0 / (self._count + _DELAY)
        self._error = (1 - share) * self._error + share * (self._target - accept)
        log_step = min(self._aim - np.sqrt(self._count) / _GAMMA * self._error, np.log(_LONGEST_STEP))
        log_step = max(log_step, np.log(_SHORTEST * self.usual))
        weight = self._count**-_DECAY
        self._mean_log = weight * log_step + (1 - weight) * self._mean_log
        self.step = float(np.exp(log_step))
