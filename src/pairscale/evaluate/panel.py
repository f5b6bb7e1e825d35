"""Several judges as one comparator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pairscale.core.errors import InputError
from pairscale.core.options import checked
from pairscale.core.tables import listed
from pairscale.evaluate.comparators import Ask, PairwiseOutcome, together
from pairscale.evaluate.judge import JudgeComparator, pairwise_judge, require_names
from pairscale.evaluate.majority import majority
from pairscale.evaluate.suite import Task
from pairscale.evaluate.traces import Trace
from pairscale.judges.base import Judge
from pairscale.runtime import ask_unrecorded

__all__ = ["PanelComparator", "pairwise_panel"]


@checked
def pairwise_panel(
    judges: Iterable[str | Judge | Callable[..., Any]],
    *,
    criterion: str,
    key: str,
    judge_args: Mapping[str, Any] | None = None,
    **options: Any,
) -> PanelComparator:
    """Several judges who decide by majority.

    Each judges as :func:`pairwise_judge` has it, in both orders. The outcome is what more than half of those say who
    answered; where opinion is divided, it is a tie, and when less than half of the panel answered, there is none. With
    graded members, the preference of the panel is their mean. What each member said is kept in ``detail["members"]``.

    Args:
        judges: two or more; see :func:`pairwise_judge`.
        criterion: what "better" means, in words.
        key: what the figures stand under.
        judge_args: settings of every judge.
        options: ``swap``, ``include_reference``, ``include_trace`` and ``retries`` of :func:`pairwise_judge`.

    Example:
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> pairwise_panel(["lexical", longer], criterion="better written", key="panel")
        <pairwise_panel of 2, key 'panel'>
    """
    require_names(criterion, key)
    members = [
        pairwise_judge(judge, criterion=criterion, key=key, judge_args=judge_args, **options) for judge in judges
    ]
    if len(members) < 2:
        raise InputError(f"a panel has two judges or more, not {len(members)}; pairwise_judge is for one")
    names = [member.judge.condition for member in members]
    if len({one.condition_id for one in names}) < len(names):
        raise InputError(f"a judge stands in the panel twice: {listed([one.judge_id for one in names])}")
    return PanelComparator(tuple(members), key)


class PanelComparator:
    """A panel as a comparator; :func:`pairwise_panel` makes one."""

    def __init__(self, members: tuple[JudgeComparator, ...], key: str) -> None:
        self.members, self.key = members, key

    def __repr__(self) -> str:
        return f"<pairwise_panel of {len(self.members)}, key {self.key!r}>"

    @property
    def judges(self) -> tuple[Judge, ...]:
        """Who is asked."""
        return tuple(member.judge for member in self.members)

    async def aclose(self) -> None:
        """Have the judges close their connections."""
        for member in self.members:
            await member.aclose()

    async def compare(
        self, *, task: Task, trace_a: Trace, trace_b: Trace, reference_outputs: Any = None, ask: Ask = ask_unrecorded
    ) -> PairwiseOutcome:
        """Which is better, by majority; ``ask`` is how a run puts the questions."""
        votes = await together(
            *(
                member.compare(
                    task=task, trace_a=trace_a, trace_b=trace_b, reference_outputs=reference_outputs, ask=ask
                )
                for member in self.members
            )
        )
        names = [member.judge.condition.judge_id for member in self.members]
        said: list[dict[str, Any]] = [
            {"judge_id": name, "outcome": str(vote.outcome), "winner": vote.winner, "reasoning": vote.reasoning}
            | {"preference": vote.preference, "detail": dict(vote.detail), "cost": vote.cost}
            for name, vote in zip(names, votes, strict=True)
        ]
        reasons = [f"{one['judge_id']}: {one['reasoning']}" for one in said if one["reasoning"]]
        return majority(votes, {"members": said}, "\n".join(reasons))
