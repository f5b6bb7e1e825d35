"""What is known of the items beforehand: a number per item, such as a mark, a pointwise score or a projection.

The abilities are believed to spread around ``slope * x``, with x the number in units of its own standard deviation and
from its own mean. The slope has the prior N(0, 1) and is learned with everything else: a column that tells nothing has
a slope near 0 as soon as there are some comparisons, and one that runs the other way a negative one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.tables import listed, to_frame

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats
    from pairscale.core.tables import Table

__all__ = ["known_by_id", "known_numbers", "standardised"]


def standardised(known: Sequence[float] | Floats) -> Floats:
    """The numbers with mean 0 and variance 1; missing ones (``nan``) are at the mean, 0.

    Raises:
        InputError: If no two of them differ.
    """
    values = np.asarray(known, dtype=np.float64)
    there = np.isfinite(values)
    sd = float(values[there].std()) if there.any() else 0.0
    if not sd > 1e-12 * max(1.0, float(np.abs(values[there]).max(initial=0.0))):
        raise InputError("what is known beforehand must differ between the texts, and these numbers are all the same")
    out = np.zeros(len(values))
    out[there] = (values[there] - values[there].mean()) / sd
    return out


def known_numbers(
    samples: pl.DataFrame, column: str, ids: Sequence[str] | None = None, *, may_lack: bool = False
) -> Floats:
    """The numbers in a column of the samples, ``nan`` where they are missing, which is said.

    Args:
        samples: A table with ``ID``.
        column: Its name.
        ids: The items, in the order that is wanted; by default that of the samples.
        may_lack: Whether all numbers may be missing or the same, as those of a few texts that join a run may be.

    Raises:
        InputError: If there is no such column, or it holds something else than numbers.
    """
    if column not in samples.columns or column in ("ID", "text"):
        there = [name for name in samples.columns if name not in ("ID", "text")]
        raise InputError(f"prior: the texts have no column {column!r}; there are {listed(there) or 'none'}")
    found = samples.select("ID", column)
    if ids is not None:
        order = pl.DataFrame({"ID": list(ids)}, schema={"ID": pl.String})
        found = order.join(found, on="ID", how="left", maintain_order="left")
    given = found[column]
    if given.dtype == pl.String:
        given = given.str.strip_chars().replace("", None)
    if not (given.dtype.is_numeric() or given.dtype in (pl.String, pl.Null)):
        raise InputError(f"prior: the column {column!r} holds {given.dtype}, not numbers")
    numbers = given.cast(pl.Float64, strict=False)
    if (bad := given.filter(given.is_not_null() & numbers.is_null())).len():
        raise InputError(f"prior: the column {column!r} holds {listed(bad.unique().to_list())}, which are no numbers")
    if numbers.is_infinite().any():
        raise InputError(f"prior: the column {column!r} holds an infinite number")
    values: Floats = numbers.fill_null(float("nan")).to_numpy().copy()
    missing = found["ID"].filter(pl.Series(np.isnan(values))).to_list()
    if len(missing) == len(values) and not may_lack:
        raise InputError(f"prior: the column {column!r} holds no number")
    if missing:
        lack = f"{len(missing):,} of {len(values):,} texts have no {column!r} ({listed(missing)})"
        notice(f"prior: {lack}; they count as average")
    if not may_lack:
        standardised(values)
    return values


def known_by_id(given: Mapping[str, Any] | Table, ids: Sequence[str]) -> Floats:
    """The numbers of a mapping from ID to number, or of a table with ``ID`` and one other column."""
    if isinstance(given, Mapping) and "ID" not in given:
        frame = pl.DataFrame(
            {"ID": [str(name) for name in given], "prior": list(given.values())}, schema_overrides={"ID": pl.String},
            strict=False,
        )  # fmt: skip
    else:
        frame = to_frame(given, "prior")
    others = [name for name in frame.columns if name not in ("ID", "text")]
    if "ID" not in frame.columns or len(others) != 1:
        raise InputError("prior must be a mapping from ID to number, or a table with ID and one other column")
    frame = frame.with_columns(pl.col("ID").cast(pl.String))
    if frame["ID"].is_duplicated().any():
        raise InputError("prior: an ID stands more than once")
    return known_numbers(frame, others[0], ids)
