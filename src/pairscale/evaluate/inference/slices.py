"""B's win rate in parts of the cases."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import polars as pl

from pairscale.core.display import ReprMixin
from pairscale.core.notices import plural
from pairscale.core.options import require_level
from pairscale.core.tables import Table, as_text, require_columns
from pairscale.evaluate.inference.cases import USED, Ties, read_cases, used_cases
from pairscale.evaluate.inference.win_rate import Interval, win_rate

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
        return f"B's win rate in {plural(self.table.height, 'slice')} by {self.by}"


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
    rows = []
    any_graded = False
    for (name,), part in parts.items():
        alone = win_rate(part, ties=ties, interval=interval, level=level, graded=graded)
        together = win_rate(part, ties=ties, interval=interval, level=joint, graded=graded)
        any_graded |= alone.graded
        ends = dict(zip(("lower", "upper"), alone.ci or (None, None), strict=True))
        joint_ends = dict(zip(("joint_lower", "joint_upper"), together.ci or (None, None), strict=True))
        rows.append({"slice": name, **asdict(alone), **ends, **joint_ends})
    table = pl.DataFrame(rows, schema=_TABLE).sort("n", "slice", descending=[True, False], nulls_last=True)
    note = ""
    if count > 1:
        chance = 1 - level**count
        note = (
            f"{count} slices: if B were as good as A in all of them, at least one interval would miss 1/2 with a "
            f"chance of up to {chance:.0%}; to pick out slices afterwards, go by joint_lower and joint_upper"
        )
    return Slices(table, by, level, interval, USED[ties], note, any_graded)
