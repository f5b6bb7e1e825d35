"""Other names, so that a page can be passed on: in the order of a hash that no one else can compute."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from secrets import token_bytes

import polars as pl


def other_names(names: Iterable[str], letter: str = "T") -> dict[str, str]:
    """T1, T2 and so on, in an order that says nothing."""
    salt = token_bytes(16)
    order = sorted(names, key=lambda name: hashlib.sha256(salt + name.encode("utf-8", "replace")).digest())
    return {name: f"{letter}{place}" for place, name in enumerate(order, start=1)}


def renamed(table: pl.DataFrame, other: Mapping[str, str], *columns: str) -> pl.DataFrame:
    """A table whose columns hold the other names."""
    return table.with_columns(pl.col(column).replace_strict(dict(other), default=None) for column in columns)


def silent(notices: Sequence[str], names: Iterable[str], what: str = "texts") -> list[str]:
    """The notices that hold none of the names; the others are counted."""
    there = {form for name in names for form in (name, repr(name)[1:-1])}  # messages quote names as Python does
    kept = [notice for notice in notices if not any(name in notice for name in there)]
    if hidden := len(notices) - len(kept):
        kept.append(f"{hidden} further notice{'s' * (hidden > 1)} may name {what}, and cannot be shown here")
    return kept
