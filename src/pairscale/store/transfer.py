"""Results out of a run file, and into one.

Beside an exported table lies a file with everything about the run but texts, requests, raw replies and links of
labellers. One JSON object per line: a head with the digest of the run and the SHA-256 of the table; then the rows of
all tables, each as ``{"table": {"column": value}}``, table by table; and, last, the SHA-256 of all lines before. Blobs
are base64, and JSON columns are their text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import Text, select, type_coerce

from pairscale.core.comparisons import Condition, pair_names
from pairscale.core.errors import FileFormatError, StoreMismatchError, TableError
from pairscale.core.files import replacing, write_table
from pairscale.core.notices import notice
from pairscale.core.options import FilePath, checked
from pairscale.core.provenance import utc_now
from pairscale.core.results import ORDER_KNOWN, ResultColumns
from pairscale.core.samples import read_samples
from pairscale.core.tables import PAIRS_CHOSEN, RESULTS, Row, Table, Values, listed
from pairscale.store.chain import HASHED, UNHASHED_FACTS, digest_of_heads, heads_of
from pairscale.store.database import make_private
from pairscale.store.labels import new_token
from pairscale.store.reading import read_criteria
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.schema import JsonText, Written, blobs, items, labellers, metadata
from pairscale.store.writer import Asked, Entry, item_row

if TYPE_CHECKING:
    from sqlalchemy import Column
    from sqlalchemy import Table as StoredTable
    from sqlalchemy.engine import Connection

_OURS = ("condition_id", "judge_id", "model", "trait", "template_id")
_COPIED = ("error_message", "status_code", "model", "object_type", "thoughts", "content", "prompt_tokens",
           "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "latency_s",
           "cost")  # fmt: skip
_COMMITTED = 5_000  # comparisons that are made into rows at a time


def export_results(run: FilePath, path: FilePath) -> Path:
    """Write every comparison of a run file to a table: csv, tsv, jsonl, json, parquet or xlsx, by its ending.

    Failed pairs are in it too, with their outcome. A run that is still being written is exported as it is at one
    moment. Attempts, logs and the labels of people are written to a second file beside it, with ``.logs.jsonl`` after
    its name; :func:`import_run` finds it there. Texts, requests, raw replies and the links of labellers are not
    exported.

    Args:
        run: The run file.
        path: The table to write.

    Returns:
        The file that was written.

    Raises:
        StoreError: If the run file cannot be read.
        FileFormatError: If the ending of ``path`` is not that of a table.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.synthetic_essays(3, seed=1))
        >>> _ = ps.submit_pairs(pairs, "lexical", run="exported.db", progress=False)
        >>> export_results("exported.db", "comparisons.csv").name
        'comparisons.csv'
    """
    with open_run(run) as store, store.snapshot():
        table = store.results().select(*RESULTS, "received_at")
        adaptive = store.get_meta("adaptive_condition")
        if adaptive is not None:
            is_adaptive = pl.col("condition_id") == adaptive
            table = table.with_columns(pl.when(is_adaptive).then(pl.lit("adaptive")).alias(PAIRS_CHOSEN))
        target = write_table(table, path)
        _write_companion(store, target)
    return target


@checked
def import_run(
    path: Table | FilePath,
    run: FilePath,
    samples: Table | FilePath | None = None,
    *,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    encoding: str | None = None,
) -> int:
    """Enter the comparisons of a results table (also one that the R package wrote) into a run file.

    All of it goes in, or nothing.

    Args:
        path: A file or a table of results; ``condition_id`` and its companions are kept where they are there, else the
            ``model`` is the condition. A table that :func:`pairscale.export` wrote is imported with everything in
            the file beside it; labellers get new links.
        run: The run file; created if it is missing. An exported run needs a new one. Its hash chain begins with the
            import, and names the digest of the run that was exported.
        samples: The texts, unless the run file has them.
        a_col: The column of the first text, or its path where values are nested; by default by its name.
        b_col: The column of the second text.
        winner_col: The column that says who won.
        encoding: Encoding of text files that are not UTF-8.

    Returns:
        How many comparisons were new; what is there already stays as it is.

    Raises:
        TableError: when the text of a sample is known to neither.
        FileFormatError: when an exported table was changed since.
        StoreMismatchError: when an exported run meets a run file that holds another run, or a text is not the one that
            was judged.

    Example:
        >>> import pairscale as ps
        >>> ps.import_run(ps.example_writing_results, "imported.db", ps.example_writing_samples)
        190
    """
    texts = None if samples is None else read_samples(samples, encoding=encoding)
    if isinstance(path, str | os.PathLike) and _companion_of(Path(path)).exists():
        return _import_exported(Path(path), run, texts)
    frame = _read(path, ResultColumns(a_col, b_col, winner_col, encoding))
    ids = {*frame["ID1"], *frame["ID2"]}
    if not Path(run).exists():  # what is refused leaves no file
        _require_texts(ids, set() if texts is None else set(texts["ID"]))
    with open_run(run, write=True) as store, store.snapshot():  # one transaction: what is refused leaves nothing
        if texts is not None:
            store.add_items(texts.iter_rows(named=True))
        _require_texts(ids, set(store.items()["ID"]))
        return _add(store, frame)


def _import_exported(path: Path, run: FilePath, texts: pl.DataFrame | None) -> int:
    """Enter a run that :func:`export_results` wrote into an empty run file."""
    beside = _companion_of(path)
    head = _read_head(beside, path)
    with open_run(run, write=True) as store, store.snapshot():
        if (store.get_meta(_IMPORTED) or {}).get("table") == head["table"]:
            return 0
        if not store.is_empty():
            raise StoreMismatchError(f"{store.name} holds a run already; import {path} into a new run file")
        _require_texts({row["item_id"] for row in _rows(beside, items)}, set() if texts is None else set(texts["ID"]))
        return _restore(store, beside, head, () if texts is None else texts.iter_rows(named=True))


def _read(path: Table | FilePath, columns: ResultColumns) -> pl.DataFrame:
    """A results table in memory; a notice names its form where it is not ours."""
    results = read_criteria(path, columns)
    if results.form is not None or results.unknown:
        notice(results.line)
    return _sided(results.table)


def _add(store: RunFile, frame: pl.DataFrame) -> int:
    """Enter comparisons, condition by condition."""
    for name in (*_OURS, "outcome"):
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, pl.String).alias(name))
    groups = frame.group_by(*_OURS, maintain_order=True)
    return sum(_add_group(store, group) for _, group in groups)


def _sided(frame: pl.DataFrame) -> pl.DataFrame:
    """Results in which every text has a side; where the order is not known, every other row is swapped."""
    if ORDER_KNOWN not in frame.columns:
        return frame
    notice(
        "the results do not say which text was shown first; every other row is swapped, so that no position is favoured"
    )
    turned = ~pl.col(ORDER_KNOWN).fill_null(value=True) & (pl.int_range(pl.len()) % 2 == 1)
    first = pl.when(turned).then("ID2").otherwise("ID1")
    second = pl.when(turned).then("ID1").otherwise("ID2")
    return frame.with_columns(ID1=first, ID2=second).drop(ORDER_KNOWN)


def _require_texts(needed: set[str], available: set[str]) -> None:
    if unknown := sorted(needed - available):
        raise TableError(f"results: the text of {listed(unknown)} is not known; give `samples=`")


def _add_group(store: RunFile, group: pl.DataFrame) -> int:
    head = group.row(0, named=True)
    condition = Condition(
        head["judge_id"] or head["model"] or "imported",
        "import",
        head["model"],
        head["trait"],
        head["template_id"],
    )
    condition_id = store.add_condition(condition, head["condition_id"])
    numbered = group.with_columns(_name=pair_names())
    numbers = store.add_pairs(
        {"custom_id": row["_name"], "ID1": row["ID1"], "ID2": row["ID2"], "columns": {}}
        for row in numbered.iter_rows(named=True)
    )
    progress = store.progress(condition_id)
    settled = progress.answered | progress.failed
    answers = (
        Entry(asked_of(row, number, condition_id))
        for row, number in zip(group.iter_rows(named=True), numbers, strict=True)
        if number not in settled
    )
    new = 0
    while some := list(islice(answers, _COMMITTED)):
        store.writer.commit(some)
        new += len(some)
    return new


def asked_of(row: Row, number: int, condition_id: str, *, attempt: int = 1, replaces: bool = False) -> Asked:
    """The attempt and the outcome that a row of results describes.

    Args:
        row: of a results table.
        number: of its pair in the run file.
        condition_id: under which it was judged.
        attempt: how often the pair was asked, this time included.
        replaces: whether an earlier outcome of the pair is replaced.

    Raises:
        TableError: it is a win without a winner.
    """
    position = {row["ID1"]: 1, row["ID2"]: 2}.get(row["better_id"])
    outcome = "win" if position else row.get("outcome") or "abstention"
    if outcome == "win" and position is None:
        raise TableError(f"results: {row['ID1']!r}, {row['ID2']!r} is a win without a winner of the pair")
    received_at = str(row.get("received_at") or utc_now())
    values = {name: row.get(name) for name in _COPIED}
    codes = {"error": "judge_error", "abstention": "refusal"}
    values |= {"attempt": attempt, "attempted_at": received_at, "outcome": outcome, "error_code": codes.get(outcome)}
    values["failure"] = "question" if outcome in codes else None
    comparison = {
        "outcome": outcome,
        "winner_pos": position,
        "better_id": row["better_id"] if position else None,
        "probability": row.get("probability"),
        "received_at": received_at,
    }
    return Asked(condition_id, (values,), comparison, number, replaces=replaces)


# The file beside an exported table

_VERSION = 5
_IMPORTED = "imported"  # the fact that names the digest of the run that a run file was imported from, and its table's
_LEFT_OUT = frozenset(
    {"items.text", "items.columns", "labellers.token", "label_cases.task_input", "label_cases.response_1"}
    | {"label_cases.response_2", "attempts.request", "attempts.raw_response"}
)


def _companion_of(path: Path) -> Path:
    """Where the logs of an exported table are: ``results.csv.logs.jsonl`` for ``results.csv``."""
    return path.with_name(f"{path.name}.logs.jsonl")


def _write_companion(store: RunFile, path: Path) -> None:
    """Write the file beside a table."""
    digest = hashlib.sha256()
    with (
        store.transaction() as connection,
        replacing(_companion_of(path)) as temporary,
        temporary.open("wb") as file,
    ):
        end = digest_of_heads(heads_of(connection))
        head = {"pairscale": "logs", "version": _VERSION, "digest": end, "table": _hash_of(path)}
        for line in (head, *_lines(connection)):
            written = f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n".encode()
            digest.update(written)
            file.write(written)
        file.write(f'{{"sha256":"{digest.hexdigest()}"}}\n'.encode())


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(connection: Connection) -> Iterator[Values]:
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


def _exported(table: StoredTable) -> list[Column[Any]]:
    return [column for column in table.c if str(column) not in _LEFT_OUT]


def _is_text(column: Column[Any]) -> bool:
    """Whether a column goes through the file as the text of its JSON, unchanged."""
    return isinstance(column.type, JsonText) and column.table is not metadata


def _read_head(path: Path, table: Path) -> Values:
    """The head of the file, when it and the table beside it are as they were exported.

    Raises:
        FileFormatError: it is something else, or one of the two was changed since.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        head = file.readline()
        last = head
        for line in file:
            digest.update(last)
            last = line
    if last != f'{{"sha256":"{digest.hexdigest()}"}}\n'.encode() or f'"version":{_VERSION},'.encode() not in head:
        raise FileFormatError(f"{path} is not a file of logs as an export wrote it; export the run again")
    header: Values = json.loads(head)
    if header["table"] != _hash_of(table):
        raise FileFormatError(
            f"{table} is not as it was exported. To import the table as it is now, without logs and labels, remove "
            f"{path}; otherwise export the run again"
        )
    return header


def _restore(store: RunFile, path: Path, head: Row, samples: Iterable[Row]) -> int:
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
    hashes = {row["item_id"]: row["text_hash"] for row in _rows(path, items)}
    rows = [item_row(sample) for sample in samples]
    changed = [row["item_id"] for row in rows if hashes.get(row["item_id"], row["text_hash"]) != row["text_hash"]]
    if changed:
        raise StoreMismatchError(
            f"{listed(sorted(changed))} had another text when the exported run judged it; give the texts of that time"
        )
    with store.writer.changing() as change:
        change.about["imported"] = head["digest"]
        for row in _rows(path, metadata):
            change.set_fact(row["key"], row["value"])
        change.set_fact(_IMPORTED, {"digest": head["digest"], "table": head["table"]})
        change.insert(items, rows)
        for table in HASHED:
            if table is not items and table is not metadata:
                change.insert(table, _rows(path, table))
        if change.connection.execute(select(labellers.c.labeller_id).limit(1)).first():
            make_private(change.connection.engine)
    store.writer.renumber()
    return store.counts()["comparisons"]


def _rows(path: Path, table: StoredTable) -> Iterator[Values]:
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
