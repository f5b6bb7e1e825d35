"""What the manuals of R's pairwiseLLM and of AG2 say, kept to the letter."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.batching import MODELS, pairs_of

import pairscale as ps
from pairscale.core.errors import FileFormatError, InputError

TEXT = "{TRAIT_NAME} {TRAIT_DESCRIPTION}\n{SAMPLE_1} or {SAMPLE_2}"


@pytest.mark.parametrize(("content", "read"), [(TEXT, TEXT), (f"{TEXT}\n", TEXT), (f"{TEXT}\r\n\r\n", f"{TEXT}\n")])
def test_a_template_file_is_read_as_lines(tmp_path, content, read):
    Path(tmp_path / "own.txt").write_bytes(content.encode())
    assert ps.set_prompt_template(file=tmp_path / "own.txt") == read
    assert not ps.get_prompt_template("default").endswith("\n")


@pytest.mark.parametrize("text", [TEXT, f"{TEXT}\n"])
def test_a_saved_template_is_the_one_of_the_session(tmp_path, monkeypatch, text):
    monkeypatch.setenv("PAIRSCALE_HOME", str(tmp_path))
    assert ps.register_prompt_template("kept", text, save=True) == text
    from pairscale.core import prompts

    del prompts._REGISTERED["kept"]
    try:
        assert ps.get_prompt_template("kept") == text
    finally:
        ps.remove_prompt_template("kept")


def test_steps_that_were_committed_are_ok():
    texts = [{"ID": name, "text": name} for name in "abcd"]
    judge = ps.FunctionJudge(lambda A, B: {"is_valid": A["ID"] != "a", "Y": int(A["ID"] < B["ID"])}, name="mine")
    out = ps.adaptive_rank(texts, judge=judge, n_steps=8, seed=1, progress="none", fit_fn="laplace")
    log = ps.adaptive_step_log(out.state)
    assert set(log["status"]) == {"ok", "invalid", "starved"}
    assert log.filter(status="ok").height == out.summary["committed_pairs"].item()
    assert out.logs["step_log"].equals(log)
    assert ps.adaptive_get_logs(out.state)["step_log"].equals(log)
    assert out.state.step_log["status"].replace("committed", "ok").equals(log["status"])


def test_a_fit_function_of_r_is_refused_before_anything_is_asked(message_snapshot):
    state = ps.adaptive_rank_start(["a", "b", "c"], seed=1)
    asked = []
    with pytest.raises(InputError) as refused:
        ps.adaptive_rank_run_live(
            state, lambda A, B: asked.append(A), n_steps=2, fit_fn=lambda state, config: None, progress="none"
        )
    message_snapshot(refused)
    assert asked == []


@pytest.mark.parametrize("backend", ["anthropic", "gemini", "openai"])
def test_the_requests_of_a_pipeline(batch_server, tmp_path, backend):
    pipeline = getattr(ps, f"run_{backend}_batch_pipeline")
    pairs = pairs_of(3)
    given = pipeline(pairs, MODELS[backend], batch_input_path=tmp_path / "in.json", interval_seconds=0.01)
    unnamed = pipeline(pairs, MODELS[backend], interval_seconds=0.01)
    assert given.batch_input_path == tmp_path / "in.json"
    for done in (given, unnamed):
        text = done.batch_input_path.read_text("utf-8")
        requests = [json.loads(line) for line in text.splitlines()] if backend == "openai" else json.loads(text)
        assert len(requests if backend == "openai" else requests["requests"]) == pairs.height
        assert done.batch_input_path.suffix == (".jsonl" if (backend, done) == ("openai", unnamed) else ".json")
    if backend == "anthropic":
        assert set(json.loads(given.batch_input_path.read_text("utf-8"))["requests"][0]) == {"custom_id", "params"}


def test_labels_are_matched_by_task_and_criterion(message_snapshot, tmp_path):
    row = {"task_id": "t1", "criterion": "more helpful", "preferred": "2", "first_variant": "b"}
    pl.DataFrame([row]).write_ndjson(tmp_path / "labels.jsonl")
    assert ps.read_labels(tmp_path / "labels.jsonl").table["case_id"].to_list() == ["t1::more helpful"]
    judge = ps.human_labels(tmp_path / "labels.jsonl", criterion="more helpful", key="people")
    old, new = (ps.InMemoryTraceSource({"t1": text}) for text in ("Paris.", "Rome."))
    assert ps.evaluate_pairwise(old, new, comparators=[judge]).tally("people") == (1, 0, 0)
    pl.DataFrame([{"task_id": "t1", "preferred": "2"}]).write_ndjson(tmp_path / "bare.jsonl")
    with pytest.raises(FileFormatError) as refused:
        ps.read_labels(tmp_path / "bare.jsonl")
    message_snapshot(refused)
