"""A process that leads a run asks some of its questions itself, and hands the others out to workers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import StoreConnectionError, StoreError
from pairscale.core.notices import notice
from pairscale.core.provenance import utc_text
from pairscale.core.timelimit import TimeLimit
from pairscale.judges.base import Item, Judge, Verdict, judge_member
from pairscale.runtime.asking import Stopwatch, ask_once
from pairscale.runtime.source import Question
from pairscale.store.database import storable, write_json
from pairscale.store.policies import AGAIN_S, IN_DATABASE, PATIENCE_S
from pairscale.store.questions import HandedOut, Key, LateAnswer, LeadSession, name_of
from pairscale.store.workers import WorkerSession
from pairscale.store.writer import Asked, Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "LOOK_S",
    "POLL_S",
    "QuestionSharing",
    "late_entry",
    "patiently",
    "verdict_of",
    "when_it_answers",
    "written_verdict",
]

T = TypeVar("T")

LOOK_S = 1.0  # seconds between looks at the other processes, and between tries to reach a database that is away
POLL_S = 0.05  # seconds between looks for answers or questions
_PATIENCE_S = 150.0  # for a database that does not answer; longer than the writer's, which tries to reach it


async def patiently(worker: WorkerSession, ask: Callable[[], T], *, is_new: bool = False, tell: bool = False) -> T:
    """Ask the database in a thread; while it does not answer or cannot be written, connect and ask again.

    Args:
        worker: this process.
        ask: what to do there.
        is_new: whether this process has no answers yet, so that a database that cannot be written is refused.
        tell: whether to say that it waits, where no writer does.
    """
    patience = PATIENCE_S if tell else _PATIENCE_S
    until = time.monotonic() + patience

    def again() -> T:
        worker.reconnect()
        return ask()

    call = ask
    while True:
        try:
            return await asyncio.get_running_loop().run_in_executor(None, call)
        except IN_DATABASE as error:
            if time.monotonic() > until or (is_new and not isinstance(error, StoreConnectionError)):
                raise
            if tell and call is ask:
                notice(f"{error}. Trying again for {patience / 60:g} minutes")
            call = again
        await asyncio.sleep(LOOK_S)


async def when_it_answers(connect: Callable[[], T]) -> T:
    """Connect to a database; one that is away, as in a restart, is tried for as long as a running process does."""
    until, is_told = time.monotonic() + PATIENCE_S, False
    while True:
        try:
            return connect()
        except StoreConnectionError as error:
            if time.monotonic() > until:
                raise
            if not is_told:
                notice(f"{error}. Trying again for {PATIENCE_S / 60:g} minutes")
                is_told = True
        await asyncio.sleep(AGAIN_S)


def written_verdict(verdict: Verdict) -> str:
    """A verdict as JSON."""
    values = {one.name: getattr(verdict, one.name) for one in fields(verdict)} | {"outcome": str(verdict.outcome)}
    try:
        return write_json(values)
    except (TypeError, ValueError, RecursionError):  # a reply that no database takes as it is
        return write_json(storable(values))


def verdict_of(written: str) -> Verdict:
    """The way back."""
    values: Mapping[str, Any] = json.loads(written)
    return Verdict(**{**values, "outcome": Outcome(values["outcome"])})


def late_entry(late: LateAnswer) -> Entry:
    """A late answer as an attempt that settles nothing."""
    verdict = verdict_of(late.answer)
    values = Stopwatch().attempt(verdict, late.attempt)
    values["attempted_at"] = utc_text(late.given_at - (verdict.latency_s or 0.0))
    return Entry(Asked(late.condition_id, (values,), None, late.pair_id, late=late.number))


@dataclass(slots=True, eq=False)
class _Waiting:
    """A question that another process is to answer."""

    handed: HandedOut
    key: Key
    answer: asyncio.Future[Verdict | None]
    number: int | None = None


class QuestionSharing:
    """Asks as many questions here as this process may have open, and hands the others out.

    Args:
        session: this process, which leads.
        left: names of questions that an earlier process handed out, and that are answered or being answered.
        judges: who may be asked, to keep to a part of their limits.
        pack: what the workers need of a text; None for all of it.
        flush: waits until everything that was chosen is on the disk, so that a question is there before it is asked.
        on_workers: called with the number of questions that may be open in all, when that changes.
    """

    def __init__(
        self,
        session: LeadSession,
        left: set[str],
        judges: list[Judge],
        *,
        pack: Callable[[Item], Any] | None = None,
        flush: Callable[[], None] | None = None,
        on_workers: Callable[[int], None] | None = None,
    ) -> None:
        self._session, self._left, self._judges = session, left, judges
        self._pack, self._flush, self._on_workers = pack, flush, on_workers
        self._most = session.concurrency or 1
        self._here = 0
        self._waiting: dict[str, _Waiting] = {}
        self._last: dict[str, int] = {}  # by name, the number of the attempt that was answered
        self._given_up: set[Key] = set()
        self._wake = asyncio.Event()
        self._open_in_all, self._look_at, self._reconnects = self._most, 0.0, session.reconnects
        self._counted = [0, 0, 0.0]  # asked, answered and their cost since the last look
        self._failure: Exception | None = None

    # Asking

    async def ask(self, question: Question, turn: int, limit: TimeLimit | None) -> Verdict:
        """Ask a question here, or have it answered elsewhere."""
        if self._failure is not None:
            raise self._failure
        name, is_reserved = name_of(question.condition_id, question.uid), False
        if (name in self._left or self._here >= self._most) and (handed := self._handed(name, question, turn)):
            verdict = await self._elsewhere(handed, question, turn)
            if verdict is not None:
                return verdict
            is_reserved = True
        self._here += not is_reserved
        try:
            verdict = await ask_once(question.judge, question.pair(turn), limit)
            for at, more in enumerate((1, verdict.outcome.is_answer, verdict.cost or 0.0)):
                self._counted[at] += more
            return verdict
        finally:
            self._here -= 1
            self._wake.set()

    def was_given_up(self, question: Question, turn: int) -> bool:
        """Whether the worker that had a question left before it was answered."""
        return (question.condition_id, question.uid, question.attempt + turn) in self._given_up

    def _handed(self, name: str, question: Question, turn: int) -> HandedOut | None:
        """The question as it goes into the table; None when it cannot: it is asked here then."""
        judged_by = question.judge.condition.condition_id
        sides = [one if self._pack is None else self._pack(one) for one in (question.first, question.second)]
        shown = {"first": sides[0], "second": sides[1], "uid": question.uid, "occurrence": question.occurrence}
        shown["condition_id"] = question.condition_id
        try:
            written = json.dumps(shown, sort_keys=True)
            if json.loads(written) != shown:
                return None
        except (TypeError, ValueError, RecursionError):
            return None
        return HandedOut(name, judged_by, written, question.attempt + turn, self._last.get(name, 0))

    async def _elsewhere(self, handed: HandedOut, question: Question, turn: int) -> Verdict | None:
        """What another process says; None when this one is to ask after all, for which a place is kept."""
        key = question.condition_id, question.uid, question.attempt + turn
        waiting = _Waiting(handed, key, asyncio.get_running_loop().create_future())
        self._waiting[handed.name] = waiting
        self._wake.set()
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            if waiting.answer.done() and not waiting.answer.cancelled() and waiting.answer.result() is None:
                self._here -= 1
            raise
        finally:
            self._left.discard(handed.name)
            del self._waiting[handed.name]

    # The table

    async def run(self, take_late: Callable[[list[LateAnswer]], None]) -> None:
        """Hand out questions and fetch answers, until this is cancelled.

        Args:
            take_late: called with the late answers that are there, also those that it was given before.
        """
        try:
            while True:
                if time.monotonic() >= self._look_at:
                    take_late(await self.late())
                await self._turn()
                busy = any(not one.answer.done() for one in self._waiting.values())
                # Not wait_for: in Python 3.11, it may swallow the cancellation that ends this.
                woken = asyncio.ensure_future(self._wake.wait())
                try:
                    await asyncio.wait([woken], timeout=POLL_S if busy else LOOK_S)
                finally:
                    woken.cancel()
        except asyncio.CancelledError:
            with suppress(StoreError):
                self._session.count(int(self._counted[0]), int(self._counted[1]), self._counted[2])
            raise
        except Exception as error:  # noqa: BLE001 - it is raised where questions are asked
            self._failure = error
            for one in self._waiting.values():
                if not one.answer.done():
                    one.answer.set_exception(error)

    async def _turn(self) -> None:
        self._wake.clear()
        if time.monotonic() >= self._look_at:
            await self._look()
        if self._session.reconnects != self._reconnects:  # what was done last may have been undone
            self._reconnects = self._session.reconnects
            for name, one in self._waiting.items():
                if one.number is not None:  # another process may have it, or have answered
                    self._left.add(name)
                one.number = None
        waiting = [one for one in self._waiting.values() if not one.answer.done()]
        self._ask_here(one for one in waiting if one.number is None and one.handed.name not in self._left)
        new = [one for one in waiting if one.number is None and not one.answer.done()]
        if new:
            if self._flush is not None:
                await asyncio.get_running_loop().run_in_executor(None, self._flush)
            given = [one.handed for one in new]
            numbers = await patiently(self._session, lambda: self._session.hand_out(given))
            for one in new:
                one.number = numbers[one.handed.name]
        out = {one.number: one for one in waiting if one.number is not None and not one.answer.done()}
        if out:
            found = await patiently(self._session, lambda: self._session.answers(out))
            for number, answer in found.items():
                self._deliver(out.pop(number), number, verdict_of(answer))
        if out and (free := self._most - self._here) > 0:
            self._here += free  # no other question may have these places meanwhile
            try:
                back = await patiently(self._session, lambda: self._session.take_back(free, out))
            finally:
                self._here -= free
            self._ask_here(out[number] for number in back)

    async def late(self) -> list[LateAnswer]:
        """The answers of processes that were lost and came back, when others had answered."""
        return await patiently(self._session, self._session.late)

    def _ask_here(self, ones: Any) -> None:
        for one in ones:
            if self._here < self._most and not one.answer.done():
                self._here += 1
                one.answer.set_result(None)

    def _deliver(self, one: _Waiting, number: int, verdict: Verdict) -> None:
        if one.answer.done():
            return
        self._session.taken[one.key] = number
        self._last[one.handed.name] = number
        if verdict.error_code == "cancelled":
            self._given_up.add(one.key)
        one.answer.set_result(verdict)

    async def _look(self) -> None:
        counted, self._counted = self._counted, [0, 0, 0.0]
        n, in_all = await patiently(
            self._session, lambda: self._session.look(int(counted[0]), int(counted[1]), counted[2])
        )
        self._look_at = time.monotonic() + LOOK_S
        for judge in self._judges:
            if (share := judge_member(judge, "share_limits")) is not None:
                share(n)
        if in_all != self._open_in_all:
            self._open_in_all = in_all
            if self._on_workers is not None:
                self._on_workers(in_all)
