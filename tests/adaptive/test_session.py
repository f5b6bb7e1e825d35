"""Sessions: start, save, load, resume and check; late items; and every way in which a run file can be the wrong one."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pairscale as ps
from pairscale.adaptive.logs import STEP_LOG
from pairscale.core.errors import InputError, StoreBusyError, StoreDamagedError, StoreError, StoreMismatchError
from pairscale.models.bayes.fit import fit_btl_laplace
from pairscale.models.bayes.logs import ITEM_LOG, ROUND_LOG
from tests.adaptive.running import FAST, LATE, SOON, Tamper, asked, audited, better, rank, samples, simulated, steps


def go(state: ps.AdaptiveState, n: int | None = 10, judge: Any = None, **given: Any) -> ps.AdaptiveState:
    return ps.adaptive_rank_run_live(state, judge or simulated(), n, **{**FAST, **given})


def other_fit(*args: Any, **given: Any) -> Any:
    return fit_btl_laplace(*args, **given)


class Counting:
    """A fit that is an object."""

    def __call__(self, *args: Any, **given: Any) -> Any:
        return fit_btl_laplace(*args, **given)


# The manual's names


def test_the_examples_of_the_manual(tmp_path: Path) -> None:
    folder = tmp_path / "session"
    state = ps.adaptive_rank_start(["a", "b", "c"], seed=3)
    new = ("pairwiseLLM", "order", None, None, None, None, None)
    assert ps.summarize_adaptive(state).row(0) == (3, 0, 0, 0, False, None, *new)
    assert ps.adaptive_item_log(state).drop("deg", "posA_prop").schema == ITEM_LOG
    assert ps.adaptive_round_log(state).drop("mcmc_cmdstanr_version").schema == ROUND_LOG
    assert ps.adaptive_step_log(state).schema == STEP_LOG
    assert ps.adaptive_results_history(state).columns == ["object1", "object2", "result"]
    assert list(ps.adaptive_get_logs(state)) == ["step_log", "round_log", "item_log"]
    assert ps.save_adaptive_session(state, folder, overwrite=True) == folder
    facts = ps.validate_session_dir(folder)
    assert facts["n_items"] == 3
    assert facts["package_version"] == ps.__version__
    assert facts["schema_version"] == 2
    restored = ps.load_adaptive_session(folder)
    assert ps.summarize_adaptive(restored).equals(ps.summarize_adaptive(state))
    assert ps.adaptive_rank_resume(folder).ids == ["a", "b", "c"]


@pytest.mark.slow
def test_the_workflow_of_the_manual(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = ps.example_writing_samples.head(8).select(pl.col("ID").alias("item_id"), "text", "quality_score")

    def sim_judge(A: Any, B: Any, state: Any, **more: Any) -> dict[str, Any]:
        y = int(A["quality_score"] >= B["quality_score"])
        return {"is_valid": True, "Y": y, "invalid_reason": None}

    session_dir = tmp_path / "session"
    state = ps.adaptive_rank_start(
        items=items,
        seed=42,
        adaptive_config={"global_identified_reliability_min": 0.85, "star_override_budget_per_round": 2},
        session_dir=session_dir,
        persist_item_log=True,
    )
    state = ps.adaptive_rank_run_live(
        state=state,
        judge=sim_judge,
        n_steps=6,
        btl_config={"refit_pairs_target": 50, "ess_bulk_min": 400, "eap_reliability_min": 0.90},
        adaptive_config={"explore_taper_mult": 0.40, "boundary_frac": 0.20},
        progress="steps",
        progress_redraw_every=1,
        progress_show_events=True,
        progress_errors=True,
    )
    assert ps.adaptive_step_log(state).height == 6
    resumed = ps.adaptive_rank_resume(session_dir)
    assert resumed.settings["btl_config"]["refit_pairs_target"] == 50
    assert resumed.settings["adaptive_config"]["star_override_budget_per_round"] == 2
    assert resumed.engine.config == state.engine.config
    assert resumed.engine.btl == state.engine.btl
    resumed = ps.adaptive_rank_run_live(state=resumed, judge=sim_judge, n_steps=4, progress="none")
    assert ps.summarize_adaptive(resumed).row(0, named=True)["committed_pairs"] == 10
    assert ps.summarize_refits(resumed).height == 2
    assert ps.summarize_items(resumed).height == 8
    assert sorted(path.name for path in session_dir.glob("*.csv")) == [f"item_log_refit_000{n}.csv" for n in (1, 2)]
    assert "10 comparisons" in str(resumed)
    audited(session_dir / "run.db")


def test_the_calls_of_the_contract(tmp_path: Path) -> None:
    out = ps.adaptive_rank(
        samples(12), judge=better, n_steps=40, seed=3, selector="pollitt", concurrency=1, run=None, **FAST,
        adaptive_config={"explore_taper_mult": 0.4}, btl_config={"eap_reliability_min": 0.95},
    )  # fmt: skip
    assert out.logs["step_log"].height == 40
    hist = ps.adaptive_results_history(out.state)
    assert hist.columns == ["object1", "object2", "result"]
    committed = out.logs["step_log"].filter(status="ok")
    assert hist.rows() == committed.select("A_id", "B_id", pl.col("Y").cast(pl.Float64)).rows()
    assert out.summary.columns == [
        "n_items", "steps_attempted", "committed_pairs", "n_refits", "last_stop_decision", "last_stop_reason",
        "preset", "goal", "reliability", "judge_id", "position_effect", "repeat_agreement", "weak_judges",
    ]  # fmt: skip
    assert out.items.columns[:4] == ["refit_id", "ID", "theta_mean", "theta_sd"]
    assert out.output_file is None
    assert set(out.logs) == {"step_log", "round_log", "item_log"}
    assert ps.fit_bt_model(ps.build_bt_data(hist)).theta.height == 12
    assert repr(out).startswith("<AdaptiveResult: 12 items, ")
    both = ps.adaptive_results_history(rank(5, simulated(invalid_rate=0.4), n_steps=9).state, committed_only=False)
    assert both.height == 9
    assert both["result"].null_count() > 0


def test_the_example_of_adaptive_rank_in_the_manual() -> None:
    out = ps.adaptive_rank(
        data=ps.example_writing_samples.head(8).select("ID", "text", "quality_score"),
        id_col="ID",
        text_col="text",
        model="gpt-5.1",
        judge=lambda A, B, state: {"is_valid": True, "Y": int(A["quality_score"] >= B["quality_score"])},
        n_steps=4,
        progress="none",
    )
    assert out.summary["committed_pairs"].item() == 4
    assert out.items.height == 8


def test_an_item_log_by_its_number(message_snapshot, tmp_path: Path) -> None:
    state = rank(6, n_steps=30).state
    tables = ps.adaptive_get_logs(state)["item_log"]
    assert ps.adaptive_item_log(state).equals(tables[-1])
    assert ps.adaptive_item_log(state, 2).equals(tables[1])
    stacked = ps.adaptive_item_log(state, stack=True)
    assert stacked["refit_id"].unique(maintain_order=True).to_list() == list(range(1, len(tables) + 1))
    with pytest.raises(InputError) as refused:
        ps.adaptive_item_log(state, len(tables) + 1)
    message_snapshot(refused)
    for wrong in (0, "last"):
        with pytest.raises(InputError) as refused:
            ps.adaptive_item_log(state, wrong)
        message_snapshot(refused)
    with pytest.raises(InputError, match="stack"):
        ps.adaptive_item_log(state, 1, stack=True)
    with pytest.raises(InputError) as refused:
        ps.adaptive_step_log("run.db")
    message_snapshot(refused)


# Where it is kept


def test_data_from_frame_file_or_folder(tmp_path: Path) -> None:
    table = samples(4).drop("theta_true")
    table.write_csv(tmp_path / "texts.csv")
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in table.iter_rows():
        (folder / f"{name}.txt").write_text(text, "utf-8")
    runs = [
        ps.adaptive_rank(data, judge="lexical", n_steps=5, **FAST)
        for data in (table, table.to_dicts(), table.to_pandas(), tmp_path / "texts.csv", folder)
    ]
    assert all(steps(run.state).equals(steps(runs[0].state)) for run in runs)


@pytest.mark.parametrize("by", ["session_dir", "run"])
def test_the_same_call_goes_on(tmp_path: Path, by: str) -> None:
    where = {by: tmp_path / ("session" if by == "session_dir" else "my.db")}
    first = rank(8, n_steps=17, **where)
    second = rank(8, n_steps=17, **where)
    assert second.logs["step_log"].height == 34
    assert steps(second.state).equals(steps(rank(8, n_steps=34).state))
    assert second.state.where == str(tmp_path / "session" / "run.db" if by == "session_dir" else tmp_path / "my.db")
    assert first.logs["step_log"].height == 17
    with pytest.raises(InputError, match="resume=True"):
        rank(8, n_steps=17, resume=False, **where)
    loaded = ps.load_adaptive_session(where[by])
    assert loaded.step_log.equals(second.state.step_log)
    assert loaded.round_log.equals(second.state.round_log)
    assert ps.adaptive_item_log(loaded, stack=True).equals(ps.adaptive_item_log(second.state, stack=True))
    assert loaded.items.sort("ID").equals(samples(8).sort("ID"))


@pytest.mark.slow
def test_a_run_in_memory_is_saved_later_and_goes_on_there(tmp_path: Path) -> None:
    state = go(ps.adaptive_rank_start(samples(8)), 20)
    folder = tmp_path / "later"
    go(state, 14, session_dir=folder)
    assert state.where == str(folder / "run.db")
    assert steps(ps.load_adaptive_session(folder)).equals(steps(rank(8, n_steps=34).state))
    audited(folder / "run.db")
    go(state, 2, session_dir=folder)  # the same place may be named again
    other = ps.adaptive_rank_start(["x", "y"])
    with pytest.raises(StoreError, match="overwrite=True"):
        ps.save_adaptive_session(other, folder)
    ps.save_adaptive_session(other, folder, overwrite=True)
    assert ps.load_adaptive_session(folder).ids == ["x", "y"]
    with pytest.raises(StoreMismatchError, match="has continued"):
        go(state, 2)


def test_a_copy_of_a_run_is_a_run_of_its_own(tmp_path: Path) -> None:
    original = rank(6, n_steps=10, run=tmp_path / "run.db")
    ps.save_adaptive_session(original.state, tmp_path / "copy")
    go(original.state, 5)
    assert ps.validate_session_dir(tmp_path / "copy")["steps"] == 15
    assert ps.validate_session_dir(tmp_path / "run.db")["steps"] == 10


def test_start_refuses_a_file_that_holds_a_run(message_snapshot, tmp_path: Path) -> None:
    ps.adaptive_rank_start(["a", "b"], session_dir=tmp_path)
    with pytest.raises(StoreMismatchError) as refused:
        ps.adaptive_rank_start(["a", "b"], session_dir=tmp_path)
    message_snapshot(refused)
    with pytest.raises(InputError, match="not both"):
        ps.adaptive_rank_start(["a", "b"], session_dir=tmp_path, run=tmp_path / "x.db")
    with pytest.raises(InputError, match="not both"):
        ps.adaptive_rank_resume(tmp_path, run=tmp_path / "x.db")
    with pytest.raises(StoreError, match="must be a folder"):
        ps.adaptive_rank_start(["a", "b"], session_dir=tmp_path / "run.db")


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (["a"], "two texts"),
        ([], "two texts"),
        (["a", "a"], "unique"),
        ([{"name": "a"}, {"name": "b"}], "no column 'ID'"),
        ("a", "items is a str"),
        ([{"ID": "a", "sigma": 0.0}, {"ID": "b", "sigma": 1.0}], "sigma"),
        ([{"ID": "a", "mu": float("inf")}, {"ID": "b", "mu": 1.0}], "mu"),
    ],
)
def test_items_that_cannot_be_ranked(items: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        ps.adaptive_rank_start(items, run=tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()


def test_a_process_that_died_while_it_made_the_file_left_no_run(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    run.touch()
    assert rank(4, n_steps=3, run=run).logs["step_log"].height == 3
    empty = tmp_path / "empty.db"
    connection = sqlite3.connect(empty)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    assert empty.stat().st_size > 0
    assert rank(4, n_steps=3, run=empty).logs["step_log"].height == 3
    begun = tmp_path / "begun.db"
    with ps.open_run(begun, write=True) as store:  # died just before the first event
        store.add_items(samples(4).iter_rows(named=True))
        store.set_meta("adaptive", {"log_version": 2, "package_version": "0"})
    with pytest.raises(StoreDamagedError, match="no beginning"):
        ps.adaptive_rank_resume(run=begun)
    assert rank(4, n_steps=3, run=begun, seed=9).logs["step_log"].height == 3
    assert audited(begun).steps == 3


def test_tables_are_saved_where_one_wants_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = rank(5, n_steps=8, save_outputs=True)
    assert out.output_file == tmp_path / "adaptive_outputs"
    out = rank(5, n_steps=8, save_outputs=True, session_dir=tmp_path / "s")
    assert out.output_file == tmp_path / "s" / "adaptive_outputs"
    assert sorted(path.stem for path in out.output_file.iterdir()) == ["items", "refits", "step_log", "summary"]
    assert pl.read_csv(out.output_file / "items.csv")["ID"].to_list() == out.items["ID"].to_list()
    out = rank(5, n_steps=8, output_file="ranking.parquet")
    assert pl.read_parquet("ranking.parquet").equals(out.items.select(*ITEM_LOG))
    assert rank(5, n_steps=8, output_file="tables").output_file.is_dir()


def test_the_items_of_every_refit_as_files(tmp_path: Path) -> None:
    out = rank(6, n_steps=20, session_dir=tmp_path, persist_item_log=True)
    files = sorted(tmp_path.glob("item_log_refit_*.csv"))
    assert len(files) == out.refits.height > 2
    assert pl.read_csv(files[1])["theta_mean"].to_list() == pytest.approx(
        ps.adaptive_item_log(out.state, 2)["theta_mean"].to_list()
    )
    assert not list(Path.cwd().glob("item_log_refit_*"))


# Late items


@pytest.mark.slow_except("1")
@pytest.mark.parametrize("concurrency", [1, 6])
def test_late_items_join_a_run(tmp_path: Path, concurrency: int, caplog: pytest.LogCaptureFixture) -> None:
    run, given = tmp_path / "run.db", {"concurrency": concurrency, "run": tmp_path / "run.db"}
    before = rank(8, n_steps=30, **given)
    late = pl.concat([samples(3, prefix="late"), samples(8)])  # in any order
    with caplog.at_level(logging.WARNING, "pairscale"):
        result = rank(late, n_steps=40, **given)
    assert "3 new items join the run" in caplog.text
    assert result.state.ids == [*before.state.ids, "late00", "late01", "late02"]  # numbered behind
    log = result.logs["step_log"]
    assert log.head(30).equals(before.logs["step_log"])
    joined = log.slice(30)
    links = joined.filter(round_stage="warm_start")
    assert links.height == 9  # three each
    assert all({row["i"], row["j"]} & {9, 10, 11} for row in links.iter_rows(named=True))
    assert links["proposed_after"].min() == 30
    degree = dict(ps.summarize_items(result.state).select("ID", "degree").iter_rows())
    assert all(degree[f"late0{n}"] >= 3 for n in range(3))
    with ps.open_run(run) as store:
        event = next(event for event in store.read_log("adaptive_events") if event["event"] == "join")
    assert (event["ids"], event["after"]) == (["late00", "late01", "late02"], 30)
    assert result.state.items.height == 11
    loaded = ps.load_adaptive_session(run)
    assert loaded.ids == result.state.ids
    assert ps.adaptive_step_log(loaded).equals(log)
    audited(run)
    assert rank(late, n_steps=5, **given).state.ids == result.state.ids


def test_late_items_join_a_run_that_has_stopped(tmp_path: Path) -> None:
    given = {"run": tmp_path / "run.db", "btl_config": SOON, "judge": better}
    assert rank(8, **given).state.stop_reason == "btl_converged"
    result = rank(samples(10), **given)
    assert result.state.stop_reason == "btl_converged"
    assert result.items.height == 10
    audited(given["run"])


# The wrong file, the wrong data, the wrong settings


@pytest.mark.slow_except("*-0", "seed-")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 2}, "seed=1, not 2"),
        ({"selector": "random"}, "selector='pollitt', not 'random'"),
        ({"adaptive_config": {"cap_frac": 0.2}}, "cap_frac=0.08"),
        ({"btl_config": {"refit_pairs_target": 7}}, "refit_pairs_target"),
        ({"judge": ps.make_judge("simulated:theta_true", judge_args={"seed": 6})}, "other settings (seed)"),
        ({"judge": "lexical"}, "judge_id was 'simulated', is 'lexical'"),
        ({"judge": better}, "judge_id was 'simulated'"),
        ({"fit_fn": None}, "started with fit_fn='laplace', not 'exact'"),
        ({"fit_fn": other_fit}, "not 'tests.adaptive.test_session.other_fit'"),
        ({"data": samples(8).with_columns(text=pl.lit("new"))}, "another text for 's00'"),
        ({"data": samples(7)}, "'s07'"),
        ({"data": samples(8, prefix="x")}, "another data set"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_has_changed_is_named_and_nothing_is_touched(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    run = tmp_path / "run.db"
    data = change.pop("data", samples(8)) if "data" in change else samples(8)
    before = rank(8, n_steps=12, run=run)
    with pytest.raises(StoreMismatchError) as error:
        rank(data, n_steps=12, run=run, **change)
    assert words in str(error.value)
    assert ps.adaptive_step_log(ps.load_adaptive_session(run)).equals(before.logs["step_log"])
    assert rank(8, n_steps=1, run=run).logs["step_log"].height == 13


@pytest.mark.slow
def test_what_fits_is_known_by_its_function(tmp_path: Path) -> None:
    """By any of its names; another object of a class, and a function that was made anew, are the same by name."""
    run = tmp_path / "run.db"
    rank(8, n_steps=12, run=run, fit_fn=fit_btl_laplace)
    assert ps.adaptive_rank_resume(run=run).fit_fn == "laplace"
    assert rank(8, n_steps=1, run=run, fit_fn="laplace").logs["step_log"].height == 13
    own = tmp_path / "own.db"
    rank(8, n_steps=12, run=own, fit_fn=Counting())
    assert rank(8, n_steps=1, run=own, fit_fn=Counting()).state.fit_fn == "tests.adaptive.test_session.Counting"


def test_until_something_was_fitted_the_fit_is_open(message_snapshot, tmp_path: Path) -> None:
    state = ps.adaptive_rank_start(samples(8), run=tmp_path / "run.db")
    go(state, 0, fit_fn=None)
    go(state, 12, fit_fn="laplace")
    with pytest.raises(ps.StoreMismatchError) as refused:
        go(state, 1, fit_fn="exact")
    message_snapshot(refused)
    kept_in_memory = rank(8, n_steps=12).state
    with pytest.raises(ps.StoreMismatchError) as refused:
        go(kept_in_memory, 1, fit_fn=None)
    message_snapshot(refused)


def test_a_killed_run_still_knows_its_judge(tmp_path: Path) -> None:
    """The judge is written down before the first answer, not at the end."""
    run = tmp_path / "run.db"

    def judge(A: Any, B: Any) -> Any:
        raise KeyboardInterrupt

    state = ps.adaptive_rank_start(samples(5), run=run)
    go(state, 3)
    with pytest.raises(KeyboardInterrupt):
        go(state, 3, ps.FunctionJudge(judge, name="simulated"))
    with pytest.raises(StoreMismatchError):
        go(ps.adaptive_rank_resume(run=run), 3, "lexical")


def test_a_function_that_was_edited_is_the_same_judge_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run.db"
    module: dict[str, Any] = {"__name__": "mine"}
    exec("def judge(A, B):\n    return {'is_valid': True, 'Y': 1}", module)
    rank(5, module["judge"], n_steps=4, run=run)
    with caplog.at_level(logging.WARNING, "pairscale"):
        rank(5, module["judge"], n_steps=4, run=run)
        assert "changed" not in caplog.text
        state = ps.adaptive_rank_resume(run=run)
        go(state, 1, module["judge"])  # without the trait that adaptive_rank gave for the record
        assert "changed" not in caplog.text
        exec("def judge(A, B):\n    return {'is_valid': True, 'Y': 0}", module)
        rank(5, module["judge"], n_steps=4, run=run)
    assert "code or its arguments have changed" in caplog.text
    with ps.open_run(run) as store:
        assert store.conditions().height == 1  # so that `pairscale fit` need not be told which
    audited(run)


def test_a_judge_without_a_name_is_said_to_be_unknown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bias = 0

    def judge(A: Any, B: Any) -> dict[str, Any]:
        return better(A, B) | {"bias": bias}

    with caplog.at_level(logging.WARNING, "pairscale"):
        rank(5, judge, n_steps=4, run=tmp_path / "run.db")
        rank(5, judge, n_steps=4, run=tmp_path / "run.db")
    assert "this judge has no name" in caplog.text
    assert "changed" not in caplog.text


def test_a_stopped_run_goes_on_with_other_limits_by_the_same_call(tmp_path: Path, caplog: Any) -> None:
    given = {"run": tmp_path / "run.db", "judge": better}
    before = rank(10, btl_config=SOON, **given)
    assert before.state.stop_reason == "btl_converged"
    with caplog.at_level(logging.WARNING, "pairscale"):
        again = rank(10, btl_config=SOON, **given)
    assert "this run has stopped (btl_converged)" in caplog.text
    assert again.logs["step_log"].equals(before.logs["step_log"])
    assert rank(10, btl_config=LATE, n_steps=7, **given).logs["step_log"].height == before.logs["step_log"].height + 7
    assert rank(10, btl_config=LATE, n_steps=7, **given).logs["step_log"].height == before.logs["step_log"].height + 14
    audited(given["run"])


def test_starvation_is_remembered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = {"run": tmp_path / "run.db", "judge": better, "btl_config": LATE}
    before = rank(3, **given)
    assert before.state.stop_reason == "candidate_starvation"
    with caplog.at_level(logging.WARNING, "pairscale"):
        again = rank(3, **given)
    assert "this run has stopped (candidate_starvation)" in caplog.text
    assert again.state.stop_reason == "candidate_starvation"
    assert again.logs["step_log"].equals(before.logs["step_log"])
    with ps.open_run(given["run"]) as store:
        assert [event["event"] for event in store.read_log("adaptive_events")].count("call") == 1
    audited(given["run"])


def damaged(run: Path, kind: str) -> None:
    if kind == "truncated":
        data = run.read_bytes()
        run.write_bytes(data[: len(data) // 2])
    elif kind == "text":
        run.write_text("this is not a run file, but it is mine\n" * 50)
    else:
        with sqlite3.connect(run) as connection:
            edits = {
                "newer file": "UPDATE metadata SET value = '99' WHERE key = 'schema_version'",
                "newer log": """UPDATE metadata SET value = '{"log_version": 99, "package_version": "9.9"}'
                                WHERE key = 'adaptive'""",
                "last row changed": """UPDATE logs SET data = replace(data, 'committed', 'invalid')
                                       WHERE log = 'step_log' AND row = 20""",
                "row changed": """UPDATE logs SET data = replace(data, '"Y":', '"Z":')
                                  WHERE log = 'step_log' AND row = 7""",
                "row gone": "DELETE FROM logs WHERE log = 'step_log' AND row = 20",
                "another program's": "DROP TABLE logs",
            }
            connection.execute(edits[kind])
        connection.close()


@pytest.mark.slow_except("row*")
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("truncated", ""),
        ("text", "not a run file"),
        ("newer file", "schema version 99"),
        ("newer log", "9.9"),
        ("last row changed", "step_log"),
        ("row gone", "step_log"),
        ("another program's", "lacks tables"),
    ],
)
def test_a_damaged_run_is_an_error_and_never_a_fresh_start(tmp_path: Path, kind: str, words: str) -> None:
    run = tmp_path / "run.db"
    rank(6, n_steps=20, run=run)
    damaged(run, kind)
    before = run.read_bytes()
    with pytest.raises(StoreError) as error:
        rank(6, n_steps=20, run=run)
    assert words in str(error.value)
    assert "run.db" in str(error.value)
    if kind in {"truncated", "text"}:
        assert run.read_bytes() == before
    with pytest.raises(StoreError):
        ps.load_adaptive_session(run)


def test_a_row_in_the_middle_that_was_changed_is_found_before_loading(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(6, n_steps=20, run=run)
    damaged(run, "row changed")
    with pytest.raises(StoreDamagedError, match="row step_log 7"):
        ps.validate_session_dir(run)
    with pytest.raises(StoreDamagedError, match="row step_log 7"):
        ps.load_adaptive_session(run)
    with pytest.raises(StoreDamagedError, match="row step_log 7"):
        ps.adaptive_rank_resume(run=run)


def test_a_log_that_does_not_fit_together_is_damaged(message_snapshot, tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(5, n_steps=6, run=run)
    with Tamper(run) as tamper:
        del tamper.logs["step_log"][2]["Y"]
    with pytest.raises(StoreDamagedError) as refused:
        ps.adaptive_rank_resume(run=run)
    message_snapshot(refused)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind everybody")
def test_a_run_file_that_may_not_be_written(message_snapshot, tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(6, n_steps=20, run=run)
    run.chmod(0o444)
    with pytest.raises(StoreError) as refused:
        rank(6, n_steps=20, run=run)
    message_snapshot(refused)


def test_no_session_is_no_session(message_snapshot, tmp_path: Path) -> None:
    for call in (ps.adaptive_rank_resume, ps.load_adaptive_session, ps.validate_session_dir):
        with pytest.raises(StoreError) as refused:
            call(tmp_path)
        message_snapshot(refused)
        with pytest.raises(StoreError, match="no session"):
            call(tmp_path / "missing.db")
    with pytest.raises(InputError, match="name the session"):
        ps.adaptive_rank_resume()
    with pytest.raises(StoreError, match="folder"):
        rank(5, n_steps=1, run=tmp_path)
    with pytest.raises(StoreError, match="does not exist"):
        rank(5, n_steps=1, run=tmp_path / "no" / "run.db")
    other = tmp_path / "pairs.db"
    ps.submit_pairs(ps.make_pairs(samples(4)), simulated(), run=other, progress=False)
    with pytest.raises(StoreDamagedError) as refused:
        ps.adaptive_rank_resume(run=other)
    message_snapshot(refused)


def test_a_run_file_of_given_pairs_may_hold_an_adaptive_run_too(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    ps.submit_pairs(ps.make_pairs(samples(4)), simulated(), run=run, progress=False)
    assert rank(4, n_steps=6, run=run).logs["step_log"].height == 6
    audited(run)


# Two at once


HOLD = """
import sys
import pairscale as ps
state = ps.adaptive_rank_resume(run=sys.argv[1])
def judge(A, B):
    print("asked", flush=True)
    sys.stdin.readline()
    return {"is_valid": True, "Y": 1}
ps.adaptive_rank_run_live(state, ps.FunctionJudge(judge, name="held"), 1, fit_fn="laplace", progress="none")
"""


@pytest.mark.slow
def test_two_runners_on_one_file(message_snapshot, tmp_path: Path) -> None:
    run, calls = tmp_path / "run.db", []

    def judge(A: Any, B: Any) -> dict[str, Any]:
        calls.append(A["ID"])
        return better(A, B)

    mine = ps.FunctionJudge(judge, name="held")
    state = ps.adaptive_rank_start(samples(5), run=run)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(run)], **pipes) as child:
        assert child.stdout.readline() == "asked\n"
        with pytest.raises(StoreBusyError, match=f"process {child.pid}"):
            go(state, 3, mine)
        with pytest.raises(StoreBusyError) as refused:
            rank(5, mine, run=run, n_steps=3)
        message_snapshot(refused)
        child.communicate("\n", timeout=600)
        assert child.returncode == 0
    assert not calls
    with pytest.raises(StoreMismatchError, match="has continued since"):
        go(state, 3, mine)  # loaded before the other one's answer
    assert not calls
    result = rank(5, mine, run=run, n_steps=3)
    assert len(calls) == 3
    assert [uid for uid, _ in asked(run)] == [f"step-00000{n}" for n in (1, 2, 3, 4)]
    assert result.logs["step_log"]["step_id"].to_list() == [1, 2, 3, 4]


def test_a_state_that_is_behind_its_file_is_refused_even_when_no_step_came(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    rank(5, n_steps=5, run=run)
    behind = ps.adaptive_rank_resume(run=run)
    go(ps.adaptive_rank_resume(run=run), 0, btl_config={"eap_reliability_min": 0.95})
    with pytest.raises(StoreMismatchError, match="has continued since"):
        go(behind, 1)


@pytest.mark.slow
def test_open_questions_of_an_earlier_call_count_as_steps_of_this_one(tmp_path: Path) -> None:
    run, left = tmp_path / "run.db", iter(range(10))

    async def judge(A: Any, B: Any) -> dict[str, Any]:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return better(A, B)

    with pytest.raises(KeyboardInterrupt):
        rank(8, ps.FunctionJudge(judge, name="mine"), run=run, concurrency=5)
    given = {"judge": ps.FunctionJudge(better, name="mine"), "run": run}
    assert rank(8, n_steps=0, **given).logs["step_log"].height == 10  # nothing is asked unasked
    assert rank(8, n_steps=2, **given).logs["step_log"].height == 12
    assert rank(8, max_comparisons=13, **given).logs["step_log"].height == 13
    assert rank(8, n_steps=4, concurrency=5, **given).logs["step_log"].height == 17
    audited(run)
