"""Would B still win if both answers were equally long, or had as many lists?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, TableError
from pairscale.core.options import require_level
from pairscale.core.tables import Table, require_columns, row_numbers
from pairscale.evaluate.inference._penalised import Penalty, fit_penalised
from pairscale.evaluate.inference.cases import USED, by_task, graded_count, normal_quantile, read_cases, used_cases
from pairscale.evaluate.inference.score import effective_size, rate_ends, student_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "MARKDOWN",
    "ControlledRate",
    "StyleEffect",
    "control_names",
    "controlled_rate",
    "length_controlled",
    "scales_of",
]

MARKDOWN = ("headers", "lists", "bold")
"""What ``markdown`` stands for: headers, list items and bold passages."""

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
_LENGTHS = ("length_a", "length_b")
_HAVE = "to know it, compare answers of similar"


@dataclass(frozen=True, slots=True)
class StyleEffect:
    """What a difference in one style is worth to the judge.

    Attributes:
        name: the style: ``length``, ``headers``, ``lists``, ``bold`` or a column.
        effect: logits that a difference far above the usual is worth, after shrinking; above 0, more of it wins.
        ci: its interval; None where none would hold.
        mean_a: the mean of A's answers.
        mean_b: the mean of B's answers.
        scale: the usual difference: tanh(difference / scale) is what ``effect`` is multiplied by.
        overlap: cases in which both answers have nearly the same of it: the difference is at most a quarter of their
            mean.
        differing: cases in which they differ at all; without any, nothing is known of the effect.
    """

    name: str
    effect: float
    ci: tuple[float, float] | None
    mean_a: float
    mean_b: float
    scale: float
    overlap: int
    differing: int


@dataclass(frozen=True, slots=True, repr=False)
class ControlledRate(ReprMixin):
    """B's win rate if both answers were alike in style, beside the rate as it is.

    Attributes:
        rate: B's win rate, ties and flips as half, if no controlled style differed; None if it cannot be told.
        ci: its interval; None where none would hold.
        overlap: cases in which the answers are nearly alike in all controlled styles. These carry the estimate; where
            they are few, it rests on the model.
        notices: what to be careful with.
        effects: what each style is worth, in the order of ``control``.
        raw_rate: B's win rate in the same cases, as they are.
        raw_ci: its interval.
        n: cases that it rests on.
        tasks: tasks that these belong to.
        missing: answered cases in which a style is not known, left out.
        level: of the intervals.
        control: the controlled styles.
        used: the outcomes that count.
        graded: whether some scores are graded preferences.
    """

    rate: float | None
    ci: tuple[float, float] | None
    overlap: int
    notices: tuple[str, ...]
    effects: tuple[StyleEffect, ...]
    raw_rate: float | None
    raw_ci: tuple[float, float] | None
    n: int
    tasks: int
    missing: int
    level: float
    control: tuple[str, ...]
    used: tuple[str, ...] = USED["half"]
    graded: bool = False

    @property
    def differing(self) -> tuple[str, ...]:
        """The controlled styles in which some answers differ; without any, ``rate`` is the rate as it is."""
        return tuple(one.name for one in self.effects if one.differing)

    def __str__(self) -> str:
        if self.rate is None or not self.differing:
            return "; ".join(self.notices)
        ends = ""
        if self.ci is not None:
            ends = f", {self.level * 100:g} % interval {self.ci[0] * 100:.0f} to {self.ci[1] * 100:.0f}"
        near = f"{self.overlap:,} of {self.n:,} cases are near that"
        return f"at equal {_and(self.differing)}, B wins {self.rate * 100:.1f} %{ends}; {near}"


def control_names(control: str | Sequence[str]) -> tuple[str, ...]:
    """The styles to control for, each once; ``markdown`` is :data:`MARKDOWN`.

    Raises:
        InputError: when there are none, or one is no name.

    Example:
        >>> control_names(["length", "markdown"])
        ('length', 'headers', 'lists', 'bold')
    """
    given = [control] if isinstance(control, str) else list(control)
    if not given or not all(isinstance(name, str) and name for name in given):
        raise InputError(f"control takes names of styles, such as 'length' and 'markdown', not {control!r:.80}")
    return tuple(dict.fromkeys(one for name in given for one in (MARKDOWN if name == "markdown" else (name,))))


def length_controlled(cases: Table, *, level: float = 0.95) -> ControlledRate:
    """B's win rate at equal length: :func:`controlled_rate` for ``length_a`` and ``length_b``, in characters."""
    return controlled_rate(cases, ["length"], level=level)


def controlled_rate(cases: Table, control: str | Sequence[str] = ("length",), *, level: float = 0.95) -> ControlledRate:
    """B's win rate if both answers were alike in length, or in any other measure of style.

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
    level, names = require_level(level), control_names(control)
    frame = _scored(cases)
    sides = [(f"{name}_a", f"{name}_b") for name in names]
    columns = [column for pair in sides for column in pair]
    require_columns(frame, columns, "cases")
    frame = frame.with_columns(_numbers(frame[column], is_length=column in _LENGTHS) for column in columns)
    known = frame.drop_nulls(columns)
    a, b = (known.select(pair[at] for pair in sides).to_numpy() for at in (0, 1))
    near = np.abs(b - a) <= _NEAR * (np.abs(a) + np.abs(b)) / 2
    scores, overlap = by_task(known), int(near.all(axis=1).sum())
    fitted = _fitted(known, a, b, near, names, level)
    raw_ci = None
    if scores.mean is not None:
        raw_ci = rate_ends(scores, effective_size(scores, level), level)
    differing = [one.name for one in fitted.effects if one.differing]
    if differing:
        fitted.notices.extend(_overlap_notice(overlap, scores.n, differing))
    elif fitted.rate is not None:
        nothing = f"no answers differ in {_and(names)}, so there is nothing to control for"
        fitted = replace(fitted, notices=[nothing], rate=scores.mean, ci=raw_ci)
    return ControlledRate(
        rate=fitted.rate,
        ci=fitted.ci,
        overlap=overlap,
        notices=tuple(fitted.notices),
        effects=fitted.effects,
        raw_rate=scores.mean,
        raw_ci=raw_ci,
        n=scores.n,
        tasks=scores.tasks,
        missing=frame.height - known.height,
        level=level,
        control=names,
        graded=graded_count(known) > 0,
    )


@dataclass(frozen=True, slots=True)
class _Fitted:
    """What the curve says."""

    notices: list[str]
    rate: float | None = None
    ci: tuple[float, float] | None = None
    effects: tuple[StyleEffect, ...] = ()


def _fitted(
    known: pl.DataFrame, a: Floats, b: Floats, near: NDArray[np.bool_], names: Sequence[str], level: float
) -> _Fitted:
    n, tasks, y = known.height, known["task_id"].n_unique(), known["score"].to_numpy()
    if n < _LEAST:
        why = f"{n} answered case{'s' * (n != 1)} with all measures are too few; it takes {_LEAST}"
        return _Fitted([f"no rate at equal {_and(names)}: {why}"])
    scale = scales_of(a, b)
    x = np.tanh((b - a) / scale)
    penalties = tuple(LENGTH if name == "length" else OTHER for name in names)
    notices, codes, quantile = list[str](), None, normal_quantile(level)
    if n > tasks:
        codes = known["task_id"].rank("dense").cast(pl.Int64).to_numpy() - 1
        quantile = student_quantile(level, tasks - 1)
        notices.append(f"{n:,} cases of {tasks:,} task{'s' * (tasks != 1)}: the interval is by task")
    fit = fit_penalised(x, y, penalties, codes)
    low, high = fit.estimate - quantile * fit.se, fit.estimate + quantile * fit.se
    effects = tuple(
        StyleEffect(
            name,
            float(fit.estimate[at]),
            (float(low[at]), float(high[at])),
            float(a[:, at - 1].mean()),
            float(b[:, at - 1].mean()),
            float(scale[at - 1]),
            int(near[:, at - 1].sum()),
            int((a[:, at - 1] != b[:, at - 1]).sum()),
        )
        for at, name in enumerate(names, start=1)
    )
    rate, ci = _chance(fit.estimate[0]), (_chance(low[0]), _chance(high[0]))
    loose = tuple(Penalty(one.centre, one.spread, one.spread, one.spread) for one in penalties)
    differing = [one.name for one in effects if one.differing]
    if differing:
        notices += _conflict(rate, ci, _chance(fit_penalised(x, y, loose).estimate[0]), differing)
    return _Fitted(notices, rate, ci, effects)


def _scored(cases: Table) -> pl.DataFrame:
    """The answered cases with their scores."""
    return used_cases(read_cases(cases), "half")


def _numbers(column: pl.Series, *, is_length: bool = False) -> pl.Series:
    """A column as finite numbers, checked."""
    try:
        numbers = column.cast(pl.Float64).fill_nan(None)
    except pl.exceptions.PolarsError:
        raise TableError(f"cases: column {column.name!r} holds {column.dtype}, not numbers") from None
    if column.dtype == pl.String and column.is_not_null().any():
        raise TableError(f"cases: column {column.name!r} holds {column.dtype}, not numbers")
    wrong = (numbers.is_infinite() | ((numbers < 0) & is_length)).fill_null(value=False)
    if wrong.any():
        what = "below 0" if is_length and (numbers < 0).any() else "infinite"
        raise TableError(f"cases: column {column.name!r} is {what} in {row_numbers(wrong)}; it cannot be")
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


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _overlap_notice(overlap: int, n: int, names: Sequence[str]) -> list[str]:
    if overlap >= max(_FEW, _FEW_SHARE * n):
        return []
    what = _and(names)
    if not overlap:
        return [f"no case has answers of nearly equal {what}: the rate at equal {what} is a guess; {_HAVE} {what}"]
    few = f"only {overlap:,} of {n:,} cases have answers of nearly equal {what}"
    return [f"{few}: the rate at equal {what} is mostly a guess; {_HAVE} {what}"]


def _conflict(rate: float, ci: tuple[float, float], alone: float, names: Sequence[str]) -> list[str]:
    """Whether the slope within these cases, hardly shrunk, says something else."""
    if ci[0] <= alone <= ci[1] and (rate - 0.5) * (alone - 0.5) >= 0:
        return []
    effect = f"{_and(names)} does not count here as it usually does"
    return [f"{effect}; by these cases alone, the rate would be {alone * 100:.0f} %, so do not rely on either figure"]
