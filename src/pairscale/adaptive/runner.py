"""The runner: keeps judgements in flight, records what comes back, refits in the background, and stops in time."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pairscale.adaptive.engine import Proposal, Starved
from pairscale.adaptive.refits import FitFn, RefitOutcome, RefitRequest, refit
from pairscale.adaptive.session import event_of
from pairscale.collect._asking import Stopwatch, ask, close, comparison_of, pause
from pairscale.files import write_table
from pairscale.judges.base import Item, Judge, JudgePair, Verdict
from pairscale.judges.function import in_thread
from pairscale.models._warm import warm_to_bytes
from pairscale.notices import notice
from pairscale.options import require_int, require_number
from pairscale.provenance import utc_now
from pairscale.store._database import whole
from pairscale.store.journal import Asked, Journal

if TYPE_CHECKING:
    from pairscale.adaptive._view import View
    from pairscale.adaptive.state import AdaptiveState

__all__ = ["Limits", "Runner", "uid_of"]


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop besides the statistical stop.

    Attributes:
        n_steps: steps of this call; invalid ones count.
        max_comparisons: committed comparisons of the whole run.
        max_cost: US dollars of the whole run.
        max_minutes: minutes of this call.
    """

    n_steps: int | None = None
    max_comparisons: int | None = None
    max_cost: float | None = None
    max_minutes: float | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and name in {"n_steps", "max_comparisons"}:
                object.__setattr__(self, name, require_int(value, name, least=0))
            elif value is not None:
                object.__setattr__(self, name, require_number(value, name, least=0))


def uid_of(step_id: int) -> str:
    """The name of a step's question in the run file."""
    return f"step-{step_id:06d}"


class Runner:
    """One call of a run: asks, records, refits, until the run stops or a limit is met.

    Args:
        state: the run.
        judge: who judges.
        journal: where everything is written down.
        view: what is shown.
        limits: when to stop.
        concurrency: how many judgements are kept in flight.
        fit_fn: what fits; None is the exact sampler.
        retries: how often to ask again when an error may pass.
        retry_wait: seconds before the first of these.
        timeout: seconds that one answer may take.
        clock: seconds, for ``max_minutes``.

    Attributes:
        is_running: whether :meth:`run` has begun and not ended.
    """

    def __init__(
        self,
        state: AdaptiveState,
        judge: Judge,
        journal: Journal,
        view: View,
        limits: Limits,
        *,
        concurrency: int,
        fit_fn: FitFn | str | None = None,
        retries: int = 3,
        retry_wait: float = 1.0,
        timeout: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state, self._engine, self._judge, self._journal, self._view = state, state.engine, judge, journal, view
        self._limits, self._concurrency, self._fit_fn = limits, concurrency, fit_fn
        self._retries, self._retry_wait, self._timeout, self._clock = retries, retry_wait, timeout, clock
        self.is_running = False
        self._begun, self._started = 0, clock()
        self._unpaid = 0  # questions that may still cost something
        self._free = 0  # answers that cost nothing, because they came from the cache
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._fitting: asyncio.Future[RefitOutcome] | None = None
        self._samples: dict[str, Item] = {
            row["ID"]: {**row, "item_id": row["ID"]} for row in state.items.iter_rows(named=True)
        }
        self._foretold = None if limits.max_cost is None else self._foretell()
        self._dearest = self._foretold or 0.0
        self._jitter = random.Random(0)  # noqa: S311 - spreads retries, keeps no secret

    async def run(self) -> None:
        """Run until it stops, meets a limit or is broken off; :meth:`close` then brings the scores up to date."""
        self.is_running = True
        try:
            await self._run()
        finally:
            self.is_running = False

    async def _run(self) -> None:
        self._answers: asyncio.Queue[tuple[int, Verdict, list[dict[str, Any]]] | BaseException] = asyncio.Queue()
        self._state.ended = None
        self._engine.failures_in_row = 0
        try:
            await self._work()
        except BaseException as error:
            await self._break_off()
            self._end("interrupted" if isinstance(error, asyncio.CancelledError) else "failed")
            raise
        finally:
            await close(self._judge)
            self._journal.flush()
        self._end(self._engine.stop_reason or self._limit())

    async def _break_off(self) -> None:
        """Leave nothing running, and lose nothing: take in what was answered, and write down what is still open."""
        left: list[asyncio.Future[Any]] = [*self._tasks.values()]
        left += [] if self._fitting is None else [self._fitting]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        while not self._answers.empty():
            answer = self._answers.get_nowait()
            if not isinstance(answer, BaseException):
                self._settle(*answer)
        if self._concurrency == 1:  # else it is written down already; with it, going on asks the same again
            self._journal.proposed([found.fields for found in self._engine.open.values()])

    async def _work(self) -> None:
        self._fit_if_due()
        self._top_up()
        while self._tasks or self._fitting is not None:
            if self._fitting is not None and (self._engine.must_apply or not self._tasks):
                await self._apply()
            else:
                answer = await self._answers.get()
                if isinstance(answer, BaseException):
                    raise answer
                self._settle(*answer)
                self._fit_if_due()
                if self._engine.must_apply and self._fitting is not None:
                    await self._apply()
            self._top_up()

    # Asking

    def _top_up(self) -> None:
        proposed: list[Mapping[str, Any]] = []
        if len(self._engine.open) > len(self._tasks):  # asked by an earlier call, and never answered
            for step_id in sorted(self._engine.open.keys() - self._tasks.keys()):
                room = len(self._tasks) < self._concurrency  # that call may have had more in flight
                if room and self._engine.stop_reason is None and self._limit() is None and self._steps_left():
                    self._start(self._engine.open[step_id])
        while len(self._engine.open) < self._concurrency and self._limit() is None and self._steps_left():
            found = self._engine.propose()
            if found is None:
                break
            if isinstance(found, Starved):
                self._begun += 1
                self._write(dict(found.row), None)
                continue
            self._start(found)
            proposed.append(found.fields)
        if proposed and self._concurrency > 1:
            self._journal.proposed(proposed)

    def _start(self, proposal: Proposal) -> None:
        self._begun += 1
        self._unpaid += 1
        self._tasks[proposal.step_id] = asyncio.create_task(self._ask(proposal))

    async def _ask(self, proposal: Proposal) -> None:
        """Ask until there is an answer or no sense in asking on; what came in vain is written down at once."""
        first, second = (self._samples[self._engine.ids[item]] for item in (proposal.first, proposal.second))
        uid, occurrence = uid_of(proposal.step_id), 1
        if getattr(self._judge, "remembers", False):  # repeats must not be copies, also after a resume
            occurrence += self._engine.ledger.times(proposal.first, proposal.second)
        try:
            for turn in range(self._retries + 1):
                pair = JudgePair(first, second, uid, turn + 1, self._state, occurrence)
                verdict, values = await self._asked_once(pair, proposal, turn + 1)
                self._state.cost += verdict.cost or 0.0
                self._dearest = max(self._dearest, verdict.cost or 0.0)
                self._free += verdict.cached
                wait = pause(verdict.retry_after, turn, self._jitter, self._retry_wait)
                last = turn == self._retries or self._owing(self._unpaid) or self._is_late(wait)
                if last or not verdict.passing:
                    self._unpaid -= 1
                    self._answers.put_nowait((proposal.step_id, verdict, [values]))
                    return
                self._in_vain(proposal, values)
                await asyncio.sleep(wait)
        except Exception as error:  # noqa: BLE001 - it is raised where the answers are taken in
            self._answers.put_nowait(error)

    async def _asked_once(self, pair: JudgePair, proposal: Proposal, number: int) -> tuple[Verdict, dict[str, Any]]:
        watch = Stopwatch()
        try:
            return await ask(self._judge, pair, number, self._timeout)
        except asyncio.CancelledError:  # it may be paid for all the same
            stopped = Verdict.fail("cancelled", "interrupted before the answer came")
            self._in_vain(proposal, watch.attempt(stopped, number))
            raise

    def _in_vain(self, proposal: Proposal, attempt: dict[str, Any]) -> None:
        """The judge was asked, and the step goes on."""
        first, second = (self._engine.ids[item] for item in (proposal.first, proposal.second))
        self._journal.asked(Asked(uid_of(proposal.step_id), first, second, {"step_id": proposal.step_id}, [attempt]))

    # Recording

    def _settle(self, step_id: int, verdict: Verdict, attempts: list[dict[str, Any]]) -> None:
        del self._tasks[step_id]
        proposal = self._engine.open[step_id]
        y = None if verdict.winner_pos is None else int(verdict.winner_pos == 1)
        # Half a character, as some servers send it, fits into no log.
        reason = None if y is not None else whole(verdict.error_message or f"the judge said {verdict.outcome}")
        row = self._engine.record(step_id, y, invalid_reason=reason, is_error=str(verdict.outcome) == "error")
        ids = [self._engine.ids[item] for item in (proposal.first, proposal.second)]
        comparison = comparison_of(verdict, *ids)
        self._write(row, Asked(uid_of(step_id), ids[0], ids[1], {"step_id": step_id}, attempts, comparison))
        if row.get("set_aside"):
            notice(f"{row['set_aside']}: the judge gives no valid answer on it; it is set aside and keeps its place")

    def _write(self, row: dict[str, Any], asked: Asked | None) -> None:
        row["timestamp"] = utc_now()
        self._journal.step(row, asked)
        self._state.add_step(row)
        engine = self._engine
        self._view.step(
            row,
            committed=engine.committed,
            invalid=self._state.invalid,
            in_flight=len(engine.open),
            cost=self._state.cost,
            stage=engine.stage,
            round_id=engine.round_id,
        )

    # Limits

    def _steps_left(self) -> bool:
        allowed = self._limits.n_steps
        return allowed is None or self._begun < allowed

    def _limit(self) -> str | None:
        """The limit that forbids another question now."""
        limits, engine = self._limits, self._engine
        if engine.is_failing:
            return "judge_failing"
        if limits.max_comparisons is not None and engine.committed + len(self._tasks) >= limits.max_comparisons:
            return "max_comparisons"
        if self._is_late():
            return "max_minutes"
        return "max_cost" if self._too_dear() else None

    def _is_late(self, wait: float = 0.0) -> bool:
        """Whether the time is up, or will be after so many seconds."""
        most = self._limits.max_minutes
        return most is not None and self._clock() + wait - self._started >= 60 * most

    def _too_dear(self) -> bool:
        """Whether another question could pass the limit; while the price is not known, one is asked at a time."""
        if self._limits.max_cost is None:
            return False
        unknown = self._foretold is None and self._answered <= self._free and self._unpaid > 0
        return unknown or self._state.cost >= self._limits.max_cost or self._owing(self._unpaid + 1)

    def _foretell(self) -> float | None:
        """What any question may cost, as the judge says of the two longest texts; None when it does not say."""
        says = getattr(self._judge, "dearest", None)
        if says is None:
            return None
        longest = sorted(self._samples.values(), key=lambda sample: len(sample["text"]))[-2:]
        return cast("float | None", says(JudgePair(longest[0], longest[-1])))

    def _owing(self, questions: int) -> bool:
        """Whether so many more answers could pass the limit, if each costs what the dearest did, or may."""
        most, spent = self._limits.max_cost, self._state.cost
        each = max(self._dearest, spent / self._answered if self._answered else 0.0)
        return most is not None and spent + each * questions > most * (1 + 1e-9)

    @property
    def _answered(self) -> int:
        return self._engine.committed + self._state.invalid

    def _end(self, reason: str | None) -> None:
        self._state.ended = reason
        self._journal.event(event_of("end", self._engine, reason=reason))

    # Refits

    def _fit_if_due(self) -> None:
        request = self._engine.pending
        # What comes in after the stop is for the closing refit: it cannot take the stop back.
        if request is not None and self._fitting is None and self._engine.stop_reason is None:
            request = replace(request, refit_id=self._state.n_logged_refits + 1)
            self._view.refit_started(len(request.history))
            self._fitting = self._submit(request)

    def _submit(self, request: RefitRequest) -> asyncio.Future[RefitOutcome]:
        # In a thread that nobody has to wait for: Ctrl-C ends a long fit, too.
        return asyncio.ensure_future(in_thread(partial(refit, request, self._fit_fn, self._state._warm)))

    async def _apply(self) -> None:
        assert self._fitting is not None  # noqa: S101
        outcome = await self._fitting
        self._fitting = None
        self._state._warm = outcome.warm
        row = self._log_refit(outcome, warm=True)
        self._engine.apply(outcome.belief, stop_reason=row["stop_reason"] if row["stop_decision"] else None)
        self._keep_items(outcome)

    async def close(self) -> None:
        """The closing refit, if the scores are behind. It guides no choice: going on later is as if it were not."""
        if not self._state.needs_closing:
            return
        request = replace(self._engine.refit_request(), refit_id=self._state.n_logged_refits + 1, is_closing=True)
        self._view.refit_started(len(request.history))
        outcome = await self._submit(request)
        reason = self._state.stop_reason
        outcome.row.update(stop_decision=reason is not None, stop_reason=reason)
        self._log_refit(outcome, warm=False)
        self._keep_items(outcome)

    def _log_refit(self, outcome: RefitOutcome, *, warm: bool) -> dict[str, Any]:
        row = outcome.row
        blobs = {"belief": outcome.belief.to_bytes()}
        if warm and (kept := warm_to_bytes(outcome.warm)) is not None:
            blobs["warm"] = kept
        event = event_of("refit", self._engine, refit_id=row["refit_id"], is_closing=not warm)
        self._journal.refit(row, outcome.items, blobs, event)
        self._state.add_refit(row, outcome.items)
        best = outcome.items.sort("rank_mean").head(5).select("ID", "theta_mean", "theta_sd")
        self._view.refit(row, best.rows())
        return row

    def _keep_items(self, outcome: RefitOutcome) -> None:
        """The items of a refit as a file beside the run file, for those who want one."""
        where = self._state.where
        if self._state.settings["persist_item_log"] and where is not None and "://" not in where:
            write_table(outcome.items, Path(where).parent / f"item_log_refit_{outcome.row['refit_id']:04d}.csv")
