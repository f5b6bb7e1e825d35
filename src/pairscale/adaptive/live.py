"""One call of an adaptive run: the engine as a source of questions, refits in the background, limits, and the end.

What is shown meanwhile is one line, redrawn in terminals and notebooks, else printed now and then. Outside of notebooks
it goes to standard error. Showing never breaks a run: when standard error goes away, the view falls silent.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

from pairscale.adaptive.engine import FEWEST, Proposal, Starved, uid_of
from pairscale.adaptive.messages import (
    STOPS,
    TO_CONTINUE,
    flips,
    provisional,
    shown_figure,
    shown_limit,
    verdict,
    weak_judges,
    why_stopped,
)
from pairscale.adaptive.refits import FitFn, RefitOutcome, RefitRequest, fit_name, refit
from pairscale.adaptive.selection.ledger import FIRST_ANSWERS, TIE
from pairscale.adaptive.selectors import MissingSelector
from pairscale.adaptive.session import AdaptiveState, event_of
from pairscale.core.display import printable
from pairscale.core.errors import JudgeError, StoreMismatchError
from pairscale.core.files import write_table
from pairscale.core.notebooks import LiveOutput, in_notebook
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode, optional, require_int, require_number, require_progress
from pairscale.core.provenance import utc_now
from pairscale.judges.base import Item, Judge, JudgePair, judge_member
from pairscale.judges.function import in_thread
from pairscale.models.bayes.results import weak_words
from pairscale.models.warm_start import warm_to_bytes
from pairscale.runtime import (
    Budget,
    FailureStreak,
    LogRows,
    Question,
    Recorded,
    RunOptions,
    Runtime,
    Terminated,
    Wait,
    close,
    max_cost_of,
    record_prices,
    recorded_prices,
    require_prices,
)
from pairscale.runtime.sync import resumable, run_sync
from pairscale.store.database import scrub_surrogates
from pairscale.store.policies import JournalWriter
from pairscale.store.writer import Entry

if TYPE_CHECKING:
    from pairscale.adaptive.logs import Columns, Row

_REDRAW_S = 0.25  # between two drawings
_STEPS_PER_LINE = 10  # plain lines are this much rarer than drawings
_SHOWN_ERRORS = 5  # invalid answers that get a line
_NOTE_LENGTH = 500
_CLEAR_LINE = "\r\x1b[2K"
_FEW = 5  # answers that may all be ties by chance
_ENDS = {asyncio.CancelledError: "interrupted", KeyboardInterrupt: "interrupted", JudgeError: "judge_failed"}


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


# What is shown


@dataclass(eq=False)
class View:
    """The progress of one call: a context manager, used from one thread at a time.

    Attributes:
        progress: ``none`` shows nothing; every other mode the same.
        state: the run.
        limits: when the call ends.
        redraw_every: steps between two drawings, at least; between two plain lines, ten times as many.
        show_events: a line for every refit, where the line is not redrawn.
        show_errors: a line for each of the first invalid answers.
        clock: seconds that never go back.
        prices: the dates of the prices behind the costs.
    """

    progress: ProgressMode
    state: AdaptiveState
    limits: RunLimits
    redraw_every: int = 10
    show_events: bool = True
    show_errors: bool = True
    clock: Callable[[], float] = time.monotonic
    prices: str = ""

    def __post_init__(self) -> None:
        require_int(self.redraw_every, "progress_redraw_every", least=1)
        self._silent = require_progress(self.progress) == "none"
        self._errors_left = _SHOWN_ERRORS * self.show_errors
        is_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._clear = _CLEAR_LINE if is_terminal else ""
        self._output = LiveOutput(self.clock) if not is_terminal and in_notebook() else None
        self._is_plain = not is_terminal and self._output is None  # lines, one below the other
        self._notes: list[str] = []  # below the line of a notebook
        self._began = self._next_drawing = self.clock()
        self._steps = 0
        self._is_fitting = False

    def __enter__(self) -> Self:
        self._draw()
        return self

    def __exit__(self, *_error: object) -> None:
        self._write(self._clear)
        self._next_drawing = self._began
        if self._output is not None:
            self._draw()
        self._silent = True

    def step(self, row: Row) -> None:
        """A row of the step log was recorded. Costs next to nothing when nothing is drawn."""
        self._steps += 1
        if row["status"] == "invalid" and self._errors_left:
            self._errors_left -= 1
            reason = f"({row['invalid_kind']}) for {row['A_id']} and {row['B_id']}: {row['invalid_reason']}"
            self.note(f"step {row['step_id']}: no valid answer {reason}")
        if self._steps % self.redraw_every == 0:
            self._draw()
        if self._is_plain and self._steps % (self.redraw_every * _STEPS_PER_LINE) == 0:
            self._write(f"{self._line()}\n")

    def refit_started(self) -> None:
        """A refit has begun."""
        self._is_fitting = True
        self._draw()

    def refit(self, row: Row) -> None:
        """A refit is done: its row of the round log."""
        self._is_fitting = False
        if self._is_plain and self.show_events:
            which = "closing refit" if row["is_closing"] else "refit"
            facts = f"{row['total_pairs_done']:,} comparisons, {_aim(row)}; {verdict(row)}"
            self._write(f"{which} {row['refit_id']}: {facts.removesuffix('; ')}\n")
        self._draw()

    def note(self, text: str) -> None:
        """Show a text of others on one line, cut, and without the characters that would command the terminal."""
        line = printable(" ".join(text.split()))[:_NOTE_LENGTH]
        if self._output is not None:
            self._notes.append(line)
            self._draw()
        else:
            self._write(f"{self._clear}{line}\n")

    def _write(self, text: str) -> None:
        """Write to standard error, or fall silent when it is not there any more."""
        if self._silent:
            return
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self._silent = True

    def _draw(self) -> None:
        if self._is_plain or self._silent or self.clock() < self._next_drawing:
            return
        self._next_drawing = self.clock() + _REDRAW_S
        if self._output is not None:
            self._output.show([self._line(), *self._notes])
        else:
            width = shutil.get_terminal_size().columns
            self._write(f"{self._clear}{self._line()[: width - 1]}")

    def _line(self) -> str:
        """How far the run is."""
        state = self.state
        minutes, seconds = divmod(round(self.clock() - self._began), 60)
        facts = [f"{_of(state.engine.committed, self.limits.max_comparisons)} comparisons"]
        if state.rounds:
            facts.append(_aim(state.rounds[-1]))
        if self._is_fitting:
            facts.append("fitting")
        if state.invalid:
            facts.append(f"{state.invalid:,} invalid")
        if state.cost:
            facts.append(_of(state.cost, self.limits.max_cost, "${:,.4f}") + self.prices)
        facts.append(f"{minutes // 60}:{minutes % 60:02}:{seconds:02}")
        return ", ".join(facts)


def _aim(row: Row) -> str:
    """How near a run is to what it is for, by a row of its round log."""
    if row["top_wrong"] is not None:
        allowed = row["top_wrong_allowed"]
        wrong = shown_figure(row["top_wrong"], allowed, at_most=True)
        return f"{row['goal']}, {wrong} wrong members expected (at most {shown_limit(allowed)})"
    target = row["eap_reliability_min"]
    return f"reliability {shown_figure(row['reliability'], target)} of {shown_limit(target)}{provisional(row, '')}"


def _of(done: float, limit: float | None, form: str = "{:,}") -> str:
    return form.format(done) if limit is None else f"{form.format(done)} of {form.format(limit)}"


# The source of questions


@dataclass(eq=False)
class LiveRun:
    """One call of an adaptive run, and its source of questions.

    Attributes:
        state: the run.
        judge: who judges.
        condition_id: the condition under which answers are recorded; None before the first.
        limits: when to stop.
        asking: how to ask.
        view: what is shown.
        fit_fn: what fits; None is the exact sampler.
        is_closing: whether to fit once more at the end; a run that stops always does.
    """

    state: AdaptiveState
    judge: Judge
    condition_id: str | None
    limits: RunLimits
    asking: RunOptions
    view: View
    fit_fn: FitFn | str | None
    is_closing: bool

    def __post_init__(self) -> None:
        self._engine = self.state.engine
        self._is_sequential = self.asking.concurrency == 1  # then a question is written down with its answer
        minutes = self.limits.max_minutes
        self._deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self._begun = 0
        self._asking: set[int] = set()
        self._fitting: asyncio.Future[RefitOutcome] | None = None
        rows = self.state.items.with_columns(item_id="ID").iter_rows(named=True)
        self._samples: dict[str, Item] = {row["ID"]: row for row in rows}
        self._without_winner = FailureStreak(self._engine.config.max_failures_in_row)
        self._counts_repeats = bool(judge_member(self.judge, "uses_cache"))

    # From the first question to the last fit

    def run(self) -> None:
        """Ask until the run stops, meets a limit or is interrupted; then fit once more, and say how it ended."""
        state = self.state
        engine = self._engine
        name = fit_name(self.fit_fn)
        if state.rounds and state.fit_fn not in (None, name):  # refits are compared with each other
            raise StoreMismatchError(
                f"{state.where or 'this run'} was started with fit_fn={state.fit_fn!r}, not {name!r}; give that, or "
                "take a new run file"
            )
        state.fit_fn = name
        require_prices([self.judge], self.limits.max_cost)
        self._say_what_is_unsure()
        stopped = engine.stop_reason
        if stopped is None and isinstance(engine.chooser, MissingSelector):
            engine.chooser()
        if stopped is not None:
            notice(f"this run has stopped: {why_stopped(state)}; to continue, {TO_CONTINUE[stopped]}")
            if not state.needs_closing and not state.unlogged:
                return
        with state.writing() as store:
            if self.condition_id is None:
                state.judge_id = self.judge.condition.judge_id
                self.condition_id = store.add_condition(self.judge.condition)
                # Before the first answer: a process may die at any time.
                store.set_meta("adaptive_condition", self.condition_id)
            record_prices(store, [self.judge])
            self.view.prices = recorded_prices(store)
            with self.view, JournalWriter(store) as self._journal:
                for event in state.unlogged:
                    self._journal.event(event)
                state.unlogged.clear()
                if stopped is not None:  # a process that died before left the scores behind the answers
                    run_sync(self.close)
                    return
                engine.set_lag(self.asking.concurrency)
                call = {"concurrency": self.asking.concurrency, "refit_lag": engine.refit_lag, **asdict(self.limits)}
                call |= {"condition_id": self.condition_id, "judged_by": self.judge.condition.condition_id}
                self._journal.event(event_of("call", engine, **call, fit_fn=state.fit_fn))
                self._budget = Budget.of(store, self.limits.max_cost)
                self._most: float | None = None  # that a question may cost, as the judge says of the two longest texts
                if self.limits.max_cost is not None:
                    longest = sorted(self._samples.values(), key=lambda sample: len(sample["text"].encode()))[-2:]
                    self._most = max_cost_of(self.judge, JudgePair(longest[0], longest[-1]))
                allow_ties = judge_member(self.judge, "allow_ties")
                if allow_ties is not None:
                    allow_ties(engine.counts_ties)
                runtime = Runtime(self, self._journal, self.asking, budget=self._budget, deadline=self._deadline)
                with resumable(state.where):
                    self._ask_and_fit(runtime)
        _say_how_it_ended(state)

    def _ask_and_fit(self, runtime: Runtime) -> None:
        """Ask until the end, then fit once more where that is wanted."""
        is_over = False

        async def ask() -> None:
            nonlocal is_over
            self.state.ended = None
            self._engine.failures_in_row = 0
            self.fit_if_due()
            try:
                await runtime.run()
                while self._fitting is not None:  # the next call starts from it
                    await asyncio.wait([self._fitting])
                    self._apply()
            except BaseException as error:
                if self._fitting is not None:
                    self._fitting.cancel()
                    await asyncio.gather(self._fitting, return_exceptions=True)
                    self._fitting = None
                self._end(_ENDS.get(type(error), "failed"))
                raise
            finally:
                await close(self.judge)
                is_over = True
                self._journal.flush()
            self._end(self._engine.stop_reason or runtime.stopped or self.limit())

        try:
            run_sync(ask)
        except (KeyboardInterrupt, Terminated) as stop:
            if not is_over:  # a second Ctrl-C already: the run is storing its answers, and is left to it
                raise
            if isinstance(stop, KeyboardInterrupt):
                self.view.note("stopping: one last fit, so that the scores are up to date (Ctrl-C again to skip it)")
                run_sync(self.close)
            raise
        except JudgeError:
            run_sync(self.close)
            raise
        if self.state.ended == "no_probabilities":
            raise JudgeError(
                f"the judge gave no probability in its first {FIRST_ANSWERS} answers, and answer='probability' asks "
                "for them. Its answers are kept. Ask a judge that gives probabilities, or use answer='winner', each "
                "with a new run file"
            )
        if self.is_closing or self.state.ended in STOPS:
            run_sync(self.close)

    def _end(self, reason: str | None) -> None:
        """Log why the call ended, and what is still open: the next call asks it first."""
        self.state.ended = reason
        if self._is_sequential:  # else it was written before it was asked
            for proposal in self._engine.open.values():
                self._journal.put(Entry(rows=[("adaptive_open", proposal.fields)]))
        self._journal.event(event_of("end", self._engine, reason=reason))

    def _say_what_is_unsure(self) -> None:
        """Say of a function that it has no name, or that it is not quite the one whose answers the run holds."""
        now = self.judge.condition
        if "instance" in now.settings:
            if self.state.where is not None:
                notice("this judge has no name, so a later call cannot recognise it; use FunctionJudge(f, name=…)")
        elif self.condition_id not in (None, now.condition_id):
            with self.state.reading() as store:
                before = store.condition(str(self.condition_id))
            if replace(now, trait=before.trait, template_id=before.template_id).condition_id != self.condition_id:
                notice(
                    "the judge's code or its arguments have changed since the last call; "
                    "its answers are taken as those of the same judge"
                )

    # The source of questions

    def next(self) -> Question | Wait | None:
        """The next pair; a wait for a refit or an answer; None when the run stops or a limit is met."""
        if self._fitting is None or not self._engine.must_apply:
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
        self.state.cost = self._budget.spent
        if recorded is None:
            return ()
        verdict = recorded.verdict
        engine = self._engine
        outcome = str(verdict.outcome)
        first = str(question.first["ID"])
        second = str(question.second["ID"])
        y = engine.points_of_first(outcome, verdict.winner_pos)
        if y is None:
            kind = "abstention"
            if outcome == "error":
                kind = "error" if verdict.failure == "transient" else "failure"
            # Half a character, as some servers send it, fits into no log.
            reason = scrub_surrogates(verdict.error_message or f"the judge said {outcome}")
            row = engine.record(step_id, None, invalid_reason=reason, invalid_kind=kind)
        else:
            member_of = getattr(self.judge, "member_of", None)
            member = None if member_of is None else member_of(first, second)
            both = engine.counts_ties and getattr(self.judge, "both_orders", False)
            agree = {"win": True, "flip": False}.get(outcome) if both else None
            row = engine.record(step_id, y, orders_agree=agree, probability=verdict.probability, judge=member)
        self._without_winner.count_kind("" if y is None else None, first, second)
        if row.get("set_aside"):
            notice(f"{row['set_aside']}: the judge gives no valid answer on it; it is set aside and keeps its place")
        rows = self._logged(row)
        self.fit_if_due()
        return rows

    def _next_question(self) -> Question | None:
        engine = self._engine
        waiting = engine.open.keys() - self._asking
        if waiting and engine.stop_reason is None and self._may_ask():
            return self._question(engine.open[min(waiting)])  # of an earlier call, which may have had more open
        while len(engine.open) < self.asking.concurrency and self._may_ask():
            proposal = engine.propose()
            if proposal is None:
                return None
            if isinstance(proposal, Starved):
                self._begun += 1
                self._journal.put(Entry(rows=self._logged(dict(proposal.row))))
                continue
            if not self._is_sequential:
                self._journal.put(Entry(rows=[("adaptive_open", proposal.fields)]))
            return self._question(proposal)
        return None

    def _question(self, proposal: Proposal) -> Question:
        engine = self._engine
        step_id = proposal.step_id
        self._begun += 1
        self._asking.add(step_id)
        occurrence = 1
        if self._counts_repeats:  # repeats must not be copies, also after a resume
            occurrence += engine.ledger.times(proposal.first, proposal.second)
        return Question(
            self.judge,
            str(self.condition_id),
            uid_of(step_id),
            self._samples[engine.ids[proposal.first]],
            self._samples[engine.ids[proposal.second]],
            key=step_id,
            occurrence=occurrence,
            state=self.state,
            columns={"step_id": step_id},
            open_rows=[("adaptive_open", proposal.fields)] if self._is_sequential else (),  # else it is there
        )

    def _logged(self, row: Columns) -> LogRows:
        """Add a row to the step log in memory and show it; the row for the run file."""
        row["timestamp"] = utc_now()
        self.state.add_step(row)
        self.view.step(row)
        return [("step_log", row)]

    def _may_ask(self) -> bool:
        steps = self.limits.n_steps
        return (steps is None or self._begun < steps) and self.limit() is None

    def limit(self) -> str | None:
        """The limit that forbids another question now."""
        limits = self.limits
        engine = self._engine
        if engine.is_failing and self._without_winner.is_general:
            return "judge_failing"
        if engine.is_flipping:
            return "judge_flips"
        if engine.lacks_probabilities:
            return "no_probabilities"
        if limits.max_comparisons is not None and engine.committed + len(self._asking) >= limits.max_comparisons:
            return "max_comparisons"
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return "max_minutes"
        return None if self._budget.may_ask(str(self.condition_id), self._most) else "max_cost"

    # Refits

    def fit_if_due(self) -> None:
        """Start a refit in the background when the engine asks for one."""
        request = self._engine.pending
        # What comes in after the stop is for the closing refit: it cannot take the stop back.
        if request is not None and self._fitting is None and self._engine.stop_reason is None:
            self._fitting = self._submit(request)

    def _submit(self, request: RefitRequest, *, is_closing: bool = False) -> asyncio.Future[RefitOutcome]:
        self.view.refit_started()
        request = replace(request, refit_id=len(self.state.rounds) + 1, is_closing=is_closing)
        # In a thread that the process does not wait for: Ctrl-C ends a long fit, too.
        return asyncio.ensure_future(in_thread(partial(refit, request, self.fit_fn, self.state.warm)))

    def _apply(self) -> None:
        assert self._fitting is not None  # noqa: S101
        outcome = self._fitting.result()
        self._fitting = None
        self.state.warm = outcome.warm
        row = self._log_refit(outcome)
        self._engine.apply(outcome.belief, stop_reason=row["stop_reason"])
        self.fit_if_due()

    async def close(self) -> None:
        """Fit once more if comparisons came in since the last refit. It guides no choice of a later call."""
        if not self.state.needs_closing:
            return
        outcome = await self._submit(self._engine.refit_request(), is_closing=True)
        reason = self.state.stop_reason
        outcome.row.update(stop_decision=reason is not None, stop_reason=reason)
        self._log_refit(outcome)

    def _log_refit(self, outcome: RefitOutcome) -> Row:
        """Log what a refit found, and show it."""
        row = outcome.row
        folder = self.state.folder
        blobs = {"belief": outcome.belief.to_bytes()}
        warm = None if row["is_closing"] else warm_to_bytes(outcome.warm)
        if warm is not None:
            blobs["warm"] = warm
        event = event_of("refit", self._engine, refit_id=row["refit_id"], is_closing=row["is_closing"])
        rows = [("round_log", row), ("adaptive_events", event)]
        self._journal.put(Entry(rows=rows, scores=outcome.items, blobs=blobs))
        self.state.add_refit(row, outcome.items)
        self.view.refit(row)
        if self.state.settings["persist_item_log"] and folder is not None:
            write_table(outcome.items, folder / f"item_log_refit_{row['refit_id']:04d}.csv")
        return row


def _say_how_it_ended(state: AdaptiveState) -> None:
    """Say what a user has to know of the end of a call."""
    engine = state.engine
    ended = state.ended
    if ended == "judge_failing":
        notice(
            f"paused: {engine.config.max_failures_in_row} answers in a row were not valid; the last reason: "
            f"{state.invalid_reason}. Nothing was lost. Run it again to continue"
        )
    if ended == "judge_flips":
        repeats = engine.ledger.repeats
        notice(
            f"paused: {flips(repeats.n_flips, repeats.n_reversed)}: this judge goes by position. Look at it with "
            "`pairscale check-judge`, ask it in both orders (both_orders=True), or try another template, each with a "
            f"new run file. To continue anyway, raise flip_share_max, now {engine.config.flip_share_max:g}"
        )
    weak = weak_judges(state.latest)
    if weak:
        notice(weak_words(weak))
    if ended == "pairs_exhausted" or (ended == "candidate_starvation" and engine.ledger.given_up):
        notice(f"stopped: {why_stopped(state)}; to continue, {TO_CONTINUE[ended]}")
    if engine.committed and not engine.can_fit:
        notice(f"there are no scores yet: they need {FEWEST} comparisons, and there are {engine.committed}")
    won = engine.ledger.history[:, 2]
    if len(won) >= _FEW and bool((won == TIE).all()):
        notice(f"all {len(won):,} answers are ties, so the order of the texts means nothing; try another judge")
