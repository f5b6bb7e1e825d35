"""The audit: clean runs of every kind pass, and whatever is changed is found, by the chain or by the replay."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pairscale as ps
from pairscale.adaptive.refits import Belief
from pairscale.auditing import audit
from tests.adaptive.running import FAST, LATE, SOON, Tamper, better, rank, samples, simulated


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with several calls and at once, invalid answers, other settings from some step on, late items, a stop."""
    run = tmp_path_factory.mktemp("clean") / "run.db"
    judge = simulated(invalid_rate=0.1)
    rank(8, judge, n_steps=25, run=run, btl_config=LATE)
    rank(samples(10), judge, n_steps=20, run=run, btl_config=LATE, concurrency=4)
    state = ps.adaptive_rank_resume(run=run)
    ps.adaptive_rank_run_live(state, judge, 25, btl_config={"refit_pairs_target": 7}, concurrency=3, **FAST)
    # More than another stop rule, so that a refit is what stops it.
    ps.adaptive_rank_run_live(state, judge, None, btl_config=SOON | {"near_tie_p_low": 0.39}, **FAST)
    assert state.stop_reason == "btl_converged"
    return run


@pytest.fixture
def run(clean: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(clean, tmp_path / "run.db"))


def test_a_clean_run_is_reproduced(clean: Path) -> None:
    report = audit(clean)
    state = ps.adaptive_rank_resume(run=clean)
    first = f"{state.step_log.height:,} steps, {state.round_log.height:,} refits, all reproduced"
    rows = f"{sum(report.rows.values()):,} rows in 8 tables, all as they were written"
    assert str(report) == f"preset pairwiseLLM: {first}\n{rows}\ndigest {report.digest}"
    assert report.passed
    assert report.problem is None


@pytest.mark.slow_except("1-information", "5-pollitt")
@pytest.mark.parametrize("selector", ["pollitt", "random", "nearest", "information"])
@pytest.mark.parametrize("concurrency", [1, 5])
def test_runs_of_every_selector_are_reproduced(selector: str, concurrency: int, tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    given = {"selector": selector, "concurrency": concurrency, "run": run, "btl_config": LATE}
    rank(9, simulated(invalid_rate=0.1, tie_rate=0.05, lapse=0.1), n_steps=35, **given)
    rank(samples(11), simulated(invalid_rate=0.1, tie_rate=0.05, lapse=0.1), n_steps=35, **given)
    report = audit(run)
    assert report.passed, report
    assert report.steps == 70


@pytest.mark.slow
def test_a_run_with_the_real_sampler_is_reproduced(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    ps.adaptive_rank(samples(8), judge=better, run=run, progress="none", n_steps=24)
    report = audit(run)
    assert report.passed, report
    assert report.refits == 3


@pytest.mark.slow
@pytest.mark.parametrize("repeats", ["learned", 0.5])
def test_a_run_that_counts_repeats_for_what_they_add_is_reproduced(repeats: Any, tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(8, better, n_steps=60, run=run, btl_config=LATE | {"repeats": repeats})
    report = audit(run)
    assert report.passed, report
    state = ps.adaptive_rank_resume(run=run)
    logged = state.round_log["repeat_agreement"]
    assert logged.null_count() == 0
    assert (logged[-1] > 0.5) if repeats == "learned" else (logged == 0.5).all()
    assert state.engine.belief.repeat_agreement in logged.to_list()


# Changes with the chain made whole again: the replay has to find them


def swap_rows(t: Tamper, at: int) -> None:
    log = t.logs["step_log"]
    log[at], log[at + 1] = log[at + 1], log[at]


def change(log: str, at: int, **values: Any) -> Callable[[Tamper], None]:
    def apply(t: Tamper) -> None:
        row = t.logs[log][at]
        assert all(row.get(name) != value for name, value in values.items()), "nothing would be changed"
        row.update(values)

    return apply


def committed(t: Tamper, least: int = 30) -> dict[str, Any]:
    return next(row for row in t.logs["step_log"][least:] if row["status"] == "committed" and row["i"])


def another_pair(t: Tamper) -> None:
    row = committed(t)
    for name in ("i", "j", "A", "B"):
        row[name] = row[name] % 8 + 1


def other_way_round(t: Tamper) -> None:
    row = committed(t)
    row["A"], row["B"], row["A_id"], row["B_id"] = row["B"], row["A"], row["B_id"], row["A_id"]


def other_winner(t: Tamper, at: int = 30) -> None:
    row = committed(t, at)
    row["Y"] = 1 - row["Y"]


def last_winner(t: Tamper) -> None:
    row = t.logs["step_log"][-1]
    assert row["status"] == "committed"
    row["Y"] = 1 - row["Y"]


def last_row_gone(t: Tamper) -> None:
    t.logs["step_log"].pop()


def row_gone(t: Tamper) -> None:
    t.logs["step_log"].pop(20)


def figure(name: str) -> Callable[[Tamper], None]:
    def apply(t: Tamper) -> None:
        row = committed(t)
        row[name] = row[name] + 1e-6 if isinstance(row[name], float) else not row[name]

    return apply


def column_more(t: Tamper) -> None:
    committed(t)["invalid_reason"] = "none of your business"


def invalid_taken_as_error(t: Tamper) -> None:
    row = next(row for row in t.logs["step_log"] if row["status"] == "invalid")
    row["invalid_kind"] = "error"


def refit(**values: Any) -> Callable[[Tamper], None]:
    return change("round_log", 1, **values)


def lowered(t: Tamper) -> None:
    """A limit is lowered in the log, and a stop declared by it."""
    row = t.logs["round_log"][2]
    row.update(
        eap_reliability_min=0.0, eap_pass=True, theta_corr_pass=True, delta_sd_theta_pass=True, rho_rank_pass=True,
        stop_decision=True, stop_reason="btl_converged",
    )  # fmt: skip


def stop(t: Tamper, decision: bool, reason: str | None) -> None:
    rows = [row for row in t.logs["round_log"] if not row["is_closing"]]
    row = rows[-1] if reason is None else rows[0]
    row.update(stop_decision=decision, stop_reason=reason)


def end(reason: str | None, *, last: bool = False) -> Callable[[Tamper], None]:
    def apply(t: Tamper) -> None:
        found = [event for event in t.logs["adaptive_events"] if event["event"] == "end"]
        found[-1 if last else 0]["reason"] = reason

    return apply


def event_gone(kind: str) -> Callable[[Tamper], None]:
    def apply(t: Tamper) -> None:
        events = t.logs["adaptive_events"]
        events.remove(next(event for event in events if event["event"] == kind))

    return apply


def closing_reason(t: Tamper) -> None:
    next(row for row in t.logs["round_log"] if row["is_closing"]).update(stop_decision=True, stop_reason="max_cost")


def belief(**changes: Any) -> Callable[[Tamper], None]:
    def apply(t: Tamper) -> None:
        own = next(row["refit_id"] for row in t.logs["round_log"] if not row["is_closing"])
        found = Belief.from_bytes(t.blob("belief", own))
        made = {name: value(getattr(found, name)) for name, value in changes.items()}
        t.put_blob("belief", own, replace(found, **made).to_bytes())

    return apply


def item(name: str, value: Any) -> Callable[[Tamper], None]:
    def apply(t: Tamper) -> None:
        t.logs["item_log"][0]["columns"][name][2] = value

    return apply


def answer(statement: str) -> Callable[[Tamper], None]:
    return lambda t: t.execute(statement)


FIRST = "WHERE comparison_id = (SELECT min(comparison_id) FROM comparisons WHERE outcome = 'win')"
TAMPERED: dict[str, tuple[Callable[[Tamper], None], str]] = {
    "another pair": (another_pair, "step 3"),
    "the other way round": (other_way_round, "step 3"),
    "another winner": (other_winner, "step 3"),
    "another winner at the end": (last_winner, "is"),
    "an answer changed": (answer(f"UPDATE comparisons SET winner_pos = 3 - winner_pos {FIRST}"), "does not follow"),
    "an answer gone": (answer(f"DELETE FROM comparisons {FIRST}"), "no answer"),
    "mu": (figure("mu_i"), "mu_i"),
    "sigma": (figure("sigma_j"), "sigma_j"),
    "p": (figure("p_ij"), "p_ij"),
    "U0": (figure("U0_ij"), "U0_ij"),
    "degree": (change("step_log", 40, deg_i=99), "deg_i"),
    "stage": (change("step_log", 12, round_stage="long_link", pair_type="long_link"), ""),
    "status": (change("step_log", 12, status="starved"), ""),
    "explore": (figure("is_explore_step"), "is_explore_step"),
    "a figure more": (column_more, "invalid_reason"),
    "an abstention taken as an error": (invalid_taken_as_error, "error"),
    "a row gone": (row_gone, ""),
    "the last row gone": (last_row_gone, ""),
    "rows swapped": (lambda t: swap_rows(t, 10), ""),
    "rows swapped where several were open": (lambda t: swap_rows(t, 30), ""),
    "reliability": (refit(reliability_EAP=0.95), "reliability_EAP"),
    "correlation": (change("round_log", -1, rho_theta=0.123), "rho_theta"),
    "comparisons of a refit": (refit(total_pairs_done=99), "total_pairs_done"),
    "a gate": (change("round_log", -1, eap_pass=False), "eap_pass"),
    "diagnostics": (refit(max_rhat=1.5), "diagnostics_pass"),
    "diagnostics that do not pass": (refit(diagnostics_pass=False), "diagnostics_pass"),
    "a limit": (refit(eap_reliability_min=0.5), "eap_reliability_min"),
    "a limit and a stop by it": (lowered, "eap_reliability_min"),
    "the allowed R-hat": (refit(max_rhat_allowed=9.0), "max_rhat_allowed"),
    "the sample size required": (refit(ess_bulk_required=1.0), "ess_bulk_required"),
    "quotas": (change("round_log", -1, round_pairs_effective=77), "round_pairs_effective"),
    "balance": (refit(pos_balance_sd=7.5), "pos_balance_sd"),
    "health": (refit(starve_rate_since_last_refit=0.99), "starve_rate_since_last_refit"),
    "flips": (refit(n_flips=99), "n_flips"),
    "a stop that was none": (lambda t: stop(t, True, "btl_converged"), "stop_decision"),
    "no stop where there was one": (lambda t: stop(t, False, None), "stop_decision"),
    "the reason of an end": (end("btl_converged"), "btl_converged"),
    "another reason of an end": (end("candidate_starvation"), "candidate_starvation"),
    "a limit that was not met": (end("max_comparisons"), "max_comparisons"),
    "a failing that was none": (end("judge_failing"), "judge_failing"),
    "the stop's own reason": (end("max_cost", last=True), "max_cost"),
    "the reason of a closing refit": (closing_reason, "stop"),
    "a refit's event gone": (event_gone("refit"), ""),
    "a join gone": (event_gone("join"), ""),
    "a configuration gone": (event_gone("configure"), ""),
    "seed": (change("adaptive_events", 0, seed=7), "step 1"),
    "scores": (item("theta_mean", 9.0), ""),
    "spread": (item("theta_sd", 9.0), ""),
    "exposure": (item("pos_count_A", 99), "pos_count_A"),
    "an item's name": (item("ID", "s99"), "ID"),
    "belief: scores": (belief(theta_mean=lambda x: x + 1), "theta_mean"),
    "belief: ranks": (belief(rank=lambda x: x[::-1].copy()), "rank"),
    "belief: passed": (belief(passed=lambda x: not x), "passed"),
    "belief: near stop": (belief(near_stop=lambda x: not x), "near_stop"),
    "belief: order known": (belief(global_identified=lambda x: not x), "global_identified"),
    "belief: draws": (belief(draws=lambda x: np.zeros((8, 8), np.float16) if x is None else None), "draws"),
}


@pytest.mark.slow_except("belief*", "step*")
@pytest.mark.parametrize("kind", TAMPERED)
def test_what_was_changed_is_found_although_the_chain_is_whole(run: Path, kind: str) -> None:
    edit, words = TAMPERED[kind]
    with Tamper(run) as tamper:
        edit(tamper)
    report = audit(run)
    assert not report.passed
    assert words in report.problem
    if report.is_replayed:
        done = f"{report.steps:,} steps, {report.refits:,} refits"
        assert str(report) == f"preset pairwiseLLM: after {done}: {report.problem}"
    else:  # without a replay: comparisons must follow from attempts
        assert report.problem.startswith("comparisons, row ")


@pytest.mark.slow
def test_every_figure_of_the_step_log_is_looked_at(tmp_path: Path) -> None:
    """One value of every column but the clock, one after the other."""
    run = tmp_path / "run.db"
    result = rank(5, simulated(invalid_rate=0.25), n_steps=26, run=run, btl_config=LATE)
    assert result.logs["step_log"]["status"].n_unique() == 3
    with Tamper(run) as tamper:
        rows = tamper.logs["step_log"]
        sources = {name: at for at, row in enumerate(rows) for name, value in row.items() if value is not None}
    assert len(sources) > 45
    changed = {bool: lambda x: not x, int: lambda x: x + 1, float: lambda x: x + 0.25, str: lambda x: x + "?"}
    for name in sorted(set(sources) - {"timestamp"}):
        with Tamper(run) as tamper:
            tamper.logs["step_log"] = [dict(row) for row in rows]
            value = rows[sources[name]][name]
            tamper.logs["step_log"][sources[name]][name] = changed[type(value)](value)
        assert not audit(run).passed, name


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("""UPDATE logs SET data = replace(data, '"Y":1', '"Y":0') WHERE log = 'step_log' AND row = %d""", "step_log"),
        ("DELETE FROM logs WHERE log = 'step_log' AND row = %d", "row is missing"),
        ("DELETE FROM logs WHERE rowid = (SELECT max(rowid) FROM logs WHERE log = 'step_log')", "missing"),
        ("UPDATE logs SET data = replace(data, 'btl_converged', 'max_cost') WHERE log = 'round_log'", "round_log"),
        ("UPDATE logs SET data = replace(data, 'theta_mean', 'theta_main') WHERE log = 'item_log'", "item_log"),
        ("DELETE FROM logs WHERE log = 'adaptive_events' AND row = 2", "adaptive_events"),
        ("UPDATE blobs SET data = x'00' WHERE name = 'belief' AND row = 1", "blobs"),
        ("DELETE FROM blobs WHERE name = 'belief' AND row = 1", "blobs"),
        ("DELETE FROM metadata WHERE key = 'adaptive'", "metadata"),
    ],
)
def test_a_plain_edit_is_found_by_the_chain(run: Path, statement: str, words: str) -> None:
    with sqlite3.connect(run) as connection:
        rows = connection.execute("""SELECT row FROM logs WHERE log = 'step_log' AND data LIKE '%"Y":1%'""").fetchall()
        connection.execute(statement % rows[5][0] if "%d" in statement else statement)
    connection.close()
    report = audit(run)
    assert not report.passed
    assert words in report.problem
    assert (report.steps, report.refits, report.is_replayed) == (0, 0, False)


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 6])
def test_an_interrupted_run_with_open_questions_is_reproduced(concurrency: int, tmp_path: Path) -> None:
    """Questions were open when Ctrl-C came; then more items join, and only then are they answered."""
    run, turns = tmp_path / "run.db", itertools.count(1)

    async def judge(A: Any, B: Any) -> dict[str, Any]:
        turn = next(turns)
        if turn == 28 + concurrency:
            raise KeyboardInterrupt
        if turn > 28:
            await asyncio.sleep(3600)
        return better(A, B)

    given = {"run": run, "btl_config": LATE, "concurrency": concurrency}
    with pytest.raises(KeyboardInterrupt):
        rank(9, ps.FunctionJudge(judge, name="mine"), **given)
    state = ps.adaptive_rank_resume(run=run)
    assert len(state.engine.open) == concurrency
    closing = state.round_log.row(-1, named=True)
    assert (closing["stop_reason"], closing["is_closing"]) == ("interrupted", True)
    assert closing["total_pairs_done"] == 28
    assert audit(run).passed
    result = rank(samples(11), ps.FunctionJudge(better, name="mine"), n_steps=20, **given)
    assert result.logs["step_log"].height == 28 + 20
    report = audit(run)
    assert report.passed, report
