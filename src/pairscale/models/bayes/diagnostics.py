"""The diagnostics gate: may anything be decided on these draws?

"No diagnostics, no decisions": a posterior counts only if the sampler met no divergence, the chains agree
(R-hat <= 1.01) and the draws are worth enough independent ones. How many is enough grows with the number of items N,
and again when the run is near its stop::

    ess_bulk_min            max( 400, round(20 sqrt(N)))
    ess_bulk_min_near_stop  max(1000, round(50 sqrt(N)))

A figure that cannot be computed (NaN: a parameter that never moved, or is not finite) does not pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What the gate said of one fit, under the names of the round log.

    Attributes:
        diagnostics_pass: whether all three conditions hold.
        diagnostics_divergences_pass: whether ``divergences <= divergences_max_allowed``.
        diagnostics_rhat_pass: whether ``max_rhat <= max_rhat_allowed``.
        diagnostics_ess_pass: whether ``min_ess_bulk >= ess_bulk_required``.
        divergences: transitions that left the energy surface, over all chains.
        divergences_max_allowed: how many may.
        max_rhat: the largest rank-normalised split R-hat of any parameter; NaN if any has none.
        max_rhat_allowed: how large it may be.
        min_ess_bulk: the smallest bulk effective sample size of any parameter; NaN if any has none.
        ess_bulk_required: how large it must be.
        near_stop_active: whether the stricter requirement held.
    """

    diagnostics_pass: bool
    diagnostics_divergences_pass: bool
    diagnostics_rhat_pass: bool
    diagnostics_ess_pass: bool
    divergences: int
    divergences_max_allowed: int
    max_rhat: float
    max_rhat_allowed: float
    min_ess_bulk: float
    ess_bulk_required: float
    near_stop_active: bool

    @property
    def reasons(self) -> tuple[str, ...]:
        """What did not pass, a sentence each; none if everything did."""
        reasons = []
        if not self.diagnostics_divergences_pass:
            allowed = self.divergences_max_allowed or "none"
            reasons.append(f"{self.divergences:,} divergent transitions ({allowed} allowed)")
        if not self.diagnostics_rhat_pass:
            reasons.append(f"largest R-hat {self.max_rhat:.4f} (at most {self.max_rhat_allowed:g} allowed)")
        if not self.diagnostics_ess_pass:
            reasons.append(f"smallest bulk ESS {self.min_ess_bulk:.0f} (at least {self.ess_bulk_required:g} required)")
        return tuple(reasons)

    def log_columns(self) -> dict[str, Any]:
        """The columns of the round log; a figure that could not be computed is missing there."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True)
class DiagnosticsGate:
    """What a fit must show before anything is decided on it.

    Attributes:
        ess_bulk_min: the bulk effective sample size that every parameter needs.
        ess_bulk_min_near_stop: the same once the run is near its stop.
        max_rhat: the largest R-hat allowed.
        divergences_max: the number of divergences allowed.
    """

    ess_bulk_min: float
    ess_bulk_min_near_stop: float
    max_rhat: float = 1.01
    divergences_max: int = 0

    @classmethod
    def for_items(cls, n_items: int) -> DiagnosticsGate:
        """The gate for this number of items."""
        root = math.sqrt(n_items)
        return cls(max(400, round(20 * root)), max(1000, round(50 * root)))

    def judge(self, *, divergences: int, max_rhat: float, min_ess_bulk: float, near_stop: bool = False) -> Diagnostics:
        """Hold three figures against the limits; NaN passes none."""
        required = self.ess_bulk_min_near_stop if near_stop else self.ess_bulk_min
        divergences_pass = divergences <= self.divergences_max
        rhat_pass = max_rhat <= self.max_rhat
        ess_pass = min_ess_bulk >= required
        return Diagnostics(
            diagnostics_pass=divergences_pass and rhat_pass and ess_pass,
            diagnostics_divergences_pass=divergences_pass,
            diagnostics_rhat_pass=rhat_pass,
            diagnostics_ess_pass=ess_pass,
            divergences=divergences,
            divergences_max_allowed=self.divergences_max,
            max_rhat=max_rhat,
            max_rhat_allowed=self.max_rhat,
            min_ess_bulk=min_ess_bulk,
            ess_bulk_required=float(required),
            near_stop_active=near_stop,
        )


def diagnose(
    draws: Sequence[npt.NDArray[Any]], divergences: int, near_stop: bool, gate: DiagnosticsGate
) -> Diagnostics:
    """Compute R-hat and bulk ESS of all parameters and hold the worst of them against the gate.

    Args:
        draws: arrays of shape (draws, chains, parameters), without what is constant by construction: it has no R-hat.
        divergences: how many there were, over all chains, after warm-up.
        near_stop: whether the stricter effective sample size is required.
        gate: the limits.
    """
    from pairscale.models.bayes.convergence import rhat_and_ess

    figures = [rhat_and_ess(array) for array in draws]
    rhat = np.concatenate([rhat for rhat, _ in figures])
    ess = np.concatenate([ess for _, ess in figures])
    return gate.judge(
        divergences=int(divergences), max_rhat=float(rhat.max()), min_ess_bulk=float(ess.min()), near_stop=near_stop
    )
