"""Would B still win if both answers were equally long?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from pairscale.errors import TableError
from pairscale.evaluate.inference._cases import USED, normal_quantile, read_cases, used_cases
from pairscale.evaluate.inference._logistic import Curve, fit_curve, profile
from pairscale.evaluate.inference._score import student_quantile
from pairscale.evaluate.inference.win_rate import win_rate
from pairscale.options import require_level
from pairscale.tables import Table, require_columns, row_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["LengthControlled", "length_controlled"]

_LENGTHS = ("length_a", "length_b")
_FARTHEST = 40.0  # logits beyond which a chance is 0 or 1 to a computer


@dataclass(frozen=True, slots=True)
class LengthControlled:
    """B's win rate at equal lengths, beside the rate as it is.

    Attributes:
        rate: B's chance, in decided cases, when both answers are equally long. None when it cannot be told.
        ci: its interval.
        raw_rate: the share of these cases that B won, whatever their lengths.
        raw_ci: Wilson's interval for it.
        slope: what twice the length is worth, in logits; above 0, longer answers win.
        slope_se: its standard error.
        doubling: the typical length of B's answers, in doublings of A's: the mean of log2 of their ratio.
        n: decided cases with both lengths.
        tasks: that these belong to.
        missing: decided cases without a length, left out.
        level: of the intervals.
        interval: how that of ``rate`` was made.
        used: the outcomes that count: ties and flips have no winner, and the model has no place for them.
        notices: what to be careful with.
    """

    rate: float | None
    ci: tuple[float, float] | None
    raw_rate: float | None
    raw_ci: tuple[float, float] | None
    slope: float | None
    slope_se: float | None
    doubling: float | None
    n: int
    tasks: int
    missing: int
    level: float
    interval: str = "profile likelihood"
    used: tuple[str, ...] = USED["excluded"]
    notices: tuple[str, ...] = ()


def length_controlled(cases: Table, *, level: float = 0.95) -> LengthControlled:
    """B's win rate with the effect of length taken out.

    Decided cases follow logit P(B wins) = a + b x, with x = log2((length of B + 1) / (length of A + 1)): twice as long
    is 1, half as long is -1. The rate at equal length is 1 / (1 + exp(-a)). The fit is Firth's, so it is finite even
    when B won every case, and the interval is that of the profile of its likelihood. Where tasks have several cases,
    the profile is made wider by the design effect of a, and Student's t takes the place of the normal.

    Args:
        cases: ``task_id``, ``outcome``, ``winner``, and ``length_a`` and ``length_b`` in characters.
        level: of the intervals.

    Raises:
        TableError: when a column is missing, or a length is negative.
    """
    level = require_level(level)
    frame = read_cases(cases)
    require_columns(frame, _LENGTHS, "cases")
    frame = frame.with_columns(_lengths(frame[name]) for name in _LENGTHS)
    decided = used_cases(frame, "excluded")
    known = decided.drop_nulls(_LENGTHS)
    raw = win_rate(known, ties="excluded", level=level)
    x = known.select(((pl.col("length_b") + 1) / (pl.col("length_a") + 1)).log(2)).to_series().to_numpy()
    why = _unfit(x)
    fitted = _Fitted(notices=(f"no length-controlled rate: {why}",)) if why else _fitted(x, known, raw.tasks, level)
    return LengthControlled(
        rate=fitted.rate,
        ci=fitted.ci,
        raw_rate=raw.rate,
        raw_ci=raw.ci,
        slope=fitted.slope,
        slope_se=fitted.slope_se,
        doubling=float(x.mean()) if len(x) else None,
        n=raw.n,
        tasks=raw.tasks,
        missing=decided.height - known.height,
        level=level,
        notices=fitted.notices,
    )


def _lengths(column: pl.Series) -> pl.Series:
    """A column of lengths as numbers, checked."""
    try:
        numbers = column.cast(pl.Float64).fill_nan(None)
    except pl.exceptions.PolarsError:
        raise TableError(f"cases: column {column.name!r} holds {column.dtype}, not lengths in characters") from None
    wrong = (numbers < 0).fill_null(value=False)
    if wrong.any():
        raise TableError(f"cases: column {column.name!r} is below 0 in {row_numbers(wrong)}; a length cannot be")
    return numbers


def _unfit(x: Floats) -> str | None:
    """Why there is no curve through these lengths."""
    if len(x) < 3:
        return f"{len(x)} decided cases with both lengths are too few; it takes 3"
    if np.ptp(x) < 1e-9:
        return "the ratio of the lengths is the same in all cases, so that its effect cannot be told"
    return None


@dataclass(frozen=True, slots=True)
class _Fitted:
    """What the curve says."""

    rate: float | None = None
    ci: tuple[float, float] | None = None
    slope: float | None = None
    slope_se: float | None = None
    notices: tuple[str, ...] = ()


def _fitted(x: Floats, known: pl.DataFrame, tasks: int, level: float) -> _Fitted:
    scale = float(np.sqrt(np.mean(x * x)))  # so that a step of the search is of the right size
    row, won = (x / scale)[None, :], known["score"].to_numpy()[None, :]
    curve = fit_curve(row, won, np.ones_like(row))
    slope, se = float(curve.b[0]) / scale, float(np.sqrt(curve.inverse[2][0])) / scale
    bar, notices = normal_quantile(level) ** 2, list[str]()
    if len(x) > tasks:
        codes = known["task_id"].rank("dense").to_numpy() - 1
        bar = student_quantile(level, tasks - 1) ** 2 * _design_effect(curve, row[0], codes)
        notices.append(f"{len(x)} cases of {tasks} tasks: the interval is by task")
    low, high = (_end(row, won, curve, bar / 2, side) for side in (-1, 1))
    return _Fitted(_chance(float(curve.a[0])), (_chance(low), _chance(high)), slope, se, tuple(notices))


def _chance(logit: float) -> float:
    return float(0.5 * (1 + np.tanh(logit / 2)))


def _end(x: Floats, y: Floats, curve: Curve, drop: float, side: int) -> float:
    """Where the profile has fallen by ``drop`` on one side of its top; infinite if the drop is (a single task)."""
    from scipy.optimize import brentq

    if np.isinf(drop):
        return side * np.inf
    weights, top = np.ones_like(x), float(curve.top[0])

    def beyond(a: float) -> float:
        return top - float(profile(x, y, weights, np.array([a]), curve.b)[0]) - drop

    inner, step = float(curve.a[0]), side * float(np.sqrt(curve.inverse[0][0]))
    while beyond(inner + step) < 0:
        inner, step = inner + step, 2 * step
        if abs(inner) > _FARTHEST:
            return side * np.inf
    return float(brentq(beyond, inner, inner + step, xtol=1e-10))


def _design_effect(curve: Curve, x: Floats, codes: NDArray[np.integer]) -> float:
    """The variance of a by tasks over that of independent cases, 1 at least."""
    n, tasks = len(x), int(codes.max()) + 1
    pulls = [np.bincount(codes, curve.residuals[0] * column, tasks) for column in (np.ones(n), x)]
    aa, ab, _ = (float(part[0]) for part in curve.inverse)
    pull = aa * pulls[0] + ab * pulls[1]
    robust = tasks / max(1, tasks - 1) * (n - 1) / (n - 2) * float(pull @ pull)
    return max(1.0, robust / aa)
