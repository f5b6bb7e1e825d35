"""The table of what batches did not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import polars as pl

from pairscale.collect.batch._registry import Entry

__all__ = ["REST", "rest_table"]

_TEXT = pl.String()
REST: dict[str, pl.DataType] = {
    "key": _TEXT, "batch_id": _TEXT, "state": _TEXT, "custom_id": _TEXT, "ID1": _TEXT, "ID2": _TEXT,
    "error_code": _TEXT, "error_message": _TEXT, "condition_id": _TEXT,
}  # fmt: skip
"""Its columns."""


def rest_table(
    chosen: Sequence[Entry],
    names: Mapping[int, tuple[str, str, str]],
    answered: Mapping[str, Set[int]],
    why: Mapping[tuple[int, str], Mapping[str, Any]],
) -> pl.DataFrame:
    """One row a pair of a collected batch that has no answer; its last batch and its last reason.

    Args:
        chosen: the batches.
        names: name, first and second sample by the pair's number.
        answered: by condition, the pairs that have their answer.
        why: the last failed attempt by pair and condition.
    """
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
