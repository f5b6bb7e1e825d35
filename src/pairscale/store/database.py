"""Small things that every part of the store needs of a database."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, Text, cast, create_engine, delete, func, insert, make_url, select, update
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

from pairscale.core.errors import InputError, MissingExtraError, StoreDamagedError, StoreError
from pairscale.core.tables import listed
from pairscale.store import _sqlite
from pairscale.store._hashes import HASHED, RowHasher
from pairscale.store.labels import LINKS
from pairscale.store.marks import HOLDER
from pairscale.store.schema import labellers, metadata

if TYPE_CHECKING:
    from sqlalchemy import Column, Select, Table
    from sqlalchemy.engine import Connection, Engine

    from pairscale.store.chain import Links

__all__ = [
    "Written",
    "copy_rows",
    "following",
    "get_fact",
    "insert_rows",
    "open_address",
    "parse_rows",
    "raw_rows",
    "read_columns",
    "scrub_surrogates",
    "set_fact",
    "storable",
    "write_json",
]


class Written(str):
    """JSON that is written out already, and goes into the database as it is."""

    __slots__ = ()


def write_json(value: Any) -> str:
    """A value as JSON; columns may hold dates, decimals or anything else that a table can: they are kept as text."""
    if isinstance(value, Written):
        return value
    return json.dumps(value, ensure_ascii=False, check_circular=False, default=str)


def insert_rows(
    connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]], links: Links | None = None
) -> None:
    """Write rows that have every column of a table.

    Args:
        connection: of the database.
        table: the table.
        rows: what to write.
        links: takes the hashes of the rows, for the chain.

    Raises:
        InputError: a row has a column that the table does not have.
    """
    names = table.c.keys()
    written = [_as_written(row, table) for row in rows]
    if links is not None and table in HASHED:
        hasher = _hasher(table)
        for row in written:
            links.add(hasher([row[name] for name in names]))
    if written:
        connection.execute(insert(table).inline(), written)


@lru_cache(maxsize=32)
def _hasher(table: Table) -> RowHasher:
    return RowHasher(table, table.c.keys())


def _as_written(row: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """A row with its JSON columns written out, so that the same letters are hashed and stored."""
    unknown = row.keys() - table.c.keys()
    if unknown:
        raise InputError(f"the run file has no column {listed(sorted(unknown))}")
    values = dict(row)
    for column in _json_columns(table):
        if values[column.name] is not None or not column.nullable:
            values[column.name] = Written(write_json(values[column.name]))
    return values


@lru_cache(maxsize=32)
def _json_columns(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if isinstance(column.type, JSON)]


def storable(values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of an attempt without what no database takes: half characters, and replies that JSON cannot hold.

    Such a reply of a user's own judge (keys that are no texts, a list that holds itself) is kept as text: the answer
    was paid for.
    """
    kept: dict[str, Any] = {}
    for name, value in values.items():
        try:
            write_json(value)
            kept[name] = scrub_surrogates(value)
        except (TypeError, ValueError, RecursionError):
            kept[name] = scrub_surrogates(str(value))
    return kept


def read_columns(blocks: Iterable[Sequence[str]]) -> dict[str, list[Any]]:
    """Rows of JSON as columns; None where a row has no such value."""
    columns: dict[str, list[Any]] = {}
    done = 0
    for texts in blocks:
        rows = parse_rows(texts)
        for name in sorted(set().union(*rows) - columns.keys()):
            columns[name] = [None] * done
        done += len(rows)
        for name, values in columns.items():
            values.extend([row.get(name) for row in rows])
    return columns


def parse_rows(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Rows from their JSON, which share their names."""
    # A few at a time: one by one, every name is made again for every row; many at once, the cache overflows.
    few = (f"[{','.join(texts[start : start + 20])}]" for start in range(0, len(texts), 20))
    return [row for text in few for row in json.loads(text)]


def scrub_surrogates(value: Any) -> Any:
    """The same without halves of characters, which some servers send and no database takes; U+FFFD stands for them."""
    if isinstance(value, Written):
        return value
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {scrub_surrogates(key): scrub_surrogates(inner) for key, inner in value.items()}
    return [scrub_surrogates(inner) for inner in value] if isinstance(value, list | tuple) else value


_NOTICED = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3} | {
    "tcp_user_timeout": 60_000
}
"""Settings of a connection: a server that is gone without a word is noticed within a minute, not in two hours."""


def open_address(url: str, options: Mapping[str, Any]) -> Engine:
    """A database by its address.

    Raises:
        StoreError: it is no address; the message holds no part of it that may be a password.
    """
    scheme = url.partition("://")[0]
    unusable = f"{scheme}:// is not a database address that can be used"
    if url.partition("?")[0].count("@") > 1:
        raise StoreError(f"{unusable}: write @ in a user or password as %40, : as %3A and / as %2F")
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns beside the error that it raises
    try:
        parsed = make_url(url)
        given = _NOTICED if parsed.drivername == "postgresql+psycopg" else {}
        return create_engine(
            parsed,
            connect_args={name: value for name, value in given.items() if name not in parsed.query},
            **options,
        )
    except ModuleNotFoundError as error:
        raise MissingExtraError("a PostgreSQL run file", "postgres") from error
    except NoSuchModuleError:
        raise StoreError(f"{unusable}: there is no database or driver of that name") from None
    except (SQLAlchemyError, ValueError):
        form = "name+driver://user:password@host:port/database, where the port is a number"
        raise StoreError(f"{unusable}: it must look like {form}") from None


def following(connection: Connection, column: Any) -> int:
    """The number after the largest of a column."""
    return int(connection.execute(select(func.max(column))).scalar() or 0) + 1


def raw_rows(connection: Connection, query: Select[Any]) -> Iterator[Sequence[Any]]:
    """What a query finds, as the driver gives it: values of any type, and text that is not UTF-8."""
    cursor = connection.connection.cursor()
    try:
        with _sqlite.any_text(connection):
            cursor.execute(str(query.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})))
            while block := cursor.fetchmany(500):
                yield from block
    finally:
        cursor.close()


def get_fact(connection: Connection, key: str) -> Any:
    """A fact about the file, or None.

    Raises:
        StoreDamagedError: it is not JSON.
    """
    try:
        row = connection.execute(select(metadata.c.value).where(metadata.c.key == key)).first()
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreDamagedError(f"the fact {key!r} of the run file cannot be read: {error}") from None
    return None if row is None else row.value


def set_fact(connection: Connection, key: str, value: Any) -> None:
    """Remember a fact about the file, instead of what was known before."""
    changed = connection.execute(update(metadata).where(metadata.c.key == key).values(value=value))
    if changed.rowcount == 0:
        connection.execute(insert(metadata), [{"key": key, "value": value}])


def copy_rows(source: Connection, target: Connection, copied: Sequence[Table]) -> None:
    """Put the rows of one run file, to the letter, in the place of those of another.

    With the links of labellers, the other one becomes private, too.

    Args:
        source: the database to read from.
        target: the database to write to, which has all tables.
        copied: the tables, each after those that it points to.
    """
    if get_fact(source, LINKS) is not None or source.execute(select(labellers.c.labeller_id).limit(1)).first():
        _sqlite.make_private(target.engine)
    own = {key: get_fact(target, key) for key in ("schema_version", "writer", HOLDER)}
    for table in reversed(metadata.metadata.sorted_tables):
        target.execute(delete(table))
    for table in copied:
        written = [column.name for column in table.c if isinstance(column.type, JSON)]
        columns = [cast(c, Text).label(c.name) if c.name in written else c for c in table.c]
        found = source.execution_options(stream_results=True).execute(select(*columns))
        for block in found.mappings().partitions(1_000):
            rows = [
                {**row} | {name: None if row[name] is None else Written(row[name]) for name in written} for row in block
            ]
            target.execute(insert(table), rows)
    for key, value in own.items():
        set_fact(target, key, value)
