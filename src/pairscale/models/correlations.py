"""Correlations of two columns of figures; None where they are not defined: fewer than two values, or no spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["kendall", "pearson", "spearman"]


def pearson(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float | None:
    """Pearson's correlation."""
    if _is_flat(x) or _is_flat(y):
        return None
    scaled = []
    for values in (x, y):
        apart = values - values.mean(dtype=np.float64)
        apart = apart / np.abs(apart).max()  # so that no square is lost
        scaled.append(apart / np.sqrt(apart @ apart))
    return float(np.clip(scaled[0] @ scaled[1], -1, 1))


def spearman(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float | None:
    """Spearman's rank correlation."""
    return pearson(_ranks(x), _ranks(y))


def kendall(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float | None:
    """Kendall's tau-b."""
    from scipy.stats import kendalltau  # which takes most of a second to import

    return None if _is_flat(x) or _is_flat(y) else float(kendalltau(x, y).statistic)


def _ranks(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, which, times = np.unique(values, return_inverse=True, return_counts=True)
    mean: npt.NDArray[np.float64] = np.cumsum(times) - (times - 1) / 2
    return mean[which]


def _is_flat(values: npt.NDArray[Any]) -> bool:
    return len(values) < 2 or bool(values.min() == values.max())
