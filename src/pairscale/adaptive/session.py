"""An adaptive run: its items, its engine and its logs, in a run file or in memory; how it starts and comes back.

What is written is what happens (proposals, answers, refits, joins, calls), in its order. Loading lets it happen again,
so a run that was killed continues as if it had not been.
"""

from __future__ import annotations

import json
import math
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.adaptive.config import (
    STOP_SETTINGS,
    AdaptiveConfig,
    BTLConfig,
    given_settings,
)
from pairscale.adaptive.engine import Engine, Proposal
from pairscale.adaptive.logs import step_frame
from pairscale.adaptive.messages import NOTHING_LEFT, has_begun, how_it_stands, ids_of, provisional
from pairscale.adaptive.refits import Belief
from pairscale.adaptive.selectors import (
    POLLITT,
    SELECTORS,
    MissingSelector,
    OwnSelector,
    named_selector,
    selector_name,
)
from pairscale.core.display import PlotMixin
from pairscale.core.errors import InputError, StoreDamagedError, StoreError, StoreMismatchError
from pairscale.core.notices import notice, plural
from pairscale.core.options import FilePath, require_run
from pairscale.core.provenance import utc_now
from pairscale.core.tables import listed, require_ids, to_frame
from pairscale.models.bayes.logs import ITEM_FIGURES, ITEM_LOG, ROUND_LOG, round_log_row, summarize_items
from pairscale.models.trueskill import MU, SIGMA
from pairscale.models.warm_start import warm_from_bytes
from pairscale.store.audit import check_evidence
from pairscale.store.chain import canonical, log_ends
from pairscale.store.runfile import RunFile, open_run

if TYPE_CHECKING:
    from pairscale.adaptive.logs import Columns, Row
    from pairscale.judges.base import Judge
    from pairscale.store.reading import Comparisons

LOG_VERSION = 2
"""Of what is written about an adaptive run."""
LOGS = ("step_log", "round_log", "item_log", "adaptive_events")
"""The logs that an adaptive run is restored from."""
_CHUNK = 1_000  # steps that become a table

RECORDED = ("invalid_reason", "invalid_kind", "orders_agree", "probability", "judge")
"""Columns of the step log that the engine is told with an answer, besides Y."""
_OUTCOME = {"timestamp", "pair_id", "Y", "status", "p_ij", "U0_ij", "set_aside", *RECORDED}
_SETTINGS = ("seed", "selector", "preset", "adaptive_config", "btl_config", "persist_item_log")


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
        rounds: the rows of the round log.
        warm: what the next refit starts from.
        item_log_list: The item log, one table a refit.
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
        self.unlogged: list[Columns] = []
        self.rounds: list[Columns] = []
        self.warm: Any = None
        self.item_log_list: list[pl.DataFrame] = []
        self._memory: RunFile | None = None
        self._ends: Any = None  # of the logs of the run file when this state and the file were last the same
        self._steps: pl.DataFrame | None = None
        self._new_steps: list[Row] = []
        self._gathering = threading.Lock()  # a judge may look at the log from its own thread

    def __str__(self) -> str:
        engine = self.engine
        done = f"{len(self.ids):,} items, {engine.committed:,} comparisons, {engine.steps:,} steps"
        if self.latest.get("reliability") is not None:
            done += f", reliability {self.latest['reliability']:.3f}{provisional(self.latest)}"
        return f"{done}, {how_it_stands(self.stop_reason) if self.stop_reason else f'next: {engine.stage}'}"

    @property
    def _ranking(self) -> pl.DataFrame:
        return summarize_items(self, sort_by="theta_mean")

    @property
    def folder(self) -> Path | None:
        """The folder of the run file; None of a run in memory or in a database."""
        return None if self.where is None or "://" in self.where else Path(self.where).parent

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
        from pairscale.store.reading import read_comparisons

        with self.reading() as store:
            return read_comparisons(store, store.get_meta("adaptive_condition"))

    @property
    def step_log(self) -> pl.DataFrame:
        """One row per step, in the order of the answers."""
        with self._gathering:
            return self._gathered()

    @property
    def round_log(self) -> pl.DataFrame:
        """One row per refit."""
        return pl.DataFrame(self.rounds, schema=ROUND_LOG)

    @property
    def logs(self) -> Columns:
        """All three: ``step_log``, ``round_log`` and ``item_log`` (a list of tables)."""
        return {"step_log": self.step_log, "round_log": self.round_log, "item_log": list(self.item_log_list)}

    @property
    def latest(self) -> Row:
        """The last row of the round log; empty before there is one."""
        return self.rounds[-1] if self.rounds else {}

    @property
    def last_refit(self) -> Columns | None:
        """The row of the round log of the last refit that was no closing one."""
        return next((row for row in reversed(self.rounds) if not row["is_closing"]), None)

    @property
    def needs_closing(self) -> bool:
        """Whether comparisons came in since the last fit, as many as the model needs, so that the scores are behind."""
        is_behind = self.engine.committed > self.latest.get("total_pairs_done", 0)
        return self.engine.can_fit and is_behind and not self.engine.lacks_probabilities

    def add_step(self, row: Row) -> None:
        """A row of the step log."""
        with self._gathering:
            self._new_steps.append(row)
            if len(self._new_steps) >= _CHUNK:
                self._gathered()
        if row["status"] == "invalid":
            self.invalid += 1
            self.invalid_reason = row["invalid_reason"]

    def add_refit(self, row: Row, items: pl.DataFrame) -> None:
        """A row of the round log, and the items of that refit."""
        self.rounds.append(round_log_row(**{name: row.get(name) for name in ROUND_LOG}).row(0, named=True))
        self.item_log_list.append(items)

    def _gathered(self) -> pl.DataFrame:
        """All steps as one table; new ones are added to it."""
        ties = self.engine.counts_ties or any(row.get("Y") == 0.5 for row in self._new_steps)
        new = step_frame(self._new_steps, ties=ties)
        self._steps = new if self._steps is None else pl.concat([self._steps, new], how="vertical_relaxed")
        self._new_steps = []
        return self._steps

    # The run file

    @contextmanager
    def writing(self, *, fresh: bool = False) -> Iterator[RunFile]:
        """The run file, open for writing; one in memory when there is none."""
        if self.where is None:
            self._memory = self._memory or open_run(None, write=True)
            yield self._memory
            return
        with open_run(self.where, write=True) as store:
            if not fresh and (store.log_length("step_log"), log_ends(store, LOGS)) != (self.engine.rows, self._ends):
                raise StoreMismatchError(
                    f"{self.where} has continued since this state was loaded; load it again with adaptive_rank_resume"
                )
            self._ends = None
            try:
                yield store
            except StoreError:
                raise  # nobody knows what was written: the run has to be loaded again
            except BaseException:
                self._ends = log_ends(store, LOGS)
                raise
            self._ends = log_ends(store, LOGS)

    @contextmanager
    def reading(self) -> Iterator[RunFile]:
        """The run file, open for reading; that in memory when there is none."""
        if self.where is None:
            with self.writing() as store:
                yield store
        else:
            with open_run(self.where) as store:
                yield store

    def save(self, target: str, *, overwrite: bool) -> None:
        """Keep the run in this file from now on."""
        if self.where is not None and Path(self.where).resolve() == Path(target).resolve():
            return
        if Path(target).exists():
            if not overwrite:
                raise StoreError(f"{target} already exists; give overwrite=True to replace it, or name another folder")
            open_run(target, write=True).close()  # no one may be writing, and nothing of the old one may stay beside it
        with self.writing() as store:
            store.copy_to(target)
            self._ends = log_ends(store, LOGS)
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        self.where = target


def require_state(state: AdaptiveState) -> AdaptiveState:
    """Refuse what is no state of an adaptive run."""
    if not isinstance(state, AdaptiveState):
        raise InputError(f"this needs the state of an adaptive run, not {type(state).__name__}")
    return state


def event_of(kind: str, engine: Engine, **more: Any) -> Columns:
    """A row of the log of events: what happened, behind which row and which step, and when."""
    return {"event": kind, "after": engine.rows, "steps": engine.steps, "at": utc_now(), **more}


def run_path(session_dir: FilePath | None, run: FilePath | None) -> str | None:
    """The run file that ``run`` names, or that a session folder holds (made when it is missing)."""
    if run is not None and session_dir is not None:
        raise InputError("give session_dir or run, not both: session_dir=DIR means the run file DIR/run.db")
    if run is not None:
        return require_run(run)
    if session_dir is None:
        return None
    try:
        Path(session_dir).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"session_dir {session_dir} must be a folder ({error.strerror}); a file is run=") from None
    return str(Path(session_dir) / "run.db")


def plain_settings(config: Any, what: str) -> Columns:
    """Settings as JSON keeps them."""
    return dict(json.loads(canonical(given_settings(config, what))))


# How a run starts


def as_items(items: Any) -> pl.DataFrame:
    """Items as a table with ``ID`` and ``text``: from ids alone, or from a table with ``item_id``, ``id`` or ``ID``."""
    if isinstance(items, list | tuple | np.ndarray | pl.Series) and not any(
        isinstance(item, Mapping) for item in items
    ):
        items = pl.DataFrame({"ID": list(map(str, items))}, schema={"ID": pl.String})
    frame = to_frame(items, "items")
    for name in ("item_id", "id"):
        if "ID" not in frame.columns:
            frame = frame.rename({name: "ID"}, strict=False)
    frame = require_ids(frame, ["ID"], "items")
    if "text" not in frame.columns:
        frame = frame.with_columns(text=pl.lit(""))
    frame = require_unique(frame.with_columns(pl.col("text").cast(pl.String).fill_null("")), "items")
    return frame.select("ID", "text", pl.exclude("ID", "text", "item_id"))


def require_unique(frame: pl.DataFrame, what: str) -> pl.DataFrame:
    """Refuse items with the same id."""
    twice = frame.filter(pl.col("ID").is_duplicated())["ID"].unique(maintain_order=True).to_list()
    if twice:
        raise InputError(f"{what}: ids must be unique; more than once: {listed(twice)}")
    return frame


def beliefs_of(items: pl.DataFrame) -> Columns:
    """What items bring along as ``mu`` and ``sigma``."""
    beliefs: Columns = {"mu": None, "sigma": None}
    for name, default, low in (("mu", MU, -math.inf), ("sigma", SIGMA, 0)):
        if name in items.columns:
            values = items[name].cast(pl.Float64, strict=False).fill_null(default)
            if not values.is_between(low, math.inf, closed="none").all():
                raise InputError(f"items: {name} must be a number above {low:g} for every item")
            beliefs[name] = values.to_list()
    return beliefs


# How it comes back


class Replay:
    """One pass over the logs of a run, all of which are read at first, without choosing and without fitting.

    Args:
        store: the run file; its chain was checked.
        where: its name, for messages.
        selector: who chooses, if it is to be checked, or is not one of the package's own.

    Attributes:
        rows: the step log.
        rounds: the round log.
        items: the item log.
        events: the log of events.
        engine: the engine, as far as the replay has come.
        state: the run, likewise.

    Raises:
        StoreMismatchError: when it is another selector than before.
    """

    def __init__(self, store: RunFile, where: str, selector: str | OwnSelector | None = None) -> None:
        self.rows = store.read_log("step_log")
        self.rounds = store.read_log("round_log")
        self.items = store.read_log("item_log")
        self.events = store.read_log("adaptive_events")
        if not self.events or self.events[0]["event"] != "start":
            raise StoreDamagedError(f"{where}: the run has no beginning; restore the file from a copy")
        start = self.events[0]
        self.engine = _engine_of(start, where, selector)
        order = pl.DataFrame({"ID": ids_of(self.events)}, schema={"ID": pl.String})
        items = order.join(store.items(), on="ID", how="left", maintain_order="left")
        self.state = AdaptiveState(items, self.engine, where, {name: start[name] for name in _SETTINGS})
        asked = {row["step_id"]: row for row in store.read_log("adaptive_open")}  # each as it was asked last
        self._proposals = list((asked | {row["step_id"]: row for row in self.rows}).values())
        self._beliefs = [store.read_blob("belief", number) for number in range(1, len(self.rounds) + 1)]

    def run(self) -> None:
        """Let everything happen: rows of the step log, and before each of them the proposals and events in their order.

        Both say behind how many rows they came. Among those of the same place, an event says which was the last step
        then.
        """
        happened = [(row["proposed_after"], row["step_id"], 0, row) for row in self._proposals]
        happened += [(event["after"], event["steps"], 1, event) for event in self.events[1:]]
        waiting = deque(sorted(happened, key=itemgetter(0, 1, 2)))
        for at in range(len(self.rows) + 1):
            while waiting and waiting[0][0] == at:
                _, _, is_event, what = waiting.popleft()
                if is_event:
                    self.happen(what)
                else:
                    self.propose(what)
            if at < len(self.rows) and self.rows[at]["status"] != "starved":
                self.record(self.rows[at])

    def propose(self, logged: Row) -> None:
        """A pair was proposed, or a stage found none."""
        if logged.get("status") == "starved":
            self.engine.starve(logged)
            return
        fields = {name: value for name, value in logged.items() if name not in _OUTCOME}
        self.engine.admit(Proposal(logged["step_id"], logged["A"] - 1, logged["B"] - 1, fields))

    def record(self, logged: Row) -> Columns:
        """An answer came."""
        more = {name: logged.get(name) for name in RECORDED}
        return self.engine.record(logged["step_id"], logged["Y"], **more)

    def happen(self, event: Row) -> None:
        """Something happened besides pairs and answers."""
        kind = event["event"]
        if kind in ("call", "configure", "stop_rule", "join"):
            self.state.ended = None
        if kind == "call":
            self.engine.refit_lag = event["refit_lag"]
            self.engine.failures_in_row = 0
            self.state.fit_fn = event["fit_fn"]
        elif kind in ("configure", "stop_rule"):
            self.state.settings |= {name: event[name] for name in ("adaptive_config", "btl_config") if name in event}
            self.engine.configure(
                event.get("adaptive_config"), event["btl_config"], stop_reason=event.get("stop_reason")
            )
        elif kind == "join":
            self.engine.join(event["ids"], event["mu"], event["sigma"])
        elif kind == "withdraw":
            self.engine.withdraw(event["ids"], taken=event["taken"])
        elif kind == "end":
            self.end(event["reason"])
        elif kind == "refit":
            self.refit(event["refit_id"], is_closing=event["is_closing"])
        else:
            raise StoreDamagedError(f"nothing is known of an event {kind!r}")

    def end(self, reason: str | None) -> None:
        """A call ended."""
        self.state.ended = reason
        if reason in NOTHING_LEFT:  # that nothing is left is known by looking, which a replay does not do
            self.engine.stop_reason = reason

    def refit(self, number: int, *, is_closing: bool) -> None:
        """A refit was applied; a closing one guides no choice."""
        row = self.rounds[number - 1]
        self.state.add_refit(row, pl.DataFrame(self.items[number - 1]["columns"], schema=ITEM_LOG))
        if not is_closing:
            self.engine.apply(self.belief(number), stop_reason=row["stop_reason"])

    def belief(self, number: int) -> Belief:
        """What a refit found."""
        return Belief.from_bytes(self._beliefs[number - 1] or b"")


def _engine_of(start: Row, where: str, selector: str | OwnSelector | None) -> Engine:
    """The engine as it was before the first step."""
    name = start["selector"]
    if selector is None and name not in (POLLITT, *SELECTORS):
        selector = MissingSelector(name)
    selector = named_selector(selector or name)
    now = selector_name(selector)
    if now != name:
        raise StoreMismatchError(
            f"{where} was started with selector={name!r}, not {now!r}; give that, or take a new run file"
        )
    settings = {key: start[key] for key in ("seed", "adaptive_config", "btl_config", "mu", "sigma")}
    return Engine(start["ids"], selector=selector, **settings)


def session_exists(where: str | None) -> bool:
    """Whether a run file is there and holds an adaptive run; damage is an error, not an absence."""
    if where is None or ("://" not in where and not Path(where).exists()):
        return False
    # Open for writing: a process that died while it made the file may have left one without tables.
    with open_run(where, write=True) as store:
        return has_begun(store)


def existing_path(session_dir: FilePath | None) -> str:
    """The run file that is a session, or that a session folder holds."""
    if session_dir is None:
        raise InputError("name the session folder or the run file")
    if "://" in str(session_dir):
        return str(session_dir)
    path = Path(session_dir)
    path = path / "run.db" if path.is_dir() else path
    if not path.exists():
        raise StoreError(f"{path}: there is no session")
    return str(path)


def session_facts(store: RunFile, where: str) -> Columns:
    """What wrote the run; one that another log version wrote cannot be read."""
    facts = store.get_meta("adaptive")
    if facts is None:
        raise StoreDamagedError(f"{where} holds no adaptive run")
    if facts["log_version"] != LOG_VERSION:
        raise StoreDamagedError(
            f"{where} was written by pairscale {facts['package_version']} (log version {facts['log_version']}, "
            f"this one reads {LOG_VERSION}); use that version"
        )
    return dict(facts)


def check_session(store: RunFile, where: str) -> Columns:
    """The same of a run in which nothing was changed since it was written."""
    facts = session_facts(store, where)
    if problems := check_evidence(store, "logs", "blobs").problems:
        raise StoreDamagedError(f"{where}: {problems[0]}; restore the file from a copy")
    return facts


def load_session(where: str, selector: str | OwnSelector | None = None) -> AdaptiveState:
    """The run of a file, checked and ready to continue."""
    with open_run(where) as store, store.snapshot():
        check_session(store, where)
        replay = Replay(store, where, selector)
        replay.run()
        state = replay.state
        for row in replay.rows:
            state.add_step(row)
        last = state.last_refit
        warm = None if last is None else store.read_blob("warm", last["refit_id"])
        state.warm = None if warm is None else warm_from_bytes(warm)
        state.cost = store.spent()
        entered = store.get_meta("adaptive_condition")
        state.judge_id = None if entered is None else store.condition(entered).judge_id
        state._ends = log_ends(store, LOGS)
        return state


# What changes a run between calls


def change_settings(
    state: AdaptiveState, adaptive_config: dict[str, Any], btl_config: dict[str, Any], *, is_free: bool
) -> None:
    """Continue with exactly these settings; if they come to those of before, nothing happens.

    Args:
        state: the run.
        adaptive_config: all that is given of how pairs are chosen.
        btl_config: all that is given of how the model is fitted.
        is_free: whether any setting may change. If not, it may after a stop; in a pause the stop rule may, which
            leaves every choice as it would have been, and how many flips pause the run.
    """
    engine = state.engine
    btl = BTLConfig.for_items(len(state.ids), btl_config)
    adaptive = AdaptiveConfig.for_items(len(state.ids), adaptive_config, refit_pairs_target=btl.round_basis)
    before = asdict(engine.btl) | asdict(engine.config)
    after = asdict(btl) | asdict(adaptive)
    changed = {
        name: f"{name} is {after[name]!r}, was {before[name]!r}" for name in after if after[name] != before[name]
    }
    if not changed:
        return
    is_paused = engine.stop_reason is None
    fixed = [words for name, words in changed.items() if name not in (*STOP_SETTINGS, "flip_share_max")]
    if fixed and is_paused and not is_free:
        raise StoreMismatchError(
            f"{state.where} was started with other settings ({fixed[0]}); give those, or take a new run file"
        )
    new: dict[str, Any] = {"adaptive_config": adaptive_config, "btl_config": btl_config}
    state.settings |= new
    state.ended = None
    kind = "configure"
    reason = None
    if is_paused and set(changed) <= set(STOP_SETTINGS):
        reason = engine.stops_now(state.last_refit, btl)
        ends = "; the last refit meets it, so that the run stops here" if reason else ""
        notice(f"another stop rule from here on: {', '.join(changed.values())}{ends}")
        kind = "stop_rule"
        new = {"btl_config": btl_config, "stop_reason": reason}
    state.unlogged.append(event_of(kind, engine, **new))
    engine.configure(new.get("adaptive_config"), btl_config, stop_reason=reason)


def join_items(state: AdaptiveState, late: pl.DataFrame) -> None:
    """Late items join a run."""
    ids = late["ID"].to_list()
    beliefs = beliefs_of(late)
    event = event_of("join", state.engine, ids=ids, **beliefs)
    state.engine.join(ids, **beliefs)
    state.unlogged.append(event)
    state.ended = None
    state.items = pl.concat([state.items, late], how="diagonal_relaxed")
    notice(f"new in the run: {plural(len(ids), 'text')}, {listed(ids)}")


def withdraw_items(state: AdaptiveState, ids: Sequence[str]) -> None:
    """Withdraw items from a run, say so, and have it logged; those that were withdrawn before are passed over."""
    new = [name for name in dict.fromkeys(ids) if name not in state.withdrawn]
    if not new:
        return
    unknown = [name for name in new if name not in state.ids]
    if unknown:
        raise InputError(f"`without=`: the run has no text {listed(unknown)}")
    # A question of a step that was never finished may stand in the run file; its number is not used for another pair.
    with state.reading() as store:
        asked = store.failed_attempts()["custom_id"].str.extract(r"^step-(\d+)$").cast(pl.Int64)
    event = event_of("withdraw", state.engine, ids=new, taken=max(state.engine.steps, asked.max() or 0))
    state.engine.withdraw(new, taken=event["taken"])
    state.unlogged.append(event)
    notice(f"withdrawn from the run, and not asked about any more: {listed(new)}; what was answered stays")


def require_same_judge(state: AdaptiveState, judge: Judge) -> str | None:
    """Refuse another judge than the one that a run belongs to, before anything is asked, changed or returned.

    Returns:
        The condition that the answers of the run are stored under; None while there are none.

    Raises:
        StoreMismatchError: it is another one; the message names the difference.
    """
    now = judge.condition
    with state.reading() as store:
        entered = str(store.get_meta("adaptive_condition"))
        rows = store.conditions().filter(pl.col("condition_id") == entered)
        # A judge that could not be asked at all may be replaced: nothing rests on it.
        if not rows.select("win", "tie", "flip", "abstention", "error").sum_horizontal().sum():
            return None
        before = store.condition(entered)
    is_function = now.backend == "function"
    changed = []
    for name in ("judge_id", "model", "trait", "template_id"):
        old = getattr(before, name)
        new = getattr(now, name)
        # A function may be given a trait for the record, and need not be every time.
        is_optional = is_function and name != "judge_id" and None in (old, new)
        if old != new and not is_optional:
            changed.append(f"{name} was {old!r}, is {new!r}")
    if not changed and not is_function and entered != now.condition_id:
        names = sorted(set(before.settings) | set(now.settings))
        other = [name for name in names if before.settings.get(name) != now.settings.get(name)]
        changed = [f"other settings ({', '.join(other)})"]
    if changed:
        raise StoreMismatchError(
            f"{store.name} was judged by another judge: {'; '.join(changed)}; "
            "give the same judge, or take a new run file"
        )
    return entered
