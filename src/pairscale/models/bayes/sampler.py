"""Warm-up and sampling of one Bayesian fit.

Every fit has a bound on its work before it begins: the transitions are those of the settings, with at most one more
warm-up for each fallback, and each transition makes at most ``LockStepHMC.most_steps`` gradients.

A warm-up that ends with a collapsed step size has two fallbacks, in this order, and the fit says which it took:

1. the start that an earlier fit gave is left aside, and the fit begins cold;
2. the coordinates that draws taught are left aside, and the fit samples in those around the mode.

When the step collapses there, too, the fit is a :class:`pairscale.core.errors.SamplerError`.

The warm-up chooses the step by the mean acceptance, and a step that is right there can be too long in the tails. So
draws with more divergences than the gate allows are thrown away, and made again with half the step, at most twice. The
log says so at level INFO.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pairscale.core.arrays import Floats
from pairscale.core.errors import SamplerError
from pairscale.core.options import ProgressMode, require_progress
from pairscale.models.bayes.coordinates import Coordinates, Learned
from pairscale.models.bayes.density import Density
from pairscale.models.bayes.diagnostics import Diagnostics, DiagnosticsGate, diagnose
from pairscale.models.bayes.hmc import LockStepHMC
from pairscale.models.bayes.model import JudgeParameters

if TYPE_CHECKING:
    from pairscale.models.bayes.settings import MCMCSettings

_LOG = logging.getLogger("pairscale")
_TEACH = 100  # draws of the warm-up that are enough to learn other coordinates from
_HALVINGS = 2  # of the step, when draws diverge
PATH = 1.7  # a little more than a quarter turn of a unit normal: means and spreads both mix well
_COLD = "the step size collapsed with the start of the earlier fit; the fit began without it"
_UNLEARNED = "the step size collapsed in the coordinates learned from the warm-up; sampled in those around the mode"


@dataclass(frozen=True, slots=True, eq=False)
class Warm:
    """What a later fit of more comparisons of the same items can start from."""

    ids: tuple[str, ...]
    model: JudgeParameters
    last: Floats
    center: Floats
    learned: Learned
    step: float


@dataclass(frozen=True, slots=True, eq=False)
class Begun:
    """A sampler after its warm-up.

    Attributes:
        sampler: the chains, with their step size.
        coordinates: what they move in.
        warm: whether the start was that of an earlier fit.
        learned: whether draws taught the coordinates.
        fallbacks: a sentence for each fallback that was taken.
    """

    sampler: LockStepHMC
    coordinates: Coordinates
    warm: bool
    learned: bool
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """The draws of a fit.

    Attributes:
        draws: (draws, chains, parameters), abilities as they were drawn.
        theta: (draws, chains, items), centred.
        diagnostics: what the gate said.
    """

    draws: Floats
    theta: Floats
    diagnostics: Diagnostics


def warm_of(fit: Any) -> Warm | None:
    """What a later fit can start from; None when this one was not sampled by ``fit_btl``."""
    return fit if isinstance(fit, Warm) else getattr(fit, "_warm", None)


@contextmanager
def sampling_bar(total: int, *, show: ProgressMode) -> Iterator[Callable[[], None]]:
    """A progress bar over transitions, where it is wanted and standard error is a terminal; what to call for each."""
    if require_progress(show) == "none" or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("sampling", total=total)
        yield lambda: progress.update(task, advance=1)


def warmed_up(
    density: Density, start: Warm | None, settings: MCMCSettings, rng: np.random.Generator, tick: Callable[[], None]
) -> Begun:
    """Find coordinates and a step size; the transitions made on the way are thrown away.

    Raises:
        SamplerError: when the step size collapses even in the coordinates around the mode.
    """
    if start is None:
        return _cold(density, settings, rng, tick)
    coordinates = Coordinates.around(density, start.center, start.learned)
    z = coordinates.to_z(start.last[:, np.arange(settings.chains) % start.last.shape[1]])
    sampler = LockStepHMC(coordinates, z, rng, path=PATH, step=start.step, target_accept=settings.target_accept)
    sampler.advance(max(20, settings.iter_warmup // 4), adapt=True, on_draw=tick)
    if not sampler.collapsed:
        return Begun(sampler, coordinates, warm=True, learned=True)
    begun = _cold(density, settings, rng, tick)
    begun.sampler.gradients += sampler.gradients
    return replace(begun, fallbacks=(_COLD, *begun.fallbacks))


def _cold(density: Density, settings: MCMCSettings, rng: np.random.Generator, tick: Callable[[], None]) -> Begun:
    first = Coordinates.around(density, density.start())
    z = 0.7 * rng.standard_normal((density.size, settings.chains))
    sampler = LockStepHMC(first, z, rng, path=PATH, target_accept=settings.target_accept)
    n_first = int(0.6 * settings.iter_warmup)
    rest = settings.iter_warmup - n_first
    skipped = n_first // 4
    sampler.advance(skipped, adapt=True, on_draw=tick)
    early, _ = sampler.advance(n_first - skipped, adapt=True, on_draw=tick)
    draws = np.concatenate([first.to_x(z) for z in early], axis=1)
    fallbacks: tuple[str, ...] = ()
    if draws.shape[1] >= _TEACH:
        step = sampler.step
        coordinates = Coordinates.around(density, *first.learn(draws))
        sampler.move(coordinates, coordinates.to_z(draws[:, -settings.chains :]))
        sampler.advance(rest, adapt=True, on_draw=tick)
        if not sampler.collapsed:
            return Begun(sampler, coordinates, warm=False, learned=True)
        sampler.step = step
        sampler.move(first, early[-1])
        fallbacks = (_UNLEARNED,)
    sampler.advance(rest, adapt=True, on_draw=tick)
    if sampler.collapsed:
        raise SamplerError(
            f"the sampler cannot move: its step size fell to {sampler.step:.2g}, where {sampler.usual:.2g} is usual "
            f"for {density.n:,} items; use a longer warm-up (mcmc: iter_warmup above {settings.iter_warmup}), another "
            "model_variant, or fit_bt_model with engine='map'"
        )
    return Begun(sampler, first, warm=False, learned=False, fallbacks=fallbacks)


def sampled(
    begun: Begun,
    settings: MCMCSettings,
    near_stop: bool,
    gate: DiagnosticsGate,
    tick: Callable[[], None],
) -> Sampled:
    """Draw until the diagnostics pass, or the plan has been extended as far as it may; shorten a step that diverges."""
    judge_draws = partial(diagnose, near_stop=near_stop, gate=gate)
    sample = _drawn(begun, settings, judge_draws, tick)
    for _ in range(_HALVINGS):
        if sample.diagnostics.diagnostics_divergences_pass:
            break
        begun.sampler.step /= 2
        _LOG.info("divergent transitions: draws are made again with half the step, %.3g", begun.sampler.step)
        sample = _drawn(begun, settings, judge_draws, tick)
    return sample


def _drawn(
    begun: Begun, settings: MCMCSettings, judge_draws: Callable[..., Diagnostics], tick: Callable[[], None]
) -> Sampled:
    """Draw with the present step."""
    density = begun.coordinates.posterior
    most = settings.extend * settings.iter_sampling
    planned = settings.iter_sampling
    kept: list[Floats] = []
    divergences = 0
    while True:
        positions, diverged = begun.sampler.advance(planned - len(kept), adapt=False, on_draw=tick)
        kept += [begun.coordinates.to_x(z) for z in positions]
        divergences += diverged
        draws = np.stack(kept).transpose(0, 2, 1)
        theta = draws[:, :, : density.n]
        theta = theta - theta.mean(axis=2, keepdims=True)
        diagnostics = judge_draws([theta, draws[:, :, density.n :]], divergences)
        hopeless = planned == most or not diagnostics.diagnostics_divergences_pass
        if hopeless or diagnostics.diagnostics_pass:
            return Sampled(draws, theta, diagnostics)
        planned = min(_enough(planned, diagnostics), most)


def _enough(n: int, found: Diagnostics) -> int:
    """How many draws of each chain should pass, when ``n`` did not: the excess of R-hat falls like 1 / n."""
    excess = (found.max_rhat**2 - 1) / max(found.max_rhat_allowed**2 - 1, 1e-9)
    missing = found.ess_bulk_required / max(found.min_ess_bulk, 1e-9)
    factor = np.nan_to_num(max(excess, missing), nan=2.0, posinf=2.0)
    return int(np.ceil(n * min(max(factor, 1.08), 2.0)))
