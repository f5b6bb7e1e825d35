"""The tables of a run file, for any database that SQLAlchemy speaks.

Times are ISO 8601 text in UTC: the same in every database, sortable, and readable in a shell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from pairscale.core.provenance import utc_now
from pairscale.core.tables import Values

SCHEMA_VERSION = 5
"""The one version that is read and written."""


class Written(str):
    """JSON that is written out already, and goes into the database as it is."""

    __slots__ = ()


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=str).encode


def write_json(value: Any) -> str:
    """A value as JSON; columns may hold dates, decimals or anything else that a table can: they are kept as text."""
    return value if isinstance(value, Written) else _encode(value)


class JsonText(TypeDecorator[Any]):
    """JSON in a column of text: a database's own JSON type may change the letters, which the chain hashes."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, _dialect: Any) -> str | None:
        """The JSON text to store."""
        return None if value is None else write_json(value)

    def process_result_value(self, value: Any, _dialect: Any) -> Any:
        """The value that the stored text means."""
        return None if value is None else json.loads(value)


tables = MetaData()

metadata = Table(
    "metadata",
    tables,
    Column("key", String(200), primary_key=True),
    Column("value", JsonText, nullable=False),
)
"""Facts about the file: ``schema_version``, ``created_by``, ``created_at``, ``writer`` (who wrote last)."""

items = Table(
    "items",
    tables,
    Column("item_id", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("text_hash", String(64), nullable=False),
    Column("columns", JsonText, nullable=False),  # every other column of the samples
)

pairs = Table(
    "pairs",
    tables,
    Column("pair_id", Integer, primary_key=True),
    Column("custom_id", Text, nullable=False, unique=True),
    Column("ID1", Text, ForeignKey("items.item_id"), nullable=False),
    Column("ID2", Text, ForeignKey("items.item_id"), nullable=False),
    Column("columns", JsonText, nullable=False),  # every other column of the pairs
)

conditions = Table(
    "conditions",
    tables,
    Column("condition_id", String(64), primary_key=True),
    Column("judge_id", Text, nullable=False),
    Column("backend", Text, nullable=False),
    Column("model", Text),
    Column("trait", Text),
    Column("template_id", Text),
    Column("settings", JsonText, nullable=False),
    Column("created_at", String(40), nullable=False),
)

attempts = Table(
    "attempts",
    tables,
    Column("attempt_id", Integer, primary_key=True),
    Column("pair_id", Integer, ForeignKey("pairs.pair_id"), nullable=False),
    Column("condition_id", String(64), ForeignKey("conditions.condition_id"), nullable=False),
    Column("attempt", Integer, nullable=False),  # 1 for the first time this question was asked under this condition
    Column("attempted_at", String(40), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("error_code", String(32)),
    Column("error_message", Text),
    Column("failure", String(16)),  # transient, question or judge; empty for an answer
    Column("status_code", Integer),
    Column("prompt_hash", String(64)),
    Column("request", JsonText),
    Column("raw_response", JsonText),
    Column("model", Text),
    Column("object_type", Text),
    Column("thoughts", Text),
    Column("content", Text),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("total_tokens", Integer),
    Column("prompt_cached_tokens", Integer),
    Column("reasoning_tokens", Integer),
    Column("latency_s", Float),
    Column("cost", Float),
    Index("attempts_by_condition", "condition_id", "pair_id"),
)
"""Every time a judge was asked, also in vain: the record of what was paid for."""

_FROM_VERDICT = (
    "failure", "error_code", "error_message", "status_code", "prompt_hash", "request", "raw_response", "model",
    "object_type", "thoughts", "content", "prompt_tokens", "completion_tokens", "total_tokens", "prompt_cached_tokens",
    "reasoning_tokens", "latency_s", "cost",
)  # fmt: skip
_from_verdict = attrgetter(*_FROM_VERDICT)


def attempt_columns(verdict: Any, number: int, asked_at: str, latency_s: float | None = None) -> Values:
    """The columns of an attempt.

    Args:
        verdict: a :class:`pairscale.Verdict`.
        number: 1 for the first attempt at its question.
        asked_at: when the judge was asked.
        latency_s: seconds that it took, where the verdict does not say.
    """
    values = dict(zip(_FROM_VERDICT, _from_verdict(verdict), strict=True))
    if verdict.latency_s is None:
        values["latency_s"] = latency_s
    if verdict.cost_is_estimate:
        sent = verdict.request
        if not isinstance(sent, Mapping):
            sent = {} if sent is None else {"request": sent}
        values["request"] = {**sent, "cost_is_estimate": True}
    values |= {"attempt": number, "attempted_at": asked_at, "outcome": str(verdict.outcome)}
    return values


comparisons = Table(
    "comparisons",
    tables,
    Column("comparison_id", Integer, primary_key=True),
    Column("pair_id", Integer, ForeignKey("pairs.pair_id"), nullable=False),
    Column("condition_id", String(64), ForeignKey("conditions.condition_id"), nullable=False),
    Column("attempt_id", Integer, ForeignKey("attempts.attempt_id"), nullable=False, unique=True),
    Column("outcome", String(16), nullable=False),
    Column("winner_pos", Integer),
    Column("better_id", Text),
    Column("probability", Float),
    Column("received_at", String(40), nullable=False),
    UniqueConstraint("condition_id", "pair_id", name="one_outcome_a_pair"),
)
"""The standing outcome of a pair under a condition, and the attempt that gave it."""


def comparison_columns(verdict: Any, first: str, second: str) -> Values:
    """The columns of an outcome that is recorded now.

    Args:
        verdict: a :class:`pairscale.Verdict`.
        first: ID of the sample shown first.
        second: ID of the other.
    """
    return {
        "outcome": str(verdict.outcome),
        "winner_pos": verdict.winner_pos,
        "better_id": None if verdict.winner_pos is None else (first, second)[verdict.winner_pos - 1],
        "probability": verdict.probability,
        "received_at": utc_now(),
    }


logs = Table(
    "logs",
    tables,
    Column("log", String(64), primary_key=True),
    Column("row", Integer, primary_key=True),
    Column("data", JsonText, nullable=False),
)
"""Rows of any named log, in order."""

blobs = Table(
    "blobs",
    tables,
    Column("name", String(64), primary_key=True),
    Column("row", Integer, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)
"""Bytes by name and number: what an adaptive run needs of each refit to be taken up or replayed."""

chain = Table(
    "chain",
    tables,
    Column("chain", String(64), primary_key=True),  # of one writer
    Column("entry", Integer, primary_key=True),
    Column("data", Text, nullable=False),  # JSON; the hash is of the letters
    Column("hash", String(64), nullable=False),  # of the hash of the entry before, and of data
)
"""The hashes of all rows that are evidence, one entry per transaction; see :mod:`pairscale.store.chain`."""

labellers = Table(
    "labellers",
    tables,
    Column("labeller_id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("token", Text, nullable=False, unique=True),  # the secret part of the labeller's link
    Column("joined_at", String(40), nullable=False),
)
"""The people who label."""

label_cases = Table(
    "label_cases",
    tables,
    Column("case_number", Integer, primary_key=True),
    Column("case_id", Text, nullable=False, unique=True),
    Column("task_id", Text, nullable=False),
    Column("criterion", Text, nullable=False),
    Column("ID1", Text, ForeignKey("items.item_id")),  # null where the texts are those of a manifest
    Column("ID2", Text, ForeignKey("items.item_id")),
    Column("task_input", Text),
    Column("response_1", Text),  # null where the texts are samples
    Column("response_2", Text),
    Column("digest", String(64), nullable=False),  # of everything that a labeller reads
    Column("n_labels", Integer, nullable=False),  # standing labels, without skips
)
"""What is labelled: two texts under one criterion."""

label_questions = Table(
    "label_questions",
    tables,
    Column("question_id", Integer, primary_key=True),
    Column("labeller_id", Integer, ForeignKey("labellers.labeller_id"), nullable=False),
    Column("case_number", Integer, ForeignKey("label_cases.case_number"), nullable=False),
    Column("swapped", Boolean, nullable=False),  # whether the second text of the case is shown first
    Column("shown_at", Float, nullable=False),  # seconds since 1970, as is the next one
    Column("held_until", Float, nullable=False),
    Column("done", Boolean, nullable=False),
    UniqueConstraint("labeller_id", "case_number", name="one_question_per_labeller"),
    Index("label_questions_by_case", "case_number"),
)
"""A case as one labeller sees it. Until ``held_until``, no other labeller gets the label that is missing."""

_ONE_STANDING_LABEL = "CREATE UNIQUE INDEX one_standing_label ON labels (question_id) WHERE undone_at IS NULL"
labels = Table(
    "labels",
    tables,
    Column("label_id", Integer, primary_key=True),
    Column("question_id", Integer, ForeignKey("label_questions.question_id"), nullable=False),
    Column("preferred", String(3)),  # 1, 2 or tie, in the order of the case; null for a skip
    Column("skipped", Text),
    Column("comment", Text),
    Column("decision_ms", BigInteger, nullable=False),
    Column("labelled_at", String(40), nullable=False),
    Column("undone_at", String(40)),
    CheckConstraint("preferred IN ('1', '2', 'tie')", name="a_choice"),
    CheckConstraint("(preferred IS NULL) <> (skipped IS NULL)", name="a_label_or_a_skip"),
    # As a statement: the option `postgresql_where` of an Index makes every start import that dialect with its drivers.
    listeners=[
        ("after_create", DDL(_ONE_STANDING_LABEL)),  # type: ignore[no-untyped-call]
    ],
)
"""Every answer of a labeller; one that was undone stays, with the time."""
