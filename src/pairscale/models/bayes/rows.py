"""The comparisons that the Bayesian model is fitted to, read from results of any shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from pairscale.core.comparisons import OF_ITS_PAIR, as_comparisons, decided, say_left_out
from pairscale.core.errors import FitError, InputError
from pairscale.core.notices import notice
from pairscale.core.options import require_choice, require_int, require_list
from pairscale.core.results import read_probabilities
from pairscale.core.tables import Table, listed, require_columns, require_ids, times_of, to_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["PROBABILITY", "BayesTies", "read_graded_rows", "read_rows", "sizes_of"]

BayesTies = Literal["drop", "half"]
"""What to do with ties: leave them out, or count half a win each."""

_CLOSE = ("tie", "flip")
PROBABILITY = "probability"


def read_rows(results: Table, ids: Iterable[Any] | None, ties: BayesTies) -> tuple[pl.DataFrame, list[str], list[str]]:
    """The comparisons of two different items, the ids of all items, and what was left out.

    Args:
        results: results of any shape.
        ids: all items there are; by default those of the comparisons.
        ties: what to do with ties and flips; kept ones have no ``better_id``.
    """
    require_choice(ties, "ties", get_args(BayesTies))
    rows, said = decided(results) if ties == "drop" else _with_ties(results)
    return _of_items(rows, ids, said)


def read_graded_rows(results: Table, ids: Iterable[Any] | None) -> tuple[pl.DataFrame, list[str], list[str]]:
    """The comparisons with a probability, a winner or a tie, the ids of all items, and what was left out.

    Args:
        results: results of any shape with a column ``probability``.
        ids: all items there are; by default those of the comparisons.

    Raises:
        TableError: when there is no such column, or a value is not between 0 and 1.
    """
    frame = as_comparisons(results)
    require_columns(frame, [PROBABILITY], "answer='probability'")
    frame = frame.with_columns(read_probabilities(frame[PROBABILITY], "results"))
    tied = _is_tie(frame)
    kept = frame.filter(pl.col(PROBABILITY).is_not_null() | OF_ITS_PAIR | (pl.col("better_id").is_null() & tied))
    return _of_items(kept, ids, say_left_out(frame, kept, "no probability, no winner and no tie"))


def _of_items(
    rows: pl.DataFrame, ids: Iterable[Any] | None, said: list[str]
) -> tuple[pl.DataFrame, list[str], list[str]]:
    """The comparisons of two different items, and the ids of all."""
    own = rows.filter(pl.col("ID1") == pl.col("ID2"))
    themselves, times = own["ID1"].to_list(), times_of(own)
    if themselves:
        n = len(themselves) if times is None else int(times.sum())
        left = f"left out {n:,} comparisons of a sample with itself: {listed(themselves)}"
        said.append(notice(left))
        rows = rows.filter(pl.col("ID1") != pl.col("ID2"))
    if rows.height == 0:
        raise FitError("no comparison has a winner; there is nothing to fit")
    seen = pl.concat([rows["ID1"], rows["ID2"].alias("ID1")]).unique().sort().to_list()
    if ids is None:
        return rows, seen, said
    if isinstance(ids, str):
        raise InputError("ids must be a list of ids, not a text")
    names = require_ids(to_frame({"ID": list(ids)}, "ids"), ["ID"], "ids")["ID"].to_list()
    if len(set(names)) < len(names):
        raise InputError("ids must be unique")
    if unknown := sorted(set(seen) - set(names)):
        raise InputError(f"results: {listed(unknown)} not among ids")
    return rows, names, said


def _with_ties(results: Table) -> tuple[pl.DataFrame, list[str]]:
    """The rows with a winner of their own pair or a tie; the rest is said."""
    frame = as_comparisons(results)
    kept = frame.filter(OF_ITS_PAIR | (pl.col("better_id").is_null() & _is_tie(frame)))
    return kept, say_left_out(frame, kept, "no winner and no tie, or a winner that is not of the pair")


def _is_tie(frame: pl.DataFrame) -> pl.Expr:
    tied = pl.lit(value=False)
    if "outcome" in frame.columns:
        tied = pl.col("outcome").cast(pl.String).is_in(_CLOSE)
    elif "result" in frame.columns:
        tied = pl.col("result").cast(pl.Float64, strict=False) == 0.5
    return tied.fill_null(value=False)


def sizes_of(pair_counts: Sequence[int] | None, available: int) -> list[int]:
    """How many of the first comparisons each fit takes."""
    if pair_counts is None:
        return [available]
    sizes = sorted(set(require_list(pair_counts, "pair_counts", require_int, least=1, most=available)))
    if not sizes:
        raise InputError("pair_counts must have one number or more")
    return sizes
