"""The workers of a run in a PostgreSQL database, for those who look at it."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import polars as pl
from sqlalchemy import func, inspect, select, true

from pairscale.store._postgres import schema_key
from pairscale.store._worker_tables import ALIVE, leases, questions, workers
from pairscale.store.workers import worker_locks

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

__all__ = ["worker_table", "working_count"]

_SHOWN = {
    "worker": pl.Int64(),
    "who": pl.String(),
    "state": pl.String(),
    "asked": pl.Int64(),
    "answered": pl.Int64(),
    "cost": pl.Float64(),
    "leased": pl.Int64(),
    "joined_at": pl.String(),
    "seen_at": pl.String(),
    "clock_s": pl.Float64(),
}


def worker_table(run_file: RunFile) -> pl.DataFrame:
    """The workers of the run that is, or was last, shared: ``worker who state asked answered cost leased`` and times.

    ``state`` is ``working``, ``leading`` (it chooses what the others answer), ``ended`` or ``gone`` (its connection is,
    and so its process may be). ``clock_s`` is how
    far its clock is ahead of the database's.
    """
    with run_file.transaction() as connection:
        if connection.dialect.name != "postgresql" or not inspect(connection).has_table("workers"):
            return pl.DataFrame(schema=_SHOWN)
        alive = set(connection.execute(ALIVE, {"schema": worker_locks(schema_key(connection))}).scalars())
        held: dict[int, int] = {}
        for table, is_open in ((leases, true()), (questions, questions.c.answer.is_(None))):
            if inspect(connection).has_table(table.name):
                counts = select(table.c.worker, func.count()).where(is_open).group_by(table.c.worker)
                held |= {worker: n for worker, n in connection.execute(counts) if worker is not None}
        rows = (
            connection.execute(select(workers).where(workers.c.worker > 0).order_by(workers.c.worker)).mappings().all()
        )
    return pl.DataFrame(
        [
            {
                **{name: row[name] for name in ("worker", "who", "asked", "answered", "clock_s")},
                "state": _state(row["ended_at"], row["role"], row["worker"] in alive),
                "cost": row["spent"],
                "leased": held.get(row["worker"], 0),
                "joined_at": row["joined_at"].astimezone(UTC).isoformat(),
                "seen_at": row["seen_at"].astimezone(UTC).isoformat(),
            }
            for row in rows
        ],
        schema=_SHOWN,
    )


def _state(ended: object, role: str | None, is_there: bool) -> str:
    if ended:
        return "ended"
    return "gone" if not is_there else "leading" if role == "leads" else "working"


def working_count(run_file: RunFile) -> int:
    """How many workers are there; 0 also for a run that one process writes alone."""
    return worker_table(run_file).filter(pl.col("state").is_in(["working", "leading"])).height
