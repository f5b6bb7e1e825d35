"""Would B still win if both answers were equally long?

It is a logistic regression of graded scores on one bounded difference, with a coefficient drawn towards a known value.
The curve is logit E(y) = a + b x. The fit maximises

    Σ (y η - log(1 + exp η))  +  a / 2 - log(1 + exp a)  -  (b - centre)² / (2 s²)

The second term is worth half a win and half a loss at x = 0, so that a is finite even if every y is 1. The third draws
b towards its centre, with one s above the centre and another one below. Where the true b lies elsewhere, that pull is a
bias; it is counted as a variance, for true values that spread around the centre with the standard deviation ``spread``.
``spread`` is larger than s: the estimate trusts the slope within the cases less than chance alone would allow, and the
interval says what that may cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pairscale.core.display import ReprMixin
from pairscale.core.errors import TableError
from pairscale.core.notices import plural
from pairscale.core.options import require_level
from pairscale.core.tables import Table, require_columns, row_numbers
from pairscale.evaluate.inference.cases import by_task, normal_quantile, read_cases, used_cases
from pairscale.evaluate.inference.score import rate_ends, student_quantile

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats

_STEPS = 200
_CLOSE = 1e-10
_FARTHEST_STEP = 1.0


@dataclass(frozen=True, slots=True)
class Penalty:
    """What a coefficient is drawn towards.

    Attributes:
        centre: the value.
        above: the standard deviation of the penalty on coefficients above the centre; smaller pulls harder.
        below: the same for coefficients below it.
        spread: how far the true coefficient may lie from the centre, as a standard deviation.
    """

    centre: float
    above: float
    below: float
    spread: float


LENGTH = Penalty(centre=1.0, above=0.15, below=1.0, spread=1.25)
"""AlpacaEval's published length-controlled rates of 12 models amount to 1.0 to 1.5 logits; to 2 for one.

Within a model, the slope is 1.6 to 4.5, and 18 for the one that always gives the same ten characters. Answers that are
much shorter than usual have often failed, which is no taste for length. So the pull is strong from above, and weak from
below.
"""

_NEAR = 0.25  # of the mean of two lengths: a smaller difference is nearly none
_FEW_SHARE, _FEW = 0.1, 10
_LEAST = 3
_TENTHS = 2.5631  # from the 10th to the 90th percentile of a standard normal variable
_LENGTHS = ("length_a", "length_b")


@dataclass(frozen=True, slots=True, repr=False)
class ControlledRate(ReprMixin):
    """B's win rate if both answers were equally long, beside the rate as it is.

    Attributes:
        rate: B's win rate, ties and flips as half, if no lengths differed; None if it cannot be told.
        ci: its interval; None where none would hold.
        overlap: cases in which the answers are of nearly equal length. These carry the estimate; where they are few, it
            rests on the model.
        notices: what to be careful with.
        raw_rate: B's win rate in the same cases, as they are.
        n: cases that it rests on.
        level: of the interval.
    """

    overlap: int
    raw_rate: float | None
    n: int
    level: float
    rate: float | None = None
    ci: tuple[float, float] | None = None
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.rate is None:
            return "; ".join(self.notices)
        return f"at equal length, B wins {self.rate * 100:.1f} %"


def length_controlled(cases: Table, *, level: float = 0.95) -> ControlledRate:
    """B's win rate if both answers were equally long.

    Scores follow logit E(score) = a + b x, with x = tanh((B's length - A's) / scale). The rate without a difference is
    1 / (1 + exp(-a)). Scale is the usual difference, from the spread of the differences and the median length. b is
    drawn towards 1; the interval allows for other true values.

    Args:
        cases: ``task_id``, ``outcome`` and ``winner``, with ``preference`` where they are graded, or ``task_id`` and
            ``preference`` alone; and ``length_a`` and ``length_b``, in characters.
        level: of the interval.

    Raises:
        TableError: when a column is missing or holds no lengths.

    Example:
        >>> cases = [
        ...     {"task_id": n, "preference": n % 3 / 2, "length_a": 100, "length_b": 90 + 5 * (n % 7)}
        ...     for n in range(42)
        ... ]
        >>> found = length_controlled(cases)
        >>> round(found.raw_rate, 2), round(found.rate, 2), found.overlap
        (0.5, 0.48, 42)
    """
    level = require_level(level)
    frame = used_cases(read_cases(cases), "half")
    require_columns(frame, _LENGTHS, "cases")
    measured = frame.with_columns(_lengths(frame[column]) for column in _LENGTHS).drop_nulls(_LENGTHS)
    a, b = measured["length_a"].to_numpy(), measured["length_b"].to_numpy()
    near = np.abs(b - a) <= _NEAR * (a + b) / 2
    scores = by_task(measured)
    controlled = ControlledRate(int(near.sum()), scores.mean, scores.n, level)
    if scores.n < _LEAST:
        few = f"{plural(scores.n, 'answered case')} with both lengths are too few; it takes {_LEAST}"
        return replace(controlled, notices=(f"no rate at equal length: {few}",))
    if (a == b).all():
        nothing = "no answers differ in length, so there is nothing to control for"
        return replace(controlled, notices=(nothing,), rate=controlled.raw_rate, ci=rate_ends(scores, level))
    x = np.tanh((b - a) / scale_of(a, b))
    quantile = normal_quantile(level)
    notices = []
    if scores.repeated:
        differences = measured.select("task_id", x=pl.Series(x))
        x = differences.group_by("task_id", maintain_order=True).mean()["x"].to_numpy()
        quantile = student_quantile(level, scores.tasks - 1)
        tasks = plural(scores.tasks, "task")
        notices.append(f"{scores.n:,} cases of {tasks}: every task counts once, by the mean of its cases")
    estimate, se = fit_penalised(x, scores.means, LENGTH)
    if controlled.overlap < max(_FEW, _FEW_SHARE * controlled.n):
        notices.append(
            f"only {controlled.overlap:,} of {controlled.n:,} cases have answers of nearly equal length: the rate at "
            "equal length is mostly a guess; to know it, compare answers of similar length"
        )
    interval = (_chance(estimate[0] - quantile * se[0]), _chance(estimate[0] + quantile * se[0]))
    return replace(controlled, rate=_chance(estimate[0]), ci=interval, notices=tuple(notices))


def fit_penalised(x: Floats, y: Floats, penalty: Penalty) -> tuple[Floats, Floats]:
    """Fit scores on a difference: the intercept and the coefficient, and their standard errors.

    The errors hold what the pull may cost.

    Args:
        x: the difference, of each task.
        y: scores between 0 and 1.
        penalty: on the coefficient.
    """
    from scipy.special import expit

    n = len(x)
    design = np.column_stack([np.ones(n), x])
    centre = np.array([0.0, penalty.centre])
    theta = centre.copy()
    for _ in range(_STEPS):
        p, at_zero = expit(design @ theta), float(expit(theta[0]))
        side = penalty.above if theta[1] > penalty.centre else penalty.below
        pull = np.array([0.0, side**-2])
        gradient = design.T @ (y - p) - pull * (theta - centre)
        gradient[0] += 0.5 - at_zero
        information = (design * (p * (1 - p))[:, None]).T @ design
        curvature = information + np.diag(pull)
        curvature[0, 0] += at_zero * (1 - at_zero)
        step = np.linalg.solve(curvature, gradient)
        theta = theta + step * min(1.0, _FARTHEST_STEP / max(float(np.abs(step).max()), _CLOSE))
        if np.abs(step).max() < _CLOSE:
            break
    # Scores between 0 and 1 vary less than wins and losses with the same chance do.
    share = 1.0
    if ((y > 0) & (y < 1)).any():
        dispersion = float(((y - p) ** 2).sum() / max((p * (1 - p)).sum(), _CLOSE)) * n / max(1, n - 2)
        share = min(1.0, dispersion)
    inverse = np.linalg.inv(curvature)
    variance = np.diag(inverse @ information @ inverse) * share
    hidden = (inverse[:, 1] * (pull[1] * penalty.spread)) ** 2
    return theta, np.sqrt(variance + hidden)


def _lengths(column: pl.Series) -> pl.Series:
    """A column as finite lengths, checked."""
    numbers = column.cast(pl.Float64, strict=False).fill_nan(None)
    wrong = (numbers.is_infinite() | (numbers < 0)).fill_null(value=False)
    if wrong.any() or (column.dtype == pl.String and column.is_not_null().any()):
        raise TableError(f"cases: column {column.name!r} must hold numbers of 0 or more, in {row_numbers(wrong)}")
    return numbers


def scale_of(a: Floats, b: Floats) -> float:
    """The usual difference in length.

    It is the root of the sum of squares of the spread of the differences and a quarter of the median length. The spread
    is the distance from the 10th to the 90th percentile over that of a standard normal variable, so that one enormous
    answer does not make all others alike; where most cases do not differ, it is the standard deviation.
    """
    tenth, ninetieth = np.quantile(b - a, [0.1, 0.9])
    spread = (ninetieth - tenth) / _TENTHS if ninetieth > tenth else (b - a).std()
    return float(np.hypot(spread, _NEAR * np.median((a + b) / 2)))


def _chance(logit: float) -> float:
    return float(0.5 * (1 + np.tanh(logit / 2)))
