"""What a caller asks for happens: lines of progress, files removed, raw replies; or it is refused."""

import json

import pytest
from tests.batching import MODELS, pairs_of, simulator

from pairscale import r

PAIRS = pairs_of(4)  # 6 pairs
MODEL = MODELS["openai"]


@pytest.fixture
def server(monkeypatch):
    with simulator() as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


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
