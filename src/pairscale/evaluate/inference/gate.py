"""Is B worse than A, better, or as good within a margin? The verdicts of a gate, looked at after every task.

B's win rate is the mean score over tasks, ties and flips as half. With the margin δ, the lower bound L and the upper
bound U of that rate, each of them true with a chance of ``level``:

    better        L > ½
    not-worse     L > ½ - δ                       B may be worse, but by less than the margin
    equivalent    L > ½ - δ  and  U < ½ + δ       neither is better by the margin or more
    worse         U < ½
    inconclusive  nothing of this
    untested      the gate could not have failed, whatever B is like, or the judge may not be able to tell

The first that holds is the verdict, in this order: ``better``, ``equivalent``, ``not-worse``, ``worse``. ``untested``
replaces any of them where too few tasks were compared to show ``worse`` even if B lost all of them. A judge that cannot
tell A from B makes everything even; so ``untested`` also replaces every verdict but ``better`` and ``worse`` unless the
judge has shown that it can tell: in surely more than half of the tasks in which both orders name a winner, they name
the same one; or a judge card, or planted answers that are known to be worse, have shown it. The bounds are
those of a confidence sequence, which hold at all looks together; what is ruled out once stays ruled out. So the chance
that a gate ever says ``worse`` of a B that is as good as A is at most 1 - level, and so is the chance that it ever says
``not-worse`` of a B that is worse by the whole margin. A fixed-size gate looks once, after all cases, and uses the ends
of an interval for that, with the same chance on each side.

Failures of variants can be counted in several ways. ``better``, ``not-worse`` and ``equivalent`` have to hold in all of
them; ``worse`` has to hold in the way that was asked for.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, get_args

import numpy as np

from pairscale.core.options import require_number
from pairscale.evaluate.inference.cases import Ends, Scores
from pairscale.evaluate.inference.failures import Failures
from pairscale.evaluate.inference.score import rate_ends, score_interval
from pairscale.evaluate.inference.sequence import RunningScores, bound_between, capital_of_bets, portfolio

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats

GateVerdict: TypeAlias = Literal["better", "equivalent", "not-worse", "worse", "inconclusive", "untested"]
"""What a gate says of B; ``untested`` where it could not have failed."""

FailIf: TypeAlias = Literal["worse", "not-better", "inconclusive"]
"""What a gate can fail on: ``not-better`` is every verdict but ``better``."""

VERDICTS: Final = ("better", "equivalent", "not-worse", "inconclusive", "untested", "worse")
"""From the most to the least favourable."""
FAIL_IF: Final = get_args(FailIf)

EVEN: Final = ("equivalent", "not-worse")
"""The verdicts that are decided by what a judge who cannot tell would bring about."""

_LARGEST = 10**7  # cases that are looked for
_FEW = 60  # tasks, for an interval of grades or repeats where scores that lie far away may not be among them
# How far below one half the mean may lie at the look, in standard deviations, four times out of five: at one look, by
# the normal distribution; where there are looks before it, as simulated (docs/validation.md).
_BELOW_FIXED, _BELOW = 0.8416, 0.5


def require_margin(value: Any) -> float:
    """Check a margin: how far B's win rate may lie below one half.

    Raises:
        InputError: it is not a number of 0 or more and below 0.5.
    """
    return require_number(value, "margin", least=0, below=0.5)


def two_sided(level: float) -> float:
    """The level of an interval whose ends are each true with a chance of ``level``.

    Raises:
        InputError: the level is not above 0.5 and below 1.
    """
    return 2 * require_number(level, "level", above=0.5, below=1) - 1


@dataclass(frozen=True, slots=True)
class Shown:
    """What the cases have shown, when failures count in one way.

    Attributes:
        better: B's win rate is above ½.
        not_worse: it is above ½ - margin.
        no_gain: it is below ½ + margin.
        worse: it is below ½.
    """

    better: bool = False
    not_worse: bool = False
    no_gain: bool = False
    worse: bool = False


def shown_by(lower: float, upper: float, margin: float) -> Shown:
    """What one interval shows.

    Example:
        >>> shown_by(0.46, 0.53, 0.05)
        Shown(better=False, not_worse=True, no_gain=True, worse=False)
    """
    return Shown(lower > 0.5, lower > 0.5 - margin, upper < 0.5 + margin, upper < 0.5)


def verdict_of_ways(shown: Mapping[Failures, Shown], asked: Failures) -> GateVerdict:
    """The verdict over all ways to count failures.

    Args:
        shown: by the way to count, what the cases have shown; nothing in a way without a case.
        asked: the way that was asked for.

    Example:
        >>> verdict_of_ways({"loss": Shown(not_worse=True), "excluded": Shown()}, "loss")
        'inconclusive'
    """
    ways = list(shown.values())
    if all(one.better for one in ways):
        return "better"
    if all(one.not_worse for one in ways):
        return "equivalent" if all(one.no_gain for one in ways) else "not-worse"
    return "worse" if shown[asked].worse else "inconclusive"


def fails(verdict: GateVerdict, fail_if: Collection[FailIf]) -> bool:
    """Whether a gate fails with this verdict; a gate that is untested neither fails nor passes.

    Example:
        >>> fails("inconclusive", ["worse"]), fails("not-worse", ["not-better"])
        (False, True)
    """
    if verdict == "untested":
        return False
    return verdict in fail_if or ("not-better" in fail_if and verdict != "better")


class RunningVerdict(RunningScores):
    """What the scores have shown so far. Look after every one, and stop when you like.

    Args:
        margin: how far B's win rate may lie below ½.
        level: the chance that a bound is true, at all looks together.

    Attributes:
        n: scores so far.
        shown: what they have shown by now; it stays shown.

    Example:
        >>> running = RunningVerdict(margin=0.1)
        >>> for _ in range(12):
        ...     running.update(0.0)
        >>> running.shown.worse, running.shown.not_worse
        (True, False)
    """

    __slots__ = ("margin", "shown")

    def __init__(self, margin: float, level: float = 0.95) -> None:
        super().__init__(level)
        self.margin = require_margin(margin)
        self.shown = Shown()

    def update(self, score: float) -> None:
        """Take in one score: 1 when B won, 0 when A did, ½ for a tie; with several cases a task, their mean."""
        self.add(score)
        before = self.shown
        self.shown = Shown(
            better=before.better or self._passed(0.5, log_capital_above),
            not_worse=before.not_worse or self._passed(0.5 - self.margin, log_capital_above),
            no_gain=before.no_gain or self._passed(0.5 + self.margin, log_capital_below),
            worse=before.worse or self._passed(0.5, log_capital_below),
        )

    def _passed(self, mean: float, capital: Callable[..., Floats]) -> bool:
        return bool(capital(mean, self.margin, *self.counted())[0] >= self.bar)

    @property
    def ci(self) -> Ends:
        """Both bounds now, each true with a chance of ``level``; what was ruled out before stays outside."""
        values, counts = self.counted()
        shown = self.shown
        lower = lower_bound(values, counts[0], self.margin, self.level)
        upper = upper_bound(values, counts[0], self.margin, self.level)
        if shown.better or shown.not_worse:
            lower = max(lower, 0.5 if shown.better else 0.5 - self.margin)
        if shown.worse or shown.no_gain:
            upper = min(upper, 0.5 if shown.worse else 0.5 + self.margin)
        return lower, upper


class Looked(Protocol):
    """What the tasks looked at so far have shown of one criterion.

    Attributes:
        sequences: by the way to count failures, what the scores have shown.
        flips: of the tasks in which both orders name a winner, how often these differ: ``worse`` once it is surely in
            less than half of them, ``better`` once it is surely in more.
    """

    sequences: dict[Failures, RunningVerdict]
    flips: RunningVerdict


@dataclass(frozen=True, slots=True)
class GateRule:
    """When a gate has seen enough.

    Attributes:
        margin: how far B's win rate may lie below ½.
        level: the chance that a bound of a criterion is true.
        fail_if: the verdicts that it fails on.
        by_flips: whether the judge's own answers have to show that it can tell.
    """

    margin: float = 0.05
    level: float = 0.95
    fail_if: tuple[FailIf, ...] = ("worse",)
    by_flips: bool = True

    def sequence(self) -> RunningVerdict:
        """What takes in the scores of one criterion, counted in one way."""
        return RunningVerdict(self.margin, self.level)

    def verdict(self, look: Looked, asked: Failures) -> GateVerdict:
        """The verdict by now, if the judge can tell."""
        return verdict_of_ways({way: sequence.shown for way, sequence in look.sequences.items()}, asked)

    def decided(self, look: Looked, asked: Failures) -> bool:
        """Whether this criterion needs no further cases.

        Whether B is better stays open with ``not-worse``; every other question has its answer then.
        """
        verdict = self.verdict(look, asked)
        if verdict == "inconclusive" or (verdict == "not-worse" and "not-better" in self.fail_if):
            return False
        if self.by_flips and verdict in EVEN:
            return look.flips.shown.worse or look.flips.shown.better
        return True

    def stops(self, looks: Collection[Looked], asked: Failures) -> bool:
        """Whether the gate needs no further cases: a criterion fails for certain, or all are decided.

        Args:
            looks: of each criterion.
            asked: the way to count failures that was asked for.
        """
        decided = [look for look in looks if self.decided(look, asked)]
        return len(decided) == len(looks) or any(fails(self.verdict(look, asked), self.fail_if) for look in decided)


def fixed_bounds(scores: Scores, margin: float, level: float) -> Ends:
    """The bounds of a gate that looks once, each true with a chance of ``level``; there must be a case.

    Where tasks have one case each, without grades, they hold for any number of tasks. Grades and repeats vary in more
    ways than a few of them show: of fewer than 60 such tasks, the bounds are those of the sequence, which always hold.
    Every task counts once, by the mean of its cases, and where there are several, a bound is wrong half as often.

    Args:
        scores: of the cases, by task.
        margin: how far B's win rate may lie below ½.
        level: the chance.

    Example:
        >>> four_losses = Scores(np.zeros(4), 4)
        >>> [round(bound, 3) for bound in fixed_bounds(four_losses, 0.05, 0.95)]
        [0.0, 0.527]
    """
    both = two_sided(level)
    if scores.tasks < _FEW and (scores.graded or scores.repeated):
        counts = np.ones_like(scores.means)
        return lower_bound(scores.means, counts, margin, level), upper_bound(scores.means, counts, margin, level)
    if scores.graded or scores.repeated:
        return rate_ends(scores, level if scores.repeated else both)
    return score_interval(float(scores.means.mean()), scores.halves, scores.tasks, both, careful=True)


def tasks_to_fail(margin: float, *, level: float = 0.95, fixed: bool = False) -> int:
    """How many tasks show ``worse`` if B loses all of them; a gate with fewer cannot fail.

    Args:
        margin: how far B's win rate may lie below ½.
        level: the chance that a bound is true.
        fixed: by one look after all tasks, instead of the confidence sequence.

    Example:
        >>> tasks_to_fail(0.05), tasks_to_fail(0.05, fixed=True), tasks_to_fail(0.05, level=0.99)
        (8, 5, 11)
    """

    def is_shown(n: int) -> bool:
        if fixed:
            return fixed_bounds(Scores(np.zeros(n), n), margin, level)[1] < 0.5
        all_lost = np.array([[float(n)]])
        return bool(log_capital_below(0.5, margin, np.zeros(1), all_lost)[0] >= -math.log(1 - level))

    return next(n for n in itertools.count(1) if is_shown(n))


def cases_to_decide(margin: float, *, level: float = 0.95, ties: float = 0.0, fixed: bool = False) -> int | None:
    """About how many cases show ``not-worse`` four times out of five, if B is as good as A.

    Args:
        margin: how far B's win rate may lie below ½.
        level: the chance that a bound is true.
        ties: share of the cases without a winner.
        fixed: by one look after all of them, instead of the confidence sequence.

    Returns:
        The number; None when ten million are not enough.

    Example:
        >>> cases_to_decide(0.1), cases_to_decide(0.1, fixed=True), cases_to_decide(0.1, ties=0.5)
        (268, 162, 129)
    """
    below = _BELOW_FIXED if fixed else _BELOW

    def enough(n: int) -> bool:
        wins = max(0.0, (1 - ties) / 2 - below * math.sqrt((1 - ties) / 4 / n))
        mean = wins + ties / 2
        if mean <= 0.5 - margin:
            return False
        if fixed:
            return score_interval(mean, ties, n, two_sided(level), careful=True)[0] > 0.5 - margin
        counts = n * np.array([[1 - wins - ties, ties, wins]])
        capital = log_capital_above(0.5 - margin, margin, np.array([0.0, 0.5, 1.0]), counts)
        return bool(capital[0] >= -math.log(1 - level))

    if margin == 0 or not enough(_LARGEST):
        return None
    return bisect.bisect_left(range(_LARGEST), True, lo=1, key=enough)


# Bounds that stay true however often one looks, for a question that has a side and a smallest difference that matters.
#
# A sequence bets for and against a mean m, over all rates alike. A gate asks less: is the mean *above* m? So it only
# bets that it is, which is fair, or worse than fair, whenever the mean is m or below. And it knows which differences
# matter, those around the margin δ. Of the first capital, 40 % bet on the rate m + δ, 20 % on m + 2 δ (for wider
# differences, and for scores with many ties), and the rest is spread over all rates above m by the density of the
# sequence. By Ville's inequality the capital ever reaches 1 / (1 - level) with a chance of at most 1 - level, whatever
# the shares are; they decide only how soon. Without a margin, all of it is spread.
#
# The capital falls as m rises, for each of these bets and every score, so that the m that are not ruled out are those
# above one lower bound. Upper bounds are lower bounds of the scores turned round.

_TARGETS = ((1.0, 0.4), (2.0, 0.2))  # multiples of the margin, and the share of the capital that bets on them


def log_capital_above(mean: float, margin: float, values: Floats, counts: Floats) -> Floats:
    """The logarithm of the capital won by betting that the true mean is above this one.

    Args:
        mean: the mean that is doubted, between 0 and 1 exclusively.
        margin: the difference that matters.
        values: the scores that occur.
        counts: how often each did: a row for each series of scores, a column for each value.

    Example:
        >>> wins = np.array([[0.0, 20.0]])
        >>> bool(log_capital_above(0.5, 0.05, np.array([0.0, 1.0]), wins)[0] > math.log(20))
        True
    """
    spread, shares = portfolio(int(max(1, counts.sum(axis=1).max())))
    rates = mean + spread * (1 - mean)
    if margin > 0:
        targets = [(min(mean + times * margin, (1 + mean) / 2), share) for times, share in _TARGETS]
        rates = np.append(rates, [rate for rate, _ in targets])
        rest = 1 - sum(share for _, share in targets)
        shares = np.append(shares * rest, [share for _, share in targets])
    return capital_of_bets(mean, rates, shares, values, counts)


def log_capital_below(mean: float, margin: float, values: Floats, counts: Floats) -> Floats:
    """The same by betting that the true mean is below this one."""
    return log_capital_above(1 - mean, margin, 1 - values, counts)


def lower_bound(values: Floats, counts: Floats, margin: float, level: float) -> float:
    """What the mean is above, at all looks together with a chance of at least ``level``.

    Args:
        values: the scores that occur.
        counts: how often each did.
        margin: the difference that matters.
        level: the chance.
    """
    bar = -math.log(1 - level)
    mean = float(counts @ values / counts.sum())
    table = counts[None, :]
    return bound_between(mean, 0.0, lambda m: bool(log_capital_above(m, margin, values, table)[0] >= bar))


def upper_bound(values: Floats, counts: Floats, margin: float, level: float) -> float:
    """What the mean is below; see :func:`lower_bound`."""
    return 1 - lower_bound(1 - values, counts, margin, level)
