"""A command opens with who judges and what it read, and ends with who judged; nothing is skipped without a word."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.files import read_table

DATA = Path(__file__).parents[1] / "data" / "documents"
QUICK = ("--steps", "3", "--progress", "none", "--fit", "laplace")
BANNER = (
    "Not for grading: lexical is the embedded baseline, which counts surface features and does not understand texts."
)
CLASS = ["student_id", "name", "class", "essay"]


@pytest.fixture
def mixed(folder):
    """44 txt, 10 docx and 6 pdf files, and the class list beside them."""
    essays = folder / "class"
    essays.mkdir()
    for at in range(44):
        (essays / f"t{at:02}.txt").write_text(f"Pupil {at} writes about rain, in a few words of their own.", "utf-8")
    for at in range(10):
        shutil.copy(DATA / "essay.docx", essays / f"w{at}.docx")
    for at in range(5):
        shutil.copy(DATA / "essay.pdf", essays / f"p{at}.pdf")
    shutil.copy(DATA / "half-scanned.pdf", essays / "p5.pdf")
    rows = [
        (f"s{at}", f"Name {at}", "7b", f"Pupil {at} writes about the sun. {'It is warm, because it burns. ' * at}")
        for at in range(6)
    ]
    pl.DataFrame(rows, schema=CLASS, orient="row").write_csv("list.csv")
    return essays


@pytest.fixture
def plain(monkeypatch):
    """An installation without the extra."""
    for name in ("pypdf", "defusedxml", "fastexcel"):
        monkeypatch.setitem(sys.modules, name, None)


def test_sixty_essays(cli, mixed):
    done = cli("rank", "class", *QUICK, "--strict", "--run", "run.db")
    assert done.code == 0
    assert done.lines[:4] == [
        "60 texts from class; ID = file name",
        "  44 txt",
        "  10 docx",
        "  6 pdf",
    ]
    assert done.lines[4].startswith("note: identical texts: 'p0' = 'p1' = ")
    assert "judge: lexical" in done.lines
    assert f"{BANNER} Name a model with --judge." in done.lines
    assert done.lines[-1] == f"judged by lexical. {BANNER}"
    with ps.open_run("run.db") as store:
        [row] = store.read_log("commands")
    assert row["read"]["texts"] == 60
    assert len(row["read"]["files"]) == 60
    assert row["read"]["id_from"] == "file name"
    assert cli("audit", "run.db").code == 0


def test_sixty_essays_on_a_plain_installation(cli, mixed, plain):
    install = 'needs an optional package: pip install "pairscale[documents]"'
    for command in ("rank", "pairs", "check-judge", "cost --judge openai:gpt-5.1 --offline"):
        name, *options = command.split()
        refused = cli(name, "class", *options)
        assert (refused.code, refused.out) == (1, "")
        [line] = refused.lines
        assert line == (
            f"error: class: reading 16 of 60 files (10 docx, 6 pdf) {install}; to continue without them, give "
            "--skip-unreadable"
        )
    done = cli("rank", "class", *QUICK, "--skip-unreadable")
    assert done.code == 0
    assert "44 texts from class; ID = file name" in done.lines
    assert "16 files were not read: 10 docx, 6 pdf:" in done.lines
    assert f"  p0.pdf, p1.pdf, p2.pdf, p3.pdf, p4.pdf and 11 more: {install}" in done.lines
    strict = cli("rank", "class", "--strict", "--skip-unreadable")
    assert (strict.code, strict.out) == (1, "")
    [line] = strict.lines
    assert line.startswith("error: class: 16 files were not read: 10 docx, 6 pdf, and --strict allows none: p0.pdf")


def test_the_class_list(cli, mixed):
    done = cli("rank", "list.csv", *QUICK, "--out", "ranking.csv", "--run", "run.db")
    assert done.lines[0] == (
        "6 texts from list.csv; ID = column student_id (by its name); "
        "text = column essay (the only column with long texts); other columns kept: name, class"
    )
    ranking = read_table("ranking.csv")
    assert ranking.columns[:5] == ["rank", "ID", "name", "class", "score"]
    assert sorted(ranking.select("ID", "name").rows()) == [(f"s{at}", f"Name {at}") for at in range(6)]
    assert "Name 3" in done.out
    again = cli("rank", "list.csv", *QUICK, "--run", "run.db", "--json")
    assert {row["class"] for row in again.json["items"]} == {"7b"}
    assert cli("report", "run.db").code == 0
    page = Path("run.html").read_text("utf-8")
    assert '<div class="judged">Judged by lexical</div>' in page
    assert BANNER in page
    assert "Name 3" in page
    assert cli("report", "run.db", "--pseudonyms", "--out", "other.html").code == 0
    assert "Name 3" not in Path("other.html").read_text("utf-8")


TWO = pl.DataFrame(
    {"ID": ["a", "b"], "prompt": ["Write of the rain, at length. " * 3] * 2, "essay": ["It rained. " * 9] * 2}
)


@pytest.mark.parametrize(
    "command",
    ["rank", "pairs", "check-judge", "cost --judge openai:gpt-5.1 --offline"],
)
def test_a_guess_that_is_not_safe_is_an_error(cli, command):
    TWO.write_csv("two.csv")
    name, *options = command.split()
    done = cli(name, "two.csv", *options)
    assert (done.code, done.out) == (1, "")
    [line] = done.lines
    assert line == (
        "error: two.csv: it is not certain which column is meant; name it (--text-col): it may be 'prompt', 'essay'; "
        "all columns: 'ID', 'prompt', 'essay'"
    )


def test_files_are_looked_at_before_a_key_is_asked_for(cli):
    for command in (
        ("ab", "no.jsonl", "nor.jsonl", "--criterion", "x"), ("rank", "no.csv"), ("judge", "no.csv"),
        ("check-judge", "no.csv"), ("compare", "no.txt", "nor.txt"),
    ):  # fmt: skip
        done = cli(*command, "--judge", "openai:gpt-5.1")
        assert done.code == 1
        line = done.lines[-1]
        assert line.startswith("error: ")
        assert "no such file" in line
        assert "KEY" not in line


def test_a_simulated_judge_is_no_grading(cli):
    rows = [{"ID": str(at), "text": f"Text {at}.", "truth": at / 2} for at in range(4)]
    Path("a.json").write_text(json.dumps(rows), "utf-8")
    done = cli("rank", "a.json", "--judge", "simulated:truth", *QUICK)
    assert done.lines[2].startswith("judge: simulated")
    assert done.lines[3].startswith("Not for grading: simulated answers are drawn at random")
    assert done.lines[-1].startswith("judged by simulated")
    assert "Not for grading" in done.lines[-1]


def test_a_reliability_below_zero_is_explained_once(cli):
    """The figure is sirt's own, 1 - mean(se²) / var(theta), as R gives it."""
    ring = [
        {"ID1": f"t{n}", "ID2": f"t{(n + 1) % 6}", "better_id": f"t{n if n % 3 else (n + 1) % 6}"} for n in range(6)
    ]
    pl.DataFrame(ring).write_csv("few.csv")
    theta = ps.fit("few.csv").theta
    reliability = 1 - (theta["se"] ** 2).mean() / theta["theta"].var()
    assert reliability < -0.2
    words = "the errors of the scores are larger than their spread"
    fitted = cli("fit", "few.csv")
    assert f"reliability {reliability:.3f}: {words}" in fitted.out
    assert fitted.out.count(words) == 1
    cli("report", "few.csv", "--out", "few.html")
    assert Path("few.html").read_text("utf-8").count(words) == 1
    ps.example_writing_results.write_csv("many.csv")
    assert "reliability 0." in (many := cli("fit", "many.csv").out)
    assert words not in many
