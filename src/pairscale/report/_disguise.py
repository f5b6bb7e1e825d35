"""Other names, so that a page can be passed on: in the order of a hash that nobody else can compute."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from secrets import token_bytes
from typing import Any

import polars as pl

from pairscale.files import replacing

__all__ = ["other_names", "pair_case", "renamed", "silent", "write_cases"]


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
    there = list(names)
    kept = [notice for notice in notices if not any(name in notice for name in there)]
    if hidden := len(notices) - len(kept):
        kept.append(f"{hidden} further notice{'s' * (hidden > 1)} may name {what}, and cannot be shown here")
    return kept


def write_cases(rows: Sequence[Mapping[str, Any]], path: Path) -> int:
    """Write cases for people to label, one JSON line each, as ``pairscale label`` takes them."""
    with replacing(path) as temporary:
        temporary.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return len(rows)


def pair_case(one: str, two: str, texts: Mapping[str, str], criterion: str) -> dict[str, str]:
    """Two texts as a case of a manifest."""
    name = f"{one}::{two}"
    case = {"case_id": name, "task_id": name, "criterion": criterion, "task_input": ""}
    return case | {"response_1": texts.get(one, ""), "response_2": texts.get(two, "")}
