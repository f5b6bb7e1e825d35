"""The run file: everything that was asked and answered, durable before it is used."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl
from sqlalchemy import Select, Text, cast, create_engine, delete, func, insert, inspect, select, update
from sqlalchemy.exc import SQLAlchemyError

from pairscale._version import __version__
from pairscale.errors import MissingExtraError, StoreDamagedError, StoreError, StoreMismatchError
from pairscale.provenance import text_hash, utc_now
from pairscale.store import _sqlite
from pairscale.store._lock import WriterLock, whoami
from pairscale.store._schema import (
    SCHEMA_VERSION,
    attempts,
    comparisons,
    conditions,
    items,
    logs,
    metadata,
    pairs,
    tables,
)
from pairscale.tables import FAILED, RESULTS, listed

if TYPE_CHECKING:
    import os

    from sqlalchemy.engine import Connection, Engine

    from pairscale.comparisons import Condition

__all__ = ["Answer", "Progress", "RunFile", "open_run"]

_CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class Answer:
    """One attempt to have a pair judged, as it goes into the run file.

    Attributes:
        pair_id: the pair's number in the run file.
        values: the columns of the attempt.
        comparison: the columns of the comparison that it settles, or None when the pair will be asked again.
        replaces: whether an earlier outcome of this pair and condition (an error, an abstention) gives way.
    """

    pair_id: int
    values: Mapping[str, Any]
    comparison: Mapping[str, Any] | None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run file knows of some pairs under one condition.

    Attributes:
        answered: numbers of the pairs that have their answer.
        failed: numbers of the pairs that were asked in vain.
        attempts: how often each pair was asked and not interrupted, for pairs that were.
    """

    answered: frozenset[int]
    failed: frozenset[int]
    attempts: Mapping[int, int]


def open_run(where: str | os.PathLike[str] | None, *, write: bool = False) -> RunFile:
    """Open a run file.

    Args:
        where: a path (created when it is missing and ``write`` is true), a database URL such as
            ``postgresql+psycopg://…``, or None for memory only.
        write: take the right to write; one process at a time has it. Readers need not wait.

    Raises:
        StoreBusyError: another process is writing.
        StoreDamagedError: the file is not a run file, or newer than this version knows.
    """
    options = {"json_serializer": _json}
    if where is None:
        return RunFile(_sqlite.open_memory(**options), "memory", None)._prepared(write=True)
    if "://" in str(where):
        return RunFile(_remote(str(where), options), "the database", None)._prepared(write=write)
    path = Path(where)
    if not write and not path.exists():
        raise StoreError(f"{path}: no such run file")
    engine = _sqlite.open_file(path, set(tables.tables), write=write, **options)
    return RunFile(engine, str(path), WriterLock(path) if write else None)._prepared(write=write)


class RunFile:
    """An open run file; get one from :func:`open_run`, and use it in a ``with`` block."""

    def __init__(self, engine: Engine, name: str, lock: WriterLock | None) -> None:
        self.name = name
        self._engine = engine
        self._lock = lock

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it, and let others write."""
        self._engine.dispose()
        if self._lock is not None:
            self._lock.release()

    # Opening

    def _prepared(self, *, write: bool) -> Self:
        try:
            if self._lock is not None:
                self._lock.acquire(self._last_writer())
            self._check_version(create=write)
            if write:
                with self._begin() as connection:
                    _set(connection, "writer", f"{whoami()}, since {utc_now()[:19]} UTC")
        except BaseException:
            self.close()
            raise
        return self

    def _last_writer(self) -> str:
        with self._begin() as connection:
            return str(_get(connection, "writer") or "unknown") if inspect(connection).has_table("metadata") else "new"

    def _check_version(self, *, create: bool) -> None:
        with self._begin() as connection:
            present = set(inspect(connection).get_table_names())
            if not present and create:
                tables.create_all(connection)
                for key, value in (
                    ("schema_version", SCHEMA_VERSION),
                    ("created_by", f"pairscale {__version__}"),
                    ("created_at", utc_now()),
                ):
                    _set(connection, key, value)
                return
            if not set(tables.tables) <= present:
                raise StoreDamagedError(f"{self.name} is a database but not a run file; name another file")
            version = _get(connection, "schema_version")
            if version != SCHEMA_VERSION:
                raise StoreDamagedError(
                    f"{self.name} has schema version {version}, this pairscale reads {SCHEMA_VERSION}; "
                    "use the version of pairscale that wrote it"
                )

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        """A transaction whose failures are told in words."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            raise _sqlite.explain(cause, self.name) or StoreError(f"{self.name}: {cause}") from error

    # Writing

    def add_items(self, samples: Iterable[Mapping[str, Any]]) -> None:
        """Remember samples; one that is there already must have the same text.

        Raises:
            StoreMismatchError: that names the samples whose text has changed.
        """
        with self._begin() as connection:
            known = {
                row.item_id: row.text_hash for row in connection.execute(select(items.c.item_id, items.c.text_hash))
            }
            new: list[dict[str, Any]] = []
            changed: list[str] = []
            for sample in samples:
                digest = text_hash(sample["text"])
                if sample["ID"] not in known:
                    more = {key: value for key, value in sample.items() if key not in {"ID", "text"}}
                    new.append({"item_id": sample["ID"], "text": sample["text"], "text_hash": digest, "columns": more})
                elif known[sample["ID"]] != digest:
                    changed.append(sample["ID"])
                if len(new) >= _CHUNK:
                    connection.execute(insert(items), new)
                    new = []
            if changed:
                raise StoreMismatchError(
                    f"{self.name} holds another text for {listed(changed)}; "
                    "answers about the old text cannot be used: take a new run file, or restore the text"
                )
            if new:
                connection.execute(insert(items), new)

    def add_pairs(self, rows: Iterable[Mapping[str, Any]]) -> list[int]:
        """Remember pairs (``custom_id ID1 ID2 columns``) and return the number of each, in their order.

        Raises:
            StoreMismatchError: when a ``custom_id`` is there already for another pair.
        """
        with self._begin() as connection:
            known = {
                row.custom_id: (row.pair_id, row.ID1, row.ID2)
                for row in connection.execute(select(pairs.c.custom_id, pairs.c.pair_id, pairs.c.ID1, pairs.c.ID2))
            }
            following = max((number for number, _, _ in known.values()), default=0) + 1
            numbers: list[int] = []
            new: list[dict[str, Any]] = []
            for row in rows:
                name = row["custom_id"]
                if name in known:
                    number, first, second = known[name]
                    if (first, second) != (row["ID1"], row["ID2"]):
                        raise StoreMismatchError(
                            f"{self.name}: pair_uid {name!r} is the pair {first!r}, {second!r} there, "
                            f"not {row['ID1']!r}, {row['ID2']!r}; give it another pair_uid or take a new run file"
                        )
                    numbers.append(number)
                else:
                    numbers.append(following)
                    new.append({"pair_id": following, **row})
                    following += 1
                if len(new) >= _CHUNK:
                    connection.execute(insert(pairs), new)
                    new = []
            if new:
                connection.execute(insert(pairs), new)
        return numbers

    def add_condition(self, condition: Condition, condition_id: str | None = None) -> str:
        """Remember a condition and return its id (the one given, for a condition that was imported)."""
        name = condition_id or condition.condition_id
        with self._begin() as connection:
            there = select(conditions.c.condition_id).where(conditions.c.condition_id == name)
            if connection.execute(there).first() is None:
                values = asdict(condition) | {"condition_id": name, "created_at": utc_now()}
                connection.execute(insert(conditions), [values])
        return name

    def record(self, answers: Sequence[Answer], condition_id: str) -> None:
        """Make attempts, and the outcomes they settle, durable: all of them in one transaction."""
        with self._begin() as connection:
            following = _following(connection, attempts.c.attempt_id)
            numbered = list(enumerate(answers, start=following))
            blank = dict.fromkeys(attempts.c.keys())  # one statement for all rows: each needs every column
            rows = [
                blank | {"attempt_id": number, "pair_id": answer.pair_id, "condition_id": condition_id, **answer.values}
                for number, answer in numbered
            ]
            connection.execute(insert(attempts), rows)
            if giving_way := [answer.pair_id for answer in answers if answer.replaces and answer.comparison]:
                connection.execute(
                    delete(comparisons).where(
                        comparisons.c.condition_id == condition_id, comparisons.c.pair_id.in_(giving_way)
                    )
                )
            unsettled = dict.fromkeys(("winner_pos", "better_id", "probability"))
            settled = [
                unsettled
                | {"pair_id": answer.pair_id, "condition_id": condition_id, "attempt_id": number, **answer.comparison}
                for number, answer in numbered
                if answer.comparison is not None
            ]
            if settled:
                connection.execute(insert(comparisons), settled)

    def log(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows to a named log."""
        with self._begin() as connection:
            last = connection.execute(select(func.max(logs.c.row)).where(logs.c.log == name)).scalar() or 0
            numbered = [{"log": name, "row": n, "data": dict(row)} for n, row in enumerate(rows, start=last + 1)]
            if numbered:
                connection.execute(insert(logs), numbered)

    def set_meta(self, key: str, value: Any) -> None:
        """Remember a fact about the run."""
        with self._begin() as connection:
            _set(connection, key, value)

    # Reading

    def get_meta(self, key: str) -> Any:
        """A fact about the run, or None."""
        with self._begin() as connection:
            return _get(connection, key)

    def progress(self, condition_id: str) -> Progress:
        """What is known of every pair under a condition."""
        asked = select(attempts.c.pair_id, func.count().label("n")).where(
            attempts.c.condition_id == condition_id, func.coalesce(attempts.c.error_code, "") != "cancelled"
        )
        settled = select(comparisons.c.pair_id, comparisons.c.outcome).where(comparisons.c.condition_id == condition_id)
        with self._begin() as connection:
            counts = {row.pair_id: row.n for row in connection.execute(asked.group_by(attempts.c.pair_id))}
            outcomes = [(row.pair_id, row.outcome) for row in connection.execute(settled)]
        failed = frozenset(number for number, outcome in outcomes if outcome in {"error", "abstention"})
        return Progress(frozenset(number for number, _ in outcomes) - failed, failed, counts)

    def results(self, condition_id: str | None = None, *, raw: bool = False) -> pl.DataFrame:
        """Every standing comparison (of one condition, or of all), as a results table.

        Args:
            condition_id: only these.
            raw: with a column ``raw_response``.
        """
        a, c, p, k = attempts.c, comparisons.c, pairs.c, conditions.c
        columns: list[Any] = [
            p.custom_id, p.ID1, p.ID2, func.coalesce(a.model, k.model).label("model"), a.object_type, a.status_code,
            a.error_message, a.thoughts, a.content, c.winner_pos.label("better_sample"), c.better_id, a.prompt_tokens,
            a.completion_tokens, a.total_tokens, a.prompt_cached_tokens, a.reasoning_tokens, a.latency_s, a.cost,
            c.outcome, k.judge_id, k.trait, k.template_id, c.condition_id, c.probability,
        ]  # fmt: skip
        schema = {**RESULTS, "better_sample": pl.Int64(), "received_at": pl.String(), "pair_id": pl.Int64()}
        columns += [c.received_at, c.pair_id]
        if raw:
            columns.append(cast(a.raw_response, Text))
            schema["raw_response"] = pl.String()
        query = (
            select(*columns)
            .select_from(comparisons.join(attempts, a.attempt_id == c.attempt_id))
            .join(pairs, p.pair_id == c.pair_id)
            .join(conditions, k.condition_id == c.condition_id)
            .order_by(c.comparison_id)
        )
        if condition_id is not None:
            query = query.where(c.condition_id == condition_id)
        frame = self._frame(query, schema)
        return frame.with_columns(pl.format("SAMPLE_{}", "better_sample").alias("better_sample"))

    def failed_attempts(self, condition_id: str | None = None) -> pl.DataFrame:
        """Every attempt that gave no answer: ``custom_id ID1 ID2`` and why."""
        a, p = attempts.c, pairs.c
        query = (
            select(p.custom_id, p.ID1, p.ID2, *(a[name] for name in FAILED), a.outcome, a.condition_id, a.pair_id)
            .select_from(attempts.join(pairs, p.pair_id == a.pair_id))
            .where(a.error_code.is_not(None))
            .order_by(a.attempt_id)
        )
        if condition_id is not None:
            query = query.where(a.condition_id == condition_id)
        text = pl.String()
        schema = {"custom_id": text, "ID1": text, "ID2": text, **FAILED, "outcome": text, "condition_id": text}
        return self._frame(query, {**schema, "pair_id": pl.Int64()})

    def items(self) -> pl.DataFrame:
        """The samples, as they came in: ``ID text`` and their other columns."""
        with self._begin() as connection:
            rows = [
                {"ID": row.item_id, "text": row.text, **row.columns}
                for row in connection.execute(select(items).order_by(items.c.item_id))
            ]
        return (
            pl.DataFrame(rows, infer_schema_length=None, strict=False) if rows else pl.DataFrame(schema=["ID", "text"])
        )

    def read_log(self, name: str) -> list[dict[str, Any]]:
        """The rows of a named log, in order."""
        with self._begin() as connection:
            query = select(logs.c.data).where(logs.c.log == name).order_by(logs.c.row)
            return [dict(row.data) for row in connection.execute(query)]

    def conditions(self) -> pl.DataFrame:
        """One row a condition: who judged what, how often, with which outcomes, at what cost."""
        c, a = comparisons.c, attempts.c
        counts = select(c.condition_id, c.outcome, func.count()).group_by(c.condition_id, c.outcome)
        spent = select(
            a.condition_id,
            func.count(),
            func.sum(a.cost),
            func.sum(a.total_tokens),
            func.max(a.attempted_at),
        ).group_by(a.condition_id)
        rows: dict[str, dict[str, Any]] = {}
        with self._begin() as connection:
            for row in connection.execute(select(conditions).order_by(conditions.c.created_at)).mappings():
                kept = ("condition_id", "judge_id", "model", "trait", "template_id")
                outcomes = dict.fromkeys(("win", "tie", "flip", "abstention", "error"), 0)
                totals = {"attempts": 0, "cost": None, "total_tokens": None, "last_at": None}
                rows[row["condition_id"]] = {name: row[name] for name in kept} | outcomes | totals
            for condition_id, outcome, n in connection.execute(counts):
                rows[condition_id][outcome] = n
            for condition_id, n, cost, tokens, last in connection.execute(spent):
                rows[condition_id].update(attempts=n, cost=cost, total_tokens=tokens, last_at=last)
        whole, text = pl.Int64(), pl.String()
        schema: dict[str, Any] = dict.fromkeys(("condition_id", "judge_id", "model", "trait", "template_id"), text)
        schema |= dict.fromkeys(("win", "tie", "flip", "abstention", "error", "attempts"), whole)
        schema |= {"cost": pl.Float64(), "total_tokens": whole, "last_at": text}
        return pl.DataFrame(list(rows.values()), schema=schema)

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""
        with self._begin() as connection:
            return {
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in (items, pairs, attempts, comparisons)
            }

    def _frame(self, query: Select[Any], schema: Mapping[str, Any]) -> pl.DataFrame:
        parts = []
        with self._begin() as connection:
            found = connection.execution_options(stream_results=True).execute(query)
            for block in found.partitions(_CHUNK):
                parts.append(pl.DataFrame([tuple(row) for row in block], schema=schema, orient="row"))  # noqa: PERF401
        return pl.concat(parts) if parts else pl.DataFrame(schema=schema)


def _json(value: Any) -> str:
    """Columns may hold dates, decimals or anything else that a table can: they are kept as text."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _remote(url: str, options: Mapping[str, Any]) -> Engine:
    try:
        return create_engine(url, **options)
    except ModuleNotFoundError as error:
        raise MissingExtraError("a PostgreSQL run file", "postgres") from error
    except (SQLAlchemyError, ValueError) as error:
        raise StoreError(f"{url.partition('://')[0]}:// is not a database address that can be used: {error}") from None


def _following(connection: Connection, column: Any) -> int:
    return int(connection.execute(select(func.max(column))).scalar() or 0) + 1


def _get(connection: Connection, key: str) -> Any:
    row = connection.execute(select(metadata.c.value).where(metadata.c.key == key)).first()
    return None if row is None else row.value


def _set(connection: Connection, key: str, value: Any) -> None:
    changed = connection.execute(update(metadata).where(metadata.c.key == key).values(value=value))
    if changed.rowcount == 0:
        connection.execute(insert(metadata), [{"key": key, "value": value}])
