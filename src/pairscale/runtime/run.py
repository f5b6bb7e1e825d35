"""The runtime: asks judges, retries, keeps the budget, records every attempt, and stops without losing an answer.

Everything in pairscale that asks a judge does it here. A :class:`~pairscale.runtime.source.Source` says what to ask and
takes the outcomes. Failures are of three kinds (:mod:`pairscale.core.failures`): a *transient* one is asked again, a
*question* failure is recorded and the run continues, a *judge* failure ends the run once the open answers are stored.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pairscale.core.errors import JudgeError, PairscaleError
from pairscale.core.notices import notice
from pairscale.core.options import optional, require_int, require_number
from pairscale.core.provenance import utc_now
from pairscale.core.tables import Row
from pairscale.core.timelimit import Clock
from pairscale.judges.base import Verdict, judge_member
from pairscale.providers.client import pause, say_wait
from pairscale.runtime.asking import MOST_ALIKE, FailureStreak, ask_once
from pairscale.runtime.budget import Budget, BudgetExceeded, Reservation, max_cost_of
from pairscale.runtime.progress import Progress
from pairscale.runtime.source import LogRows, Question, Recorded, Source, Wait
from pairscale.runtime.sync import Interrupt, interrupt_of_call
from pairscale.store.policies import WRITE_RETRY_INTERVAL_S, GroupCommitWriter, JournalWriter
from pairscale.store.schema import attempt_columns, comparison_columns
from pairscale.store.writer import Asked, Entry

CONCURRENCY = 8
RETRIES = 3
TIMEOUT = 300.0
"""The defaults of every function that asks judges; adaptive ranking has a concurrency of 1."""
_ANSWERED_LATELY_S = 60.0
_REFUSED_AT_MOST_S = 600.0
"""Seconds in which refusals of a question (429) use up no retries, while others are answered."""

Attempt: TypeAlias = tuple[Verdict, Row]
"""A verdict, and the columns of its attempt."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to ask; the same in every function that asks judges.

    Attributes:
        concurrency: Questions open at once.
        retries: How often to ask again after a transient failure.
        retry_wait: Seconds before the first retry, where the provider does not say; doubled each time, with jitter.
        timeout: Seconds that one answer may take, without waits for a rate limit; None for no limit.
        max_cost: US dollars that the run may spend, all calls and resumptions together; None for no limit.
    """

    concurrency: int = CONCURRENCY
    retries: int = RETRIES
    retry_wait: float = 1.0
    timeout: float | None = TIMEOUT
    max_cost: float | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("concurrency", require_int(self.concurrency, "concurrency", least=1)),
            ("retries", require_int(self.retries, "retries", least=0)),
            ("retry_wait", require_number(self.retry_wait, "retry_wait", least=0)),
            ("timeout", optional(require_number, self.timeout, "timeout", above=0)),
            ("max_cost", optional(require_number, self.max_cost, "max_cost", least=0)),
        ):
            object.__setattr__(self, name, value)


class Runtime:
    """One call of a run: asks until its source has no more questions, or a limit is reached.

    Args:
        source: where questions come from.
        writer: where everything is written; its policy decides whether an outcome is handed over before or after.
        options: how to ask.
        budget: what may be spent.
        progress: what is shown.
        deadline: when to stop asking, by ``clock``.
        clock: seconds that never go back.

    Attributes:
        asked: attempts of this call, without answers from the cache.
        cached: answers from the cache.
        saved: US dollars that asking for those would have cost.
        stopped: why it stopped early: ``max_cost``, ``max_minutes``, ``judge``, ``interrupted``; None when it did not.
    """

    def __init__(
        self,
        source: Source,
        writer: JournalWriter,
        options: RunOptions,
        *,
        budget: Budget | None = None,
        progress: Progress | None = None,
        deadline: float | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.asked = 0
        self.cached = 0
        self.saved = 0.0
        self.stopped: str | None = None
        self.budget = budget or Budget(options.max_cost)
        self._source = source
        self._writer = writer
        self._options = options
        self._progress = progress
        self._deadline = deadline
        self._clock = clock
        self._failure: PairscaleError | None = None
        self._streaks: dict[str, FailureStreak] = {}
        self._open = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._hold: asyncio.Future[None] | None = None  # done when the outcomes that are held back may be handed over
        self._interrupt = Interrupt()
        self._answered_at = -math.inf
        self._logged_until = -math.inf  # the end of the last wait that was logged
        self._jitter = random.Random(0)  # noqa: S311 - spreads retries, keeps no secret

    async def run(self) -> None:
        """Ask, until there is nothing more to ask.

        Raises:
            JudgeError: the judge cannot be asked at all; every answer that came before is stored.
            StoreError: the run file cannot be written.
        """
        self._outcome = asyncio.Event()
        self._stop = asyncio.Event()
        self._ended = asyncio.get_running_loop().create_future()
        self._interrupt = interrupt_of_call()
        try:
            with self._interrupt.tells(partial(self.stop, "interrupted")):
                for _ in range(self._options.concurrency):
                    task = asyncio.create_task(self._work())
                    self._tasks.append(task)
                    task.add_done_callback(self._task_ended)
                await self._ended
            await self._interrupt.wait_if_stopping()  # for what the source has asked by itself
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.stopped == "max_cost":
            self.tell_budget()
        if self._failure is not None:
            raise self._failure

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """End the call when a worker has failed, or when all of them are done."""
        if self._ended.done():
            return
        if task.cancelled():
            self._ended.cancel()
        elif (error := task.exception()) is not None:
            self._ended.set_exception(error)
        elif all(other.done() for other in self._tasks):
            self._ended.set_result(None)

    def tell_budget(self) -> None:
        """Log that the budget ended the run."""
        notice(f"stopped before `max_cost=` is passed: {self.budget}. Raise it, and run it again to continue")

    def stop(self, reason: str, failure: PairscaleError | None = None) -> None:
        """Ask nothing more; what is open is waited for and stored."""
        self.stopped = self.stopped or reason
        self._failure = self._failure or failure
        self._stop.set()

    # Asking

    async def _work(self) -> None:
        """Settle one question after another, until there is none."""
        while (question := await self._next()) is not None:
            self._open += 1
            waits_for_people = judge_member(question.judge, "waits_for_people")
            try:
                with nullcontext() if waits_for_people else self._interrupt.waits():
                    await self._settle(question)
            finally:
                self._open -= 1
                self._outcome.set()

    async def _next(self) -> Question | None:
        """The next question, once its answer could be written; None when there is none, or the run is stopping."""
        while True:
            if self._is_late():
                self.stop("max_minutes")
            while not self._writer.is_ready() and not await self._stopped_within(WRITE_RETRY_INTERVAL_S):
                pass  # no answer is paid for that cannot be written
            if self._stop.is_set() and self._hold is None:
                return None
            proposal = self._source.next()
            holds = isinstance(proposal, Wait) and proposal.hold
            if not holds:
                self._release()
            if self._stop.is_set() and not holds:
                if isinstance(proposal, Question):
                    self._source.done(proposal, None)
                return None
            if not isinstance(proposal, Wait):
                return proposal
            if not await self._waited(proposal):
                return None

    async def _waited(self, wait: Wait) -> bool:
        """Wait as a source asks for, or until the run is being stopped; False when there is nothing to wait for."""
        if wait.hold:
            self._hold = self._hold or asyncio.get_running_loop().create_future()
        if wait.until is not None:
            moments = [asyncio.ensure_future(wait.until)]
            stop = asyncio.ensure_future(self._stop.wait())
            try:
                # Outcomes that are held back come after the moment, also when the run is being stopped.
                await asyncio.wait(moments if wait.hold else [*moments, stop], return_when=asyncio.FIRST_COMPLETED)
            finally:
                stop.cancel()
        elif self._open:
            self._outcome.clear()
            await self._outcome.wait()
        else:
            return False
        return True

    def _release(self) -> None:
        """Hand over the outcomes that were held back."""
        if self._hold is not None:
            self._hold.set_result(None)
            self._hold = None

    def _is_late(self, wait: float = 0.0) -> bool:
        """Whether the deadline has passed, or will have passed after ``wait`` seconds."""
        return self._deadline is not None and self._clock() + wait >= self._deadline

    async def _settle(self, question: Question) -> None:
        """Ask until the question is settled; if it cannot be, give it back to the source."""
        is_settled = False
        try:
            is_settled = await self._ask_until_settled(question)
        finally:
            if not is_settled:
                self._source.done(question, None)

    async def _ask_until_settled(self, question: Question) -> bool:
        """Ask until there is an answer or a failure that asking again does not mend; False when a limit came first."""
        retries = self._options.retries if question.retries is None else question.retries
        turn = 0
        retries_used = 0
        refused_since = math.inf
        while (asked := await self._attempt(question, turn)) is not None:
            verdict, values = asked
            if verdict.failure == "judge":
                await self._record(question, values)
                message = verdict.error_message or "the judge cannot be asked"
                self.stop("judge", JudgeError(f"{message}. Every answer is stored; run it again to continue"))
                break
            is_free = False
            if verdict.error_code == "rate_limited":
                refused_since = min(refused_since, self._clock())
                is_free = self._are_others_answered(refused_since)
            if verdict.failure != "transient" or (retries_used == retries and not is_free):
                await self._finish(question, verdict, values)
                return True
            await self._record(question, values)
            wait = pause(verdict.retry_after, turn, self._jitter, self._options.retry_wait)
            if self._deadline is not None and self._is_late(wait):
                if self._open > 1:  # others have the time that is left
                    await self._stopped_within(max(self._deadline - self._clock(), 0.0))
                self.stop("max_minutes")
                break
            if self._clock() >= self._logged_until and say_wait(wait, verdict.error_message):
                self._logged_until = self._clock() + wait
            if await self._stopped_within(wait):
                break
            turn += 1
            retries_used += not is_free
        return False

    def _are_others_answered(self, refused_since: float) -> bool:
        """Whether the provider answers other questions, so that a refusal uses up no retry."""
        now = self._clock()
        is_recent = now - self._answered_at < _ANSWERED_LATELY_S
        return self._open > 1 and is_recent and now - refused_since < _REFUSED_AT_MOST_S

    async def _attempt(self, question: Question, turn: int) -> Attempt | None:
        """Ask once, if the budget allows it; None when nothing may be asked any more."""
        if self.budget.limit is None:
            verdict, values = await self._ask(question, turn)
            self.budget.spent += verdict.cost or 0.0
            return verdict, values
        try:
            most = max_cost_of(question.judge, question.pair(turn))
            reserved = await self.budget.reserve(question.condition_id, most)
        except BudgetExceeded:
            self.stop("max_cost")
            return None
        except JudgeError as error:
            self.stop("judge", error)
            return None
        if self._stop.is_set():  # while it waited for the budget
            self.budget.pay(reserved, None)
            return None
        return await self._paid(question, turn, reserved)

    async def _paid(self, question: Question, turn: int, reserved: Reservation) -> Attempt:
        """Ask once, and settle what was reserved by what it cost."""
        attempt = None
        try:
            attempt = await self._ask(question, turn)
        finally:
            try:
                self.budget.pay(reserved, None if attempt is None else attempt[0])
            except JudgeError as error:
                self.stop("judge", error)
        return attempt

    async def _ask(self, question: Question, turn: int) -> Attempt:
        """Ask the judge; the verdict, and the columns of the attempt."""
        asked_at = utc_now()
        began = time.perf_counter()
        number = question.attempt + turn
        timeout = None if judge_member(question.judge, "waits_for_people") else self._options.timeout
        try:
            verdict = await ask_once(question.judge, question.pair(turn), timeout)
        except asyncio.CancelledError:  # it may be paid for all the same
            stopped = Verdict.fail("cancelled", "interrupted before the answer came", failure="transient")
            stopped = self._with_cost(stopped, question, turn)
            values = attempt_columns(stopped, number, asked_at, time.perf_counter() - began)
            self._writer.put(self._entry(question, values, None, question.open_rows))
            raise
        except PairscaleError as error:  # the judge can judge none of these pairs
            self.stop("judge", error)
            verdict = Verdict.fail("judge_error", str(error), failure="judge")
        verdict = self._with_cost(verdict, question, turn)
        if verdict.cost_is_estimate:
            self.budget.say_estimate(question.judge.condition.judge_id, verdict.cost)
        if verdict.cached:
            self.cached += 1
            self.saved += verdict.saved or 0.0
        else:
            self.asked += 1
        return verdict, attempt_columns(verdict, number, asked_at, time.perf_counter() - began)

    @staticmethod
    def _with_cost(verdict: Verdict, question: Question, turn: int) -> Verdict:
        """The verdict, at the most that the question may cost where its cost is not known."""
        if verdict.cost is not None or verdict.cached:
            return verdict
        try:
            return verdict.with_cost_at_most(max_cost_of(question.judge, question.pair(turn)))
        except JudgeError:  # with max_cost, it was raised before the question was asked
            return verdict

    async def _stopped_within(self, seconds: float) -> bool:
        """Wait; True as soon as the run is being stopped."""
        if self._stop.is_set():  # also where there is nothing to wait for
            return True
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return False
        return True

    # Recording

    async def _record(self, question: Question, values: Row) -> None:
        """Write an attempt that settles nothing."""
        entry = self._entry(question, values, None, question.open_rows)
        if isinstance(self._writer, GroupCommitWriter):
            await self._writer.write(entry)
        else:
            self._writer.put(entry)

    async def _finish(self, question: Question, verdict: Verdict, values: Row) -> None:
        """Write the attempt that settles a question, and hand its outcome over."""
        comparison = comparison_columns(verdict, str(question.first["ID"]), str(question.second["ID"]))
        recorded = Recorded(verdict, values, comparison)
        if isinstance(self._writer, GroupCommitWriter):
            await self._writer.write(self._entry(question, values, comparison))
            self._source.done(question, recorded)
        else:
            try:
                while self._hold is not None:
                    await asyncio.shield(self._hold)
            finally:  # also when interrupted: the answer is there
                rows = self._source.done(question, recorded)
                self._writer.put(self._entry(question, values, comparison, rows))
        if verdict.outcome.is_answer:
            self._answered_at = self._clock()
        if self._progress is not None:
            self._progress.advance(verdict)
        self._count(question, verdict)

    def _count(self, question: Question, verdict: Verdict) -> None:
        """Find out whether a failure concerns the judge, and show the first exception of a judge function."""
        streak = self._streaks.get(question.condition_id)
        if streak is None:
            streak = FailureStreak()
            self._streaks[question.condition_id] = streak
            if verdict.error_code == "judge_error":
                notice(f"the judge raised an exception, and the run continues: {verdict.error_message}")
        if streak.count(verdict, str(question.first["ID"]), str(question.second["ID"])):
            name = question.judge.condition.judge_id
            self.stop(
                "judge",
                JudgeError(
                    f"{name} failed in the same way on {MOST_ALIKE} different questions in a row: "
                    f"{verdict.error_message}. Every answer is stored; run it again to continue"
                ),
            )

    @staticmethod
    def _entry(
        question: Question,
        values: Row,
        comparison: Row | None,
        rows: LogRows = (),
    ) -> Entry:
        """An attempt for the writer, with the outcome that it settles, if it does, and rows of logs."""
        asked = Asked(
            question.condition_id, (values,), comparison, question.pair_id, question.uid, str(question.first["ID"]),
            str(question.second["ID"]), question.columns, question.replaces,
        )  # fmt: skip
        return Entry(asked, rows)
