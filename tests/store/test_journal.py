"""The journal of an adaptive run: in order, all of a step or nothing, never more than happened, never silently less."""

import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import polars as pl
import pytest
from sqlalchemy import event

from pairscale.core.errors import InputError, StoreError, StoreFullError
from pairscale.store.audit import check_evidence
from pairscale.store.policies import JournalWriter
from pairscale.store.runfile import open_run
from pairscale.store.writer import Asked, Entry
from tests.store.entries import WIN, answered, asked, attempt, prepared, step_of


def refit(values: dict, scores=(), blobs=None) -> Entry:
    return Entry(rows=[("round_log", values)], scores=scores, blobs=blobs or {})


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path):
    with prepared(tmp_path / "run.db" if request.param == "file" else None) as made:
        yield made


def test_everything_comes_out_as_it_went_in(store):
    items = [{"refit_id": 1, "ID": i, "theta_mean": n / 3} for n, i in enumerate("ab")]
    with JournalWriter(store) as journal:
        journal.event({"event": "start", "seed": 7})
        journal.put(Entry(rows=[("adaptive_open", {"step_id": 1}), ("adaptive_open", {"step_id": 2})]))
        journal.put(
            step_of(
                {"step_id": 1, "status": "committed", "Y": 1, "mu_i": 1 / 3},
                asked(1, attempt(outcome="error", error_code="timeout"), attempt(2, cost=0.5)),
            )
        )
        journal.put(step_of({"step_id": 2, "status": "starved"}))
        journal.put(refit({"refit_id": 1, "reliability_EAP": 0.9}, items, {"belief": b"\0\xff", "warm": b""}))
        journal.put(refit({"refit_id": 2, "reliability_EAP": 0.95}, pl.DataFrame(items), {"belief": b"two"}))
        journal.put(refit({"refit_id": 3}))
    assert store.read_log("adaptive_events") == [{"event": "start", "seed": 7}]
    assert store.read_log("adaptive_open") == [{"step_id": 1}, {"step_id": 2}]
    assert [(row["step_id"], row["status"], row.get("Y"), row.get("mu_i")) for row in store.read_log("step_log")] == [
        (1, "committed", 1, 1 / 3), (2, "starved", None, None),
    ]  # fmt: skip
    assert store.read_log("round_log") == [
        {"refit_id": 1, "reliability_EAP": 0.9},
        {"refit_id": 2, "reliability_EAP": 0.95},
        {"refit_id": 3},
    ]
    first, second = store.read_log("item_log")
    assert first["columns"] == second["columns"] == {"refit_id": [1, 1], "ID": ["a", "b"], "theta_mean": [0, 1 / 3]}
    assert (first["refit_id"], second["refit_id"]) == (1, 2)
    assert (store.read_blob("belief", 1), store.read_blob("warm", 1)) == (b"\0\xff", b"")
    assert store.read_blob("belief", 3) is store.read_blob("other", 1) is None
    results = store.results("judge")
    assert results.select("custom_id", "ID1", "ID2", "better_id", "outcome", "cost").rows() == [
        ("step-000001", "a", "b", "a", "win", 0.5)
    ]
    assert store.failed_attempts()["error_code"].to_list() == ["timeout"]
    assert store.counts() == {"items": 2, "pairs": 1, "attempts": 2, "comparisons": 1}
    assert (store.log_length("step_log"), store.log_length("none"), store.spent()) == (2, 0, 0.5)
    assert check_evidence(store).problems == []


def test_an_outcome_needs_its_attempt(message_snapshot, store):
    settled = Asked("judge", (), WIN, uid="step-000001", ID1="a", ID2="b")
    with pytest.raises(InputError) as refused:
        with JournalWriter(store) as journal:
            journal.put(step_of({"step_id": 1}, settled))
    message_snapshot(refused)
    assert store.counts()["pairs"] == store.log_length("step_log") == 0


def test_an_error_comes_with_the_next_call_and_nothing_is_written_after_it(store):
    journal = JournalWriter(store)
    journal.put(answered(1))
    journal.flush()
    journal.put(step_of({"step_id": 2}, asked(2, ID2="unknown")))
    journal.put(answered(3))
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        journal.flush()
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        journal.put(answered(4))
    journal.close()  # it was said
    assert [row["step_id"] for row in store.read_log("step_log")] == [1]
    assert store.counts()["pairs"] == 1
    assert check_evidence(store).problems == []


@pytest.mark.usefixtures("impatient")
def test_a_full_disk_leaves_the_beginning(tmp_path):
    """SQLite's own limit on pages gives the very error that a full disk gives."""
    with prepared(tmp_path / "run.db") as store:

        @event.listens_for(store._engine, "begin")
        def limit(connection):
            connection.exec_driver_sql("PRAGMA max_page_count=120")

        journal = JournalWriter(store)

        def fill():
            for step in range(1, 2000):
                journal.put(answered(step, content="x" * 500))
                if step % 7 == 0:
                    journal.flush()

        with pytest.raises(StoreFullError, match="make room"):
            fill()
        with pytest.raises(StoreFullError):
            journal.flush()
        journal.close()
    check_prefix(tmp_path / "run.db", at_least=50)


def read_back(path, steps: int) -> float:
    wide = {f"column_{n}": n / 7 if n % 3 else None for n in range(60)}
    with open_run(path, write=True) as store:
        with JournalWriter(store) as journal:
            for step in range(1, steps + 1):
                journal.put(step_of(wide | {"step_id": step}))
        took = float("inf")
        for _ in range(3):  # the best of three: others may need the machine
            start = time.process_time()
            rows = store.read_log("step_log")
            took = min(took, time.process_time() - start)
        assert [row["step_id"] for row in rows] == list(range(1, steps + 1))
        assert rows[-1]["column_59"] == 59 / 7
        assert check_evidence(store).problems == []
    return took


@pytest.mark.validate
def test_fifty_thousand_steps_are_read_in_two_seconds(tmp_path):
    took = read_back(tmp_path / "run.db", 50_000)
    print(f"\n50,000 steps read in {took:.2f} s")
    assert took < 2


# kill -9

CHILD = textwrap.dedent("""
    import sys
    import pairscale as ps
    from pairscale.store.runfile import open_run
    from pairscale.store.policies import JournalWriter
    from pairscale.store.writer import Asked, Entry

    with open_run(sys.argv[1], write=True) as store:
        store.add_items([{"ID": i, "text": i} for i in "ab"])
        store.add_condition(ps.Condition("judge"), "judge")
        step, refits, events = (store.log_length(name) for name in ("step_log", "round_log", "adaptive_events"))

        def after(step):
            n = step // 50
            if n * 50 == step and n > refits:
                journal.put(Entry(rows=[("round_log", {"refit_id": n, "steps": step})],
                                  scores=[{"ID": "a", "theta": n / 3}], blobs={"belief": b"z" * n}))
            if n * 50 == step and n > events:
                journal.event({"event": "refit", "after": step})

        with JournalWriter(store) as journal:
            after(step)
            while True:
                step += 1
                tries = [{"attempt": n, "attempted_at": "x", "outcome": "error", "error_code": "timeout"}
                         for n in range(1, step % 3 + 1)]
                tries.append({"attempt": len(tries) + 1, "attempted_at": "x", "outcome": "win", "content": "y" * 300})
                settled = {"outcome": "win", "winner_pos": 1, "better_id": "a", "received_at": "x"}
                journal.put(Entry(rows=[("adaptive_open", {"step_id": step})]))
                asked = Asked("judge", tries, settled, None, f"step-{step:06d}", "a", "b", {"step_id": step})
                journal.put(Entry(asked, [("step_log", {"step_id": step, "Y": 1, "mu": step / 7})]))
                after(step)
                if step % 100 == 0:
                    journal.flush()
                    print(step, flush=True)
""")


def check_prefix(path, at_least: int = 0, kills: int = 0) -> int:
    """The file holds the beginning of what happened, whole steps only; returns how many."""
    with open_run(path) as store:
        assert check_evidence(store).problems == []
        numbers = [row["step_id"] for row in store.read_log("step_log")]
        steps = len(numbers)
        assert numbers == list(range(1, steps + 1))
        assert steps >= at_least, "a step that was flushed is lost"
        rounds, items, events = (store.read_log(name) for name in ("round_log", "item_log", "adaptive_events"))
        opened = store.log_length("adaptive_open")
        for number, found in enumerate(rounds, start=1):
            assert (found["refit_id"], found["steps"]) == (number, number * 50)
            assert store.read_blob("belief", number) == b"z" * number
        assert [entry["refit_id"] for entry in items] == [entry["refit_id"] for entry in rounds]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        names = connection.execute("SELECT custom_id, json_extract(columns, '$.step_id') FROM pairs ORDER BY pair_id")
        assert names.fetchall() == [(f"step-{n:06d}", n) for n in range(1, steps + 1)]
        settled = connection.execute("SELECT pair_id, attempt_id FROM comparisons ORDER BY comparison_id").fetchall()
        last = "SELECT pair_id, max(attempt_id), count(*) FROM attempts GROUP BY pair_id ORDER BY pair_id"
        tried = connection.execute(last).fetchall()
        assert settled == [(pair, attempt_id) for pair, attempt_id, _ in tried]
        assert [pair for pair, _ in settled] == list(range(1, steps + 1))
        if opened:  # of the child: how often each was tried, what was open, and how many refits there were
            assert [count for _, _, count in tried] == [n % 3 + 1 for n in range(1, steps + 1)]
            assert steps <= opened <= steps + kills
            assert len(rounds) in {steps // 50, (steps - 1) // 50}
            assert len(events) in {len(rounds), len(rounds) - 1}
    return steps


def kill_and_check(path, kills: int, seed: int) -> int:
    rng = random.Random(seed)
    steps = 0
    for kill in range(kills):
        process = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)
        flushed = steps
        for _ in range(rng.randint(1, 4)):
            flushed = int(process.stdout.readline())
        time.sleep(rng.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        flushed = max(
            [flushed, *(int(line) for line in process.stdout.read().splitlines(keepends=True) if "\n" in line)]
        )
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        steps = check_prefix(path, at_least=flushed, kills=kill + 1)
    return steps


@pytest.mark.slow
def test_kill_9_leaves_an_exact_beginning(tmp_path):
    assert kill_and_check(tmp_path / "run.db", 3, seed=1) >= 3 * 100


@pytest.mark.validate
def test_kill_9_a_hundred_times(tmp_path):
    for part in range(5):
        steps = kill_and_check(tmp_path / f"run-{part}.db", 20, seed=part + 2)
        print(f"\n20 kills, {steps} steps: an exact beginning each time")
