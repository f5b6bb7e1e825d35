"""What the round log has of any fit, wherever its draws come from, and of the machine."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale._version import __version__
from pairscale.models.posterior import round_figures

if TYPE_CHECKING:
    from pairscale.core.arrays import Ints
    from pairscale.models.diagnostics import Diagnostics
    from pairscale.models.posterior import Posterior

__all__ = ["model_columns"]

_SIBLINGS = "devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list"


def model_columns(
    posterior: Posterior,
    diagnostics: Diagnostics,
    degree: Ints,
    pos_count_A: Ints,
    pos_count_B: Ints,
    engine: str | None = None,
    **near_ties: float,
) -> dict[str, Any]:
    """By column: the sampler and the machine, the diagnostics, and the figures of the posterior and the exposure.

    Args:
        posterior: the draws.
        diagnostics: what the gate said of them.
        degree: per item, in how many comparisons it was.
        pos_count_A: per item, in how many of them it was shown first.
        pos_count_B: per item, in how many of them it was shown second.
        engine: what sampled, and its version; by default, pairscale's own sampler.
        near_ties: ``near_tie_p_low`` and ``near_tie_p_high`` of :func:`round_figures`.
    """
    figures = round_figures(posterior, degree, pos_count_A, pos_count_B, **near_ties)
    return {
        "n_items": posterior.n_items,
        "mcmc_chains": posterior.chains,
        "mcmc_parallel_chains": posterior.chains,  # they advance in lock-step, in one thread
        "mcmc_threads_per_chain": 1,
        "mcmc_cores_detected_physical": _physical_cores(),
        "mcmc_cores_detected_logical": os.cpu_count(),
        "mcmc_engine_version": engine or f"pairscale {__version__}",
        **diagnostics.log_columns(),
        **figures,
        "reliability": figures["reliability_EAP"],
    }


@cache
def _physical_cores(system: Path = Path("/sys")) -> int | None:
    """Cores of the machine, where the system tells which hardware threads share one; else None."""
    try:
        return len({path.read_text() for path in system.glob(_SIBLINGS)}) or None
    except OSError:
        return None
