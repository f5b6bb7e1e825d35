"""What has changed between two evaluations of the same tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pairscale.core.display import ReprMixin
from pairscale.core.errors import RunsNotComparableError
from pairscale.core.tables import listed
from pairscale.evaluate.inference import score_of
from pairscale.evaluate.tasks import id_key

if TYPE_CHECKING:
    from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult

_Name: TypeAlias = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One case that came out otherwise.

    Attributes:
        task_id: the task.
        repeat: which answer to it.
        key: the comparator's.
        before: what the case was worth to B: 1 for a win, 0.5 for a tie or a flip, 0 for a loss; graded
            preferences by their hard verdicts, so that one that went from 0.83 to 0.82 is no regression.
        after: what it is worth now.
    """

    task_id: str
    repeat: int
    key: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, repr=False)
class RunDiff(ReprMixin):
    """What has changed for B since a baseline.

    Attributes:
        regressions: cases that are worth less to B than before; ``assert not diff.regressions`` guards a release.
        improvements: cases that are worth more.
        unchanged: how many are worth the same.
        unanswered: cases that one of the runs answered with an abstention or an error: nothing can be said of them.
        only_here: cases that the baseline does not have (with ``strict=False``).
        only_there: cases that only the baseline has.
        changed: cases whose task has another input or reference now (with ``strict=False``).
    """

    regressions: tuple[CaseChange, ...]
    improvements: tuple[CaseChange, ...]
    unchanged: int
    unanswered: tuple[_Name, ...]
    only_here: tuple[_Name, ...] = ()
    only_there: tuple[_Name, ...] = ()
    changed: tuple[_Name, ...] = ()

    def __str__(self) -> str:
        return (
            f"{len(self.regressions)} worse, {len(self.improvements)} better, {self.unchanged} as before, "
            f"{len(self.unanswered)} without an answer"
        )


def diff_runs(run: PairwiseRunResult, baseline: PairwiseRunResult, *, strict: bool) -> RunDiff:
    """What has changed for B; see :meth:`PairwiseRunResult.diff`."""
    after = _cases(run)
    before = _cases(baseline)
    only_here = tuple(name for name in after if name not in before)
    only_there = tuple(name for name in before if name not in after)
    shared = [name for name in after if name in before]
    digests = {name: {after[name].task_digest, before[name].task_digest} for name in shared}
    changed = tuple(name for name in shared if None not in digests[name] and len(digests[name]) > 1)  # AG2's have none
    if not shared:
        raise RunsNotComparableError("the two runs have no task and key in common")
    if strict and (only_here or only_there or changed):
        names = dict.fromkeys(f"{task_id} ({key})" for task_id, _, key in (*only_here, *only_there, *changed))
        raise RunsNotComparableError(
            f"the two runs are not of the same tasks and keys: {listed(list(names))} are in one of them only, or have "
            "changed; give strict=False to compare the others"
        )
    changes: list[CaseChange] = []
    unanswered: list[_Name] = []
    for name in shared:
        was, now = (score_of(str(case.outcome), case.winner, None) for case in (before[name], after[name]))
        if was is None or now is None:
            unanswered.append(name)
        elif was != now:
            changes.append(CaseChange(*name, before=was, after=now))
    worse = tuple(change for change in changes if change.after < change.before)
    better = tuple(change for change in changes if change.after > change.before)
    unchanged = len(shared) - len(changes) - len(unanswered)
    return RunDiff(worse, better, unchanged, tuple(unanswered), only_here, only_there, changed)


def _cases(run: PairwiseRunResult) -> dict[_Name, PairwiseCase]:
    return {(id_key(case.task_id), case.repeat, case.key): case for case in run.cases}
