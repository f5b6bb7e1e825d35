"""The connection to a database is lost, before or after a transaction was written: everything is written once."""

import pytest

from pairscale.core.errors import StoreConnectionError, StoreReadOnlyError
from pairscale.store.policies import JournalWriter
from pairscale.store.runfile import open_run
from pairscale.store.writer import Entry
from tests.noted import fail_writes


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
        for number in range(1, 10):
            entries = [Entry(rows=[("step_log", {"step_id": number})])]
            for _ in range(len(fates) + 1):
                try:
                    store.writer.commit(entries)
                    break
                except (StoreConnectionError, StoreReadOnlyError):
                    continue
        assert [row["step_id"] for row in store.read_log("step_log")] == list(range(1, 10))


def test_a_journal_waits_for_a_database_that_is_away(monkeypatch, caplog):
    from pairscale.store import policies

    monkeypatch.setattr(policies, "WRITE_RETRY_INTERVAL_S", 0.001)
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
