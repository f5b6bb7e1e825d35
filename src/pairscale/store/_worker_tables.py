"""What the workers of one run keep in its PostgreSQL database: who is there, which pairs and questions are whose.

It is no evidence: these tables are cleared when the first worker begins (an answer that is not written down yet stays
until it is), and no export has them. All times are those of
the database's clock; the clocks of workers are compared with it, and used for nothing.
"""

from __future__ import annotations

from sqlalchemy import (
    DDL,
    Column,
    DateTime,
    Float,
    Integer,
    MetaData,
    Sequence,
    SmallInteger,
    String,
    Table,
    Text,
    text,
)

__all__ = [
    "ALIVE", "ASK", "BEGIN_WRITE", "JUST_STARTED", "LATE", "LEASE", "LONG_AGO", "REPLACE", "TAKE", "coordination",
    "late_answers", "leases", "questions", "workers",
]  # fmt: skip

_IS_YOUNG = "pg_postmaster_start_time() > now() - interval '60 seconds'"
JUST_STARTED = text(f"SELECT {_IS_YOUNG} AND to_regclass('workers') IS NOT NULL")
"""Whether the database has just been started, so that workers may still be on their way back to it."""
LONG_AGO = text(f"now() - CASE WHEN {_IS_YOUNG} THEN interval '20 seconds' ELSE interval '5 seconds' END")
"""A worker may be away for so long before its pairs are given to others, longer after a restart of the database."""

coordination = MetaData()

workers = Table(
    "workers",
    coordination,
    Column("worker", Integer, primary_key=True),  # 0 is what was spent before the first of them
    Column("who", Text, nullable=False),
    Column("version", Text),
    Column("condition_id", String(64)),
    Column("judge", Text),  # the condition, in words
    Column("plan", String(64)),  # of all pairs, texts or cases
    Column("settings", String(64)),
    Column("role", Text),  # "leads", "answers", or null where all do the same
    Column("concurrency", Integer),
    Column("ending", Text),  # of one that led: "done", "interrupted", or what went wrong
    Column("max_cost", Float),
    Column("clock_s", Float),  # how far its clock is ahead of the database's
    Column("joined_at", DateTime(timezone=True)),
    Column("seen_at", DateTime(timezone=True)),
    Column("missed_at", DateTime(timezone=True)),  # since when its lock is gone
    Column("ended_at", DateTime(timezone=True)),
    Column("asked", Integer, nullable=False),
    Column("answered", Integer, nullable=False),
    Column("spent", Float, nullable=False),
    Column("granted", Float, nullable=False),  # what it may spend, what it has spent included
)

_FREE = "CREATE INDEX leases_that_are_free ON leases (priority, pair_id) WHERE worker IS NULL"
leases = Table(
    "leases",
    coordination,
    Column("pair_id", Integer, primary_key=True, autoincrement=False),
    Column("priority", SmallInteger, nullable=False),  # 1 for what was asked before
    Column("worker", Integer),  # who has it; null while it is free
    # As a statement: the option `postgresql_where` of an Index makes every start import that dialect with its drivers.
    listeners=[
        ("after_create", DDL(_FREE)),  # type: ignore[no-untyped-call]
    ],
)
"""The pairs that have no outcome yet; a row goes in the transaction that writes the outcome."""

questions = Table(
    "questions",
    coordination,
    Column("name", String(64), primary_key=True),  # of the question: its condition and its pair
    Column("number", Integer, nullable=False),  # another one each time that it is asked
    Column("judged_by", String(64), nullable=False),
    Column("question", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("worker", Integer),  # who has it; null while it is free
    Column("answer", Text),
)
"""The open questions of the process that leads; a row goes in the transaction that writes the attempt down."""

late_answers = Table(
    "late_answers",
    coordination,
    Column("number", Integer, primary_key=True),
    Column("condition_id", String(64), nullable=False),
    Column("uid", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    Column("given_at", DateTime(timezone=True), nullable=False),
)
"""Answers to questions that others have answered meanwhile; a row goes in the transaction that writes the attempt."""

for _name in ("workers", "attempts", "comparisons", "questions"):
    Sequence(f"pairscale_{_name}", metadata=coordination)

ALIVE = text("""
    SELECT objid::bigint::int AS worker FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid::bigint = :schema
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
""")
"""The workers whose connection is open: each holds a lock with its number."""

LEASE = text("""
    UPDATE leases SET worker = :me WHERE pair_id IN (
        SELECT pair_id FROM leases WHERE worker IS NULL ORDER BY priority, pair_id LIMIT :n FOR UPDATE SKIP LOCKED
    )
    RETURNING pair_id,
        (SELECT count(*) FROM attempts a WHERE a.condition_id = :condition AND a.pair_id = leases.pair_id
            AND coalesce(a.error_code, '') <> 'cancelled'),
        EXISTS (SELECT 1 FROM comparisons c WHERE c.condition_id = :condition AND c.pair_id = leases.pair_id)
""")

BEGIN_WRITE = """
    WITH gone AS (DELETE FROM leases WHERE worker = %(me)s AND pair_id = ANY(%(settled)s) RETURNING pair_id),
    seen AS (UPDATE workers SET asked = asked + %(asked)s, answered = answered + %(answered)s,
        spent = spent + %(cost)s, seen_at = now() WHERE worker = %(me)s)
    SELECT array(SELECT pair_id FROM gone),
        array(SELECT nextval('pairscale_attempts')::int FROM generate_series(1, %(asked)s)),
        array(SELECT nextval('pairscale_comparisons')::int FROM generate_series(1, %(n_settled)s))
"""
"""What every transaction of answers begins with: leases end, counters grow, and rows get their numbers."""

REPLACE = text("""
    DELETE FROM questions
    WHERE name = :name AND (number = :again OR question <> :question OR judged_by <> :judged_by)
""")
ASK = text("""
    INSERT INTO questions (name, number, judged_by, question, attempt)
    VALUES (:name, nextval('pairscale_questions'), :judged_by, :question, :attempt)
    ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING number
""")
"""Hand out a question; one that is there already keeps its worker and its answer."""

TAKE = text("""
    UPDATE questions SET worker = :me WHERE name IN (
        SELECT name FROM questions WHERE worker IS NULL AND answer IS NULL AND judged_by = ANY(:judges)
        ORDER BY number LIMIT :n FOR UPDATE SKIP LOCKED
    )
    RETURNING number, judged_by, question, attempt
""")

LATE = text("""
    SELECT l.number, l.condition_id, p.pair_id, l.attempt, l.answer, extract(epoch FROM l.given_at)::float8 AS given_at
    FROM late_answers l LEFT JOIN (pairs p JOIN comparisons c ON c.pair_id = p.pair_id)
        ON p.custom_id = l.uid AND c.condition_id = l.condition_id
    ORDER BY l.number
""")
"""The late answers, with the pair of those whose question has an outcome."""
