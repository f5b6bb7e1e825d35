"""How often B wins: the rate with its interval, the sign test, and how many cases more."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from pairscale.checks.effect import sign_test as coin_p
from pairscale.core.display import ReprMixin
from pairscale.core.options import require_choice, require_level, require_number
from pairscale.core.tables import Table
from pairscale.evaluate.inference.cases import (
    USED,
    Scores,
    Ties,
    by_task,
    graded_count,
    normal_quantile,
    read_cases,
    tally,
    used_cases,
)
from pairscale.evaluate.inference.score import (
    design_size,
    effective_size,
    graded_limits,
    rate_ends,
    score_interval,
)
from pairscale.evaluate.inference.sequence import last_limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "FEW_GRADED",
    "CasesNeeded",
    "Interval",
    "SignTest",
    "WinRate",
    "cases_needed",
    "few_graded",
    "sign_test",
    "win_rate",
]

FEW_GRADED = 30
"""Of fewer graded tasks, the interval may be too narrow: seldom scores that lie far away may not be among them."""

Interval: TypeAlias = Literal["wilson", "betting"]
"""How an interval is made."""


@dataclass(frozen=True, slots=True, repr=False)
class WinRate(ReprMixin):
    """How often a variant wins.

    Attributes:
        variant: whose rate it is: always ``b``.
        rate: the mean score of the cases that were used (with ``betting``, over tasks of the mean over their cases),
            which is the mean preference where they are graded; None when there are none.
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
        effective_n: how many independent cases the n are worth; less than n when tasks have several cases.
        notices: what to be careful with.
        graded: whether graded preferences were averaged; otherwise the rate is that of hard verdicts.
        standard_error: of the rate: the standard deviation of the scores (by n - 1) over √n, or over the root of the
            cases that they are worth when tasks have several; None with fewer than two cases.
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
    ci: tuple[float, float] | None
    level: float
    interval: str
    used: tuple[str, ...]
    effective_n: float
    notices: tuple[str, ...]
    graded: bool = False
    standard_error: float | None = None

    def __str__(self) -> str:
        if self.rate is None or self.ci is None:
            return f"no case to count for {self.variant}"
        ends = f"{self.level * 100:g} % interval {self.ci[0] * 100:.0f} to {self.ci[1] * 100:.0f}"
        if self.graded:
            of = f"{self.n:,} graded case{'s' * (self.n != 1)}"
            return f"mean preference for {self.variant} {self.rate * 100:.1f} % over {of}, {ends}"
        return f"{self.variant} won {self.rate * 100:.1f} % of {self.n:,} case{'s' * (self.n != 1)}, {ends}"


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

    Where a task has several cases, these are not independent: Wilson's interval then counts with ``effective_n``.

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
    frame = read_cases(cases, graded=graded and ties != "excluded")
    used = used_cases(frame, ties)
    known = graded_count(used) if graded and ties != "excluded" else 0
    scores = by_task(used)
    rate = scores.mean
    size = effective_size(scores, level)
    ci = rate_ends(scores, size, level) if scores.n else None
    if interval == "betting" and scores.n:  # every task counts once
        means = scores.sums / scores.sizes
        rate = float(means.mean())
        size = float(scores.tasks)
        ci = last_limits(means, level)
    notices = []
    if not scores.n:
        why = f"none of {frame.height} cases is a {' or '.join(USED[ties])}" if frame.height else "there is no case"
        notices.append(f"no win rate: {why}")
    elif scores.repeated:
        notices.append(f"{scores.n} cases of {scores.tasks} tasks are worth {size:.0f} independent ones")
    if 0 < known < scores.n:
        notices.append(f"{scores.n - known:,} of {scores.n:,} cases are not graded; they count as 1, ½ or 0")
    if known and scores.tasks < FEW_GRADED and interval != "betting":
        notices.append(few_graded(scores.tasks))
    return WinRate(
        "b",
        rate,
        **asdict(tally(frame)),
        n=scores.n,
        tasks=scores.tasks,
        ci=ci,
        level=level,
        interval=interval,
        used=USED[ties],
        effective_n=size,
        notices=tuple(notices),
        graded=known > 0,
        standard_error=_standard_error(scores),
    )


def few_graded(tasks: int) -> str:
    """What to say of an interval for the mean of so few graded scores."""
    return (
        f"{tasks} graded task{'s' * (tasks != 1)} are few: if some answers are far better or worse than the others, "
        f"the interval may be too narrow; it takes {FEW_GRADED}"
    )


def _standard_error(scores: Scores) -> float | None:
    if scores.n < 2:
        return None
    return math.sqrt(scores.variance / design_size(scores))


@dataclass(frozen=True, slots=True)
class SignTest:
    """Could the decided cases be the tosses of a fair coin?

    Attributes:
        wins: tasks (or cases, when no task has several) that went to B.
        losses: those that went to A.
        n: both.
        even: tasks with as many wins as losses, left out.
        p_value: two-sided and exact; None when n is 0.
        unit: ``case``, or ``task`` when tasks have several cases: then a task has one sign, that of the majority.
        used: the outcomes that count.
    """

    wins: int
    losses: int
    n: int
    even: int
    p_value: float | None
    unit: str
    used: tuple[str, ...] = USED["excluded"]


def sign_test(cases: Table) -> SignTest:
    """The exact sign test of the decided cases, two-sided; of graded cases, the hard verdicts count.

    Example:
        >>> won = [{"task_id": n, "outcome": "win", "winner": "b"} for n in range(6)]
        >>> sign_test(won).p_value
        0.03125
    """
    scores = by_task(used_cases(read_cases(cases, graded=False), "excluded"))
    balance = 2 * scores.sums - scores.sizes
    wins, losses = int((balance > 0).sum()), int((balance < 0).sum())
    unit = "task" if scores.repeated else "case"
    return SignTest(wins, losses, wins + losses, scores.tasks - wins - losses, coin_p(wins, wins + losses), unit)


@dataclass(frozen=True, slots=True)
class CasesNeeded:
    """How many cases an interval of a given width takes.

    Attributes:
        more: cases to run in addition, if they come out as those so far: as many of them unusable, too.
        more_at_most: the same, whatever the wins, ties and losses will be.
        total: usable cases in all, those so far included.
        half_width: that was asked for: half of the distance between the ends.
        half_width_now: of the interval as it is; None without a case.
        n: usable cases so far.
        level: of the interval.
        interval: how it is made.
        used: the outcomes that count.
    """

    more: int
    more_at_most: int
    total: int
    half_width: float
    half_width_now: float | None
    n: int
    level: float
    interval: str
    used: tuple[str, ...]


def cases_needed(
    cases: Table, half_width: float, *, ties: Ties = "half", level: float = 0.95, graded: bool = True
) -> CasesNeeded:
    """How many more cases until the interval of the win rate is no wider than ± ``half_width``.

    It solves for the size of Wilson's interval at the rate and the share of ties seen so far, or at the spread of
    graded preferences. Where tasks have several cases, further tasks are taken to have as many, and to be as much
    alike. Without any case, both answers are the worst case: an even rate and no ties.

    Example:
        >>> cases_needed([], 0.05).more
        381
    """
    level, half_width = require_level(level), require_number(half_width, "half_width", above=0, below=0.5)
    frame = read_cases(cases, graded=graded and ties != "excluded")
    scores = by_task(used_cases(frame, ties))
    n = scores.n
    rate = 0.5 if scores.mean is None else scores.mean
    halves = scores.halves / max(1, n)
    # A case that shares its task is worth less than a whole one; and some of the cases that are run cannot be used.
    worth, usable = (effective_size(scores, level) / n, n / frame.height) if n else (1.0, 1.0)

    def width(total: int, rate: float, halves: float) -> float:
        lower, upper = score_interval(rate, halves, total * worth, level)
        return (upper - lower) / 2

    def graded_width(total: int, rate: float, variance: float) -> float:
        size, units = np.array([total * design_size(scores) / n]), max(1.0, total * scores.tasks / n)
        skew = np.array([scores.skewness * math.sqrt(n / max(1, total))])
        ends = graded_limits(np.array([rate]), np.array([variance]), units, size, level, skew)
        return float(ends[1][0] - ends[0][0]) / 2

    most = math.ceil(normal_quantile(level) ** 2 / (4 * half_width**2) / worth) + 1
    now_width, spread = (graded_width, scores.variance) if scores.graded else (width, halves)
    total, worst = _first(most, half_width, now_width, (rate, spread)), _first(most, half_width, width, (0.5, 0.0))
    more, at_most = (math.ceil(max(0, wanted - n) / usable - 1e-9) for wanted in (total, max(total, worst)))
    now = now_width(n, rate, spread) if n else None
    return CasesNeeded(more, at_most, total, half_width, now, n, level, "wilson", USED[ties])


def _first(most: int, half_width: float, width: _Width, shares: tuple[float, float]) -> int:
    """The least number of cases, at most ``most``, with an interval no wider than asked."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if width(middle, *shares) <= half_width else (middle, high)
    return high


if TYPE_CHECKING:
    from collections.abc import Callable

    _Width: TypeAlias = Callable[[int, float, float], float]
