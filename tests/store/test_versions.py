"""Run files of other versions, copies of run files, and adaptive runs that are exported and imported."""

import contextlib
import json
import sqlite3
import subprocess
import sys
import textwrap

import pytest

import pairscale as ps
from pairscale.core.errors import FileFormatError, StoreDamagedError, StoreMismatchError
from pairscale.core.files import write_table
from pairscale.store.audit import check_evidence
from pairscale.store.policies import JournalWriter
from pairscale.store.runfile import open_run
from pairscale.store.writer import Entry
from tests.store.entries import asked, attempt, step_of

ITEMS = [{"ID": i, "text": f"text {i}", "grade": n} for n, i in enumerate("abc")]


def of_judge(condition_id: str, step: int, **more) -> Entry:
    return step_of({"step_id": step, "mu": step / 7}, asked(step, attempt(**more), condition=condition_id))


def continue_run(store) -> None:
    """One more step of the same judge."""
    with JournalWriter(store) as journal:
        journal.put(of_judge(store.conditions()["condition_id"][0], 8))


def fill(store) -> None:
    store.add_items(ITEMS)
    store.add_pairs([{"custom_id": "a:c#1", "ID1": "a", "ID2": "c", "columns": {"why": "x"}}])
    condition_id = store.add_condition(ps.Condition("judge", model="m", settings={"t": 1}))
    with JournalWriter(store) as journal:
        journal.event({"event": "start", "ids": ["a", "b", "ü"], "tiny": 5e-324})
        for step in range(1, 8):
            journal.put(Entry(rows=[("adaptive_open", {"step_id": step})]))
            journal.put(of_judge(condition_id, step, cost=0.5, raw_response={"ü": [1, None]}))
        scores, kept = [{"ID": "a", "theta": 1 / 3}], {"belief": bytes(range(256))}
        journal.put(Entry(rows=[("round_log", {"refit_id": 1, "eap": 0.1})], scores=scores, blobs=kept))
    store.set_meta("adaptive", {"version": 1})
    store.log("mine", [{"b": 1, "a": None}])


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "run.db"
    with open_run(path, write=True) as store:
        fill(store)
    return path


def tables_of(path) -> set[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@pytest.mark.parametrize("version", [6, 3, 0, "5", None])
@pytest.mark.parametrize("write", [True, False])
def test_any_other_version_is_refused_and_left(message_snapshot, made, version, write):
    with open_run(made, write=True) as store:
        store.set_meta("schema_version", version)
    with pytest.raises(StoreDamagedError) as refused:
        open_run(made, write=write)
    message_snapshot(refused)
    with contextlib.closing(sqlite3.connect(made)) as connection:
        stored = connection.execute("SELECT value FROM metadata WHERE key = 'schema_version'").fetchone()
    assert stored == (json.dumps(version),) or stored == (version,)


# Copies


def dump(path) -> dict[str, list]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        found = {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
            for name in sorted(tables_of(path))
        }
    found["metadata"] = [fact for fact in found["metadata"] if fact[0] not in {"writer", "holder"}]
    return found


def test_a_copy_is_the_same_to_the_letter(made, tmp_path):
    with open_run(made) as store:
        store.copy_to(tmp_path / "copy.db")
    assert dump(tmp_path / "copy.db") == dump(made)
    with open_run(tmp_path / "copy.db") as copied:
        assert check_evidence(copied).problems == []


def test_a_copy_over_the_remains_of_a_killed_run(made, tmp_path):
    """What a killed process left in the write-ahead log must not come back into the copy."""
    target = tmp_path / "killed.db"
    script = textwrap.dedent(f"""
        import os, signal, pairscale as ps
        store = ps.open_run({str(target)!r}, write=True)
        store.add_items({{"ID": str(n), "text": "t" * 500}} for n in range(300))
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert target.with_name("killed.db-wal").stat().st_size > 0
    with open_run(made) as store:
        store.copy_to(target)
    assert dump(target) == dump(made)


# Export and import


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_adaptive_run_goes_out_and_in(made, tmp_path, suffix):
    path = ps.export(made, tmp_path / f"out.{suffix}")
    assert path.name == f"out.{suffix}"
    copy = tmp_path / "copy.db"
    assert ps.import_run(path, copy, samples=ITEMS) == 7
    assert ps.import_run(path, copy) == 0  # the same again is fine
    ours, theirs = dump(made), dump(copy)
    assert [row for row in theirs["logs"] if row[0] != "mine"] == [row for row in ours["logs"] if row[0] != "mine"]
    assert theirs["blobs"] == ours["blobs"]
    for table in ("pairs", "conditions", "comparisons", "items"):
        assert theirs[table] == ours[table]
    raw = 12  # a raw reply may quote texts, and is left out
    assert [row[:raw] + row[raw + 1 :] for row in theirs["attempts"]] == [
        row[:raw] + row[raw + 1 :] for row in ours["attempts"]
    ]
    assert {row[raw] for row in theirs["attempts"]} == {None} != {row[raw] for row in ours["attempts"]}
    with open_run(copy) as store, open_run(made) as original:
        assert check_evidence(store).problems == []
        assert store.read_log("mine") == [{"b": 1, "a": None}]
        assert store.get_meta("adaptive") == {"version": 1}
        assert store.results().equals(original.results())
    with open_run(copy, write=True) as store:
        continue_run(store)
        assert check_evidence(store).problems == []


def test_two_runs_are_not_mixed(message_snapshot, made, tmp_path):
    path = ps.export(made, tmp_path / "out.csv")
    with open_run(tmp_path / "other.db", write=True) as store:
        store.log("mine", [{"b": 2}])
    before = dump(tmp_path / "other.db")
    with pytest.raises(StoreMismatchError) as refused:
        ps.import_run(path, tmp_path / "other.db", samples=ITEMS)
    message_snapshot(refused)
    assert dump(tmp_path / "other.db") == before


def test_an_export_is_of_one_moment(made, tmp_path, monkeypatch):
    """A run that continues between the table and the logs is in neither."""
    logged = ps.export(made, tmp_path / "before.csv").with_name("before.csv.logs.jsonl").read_text()

    def interrupted(frame, path):
        with open_run(made, write=True) as store:
            continue_run(store)
        return write_table(frame, path)

    monkeypatch.setattr("pairscale.store.transfer.write_table", interrupted)
    path = ps.export(made, tmp_path / "out.csv")
    assert path.with_name("out.csv.logs.jsonl").read_text() == logged
    assert path.read_text() == (tmp_path / "before.csv").read_text()
    with open_run(made) as store:
        assert store.results().height == 8  # it did continue


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"mu":', '"nu":', 1).replace('\\"mu\\":', '\\"nu\\":', 1),
        lambda text: text[: len(text) // 2],
        lambda text: text + "\n",
        lambda text: text.splitlines(keepends=True)[0],
    ],
)
def test_a_second_file_that_was_changed_is_refused(message_snapshot, made, tmp_path, change):
    path = ps.export(made, tmp_path / "out.csv")
    beside = tmp_path / "out.csv.logs.jsonl"
    text = beside.read_text("utf-8")
    assert change(text) != text
    beside.write_text(change(text), "utf-8")
    with pytest.raises(FileFormatError) as refused:
        ps.import_run(path, tmp_path / "copy.db", samples=ITEMS)
    message_snapshot(refused)
