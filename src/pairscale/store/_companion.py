"""The file beside an exported table: logs, blobs, labels, facts and the names of questions.

One JSON object per line: a head, then ``fact``, ``pair``, ``log``, ``blob``, ``labeller``, ``label_case``,
``label_question`` and ``label`` lines, in this order. Blobs are base64. Texts and the links of labellers are left out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, cast, func, insert, select

from pairscale.errors import FileFormatError, StoreMismatchError
from pairscale.files import replacing
from pairscale.store import _sqlite
from pairscale.store._database import Written, set_fact
from pairscale.store._schema import blobs, label_cases, label_questions, labellers, labels, logs, metadata, pairs
from pairscale.store.labels import LABELLING, LINKS, new_token

if TYPE_CHECKING:
    from sqlalchemy import Column, Table
    from sqlalchemy.engine import Connection

    from pairscale.store.runfile import RunFile

__all__ = ["companion_of", "enter_companion", "labelled_items", "named_pairs", "write_companion"]

_HEAD = {"pairscale": "logs", "version": 1}
_OWN = frozenset({"schema_version", "created_by", "created_at", "writer", LINKS})  # of the file, not of the run
_CHUNK = 1_000
_FIELDS: dict[str, dict[str, type]] = {
    "fact": {"fact": str, "value": object},
    "pair": {"pair": str, "ID1": str, "ID2": str, "columns": dict},
    "log": {"log": str, "row": int, "data": dict},
    "blob": {"blob": str, "row": int, "data": str},
    "labeller": {"labeller": dict},
    "label_case": {"label_case": dict},
    "label_question": {"label_question": dict},
    "label": {"label": dict},
}
_LABEL_TABLES: dict[str, Table] = {
    "labeller": labellers,
    "label_case": label_cases,
    "label_question": label_questions,
    "label": labels,
}
_LEFT_OUT = frozenset({"token", "task_input", "response_1", "response_2"})


def companion_of(path: Path) -> Path:
    """Where the logs of an exported table are: ``results.csv.logs.jsonl`` for ``results.csv``."""
    return path.with_name(f"{path.name}.logs.jsonl")


def write_companion(store: RunFile, path: Path) -> Path | None:
    """Write the file beside a table, if the run has logs or labels; else one of an earlier export is removed."""
    target = companion_of(path)
    with store.transaction() as connection:
        if not any(_count(connection, table) for table in (logs, label_cases)):
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
        if key not in _OWN:
            yield _line(fact=key, value=value)
    for row in stream(select(pairs).order_by(pairs.c.pair_id)):
        yield _line(pair=row.custom_id, ID1=row.ID1, ID2=row.ID2, columns=row.columns)
    written = select(logs.c.log, logs.c.row, cast(logs.c.data, Text)).order_by(logs.c.log, logs.c.row)
    for log, row, data in stream(written):  # to the letter: the hashes are of the letters
        yield f'{_line(log=log, row=row)[:-1]},"data":{data}}}'
    for name, row, data in stream(select(blobs).order_by(blobs.c.name, blobs.c.row)):
        yield _line(blob=name, row=row, data=base64.b64encode(data).decode("ascii"))
    for kind, table in _LABEL_TABLES.items():
        for values in _label_rows(connection, table):
            yield _line(**{kind: values})


def _exported(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if column.name not in _LEFT_OUT]


def _label_rows(connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
    query = select(*_exported(table)).order_by(*table.primary_key)
    for row in connection.execution_options(stream_results=True).execute(query).mappings():
        yield dict(row)


def _line(**values: Any) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().strip() == json.dumps(_HEAD).encode()


def named_pairs(path: Path) -> dict[str, dict[str, Any]]:
    """The questions by their name: ``ID1 ID2 columns``."""
    return {line.pop("pair"): line for line in _read(path, "pair")}


def labelled_items(path: Path) -> set[str]:
    """The samples that labels are about."""
    cases = (line["label_case"] for line in _read(path, "label_case"))
    return {case[name] for case in cases for name in ("ID1", "ID2") if case[name] is not None}


def enter_companion(store: RunFile, path: Path) -> None:
    """Enter logs, blobs, facts and labels into a run file that has none, or these very ones.

    Raises:
        StoreMismatchError: when the run file has other logs or other labels.
    """
    with store.transaction() as connection:
        _enter_logs(connection, store.name, path)
        _enter_labels(connection, store.name, path)
    store.writer.renumber()


def _enter_logs(connection: Connection, name: str, path: Path) -> None:
    there = select(logs.c.log, logs.c.row, logs.c.data)
    known = {(log, row): data for log, row, data in connection.execute(there)}
    if known:
        given = {(line["log"], line["row"]): line["data"] for line in _read(path, "log")}
        if given != known:
            raise StoreMismatchError(f"{name} has other logs than {path}; import into a new run file")
        return
    rows = ({**line, "data": Written(_line(**line["data"]))} for line in _read(path, "log"))
    while block := list(islice(rows, _CHUNK)):
        connection.execute(insert(logs), block)
    for line in _read(path, "blob"):
        connection.execute(insert(blobs), [{"name": line["blob"], "row": line["row"], "data": line["data"]}])
    for line in _read(path, "fact"):
        set_fact(connection, line["fact"], line["value"])


def _enter_labels(connection: Connection, name: str, path: Path) -> None:
    """Labels under the numbers that they have; every labeller gets a new link."""
    given = {kind: [line[kind] for line in _read(path, kind)] for kind in _LABEL_TABLES}
    if not given["label_case"]:
        return
    if _count(connection, label_cases):
        if any(list(_label_rows(connection, table)) != given[kind] for kind, table in _LABEL_TABLES.items()):
            raise StoreMismatchError(f"{name} has other labels than {path}; import into a new run file")
        return
    _sqlite.make_private(connection.engine)
    for kind, table in _LABEL_TABLES.items():
        rows = [row | {"token": new_token()} for row in given[kind]] if table is labellers else given[kind]
        if rows:
            connection.execute(insert(table), rows)
    for line in _read(path, "fact"):
        if line["fact"] == LABELLING:
            set_fact(connection, LABELLING, line["value"])


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
        elif kind in _LABEL_TABLES:
            _check_row(line[kind], _LABEL_TABLES[kind])
    except KeyError as error:
        raise FileFormatError(f"{where}: no {error}; export the run again") from None
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{where}: {error}; export the run again") from None
    return line


def _check_row(row: Mapping[str, Any], table: Table) -> None:
    for column in _exported(table):
        value = row[column.name]
        if not (column.nullable if value is None else _fits(value, column.type.python_type)):
            raise ValueError(f"{column.name} is {value!r:.60}")


def _fits(value: Any, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, int | float if kind is float else kind)
