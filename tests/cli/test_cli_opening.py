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
    for command in ("rank", "pairs", "check-judge"):
        strict = cli(command, "class", "--strict", "--skip-unreadable")
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
    assert ranking.columns[-2:] == ["name", "class"]
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
    ["rank", "pairs", "check-judge", "cost --judge openai:gpt-5.1 --offline", "bias-study --judge mine:longer"],
)
def test_a_guess_that_is_not_safe_is_an_error(cli, command):
    TWO.write_csv("two.csv")
    name, *options = command.split()
    done = cli(name, "two.csv", *options)
    assert (done.code, done.out) == (1, "")
    [line] = done.lines
    assert line == (
        "error: two.csv: no column is certainly the one; name it (--text-col): it may be 'prompt', 'essay'; "
        "all columns: 'ID', 'prompt', 'essay'"
    )


@pytest.mark.parametrize(
    "command",
    [
        "rank --steps 1 --fit laplace",
        "pairs",
        "cost --judge openai:gpt-5.1 --offline",
        "bias-study --judge mine:longer",
    ],
)
def test_the_column_is_named(cli, command):
    TWO.write_csv("two.csv")
    name, *options = command.split()
    done = cli(name, "two.csv", *options, "--text-col", "essay")
    assert done.code == 0
    assert "2 texts from two.csv; ID = column ID; text = column essay; other columns kept: prompt" in done.lines


def test_json_paths(cli):
    rows = [{"who": {"id": at}, "turns": [{"said": f"Text {at}."}]} for at in range(3)]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    done = cli("pairs", "a.jsonl", "--id-col", "who.id", "--text-col", "$.turns[0].said", "--order", "keep", "--json")
    first = done.json["pairs"][0]
    assert (first["ID1"], first["text1"]) == ("0", "Text 0.")


def test_pairs_by_the_columns_of_their_texts(cli):
    pl.DataFrame({"old": ["One.", "One."], "new": ["One and two.", "One, two, three."]}).write_csv("p.csv")
    done = cli(
        "judge", "p.csv", "--judge", "mine:longer", "--a-col", "old", "--b-col", "new", "--json", "--run", "r.db"
    )
    assert done.code == 0
    assert "2 pairs of 3 texts from p.csv" in done.lines
    results = done.json["results"]
    assert [row["better_sample"] for row in results] == ["SAMPLE_2", "SAMPLE_2"]
    assert results[0]["ID1"] == results[1]["ID1"]
    assert done.lines[-1] == "judged by mine:longer"
    wrong = cli("judge", "p.csv", "--a-col", "older", "--b-col", "new")
    assert wrong.lines == ["error: p.csv: no column 'older' (a_col); it has 'old', 'new'"]
    assert cli("judge", "p.csv", "--a-col", "old").lines == [
        "error: p.csv: --a-col and --b-col name the two texts of a pair; give both"
    ]


# Two variants.

BOTH = [{"q": {"text": f"Task {at}"}, "mine": "long " * at, "theirs": "short"} for at in range(1, 6)]


def test_both_answers_in_one_file(cli):
    Path("both.jsonl").write_text("\n".join(map(json.dumps, BOTH)), "utf-8")
    line = ("ab", "both.jsonl", "--criterion", "longer", "--judge", "mine:longer", "--input-col", "q.text")
    done = cli(*line, "--a-col", "mine", "--b-col", "theirs", "--json", "--run", "ab.db")
    assert done.code == 0
    assert "judge: mine:longer" in done.lines[:2]
    assert "5 tasks from both.jsonl; A = column mine, B = column theirs" in done.lines
    assert done.lines[-1] == "judged by mine:longer"
    assert [case["task_id"] for case in done.json["cases"]] == [f"row-000{at}" for at in range(1, 6)]
    assert done.json["counts"]["longer"]["win"] == 4
    assert cli(*line, "--a-col", "mine").lines[-1] == (
        "error: --a-col and --b-col belong together, to one file or table that holds the answers of A and B"
    )


def test_columns_of_answers(cli):
    for name, key in (("a", "mine"), ("b", "theirs")):
        rows = [{"n": {"id": at}, "said": row[key]} for at, row in enumerate(BOTH)]
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    line = ("ab", "a.jsonl", "b.jsonl", "--criterion", "longer", "--judge", "mine:longer")
    assert cli(*line, "--output-col", "said").lines[-1] == (
        "error: a.jsonl, row 1 has no task_id and no input, by which the answers of A and B are paired; it has 'n', "
        "'output': name the column (--id-col or --input-col)"
    )
    assert cli(*line, "--id-col", "n.id").lines[-1] == (
        "error: a.jsonl, row 1 has no 'output', the variant's answer; it has 'n', 'said', 'task_id': "
        "name the column (--output-col)"
    )
    done = cli(*line, "--id-col", "n.id", "--output-col", "said")
    assert done.code == 0
    assert {"A: 5 answers from a.jsonl", "B: 5 answers from b.jsonl"} <= set(done.lines)


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


def test_labelling_texts_says_what_to_do(cli, folder):
    done = cli("label", "essays")
    [line] = done.lines
    assert line == (
        "error: essays holds texts, not pairs to label. To have people rank them: pairscale rank essays --judge human "
        "--run essays.db. Or pair them first: pairscale pairs essays --out pairs.csv, then "
        "pairscale label pairs.csv"
    )
    TWO.write_csv("two.csv")
    assert cli("label", "two.csv").lines[0].startswith("error: two.csv holds texts, not pairs to label.")


def test_no_regular_expression_is_shown_to_a_teacher(cli, folder):
    (folder / "empty").mkdir()
    assert cli("rank", "empty").lines == [
        "error: empty: no file could be read as a text (txt, md, html, docx, odt, pdf): there is none"
    ]


def test_compare_reads_documents(cli):
    done = cli("compare", DATA / "essay.docx", DATA / "changed.odt", "--judge", "mine:longer")
    assert done.code == 0
    assert done.out.startswith("better: the first text")
    assert "judge: mine:longer" in done.lines
    assert done.lines[-1] == "judged by mine:longer"


def test_a_simulated_judge_is_no_grading(cli):
    rows = [{"ID": str(at), "text": f"Text {at}.", "truth": at / 2} for at in range(4)]
    Path("a.json").write_text(json.dumps(rows), "utf-8")
    done = cli("rank", "a.json", "--judge", "simulated:truth", *QUICK)
    assert done.lines[2].startswith("judge: simulated")
    assert done.lines[3].startswith("Not for grading: simulated answers are drawn at random")
    assert done.lines[-1].startswith("judged by simulated")
    assert "Not for grading" in done.lines[-1]


def test_texts_that_make_no_pairs_say_what_was_not_read(cli, folder):
    for name, content in (("a.txt", "One."), ("b.rtf", "x")):
        (folder / "few").mkdir(exist_ok=True)
        (folder / "few" / name).write_text(content, "utf-8")
    done = cli("pairs", "few")
    assert done.lines == [
        "1 text from few; ID = file name",
        "  1 txt",
        "1 file was not read: 1 rtf:",
        "  b.rtf: not a text: txt, md, html, docx, odt and pdf are read",
        "error: samples: there is only one; pairs need at least two",
    ]


def test_name_and_class_stand_behind_the_scores_that_fit_writes(cli, folder):
    rows = [(f"s{n}", f"Name {n}", "4b", "A long text. " * (n + 4)) for n in range(4)]
    pl.DataFrame(rows, schema=["student_id", "name", "class", "essay"], orient="row").write_csv("class.csv")
    assert cli("rank", "class.csv", "--run", "class.db", "--max-comparisons", "6", "--progress", "none").code == 0
    assert cli("fit", "class.db", "--model", "bayes", "--engine", "laplace", "--out", "scores.csv").code == 0
    scores = pl.read_csv("scores.csv")
    assert scores.columns[-2:] == ["name", "class"]
    assert dict(zip(scores["ID"], scores["name"], strict=True)) == {f"s{n}": f"Name {n}" for n in range(4)}


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
