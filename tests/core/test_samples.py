"""Samples from everywhere are the same samples, and what cannot be one is refused by name."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import polars as pl
import pytest
import xlsxwriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests import strategies

import pairscale as ps
from pairscale.core import samples as module
from pairscale.core.errors import FileFormatError, InputError, TableError
from pairscale.core.files import TABLE_SUFFIXES, write_table

FRAME = pl.DataFrame(
    {
        "ID": ["007", "b", "7"],
        "text": ["One, “two”.", "Line\nand line", "=1+1"],
        "grade": [8, None, 9],
        "score": [0.5, 1.5, None],
        "late": [True, None, False],
        "note": ["x", None, "y, z"],
    }
)
MEMORY = {
    "polars": FRAME,
    "lazy": FRAME.lazy(),
    "arrow": FRAME.to_arrow(),
    "pandas": FRAME.to_pandas(use_pyarrow_extension_array=True),
    "list of dicts": FRAME.to_dicts(),
    "dict of columns": FRAME.to_dict(as_series=False),
}


def refused(source: object, says: str, **options: object) -> str:
    """The message of the refusal: one line that contains ``says``."""
    with pytest.raises(InputError) as caught:
        ps.read_samples(source, **options)
    message = str(caught.value)
    assert says in message
    assert "\n" not in message
    assert len(message) < 500
    return message


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def workbook(path: Path, *rows: list) -> None:
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        for at, row in enumerate(rows):
            sheet.write_row(at, 0, row)


# The same from everywhere.


@pytest.mark.parametrize("kind", MEMORY)
def test_tables_in_memory(kind):
    assert_frame_equal(ps.read_samples(MEMORY[kind]), FRAME)
    assert_frame_equal(ps.read_samples_df(MEMORY[kind]), FRAME)


@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
@pytest.mark.parametrize("spelled", [str, Path])
def test_tables_in_files(tmp_path, suffix, spelled):
    path = write_table(FRAME, tmp_path / f"samples{suffix.upper()}")
    assert_frame_equal(ps.read_samples(spelled(path)), FRAME)


def test_a_folder(tmp_path):
    for name, text in FRAME.select("ID", "text").rows():
        written(tmp_path, f"{name}.txt", text)
    written(tmp_path, "photo.jpg", "no sample")
    written(tmp_path, ".hidden.txt", "no sample")
    (tmp_path / "folder.txt").mkdir()
    expected = FRAME.select("ID", "text").sort("ID")
    assert_frame_equal(ps.read_samples(tmp_path), expected)
    assert_frame_equal(ps.read_samples_dir(tmp_path), expected)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(samples=strategies.samples(min_size=1), suffix=st.sampled_from(TABLE_SUFFIXES))
def test_any_samples_survive_a_file(tmp_path, samples, suffix):
    samples = samples.select(
        pl.col("ID").str.replace_all("[\ufffe\uffff]", "?"), pl.col("text").str.replace_all("[\ufffe\uffff]", "?")
    )
    if samples["ID"].n_unique() == samples.height:
        assert_frame_equal(ps.read_samples(write_table(samples, tmp_path / f"s{suffix}")), samples)


# Which columns.

PUPILS = "grade,pupil,essay,school\n8,007,123,01\n9,7,1e3,02\n"
PUPIL_ROWS = [("007", "123", 8, "01"), ("7", "1e3", 9, "02")]


@pytest.mark.parametrize(
    "columns",
    [
        {"id_col": "pupil", "text_col": "essay"},
        {"id_col": 1, "text_col": 2},
        {"id_col": 1, "text_col": "essay"},
        {"id_col": "pupil", "text_col": 2},
    ],
)
def test_columns_by_name_and_by_position(tmp_path, columns):
    frame = ps.read_samples(written(tmp_path, "a.csv", PUPILS), **columns)
    assert frame.columns == ["ID", "text", "grade", "school"]
    assert frame.rows() == PUPIL_ROWS
    lines = "".join(
        json.dumps({"grade": grade, "pupil": name, "essay": text, "school": school}) + "\n"
        for name, text, grade, school in PUPIL_ROWS
    )
    assert ps.read_samples(written(tmp_path, "a.jsonl", lines), **columns).rows() == PUPIL_ROWS
    assert ps.read_samples(frame.rename({"ID": "pupil", "text": "essay"}), id_col="pupil", text_col="essay").equals(
        frame
    )


@pytest.mark.parametrize("header", ["ID,text", "id,Text", "iD,TEXT", "pupil,essay", "ID,x", "x,text", "x,answer"])
def test_the_usual_names_in_any_case_and_the_only_other_column(tmp_path, header):
    assert ps.read_samples(written(tmp_path, "a.csv", f"{header}\n007,0123\n")).rows() == [("007", "0123")]


@pytest.mark.parametrize("header", ["x,id", "text,pupil", "essay,pupil"])
def test_the_order_of_the_columns_says_nothing(tmp_path, header):
    assert ps.read_samples(written(tmp_path, "a.csv", f"{header}\n0123,007\n")).rows() == [("007", "0123")]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"id_col": "nobody"}, "samples: no column 'nobody' (id_col); it has 'ID', 'text'"),
        ({"text_col": "nothing"}, "samples: no column 'nothing' (text_col); it has 'ID', 'text'"),
        ({"id_col": 2}, "samples: no column '2' (id_col); it has 'ID', 'text'"),
        (
            {"text_col": -1},
            "text_col as a position must be a whole number of 0 or more, not -1",
        ),
        ({"id_col": 1}, "samples: the ids and the texts cannot both be column 'text'; name them"),
        (
            {"id_col": True},
            "id_col as a position must be a whole number of 0 or more, not True",
        ),
        (
            {"text_col": 0.5},
            "text_col as a position must be a whole number of 0 or more, not 0.5",
        ),
    ],
)
def test_columns_that_are_not_there(options, says):
    refused([{"ID": "a", "text": "A"}], says, **options)


def test_a_further_column_with_our_name_is_refused():
    rows = [{"ID": "1", "pupil": "a", "text": "A", "essay": "B"}]
    refused(rows, "samples: a further column is called ID or text; rename it or leave it out", id_col="pupil")


# Ids and texts.


@pytest.mark.parametrize(
    ("given_ids", "ids"),
    [
        (["007", "7"], ["007", "7"]),
        ([7, 8], ["7", "8"]),
        ([7.0, 8.0], ["7", "8"]),
        ([7.0, 8.5], ["7", "8.5"]),
        ([7, "x"], ["7", "x"]),
        ([" a", "a"], [" a", "a"]),
        (["NA", "null"], ["NA", "null"]),
    ],
)
def test_ids_are_text(tmp_path, given_ids, ids):
    rows = [{"ID": name, "text": "t"} for name in given_ids]
    assert ps.read_samples(rows)["ID"].to_list() == ids
    assert ps.read_samples(written(tmp_path, "a.json", json.dumps(rows)))["ID"].to_list() == ids
    workbook(tmp_path / "a.xlsx", ["ID", "text"], *([row["ID"], row["text"]] for row in rows))
    assert ps.read_samples(tmp_path / "a.xlsx")["ID"].to_list() == ids


def test_ids_in_json_that_are_no_text_and_no_number(tmp_path):
    path = written(tmp_path, "a.json", '[{"ID": true, "text": 1.5}, {"ID": 9007199254740993, "text": "x"}]')
    assert ps.read_samples(path).rows() == [("1", "1.5"), ("9007199254740993", "x")]
    path = written(tmp_path, "a.json", '[{"ID": "a", "text": ["A"]}]')
    refused(path, "a.json: column 'text' holds List(String), not text")


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (["a", "b", "a"], "samples: 'a' stands in more than one row; ids must be unique"),
        ([1, "1"], "samples: '1' stands in more than one row"),
        (["a", None, "", " "], "samples: column 'ID' is empty in rows 2, 3, 4; every row needs an id"),
    ],
)
def test_bad_ids_name_their_rows(ids, says):
    refused([{"ID": name, "text": "t"} for name in ids], says)


@pytest.mark.parametrize("blank", [None, "", " ", "\n\t", "\u00a0"])
def test_blank_texts_name_their_sample_and_row(blank):
    rows = [{"ID": "a", "text": "A"}, {"ID": "b", "text": blank}]
    refused(rows, "samples: no text for 'b' in row 2; leave the sample out")


@pytest.mark.slow
def test_a_text_may_have_5_mb_and_no_more(tmp_path):
    most = module.MAX_TEXT_BYTES
    assert most == 5_000_000
    euro = "€" * (most // 3)  # 3 bytes each
    fits = euro + "x" * (most - len(euro.encode()))
    assert ps.read_samples([{"ID": "a", "text": fits}])["text"][0] == fits
    says = "samples: the text of 'b' has more than 5,000,000 bytes"
    refused([{"ID": "a", "text": "A"}, {"ID": "b", "text": fits + "x"}], says)
    path = written(tmp_path, "big.txt", fits + "x")
    refused(tmp_path, f"{path.name}: it has more than 5,000,000 bytes")
    written(tmp_path, "big.txt", fits)
    assert ps.read_samples(tmp_path).height == 1
    written(tmp_path, "a.csv", f'ID,text\na,"{fits}"\n')  # beyond what Python's csv takes by itself
    assert ps.read_samples(tmp_path / "a.csv")["text"][0] == fits


# Encodings.

WESTERN = 'ID,text\n1,"Déjà vu: “Café” – naïve, Ääääh… ¡¡¡¡Olé!!!!, hæðóttur, 5 €"\n'


@pytest.mark.parametrize(
    ("codec", "mark"),
    [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"),
     ("utf-32-le", b"\xff\xfe\0\0"), ("utf-32-be", b"\0\0\xfe\xff")],
)  # fmt: skip
def test_unicode_is_read_without_a_word(tmp_path, codec, mark, caplog):
    text = WESTERN + "2,日本語 и русский\n"
    frame = ps.read_samples(written(tmp_path, "a.csv", mark + text.encode(codec)))
    assert frame["ID"].to_list() == ["1", "2"]
    assert frame["text"][1] == "日本語 и русский"
    assert not caplog.records
    single = tmp_path / "folder"
    single.mkdir()
    written(single, "a.txt", mark + "Zwölf".encode(codec))
    assert ps.read_samples(single).rows() == [("a", "Zwölf")]
    # Named, a mark is no part of the text either.
    assert ps.read_samples(single, encoding=codec).rows() == [("a", "Zwölf")]
    line = json.dumps({"ID": "ä", "text": "ö"}, ensure_ascii=False)
    assert ps.read_samples(written(tmp_path, "a.jsonl", mark + line.encode(codec))).rows() == [("ä", "ö")]


def test_windows_1252_is_guessed_and_said(tmp_path, caplog):
    path = written(tmp_path, "a.csv", WESTERN.encode("cp1252"))
    frame = ps.read_samples(path)
    assert frame["text"][0] == "Déjà vu: “Café” – naïve, Ääääh… ¡¡¡¡Olé!!!!, hæðóttur, 5 €"
    [record] = caplog.records
    assert (record.name, record.levelno) == ("pairscale", logging.WARNING)
    assert record.getMessage() == (
        f"{path} is not UTF-8; it was read as Windows-1252, for example 'Déjà' "
        "(if that is wrong, save it as UTF-8, or name its encoding where that is an option: `encoding=`)"
    )


FOREIGN = {
    "cp1251": "Это обычный русский текст о погоде.",
    "koi8-r": "Это обычный русский текст о погоде.",
    "cp1253": "Αυτό είναι ένα κείμενο για τον καιρό.",
    "shift-jis": "これは天気についての文章です。",
    "euc-jp": "これは天気についての文章です。",
    "gbk": "这是一篇关于天气的文章。",
}


@pytest.mark.parametrize("codec", FOREIGN)
@pytest.mark.parametrize("around", ["", "A long text in English around it. " * 40])
def test_other_alphabets_are_refused_and_can_be_named(tmp_path, codec, around, caplog):
    text = around + FOREIGN[codec]
    path = written(tmp_path, "a.csv", f"ID,text\n1,{text}\n".encode(codec))
    refused(
        path, f"{path} is not UTF-8 text; save it as UTF-8, or name its encoding, where that is an option (`encoding=`)"
    )
    assert ps.read_samples(path, encoding=codec).rows() == [("1", text)]
    path.unlink()
    path = written(tmp_path, "a.txt", text.encode(codec))
    refused(tmp_path, "a.txt: it is not UTF-8 text; save it as UTF-8")
    assert not caplog.records


@pytest.mark.parametrize(
    "data", [bytes(range(256)), b"\x89PNG\r\n\x1a\n" + bytes(range(200, 256)), b"PK\x03\x04\xff\xfe\x01"]
)
def test_binary_files_are_refused(tmp_path, data):
    written(tmp_path, "photo.txt", data)
    refused(tmp_path, "photo.txt: it")


@pytest.mark.parametrize("options", [{}, {"encoding": "utf-8"}, {"encoding": "latin-1"}])
def test_zero_bytes_are_no_text(tmp_path, options):
    path = written(tmp_path, "a.csv", b"ID,text\n1,a\0b\n")
    refused(path, f"{path} is not UTF-8 text", **options)


@pytest.mark.parametrize("encoding", ["klingon", "a\0b"])
def test_unknown_encodings_are_named(tmp_path, encoding):
    path = written(tmp_path, "a.csv", "ID,text\n1,A\n")
    refused(path, f"encoding {encoding!r} is unknown; try utf-8, utf-16, cp1252 or latin-1", encoding=encoding)


# Files of tables.


@pytest.mark.parametrize(
    "content",
    [
        'ID;text;p\n1;"a; b, c";1,5\n2;d;2\n',
        '"ID";"text";"p"\r\n"1";"a; b, c";"1,5"\r\n"2";"d";"2"\r\n',
        "ID\ttext\tp\n1\ta; b, c\t1.5\n2\td\t2\n",
        'ID,text,p\r1,"a; b, c",1.5\r2,d,2\r',
        '\n\nID,text,p\n\n1,"a; b, c",1.5\n\n2,d,2\n\n\n',
    ],
)
def test_the_ways_in_which_people_write_csv(tmp_path, content):
    frame = ps.read_samples(written(tmp_path, "a.csv", content))
    assert frame.rows() == [("1", "a; b, c", 1.5), ("2", "d", 2.0)]


@pytest.mark.parametrize(
    ("cell", "text"),
    [('"a ""b"" c"', 'a "b" c'), ('"two\nlines"', "two\nlines"), ('"two\r\nlines"', "two\r\nlines"),
     ('"a\n\nb"', "a\n\nb"), ('it is 5" long', 'it is 5" long'), ("NA", "NA"), (" padded ", " padded "), ('","', ",")],
)  # fmt: skip
def test_quotes_and_line_ends_in_a_cell(tmp_path, cell, text):
    path = written(tmp_path, "a.csv", f"ID,text,n\n1,{cell},2\n2,x,3\n")
    assert ps.read_samples(path).rows() == [("1", text, 2), ("2", "x", 3)]


BAD_FILES = [
    ("a.csv", "", " is empty; a table has named columns"),
    ("a.csv", " \n\n", " is empty; a table has named columns"),
    ("a.json", "", " is empty; a table has named columns"),
    ("a.json", "[]", " is empty; a table has named columns"),
    ("a.jsonl", "\n\n", " is empty; a table has named columns"),
    ("a.csv", "ID,text\n", ": no rows; give at least one sample"),
    ("a.csv", "ID,text", ": no rows; give at least one sample"),
    ("a.csv", "ID\na\n", ": no column is certainly the one; name it (`text_col=`)"),
    (
        "a.csv",
        "ID,text\n1,a\n2,b,c\n",
        ": line 3 has 3 cells, the header 2; a text with separators, quotes or line ends",
    ),
    ("a.csv", 'ID,text,n\n1,"a\nb",2\n2,b\n', ": line 4 has 2 cells, the header 3; a text with"),
    ("a.csv", 'ID,text\n1,"a\n2,b\n', ": line 3 is not csv: unexpected end of data; a text with"),
    ("a.csv", 'ID,text\n1,"a" b\n', ": line 2 is not csv: ',' expected after '\"'; a text with"),
    ("a.csv", "ID,text,text\n1,a,b\n", ": the header has 'text' more than once; rename one"),
    ("a.csv", "ID,text\n1,a\n1,b\n", ": '1' stands in more than one row; ids must be unique"),
    ("a.csv", "ID,text\n1,a\n,b\n", ": column 'ID' is empty in row 2; every row needs an id"),
    ("a.csv", 'ID,text\n1,a\n2,""\n', ": no text for '2' in row 2; leave the sample out"),
    ("a.jsonl", '{"ID": "a", "text": "A"}\n\n{"ID": \n', ": line 3 is not JSON that a table can hold: Expecting value"),
    (
        "a.jsonl",
        '{"ID": "a", "text": "A"}\n[1]\n',
        ' must hold JSON objects, one per row, such as {"ID": "a", "text": "…"}',
    ),
    ("a.json", '{"ID": "a", "text": "A"}', " must hold JSON objects, one per row"),
    ("a.json", '[{"ID": "a"},\n {"ID" "b"}]', ": line 2 is not JSON that a table can hold: Expecting ':' delimiter"),
    ("a.json", "[" * 100_000, ": line 1 is not JSON that a table can hold: maximum recursion depth"),
    ("a.json", '[{"ID": ' + "1" * 5000 + "}]", ": line 1 is not JSON that a table can hold: Exceeds the limit"),
    ("a.json", '[{"ID": "\\ud800", "text": "x"}]', " cannot be used as a table: "),
    ("a.parquet", "ID,text\n", " is not a parquet file: "),
    ("a.parquet", "", " is not a parquet file: "),
    ("a.xlsx", "ID,text\n", " is not an Excel workbook with a table: "),
    ("a.xlsx", "", " is not an Excel workbook with a table: "),
    ("a.txt", "x", " is one file; give the folder that holds all texts"),
]


@pytest.mark.parametrize(("name", "content", "says"), BAD_FILES, ids=lambda value: str(value)[:25])
def test_files_that_are_no_samples_are_refused_by_name(tmp_path, name, content, says):
    path = written(tmp_path, name, content)
    message = refused(path, says)
    assert message.startswith(f"{path}{says[:1]}")


def test_json_rows_may_lack_columns_and_positions_count_in_order_of_appearance(tmp_path):
    path = written(tmp_path, "a.jsonl", '{"g": 1, "k": 7, "t": "A"}\n{"k": 8, "t": "B", "h": "x"}\n')
    frame = ps.read_samples(path, id_col=1, text_col=2)
    assert frame.to_dicts() == [
        {"ID": "7", "text": "A", "g": 1, "h": None},
        {"ID": "8", "text": "B", "g": None, "h": "x"},
    ]


def test_line_separators_of_unicode_end_no_line_of_jsonl(tmp_path):
    text = "a\u2028b\u2029c\x85d"
    path = written(tmp_path, "a.jsonl", json.dumps({"ID": "a", "text": text}, ensure_ascii=False) + "\r\n")
    assert ps.read_samples(path).rows() == [("a", text)]


# Folders and what is not there.


def test_folders_that_hold_no_samples(tmp_path):
    refused(tmp_path, "no file could be read as a text (txt, md, html, docx, odt, pdf): there is none")
    with pytest.raises(FileFormatError, match=": no file matches"):
        ps.read_samples_dir(tmp_path)
    with pytest.raises(FileFormatError, match=r": no file matches 'x\$'$"):
        ps.read_samples_dir(tmp_path, "x$")
    with pytest.raises(FileFormatError, match="nowhere: no such folder"):
        ps.read_samples_dir(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"pattern '\(' is not a regular expression"):
        ps.read_samples_dir(tmp_path, "(")
    written(tmp_path, "a.txt", " \n")
    refused(tmp_path, "a.txt: it is empty: there is no text in it")


def test_names_of_files_are_ids(message_snapshot, tmp_path):
    for name in ("b.TXT", "a.b.txt", "007.txt", "ä ö.txt"):
        written(tmp_path, name, name)
    assert ps.read_samples_dir(tmp_path).rows() == [
        ("007", "007.txt"),
        ("a.b", "a.b.txt"),
        ("b", "b.TXT"),
        ("ä ö", "ä ö.txt"),
    ]
    written(tmp_path, "b.md", "m")
    assert ps.read_samples_dir(tmp_path, r"\.md$").rows() == [("b", "m")]
    with pytest.raises(TableError) as refused:
        ps.read_samples_dir(tmp_path, ".")
    message_snapshot(refused)


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere", "nowhere.parquet", "nowhere.xlsx", "nowhere/a.json"])
def test_missing_files_are_named(tmp_path, name):
    assert str(tmp_path / name) in refused(tmp_path / name, ": no such file")


def test_a_text_in_place_of_a_file_is_a_missing_file():
    refused("It was a dark and stormy night. " * 1000, "no such file or folder")
    refused("a\0b", "'a\\x00b': no such file or folder")


@pytest.mark.parametrize("source", [None, 7, [], {}, [1], [{}], pl.DataFrame()])
def test_what_is_no_table_is_refused(source):
    with pytest.raises(TableError, match=r"^samples"):
        ps.read_samples(source)


@pytest.mark.parametrize("nested", ["essay", "who"])
def test_objects_are_neither_ids_nor_texts(tmp_path, nested):
    text = "It rained, and so we stayed at home and read until the evening."
    rows = [{"who": f"p{n}", "essay": text * n} for n in (1, 2)]
    rows = [{**row, nested: {"value": row[nested], "lang": "en"}} for row in rows]
    path = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    column = f"{nested}.value"
    for source in (path, rows, pl.DataFrame(rows)):
        refused(source, f"column '{nested}' holds objects, not text; name a field in it")
    named = {"id_col": column} if nested == "who" else {"text_col": column}
    assert ps.read_samples(path, **named).select("ID", "text").rows() == [("p1", text), ("p2", text * 2)]
