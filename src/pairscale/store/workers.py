"""Several workers on one run in a PostgreSQL database: who is there, which pairs are whose, what may be spent.

A worker is a process that judges given pairs. It leases pairs in blocks, and a lease ends in the transaction that
writes the outcome, or when its worker's connection is gone. Nothing here goes by the clock of a worker.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlalchemy import and_, delete, func, insert, inspect, select, update
from sqlalchemy.exc import SQLAlchemyError

from pairscale._version import __version__
from pairscale.core.errors import StoreBusyError, StoreConnectionError, StoreError, StoreMismatchError
from pairscale.core.notices import notice
from pairscale.store._lock import whoami
from pairscale.store._postgres import LOCK_ID, explain, require_sessions, schema_key
from pairscale.store._worker_tables import ALIVE, BEGIN_WRITE, LEASE, LONG_AGO, coordination, leases, questions, workers
from pairscale.store.database import open_address, write_json
from pairscale.store.schema import attempts, comparisons

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

    from pairscale.core.comparisons import Condition
    from pairscale.store.runfile import RunFile

__all__ = [
    "Grant",
    "Job",
    "Lease",
    "Leased",
    "WorkerSession",
    "make_tables",
    "open_shared",
    "tell_clock",
    "worker_locks",
]

_SETUP, _MAIN, _WORKERS = LOCK_ID + 1, LOCK_ID + 2, LOCK_ID + 3
_LOOK_S = 1.0  # between looks at the other workers
_FAR_S = 60  # seconds that a clock may differ before it is said
_ROUNDING = 1 + 1e-9
_NOTHING = 1e-9  # US dollars: sums of the same costs in another order may differ by less

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """What all workers of a run must agree on.

    Attributes:
        condition_id: of the judge.
        judge: the condition, in words.
        plan: digest of all pairs, texts or cases.
        n_pairs: how many.
        max_cost: US dollars that the run may spend.
        what: what they are.
        settings: digest of whatever else has to be the same.
    """

    condition_id: str
    judge: str
    plan: str
    n_pairs: int
    max_cost: float | None
    what: str = "pairs"
    settings: str | None = None

    @classmethod
    def of(cls, condition: Condition, plan: str, n_pairs: int, max_cost: float | None, **more: str) -> Job:
        """The job of one judge."""
        named = {"trait": condition.trait, "template": condition.template_id}
        words = [condition.judge_id, *(f"{name} {value}" for name, value in named.items() if value)]
        return cls(condition.condition_id, ", ".join(words), plan, n_pairs, max_cost, **more)


class Leased(NamedTuple):
    """A pair that is this worker's now."""

    pair_id: int
    asked: int
    has_outcome: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """A block of pairs, and how the others are.

    Attributes:
        pairs: the pairs; none when no pair is free.
        is_over: whether no pair is without an outcome.
        workers: how many workers there are, this one included.
        answered_by_others: outcomes of the other workers.
    """

    pairs: Sequence[Leased]
    is_over: bool
    workers: int
    answered_by_others: int


@dataclass(frozen=True, slots=True)
class Grant:
    """What a worker may spend.

    Attributes:
        granted: US dollars, what it has spent included.
        spent: US dollars that the run has spent, by all workers and before them.
        is_held: whether other workers hold money that they may give back.
    """

    granted: float
    spent: float
    is_held: bool


class WorkerSession:
    """One worker's own connection: its locks, its leases, its part of the budget.

    Args:
        engine: of the database.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self._turn = threading.RLock()
        self._schema = self._number = 0
        self._job: Job | None = None
        self._is_first = False
        self._role: str | None = None
        self.concurrency: int | None = None
        self._seen, self._look_again = (1, 0), 0.0  # how many workers, and what the others have answered; when to look

    @property
    def chain(self) -> str:
        """The name of this worker's hash chain."""
        return f"worker-{self._number}"

    # The right to write

    def acquire(self, last_writer: str) -> None:
        """Take the right to write beside other workers, or say who has it for itself.

        Until :meth:`set_up`, no other worker begins.
        """
        self._connect(lambda: self._lock(last_writer))

    def _connect(self, then: Callable[[], None]) -> None:
        try:
            held = self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            held.detach()  # to close it is to end it
            for name, value in (("idle", 30), ("interval", 10), ("count", 3)):  # a machine that is gone is noticed
                held.exec_driver_sql(f"SET tcp_keepalives_{name} = {value}")
            with self._engine.connect() as other:
                require_sessions(held, other)
            self._schema = schema_key(held)
            then()
        except StoreError:
            self._drop()
            raise
        except SQLAlchemyError as error:
            self._drop()
            cause = getattr(error, "orig", None) or error
            raise explain(cause, "the database") or StoreError(f"the database: {cause}") from error

    def _lock(self, last_writer: str) -> None:
        self._one(func.pg_advisory_lock(_SETUP, self._schema))
        self._is_first = bool(self._one(func.pg_try_advisory_lock(LOCK_ID, self._schema)))
        if not self._one(func.pg_try_advisory_lock_shared(LOCK_ID, self._schema)):
            self.release()
            raise StoreBusyError(
                f"the database is being written by another run ({last_writer}), such as adaptive ranking, an A/B run "
                "or labelling; only processes with the same command share a run. Wait for it, stop it, or use another "
                "database"
            )
        if self._is_first:
            self._one(func.pg_advisory_unlock(LOCK_ID, self._schema))

    def _one(self, what: Any) -> Any:
        assert self._connection is not None  # noqa: S101
        return self._connection.execute(select(what)).scalar()

    def set_up(self) -> None:
        """Make what workers need, and let the next one begin; the run file's own tables are there."""
        with self._transaction() as connection:
            if self._is_first:
                make_tables(connection)
                for name, column in (("attempts", attempts.c.attempt_id), ("comparisons", comparisons.c.comparison_id)):
                    after = select(func.coalesce(func.max(column), 0) + 1).scalar_subquery()
                    connection.execute(select(func.setval(f"pairscale_{name}", after, False)))
            self._number = int(connection.execute(select(func.nextval("pairscale_workers"))).scalar_one())
            connection.execute(select(func.pg_advisory_lock(self._own, self._number)))
            connection.execute(select(func.pg_advisory_unlock(_SETUP, self._schema)))

    @property
    def _own(self) -> int:
        return worker_locks(self._schema)

    def reconnect(self) -> None:
        """Take the same place again after the connection was lost."""
        with self._turn:
            self._drop()
            self._connect(self._lock_again)

    def _lock_again(self) -> None:
        if not self._one(func.pg_try_advisory_lock_shared(LOCK_ID, self._schema)):
            raise StoreBusyError("the connection to the database was lost, and another run writes to it alone now")
        self._one(func.pg_advisory_lock(self._own, self._number))
        if self._job is not None:
            self._enter(self._job)

    def release(self) -> None:
        """Leave: free pairs are free again, and money that was not spent is given back. Harmless when it was done."""
        with suppress(StoreError):
            if self._job is not None:
                with self._transaction() as connection:
                    mine = workers.c.worker == self._number
                    connection.execute(
                        update(leases).where(leases.c.worker == self._number).values(worker=None, priority=1)
                    )
                    connection.execute(update(workers).where(mine).values(ended_at=func.now(), granted=workers.c.spent))
        self._job = None
        self._drop()

    def _drop(self) -> None:
        with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(Exception):
                    connection.close()

    @contextmanager
    def _statements(self) -> Iterator[Connection]:
        """This connection, each statement a transaction; failures are told in words."""
        with self._turn:
            if self._connection is None:
                raise StoreConnectionError("the database does not answer; its connection was lost")
            try:
                yield self._connection
            except SQLAlchemyError as error:
                cause = getattr(error, "orig", None) or error
                raise explain(cause, "the database") or StoreError(f"the database: {cause}") from error

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A transaction of this connection."""
        with self._statements() as connection:
            try:
                connection.exec_driver_sql("BEGIN")
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                with suppress(Exception):
                    connection.exec_driver_sql("ROLLBACK")
                raise

    # Joining

    def check(self, job: Job) -> None:
        """Refuse a job that is not that of the workers who are there.

        Raises:
            StoreMismatchError: that says in what it differs.
        """
        with self._transaction() as connection:
            self._check(connection, job)

    def _check(self, connection: Connection, job: Job) -> bool:
        """Whether others are there; they must have the same job."""
        others = self._others(connection)
        for other in others:
            differing = _difference(job, other)
            if differing:
                same = f"{job.what}, judge and settings. Start it with the same arguments"
                if other["version"] != __version__:
                    same = "version of pairscale. Install it"
                raise StoreMismatchError(
                    f"{other['who']} works on this run with {differing[0]}, and this process has {differing[1]}; all "
                    f"workers of a run need the same {same}, or wait until the others are done"
                )
        return bool(others)

    def _others(self, connection: Connection) -> list[Mapping[str, Any]]:
        alive = connection.execute(ALIVE, {"schema": self._own}).scalars().all()
        query = select(workers).where(workers.c.worker.in_(alive), workers.c.worker != self._number)
        return [dict(row) for row in connection.execute(query.where(workers.c.ended_at.is_(None))).mappings()]

    def join(self, job: Job, missing: Iterable[tuple[int, int]], spent: Callable[[], float]) -> None:
        """Begin to work: beside the others, or as the first, who writes down what there is to do.

        Args:
            job: what this worker does.
            missing: number and priority of every pair without an answer.
            spent: what the run has spent so far; asked when this worker is the first.
        """
        with self._transaction() as connection:
            connection.execute(select(func.pg_advisory_xact_lock(_MAIN, self._schema)))
            if not self._check(connection, job):
                before = spent()
                connection.execute(delete(workers))
                connection.execute(delete(leases))
                connection.execute(insert(workers), [_worker_row(0, "before", before)])
                rows = [{"pair_id": number, "priority": priority, "worker": None} for number, priority in missing]
                for start in range(0, len(rows), 10_000):
                    connection.execute(insert(leases), rows[start : start + 10_000])
            ahead = self._enter(job)
        self._job = job
        tell_clock(ahead)

    def _enter(self, job: Job) -> float:
        """Write down who this is, or that it is back; returns the seconds that its clock is ahead."""
        connection = self._connection
        assert connection is not None  # noqa: S101
        now = connection.execute(select(func.clock_timestamp())).scalar_one()
        ahead = float((datetime.now(UTC) - now).total_seconds())
        row = _worker_row(self._number, whoami(), 0.0) | {"condition_id": job.condition_id, "judge": job.judge}
        row |= {"plan": job.plan, "max_cost": job.max_cost, "clock_s": ahead, "version": __version__}
        role = {"role": self._role, "settings": job.settings, "concurrency": self.concurrency}
        known = update(workers).where(workers.c.worker == self._number).values(missed_at=None, ended_at=None, **role)
        if connection.execute(known).rowcount == 0:
            connection.execute(insert(workers).values(**row, **role, joined_at=func.now(), seen_at=func.now()))
        return ahead

    # Leases

    def lease(self, n: int) -> Lease:
        """Take up to ``n`` free pairs; when there are none, those of workers that are gone become free.

        Raises:
            StoreConnectionError: the database does not answer.
        """
        assert self._job is not None  # noqa: S101
        values = {"me": self._number, "n": n, "condition": self._job.condition_id}
        with self._statements() as connection:
            found = [Leased(*row) for row in connection.execute(LEASE, values)]
        if found and time.monotonic() < self._look_again:
            return Lease(found, False, *self._seen)
        with self._transaction() as connection:
            is_over = not found and not connection.execute(select(leases.c.pair_id).limit(1)).first()
            if not found and not is_over:
                self._free_lost(connection)
            others = [row for row in self._others(connection) if row["missed_at"] is None]
            counts = select(func.sum(workers.c.answered)).where(workers.c.worker != self._number)
            self._seen = 1 + len(others), int(connection.execute(counts).scalar() or 0)
        self._look_again = time.monotonic() + _LOOK_S
        return Lease(found, is_over, *self._seen)

    def _free_lost(self, connection: Connection) -> None:
        """Take their pairs from workers that have been away for a while."""
        alive = connection.execute(ALIVE, {"schema": self._own}).scalars().all()
        w = workers.c
        is_there = w.worker.in_(alive)
        connection.execute(update(workers).where(is_there, w.missed_at.is_not(None)).values(missed_at=None))
        away = (~is_there, w.worker != 0, w.ended_at.is_(None))
        connection.execute(update(workers).where(*away, w.missed_at.is_(None)).values(missed_at=func.now()))
        gone = select(w.worker).where(w.ended_at.is_not(None) | (and_(*away) & (w.missed_at < LONG_AGO)))
        connection.execute(update(leases).where(leases.c.worker.in_(gone)).values(worker=None, priority=1))
        lost = questions.c.worker.in_(gone) & questions.c.answer.is_(None)
        connection.execute(update(questions).where(lost).values(worker=None))
        ended = update(workers).where(w.worker.in_(gone), w.ended_at.is_(None))
        connection.execute(ended.values(ended_at=w.missed_at, granted=w.spent))

    # The budget

    def grant(self, least: float, most: float) -> Grant:
        """Ask for money: between ``least`` and ``most`` US dollars in all, or nothing more when that is not left.

        Args:
            least: what is needed, what this worker has spent included.
            most: what would be useful.
        """
        assert self._job is not None  # noqa: S101
        assert self._job.max_cost is not None  # noqa: S101
        with self._transaction() as connection:
            connection.execute(select(workers.c.worker).where(workers.c.worker == 0).with_for_update())
            rows = connection.execute(select(workers)).mappings().all()
            mine = next(row for row in rows if row["worker"] == self._number)
            others = [row for row in rows if row["worker"] != self._number]
            taken = sum(row["spent"] if row["ended_at"] else max(row["spent"], row["granted"]) for row in others)
            left = self._job.max_cost * _ROUNDING - taken
            granted = min(most, left) if least <= left else mine["granted"]
            granted = min(granted, most) if most < mine["granted"] else granted  # given back
            connection.execute(update(workers).where(workers.c.worker == self._number).values(granted=granted))
            is_held = any(not row["ended_at"] and row["granted"] > row["spent"] + _NOTHING for row in others)
            if is_held and granted < least:
                self._free_lost(connection)
            return Grant(granted, sum(row["spent"] for row in rows), is_held)

    # Writing

    def begin_write(
        self, connection: Connection, settled: Sequence[int], asked: int, cost: float
    ) -> tuple[set[int], list[int], list[int]]:
        """Begin a transaction of answers: end leases, count, and get numbers for the rows.

        Args:
            connection: of the writer, in a transaction.
            settled: pairs that have an outcome now.
            asked: how many attempts.
            cost: of them together.

        Returns:
            The pairs whose lease this worker still had, and the numbers of attempts and comparisons.
        """
        cursor = connection.connection.cursor()
        try:
            values = {"me": self._number, "settled": list(settled), "asked": asked, "cost": cost}
            cursor.execute(BEGIN_WRITE, {**values, "answered": len(settled), "n_settled": len(settled)})
            gone, numbers, more = cursor.fetchone() or ((), (), ())
            return set(gone), list(numbers), list(more)
        finally:
            cursor.close()

    def standing(self, connection: Connection, condition_id: str, pairs: Iterable[int]) -> dict[int, str]:
        """The outcomes of pairs that are no longer this worker's.

        The worker that has them now finds them settled, too: in this transaction, or by an answer that it must see.
        """
        connection.execute(delete(leases).where(leases.c.pair_id.in_(list(pairs))))
        c = comparisons.c
        query = select(c.pair_id, c.outcome).where(c.condition_id == condition_id, c.pair_id.in_(list(pairs)))
        return {row.pair_id: row.outcome for row in connection.execute(query)}

    def lock_main(self, connection: Connection) -> None:
        """Let no other worker write to the chain ``main`` in this transaction."""
        connection.execute(select(func.pg_advisory_xact_lock(_MAIN, self._schema)))


def tell_clock(ahead: float) -> None:
    """Say when the clock of this machine is not that of the database."""
    if abs(ahead) > _FAR_S:
        notice(
            f"the clock of this machine differs from the database's by {ahead:,.0f} s; the times of its answers "
            "are by its own clock, and nothing else goes by it"
        )


def worker_locks(schema: int) -> int:
    """What tells the locks of the workers of a schema from all others."""
    return (_WORKERS ^ schema) & 0x7FFFFFFF


def make_tables(connection: Connection) -> None:
    """Make the tables that workers need; those of another version hold nothing that is needed."""
    found, names = inspect(connection), {column.name for column in workers.c}
    if found.has_table("workers") and {column["name"] for column in found.get_columns("workers")} != names:
        coordination.drop_all(connection, [workers, leases])
    coordination.create_all(connection)


def open_shared(where: str | os.PathLike[str] | None) -> RunFile:
    """Open a run for writing: in a PostgreSQL database as one of several workers, elsewhere as the one that writes."""
    from pairscale.store.runfile import RunFile, open_run

    if str(where).startswith("postgresql"):
        engine = open_address(str(where), {"json_serializer": write_json, "pool_pre_ping": True})
        return RunFile(engine, "the database", WorkerSession(engine)).prepared(write=True)
    return open_run(where, write=True)


def _worker_row(number: int, who: str, spent: float) -> dict[str, Any]:
    return {"worker": number, "who": who, "asked": 0, "answered": 0, "spent": spent, "granted": spent}


def _difference(job: Job, other: Mapping[str, Any]) -> tuple[str, str] | None:
    """In what a worker differs from another one: its own, and this one's."""
    if other["version"] != __version__:
        return f"pairscale {other['version']}", f"pairscale {__version__}"
    if other["condition_id"] != job.condition_id:
        return str(other["judge"]), job.judge if job.judge != other["judge"] else f"other settings of {job.judge}"
    if other["plan"] != job.plan:
        return f"other {job.what}", f"{job.n_pairs:,} {job.what}"
    if other["settings"] != job.settings:
        return "other settings", "its own"
    if other["max_cost"] != job.max_cost:
        return f"max_cost {_money(other['max_cost'])}", _money(job.max_cost)
    return None


def _money(limit: float | None) -> str:
    return "none" if limit is None else f"${limit:g}"
