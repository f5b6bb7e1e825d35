"""The file beside an exported table: everything about a run but texts, requests, raw replies and links of labellers.

One JSON object per line: a head, then ``fact``, ``condition``, ``pair``, ``attempt``, ``comparison``, ``log``,
``blob``, ``labeller``, ``label_case``, ``label_question``, ``label`` and ``chain`` lines, in this order. Blobs are
base64, and JSON columns are their text, so that the hashes of the chain still hold.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, Text, cast, func, select

from pairscale.core.errors import FileFormatError, StoreMismatchError
from pairscale.core.files import replacing
from pairscale.store import _sqlite
from pairscale.store._hashes import UNHASHED_FACTS
from pairscale.store.database import Written
from pairscale.store.labels import LABELLING, new_token
from pairscale.store.schema import (
    attempts,
    blobs,
    chain,
    comparisons,
    conditions,
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

    from pairscale.store.chain import Change
    from pairscale.store.runfile import RunFile

__all__ = [
    "companion_of",
    "companion_rows",
    "enter_companion",
    "enter_rest",
    "is_whole",
    "labelled_items",
    "named_pairs",
    "write_companion",
]

_HEAD = {"pairscale": "logs", "version": 2}
_FIELDS: dict[str, dict[str, type]] = {
    "fact": {"fact": str, "value": object},
    "log": {"log": str, "row": int, "data": dict},
    "blob": {"blob": str, "row": int, "data": str},
}
_JUDGED: dict[str, Table] = {"condition": conditions, "pair": pairs, "attempt": attempts, "comparison": comparisons}
_LABEL_TABLES: dict[str, Table] = {
    "labeller": labellers,
    "label_case": label_cases,
    "label_question": label_questions,
    "label": labels,
}
_TABLES: dict[str, Table] = {**_JUDGED, **_LABEL_TABLES, "chain": chain}
_FIELDS |= {kind: {kind: dict} for kind in _TABLES}
_LEFT_OUT = frozenset({"token", "task_input", "response_1", "response_2", "request", "raw_response"})


def companion_of(path: Path) -> Path:
    """Where the logs of an exported table are: ``results.csv.logs.jsonl`` for ``results.csv``."""
    return path.with_name(f"{path.name}.logs.jsonl")


def write_companion(store: RunFile, path: Path) -> Path | None:
    """Write the file beside a table; for a run file without anything, one of an earlier export is removed."""
    target = companion_of(path)
    with store.transaction() as connection:
        if not _count(connection, chain):
            if target.exists() and _is_ours(target):
                target.unlink()
            return None
        with replacing(target) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in _lines(connection))
    return target


def _count(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _lines(connection: Connection) -> Iterator[str]:
    stream = connection.execution_options(stream_results=True).execute
    yield json.dumps(_HEAD)
    for key, value in stream(select(metadata).order_by(metadata.c.key)):
        if key not in UNHASHED_FACTS:
            yield _line(fact=key, value=value)
    for kind, table in _JUDGED.items():
        for values in _rows(connection, table):
            yield _line(**{kind: values})
    written = select(logs.c.log, logs.c.row, cast(logs.c.data, Text)).order_by(logs.c.log, logs.c.row)
    for log, row, data in stream(written):  # to the letter: the hashes are of the letters
        yield f'{_line(log=log, row=row)[:-1]},"data":{data}}}'
    for name, row, data in stream(select(blobs).order_by(blobs.c.name, blobs.c.row)):
        yield _line(blob=name, row=row, data=base64.b64encode(data).decode("ascii"))
    for kind, table in {**_LABEL_TABLES, "chain": chain}.items():
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


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().strip() == json.dumps(_HEAD).encode()


def is_whole(path: Path) -> bool:
    """Whether the chain of the exported run is there."""
    return next(_read(path, "chain"), None) is not None


def named_pairs(path: Path) -> dict[str, dict[str, Any]]:
    """The questions by their name: ``ID1 ID2 columns``."""
    rows = (line["pair"] for line in _read(path, "pair"))
    kept = ("ID1", "ID2")
    return {
        row["custom_id"]: {name: row[name] for name in kept} | {"columns": json.loads(row["columns"])} for row in rows
    }


def companion_rows(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The rows of a table, of its kind of lines; JSON columns are written out."""
    table = _TABLES[kind]
    written = [column.name for column in table.c if isinstance(column.type, JSON) and column.name not in _LEFT_OUT]
    for line in _read(path, kind):
        row = line[kind]
        yield row | {name: None if row[name] is None else Written(row[name]) for name in written}


def enter_rest(change: Change, path: Path) -> None:
    """Enter what does not concern single comparisons into an empty run file: facts, logs, blobs and labels."""
    for line in _read(path, "fact"):
        change.set_fact(line["fact"], line["value"])
    change.insert(logs, _log_rows(path))
    change.insert(
        blobs, ({"name": line["blob"], "row": line["row"], "data": line["data"]} for line in _read(path, "blob"))
    )
    _enter_label_rows(change, {kind: list(companion_rows(path, kind)) for kind in _LABEL_TABLES})


def _log_rows(path: Path) -> Iterator[dict[str, Any]]:
    return ({**line, "data": Written(_line(**line["data"]))} for line in _read(path, "log"))


def labelled_items(path: Path) -> set[str]:
    """The samples that labels are about."""
    cases = (line["label_case"] for line in _read(path, "label_case"))
    return {case[name] for case in cases for name in ("ID1", "ID2") if case[name] is not None}


def enter_companion(store: RunFile, path: Path) -> None:
    """Enter logs, blobs, facts and labels into a run file that has none, or these very ones.

    Raises:
        StoreMismatchError: when the run file has other logs or other labels.
    """
    with store.writer.changing() as change:
        change.about["imported"] = path.name
        _enter_logs(change, store.name, path)
        _enter_labels(change, store.name, path)
    store.writer.renumber()


def _enter_logs(change: Change, name: str, path: Path) -> None:
    there = select(logs.c.log, logs.c.row, logs.c.data)
    known = {(log, row): data for log, row, data in change.connection.execute(there)}
    if known:
        given = {(line["log"], line["row"]): line["data"] for line in _read(path, "log")}
        if given != known:
            raise StoreMismatchError(f"{name} has other logs than {path}; import into a new run file")
        return
    change.insert(logs, _log_rows(path))
    change.insert(
        blobs, ({"name": line["blob"], "row": line["row"], "data": line["data"]} for line in _read(path, "blob"))
    )
    for line in _read(path, "fact"):
        change.set_fact(line["fact"], line["value"])


def _enter_labels(change: Change, name: str, path: Path) -> None:
    """Labels under the numbers that they have."""
    given = {kind: list(companion_rows(path, kind)) for kind in _LABEL_TABLES}
    if not given["label_case"]:
        return
    if _count(change.connection, label_cases):
        if any(list(_rows(change.connection, table)) != given[kind] for kind, table in _LABEL_TABLES.items()):
            raise StoreMismatchError(f"{name} has other labels than {path}; import into a new run file")
        return
    _enter_label_rows(change, given)
    for line in _read(path, "fact"):
        if line["fact"] == LABELLING:
            change.set_fact(LABELLING, line["value"])


def _enter_label_rows(change: Change, given: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Every labeller gets a new link, and so the run file becomes private."""
    if given["labeller"]:
        _sqlite.make_private(change.connection.engine)
    for kind, table in _LABEL_TABLES.items():
        tokens = ({"token": new_token()} if table is labellers else {} for _ in given[kind])
        change.insert(table, (row | token for row, token in zip(map(dict, given[kind]), tokens, strict=True)))


def _read(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The lines of a kind."""
    begins = f'{{"{kind}":'
    try:
        if not _is_ours(path):
            raise FileFormatError(f"{path} does not hold the logs of an exported run; remove or rename it")
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
