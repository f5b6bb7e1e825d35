"""The runtime with small sources in memory: failures of each kind, and money."""

from __future__ import annotations

import asyncio

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, JudgeError
from pairscale.runtime import Budget
from tests.runtime.sources import BOTH, WRONG_KEY, Answer, Judge, Priced, opened, pairs_of, run_with

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
