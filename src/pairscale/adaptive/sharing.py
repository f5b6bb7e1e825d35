"""An adaptive run that several processes share in a PostgreSQL database: one chooses, all answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pairscale.adaptive.state import as_items
from pairscale.core.errors import InputError
from pairscale.core.provenance import fingerprint
from pairscale.judges.function import FunctionJudge, takes
from pairscale.judges.orders import unwrapped
from pairscale.runtime import run_sync
from pairscale.runtime.answering import Answering, lead, open_session, take_part
from pairscale.runtime.sharing import QuestionSharing
from pairscale.store.workers import Job

if TYPE_CHECKING:
    import polars as pl

    from pairscale.adaptive.source import AdaptiveSource
    from pairscale.judges.base import Item, Judge
    from pairscale.runtime import Runtime
    from pairscale.store.policies import JournalWriter
    from pairscale.store.questions import LeadSession

__all__ = ["question_sharing", "ranked_together"]

T = TypeVar("T")


def ranked_together(
    run: str,
    samples: pl.DataFrame,
    judge: Judge,
    settings: Any,
    options: dict[str, Any],
    rank: Callable[[dict[str, Any]], T],
    read: Callable[[], T],
) -> T:
    """Lead a run, or help the process that does.

    Args:
        run: address of the database.
        samples: the texts.
        judge: the judge.
        settings: whatever has to be the same in all processes.
        options: of ``adaptive_rank_run_live``.
        rank: leads the run, with these options.
        read: what has become of it, when another process has led it.
    """
    items = {str(row["ID"]): {**row, "item_id": row["ID"]} for row in as_items(samples).iter_rows(named=True)}
    plan = fingerprint([[str(value) for value in row] for row in samples.sort("ID").rows()])
    limits = [options.get(name) for name in ("max_comparisons", "max_minutes")]
    job = Job.of(
        judge.condition, plan, samples.height, options.get("max_cost"), what="texts",
        settings=fingerprint([settings, limits]),
    )  # fmt: skip
    how = Answering(job, [judge], items.__getitem__, options.get("timeout"), options.get("max_minutes"))
    how.refusal = _refusal(judge)
    while True:
        with open_session(run, int(options.get("concurrency") or 1)) as session:
            session.job = job
            if run_sync(lambda: take_part(session, how), run=run) is not None:
                return read()
            with lead(session):
                return rank({**options, "max_minutes": how.minutes_left})


def _refusal(judge: Judge) -> InputError | None:
    """Why a judge cannot be asked by a process that does not lead."""
    for one in getattr(judge, "members", (judge,)):
        inner = unwrapped(one)
        if isinstance(inner, FunctionJudge) and takes(inner.function, "state"):
            return InputError(
                f"the judge {inner.condition.judge_id} can be given the state of the run, which only the process that "
                "leads it has, so other processes cannot ask it; use a judge function without a parameter state"
            )
    return None


def question_sharing(
    session: LeadSession | None,
    source: AdaptiveSource,
    journal: JournalWriter,
    judge: Judge,
    runtime: Callable[[], Runtime],
) -> QuestionSharing | None:
    """What hands out the questions of a run that this process leads; None when no other process may answer."""
    if session is None or session.job is None or _refusal(judge) is not None:
        return None

    def more(concurrency: int) -> None:
        source.open_up(concurrency)
        runtime().grow(concurrency)

    left = session.begin(session.job)
    return QuestionSharing(session, left, [judge], pack=_name, flush=journal.flush, on_workers=more)


def _name(item: Item) -> str:
    return str(item["ID"])
