"""Whole runs for the tests: samples, judges, and what a run leaves behind, made comparable."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl

import pairscale as ps
from pairscale.auditing import audit
from pairscale.store.chain import canonical
from tests.store.forging import rechain

FAST = {"progress": "none", "fit_fn": "laplace"}
SOON = {
    "eap_reliability_min": 0.3, "stability_lag": 1, "theta_corr_min": -1, "theta_sd_rel_change_max": 1e6,
    "rank_spearman_min": -1,
}  # fmt: skip
"""A stop at the second refit."""
LATE = {**SOON, "eap_reliability_min": 0.999}
CLOCKED = ["timestamp"]


def samples(n: int = 10, *, prefix: str = "s", step: float = 0.6) -> pl.DataFrame:
    """Texts of known truth, the later the better."""
    rows = [{"ID": f"{prefix}{at:02d}", "text": f"text {at} of {prefix}", "theta_true": at * step} for at in range(n)]
    return pl.DataFrame(rows)


def simulated(**faults: Any) -> ps.Judge:
    return ps.make_judge("simulated:theta_true", judge_args={"seed": 5, **faults})


def better(A: Any, B: Any) -> dict[str, Any]:
    """A judge without doubts."""
    return {"is_valid": True, "Y": int(A["theta_true"] > B["theta_true"])}


def rank(data: pl.DataFrame | int = 10, judge: Any = None, **given: Any) -> ps.AdaptiveResult:
    """A run with a fast fit and without a view."""
    data = samples(data) if isinstance(data, int) else data
    return ps.adaptive_rank(data, judge=judge or simulated(), **{**FAST, "n_steps": None, **given})


def steps(state: Any) -> pl.DataFrame:
    """The step log without its clock, and without the numbers of refits, which closing ones shift."""
    return ps.adaptive_step_log(state).drop(*CLOCKED, "belief_refit_id")


def audited(run: Any) -> ps.AuditReport:
    """A report that must have passed."""
    report = audit(run)
    assert report.passed, report
    return report


def answers(run: Any) -> pl.DataFrame:
    with ps.open_run(run) as store:
        return store.results()


def asked(run: Any) -> list[tuple[str, int]]:
    """Every attempt: the question and its number."""
    with contextlib.closing(sqlite3.connect(run)) as connection:
        query = "SELECT custom_id, attempt FROM attempts JOIN pairs USING (pair_id) ORDER BY attempt_id"
        return list(connection.execute(query))


def events_of(run: Any, kind: str | None = None) -> list[dict[str, Any]]:
    """The log of events of a run: all of it, or the events of a kind."""
    with ps.open_run(run) as store:
        return [event for event in store.read_log("adaptive_events") if kind in (None, event["event"])]


class Tamper:
    """Edits the logs of a run file and makes the chain whole again, so that only a replay can tell."""

    def __init__(self, run: Path) -> None:
        self._run, self._connection = run, sqlite3.connect(run)
        query = "SELECT log, data FROM logs ORDER BY log, row"
        self.logs: dict[str, list[dict[str, Any]]] = {}
        for log, data in self._connection.execute(query):
            self.logs.setdefault(log, []).append(json.loads(data))

    def __enter__(self) -> Tamper:
        return self

    def blob(self, name: str, number: int) -> bytes:
        query = "SELECT data FROM blobs WHERE name = ? AND row = ?"
        return self._connection.execute(query, (name, number)).fetchone()[0]

    def put_blob(self, name: str, number: int, data: bytes) -> None:
        self.execute("UPDATE blobs SET data = ? WHERE name = ? AND row = ?", data, name, number)

    def execute(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement, values)

    def __exit__(self, kind: object, *_error: object) -> None:
        self._connection.execute("DELETE FROM logs")
        for log, rows in self.logs.items():
            for number, row in enumerate(rows, start=1):
                self._connection.execute("INSERT INTO logs VALUES (?, ?, ?)", (log, number, canonical(row)))
        self._connection.commit()
        self._connection.close()
        rechain(self._run)
