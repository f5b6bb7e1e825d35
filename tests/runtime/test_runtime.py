"""The runtime with small sources in memory: what is asked when, what is written, how a run ends, and money."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, JudgeError
from pairscale.runtime import Budget, Wait
from tests.runtime.sources import BOTH, WRONG_KEY, Answer, Judge, Listed, Priced, opened, pairs_of, run_with

# Asking


@BOTH
@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_as_many_questions_are_open_at_once_as_allowed_and_never_more(concurrency, journal):
    async def together(pair):
        """Answers once as many are open as may be."""
        while judge.open < min(concurrency, total) and not full.is_set():
            await asyncio.sleep(0)
        full.set()
        return ps.Verdict.win(1)

    total, full = 10, asyncio.Event()
    judge = Judge(together)
    with opened() as store:
        run_with(judge, pairs_of(total), store, journal=journal, concurrency=concurrency)
    assert judge.most_open == concurrency


def test_with_a_journal_rows_and_answers_are_in_the_order_of_arrival():
    async def last_first(pair):
        for _ in range(20 - int(pair.uid[1:])):
            await asyncio.sleep(0)
        return ps.Verdict.win(1)

    with opened() as store:
        source, *_ = run_with(last_first, pairs_of(4), store, journal=True)
        handed = [uid for uid, _ in source.taken]
        assert handed == ["q4", "q3", "q2", "q1"]
        assert [row["uid"] for row in store.read_log("step_log")] == handed


# Waiting


class Fitting(Listed):
    """After the first answer, a fit begins; what follows waits for it, with or without holding outcomes back."""

    hold = True

    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        self.fit: asyncio.Future[None] | None = None
        self.events: list[str] = []

    def next(self):
        if self.fit is not None and not self.fit.done():
            return Wait(self.fit, hold=self.hold)
        if self.fit is not None and "applied" not in self.events:
            self.events.append("applied")
        return super().next()

    def done(self, question, recorded):
        self.events.append(question.uid if recorded is not None else f"{question.uid} given back")
        if self.fit is None:
            self.fit = asyncio.get_running_loop().create_future()
        return super().done(question, recorded)


def fit_after(fitting: list[Any], answered: int) -> Answer:
    """The first answer comes at once, the next ones meanwhile; then the fit is done."""
    count = [0]

    async def answer(pair):
        if pair.uid == "q1":
            await asyncio.sleep(0)
        else:
            while fitting[0].fit is None:
                await asyncio.sleep(0)
        count[0] += 1
        if count[0] == answered:
            asyncio.get_running_loop().call_later(0.05, fitting[0].fit.set_result, None)
        return ps.Verdict.win(1)

    return answer


def made_by(kind, made):
    def make(*given):
        made.append(kind(*given))
        return made[0]

    return make


def test_with_a_journal_outcomes_are_held_back_until_the_moment_has_come():
    made: list[Any] = []
    with opened() as store:
        source, *_ = run_with(fit_after(made, 4), pairs_of(6), store, source=made_by(Fitting, made), journal=True)
        assert source.events[:2] == ["q1", "applied"]
        assert sorted(source.events[2:]) == [f"q{at}" for at in range(2, 7)]
        assert [row["uid"] for row in store.read_log("step_log")] == [uid for uid, _ in source.taken]


# The end of a call


class Interrupted(Listed):
    """Cancels the run, from outside, when its fourth question is asked."""

    def next(self):
        if len(self.left) == 2:
            asyncio.get_running_loop().call_later(0.02, self.main.cancel)
        return super().next()


@BOTH
def test_an_interrupt_records_what_was_open_as_cancelled_and_gives_it_back(journal, tmp_path):
    async def answer(pair):
        if pair.uid != "q1":
            await asyncio.sleep(1000)
        return ps.Verdict.win(1, cost=0.5)

    with opened(tmp_path / "run.db") as store:
        source, _, _, raised = run_with(answer, pairs_of(5), store, source=Interrupted, journal=journal, concurrency=3)
        assert isinstance(raised, asyncio.CancelledError)
        assert source.taken == [("q1", "win")]
        assert sorted(source.given_back) == ["q2", "q3", "q4"]
        failed = store.failed_attempts().sort("custom_id")
        known = failed.select("custom_id", "attempt", "error_code", "failure").rows()
        assert known == [(f"q{at}", 1, "cancelled", "transient") for at in (2, 3, 4)]
        assert store.counts() == {"items": 26, "pairs": 4, "attempts": 4, "comparisons": 1}


@BOTH
def test_after_the_deadline_nothing_is_asked_and_what_is_open_is_waited_for(journal):
    now = [0.0]

    async def answer(pair):
        await asyncio.sleep(0.02)
        now[0] += 10.0
        return ps.Verdict.win(1)

    with opened() as store:
        source, runtime, judge, raised = run_with(
            answer, pairs_of(9), store, journal=journal, concurrency=2, deadline=25.0, clock=lambda: now[0]
        )
        assert raised is None
        assert (runtime.stopped, len(judge.asked), len(source.taken)) == ("max_minutes", 4, 4)
        assert store.results().height == 4


# Failures of the judge


@BOTH
def test_an_error_of_pairscale_stops_the_run_as_it_is(journal):
    async def answer(pair):
        while judge.open < 2:
            await asyncio.sleep(0)
        if pair.uid == "q1":
            raise InputError("these samples have no column 'truth'")
        await asyncio.sleep(0.02)
        return ps.Verdict.win(1)

    judge = Judge(answer)
    with opened() as store:
        source, _, _, raised = run_with(judge, pairs_of(9), store, journal=journal, concurrency=2)
        assert isinstance(raised, InputError)
        assert source.given_back == ["q1"]
        assert store.results()["custom_id"].to_list() == ["q2"]


def test_a_question_that_waits_to_be_asked_again_is_given_back_at_once_when_the_run_stops():
    async def answer(pair):
        if pair.uid == "q1":
            return ps.Verdict.fail("http_error", "503", failure="transient", retry_after=3600.0)
        await asyncio.sleep(0.02)
        return WRONG_KEY

    with opened() as store:
        source, _, judge, raised = run_with(answer, pairs_of(2), store, concurrency=2)
        assert isinstance(raised, JudgeError)
        assert sorted(source.given_back) == ["q1", "q2"]
        assert judge.asked == [("q1", 1), ("q2", 1)]
        assert store.counts()["attempts"] == 2


# Money


def costs(cost: float | None) -> Answer:
    async def answer(_pair):
        await asyncio.sleep(0)
        return ps.Verdict.win(1, cost=cost)

    return answer


@BOTH
@pytest.mark.parametrize(("limit", "asked"), [(1.0, 4), (1.1, 4), (0.2, 0), (100, 9)])
def test_a_budget_is_never_exceeded_and_the_question_is_given_back(limit, asked, journal, caplog):
    with opened() as store:
        source, runtime, judge, raised = run_with(
            Priced(costs(0.25)), pairs_of(9), store, journal=journal, budget=Budget(limit)
        )
        assert raised is None
        assert (len(judge.asked), store.spent(), runtime.budget.spent) == (asked, 0.25 * asked, 0.25 * asked)
        assert len(source.taken) == asked
    if asked == 9:
        assert (runtime.stopped, source.given_back, caplog.messages) == (None, [], [])
    else:
        assert runtime.stopped == "max_cost"
        assert source.given_back
        assert not {uid for uid, _ in source.taken} & set(source.given_back)
        (line,) = caplog.messages
        spent = f"${0.25 * asked:.4f} of ${limit:g} are spent"
        assert line == f"stopped before `max_cost=` is passed: {spent}. Raise it, and run it again to continue"


def test_a_retry_is_paid_for_too():
    async def busy(pair):
        return ps.Verdict.fail("http_error", "503", failure="transient", retry_after=0.0, cost=0.25)

    with opened() as store:
        source, runtime, judge, _ = run_with(Priced(busy), pairs_of(1), store, budget=Budget(0.5))
        assert (judge.asked, runtime.stopped) == ([("q1", 1), ("q1", 2)], "max_cost")
        assert (source.taken, source.given_back, store.spent()) == ([], ["q1"], 0.5)
