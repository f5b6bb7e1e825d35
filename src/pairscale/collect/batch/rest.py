"""What batches answered, and what they did not, read back from the run file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.collect.batch.registry import RegistryEntry, pairs_named
from pairscale.core.tables import FAILED, result_columns

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

_TEXT = pl.String()
REST: dict[str, pl.DataType] = {
    "key": _TEXT, "batch_id": _TEXT, "state": _TEXT, "custom_id": _TEXT, "ID1": _TEXT, "ID2": _TEXT,
    "error_code": _TEXT, "error_message": _TEXT, "condition_id": _TEXT,
}  # fmt: skip
"""The columns of the table of the rest."""


def results_of(
    store: RunFile, chosen: Sequence[RegistryEntry], *, raw: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The answers to the pairs of some batches, and every attempt at them that gave none."""
    answers, failures = [], []
    for condition_id in dict.fromkeys(entry.condition_id for entry in chosen):
        mine = {number for entry in chosen if entry.condition_id == condition_id for number in entry.pair_ids}
        is_mine = pl.col("pair_id").is_in(pl.Series(sorted(mine), dtype=pl.Int64).implode())
        is_answer = pl.col("outcome").is_in(["win", "tie", "flip"])
        answers.append(store.results(condition_id, raw=raw).filter(is_mine & is_answer))
        failures.append(store.failed_attempts(condition_id).filter(is_mine))
    if not answers:
        answers, failures = [store.results(raw=raw).clear()], [store.failed_attempts().clear()]
    failed = pl.concat(failures).select("custom_id", "ID1", "ID2", *FAILED, "condition_id")
    return pl.concat(answers).select(*result_columns(raw=raw)), failed


def rest_of(store: RunFile, chosen: Sequence[RegistryEntry]) -> pl.DataFrame:
    """One row per pair of collected batches that has no answer, with its last batch and its last reason."""
    names = pairs_named(store, sorted({number for entry in chosen for number in entry.pair_ids}))
    answered = {entry.condition_id: store.progress(entry.condition_id).answered for entry in chosen}
    failed = store.failed_attempts().unique(["pair_id", "condition_id"], keep="last", maintain_order=True)
    why = {(row["pair_id"], row["condition_id"]): row for row in failed.iter_rows(named=True)}
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    for entry in chosen:
        for number in entry.pair_ids:
            if number in answered[entry.condition_id]:
                continue
            name, first, second = names[number]
            reason = why.get((number, entry.condition_id), {})
            rows[number, entry.condition_id] = {
                "key": entry.key,
                "batch_id": entry.batch_id,
                "state": entry.state,
                "custom_id": name,
                "ID1": first,
                "ID2": second,
                "error_code": reason.get("error_code"),
                "error_message": reason.get("error_message"),
                "condition_id": entry.condition_id,
            }
    return pl.DataFrame(list(rows.values()), schema=REST)
