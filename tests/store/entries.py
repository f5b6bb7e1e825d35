"""What tests write into run files: a prepared file, and steps that were answered at once."""

from __future__ import annotations

from typing import Any

import pairscale as ps
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.writer import Asked, Entry

NOW = "2026-01-01T00:00:00.000000+00:00"
WIN = {"outcome": "win", "winner_pos": 1, "better_id": "a", "received_at": NOW}


def attempt(number: int = 1, outcome: str = "win", **more: Any) -> dict[str, Any]:
    return {"attempt": number, "attempted_at": NOW, "outcome": outcome, **more}


def asked(step: int, *attempts: dict[str, Any], comparison: Any = WIN, condition: str = "judge", **more: Any) -> Asked:
    """A question about the texts a and b."""
    given = {"uid": f"step-{step:06d}", "ID1": "a", "ID2": "b", "columns": {"step_id": step}} | more
    return Asked(condition, attempts or [attempt()], comparison, **given)


def step_of(values: dict[str, Any], question: Asked | None = None) -> Entry:
    return Entry(question, [("step_log", values)])


def answered(step: int, **more: Any) -> Entry:
    """A step that was answered at once; further columns are of its attempt."""
    values = {"step_id": step, "status": "committed", "Y": 1, "mu_i": step / 3, "reason": None}
    return step_of(values, asked(step, attempt(**more)))


def prepared(where: Any) -> RunFile:
    """A run file with two texts and a judge, open for writing."""
    store = open_run(where, write=True)
    store.add_items([{"ID": name, "text": name} for name in "ab"])
    store.add_condition(ps.Condition("judge"), "judge")
    return store
