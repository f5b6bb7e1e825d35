"""The runtime with small sources in memory: what is asked when, what is written, and how a run ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import contextmanager
from typing import Any

import pytest

import pairscale as ps
from pairscale.errors import InputError, JudgeError, StoreFullError
from pairscale.runtime import Budget, Progress, Question, Recorded, RunOptions, Runtime, Wait
from pairscale.store import RunFile, open_run
from pairscale.store.policies import GroupCommitWriter, JournalWriter
from pairscale.store.writer import Writer

Answer = Callable[[ps.JudgePair], Awaitable[ps.Verdict]]
SAMPLES = {name: {"ID": name, "item_id": name, "text": f"text {name}"} for name in "abcdefghijklmnopqrstuvwxyz"}
BUSY = ps.Verdict.fail("rate_limited", "slow down", failure="transient", retry_after=0.0)
WRONG_KEY = ps.Verdict.fail("http_error", "Incorrect API key provided", failure="judge", status_code=401)
TOO_LONG = ps.Verdict.fail("http_error", "context too long: 9000", failure="question", status_code=400)


class Judge:
    """A judge that answers by a function of the pair."""

    def __init__(self, answer: Answer) -> None:
        self.condition = ps.Condition("judge")
        self._answer = answer
        self.asked: list[tuple[str, int]] = []
        self.open = self.most_open = 0

    async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
        self.asked.append((pair.uid, pair.attempt))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            return await self._answer(pair)
        finally:
            self.open -= 1


class Priced(Judge):
    """A judge that says beforehand what a question may cost."""

    def max_cost_of(self, _pair: ps.JudgePair) -> float:
        return 0.25


async def first(_pair: ps.JudgePair) -> ps.Verdict:
    await asyncio.sleep(0)
    return ps.Verdict.win(1)


def pairs_of(n: int) -> list[tuple[str, str]]:
    """Pairs of which none shares a text with another, as far as there are texts."""
    names = list(SAMPLES)
    return [(names[2 * at % 26], names[(2 * at + 1) % 26]) for at in range(n)]


class Listed:
    """Questions in a list; some calls of ``next`` answer with a :class:`Wait`."""

    def __init__(self, judge: Any, pairs: Iterable[tuple[str, str]], store: RunFile, **more: Any) -> None:
        self.condition_id = store.add_condition(judge.condition)
        self.left = [
            Question(judge, self.condition_id, f"q{at}", SAMPLES[one], SAMPLES[two], **more)
            for at, (one, two) in enumerate(pairs, start=1)
        ]
        self.taken: list[tuple[str, str | None]] = []
        self.given_back: list[str] = []
        self.rows = False

    def next(self) -> Question | Wait | None:
        return self.left.pop(0) if self.left else None

    def done(self, question: Question, recorded: Recorded | None) -> Any:
        if recorded is None:
            self.given_back.append(question.uid)
            return ()
        self.taken.append((question.uid, str(recorded.verdict.outcome)))
        return [("step_log", {"uid": question.uid})]


@contextmanager
def opened(where: Any = None) -> Any:
    with open_run(where, write=True) as store:
        store.add_items(SAMPLES.values())
        yield store


def run_with(
    answer: Answer | Judge,
    pairs: Iterable[tuple[str, str]],
    store: RunFile,
    *,
    source: Callable[..., Any] = Listed,
    journal: bool = False,
    concurrency: int = 4,
    retries: int = 3,
    **more: Any,
) -> tuple[Any, Runtime, Judge, BaseException | None]:
    """Run to the end; what is raised is returned."""
    judge = answer if isinstance(answer, Judge) else Judge(answer)
    made = source(judge, pairs, store)
    options = RunOptions(concurrency, retries, more.pop("retry_wait", 0.0), more.pop("timeout", None))

    async def main() -> tuple[Any, Runtime, Judge, BaseException | None]:
        raised: BaseException | None = None
        if journal:
            with JournalWriter(store) as writer:
                runtime = Runtime(made, writer, options, **more)
                try:
                    await runtime.run()
                except Exception as error:  # noqa: BLE001 - the test looks at it
                    raised = error
        else:
            async with GroupCommitWriter(store) as group:
                runtime = Runtime(made, group, options, **more)
                try:
                    await runtime.run()
                except Exception as error:  # noqa: BLE001 - the test looks at it
                    raised = error
        return made, runtime, judge, raised

    return asyncio.run(main())


BOTH = pytest.mark.parametrize("journal", [False, True], ids=["group commit", "journal"])


# Asking


@BOTH
def test_every_question_is_asked_once_and_handed_over(journal):
    with opened() as store:
        source, runtime, judge, raised = run_with(first, pairs_of(10), store, journal=journal)
        uids = [f"q{at}" for at in range(1, 11)]
        assert raised is None
        assert sorted(source.taken) == sorted((uid, "win") for uid in uids)
        assert judge.asked == [(uid, 1) for uid in uids]
        assert (runtime.asked, runtime.cached, runtime.stopped, source.given_back) == (10, 0, None, [])
        found = store.results().sort("pair_id")
        assert sorted(found["custom_id"]) == sorted(uids)
        assert set(zip(found["ID1"], found["better_id"], strict=True)) == {(one, one) for one, _ in pairs_of(10)}
        assert store.log_length("step_log") == (10 if journal else 0)


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


def test_a_later_attempt_replaces_the_failure_of_an_earlier_call():
    async def fail(_pair):
        return TOO_LONG

    with opened() as store:
        run_with(fail, pairs_of(1), store)
        assert store.progress(ps.Condition("judge").condition_id).failed == {1}

        class Again(Listed):
            def __init__(self, judge, pairs, store):
                super().__init__(judge, pairs, store, attempt=2, replaces=True)

        _, _, judge, _ = run_with(first, pairs_of(1), store, source=Again)
        assert judge.asked == [("q1", 2)]
        assert store.results()["outcome"].to_list() == ["win"]
        assert store.counts() == {"items": 26, "pairs": 1, "attempts": 2, "comparisons": 1}


def test_answers_from_the_cache_are_counted_apart():
    async def cached(pair):
        return ps.Verdict.win(1, cost=0.0, cached=pair.uid != "q1", saved=0.5 if pair.uid != "q1" else None)

    with opened() as store:
        _, runtime, _, _ = run_with(cached, pairs_of(3), store)
    assert (runtime.asked, runtime.cached, runtime.saved) == (1, 2, 1.0)


def test_progress_counts_outcomes(capsys):
    async def one_fails(pair):
        return TOO_LONG if pair.uid == "q2" else ps.Verdict.win(1, cost=0.5)

    with opened() as store, Progress(3, every=3, clock=lambda: 0.0) as bar:
        run_with(one_fails, pairs_of(3), store, progress=bar)
    assert capsys.readouterr().err == "judging: 3 of 3, 1 failed, $1.0000\n"


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


@BOTH
def test_a_wait_without_a_moment_ends_with_the_next_outcome(journal):
    with opened() as store:
        source, _, judge, _ = run_with(first, pairs_of(4), store, source=Pausing, journal=journal)
    assert len(source.taken) == 4
    assert judge.most_open <= 3


def test_a_wait_for_an_outcome_with_nothing_open_ends_the_run():
    class Waiting(Listed):
        def next(self):
            return Wait()

    with opened() as store:
        source, runtime, *_ = run_with(first, pairs_of(4), store, source=Waiting)
    assert (source.taken, runtime.stopped) == ([], None)


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


def test_without_holding_outcomes_are_handed_over_while_the_source_waits():
    made: list[Any] = []
    with opened() as store:
        source, *_ = run_with(fit_after(made, 4), pairs_of(6), store, source=made_by(Loose, made), journal=True)
    assert sorted(source.events[:4]) == ["q1", "q2", "q3", "q4"]
    assert source.events[4] == "applied"


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
        assert store.failed_pairs()["failure"].to_list() == ["transient"]


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
        (row,) = store.failed_attempts(raw=True).iter_rows(named=True)
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
        assert store.failed_attempts()["error_message"].to_list() == ["KeyError: 'text'"] * 2
    assert raised is None
    assert source.taken == [("q1", "error"), ("q2", "error"), ("q3", "win"), ("q4", "win")]
    (line,) = caplog.messages
    assert "KeyError: 'text'" in line


@BOTH
def test_ten_alike_failures_on_different_texts_stop_the_run(journal):
    async def always(_pair):
        return TOO_LONG

    with opened() as store:
        source, runtime, judge, raised = run_with(always, pairs_of(13), store, journal=journal, concurrency=1)
        assert str(raised) == (
            "judge failed in the same way on 10 different questions in a row: context too long: 9000. Every answer is "
            "stored; run the same call again to continue"
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
        assert store.failed_pairs().height == 20


# Failures of the judge


@BOTH
def test_a_failure_of_the_judge_stops_the_run_after_the_open_answers_are_stored(journal):
    release = asyncio.Event()

    async def answer(pair):
        if pair.uid == "q2":
            return WRONG_KEY
        await release.wait()
        return ps.Verdict.win(1, cost=0.5)

    class Releasing(Listed):
        def done(self, question, recorded):
            if question.uid == "q2":
                asyncio.get_running_loop().call_later(0.05, release.set)
            return super().done(question, recorded)

    with opened() as store:
        source, runtime, judge, raised = run_with(answer, pairs_of(9), store, source=Releasing, journal=journal)
        assert isinstance(raised, JudgeError)
        assert str(raised) == (
            "Incorrect API key provided. Every answer is stored; run the same call again to continue"
        )
        assert [uid for uid, _ in judge.asked] == ["q1", "q2", "q3", "q4"]
        assert (runtime.stopped, source.given_back) == ("judge", ["q2"])
        assert sorted(source.taken) == [("q1", "win"), ("q3", "win"), ("q4", "win")]
        assert sorted(store.results()["custom_id"]) == ["q1", "q3", "q4"]
        assert store.failed_attempts().select("custom_id", "failure", "status_code").rows() == [("q2", "judge", 401)]
        assert store.spent() == 1.5


@BOTH
def test_an_error_of_pairscale_stops_the_run_as_it_is(journal):
    async def answer(pair):
        if pair.uid == "q1":
            raise InputError("these samples have no column 'truth'")
        await asyncio.sleep(0.02)
        return ps.Verdict.win(1)

    with opened() as store:
        source, _, _, raised = run_with(answer, pairs_of(9), store, journal=journal, concurrency=2)
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
        assert isinstance(raised, StoreFullError) or journal
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
        assert (
            line == f"stopped before max_cost is passed: {spent}. Run the same call with a higher max_cost to continue"
        )


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


# The end of a call


class Interrupted(Listed):
    """Cancels the run, from outside, when its fourth question is asked."""

    main: asyncio.Task[Any]

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

    async def main(store):
        judge = Judge(answer)
        source = Interrupted(judge, pairs_of(5), store)
        source.main = asyncio.current_task()
        options = RunOptions(3, 3, 0.0, None)
        try:
            if journal:
                with JournalWriter(store) as writer:
                    await Runtime(source, writer, options).run()
            else:
                async with GroupCommitWriter(store) as writer:
                    await Runtime(source, writer, options).run()
        except asyncio.CancelledError:
            return source
        raise AssertionError

    with opened(tmp_path / "run.db") as store:
        source = asyncio.run(main(store))
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

    async def main(store):
        source = Held(Judge(first), pairs_of(3), store)
        source.main = asyncio.current_task()
        options = RunOptions(3, 3, 0.0, None)
        try:
            if journal:
                with JournalWriter(store) as writer:
                    await Runtime(source, writer, options).run()
            else:
                async with GroupCommitWriter(store) as writer:
                    await Runtime(source, writer, options).run()
        except asyncio.CancelledError:
            return source
        raise AssertionError

    with opened() as store:
        source = asyncio.run(main(store))
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

    with opened() as store:
        source, runtime, judge, _ = run_with(
            busy, pairs_of(1), store, source=Offering, journal=journal, deadline=time.monotonic() + 0.5, concurrency=1
        )
        assert judge.asked == [("q1", 1)]
        assert (runtime.stopped, source.given_back) == ("max_minutes", ["q1"])
        assert store.counts()["attempts"] == 1


def test_a_deadline_that_has_passed_asks_nothing():
    with opened() as store:
        source, runtime, judge, _ = run_with(first, pairs_of(3), store, deadline=1.0, clock=lambda: 1.0)
    assert (judge.asked, source.taken, runtime.stopped) == ([], [], "max_minutes")


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be a whole number of 1 or more, not 0"),
        ({"concurrency": True}, "concurrency must be a whole number of 1 or more, not True"),
        ({"retries": -1}, "retries must be a whole number of 0 or more, not -1"),
        ({"retry_wait": float("nan")}, "retry_wait must be a number of 0 or more, not nan"),
        ({"timeout": 0}, "timeout must be a number above 0, not 0"),
        ({"max_cost": -1}, "max_cost must be a number of 0 or more, not -1"),
        ({"max_cost": float("nan")}, "max_cost must be a number of 0 or more, not nan"),
        ({"max_cost": "3"}, "max_cost must be a number of 0 or more, not '3'"),
        ({"max_cost": True}, "max_cost must be a number of 0 or more, not True"),
    ],
)
def test_options_that_cannot_be_used(options, message):
    with pytest.raises(InputError) as error:
        RunOptions(**options)
    assert str(error.value) == message


def test_the_defaults_of_every_function_that_asks():
    options = RunOptions()
    assert (options.concurrency, options.retries, options.retry_wait) == (8, 3, 1.0)
    assert (options.timeout, options.max_cost) == (300.0, None)
