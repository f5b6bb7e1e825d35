"""The runtime with small sources in memory: what is asked when, what is written, how a run ends."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import JudgeError
from pairscale.runtime import RunOptions, Wait
from pairscale.store.runfile import open_run
from tests.runtime.sources import (
    BOTH,
    WRONG_KEY,
    Answer,
    Judge,
    Listed,
    first,
    opened,
    pairs_of,
    run_with,
)

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


def test_with_group_commit_an_outcome_is_on_the_disk_before_it_is_handed_over(tmp_path):
    class Looking(Listed):
        def done(self, question, recorded):
            with open_run(tmp_path / "run.db") as reader:
                assert question.uid in reader.results()["custom_id"].to_list()
            return super().done(question, recorded)

    with opened(tmp_path / "run.db") as store:
        source, *_ = run_with(first, pairs_of(5), store, source=Looking)
    assert len(source.taken) == 5


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


def test_people_are_not_timed_and_others_are():
    async def slow(_pair):
        await asyncio.sleep(0.2)
        return ps.Verdict.win(1)

    people = Judge(slow)
    people.waits_for_people = True
    with opened() as store:
        source, *_ = run_with(people, pairs_of(1), store, timeout=0.01)
        assert source.taken == [("q1", "win")]
    with opened() as store:
        source, *_ = run_with(slow, pairs_of(1), store, timeout=0.01, retries=0)
        assert source.taken == [("q1", "error")]
        assert store.failed_attempts()["error_code"].to_list() == ["timeout"]


# Waiting


class Pausing(Listed):
    """After its first two questions it waits for an outcome, once."""

    def next(self):
        if len(self.left) == 2 and not self.taken:
            return Wait()
        return super().next()


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


class Loose(Fitting):
    hold = False


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


@pytest.mark.parametrize("end", ["judge", "deadline"])
def test_a_run_that_stops_while_outcomes_are_held_back_hands_them_over(end):
    """After the moment for which they were held back; nothing new is asked."""
    made: list[Any] = []
    now = [0.0]

    async def answer(pair):
        if pair.uid == "q1":
            await asyncio.sleep(0)
            return ps.Verdict.win(1)
        while made[0].fit is None:
            await asyncio.sleep(0)
        if pair.uid == "q4":
            for _ in range(20):
                await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.05, made[0].fit.set_result, None)
            now[0] = 100.0
            return WRONG_KEY if end == "judge" else ps.Verdict.win(1)
        return ps.Verdict.win(2)

    with opened() as store:
        source, runtime, judge, raised = run_with(
            answer, pairs_of(9), store, source=made_by(Fitting, made), journal=True, deadline=50.0, clock=lambda: now[0]
        )
        assert isinstance(raised, JudgeError if end == "judge" else type(None))
        assert runtime.stopped == ("judge" if end == "judge" else "max_minutes")
        handed = {"q1", "q2", "q3"} if end == "judge" else {"q1", "q2", "q3", "q4"}
        assert {uid for uid, _ in source.taken} == handed
        assert set(store.results()["custom_id"]) == handed
        assert [uid for uid, _ in judge.asked] == ["q1", "q2", "q3", "q4"]
        before = source.events.index("applied")
        assert set(source.events[before:]) >= {"q2", "q3"}


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
def test_an_answer_that_is_there_when_the_run_is_interrupted_is_stored(journal):
    """Also one that is held back for a fit that will not end."""

    class Held(Fitting):
        def done(self, question, recorded):
            rows = super().done(question, recorded)
            if len(self.taken) == 1:
                asyncio.get_running_loop().call_later(0.05, self.main.cancel)
            return rows

    with opened() as store:
        source, _, _, raised = run_with(first, pairs_of(3), store, source=Held, journal=journal, concurrency=3)
        assert isinstance(raised, asyncio.CancelledError)
        assert sorted(store.results()["custom_id"]) == ["q1", "q2", "q3"]
        assert sorted(uid for uid, _ in source.taken) == ["q1", "q2", "q3"]


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


class Offering(Listed):
    """Offers what was given back once more, as the adaptive engine does."""

    def done(self, question, recorded):
        if recorded is None:
            self.left.insert(0, question)
        return super().done(question, recorded)


@BOTH
def test_a_question_that_could_be_asked_again_only_after_the_deadline_is_given_back_once(journal):
    async def busy(_pair):
        return ps.Verdict.fail("http_error", "503", failure="transient", retry_after=30.0)

    looks = count()  # the clock moves when it is looked at: no machine is too busy to ask the first time
    with opened() as store:
        source, runtime, judge, _ = run_with(
            busy, pairs_of(1), store, source=Offering, journal=journal, deadline=0.5, clock=lambda: next(looks) / 100,
            concurrency=1,
        )  # fmt: skip
        assert judge.asked == [("q1", 1)]
        assert (runtime.stopped, source.given_back) == ("max_minutes", ["q1"])
        assert store.counts()["attempts"] == 1


def test_an_error_of_the_source_ends_the_run_and_what_was_answered_is_stored():
    class Broken(Listed):
        def done(self, question, recorded):
            if recorded is not None and question.uid == "q2":
                raise ZeroDivisionError("on_answer")
            return super().done(question, recorded)

    with opened() as store:
        _, _, _, raised = run_with(first, pairs_of(9), store, source=Broken, concurrency=1)
        assert isinstance(raised, ZeroDivisionError)
        assert store.results()["custom_id"].to_list() == ["q1", "q2"]


# Options


def test_the_defaults_of_every_function_that_asks():
    options = RunOptions()
    assert (options.concurrency, options.retries, options.retry_wait) == (8, 3, 1.0)
    assert (options.timeout, options.max_cost) == (300.0, None)
