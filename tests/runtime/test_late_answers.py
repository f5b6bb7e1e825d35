"""A worker that was lost comes back with an answer that another process has given meanwhile: it was paid for."""

import asyncio

import pytest

import pairscale as ps
from pairscale.runtime.answering import _write_late
from pairscale.runtime.sharing import QuestionSharing, _Waiting, written_verdict
from pairscale.store.questions import HandedOut, LeadSession
from pairscale.store.runfile import open_run
from pairscale.store.workers import Job
from tests.workers import (
    asked,
    finished,
    leader_of,
    none_left,  # noqa: F401 - a fixture
    start,
    wait_for,
)

pytestmark = pytest.mark.slow

COST = 0.01
GIVEN = {
    "rank": {"n_texts": 10, "steps": 40, "latency": 0.5, "concurrency": 1},
    "ab": {"n_texts": 12, "latency": 0.5, "concurrency": 1},
}


def joined(address):
    """A process that answers, and the first question that it has taken."""
    session = LeadSession(address)
    session.connect()
    with session._statements() as connection:
        row = connection.exec_driver_sql("SELECT condition_id, judge, plan, settings, max_cost FROM workers").one()
    session.concurrency = 1
    session.join(Job(row.condition_id, row.judge, row.plan, 10, row.max_cost, "texts", row.settings))
    taken = []
    wait_for(lambda: taken.extend(session.take(1, [row.condition_id])) or taken)
    return session, taken[0]


class Reconnected:
    """A session of which the connection was lost and is back."""

    concurrency, reconnects, handed = 1, 0, ()

    def look(self, *_counted):
        return 2, 2

    def hand_out(self, given):
        self.handed = (*self.handed, *(one.name for one in given))
        return {one.name: 5 for one in given}

    def answers(self, _numbers):
        return {}

    def take_back(self, _n, _numbers):
        return set()


def test_a_question_that_is_in_the_table_is_not_asked_twice_after_a_reconnect():
    """Before, the process that leads asked it, too, and the answer in the table was left behind."""

    async def turn():
        session = Reconnected()
        sharing = QuestionSharing(session, set(), [])
        waiting = _Waiting(
            HandedOut("n", "c", "{}", 1, 0), ("c", "u", 1), asyncio.get_running_loop().create_future(), 5
        )
        sharing._waiting["n"] = waiting
        session.reconnects += 1
        await sharing._turn()
        return waiting, session

    waiting, session = asyncio.run(turn())
    assert not waiting.answer.done()
    assert session.handed == ("n",)


def lose(session, question):
    """Let it be away until another process has answered its question."""
    session._drop()
    other = LeadSession(session.where)
    other.connect()

    def is_answered():
        with other._statements() as connection:
            query = "SELECT count(*) FROM questions WHERE number = %s AND answer IS NULL"
            return connection.exec_driver_sql(query, (question.number,)).scalar() == 0

    wait_for(is_answered)
    other.end()
    session.reconnect()


@pytest.mark.parametrize("verb", ["rank", "ab"])
def test_a_late_answer_is_an_attempt_that_settles_nothing(address, tmp_path, verb):
    notes = tmp_path / "notes"
    process = start(address, notes, verb=verb, **GIVEN[verb])
    leader_of(address, [process])
    session, question = joined(address)
    lose(session, question)
    given = {question: (written_verdict(ps.Verdict.win(1, cost=0.07, latency_s=30.0)), 0.07)}
    session.answer(given)
    session._given -= 1  # as when the connection was lost before the end of the transaction was known
    session.answer(given)
    session.end()
    (found,) = finished([process])
    assert found.get("error") is None
    with open_run(address) as store:
        counts = store.counts()
        assert counts["attempts"] == asked(notes) + 1 == counts["comparisons"] + 1
        assert store.spent() == pytest.approx(asked(notes) * COST + 0.07)
    report = ps.audit(address)
    assert report.passed, report
    assert ps.status(address).workers["cost"].sum() == pytest.approx(asked(notes) * COST + 0.07)


def test_the_budget_counts_it(address, tmp_path):
    notes = tmp_path / "notes"
    process = start(address, notes, verb="rank", **GIVEN["rank"] | {"max_cost": 0.3})
    leader_of(address, [process])
    session, question = joined(address)
    lose(session, question)
    session.answer({question: (written_verdict(ps.Verdict.win(1, cost=0.2)), 0.2)})
    session.end()
    finished([process])
    with open_run(address) as store:
        assert 0.28 <= store.spent() <= 0.3 + 1e-9
        assert store.spent() == pytest.approx(asked(notes) * COST + 0.2)


def test_one_that_comes_after_the_end_is_written_by_its_process(address, tmp_path):
    notes = tmp_path / "notes"
    process = start(address, notes, verb="ab", **GIVEN["ab"])
    leader_of(address, [process])
    session, question = joined(address)
    lose(session, question)
    finished([process])
    session.answer({question: (written_verdict(ps.Verdict.win(1, cost=0.07)), 0.07)})
    with open_run(address, write=True), pytest.raises(ps.PairscaleError):
        _write_late(session)  # another process writes, and the answer stays where it is
    assert len(session.late()) == 1
    _write_late(session)
    assert session.late() == []
    session.end()
    with open_run(address) as store:
        assert store.spent() == pytest.approx(asked(notes) * COST + 0.07)
    assert ps.audit(address).passed
