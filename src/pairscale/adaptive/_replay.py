"""Letting what is logged happen again, without choosing and without fitting: how a run comes back into memory."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import Text, select, type_coerce

from pairscale.adaptive.engine import Engine, Proposal
from pairscale.adaptive.messages import NOTHING_LEFT
from pairscale.adaptive.refits import Belief
from pairscale.adaptive.selectors import POLLITT, SELECTORS, MissingSelector, OwnSelector, named_selector, selector_name
from pairscale.core.errors import StoreDamagedError, StoreMismatchError
from pairscale.models.bayes.logs import ITEM_LOG, ROUND_LOG
from pairscale.models.warm_start import warm_from_bytes
from pairscale.store.database import raw_rows
from pairscale.store.schema import logs

if TYPE_CHECKING:
    from pairscale.adaptive.state import AdaptiveState
    from pairscale.store.runfile import RunFile

__all__ = [
    "LogRow",
    "engine_at_start",
    "in_order",
    "named_rows",
    "replay",
    "samples_of",
    "unanswered",
]


class LogRow(dict[str, Any]):
    """A row of a log that names itself when it lacks a value that is looked for."""

    def __init__(self, values: Mapping[str, Any], log: str, number: int) -> None:
        super().__init__(values)
        self._place = f"{log}, row {number}"

    def __missing__(self, name: str) -> Any:
        raise StoreDamagedError(f"{self._place}: it has no {name!r}")


def named_rows(store: RunFile, log: str) -> list[LogRow]:
    """The rows of a log, in order.

    Raises:
        StoreDamagedError: that names the first row that is not a JSON object.
    """
    rows: list[LogRow] = []
    with store.transaction() as connection:
        query = select(logs.c.row, type_coerce(logs.c.data, Text)).where(logs.c.log == log).order_by(logs.c.row)
        for number, data in raw_rows(connection, query):
            try:
                rows.append(LogRow(json.loads(data), log, number))
            except (TypeError, ValueError, RecursionError) as error:
                raise StoreDamagedError(f"{log}, row {number}: it cannot be read ({error})") from None
    return rows


def engine_at_start(start: Mapping[str, Any], where: str, selector: str | OwnSelector | None = None) -> Engine:
    """The engine as it was before the first step.

    Args:
        start: the first event.
        where: the run file, for messages.
        selector: who chooses, if it is to be checked, or is not one of the package's own.

    Raises:
        StoreMismatchError: when it is another one than before.
    """
    name = start["selector"]
    if selector is None:
        selector = name if name in (POLLITT, *SELECTORS) else MissingSelector(name)
    elif (now := selector_name(named_selector(selector))) != name:
        raise StoreMismatchError(
            f"{where} was started with selector={name!r}, not {now!r}; give that, or take a new run file"
        )
    return Engine(
        start["ids"],
        seed=start["seed"],
        selector=selector,
        adaptive_config=start["adaptive_config"],
        btl_config=start["btl_config"],
        mu=start["mu"],
        sigma=start["sigma"],
    )


def samples_of(store: RunFile, ids: list[str]) -> pl.DataFrame:
    """The samples of a run, in the order of its items."""
    frame = store.items()
    order = pl.DataFrame({"ID": ids}, schema={"ID": pl.String})
    return order.join(frame, on="ID", how="left", maintain_order="left")


def replay(store: RunFile, state: AdaptiveState, events: list[dict[str, Any]]) -> None:
    """Let happen again what is logged: events and proposals at their place among the rows."""
    engine = state.engine
    rows = store.read_log("step_log")
    asked = [row for row in [*rows, *unanswered(store, rows)] if row.get("status") != "starved"]
    refits = {row["refit_id"]: row for row in store.read_log("round_log")}
    item_logs = {entry["refit_id"]: entry["columns"] for entry in store.read_log("item_log")}
    for at, happened in enumerate(in_order(len(rows), events, asked)):
        for kind, what in happened:
            if kind == "event":
                _replay_event(state, what, store, refits, item_logs)
            else:
                engine.admit(_proposal_of(what))
        if at < len(rows):
            row = rows[at]
            if row["status"] == "starved":
                engine.starve(row)
            else:
                more = {name: row.get(name) for name in _RECORDED}
                engine.record(row["step_id"], row["Y"], **more)
            state.add_step(row)


def unanswered(store: RunFile, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The proposals that were asked and are not among the rows of the step log; each once, as it was asked last."""
    answered = {row["step_id"] for row in rows}
    query = select(logs.c.data).where(logs.c.log == "adaptive_open").order_by(logs.c.row)
    last: dict[int, dict[str, Any]] = {}
    with store.transaction() as connection:
        for (data,) in connection.execution_options(stream_results=True).execute(query):
            if data["step_id"] not in answered:
                last[data["step_id"]] = data
    return list(last.values())


def in_order(
    n_rows: int, events: Sequence[Mapping[str, Any]], proposals: Sequence[Mapping[str, Any]]
) -> Iterator[list[tuple[str, Mapping[str, Any]]]]:
    """For each row of the step log, and for their end, what happened before it: events and proposals in their order.

    Both say behind how many rows they came. Among those of the same place, an event says which was the last step then.
    """
    proposed: dict[int, deque[Mapping[str, Any]]] = defaultdict(deque)
    for row in sorted(proposals, key=lambda row: int(row["step_id"])):
        proposed[row["proposed_after"]].append(row)
    happened: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for event in events:
        happened[event["after"]].append(event)
    for at in range(n_rows + 1):
        found: list[tuple[str, Mapping[str, Any]]] = []
        waiting = proposed[at]
        for event in happened[at]:
            while waiting and waiting[0]["step_id"] <= event["steps"]:
                found.append(("proposal", waiting.popleft()))
            found.append(("event", event))
        yield found + [("proposal", row) for row in waiting]


_RECORDED = ("invalid_reason", "invalid_kind", "orders_agree", "probability", "judge")
_OUTCOME = {
    "timestamp",
    "pair_id",
    "Y",
    "status",
    "p_ij",
    "U0_ij",
    "invalid_reason",
    "invalid_kind",
    "set_aside",
    "orders_agree",
    "probability",
    "judge",
}


def _proposal_of(row: Mapping[str, Any]) -> Proposal:
    """The proposal that a row of the step log came from."""
    fields = {name: value for name, value in row.items() if name not in _OUTCOME}
    return Proposal(row["step_id"], row["A"] - 1, row["B"] - 1, fields)


def _replay_event(
    state: AdaptiveState,
    event: Mapping[str, Any],
    store: RunFile,
    refits: Mapping[int, Mapping[str, Any]],
    item_logs: Mapping[int, Any],
) -> None:
    """Let one event happen again."""
    engine, kind = state.engine, event["event"]
    if kind == "call":
        engine.refit_lag = event["refit_lag"]
        engine.failures_in_row = 0
        state.fit_fn = event.get("fit_fn", state.fit_fn)  # the first versions did not write it down
        state.ended = None
    elif kind == "configure":
        engine.configure(event["adaptive_config"], event["btl_config"])
        state.settings |= {name: event[name] for name in ("adaptive_config", "btl_config")}
        state.ended = None
    elif kind == "stop_rule":
        engine.change_stop_rule(event["btl_config"], stop_reason=event["stop_reason"])
        state.settings["btl_config"] = event["btl_config"]
        state.ended = None
    elif kind == "join":
        engine.join(event["ids"], event["mu"], event["sigma"])
        state.ended = None
    elif kind == "withdraw":
        engine.withdraw(event["ids"], taken=event["taken"])
    elif kind == "end":
        state.ended = event["reason"]
        if event["reason"] in NOTHING_LEFT:  # that nothing is left is known by looking, which a replay does not do
            engine.stop_reason = event["reason"]
    elif kind == "refit":
        number = event["refit_id"]
        row = refits[number]
        data = store.read_blob("belief", number)
        if data is None:
            raise StoreDamagedError(f"{store.name}: what refit {number} found is missing; restore the file from a copy")
        items = pl.DataFrame(item_logs[number], schema=ITEM_LOG)
        state.add_refit({name: row.get(name) for name in ROUND_LOG}, items)
        if not event["is_closing"]:
            engine.apply(Belief.from_bytes(data), stop_reason=row["stop_reason"] if row["stop_decision"] else None)
            warm = store.read_blob("warm", number)
            state._warm = None if warm is None else warm_from_bytes(warm)
