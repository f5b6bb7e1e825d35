"""The replay of an audit: a run's log is replayed from its seed and its outcomes, and every choice made again.

Nothing is taken on trust but what came from outside: the outcomes, and the scores that the sampler found. The hash
chain was checked before. The engine runs again; each pair that it chooses must be the logged one, with every logged
figure, and each stop must follow from the figures logged with it. Numbers may differ in their last digits (1e-9), as
between machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from polars.exceptions import PolarsError

from pairscale.adaptive.config import BTLConfig
from pairscale.adaptive.engine import Starved, uid_of
from pairscale.adaptive.gates import (
    CONVERGED,
    is_identified,
    is_near_stop,
    may_stop,
    stop_decision,
    stop_gates,
)
from pairscale.adaptive.messages import NOTHING_LEFT
from pairscale.adaptive.refits import figure_columns, request_columns
from pairscale.adaptive.selection.information import expected_wrong
from pairscale.adaptive.selectors import MissingSelector
from pairscale.adaptive.session import Replay, session_facts
from pairscale.core.errors import PairscaleError, StoreDamagedError

if TYPE_CHECKING:
    from pairscale.adaptive.logs import Columns, Row
    from pairscale.adaptive.refits import RefitRequest
    from pairscale.adaptive.selectors import OwnSelector
    from pairscale.store.runfile import RunFile

_TOLERANCE = 1e-9
_UNFIT = (
    LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, RecursionError, PolarsError,
)  # fmt: skip
"""What goes wrong in the replay of a log that does not fit together."""


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
        StoreMismatchError: it is another selector than that of the run.
        InputError: the selector was one of the user's own, and is missing.
    """
    try:
        session_facts(store, where)
        audit = _Audit(store, where, selector)
    except (*_UNFIT, StoreDamagedError) as error:
        return partial(Replayed, 0, 0, _unfit(error))
    if isinstance(audit.engine.chooser, MissingSelector):
        audit.engine.chooser()
    return audit.found


def _unfit(error: Exception) -> str:
    problem = str(error) if isinstance(error, PairscaleError) else f"{type(error).__name__}: {error}"
    if isinstance(error, KeyError):
        problem = f"a row lacks {error}"
    return f"the log does not fit together: {problem}"


class _Audit(Replay):
    """A replay that chooses again, and compares everything with what is logged."""

    def __init__(self, store: RunFile, where: str, selector: str | OwnSelector | None) -> None:
        super().__init__(store, where, selector)
        self._answers = {row["custom_id"]: row for row in store.results().iter_rows(named=True)}
        self._panels = store.panels()
        self._max_comparisons: int | None = None

    def found(self) -> Replayed:
        """Replay everything, up to the first difference."""
        problem: str | None = None
        try:
            self.run()
            self._require_end()
        except _DifferenceError as difference:
            problem = str(difference)
        except (*_UNFIT, PairscaleError) as error:
            problem = _unfit(error)
        return Replayed(self.engine.rows, len(self.state.rounds), problem, self.state.preset)

    def _require_end(self) -> None:
        """What the replay has not come by is there without having happened."""
        late = [event for event in self.events if not 0 <= event["after"] <= len(self.rows)]
        _require(not late, f"an event is logged behind a step that is not there, of {len(self.rows)}")
        refits = len(self.state.rounds)
        is_whole = len(self.rounds) == refits == len(self.items)
        _require(is_whole, f"the log has {len(self.rounds)} rows of refits, but in the replay there are {refits}")
        asked = {uid_of(row["step_id"]) for row in self.rows if row["status"] != "starved"}
        more = [name for name in self._answers if name.startswith("step-") and name not in asked]
        _require(not more, f"{more[:1]} was answered, but no step says so")

    def propose(self, logged: Row) -> None:
        step = f"step {logged['step_id']}"
        proposal = self.engine.propose()
        if proposal is None:
            why = f"the run has stopped ({self.engine.stop_reason})" if self.engine.stop_reason else "nothing is due"
            raise _DifferenceError(f"{step} is logged, but in the replay {why}")
        if isinstance(proposal, Starved):
            _compare(step, proposal.row, logged)
            return
        _require(logged.get("status") != "starved", f"{step} is logged as starved, but there is a pair to ask about")
        _compare(step, proposal.fields, logged, only_made=True)

    def record(self, logged: Row) -> Columns:
        made = super().record(logged)
        step = f"step {logged['step_id']}"
        _compare(step, made, logged)
        answer = self._answers.get(uid_of(logged["step_id"]))
        if answer is None:
            raise _DifferenceError(f"{step} is logged, but the run file has no answer to it")
        outcome = answer["outcome"]
        first = 1 if answer["better_sample"] == "SAMPLE_1" else 2
        y = self.engine.points_of_first(outcome, first)
        answered = {"A_id": answer["ID1"], "B_id": answer["ID2"], "Y": y}
        if answer["error_message"] is not None:
            answered["invalid_reason"] = answer["error_message"]
        if logged.get("orders_agree") is not None:
            answered["orders_agree"] = outcome == "win"
        if y is not None and self.engine.btl.answer == "probability":
            answered["probability"] = answer["probability"]
        if y is not None and (logged.get("judge") is not None or answer["condition_id"] in self._panels):
            answered["judge"] = answer["judge_id"]
        kind = logged.get("invalid_kind")
        kinds = ("error", "failure") if outcome == "error" else ("abstention",)
        _require(y is not None or kind in kinds, f"{step}: invalid_kind is {kind!r}, but the answer was {outcome!r}")
        _compare(step, answered, logged, only_made=True, source="the answer")
        return made

    def happen(self, event: Row) -> None:
        engine = self.engine
        kind = event["event"]
        was = f"{kind} is logged after {event['steps']} steps, but in the replay there are {engine.steps} by then"
        _require(event["steps"] == engine.steps, was)
        if kind == "call":
            self._max_comparisons = event.get("max_comparisons")
        if kind == "stop_rule":  # of a run that is paused; whether it stops by it must follow from the last refit
            where = f"the stop rule behind {engine.rows} steps"
            stopped = f"{where} is logged, but in the replay the run has stopped ({engine.stop_reason})"
            _require(engine.stop_reason is None, stopped)
            reason = engine.stops_now(self.state.last_refit, BTLConfig.for_items(len(engine.ids), event["btl_config"]))
            _compare(where, {"stop_reason": reason}, event, only_made=True)
        super().happen(event)

    def end(self, reason: str | None) -> None:
        """The reason of an end must hold, as far as the log can tell: the clock and the purse are not in it."""
        engine = self.engine
        where = f"the end behind {engine.rows} steps"
        if reason in NOTHING_LEFT:
            nothing = engine.propose() is None and engine.stop_reason == reason
            _require(nothing, f"{where} is logged as {reason!r}, but in the replay there is a pair to ask about")
        if engine.stop_reason is not None or reason == CONVERGED:
            was = f"{where} has the reason {reason!r} in the log and {engine.stop_reason!r} in the replay"
            _require(engine.stop_reason == reason, was)
        most = self._max_comparisons
        holds = {
            "max_comparisons": most is not None and engine.committed >= most,
            "judge_failing": engine.is_failing,
            "judge_flips": engine.is_flipping,
            "no_probabilities": engine.lacks_probabilities,
        }
        _require(holds.get(str(reason), True), f"{where} is logged as {reason!r}, which was not so")
        super().end(reason)

    def refit(self, number: int, *, is_closing: bool) -> None:
        where = f"refit {number}"
        index = len(self.state.rounds)
        is_there = number == index + 1 and index < min(len(self.rounds), len(self.items))
        _require(is_there, f"{where} is logged, but the log has {len(self.rounds)} rows of refits")
        logged = self.rounds[index]
        items = self.items[index]
        _require(items["refit_id"] == number, f"{where}: its items are those of refit {items['refit_id']}")
        request = self.engine.refit_request() if is_closing else self.engine.pending
        if request is None:
            raise _DifferenceError(f"{where} is logged, but in the replay none is due")
        request = replace(request, refit_id=number, is_closing=is_closing)
        columns = items["columns"]
        _compare(f"{where}, items", item_columns(request, columns), columns, only_made=True)
        _compare(where, round_columns(request, logged, columns), logged, only_made=True)
        self._compare_belief(where, request, logged, columns)
        decision, reason = stop_decision(logged)
        if is_closing:
            reason = self.state.stop_reason
            decision = reason is not None
        _compare(where, {"stop_decision": decision, "stop_reason": reason}, logged, only_made=True)
        super().refit(number, is_closing=is_closing)

    def _compare_belief(self, where: str, request: RefitRequest, logged: Row, items: Row) -> None:
        """What the rest of the run was given must be what the logs of the refit say."""
        belief = self.belief(request.refit_id)
        from_log = {
            "refit_id": request.refit_id,
            "passed": logged["diagnostics_pass"],
            "near_stop": request.near_stop or logged["phase3_entered"],
            "global_identified": logged["global_identified"],
            "repeat_agreement": logged["repeat_agreement"] or 0.0,
            "theta_mean": items["theta_mean"],
            "theta_sd": items["theta_sd"],
        }
        kept = {name: np.asarray(getattr(belief, name)).tolist() for name in from_log}
        _compare(where, from_log, kept, source="the log")
        is_ranked = sorted(belief.rank.tolist()) == list(range(1, len(request.ids) + 1))
        is_ranked = is_ranked and bool((np.diff(belief.theta_mean[np.argsort(belief.rank)]) <= 0).all())
        _require(is_ranked, f"{where}: rank is not that of the scores")
        has_draws = belief.draws is not None
        _require(has_draws == belief.global_identified, f"{where}: draws are there exactly when the order is known")


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise _DifferenceError(problem)


def _compare(where: str, made: Row, logged: Row, *, only_made: bool = False, source: str = "the replay") -> None:
    """Whether both say the same; the time of a step is not compared."""
    more = [] if only_made else sorted(set(logged) - set(made) - {"timestamp"})
    for name in [*made, *more]:
        in_log = logged.get(name)
        made_again = made.get(name)
        _require(_same(made_again, in_log), f"{where}: {name} is {in_log!r} in the log and {made_again!r} in {source}")


def _same(made: Any, logged: Any) -> bool:
    if isinstance(made, float) and logged is None:
        return not math.isfinite(made)  # JSON has no word for it
    if isinstance(made, float) and isinstance(logged, int | float) and not isinstance(logged, bool):
        return math.isclose(made, logged, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    if isinstance(made, list) and isinstance(logged, list):
        return len(made) == len(logged) and all(map(_same, made, logged))
    return bool(made == logged)


# What a refit must say, given what came from outside: the scores that the sampler found, and its diagnostics


def round_columns(request: RefitRequest, logged: Row, items: Row) -> Columns:
    """The columns of the round log that follow from the run, its settings and the scores in the item log."""
    btl = request.btl
    keep = request.counted
    degree = request.degree[keep]
    all_means = np.array(items["theta_mean"], dtype=np.float64)
    mean = all_means[keep]
    between = float(mean.var(ddof=1))
    within = float(np.mean(np.square(np.array(items["theta_sd"], dtype=np.float64)[keep])))
    wrong = None
    if request.adaptive.top is not None:
        wrong = expected_wrong(np.array(items["top_prob"], dtype=np.float64)[keep], mean, request.adaptive.top)
    near_stop = request.near_stop or bool(logged["phase3_entered"])
    repeats = logged["repeat_agreement"] if btl.repeats == "learned" else btl.repeats
    gates = stop_gates(logged)
    may_enter = gates["diagnostics_pass"] and is_near_stop(logged)
    return {
        **request_columns(request),
        **figure_columns(request, all_means),
        "n_items": len(mean),
        "mean_degree": float(degree.mean()),
        "min_degree": int(degree.min()),
        "pos_balance_sd": float((request.first - request.second)[keep].std(ddof=1)),
        "reliability_EAP": between / (between + within) if between + within > 0 else None,
        "reliability": logged[btl.reliability_figure],
        "screened": bool(logged["screened"]) and btl.screen_refits and not may_stop(logged),
        "theta_sd_eap": between**0.5,
        "divergences_max_allowed": btl.divergences_max,
        "max_rhat_allowed": btl.max_rhat,
        "ess_bulk_required": btl.ess_bulk_min_near_stop if near_stop else btl.ess_bulk_min,
        "near_stop_active": near_stop,
        # One that entered phase 3 may have been drawn again, so its log alone cannot refute it.
        "phase3_entered": not request.near_stop and bool(logged["phase3_entered"] or may_enter),
        "global_identified": is_identified(logged) if gates["diagnostics_pass"] else request.global_identified,
        "repeat_agreement": None if repeats == "independent" else repeats,
        "top_wrong": wrong,
        **gates,
    }


def item_columns(request: RefitRequest, items: Row) -> Columns:
    """The columns of the item log that follow from the run and from the scores in it."""
    theta = np.array(items["theta_mean"], dtype=np.float64)
    counts = zip(request.first.tolist(), request.degree.tolist(), strict=True)
    return {
        "refit_id": [request.refit_id] * len(theta),
        "ID": list(request.ids),
        "degree": request.degree.tolist(),
        "pos_count_A": request.first.tolist(),
        "pos_count_B": request.second.tolist(),
        "pos_A_rate": [first / degree if degree else None for first, degree in counts],
        "rank": (1 + len(theta) - np.searchsorted(np.sort(theta), theta, side="right")).tolist(),
    }
