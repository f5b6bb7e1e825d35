"""Lines of results in any shape: a line is read, or said to be none; nothing else comes of it."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale.collect.batch.files import read_lines
from pairscale.providers.batches import BATCH_PROVIDERS, ENDED, Line, batch_format, state_of

NAMES = (
    "custom_id", "key", "result", "type", "response", "error", "status_code", "body", "message", "code", "status",
    "param", "errors", "data", "errored", "detail",
)  # fmt: skip
WORDS = ("succeeded", "errored", "expired", "canceled", "batch_expired", "invalid_request_error", "k-1", "", "400")
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-1, 600)
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=5)
    | st.just(10**400)
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("provider", BATCH_PROVIDERS)
@given(document=DOCUMENTS)
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
