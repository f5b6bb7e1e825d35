"""Columns are known, or certain, or asked for; never the second one because it is the second."""

from __future__ import annotations

import json

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.columns import picked, with_paths
from pairscale.core.errors import TableError, UnsureColumnError

LONG = "A sentence that is long enough to be a text and not a name: number {}."
CLASS = pl.DataFrame(
    {
        "student_id": ["s1", "s2", "s3"],
        "name": ["Ann Lee", "Bob Roe", "Cem Tan"],
        "class": ["7b", "7b", "7c"],
        "essay": [LONG.format(at) for at in range(3)],
    }
)


def unsure(frame: pl.DataFrame, argument: str, columns: list[str], **given: str) -> str:
    with pytest.raises(UnsureColumnError) as caught:
        ps.read_samples(frame, **given)
    error = caught.value
    assert error.argument == argument
    assert list(error.columns) == columns
    assert f"name it (`{argument}=`)" in str(error)
    for name in frame.columns:
        assert repr(name) in str(error)
    return str(error)


def test_the_class_list():
    """The names were ranked once, because they stood in the second column."""
    report = ps.inspect_samples(CLASS)
    assert report.samples.columns == ["ID", "text", "name", "class"]
    assert report.samples["ID"].to_list() == ["s1", "s2", "s3"]
    assert report.samples["text"].to_list() == CLASS["essay"].to_list()
    assert str(report) == (
        "3 texts: 1 table; ID = column student_id (by its name); text = column essay (the only column with long texts)"
        "; other columns kept: name, class"
    )


def test_a_guess_is_said_and_a_known_name_is_not(caplog):
    ps.read_samples(CLASS)
    assert [record.getMessage() for record in caplog.records] == [f"the table: {ps.inspect_samples(CLASS)}"]
    caplog.clear()
    ps.read_samples(CLASS.rename({"student_id": "ID", "essay": "text"}))
    ps.read_samples(CLASS, id_col="name", text_col="essay")
    assert not caplog.records


def test_no_column_of_long_texts():
    short = CLASS.with_columns(essay=pl.lit("short"))
    assert ps.inspect_samples(short).text_from == "column essay (by its name)"
    unsure(short.rename({"essay": "x"}), "text_col", ["student_id", "name", "class", "x"])
    unsure(short.with_columns(answer=pl.lit("y")), "text_col", ["essay", "answer"])


def test_ids_that_could_be_several_columns():
    assert ps.inspect_samples(CLASS.drop("student_id")).id_from == (
        "column name (the only column with another value in every row)"
    )
    unsure(CLASS.rename({"student_id": "pupil"}), "id_col", ["pupil", "name"])
    unsure(CLASS.drop("student_id", "name").with_columns(grade=pl.lit(1)), "id_col", ["class", "grade"])
    twice = CLASS.with_columns(exam_id=pl.Series(["x", "y", "z"]))
    unsure(twice, "id_col", ["student_id", "name", "exam_id"])
    same = CLASS.with_columns(exam_id=pl.lit("x"))
    assert ps.inspect_samples(same).id_from == "column student_id (by its name)"


@pytest.mark.parametrize("name", ["studentId", "StudentID", "student id", "student-id", "id_student", "ID2"])
def test_names_of_ids(name):
    assert ps.inspect_samples(CLASS.rename({"student_id": name})).id_from == f"column {name} (by its name)"


def test_columns_are_chosen_before_cells_become_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"pupil_id,grade,essay\n007,1,{LONG}\n7,2,{LONG}x\n", "utf-8")
    assert ps.read_samples(path)["ID"].to_list() == ["007", "7"]


# JSON.

ROW = {"meta": {"id": 7, "who": ["Ann"]}, "turns": [{"said": "Hello."}, {"said": "Bye."}], "a.b": "dot"}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("meta.id", 7),
        ("$.meta.id", 7),
        ("meta.who[0]", "Ann"),
        ("meta.who.0", "Ann"),
        ("$.turns[1].said", "Bye."),
        ("turns[9].said", None),
        ("turns.said", None),
        ("meta.id.more", None),
        ("meta.who[0][0]", None),
        ("nothing", None),
    ],
)
def test_paths(path, found):
    assert picked(ROW, path) == found


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_columns_by_path_in_files(message_snapshot, tmp_path, suffix):
    rows = [{"meta": {"id": at}, "turns": [{"said": f"Text {at}."}]} for at in range(3)]
    path = tmp_path / f"a.{suffix}"
    path.write_text(json.dumps(rows) if suffix == "json" else "\n".join(map(json.dumps, rows)), "utf-8")
    found = ps.read_samples(path, id_col="meta.id", text_col="$.turns[0].said")
    assert found.select("ID", "text").rows() == [(str(at), f"Text {at}.") for at in range(3)]
    memory = ps.read_samples(rows, id_col="meta.id", text_col="$.turns[0].said")
    assert memory.select("ID", "text").equals(found.select("ID", "text"))
    with pytest.raises(TableError) as refused:
        ps.read_samples(path, id_col="meta.name", text_col="$.turns[0].said")
    message_snapshot(refused)


def test_a_column_with_a_dot_in_its_name_goes_first():
    assert with_paths([ROW], ["a.b", None, 3], "x") == [ROW]
    assert with_paths([], ["meta.id"], "x") == []
