"""What a caller asks for happens: lines of progress, files removed, raw replies; or it is refused."""

import io
import json

import pytest
from tests.batching import MODELS, pairs_of, simulator

import pairscale as ps
from pairscale import r
from pairscale.core.errors import InputError
from pairscale.runtime import Progress

PAIRS = pairs_of(4)  # 6 pairs
MODEL = MODELS["openai"]


@pytest.fixture
def server(monkeypatch):
    with simulator() as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


def judged(**settings):
    return ps.submit_openai_pairs_live(PAIRS, MODEL, **settings)


# Progress outside a terminal


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({"status_every": 2}, [2, 4, 6]),
        ({"status_every": 4}, [4, 6]),
        ({"status_every": 100}, [6]),
        ({"status_every": 3, "progress": False}, [3, 6]),
        ({"status_every": 2, "verbose": False}, []),
        ({"verbose": False}, []),
        ({"progress": False}, []),
    ],
)
def test_lines_of_progress(settings, lines, capsys):
    judged(**settings)
    said = capsys.readouterr()
    assert [line.split(",")[0] for line in said.err.splitlines()] == [f"judging: {n} of 6" for n in lines]
    assert said.out == ""


@pytest.mark.usefixtures("server")
def test_a_line_says_failures_and_cost(capsys):
    ps.submit_pairs(PAIRS, lambda A, B: {"is_valid": False, "invalid_reason": "no"}, status_every=6)
    assert capsys.readouterr().err.startswith("judging: 6 of 6, 6 failed, ")
    judged(status_every=6)
    assert "of 6, $" in capsys.readouterr().err


@pytest.mark.parametrize("value", [0, -1, True, 2.5, "3"])
def test_status_every_must_be_a_whole_number(message_snapshot, value):
    with pytest.raises(InputError) as refused:
        judged(status_every=value, api_key="none", verbose=False)
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.submit_pairs(PAIRS, "lexical", status_every=value)
    message_snapshot(refused)


@pytest.mark.usefixtures("server")
def test_the_pilot_of_a_cost_estimate_has_them_too(capsys):
    ps.estimate_llm_pairs_cost(PAIRS, MODEL, n_test=4, status_every=2)
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "judging: 2 of 4",
        "judging: 4 of 4",
    ]
    ps.estimate_llm_pairs_cost(PAIRS, MODEL, n_test=4, verbose=False)
    assert capsys.readouterr().err == ""


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def shown(seconds, *, total, tick, monkeypatch, **settings):
    """What a bar prints when a pair takes ``tick`` seconds."""
    clock, err = Clock(), io.StringIO()
    monkeypatch.setattr("sys.stderr", err)
    with Progress(total, 0, show=True, clock=clock, **settings) as bar:
        for _ in range(int(seconds / tick)):
            clock.now += tick
            bar.count(failed=False, cost=0.25)
    return err.getvalue().splitlines()


def test_lines_by_time_where_there_is_no_terminal(monkeypatch):
    assert shown(4, total=10, tick=1, monkeypatch=monkeypatch) == []
    assert shown(66, total=1_066, tick=1, monkeypatch=monkeypatch) == [
        "judging: 5 of 1,066, $1.2500, 1.0 per second",
        "judging: 35 of 1,066, $8.7500, 1.0 per second",
        "judging: 65 of 1,066, $16.2500, 1.0 per second",
        "judging: 66 of 1,066, $16.5000, 1.0 per second",
    ]


def test_a_closed_standard_error_ends_nothing(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("sys.stderr", closed)
    assert ps.submit_pairs(PAIRS, "lexical", status_every=1).results.height == 6


# Files that are not to be kept


def files(folder):
    return sorted(path.suffix for path in folder.iterdir() if path.suffix == ".jsonl")


@pytest.mark.slow_except("True*")
@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(("submitted", "resumed", "left"), [
    (True, None, 4), (False, None, 0), (False, True, 4), (True, False, 0),
])  # fmt: skip
def test_keep_jsonl(submitted, resumed, left, tmp_path):
    r.llm_submit_pairs_multi_batch(PAIRS, MODEL, n_segments=2, output_dir=tmp_path, keep_jsonl=submitted)
    assert len(files(tmp_path)) == 2  # the requests
    done = r.llm_resume_multi_batches(output_dir=tmp_path, interval_seconds=0.01, per_job_delay=0, keep_jsonl=resumed)
    assert done.combined is not None
    assert done.combined.height == 6
    assert len(files(tmp_path)) == left


# Raw replies


def is_reply(text) -> bool:
    return json.loads(text)["object"] == "chat.completion"


@pytest.mark.slow
@pytest.mark.usefixtures("server")
def test_raw_replies_of_many_batches(tmp_path):
    r.llm_submit_pairs_multi_batch(PAIRS, MODEL, output_dir=tmp_path / "said", include_raw=True)
    done = r.llm_resume_multi_batches(output_dir=tmp_path / "said", interval_seconds=0.01)
    assert all(map(is_reply, done.combined["raw_response"]))
    r.llm_submit_pairs_multi_batch(PAIRS, MODEL, output_dir=tmp_path / "not")
    options = {"output_dir": tmp_path / "not", "interval_seconds": 0.01}
    assert "raw_response" not in r.llm_resume_multi_batches(**options).combined.columns
    assert all(map(is_reply, r.llm_resume_multi_batches(**options, include_raw=True).combined["raw_response"]))


@pytest.mark.usefixtures("server")
def test_raw_replies_of_a_batch_that_was_not_waited_for(tmp_path):
    made = r.llm_submit_pairs_batch(PAIRS, "openai", MODEL, include_raw=True, poll=False, run=tmp_path / "r.db")
    found = next(table for _ in range(50) if (table := r.llm_download_batch_results(made)).height == 6)
    assert all(map(is_reply, found["raw_response"]))


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("kept", [False, True])
def test_raw_replies_of_an_adaptive_run(kept, tmp_path, caplog):
    texts = [{"ID": f"t{n}", "text": "word " * n} for n in range(1, 5)]
    options = {"n_steps": 5, "fit_fn": "laplace", "progress": "none", "run": tmp_path / "run.db" if kept else None}
    out = ps.adaptive_rank(texts, model=MODEL, include_raw=True, **options)
    raw, steps = out.logs["raw_responses"], out.logs["step_log"]
    assert raw.columns == ["step_id", "ID1", "ID2", "better_id", "outcome", "raw_response"]
    assert raw.select("step_id", "ID1", "ID2").rows() == steps.select("step_id", "A_id", "B_id").rows()
    assert all(map(is_reply, raw["raw_response"]))
    assert "raw_responses" not in ps.adaptive_rank(texts, model=MODEL, n_steps=1, progress="none").logs
    silent = ps.adaptive_rank(texts, judge="lexical", include_raw=True, n_steps=3, fit_fn="laplace", progress="none")
    assert silent.logs["raw_responses"]["raw_response"].null_count() == 3
