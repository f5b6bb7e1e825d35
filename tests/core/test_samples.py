"""Samples from everywhere are the same samples, and what cannot be one is refused by name."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import polars as pl
import pytest
import xlsxwriter
from polars.testing import assert_frame_equal

import pairscale as ps
from pairscale.core.errors import InputError
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


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (["a", "b", "a"], "samples: 'a' is in more than one row; ids must be unique"),
        ([1, "1"], "samples: '1' is in more than one row"),
        (["a", None, "", " "], "samples: column 'ID' is empty in rows 2, 3, 4; every row needs an id"),
    ],
)
def test_bad_ids_name_their_rows(ids, says):
    refused([{"ID": name, "text": "t"} for name in ids], says)


@pytest.mark.parametrize("blank", [None, "", " ", "\n\t", "\u00a0"])
def test_blank_texts_name_their_sample_and_row(blank):
    rows = [{"ID": "a", "text": "A"}, {"ID": "b", "text": blank}]
    refused(rows, "samples: no text for 'b' in row 2; leave the sample out")


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
