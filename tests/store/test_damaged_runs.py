"""A run that is continued on a file whose rows were made unreadable: nothing raw is raised, on any way of asking."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.core.errors import StoreDamagedError, StoreError
from tests.runtime.across import across
from tests.runtime.workflows import FUNCTIONS, WORKFLOWS, Call

DAMAGE = {
    "comparison": "UPDATE comparisons SET winner_pos = 'one'",
    "attempt": "UPDATE attempts SET cost = 'much', attempt = 'first'",
    "judge": "UPDATE conditions SET settings = '{'",
    "log": "UPDATE logs SET data = '{'",
    "fact": "UPDATE metadata SET value = '{' WHERE key NOT IN ('schema_version', 'writer')",
}


def damaged(workflow: str, event: str, folder: Path) -> tuple[Call, int]:
    """A finished run of which rows were made unreadable, and how many."""
    call = Call(run=str(folder / "run.db"), function="lexical")
    WORKFLOWS[workflow](call)
    with contextlib.closing(sqlite3.connect(call.run)) as file, file:
        return call, file.execute(DAMAGE[event]).rowcount


@across(FUNCTIONS, *DAMAGE)
def test_what_cannot_be_read_is_a_store_error_and_the_audit_reports_it(
    workflow: str, event: str, tmp_path: Path
) -> None:
    call, changed = damaged(workflow, event, tmp_path)
    assert ps.audit(call.run).passed == (changed == 0)
    with contextlib.suppress(StoreError):  # what is not needed need not be read; anything else that is raised fails
        WORKFLOWS[workflow](call)


@pytest.mark.parametrize(("workflow", "event"), [("pairs", "comparison"), ("pairs", "attempt"), ("ab", "log")])
def test_the_message_names_the_row(message_snapshot, workflow: str, event: str, tmp_path: Path) -> None:
    call, _ = damaged(workflow, event, tmp_path)
    with pytest.raises(StoreDamagedError) as refused:
        WORKFLOWS[workflow](call)
    message_snapshot(refused)
