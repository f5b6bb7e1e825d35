"""Would B still win if both answers were equally long, or had as many lists?

It is a logistic regression of graded scores on a few bounded differences, with coefficients drawn towards known values.
The curve is logit E(y) = a + Σ b x. The fit maximises

    Σ (y η - log(1 + exp η))  +  a / 2 - log(1 + exp a)  -  Σ (b - centre)² / (2 s²)

The second term is worth half a win and half a loss at x = 0, so that a is finite even if every y is 1. The third draws
each b towards its centre, with one s above the centre and another one below. Where the true b lies elsewhere, that pull
is a bias; it is counted as a variance, for true values that spread around the centre with the standard deviation
``spread``. ``spread`` is larger than s: the estimate trusts the slope within the cases less than chance alone would
allow, and the interval says what that may cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, TableError
from pairscale.core.notices import plural
from pairscale.core.options import require_level
from pairscale.core.tables import Table, require_columns, row_numbers
from pairscale.evaluate.inference.cases import ArrayPair, Ends, Texts, by_task, normal_quantile, read_cases, used_cases
from pairscale.evaluate.inference.score import rate_ends, student_quantile

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats

MARKDOWN = ("headers", "lists", "bold")
"""What ``markdown`` stands for: headers, list items and bold passages."""

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
"""For length: AlpacaEval's published length-controlled rates of 12 models amount to 1.0 to 1.5 logits; to 2 for one.

Within a model, the slope is 1.6 to 4.5, and 18 for the one that always gives the same ten characters. Answers that are
much shorter than usual have often failed, which is no taste for length. So the pull is strong from above, and weak from
below.
"""

OTHER = Penalty(centre=0.0, above=0.5, below=0.5, spread=1.0)
"""For every other style, of which only this is known beforehand: effects of several logits are rare."""

_NEAR = 0.25  # of the mean of two measures: a smaller difference is nearly none
_FEW_SHARE, _FEW = 0.1, 10
_LEAST = 3
_TENTHS = 2.5631  # from the 10th to the 90th percentile of a standard normal variable


@dataclass(frozen=True, slots=True, repr=False)
class ControlledRate(ReprMixin):
    """B's win rate if both answers were alike in style, beside the rate as it is.

    Attributes:
        rate: B's win rate, ties and flips as half, if no controlled style differed; None if it cannot be told.
        ci: its interval; None where none would hold.
        overlap: cases in which the answers are nearly alike in all controlled styles. These carry the estimate; where
            they are few, it rests on the model.
        notices: what to be careful with.
        differing: the controlled styles in which some answers differ; without any, ``rate`` is the rate as it is.
        raw_rate: B's win rate in the same cases, as they are.
        n: cases that it rests on.
        level: of the intervals.
    """

    overlap: int
    raw_rate: float | None
    n: int
    level: float
    rate: float | None = None
    ci: Ends | None = None
    notices: Texts = ()
    differing: Texts = ()

    def __str__(self) -> str:
        if self.rate is None or not self.differing:
            return "; ".join(self.notices)
        return f"at equal {', '.join(self.differing)}, B wins {self.rate * 100:.1f} %"


def control_names(control: str | Sequence[str]) -> Texts:
    """The styles to control for, each once; ``markdown`` is :data:`MARKDOWN`.

    Raises:
        InputError: when there are none, or one is no name.

    Example:
        >>> control_names(["length", "markdown"])
        ('length', 'headers', 'lists', 'bold')
        >>> control_names("length,bold")
        ('length', 'bold')
    """
    given = [control] if isinstance(control, str) else control
    names = [name.strip() for name in ",".join(map(str, given)).split(",")]  # with commas, as the shell gives them
    if not all(names):
        raise InputError(f"control takes names of styles, such as 'length' and 'markdown', not {control!r:.80}")
    parts = [MARKDOWN if name == "markdown" else (name,) for name in names]
    return tuple(dict.fromkeys(name for part in parts for name in part))


def controlled_rate(cases: Table, control: str | Sequence[str] = ("length",), *, level: float = 0.95) -> ControlledRate:
    """B's win rate if both answers were alike in length (in characters), or in any other measure of style.

    Scores follow logit E(score) = a + Σ b x, with x = tanh((B's measure - A's) / scale) of each style. The rate without
    a difference is 1 / (1 + exp(-a)). Scale is the usual difference, from the spread of the differences and the median
    measure. Each b is drawn towards a known value, 1 for length and 0 for everything else; the interval allows for
    other true values.

    Args:
        cases: ``task_id``, ``outcome`` and ``winner``, with ``preference`` where they are graded, or ``task_id`` and
            ``preference`` alone; and for each style two columns, such as ``length_a`` and ``length_b``.
        control: the styles: names of columns without ``_a`` and ``_b``. ``markdown`` is headers, lists and bold.
        level: of the intervals.

    Raises:
        InputError: when ``control`` is empty.
        TableError: when a column is missing, holds no numbers, or a length is below 0.

    Example:
        >>> cases = [
        ...     {"task_id": n, "preference": n % 3 / 2, "length_a": 100, "length_b": 90 + 5 * (n % 7)}
        ...     for n in range(42)
        ... ]
        >>> found = controlled_rate(cases)
        >>> round(found.raw_rate, 2), round(found.rate, 2), found.overlap
        (0.5, 0.48, 42)
    """
    level = require_level(level)
    names = control_names(control)
    frame = used_cases(read_cases(cases), "half")
    columns = [f"{name}_{side}" for side in "ab" for name in names]
    require_columns(frame, columns, "cases")
    measured = frame.with_columns(_numbers(frame[column]) for column in columns).drop_nulls(columns)
    a, b = np.hsplit(measured.select(columns).to_numpy(), 2)
    near = np.abs(b - a) <= _NEAR * (np.abs(a) + np.abs(b)) / 2
    scores = by_task(measured)
    controlled = ControlledRate(
        overlap=int(near.all(axis=1).sum()),
        raw_rate=scores.mean,
        n=scores.n,
        level=level,
    )
    if scores.n < _LEAST:
        few = f"{plural(scores.n, 'answered case')} with all measures are too few; it takes {_LEAST}"
        return replace(controlled, notices=(f"no rate at equal {', '.join(names)}: {few}",))
    scale = scales_of(a, b)
    x = np.tanh((b - a) / scale)
    quantile = normal_quantile(level)
    notices = []
    if scores.repeated:
        differences = pl.DataFrame(x, schema=list(names)).with_columns(measured["task_id"])
        x = differences.group_by("task_id", maintain_order=True).mean().drop("task_id").to_numpy()
        quantile = student_quantile(level, scores.tasks - 1)
        tasks = plural(scores.tasks, "task")
        notices.append(f"{scores.n:,} cases of {tasks}: every task counts once, by the mean of its cases")
    penalties = tuple(LENGTH if name == "length" else OTHER for name in names)
    estimate, se = fit_penalised(x, scores.means, penalties)
    differing = tuple(name for name, differs in zip(names, (a != b).any(axis=0), strict=True) if differs)
    controlled = replace(controlled, differing=differing)
    if not differing:
        nothing = f"no answers differ in {', '.join(names)}, so there is nothing to control for"
        return replace(controlled, notices=(nothing,), rate=controlled.raw_rate, ci=rate_ends(scores, level))
    if controlled.overlap < max(_FEW, _FEW_SHARE * controlled.n):
        what = ", ".join(differing)
        few = f"only {controlled.overlap:,} of {controlled.n:,} cases have answers of nearly equal {what}"
        notices.append(
            f"{few}: the rate at equal {what} is mostly a guess; to know it, compare answers of similar {what}"
        )
    half = quantile * se[0]
    interval = (_chance(estimate[0] - half), _chance(estimate[0] + half))
    return replace(controlled, rate=_chance(estimate[0]), ci=interval, notices=tuple(notices))


def fit_penalised(x: Floats, y: Floats, penalties: tuple[Penalty, ...]) -> ArrayPair:
    """Fit scores on differences: the coefficients, the intercept first, and their standard errors.

    The errors hold what the pull may cost.

    Args:
        x: a row per task, a column per difference.
        y: scores between 0 and 1.
        penalties: one per column of ``x``.
    """
    from scipy.special import expit

    n, k = x.shape
    design = np.column_stack([np.ones(n), x])
    centre = np.array([0.0, *(one.centre for one in penalties)])
    above = np.array([0.0, *(one.above**-2 for one in penalties)])
    below = np.array([0.0, *(one.below**-2 for one in penalties)])
    theta = centre.copy()
    for _ in range(_STEPS):
        p, at_zero = expit(design @ theta), float(expit(theta[0]))
        pull = np.where(theta > centre, above, below)
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
        dispersion = float(((y - p) ** 2).sum() / max((p * (1 - p)).sum(), _CLOSE)) * n / max(1, n - k - 1)
        share = min(1.0, dispersion)
    inverse = np.linalg.inv(curvature)
    variance = np.diag(inverse @ information @ inverse) * share
    spread = np.array([0.0, *(one.spread for one in penalties)])
    hidden = ((inverse * (pull * spread)[None, :]) ** 2).sum(axis=1)
    return theta, np.sqrt(variance + hidden)


def _numbers(column: pl.Series) -> pl.Series:
    """A column as finite numbers, checked."""
    numbers = column.cast(pl.Float64, strict=False).fill_nan(None)
    least = 0.0 if column.name in {"length_a", "length_b"} else -np.inf
    wrong = (numbers.is_infinite() | (numbers < least)).fill_null(value=False)
    if wrong.any() or (column.dtype == pl.String and column.is_not_null().any()):
        raise TableError(f"cases: column {column.name!r} must hold numbers, of lengths from 0, in {row_numbers(wrong)}")
    return numbers


def scales_of(a: Floats, b: Floats) -> Floats:
    """The usual difference of each style, a column each; 1 where no answers differ.

    It is the root of the sum of squares of the spread of the differences and a quarter of the median measure. The
    spread is the distance from the 10th to the 90th percentile over that of a standard normal variable, so that one
    enormous answer does not make all others alike; where most cases do not differ, it is the standard deviation.
    """
    level = np.median((np.abs(a) + np.abs(b)) / 2, axis=0)
    tenth, ninetieth = np.quantile(b - a, [0.1, 0.9], axis=0)
    spread = np.where(ninetieth > tenth, (ninetieth - tenth) / _TENTHS, (b - a).std(axis=0))
    scale = np.hypot(spread, _NEAR * level)
    return np.where(scale > 0, scale, 1.0)


def _chance(logit: float) -> float:
    return float(0.5 * (1 + np.tanh(logit / 2)))
