"""The file beside an exported table: everything about a run but texts, requests, raw replies and links of labellers.

One JSON object per line: a head with the digest of the run and the SHA-256 of the table; then the rows of all tables,
each as ``{"table": {"column": value}}``, table by table; and, last, the SHA-256 of all lines before. Blobs are base64,
and JSON columns are their text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, select, type_coerce

from pairscale.core.errors import FileFormatError, StoreMismatchError
from pairscale.core.files import replacing
from pairscale.core.tables import listed
from pairscale.store.chain import HASHED, UNHASHED_FACTS, digest_of_heads, heads_of
from pairscale.store.database import make_private
from pairscale.store.labels import new_token
from pairscale.store.schema import JsonText, Written, blobs, items, labellers, metadata
from pairscale.store.writer import item_row

if TYPE_CHECKING:
    from sqlalchemy import Column, Table
    from sqlalchemy.engine import Connection

    from pairscale.store.runfile import RunFile

__all__ = ["IMPORTED", "companion_of", "needed_items", "read_head", "restore", "write_companion"]

IMPORTED = "imported"
"""The fact of the metadata that names the digest of the run that a run file was imported from, and its table's."""

_VERSION = 5
_LEFT_OUT = frozenset(
    {"items.text", "items.columns", "labellers.token", "label_cases.task_input", "label_cases.response_1"}
    | {"label_cases.response_2", "attempts.request", "attempts.raw_response"}
)


def companion_of(path: Path) -> Path:
    """Where the logs of an exported table are: ``results.csv.logs.jsonl`` for ``results.csv``."""
    return path.with_name(f"{path.name}.logs.jsonl")


def write_companion(store: RunFile, path: Path) -> None:
    """Write the file beside a table; for a run file without anything, one of an earlier export is removed."""
    target = companion_of(path)
    with store.transaction() as connection:
        heads = heads_of(connection)
        if not heads:
            if target.exists() and _head(target) is not None:
                target.unlink()
            return
        head = {"pairscale": "logs", "version": _VERSION, "digest": digest_of_heads(heads), "table": _hash_of(path)}
        digest = hashlib.sha256()
        with replacing(target) as temporary, temporary.open("wb") as file:
            for line in (head, *_lines(connection)):
                written = f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n".encode()
                digest.update(written)
                file.write(written)
            file.write(f'{{"sha256":"{digest.hexdigest()}"}}\n'.encode())


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(connection: Connection) -> Iterator[dict[str, Any]]:
    for table in HASHED:
        columns = [type_coerce(c, Text).label(c.name) if _is_text(c) else c for c in _exported(table)]
        query = select(*columns).order_by(*table.primary_key)
        for row in connection.execution_options(stream_results=True).execute(query).mappings():
            values = dict(row)
            if table is metadata and values["key"] in UNHASHED_FACTS:
                continue
            if table is blobs:
                values["data"] = base64.b64encode(values["data"]).decode("ascii")
            yield {table.name: values}


def _exported(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if str(column) not in _LEFT_OUT]


def _is_text(column: Column[Any]) -> bool:
    """Whether a column goes through the file as the text of its JSON, to the letter."""
    return isinstance(column.type, JsonText) and column.table is not metadata


def _head(path: Path) -> dict[str, Any] | None:
    """The first line of a file that an export wrote; None when it is another file."""
    with path.open("rb") as file:
        try:
            head = dict(json.loads(file.readline()))
        except (ValueError, TypeError):
            return None
    return head if (head.get("pairscale"), head.get("version")) == ("logs", _VERSION) else None


def read_head(path: Path, table: Path) -> dict[str, Any]:
    """What the file says of itself, when it and the table beside it are as they were exported.

    Raises:
        FileFormatError: it is something else, or one of the two was changed since.
    """
    head = _head(path)
    if head is None:
        raise FileFormatError(f"{path} does not hold the logs of an exported run; remove or rename it")
    if head.get("table") != _hash_of(table):
        raise FileFormatError(
            f"{table} is not as it was exported. To import the table as it is now, without logs and labels, remove "
            f"{path}; otherwise export the run again"
        )
    digest = hashlib.sha256()
    last = b""
    with path.open("rb") as file:
        for line in file:
            digest.update(last)
            last = line
    if last != f'{{"sha256":"{digest.hexdigest()}"}}\n'.encode():
        raise FileFormatError(f"{path} is not as it was exported; export the run again")
    return head


def needed_items(path: Path) -> set[str]:
    """The samples that the run is about."""
    return {row["item_id"] for row in _read(path, items)}


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
    hashes = {row["item_id"]: row["text_hash"] for row in _read(path, items)}
    rows = [item_row(sample) for sample in samples]
    changed = [row["item_id"] for row in rows if hashes.get(row["item_id"], row["text_hash"]) != row["text_hash"]]
    if changed:
        raise StoreMismatchError(
            f"{listed(sorted(changed))} had another text when the exported run judged it; give the texts of that time"
        )
    with store.writer.changing() as change:
        change.about["imported"] = head["digest"]
        for row in _read(path, metadata):
            change.set_fact(row["key"], row["value"])
        change.set_fact(IMPORTED, {"digest": head["digest"], "table": head["table"]})
        change.insert(items, rows)
        for table in HASHED:
            if table is not items and table is not metadata:
                change.insert(table, _read(path, table))
        if change.connection.execute(select(labellers.c.labeller_id).limit(1)).first():
            make_private(change.connection.engine)
    store.writer.renumber()
    return store.counts()["comparisons"]


def _read(path: Path, table: Table) -> Iterator[dict[str, Any]]:
    """The rows of a table, as they are stored; labellers get new links."""
    begins = f'{{"{table.name}":'
    texts = [column.name for column in _exported(table) if _is_text(column)]
    with path.open(encoding="utf-8") as file:
        for line in file:
            if not line.startswith(begins):
                continue
            row = json.loads(line)[table.name]
            for name in texts:
                row[name] = None if row[name] is None else Written(row[name])
            if table is blobs:
                row["data"] = base64.b64decode(row["data"])
            if table is labellers:
                row["token"] = new_token()
            yield row
