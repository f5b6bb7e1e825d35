"""Results out of a run file, and into one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.core.comparisons import Condition, key_expressions, occurrence
from pairscale.core.errors import StoreMismatchError, TableError
from pairscale.core.files import write_table
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.core.provenance import fingerprint, utc_now
from pairscale.core.results import ORDER_KNOWN, ResultColumns
from pairscale.core.samples import read_samples
from pairscale.core.tables import RESULTS, Table, listed
from pairscale.store._companion import IMPORTED, companion_of, needed_items, read_head, restore, write_companion
from pairscale.store.reading import read_criteria
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.writer import Asked, Entry

__all__ = ["asked_of", "export_results", "import_run"]

_OURS = ("condition_id", "judge_id", "model", "trait", "template_id")
_COPIED = ("error_message", "status_code", "model", "object_type", "thoughts", "content", "prompt_tokens",
           "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "latency_s",
           "cost")  # fmt: skip
_COMMITTED = 5_000  # comparisons that are made into rows at a time


def export_results(run: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
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
    if isinstance(path, str | os.PathLike) and companion_of(Path(path)).exists():
        return _import_exported(Path(path), run, texts)
    frame = _read(path, ResultColumns(a_col, b_col, winner_col, encoding))
    if "://" not in str(run) and not Path(run).exists():  # refused before there is a file
        _require_texts({*frame["ID1"], *frame["ID2"]}, set() if texts is None else set(texts["ID"]))
    with open_run(run, write=True) as store, store.snapshot():  # one transaction: what is refused leaves nothing
        if texts is not None:
            store.add_items(texts.iter_rows(named=True))
        _require_texts({*frame["ID1"], *frame["ID2"]}, set(store.items()["ID"]))
        return _add(store, frame)


def _import_exported(path: Path, run: str | os.PathLike[str], texts: pl.DataFrame | None) -> int:
    """Enter a run that :func:`export_results` wrote into an empty run file."""
    beside = companion_of(path)
    head = read_head(beside, path)
    with open_run(run, write=True) as store, store.snapshot():
        origin = store.get_meta(IMPORTED)
        if origin is not None and origin["table"] == head["table"]:
            return 0
        if not store.is_empty():
            raise StoreMismatchError(f"{store.name} holds another run; import {path} into a new run file")
        _require_texts(needed_items(beside), set() if texts is None else set(texts["ID"]))
        samples = () if texts is None else texts.iter_rows(named=True)
        return restore(store, beside, head, samples)


def _read(path: Table | str | os.PathLike[str], columns: ResultColumns) -> pl.DataFrame:
    """A results table in memory; its form is said where it is not ours."""
    found = read_criteria(path, columns)
    if found.form is not None or found.unknown:
        notice(found.line)
    return _sided(found.table)


def _add(store: RunFile, frame: pl.DataFrame) -> int:
    """Enter comparisons, condition by condition."""
    for name in (*_OURS, "outcome"):
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, pl.String).alias(name))
    groups = frame.group_by(*_OURS, maintain_order=True)
    return sum(_add_group(store, group) for _, group in groups)


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


def _require_texts(needed: set[str], known: set[str]) -> None:
    if unknown := sorted(needed - known):
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
    ordered, _ = key_expressions("ID1", "ID2")
    numbered = group.with_columns(_key=ordered).with_columns(_name=pl.format("{}#{}", "_key", occurrence("_key")))
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


def asked_of(
    row: Mapping[str, Any], number: int, condition_id: str, *, attempt: int = 1, replaces: bool = False
) -> Asked:
    """The attempt and the outcome that a row of results stands for.

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
