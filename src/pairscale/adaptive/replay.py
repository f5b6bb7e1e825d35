"""Letting what is logged happen again: how a run comes back into memory, and what an audit goes along with."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pairscale.adaptive.engine import Engine, Proposal
from pairscale.adaptive.messages import NOTHING_LEFT
from pairscale.adaptive.refits import Belief
from pairscale.adaptive.selectors import POLLITT, SELECTORS, MissingSelector, OwnSelector, named_selector, selector_name
from pairscale.core.errors import StoreDamagedError, StoreMismatchError

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

Row = Mapping[str, Any]

RECORDED = ("invalid_reason", "invalid_kind", "orders_agree", "probability", "judge")
"""Columns of the step log that the engine is told with an answer, besides Y."""
_OUTCOME = {"timestamp", "pair_id", "Y", "status", "p_ij", "U0_ij", "set_aside", *RECORDED}
_SETTINGS = ("seed", "selector", "preset", "adaptive_config", "btl_config", "persist_item_log")


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
        settings: what the run goes by then.
        refits: how many refits have happened.
        ended: why the last call ended.
        fit_fn: what fits, by its name.

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
        self.settings = {name: start[name] for name in _SETTINGS}
        self.engine = _engine_of(start, where, selector)
        asked = {row["step_id"]: row for row in store.read_log("adaptive_open")}  # each as it was asked last
        self._proposals = list((asked | {row["step_id"]: row for row in self.rows}).values())
        self._beliefs = [store.read_blob("belief", number) for number in range(1, len(self.rounds) + 1)]
        self.refits = 0
        self.ended: str | None = None
        self.fit_fn: str | None = None

    def run(self) -> None:
        """Let everything happen."""
        for at, happened in enumerate(self._in_order()):
            for what in happened:
                if "event" in what:
                    self.happen(what)
                else:
                    self.propose(what)
            if at < len(self.rows) and self.rows[at]["status"] != "starved":
                self.record(self.rows[at])

    def _in_order(self) -> Iterator[list[Row]]:
        """For each row of the step log, and for their end, what happened before it: events and proposals in order.

        Both say behind how many rows they came. Among those of the same place, an event says which was the last step
        then.
        """
        proposed: dict[int, deque[Row]] = defaultdict(deque)
        for row in sorted(self._proposals, key=lambda row: int(row["step_id"])):
            proposed[row["proposed_after"]].append(row)
        happened: dict[int, list[Row]] = defaultdict(list)
        for event in self.events[1:]:
            happened[event["after"]].append(event)
        for at in range(len(self.rows) + 1):
            order: list[Row] = []
            waiting = proposed[at]
            for what in happened[at]:
                while waiting and waiting[0]["step_id"] <= what["steps"]:
                    order.append(waiting.popleft())
                order.append(what)
            yield [*order, *waiting]

    def propose(self, logged: Row) -> None:
        """A pair was proposed, or a stage found none."""
        if logged.get("status") == "starved":
            self.engine.starve(logged)
            return
        fields = {name: value for name, value in logged.items() if name not in _OUTCOME}
        self.engine.admit(Proposal(logged["step_id"], logged["A"] - 1, logged["B"] - 1, fields))

    def record(self, logged: Row) -> dict[str, Any]:
        """An answer came."""
        more = {name: logged.get(name) for name in RECORDED}
        return self.engine.record(logged["step_id"], logged["Y"], **more)

    def happen(self, event: Row) -> None:
        """Something happened besides pairs and answers."""
        kind = event["event"]
        if kind in ("call", "configure", "stop_rule", "join"):
            self.ended = None
        if kind == "call":
            self.engine.refit_lag = event["refit_lag"]
            self.engine.failures_in_row = 0
            self.fit_fn = event.get("fit_fn", self.fit_fn)  # the first versions did not write it down
        elif kind in ("configure", "stop_rule"):
            self.settings |= {name: event[name] for name in ("adaptive_config", "btl_config") if name in event}
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
        self.ended = reason
        if reason in NOTHING_LEFT:  # that nothing is left is known by looking, which a replay does not do
            self.engine.stop_reason = reason

    def refit(self, number: int, *, is_closing: bool) -> None:
        """A refit was applied; a closing one guides no choice."""
        row = self.rounds[number - 1]
        self.refits += 1
        if not is_closing:
            reason = row["stop_reason"] if row["stop_decision"] else None
            self.engine.apply(self.belief(number), stop_reason=reason)

    def belief(self, number: int) -> Belief:
        """What a refit found."""
        data = self._beliefs[number - 1]
        if data is None:
            raise StoreDamagedError(f"what refit {number} found is missing; restore the run file from a copy")
        return Belief.from_bytes(data)


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
