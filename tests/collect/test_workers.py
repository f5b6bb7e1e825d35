"""Several processes on one run in a PostgreSQL database: the work is shared, nothing is lost, nothing asked twice."""

import json
import signal
import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.workers import asked_in, fail_writes, pairs_of, start

import pairscale as ps
from pairscale.core.errors import (
    StoreBusyError,
    StoreConnectionError,
    StoreError,
    StoreMismatchError,
    StoreReadOnlyError,
)
from pairscale.people.watch import look_at
from pairscale.runtime import sharing
from pairscale.store import workers as workers_module
from pairscale.store.database import get_fact
from pairscale.store.runfile import open_run
from pairscale.store.worker_table import worker_table
from pairscale.store.workers import Job, open_shared
from pairscale.store.writer import Asked, Entry

pytestmark = pytest.mark.slow

N_PAIRS = 190
COST = 0.01


def finished(processes):
    """What each worker says at its end."""
    found = []
    for process in processes:
        out, errors = process.communicate(timeout=200)
        assert out, errors
        found.append(json.loads(out))
    return found


def wait_for(notes, n):
    until = time.monotonic() + 600
    while not notes.exists() or sum(asked_in(notes).values()) < n:
        assert time.monotonic() < until
        time.sleep(0.05)


def whole(address, n_pairs=N_PAIRS):
    """The run, complete, with as many outcomes as pairs, and as its chains say."""
    report = ps.audit(address)
    assert report.passed, report
    with open_run(address) as store:
        counts = store.counts()
        assert counts["comparisons"] == counts["pairs"] == n_pairs
        return counts["attempts"]


def test_the_work_is_shared(postgres, address, tmp_path):
    name = address.partition("@/")[2].partition("?")[0]
    notes, where = tmp_path / "notes", postgres.network_address(name)
    found = finished([start(where, notes, fails=7) for _ in range(3)])
    assert {one["answered"] for one in found} == {N_PAIRS - found[0]["failed"]}
    assert sum(one["asked"] for one in found) == N_PAIRS
    assert asked_in(notes) == dict.fromkeys(asked_in(notes), 1)
    assert whole(address) == len(asked_in(notes)) == N_PAIRS
    status = ps.status(address)
    assert status.workers["state"].to_list() == ["ended"] * 3
    assert status.workers["answered"].sum() == N_PAIRS
    assert status.workers["cost"].sum() == pytest.approx(N_PAIRS * COST)
    assert status.digest is not None
    assert ps.submit_pairs(pairs_of(20), "lexical", run=address, progress=False).asked == N_PAIRS  # another judge
    assert ps.audit(address).passed
    failed = found[0]["failed"]
    (again,) = finished([start(address, notes)])  # asks only what failed
    assert (again["asked"], again["failed"]) == (failed, 0)
    assert ps.audit(address).passed


def test_a_worker_that_is_killed(address, tmp_path):
    notes = tmp_path / "notes"
    processes = [start(address, notes, latency=0.2) for _ in range(3)]
    wait_for(notes, 40)
    processes[0].kill()
    finished(processes[1:])
    asked = asked_in(notes)
    twice = sum(asked.values()) - len(asked)
    assert len(asked) == N_PAIRS
    assert twice <= 4  # its open calls
    assert whole(address) + 4 >= sum(asked.values())
    processes[0].communicate()


def test_a_worker_that_is_stopped_gives_its_pairs_back(address, tmp_path):
    notes = tmp_path / "notes"
    processes = [start(address, notes, latency=0.2) for _ in range(2)]
    wait_for(notes, 30)
    processes[0].send_signal(signal.SIGINT)
    finished(processes[1:])
    processes[0].communicate(timeout=200)
    asked = asked_in(notes)
    assert sum(asked.values()) - len(asked) <= 4
    assert whole(address) == sum(asked.values())  # also those that were interrupted


def worn_out(server, notes, *, n_texts, every_s, workers=4, concurrency=16, latency=0.5):
    """A run through which a worker is killed again and again, each time another one starts, and once the server."""
    address, kills, is_restarted = server.create(f"worn{n_texts}"), 0, False
    n_pairs = n_texts * (n_texts - 1) // 2
    given = {"n_texts": n_texts, "concurrency": concurrency, "latency": latency}
    processes = [start(address, notes, **given) for _ in range(workers)]
    wait_for(notes, n_pairs // 20)
    while sum(asked_in(notes).values()) < n_pairs * 0.9:
        time.sleep(every_s)
        if all(process.poll() is not None for process in processes):
            break
        processes[0].kill()
        processes.pop(0).communicate()
        kills += 1
        processes.append(start(address, notes, **given))
        if not is_restarted and sum(asked_in(notes).values()) > n_pairs / 2:
            server.stop()
            processes[0].kill()
            processes.pop(0).communicate()
            kills += 1
            processes.append(start(address, notes, **given))  # it begins while the server is away
            time.sleep(2)
            server.start()
            is_restarted = True
    found = finished(processes)
    assert [one.get("error") for one in found] == [None] * workers  # also of one that began while it was away
    asked, attempts = asked_in(notes), whole(address, n_pairs)
    twice, lost = sum(asked.values()) - len(asked), sum(asked.values()) - attempts
    print(f"\n{n_pairs:,} pairs, {kills} kills, server killed: {is_restarted}; asked again: {twice}, "
          f"answers of killed workers that were open: {lost}")  # fmt: skip
    assert len(asked) == n_pairs
    assert is_restarted
    assert lost <= kills * concurrency  # what was open when its worker was killed; everything else is recorded
    assert twice <= (kills + workers) * concurrency


def own_server():
    from tools.postgres import PostgresServer

    try:
        return PostgresServer()
    except OSError as error:
        return pytest.skip(str(error))


def test_workers_and_the_server_are_killed(tmp_path):
    with own_server() as server:
        worn_out(server, tmp_path / "notes", n_texts=40, every_s=4, workers=3, concurrency=8, latency=0.3)


@pytest.mark.validate
def test_workers_and_the_server_are_killed_for_long(tmp_path):
    with own_server() as server:
        worn_out(server, tmp_path / "notes", n_texts=201, every_s=10)


@pytest.mark.parametrize("bounded", [True, False])
def test_one_budget_for_all(address, tmp_path, bounded):
    notes = tmp_path / "notes"
    found = finished([start(address, notes, max_cost=0.8, bounded=bounded) for _ in range(3)])
    assert [one.get("error") for one in found] == [None] * 3
    with open_run(address) as store:
        spent = store.spent()
    assert 0.8 - 3 * 2 * COST <= spent <= 0.8 + 3 * COST + 1e-9
    assert sum(asked_in(notes).values()) == round(spent / COST)
    finished([start(address, notes, max_cost=5.0, bounded=bounded) for _ in range(2)])
    assert asked_in(notes) == dict.fromkeys(asked_in(notes), 1)
    assert whole(address) == N_PAIRS


JOB = Job("c" * 64, "noted, template default", "p", N_PAIRS, None)


@pytest.fixture
def one_there(address):
    """A worker in this process."""
    with open_shared(address) as store:
        store.add_items([{"ID": "0003", "text": "text 3"}])
        store.worker.join(JOB, [(1, 0), (2, 0), (3, 1)], lambda: 0.0)
        yield store


def test_a_worker_with_something_else_is_refused(address, tmp_path, one_there, monkeypatch):
    (found,) = finished([start(address, tmp_path / "notes", template="concise")])
    assert found["error"].startswith("StoreMismatchError: process ")
    assert (
        "works on this run with noted, template default, and this process has noted, template concise" in found["error"]
    )
    (found,) = finished([start(address, tmp_path / "notes", text="other")])
    assert "StoreMismatchError" in found["error"]
    others = {
        "other pairs, and this process has 7 pairs": Job(JOB.condition_id, JOB.judge, "q", 7, None),
        r"max_cost none, and this process has \$2": Job(JOB.condition_id, JOB.judge, "p", N_PAIRS, 2.0),
        "noted, template default, and this process has other settings of": Job("d", JOB.judge, "p", N_PAIRS, None),
    }
    with open_shared(address) as other:
        for words, job in others.items():
            with pytest.raises(StoreMismatchError, match=words):
                other.worker.check(job)
        monkeypatch.setattr(workers_module, "__version__", "0.0.1")
        with pytest.raises(
            StoreMismatchError, match=r"works on this run with pairscale .*, and this .* pairscale 0\.0\.1"
        ):
            other.worker.check(JOB)
    assert (tmp_path / "notes").read_text() == ""  # nothing was asked
    with open_run(address) as store, store.transaction() as connection:
        assert get_fact(connection, "writer") is None  # those who were refused have written nothing


def test_other_texts_are_refused(address, tmp_path):
    finished([start(address, tmp_path / "notes", n_texts=4)])
    (found,) = finished([start(address, tmp_path / "notes", n_texts=4, text="other")])
    assert "StoreMismatchError: the database holds another text for" in found["error"]
    assert sum(asked_in(tmp_path / "notes").values()) == 6


def test_who_works_alone_and_who_does_not(address, one_there):
    with pytest.raises(StoreBusyError, match="the database is being written by another run"):
        open_run(address, write=True)
    one_there.close()
    with (
        open_run(address, write=True),
        pytest.raises(StoreBusyError, match="only processes with the same command share a run"),
    ):
        open_shared(address)


def test_leases(address, one_there):
    first = one_there.worker.lease(2)
    assert [(one.pair_id, one.asked, one.has_outcome) for one in first.pairs] == [(1, 0, False), (2, 0, False)]
    with open_shared(address) as other:
        other.worker.join(JOB, [(4, 0)], lambda: 0.0)  # the first has said what there is to do
        second = other.worker.lease(9)
        assert [one.pair_id for one in second.pairs] == [3]
        assert second.workers == 2
        assert not other.worker.lease(9).pairs
        with open_run(address) as reader:
            table = worker_table(reader)
            assert table.select("state", "leased").rows() == [("working", 2), ("working", 1)]
            assert ("2", "workers") in look_at(reader).tiles
    found = one_there.worker.lease(9)
    assert [one.pair_id for one in found.pairs] == [3]  # given back


@pytest.mark.parametrize(
    "fates",
    [["late", "late"], ["late", "read-only"], ["late", "read-only", "early", "late"], ["early", "late", "late"]],
)
def test_what_is_tried_again_after_several_failures_is_written_once(address, monkeypatch, fates):
    """The connection may be lost before or after the transaction was written, and the database be read-only."""
    with open_shared(address) as store:
        store.add_items([{"ID": f"{n}", "text": f"text {n}"} for n in range(10)])
        ids = store.add_pairs([{"custom_id": f"p{n}", "ID1": "0", "ID2": f"{n}"} for n in range(1, 10)])
        condition = store.add_condition(ps.Condition("noted"))
        store.worker.join(Job(condition, "noted", "p", 9, None), [(one, 0) for one in ids], lambda: 0.0)
        assert len(store.worker.lease(9).pairs) == 9
        fail_writes(monkeypatch, store, fates)
        entries = []
        for pair in ids:  # more entries come meanwhile
            attempt = {"attempt": 1, "attempted_at": "2026-01-01", "outcome": "win", "cost": 0.01}
            outcome = {"outcome": "win", "winner_pos": 1, "better_id": "0", "received_at": "2026-01-01"}
            entries.append(Entry(Asked(condition, (attempt,), outcome, pair)))
            try:
                store.writer.commit(entries)
            except (StoreConnectionError, StoreReadOnlyError):
                continue
            entries.clear()
        counts = store.counts()
        assert (counts["attempts"], counts["comparisons"]) == (9, 9)
        assert store.spent() == pytest.approx(0.09)
    assert ps.audit(address).passed


def test_clocks_do_not_matter(address, monkeypatch, caplog):
    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(hours=1)

    monkeypatch.setattr(workers_module, "datetime", Ahead)
    with open_shared(address) as store:
        store.worker.join(JOB, [(1, 0)], lambda: 0.0)
        assert [one.pair_id for one in store.worker.lease(1).pairs] == [1]
        seen = worker_table(store)["seen_at"].item()
    assert "the clock of this machine differs from the database's by 3,600 s" in caplog.text
    assert abs(datetime.fromisoformat(seen) - datetime.now(UTC)) < timedelta(minutes=30)


def test_money_is_granted_and_given_back(address):
    job = Job(JOB.condition_id, JOB.judge, "p", 3, 1.0)
    with open_shared(address) as one, open_shared(address) as two:
        one.worker.join(job, [(1, 0)], lambda: 0.3)
        two.worker.join(job, [], lambda: 0.3)
        assert one.worker.grant(0.2, 0.4).granted == pytest.approx(0.4)
        found = two.worker.grant(0.4, 0.5)
        assert (found.granted, found.spent, found.is_held) == (0.0, pytest.approx(0.3), True)
        assert two.worker.grant(0.2, 0.9).granted == pytest.approx(0.3)
        assert one.worker.grant(0.1, 0.1).granted == pytest.approx(0.1)  # gives 0.3 back
        assert two.worker.grant(0.4, 0.9).granted == pytest.approx(0.6)
        one.close()
        assert two.worker.grant(0.7, 0.7).granted == pytest.approx(0.7)


def test_a_database_that_cannot_be_used_is_told_in_a_line(postgres, address, monkeypatch, caplog):
    import psycopg

    def said(where):
        with pytest.raises(StoreError) as raised:
            ps.submit_pairs(pairs_of(3), "lexical", run=where, progress=False)
        assert "\n" not in str(raised.value)
        return str(raised.value)

    name = address.partition("@/")[2].partition("?")[0]
    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS pupil")
        connection.execute("CREATE ROLE pupil LOGIN")
        assert said(address.replace("tester@", "pupil@")).startswith(
            "the database does not let this user do it; ask its"
        )
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        assert said(address).startswith("the database may only be read (a replica, or set to read-only)")
    assert "the database cannot be opened: database" in said(address.replace(name, "nowhere"))
    wrong = postgres.network_address(name).replace("tester:", "tester:x")
    assert "the database cannot be opened: password authentication failed" in said(wrong)
    nowhere = "postgresql+psycopg://tester@127.0.0.1:1/x"
    refused = r"^the database does not answer \(connection failed: .*refused\); check"
    with pytest.raises(StoreConnectionError, match=refused):
        open_shared(nowhere)
    monkeypatch.setattr(sharing, "PATIENCE_S", 1.0)
    with pytest.raises(StoreConnectionError, match=refused):
        ps.submit_pairs(pairs_of(3), "lexical", run=nowhere, progress=False)
    assert "Trying again for" in caplog.text
