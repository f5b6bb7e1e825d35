"""Which parameters of the Bayesian model the data tell: a prior on its own is no finding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

__all__ = ["NOT_TOLD", "TOLD", "is_told"]

TOLD = 0.7
"""A parameter is told by the data when its posterior is narrower than this share of its prior."""

NOT_TOLD = "not told by these data"

_LAPSE_WIDTH = 0.2264  # of the 95 % interval of the prior of the lapse rate, a beta distribution with 2 and 20
_POSITION_SD = {"judge slopes": 0.5, "logits": 1.0}  # of the prior of the position effect, by what is fitted
_POOLED_POSITION_SD = 0.3


def is_told(row: Mapping[str, Any], parameter: Literal["epsilon", "b"]) -> bool:
    """Whether a fit's data say something of the lapse rate or the position effect, and not its prior alone.

    They do where its 95 % interval is narrower than :data:`TOLD` times that of the prior.

    Args:
        row: of the round log.
        parameter: which.
    """
    lower = row.get(f"{parameter}_p2.5")
    upper = row.get(f"{parameter}_p97.5")
    if lower is None or upper is None:
        return False
    width = _LAPSE_WIDTH
    if parameter == "b":
        engine = row.get("mcmc_engine_version") or ""
        width = 2 * 1.96 * next((sd for kind, sd in _POSITION_SD.items() if kind in engine), _POOLED_POSITION_SD)
    return bool(upper - lower < TOLD * width)
