"""Texts that are withdrawn from a run: not asked about any more, kept in the log, and no hindrance to the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.adaptive.engine import Engine, Proposal
from pairscale.adaptive.status import adaptive_status
from pairscale.core.errors import InputError, StoreMismatchError
from pairscale.models.reliability import eap_reliability
from pairscale.reporting.verbs import report_of_result, report_of_run
from pairscale.store.writer import Asked, Entry
from tests.adaptive.driving import apart, names
from tests.adaptive.running import LATE, SOON, audited, better, rank, samples, simulated, steps


def asked_about(log: pl.DataFrame) -> set[str]:
    return {*log["A_id"].drop_nulls(), *log["B_id"].drop_nulls()}


def events_of(run: Path, kind: str) -> list[dict[str, Any]]:
    with ps.open_run(run) as store:
        return [event for event in store.read_log("adaptive_events") if event["event"] == kind]


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
@pytest.mark.parametrize("selector", ["pollitt", "information"])
def test_a_pause_after_it_changes_nothing(selector: str, tmp_path: Path) -> None:
    runs = [tmp_path / "one.db", tmp_path / "two.db"]
    for run, parts in zip(runs, ([30], [1, 12, 17]), strict=True):
        rank(9, n_steps=20, run=run, selector=selector, btl_config=LATE)
        for at, part in enumerate(parts):  # said once: the log knows it
            given = {"without": ["s04"]} if at == 0 else {}
            rank(9, n_steps=part, run=run, selector=selector, btl_config=LATE, **given)
    one, two = (ps.adaptive_rank_resume(run=run) for run in runs)
    assert one.withdrawn == two.withdrawn == ["s04"]
    assert steps(one).equals(steps(two))
    audited(runs[1])


def test_a_text_that_the_judge_cannot_read_blocks_nothing(tmp_path: Path) -> None:
    """Such a text has no answer in the warm start, or in any later round."""
    run = tmp_path / "run.db"

    def strict(A: Any, B: Any) -> dict[str, Any]:
        if "s05" in (A["ID"], B["ID"]):
            raise ValueError("this text is too long")
        return better(A, B)

    given = {"run": run, "btl_config": SOON, "retries": 0}
    mine = ps.FunctionJudge(strict, name="strict")
    rank(12, mine, n_steps=14, **given)
    done = rank(12, mine, without="s05", **given)
    assert done.state.stop_reason == "btl_converged"
    assert done.items.filter(pl.col("withdrawn"))["ID"].to_list() == ["s05"]
    assert "s05" not in asked_about(done.logs["step_log"][14:])
    assert [*done.items["ID"]][:: done.items.height - 1] == ["s11", "s00"]
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
    figures = [frame.select("theta_mean", "theta_sd").to_numpy().T for frame in (left, items)]
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


# Together with other changes


@pytest.mark.slow
def test_other_settings_and_late_texts_do_not_bring_it_back(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(8, n_steps=20, run=run, btl_config=LATE, without=["s03"])
    state = ps.adaptive_rank_resume(run=run)
    ps.adaptive_rank_run_live(
        state, simulated(), 20, adaptive_config={"max_invalid_per_item": 50}, progress="none", fit_fn="laplace"
    )
    data = pl.concat([samples(8), samples(2, prefix="t")])
    options = {"adaptive_config": {"max_invalid_per_item": 50}, "btl_config": LATE, "run": run}
    late = rank(data, n_steps=40, without=["t01"], **options)
    assert late.state.withdrawn == ["s03", "t01"]
    assert not asked_about(late.logs["step_log"]) & {"s03", "t01"}
    assert "t00" in asked_about(late.logs["step_log"])
    audited(run)


def test_from_the_start(tmp_path: Path) -> None:
    out = rank(6, n_steps=12, run=tmp_path / "run.db", without=["s01"])
    assert "s01" not in asked_about(out.logs["step_log"])
    assert out.items.filter(pl.col("ID") == "s01")["degree"].to_list() == [0]
    assert apart(out.state.engine) == []
    assert len({*out.state.ids}) == 6
    audited(tmp_path / "run.db")


def test_from_a_run_that_has_stopped(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    stopped = rank(10, better, run=run, btl_config=SOON)
    assert stopped.state.stop_reason == "btl_converged"
    out = rank(10, better, run=run, btl_config=SOON, without=["s01"])
    assert (out.state.stop_reason, out.state.withdrawn) == ("btl_converged", ["s01"])
    assert ps.adaptive_rank_resume(run=run).withdrawn == ["s01"]
    with ps.open_run(run) as store:
        status = adaptive_status(store)
    assert status is not None
    assert (status["stop_reason"], status["has_ended"]) == ("btl_converged", True)
    audited(run)


@pytest.mark.slow
def test_a_text_that_is_no_longer_there(message_snapshot, tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(8, n_steps=9, run=run)
    fewer = samples(8).filter(pl.col("ID") != "s06")
    with pytest.raises(StoreMismatchError) as refused:
        rank(fewer, n_steps=9, run=run)
    message_snapshot(refused)
    assert rank(fewer, n_steps=9, run=run, without="s06").state.withdrawn == ["s06"]
    assert rank(fewer, n_steps=9, run=run).state.engine.rows == 27
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


def test_it_is_marked_everywhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = tmp_path / "run.db"
    assert "withdrawn" not in rank(8, n_steps=20, run=run).items.columns
    out = rank(8, n_steps=10, run=run, without=["s05"])
    wanted = "withdrawn from the run, and not asked about any more: 's05'; what was answered stays"
    assert wanted in caplog.text
    assert out.items.columns[-1] == "withdrawn"
    assert out.items.filter(pl.col("withdrawn"))["ID"].to_list() == ["s05"]
    assert "8 items (1 withdrawn)" in str(out.state)
    with ps.open_run(run) as store:
        status, facts = adaptive_status(store), report_of_run(store)
        hidden = report_of_run(store, pseudonyms=True)
    assert status is not None
    assert status["withdrawn"] == ["s05"]
    said = "withdrawn: 1 text (s05), which reliability and stop do not count"
    assert any(said in line for line in facts.notices)
    assert any(said in line for line in report_of_result(out).notices)
    assert not any("s05" in line for line in hidden.notices)
    caplog.clear()
    rank(8, n_steps=1, run=run, without=["s05"])
    assert "withdrawn" not in caplog.text


def test_the_engine_counts_it_out_of_a_refit_that_is_due() -> None:
    engine = Engine(names(6), seed=2, btl_config={"refit_pairs_target": 6})
    while engine.pending is None:
        found = engine.propose()
        assert isinstance(found, Proposal)
        engine.record(found.step_id, int(found.first < found.second))
    assert engine.pending.counted == slice(None)
    engine.withdraw([engine.ids[2]])
    due = engine.pending
    assert due is not None
    assert np.array_equal(np.asarray(due.counted), np.arange(6) != 2)
    assert due.degree.shape == (6,)
