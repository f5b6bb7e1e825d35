"""One process leads a run in a PostgreSQL database, and any number of others answer its open questions.

The process that leads chooses and writes, as it does when it is alone. It hands out questions in a table, and the
others put their answers there. An answer stays in the table until the transaction that writes it down, so that no death
of a process loses it. Which process leads, and who is there, is decided by advisory locks of the database.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, func, insert, inspect, or_, select, true, update

from pairscale.core.errors import StoreBusyError, StoreError
from pairscale.core.provenance import fingerprint
from pairscale.store._postgres import LOCK_ID
from pairscale.store._worker_tables import (
    ALIVE,
    ASK,
    JUST_STARTED,
    LATE,
    LONG_AGO,
    REPLACE,
    TAKE,
    late_answers,
    leases,
    questions,
    workers,
)
from pairscale.store.database import open_address, write_json
from pairscale.store.workers import Job, WorkerSession, make_tables, tell_clock

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from pairscale.store.writer import Entry

__all__ = [
    "HandedOut",
    "LateAnswer",
    "LeadLostError",
    "LeadSession",
    "Leader",
    "OpenQuestion",
    "leading",
    "leads",
    "name_of",
]

_LEAD = LOCK_ID + 4

Key = tuple[str, str, int]
"""A condition, a pair and the number of an attempt."""


class HandedOut(NamedTuple):
    """A question for the table.

    Attributes:
        name: of the question.
        judged_by: condition of the judge that is to be asked.
        question: what the judge is shown, as JSON.
        attempt: number of the attempt.
        again: number of the attempt in the table that this one comes after; 0 for none.
    """

    name: str
    judged_by: str
    question: str
    attempt: int
    again: int


class OpenQuestion(NamedTuple):
    """A question that this worker has taken."""

    number: int
    judged_by: str
    question: str
    attempt: int


class LateAnswer(NamedTuple):
    """An answer to a question that another process has answered meanwhile; it was paid for.

    Attributes:
        number: of the late answer.
        condition_id: of the question.
        pair_id: of the question; None while it has no outcome.
        attempt: number of the attempt.
        answer: what the judge said, as JSON.
        given_at: when it came, in seconds.
    """

    number: int
    condition_id: str
    pair_id: int | None
    attempt: int
    answer: str
    given_at: float


@dataclass(frozen=True, slots=True)
class Leader:
    """The process that leads, as another one sees it.

    Attributes:
        who: the process.
        ending: how it ended: ``done``, ``interrupted`` or what went wrong; None while it has not.
        is_lost: whether its connection has been gone for a while.
        workers: how many processes there are, this one included.
    """

    who: str
    ending: str | None
    is_lost: bool
    workers: int


def name_of(condition_id: str, uid: str) -> str:
    """The name of a question in the table."""
    return fingerprint([condition_id, uid], 64)


class LeadLostError(StoreBusyError):
    """Another process took the lead while the connection of this one was lost; what it had answered is kept."""


class LeadSession(WorkerSession):
    """The place of one process among those that share a run: it leads, or it answers.

    Args:
        where: address of the database.
    """

    def __init__(self, where: str) -> None:
        super().__init__(open_address(where, {"json_serializer": write_json, "pool_pre_ping": True}))
        self.where = where
        self.taken: dict[Key, int] = {}  # the answers that are about to be written down
        self.job: Job | None = None  # what this process is about to do
        self._leads = False
        self._given = 0  # answers that this process has written into the table
        self.reconnects = 0

    def connect(self) -> None:
        """Open the connection; nothing is locked yet."""
        self._connect(lambda: None)

    def try_lead(self) -> bool:
        """Take the lead, unless another process has it, or had it before the database was restarted a moment ago."""
        with self._statements() as connection:
            if not self._leads and self._may_return(connection):
                return False
            self._leads = self._leads or bool(self._one(func.pg_try_advisory_lock(_LEAD, self._schema)))
        return self._leads

    def _may_return(self, connection: Connection) -> bool:
        """Whether the process that led may be on its way back: its lock went with the database."""
        if not connection.execute(JUST_STARTED).scalar():
            return False
        w = workers.c
        led = (w.role == "leads", w.worker != self._number, w.ended_at.is_(None))
        recent = or_(w.missed_at.is_(None), w.missed_at >= LONG_AGO)
        return connection.execute(select(w.worker).where(*led, recent)).first() is not None

    def _lock_again(self) -> None:
        self.reconnects += 1
        if self._leads and not self._one(func.pg_try_advisory_lock(_LEAD, self._schema)):
            self._leads = False
            raise LeadLostError("the connection to the database was lost, and another process leads this run now")
        if self._number:
            self._one(func.pg_advisory_lock(self._own, self._number))
        if self._job is not None:
            self._enter(self._job)

    def end(self, ending: str | None = None) -> None:
        """Leave: open questions of this worker are free again. Harmless when it was done."""
        with suppress(StoreError):
            if self._job is not None:
                with self._transaction() as connection:
                    mine = questions.c.worker == self._number
                    is_open = questions.c.answer.is_(None)
                    connection.execute(update(questions).where(mine, is_open).values(worker=None))
                    if self._leads:
                        connection.execute(delete(questions).where(questions.c.worker.is_(None), is_open))
                    left = update(workers).where(workers.c.worker == self._number)
                    connection.execute(left.values(ended_at=func.now(), ending=ending))
        self._job, self._leads = None, False
        self._drop()
        self._engine.dispose()

    def _number_of_own(self, connection: Connection) -> None:
        if not self._number:
            self._number = int(connection.execute(select(func.nextval("pairscale_workers"))).scalar_one())
            connection.execute(select(func.pg_advisory_lock(self._own, self._number)))

    # The process that leads

    def begin(self, job: Job) -> set[str]:
        """Begin to lead, with what earlier processes have left.

        Returns:
            The names of the questions that are answered, or that a worker has.
        """
        self._role = "leads"
        with self._transaction() as connection:
            make_tables(connection)
            is_new = not self._number
            self._number_of_own(connection)
            q = questions.c
            is_lost = or_(q.worker.is_(None), q.worker == self._number)
            if not self._check(connection, job):
                is_lost = or_(true())
                if is_new:
                    connection.execute(delete(workers))
                    connection.execute(delete(leases))
            connection.execute(delete(questions).where(q.answer.is_(None), is_lost))
            before = update(workers).where(workers.c.role == "leads", workers.c.worker != self._number)
            connection.execute(before.values(role="led", ended_at=func.coalesce(workers.c.ended_at, func.now())))
            ahead = self._enter(job)
            left = set(connection.execute(select(q.name)).scalars())
        self._job = job
        tell_clock(ahead)  # the others have no times of their own
        return left

    def hand_out(self, given: Sequence[HandedOut]) -> dict[str, int]:
        """Put questions into the table; by name, the number of each."""
        if not given:
            return {}
        with self._transaction() as connection:
            connection.execute(REPLACE, [one._asdict() for one in given])
            return {one.name: connection.execute(ASK, one._asdict()).scalar_one() for one in given}

    def answers(self, numbers: Iterable[int]) -> dict[int, str]:
        """The answers to these questions that have arrived, as JSON."""
        q = questions.c
        query = select(q.number, q.answer).where(q.answer.is_not(None), q.number.in_(list(numbers)))
        with self._statements() as connection:
            return {row.number: row.answer for row in connection.execute(query)}

    def take_back(self, n: int, numbers: Iterable[int]) -> set[int]:
        """Take up to so many of these questions back that no worker has; the last ones first."""
        q = questions.c
        free = select(q.number).where(q.worker.is_(None), q.answer.is_(None), q.number.in_(list(numbers)))
        free = free.order_by(q.number.desc()).limit(n).with_for_update(skip_locked=True)
        with self._statements() as connection:
            gone = delete(questions).where(q.number.in_(free.scalar_subquery())).returning(q.number)
            return set(connection.execute(gone).scalars())

    def look(self, asked: int, answered: int, cost: float) -> tuple[int, int]:
        """Look at the workers; questions of those that are gone are free again.

        Args:
            asked: what this process has asked itself since the last look.
            answered: what it has answered.
            cost: of that, in US dollars.

        Returns:
            How many there are, this one included, and how many questions they can have open in all.
        """
        with self._transaction() as connection:
            self._free_lost(connection)
            self._count(connection, asked, answered, cost)
            there = [row for row in self._others(connection) if row["missed_at"] is None]
            return 1 + len(there), (self.concurrency or 1) + sum(row["concurrency"] or 0 for row in there)

    def count(self, asked: int, answered: int, cost: float) -> None:
        """Count what this process has asked itself since the last look."""
        with self._statements() as connection:
            self._count(connection, asked, answered, cost)

    def _count(self, connection: Connection, asked: int, answered: int, cost: float) -> None:
        w = workers.c
        counted = {"asked": w.asked + asked, "answered": w.answered + answered, "spent": w.spent + cost}
        connection.execute(update(workers).where(w.worker == self._number).values(**counted, seen_at=func.now()))

    def written_down(self, connection: Connection, entries: Sequence[Entry]) -> list[Key]:
        """In the transaction that writes attempts down, remove their answers from the table; which those are."""
        keys = [
            key
            for entry in entries
            if entry.asked is not None
            for values in entry.asked.attempts
            if (key := (entry.asked.condition_id, entry.asked.uid, values["attempt"])) in self.taken
        ]
        if keys:
            numbers = [self.taken[key] for key in keys]
            connection.execute(delete(questions).where(questions.c.number.in_(numbers)))
        if late := [entry.asked.late for entry in entries if entry.asked is not None and entry.asked.late is not None]:
            connection.execute(delete(late_answers).where(late_answers.c.number.in_(late)))
        return keys

    def late(self) -> list[LateAnswer]:
        """The late answers that are not written down yet."""
        with self._statements() as connection:
            return [LateAnswer(*row) for row in connection.execute(LATE)]

    # A process that answers

    def leader(self) -> Leader | None:
        """The process that leads, or led last; None when one is about to begin."""
        with self._transaction() as connection:
            there = inspect(connection)
            if not (there.has_table("questions") and there.has_table("workers")):
                return None
            w = workers.c
            found = connection.execute(select(workers).where(w.role == "leads")).mappings().first()
            if found is None:
                return None
            if not found["ended_at"]:
                self._free_lost(connection)  # also notes when a process went missing
            n = 1 + sum(row["missed_at"] is None for row in self._others(connection))
            who, ended = str(found["who"]), found["ended_at"] is not None
            if found["worker"] in connection.execute(ALIVE, {"schema": self._own}).scalars().all():
                return None if ended else Leader(who, None, False, n)
            if self._schema in connection.execute(ALIVE, {"schema": _LEAD}).scalars().all():
                return None
            if found["ending"] is not None:
                return Leader(who, str(found["ending"]), False, n)
            late = select(w.worker).where(w.worker == found["worker"], w.missed_at < LONG_AGO)
            return Leader(who, None, connection.execute(late).first() is not None, n)

    def join(self, job: Job) -> None:  # type: ignore[override]
        """Begin to answer beside the others, who must have the same job.

        Raises:
            StoreMismatchError: that says in what it differs.
        """
        self._role = "answers"
        with self._transaction() as connection:
            self._check(connection, job)
            self._number_of_own(connection)
            self._enter(job)
        self._job = job

    def take(self, n: int, judges: Sequence[str]) -> list[OpenQuestion]:
        """Take up to so many free questions to these judges."""
        with self._statements() as connection:
            values = {"me": self._number, "n": n, "judges": list(judges)}
            return [OpenQuestion(*row) for row in connection.execute(TAKE, values)]

    def forget(self, kept: Iterable[int]) -> None:
        """Give all questions back but these; what was taken while the connection was lost is not known here."""
        q = questions.c
        other = (q.worker == self._number, q.answer.is_(None), q.number.not_in(list(kept)))
        with self._statements() as connection:
            connection.execute(update(questions).where(*other).values(worker=None))

    def answer(self, given: Mapping[OpenQuestion, tuple[str, float]]) -> None:
        """Write answers into the table, each with its cost; one that came in before stands, and this one is late.

        After a connection was lost, the count of answers tells whether the transaction before was written.
        """
        with self._transaction() as connection:
            mine = workers.c.worker == self._number
            known = int(connection.execute(select(workers.c.asked).where(mine)).scalar() or 0)
            is_written, self._given = known > self._given, known
            if is_written:
                return
            wanted = 0
            for question, (answer, _) in given.items():
                is_open = (questions.c.number == question.number, questions.c.answer.is_(None))
                if connection.execute(update(questions).where(*is_open).values(answer=answer)).rowcount:
                    wanted += 1
                    continue
                shown = json.loads(question.question)
                values = {"condition_id": shown["condition_id"], "uid": shown["uid"], "attempt": question.attempt}
                connection.execute(insert(late_answers).values(**values, answer=answer, given_at=func.now()))
            self._count(connection, len(given), wanted, sum(cost for _, cost in given.values()))
        self._given = known + len(given)


_LEADING: ContextVar[LeadSession | None] = ContextVar("leading", default=None)


@contextmanager
def leading(session: LeadSession) -> Iterator[None]:
    """Inside the block, this process leads the run in that database."""
    token = _LEADING.set(session)
    try:
        yield
    finally:
        _LEADING.reset(token)


def leads(where: object) -> LeadSession | None:
    """The session that leads the run in a database, inside a block of :func:`leading`."""
    session = _LEADING.get()
    return session if session is not None and str(where) == session.where else None
