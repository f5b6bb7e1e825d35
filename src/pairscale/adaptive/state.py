"""The state of an adaptive run: its items, its engine and its logs; and the views of them that the manual names."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.adaptive._words import how_it_stands
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.step_log import STEP_LOG, step_frame
from pairscale.display import Charted
from pairscale.errors import InputError
from pairscale.models.logs import ITEM_FIGURES, ITEM_LOG, ROUND_LOG, round_log_row, summarize_items
from pairscale.options import optional, require_int
from pairscale.tables import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.store import RunFile

__all__ = [
    "AdaptiveState",
    "adaptive_get_logs",
    "adaptive_item_log",
    "adaptive_results_history",
    "adaptive_round_log",
    "adaptive_step_log",
    "summarize_adaptive",
]

_CHUNK = 1_000


class AdaptiveState(Charted, table="_ranking", columns=ITEM_FIGURES, charts=("scores", "ranks")):
    """A run of adaptive ranking.

    Made by :func:`adaptive_rank_start`, :func:`adaptive_rank_resume` or :func:`adaptive_rank`, changed by
    :func:`adaptive_rank_run_live`.

    Attributes:
        items: the samples: ``ID``, ``text`` and their other columns.
        engine: what chooses the pairs.
        where: the run file, or None while the run is kept in memory only.
        cost: US dollars spent, as far as the judge says.
        invalid: answers that were not valid.
        invalid_reason: why the last of them was not.
        ended: why the last call ended before its steps were used up; None when they were, or nothing ran yet.
        settings: what the run goes by.
        fit_fn: what fits, by its name; None before the first call.
        unlogged: events that the run file does not know of yet.
    """

    def __init__(self, items: pl.DataFrame, engine: Engine, where: str | None, settings: Mapping[str, Any]) -> None:
        self.items = items
        self.engine = engine
        self.where = where
        self.settings = dict(settings)
        self.cost = 0.0
        self.invalid = 0
        self.invalid_reason: str | None = None
        self.fit_fn: str | None = None
        self.ended: str | None = None
        self.unlogged: list[dict[str, Any]] = []
        self._memory: RunFile | None = None
        self._heads: Any = None  # of the chain of the run file when this state and the file were last the same
        self._warm: Any = None
        self._fitted_at = 0
        self._steps: list[pl.DataFrame] = []
        self._new_steps: list[Mapping[str, Any]] = []
        self._gathering = threading.Lock()  # a judge may look at the log from its own thread
        self._rounds: list[pl.DataFrame] = []
        self.item_log_list: list[pl.DataFrame] = []
        """The item log, one table a refit."""

    def __str__(self) -> str:
        engine = self.engine
        said = [f"{len(self.ids):,} items", f"{engine.committed:,} comparisons", f"{engine.steps:,} steps"]
        if gone := len(self.withdrawn):
            said[0] += f" ({gone:,} withdrawn)"
        if self.invalid:
            said.append(f"{self.invalid:,} invalid answers")
        if self._rounds:
            reliability = self._rounds[-1]["reliability_EAP"][0]
            said.append(
                f"{len(self._rounds)} refits, reliability {'-' if reliability is None else f'{reliability:.3f}'}"
            )
        said.append(how_it_stands(self.stop_reason) if self.stop_reason else f"next: {engine.stage}")
        return ", ".join(said)

    @property
    def _ranking(self) -> pl.DataFrame:
        return summarize_items(self)

    @property
    def ids(self) -> list[str]:
        """The ids of the items; item number n of the step log is the n-th of them."""
        return self.engine.ids

    @property
    def withdrawn(self) -> list[str]:
        """The items that were withdrawn: they are not asked about, and keep the place that their comparisons give."""
        return self.engine.withdrawn

    @property
    def stop_reason(self) -> str | None:
        """Why the run has stopped, or the last call paused it; None when its steps were used up, or nothing ran yet."""
        return self.engine.stop_reason or self.ended

    @property
    def step_log(self) -> pl.DataFrame:
        """One row a step, in the order of the answers."""
        self._gather()
        return pl.concat(list(self._steps)) if self._steps else pl.DataFrame(schema=STEP_LOG)

    @property
    def round_log(self) -> pl.DataFrame:
        """One row a refit."""
        return pl.concat(self._rounds) if self._rounds else pl.DataFrame(schema=ROUND_LOG)

    @property
    def logs(self) -> dict[str, Any]:
        """All three: ``step_log``, ``round_log`` and ``item_log`` (a list of tables)."""
        return {"step_log": self.step_log, "round_log": self.round_log, "item_log": list(self.item_log_list)}

    # What the runner and the session tell it

    def add_step(self, row: Mapping[str, Any]) -> None:
        """A row of the step log."""
        with self._gathering:
            self._new_steps.append(row)
        if row["status"] == "invalid":
            self.invalid += 1
            self.invalid_reason = row["invalid_reason"]
        if len(self._new_steps) >= _CHUNK:
            self._gather()

    def add_refit(self, row: Mapping[str, Any], items: pl.DataFrame) -> None:
        """A row of the round log, and the items of that refit."""
        self._rounds.append(round_log_row(**{name: row.get(name) for name in ROUND_LOG}))
        self.item_log_list.append(items)
        self._fitted_at = int(row["total_pairs_done"])

    def _gather(self) -> None:
        with self._gathering:
            if self._new_steps:
                self._steps.append(step_frame(self._new_steps))
                self._new_steps = []

    @property
    def last_refit(self) -> dict[str, Any] | None:
        """The row of the round log of the last refit that was no closing one."""
        rows = (frame.row(0, named=True) for frame in reversed(self._rounds))
        return next((row for row in rows if not row["is_closing"]), None)

    @property
    def n_logged_refits(self) -> int:
        """How many rows the round log has."""
        return len(self._rounds)

    @property
    def needs_closing(self) -> bool:
        """Whether comparisons came in since the last fit, so that the scores are behind."""
        return self.engine.committed > self._fitted_at


def adaptive_get_logs(state: AdaptiveState) -> dict[str, Any]:
    """The three logs of a run: ``step_log``, ``round_log``, and ``item_log`` as a list of tables.

    Example:
        >>> import pairscale as ps
        >>> sorted(ps.adaptive_get_logs(ps.adaptive_rank_start(["a", "b", "c"], seed=1)))
        ['item_log', 'round_log', 'step_log']
    """
    return _checked(state).logs


def adaptive_step_log(state: AdaptiveState) -> pl.DataFrame:
    """The step log: one row a step that was tried, in the order in which the answers came.

    An answer that was not valid leaves ``pair_id`` and ``Y`` empty, and changes nothing else.

    Example:
        >>> import pairscale as ps
        >>> state = ps.adaptive_rank_start(["a", "b", "c"], seed=1)
        >>> first_by_name = lambda A, B: {"is_valid": True, "Y": int(A["ID"] < B["ID"])}
        >>> state = ps.adaptive_rank_run_live(state, first_by_name, n_steps=3, fit_fn="laplace", progress="none")
        >>> ps.adaptive_step_log(state).select("step_id", "A", "B", "Y").rows()
        [(1, 1, 2, 1), (2, 2, 3, 1), (3, 3, 1, 0)]
    """
    return _checked(state).step_log


def adaptive_round_log(state: AdaptiveState) -> pl.DataFrame:
    """The round log: one row a refit, with everything that a stop rests on.

    Example:
        >>> import pairscale as ps
        >>> state = ps.adaptive_rank_start(["a", "b", "c"], seed=1)
        >>> first_by_name = lambda A, B: {"is_valid": True, "Y": int(A["ID"] < B["ID"])}
        >>> state = ps.adaptive_rank_run_live(state, first_by_name, n_steps=6, fit_fn="laplace", progress="none")
        >>> ps.adaptive_round_log(state).select("refit_id", "total_pairs_done", "is_closing").rows()
        [(1, 5, False), (2, 6, True)]
    """
    return _checked(state).round_log


def adaptive_item_log(state: AdaptiveState, refit_id: int | None = None, stack: bool = False) -> pl.DataFrame:
    """The item log: one row an item, of the last refit, of another, or of all.

    Args:
        state: the run.
        refit_id: which refit, counted from 1; by default the last.
        stack: all of them in one table.

    Raises:
        InputError: when there is no such refit.

    Example:
        >>> import pairscale as ps
        >>> state = ps.adaptive_rank_start(["a", "b", "c"], seed=1)
        >>> first_by_name = lambda A, B: {"is_valid": True, "Y": int(A["ID"] < B["ID"])}
        >>> state = ps.adaptive_rank_run_live(state, first_by_name, n_steps=6, fit_fn="laplace", progress="none")
        >>> ps.adaptive_item_log(state).select("refit_id", "ID", "degree").rows()
        [(2, 'a', 4), (2, 'b', 4), (2, 'c', 4)]
    """
    tables = _checked(state).item_log_list
    if stack and refit_id is not None:
        raise InputError("stack=True gives all refits; leave out refit_id, or stack")
    refit_id = optional(require_int, refit_id, "refit_id", least=1)
    if refit_id is not None and refit_id > len(tables):
        raise InputError(f"there is no refit {refit_id:,}; there are {len(tables):,}")
    if not tables:
        return pl.DataFrame(schema=ITEM_LOG)
    return pl.concat(tables) if stack else tables[-1 if refit_id is None else refit_id - 1]


def adaptive_results_history(state: AdaptiveState, committed_only: bool = True) -> pl.DataFrame:
    """The comparisons in the order in which they came: ``object1 object2 result``, as :func:`build_bt_data` gives.

    Args:
        state: the run.
        committed_only: only valid answers. If not, the others too, with an empty ``result``.

    Example:
        >>> import pairscale as ps
        >>> state = ps.adaptive_rank_start(["a", "b", "c"], seed=1)
        >>> first_by_name = lambda A, B: {"is_valid": True, "Y": int(A["ID"] < B["ID"])}
        >>> state = ps.adaptive_rank_run_live(state, first_by_name, n_steps=2, fit_fn="laplace", progress="none")
        >>> ps.adaptive_results_history(state).select("object1", "object2", "result").rows()
        [('a', 'b', 1.0), ('b', 'c', 1.0)]
    """
    log = _checked(state).step_log
    log = log.filter(pl.col("pair_id").is_not_null() if committed_only else pl.col("A").is_not_null())
    return log.select(object1="A_id", object2="B_id", result=pl.col("Y").cast(pl.Float64))


def summarize_adaptive(state: AdaptiveState) -> pl.DataFrame:
    """A run in one row: items, steps, comparisons, refits, and whether and why it has stopped.

    Example:
        >>> import pairscale as ps
        >>> ps.summarize_adaptive(ps.adaptive_rank_start(["a", "b", "c"], seed=11)).row(0)
        (3, 0, 0, 0, False, None)
    """
    engine = _checked(state).engine
    return pl.DataFrame(
        {
            "n_items": [engine.ledger.n],
            "steps_attempted": [engine.rows],
            "committed_pairs": [engine.committed],
            "n_refits": [state.n_logged_refits],
            "last_stop_decision": [state.stop_reason is not None],
            "last_stop_reason": pl.Series([state.stop_reason], dtype=pl.String),
        }
    )


def _checked(state: AdaptiveState) -> AdaptiveState:
    if not isinstance(state, AdaptiveState):
        raise InputError(f"this needs the state of an adaptive run, not {type(state).__name__}")
    return state


def as_items(items: Any) -> pl.DataFrame:
    """Items as a table with ``ID`` and ``text``: from ids alone, or from a table with ``item_id``, ``id`` or ``ID``."""
    from pairscale.tables import require_ids, to_frame

    is_list = isinstance(items, list | tuple | np.ndarray | pl.Series)
    if isinstance(items, str):
        raise InputError("items must be a list of ids or a table, not a text")
    if is_list and all(isinstance(item, str | int | np.integer) for item in items):
        frame = pl.DataFrame({"ID": [str(item) for item in items]}, schema={"ID": pl.String})
    else:
        frame = to_frame(items, "items")
        named = next((name for name in ("ID", "item_id", "id") if name in frame.columns), None)
        if named is None:
            raise InputError(f"items: there is no column ID (or item_id, id); there are {listed(frame.columns)}")
        frame = frame.rename({named: "ID"})
    frame = require_ids(frame, ["ID"], "items")
    if "text" not in frame.columns:
        frame = frame.with_columns(text=pl.lit(""))
    frame = frame.with_columns(pl.col("text").cast(pl.String).fill_null(""))
    if twice := frame.filter(pl.col("ID").is_duplicated())["ID"].unique(maintain_order=True).to_list():
        raise InputError(f"items: ids must be unique; more than once: {listed(twice)}")
    return frame.select("ID", "text", *(name for name in frame.columns if name not in {"ID", "text", "item_id"}))


def beliefs_of(
    items: pl.DataFrame, ids: Sequence[str]
) -> tuple[np.ndarray[Any, Any] | None, np.ndarray[Any, Any] | None]:
    """What items bring along as ``mu`` and ``sigma``, in the order of ``ids``."""
    from pairscale.models.trueskill import MU, SIGMA

    found: list[np.ndarray[Any, Any] | None] = []
    chosen = items.filter(pl.col("ID").is_in(list(ids)))
    for name, default in (("mu", MU), ("sigma", SIGMA)):
        if name not in items.columns:
            found.append(None)
            continue
        values = chosen[name].cast(pl.Float64, strict=False).fill_null(default).to_numpy()
        if not np.isfinite(values).all() or (name == "sigma" and not (values > 0).all()):
            raise InputError(f"items: {name} must be {'above 0' if name == 'sigma' else 'a number'} for every item")
        found.append(values)
    return found[0], found[1]
