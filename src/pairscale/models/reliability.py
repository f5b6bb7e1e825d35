"""How reliable scores are: from their standard errors, or from a posterior.

Scale separation (SSR) and EAP reliability ask the model how much of the spread of the scores is not error; they trust
the model, and that judges agree. Kinnear, Jones & Davies (2025, doi 10.31219/osf.io/c9q3b) give SSR for 101 sessions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats

__all__ = ["ScaleSeparation", "eap_reliability", "scale_separation_reliability"]


@dataclass(frozen=True, slots=True, repr=False)
class ScaleSeparation(ReprMixin):
    """How far scores are apart, measured in their standard errors.

    Attributes:
        ssr: scale separation reliability, ``1 - mean(se²) / var(theta)``; below 0 when the scores differ less than
            their errors would make them.
        separation: ``sd(theta) / sqrt(mean(se²))``, the separation index that sirt and the published figures give
            (``sepG``): of the observed scores, so that ``ssr = 1 - 1 / separation²``.
        true_separation: ``sqrt(ssr / (1 - ssr))``, the index of the Rasch literature, of the scores without their
            error; 0 when ``ssr`` is not above 0.
    """

    ssr: float
    separation: float
    true_separation: float

    def __str__(self) -> str:
        return f"reliability {self.ssr:.3f}, separation {self.separation:.2f}, without error {self.true_separation:.2f}"


def scale_separation_reliability(theta: npt.ArrayLike, se: npt.ArrayLike) -> ScaleSeparation:
    """The share of the variance of scores that is not error, from the scores and their standard errors.

    ``SSR = 1 - mean(se²) / var(theta)``, with the sample variance, as ``mle.rel`` of R's ``sirt::btm``.

    Args:
        theta: the scores, one per item.
        se: their standard errors, above 0.

    Raises:
        InputError: when there are fewer than two scores, they are all equal, or a number cannot be used.

    Example:
        >>> round(scale_separation_reliability([-1, 0, 1], [0.5, 0.5, 0.5]).ssr, 2)
        0.75
    """
    scores = _numbers(theta)
    errors = _numbers(se)
    if scores.ndim != 1 or scores.shape != errors.shape or not (errors > 0).all():
        raise InputError("theta and se must be two lists of one length, with standard errors above 0")
    variance = _variance(scores)
    if not variance:
        raise InputError("all of theta are equal: there is no spread that could be reliable")
    error = float(np.mean(np.square(errors)))
    ssr = 1 - error / variance
    return ScaleSeparation(
        ssr=ssr,
        separation=float(np.sqrt(variance / error)),
        true_separation=float(np.sqrt(max(variance / error - 1, 0.0))),
    )


def eap_reliability(theta: npt.ArrayLike, sds: npt.ArrayLike | None = None) -> float:
    """The share of the variance of true scores that a posterior knows, from its draws or its means and deviations.

    ``Var(E[theta_i]) / (Var(E[theta_i]) + mean(Var(theta_i)))``, with sample variances.

    Args:
        theta: the draws, one row per draw and one column per item; or, with ``sds``, the posterior means, one per item.
        sds: the posterior standard deviations, one per item.

    Raises:
        InputError: when there are fewer than two items or draws, all is equal, or a number cannot be used.

    Example:
        >>> eap_reliability([-1, 0, 1], [0.5, 0.5, 0.5])
        0.8
    """
    means = _numbers(theta)
    if sds is None:
        if means.ndim != 2 or len(means) < 2:
            raise InputError(f"draws must have a row per draw and a column per item; theta is of shape {means.shape}")
        unknown = float(means.var(axis=0, ddof=1).mean())
        means = means.mean(axis=0)
    else:
        deviations = _numbers(sds)
        if means.ndim != 1 or means.shape != deviations.shape or not (deviations >= 0).all():
            raise InputError("theta and sds must be two lists of one length, with no standard deviation below 0")
        unknown = float(np.mean(np.square(deviations)))
    known = _variance(means)
    if known + unknown == 0:
        raise InputError("all of theta are equal and certain: there is no spread that could be reliable")
    return known / (known + unknown)


def _numbers(values: npt.ArrayLike) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("scores and their errors must be numbers") from None
    if not np.isfinite(numbers).all():
        raise InputError("a score or an error is missing or not finite")
    return numbers


def _variance(scores: Floats) -> float:
    if len(scores) < 2:
        raise InputError(f"a reliability needs at least two items; there are {len(scores)}")
    return float(np.var(scores, ddof=1)) if np.ptp(scores) else 0.0
