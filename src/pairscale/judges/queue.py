"""The queue of questions that people answer while a run waits for them.

It knows nothing of pages; :func:`pairscale.people.serve_questions` shows its questions to people.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pairscale.core.errors import InputError, JudgeError
from pairscale.judges.base import JudgePair, Verdict

__all__ = ["QuestionQueue", "QueuedQuestion"]

HOLD_SECONDS = 10 * 60.0


@dataclass(frozen=True, slots=True)
class QueuedQuestion:
    """A question in the queue: two texts in the order in which the run asks about them, without their ids."""

    number: int
    first: str
    second: str


@dataclass(slots=True)
class _OpenQuestion:
    question: QueuedQuestion
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Verdict]
    holder: str | None = None
    shown_at: float = 0.0
    held_until: float = 0.0
    skips: dict[str, str] = field(default_factory=dict[str, str])

    def settle(self, verdict: Verdict) -> None:
        """Hand over the answer, in the thread that asked."""

        def hand_over() -> None:
            if not self.answer.done():
                self.answer.set_result(verdict)

        self.loop.call_soon_threadsafe(hand_over)


class QuestionQueue:
    """Questions that wait for a person. Any thread may use it.

    A question is shown to one person at a time. If they do not answer for ``hold`` seconds, others get it. When all of
    them have skipped it, it is an abstention.

    Args:
        hold: seconds that a question stays with a person.
        clock: seconds.

    Attributes:
        ties: whether a question may be called a tie.
    """

    def __init__(self, *, hold: float = HOLD_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._hold, self._clock = hold, clock
        self.ties = False
        self._changed = threading.Condition()
        self._open: dict[int, _OpenQuestion] = {}
        self._people: tuple[str, ...] = ()
        self._counts: dict[str, int] = {}
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
            return sum(self._counts.values()) if person is None else self._counts.get(person, 0)

    def take(self, person: str, wait: float = 0.0) -> QueuedQuestion | None:
        """The question that a person has begun, else the oldest that is free; None when there is none in time.

        Args:
            person: who asks for it.
            wait: seconds to wait for one.
        """
        deadline = time.monotonic() + wait
        with self._changed:
            while self.is_open:
                if (found := self._free(person)) is not None:
                    return found
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
        return None

    def _free(self, person: str) -> QueuedQuestion | None:
        now = self._clock()
        ours = [entry for entry in self._open.values() if person not in entry.skips]
        mine = [entry for entry in ours if entry.holder == person]
        free = [entry for entry in ours if entry.holder is None or entry.held_until <= now]
        for entry in (mine + free)[:1]:
            if entry.holder != person:
                entry.holder, entry.shown_at = person, now
            entry.held_until = now + self._hold
            return entry.question
        return None

    def answer(
        self,
        person: str,
        number: int,
        choice: Literal["1", "2", "tie"],
        *,
        comment: str | None = None,
        elapsed_ms: int | None = None,
    ) -> bool:
        """Answer a question; False when it is answered already, or another person has it by now.

        Raises:
            InputError: a tie where a choice is forced.
        """
        if choice == "tie" and not self.ties:
            raise InputError("a choice is forced here; choose 1 or 2, or skip with a reason")
        with self._changed:
            entry = self._held(person, number)
            if entry is None:
                return False
            recorded = self._recorded(entry, person, comment, elapsed_ms)
            is_tie = choice == "tie"
            entry.settle(Verdict.tie(**recorded) if is_tie else Verdict.win(1 if choice == "1" else 2, **recorded))
            self._remove(entry, person)
        return True

    def skip(
        self,
        person: str,
        number: int,
        reason: str,
        *,
        comment: str | None = None,
        elapsed_ms: int | None = None,
    ) -> bool:
        """Leave a question to the others, if there are any; False when it is not with this person."""
        with self._changed:
            entry = self._held(person, number)
            if entry is None:
                return False
            entry.skips[person] = reason
            entry.holder = None
            if set(self._people) <= entry.skips.keys():
                reasons = "; ".join(f"{name}: {why}" for name, why in entry.skips.items())
                entry.settle(Verdict.abstain(reasons, **self._recorded(entry, person, comment, elapsed_ms)))
                self._remove(entry, person)
            else:
                self._counts[person] = self._counts.get(person, 0) + 1
                self._changed.notify_all()
        return True

    def _held(self, person: str, number: int) -> _OpenQuestion | None:
        entry = self._open.get(number)
        return entry if entry is not None and entry.holder == person else None

    def _recorded(
        self, entry: _OpenQuestion, person: str, comment: str | None, elapsed_ms: int | None
    ) -> dict[str, Any]:
        since = self._clock() - entry.shown_at
        took = since if elapsed_ms is None else min(max(0.0, elapsed_ms / 1000), since)
        raw = {"labeller": person, "comment": comment, "skips": dict(entry.skips), "decision_ms": round(1000 * took)}
        return {"model": person, "content": comment, "latency_s": took, "raw_response": raw}

    def _remove(self, entry: _OpenQuestion, person: str) -> None:
        del self._open[entry.question.number]
        self._counts[person] = self._counts.get(person, 0) + 1

    # For the judge

    async def ask(self, pair: JudgePair) -> Verdict:
        """Put a question into the queue, and wait for its answer.

        Raises:
            JudgeError: no one answers this queue.
        """
        loop = asyncio.get_running_loop()
        with self._changed:
            if not self.is_open:
                raise JudgeError(
                    "there is no one to ask: `pairscale rank DATA --judge human` serves a page for people, and in "
                    'Python `with pairscale.people.serve_questions(judge.queue, ["ann"]):` does; to have given pairs '
                    "labelled, use `pairscale label PAIRS`"
                )
            self._last += 1
            question = QueuedQuestion(self._last, str(pair.first["text"]), str(pair.second["text"]))
            entry = _OpenQuestion(question, loop, loop.create_future())
            self._open[question.number] = entry
            self._changed.notify_all()
        try:
            return await entry.answer
        finally:  # also when the run has given up
            with self._changed:
                self._open.pop(question.number, None)
