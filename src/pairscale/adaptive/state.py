"""The state of an adaptive run: its items, its engine and its logs; and the views of them that the manual names."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.adaptive.engine import Engine
from pairscale.adaptive.messages import how_it_stands, provisional
from pairscale.adaptive.step_log import step_frame
from pairscale.core.display import PlotMixin
from pairscale.core.errors import InputError
from pairscale.core.tables import listed
from pairscale.models.bayes.logs import ITEM_FIGURES, ROUND_LOG, round_log_row, summarize_items

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.store.reading import Comparisons
    from pairscale.store.runfile import RunFile

__all__ = [
    "AdaptiveState",
    "require_state",
    "summarize_adaptive",
]

_CHUNK = 1_000


class AdaptiveState(PlotMixin, table="_ranking", columns=ITEM_FIGURES, charts=("scores", "ranks")):
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
        judge_id: The judge; None before the first call.
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
        self.judge_id: str | None = None
        self.ended: str | None = None
        self.unlogged: list[dict[str, Any]] = []
        self._memory: RunFile | None = None
        self._ends: Any = None  # of the logs of the run file when this state and the file were last the same
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
            last = self._rounds[-1].row(0, named=True)
            reliability = "-" if last["reliability"] is None else f"{last['reliability']:.3f}{provisional(last)}"
            refits = f"{len(self._rounds):,} refit{'s' * (len(self._rounds) != 1)}"
            said.append(f"{refits}, reliability {reliability}")
        said.append(how_it_stands(self.stop_reason) if self.stop_reason else f"next: {engine.stage}")
        return ", ".join(said)

    @property
    def _ranking(self) -> pl.DataFrame:
        return summarize_items(self, sort_by="theta_mean")

    @property
    def ids(self) -> list[str]:
        """The ids of the items; item number n of the step log is the n-th of them."""
        return self.engine.ids

    @property
    def preset(self) -> str:
        """The preset that the run was started with."""
        return str(self.settings["preset"])

    @property
    def withdrawn(self) -> list[str]:
        """The items that were withdrawn: they are not asked about, and keep the place that their comparisons give."""
        return self.engine.withdrawn

    @property
    def stop_reason(self) -> str | None:
        """Why the run has stopped, or the last call paused it; None when its steps were used up, or nothing ran yet."""
        return self.engine.stop_reason or self.ended

    @property
    def results(self) -> pl.DataFrame:
        """The comparisons of the run, as :func:`submit_pairs` gives them."""
        return self.as_comparisons().table

    def as_comparisons(self) -> Comparisons:
        """The same with all items, and how the pairs were chosen, for :func:`pairscale.fit`."""
        from pairscale.adaptive.session import reading
        from pairscale.store.reading import read_comparisons

        with reading(self) as store:
            return read_comparisons(store, store.get_meta("adaptive_condition"))

    @property
    def step_log(self) -> pl.DataFrame:
        """One row per step, in the order of the answers."""
        self._gather()
        if not self._steps:
            return step_frame([], ties=self.engine.counts_ties)
        return pl.concat(list(self._steps), how="vertical_relaxed")  # ties may count from some step on

    @property
    def round_log(self) -> pl.DataFrame:
        """One row per refit."""
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
                tied = self.engine.counts_ties or any(row.get("Y") == 0.5 for row in self._new_steps)
                self._steps.append(step_frame(self._new_steps, ties=tied))
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
        """Whether comparisons came in since the last fit, as many as the model needs, so that the scores are behind."""
        return self.engine.can_fit and self.engine.committed > self._fitted_at and not self.engine.lacks_probabilities


def summarize_adaptive(state: AdaptiveState) -> pl.DataFrame:
    """A run in one row: items, steps, comparisons, refits, whether and why it has stopped, and what its claims rest on.

    ``reliability``, ``position_effect`` (posterior mean of the bias for the first position) and ``repeat_agreement``
    are those of the last refit; missing where there is none, or the model has no such figure. ``weak_judges`` are the
    weak ones of a panel, as JSON.

    Example:
        >>> import pairscale as ps
        >>> ps.summarize_adaptive(ps.adaptive_rank_start(["a", "b", "c"], seed=11)).row(0)[:7]
        (3, 0, 0, 0, False, None, 'pairwiseLLM')
    """
    engine = require_state(state).engine
    last = state._rounds[-1].row(0, named=True) if state._rounds else {}
    return pl.DataFrame(
        {
            "n_items": [engine.ledger.n],
            "steps_attempted": [engine.rows],
            "committed_pairs": [engine.committed],
            "n_refits": [state.n_logged_refits],
            "last_stop_decision": [state.stop_reason is not None],
            "last_stop_reason": pl.Series([state.stop_reason], dtype=pl.String),
            "preset": [state.preset],
            "goal": [engine.config.goal],
            "reliability": pl.Series([last.get("reliability")], dtype=pl.Float64),
            "judge_id": pl.Series([state.judge_id], dtype=pl.String),
            "position_effect": pl.Series([last.get("b_mean")], dtype=pl.Float64),
            "repeat_agreement": pl.Series([last.get("repeat_agreement")], dtype=pl.Float64),
            "weak_judges": pl.Series([last.get("weak_judges")], dtype=pl.String),
        }
    )


def require_state(state: AdaptiveState) -> AdaptiveState:
    """Refuse what is no state of an adaptive run."""
    if not isinstance(state, AdaptiveState):
        raise InputError(f"this needs the state of an adaptive run, not {type(state).__name__}")
    return state


def as_items(items: Any) -> pl.DataFrame:
    """Items as a table with ``ID`` and ``text``: from ids alone, or from a table with ``item_id``, ``id`` or ``ID``."""
    from pairscale.core.tables import require_ids, to_frame

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
