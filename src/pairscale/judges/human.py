"""People as a judge: they answer the questions of a run on a page."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, Literal

from pairscale.core.comparisons import Condition
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.traits import Trait, trait_description
from pairscale.judges.base import FreeJudge, JudgePair, Verdict

HOLD_SECONDS = 10 * 60.0


@dataclass(slots=True)
class QueuedQuestion:
    """A question in the queue: two texts in the order in which the run asks about them, without their ids.

    Attributes:
        number: what the page calls it.
        first: the text that is shown first.
        second: the other one.
        answer: what the run waits for.
        holder: who has it now.
        shown_at: since when.
        held_until: until when nobody else gets it.
        skips: who has skipped it, with their reasons.
    """

    number: int
    first: str
    second: str
    answer: Future[Verdict] = field(default_factory=Future)
    holder: str | None = None
    shown_at: float = 0.0
    held_until: float = 0.0
    skips: dict[str, str] = field(default_factory=dict[str, str])


class QuestionQueue:
    """Questions that wait for a person. Any thread may use it.

    A question is shown to one person at a time. If they do not answer for ``hold`` seconds, others get it. When all of
    them have skipped it, it is an abstention. :func:`pairscale.people.serve_questions` shows the questions to people.

    Args:
        hold: seconds that a question stays with a person.
        clock: seconds.

    Attributes:
        ties: whether a question may be called a tie.
    """

    def __init__(self, *, hold: float = HOLD_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._hold = hold
        self._clock = clock
        self.ties = False
        self._changed = threading.Condition()
        self._open: dict[int, QueuedQuestion] = {}
        self._people: tuple[str, ...] = ()
        self._counts: Counter[str] = Counter()
        self._last = 0

    # For the page

    def open(self, people: Sequence[str]) -> None:
        """Set the people who answer from now on."""
        if not people or len(set(people)) < len(people):
            raise InputError("a question queue needs people who answer, each with a name of their own; name a labeller")
        with self._changed:
            self._people = tuple(people)

    def close(self) -> None:
        """Take no more answers; threads that wait for a question return at once."""
        with self._changed:
            self._people = ()
            self._changed.notify_all()

    @property
    def is_open(self) -> bool:
        """Whether there are people who answer."""
        return bool(self._people)

    def answered(self, person: str | None = None) -> int:
        """How many questions a person, or all of them, have answered or skipped."""
        with self._changed:
            return self._counts.total() if person is None else self._counts[person]

    def take(self, person: str, wait: float = 0.0) -> QueuedQuestion | None:
        """The question that a person has begun, else the oldest that is free; None when there is none in time.

        Args:
            person: who asks for it.
            wait: seconds to wait for one.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._people or self._free(person), wait)
            question = self._free(person) if self._people else None
            if question is not None:
                now = self._clock()
                if question.holder != person:
                    question.holder = person
                    question.shown_at = now
                question.held_until = now + self._hold
            return question

    def _free(self, person: str) -> QueuedQuestion | None:
        now = self._clock()
        own = [one for one in self._open.values() if person not in one.skips]
        free = [one for one in own if one.holder is None or one.held_until <= now]
        return next((one for one in own if one.holder == person), free[0] if free else None)

    def answer(
        self,
        person: str,
        number: int,
        choice: Literal["1", "2", "tie"] | None,
        *,
        skipped: str | None = None,
        comment: str | None = None,
        elapsed_ms: int | None = None,
    ) -> bool:
        """Answer a question, or leave it to the others with a reason, if there are any.

        Returns:
            False when it is answered already, or another person has it by now.

        Raises:
            InputError: a tie where a choice is forced, or a skip without a reason.
        """
        if (choice is None and not skipped) or (choice == "tie" and not self.ties):
            raise InputError(f"choose 1 or 2{', or tie' * self.ties}, or skip with a reason")
        with self._changed:
            question = self._open.get(number)
            if question is None or question.holder != person:
                return False
            self._counts[person] += 1
            if skipped:
                question.skips[person] = skipped
                question.holder = None
                if not set(self._people) <= question.skips.keys():
                    self._changed.notify_all()
                    return True
            took = self._clock() - question.shown_at
            if elapsed_ms is not None:
                took = min(max(0.0, elapsed_ms / 1000), took)
            raw = {"labeller": person, "comment": comment, "skips": question.skips, "decision_ms": round(1000 * took)}
            known: dict[str, Any] = {"model": person, "content": comment, "latency_s": took, "raw_response": raw}
            reasons = "; ".join(f"{name}: {reason}" for name, reason in question.skips.items())
            verdict = Verdict.abstain(reasons, **known)
            if choice is not None:
                verdict = Verdict.tie(**known) if choice == "tie" else Verdict.win(1 if choice == "1" else 2, **known)
            del self._open[number]
            with contextlib.suppress(InvalidStateError):  # the run has given up
                question.answer.set_result(verdict)
        return True

    # For the judge

    async def ask(self, pair: JudgePair) -> Verdict:
        """Put a question into the queue, and wait for its answer.

        Raises:
            JudgeError: no one answers this queue.
        """
        with self._changed:
            if not self.is_open:
                raise JudgeError(
                    "there is no one to ask: `pairscale rank DATA --judge human` serves a page for people, and in "
                    'Python `with pairscale.people.serve_questions(judge.queue, ["ann"]):` does; to have given pairs '
                    "labelled, use `pairscale label PAIRS`"
                )
            self._last += 1
            question = QueuedQuestion(self._last, str(pair.first["text"]), str(pair.second["text"]))
            self._open[question.number] = question
            self._changed.notify_all()
        try:
            return await asyncio.wrap_future(question.answer)
        finally:  # also when the run has given up
            with self._changed:
                self._open.pop(question.number, None)


@dataclass(frozen=True, slots=True)
class HumanJudge(FreeJudge):
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

    def allow_ties(self, allowed: bool) -> None:
        """Set whether people may call a question a tie; an adaptive run says so when it begins to ask."""
        self.queue.ties = allowed

    async def compare(self, pair: JudgePair) -> Verdict:
        """Which of the two a person finds better."""
        return await self.queue.ask(pair)
