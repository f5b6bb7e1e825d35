"""The replay of an audit: a run's log is replayed from its seed and its outcomes, and every choice made again.

Nothing is taken on trust but what came from outside: the outcomes, and the scores that the sampler found. The hash
chain was checked before. The engine runs again; each pair that it chooses must be the logged one, with every logged
figure, and each stop must follow from the figures logged with it. Numbers may differ in their last digits (1e-9), as
between machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from polars.exceptions import PolarsError

from pairscale.adaptive._refit_audit import belief_faults, item_columns, round_columns
from pairscale.adaptive._replay import LogRow, engine_at_start, in_order, named_rows, unanswered
from pairscale.adaptive._stop_rule import stops_now
from pairscale.adaptive.config import BTLConfig
from pairscale.adaptive.engine import Proposal, Starved
from pairscale.adaptive.gates import CONVERGED, stop_decision
from pairscale.adaptive.messages import NOTHING_LEFT
from pairscale.adaptive.refits import Belief
from pairscale.adaptive.session import session_facts
from pairscale.adaptive.source import uid_of
from pairscale.core.errors import PairscaleError, StoreDamagedError
from pairscale.store.runfile import RunFile

if TYPE_CHECKING:
    from pairscale.adaptive.selectors import OwnSelector

__all__ = ["Replayed", "read_replay"]

_TOLERANCE = 1e-9


class _DifferenceError(Exception):
    """The log says something else than the replay."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay found.

    Attributes:
        steps: steps that were reproduced.
        refits: refits that were.
        problem: the first difference; None when there is none.
        preset: The preset that the run was started with.
    """

    steps: int
    refits: int
    problem: str | None = None
    preset: str | None = None


def read_replay(store: RunFile, where: str, selector: str | OwnSelector | None = None) -> Callable[[], Replayed]:
    """Read everything that the replay of an adaptive run needs, and return what replays it.

    Args:
        store: the run file; its chain was checked.
        where: its name, for messages.
        selector: who chose the pairs, when it was a selector of the user's own: it has to choose again.

    Raises:
        StoreError: the run file holds no adaptive run that this version can replay.
        StoreMismatchError: it is another selector than that of the run.
        InputError: the selector was one of the user's own, and is missing.
    """
    try:
        session_facts(store, where)
    except (LookupError, TypeError, AttributeError) as error:
        problem = _unfit(error)
        return lambda: Replayed(0, 0, problem)
    try:
        replay = _Replay(store, where, selector)
    except _UNFIT as error:
        problem = _unfit(error)
        return lambda: Replayed(0, 0, problem)
    replay.engine.require_selector()
    return partial(_replayed, replay)


_UNFIT = (
    LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, StoreDamagedError, PolarsError,
)  # fmt: skip


def _unfit(error: Exception) -> str:
    known = isinstance(error, PairscaleError)
    return f"the log does not fit together: {error if known else f'{type(error).__name__}: {error}'}"


def _replayed(replay: _Replay) -> Replayed:
    problem: str | None = None
    try:
        replay.all()
    except _DifferenceError as difference:
        problem = str(difference)
    except (*_UNFIT, PairscaleError) as error:
        problem = _unfit(error)
    return Replayed(replay.steps, replay.refits, problem, replay.preset)


class _Replay:
    """One pass over a log, all of which is read at first: choosing again takes its time."""

    def __init__(self, store: RunFile, where: str, selector: str | OwnSelector | None) -> None:
        self.steps = self.refits = 0
        self._rows: list[LogRow] = named_rows(store, "step_log")
        self._rounds = named_rows(store, "round_log")
        self._items = named_rows(store, "item_log")
        self._events = named_rows(store, "adaptive_events")
        if not self._events or self._events[0]["event"] != "start":
            raise StoreDamagedError(f"{store.name}: the run has no beginning")
        self.preset = str(self._events[0]["preset"])
        self._asked = [*self._rows, *unanswered(store, self._rows)]
        self._beliefs = [store.read_blob("belief", number) for number in range(1, len(self._rounds) + 1)]
        self._answers = {row["custom_id"]: row for row in store.results().iter_rows(named=True)}
        self._panels = store.panels()
        self.engine = engine_at_start(self._events[0], where, selector)
        self._call: dict[str, Any] = {}
        self._ended: str | None = None
        self._last: Mapping[str, Any] | None = None  # the row of the last refit that was no closing one

    def all(self) -> None:
        for at, happened in enumerate(in_order(len(self._rows), self._events[1:], self._asked)):
            for kind, what in happened:
                if kind == "event":
                    self._happen(what)
                else:
                    self._choose(what)
            if at < len(self._rows):
                if self._rows[at]["status"] != "starved":
                    self._record(self._rows[at])
                self.steps += 1
        self._nothing_left()

    def _nothing_left(self) -> None:
        """What the replay has not come by is there without having happened."""
        if late := [event for event in self._events if not 0 <= event["after"] <= len(self._rows)]:
            raise _DifferenceError(
                f"{late[0]['event']} is logged behind step {late[0]['after']}, but there are {len(self._rows)}"
            )
        if len(self._rounds) != self.refits or len(self._items) != self.refits:
            there = f"{len(self._rounds)} rows and {len(self._items)} tables of items"
            raise _DifferenceError(f"the log has {there} of refits, but in the replay there are {self.refits}")
        asked = {uid_of(row["step_id"]) for row in self._rows if row["status"] != "starved"}
        if more := sorted(name for name in self._answers if name.startswith(uid_of(0)[:5]) and name not in asked):
            raise _DifferenceError(f"{more[0]} was answered, but no step says so")

    def _choose(self, logged: Mapping[str, Any]) -> None:
        """Choose again, and compare with the step that is logged."""
        step = logged["step_id"]
        found = self.engine.propose()
        if isinstance(found, Starved):
            _compare(f"step {step}", found.row, logged)
        elif isinstance(found, Proposal):
            if logged.get("status") == "starved":
                raise _DifferenceError(
                    f"step {step} is logged as starved, but {found.fields['A_id']!r} can be asked about"
                )
            _compare(f"step {step}", found.fields, {name: logged.get(name) for name in found.fields})
        else:
            why = f"the run has stopped ({self.engine.stop_reason})" if self.engine.stop_reason else "nothing is due"
            raise _DifferenceError(f"step {step} is logged, but in the replay {why}")

    def _record(self, logged: Mapping[str, Any]) -> None:
        made = self.engine.record(
            logged["step_id"],
            logged["Y"],
            invalid_reason=logged.get("invalid_reason"),
            invalid_kind=logged.get("invalid_kind"),
            orders_agree=logged.get("orders_agree"),
            probability=logged.get("probability"),
            judge=logged.get("judge"),
        )
        _compare(f"step {logged['step_id']}", made, logged)
        self._answered(logged)

    def _answered(self, logged: Mapping[str, Any]) -> None:
        """The outcome must be the one that came from the judge."""
        uid, y = uid_of(logged["step_id"]), logged["Y"]
        where, answer = f"step {logged['step_id']}", self._answers.get(uid)
        if answer is None:
            raise _DifferenceError(f"{where} is logged, but the run file has no answer {uid}")
        said = {"A_id": answer["ID1"], "B_id": answer["ID2"]}
        if answer["error_message"] is not None:
            said["invalid_reason"] = answer["error_message"]
        first = 1 if answer["better_sample"] == "SAMPLE_1" else 2
        said["Y"] = self.engine.points_of_first(answer["outcome"], first)
        if logged.get("orders_agree") is not None:
            said["orders_agree"] = answer["outcome"] == "win"
        if y is not None and self.engine.btl.answer == "probability":
            said["probability"] = answer["probability"]
        if y is not None and (logged.get("judge") is not None or answer["condition_id"] in self._panels):
            said["judge"] = answer["judge_id"]
        for name, value in said.items():
            if logged.get(name) != value:
                raise _DifferenceError(
                    f"{where}: {name} is {logged.get(name)!r} in the log and {value!r} in the answer"
                )
        kinds = {"error", "failure"} if answer["outcome"] == "error" else {"abstention"}
        if y is None and logged["invalid_kind"] not in kinds:
            kind = f"invalid_kind is {logged['invalid_kind']!r} in the log"
            raise _DifferenceError(f"{where}: {kind}, but the answer was {answer['outcome']!r}")

    def _happen(self, event: Mapping[str, Any]) -> None:
        engine, kind = self.engine, event["event"]
        if event["steps"] != engine.steps:
            raise _DifferenceError(
                f"{kind} is logged after {event['steps']} steps, but in the replay there are {engine.steps} by then"
            )
        if kind == "call":
            engine.refit_lag, engine.failures_in_row = event["refit_lag"], 0
            self._call, self._ended = dict(event), None
        elif kind == "configure":
            engine.configure(event["adaptive_config"], event["btl_config"])
            self._ended = None
        elif kind == "stop_rule":
            self._change_stop_rule(event)
        elif kind == "join":
            engine.join(event["ids"], event["mu"], event["sigma"])
            self._ended = None
        elif kind == "withdraw":
            engine.withdraw(event["ids"], taken=event["taken"])
        elif kind == "end":
            self._end(event["reason"])
        elif kind == "refit":
            self._refit(event["refit_id"], is_closing=event["is_closing"])
        else:
            raise _DifferenceError(f"nothing is known of an event {kind!r}")

    def _change_stop_rule(self, event: Mapping[str, Any]) -> None:
        """Another rule for a run that is paused; whether it stops by it must follow from the last refit."""
        engine, where = self.engine, f"the stop rule behind {self.engine.rows} steps"
        if engine.stop_reason is not None:
            raise _DifferenceError(f"{where} is logged, but in the replay the run has stopped ({engine.stop_reason})")
        reason = stops_now(engine, self._last, BTLConfig.for_items(len(engine.ids), event["btl_config"]))
        if reason != event["stop_reason"]:
            raise _DifferenceError(f"{where}: stop_reason is {event['stop_reason']!r}, and {reason!r} in the replay")
        engine.change_stop_rule(event["btl_config"], stop_reason=reason)
        self._ended = None

    def _end(self, reason: str | None) -> None:
        """The reason of an end must hold, as far as the log can tell: the clock and the purse are not in it."""
        engine = self.engine
        where = f"the end behind {engine.rows} steps"
        if reason in NOTHING_LEFT and (engine.propose() is not None or engine.stop_reason != reason):
            raise _DifferenceError(f"{where} is logged as {reason!r}, but in the replay there is a pair to ask about")
        if engine.stop_reason != reason and (engine.stop_reason is not None or reason == CONVERGED):
            raise _DifferenceError(
                f"{where} has the reason {reason!r} in the log and {engine.stop_reason!r} in the replay"
            )
        most = self._call.get("max_comparisons")
        full = most is not None and engine.committed >= most
        holds = {"max_comparisons": full, "judge_failing": engine.is_failing, "judge_flips": engine.is_flipping}
        holds["no_probabilities"] = engine.lacks_probabilities
        if not holds.get(str(reason), True):
            raise _DifferenceError(f"{where} is logged as {reason!r}, which was not so")
        self._ended = reason

    def _refit(self, number: int, *, is_closing: bool) -> None:
        where, at = f"refit {number}", self.refits
        if number != at + 1 or at >= len(self._rounds) or at >= len(self._items):
            raise _DifferenceError(f"{where} is logged, but the log has {len(self._rounds)} rows of refits")
        logged, items = self._rounds[at], self._items[at]
        if items["refit_id"] != number:
            raise _DifferenceError(f"{where}: its items are those of refit {items['refit_id']}")
        request = self.engine.refit_request() if is_closing else self.engine.pending
        if request is None:
            raise _DifferenceError(f"{where} is logged, but in the replay none is due")
        data = self._beliefs[at]
        if data is None:
            raise _DifferenceError(f"{where}: what it found is missing")
        belief = Belief.from_bytes(data)
        request = replace(request, refit_id=number, is_closing=is_closing)
        columns = items["columns"]
        _compare(f"{where}, items", item_columns(request, columns), columns, only_made=True)
        _compare(where, round_columns(request, logged, columns), logged, only_made=True)
        for fault in belief_faults(request, logged, columns, belief):
            raise _DifferenceError(f"{where}: {fault}")
        decision, reason = stop_decision(logged)
        if is_closing:
            reason = self.engine.stop_reason or self._ended
            decision = reason is not None
        _compare(where, {"stop_decision": decision, "stop_reason": reason}, logged, only_made=True)
        if not is_closing:
            self.engine.apply(belief, stop_reason=reason)
            self._last = logged
        self.refits += 1


def _compare(where: str, made: Mapping[str, Any], logged: Mapping[str, Any], *, only_made: bool = False) -> None:
    """Whether both say the same; the time of a step is not compared."""
    more = [] if only_made else sorted(set(logged) - set(made) - {"timestamp"})
    for name in [*made, *more]:
        said, found = logged.get(name), made.get(name)
        if not _same(found, said):
            raise _DifferenceError(f"{where}: {name} is {said!r} in the log and {found!r} in the replay")


def _same(made: Any, logged: Any) -> bool:
    if isinstance(made, float) and logged is None:
        return not math.isfinite(made)  # JSON has no word for it
    if isinstance(made, float) and isinstance(logged, int | float) and not isinstance(logged, bool):
        return math.isclose(made, logged, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    if isinstance(made, list) and isinstance(logged, list):
        return len(made) == len(logged) and all(map(_same, made, logged))
    return bool(made == logged)
