"""Small things that every part of the store needs of a database."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, Text, cast, create_engine, delete, insert, make_url, select, update
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

from pairscale.core.encoders import json_encoder
from pairscale.core.errors import InputError, MissingExtraError, StoreDamagedError, StoreError
from pairscale.core.tables import listed
from pairscale.store import _sqlite
from pairscale.store._hashes import HASHED, RowHasher
from pairscale.store.labels import LINKS
from pairscale.store.marks import HOLDER
from pairscale.store.schema import labellers, metadata

if TYPE_CHECKING:
    from sqlalchemy import Column, Insert, Select, Table
    from sqlalchemy.engine import Connection, Dialect, Engine

    from pairscale.store.chain import Links

__all__ = [
    "Prepared",
    "Written",
    "copy_rows",
    "following",
    "get_fact",
    "open_address",
    "parse_rows",
    "prepared_insert",
    "raw_rows",
    "read_columns",
    "scrub_surrogates",
    "set_fact",
    "storable",
    "write_json",
]


class Prepared:
    """An insert that is compiled once, for those who write one row at a time, thousands of times.

    SQLAlchemy's own way costs some five times as much for a single row. Errors are those of the driver.

    Args:
        statement: the insert.
        columns: all its columns; every row must have each of them.
        dialect: of the database.
    """

    __slots__ = ("_by_position", "_columns", "_hashed", "_processed", "_sql", "_values_of", "_wraps")

    def __init__(self, statement: Insert, columns: Iterable[Column[Any]], dialect: Dialect) -> None:
        types = {column.name: column.type.dialect_impl(dialect) for column in columns}
        compiled = statement.compile(dialect=dialect, column_keys=list(types))
        self._sql, self._by_position = str(compiled), compiled.positional
        self._columns = dict.fromkeys((compiled.positiontup if compiled.positional else compiled.params) or ())
        found = [types[name].bind_processor(dialect) if name in types else None for name in self._columns]
        self._values_of = itemgetter(*self._columns)
        self._processed = [(place, process) for place, process in enumerate(found) if process is not None]
        self._wraps = dialect.name != "sqlite"
        table: Any = statement.table
        self._hashed = RowHasher(table, list(self._columns)) if table in HASHED else None

    def execute(self, connection: Connection, rows: Iterable[Mapping[str, Any]], links: Links | None = None) -> None:
        """Run it for all rows.

        Args:
            connection: of the database.
            rows: what to write.
            links: takes the hashes of the rows, for the chain.

        Raises:
            InputError: when a row has a column too many or too few.
        """
        values = [self._bound(row) for row in rows]
        if links is not None and self._hashed is not None:
            for row in values:
                links.add(self._hashed([_unwrapped(value) for value in row] if self._wraps else row))
        given = values if self._by_position else [dict(zip(self._columns, row, strict=True)) for row in values]
        cursor = connection.connection.cursor()
        try:
            if self._wraps and len(given) == 1:  # with psycopg, half the time of executemany
                cursor.execute(self._sql, given[0])
            else:
                cursor.executemany(self._sql, given)
        finally:
            cursor.close()

    def _bound(self, row: Mapping[str, Any]) -> list[Any]:
        try:
            values = list(self._values_of(row))
        except KeyError:
            values = []
        if len(row) != len(values):
            unknown, missing = row.keys() - self._columns.keys(), self._columns.keys() - row.keys()
            raise InputError(
                f"the run file has no column {listed(sorted(unknown))}"
                if unknown
                else f"a row for the run file lacks {listed(sorted(missing))}"
            )
        for place, process in self._processed:
            values[place] = process(values[place])
        return values


def _unwrapped(value: Any) -> Any:
    """What the database keeps of a value: psycopg takes JSON and bytes in wrappers, and writes their content."""
    kind = type(value).__name__
    return write_json(value.obj) if kind == "Json" else bytes(value.obj) if kind == "Binary" else value


@lru_cache(maxsize=32)
def prepared_insert(table: Table, dialect: Dialect) -> Prepared:
    """The insert of rows with every column of a table."""
    return Prepared(insert(table).inline(), table.c, dialect)


_encoded = json_encoder(separators=(", ", ": "), default=str)


class Written(str):
    """JSON that is written out already, and goes into the database as it is."""

    __slots__ = ()


def write_json(value: Any) -> str:
    """A value as JSON; columns may hold dates, decimals or anything else that a table can: they are kept as text."""
    if isinstance(value, Written):
        return value
    return _encoded(value)


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
    """Rows of JSON as columns; None where a row has no such value. Fast, for tens of thousands of wide rows."""
    columns: dict[str, list[Any]] = {}
    done = 0
    for texts in blocks:
        rows = parse_rows(texts)
        for name in sorted(set().union(*rows) - columns.keys()):
            columns[name] = [None] * done
        done += len(rows)
        if len(columns) > 1 and all(len(row) == len(columns) for row in rows):
            for values, part in zip(columns.values(), zip(*map(itemgetter(*columns), rows), strict=True), strict=True):
                values.extend(part)
        else:
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
    cursor = connection.connection.cursor()  # plain, as it stands before each write
    try:
        cursor.execute(f"SELECT max({column.name}) FROM {column.table.name}")  # noqa: S608
        return int((cursor.fetchone() or (0,))[0] or 0) + 1
    finally:
        cursor.close()


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
