"""The logs of Bayesian fits: one row per fit (round log), one row per item and fit (item log), and views of them.

The columns, their order and their types are a promise; ``logs.toml`` has them, with what each one means.
A column that does not apply to a fit is missing (null) there, never left out.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files
from typing import Any, Literal, get_args

import polars as pl

from pairscale.core.errors import InputError, TableError
from pairscale.core.options import optional, require_choice, require_int
from pairscale.core.tables import require_columns, to_frame

_TYPES: dict[str, pl.DataType] = {
    "int": pl.Int64(), "real": pl.Float64(), "text": pl.String(), "flag": pl.Boolean(),
    "time": pl.Datetime("us", "UTC"),
}  # fmt: skip

_COLUMNS = tomllib.loads(files("pairscale.models.bayes").joinpath("logs.toml").read_text("utf-8"))

ITEM_FIGURES = ("rank", "ID", "score", "theta_mean", "theta_p2.5", "theta_p97.5", "rank_p2.5", "rank_p97.5", "degree")
"""What is shown of an item where there is not room for everything."""

ITEM_LOG = {name: _TYPES[kind] for name, (kind, _) in _COLUMNS["item"].items()}
"""The item log: one row per item and fit."""

ROUND_LOG = {name: _TYPES[kind] for name, (kind, _) in _COLUMNS["round"].items()}
"""The round log: one row per fit, whatever its name says; every stop can be recomputed from it."""

MEANINGS: dict[str, str] = {name: meaning for log in _COLUMNS.values() for name, (_, meaning) in log.items()}
"""What the columns of both logs mean."""

ItemOrder = Literal["rank_mean", "theta_mean", "theta_sd", "degree", "pos_A_rate"]
"""By what :func:`summarize_items` sorts: ranks from the best on, everything else from the largest down."""

_ITEM_CORE = tuple(ITEM_LOG)[: tuple(ITEM_LOG).index("rank") + 1]

_CORE = (
    "refit_id", "round_id_at_refit", "step_id_at_refit", "total_pairs_done", "new_pairs_since_last_refit",
    "n_unique_pairs_seen", "diagnostics_pass", "divergences", "max_rhat", "min_ess_bulk", "ess_bulk_required",
    "reliability_EAP", "rho_theta", "delta_sd_theta", "rho_rank", "stop_decision", "stop_reason",
)  # fmt: skip


def round_log_row(**known: Any) -> pl.DataFrame:
    """One row of the round log: what is known, and null for the rest.

    Args:
        known: values by column; names with a dot are given as ``**{"epsilon_p2.5": ...}``. NaN is missing, and a
            ``timestamp`` may be ISO text.

    """
    values = {name: [_plain(known.get(name), dtype)] for name, dtype in ROUND_LOG.items()}
    return pl.DataFrame(values, schema=ROUND_LOG)


def _plain(value: Any, dtype: pl.DataType) -> Any:
    """A value as Polars takes it: numbers of NumPy as Python's, NaN as missing, a time written out as a time."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and math.isnan(value):
        return None
    return datetime.fromisoformat(value) if dtype == pl.Datetime and isinstance(value, str) else value


def summarize_items(
    state: Any,
    posterior: Any = None,
    refit: int | None = None,
    bind: bool = False,
    top_n: int | None = None,
    sort_by: ItemOrder = "rank_mean",
    include_optional: bool = True,
) -> pl.DataFrame:
    """The items of a fit, sorted, as :func:`pairscale.summarize_items` describes them, without R's names.

    Raises:
        InputError: An option is unknown or out of range, or there is no such fit.
        TableError: There is no item log, or it lacks the column to sort by.
    """
    require_choice(sort_by, "sort_by", get_args(ItemOrder))
    top_n = optional(require_int, top_n, "top_n", least=1)
    refit = optional(require_int, refit, "refit", least=1)
    given = _find(state, "item_log_list", "item_log") if posterior is None else posterior
    logs = _get(given, "item_log_list")
    if logs is None:
        logs = given if isinstance(given, list | tuple) else [given]
    tables = [to_frame(table, "the item log") for table in logs]
    if not tables:
        return pl.DataFrame(schema=ITEM_LOG)
    if refit is not None and (bind or refit > len(tables)):
        raise InputError(f"there is no fit {refit}: there are {len(tables):,}; bind=True stacks them all")
    frame = pl.concat(tables, how="diagonal_relaxed") if bind else tables[(refit or 0) - 1]
    require_columns(frame, [sort_by], "the item log")
    if not include_optional:
        frame = frame.select(name for name in frame.columns if name in _ITEM_CORE)
    figure = pl.col(sort_by).cast(pl.Float64, strict=False).fill_nan(None)
    frame = frame.sort(figure, descending=sort_by != "rank_mean", nulls_last=True, maintain_order=True)
    return frame.head(top_n or frame.height)


def summarize_refits(state: Any, last_n: int | None = None, include_optional: bool = True) -> pl.DataFrame:
    """The fits, one row each, as :func:`pairscale.summarize_refits` describes them, without R's names.

    Raises:
        InputError: ``last_n`` is not 1 or more.
        TableError: There is no round log.
    """
    last_n = optional(require_int, last_n, "last_n", least=1)
    frame = to_frame(_find(state, "round_log"), "the round log")
    if not include_optional:
        frame = frame.select(name for name in frame.columns if name in _CORE)
    return frame.tail(last_n or frame.height)


def _find(source: Any, *names: str) -> Any:
    """What ``source``, or its ``logs``, has under the first of these names that is there, as an attribute or a key."""
    for holder in (source, _get(source, "logs")):
        for name in names:
            found = _get(holder, name)
            if found is not None:
                return found
    raise TableError(f"a fit, a run, or logs by name are needed; this {type(source).__name__} has no {names[0]!r}")


def _get(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
