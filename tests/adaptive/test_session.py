"""Sessions: start, save, load, resume and check; late items; and every way in which a run file can be the wrong one."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import InputError, StoreBusyError, StoreDamagedError, StoreError, StoreMismatchError
from pairscale.models.bayes.fit import fit_btl_laplace
from pairscale.models.bayes.logs import ITEM_LOG
from tests.adaptive.running import FAST, asked, audited, better, events_of, rank, samples, simulated, steps


def go(state: ps.AdaptiveState, n: int | None = 10, judge: Any = None, **given: Any) -> ps.AdaptiveState:
    return ps.adaptive_rank_run_live(state, judge or simulated(), n, **{**FAST, **given})


def other_fit(*args: Any, **given: Any) -> Any:
    return fit_btl_laplace(*args, **given)


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
    assert "new in the run: 3 texts" in caplog.text
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
    (event,) = events_of(run, "join")
    assert (event["ids"], event["after"]) == (["late00", "late01", "late02"], 30)
    assert result.state.items.height == 11
    loaded = ps.load_adaptive_session(run)
    assert loaded.ids == result.state.ids
    assert ps.adaptive_step_log(loaded).equals(log)
    audited(run)
    assert rank(late, n_steps=5, **given).state.ids == result.state.ids


# The wrong file, the wrong data, the wrong settings


@pytest.mark.slow_except("*-0", "seed-")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 2}, "seed=1, not 2"),
        ({"selector": "random"}, "selector='pollitt', not 'random'"),
        ({"adaptive_config": {"cap_frac": 0.2}}, "cap_frac is 0.2, was 0.08"),
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
