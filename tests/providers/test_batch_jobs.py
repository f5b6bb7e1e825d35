"""What providers say of batches, in any shape: it is read, or said to be unreadable, and then it may pass."""

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.providers.batches import BATCH_PROVIDERS, ENDED, BatchJob, Draft, batch_format, seconds_of
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
