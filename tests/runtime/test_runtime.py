"""The runtime with small sources in memory: what is asked when, what is written, how a run ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import pairscale as ps
from pairscale.runtime import Wait
from tests.runtime.sources import BOTH, Answer, Judge, Listed, opened, pairs_of, run_with

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
