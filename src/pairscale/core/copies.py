"""Rows that repeat others word for word, and repeats that never disagree: said, because models count each of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from pairscale.core.columns import JUDGE_COLUMNS, TASK_COLUMNS
from pairscale.core.notices import notice
from pairscale.core.tables import times_of

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "AS_NEW",
    "BY_ADDED",
    "DROP",
    "KEEP_ALL",
    "MANY",
    "NUMBER_ROWS",
    "copies_said",
    "say_copies",
    "without_copies",
]

DROP = "Leave copies out"
AS_NEW = (
    "each of them counts as new evidence, and precision and reliability look better than they are. "
    f'{DROP}, or give repeats="learned", which counts repeats of a pair by what they add'
)
"""How a model counts that takes each for new."""
BY_ADDED = "they count by what they add"
"""How a model counts that goes by the agreement of repeats."""

KEEP_ALL = 'Give repeats="independent" to count every row as new evidence'
"""What to do about copies in a fit."""
NUMBER_ROWS = "Add a column that tells them apart, such as the number of the row, to keep every row"
"""What to do about copies elsewhere."""

_ANSWERS = {
    "ID1", "ID2", "A_id", "B_id", "object1", "object2", "winner", "loser", "candidate_chosen", "candidate_not_chosen",
    "better_id", "better_sample", "result", "winner_pos", "outcome", "text1", "text2", "pair_uid", "unordered_key",
    "ordered_key", *JUDGE_COLUMNS,
}  # fmt: skip
_SOME = 8  # different rows; that all of fewer stand an even number of times may be chance
_MARKED = 0.9
_FEW = 20  # repeats that all agree may well be chance
MANY = 200_000
_COPIED = 0.05  # share of copies from which a table counts as copied in part


def say_copies(rows: pl.DataFrame, others: pl.DataFrame, counted: str = AS_NEW) -> list[str]:
    """A notice when rows repeat others word for word, or when many repeats of a pair always agree; else nothing.

    Args:
        rows: ``ID1 ID2 better_id`` of the comparisons that are fitted, as ids or as numbers.
        others: the table that they came from, the same rows: what else tells two comparisons apart.
        counted: how the model counts them, and what to do about it.
    """
    often = times_of(others)
    said = copies_said(rows, others) if often is None else _agreeing(rows, often)
    return [] if said is None else [notice(f"{said}; {counted}")]


def without_copies(table: pl.DataFrame, keep: str = KEEP_ALL) -> tuple[pl.DataFrame, list[str]]:
    """The rows of a table that holds several copies of itself, each once, and a notice; any other table as it is.

    How far repeats agree cannot tell such copies: where a pair was asked several times and its answers differed, the
    copies of these answers differ, too.

    Args:
        table: comparisons with all columns that tell them apart.
        keep: what to do to count every row, for the notice.
    """
    names = _plain(table)
    if not table.height or times_of(table) is not None or len(names) < table.width:
        return table, []
    which = table.hash_rows()
    counts = which.value_counts()["count"]
    times = math.gcd(*counts.unique().to_list())
    if times == 1 or len(counts) < _SOME:
        return table, []
    row = pl.int_range(pl.len()).over("which")
    once = table.filter(pl.DataFrame({"which": which}).select(row % times == 0).to_series())
    said = f"{_several(table.height, len(counts), times)}; each of them counts once. "
    return once, [notice(f"{said}{keep}")]


def _several(rows: int, different: int, times: int) -> str:
    """That a table was put together from copies of itself."""
    distinct = "different " if different * times == rows else ""
    return f"{rows // times:,} {distinct}rows stand {times:,} times each, word for word"


def copies_said(rows: pl.DataFrame, others: pl.DataFrame) -> str | None:
    """What there is to say, without how they are counted."""
    asked = rows.select("ID1", "ID2", "better_id")
    for role, known in (("judge", JUDGE_COLUMNS), ("task", TASK_COLUMNS)):
        if name := next((name for name in known if name in _plain(others)), None):
            asked = asked.with_columns(others[name].cast(pl.String).alias(role))
    keys = [pl.min_horizontal("ID1", "ID2").alias("low"), pl.max_horizontal("ID1", "ID2").alias("high")]
    keys.append(pl.exclude("ID1", "ID2", "better_id"))
    n = asked.height
    pairs = _different(asked.select(keys))
    repeats = n - pairs
    if not repeats:
        return None
    unanimous = _different(asked.select(*keys, "better_id")) == pairs
    if n > MANY and not unanimous:  # repeats disagree here and there, and every row would have to be looked at
        return None
    hashes = others.select(_plain(others)).with_columns(asked.select(pl.all().name.prefix("asked "))).hash_rows()
    counts = hashes.value_counts()["count"]
    copies = n - len(counts)
    bare = len(counts) == _different(asked) and not _has_marks(others, len(counts))
    # Whether the same question always got the same answer. In a list of winners and losers, the order is the answer.
    ordered = not (asked["better_id"] == asked["ID1"]).all()
    steady = _different(asked.select(pl.exclude("better_id"))) == _different(asked) if ordered else unanimous
    times = math.gcd(*counts.unique().to_list())  # a table that was put together from copies of itself
    if times > 1 and len(counts) > 1 and (steady or not bare or len(counts) >= _SOME):
        return _several(n, len(counts), times)
    if copies and (steady and copies >= _FEW if bare else copies >= _COPIED * n):
        return f"{copies:,} of {n:,} rows repeat another row word for word"
    if unanimous and repeats >= _FEW:
        return f"all {repeats:,} repeats of a pair agree with its first answer"
    return None


def _agreeing(rows: pl.DataFrame, times: pl.Series) -> str | None:
    """Whether many repeats of a pair always agree; what else stands in rows that were counted is not known."""
    sides = pl.min_horizontal("ID1", "ID2").alias("low"), pl.max_horizontal("ID1", "ID2").alias("high")
    answers = rows.select(*sides, "better_id").unique()
    pairs = _different(answers.select("low", "high"))
    repeats = int(times.sum()) - pairs
    if answers.height > pairs or repeats < _FEW:
        return None
    return f"all {repeats:,} repeats of a pair agree with its first answer"


def _different(table: pl.DataFrame) -> int:
    return int(table.n_unique())


def _has_marks(table: pl.DataFrame, different: int) -> bool:
    """Whether a column beside the answers, such as a time or a reply, tells nearly all different rows apart."""
    columns = [table[name] for name in _plain(table) if name not in _ANSWERS]
    return any(column.n_unique() >= _MARKED * different for column in columns)


def _plain(table: pl.DataFrame) -> Collection[str]:
    return [name for name, kind in table.schema.items() if not kind.is_nested() and kind != pl.Object]
