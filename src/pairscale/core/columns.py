"""Which column is which: named by the user, known by its name, or the only one that it can be.

In any other case :class:`pairscale.core.errors.UnsureColumnError` names the columns and the option that chooses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pairscale.core.errors import TableError, UnsureColumnError
from pairscale.core.options import require_int
from pairscale.core.tables import Values, as_text, is_blank, listed

Column = int | str
"""A column by its name, by its position from 0, or, of JSON, by its path."""

_LONG = 40  # characters of the median cell: names, classes, dates and grades have fewer
_LOOKED_AT = 1000
_TEXT_NAMES = ("text", "essay", "response", "answer", "output", "content", "body", "document", "abstract", "writing")
_UNNAMED = re.compile(r"column_\d+")  # as columns are called that have no name in their file
_STEP = re.compile(r"[^.\[\]]+")  # of a path
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
TASK_COLUMNS = ("task_id", "question_id", "instruction")
"""What two variants were compared on: the same two on another task are another question."""

JUDGE_COLUMNS = ("judge_id", "judge")
"""Who judged, in our results and in those of others."""


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The columns of ids and of texts.

    Attributes:
        ids: the column of ids.
        texts: the column of texts.
        reasons: by argument, why a column was taken that has another name than ``ID`` or ``text`` and that the user
            did not name.
    """

    ids: str
    texts: str
    reasons: Mapping[str, str]


def choose_columns(frame: pl.DataFrame, id_col: Column | None, text_col: Column | None, what: str) -> ColumnChoice:
    """The columns of ids and of texts of a table.

    Args:
        frame: the table.
        id_col: as the user named it.
        text_col: likewise.
        what: the table's name, for messages.

    Raises:
        UnsureColumnError: a column was not named, and it is not certain which one is meant.
        TableError: a column that was named is missing, or both are the same.
    """
    reasons: dict[str, str] = {}
    ids = named_column(frame.columns, id_col, "ID", what)
    texts = named_column(frame.columns, text_col, "text", what)
    if texts is None:
        texts, reasons["text_col"] = _text_column(frame, ids, what)
        if _UNNAMED.fullmatch(texts):
            raise TableError(f"{what}: the first row must name the columns; delete what is above the names")
    if ids is None:
        ids, reasons["id_col"] = _id_column(frame, texts, what)
    if ids == texts:
        raise TableError(
            f"{what}: the ids and the texts cannot both be column {ids!r}; name them (`id_col=`, `text_col=`)"
        )
    return ColumnChoice(ids, texts, reasons)


def named_column(columns: Sequence[str], column: Column | None, usual: str, what: str) -> str | None:
    """The column that the user named, or the one with the usual name, in any case of letters; None without either."""
    if column is not None:
        return column_at(columns, column, f"{usual.lower()}_col", what)
    if usual in columns:
        return usual
    alike = [name for name in columns if name.strip().lower() == usual.lower()]
    return alike[0] if alike else None


def column_at(columns: Sequence[str], column: Column, argument: str, what: str) -> str:
    """The column that was named, by its name or its position.

    Raises:
        TableError: there is none.
    """
    if not isinstance(column, str):
        place = require_int(column, f"{argument} as a position", least=0)
        return column_at(columns, columns[place] if place < len(columns) else str(place), argument, what)
    if column not in columns:
        raise TableError(f"{what}: no column {column!r} ({argument}); it has {listed(columns, 20)}")
    return column


def _text_column(frame: pl.DataFrame, ids: str | None, what: str) -> tuple[str, str]:
    others = [name for name in frame.columns if name != ids]
    long = [name for name in others if is_long(frame[name])]
    candidates = {"the only column with long texts": long}
    if not long:
        candidates["by its name"] = [name for name in others if loose_name(name) in _TEXT_NAMES]
        if ids is not None:
            candidates["the only other column"] = others
    return _only_one(frame, candidates, "text_col", what)


def _id_column(frame: pl.DataFrame, texts: str, what: str) -> tuple[str, str]:
    others = [name for name in frame.columns if name != texts]
    unique = [name for name in others if _is_key(frame[name])]
    candidates = {
        "by its name": [name for name in unique if "id" in (word.lower() for word in _WORDS.findall(name))],
        "the only other column": others,  # where ids are checked, an error names what is wrong with it
        "the only column with another value in every row": unique,
    }
    return _only_one(frame, candidates, "id_col", what)


def _only_one(
    frame: pl.DataFrame, candidates: Mapping[str, Sequence[str]], argument: str, what: str
) -> tuple[str, str]:
    """The column that can be meant, and why: the first group of candidates that is a single column."""
    for reason, names in candidates.items():
        if len(names) == 1:
            return names[0], reason
    possible = [names for names in (frame.columns, *candidates.values()) if names][-1]
    raise UnsureColumnError(
        f"{what}: it is not certain which column is meant; name it (`{argument}=`): it may be {listed(possible, 20)}; "
        f"all columns: {listed(frame.columns, 20)}",
        argument,
        possible,
    )


def is_long(column: pl.Series) -> bool:
    """Whether a column holds texts: the median cell is longer than a name, a class or a date."""
    if column.dtype not in {pl.String, pl.Categorical, pl.Enum}:
        return False
    cells = as_text(column.drop_nulls().head(_LOOKED_AT), "").str.len_chars()
    middle = cells.median()
    return isinstance(middle, float) and middle >= _LONG


def _is_key(column: pl.Series) -> bool:
    if column.dtype.is_nested() or column.dtype in {pl.Boolean, pl.Binary, pl.Object} or is_long(column):
        return False
    is_full = column.null_count() == 0 and not is_blank(as_text(column, "")).any()
    return bool(is_full and not column.is_duplicated().any())


def with_paths(rows: list[Values], paths: Sequence[Column | None], what: str) -> list[Values]:
    """Rows of JSON, with what a path leads to as a column of that name.

    A path is ``meta.author`` or ``messages[0].content``, with or without ``$.`` before it. A column whose own name is
    the same goes first.

    Args:
        rows: the rows.
        paths: what the user named; names of columns that exist need nothing.
        what: the file's name, for messages.

    Raises:
        TableError: it leads to nothing in any row.
    """
    for path in paths:
        if not isinstance(path, str) or not rows or not ("." in path or "[" in path):
            continue
        if any(path in row for row in rows):
            continue
        values = [picked(row, path) for row in rows]
        if all(value is None for value in values):
            names = list(dict.fromkeys(name for row in rows for name in row))
            raise TableError(f"{what}: there is nothing at {path!r}; the columns are {listed(names, 20)}")
        rows = [{**row, path: value} for row, value in zip(rows, values, strict=True)]
    return rows


def column_by_path(frame: pl.DataFrame, path: str, what: str) -> pl.Series:
    """A column by its name, or what a path leads to in every row; null where it leads nowhere.

    Raises:
        TableError: when there is no such column, or the path leads nowhere in every row.

    Example:
        >>> column_by_path(pl.DataFrame({"vote": [{"who": ["ann", "bob"]}]}), "$.vote.who[1]", "votes").to_list()
        ['bob']
    """
    if path in frame.columns:
        return frame[path]
    values = [row.get(path) for row in with_paths(frame.to_dicts(), [path], what)]
    if values and all(value is None for value in values):
        raise TableError(f"{what}: no column {path!r}; it has {listed(frame.columns, 20) or 'none'}")
    return pl.Series(path, values, strict=False)


def picked(value: Any, path: str) -> Any:
    """The value at a path in nested values; None where the path leads nowhere.

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


def loose_name(name: str) -> str:
    """A column's name without regard to case and to white space around it."""
    return name.strip().lower()


def judge_column(frame: pl.DataFrame) -> str | None:
    """The column that says who judged: ``judge_id`` as in our results, else ``judge``; None when there is neither."""
    return next((name for name in JUDGE_COLUMNS if name in frame.columns), None)
