"""What a comparison is: shapes of results, keys, the tables that models take, and conditions that never change."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies
from tests.strategies import golden

import pairscale as ps
from pairscale.core.comparisons import ERROR_CODES, key_expressions, ordered_key
from pairscale.core.errors import InputError, TableError
from pairscale.core.provenance import fingerprint
from pairscale.core.tables import CANONICAL

CASE = golden("build_btl_results_data")


def rows(*triples: tuple) -> list[dict]:
    return [dict(zip(("ID1", "ID2", "better_id"), triple, strict=True)) for triple in triples]


# R's figures.


@pytest.mark.parametrize("name", ["build_bt_data", "build_elo_data"])
def test_model_tables_match_r_exactly_and_say_what_they_leave_out(name, caplog):
    case = golden(name)
    result = getattr(ps, name)(case["input"])
    assert result.columns == list(case["output"][0])
    assert result.to_dicts() == case["output"]
    messages = [record.getMessage() for record in caplog.records if record.name == "pairscale"]
    assert messages == ["left out 2 of 5 rows: a tie, no winner, or a winner that is not of the pair"]


def test_canonical_results_match_r_exactly():
    result = ps.build_btl_results_data(CASE["input"])
    assert dict(result.schema) == CANONICAL
    times = result["received_at"].dt.strftime("%Y-%m-%dT%H:%M:%S")
    assert result.with_columns(times).to_dicts() == CASE["output"]


def test_canonical_results_need_a_winner_in_every_row():
    with pytest.raises(TableError) as caught:
        ps.build_btl_results_data(CASE["bad_input"])
    assert str(caught.value) == (
        "results: better_id is not of its pair, or missing, in rows 3, 4 (first None); leave those rows out first"
    )


# Shapes.


def test_ties_and_unknown_winners_are_never_wins(caplog):
    caplog.set_level(logging.WARNING, "pairscale")
    ties = [{"object1": "a", "object2": "b", "result": result} for result in (1, 0.5, 0, None)]
    assert ps.build_bt_data(ties).rows() == [("a", "b", 1.0), ("a", "b", 0.0)]
    assert ps.build_elo_data(ties).rows() == [("a", "b"), ("b", "a")]
    assert [record.getMessage()[:24] for record in caplog.records] == ["left out 2 of 4 rows: a "] * 2


# Canonical results.


@pytest.mark.parametrize(
    "start",
    [
        datetime(2020, 1, 1, 12),  # noqa: DTZ001 (that is the question)
        datetime(2020, 1, 1, 12, tzinfo=UTC),
        datetime(2020, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(start):
    result = ps.build_btl_results_data(rows(("a", "b", "a")), received_at_start=start)
    assert result["received_at"][0] == datetime(2020, 1, 1, 12, tzinfo=UTC)


# Keys.


def keys(links: list[tuple[str, str]]) -> pl.DataFrame:
    ordered, unordered = key_expressions("a", "b")
    return pl.DataFrame(links, schema={"a": pl.String, "b": pl.String}, orient="row").select(o=ordered, u=unordered)


LINKS = st.lists(st.tuples(strategies.ids(), strategies.ids()), min_size=1, max_size=8)
SEPARATORS = st.text(":#%25A3a1", min_size=1, max_size=5)  # ids made of what keys are made of


@given(LINKS | st.lists(st.tuples(SEPARATORS, SEPARATORS), min_size=2, max_size=8))
def test_different_pairs_have_different_keys(links):
    frame = keys(links)
    assert len(set(frame["o"])) == len(set(links))
    assert len(set(frame["u"])) == len({frozenset(link) for link in links})
    assert frame["o"].to_list() == [ordered_key(a, b) for a, b in links]
    assert frame["u"].to_list() == [ordered_key(min(link), max(link)) for link in links]


@given(st.lists(st.lists(SEPARATORS, min_size=3, max_size=3, unique=True), min_size=2, max_size=6))
def test_pair_uids_never_collide(triples):
    links = [(a, b) for a, b, _ in triples] + [(b, c) for _, b, c in triples] + [(b, a) for a, b, _ in triples]
    result = ps.build_btl_results_data(rows(*((a, b, a) for a, b in links)))
    assert result["pair_uid"].n_unique() == len(links)


@pytest.mark.parametrize(
    ("first", "second", "key"),
    [
        ("S1", "S2", "S1:S2"),
        ("a_b", "é-1.x y/z", "a_b:é-1.x y/z"),
        ("a:b", "c", "a%3Ab:c"),
        ("a", "b#1", "a:b%231"),
        ("a%3Ab", "c", "a%253Ab:c"),
    ],
)
def test_ordinary_ids_give_r_keys_and_separators_are_escaped(first, second, key):
    assert ordered_key(first, second) == key


# Outcomes and conditions.


def test_error_codes_of_the_contract():
    contract = "http_error timeout rate_limited parse_error invalid_winner refusal cancelled".split()
    assert list(ERROR_CODES[:7]) == contract


CONDITION = ps.Condition(
    "openai:gpt-5.1", "openai", "gpt-5.1", "overall_quality", "default", {"temperature": 0, "stop": ["a", "b"]}
)
PINNED = "5244d32e53b63e80"


def test_a_condition_has_the_same_id_in_every_process_for_ever():
    # Answers on people's disks are found by it: should this fail, the change loses them.
    assert CONDITION.condition_id == PINNED
    code = (
        "import pairscale as ps; s = {'stop': ('a', 'b'), 'temperature': 0.0}\n"
        "print(ps.Condition('openai:gpt-5.1', 'openai', 'gpt-5.1', 'overall_quality', 'default', s).condition_id)\n"
        "print(ps.Condition('x', settings={'set': {'a', 'b', 'c', 'd'}}).condition_id)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs.pop().split()[0] == PINNED


@pytest.mark.parametrize(
    "change",
    [
        {"judge_id": "openai:gpt-5.1-mini"},
        {"backend": "together"},
        {"model": None},
        {"trait": "clarity"},
        {"trait": None},
        {"template_id": "concise"},
        {"template_id": None},
        {"settings": {}},
        {"settings": {"temperature": 0.1, "stop": ["a", "b"]}},
        {"settings": {"temperature": 0, "stop": ["b", "a"]}},
        {"settings": {"temperature": 0, "stop": ["a", "b"], "top_p": None}},
        {"settings": {"temperature": "0", "stop": ["a", "b"]}},
        {"settings": {"temperature": False, "stop": ["a", "b"]}},
    ],
)
def test_any_changed_field_is_another_condition(change):
    assert replace(CONDITION, **change).condition_id != CONDITION.condition_id


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, np.int64(1)),
        (0.5, np.float32(0.5)),
        (0, -0.0),
        ([1, 2], (1, 2)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": {"x": 1}}, MappingProxyType({"a": MappingProxyType({"x": 1})})),
        ({"a", "b", "c"}, frozenset("cba")),
        ({1: "a", "b": 2}, {"b": 2, "1": "a"}),
    ],
)
def test_equal_values_have_equal_fingerprints(one, other):
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize("value", [object(), lambda: None, {"deep": [object()]}])
def test_what_only_its_address_tells_apart_has_no_fingerprint(message_snapshot, value):
    with pytest.raises(InputError) as refused:
        fingerprint(value)
    message_snapshot(refused)
