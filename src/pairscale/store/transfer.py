"""Results out of a run file, and into one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.core.comparisons import Condition, key_expressions, occurrence
from pairscale.core.copies import NUMBER_ROWS, without_copies
from pairscale.core.counting import scanned, scanned_rows
from pairscale.core.errors import TableError
from pairscale.core.files import write_parquet_blocks, write_table
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.core.provenance import fingerprint, utc_now
from pairscale.core.results import ORDER_KNOWN, ResultColumns, read_form
from pairscale.core.samples import read_samples
from pairscale.core.tables import RESULTS, Table, listed
from pairscale.store._companion import (
    companion_of,
    companion_rows,
    enter_companion,
    is_whole,
    labelled_items,
    named_pairs,
    write_companion,
)
from pairscale.store._restore import BLOCK, COPIED, restore
from pairscale.store._results import result_blocks
from pairscale.store.reading import read_criteria
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.writer import Asked, Entry

__all__ = ["export_results", "import_run"]

_OURS = ("condition_id", "judge_id", "model", "trait", "template_id")
_COMMITTED = 5_000  # comparisons that are made into rows at a time


def export_results(run: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Write every comparison of a run file to a table: csv, tsv, jsonl, json, parquet or xlsx, by its ending.

    Failed pairs are in it too, with their outcome. A run that is still being written is exported as it is at one
    moment. Attempts, logs, the labels of people and the hash chain are written to a second file beside it, with
    ``.logs.jsonl`` after its name; :func:`import_run` finds it there. Texts, requests, raw replies and the links of
    labellers are not exported. Parquet is written in blocks, however large the run is; other tables are made in memory.

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
        if Path(path).suffix.lower() == ".parquet":
            with store.transaction() as connection:
                blocks = (block.select(*RESULTS, "received_at") for block in result_blocks(connection))
                target = write_parquet_blocks(blocks, path, {**RESULTS, "received_at": pl.String()})
        else:
            target = write_table(store.results().select(*RESULTS, "received_at"), path)
        write_companion(store, target)
        if not store.counts()["comparisons"] and (labels := store.labels().height):
            notice(
                f"the table has no rows: the run file holds {labels:,} labels of people and no comparisons of a judge. "
                f"The labels as a table: `pairscale label {store.name} --status --out labels.jsonl`"
            )
    return target


@checked
def import_run(
    path: Table | str | os.PathLike[str],
    run: str | os.PathLike[str],
    samples: Table | str | os.PathLike[str] | None = None,
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
            ``model`` is the condition. What is in a file beside it, as :func:`pairscale.export` writes it, is imported,
            too; labellers get new links.
        run: The run file; created if it is missing. In an empty one, an exported run keeps its hash chain, so that
            :func:`pairscale.audit` compares it with what was written when it was judged.
        samples: The texts, unless the run file has them.
        a_col: The column of the first text, or its path where values are nested; by default by its name.
        b_col: The column of the second text.
        winner_col: The column that says who won.
        encoding: Encoding of text files that are not UTF-8.

    Returns:
        How many comparisons were new; what is there already stays as it is.

    Raises:
        TableError: when the text of a sample is known to neither.
        StoreMismatchError: when the run file has other logs or labels than those that come with the results, or a
            text is not the one that was judged.

    Example:
        >>> import pairscale as ps
        >>> ps.import_run(ps.example_writing_results, "imported.db", ps.example_writing_samples)
        190
    """
    beside: Path | None = None
    if isinstance(path, str | os.PathLike):
        beside = companion_of(Path(path))
        beside = beside if beside.exists() else None
    texts = None if samples is None else read_samples(samples, encoding=encoding)
    columns = ResultColumns(a_col, b_col, winner_col, encoding)
    frame = None
    if beside is None:
        frame = _read(path, columns)
        if "://" not in str(run) and not Path(run).exists():  # refused before there is a file
            _require_texts({*frame["ID1"], *frame["ID2"]}, set() if texts is None else set(texts["ID"]))
    with open_run(run, write=True) as store, store.snapshot():  # one transaction: what is refused leaves nothing
        new, is_restored = 0, False
        if beside is not None and is_whole(beside) and store.is_empty():
            blocks = _in_blocks(path, columns)
            new, frame = restore(store, beside, blocks, _given(beside, blocks, texts))
            is_restored = True
        else:
            frame = _read(path, columns) if frame is None else frame
            about = set() if beside is None else labelled_items(beside)
            _add_samples(store, {*frame["ID1"], *frame["ID2"], *about}, texts)
        if frame is not None:
            new += _add(store, frame, {} if beside is None else named_pairs(beside))
        if beside is not None and not is_restored:
            enter_companion(store, beside)
    return new


def _read(path: Table | str | os.PathLike[str], columns: ResultColumns) -> pl.DataFrame:
    """A results table in memory, without copies of itself; its form is said where it is not ours."""
    found = read_criteria(path, columns)
    if found.form is not None or found.unknown:
        notice(found.line)
    return _sided(without_copies(found.table, NUMBER_ROWS)[0])


def _in_blocks(path: Any, columns: ResultColumns) -> Callable[[], Iterator[pl.DataFrame]]:
    """What gives a results table block by block; a Parquet file of ours is read so, others are in memory."""
    lazy = None if columns else scanned(path)
    names = [] if lazy is None else lazy.collect_schema().names()
    if lazy is None or not {"ID1", "ID2", "better_id", *_OURS} <= set(names) or ORDER_KNOWN in names:
        frame = _read(path, columns)
        return lambda: frame.iter_slices(BLOCK)
    rows = scanned_rows(lazy, str(path))[0]

    def blocks() -> Iterator[pl.DataFrame]:
        for begin in range(0, max(rows, 1), BLOCK):
            what = f"{path}, rows counted from {begin + 1:,}" if rows > BLOCK else str(path)
            yield read_form(lazy.slice(begin, BLOCK).collect(), what).table

    return blocks


def _add(store: RunFile, frame: pl.DataFrame, named: Mapping[str, Mapping[str, Any]]) -> int:
    """Enter comparisons, condition by condition."""
    for name in (*_OURS, "outcome"):
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, pl.String).alias(name))
    groups = frame.group_by(*_OURS, maintain_order=True)
    return sum(_add_group(store, group, named) for _, group in groups)


def _sided(frame: pl.DataFrame) -> pl.DataFrame:
    """Results in which every text has a side; where it is not known who stood first, chance decides, always alike."""
    if ORDER_KNOWN not in frame.columns:
        return frame
    unknown = ~frame[ORDER_KNOWN].cast(pl.Boolean).fill_null(value=True)
    if unknown.any():
        notice("the results do not say who stood first; sides are drawn, so that no position is favoured")
    keys = zip(frame["ID1"], frame["ID2"], range(frame.height), strict=True)
    drawn = pl.Series([int(fingerprint([*sorted(key[:2]), key[2]])[:8], 16) % 2 == 1 for key in keys], dtype=pl.Boolean)
    low_first = frame["ID1"] <= frame["ID2"]
    turned = pl.lit(unknown & (drawn == low_first))
    one, two = (
        pl.when(turned).then(other).otherwise(own).alias(own) for own, other in (("ID1", "ID2"), ("ID2", "ID1"))
    )
    return frame.with_columns(one, two).drop(ORDER_KNOWN)


def _given(
    beside: Path, blocks: Callable[[], Iterator[pl.DataFrame]], samples: pl.DataFrame | None
) -> Iterable[dict[str, Any]]:
    """The samples, which must hold every text that the run is about."""
    frame = pl.DataFrame(schema={"ID": pl.String}) if samples is None else samples
    needed = labelled_items(beside)
    for block in blocks():
        needed.update(block["ID1"].unique(), block["ID2"].unique())
    needed.update(row[name] for row in companion_rows(beside, "pair") for name in ("ID1", "ID2"))
    _require_texts(needed, set(frame["ID"]))
    return frame.iter_rows(named=True)


def _require_texts(needed: set[str], known: set[str]) -> None:
    if unknown := sorted(needed - known):
        raise TableError(f"results: the text of {listed(unknown)} is not known; give samples=")


def _add_samples(store: RunFile, needed: set[str], samples: pl.DataFrame | None) -> None:
    if samples is not None:
        store.add_items(samples.iter_rows(named=True))
    _require_texts(needed, set(store.items()["ID"]))


def _add_group(store: RunFile, group: pl.DataFrame, named: Mapping[str, Mapping[str, Any]]) -> int:
    head = group.row(0, named=True)
    condition = Condition(
        head["judge_id"] or head["model"] or "imported",
        "import",
        head["model"],
        head["trait"],
        head["template_id"],
    )
    condition_id = store.add_condition(condition, head["condition_id"])
    ordered, _ = key_expressions("ID1", "ID2")
    numbered = group.with_columns(_key=ordered).with_columns(_name=pl.format("{}#{}", "_key", occurrence("_key")))
    numbers = store.add_pairs(_pair(row, named) for row in numbered.iter_rows(named=True))
    progress = store.progress(condition_id)
    settled = progress.answered | progress.failed
    answers = (
        Entry(_asked(row, number, condition_id))
        for row, number in zip(group.iter_rows(named=True), numbers, strict=True)
        if number not in settled
    )
    new = 0
    while some := list(islice(answers, _COMMITTED)):
        store.writer.commit(some)
        new += len(some)
    return new


def _pair(row: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The question under its own name when that is known to be unique, else under one that is."""
    known = named.get(row.get("custom_id") or "")
    if known is not None and (known["ID1"], known["ID2"]) == (row["ID1"], row["ID2"]):
        return {"custom_id": row["custom_id"], **known}
    return {"custom_id": row["_name"], "ID1": row["ID1"], "ID2": row["ID2"], "columns": {}}


def _asked(row: Mapping[str, Any], number: int, condition_id: str) -> Asked:
    position = {row["ID1"]: 1, row["ID2"]: 2}.get(row["better_id"])
    outcome = "win" if position else row["outcome"] or "abstention"
    if outcome == "win" and position is None:
        raise TableError(f"results: {row['ID1']!r}, {row['ID2']!r} is a win without a winner of the pair")
    now = row.get("received_at") or utc_now()
    values = {name: row.get(name) for name in COPIED}
    codes = {"error": "judge_error", "abstention": "refusal"}
    values |= {"attempt": 1, "attempted_at": str(now), "outcome": outcome, "error_code": codes.get(outcome)}
    values["failure"] = "question" if outcome in codes else None
    comparison = {
        "outcome": outcome,
        "winner_pos": position,
        "better_id": row["better_id"] if position else None,
        "probability": row.get("probability"),
        "received_at": str(now),
    }
    return Asked(condition_id, (values,), comparison, number)
