"""What every verb on pairs needs: a checked table, and both sides changing places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pairscale.errors import TableError
from pairscale.tables import PAIRS, Table, listed, require_columns, require_ids, to_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["as_pairs", "swapped"]


def as_pairs(pairs: Table) -> pl.DataFrame:
    """A table of pairs with ``ID1 text1 ID2 text2`` in front, checked.

    Raises:
        TableError: when a column is missing, an id or a text is, or a sample meets itself.
    """
    frame = require_ids(to_frame(pairs, "pairs"), ["ID1", "ID2"], "pairs")
    require_columns(frame, list(PAIRS), "pairs")
    frame = frame.select(*PAIRS, *(name for name in frame.columns if name not in PAIRS))
    for name in ("text1", "text2"):
        if frame[name].null_count():
            row = frame[name].is_null().arg_max() or 0
            raise TableError(f"pairs: column {name!r} is empty in row {row + 1}")
    themselves = frame.filter(pl.col("ID1") == pl.col("ID2"))
    if themselves.height:
        raise TableError(f"pairs: {listed(themselves['ID1'].to_list())} would be compared with itself")
    return frame


def swapped(pairs: pl.DataFrame, where: NDArray[np.bool_]) -> pl.DataFrame:
    """The pairs with both sides exchanged in the rows where ``where`` is true.

    Every column ``name1`` that has its ``name2`` moves along. Done by taking rows from the two columns laid end to
    end: that copies references to the texts; choosing row by row would copy the texts themselves.
    """
    n = pairs.height
    rows = np.arange(n)
    columns = []
    for name in pairs.columns:
        other = _other_side(name)
        if other is None or other not in pairs.columns:
            columns.append(pairs[name])
            continue
        both = pl.concat([pairs[name], pairs[other].alias(name)], rechunk=True)
        columns.append(both.gather(np.where(where, rows + n, rows)))
    return pl.DataFrame(columns)


def _other_side(name: str) -> str | None:
    return {"1": f"{name[:-1]}2", "2": f"{name[:-1]}1"}.get(name[-1:])
