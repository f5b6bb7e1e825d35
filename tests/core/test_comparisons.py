"""What a comparison is: shapes of results, keys, the tables that models take, and conditions that never change."""

from __future__ import annotations

import logging
import math
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests import strategies
from tests.strategies import golden

import pairscale as ps
from pairscale.core.comparisons import ERROR_CODES, as_comparisons, key_expressions, ordered_key
from pairscale.core.errors import InputError, TableError
from pairscale.core.files import read_table
from pairscale.core.provenance import Provenance, fingerprint, utc_now
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

WON = [("a", "b", "a"), ("b", "c", "c"), ("c", "a", None)]
SHAPES = {
    "ours": rows(*WON),
    "canonical": [{"A_id": a, "B_id": b, "better_id": w} for a, b, w in WON],
    "better_sample": [{"ID1": a, "ID2": b, "better_sample": {a: "SAMPLE_1", b: "SAMPLE_2"}.get(w)} for a, b, w in WON],
    "objects": [{"object1": a, "object2": b, "result": {a: 1, b: 0}.get(w, 0.5)} for a, b, w in WON],
    "objects, missing": [{"object1": a, "object2": b, "result": {a: "1", b: "0"}.get(w, "NA")} for a, b, w in WON],
    "empty string": rows(*((a, b, w or "") for a, b, w in WON)),
    "NA": rows(*((a, b, w or "NA") for a, b, w in WON)),
    "pandas": pd.DataFrame(rows(*WON)),
    "arrow": pl.DataFrame(rows(*WON)).to_arrow(),
    "columns": {"ID1": ["a", "b", "c"], "ID2": ["b", "c", "a"], "better_id": ["a", "c", None]},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_says_the_same(shape):
    assert as_comparisons(SHAPES[shape]).select("ID1", "ID2", "better_id").rows() == WON


def test_a_csv_of_the_r_package(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(
        '"","ID1","ID2","model","status_code","error_message","better_sample","better_id","total_tokens"\n'
        '"1","007","008","gpt",200,NA,"SAMPLE_1","007",12\n'
        '"2","007","NA","gpt",200,NA,"SAMPLE_2","NA",14\n'
        '"3","008","009","gpt",500,"down",NA,NA,NA\n'
    )
    frame = as_comparisons(read_table(path))
    assert frame.select("ID1", "ID2", "better_id").rows() == [
        ("007", "008", "007"),
        ("007", "NA", "NA"),
        ("008", "009", None),
    ]
    assert frame["total_tokens"].to_list() == [12, 14, None]
    assert frame["error_message"].to_list() == [None, None, "down"]


@pytest.mark.parametrize("better", [[1, None], [1.0, None], [1.0, math.nan], ["1", None]])
def test_ids_that_are_numbers_are_the_same_ids_in_every_column(better):
    frame = as_comparisons({"ID1": [1, 2], "ID2": [2.0, 3.0], "better_id": better})
    assert frame.rows() == [("1", "2", "1"), ("2", "3", None)]


def test_true_and_false_are_results():
    frame = as_comparisons({"object1": ["a", "a"], "object2": ["b", "b"], "result": [True, False]})
    assert frame["better_id"].to_list() == ["a", "b"]


@pytest.mark.parametrize(
    ("results", "says"),
    [
        ([], "results: columns none are not results; expected ID1 ID2 better_id, ID1 ID2 better_sample"),
        ([{"x": 1}], "results: columns 'x' are not results; expected ID1 ID2 better_id, ID1 ID2 better_sample"),
        (
            [{"ID1": "a", "ID2": "b"}],
            "results: columns 'ID1', 'ID2' are not results; expected ID1 ID2 better_id",
        ),
        ([{"winner": "a", "loser": None}], "results: column 'loser' is empty in row 1"),
        ([{"A_id": "a", "B_id": " ", "better_id": "a"}], "results: column 'B_id' is empty in row 1"),
        ([{"object1": None, "object2": "b", "result": 1}], "results: column 'object1' is empty in row 1"),
        ([{"object1": "a", "object2": "b", "result": 2}], "results: result is '2' in row 1; it must be 1 .*0.5"),
        ([{"object1": "a", "object2": "b", "result": "won"}], "results: result is 'won' in row 1"),
        ([{"object1": "a", "object2": "b", "result": -1.0}], "results: result is '-1.0' in row 1"),
        ([{"ID1": "a", "ID2": "b", "better_id": ["a"]}], "results: column 'better_id' holds List"),
    ],
)
def test_results_that_are_none_are_refused_by_name(results, says):
    with pytest.raises(TableError, match=f"^{says}[^\n]*$"):
        as_comparisons(results)


def test_ties_and_unknown_winners_are_never_wins(caplog):
    caplog.set_level(logging.WARNING, "pairscale")
    ties = [{"object1": "a", "object2": "b", "result": result} for result in (1, 0.5, 0, None)]
    assert ps.build_bt_data(ties).rows() == [("a", "b", 1.0), ("a", "b", 0.0)]
    assert ps.build_elo_data(ties).rows() == [("a", "b"), ("b", "a")]
    assert [record.getMessage()[:24] for record in caplog.records] == ["left out 2 of 4 rows: a "] * 2


@pytest.mark.slow
@given(strategies.pairs(), st.data())
def test_the_three_tables_agree(pairs, data):
    winners = [data.draw(st.sampled_from([row["ID1"], row["ID2"]])) for row in pairs.iter_rows(named=True)]
    results = pairs.select("ID1", "ID2").with_columns(better_id=pl.Series(winners, dtype=pl.String))
    bt, elo, canonical = ps.build_bt_data(results), ps.build_elo_data(results), ps.build_btl_results_data(results)
    assert canonical.select("A_id", "B_id", "better_id").rows() == results.rows()
    for (a, b, better), (one, two, won), (winner, loser), position in zip(
        results.iter_rows(), bt.iter_rows(), elo.iter_rows(), canonical["winner_pos"], strict=True
    ):
        assert (one, two) == (a, b)
        assert {winner, loser} == {a, b}
        assert better == winner == (a if won == 1.0 else b) == (a, b)[position - 1]
    assert_frame_equal(ps.build_btl_results_data(canonical), canonical)


# Canonical results.


def test_options_of_the_canonical_table():
    start = datetime(2024, 2, 29, 23, 59, 59, 500, tzinfo=UTC)
    result = ps.build_btl_results_data(
        rows(("a", "b", "a"), ("b", "a", "a")),
        phase="phase3",
        backend="openai",
        model="m",
        iter_start=np.int64(41),
        received_at_start=start,
    )
    assert result.select("phase", "backend", "model", "iter").rows() == [
        ("phase3", "openai", "m", 41),
        ("phase3", "openai", "m", 42),
    ]
    assert result["received_at"].to_list() == [start, start + timedelta(seconds=1)]


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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"phase": "phase4"}, "phase must be 'phase1', 'phase2' or 'phase3', not 'phase4'"),
        ({"phase": None}, "phase must be a text, not None"),
        ({"iter_start": 1.5}, "iter_start must be a whole number, not 1.5"),
        ({"iter_start": "1"}, "iter_start must be a whole number, not '1'"),
    ],
)
def test_bad_options_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        ps.build_btl_results_data(rows(("a", "b", "a")), **options)


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


def test_different_values_have_different_fingerprints():
    values = [
        None, True, False, 0, 1, 2**64, 2**64 + 1, 0.1, "", "0", "true", "null", [], {}, [[]], [None], [0], {"a": 0},
        {"a": [0]}, math.nan, math.inf, -math.inf, "é", "e\u0301", "\ud800", date(2020, 1, 1), Decimal("0.10"),
    ]  # fmt: skip
    assert len({fingerprint(value) for value in values}) == len(values)
    assert len(fingerprint("x", 40)) == 40


@pytest.mark.parametrize("value", [object(), lambda: None, {"deep": [object()]}])
def test_what_only_its_address_tells_apart_has_no_fingerprint(message_snapshot, value):
    with pytest.raises(InputError) as refused:
        fingerprint(value)
    message_snapshot(refused)


def test_provenance_says_when_and_with_which_version():
    record = Provenance("sirt", {"eps": 0.3}, 1)
    moment = datetime.fromisoformat(record.created_at)
    assert moment.utcoffset() == timedelta(0)
    assert len(record.created_at) == len(utc_now()) == len("2025-01-01T00:00:00.000000+00:00")
    assert record.version == ps.__version__


def test_notices_are_said_once_on_one_logger_and_returned(caplog):
    from pairscale.core.notices import notice

    assert notice("50% of {x} %s") == "50% of {x} %s"
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("pairscale", "WARNING", "50% of {x} %s")
    ]
