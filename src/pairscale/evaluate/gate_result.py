"""What a gate found: a verdict for each criterion, and whether it passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.display import ReprMixin
from pairscale.core.provenance import Provenance
from pairscale.evaluate.gate_wording import advice_of, gate_line, sentence_of, too_few_tasks
from pairscale.evaluate.inference.cases import by_task, read_cases, used_cases
from pairscale.evaluate.inference.failures import Failures, ways_to_count
from pairscale.evaluate.inference.gate import (
    VERDICTS,
    FailIf,
    GateRule,
    GateVerdict,
    RunningVerdict,
    Shown,
    cases_to_decide,
    fails,
    fixed_bounds,
    is_decided,
    shown_by,
    verdict_of_ways,
)
from pairscale.evaluate.result import PairwiseRunResult
from pairscale.evaluate.source import Look

if TYPE_CHECKING:
    from pairscale.evaluate.result import PairwiseCase

__all__ = ["GateCriterion", "GateResult", "gate_criterion"]

_COLUMNS: dict[str, pl.DataType] = {
    "criterion": pl.String(),
    "verdict": pl.String(),
    "failed": pl.Boolean(),
    "rate": pl.Float64(),
    "lower": pl.Float64(),
    "upper": pl.Float64(),
    "n": pl.Int64(),
}


@dataclass(frozen=True, slots=True)
class GateCriterion:
    """The verdict of one criterion.

    Attributes:
        key: the criterion.
        verdict: ``better``, ``equivalent``, ``not-worse``, ``worse``, ``inconclusive`` or ``untested``.
        failed: whether the gate fails by it.
        rate: B's win rate over the tasks that decided it, ties and flips as half; None without an answer.
        lower: the lower bound of it, true with the chance ``level``; None without an answer.
        upper: the upper bound, likewise.
        level: of each bound; with several criteria, higher than that of the gate, so that it holds for all together.
        n: tasks (with ``fixed``, cases) that the verdict rests on.
        extra: tasks that were under way when it was decided; they count in no figure.
        wins: cases that B won, of all that were asked.
        losses: cases that A won.
        ties: cases without a winner, flips among them.
        unanswered: cases that the judge gave no answer to.
        failures_a: cases in which A failed.
        failures_b: cases in which B failed.
        by_failures: by the way to count failures, the verdict if that were the only way.
        cases_needed: about how many cases would decide it, where it is open.
        lost: tasks that B lost, the first of them.
        untested: why the gate could not have failed by this criterion, in words; None where it could.
        sentence: the verdict in words.
        advice: what to do next.
    """

    key: str
    verdict: GateVerdict
    failed: bool
    rate: float | None
    lower: float | None
    upper: float | None
    level: float
    n: int
    extra: int
    wins: int
    losses: int
    ties: int
    unanswered: int
    failures_a: int
    failures_b: int
    by_failures: Mapping[Failures, GateVerdict]
    cases_needed: int | None
    lost: tuple[str, ...]
    untested: str | None = None
    sentence: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class GateResult(ReprMixin, table="frame"):
    """What a gate found; see :func:`gate`.

    Attributes:
        criteria: one verdict per criterion.
        fail_if: what the gate fails on.
        margin: how far B's win rate may lie below one half.
        level: the chance that a bound is true, over all criteria together.
        fixed: whether all cases were asked, and looked at once.
        result: every case, and the figures over them; None when a baseline was recorded and nothing was compared.
        problem: why the gate could not run, in words; None when it did.
        baseline: what the baseline is, in words; None without one.
        provenance: how it was made.
    """

    criteria: tuple[GateCriterion, ...]
    fail_if: tuple[FailIf, ...]
    margin: float
    level: float
    fixed: bool
    result: PairwiseRunResult | None
    problem: str | None
    baseline: str | None
    provenance: Provenance

    def __str__(self) -> str:
        return gate_line(self)

    @property
    def verdict(self) -> GateVerdict | None:
        """The least favourable verdict of all criteria; None when nothing was compared."""
        found = {one.verdict for one in self.criteria}
        return max(found, key=VERDICTS.index, default=None)

    @property
    def passed(self) -> bool:
        """Whether the gate ran and could have failed, and no verdict is among ``fail_if``."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """What the command exits with: 0 passed, 3 failed, 4 untested, 1 could not run."""
        if self.problem is not None:
            return 1
        if any(one.failed for one in self.criteria):
            return 3
        if any(one.verdict == "untested" for one in self.criteria):
            return 4
        return 0

    def frame(self) -> pl.DataFrame:
        """One row per criterion: ``criterion verdict failed rate lower upper n``."""
        rows = [
            {"criterion": one.key} | {name: getattr(one, name) for name in list(_COLUMNS)[1:]} for one in self.criteria
        ]
        return pl.DataFrame(rows, schema=_COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the cases, as JSON has it."""
        run = self.result
        counts = None
        if run is not None:
            counts = {name: getattr(run, name) for name in ("asked", "answered", "cost", "stopped")}
        return {
            "verdict": self.verdict,
            "passed": self.passed,
            "exit_code": self.exit_code,
            "problem": self.problem,
            "fail_if": list(self.fail_if),
            "margin": self.margin,
            "level": self.level,
            "fixed": self.fixed,
            "failures": None if run is None else run.failures,
            "variant_a": None if run is None else run.variant_a,
            "variant_b": None if run is None else run.variant_b,
            "criteria": [asdict(one) for one in self.criteria],
            "run": counts,
            "unmatched": [] if run is None else [asdict(one) for one in run.unmatched],
            "unasked": [] if run is None else list(run.unasked),
            "baseline": self.baseline,
            "provenance": asdict(self.provenance),
        }


@dataclass(frozen=True, slots=True)
class _Found:
    """The verdict of one criterion and the figures that it rests on."""

    verdict: GateVerdict
    shown: Mapping[Failures, Shown]
    rate: float | None
    ends: tuple[float, float] | None
    n: int
    extra: int = 0


def gate_criterion(run: PairwiseRunResult, key: str, rule: GateRule) -> GateCriterion:
    """The verdict of one criterion.

    The cases are looked at in the order in which they were to be asked, and the verdict is that of the first look at
    which it was decided; without such a look, that of the last one.

    Args:
        run: the result; by the confidence sequence if it was looked at after every case, else by one look.
        key: the criterion.
        rule: the margin, the level and what the gate fails on.
    """
    cases = list(run.of(key))
    found = _by_sequence(run, cases, rule) if run.sequential else _by_interval(run, key, rule)
    wins, losses = (sum(case.winner == side and case.outcome.is_answer for case in cases) for side in "ba")
    asked = [case for case in cases if case.failed is None or run.failures == "shown"]
    unanswered = sum(not case.outcome.is_answer for case in asked)
    answered = sum(case.outcome.is_answer for case in cases)
    ties = answered - wins - losses
    untested = _untested(run, cases, rule)
    verdict = found.verdict if untested is None else "untested"
    needed = None
    if verdict == "inconclusive" and answered:
        needed = cases_to_decide(rule.margin, level=rule.level, ties=ties / answered, fixed=not run.sequential)
    criterion = GateCriterion(
        key,
        verdict,
        fails(verdict, rule.fail_if),
        found.rate,
        None if found.ends is None else found.ends[0],
        None if found.ends is None else found.ends[1],
        rule.level,
        found.n,
        found.extra,
        wins,
        losses,
        ties,
        unanswered,
        sum(case.failed in {"a", "both"} for case in cases),
        sum(case.failed in {"b", "both"} for case in cases),
        {way: verdict_of_ways({way: one}, way) for way, one in found.shown.items()},
        needed,
        tuple(dict.fromkeys(case.task_id for case in cases if case.winner == "a" and case.outcome.is_answer))[:20],
        untested,
    )
    return replace(criterion, sentence=sentence_of(criterion, run, rule), advice=advice_of(criterion, run, rule))


def _untested(run: PairwiseRunResult, cases: list[PairwiseCase], rule: GateRule) -> str | None:
    """Why the gate could not have failed by a criterion; None when it could."""
    tasks = len({case.task_id for case in cases if case.outcome.is_answer})
    if run.stopped == "decided":
        tasks += len(run.unasked)  # they would have been asked, had they been needed
    plain = all(case.repeat == 1 and case.preference is None for case in cases)
    return too_few_tasks(tasks, rule, run.variant_b, fixed=not run.sequential and plain)


def _by_sequence(run: PairwiseRunResult, cases: list[PairwiseCase], rule: GateRule) -> _Found:
    look = Look([case.task_id for case in cases], run.failures, rule)
    tasks = len({case.task_id for case in cases})
    for place, case in enumerate(cases):
        before = look.looked
        look.take(place, case)
        if look.looked > before and rule.decided(look.sequences, run.failures):
            break
    asked: RunningVerdict = look.sequences[run.failures]
    shown = {way: one.shown for way, one in look.sequences.items()}
    ends = asked.ci if asked.n else None
    verdict = verdict_of_ways(shown, run.failures)
    extra = tasks - look.looked if is_decided(verdict, rule.fail_if) else 0
    return _Found(verdict, shown, asked.mean if asked.n else None, ends, asked.n, extra)


def _by_interval(run: PairwiseRunResult, key: str, rule: GateRule) -> _Found:
    scores = {
        way: by_task(used_cases(read_cases(run.frame(key, failures=way)), "half"))
        for way in ways_to_count(run.failures)
    }
    ends = {way: fixed_bounds(one, rule.margin, rule.level) if one.n else None for way, one in scores.items()}
    shown = {way: Shown() if one is None else shown_by(*one, rule.margin) for way, one in ends.items()}
    asked = scores[run.failures]
    return _Found(verdict_of_ways(shown, run.failures), shown, asked.mean, ends[run.failures], asked.n)
