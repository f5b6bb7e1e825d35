"""The manual's views of logs: ours, with the columns that R calls otherwise behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.adaptive.session import AdaptiveState, require_state
from pairscale.core.errors import InputError
from pairscale.core.options import checked, optional, require_int
from pairscale.models.bayes import logs

if TYPE_CHECKING:
    from pairscale.models.bayes.logs import ItemOrder

R_NAMES = {"mcmc_engine_version": "mcmc_cmdstanr_version", "degree": "deg", "pos_A_rate": "posA_prop"}
"""Our columns that R has under another name."""


def with_r_names(frame: pl.DataFrame) -> pl.DataFrame:
    """A log with the columns that R calls otherwise behind its own, under R's names."""
    named = frame.with_columns(pl.col(own).alias(name) for own, name in R_NAMES.items() if own in frame.columns)
    return named.select(pl.exclude("withdrawn"), "withdrawn") if "withdrawn" in named.columns else named


@checked
def summarize_items(
    state: Any,
    posterior: Any = None,
    refit: int | None = None,
    bind: bool = False,
    top_n: int | None = None,
    sort_by: ItemOrder = "rank_mean",
    include_optional: bool = True,
) -> pl.DataFrame:
    """The items of a fit, sorted: a view of the item log, in which nothing is computed again.

    Args:
        state: A Bayesian fit, an adaptive run or its state, or a mapping of logs.
        posterior: An item log, or a list of them, to look at instead.
        refit: Which fit, counted from 1; by default the last.
        bind: All fits in one table instead.
        top_n: Maximum number of rows, after sorting.
        sort_by: ``rank_mean`` (best first), or ``theta_mean``, ``theta_sd``, ``degree`` or ``pos_A_rate`` (largest
            first). Rows without that figure come last.
        include_optional: All columns, and ``deg`` and ``posA_prop``, R's names of ``degree`` and ``pos_A_rate``. If
            not, the columns up to ``rank``.

    Returns:
        One row per item, or per item and fit. Without any fit yet, a table without rows.

    Raises:
        InputError: If an option is unknown or out of range, or there is no such fit.
        TableError: If there is no item log, or it lacks the column to sort by.

    Example:
        >>> log = [{"refit_id": 1, "ID": "a", "rank_mean": 1.8}, {"refit_id": 1, "ID": "b", "rank_mean": 1.2}]
        >>> summarize_items({"item_log_list": [log]})["ID"].to_list()
        ['b', 'a']
    """
    items = logs.summarize_items(state, posterior, refit, bind, top_n, sort_by, include_optional)
    if include_optional:
        items = with_r_names(items)
    return items


@checked
def summarize_refits(state: Any, last_n: int | None = None, include_optional: bool = True) -> pl.DataFrame:
    """The fits, one row each: a view of the round log, in which nothing is computed again.

    Args:
        state: A Bayesian fit, an adaptive run or its state, or a mapping of logs.
        last_n: Number of the last fits to give.
        include_optional: All columns, and ``mcmc_cmdstanr_version``, R's name of ``mcmc_engine_version``. If not,
            those that say which fit it is, of how much, and whether it stopped.

    Raises:
        InputError: If ``last_n`` is not 1 or more.
        TableError: If there is no round log.

    Example:
        >>> summarize_refits({"round_log": {"refit_id": [1, 2], "max_rhat": [1.02, 1.0]}}, last_n=1).rows()
        [(2, 1.0)]
    """
    refits = logs.summarize_refits(state, last_n, include_optional)
    if include_optional:
        refits = with_r_names(refits)
    return refits


def adaptive_get_logs(state: AdaptiveState) -> dict[str, Any]:
    """The three logs of a run: ``step_log``, ``round_log``, and ``item_log`` as a list of tables.

    Example:
        >>> import pairscale as ps
        >>> sorted(ps.adaptive_get_logs(ps.adaptive_rank_start(["a", "b", "c"], seed=1)))
        ['item_log', 'round_log', 'step_log']
    """
    return as_r_logs(require_state(state).logs)


def as_r_logs(ours: dict[str, Any]) -> dict[str, Any]:
    """Logs of a run as R has them: its word for a step that was committed, and its names of columns behind ours."""
    return ours | {
        "step_log": ours["step_log"].with_columns(pl.col("status").replace("committed", "ok")),
        "round_log": with_r_names(ours["round_log"]),
        "item_log": [with_r_names(table) for table in ours["item_log"]],
    }


def adaptive_step_log(state: AdaptiveState) -> pl.DataFrame:
    """The step log: one row per step that was tried, in the order in which the answers came.

    ``status`` is ``ok``, ``invalid`` or ``starved``. An answer that was not valid leaves ``pair_id`` and ``Y`` empty,
    and changes nothing else.

    Example:
        >>> import pairscale as ps
        >>> state = ps.adaptive_rank_start(["a", "b", "c"], seed=1)
        >>> first_by_name = lambda A, B: {"is_valid": True, "Y": int(A["ID"] < B["ID"])}
        >>> state = ps.adaptive_rank_run_live(state, first_by_name, n_steps=3, fit_fn="laplace", progress="none")
        >>> ps.adaptive_step_log(state).select("step_id", "A", "B", "Y").rows()
        [(1, 1, 2, 1), (2, 2, 3, 1), (3, 3, 1, 0)]
    """
    steps: pl.DataFrame = adaptive_get_logs(state)["step_log"]
    return steps


def adaptive_round_log(state: AdaptiveState) -> pl.DataFrame:
    """The round log: one row per refit, with everything that a stop rests on.

    Example:
        >>> import pairscale as ps
        >>> state = ps.adaptive_rank_start(["a", "b", "c"], seed=1)
        >>> first_by_name = lambda A, B: {"is_valid": True, "Y": int(A["ID"] < B["ID"])}
        >>> state = ps.adaptive_rank_run_live(state, first_by_name, n_steps=6, fit_fn="laplace", progress="none")
        >>> ps.adaptive_round_log(state).select("refit_id", "total_pairs_done", "is_closing").rows()
        [(1, 5, False), (2, 6, True)]
    """
    return with_r_names(require_state(state).round_log)


@checked
def adaptive_item_log(state: AdaptiveState, refit_id: int | None = None, stack: bool = False) -> pl.DataFrame:
    """The item log: one row per item, of the last refit, of another, or of all.

    Args:
        state: The run.
        refit_id: Which refit, counted from 1; by default the last.
        stack: All of them in one table.

    Raises:
        InputError: If there is no such refit.

    Example:
        >>> import pairscale as ps
        >>> state = ps.adaptive_rank_start(["a", "b", "c"], seed=1)
        >>> first_by_name = lambda A, B: {"is_valid": True, "Y": int(A["ID"] < B["ID"])}
        >>> state = ps.adaptive_rank_run_live(state, first_by_name, n_steps=6, fit_fn="laplace", progress="none")
        >>> ps.adaptive_item_log(state).select("refit_id", "ID", "degree").rows()
        [(2, 'a', 4), (2, 'b', 4), (2, 'c', 4)]
    """
    tables: list[pl.DataFrame] = adaptive_get_logs(state)["item_log"]
    if stack and refit_id is not None:
        raise InputError("stack=True gives all refits; leave out refit_id, or stack")
    refit_id = optional(require_int, refit_id, "refit_id", least=1)
    if refit_id is not None and refit_id > len(tables):
        raise InputError(f"there is no refit {refit_id:,}; there are {len(tables):,}")
    if not tables:
        return with_r_names(pl.DataFrame(schema=logs.ITEM_LOG))
    return pl.concat(tables) if stack else tables[(refit_id or 0) - 1]


@checked
def adaptive_results_history(state: AdaptiveState, committed_only: bool = True) -> pl.DataFrame:
    """The comparisons in the order in which they came: ``object1 object2 result``, as :func:`build_bt_data` gives.

    Args:
        state: The run.
        committed_only: Only valid answers. If not, the others too, with an empty ``result``.

    Example:
        >>> import pairscale as ps
        >>> state = ps.adaptive_rank_start(["a", "b", "c"], seed=1)
        >>> first_by_name = lambda A, B: {"is_valid": True, "Y": int(A["ID"] < B["ID"])}
        >>> state = ps.adaptive_rank_run_live(state, first_by_name, n_steps=2, fit_fn="laplace", progress="none")
        >>> ps.adaptive_results_history(state).select("object1", "object2", "result").rows()
        [('a', 'b', 1.0), ('b', 'c', 1.0)]
    """
    log = require_state(state).step_log
    log = log.filter(pl.col("pair_id").is_not_null() if committed_only else pl.col("A").is_not_null())
    return log.select(object1="A_id", object2="B_id", result=pl.col("Y").cast(pl.Float64))
