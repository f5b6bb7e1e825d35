"""What providers say of batches and in lines of results, in any shape: it is read, or said to be unreadable."""

import asyncio
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.collect.batch.files import read_lines
from pairscale.providers.batches import (
    BATCH_PROVIDERS,
    ENDED,
    BatchJob,
    Draft,
    Line,
    batch_format,
    seconds_of,
    state_of,
)
from pairscale.providers.client import ProviderError

TIMES = {"openai": "created_at", "anthropic": "created_at", "gemini": "createTime", "together": "created_at"}
NAMES = (
    "id", "name", "status", "processing_status", "state", "metadata", "request_counts", "total", "failed", "errored",
    "batchStats", "requestCount", "failedRequestCount", "created_at", "expires_at", "createTime", "job_deadline",
    "errors", "error", "data", "message", "response", "output", "dest", "responsesFile", "results_url",
    "output_file_id", "error_file_id", "displayName", "pairscale",
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-1, 600)
    | st.floats()
    | st.sampled_from(("completed", "ended", "b-1", "", "12", "2026-11-16T09:00:00Z", "yesterday", "9" * 5_000))
    | st.just(10**400)
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=15,
)


def read(provider: str, document: object) -> BatchJob:
    return batch_format(provider).job(document)  # type: ignore[attr-defined]


@pytest.mark.parametrize("provider", BATCH_PROVIDERS)
@given(document=DOCUMENTS)
def test_any_document_is_a_batch_or_says_that_it_is_none(provider, document):
    error = job = None
    try:
        job = read(provider, document)
    except ProviderError as stopped:
        error = stopped
    if job is None:
        assert (error.code, error.failure) == ("parse_error", "transient")
        assert error.message.startswith(f"{provider}: the reply cannot be read (")
        return
    assert isinstance(job.id, str)
    assert job.id
    assert job.ended == (job.state in ENDED)
    for moment in (job.created_at, job.expires_at):
        assert moment is None or math.isfinite(moment)


@pytest.mark.parametrize("provider", BATCH_PROVIDERS)
def test_a_batch_without_a_name_or_with_a_time_that_is_none(provider):
    named = {"name": "batches/b-1"} if provider == "gemini" else {"id": "b-1"}
    assert read(provider, named).created_at is None
    assert read(provider, {**named, TIMES[provider]: "1970-01-01T00:01:00Z"}).created_at == 60.0
    for document, why in (
        ({}, "it has no (id|name)"),
        ({next(iter(named)): None}, "it has no (id|name)"),
        ([named], "it has no (id|name)"),
        ({**named, TIMES[provider]: "yesterday"}, "Invalid isoformat string: 'yesterday'"),
        ({**named, TIMES[provider]: math.inf}, "inf is no moment"),
    ):
        with pytest.raises(ProviderError, match=why):
            read(provider, document)


def test_seconds():
    assert [seconds_of(moment) for moment in (None, "", 12, 1.5, "1970-01-01T00:00:00+00:00")] == [
        None, None, 12.0, 1.5, 0.0,
    ]  # fmt: skip


class _Saying:
    """A connection on which every reply says nothing at all."""

    def form(self, *_args):
        return None

    def lines(self, *_args, **_more):
        return None

    async def json(self, *_args, **_more):
        return {}

    async def call(self, *_args, accept=(), **_more):
        return accept[-1] if accept else 200, {"X-Goog-Upload-URL": "https://there"}, {}


@pytest.mark.parametrize("provider", ["openai", "gemini", "together"])
def test_an_upload_that_gets_no_name_may_pass(message_snapshot, provider, tmp_path):
    path = tmp_path / "requests.jsonl"
    path.write_text("{}\n", "utf-8")
    draft = Draft("k", "m", "/v1/chat/completions", path, 1, 0.0)
    http = _Saying()
    http.provider = None
    with pytest.raises(ProviderError) as stopped:
        asyncio.run(batch_format(provider).upload(http, draft))
    message_snapshot(stopped)
    assert stopped.value.failure == "transient"


# Lines of results

LINE_NAMES = (
    "custom_id", "key", "result", "type", "response", "error", "status_code", "body", "message", "code", "status",
    "param", "errors", "data", "errored", "detail",
)  # fmt: skip
WORDS = ("succeeded", "errored", "expired", "canceled", "batch_expired", "invalid_request_error", "k-1", "", "400")
LINE_LEAVES = LEAVES | st.sampled_from(WORDS) | st.text(max_size=5)
LINE_DOCUMENTS = st.recursive(
    LINE_LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(LINE_NAMES) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("provider", BATCH_PROVIDERS)
@given(document=LINE_DOCUMENTS)
def test_any_document_is_a_line_or_none(provider, document, tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "results.jsonl"
    path.write_text(json.dumps(document) + "\n", "utf-8")
    found = list(read_lines(path, batch_format(provider)))
    assert len(found) == 1
    line = found[0]
    assert isinstance(line, (Line, str))
    if isinstance(line, Line):
        assert line.kind in {"succeeded", "errored", "expired", "cancelled"}
        assert isinstance(line.custom_id, str)
        assert line.status is None or isinstance(line.status, int)
        assert line.kind == "succeeded" or line.error


@pytest.mark.parametrize("raw", ["[" * 100_000, '{"custom_id": ' + "9" * 5_000 + "}", "nonsense", '"text"', "\x00"])
def test_lines_that_are_hard_to_read(raw, tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(f"{raw}\n", "utf-8")
    for provider in BATCH_PROVIDERS:
        assert next(read_lines(path, batch_format(provider))).startswith("line 1: ")


@pytest.mark.parametrize("provider", ["openai", "gemini", "together"])
def test_an_error_with_a_status_that_is_no_number_stays_an_error_of_its_request(provider, tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(
        '{"key": "k-1", "error": {"code": Infinity}, "custom_id": "k-1", "response": {"status_code": Infinity}}\n'
    )
    [line] = read_lines(path, batch_format(provider))
    assert (line.custom_id, line.kind, line.status) == ("k-1", "errored", None)


@pytest.mark.parametrize("status", [10**30, -1, "200", True])
def test_a_status_that_is_none_is_left_out(status, tmp_path):
    """No run file holds such numbers."""
    path = tmp_path / "results.jsonl"
    row = {"custom_id": "k-1", "response": {"status_code": status, "body": {}}}
    path.write_text(f"{json.dumps(row)}\n", "utf-8")
    line, *_ = read_lines(path, batch_format("openai"))
    assert line.status is None


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("in_progress", "running"), ("IN_PROGRESS", "running"), ("JOB_STATE_QUEUED", "validating"),
        ("BATCH_STATE_PARTIALLY_SUCCEEDED", "partly"), ("canceling", "finishing"), ("a new word", "running"),
        (None, "running"), (math.nan, "running"),
    ],
)  # fmt: skip
def test_states_by_their_words(word, state):
    assert state_of(word) == state
    assert (state in ENDED) == (state == "partly")
