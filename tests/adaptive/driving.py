"""Drives the engine like a runner, without clock, file or judge; and replays what it logged."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairscale.adaptive.engine import Engine, Proposal, Starved
from pairscale.adaptive.logs import health_columns, step_frame
from pairscale.adaptive.refits import Belief
from tests.adaptive.reference import connected

Answer = Callable[[Engine, Proposal], tuple[float | None, bool]]
"""Y (None: no valid answer), and whether that was an error."""

OUTCOME = {"timestamp", "pair_id", "Y", "status", "p_ij", "U0_ij", "invalid_reason", "invalid_kind", "set_aside",
           "orders_agree"}  # fmt: skip


def names(n: int, *, shuffled: int | None = None) -> list[str]:
    ids = [f"i{number:04d}" for number in range(n)]
    return ids if shuffled is None else np.random.default_rng(shuffled).permutation(ids).tolist()


def belief_of(
    theta: Any, refit_id: int = 1, *, passed: bool = True, identified: bool = False, near: bool = False,
    sd: float = 0.5, agreement: float = 0.0,
) -> Belief:  # fmt: skip
    """A belief with these means, as a refit would leave it."""
    theta = np.asarray(theta, dtype=np.float64)
    rank = np.empty(len(theta), dtype=np.int64)
    rank[np.argsort(-theta, kind="stable")] = np.arange(1, len(theta) + 1)
    draws = None
    if identified:
        noise = np.random.default_rng(refit_id).normal(0, sd, (64, len(theta)))
        draws = (theta + noise).astype(np.float16)
    return Belief(refit_id, passed, near, identified, theta, np.full(len(theta), sd), rank, draws, agreement)


def mu_belief(engine: Engine, *, identified: bool = False, passed: bool = True, agreement: float = 0.0) -> Belief:
    """What a refit might find: the TrueSkill means on another scale."""
    request = engine.pending
    assert request is not None
    return belief_of((request.mu - 25) / 4, request.refit_id, passed=passed, identified=identified,
                     agreement=agreement)  # fmt: skip


def by_mu(engine: Engine) -> tuple[Belief, str | None]:
    return mu_belief(engine), None


@dataclass
class Run:
    """What happened: the rows, and the refits with the number of rows that came before each."""

    engine: Engine
    rows: list[dict[str, Any]] = field(default_factory=list)
    refits: list[tuple[int, Belief, str | None]] = field(default_factory=list)


def drive(
    engine: Engine,
    answer: Answer,
    *,
    steps: int,
    concurrency: int = 1,
    fit: Callable[[Engine], tuple[Belief, str | None]] = by_mu,
    next_answer: Callable[[list[int]], int] = min,
    propose: Callable[[Engine], Any] | None = None,
    run: Run | None = None,
) -> Run:
    """Until so many steps were proposed, the run stops or pauses; open answers are waited for."""
    run = run or Run(engine)
    propose = propose or Engine.propose
    engine.set_lag(concurrency)
    while True:
        while len(engine.open) < concurrency and engine.steps < steps and not (engine.is_failing or engine.is_flipping):
            found = propose(engine)
            if found is None:
                break
            if isinstance(found, Starved):
                run.rows.append(dict(found.row))
        if engine.pending is not None and (engine.must_apply or not engine.open):
            belief, reason = fit(engine)
            run.refits.append((engine.rows, belief, reason))
            engine.apply(belief, stop_reason=reason)
        elif engine.open:
            proposal = engine.open[next_answer(sorted(engine.open))]
            y, is_error = answer(engine, proposal)
            run.rows.append(engine.record(proposal.step_id, y, invalid_reason=None if y is not None else "no",
                                          invalid_kind="error" if is_error else None))  # fmt: skip
        else:
            return run


def logged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows as they come back from the step log."""
    return step_frame(rows, ties=any(row.get("Y") == 0.5 for row in rows)).to_dicts()


def replay(engine: Engine, run: Run, *, waiting: tuple[Proposal, ...] = (), until: int | None = None) -> Engine:
    """Let the first rows of a run happen again in a fresh engine, from what the step log keeps."""
    rows = logged(run.rows)[:until]
    asked = [row for row in rows if row["status"] != "starved"]
    asked += logged([dict(proposal.fields) for proposal in waiting])
    asked.sort(key=lambda row: row["step_id"])
    for at in range(len(rows) + 1):
        for after, belief, reason in run.refits:
            if after == at:
                engine.apply(belief, stop_reason=reason)
        while asked and asked[0]["proposed_after"] == at:
            row = asked.pop(0)
            fields = {name: value for name, value in row.items() if name not in OUTCOME}
            engine.admit(Proposal(row["step_id"], row["A"] - 1, row["B"] - 1, fields))
        if at < len(rows):
            row = rows[at]
            if row["status"] == "starved":
                engine.starve(row)
            else:
                is_error = row["invalid_kind"] == "error"
                engine.record(
                    row["step_id"],
                    row["Y"],
                    invalid_reason=row["invalid_reason"],
                    invalid_kind="error" if is_error else None,
                    orders_agree=row["orders_agree"],
                )
    return engine


def state_of(engine: Engine) -> dict[str, Any]:
    """Everything that the next step can depend on."""
    ledger, round_, warm = engine.ledger, engine._round, engine._warm
    state: dict[str, Any] = {}
    for what, where in (("ledger", ledger), ("round", round_), ("warm", warm)):
        for name, value in vars(where).items():
            if name == "_log":
                value = ledger.history  # noqa: PLW2901
            state[f"{what}.{name}"] = value.tobytes() if isinstance(value, np.ndarray) else copy.deepcopy(value)
    for name in ("steps", "rows", "n_refits", "refit_lag", "failures_in_row", "identified", "near_stop", "seed",
                 "_effective_at", "_refitted_at", "_reversals", "_agreement", "must_apply"):  # fmt: skip
        state[name] = getattr(engine, name)
    state["anchors"] = engine._anchors.tolist()
    state["open"] = sorted((step, found.first, found.second) for step, found in engine.open.items())
    state["pending"] = None if engine.pending is None else len(engine.pending.history)
    state["belief"] = None if engine.belief is None else engine.belief.refit_id
    state["health"] = health_columns(engine._new_rows)
    return state


def apart(engine: Engine) -> list[str]:
    """The items that no comparison ties to the largest group; withdrawn ones do not count."""
    parts = connected([(a, b) for a, b, _ in engine.ledger.history.tolist()], engine.ledger.n)
    gone = set(np.flatnonzero(engine.ledger.withdrawn).tolist())
    _, *others = sorted((part - gone for part in parts), key=len, reverse=True)
    return sorted(engine.ids[item] for part in others for item in part)


def logistic_judge(theta: Any, rng: np.random.Generator, *, bias: float = 0.0) -> Answer:
    """Answers by true abilities."""

    def answer(engine: Engine, proposal: Proposal) -> tuple[int | None, bool]:
        d = theta[proposal.first] - theta[proposal.second] + bias
        return int(rng.random() < 1 / (1 + np.exp(-d))), False

    return answer


def judge(seed: int = 1, n: int = 300) -> Any:
    rng = np.random.default_rng(seed)
    return logistic_judge(rng.normal(0, 1.5, n), rng)


def ask(engine: Engine) -> Proposal:
    found = engine.propose()
    assert isinstance(found, Proposal)
    return found


def finish_warm_start(engine: Engine) -> None:
    while not engine._warm.done:
        engine.record(ask(engine).step_id, 1)


def pair_of(row: Any) -> frozenset[int]:
    return frozenset((row["A"] - 1, row["B"] - 1))
