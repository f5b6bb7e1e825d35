"""Texts that are withdrawn from a run: not asked about any more, kept in the log, and no hindrance to the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pairscale as ps
from pairscale.adaptive.engine import Engine, Proposal
from pairscale.core.errors import InputError
from pairscale.models.reliability import eap_reliability
from pairscale.store.writer import Asked, Entry
from tests.adaptive.driving import apart, names
from tests.adaptive.running import LATE, audited, better, events_of, rank, simulated


def asked_about(log: pl.DataFrame) -> set[str]:
    return {*log["A_id"].drop_nulls(), *log["B_id"].drop_nulls()}


# The run


@pytest.mark.slow_except("1-pollitt", "4-information")
@pytest.mark.parametrize("selector", ["pollitt", "random", "nearest", "information"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_never_asked_about_again_and_its_comparisons_stay(selector: str, concurrency: int, tmp_path: Path) -> None:
    run, judges = tmp_path / "run.db", simulated(invalid_rate=0.1)
    given = {"run": run, "selector": selector, "concurrency": concurrency, "btl_config": LATE}
    before = rank(9, judges, n_steps=25, **given)
    after = rank(9, judges, n_steps=40, without=["s02", "s07"], **given)
    log = after.logs["step_log"]
    assert log[:25].equals(before.logs["step_log"])
    assert {"s02", "s07"} <= asked_about(log[:25])
    assert asked_about(log[25:]) <= {name for name in after.state.ids if name not in {"s02", "s07"}}
    assert after.state.withdrawn == ["s02", "s07"]
    degree = dict(after.items.select("ID", "degree").iter_rows())
    seen = before.logs["step_log"].filter(pl.col("pair_id").is_not_null())
    assert degree["s02"] == sum("s02" in pair for pair in seen.select("A_id", "B_id").iter_rows()) > 0
    (event,) = events_of(run, "withdraw")
    assert (event["ids"], event["after"]) == (["s02", "s07"], 25)
    audited(run)


@pytest.mark.slow
def test_a_stop_does_not_wait_for_it(tmp_path: Path) -> None:
    """Reliability and stability are those of the others; the scores are those of all."""
    run = tmp_path / "run.db"
    rank(10, n_steps=8, run=run, btl_config=LATE)
    out = rank(10, n_steps=60, run=run, btl_config=LATE, without=["s00", "s09"])
    row, items = out.refits.row(-1, named=True), ps.adaptive_item_log(out.state)
    assert items.height == 10
    left = items.filter(~pl.col("ID").is_in(["s00", "s09"]))
    figures = [frame.select("theta_mean", pl.col("theta_sd") ** 2).to_numpy().T for frame in (left, items)]
    assert row["n_items"] == 8
    assert row["reliability_EAP"] == pytest.approx(eap_reliability(*figures[0]), abs=1e-12)
    assert row["reliability_EAP"] != pytest.approx(eap_reliability(*figures[1]), abs=1e-3)
    assert row["min_degree"] == left["degree"].min()
    audited(run)


# The warm start


def play(engine: Engine, limit: int = 200) -> list[tuple[int, int]]:
    """Take the warm start to its end, one question at a time."""
    asked = []
    while not engine._warm.done:
        found = engine.propose()
        assert isinstance(found, Proposal)
        asked.append((found.first, found.second))
        engine.record(found.step_id, int(found.first < found.second))
        assert len(asked) < limit
    return asked


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("at", range(6))
def test_the_chain_holds_the_others_together_whenever_it_happens(seed: int, at: int) -> None:
    for gone in ([0], [2], [0, 1], [1, 3, 5], [2, 3, 4, 5]):
        engine = Engine(names(6), seed=seed)
        for _ in range(min(at, 5)):
            found = engine.propose()
            assert isinstance(found, Proposal)
            engine.record(found.step_id, int(found.first < found.second))
        engine.withdraw([engine.ids[item] for item in gone])
        later = play(engine)
        assert not {item for pair in later for item in pair} & set(gone)
        assert apart(engine) == []


def test_open_questions_about_it_are_dropped() -> None:
    engine = Engine(names(6), seed=4)
    opened = [engine.propose() for _ in range(5)]
    middle = opened[2]
    assert isinstance(middle, Proposal)
    gone = middle.first
    engine.withdraw([engine.ids[gone]])
    assert all(gone not in (found.first, found.second) for found in engine.open.values())
    assert len(engine.open) < 5
    assert engine.steps == 5
    assert (engine.ledger.open_degree >= 0).all()
    assert engine.ledger.open_degree.sum() == 2 * len(engine.open)
    for step_id in list(engine.open):
        engine.record(step_id, 1)
    play(engine)
    assert apart(engine) == []


# Open questions and numbers of steps


def test_questions_that_were_open_when_a_process_died_are_not_asked(tmp_path: Path) -> None:
    run, told = tmp_path / "run.db", list[set[str]]()

    def listening(A: Any, B: Any) -> dict[str, Any]:
        told.append({A["ID"], B["ID"]})
        return better(A, B)

    mine = ps.FunctionJudge(listening, name="mine")
    given = {"run": run, "concurrency": 4, "btl_config": LATE}
    rank(10, mine, n_steps=20, **given)
    engine = ps.adaptive_rank_resume(run=run).engine
    asked = [engine.propose() for _ in range(4)]
    with ps.open_run(run, write=True) as store:  # as a process leaves it that dies before any answer
        rows = [("adaptive_open", found.fields) for found in asked if isinstance(found, Proposal)]
        store.writer.commit([Entry(rows=rows)])
    waiting = ps.adaptive_rank_resume(run=run)
    assert len(waiting.engine.open) == 4
    gone = waiting.ids[next(iter(waiting.engine.open.values())).first]
    told.clear()
    out = rank(10, mine, n_steps=20, without=[gone], **given)
    assert len(told) == 20
    assert not any(gone in pair for pair in told)
    assert out.state.engine.committed == waiting.engine.committed + 20
    audited(run)


def test_the_number_of_a_question_that_was_asked_in_vain_is_not_used_for_another_pair(tmp_path: Path) -> None:
    """A process that was killed while it asked again left an attempt, and no step."""
    run = tmp_path / "run.db"
    paused = rank(8, n_steps=12, run=run, btl_config=LATE)
    state = ps.adaptive_rank_resume(run=run)
    following = state.engine.propose()
    assert isinstance(following, Proposal)
    ids = [state.ids[following.first], state.ids[following.second]]
    vain = {"attempt": 1, "attempted_at": "2026-01-01T00:00:00+00:00", "outcome": "error", "error_code": "timeout"}
    with ps.open_run(run, write=True) as store:
        condition = store.get_meta("adaptive_condition")
        store.writer.commit([Entry(asked=Asked(condition, [vain], uid="step-000013", ID1=ids[0], ID2=ids[1]))])
    out = rank(8, n_steps=10, run=run, btl_config=LATE, without=[ids[0]])
    assert out.logs["step_log"]["step_id"].to_list() == [*range(1, 13), *range(14, 24)]
    assert out.logs["step_log"][:12].equals(paused.logs["step_log"])
    with ps.open_run(run) as store:
        told = store.results().select("ID1", "ID2").rows()
    assert told == out.logs["step_log"].select("A_id", "B_id").rows()
    audited(run)


# What is said of it


@pytest.mark.slow
def test_what_cannot_be_withdrawn_is_refused_and_nothing_is_touched(message_snapshot, tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(4, n_steps=5, run=run)
    with pytest.raises(InputError) as refused:
        rank(4, n_steps=5, run=run, without=["s00", "s0"])
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        rank(4, n_steps=5, run=run, without=["s00", "s01", "s02"])
    message_snapshot(refused)
    assert events_of(run, "withdraw") == []
    rank(4, n_steps=1, run=run, without=["s00"])
    rank(4, n_steps=1, run=run, without=["s00", "s00"])
    assert len(events_of(run, "withdraw")) == 1
    with pytest.raises(InputError) as refused:
        rank(4, n_steps=1, run=run, without=["s01", "s02"])
    message_snapshot(refused)
