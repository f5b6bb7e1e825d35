"""The step log: one row per step, in the order in which the answers came; its columns, their types and meanings."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from statistics import median
from typing import Any, TypeAlias

import polars as pl

Row: TypeAlias = Mapping[str, Any]
"""A row of a log, by the names of its columns."""

Columns: TypeAlias = dict[str, Any]
"""Some columns of a row that is being made."""

_TYPES: dict[str, pl.DataType] = {
    "int": pl.Int64(), "real": pl.Float64(), "text": pl.String(), "flag": pl.Boolean(),
    "time": pl.Datetime("us", "UTC"),
}  # fmt: skip

_COLUMNS = tomllib.loads(files("pairscale.adaptive").joinpath("logs.toml").read_text("utf-8"))["step"]

STEP_LOG = {name: _TYPES[kind] for name, (kind, _) in _COLUMNS.items()}
"""The columns of the step log."""

STEP_LOG_MEANING: dict[str, str] = {name: meaning for name, (_, meaning) in _COLUMNS.items()}
"""What they mean."""


def step_frame(rows: Sequence[Row], *, ties: bool = False) -> pl.DataFrame:
    """Rows by column name as a table with exactly the columns of :data:`STEP_LOG`.

    Args:
        rows: the rows.
        ties: whether a tie is an answer, so that ``Y`` may be 0.5: it is a whole number otherwise.
    """
    types = STEP_LOG | {"timestamp": _TYPES["text"], "Y": _TYPES["real" if ties else "int"]}
    frame = pl.DataFrame({name: pl.Series([row.get(name) for row in rows], dtype=kind) for name, kind in types.items()})
    time = pl.col("timestamp").str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", time_zone="UTC")
    return frame.with_columns(time)


def health_columns(rows: Sequence[Row]) -> Columns:
    """The columns of the round log that say how the choosing went, from the rows since the last refit."""
    used = Counter(row["fallback_used"] for row in rows if row.get("fallback_used"))
    starved = Counter(row["starvation_reason"] for row in rows if row.get("candidate_starved"))
    scored = [row for row in rows if row.get("n_candidates_scored") is not None]
    star_rejects = sum(row["star_cap_rejects"] for row in scored)
    rejects = sum(row["n_candidates_generated"] - row["n_candidates_scored"] for row in scored)
    return {
        "proposed_pairs_mode": float(median(row["n_candidates_scored"] for row in scored)) if scored else None,
        "starve_rate_since_last_refit": starved.total() / len(rows) if rows else None,
        "fallback_rate_since_last_refit": (used.total() - used["base"]) / len(rows) if rows else None,
        "fallback_used_mode": _most(used),
        "starvation_reason_mode": _most(starved),
        "star_cap_rejects_since_last_refit": star_rejects,
        "star_cap_reject_rate_since_last_refit": star_rejects / rejects if rejects else None,
    }


def _most(counts: Counter[str]) -> str | None:
    """The most frequent; of equal ones the first by name, so that the order of rows does not matter."""
    return min(counts, key=lambda name: (-counts[name], name)) if counts else None
