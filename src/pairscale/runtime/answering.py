"""A process that shares a run which another one leads: it answers open questions, and leads itself when none else does.

The process that leads keeps the budget and the order, asks again and writes everything down; see
:mod:`pairscale.runtime.sharing`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pairscale.core.errors import JudgeError, PairscaleError, StoreError
from pairscale.core.notices import notice
from pairscale.core.timelimit import TimeLimit
from pairscale.judges.base import Item, Judge, JudgePair, Verdict, judge_member
from pairscale.runtime.asking import ask_once, close
from pairscale.runtime.sharing import LOOK_S, POLL_S, late_entry, patiently, when_it_answers, written_verdict
from pairscale.runtime.sync import Terminated
from pairscale.store.questions import Leader, LeadLostError, LeadSession, OpenQuestion, leading
from pairscale.store.runfile import open_run
from pairscale.store.workers import Job

__all__ = ["Answering", "can_share", "lead", "open_session", "take_part"]


def can_share(run: object, judges: Sequence[Judge]) -> bool:
    """Whether several processes can share a run: it is in PostgreSQL, and no people answer."""
    return str(run).startswith("postgresql") and not any(judge_member(one, "waits_for_people") for one in judges)


@contextmanager
def open_session(run: str, concurrency: int) -> Iterator[LeadSession]:
    """The place of this process among those that share a run."""
    session = LeadSession(run)
    session.concurrency = concurrency
    try:
        yield session
    finally:
        session.end("interrupted")


@contextmanager
def lead(session: LeadSession) -> Iterator[None]:
    """Inside the block, this process leads; the others learn how it ended.

    When another process took the lead while the database was away, the block ends without an error: help that one.
    """
    try:
        with leading(session):
            yield
    except LeadLostError as error:
        notice(f"{error}; this process helps it")
        session.end("interrupted")
        return
    except (KeyboardInterrupt, Terminated, asyncio.CancelledError, GeneratorExit):
        session.end("interrupted")
        raise
    except BaseException as error:
        session.end(str(error) or type(error).__name__)
        raise
    session.end("done")


@dataclass(slots=True)
class Answering:
    """How a process answers.

    Attributes:
        job: what all processes have to agree on.
        judges: who is asked.
        unpack: a text from what the process that leads says of it; None when it says everything.
        timeout: seconds that one answer may take.
        max_minutes: minutes that this process takes part.
        refusal: why it cannot answer, if it cannot.
    """

    job: Job
    judges: Sequence[Judge]
    unpack: Callable[[Any], Item] | None = None
    timeout: float | None = None
    max_minutes: float | None = None
    refusal: PairscaleError | None = None
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self.deadline = float("inf") if self.max_minutes is None else time.monotonic() + 60 * self.max_minutes

    @property
    def minutes_left(self) -> float | None:
        """What is left of ``max_minutes``."""
        return None if self.max_minutes is None else max((self.deadline - time.monotonic()) / 60, 0.0)


async def take_part(session: LeadSession, how: Answering) -> Leader | None:
    """Lead, or answer the questions of the process that does.

    Returns:
        None as soon as this process leads; else the process that led, when it has ended or the time of this one is up.

    Raises:
        JudgeError: the judge cannot be asked from here.
        StoreError: the process that led has failed.
        StoreMismatchError: this process has other texts, another judge or other settings.
    """
    await when_it_answers(session.connect)
    while not await patiently(session, session.try_lead, is_new=True):
        if how.refusal is not None:
            raise how.refusal
        leader = await patiently(session, session.leader, is_new=True)
        if leader is None or leader.ending is not None or leader.is_lost:
            await asyncio.sleep(LOOK_S / 4)
            continue
        await patiently(session, lambda: session.join(how.job), is_new=True)
        notice(f"{leader.who} leads this run; this process answers its open questions")
        worker = _Worker(session, how)
        try:
            ended = await worker.run()
        finally:
            for judge in how.judges:
                await close(judge)
        notice(f"this process has answered {worker.answered:,} questions of the run")
        if ended is None or ended.ending == "done":
            with suppress(StoreError):  # then the next process that leads writes them down
                _write_late(session)
            return ended or leader
        if not ended.is_lost and ended.ending != "interrupted":
            raise StoreError(
                f"{ended.who}, which led this run, has ended: {ended.ending}. Nothing was lost; run the same call "
                "again to continue"
            )
        notice(f"{ended.who}, which led this run, is gone; a process that is left leads it now")
    return None


def _write_late(session: LeadSession) -> None:
    """Write down the late answers of a run that has ended, unless another process writes to it."""
    if any(one.pair_id is not None for one in session.late()):
        with open_run(session.where, write=True) as store:
            store.questions = session  # what is written goes from the table
            store.writer.commit([late_entry(one) for one in session.late() if one.pair_id is not None])


class _Worker:
    """Answers questions until the process that leads has ended, or is gone."""

    def __init__(self, session: LeadSession, how: Answering) -> None:
        self._session, self._how = session, how
        self._judges = {one.condition.condition_id: one for one in how.judges}
        self._limit = None if how.timeout is None else TimeLimit(how.timeout)
        self._open: dict[asyncio.Task[Verdict], OpenQuestion] = {}
        self._failure: PairscaleError | None = None
        self._reconnects = session.reconnects
        self._workers, self._look_at = 0, 0.0
        self.answered = 0

    async def run(self) -> Leader | None:
        """Answer; how the process that led has ended, None when the time of this one is up."""
        leader: Leader | None = None
        try:
            while True:
                if time.monotonic() >= self._look_at:
                    leader = await self._look(leader)
                is_over = leader is not None and (leader.ending is not None or leader.is_lost)
                is_leaving = is_over or self._failure is not None or time.monotonic() >= self._how.deadline
                if is_leaving and not self._open:
                    break
                if not is_leaving:
                    await self._take()
                await self._wait()
        except asyncio.CancelledError:
            self._give_up("interrupted before the answer came")
            raise
        finally:
            if self._limit is not None:
                self._limit.close()
        if self._failure is not None:
            raise self._failure
        return leader if is_over else None

    async def _look(self, before: Leader | None) -> Leader | None:
        leader = await patiently(self._session, self._session.leader, tell=True)
        self._look_at = time.monotonic() + LOOK_S
        n = before.workers if leader is None and before is not None else leader.workers if leader is not None else 1
        if n != self._workers:
            self._workers = n
            for judge in self._how.judges:
                if (share := judge_member(judge, "share_limits")) is not None:
                    share(n)
        return leader

    async def _take(self) -> None:
        session, free = self._session, (self._session.concurrency or 1) - len(self._open)
        if session.reconnects != self._reconnects:
            self._reconnects = session.reconnects
            kept = [one.number for one in self._open.values()]
            await patiently(session, lambda: session.forget(kept))
        if free > 0:
            names = list(self._judges)
            for one in await patiently(session, lambda: session.take(free, names)):
                self._open[asyncio.create_task(self._ask(one))] = one

    async def _wait(self) -> None:
        """Wait for an answer, or for a moment; hand over the answers that are there."""
        if not self._open:
            await asyncio.sleep(POLL_S)
            return
        done, _ = await asyncio.wait(self._open, timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)
        if done:
            await self._hand_over({self._open[task]: task.result() for task in done})
            for task in done:
                del self._open[task]

    async def _hand_over(self, verdicts: Mapping[OpenQuestion, Verdict]) -> None:
        given = {question: (written_verdict(one), one.cost or 0.0) for question, one in verdicts.items()}
        await patiently(self._session, lambda: self._session.answer(given), tell=True)
        self.answered += sum(one.outcome.is_answer for one in verdicts.values())

    async def _ask(self, question: OpenQuestion) -> Verdict:
        shown: dict[str, Any] = json.loads(question.question)
        first, second = (
            shown[side] if self._how.unpack is None else self._how.unpack(shown[side]) for side in ("first", "second")
        )
        pair = JudgePair(first, second, shown["uid"], question.attempt, None, shown["occurrence"])
        begun = time.perf_counter()
        try:
            verdict = await ask_once(self._judges[question.judged_by], pair, self._limit)
        except PairscaleError as error:  # the judge can be asked nothing, here
            self._failure = self._failure or error
            return _left(str(error))
        if verdict.failure == "judge":
            words = f"{verdict.error_message or 'the judge cannot be asked'}"
            self._failure = self._failure or JudgeError(f"{words}. The run continues without this process")
            return _left(words, status_code=verdict.status_code)
        if verdict.latency_s is None:
            verdict = replace(verdict, latency_s=time.perf_counter() - begun)
        return verdict

    def _give_up(self, why: str) -> None:
        """Say of the questions that are open that they have no answer from here: they may have been paid for."""
        for task in self._open:
            task.cancel()
        given = {one: (written_verdict(_left(why)), 0.0) for one in self._open.values()}
        try:
            self._session.answer(given)
        except StoreError:
            return  # they are free when the connection is gone


def _left(why: str, **more: Any) -> Verdict:
    return Verdict.fail("cancelled", f"the worker left: {why}", failure="transient", **more)
