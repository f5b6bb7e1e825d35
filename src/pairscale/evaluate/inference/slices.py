"""B's win rate in parts of the cases, and the difference between two runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from pairscale.checks.effect import sign_test as coin_p
from pairscale.core.display import ReprMixin
from pairscale.core.options import require_level
from pairscale.core.tables import Table, as_text, require_columns
from pairscale.evaluate.inference.cases import USED, Ties, read_cases, task_means, used_cases
from pairscale.evaluate.inference.score import graded_limits, half_share, score_limits
from pairscale.evaluate.inference.win_rate import Interval, win_rate

__all__ = ["RunDifference", "Slices", "compare_runs", "slices"]

_COUNTS = ("wins", "losses", "ties", "flips", "abstentions", "errors", "n", "tasks")
_TABLE: dict[str, pl.DataType] = {
    "slice": pl.String(),
    **dict.fromkeys(_COUNTS, pl.Int64()),
    **dict.fromkeys(("rate", "lower", "upper", "joint_lower", "joint_upper"), pl.Float64()),
}


@dataclass(frozen=True, slots=True, repr=False)
class Slices(ReprMixin, table="table"):
    """B's win rate in each slice of the cases.

    Attributes:
        table: one row per slice: ``slice``, the counts of :class:`~pairscale.evaluate.inference.WinRate`, ``rate``, the
            interval ``lower`` and ``upper`` of this slice alone, and ``joint_lower`` and ``joint_upper``, which hold
            the rates of all slices at once. Cases without a tag are the slice null.
        by: the column that it is sliced by.
        level: of the intervals.
        interval: how they were made; the joint ones are Bonferroni's.
        used: the outcomes that count.
        note: how to read several intervals at once.
        graded: whether rates are means of graded preferences.
    """

    table: pl.DataFrame
    by: str
    level: float
    interval: str
    used: tuple[str, ...]
    note: str
    graded: bool = False

    def __str__(self) -> str:
        return f"B's win rate in {self.table.height:,} slice{'s' * (self.table.height != 1)} by {self.by}"


def slices(
    cases: Table,
    by: str = "tags",
    *,
    ties: Ties = "half",
    interval: Interval = "wilson",
    level: float = 0.95,
    graded: bool = True,
) -> Slices:
    """B's win rate by tag, with intervals. A case with several tags is in several slices.

    Args:
        cases: ``task_id``, ``outcome``, ``winner``, ``preference`` where they are graded, and the column to slice by.
        by: a column of lists (tags) or of single values.
        ties: ``half``, or ``excluded`` for the decided cases alone.
        interval: how they are made; see :func:`~pairscale.evaluate.inference.win_rate`.
        level: of the intervals.
        graded: count preferences where cases have them; False for the rates of hard verdicts.

    Raises:
        TableError: when a column is missing.
    """
    level = require_level(level)
    frame = read_cases(cases)
    require_columns(frame, [by], "cases")
    tagged = frame.with_columns(_slice=pl.col(by))
    if isinstance(frame.schema[by], pl.List):
        each_once = pl.col("_slice").list.unique(maintain_order=True)
        tagged = tagged.with_columns(each_once).explode("_slice", empty_as_null=True)
    tagged = tagged.with_columns(as_text(tagged["_slice"], "cases"))
    used_cases(frame, ties)
    parts = tagged.partition_by("_slice", maintain_order=True, as_dict=True)
    # Those with a rate share the chance of being wrong; a slice without a usable case has no interval to be wrong.
    count = sum(not used_cases(part, ties).is_empty() for part in parts.values())
    joint = 1 - (1 - level) / max(1, count)
    rows, any_graded = [], False
    for (name,), part in parts.items():
        alone, together = (
            win_rate(part, ties=ties, interval=interval, level=each, graded=graded) for each in (level, joint)
        )
        any_graded |= alone.graded
        counts = {column: getattr(alone, column) for column in _COUNTS}
        ends = (*(alone.ci or (None, None)), *(together.ci or (None, None)))
        rows.append({"slice": name, **counts, "rate": alone.rate, **dict(zip(list(_TABLE)[-4:], ends, strict=True))})
    table = pl.DataFrame(rows, schema=_TABLE).sort("n", "slice", descending=[True, False], nulls_last=True)
    return Slices(table, by, level, interval, USED[ties], _note(count, level), any_graded)


def _note(count: int, level: float) -> str:
    if count < 2:
        return ""
    chance = 1 - level**count
    return (
        f"{count} slices: if B were as good as A in all of them, at least one interval would miss 1/2 with a chance of "
        f"up to {chance:.0%}; to pick out slices afterwards, go by joint_lower and joint_upper"
    )


@dataclass(frozen=True, slots=True)
class RunDifference:
    """How B's win rate changed from one run to another, on the tasks of both.

    Attributes:
        change: the mean over tasks of the new score less the old one; None without a common task.
        ci: its interval.
        rate: the new rate on the common tasks.
        baseline_rate: the old one.
        risen: tasks whose score is higher than before.
        fallen: tasks whose score is lower.
        same: tasks with the same score.
        p_value: the exact sign test of risen against fallen (McNemar's, when there are no ties); None without either.
        n: common tasks.
        only_new: tasks of the new run alone; not used.
        only_baseline: tasks of the old run alone; not used.
        level: of the interval.
        interval: how it was made: the score interval on the scale of changes.
        used: the outcomes that count.
        graded: whether some scores are graded preferences.
    """

    level: float
    only_new: int
    only_baseline: int
    change: float | None = None
    ci: tuple[float, float] | None = None
    rate: float | None = None
    baseline_rate: float | None = None
    risen: int = 0
    fallen: int = 0
    same: int = 0
    p_value: float | None = None
    n: int = 0
    interval: str = "wilson"
    used: tuple[str, ...] = USED["half"]
    graded: bool = False


def compare_runs(cases: Table, baseline: Table, *, level: float = 0.95, graded: bool = True) -> RunDifference:
    """Compare two runs task by task: did B's win rate change?

    Several cases of a task are averaged first. Ties and flips are half. Of graded cases, ``risen`` and ``fallen`` count
    every change of the preference, however small; the interval says how large the mean change is.

    Args:
        cases: of the new run: ``task_id``, ``outcome``, ``winner``, and ``preference`` where they are graded.
        baseline: of the old one.
        level: of the interval.
        graded: count preferences where cases have them; False for hard verdicts.
    """
    level = require_level(level)
    new = task_means(cases, "cases", graded=graded)
    old = task_means(baseline, "baseline", graded=graded)
    both = new.join(old, on="task_id", suffix="_old", maintain_order="left")
    n = both.height
    found = RunDifference(level, only_new=new.height - n, only_baseline=old.height - n)
    if not n:
        return found
    change = both["score"].to_numpy() - both["score_old"].to_numpy()
    risen = int((change > 0).sum())
    fallen = int((change < 0).sum())
    scaled = (change + 1) / 2
    mean = np.array([scaled.mean()])
    spread = np.array([scaled.var()])
    size = np.array([float(n)])
    is_graded = bool(both["graded"].any() or both["graded_old"].any())
    if is_graded:
        lower, upper = graded_limits(mean, spread * n / max(1, n - 1), n, size, level)
    else:
        lower, upper = score_limits(mean, half_share(mean, spread), size, level)
    return replace(
        found,
        change=float(change.mean()),
        ci=(2 * float(lower[0]) - 1, 2 * float(upper[0]) - 1),
        rate=float(both["score"].to_numpy().mean()),
        baseline_rate=float(both["score_old"].to_numpy().mean()),
        risen=risen,
        fallen=fallen,
        same=n - risen - fallen,
        p_value=coin_p(risen, risen + fallen),
        n=n,
        graded=is_graded,
    )
