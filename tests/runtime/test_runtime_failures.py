"""The runtime with small sources in memory: failures of each kind, and money."""

from __future__ import annotations

import asyncio

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, JudgeError, StoreFullError
from pairscale.runtime import Budget, Runtime
from pairscale.store.writer import Writer
from tests.runtime.sources import (
    BOTH,
    BUSY,
    TOO_LONG,
    WRONG_KEY,
    Answer,
    Judge,
    Listed,
    Priced,
    first,
    opened,
    pairs_of,
    run_with,
)

# Transient failures


@BOTH
def test_a_transient_failure_is_asked_again_and_every_attempt_is_kept(journal):
    async def busy_twice(pair):
        return BUSY if pair.attempt < 3 else ps.Verdict.win(2, cost=0.5)

    with opened() as store:
        source, runtime, judge, _ = run_with(busy_twice, pairs_of(2), store, journal=journal)
        assert sorted(judge.asked) == [(f"q{at}", turn) for at in (1, 2) for turn in (1, 2, 3)]
        assert sorted(source.taken) == [("q1", "win"), ("q2", "win")]
        assert runtime.asked == 6
        assert store.counts() == {"items": 26, "pairs": 2, "attempts": 6, "comparisons": 2}
        failed = store.failed_attempts()
        assert failed.select("error_code", "failure").unique().rows() == [("rate_limited", "transient")]
        assert (failed.height, store.spent(), runtime.budget.spent) == (4, 1.0, 1.0)


@pytest.mark.parametrize(("retries", "own", "asked"), [(2, None, 3), (0, None, 1), (0, 1, 2), (3, 0, 1)])
def test_after_its_retries_a_question_has_failed_and_the_run_continues(retries, own, asked):
    async def busy(pair):
        return BUSY if pair.uid == "q1" else ps.Verdict.win(1)

    class Own(Listed):
        def __init__(self, judge, pairs, store):
            super().__init__(judge, pairs, store, retries=own)

    with opened() as store:
        source, _, judge, raised = run_with(busy, pairs_of(3), store, source=Own, retries=retries, concurrency=1)
        assert raised is None
        assert source.taken == [("q1", "error"), ("q2", "win"), ("q3", "win")]
        assert [turn for uid, turn in judge.asked if uid == "q1"] == list(range(1, asked + 1))
        assert store.progress(source.condition_id).failed == {1}
        assert store.failed_attempts()["failure"].to_list() == ["transient"] * asked


def test_retry_after_is_waited_for_and_else_the_wait_doubles(monkeypatch):
    waits = []

    async def stopped_within(_self, seconds):
        waits.append(seconds)
        return False

    monkeypatch.setattr(Runtime, "_stopped_within", stopped_within)
    replies = [BUSY, ps.Verdict.fail("http_error", "503", failure="transient"), None]
    replies[2] = ps.Verdict.fail("http_error", "503", failure="transient", retry_after=7.0)

    async def answer(pair):
        return replies[pair.attempt - 1] if pair.attempt <= 3 else ps.Verdict.win(1)

    with opened() as store:
        run_with(answer, pairs_of(1), store, retry_wait=2.0)
    assert waits[0] == 0.0
    assert 4.0 <= waits[1] <= 5.0
    assert 7.0 <= waits[2] <= 8.75


# Failures of a question


@BOTH
def test_a_question_that_fails_is_recorded_with_all_that_came_back_and_the_run_continues(journal):
    async def flagged(pair):
        if pair.uid != "q2":
            return ps.Verdict.win(1)
        return ps.Verdict.fail(
            "parse_error", "no winner", content="Both!", cost=0.25, prompt_tokens=7, completion_tokens=3,
            total_tokens=10, raw_response={"id": "x"}, status_code=200,
        )  # fmt: skip

    with opened() as store:
        source, _, judge, raised = run_with(flagged, pairs_of(4), store, journal=journal)
        assert raised is None
        assert sorted(source.taken) == [("q1", "win"), ("q2", "error"), ("q3", "win"), ("q4", "win")]
        assert judge.asked.count(("q2", 1)) == len([one for one in judge.asked if one[0] == "q2"]) == 1
        (row,) = store.failed_attempts().iter_rows(named=True)
    known = {"error_code": "parse_error", "failure": "question", "content": "Both!", "cost": 0.25}
    known |= {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert {name: row[name] for name in known} == known
    assert '"id": "x"' in row["raw_response"]


@BOTH
def test_an_exception_of_a_judge_is_shown_once_and_the_run_continues(journal, caplog):
    async def broken(pair):
        if pair.uid in {"q1", "q2"}:
            raise KeyError("text")
        return ps.Verdict.win(1)

    with opened() as store:
        source, _, _, raised = run_with(broken, pairs_of(4), store, journal=journal, concurrency=1)
        (words,) = store.failed_attempts()["error_message"].unique()
    assert words.startswith("KeyError: 'text' (test_runtime_failures.py:")
    assert raised is None
    assert source.taken == [("q1", "error"), ("q2", "error"), ("q3", "win"), ("q4", "win")]
    (line,) = caplog.messages
    assert line == f"the judge raised an exception, and the run continues: {words}"


@BOTH
def test_ten_alike_failures_on_different_texts_stop_the_run(journal):
    async def always(_pair):
        return TOO_LONG

    with opened() as store:
        source, runtime, judge, raised = run_with(always, pairs_of(13), store, journal=journal, concurrency=1)
        assert str(raised) == (
            "judge failed in the same way on 10 different questions in a row: context too long: 9000. Every answer is "
            "stored; run it again to continue"
        )
        assert (len(judge.asked), runtime.stopped) == (10, "judge")
        assert source.taken == [(f"q{at}", "error") for at in range(1, 11)]
        assert store.counts()["attempts"] == store.counts()["comparisons"] == 10


def test_a_success_between_lets_the_run_continue():
    async def mostly(pair):
        return ps.Verdict.win(1) if pair.uid == "q10" else TOO_LONG

    with opened() as store:
        source, _, _, raised = run_with(mostly, pairs_of(13), store, concurrency=1)
    assert raised is None
    assert len(source.taken) == 13


def test_one_bad_text_never_stops_a_run():
    async def bad(_pair):
        return TOO_LONG

    pairs = [(name, "z") if at % 2 else ("z", name) for at, name in enumerate("abcdefghijklmnopqrst")]
    with opened() as store:
        source, runtime, _, raised = run_with(bad, pairs, store)
        assert (raised, runtime.stopped, len(source.taken)) == (None, None, 20)
        assert len(store.progress(source.condition_id).failed) == 20


# Failures of the judge


@BOTH
def test_a_failure_of_the_judge_stops_the_run_after_the_open_answers_are_stored(journal):
    release = asyncio.Event()

    async def answer(pair):
        if pair.uid == "q2":
            while judge.open < 4:
                await asyncio.sleep(0)
            return WRONG_KEY
        await release.wait()
        return ps.Verdict.win(1, cost=0.5)

    class Releasing(Listed):
        def done(self, question, recorded):
            if question.uid == "q2":
                asyncio.get_running_loop().call_later(0.05, release.set)
            return super().done(question, recorded)

    judge = Judge(answer)
    with opened() as store:
        source, runtime, _, raised = run_with(judge, pairs_of(9), store, source=Releasing, journal=journal)
        assert isinstance(raised, JudgeError)
        assert str(raised) == ("Incorrect API key provided. Every answer is stored; run it again to continue")
        assert [uid for uid, _ in judge.asked] == ["q1", "q2", "q3", "q4"]
        assert (runtime.stopped, source.given_back) == ("judge", ["q2"])
        assert sorted(source.taken) == [("q1", "win"), ("q3", "win"), ("q4", "win")]
        assert sorted(store.results()["custom_id"]) == ["q1", "q3", "q4"]
        assert store.failed_attempts().select("custom_id", "failure", "status_code").rows() == [("q2", "judge", 401)]
        assert store.spent() == 1.5


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


@BOTH
@pytest.mark.usefixtures("impatient")
def test_a_full_disk_ends_the_run(journal, monkeypatch):
    commit, commits = Writer.commit, []

    def full(self, entries):
        commits.append(entries)
        if any(entry.asked is not None and entry.asked.uid == "q5" for entry in entries):
            raise StoreFullError("no room")
        commit(self, entries)

    with opened() as store:
        monkeypatch.setattr(Writer, "commit", full)
        _, _, judge, raised = run_with(first, pairs_of(13), store, journal=journal, concurrency=1)
        monkeypatch.undo()
        assert isinstance(raised, StoreFullError)
        stored = set(store.results()["custom_id"])
        assert stored == {f"q{at}" for at in range(1, len(stored) + 1)}
        assert len(stored) <= 4
        if not journal:
            assert (len(stored), len(judge.asked)) == (4, 5)


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


def test_what_the_run_has_spent_before_counts():
    with opened() as store:
        _, runtime, judge, _ = run_with(Priced(costs(0.25)), pairs_of(9), store, budget=Budget(1.0, 0.6))
    assert (len(judge.asked), runtime.stopped) == (1, "max_cost")


def test_a_retry_is_paid_for_too():
    async def busy(pair):
        return ps.Verdict.fail("http_error", "503", failure="transient", retry_after=0.0, cost=0.25)

    with opened() as store:
        source, runtime, judge, _ = run_with(Priced(busy), pairs_of(1), store, budget=Budget(0.5))
        assert (judge.asked, runtime.stopped) == ([("q1", 1), ("q1", 2)], "max_cost")
        assert (source.taken, source.given_back, store.spent()) == ([], ["q1"], 0.5)


@BOTH
def test_a_judge_that_does_not_say_what_it_costs_is_stopped_and_its_answer_is_stored(journal):
    with opened() as store:
        source, runtime, judge, raised = run_with(costs(None), pairs_of(9), store, journal=journal, budget=Budget(5))
        assert isinstance(raised, JudgeError)
        assert "does not say what its answers cost" in str(raised)
        assert (len(judge.asked), judge.most_open, runtime.stopped) == (1, 1, "judge")
        assert source.taken == [("q1", "win")]
        assert store.results().height == 1
