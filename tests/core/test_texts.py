"""Folders and archives: every file is read, or listed with its reason; and what was read is said."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import InputError, MissingExtraError

DATA = Path(__file__).parents[1] / "data" / "documents"


@pytest.fixture
def plain(monkeypatch):
    """An installation without the extra."""
    for name in ("pypdf", "defusedxml", "fastexcel"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def class_folder(tmp_path):
    """60 essays: 44 txt, 10 docx, 6 pdf."""
    folder = tmp_path / "essays"
    folder.mkdir()
    for at in range(44):
        (folder / f"t{at:02}.txt").write_text(
            f"The essay of pupil {at} is about the weather, and it is their own.", "utf-8"
        )
    for at in range(10):
        _variant(DATA / "essay.docx", folder / f"w{at}.docx", "word/document.xml", b"bees", f"bee{at}".encode())
    shutil.copy(DATA / "essay.pdf", folder / "p0.pdf")
    shutil.copy(DATA / "half-scanned.pdf", folder / "p1.pdf")
    for at in range(2, 6):
        shutil.copy(DATA / "essay.pdf", folder / f"p{at}.pdf")
    return folder


def _variant(source: Path, target: Path, part: str, old: bytes, new: bytes) -> None:
    """The same document with another word in it."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as made:
        for name in archive.namelist():
            content = archive.read(name)
            made.writestr(name, content.replace(old, new) if name == part else content)


def test_sixty_essays(class_folder):
    report = ps.inspect_samples(class_folder)
    assert report.samples.height == 60
    assert report.skipped == ()
    assert report.opening() == [f"60 texts from {class_folder}; ID = file name", "  44 txt", "  10 docx", "  6 pdf"]
    assert report.problems() == [
        "note: identical texts: 'p0' = 'p2' = 'p3' = 'p4' = 'p5'",
        "note: p1.pdf: 2 of its pages were skipped: no text layer",
    ]
    assert str(report) == "60 texts: 44 txt, 10 docx, 6 pdf; ID = file name"
    assert report.files.filter(pl.col("pages_without_text") > 0).rows() == [
        ("p1.pdf", "pdf", True, 45, 3, 2, None, "2 of its pages were skipped: no text layer")
    ]
    assert report.files["read"].all()


def test_sixty_essays_on_a_plain_installation(message_snapshot, class_folder, plain, caplog):
    with pytest.raises(MissingExtraError) as caught:
        ps.rank(class_folder, progress="none")
    assert str(caught.value) == (
        f"{class_folder}: reading 16 of 60 files (10 docx, 6 pdf) needs an optional package: "
        'pip install "pairscale[documents]"; to continue without them, give `skip_unreadable=True`'
    )
    samples = ps.read_samples(class_folder, skip_unreadable=True)
    assert samples.height == 44
    counts, names = (record.getMessage() for record in caplog.records)
    assert counts == "16 files were not read: 10 docx, 6 pdf:"
    assert names == (
        "p0.pdf, p1.pdf, p2.pdf, p3.pdf, p4.pdf and 11 more: needs an optional package: "
        'pip install "pairscale[documents]"'
    )
    with pytest.raises(InputError) as refused:
        ps.read_samples(class_folder, strict=True, skip_unreadable=True)
    message_snapshot(refused)


@pytest.mark.parametrize("named", ["stem", "file"])
def test_a_class_list_among_the_essays_says_more_of_them(class_folder, named):
    """Its column of file names, with or without their endings, is found; names and classes travel with the texts."""
    names = [path.stem if named == "stem" else path.name for path in sorted(class_folder.iterdir())]
    rows = {"student": names[::-1], "name": [f"Pupil {name}" for name in names[::-1]], "class": ["7b"] * 60}
    pl.DataFrame(rows).write_csv(class_folder / "class.csv")
    report = ps.inspect_samples(class_folder)
    assert report.skipped == ()
    assert report.kept == ("name", "class")
    assert report.opening()[0] == f"60 texts from {class_folder}; ID = file name; other columns kept: name, class"
    assert "class.csv: its columns are kept, by student" in report.notes
    for uid, name in report.samples.select("ID", "name").rows():
        assert name.removeprefix("Pupil ").partition(".")[0] == uid
    assert report.samples.columns == ["ID", "text", "name", "class"]


def test_every_other_file_is_listed_with_its_reason(tmp_path, caplog):
    for name, content in {
        "a.txt": b"Read.", "b.md": b"# Read, too", "c.HTML": b"<p>And this", "photo.jpg": b"\xff\xd8", "old.doc": b"x",
        "more.zip": b"PK", "empty.txt": b" \n", "really.txt": b"%PDF-1.4", "cyrillic.txt": "Погода".encode("cp1251"),
        "noending": b"x", "scan.pdf": (DATA / "scanned.pdf").read_bytes(), ".DS_Store": b"\0", "Thumbs.db": b"\0",
        "~$a.docx": b"\0",
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    (tmp_path / "drafts").mkdir()
    report = ps.inspect_samples(tmp_path)
    assert report.samples.rows() == [("a", "Read."), ("b", "# Read, too"), ("c", "And this")]
    assert {one.name: one.reason for one in report.skipped} == {
        "photo.jpg": "not a text: txt, md, html, docx, odt and pdf are read",
        "noending": "not a text: txt, md, html, docx, odt and pdf are read",
        "old.doc": "not a text: txt, md, html, docx, odt and pdf are read",
        "more.zip": "not a text: txt, md, html, docx, odt and pdf are read",
        "empty.txt": "it is empty: there is no text in it",
        "really.txt": "its content is a PDF file, not txt; give it the ending of its kind",
        "cyrillic.txt": "it is not UTF-8 text; save it as UTF-8, or name its encoding, where that is an option "
        "(`encoding=`)",
        "scan.pdf": "no text layer: it is a scan or a picture; make one with OCR, or type the text",
        "drafts": "not a plain file; subfolders are not read, so name one instead to read its files",
    }
    assert report.problems()[0].startswith("9 files were not read: ")
    assert len(report.problems()) == 7
    assert report.record()["texts"] == 3
    assert len(report.record()["files"]) == 12


def test_links_that_lead_out_of_the_folder(tmp_path):
    (tmp_path / "secret").write_text("A key.", "utf-8")
    folder = tmp_path / "essays"
    folder.mkdir()
    (folder / "a.txt").write_text("Mine.", "utf-8")
    (folder / "b.txt").symlink_to(tmp_path / "secret")
    (folder / "c.txt").symlink_to("a.txt")
    (folder / "d.txt").symlink_to("nowhere")
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.txt")
    report = ps.inspect_samples(folder)
    assert report.samples.rows() == [("a", "Mine."), ("c", "Mine.")]
    reasons = {one.name: one.reason for one in report.skipped}
    assert reasons["b.txt"] == "a link that leads out of the folder; copy the file itself into it"
    assert reasons["d.txt"].startswith("not a plain file")
    assert reasons.get("pipe.txt", "not a plain file").startswith("not a plain file")


def test_a_guessed_encoding_is_said_once_for_all(tmp_path):
    for name in "abcdefg":
        (tmp_path / f"{name}.txt").write_bytes(f"Café {name}".encode("cp1252"))
    [note] = ps.inspect_samples(tmp_path).notes
    assert note.startswith("a.txt, b.txt, c.txt, d.txt, e.txt and 2 more: it is not UTF-8; it was read as Windows-1252")
    assert ps.inspect_samples(tmp_path, encoding="cp1252").notes == ()


# One document.


def test_names_that_macos_spells_in_its_own_way_are_those_of_tables(tmp_path, caplog):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "Zoe\u0308.txt").write_text("One.", "utf-8")
    assert ps.read_samples(folder).rows() == [("Zoë", "One.")]
    assert not caplog.text
