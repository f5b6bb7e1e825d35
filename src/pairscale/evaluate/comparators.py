"""The seam between running variants and grading them: two traces of a task go in, an outcome comes out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.core.options import require_choice, require_probability
from pairscale.core.provenance import text_hash
from pairscale.core.tables import Values
from pairscale.evaluate.inference.cases import hard_winner, score_of
from pairscale.evaluate.tasks import Task, Trace
from pairscale.judges.base import Judge, JudgePair, Verdict, require_figure

T = TypeVar("T")


Winner: TypeAlias = Literal["a", "b", "tie"]
"""Which variant is better, or neither."""

Ask: TypeAlias = Callable[[Judge, JudgePair, int], Awaitable[Verdict]]
"""Puts a question to a judge, and again after a transient failure, at most so often; a run looks first whether it has
been answered before, and stores the answer."""


_KINDS: dict[str | float | None, Outcome] = {"a": Outcome.WIN, "b": Outcome.WIN, "tie": Outcome.TIE}


@dataclass(frozen=True, slots=True)
class PairwiseOutcome:
    """What a comparator says of one pair.

    ``PairwiseOutcome("a", "shorter and right")`` is a win of A, and ``PairwiseOutcome("tie")`` a tie. A graded outcome
    is a number: ``PairwiseOutcome(0.83)`` says that B is better with a probability of 0.83. What is neither is made
    with :meth:`flip`, :meth:`abstain` or :meth:`fail`.

    Attributes:
        winner: ``a``, ``b`` or ``tie``; None when there is no such answer. Given as a number from 0 to 1, it becomes
            the preference, and the winner follows: ``b`` above ½, ``a`` below ½, ``tie`` at ½.
        reasoning: why.
        detail: anything else.
        outcome: one of the five kinds, which follows from the winner where there is one.
        cost: in US dollars, where it is known.
        preference: the probability that B is better, of a graded outcome; None of a hard one. A flip and a tie may have
            one, too: the mean over the two orders.

    Example:
        >>> PairwiseOutcome("b").outcome, PairwiseOutcome.abstain("no label").winner
        (<Outcome.WIN: 'win'>, None)
        >>> PairwiseOutcome(0.83).winner, PairwiseOutcome(0.83).preference
        ('b', 0.83)
    """

    winner: Winner | float | None = None
    reasoning: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outcome: Outcome | None = None
    cost: float | None = None
    preference: float | None = None

    def __post_init__(self) -> None:
        winner = self.winner
        preference = self.preference
        if winner is not None and not isinstance(winner, str):
            preference = require_probability(winner, "the preference (the probability that B is better)")
            winner = hard_winner(preference)
        require_choice(winner, "winner", ("a", "b", "tie", None))
        implied = _KINDS.get(winner)
        kind = implied if self.outcome is None else Outcome(self.outcome)
        if kind is None or ((winner is not None or kind in _KINDS.values()) and kind is not implied):
            raise InputError(f"winner={winner!r} does not go with the outcome {kind}; see flip(), abstain() and fail()")
        if preference is not None:
            preference = require_probability(preference, "preference")
            if not kind.is_answer or (kind is Outcome.WIN and hard_winner(preference) != winner):
                raise InputError(f"winner={winner!r} contradicts the preference {preference:g} (that B is better)")
        object.__setattr__(self, "winner", winner)
        object.__setattr__(self, "preference", preference)
        object.__setattr__(self, "outcome", kind)
        if self.cost is not None:
            object.__setattr__(self, "cost", require_figure(self.cost, "the cost of an outcome", float))

    @classmethod
    def flip(cls, reasoning: str = "", **more: Any) -> PairwiseOutcome:
        """The two orders have different winners."""
        return cls(None, reasoning, outcome=Outcome.FLIP, **more)

    @classmethod
    def abstain(cls, reasoning: str, **more: Any) -> PairwiseOutcome:
        """No answer to which is better: a refusal, or a missing label."""
        return cls(None, reasoning, outcome=Outcome.ABSTENTION, **more)

    @classmethod
    def fail(cls, reasoning: str, **more: Any) -> PairwiseOutcome:
        """Something went wrong."""
        return cls(None, reasoning, outcome=Outcome.ERROR, **more)


def as_outcome(returned: Any) -> PairwiseOutcome | None:
    """What a comparator returned as an outcome, also one of another library that has ``winner reasoning detail``.

    Returns:
        The outcome; None when it is none.
    """
    if isinstance(returned, PairwiseOutcome) and returned.outcome is not Outcome.TIE:
        return returned
    if not hasattr(returned, "winner"):
        return None
    meant = foreign_outcome(returned.winner, getattr(returned, "reasoning", None), getattr(returned, "detail", None))
    if not isinstance(returned, PairwiseOutcome) or meant is None:
        return meant
    # In AG2's way, a tie may have details that call it an error.
    return returned if meant.outcome is Outcome.TIE else replace(meant, cost=returned.cost)


def foreign_outcome(winner: Any, reasoning: Any, detail: Any) -> PairwiseOutcome | None:
    """The outcome that AG2 writes as a winner alone; its ties may be something else.

    A comparator that raised and a judge without a verdict are errors, a missing label is an abstention, and a judge
    that preferred the same place in both orders has flipped.

    Args:
        winner: ``a``, ``b`` or ``tie``.
        reasoning: why.
        detail: ``error``, ``missing``, ``order1`` and ``order2`` say what a tie is.

    Returns:
        The outcome; None when the winner is none of these.

    Example:
        >>> foreign_outcome("tie", None, {"error": True}).outcome
        <Outcome.ERROR: 'error'>
    """
    if winner not in _KINDS:
        return None
    words = str(reasoning or "")
    more = dict(detail) if isinstance(detail, Mapping) else {}
    if winner == "tie" and (more.get("error") or words == "judge returned no verdict"):
        return PairwiseOutcome.fail(words, detail=more)
    if winner == "tie" and more.get("missing"):
        return PairwiseOutcome.abstain(words, detail=more)
    direction = more.get("order1")
    if winner == "tie" and direction in {"first", "second"} and direction == more.get("order2"):
        return PairwiseOutcome.flip(words, detail=more | {"direction": direction})
    return PairwiseOutcome(winner, words, more)


@runtime_checkable
class PairwiseComparator(Protocol):
    """Anything that can say which of two traces of a task is better.

    ``key`` names the criterion; it is unique in a run. What ``compare`` raises is an error of that case, never a tie.
    A run file remembers outcomes by the key and what was compared: give a comparator another key when it changes, or
    set ``remember = False`` on it to have it asked each time. A ``compare`` that has a parameter ``ask`` is given the
    run's way to put questions to judges (see :data:`Ask`), and one that has ``repeat`` is told which answer to the task
    this is.
    """

    @property
    def key(self) -> str:
        """What the figures stand under."""
        ...

    async def compare(self, *, task: Task, trace_a: Trace, trace_b: Trace, reference_outputs: Any) -> PairwiseOutcome:
        """Which is better."""
        ...


def item_name(task_id: str, text: str) -> str:
    """What an answer is called: by its task and its words, not by its variant, so that judges are blind."""
    return f"{task_id}/{text_hash(text)[:12]}"


async def together(*work: Awaitable[T]) -> list[T]:
    """All at once; when one of them fails, the others are finished first, as they may be paid for."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast("list[T]", results)


# One outcome of many


def total_cost(answers: Iterable[Any]) -> float | None:
    """What answers have cost together; None where none of them says."""
    costs = [answer.cost for answer in answers if answer.cost is not None]
    return sum(costs) if costs else None


def majority(votes: Sequence[PairwiseOutcome], detail: Values, reasoning: str = "") -> PairwiseOutcome:
    """The outcome that more than half of the answers agree on.

    A win needs more than half of the answers (wins, ties and flips); so does a flip. Where nothing has more than half,
    opinion is divided, and that is a tie. When less than half of the votes are answers, there is no outcome: an error
    when one of the others is, else an abstention.

    Where a vote is graded, the outcome has a preference: the mean over the answers, a hard one counting as 1, ½ or 0.
    When that mean is not on the side of the winner, opinion is divided, too.

    Args:
        votes: what each said.
        detail: of the outcome.
        reasoning: of the outcome.
    """
    answers = [vote for vote in votes if vote.outcome is not None and vote.outcome.is_answer]
    more: Values = {"detail": detail, "cost": total_cost(votes)}
    if not answers or 2 * len(answers) < len(votes):
        is_error = any(vote.outcome is Outcome.ERROR for vote in votes)
        return PairwiseOutcome.fail(reasoning, **more) if is_error else PairwiseOutcome.abstain(reasoning, **more)
    [(name, count)] = Counter(vote.winner or "flip" for vote in answers).most_common(1)
    is_divided = 2 * count <= len(answers)
    if any(vote.preference is not None for vote in answers):
        scores = [score_of(str(vote.outcome), str(vote.winner), vote.preference) for vote in answers]
        more["preference"] = fmean(score for score in scores if score is not None)
        is_divided = is_divided or (name in {"a", "b"} and hard_winner(more["preference"]) != name)
    if is_divided:
        detail["divided"] = True
        return PairwiseOutcome("tie", reasoning, **more)
    if name == "flip":
        return PairwiseOutcome.flip(reasoning, **more)
    return PairwiseOutcome(name, reasoning, **more)
