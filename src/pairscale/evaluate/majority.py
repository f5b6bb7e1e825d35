"""One outcome of many: what most of those say who answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from pairscale.core.comparisons import Outcome
from pairscale.evaluate.comparators import PairwiseOutcome
from pairscale.evaluate.inference.cases import hard_winner, score_of


def majority(votes: Sequence[PairwiseOutcome], detail: dict[str, Any], reasoning: str = "") -> PairwiseOutcome:
    """The outcome that more than half of those agree on who answered.

    A win needs more than half of the answers (wins, ties and flips); so does a flip. Where nothing has so many, opinion
    is divided, and that is a tie. When less than half of the votes are answers, there is no outcome: an error when one
    of the others is, else an abstention.

    Where a vote is graded, the outcome has a preference: the mean over the answers, a hard one counting as 1, ½ or 0.
    When that mean is not on the side of the winner, opinion is divided, too.

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
    said = Counter(str(vote.winner or "flip") for vote in answers)
    name, count = said.most_common(1)[0]
    if any(vote.preference is not None for vote in answers):
        scores = [score_of(str(vote.outcome), str(vote.winner), vote.preference) for vote in answers]
        more["preference"] = fmean(score for score in scores if score is not None)
    turned = name in {"a", "b"} and "preference" in more and hard_winner(more["preference"]) != name
    if 2 * count <= len(answers) or turned:
        detail["divided"] = True
        return PairwiseOutcome("tie", reasoning, **more)
    if name == "flip":
        return PairwiseOutcome.flip(reasoning, **more)
    return PairwiseOutcome(name, reasoning, **more)  # type: ignore[arg-type]
