"""The adaptive engine as a source of questions: it proposes pairs, records answers, refits in the background."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.adaptive.engine import Proposal, Starved
from pairscale.adaptive.ledger import TIE
from pairscale.adaptive.refits import FitFn, RefitOutcome, RefitRequest, refit
from pairscale.adaptive.session import event_of
from pairscale.core.files import write_table
from pairscale.core.notices import notice
from pairscale.core.options import optional, require_int, require_number
from pairscale.core.provenance import utc_now
from pairscale.judges.base import Item, Judge, JudgePair, judge_member
from pairscale.judges.function import in_thread
from pairscale.models.warm_start import warm_to_bytes
from pairscale.runtime import Budget, FailureStreak, LogRows, Question, Recorded, Wait, max_cost_of
from pairscale.store.database import scrub_surrogates
from pairscale.store.policies import JournalWriter
from pairscale.store.writer import Entry

if TYPE_CHECKING:
    from pairscale.adaptive.state import AdaptiveState
    from pairscale.adaptive.view import View

__all__ = ["AdaptiveSource", "RunLimits", "uid_of"]

_FEW = 5  # answers that may all be ties by chance


@dataclass(frozen=True, slots=True)
class RunLimits:
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
            require = require_int if name in {"n_steps", "max_comparisons"} else require_number
            object.__setattr__(self, name, optional(require, value, name, least=0))


def uid_of(step_id: int) -> str:
    """The name of a step's question in the run file."""
    return f"step-{step_id:06d}"


class AdaptiveSource:
    """One call of an adaptive run.

    Args:
        state: the run.
        judge: who judges.
        condition_id: the condition under which answers are recorded.
        journal: where everything is written.
        view: what is shown.
        limits: when to stop.
        budget: what the run has spent and may spend.
        concurrency: questions open at once.
        fit_fn: what fits; None is the exact sampler.
        clock: seconds, for ``max_minutes``.
    """

    def __init__(
        self,
        state: AdaptiveState,
        judge: Judge,
        condition_id: str,
        journal: JournalWriter,
        view: View,
        limits: RunLimits,
        budget: Budget,
        *,
        concurrency: int,
        fit_fn: FitFn | str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state, self._engine, self._judge, self._condition_id = state, state.engine, judge, condition_id
        self._journal, self._view, self._limits, self._budget = journal, view, limits, budget
        self._concurrency, self._fit_fn, self._clock = concurrency, fit_fn, clock
        self._is_sequential = concurrency == 1  # then a question is written down with its answer
        self.deadline = None if limits.max_minutes is None else clock() + 60 * limits.max_minutes
        self._begun = 0
        self._asking: set[int] = set()
        self._fitting: asyncio.Future[RefitOutcome] | None = None
        self._samples: dict[str, Item] = {
            row["ID"]: {**row, "item_id": row["ID"]} for row in state.items.iter_rows(named=True)
        }
        self._most = None if limits.max_cost is None else self._highest_cost()
        self._without_winner = FailureStreak(self._engine.config.max_failures_in_row)
        self._counts_repeats = bool(judge_member(judge, "uses_cache"))
        if (allow_ties := judge_member(judge, "allow_ties")) is not None:
            allow_ties(self._engine.counts_ties)

    # The source of questions

    def next(self) -> Question | Wait | None:
        """The next pair; a wait for a refit or an answer; None when the run stops or a limit is met."""
        if self._fitting is not None and self._engine.must_apply:
            if not self._fitting.done():
                return Wait(self._fitting, hold=True)
            self._apply()
        question = self._next_question()
        if question is not None:
            return question
        if self._asking:
            return Wait()
        if self._fitting is None:
            return None
        if not self._fitting.done():
            return Wait(self._fitting, hold=True)
        self._apply()
        return self.next()

    def done(self, question: Question, recorded: Recorded | None) -> LogRows:
        """Commit an answer, or count a failure against the pair and its texts; the row of the step log."""
        step_id: int = question.key
        self._asking.discard(step_id)
        self._state.cost = self._budget.spent
        if recorded is None:
            return ()
        verdict = recorded.verdict
        y = self._engine.points_of_first(str(verdict.outcome), verdict.winner_pos)
        # Half a character, as some servers send it, fits into no log.
        reason = (
            None if y is not None else scrub_surrogates(verdict.error_message or f"the judge said {verdict.outcome}")
        )
        is_error = str(verdict.outcome) == "error"
        kind = ("error" if verdict.failure == "transient" else "failure") if is_error else "abstention"
        row = self._engine.record(
            step_id, y, invalid_reason=reason, invalid_kind=kind, orders_agree=self._orders_agree(str(verdict.outcome)),
            probability=verdict.probability, judge=self._member(question) if y is not None else None,
        )  # fmt: skip
        self._without_winner.count_kind(
            "" if y is None else None, str(question.first["ID"]), str(question.second["ID"])
        )
        if row.get("set_aside"):
            notice(f"{row['set_aside']}: the judge gives no valid answer on it; it is set aside and keeps its place")
        rows = self._logged(row)
        self.fit_if_due()
        return rows

    def _member(self, question: Question) -> str | None:
        """Who of a panel was asked; None where there is one judge."""
        member_of = getattr(self._judge, "member_of", None)
        return None if member_of is None else member_of(str(question.first["ID"]), str(question.second["ID"]))

    def _orders_agree(self, outcome: str) -> bool | None:
        """Whether both orders gave the same answer, of a judge that is asked in both where flips are answers."""
        asks_both = self._engine.counts_ties and getattr(self._judge, "both_orders", False)
        return {"win": True, "flip": False}.get(outcome) if asks_both else None

    def _next_question(self) -> Question | None:
        engine = self._engine
        if len(engine.open) > len(self._asking) and engine.stop_reason is None and self._may_ask():
            # Asked by an earlier call, and not answered; that call may have had more open.
            return self._question(engine.open[min(engine.open.keys() - self._asking)])
        while len(engine.open) < self._concurrency and self._may_ask():
            found = engine.propose()
            if found is None:
                return None
            if isinstance(found, Starved):
                self._begun += 1
                self._journal.put(Entry(rows=self._logged(dict(found.row))))
                continue
            if not self._is_sequential:
                self._journal.put(Entry(rows=[("adaptive_open", found.fields)]))
            return self._question(found)
        return None

    def _question(self, proposal: Proposal) -> Question:
        engine, step_id = self._engine, proposal.step_id
        self._begun += 1
        self._asking.add(step_id)
        occurrence = 1
        if self._counts_repeats:  # repeats must not be copies, also after a resume
            occurrence += engine.ledger.times(proposal.first, proposal.second)
        first, second = (self._samples[engine.ids[item]] for item in (proposal.first, proposal.second))
        return Question(
            self._judge,
            self._condition_id,
            uid_of(step_id),
            first,
            second,
            key=step_id,
            occurrence=occurrence,
            state=self._state,
            columns={"step_id": step_id},
            open_rows=[("adaptive_open", proposal.fields)] if self._is_sequential else (),  # else it is there
        )

    def _logged(self, row: dict[str, Any]) -> LogRows:
        """Add a row to the step log in memory and show it; the row for the run file."""
        row["timestamp"] = utc_now()
        self._state.add_step(row)
        self._view.step(row, committed=self._engine.committed, invalid=self._state.invalid, cost=self._state.cost)
        return [("step_log", row)]

    # RunLimits

    def _may_ask(self) -> bool:
        steps = self._limits.n_steps
        return (steps is None or self._begun < steps) and self.limit() is None

    def limit(self) -> str | None:
        """The limit that forbids another question now."""
        limits, engine = self._limits, self._engine
        if engine.is_failing and self._without_winner.is_general:
            return "judge_failing"
        if engine.is_flipping:
            return "judge_flips"
        if engine.lacks_probabilities:
            return "no_probabilities"
        if limits.max_comparisons is not None and engine.committed + len(self._asking) >= limits.max_comparisons:
            return "max_comparisons"
        if self.deadline is not None and self._clock() >= self.deadline:
            return "max_minutes"
        return None if self._budget.may_ask(self._condition_id, self._most) else "max_cost"

    def _highest_cost(self) -> float | None:
        """What any question may cost, as the judge says of the two longest texts; None when it does not say."""
        longest = sorted(self._samples.values(), key=lambda sample: len(sample["text"].encode()))[-2:]
        return max_cost_of(self._judge, JudgePair(longest[0], longest[-1]))

    # The start and the end of a call

    def start(self) -> None:
        """Begin a call."""
        self._state.ended = None
        self._engine.failures_in_row = 0
        self.fit_if_due()

    async def interrupt(self) -> None:
        """End a refit that is running."""
        if self._fitting is not None:
            self._fitting.cancel()
            await asyncio.gather(self._fitting, return_exceptions=True)
            self._fitting = None

    async def finish(self) -> None:
        """Wait for a refit that is running, and apply it: the next call starts from it."""
        while self._fitting is not None:
            await asyncio.wait([self._fitting])
            self._apply()

    def reason(self, stopped: str | None) -> str | None:
        """Why a call ended before its steps were used up, given what stopped the runtime; None when nothing did."""
        return self._engine.stop_reason or stopped or self.limit()

    def end(self, reason: str | None) -> None:
        """Log why a call ended, and what is still open: the next call asks it first."""
        self._state.ended = reason
        if self._is_sequential:  # else it was written before it was asked
            for proposal in self._engine.open.values():
                self._journal.put(Entry(rows=[("adaptive_open", proposal.fields)]))
        self._journal.event(event_of("end", self._engine, reason=reason))

    # Refits

    def fit_if_due(self) -> None:
        """Start a refit in the background when the engine asks for one."""
        request = self._engine.pending
        # What comes in after the stop is for the closing refit: it cannot take the stop back.
        if request is not None and self._fitting is None and self._engine.stop_reason is None:
            request = replace(request, refit_id=self._state.n_logged_refits + 1)
            self._view.refit_started()
            self._fitting = self._submit(request)

    def _submit(self, request: RefitRequest) -> asyncio.Future[RefitOutcome]:
        # In a thread that the process does not wait for: Ctrl-C ends a long fit, too.
        return asyncio.ensure_future(in_thread(partial(refit, request, self._fit_fn, self._state._warm)))

    def _apply(self) -> None:
        assert self._fitting is not None  # noqa: S101
        outcome = self._fitting.result()
        self._fitting = None
        self._state._warm = outcome.warm
        row = self._log_refit(outcome, warm=True)
        self._engine.apply(outcome.belief, stop_reason=row["stop_reason"] if row["stop_decision"] else None)
        self._keep_items(outcome)
        self.fit_if_due()

    @property
    def stopped(self) -> bool:
        """Whether the run has stopped for good."""
        return self._engine.stop_reason is not None

    @property
    def n_without_winner(self) -> int | None:
        """The number of answers when none of them, of five or more, has a winner; else None."""
        won = self._engine.ledger.history[:, 2]
        return len(won) if len(won) >= _FEW and bool((won == TIE).all()) else None

    async def close(self) -> None:
        """Fit once more if comparisons came in since the last refit. It guides no choice of a later call."""
        if not self._state.needs_closing:
            return
        request = replace(self._engine.refit_request(), refit_id=self._state.n_logged_refits + 1, is_closing=True)
        self._view.refit_started()
        outcome = await self._submit(request)
        reason = self._state.stop_reason
        outcome.row.update(stop_decision=reason is not None, stop_reason=reason)
        self._log_refit(outcome, warm=False)
        self._keep_items(outcome)

    def _log_refit(self, outcome: RefitOutcome, *, warm: bool) -> Mapping[str, Any]:
        row = outcome.row
        kept = {"belief": outcome.belief.to_bytes()}
        if warm and (start := warm_to_bytes(outcome.warm)) is not None:
            kept["warm"] = start
        event = event_of("refit", self._engine, refit_id=row["refit_id"], is_closing=not warm)
        rows = [("round_log", row), ("adaptive_events", event)]
        self._journal.put(Entry(rows=rows, scores=outcome.items, blobs=kept))
        self._state.add_refit(row, outcome.items)
        self._view.refit(row)
        return row

    def _keep_items(self, outcome: RefitOutcome) -> None:
        """The items of a refit as a file beside the run file, where that is wanted."""
        where = self._state.where
        if self._state.settings["persist_item_log"] and where is not None and "://" not in where:
            write_table(outcome.items, Path(where).parent / f"item_log_refit_{outcome.row['refit_id']:04d}.csv")
