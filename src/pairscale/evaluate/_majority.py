"""One outcome of many: what most of those say who answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pairscale.core.comparisons import Outcome
from pairscale.evaluate.comparators import PairwiseOutcome

__all__ = ["majority"]


def majority(votes: Sequence[PairwiseOutcome], detail: dict[str, Any], reasoning: str = "") -> PairwiseOutcome:
    """The outcome that more than half of those agree on who answered.

    A win needs more than half of the answers (wins, ties and flips); so does a flip. Where nothing has so many, opinion
    is divided, and that is a tie. When less than half of the votes are answers, there is no outcome: an error when one
    of the others is, else an abstention.

    Args:
        votes: what each said.
        detail: of the outcome.
        reasoning: of the outcome.
    """
    answers = [vote for vote in votes if vote.outcome is not None and vote.outcome.is_answer]
    costs = [vote.cost for vote in votes if vote.cost is not None]
    more: dict[str, Any] = {"detail": detail, "cost": sum(costs) if costs else None}
    if not answers or 2 * len(answers) < len(votes):
        if any(vote.outcome is Outcome.ERROR for vote in votes):
            return PairwiseOutcome.fail(reasoning, **more)
        return PairwiseOutcome.abstain(reasoning, **more)
    said = Counter(vote.winner or "flip" for vote in answers)
    name, count = said.most_common(1)[0]
    if 2 * count <= len(answers):
        detail["divided"] = True
        return PairwiseOutcome("tie", reasoning, **more)
    if name == "flip":
        return PairwiseOutcome.flip(reasoning, **more)
    return PairwiseOutcome(name, reasoning, **more)
