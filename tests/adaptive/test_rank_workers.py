"""Several processes on one adaptive run in a PostgreSQL database: one chooses, all answer, any of them may die."""

import signal
import time

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, StoreBusyError, StoreDamagedError, StoreError, StoreMismatchError
from pairscale.store import questions as questions_module
from pairscale.store.questions import LeadLostError, LeadSession
from pairscale.store.runfile import open_run
from pairscale.store.schema import SCHEMA_VERSION
from pairscale.store.worker_table import worker_table
from pairscale.store.workers import Job
from tests.workers import (
    asked,
    asked_in,
    by_process,
    finished,
    leader_of,
    none_left,  # noqa: F401 - a fixture
    start,
    texts_of,
    wait_for,
)

pytestmark = pytest.mark.slow

STEPS = 60
COST = 0.01


def later(A, B):
    return {"Y": int(A["ID"] > B["ID"])}


def ranking(address, notes, **more):
    given = {"verb": "rank", "n_texts": 20, "steps": STEPS, "latency": 0.2, "concurrency": 2}
    return start(address, notes, **given | more)


def whole(address, steps=STEPS):
    """The run, complete, each step with its answer, all as logged, and every choice reproduced."""
    report = ps.audit(address)
    assert report.passed, report
    with open_run(address) as store:
        counts = store.counts()
        rows = store.read_log("step_log")
        with store.transaction() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM questions").scalar() == 0  # none is left behind
    assert len(rows) == steps
    assert counts["comparisons"] == sum(row["status"] != "starved" for row in rows)
    return counts["attempts"]


def test_one_chooses_and_all_answer(address, tmp_path):
    notes = tmp_path / "notes"
    found = finished([ranking(address, notes, latency=1.0, together=3) for _ in range(3)])
    assert [one.get("error") for one in found] == [None] * 3
    assert len({tuple(one["items"]) for one in found}) == 1
    assert asked_in(notes) == dict.fromkeys(asked_in(notes), 1)
    assert len(by_process(notes)) == 3  # everyone has answered
    assert whole(address) == asked(notes) > STEPS - 10
    table = ps.status(address).workers
    assert table["state"].to_list() == ["ended"] * 3
    assert table["answered"].sum() == asked(notes)
    assert table["cost"].sum() == pytest.approx(asked(notes) * COST)
    with open_run(address) as store:
        opened = [row["concurrency"] for row in store.read_log("adaptive_events") if row["event"] == "workers"]
    assert max(opened) == 6  # two each


def test_a_run_of_one_process_is_as_it_was(address, tmp_path):
    given = {"fit": "laplace", "steps": 30, "progress": "none", "seed": 4}
    alone = ps.rank(texts_of(12), judge=later, run=str(tmp_path / "run.db"), **given)
    there = ps.rank(texts_of(12), judge=later, run=address, **given)
    assert alone.state.step_log.drop("timestamp").equals(there.state.step_log.drop("timestamp"))
    with open_run(address) as store:
        assert "workers" not in [row["event"] for row in store.read_log("adaptive_events")]


def test_a_worker_that_is_killed(address, tmp_path):
    notes = tmp_path / "notes"
    processes = [ranking(address, notes, latency=0.5, together=3) for _ in range(3)]
    leader = leader_of(address, processes)
    killed = next(process for process in processes if process is not leader)
    wait_for(lambda: notes.exists() and by_process(notes)[str(killed.pid)])
    killed.kill()
    found = finished([process for process in processes if process is not killed])
    killed.communicate()
    assert [one.get("error") for one in found] == [None] * 2
    assert sum(asked_in(notes).values()) - len(asked_in(notes)) <= 2  # its open calls
    assert asked(notes) - 2 <= whole(address) <= asked(notes)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_another_process_takes_the_lead(address, tmp_path, how):
    notes = tmp_path / "notes"
    processes = [ranking(address, notes, latency=1.0, together=3) for _ in range(3)]
    leader = leader_of(address, processes)
    wait_for(lambda: len(by_process(notes)) == 3)
    leader.send_signal(how)
    leader.communicate(timeout=600)
    found = finished([process for process in processes if process is not leader])
    assert [one.get("error") for one in found] == [None] * 2
    assert any("leads it now" in one["told"] for one in found)
    again = asked(notes) - len(asked_in(notes))
    assert again <= 2 + 2  # its open calls, and answers of its own that were not on the disk yet
    with open_run(address) as store:
        steps = store.log_length("step_log")
    assert steps >= STEPS  # steps= is per call, and a process that takes the lead makes a call of its own
    assert whole(address, steps) <= asked(notes) + 6


def test_answers_wait_for_the_next_process_that_leads(address, tmp_path):
    """All that lead and answer are killed while answers are in the table; they are not asked again."""
    notes = tmp_path / "notes"
    processes = [ranking(address, notes, latency=3.0, together=2) for _ in range(2)]
    leader = leader_of(address, processes)
    other = next(process for process in processes if process is not leader)
    wait_for(lambda: notes.exists() and by_process(notes)[str(other.pid)] >= 2)
    leader.kill()  # while both have open calls
    with open_run(address) as store:

        def answered():
            with store.transaction() as connection:
                query = "SELECT count(*) FROM questions WHERE answer IS NOT NULL"
                return connection.exec_driver_sql(query).scalar()

        wait_for(answered)
    other.kill()
    for process in processes:
        process.communicate()
    before = asked_in(notes)
    (found,) = finished([ranking(address, notes, latency=0.0)])
    assert found.get("error") is None
    lost = [uid for uid, n in asked_in(notes).items() if n > 1]
    assert len(lost) <= 2 + 1  # open calls of the process that led, and of the other one
    assert len(lost) < len(before)
    with open_run(address) as store:
        whole(address, store.log_length("step_log"))


def test_the_server_is_killed(tmp_path):
    from tools.postgres import PostgresServer

    notes = tmp_path / "notes"
    with PostgresServer() as server:
        address = server.create("killed")
        processes = [ranking(address, notes, latency=0.5, together=3) for _ in range(3)]
        wait_for(lambda: len(by_process(notes)) == 3)
        server.stop()
        time.sleep(2)
        processes.append(ranking(address, notes))  # one that begins meanwhile waits, too
        time.sleep(2)
        server.start()
        found = finished(processes)
        assert [one.get("error") for one in found] == [None] * 4
        assert asked(notes) - len(asked_in(notes)) <= 2 * 4
        with open_run(address) as store:
            steps = store.log_length("step_log")
        assert whole(address, steps) <= asked(notes)


@pytest.mark.parametrize("bounded", [True, False])
def test_one_budget_for_all(address, tmp_path, bounded):
    notes = tmp_path / "notes"
    given = {"steps": None, "max_cost": 0.3, "bounded": bounded, "latency": 0.5, "together": 3}
    found = finished([ranking(address, notes, **given) for _ in range(3)])
    assert [one.get("error") for one in found] == [None] * 3
    with open_run(address) as store:
        assert 0.3 - 2 * COST <= store.spent() <= 0.3 + 1e-9
        assert asked(notes) == round(store.spent() / COST)


def test_a_process_with_something_else_is_refused(address, tmp_path):
    notes = tmp_path / "notes"
    processes = [ranking(address, notes, latency=3_000.0)]  # it has its questions open until it is killed
    leader_of(address, processes)
    others = {
        "template concise": {"template": "concise"},
        "works on this run with other texts, and this process has 20 texts": {"text": "other"},
        "works on this run with other settings": {"seed": 2},
        "max_cost none, and this process has $2": {"max_cost": 2.0},
    }
    for words, given in others.items():
        (found,) = finished([ranking(address, tmp_path / "none", **given)])
        assert found["error"].startswith("StoreMismatchError: process "), found
        assert words in found["error"]
    assert not (tmp_path / "none").exists() or not asked(tmp_path / "none")
    with pytest.raises(StoreBusyError, match="only processes with the same command share a run"):
        ps.submit_pairs(ps.make_pairs(texts_of(3)), "lexical", run=address, progress=False)
    processes[0].kill()
    processes[0].communicate()


def test_an_older_version_is_refused(address, monkeypatch):
    job = Job("c", "noted", "p", 3, None, "texts", "s")
    leader, other = LeadSession(address), LeadSession(address)
    with open_run(address, write=True):
        pass
    leader.connect()
    other.connect()
    try:
        assert leader.try_lead()
        assert not other.try_lead()
        leader.begin(job)
        monkeypatch.setattr("pairscale.store.workers.__version__", "0.0.1")
        with pytest.raises(
            StoreMismatchError, match=r"this process has pairscale 0\.0\.1; .* the same version"
        ) as raised:
            other.join(job)
        assert "arguments" not in str(raised.value)
    finally:
        leader.end("done")
        other.end()


def test_the_process_that_leads_tells_that_its_clock_is_wrong(address, monkeypatch, caplog):
    """The times of all answers are by it."""
    from datetime import datetime, timedelta

    from pairscale.store import workers as workers_module

    class Behind(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(hours=1)

    monkeypatch.setattr(workers_module, "datetime", Behind)
    with open_run(address, write=True):
        pass
    session = LeadSession(address)
    session.connect()
    assert session.try_lead()
    session.begin(Job("c", "noted", "p", 3, None, "texts", "s"))
    session.end("done")
    assert "the clock of this machine differs from the database's by -3,600 s" in caplog.text


def test_a_judge_that_looks_at_the_state_is_asked_by_one_process(address):
    def first(A, B, state=None):
        return later(A, B)

    session = LeadSession(address)
    session.connect()
    assert session.try_lead()
    with pytest.raises(InputError, match="can be given the state of the run, which only the process that leads it"):
        ps.rank(texts_of(4), judge=first, run=address, progress="none")
    session.end("done")
    assert ps.rank(texts_of(4), judge=first, run=address, steps=5, fit="laplace", progress="none").items.height == 4


def test_clocks_do_not_matter(address, tmp_path, monkeypatch):
    """The process that leads, and one that helps it, an hour apart."""
    from datetime import datetime, timedelta

    from pairscale.store import workers as workers_module

    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(hours=1)

    monkeypatch.setattr(workers_module, "datetime", Ahead)
    notes = tmp_path / "notes"
    process = ranking(address, notes, latency=1.0)
    leader_of(address, [process])
    session = LeadSession(address)
    session.connect()
    job = None
    with session._statements() as connection:
        row = connection.exec_driver_sql("SELECT condition_id, judge, plan, settings FROM workers").one()
        job = Job(row.condition_id, row.judge, row.plan, 20, None, "texts", row.settings)
    session.concurrency = 2
    session.join(job)
    taken = []
    wait_for(lambda: taken.extend(session.take(1, [job.condition_id])) or taken)
    leader = session.leader()
    assert leader.ending is None
    assert not leader.is_lost
    with open_run(address) as store:
        table = worker_table(store)
    assert table["state"].to_list() == ["leading", "working"]
    assert table["clock_s"][1] == pytest.approx(3600, abs=60)
    session.end()
    (found,) = finished([process])
    assert found["steps"] == STEPS
    whole(address)


def test_a_database_that_cannot_be_used_is_told_in_a_line(address):
    import psycopg

    def said(where):
        with pytest.raises(StoreError) as raised:
            ps.rank(texts_of(3), judge="lexical", run=where, progress="none")
        assert "\n" not in str(raised.value)
        return raised.value

    name = address.partition("@/")[2].partition("?")[0]
    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS pupil")
        connection.execute("CREATE ROLE pupil LOGIN")
        assert str(said(address.replace("tester@", "pupil@"))).startswith("the database does not let this user do it")
        with open_run(address, write=True):
            pass
        connection.execute("UPDATE metadata SET value = '99' WHERE key = 'schema_version'")
        assert "has schema version 99" in str(said(address))
        assert isinstance(said(address), StoreDamagedError)
        connection.execute(f"UPDATE metadata SET value = '{SCHEMA_VERSION}' WHERE key = 'schema_version'")
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        assert str(said(address)).startswith("the database may only be read (a replica, or set to read-only)")


def test_who_leads(address):
    """One process leads at a time; one that is lost for five seconds is followed by another one."""
    job = Job("c", "noted", "p", 3, None, "texts", "s")
    with open_run(address, write=True):
        pass
    one, two = LeadSession(address), LeadSession(address)
    for session in (one, two):
        session.concurrency = 1
        session.connect()
    assert one.try_lead()
    assert not two.try_lead()
    assert two.leader() is None  # it has not begun
    assert one.begin(job) == set()
    assert (two.leader().ending, two.leader().is_lost) == (None, False)
    two.join(job)
    assert one.look(0, 0, 0.0) == (2, 2)
    given = questions_module.HandedOut("n1", "c", "{}", 1, 0)
    number = one.hand_out([given])["n1"]
    assert one.hand_out([given])["n1"] == number  # as after a connection was lost
    (taken,) = two.take(5, ["c"])
    assert (taken.number, one.take_back(5, [number])) == (number, set())
    two.answer({taken: ("said", 0.01)})
    one._drop()  # as when it dies
    wait_for(lambda: two.leader().is_lost)
    assert two.try_lead()
    with pytest.raises(LeadLostError, match="another process leads this run now"):
        one.reconnect()
    assert two.begin(job) == {"n1"}
    assert two.answers([two.hand_out([given])["n1"]]) == {number: "said"}
    again = questions_module.HandedOut("n1", "c", "{}", 2, number)
    assert two.hand_out([again])["n1"] > number
    two.end("done")
    one.end()
    with open_run(address) as store:
        assert worker_table(store)["state"].to_list() == ["ended", "ended"]
