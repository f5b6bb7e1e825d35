"""An A/B run that several processes share in a PostgreSQL database: one works on the cases, all judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pairscale.core.errors import StoreError
from pairscale.core.provenance import fingerprint
from pairscale.evaluate.comparators import PairwiseComparator
from pairscale.evaluate.result import PairwiseRunResult
from pairscale.evaluate.saved import saved_result
from pairscale.runtime.answering import Answering, can_share, lead, open_session, take_part
from pairscale.runtime.sharing import QuestionSharing
from pairscale.store.runfile import open_run
from pairscale.store.workers import Job

if TYPE_CHECKING:
    from pairscale.evaluate.run import Settings
    from pairscale.evaluate.source import CaseSource
    from pairscale.judges.base import Judge
    from pairscale.runtime import Runtime
    from pairscale.store.questions import LeadSession

__all__ = ["can_compare_together", "compared_together", "judges_of", "question_sharing"]


def judges_of(comparators: Iterable[PairwiseComparator]) -> list[Judge]:
    """Who is asked by comparators."""
    return [judge for one in comparators for judge in getattr(one, "judges", ())]


def can_compare_together(settings: Settings) -> bool:
    """Whether several processes can share a run: it is in PostgreSQL, and has judges that are no people."""
    judges = judges_of(settings.comparators)
    return bool(judges) and can_share(settings.run, judges)


async def compared_together(
    settings: Settings, shown: Sequence[Any], same: Any, compare: Callable[[], Awaitable[PairwiseRunResult]]
) -> PairwiseRunResult:
    """Lead a run, or help the process that does.

    Args:
        settings: how to compare.
        shown: what is compared, case by case.
        same: whatever else has to be the same in all processes.
        compare: leads the run.
    """
    judges, options = judges_of(settings.comparators), settings.options
    conditions = [judge.condition for judge in judges]
    keys = [comparator.key for comparator in settings.comparators]
    job = Job.of(
        conditions[0], fingerprint(list(shown)), len(shown), options.max_cost, what="cases",
        settings=fingerprint([same, keys, [one.condition_id for one in conditions]]),
    )  # fmt: skip
    while True:
        with open_session(str(settings.run), options.concurrency) as session:
            session.job = job
            if await take_part(session, Answering(job, judges, timeout=options.timeout)) is not None:
                break
            with lead(session):
                return await compare()
    with open_run(settings.run) as store:
        found = saved_result(store)
    if found is None:
        raise StoreError("the process that led this run has kept no result; run the same call again")
    result = replace(found[0], store_dir=None if settings.store_dir is None else str(settings.store_dir))
    if settings.store_dir is not None:
        result.save()
    return result


def question_sharing(
    session: LeadSession, source: CaseSource, judges: list[Judge], runtime: Callable[[], Runtime]
) -> QuestionSharing | None:
    """What hands out the questions of a run that this process leads."""
    if session.job is None:
        return None

    def more(concurrency: int) -> None:
        source.open_up(concurrency)
        runtime().grow(concurrency)

    return QuestionSharing(session, session.begin(session.job), judges, on_workers=more)
