"""The run file: what goes in comes out, one writer, many readers, and clear words when it cannot be used."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest
from sqlalchemy import event

import pairscale as ps
from pairscale.core.errors import StoreBusyError, StoreDamagedError, StoreError, StoreMismatchError
from pairscale.core.tables import RESULTS
from pairscale.store.runfile import open_run
from pairscale.store.writer import Asked, Entry

ITEMS = [{"ID": i, "text": f"text {i}", "grade": n} for n, i in enumerate("abc")]
PAIRS = [{"custom_id": f"{i}:{j}#1", "ID1": i, "ID2": j, "columns": {"why": "x"}} for i, j in ("ab", "ac", "bc")]


def win(pair_id: int, position: int = 1, better: str = "a", **more) -> Asked:
    values = {"attempt": 1, "attempted_at": "2026-01-01T00:00:00", "outcome": "win", **more}
    comparison = {"outcome": "win", "winner_pos": position, "better_id": better, "received_at": "2026-01-01T00:00:00"}
    return Asked("", [values], comparison, pair_id)


def error(pair_id: int, *, replaces: bool = False) -> Asked:
    values = {
        "attempt": 1, "attempted_at": "2026-01-01T00:00:00", "outcome": "error", "error_code": "timeout",
        "error_message": "slow",
    }  # fmt: skip
    comparison = {"outcome": "error", "received_at": "2026-01-01T00:00:00"}
    return Asked("", [values], comparison, pair_id, replaces=replaces)


def record(store, answers, condition=None) -> None:
    """Write answers under a condition, in one transaction."""
    store.writer.commit([Entry(replace(answer, condition_id=condition or store.condition)) for answer in answers])


@pytest.fixture
def store(tmp_path):
    with open_run(tmp_path / "run.db", write=True) as opened:
        opened.add_items(ITEMS)
        opened.numbers = opened.add_pairs(PAIRS)
        opened.condition = opened.add_condition(ps.Condition("judge", model="m", settings={"t": 1}))
        yield opened


def test_what_goes_in_comes_out(store):
    assert store.numbers == [1, 2, 3]
    reply = {"a": [1, "ü"]}
    record(store, [win(1, cost=0.5, total_tokens=7, content="yes", raw_response=reply), win(2, 2, "c")])
    frame = store.results(store.condition, raw=True)
    assert frame.columns[: len(RESULTS)] == list(RESULTS)
    assert frame.select("custom_id", "ID1", "ID2", "better_sample", "better_id", "model", "outcome").rows() == [
        ("a:b#1", "a", "b", "SAMPLE_1", "a", "m", "win"),
        ("a:c#1", "a", "c", "SAMPLE_2", "c", "m", "win"),
    ]
    assert json.loads(frame["raw_response"][0]) == reply
    assert frame["raw_response"][1] is None
    assert store.items().rows() == [("a", "text a", 0), ("b", "text b", 1), ("c", "text c", 2)]
    [condition] = store.conditions().to_dicts()
    assert (condition["win"], condition["error"], condition["attempts"]) == (2, 0, 2)
    assert (condition["cost"], condition["total_tokens"]) == (0.5, 7)
    assert store.counts() == {"items": 3, "pairs": 3, "attempts": 2, "comparisons": 2}


def test_an_error_gives_way_to_an_answer_and_stays_in_the_attempts(store):
    record(store, [error(1), win(2)])
    before = store.progress(store.condition)
    assert (before.answered, before.failed, dict(before.attempts)) == ({2}, {1}, {1: 1, 2: 1})
    record(store, [replace(win(1), replaces=True)])
    after = store.progress(store.condition)
    assert (after.answered, after.failed, dict(after.attempts)) == ({1, 2}, frozenset(), {1: 2, 2: 1})
    assert store.failed_attempts().select("ID1", "ID2", "error_code").rows() == [("a", "b", "timeout")]


def test_a_changed_text_is_an_error_that_names_it(store):
    with pytest.raises(StoreMismatchError, match="'b'"):
        store.add_items([ITEMS[0], {"ID": "b", "text": "another"}])
    store.add_items(ITEMS)  # the same again is fine
    assert store.counts()["items"] == 3


DURABLE = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def pragmas(store) -> dict[str, object]:
    with store.transaction() as connection:
        return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in DURABLE}


def test_durable_settings_are_on(tmp_path, store):
    assert pragmas(store) == DURABLE


def test_one_writer_at_a_time_and_the_error_says_who(message_snapshot, tmp_path, store):
    script = f"import pairscale as ps\nps.open_run({str(tmp_path / 'run.db')!r}, write=True)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        f"StoreBusyError: {tmp_path / 'run.db'} is being written by another run (process {os.getpid()}" in done.stderr
    )
    with pytest.raises(StoreBusyError) as refused:
        open_run(tmp_path / "run.db", write=True)
    message_snapshot(refused)


@pytest.mark.slow
def test_readers_cannot_take_the_log_from_under_a_writer(tmp_path):
    """A reader in the writer's own process, then one in another: what is written later survives a kill all the same."""
    path = tmp_path / "run.db"
    reader = "import sys; from pairscale.store.runfile import open_run; open_run(sys.argv[1]).close()"
    script = f"""
import os, signal, subprocess, sys
from pairscale.store.runfile import open_run
store = open_run(sys.argv[1], write=True)
store.log("mine", [{{"n": 1}}])
open_run(sys.argv[1]).close()
subprocess.run([sys.executable, "-c", {reader!r}, sys.argv[1]], check=True, timeout=600)
store.log("mine", [{{"n": 2}}])
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script, path], check=False, timeout=600).returncode == -9
    with open_run(path) as store:
        assert store.read_log("mine") == [{"n": 1}, {"n": 2}]


def test_a_file_is_made_whole_or_not_at_all(tmp_path):
    """Whatever stops the making of the tables leaves an empty file, which the next run completes."""
    from pairscale.store import schema

    def stop(*_args, **_more):
        raise RuntimeError("killed")

    event.listen(schema.comparisons, "before_create", stop)
    try:
        with pytest.raises(RuntimeError):
            open_run(tmp_path / "run.db", write=True)
    finally:
        event.remove(schema.comparisons, "before_create", stop)
    with contextlib.closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    with open_run(tmp_path / "run.db", write=True) as store:
        assert store.counts()["pairs"] == 0


@pytest.mark.parametrize("content", [b"this is a letter, not a database", b"\x89PNG\r\n\x1a\n" + b"\0" * 100])
def test_something_else_is_left_as_it_is(message_snapshot, tmp_path, content):
    path = tmp_path / "run.db"
    path.write_bytes(content)
    with pytest.raises(StoreDamagedError) as refused:
        open_run(path, write=True)
    message_snapshot(refused)
    assert path.read_bytes() == content


@pytest.mark.parametrize("url", ["nosuchdialect://x", "postgresql+psycopg://u@h:port/d"])
def test_an_address_that_is_none(message_snapshot, url):
    with pytest.raises(StoreError) as refused:
        open_run(url)
    message_snapshot(refused)


def test_a_damaged_file_is_an_error_never_a_fresh_start(tmp_path):
    path = tmp_path / "run.db"
    with open_run(path, write=True) as store:
        store.add_items({"ID": str(n), "text": "t" * 500} for n in range(200))
    data = bytearray(path.read_bytes())
    data[100:8000] = b"\xff" * 7900
    path.write_bytes(data)
    with pytest.raises(StoreDamagedError):
        with open_run(path, write=True) as store:
            store.items()
    assert path.read_bytes()[:16] == b"SQLite format 3\0"


def test_without_wal_it_says_so_once_and_works(tmp_path, monkeypatch, caplog):
    """A file system without shared memory answers the request for write-ahead logging with another mode."""
    from pairscale.store import database

    monkeypatch.setattr(
        database, "_write_ahead", lambda connection: connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
    )
    with open_run(tmp_path / "run.db", write=True) as store:
        store.add_items(ITEMS)
        assert store.counts()["items"] == 3
    assert [r.getMessage() for r in caplog.records].count(
        f"{tmp_path / 'run.db'}: this file system has no write-ahead logging; readers may have to wait"
    ) == 1


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_export_and_import_go_round(tmp_path, store, suffix):
    more = {"cost": 0.25, "total_tokens": 12, "content": 'He said "a, b"\nand left'}
    record(store, [win(1, **more), error(2), win(3, 2, "c")])
    path = ps.export(tmp_path / "run.db", tmp_path / f"out.{suffix}")
    copy = tmp_path / "copy.db"
    assert ps.import_run(path, copy, samples=ITEMS) == 3
    assert ps.import_run(path, copy) == 0
    with open_run(copy) as other:
        ours, theirs = store.results(), other.results()
        assert theirs.drop("received_at").equals(ours.drop("received_at"))
        assert other.conditions()["condition_id"].to_list() == [store.condition]
