"""The manual's functions, by their names and with their shapes."""

import json
import stat
from pathlib import Path

import polars as pl
import pytest
from tests.batching import MODELS, pairs_of

from pairscale import batch, r
from pairscale.core.errors import InputError, JudgeError, TableError
from pairscale.r import (
    parse_anthropic_batch_output,
    parse_gemini_batch_output,
    parse_openai_batch_output,
)

GOLDEN = Path(__file__).parents[1] / "golden"
MODEL = MODELS["openai"]


_LEVEL = "generationConfig.thinkingConfig.thinkingLevel"
DEPARTURES = {
    "openai": {
        2: {"top_logprobs": (None, 5)},  # without a number there would be no log-probabilities to use
        9: {"reasoning_effort": (None, "low")},  # chat completions take it, under another name
        11: {"temperature": (0, None)},  # models that think refuse a temperature
        12: {"temperature": (0, None)},
        13: {"temperature": (0, None)},
        15: "refused",  # likewise
        18: {"temperature": (0, None)},
    },
    "anthropic": {6: "refused"},  # a temperature with top_p, which these models do not take together
    "gemini": {
        0: {_LEVEL: ("Minimal", "MINIMAL")},  # as the API spells it
        1: {_LEVEL: ("Medium", "MEDIUM")},
        2: {_LEVEL: ("Low", "LOW")},
        3: {_LEVEL: ("High", "HIGH")},
        5: "taken",  # Gemini 2.5 has budgets instead of levels
        6: {_LEVEL: ("Low", None), "generationConfig.thinkingConfig.thinkingBudget": (None, 1024)},
        7: {_LEVEL: ("High", "HIGH")},
        8: {_LEVEL: ("Low", "LOW")},  # a budget, which R drops too
    },
}


def flat(document, path=""):
    found = {}
    for name, value in document.items():
        found |= flat(value, f"{path}{name}.") if isinstance(value, dict) else {path + name: value}
    return found


@pytest.mark.parametrize(
    ("provider", "body"), [("openai", "body"), ("anthropic", "params"), ("gemini", "request")]
)  # fmt: skip
def test_requests_against_the_golden_files(provider, body):
    """The same as R's, but where R is wrong about what the API takes; each departure is named."""
    build = getattr(r, f"build_{provider}_batch_requests")
    data = json.loads((GOLDEN / f"{build.__name__}.json").read_text("utf-8"))
    given, found = data["input"], {}
    for number, case in enumerate(data["output"]):
        theirs = case["result"].get("value")
        try:
            table = build(given["pairs"], **case["args"], **{k: v for k, v in given.items() if k != "pairs"})
        except InputError:
            table = None
        if theirs is None or table is None:
            if (theirs is None) != (table is None):
                found[number] = "refused" if table is None else "taken"
            continue
        assert table.columns == list(theirs[0])
        ours, wanted = flat(table.row(0, named=True)), flat(theirs[0])
        if provider == "openai":
            assert (
                ours.pop(f"{body}.store", False) is False
            )  # texts of pupils are not kept there unless that is asked for
        differing = {name for name in {*ours, *wanted} if ours.get(name) != wanted.get(name)}
        if differing:
            found[number] = {name.removeprefix(f"{body}."): (wanted.get(name), ours.get(name)) for name in differing}
    assert found == DEPARTURES[provider]


def test_requests_need_names_of_their_own():
    twice = pl.concat([pairs_of(2), pairs_of(2)])
    with pytest.raises(InputError, match="pair_uid"):
        r.build_openai_batch_requests(twice, MODEL)
    named = twice.with_columns(pair_uid=pl.Series(["a", "b"]))
    assert r.build_openai_batch_requests(named, MODEL)["custom_id"].to_list() == ["a", "b"]


def test_the_file_of_requests(tmp_path):
    table = r.build_openai_batch_requests(pairs_of(3), MODEL)
    path = r.write_openai_batch_file(table, tmp_path / "requests.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows == table.to_dicts()
    lines = r.write_openai_batch_file([{"jsonl": '{"a": 1}'}], tmp_path / "lines.jsonl")
    assert lines.read_text("utf-8") == '{"a": 1}\n'
    plain = [{"custom_id": "r", "method": "POST", "url": "/v1/x", "body": {"a": 1, "b": None}}]
    r.write_openai_batch_file(plain, tmp_path / "plain.jsonl")
    assert json.loads((tmp_path / "plain.jsonl").read_text())["body"] == {"a": 1, "b": None}
    with pytest.raises(TableError, match="no column 'method'"):
        r.write_openai_batch_file([{"custom_id": "r"}], path)


def test_openai_call_by_call(batch_server, tmp_path):
    table = r.build_openai_batch_requests(pairs_of(4), MODEL)
    path = r.write_openai_batch_file(table, tmp_path / "requests.jsonl")
    file = r.openai_upload_batch_file(path)
    assert file["object"] == "file"
    batch = r.openai_create_batch(file["id"], "/v1/chat/completions", metadata={"study": "one"})
    assert batch["metadata"] == {"study": "one"}
    with pytest.raises(JudgeError, match="no results"):
        r.openai_download_batch_output(batch["id"], tmp_path / "out.jsonl")
    done = r.openai_poll_batch_until_complete(batch["id"], interval_seconds=0.01, verbose=False)
    assert done["status"] == r.openai_get_batch(batch["id"])["status"] == "completed"
    out = r.openai_download_batch_output(batch["id"], tmp_path / "out.jsonl")
    table = parse_openai_batch_output(out)
    assert (table["better_id"] == table["ID2"]).all()
    with pytest.raises(JudgeError, match="404"):
        r.openai_get_batch("batch_none")
    with pytest.raises(InputError, match="no such file"):
        r.openai_upload_batch_file(tmp_path / "none.jsonl")


def test_anthropic_call_by_call(batch_server, tmp_path):
    table = r.build_anthropic_batch_requests(pairs_of(4), MODELS["anthropic"])
    batch = r.anthropic_create_batch(table)
    assert r.anthropic_get_batch(batch["id"])["processing_status"] == "in_progress"
    done = r.anthropic_poll_batch_until_complete(batch["id"], interval_seconds=0.01, verbose=False)
    assert done["processing_status"] == "ended"
    out = r.anthropic_download_batch_results(batch["id"], tmp_path / "out.jsonl")
    table = parse_anthropic_batch_output(out)
    assert (table["better_id"] == table["ID2"]).all()
    assert table.height == 6


def test_gemini_call_by_call(batch_server, tmp_path):
    table = r.build_gemini_batch_requests(pairs_of(4), MODELS["gemini"])
    batch = r.gemini_create_batch(table["request"].to_list(), MODELS["gemini"], display_name="mine")
    assert batch["metadata"]["displayName"] == "mine"
    done = r.gemini_poll_batch_until_complete(batch["name"], interval_seconds=0.01, verbose=False)
    assert done["metadata"]["state"] == "BATCH_STATE_SUCCEEDED"
    for which in (done, batch["name"]):
        out = r.gemini_download_batch_results(which, table, tmp_path / "out.jsonl")
        parsed = parse_gemini_batch_output(out, table.drop("request"))
        assert (parsed["better_id"] == parsed["ID2"]).all()
        assert parsed.height == 6


def test_polling_stops_in_time(batch_server):
    batch_server.batches.looks = 1000
    made = r.anthropic_create_batch(r.build_anthropic_batch_requests(pairs_of(2), MODELS["anthropic"]))
    state = r.anthropic_poll_batch_until_complete(made["id"], 0.01, timeout_seconds=0.05, verbose=False)
    assert state["processing_status"] == "in_progress"


@pytest.mark.parametrize("backend", list(MODELS))
def test_pipelines(batch_server, tmp_path, backend):
    paths = {"batch_input_path": tmp_path / "in.jsonl", "batch_output_path": tmp_path / "out.jsonl"}
    done = r.llm_submit_pairs_batch(
        pairs_of(4), backend, MODELS[backend], include_raw=True, interval_seconds=0.01, verbose=False, **paths
    )
    assert (done.backend, done.batch_input_path, done.batch_output_path) == (backend, *paths.values())
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths.values()} == {0o600}
    assert done.results.height == 6
    assert "raw_response" in done.results.columns
    assert done.failed_attempts.height == 0
    assert done.batch.get("id") or done.batch["name"]
    assert len(done.batch_ids) == 1
    assert r.llm_download_batch_results(done).equals(done.results)
    assert r.llm_download_batch_results({"results": done.results}).equals(done.results)
    with pytest.raises(InputError, match="no results"):
        r.llm_download_batch_results({})
    with pytest.raises(TypeError, match="api_kye"):
        r.llm_download_batch_results(done, api_kye="sk-1")


@pytest.mark.parametrize("name", ["batch_input_path", "batch_output_path"])
@pytest.mark.parametrize("place", ["missing/x.jsonl", ""])
def test_a_place_that_no_copy_can_have_is_refused_before_anything_is_paid_for(batch_server, tmp_path, name, place):
    with pytest.raises(InputError, match=f"{name}: .*is not a file in a folder that exists"):
        r.run_openai_batch_pipeline(pairs_of(4), MODEL, interval_seconds=0.01, **{name: tmp_path / place})
    assert batch_server.batches.created == 0


def test_poll_false_returns_at_once_and_can_be_taken_up(batch_server, tmp_path):
    run, batch_server.batches.looks = tmp_path / "run.db", 5
    begun = r.run_openai_batch_pipeline(pairs_of(4), MODEL, poll=False, run=run, n_segments=2)
    assert begun.results is None
    assert begun.batch_output_path is None
    assert len(begun.batch_ids) == 2
    with pytest.raises(InputError, match=r"batch\.collect"):
        r.llm_download_batch_results(begun)
    while batch.collect(begun.run).results.height < 6:
        pass
    again = r.run_openai_batch_pipeline(pairs_of(4), MODEL, run=run, interval_seconds=0.01)
    assert again.results.height == 6
    assert batch_server.batches.created == 2


def test_no_batches_there(message_snapshot):
    with pytest.raises(InputError) as refused:
        r.llm_submit_pairs_batch(pairs_of(2), "ollama", "qwen3")
    message_snapshot(refused)
    with pytest.raises(InputError, match="name a model"):
        r.llm_submit_pairs_batch(pairs_of(2), "openai")


@pytest.mark.slow_except("openai")
@pytest.mark.parametrize("backend", list(MODELS))
def test_many_batches(batch_server, tmp_path, backend):
    made = r.llm_submit_pairs_multi_batch(
        pairs_of(5), MODELS[backend], backend=backend, batch_size=4, output_dir=tmp_path / "out", write_registry=True
    )
    assert made.registry["segment_index"].to_list() == [1, 2, 3]
    assert made.registry["done"].to_list() == [False] * 3
    assert [job["batch_id"] for job in made.jobs] == made.registry["batch_id"].to_list()
    assert (tmp_path / "out" / "jobs_registry.csv").is_file()
    assert all(Path(job["pairs_path"]).is_file() for job in made.jobs)
    first = r.llm_resume_multi_batches(output_dir=tmp_path / "out", poll=False, per_job_delay=0)
    assert first.combined is None
    done = r.llm_resume_multi_batches(
        made.jobs, interval_seconds=0.01, per_job_delay=0, write_results_csv=True, keep_jsonl=False,
        write_registry=True, write_combined_csv=True,
    )  # fmt: skip
    assert done.combined.height == 10
    assert [job["done"] for job in done.jobs] == [True] * 3
    assert sum(job["results"].height for job in done.jobs) == 10
    assert done.batch_failures.height == done.failed_attempts.height == done.rest.height == 0
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert "combined_results.csv" in written
    assert not any(name.endswith(".jsonl") for name in written)
    assert batch_server.batches.created == 3


def test_results_are_written_as_soon_as_they_are_there(batch_server, tmp_path):
    batch_server.batches.looks = 3
    r.llm_submit_pairs_multi_batch(pairs_of(4), MODEL, n_segments=2, output_dir=tmp_path)
    batch_server.batches.jobs["batch_000001"].looks = 2  # ends at the next look, the other one two later
    r.llm_resume_multi_batches(output_dir=tmp_path, poll=False, per_job_delay=0, write_results_csv=True)
    assert len(list(tmp_path.glob("*.results.csv"))) == 1
    r.llm_resume_multi_batches(output_dir=tmp_path, interval_seconds=0.01, per_job_delay=0, write_results_csv=True)
    assert sum(pl.read_csv(path).height for path in tmp_path.glob("*.results.csv")) == 6


def test_many_batches_of_which_one_expires(message_snapshot, batch_server, tmp_path):
    batch_server.batches.ends = ["done", "expired"]
    made = r.llm_submit_pairs_multi_batch(pairs_of(6), MODEL, n_segments=2, output_dir=tmp_path)
    done = r.llm_resume_multi_batches(made, interval_seconds=0.01, per_job_delay=0, combined_csv_path="all.csv")
    assert done.batch_failures.select("segment_index", "status").rows() == [(2, "expired")]
    assert done.batch_failures["unanswered"].to_list() == [done.rest.height]
    assert 0 < done.rest.height < 8
    assert done.combined.height == 15
    assert done.combined["better_id"].null_count() == done.rest.height
    with pytest.raises(InputError, match="jobs or output_dir"):
        r.llm_resume_multi_batches()
    with pytest.raises(InputError) as refused:
        r.llm_resume_multi_batches(output_dir=tmp_path / "elsewhere")
    message_snapshot(refused)


@pytest.mark.parametrize("jobs", [[{"batch_id": "b"}], pl.DataFrame({"batch_id": ["b"]}), ["b"]])
def test_jobs_that_do_not_say_which_they_are(jobs):
    with pytest.raises(InputError, match="jobs: no batch_id and batch_output_path"):
        r.llm_resume_multi_batches(jobs)
