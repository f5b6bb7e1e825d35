"""Batches that nothing but a registry knows of: those of the R package, and those whose run file is gone."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.batching import MODELS, expected, pairs_of, simulator

from pairscale.compat import batch_calls as calls
from pairscale.compat import batch_requests as requests
from pairscale.compat.batch_multi import llm_resume_multi_batches, llm_submit_pairs_multi_batch
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.tables import RESULTS


@pytest.fixture
def server(monkeypatch):
    with simulator() as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


def as_r_does(backend, pairs, folder, segment):
    """Submit pairs as R's pairwiseLLM 1.x does, by its files and names; the row of its registry."""
    paths = {kind: folder / f"batch_{segment:02d}_{kind}" for kind in ("input.jsonl", "output.jsonl", "results.csv")}
    if backend == "openai":
        table = requests.build_openai_batch_requests(pairs, MODELS[backend])
        requests.write_openai_batch_file(table, paths["input.jsonl"])
        file = calls.openai_upload_batch_file(paths["input.jsonl"])
        batch_id = calls.openai_create_batch(file["id"], "/v1/chat/completions")["id"]
    elif backend == "anthropic":
        table = requests.build_anthropic_batch_requests(pairs, MODELS[backend])
        paths["input.jsonl"].write_text(json.dumps({"requests": table.to_dicts()}), "utf-8")
        batch_id = calls.anthropic_create_batch(table)["id"]
    else:
        table = requests.build_gemini_batch_requests(pairs, MODELS[backend])
        paths["input.jsonl"].write_text(json.dumps({"requests": table.to_dicts()}), "utf-8")
        batch_id = calls.gemini_create_batch(table["request"].to_list(), MODELS[backend])["name"]
    return {
        "segment_index": segment, "provider": backend, "model": MODELS[backend], "batch_id": batch_id,
        "batch_input_path": str(paths["input.jsonl"]), "batch_output_path": str(paths["output.jsonl"]),
        "csv_path": str(paths["results.csv"]), "pairs_path": str(folder / f"batch_{segment:02d}_pairs.rds"),
        "done": "FALSE",
    }  # fmt: skip


def write_registry(rows, folder):
    pl.DataFrame(rows).write_csv(folder / "jobs_registry.csv")


def test_a_registry_of_the_r_package(server, tmp_path):
    pairs = pairs_of(5)
    backends = ("openai", "anthropic", "gemini")
    write_registry([as_r_does(backend, pairs, tmp_path, n) for n, backend in enumerate(backends, 1)], tmp_path)
    first = llm_resume_multi_batches(output_dir=tmp_path, poll=False, per_job_delay=0)
    assert first.combined is None
    done = llm_resume_multi_batches(
        output_dir=tmp_path, interval_seconds=0.01, per_job_delay=0, write_results_csv=True, write_combined_csv=True,
        write_registry=True,
    )  # fmt: skip
    assert done.combined.columns == list(RESULTS)
    assert done.combined.schema == pl.Schema(RESULTS)
    for backend in backends:
        mine = done.combined.filter(pl.col("judge_id") == f"{backend}:{MODELS[backend]}")
        ordered = pairs.select("ID1", "ID2").join(mine, on=["ID1", "ID2"], maintain_order="left")
        assert ordered["better_id"].to_list() == expected(pairs)
        assert ordered["prompt_tokens"].null_count() == 0
    assert done.failed_attempts.height == done.rest.height == done.batch_failures.height == 0
    assert {f"batch_{n:02d}_{kind}" for n in (1, 2, 3) for kind in ("output.jsonl", "results.csv")} <= {
        path.name for path in tmp_path.iterdir()
    }
    registry = pl.read_csv(tmp_path / "jobs_registry.csv")
    assert registry["done"].to_list() == [True] * 3
    asked = server.served
    again = llm_resume_multi_batches(output_dir=tmp_path, keep_jsonl=False)  # by the files; nobody is asked
    assert again.combined.equals(done.combined)
    assert server.served == asked
    assert not list(tmp_path.glob("*.jsonl"))


def test_what_was_not_answered_is_named(server, tmp_path):
    server.batches.ends = ["expired", "failed", "done"]
    rows = [as_r_does("openai", pairs_of(6), tmp_path, n) for n in (1, 2)]
    server.batches.failing = 0.5
    rows.append(as_r_does("anthropic", pairs_of(6), tmp_path, 3))
    done = llm_resume_multi_batches(pl.DataFrame(rows), interval_seconds=0.01, per_job_delay=0)
    assert done.batch_failures.select("segment_index", "status").rows() == [(1, "expired"), (2, "failed")]
    assert 0 < done.batch_failures["unanswered"][0] < 15
    assert done.combined.height == 30  # of the batch that failed, nothing is known
    assert done.combined["better_id"].null_count() == done.rest.height
    assert set(done.failed_attempts["error_code"]) == {"http_error"}
    assert [job["done"] for job in done.jobs] == [True] * 3
    assert [job["status"] for job in done.jobs] == ["expired", "failed", "partly"]


@pytest.mark.parametrize("with_run_file", [True, False])
def test_results_are_written_as_soon_as_they_are_there(server, tmp_path, with_run_file):
    server.batches.looks = 3
    llm_submit_pairs_multi_batch(pairs_of(4), MODELS["openai"], n_segments=2, output_dir=tmp_path, write_registry=True)
    server.batches.jobs["batch_000001"].looks = 2  # ends at the next look, the other one two later
    if not with_run_file:
        (tmp_path / "run.db").unlink()
    llm_resume_multi_batches(output_dir=tmp_path, poll=False, per_job_delay=0, write_results_csv=True)
    assert len(list(tmp_path.glob("*.results.csv"))) == 1
    llm_resume_multi_batches(output_dir=tmp_path, interval_seconds=0.01, per_job_delay=0, write_results_csv=True)
    assert sum(pl.read_csv(path).height for path in tmp_path.glob("*.results.csv")) == 6


def test_another_machine(server, tmp_path):
    """Paths that are not there are looked for in the folder, also those of Windows."""
    row = as_r_does("openai", pairs_of(4), tmp_path, 1)
    row |= {name: "C:\\study\\" + Path(row[name]).name for name in row if name.endswith("_path")}
    write_registry([row], tmp_path)
    done = llm_resume_multi_batches(output_dir=tmp_path, interval_seconds=0.01, write_results_csv=True)
    assert done.combined.height == 6
    assert (tmp_path / "batch_01_results.csv").is_file()


@pytest.mark.slow
def test_our_own_registry_without_its_run_file(server, tmp_path):
    pairs = pairs_of(5)
    for backend in MODELS:
        folder = tmp_path / backend
        made = llm_submit_pairs_multi_batch(
            pairs, MODELS[backend], backend=backend, n_segments=2, output_dir=folder, write_registry=True
        )
        some = llm_resume_multi_batches(made.jobs[:1], interval_seconds=0.01)
        assert (len(some.jobs), some.combined.height) == (1, 5)
        (folder / "run.db").unlink()
        done = llm_resume_multi_batches(output_dir=folder, interval_seconds=0.01, per_job_delay=0)
        ordered = pairs.select("ID1", "ID2").join(done.combined, on=["ID1", "ID2"], maintain_order="left")
        assert ordered["better_id"].to_list() == expected(pairs)


def test_names_that_do_not_say_the_samples(server, tmp_path, caplog):
    named = pairs_of(3).with_columns(pair_uid=pl.Series(["one", "two", "three"]))
    write_registry([as_r_does("openai", named, tmp_path, 1)], tmp_path)
    done = llm_resume_multi_batches(output_dir=tmp_path, interval_seconds=0.01)
    assert done.combined["better_id"].to_list() == [None, None, None]
    assert done.rest["custom_id"].sort().to_list() == ["one", "three", "two"]
    assert "do not say which two samples they are of" in caplog.text


def test_batches_that_are_unknown_and_keys_that_are_wrong(message_snapshot, server, tmp_path, caplog):
    row = as_r_does("openai", pairs_of(3), tmp_path, 1)
    jobs = dict(server.batches.jobs)
    server.batches.jobs.clear()
    done = llm_resume_multi_batches([row], interval_seconds=0.01)  # and it waits no longer
    assert done.batch_failures.select("status", "message").rows() == [
        ("unknown", "openai does not know the batch; is this the key of the project it is of?")
    ]
    assert not done.jobs[0]["done"]  # so that the next call asks again
    assert caplog.text.count("does not know") == 1
    server.batches.jobs.update(jobs)
    assert llm_resume_multi_batches([row], interval_seconds=0.01).combined.height == 3
    server.keys = ["another-key-1"]
    with pytest.raises(JudgeError, match="401"):
        llm_resume_multi_batches([row], interval_seconds=0.01)
    with pytest.raises(InputError) as refused:
        llm_resume_multi_batches([row | {"batch_id": None}], interval_seconds=0.01)
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        llm_resume_multi_batches([row | {"provider": "ollama"}], interval_seconds=0.01)
    message_snapshot(refused)
