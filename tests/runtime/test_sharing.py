"""The process that leads a run hands questions out; here with a table in memory instead of a database."""

import asyncio
import threading

import pytest

import pairscale as ps
from pairscale.core.errors import StoreConnectionError, StoreMismatchError, StoreReadOnlyError
from pairscale.runtime import Budget, Question, RunOptions, Runtime
from pairscale.runtime.sharing import QuestionSharing, verdict_of, written_verdict
from pairscale.store.policies import JournalWriter
from pairscale.store.runfile import open_run
from pairscale.store.writer import Entry, _Unsure
from tests.workers import fail_writes


class Table:
    """What a LeadSession does, in memory; the workers are functions that answer."""

    concurrency, reconnects = 1, 0

    def __init__(self, workers=1, answer=None):
        self.rows, self.taken, self.workers, self.answer_with = {}, {}, workers, answer
        self.handed = []

    def hand_out(self, given):
        for one in given:
            row = self.rows.get(one.name)
            if row is None or row["number"] == one.again:
                self.rows[one.name] = {"number": len(self.handed) + 1, "given": one, "answer": None}
                self.handed.append(one)
        return {one.name: self.rows[one.name]["number"] for one in given}

    def answers(self, numbers):
        wanted = set(numbers)
        if self.answer_with is not None:
            for row in self.rows.values():
                row["answer"] = row["answer"] or self.answer_with(row["given"])
        return {row["number"]: row["answer"] for row in self.rows.values() if row["answer"] and row["number"] in wanted}

    def take_back(self, n, numbers):
        free = [name for name, row in self.rows.items() if row["number"] in set(numbers) and not row["answer"]][:n]
        return {self.rows.pop(name)["number"] for name in free}

    def look(self, *_counted):
        return self.workers, self.workers

    def late(self):
        return []

    def count(self, *_counted):
        pass


class Judge:
    condition = ps.Condition("judge")

    def __init__(self):
        self.asked, self.open, self.most = [], 0, 0

    async def compare(self, pair):
        self.asked.append(pair.uid)
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0.15)
        self.open -= 1
        return ps.Verdict.win(1, content="here")


class Questions:
    """Some questions at once."""

    def __init__(self, judge, n):
        sides = {"ID": "a", "text": "a"}, {"ID": "b", "text": "b"}
        self.left = [Question(judge, "c", f"q{at}", *sides, key=at) for at in range(n)]
        self.done_with = {}

    def next(self):
        return self.left.pop(0) if self.left else None

    def done(self, question, recorded):
        self.done_with[question.uid] = recorded
        return ()


def run(table, *, n=4, judge=None):
    judge = judge or Judge()
    source = Questions(judge, n)

    async def ask():
        with open_run(None, write=True) as store:
            store.add_items([{"ID": "a", "text": "a"}, {"ID": "b", "text": "b"}])
            store.add_condition(judge.condition, "c")
            with JournalWriter(store) as journal:
                sharing = QuestionSharing(table, set(), [judge], on_workers=lambda n: runtime.grow(n))  # noqa: PLW0108 - it is made below
                runtime = Runtime(source, journal, RunOptions(1, retries=0), budget=Budget(), sharing=sharing)
                await runtime.run()
                journal.flush()
                return store.failed_attempts(), store.counts()

    return source, judge, *asyncio.run(ask())


def test_alone_everything_is_asked_here():
    table = Table()
    source, judge, _, counts = run(table)
    assert judge.asked == [f"q{at}" for at in range(4)]
    assert (judge.most, table.handed) == (1, [])
    assert counts["comparisons"] == len(source.done_with) == 4


def test_others_answer_what_is_too_much_here():
    table = Table(workers=3, answer=lambda _: written_verdict(ps.Verdict.win(2, content="elsewhere", latency_s=0.1)))
    source, judge, _, counts = run(table, n=6)
    assert judge.most == 1
    assert table.handed
    said = [one.verdict.content for one in source.done_with.values()]
    assert sorted(said) == ["elsewhere"] * len(table.taken) + ["here"] * len(judge.asked)
    assert counts["comparisons"] == counts["attempts"] == 6


def test_what_no_worker_takes_is_asked_here_after_all():
    table = Table(workers=3)  # they are there, and never answer
    _, judge, _, counts = run(table)
    assert (judge.most, sorted(judge.asked)) == (1, [f"q{at}" for at in range(4)])
    assert (counts["comparisons"], table.rows) == (4, {})


def test_a_question_that_is_taken_back_has_its_place():
    """While the table is asked, another question must not take the place that one comes back for."""
    entered, may_go = threading.Event(), threading.Event()

    class Slow(Table):
        def take_back(self, n, numbers):
            found = super().take_back(n, numbers)
            entered.set()
            may_go.wait()
            return found

    async def ask():
        judge = Judge()
        first, second, third = Questions(judge, 3).left
        sharing = QuestionSharing(Slow(workers=2), set(), [judge])
        handing = asyncio.create_task(sharing.run(lambda _late: None))
        asked = [asyncio.create_task(sharing.ask(one, 0, None)) for one in (first, second)]
        while not entered.is_set():
            await asyncio.sleep(0.01)
        asked.append(asyncio.create_task(sharing.ask(third, 0, None)))
        await asyncio.sleep(0)
        may_go.set()
        done, _ = await asyncio.wait(asked, timeout=60)
        handing.cancel()
        return len(done), judge.most

    assert asyncio.run(ask()) == (3, 1)


def test_a_worker_that_leaves_is_no_failure_of_the_judge():
    left = ps.Verdict.fail("cancelled", "the worker left", failure="transient")
    told = []

    def answer(given):
        told.append(given.name)
        return written_verdict(left if told.count(given.name) < 3 else ps.Verdict.win(2))

    table = Table(workers=2, answer=answer)
    _, _, failed, counts = run(table)
    assert counts["comparisons"] == 4  # although retries is 0
    assert set(failed["error_code"]) == {"cancelled"}
    assert counts["attempts"] == 4 + failed.height


def test_an_error_of_the_table_ends_the_run():
    table = Table(workers=2)

    def hand_out(_given):
        raise StoreMismatchError("gone")

    table.hand_out = hand_out
    with pytest.raises(StoreMismatchError, match="gone"):
        run(table)


@pytest.mark.parametrize(
    "verdict",
    [
        ps.Verdict.win(1, probability=0.25, cost=0.5, raw_response={"a": [1, None, "\x00 \ud800"]}, request=["x"]),
        ps.Verdict.tie(cached=True, saved=0.1, content="ü\x00"),
        ps.Verdict.fail("http_error", "no", failure="transient", status_code=503, retry_after=2.0),
        ps.Verdict.abstain("no"),
    ],
)
def test_a_verdict_comes_back_as_it_went(verdict):
    assert verdict_of(written_verdict(verdict)) == verdict


def test_a_reply_that_json_cannot_hold_comes_back_as_text():
    odd = []
    odd.append(odd)
    assert verdict_of(written_verdict(ps.Verdict.win(1, raw_response=odd))).raw_response == "[[...]]"


def test_a_transaction_in_doubt():
    one = Entry()
    unsure = _Unsure((1, "x"), (2, "y"), [one])
    assert unsure.written((2, "y")) == {id(one): one}
    assert unsure.written((1, "x")) == {}
    with pytest.raises(StoreMismatchError, match="another process has continued the run since"):
        unsure.written((3, "z"))


@pytest.mark.parametrize(
    "fates",
    [
        ["late"],
        ["late", "late"],
        ["early", "late"],
        ["late", "read-only"],
        ["late", "early", "read-only"],
        ["late", "read-only", "late"],
        ["read-only", "late", "late", "early"],
    ],
)
def test_what_is_tried_again_after_several_failures_is_written_once(monkeypatch, fates):
    """The connection may be lost before or after the transaction was written, and the database be read-only."""
    with open_run(None, write=True) as store:
        fail_writes(monkeypatch, store, fates)
        entries = []
        for number in range(1, 10):  # more entries come meanwhile
            entries.append(Entry(rows=[("step_log", {"step_id": number})]))
            try:
                store.writer.commit(entries)
            except (StoreConnectionError, StoreReadOnlyError):
                continue
            entries.clear()
        assert store.read_columns("step_log")["step_id"] == list(range(1, 10))


def test_a_journal_waits_for_a_database_that_is_away(monkeypatch, caplog):
    from pairscale.store import policies

    monkeypatch.setattr(policies, "AGAIN_S", 0.001)
    with open_run(None, write=True) as store:
        commit, tries = store.writer.commit, []

        def away(entries):
            tries.append(len(entries))
            if len(tries) < 3:
                raise StoreConnectionError("it is away")
            commit(entries)

        monkeypatch.setattr(store.writer, "commit", away)
        monkeypatch.setattr(type(store), "can_reconnect", True)
        monkeypatch.setattr(store, "reconnect", lambda: tries.append(0))
        with JournalWriter(store) as journal:
            journal.put(Entry(rows=[("step_log", {"step_id": 1})]))
            journal.flush()
        assert store.log_length("step_log") == 1
    assert tries == [1, 0, 1]  # tried, connected again, written
    assert "it is away. Trying again for 2 minutes" in caplog.text
    assert "the run can be written again; everything is in it" in caplog.text
