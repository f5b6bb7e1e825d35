"""Any kind of table becomes one of ours, or is refused by name."""

from __future__ import annotations

import math
from datetime import date
from types import MappingProxyType

import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pairscale.core.errors import TableError
from pairscale.core.tables import PAIRS, RESULTS, id_text, require_ids, to_frame

ROWS = [{"ID": "a", "n": 1, "x": 0.5}, {"ID": "b", "n": None, "x": 1.5}]
FRAME = pl.DataFrame(ROWS)
KINDS = {
    "polars": FRAME,
    "lazy": FRAME.lazy(),
    "arrow": FRAME.to_arrow(),
    "pandas": FRAME.to_pandas(use_pyarrow_extension_array=True),
    "rows": ROWS,
    "tuple of rows": tuple(MappingProxyType(row) for row in ROWS),
    "columns": FRAME.to_dict(as_series=False),
    "proxy of columns": MappingProxyType(FRAME.to_dict(as_series=False)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_is_the_same_frame(kind):
    assert_frame_equal(to_frame(KINDS[kind]), FRAME)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "it is a NoneType; give a pandas, Polars or Arrow table, or a list of dicts"),
        ("a.csv", "it is a str; give"),
        (b"bytes", "it is a bytes; give"),
        (7, "it is a int; give"),
        ([1, 2], "it is a list; give"),
        ([{"ID": "a"}, ["b"]], "it is a list; give"),
        (iter([{"ID": "a"}]), "it is a list_iterator; give"),
        (pd.Series(["a"]), "it is a Series; give"),
        ({"ID": ["a", "b", "c"], "text": ["x", "y"]}, "it cannot be used as a table: .*height"),
        (FRAME.lazy().select("nowhere"), 'it cannot be used as a table: unable to find column "nowhere"'),
        ([{"ID": "\ud800"}], "it cannot be used as a table: .*surrogates not allowed"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "it cannot be used as a table: .*unique string names"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(data, says):
    with pytest.raises(TableError, match=f"^{says}[^\n]*$"):
        to_frame(data, "it")


def test_pandas_columns_of_numbers_and_text_become_text():
    frame = to_frame(pd.DataFrame({"ID": [7, "x", None, math.nan], "n": [1, 2, 3, 4]}))
    assert frame.rows() == [("7", 1), ("x", 2), (None, 3), (None, 4)]


def test_the_named_index_of_pandas_is_a_column_and_any_other_is_none():
    data = pd.DataFrame({"text": ["A", "B"]}, index=pd.Index(["x", "y"], name="ID"))
    assert to_frame(data).rows() == [("x", "A"), ("y", "B")]
    assert to_frame(data.rename_axis(None)).columns == ["text"]
    assert to_frame(data.rename_axis("text")).rows() == [("A",), ("B",)]
    two = pd.DataFrame({"v": [1]}, index=pd.MultiIndex.from_tuples([("x", "y")], names=["ID1", "ID2"]))
    assert to_frame(two).rows() == [("x", "y", 1)]


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        (pl.Series(["007", " a", "NA"]), ["007", " a", "NA"]),
        (pl.Series([7, -1]), ["7", "-1"]),
        (pl.Series([7.0, None, math.nan, -0.0]), ["7", None, None, "0"]),
        (pl.Series([7.0, 7.5]), ["7", "7.5"]),
        (pl.Series([2.0**53, math.inf]), ["9007199254740992", "inf"]),
        (pl.Series([1e300]), ["1e+300"]),
        (pl.Series([True, False]), ["true", "false"]),
        (pl.Series([date(2020, 1, 2)]), ["2020-01-02"]),
        (pl.Series(["b", "a"], dtype=pl.Categorical), ["b", "a"]),
        (pl.Series([None, None]), [None, None]),
        (pl.Series([], dtype=pl.Float64), []),
    ],
)
def test_ids_become_the_text_that_a_person_would_write(ids, text):
    assert id_text(ids).to_list() == text
    assert id_text(ids).dtype == pl.String


def test_missing_ids_name_their_rows(message_snapshot):
    frame = pl.DataFrame({"ID": ["a", None, "", " \t", "\u00a0", "b", "\n", None, None]})
    with pytest.raises(TableError) as refused:
        require_ids(frame, ["ID"], "it")
    message_snapshot(refused)
    with pytest.raises(TableError) as refused:
        require_ids(frame.head(2), ["ID"], "it")
    message_snapshot(refused)


def test_the_columns_of_the_contract_stand_in_its_order():
    assert list(PAIRS) == ["ID1", "text1", "ID2", "text2"]
    promised = (
        "custom_id ID1 ID2 model object_type status_code error_message thoughts content better_sample better_id "
        "prompt_tokens completion_tokens total_tokens"
    )
    assert list(RESULTS)[:14] == promised.split()
    assert list(RESULTS)[-6:] == ["outcome", "judge_id", "trait", "template_id", "condition_id", "probability"]
