"""Results out of a run file, and into one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.comparisons import Condition, as_comparisons, key_expressions, occurrence
from pairscale.errors import TableError
from pairscale.files import read_table, write_table
from pairscale.provenance import utc_now
from pairscale.samples import read_samples
from pairscale.store._companion import companion_of, enter_companion, labelled_items, named_pairs, write_companion
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.writer import Asked, Entry
from pairscale.tables import RESULTS, Table, listed

__all__ = ["export_run", "import_run"]

_ATTEMPT = ("error_message", "status_code", "model", "object_type", "thoughts", "content", "prompt_tokens",
            "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "latency_s",
            "cost")  # fmt: skip


def export_run(run: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Write every comparison of a run file to a table: csv, tsv, jsonl, json, parquet or xlsx, by its ending.

    Failed pairs are in it too, with their outcome. A run that is still being written is exported as it is at one
    moment. Logs and the labels of people are written to a second file beside it, with ``.logs.jsonl`` after its name;
    :func:`import_run` finds it there. Texts, the single attempts and the links of labellers are not exported.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.synthetic_essays(3, seed=1))
        >>> _ = ps.submit_pairs(pairs, "lexical", run="exported.db", progress=False)
        >>> export_run("exported.db", "comparisons.csv").name
        'comparisons.csv'
    """
    with open_run(run) as store, store.snapshot():
        target = write_table(store.results().select(*RESULTS, "received_at"), path)
        write_companion(store, target)
    return target


def import_run(
    results: Table | str | os.PathLike[str],
    run: str | os.PathLike[str],
    samples: Table | str | os.PathLike[str] | None = None,
) -> int:
    """Enter the comparisons of a results table (also one that the R package wrote) into a run file.

    All of it goes in, or nothing.

    Args:
        results: a table or a file of results; ``condition_id`` and its companions are kept where they are there,
            else the ``model`` is the condition. Logs and labels in a file beside it, as :func:`export_run` writes
            it, are imported, too; labellers get new links.
        run: the run file; made when it is missing.
        samples: the texts, unless the run file has them.

    Returns:
        How many comparisons were new; what is there already stays as it is.

    Raises:
        TableError: when the text of a sample is known to neither.
        StoreMismatchError: when the run file has other logs or labels than those that come with the results.

    Example:
        >>> import pairscale as ps
        >>> import_run(ps.example_writing_results, "imported.db", ps.example_writing_samples)
        190
    """
    beside: Path | None = None
    if not isinstance(results, str | os.PathLike):
        frame = as_comparisons(results)
    else:
        frame = as_comparisons(read_table(results), str(results))
        beside = companion_of(Path(results))
        beside = beside if beside.exists() else None
    named = {} if beside is None else named_pairs(beside)
    for name in ("condition_id", "judge_id", "model", "trait", "template_id", "outcome"):
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, pl.String).alias(name))
    with open_run(run, write=True) as store, store.snapshot():  # one transaction: what is refused leaves nothing
        about = set() if beside is None else labelled_items(beside)
        _add_samples(store, {*frame["ID1"], *frame["ID2"], *about}, samples)
        new = 0
        for _, group in frame.group_by(
            "condition_id", "judge_id", "model", "trait", "template_id", maintain_order=True
        ):
            new += _add_group(store, group, named)
        if beside is not None:
            enter_companion(store, beside)
    return new


def _add_samples(store: RunFile, needed: set[str], samples: Table | str | os.PathLike[str] | None) -> None:
    if samples is not None:
        store.add_items(read_samples(samples).iter_rows(named=True))
    if unknown := sorted(needed - set(store.items()["ID"])):
        raise TableError(f"results: the text of {listed(unknown)} is not known; give samples=")


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
    answers = [
        Entry(_asked(row, number, condition_id))
        for row, number in zip(group.iter_rows(named=True), numbers, strict=True)
        if number not in settled
    ]
    if answers:
        store.writer.commit(answers)
    return len(answers)


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
    values = {name: row.get(name) for name in _ATTEMPT}
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
