"""Means over runs with 95 % intervals, differences run by run, and where a curve meets a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import stdtrit

__all__ = ["crossing", "differences", "means", "three_decimals"]

_LEVEL = 0.95


def means(table: pl.DataFrame, by: Sequence[str], figures: Sequence[str]) -> pl.DataFrame:
    """Per group ``n_runs``, and of each figure its mean and the ends of its interval (Student's t).

    One run has no interval: its ends are empty.
    """
    spread = [pl.col(name).std().alias(f"_{name}") for name in figures]
    there = [pl.col(name).count().alias(f"n_{name}") for name in figures]
    grouped = table.group_by(by, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n_runs"), *(pl.col(name).mean() for name in figures), *spread, *there
    )
    columns: list[Any] = [*by, "n_runs"]
    for name in figures:
        half = pl.col(f"_{name}") * _half_width(grouped[f"n_{name}"])
        columns += [name, (pl.col(name) - half).alias(f"{name}_lower"), (pl.col(name) + half).alias(f"{name}_upper")]
    return grouped.select(columns)


def _half_width(n: pl.Series) -> pl.Series:
    """Half the width of a mean's interval, in standard deviations."""
    sizes = n.to_numpy().astype(np.float64)
    wide = [float(stdtrit(size - 1, (1 + _LEVEL) / 2) / np.sqrt(size)) if size > 1 else None for size in sizes]
    return pl.Series(wide, dtype=pl.Float64)


def differences(
    table: pl.DataFrame, run: Sequence[str], figures: Sequence[str], selector: str, suffix: str
) -> pl.DataFrame:
    """Each figure less that of this selector in the run that is otherwise the same, as further columns.

    Args:
        table: one row per run, or a run and checkpoint.
        run: the columns besides ``selector`` that make a run (and checkpoint) the same.
        figures: the figures.
        selector: the one to compare with.
        suffix: of the new columns' names.
    """
    base = table.filter(pl.col("selector") == selector).select(
        *run, *(pl.col(name).alias(f"_{name}") for name in figures)
    )
    joined = table.join(base, on=list(run), how="left", validate="m:1", maintain_order="left")
    return joined.with_columns((pl.col(name) - pl.col(f"_{name}")).alias(f"{name}{suffix}") for name in figures).drop(
        f"_{name}" for name in figures
    )


def three_decimals(value: float | None) -> str:
    """A figure in words."""
    return "unknown" if value is None else f"{value:.3f}"


def crossing(at: Sequence[float], values: Sequence[float | None], target: float) -> float | None:
    """Where a curve first reaches the target, on the straight line between two points; None when it never does."""
    before: tuple[float, float] | None = None
    for x, y in zip(at, values, strict=True):
        if y is None:
            continue
        if y >= target:
            if before is None:
                return float(x)
            x0, y0 = before
            return x0 + (target - y0) / (y - y0) * (x - x0)
        before = float(x), y
    return None
