"""How often B wins: the rate with its interval, the sign test, the chance that B is better, and how many cases more."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from pairscale.checks.effect import sign_test as coin_p
from pairscale.core.display import ReprMixin
from pairscale.core.options import require_choice, require_level, require_number, require_seed
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
    student_quantile,
)
from pairscale.evaluate.inference.sequence import last_limits
from pairscale.pairing.table import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "FEW_GRADED",
    "CasesNeeded",
    "Interval",
    "ProbabilityBetter",
    "SignTest",
    "WinRate",
    "cases_needed",
    "few_graded",
    "probability_better",
    "sign_test",
    "win_rate",
]

FEW_GRADED = 30
"""Of fewer graded tasks, the interval may be too narrow: seldom scores that lie far away may not be among them."""
_RESAMPLES = 10_000
_BLOCK = 2**22  # numbers held at once while resampling
_INTERVALS = ("wilson", "bootstrap", "betting")
_STEPS = (0.25, 0.2, 0.1)  # of common scales of grades
_EVEN = 1e-9

Interval: TypeAlias = Literal["wilson", "bootstrap", "betting"]
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
        interval: how it was made: ``wilson`` (the score interval, which is Wilson's when there are no ties),
            ``bootstrap`` or ``betting``.
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
    seed: int | None = 1,
    graded: bool = True,
) -> WinRate:
    """B's win rate, with an interval.

    The rate is the mean score: a win of B is 1, a win of A 0, a tie or a flip ½ (or left out). A graded case counts
    with its preference, the probability that B is better; ``graded=False`` counts its hard verdict instead.
    Abstentions and errors are left out and counted.

    - ``wilson``: the rates that a score test does not reject. It takes ties for what they are, a score without a
      winner, and is Wilson's interval when there are none. Graded scores vary less, and the interval is narrower for
      that.
    - ``bootstrap``: tasks drawn with replacement, 10,000 times. Percentiles of the smoothed means, a little farther
      out than the level says, as the bootstrap is too narrow for few tasks (Hesterberg 2015).
    - ``betting``: the last interval of :func:`~pairscale.evaluate.inference.confidence_sequence`, the only one of the
      three that holds when the outcomes decided when to stop. Every task counts once.

    Where a task has several cases, these are not independent: Wilson's interval then counts with ``effective_n``, and
    the bootstrap draws whole tasks.

    Args:
        cases: ``task_id``, ``outcome``, ``winner``; one row per case. Graded cases have ``preference``, too, or alone
            with ``task_id``.
        ties: ``half``, or ``excluded`` for the decided cases alone, which is always a rate of hard verdicts.
        interval: ``wilson``, ``bootstrap`` or ``betting``.
        level: of the interval.
        seed: of the bootstrap.
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
    level, seed = require_level(level), require_seed(seed)
    require_choice(interval, "interval", _INTERVALS)
    frame = read_cases(cases, graded=graded and ties != "excluded")
    used = used_cases(frame, ties)
    known = graded_count(used) if graded and ties != "excluded" else 0
    scores, notices = by_task(used), list[str]()
    means = scores.sums / scores.sizes
    size = effective_size(scores, level) if interval != "betting" else float(scores.tasks)
    if not scores.n:
        why = f"none of {frame.height} cases is a {' or '.join(USED[ties])}" if frame.height else "there is no case"
        notices.append(f"no win rate: {why}")
    elif scores.repeated:
        notices.append(f"{scores.n} cases of {scores.tasks} tasks are worth {size:.0f} independent ones")
    if 0 < known < scores.n:
        notices.append(f"{scores.n - known:,} of {scores.n:,} cases are not graded; they count as 1, ½ or 0")
    if known and scores.tasks < FEW_GRADED and interval != "betting":
        notices.append(few_graded(scores.tasks))
    if interval == "bootstrap" and scores.n and np.ptp(means) == 0:
        interval = "wilson"
        notices.append("all tasks have the same score, so there is nothing to resample: Wilson's interval instead")
    return WinRate(
        "b",
        float(means.mean()) if interval == "betting" and scores.n else scores.mean,
        **asdict(tally(frame)),
        n=scores.n,
        tasks=scores.tasks,
        ci=_ends(scores, size, interval, level, seed) if scores.n else None,
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


def _ends(scores: Scores, size: float, interval: str, level: float, seed: int | None) -> tuple[float, float]:
    if interval == "betting":
        return last_limits(scores.sums / scores.sizes, level)
    if interval == "bootstrap":
        return _bootstrap(scores, level, seed)
    return rate_ends(scores, size, level)


def _bootstrap(scores: Scores, level: float, seed: int | None) -> tuple[float, float]:
    """Percentiles of the mean over tasks drawn with replacement.

    Tasks of equal size and sum are interchangeable, so where these are few, only their numbers are drawn. The means
    lie on a lattice; noise as wide as its step lets a percentile fall between two of them. Graded scores need none,
    unless they lie on a scale of a few steps.
    """
    from scipy.special import ndtr

    kinds, counts = np.unique(np.stack([scores.sizes, scores.sums]), axis=1, return_counts=True)
    rng, tasks = generator(seed), scores.tasks
    step = _step(scores)
    means = []
    few = not scores.graded or 4 * len(counts) <= tasks
    at_once = max(1, _BLOCK // (len(counts) if few else tasks))
    for start in range(0, _RESAMPLES, at_once):
        rows = min(at_once, _RESAMPLES - start)
        if few:
            drawn = rng.multinomial(tasks, counts / tasks, size=rows)
            sizes, sums = (drawn @ kind for kind in kinds)
        else:  # nearly every graded task is a kind of its own
            places = rng.integers(0, tasks, (rows, tasks))
            sizes, sums = (part[places].sum(axis=1) for part in (scores.sizes, scores.sums))
        means.append((sums + step * (rng.random(rows) - 0.5)) / sizes)
    tail = ndtr(-math.sqrt(tasks / (tasks - 1)) * student_quantile(level, tasks - 1))
    lower, upper = np.clip(np.quantile(np.concatenate(means), [tail, 1 - tail]), 0, 1)
    return float(lower), float(upper)


def _step(scores: Scores) -> float:
    """The distance between two sums of scores that are next to each other; 0 when they may lie anywhere."""
    if not scores.graded:
        return 0.5 if scores.halves else 1.0
    lattice = (step for step in _STEPS if np.abs(scores.sums / step - np.round(scores.sums / step)).max() < _EVEN)
    return next(lattice, 0.0)


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
class ProbabilityBetter:
    """The chance that B is better, given the decided cases.

    Attributes:
        probability: that B's rate among decided cases is above ½. ½ without any case.
        wins: cases that B won.
        losses: cases that A won.
        n: both.
        effective_n: how many independent cases they are worth.
        prior: the density of the rate before any case.
        used: the outcomes that count.
    """

    probability: float
    wins: int
    losses: int
    n: int
    effective_n: float
    prior: str = "Beta(0.5, 0.5)"
    used: tuple[str, ...] = USED["excluded"]


def probability_better(cases: Table) -> ProbabilityBetter:
    """The posterior probability that B wins more than half of the decided cases.

    With Jeffreys' prior the rate has the density Beta(½ + wins, ½ + losses). Where tasks have several cases, wins and
    losses are first scaled down to ``effective_n``. Of graded cases, the hard verdicts count.

    Example:
        >>> won = [{"task_id": n, "outcome": "win", "winner": "b"} for n in range(3)]
        >>> round(probability_better(won).probability, 4)
        0.9669
    """
    from scipy.special import betaincc

    scores = by_task(used_cases(read_cases(cases, graded=False), "excluded"))
    n, wins = scores.n, round(float(scores.sums.sum()))
    size = design_size(scores)
    share = size / max(1, n)
    chance = float(betaincc(0.5 + share * wins, 0.5 + share * (n - wins), 0.5))
    return ProbabilityBetter(chance, wins, n - wins, n, size)


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
