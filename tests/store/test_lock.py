"""A lock file that is tidied away, copies of a run file, and who may read it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, StoreError
from pairscale.store.runfile import open_run

PAIRS = ps.make_pairs(ps.synthetic_essays(5, seed=1))
WRITER = """
import sys
import time
import pairscale as ps
with ps.open_run("run.db", write=True) as store:
    store.add_items([{"ID": "a", "text": "one"}])
    print("open", flush=True)
    sys.stdin.readline()
    store.add_items([{"ID": "b", "text": "two"}])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def writer(folder):
    """Another process that has the run file open for writing, and writes once more after a line on its input."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_writer_whose_lock_file_is_gone_ends_with_a_line(writer, how):
    Path("run.db.lock").unlink()
    if how == "replaced":
        Path("run.db.lock").touch()
    _, errors = writer.communicate("continue\n")
    assert writer.returncode == 1
    assert "run.db.lock was deleted or replaced while the run was writing" in errors.splitlines()[-1]
    with open_run("run.db", write=True) as store:
        assert store.items()["ID"].to_list() == ["a"]
    assert ps.audit("run.db", closed=True).passed


def test_a_run_whose_lock_file_is_deleted_stops_asking(message_snapshot, folder):
    asked = []

    def judge(A, B):
        asked.append((A["ID"], B["ID"]))
        if len(asked) == 3:
            Path("run.db.lock").unlink()
        return {"is_valid": True, "Y": 1}

    with pytest.raises(StoreError) as refused:
        ps.submit_pairs(PAIRS, ps.FunctionJudge(judge, name="mine"), run="run.db", concurrency=1, progress=False)
    message_snapshot(refused)
    assert len(asked) == 3
    again = ps.submit_pairs(PAIRS, ps.FunctionJudge(judge, name="mine"), run="run.db", progress=False)
    assert again.results.height == PAIRS.height
    assert len(asked) == PAIRS.height + 1
    assert ps.audit("run.db").passed


def test_export_makes_a_whole_copy_at_any_time(folder):
    ps.submit_pairs(PAIRS[:4], "lexical", run="run.db", progress=False)
    with open_run("run.db", write=True) as store:
        store.add_items([{"ID": "new", "text": "just written"}])
        assert ps.export("run.db", "copy.db", copy=True) == Path("copy.db")
        assert ps.audit("copy.db").rows == ps.audit("run.db").rows
    ps.export("run.db", "closed.db", copy=True)
    assert ps.audit("closed.db", digest=ps.audit("run.db").digest, closed=True).passed
    done = ps.submit_pairs(PAIRS, "lexical", run="closed.db", progress=False)
    assert done.results.height == PAIRS.height


def test_a_copy_replaces_nothing_and_takes_no_options_of_tables(message_snapshot, folder):
    ps.submit_pairs(PAIRS[:2], "lexical", run="run.db", progress=False)
    Path("there.db").write_text("something else")
    with pytest.raises(InputError) as refused:
        ps.export("run.db", "there.db", copy=True)
    message_snapshot(refused)
    assert Path("there.db").read_text() == "something else"
    with pytest.raises(InputError) as refused:
        ps.export("run.db", "copy.db", copy=True, prompt="Why?")
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.export("run.db", "copy.csv", copy=True)
    message_snapshot(refused)
    with pytest.raises(StoreError) as refused:
        ps.export("none.db", "copy.db", copy=True)
    message_snapshot(refused)
    assert not Path("copy.db").exists()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_only_their_owner_may_read_run_files_and_copies(folder):
    before = os.umask(0o022)
    try:
        with open_run("run.db", write=True) as store:
            store.add_items([{"ID": "a", "text": "one"}])
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        ps.export("run.db", "copy.db", copy=True)
    finally:
        os.umask(before)
    assert {name: mode for name, mode in modes.items() if not name.endswith(".lock")} == {
        "run.db": 0o600, "run.db-shm": 0o600, "run.db-wal": 0o600,
    }  # fmt: skip
    assert stat.S_IMODE(Path("copy.db").stat().st_mode) == 0o600
    Path("run.db").chmod(0o640)  # as its owner wants it
    ps.submit_pairs(PAIRS[:2], "lexical", run="run.db", progress=False)
    assert stat.S_IMODE(Path("run.db").stat().st_mode) == 0o640


def test_a_copy_of_the_file_alone_holds_what_was_written(writer):
    shutil.copy("run.db", "copy.db")  # without the write-ahead log beside it
    assert ps.audit("copy.db").rows == {"items": 1}
