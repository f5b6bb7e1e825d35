"""People as a judge: they answer the questions of a run on a page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from pairscale.core.comparisons import Condition
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.traits import Trait, trait_description
from pairscale.judges.base import FreeJudge, JudgePair, Verdict


class QuestionQueue:
    """Questions of a run that wait for people, to be used from any thread.

    :func:`pairscale.people.serve_questions` shows them.

    Attributes:
        ties: whether a question may be called a tie.
        is_open: whether there are people who answer.
        waiting: the questions without an answer, by number.
        changed: notified when a question comes, and when the queue is closed.
    """

    def __init__(self) -> None:
        self.ties = False
        self.is_open = False
        self.waiting: dict[int, JudgePair] = {}
        self.changed = threading.Condition()
        self._answers: dict[int, Future[Verdict]] = {}
        self._last = 0

    def open(self, people: Sequence[str]) -> None:
        """Take questions for these people from now on."""
        if not people or len(set(people)) < len(people):
            raise InputError("a question queue needs people who answer, each with a name of their own; name a labeller")
        self.is_open = True

    def close(self) -> None:
        """Take no more questions; threads that wait for one return at once."""
        with self.changed:
            self.is_open = False
            self.changed.notify_all()

    def settle(self, number: int, verdict: Verdict) -> None:
        """Give the run its answer, if it still waits for one."""
        with self.changed:
            answer = self._answers.get(number)
            self.waiting.pop(number, None)
        if answer is not None:
            with suppress(InvalidStateError):  # the run has given up
                answer.set_result(verdict)

    async def ask(self, pair: JudgePair) -> Verdict:
        """Put a question into the queue, and wait for its answer.

        Raises:
            JudgeError: no one answers this queue.
        """
        answer: Future[Verdict] = Future()
        with self.changed:
            if not self.is_open:
                raise JudgeError(
                    "there is no one to ask: `pairscale rank DATA --judge human` serves a page for people, and in "
                    'Python `with pairscale.people.serve_questions(judge.queue, ["ann"]):` does; to have given pairs '
                    "labelled, use `pairscale label PAIRS`"
                )
            self._last += 1
            number = self._last
            self.waiting[number] = pair
            self._answers[number] = answer
            self.changed.notify_all()
        try:
            return await asyncio.wrap_future(answer)
        finally:  # also when the run has given up
            with self.changed:
                self.waiting.pop(number, None)
                del self._answers[number]


@dataclass(frozen=True, slots=True)
class HumanJudge(FreeJudge):
    """People who answer on a page. They may call a tie where the run that asks counts ties, as :func:`rank` does.

    The texts are shown in the order of the pair, first on the left: an adaptive run balances the orders itself, and
    measures their effect. Who answered is in ``model`` of the run file's attempts, a comment in ``content``, and
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

    def allow_ties(self, allowed: bool) -> None:
        """Set whether people may call a question a tie; an adaptive run sets it before it asks."""
        self.queue.ties = allowed

    async def compare(self, pair: JudgePair) -> Verdict:
        """Which of the two a person finds better."""
        return await self.queue.ask(pair)
