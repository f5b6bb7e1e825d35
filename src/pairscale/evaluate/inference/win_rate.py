"""How often B wins: the rate with its interval, also in parts of the cases."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

import polars as pl

from pairscale.core.display import ReprMixin
from pairscale.core.notices import plural
from pairscale.core.options import require_choice, require_level
from pairscale.core.tables import Table, Values, require_columns
from pairscale.evaluate.inference.cases import (
    USED,
    Ends,
    Texts,
    Ties,
    by_task,
    graded_count,
    read_cases,
    tally,
    used_cases,
)
from pairscale.evaluate.inference.score import rate_ends
from pairscale.evaluate.inference.sequence import last_limits

FEW_GRADED = 30
"""Of fewer graded tasks, the interval may be too narrow: seldom scores that lie far away may not be among them."""

Interval: TypeAlias = Literal["wilson", "betting"]
"""How an interval is made."""


@dataclass(frozen=True, slots=True, repr=False)
class WinRate(ReprMixin):
    """How often a variant wins.

    Attributes:
        variant: whose rate it is: always ``b``.
        rate: the mean score of the cases that were used, over tasks of the mean over their cases, which is the mean
            preference where they are graded; None when there are none.
        wins: cases that B won.
        losses: cases that A won.
        ties: cases that neither won.
        flips: cases whose winner changed with the order.
        abstentions: cases without an answer; never used.
        errors: cases that failed; never used.
        n: cases that the rate rests on.
        tasks: tasks that these belong to.
        ci: the interval; None without a case.
        level: of the interval.
        interval: how it was made: ``wilson`` (the score interval, which is Wilson's when there are no ties) or
            ``betting``.
        used: the outcomes that count.
        notices: what to be careful with.
        graded: whether graded preferences were averaged; otherwise the rate is that of hard verdicts.
        standard_error: of the rate: the standard deviation of the tasks' scores (by their number less 1) over the root
            of their number; None with fewer than two tasks.
    """

    variant: str
    rate: float | None
    wins: int
    losses: int
    ties: int
    flips: int
    abstentions: int
    errors: int
    n: int
    tasks: int
    ci: Ends | None
    level: float
    interval: str
    used: Texts
    notices: Texts
    graded: bool = False
    standard_error: float | None = None

    def __str__(self) -> str:
        if self.rate is None or self.ci is None:
            return f"no case to count for {self.variant}"
        kind = "sequence" if self.interval == "betting" else "interval"
        ends = f"{self.level * 100:g} % confidence {kind} {self.ci[0] * 100:.0f} to {self.ci[1] * 100:.0f}"
        what = "mean preference for" if self.graded else "win rate of"
        return f"{what} {self.variant} {self.rate * 100:.1f} % over {plural(self.n, 'case')}, {ends}"


def win_rate(
    cases: Table,
    *,
    ties: Ties = "half",
    interval: Interval = "wilson",
    level: float = 0.95,
    graded: bool = True,
) -> WinRate:
    """B's win rate, with an interval.

    The rate is the mean score: a win of B is 1, a win of A 0, a tie or a flip ½ (or left out). A graded case counts
    with its preference, the probability that B is better; ``graded=False`` counts its hard verdict instead.
    Abstentions and errors are left out and counted.

    - ``wilson``: the rates that a score test does not reject. It takes ties for what they are, a score without a
      winner, and is Wilson's interval when there are none. Graded scores vary less, and the interval is narrower for
      that.
    - ``betting``: the last interval of :func:`~pairscale.evaluate.inference.confidence_sequence`, which also
      holds when the outcomes decided when to stop. Every task counts once.

    Where a task has several cases, these are not independent: every task counts once, by the mean of its cases.

    Args:
        cases: ``task_id``, ``outcome``, ``winner``; one row per case. Graded cases have ``preference``, too, or alone
            with ``task_id``.
        ties: ``half``, or ``excluded`` for the decided cases alone, which is always a rate of hard verdicts.
        interval: ``wilson`` or ``betting``.
        level: of the interval.
        graded: count preferences where cases have them; False for the rate of hard verdicts (B above ½, A below, a tie
            at ½).

    Raises:
        TableError: when the cases lack a column or hold another outcome.

    Example:
        >>> graded = [{"task_id": n, "preference": p} for n, p in enumerate((0.9, 0.6, 0.3, 0.8))]
        >>> round(win_rate(graded).rate, 4), win_rate(graded, graded=False).rate
        (0.65, 0.75)
        >>> rows = [("t1", "win", "b"), ("t2", "win", "b"), ("t3", "tie", None), ("t4", "win", "a")]
        >>> cases = [dict(zip(("task_id", "outcome", "winner"), row)) for row in rows]
        >>> result = win_rate(cases)
        >>> result.rate, tuple(round(bound, 3) for bound in result.ci)
        (0.625, (0.248, 0.889))
    """
    level = require_level(level)
    require_choice(interval, "interval", ("wilson", "betting"))
    graded = graded and ties != "excluded"
    frame = read_cases(cases, graded=graded)
    used = used_cases(frame, ties)
    n_graded = graded_count(used) if graded else 0
    scores = by_task(used)
    ci = None
    if scores.n:
        ci = last_limits(scores.means, level) if interval == "betting" else rate_ends(scores, level)
    notices = []
    if not scores.n:
        why = f"none of {frame.height} cases is a {' or '.join(USED[ties])}" if frame.height else "there is no case"
        notices.append(f"no win rate: {why}")
    elif scores.repeated:
        notices.append(f"{scores.n} cases of {plural(scores.tasks, 'task')}: every task counts once, by their mean")
    if 0 < n_graded < scores.n:
        notices.append(f"{scores.n - n_graded:,} of {scores.n:,} cases are not graded; they count as 1, ½ or 0")
    if n_graded and scores.tasks < FEW_GRADED and interval != "betting":
        notices.append(
            f"{plural(scores.tasks, 'graded task')} are few: if some answers are far better or worse than the others, "
            f"the interval may be too narrow; it takes {FEW_GRADED}"
        )
    return WinRate(
        "b",
        scores.mean,
        **tally(frame),
        n=scores.n,
        tasks=scores.tasks,
        ci=ci,
        level=level,
        interval=interval,
        used=USED[ties],
        notices=tuple(notices),
        graded=n_graded > 0,
        standard_error=math.sqrt(scores.variance / scores.tasks) if scores.tasks > 1 else None,
    )


# In parts of the cases


_COUNTS = ("wins", "losses", "ties", "flips", "abstentions", "errors", "n", "tasks")
_TABLE: Values = {
    "slice": pl.String,
    **dict.fromkeys(_COUNTS, pl.Int64),
    **dict.fromkeys(("rate", "lower", "upper"), pl.Float64),
}


def slices(cases: Table, *, interval: Interval = "wilson", level: float = 0.95) -> pl.DataFrame:
    """B's win rate by tag. A case with several tags is in several slices.

    Args:
        cases: ``task_id``, ``outcome``, ``winner``, ``preference`` where they are graded, and ``tags``, lists of texts.
        interval: how intervals are made; see :func:`~pairscale.evaluate.inference.win_rate`.
        level: of the intervals.

    Returns:
        One row per slice, the largest first: ``slice``, the counts of a :class:`WinRate`, ``rate``, and ``lower`` and
        ``upper``, which hold the rates of all slices at once (Bonferroni), so that slices may be picked out by them.
        Cases without a tag are the slice null.

    Raises:
        TableError: when a column is missing.
    """
    level = require_level(level)
    frame = read_cases(cases)
    require_columns(frame, ["tags"], "cases")
    each_once = pl.col("tags").list.unique(maintain_order=True)
    tagged = frame.with_columns(each_once).explode("tags", empty_as_null=True)
    parts = tagged.partition_by("tags", maintain_order=True, as_dict=True)
    # Those with a rate share the chance of being wrong; a slice without a usable case has no interval to be wrong.
    count = sum(not used_cases(part, "half").is_empty() for part in parts.values())
    rows = []
    for (name,), part in parts.items():
        rate = win_rate(part, interval=interval, level=1 - (1 - level) / max(1, count))
        lower, upper = rate.ci or (None, None)
        rows.append({"slice": name, **asdict(rate), "lower": lower, "upper": upper})
    return pl.DataFrame(rows, schema=_TABLE).sort("n", "slice", descending=[True, False], nulls_last=True)
