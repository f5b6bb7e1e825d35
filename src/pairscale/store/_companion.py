"""The file beside an exported table: logs, blobs, facts and the names of questions, which no table of results can hold.

One JSON object a line: a head, then ``fact``, ``pair``, ``log`` and ``blob`` lines, in this order. Blobs are base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, cast, func, insert, select

from pairscale.errors import FileFormatError, StoreMismatchError
from pairscale.files import replacing
from pairscale.store._database import Written, set_fact
from pairscale.store._schema import blobs, logs, metadata, pairs

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from pairscale.store.runfile import RunFile

__all__ = ["companion_of", "enter_companion", "named_pairs", "write_companion"]

_HEAD = {"pairscale": "logs", "version": 1}
_OWN = frozenset({"schema_version", "created_by", "created_at", "writer"})  # facts about the file, not about the run
_CHUNK = 1_000
_FIELDS: dict[str, dict[str, type]] = {
    "fact": {"fact": str, "value": object},
    "pair": {"pair": str, "ID1": str, "ID2": str, "columns": dict},
    "log": {"log": str, "row": int, "data": dict},
    "blob": {"blob": str, "row": int, "data": str},
}


def companion_of(path: Path) -> Path:
    """Where the logs of an exported table are: ``results.csv.logs.jsonl`` for ``results.csv``."""
    return path.with_name(f"{path.name}.logs.jsonl")


def write_companion(store: RunFile, path: Path) -> Path | None:
    """Write the file beside a table, if the run has logs; else one of an earlier export is removed."""
    target = companion_of(path)
    with store.transaction() as connection:
        if connection.execute(select(func.count()).select_from(logs)).scalar_one() == 0:
            if target.exists() and _is_ours(target):
                target.unlink()
            return None
        with replacing(target) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in _lines(connection))
    return target


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


def _line(**values: Any) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().strip() == json.dumps(_HEAD).encode()


def named_pairs(path: Path) -> dict[str, dict[str, Any]]:
    """The questions by their name: ``ID1 ID2 columns``."""
    return {line.pop("pair"): line for line in _read(path, "pair")}


def enter_companion(store: RunFile, path: Path) -> None:
    """Enter logs, blobs and facts into a run file that has none, or these very ones.

    Raises:
        StoreMismatchError: when the run file has other logs.
    """
    with store.transaction() as connection:
        there = select(logs.c.log, logs.c.row, logs.c.data)
        known = {(log, row): data for log, row, data in connection.execute(there)}
        if known:
            given = {(line["log"], line["row"]): line["data"] for line in _read(path, "log")}
            if given != known:
                raise StoreMismatchError(f"{store.name} has other logs than {path}; import into a new run file")
            return
        rows = ({**line, "data": Written(_line(**line["data"]))} for line in _read(path, "log"))
        while block := list(islice(rows, _CHUNK)):
            connection.execute(insert(logs), block)
        for line in _read(path, "blob"):
            connection.execute(insert(blobs), [{"name": line["blob"], "row": line["row"], "data": line["data"]}])
        for line in _read(path, "fact"):
            set_fact(connection, line["fact"], line["value"])
    store.writer.renumber()


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
    """A line that has all that its kind has; the bytes of a blob are bytes again."""
    try:
        line = dict(json.loads(text))
        for name, form in _FIELDS[kind].items():
            if not isinstance(line[name], form):
                raise ValueError(f"{name} is {line[name]!r:.60}")
        if kind == "blob":
            line["data"] = base64.b64decode(line["data"], validate=True)
    except KeyError as error:
        raise FileFormatError(f"{where}: no {error}; export the run again") from None
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{where}: {error}; export the run again") from None
    return line
