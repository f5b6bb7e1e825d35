"""The comparisons that the Bayesian model and Elo are fitted to, read from results of any shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from pairscale.core.comparisons import say_left_out
from pairscale.core.errors import FitError
from pairscale.core.options import require_choice
from pairscale.core.results import read_probabilities
from pairscale.core.tables import Table, require_columns
from pairscale.models.data import as_results, outcome_figures, require_all

if TYPE_CHECKING:
    from collections.abc import Iterable

BayesTies = Literal["drop", "half"]
"""What to do with ties: leave them out, or count half a win each."""

CLOSE = ("tie", "flip")
"""Outcomes that say that two texts are close."""
PROBABILITY = "probability"


def read_rows(
    results: Table, ids: Iterable[Any] | None, ties: BayesTies, *, graded: bool = False
) -> tuple[pl.DataFrame, list[str], list[str]]:
    """The comparisons of two different items, the ids of all items, and what was left out.

    Args:
        results: results of any shape.
        ids: all items there are; by default those of the comparisons.
        ties: what to do with ties and flips; kept ones have no ``better_id``.
        graded: whether a column ``probability`` is evidence, too.

    Raises:
        InputError: when ``ids`` leaves one of the results out.
        TableError: when there is no such column, or a value is not between 0 and 1.
    """
    require_choice(ties, "ties", get_args(BayesTies))
    frame = as_results(results).table
    close: tuple[str, ...] = ()
    why = "a tie, no winner, or a winner that is not of the pair"
    if ties == "half":
        close = CLOSE
        why = "no winner and no tie, or a winner that is not of the pair"
    usable = outcome_figures(frame, *close).is_not_null()
    if graded:
        require_columns(frame, [PROBABILITY], "answer='probability'")
        frame = frame.with_columns(read_probabilities(frame[PROBABILITY], "results"))
        usable = usable | pl.col(PROBABILITY).is_not_null()
        why = "no probability, no winner and no tie"
    rows = frame.filter(usable)
    notices = say_left_out(frame, rows, why)
    apart = rows.filter(pl.col("ID1") != pl.col("ID2"))
    notices += say_left_out(rows, apart, "comparisons of a sample with itself")
    if apart.is_empty():
        raise FitError("no comparison has a winner; there is nothing to fit")
    seen = pl.concat([apart["ID1"], apart["ID2"].alias("ID1")]).unique().sort().to_list()
    return apart, require_all(ids, seen), notices
