"""A run that cannot be written for a while: nothing is asked meanwhile, and no answer is lost or asked for twice."""

import asyncio
import sqlite3
import threading
from collections import Counter

import pytest
from sqlalchemy import event

import pairscale as ps
from pairscale.store import policies
from pairscale.store.runfile import RunFile
from tests.noted import asked, asked_in, finished, none_left, pairs_of, start, texts_of, wait_for

__all__ = ["none_left"]

OPEN = 4


class Noted:
    """Notes what it is asked; the run can be written up to its twentieth question."""

    def __init__(self, pages):
        self.condition, self.asked, self._pages = ps.Condition("noted"), [], pages

    async def compare(self, pair):
        self.asked.append(pair.uid)
        if len(self.asked) == 20:
            self._pages["most"] = 1
        await asyncio.sleep(0.05)  # longer than the journal lingers
        return ps.Verdict.win(1, content="x" * 20_000)


@pytest.fixture
def pages(monkeypatch):
    """SQLite's own limit on pages, which gives the very error that a full disk gives; tests change it."""
    pages, made = {"most": 10**6}, RunFile.__init__

    def limited(self, *args, **more):
        made(self, *args, **more)

        @event.listens_for(self._engine, "begin")
        def limit(connection):
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages['most']}")

    monkeypatch.setattr(RunFile, "__init__", limited)
    monkeypatch.setattr(policies, "WRITE_RETRY_INTERVAL_S", 0.01)
    return pages


def judged(run, judge):
    return ps.submit_pairs(pairs_of(12), judge, run=run, concurrency=OPEN, progress=False).results.height


def ranked(run, judge):
    found = ps.rank(
        texts_of(12), judge=judge, run=run, concurrency=OPEN, max_comparisons=60, reliability=1.0, fit="laplace",
        progress="none",
    )  # fmt: skip
    return found.summary["committed_pairs"].item()


@pytest.mark.parametrize("asking", [judged, ranked])
def test_a_disk_that_is_full_for_a_while(tmp_path, monkeypatch, pages, asking):
    judge, told = Noted(pages), {}

    def notice(words):
        told[words.partition(";")[0]] = len(judge.asked)
        if "the disk is full" in words:
            threading.Timer(0.3, pages.update, [{"most": 10**6}]).start()

    monkeypatch.setattr(policies, "notice", notice)
    n = asking(tmp_path / "run.db", judge)
    assert len(set(judge.asked)) == len(judge.asked) == n
    (full, before), (again, after) = told.items()
    assert full.endswith("run.db: the disk is full")
    assert again == "the run can be written again"
    assert after - before <= OPEN  # what was chosen already
    assert ps.audit(tmp_path / "run.db").passed


class Holding:
    """Before its tenth question, it has another program take what the run needs to write."""

    condition = ps.Condition("holding")

    def __init__(self, take):
        self.asked, self._take = [], take

    async def compare(self, pair):
        if len(self.asked) == 10:
            self._take()
        self.asked.append(pair.uid)
        await asyncio.sleep(0.05)
        return ps.Verdict.win(1)


@pytest.mark.slow
def test_nothing_is_asked_while_a_ranking_waits_for_another_program(tmp_path, monkeypatch):
    """SQLite itself waits for up to thirty seconds, without a word."""
    monkeypatch.setattr(policies, "WRITE_RETRY_INTERVAL_S", 0.2)
    other = sqlite3.connect(tmp_path / "run.db", isolation_level=None, check_same_thread=False)
    at_end = []

    def take():
        other.execute("BEGIN EXCLUSIVE")
        threading.Timer(3.0, lambda: (at_end.append(len(judge.asked)), other.execute("ROLLBACK"))).start()

    judge = Holding(take)
    assert ranked(tmp_path / "run.db", judge) == 60
    assert len(judge.asked) == len(set(judge.asked)) == 60
    assert at_end[0] < 45  # of the 60, which take less than a second when nothing waits


@pytest.mark.slow
@pytest.mark.parametrize("setting", [None, "statement_timeout", "lock_timeout"])
def test_a_table_that_another_program_has_locked(address, monkeypatch, setting):
    import psycopg

    other, told = psycopg.connect(address.replace("+psycopg", "")), []
    if setting is not None:
        name = address.partition("@/")[2].partition("?")[0]
        other.execute(f"ALTER DATABASE \"{name}\" SET {setting} = '100ms'")
        other.commit()

    def take():
        other.execute("SET LOCAL statement_timeout = 0")
        other.execute("LOCK TABLE attempts IN ACCESS EXCLUSIVE MODE")
        if setting is None:  # nobody says anything: the database hangs, for longer than a question may take
            threading.Timer(8.0, other.rollback).start()

    def notice(words):
        told.append(words)
        if "Trying again" in words:
            threading.Timer(0.3, other.rollback).start()

    monkeypatch.setattr(policies, "notice", notice)
    judge = Holding(take)
    given = {"run": address, "concurrency": OPEN, "timeout": 4.0, "progress": False}
    with other:
        assert ps.submit_pairs(pairs_of(8), judge, **given).results.height == 28
    assert len(judge.asked) == len(set(judge.asked))
    assert bool(told) == (setting is not None)
    if told:
        assert told[0].startswith("the database has not done what it was asked for in time; see its statement_timeout")


def _read_only(connection, name, is_on):
    connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {"on" if is_on else "off"}')
    if is_on:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
            [name],
        )


def _revoked(connection, _, is_on):
    how = ("REVOKE", "FROM") if is_on else ("GRANT", "TO")
    connection.execute(f"{how[0]} INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public {how[1]} owner_only")


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["judge", "rank", "ab"])
@pytest.mark.parametrize("change", [_read_only, _revoked])
def test_a_database_that_may_only_be_read_for_a_while(postgres, address, tmp_path, verb, change):
    import psycopg

    notes = tmp_path / "notes"
    name = address.partition("@/")[2].partition("?")[0]
    with psycopg.connect(postgres.address("postgres").replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DO $$ BEGIN CREATE ROLE owner_only LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
        connection.execute(f'ALTER DATABASE "{name}" OWNER TO owner_only')
    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("ALTER SCHEMA public OWNER TO owner_only")
        given = {"verb": verb, "n_texts": 40 if verb == "ab" else 16, "latency": 0.1, "steps": 80}
        where = address.replace("tester@", "owner_only@")
        process = start(where, notes, **given)
        wait_for(lambda: asked(notes) > 25)
        change(connection, name, True)
        threading.Event().wait(2.0)
        before = asked(notes)
        threading.Event().wait(2.0)
        assert asked(notes) == before  # nothing is asked that could not be written
        change(connection, name, False)
        (found,) = finished([process])
    assert found.get("error") is None, found
    assert set(asked_in(notes).values()) == {1}, found
    assert "Trying again" in found["told"]
    assert ps.audit(address).passed
    attempts = "SELECT custom_id, attempt, outcome, error_message FROM attempts JOIN pairs USING (pair_id)"
    with psycopg.connect(address.replace("+psycopg", "")) as connection:
        recorded = Counter(row[0] for row in connection.execute(attempts))
        further = [row for row in connection.execute(attempts) if recorded[row[0]] > 1]
    assert (recorded.total(), further) == (asked(notes), []), found
