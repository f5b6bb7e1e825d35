"""The file beside an exported table: everything about a run but texts, requests, raw replies and links of labellers.

One JSON object per line: a head, then ``fact``, ``item``, ``condition``, ``pair``, ``attempt``, ``comparison``,
``log``, ``blob``, ``labeller``, ``label_case``, ``label_question`` and ``label`` lines, in this order. The head holds
the digest of the run and the SHA-256 of the table. Blobs are base64, and JSON columns are their text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, Text, cast, select

from pairscale.core.errors import FileFormatError, StoreMismatchError
from pairscale.core.files import replacing
from pairscale.core.tables import listed
from pairscale.store import _sqlite
from pairscale.store._hashes import UNHASHED_FACTS
from pairscale.store._records import item_row
from pairscale.store.chain import digest_of_heads, heads_of
from pairscale.store.database import Written
from pairscale.store.labels import new_token
from pairscale.store.schema import (
    attempts,
    blobs,
    comparisons,
    conditions,
    items,
    label_cases,
    label_questions,
    labellers,
    labels,
    logs,
    metadata,
    pairs,
)

if TYPE_CHECKING:
    from sqlalchemy import Column, Table
    from sqlalchemy.engine import Connection

    from pairscale.store.runfile import RunFile

__all__ = ["IMPORTED", "companion_of", "needed_items", "read_head", "restore", "write_companion"]

IMPORTED = "imported"
"""The fact of the metadata that names the digest of the run that a run file was imported from, and its table's."""

_VERSION = 3
_JUDGED: dict[str, Table] = {"condition": conditions, "pair": pairs, "attempt": attempts, "comparison": comparisons}
_LABELLED: dict[str, Table] = {
    "labeller": labellers,
    "label_case": label_cases,
    "label_question": label_questions,
    "label": labels,
}
_TABLES: dict[str, Table] = {**_JUDGED, **_LABELLED}
_FIELDS: dict[str, dict[str, type]] = {
    "fact": {"fact": str, "value": object},
    "item": {"item": str, "text_hash": str},
    "log": {"log": str, "row": int, "data": dict},
    "blob": {"blob": str, "row": int, "data": str},
    **{kind: {kind: dict} for kind in _TABLES},
}
_LEFT_OUT = frozenset({"token", "task_input", "response_1", "response_2", "request", "raw_response"})


def companion_of(path: Path) -> Path:
    """Where the logs of an exported table are: ``results.csv.logs.jsonl`` for ``results.csv``."""
    return path.with_name(f"{path.name}.logs.jsonl")


def write_companion(store: RunFile, path: Path) -> None:
    """Write the file beside a table; for a run file without anything, one of an earlier export is removed."""
    target = companion_of(path)
    with store.transaction() as connection:
        heads = heads_of(connection)
        if not heads:
            if target.exists() and _is_ours(target):
                target.unlink()
            return
        head = {"pairscale": "logs", "version": _VERSION, "digest": digest_of_heads(heads), "table": _hash_of(path)}
        with replacing(target) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.write(f"{json.dumps(head)}\n")
            file.writelines(f"{line}\n" for line in _lines(connection))


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(connection: Connection) -> Iterator[str]:
    stream = connection.execution_options(stream_results=True).execute
    for key, value in stream(select(metadata).order_by(metadata.c.key)):
        if key not in UNHASHED_FACTS:
            yield _line(fact=key, value=value)
    for name, text_hash in stream(select(items.c.item_id, items.c.text_hash).order_by(items.c.item_id)):
        yield _line(item=name, text_hash=text_hash)
    for kind, table in _JUDGED.items():
        for values in _rows(connection, table):
            yield _line(**{kind: values})
    written = select(logs.c.log, logs.c.row, cast(logs.c.data, Text)).order_by(logs.c.log, logs.c.row)
    for log, row, data in stream(written):
        yield f'{_line(log=log, row=row)[:-1]},"data":{data}}}'
    for name, row, data in stream(select(blobs).order_by(blobs.c.name, blobs.c.row)):
        yield _line(blob=name, row=row, data=base64.b64encode(data).decode("ascii"))
    for kind, table in _LABELLED.items():
        for values in _rows(connection, table):
            yield _line(**{kind: values})


def _exported(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if column.name not in _LEFT_OUT]


def _rows(connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
    columns = (cast(c, Text).label(c.name) if isinstance(c.type, JSON) else c for c in _exported(table))
    query = select(*columns).order_by(*table.primary_key)
    for row in connection.execution_options(stream_results=True).execute(query).mappings():
        yield dict(row)


def _line(**values: Any) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def read_head(path: Path, table: Path) -> dict[str, Any]:
    """What the file says of itself, when the table beside it is as it was exported.

    Raises:
        FileFormatError: it is something else, or the table was changed since.
    """
    head = _head(path)
    if head.get("table") != _hash_of(table):
        raise FileFormatError(
            f"{table} is not as it was exported. To import the table as it is now, without logs and labels, remove "
            f"{path}; otherwise export the run again"
        )
    return head


def _is_ours(path: Path) -> bool:
    try:
        _head(path)
    except FileFormatError:
        return False
    return True


def _head(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        try:
            head = dict(json.loads(file.readline()))
        except (ValueError, TypeError):
            head = {}
    if (head.get("pairscale"), head.get("version")) != ("logs", _VERSION):
        raise FileFormatError(f"{path} does not hold the logs of an exported run; remove or rename it")
    return head


def needed_items(path: Path) -> set[str]:
    """The samples that the run is about."""
    return {line["item"] for line in _read(path, "item")}


def restore(store: RunFile, path: Path, head: Mapping[str, Any], samples: Iterable[Mapping[str, Any]]) -> int:
    """Enter an exported run into an empty run file: its chain begins here, and names the digest of the exported run.

    Args:
        store: open for writing, and empty.
        path: the file beside the results.
        head: its first line.
        samples: the texts.

    Returns:
        How many comparisons were entered.

    Raises:
        StoreMismatchError: that names the samples whose text was another when they were judged.
    """
    hashes = {line["item"]: line["text_hash"] for line in _read(path, "item")}
    rows = [item_row(sample) for sample in samples]
    changed = [row["item_id"] for row in rows if hashes.get(row["item_id"], row["text_hash"]) != row["text_hash"]]
    if changed:
        raise StoreMismatchError(
            f"{listed(sorted(changed))} had another text when the exported run judged it; give the texts of that time"
        )
    with store.writer.changing() as change:
        change.about["imported"] = head["digest"]
        for line in _read(path, "fact"):
            change.set_fact(line["fact"], line["value"])
        change.set_fact(IMPORTED, {"digest": head["digest"], "table": head["table"]})
        change.insert(items, rows)
        for kind, table in _JUDGED.items():
            change.insert(table, _stored(path, kind))
        change.insert(logs, ({**line, "data": Written(_line(**line["data"]))} for line in _read(path, "log")))
        named = ({"name": line["blob"], "row": line["row"], "data": line["data"]} for line in _read(path, "blob"))
        change.insert(blobs, named)
        people = [{**row, "token": new_token()} for row in _stored(path, "labeller")]
        if people:
            _sqlite.make_private(change.connection.engine)
        change.insert(labellers, people)
        for kind in ("label_case", "label_question", "label"):
            change.insert(_LABELLED[kind], _stored(path, kind))
    store.writer.renumber()
    return store.counts()["comparisons"]


def _stored(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The rows of a table, with JSON columns written out."""
    table = _TABLES[kind]
    written = [column.name for column in table.c if isinstance(column.type, JSON) and column.name not in _LEFT_OUT]
    for line in _read(path, kind):
        row = line[kind]
        yield row | {name: None if row[name] is None else Written(row[name]) for name in written}


def _read(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The lines of a kind."""
    begins = f'{{"{kind}":'
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, start=1):
                if text.startswith(begins):
                    yield _parsed(text, kind, f"{path}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from None


def _parsed(text: str, kind: str, where: str) -> dict[str, Any]:
    """A line that has all that its kind has, of the right types; the bytes of a blob are bytes again."""
    try:
        line = dict(json.loads(text))
        for name, form in _FIELDS[kind].items():
            if not isinstance(line[name], form):
                raise ValueError(f"{name} is {line[name]!r:.60}")
        if kind == "blob":
            line["data"] = base64.b64decode(line["data"], validate=True)
        elif kind in _TABLES:
            _check_row(line[kind], _TABLES[kind])
    except KeyError as error:
        raise FileFormatError(f"{where}: no {error}; export the run again") from None
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{where}: {error}; export the run again") from None
    return line


def _check_row(row: Mapping[str, Any], table: Table) -> None:
    for column in _exported(table):
        value = row[column.name]
        kind = str if isinstance(column.type, JSON) else column.type.python_type
        if not (column.nullable if value is None else _fits(value, kind)):
            raise ValueError(f"{column.name} is {value!r:.60}")


def _fits(value: Any, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, int | float if kind is float else kind)
