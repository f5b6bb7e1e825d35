"""People as a judge: they answer the questions of a run on a page."""

from __future__ import annotations

from dataclasses import dataclass, field

from pairscale.core.comparisons import Condition
from pairscale.core.options import checked
from pairscale.core.traits import Trait, trait_description
from pairscale.judges.base import JudgePair, Verdict
from pairscale.judges.queue import QuestionQueue

__all__ = ["HumanJudge"]


@dataclass(frozen=True, slots=True)
class HumanJudge:
    """People who answer on a page. They may call a tie where the run that asks counts ties, as :func:`rank` does.

    The texts are shown in the order of the pair, first on the left: an adaptive run balances the orders itself, and
    measures what they do. Who answered stands in ``model`` of the run file's attempts, a comment in ``content``, and
    the time of the decision in ``latency_s``.

    Attributes:
        trait: what to judge.
        queue: where the questions wait; :func:`pairscale.people.serve_questions` shows them to people.

    Example:
        >>> HumanJudge().condition.judge_id
        'human'
    """

    trait: Trait = field(default_factory=trait_description)
    queue: QuestionQueue = field(default_factory=QuestionQueue, repr=False, compare=False)

    @property
    def condition(self) -> Condition:
        """People, and what they were asked."""
        settings = {"definition": self.trait.description}
        return Condition("human", "human", None, self.trait.key or self.trait.name, settings=settings)

    @property
    def waits_for_people(self) -> bool:
        """True: people take their time."""
        return True

    def max_cost_of(self, pair: JudgePair) -> float:  # noqa: ARG002 - every judge is asked alike
        """Nothing: this judge costs no money."""
        return 0.0

    @checked
    def allow_ties(self, allowed: bool) -> None:
        """Set whether people may call a question a tie; an adaptive run says so when it begins to ask."""
        self.queue.ties = allowed

    async def compare(self, pair: JudgePair) -> Verdict:
        """Which of the two a person finds better."""
        return await self.queue.ask(pair)
