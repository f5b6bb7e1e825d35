"""Values that are nested in a table's cells, by a path such as ``answer.winner`` or ``votes[0].choice``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pairscale.core.errors import TableError
from pairscale.core.tables import listed

_STEP = re.compile(r"[^.\[\]]+")


def column_by_path(frame: pl.DataFrame, path: str, what: str) -> pl.Series:
    """A column by its name, or what a path leads to in every row; null where it leads nowhere.

    A path is made of names and of places (from 0), as in ``votes.0.choice`` or ``votes[0].choice``; ``$.`` may stand
    before it.

    Raises:
        TableError: when there is no such column, or the path leads nowhere in every row.

    Example:
        >>> column_by_path(pl.DataFrame({"vote": [{"who": ["ann", "bob"]}]}), "$.vote.who[1]", "votes").to_list()
        ['bob']
    """
    if path in frame.columns:
        return frame[path]
    bare = path.removeprefix("$").removeprefix(".")
    # A column may have dots in its name: the longest beginning that is a column.
    starts = [name for name in frame.columns if bare == name or bare.startswith((f"{name}.", f"{name}["))]
    if not starts:
        raise TableError(f"{what}: no column {path!r}; it has {listed(frame.columns, 20) or 'none'}")
    start = max(starts, key=len)
    values = [picked(value, bare[len(start) :]) for value in frame[start].to_list()]
    if values and all(value is None for value in values):
        raise TableError(f"{what}: the path {path!r} leads nowhere in all {len(values):,} rows")
    return pl.Series(path, values, strict=False)


def picked(value: Any, path: str) -> Any:
    """What stands at a path in nested values; None where it leads nowhere.

    Example:
        >>> picked({"turns": [{"said": "Hello."}]}, "turns[0].said"), picked({"a": 1}, "$.b.c")
        ('Hello.', None)
    """
    for step in _STEP.findall(path.removeprefix("$")):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, Sequence) and not isinstance(value, str) and step.isdecimal():
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value
