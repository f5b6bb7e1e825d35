"""Given pairs that several workers share: this one asks what it has leased."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pairscale.judges.base import Judge, judge_member
from pairscale.runtime import Budget, LogRows, Progress, Question, Recorded, Wait
from pairscale.runtime.shared_budget import SharedBudget
from pairscale.runtime.sharing import LOOK_S, patiently
from pairscale.store.workers import Grant, Lease, WorkerSession

if TYPE_CHECKING:
    from pairscale.collect._plan import Plan

__all__ = ["LeasedPairs", "shared_budget"]


def shared_budget(known: Budget, worker: WorkerSession) -> SharedBudget:
    """The budget of a run file as this worker's part of it."""

    async def grant(least: float, most: float) -> Grant:
        return await patiently(worker, lambda: worker.grant(least, most))

    return SharedBudget(known.limit, known.spent, known.highest, known.prices, grant=grant)


class LeasedPairs:
    """The pairs that this worker has leased, as a source of questions.

    Args:
        plan: all pairs.
        judge: who is asked.
        worker: this one's place among the workers.
        budget: gets back what this worker does not need while it has no pair.
        repeats: the run file's, for a judge that has to know of them.
        block: how many pairs to lease at once.
        progress: also counts what others have answered.
        on_answer: takes each answer.
    """

    def __init__(
        self,
        plan: Plan,
        judge: Judge,
        worker: WorkerSession,
        budget: SharedBudget,
        *,
        repeats: Mapping[int, int] | None,
        block: int,
        progress: Progress | None = None,
        on_answer: Callable[[Question, Recorded], object] | None = None,
    ) -> None:
        self._plan, self._judge, self._worker, self._repeats = plan, judge, worker, repeats or {}
        self._block, self._progress, self._on_answer, self._budget = block, progress, on_answer, budget
        self._ready: deque[Question] = deque()
        self._looking: asyncio.Task[None] | None = None
        self._is_over = False
        self._workers = self._others = 0

    def next(self) -> Question | Wait | None:
        """The next pair that is leased; more are leased before there are none."""
        if self._looking is not None and self._looking.done():
            looking, self._looking = self._looking, None
            looking.result()
        if self._looking is None and not self._is_over and len(self._ready) < max(1, self._block // 2):
            self._looking = asyncio.get_running_loop().create_task(self._look())
        if self._ready:
            return self._ready.popleft()
        return None if self._is_over else Wait(self._looking)

    def done(self, question: Question, recorded: Recorded | None) -> LogRows:
        """Take an outcome; a question that was given up is free again when this worker leaves."""
        if self._on_answer is not None and recorded is not None:
            self._on_answer(question, recorded)
        return ()

    async def close(self) -> None:
        """Wait for a look that is under way."""
        if self._looking is not None:
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        found: Lease = await patiently(self._worker, lambda: self._worker.lease(self._block))
        self._ready.extend(self._plan.leased(self._judge, found.pairs, self._repeats))
        if found.workers != self._workers:
            self._workers = found.workers
            if (share := judge_member(self._judge, "share_limits")) is not None:
                share(found.workers)
        if self._progress is not None and found.answered_by_others > self._others:
            self._progress.catch_up(found.answered_by_others - self._others)
            self._others = found.answered_by_others
        if found.is_over and not self._ready:
            self._is_over = True
        elif not found.pairs and not self._ready:
            await self._budget.give_back()
            await asyncio.sleep(LOOK_S)
