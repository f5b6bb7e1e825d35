"""Tables through files and back, whole or not at all; texts stay texts."""

from __future__ import annotations

import csv
import errno
import math
import os
import stat
import subprocess
import sys
import zipfile
from datetime import date
from pathlib import Path

import fastexcel
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests import strategies

from pairscale.core import files
from pairscale.core.errors import FileFormatError
from pairscale.core.files import read_table, write_table

SUFFIXES = [".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx"]
once_per_example = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


# There and back.

# What no XML can hold, and so no workbook; everything else must survive.
NOT_IN_XML = "\ufffe\uffff"


@once_per_example
@example(texts=list(strategies.HOSTILE_TEXTS), ids=list(strategies.NASTY_IDS), suffix=".xlsx")
@example(texts=list(strategies.HOSTILE_TEXTS), ids=list(strategies.NASTY_IDS), suffix=".csv")
@example(texts=list(strategies.HOSTILE_TEXTS), ids=list(strategies.NASTY_IDS), suffix=".tsv")
@example(texts=list(strategies.HOSTILE_TEXTS), ids=list(strategies.NASTY_IDS), suffix=".jsonl")
@given(
    texts=st.lists(st.none() | strategies.texts(), min_size=1, max_size=6),
    ids=st.lists(strategies.ids(), min_size=1, max_size=6),
    suffix=st.sampled_from(SUFFIXES),
)
def test_texts_and_ids_survive_every_kind_of_file(tmp_path, texts, ids, suffix):
    rows = max(len(texts), len(ids))
    frame = pl.DataFrame(
        {
            "ID1": [ids[at % len(ids)] for at in range(rows)],
            "text1": [texts[at % len(texts)] for at in range(rows)],
            "number": range(rows),
        },
        schema={"ID1": pl.String, "text1": pl.String, "number": pl.Int64},
    )
    if suffix == ".xlsx":
        frame = frame.with_columns(pl.col(pl.String).str.replace_all(f"[{NOT_IN_XML}]", "?"))
    path = tmp_path / f"table{suffix}"
    assert write_table(frame, path) == path
    assert_frame_equal(read_table(path).cast({"text1": pl.String}), frame)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_types_survive(tmp_path, suffix):
    frame = pl.DataFrame(
        {"ID": ["a", "b"], "whole": [1, None], "real": [0.1, 1e-300], "flag": [True, None], "word": ["x", None]}
    )
    assert_frame_equal(read_table(write_table(frame, tmp_path / f"t{suffix}")), frame)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_single_column_keeps_its_rows(tmp_path, suffix):
    frame = pl.DataFrame({"ID": ["a", None, "b"]})
    result = read_table(write_table(frame, tmp_path / f"t{suffix}"))
    # Excel drops rows without any cell; no other kind of file may.
    assert result["ID"].to_list() == (["a", "b"] if suffix == ".xlsx" else ["a", None, "b"])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_lists_and_structs_are_json_in_a_cell(tmp_path, suffix):
    frame = pl.DataFrame(
        {"ID": ["a", "b"], "l": [[1, None], None], "s": [{"x": "é"}, {"x": None}], "d": [[date(2020, 1, 2)], []]}
    )
    result = read_table(write_table(frame, tmp_path / f"t{suffix}"))
    assert result.rows() == [("a", "[1, null]", '{"x": "é"}', '["2020-01-02"]'), ("b", None, '{"x": null}', "[]")]


# What a cell of a csv file is.


def guessed(tmp_path: Path, *cells: str, separator: str = ",") -> pl.Series:
    path = tmp_path / "g.csv"
    lines = [f"k{separator}v", *(f"x{separator}{cell}" for cell in cells)]
    path.write_text("\n".join(lines))
    return read_table(path)["v"]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "-2", ""], [1, -2, None]),
        (["1", "2.5", "NA"], [1.0, 2.5, None]),
        (["1e3", "inf"], [1000.0, math.inf]),
        (["TRUE", "false", "NA"], [True, False, None]),
        (["true", "1"], ["true", "1"]),
        (["1", "x"], ["1", "x"]),
        (["01", "2"], ["01", "2"]),
        (["-007", "2"], ["-007", "2"]),
        (["0", "0.5"], [0.0, 0.5]),
        (["12345678901234567890", "1"], ["12345678901234567890", "1"]),
        (["9223372036854775807"], [9223372036854775807]),
        (["12345678901234567", "0.5"], ["12345678901234567", "0.5"]),
        (["2020-01-01"], ["2020-01-01"]),
        (["", "NA"], [None, None]),
        (["1_000"], ["1_000"]),
        ([" 1"], [" 1"]),
    ],
)
def test_numbers_are_guessed_and_codes_are_not(tmp_path, cells, values):
    result = guessed(tmp_path, *cells)
    assert result.to_list() == values
    assert [type(value) for value in result] == [type(value) for value in values]


def test_a_large_csv_is_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BLOCK", 7)
    frame = pl.DataFrame({"ID": [f"{n:03d}" for n in range(50)], "n": [None, *range(49)]})
    assert_frame_equal(read_table(write_table(frame, tmp_path / "a.csv")), frame)


# Excel.

FORMULAS = ["=1+1", "{=1+1}", "+1", "-1", "@SUM(A1)", "http://example.org", "mailto:a@b.c", "internal:Sheet1!A1", "1"]


def test_no_text_becomes_a_formula_a_link_or_a_number(tmp_path):
    path = write_table(pl.DataFrame({"=2+2": FORMULAS}), tmp_path / "a.xlsx")
    assert fastexcel.read_excel(str(path)).load_sheet(0).to_polars().to_dict(as_series=False) == {"=2+2": FORMULAS}
    with zipfile.ZipFile(path) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
        assert "xl/worksheets/_rels/sheet1.xml.rels" not in archive.namelist()  # where links would be
    assert sheet.count('t="s"') == len(FORMULAS) + 1
    assert "<f>" not in sheet
    assert "<hyperlink" not in sheet


def test_what_excel_would_cut_off_is_refused(message_snapshot, tmp_path):
    path = tmp_path / "a.xlsx"
    fits = "x" * 32_767
    assert read_table(write_table(pl.DataFrame({"ID": ["a"], "text": [fits]}), path))["text"][0] == fits
    kept = path.read_bytes()
    for frame in (pl.DataFrame({"text": ["A", fits + "x"]}), pl.DataFrame({"n": range(1_048_576)})):
        with pytest.raises(FileFormatError) as refused:
            write_table(frame, path)
        message_snapshot(refused)
    assert path.read_bytes() == kept


# Whole or not at all.


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_the_old_file_and_is_said(tmp_path, suffix, monkeypatch):
    path = tmp_path / f"a{suffix}"
    path.write_text("old")

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileFormatError) as caught:
        write_table(pl.DataFrame({"ID": ["a"]}), path)
    assert str(caught.value) == f"{path} cannot be written: No space left on device"
    assert path.read_text() == "old"
    assert names_in(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_targets_that_cannot_be_written_are_named(message_snapshot, tmp_path, suffix):
    frame = pl.DataFrame({"ID": ["a"]})
    missing = tmp_path / "nowhere" / f"a{suffix}"
    with pytest.raises(FileFormatError) as caught:
        write_table(frame, missing)
    assert f"{missing} cannot be written: " in str(caught.value)
    assert f"there is no folder {missing.parent}, so make it first" in str(caught.value)
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    with pytest.raises(FileFormatError) as refused:
        write_table(frame, folder)
    message_snapshot(refused)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(FileFormatError) as refused:
        write_table(frame, file / f"a{suffix}")
    message_snapshot(refused)
    assert names_in(tmp_path) == ["file", folder.name]
    assert not names_in(folder)


def test_a_pipe_is_not_replaced(message_snapshot, tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with pytest.raises(FileFormatError) as refused:
        write_table(pl.DataFrame({"a": [1]}), pipe)
    message_snapshot(refused)
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.csv"]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_permissions_and_links_stay(tmp_path):
    code = (
        "import os, sys, polars as pl; from pairscale.core.files import write_table; os.umask(0o077);"
        "write_table(pl.DataFrame({'ID': ['a']}), sys.argv[1])"
    )
    path = tmp_path / "a.csv"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600  # the texts of pupils are nobody else's business
    path.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to("a.csv")
    write_table(pl.DataFrame({"ID": ["new"]}), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert read_table(path)["ID"].to_list() == ["new"]


# Text that a spreadsheet would run

HOSTILE = [
    "=1+1", "+cmd|'/c calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "'=1", "''-x", "- a list", "-1.5", "+7", "plain",
    "'quoted'",
]  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_no_cell_of_a_csv_file_is_a_formula_and_every_text_comes_back(tmp_path, ending):
    table = pl.DataFrame(
        {"ID": HOSTILE, "text": HOSTILE[::-1], "@note": ["=x"] * len(HOSTILE), "theta": [-1.5] * len(HOSTILE)}
    )
    file = write_table(table, tmp_path / f"table.{ending}")
    separator = "," if ending == "csv" else "\t"
    with file.open(newline="", encoding="utf-8") as lines:
        cells = [cell for record in csv.reader(lines, delimiter=separator) for cell in record]
    assert {cell for cell in cells if cell[0] in "=+-@\t\r"} == {"-1.5", "+7"}
    assert "'=1+1" in cells
    assert "''=1" in cells
    assert read_table(file).equals(table)


@given(st.lists(st.text("=+-@\t\r' 1.ae\"", min_size=1), min_size=1))
def test_any_text_comes_back_from_a_csv_file(tmp_path_factory, texts):
    table = pl.DataFrame({"text": texts, "ID": [str(number) for number in range(len(texts))]})
    assert read_table(write_table(table, tmp_path_factory.mktemp("cells") / "table.csv"))["text"].to_list() == texts
