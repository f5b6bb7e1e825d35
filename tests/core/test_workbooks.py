"""Hostile spreadsheets: refused within bounded memory, before they are parsed."""

import json
import struct
import subprocess
import sys
import zipfile

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import FileFormatError
from pairscale.core.files import read_table, write_table
from pairscale.core.workbooks import read_workbook

CELL = '<c r="{0}" t="inlineStr"><is><t>{1}</t></is></c>'
ROWS = '<row r="{0}"><c r="A{0}" t="inlineStr"><is><t>{1}</t></is></c></row>'
HEAD = '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
FOOT = "</sheetData></worksheet>"


def workbook(path, sheet_xml: bytes, **given):
    """A small workbook with another sheet."""
    plain = path.with_name("plain.xlsx")
    write_table(pl.DataFrame({"ID": ["a"], "text": ["x"]}), plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **given) as target:
        for name in source.namelist():
            content = sheet_xml if name == "xl/worksheets/sheet1.xml" else source.read(name)
            target.writestr(name, content)
    return path


def bomb(path, megabytes: int = 300):
    filler = "a" * 30_000
    rows = [ROWS.format(1, "ID")] + [ROWS.format(n, filler) for n in range(2, megabytes * 1_000_000 // 30_080)]
    return workbook(path, (HEAD + "".join(rows) + FOOT).encode(), compresslevel=6)


def understated(path, name: str = "xl/worksheets/sheet1.xml") -> None:
    """Let the directory and the header of a member say that it is small."""
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
    struct.pack_into("<I", content, info.header_offset + 22, 1_000)
    at = content.find(b"PK\1\2")
    while content[at + 46 : at + 46 + len(name)] != name.encode():
        at = content.find(b"PK\1\2", at + 1)
    struct.pack_into("<I", content, at + 24, 1_000)
    path.write_bytes(content)


MEASURED = """
import json, resource, sys
import pairscale as ps, polars, fastexcel
ps.read_samples(sys.argv[2])
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before, said = peak(), None
try:
    ps.read_samples(sys.argv[1])
except ps.errors.FileFormatError as error:
    said = str(error)
print(json.dumps([peak() - before, said]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("lies", [False, True])
def test_a_small_file_that_expands_to_300_mb_is_refused_within_bounded_memory(tmp_path, lies):
    path = bomb(tmp_path / "bomb.xlsx")
    assert path.stat().st_size < 1_000_000
    if lies:
        understated(path)
    line = [sys.executable, "-c", MEASURED, str(path), str(tmp_path / "plain.xlsx")]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=600)
    growth, said = json.loads(done.stdout)
    assert said is not None
    reason = "it is damaged: a part of it cannot be expanded" if lies else "it expands to more than 64 MB"
    assert said.startswith(f"{path}: {reason}")
    assert said.endswith("; save the table as csv instead")
    assert growth < 20  # MB


def test_what_the_directory_says_is_not_relied_upon(message_snapshot, tmp_path):
    path = bomb(tmp_path / "bomb.xlsx", megabytes=70)
    with pytest.raises(FileFormatError) as refused:
        read_table(path)
    message_snapshot(refused)
    understated(path)
    with zipfile.ZipFile(path) as archive:
        assert sum(info.file_size for info in archive.infolist()) < 100_000
    with pytest.raises(FileFormatError, match="it is damaged"):
        read_table(path)


@pytest.mark.parametrize(("place", "column"), [("XFD1048576", 16_384), ("CV900000", 100), ("XFD3000", 16_384)])
def test_a_stray_cell_far_away_is_named(tmp_path, place, column):
    """Its reader would make a cell of everything in between, and end the process."""
    row = int(place.lstrip("XFDCV"))
    table = ROWS.format(1, "ID") + ROWS.format(2, "a") + f'<row r="{row}">{CELL.format(place, "oops")}</row>'
    path = workbook(tmp_path / "stray.xlsx", (HEAD + table + FOOT).encode())
    with pytest.raises(FileFormatError) as refused:
        ps.read_samples(path)
    assert f"a cell in row {row:,} and one in column {column:,}" in str(refused.value)
    assert f"{row * column:,} cells" in str(refused.value)


@pytest.mark.parametrize(
    "cell",
    [
        '<c r="XFD1048576"><v>1</v></c>',
        "<c  s='1'\n r = 'XFD1048576'><v>1</v></c>",
        '<c x=">" r="xfd1048576"><v>1</v></c>',
        '<x:c r="XFD1048576"><v>1</v></x:c>',
        f'<c s="{"1" * 70_000}" r="XFD1048576"><v>1</v></c>',
        f'<c s="{"1" * 1_100_000}" r="XFD1048576"><v>1</v></c>',
    ],
)
@pytest.mark.parametrize("before", [0, 262_107, 262_137])
def test_a_stray_cell_is_seen_however_it_is_written(tmp_path, cell, before):
    sheet = (
        f"{HEAD[:21]}<!--{' ' * before}-->{HEAD[21:]}<row r='1'><c r='A1'/></row><row r='1048576'>{cell}</row>{FOOT}"
    )
    path = workbook(tmp_path / "stray.xlsx", sheet.encode())
    with pytest.raises(FileFormatError, match=r"17,179,869,184 cells|is damaged"):
        read_table(path)


@pytest.mark.parametrize("damage", [b"PK\3\4", b"PK\1\2", b"\x78"])
def test_a_damaged_archive_is_an_error_in_words(tmp_path, damage):
    path = workbook(tmp_path / "damaged.xlsx", (HEAD + ROWS.format(1, "ID") + FOOT).encode())
    content = path.read_bytes()
    said = set()
    for at in range(0, len(content), 97):
        broken = content[:at] + damage + content[at + len(damage) :]
        try:
            read_workbook(broken, path)
        except FileFormatError as error:
            said.add(str(error))
    assert all(words.startswith(str(path)) for words in said)
