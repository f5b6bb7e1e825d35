"""What cannot be done is said in one line, with exit code 1, and harms nothing."""

import re
import sqlite3
from pathlib import Path

import pytest

import pairscale as ps

_PAIRS = "ID1,text1,ID2,text2\na,x,b,y\n"
_JUDGE = ("--judge", "mine:longer")


_OPENING = re.compile(
    r"imported: |note: without --run|judge: \S+$|Not for grading: |\d+ (texts?|pairs?)\b.* from |  \d+ (txt|csv)$"
    r"|\S+: \d+ comparisons?, read as "
)
"""What a command says before it begins to work."""


@pytest.fixture
def bad(folder):
    """Everything that people give by mistake."""
    files = {
        "empty.csv": "",
        "twice.csv": "ID,text\na,One.\nb,Two.\na,Three.\n",
        "one.csv": "ID,text\na,One.\n",
        "column.csv": "essay\nOne.\n",
        "blank.csv": "ID,text\na,One.\nb,\n",
        "half.csv": "ID1,text1,ID2\na,x,b\n",
        "itself.csv": "ID1,text1,ID2,text2\na,x,a,x\n",
        "good.csv": _PAIRS,
        "undecided.csv": "ID1,ID2,better_id\na,b,\nb,c,NA\n",
        "broken.jsonl": '{"ID": "a", "text": "x"}\n{"ID": \n',
        "lacking.txt": "Which is better, {SAMPLE_1} or {SAMPLE_2}?",
        "text.db": "This is not a run file.",
        "fails.py": "raise RuntimeError('broken on import')",
        "answers.csv": "ID1,ID2,better_id,judge_id\na,b,a,lexical\nb,c,b,lexical\na,c,a,lexical\n",
        "ties.csv": "ID1,ID2,better_id,outcome\na,b,,tie\n",
        "strangers.csv": "ID1,ID2,better_id\nx,y,x\n",
    }
    for name, text in files.items():
        Path(name).write_text(text, "utf-8")
    Path("binary.csv").write_bytes(bytes(range(256)) * 20)
    Path("binary").mkdir()
    Path("binary/a.txt").write_bytes(bytes(range(256)))
    Path("nothing").mkdir()
    Path("alone").mkdir()
    Path("alone/a.txt").write_text("One.")
    return folder


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("pairs", "empty.csv"), "empty.csv"),
        (("pairs", "nothing"), "nothing: no file could be read as a text (txt, md, html"),
        (("pairs", "alone"), "at least two"),
        (("pairs", "one.csv"), "at least two"),
        (("pairs", "twice.csv"), "'a'"),
        (("pairs", "column.csv"), "column.csv: it is not certain which column is meant; name it (--id-col)"),
        (("pairs", "blank.csv"), "'b'"),
        (("pairs", "twice.csv", "--id-col", "pupil"), "'pupil'"),
        (("pairs", "binary.csv"), "binary.csv"),
        (("pairs", "binary"), "a.txt"),
        (("pairs", "missing.csv"), "missing.csv"),
        (("pairs", "mine.py"), "mine.py"),
        (("pairs", "broken.jsonl"), "line 2"),
        (("rank", "essays", "--encoding", "klingon"), "'klingon'"),
        (("judge", "essays"), "make them with `pairscale pairs essays --out pairs.csv`"),
        (("judge", "twice.csv"), "twice.csv holds no pairs (ID1 text1 ID2 text2); make them with"),
        (("judge", "half.csv", *_JUDGE), "'text2'"),
        (("judge", "itself.csv", *_JUDGE), "'a'"),
        (("judge", "good.csv", "--judge", "oracle"), "lexical, simulated:COLUMN"),
        (("judge", "good.csv", "--judge", "openai:"), "names no model"),
        (("judge", "good.csv", "--judge", "mine:missing"), "'missing'"),
        (("judge", "good.csv", "--judge", "replay:missing.csv"), "missing.csv"),
        (
            ("judge", "good.csv", "--judge", "simulated:truth", "--run", "r.db"),
            "in column 'truth' must be a number, not None",
        ),
        (("judge", "good.csv", *_JUDGE, "--trait", "charm"), "overall_quality"),
        (("judge", "good.csv", *_JUDGE, "--template", "lacking.txt"), "{TRAIT_NAME}"),
        (("judge", "good.csv", *_JUDGE, "--template", "defualt"), "there are advocate, concise, default"),
        (("judge", "good.csv", *_JUDGE, "--judge-arg", "bias"), "must look like name=value"),
        (("judge", "good.csv", "--judge", "simulated:x", "--judge-arg", "lapse=7"), "lapse"),
        (("judge", "good.csv", "--judge", "simulated:x", "--judge-arg", "nonsense=1"), "nonsense"),
        (("judge", "good.csv", *_JUDGE, "--run", "/proc/run.db"), "/proc/run.db"),
        (("judge", "good.csv", *_JUDGE, "--run", "missing/run.db"), "missing"),
        (("judge", "good.csv", *_JUDGE, "--run", "nothing"), "a folder"),
        (("judge", "good.csv", *_JUDGE, "--run", "answers.csv"), "the ending of a table"),
        (("judge", "good.csv", *_JUDGE, "--out", "/proc/a.csv"), "--out /proc/a.csv cannot be written"),
        (("judge", "good.csv", *_JUDGE, "--out", "answers.docx"), "--out must be a file that ends in '.csv', "),
        (("fit", "undecided.csv"), "winner"),
        (("fit", "good.csv"), "good.csv holds pairs without answers"),
        (("fit", "twice.csv"), "ID1 ID2 better_id"),
        (("fit", "missing.db"), "missing.db"),
        (("fit", "text.db"), "text.db"),
        (("fit", "undecided.csv", "--condition", "x"), "--condition belongs to run files"),
        (("trust", "missing.db"), "missing.db: no such run file"),
        (("trust", "answers.csv", "--labels", "missing.csv"), "missing.csv: no such file"),
        (("trust", "answers.csv", "--labels", "twice.csv"), "ID1 ID2 better_id"),
        (("trust", "answers.csv", "--labellers", "ann"), "--labellers and --url belong to --label"),
        (("trust", "answers.csv", "--a-col", "left"), "belong to --labels"),
        (("trust", "answers.csv", "--out", "missing/page.html"), "there is no folder"),
        (("status", "nothing"), "nothing"),
        (("status", "text.db"), "text.db"),
        (("templates", "nonesuch"), "'nonesuch'"),
        (("traits", "charm"), "overall_quality"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_one_line_says_what_is_wrong(cli, bad, args, words):
    sample = [path for path in bad.iterdir() if path.is_file()]
    before = {path: path.read_bytes() for path in sample}
    outcome = cli(*args)
    assert outcome.code == 1
    assert outcome.out == ""
    errors = [line for line in outcome.lines if not _OPENING.match(line)]
    assert len(errors) == 1
    assert outcome.lines[-1] == errors[0]
    assert errors[0].startswith("error: ")
    assert words in errors[0]
    assert "please report it" not in errors[0]
    assert {path: path.read_bytes() for path in sample} == before


def test_a_damaged_run_file_is_refused_and_left_as_it_is(cli, run, pairs):
    whole = run.read_bytes()
    damaged = whole[:100] + b"\xff" * (len(whole) - 100)
    run.write_bytes(damaged)
    for args in (("judge", pairs, *_JUDGE, "--run", run), ("status", run), ("fit", run)):
        outcome = cli(*args)
        assert outcome.code == 1
        assert outcome.lines[-1].startswith("error: run.db")
        assert "please report it" not in outcome.err
    assert run.read_bytes() == damaged


def test_a_database_of_something_else_is_refused_and_keeps_its_rows(cli, pairs):
    with sqlite3.connect("other.db") as database:
        database.execute("create table precious (a)")
        database.execute("insert into precious values (1)")
    database.close()
    for args in (("judge", pairs, *_JUDGE, "--run", "other.db"), ("status", "other.db"), ("fit", "other.db")):
        outcome = cli(*args)
        assert outcome.code == 1
        assert outcome.lines[-1].startswith("error: other.db")
        assert "please report it" not in outcome.err
    with sqlite3.connect("other.db") as database:
        assert database.execute("select name from sqlite_master").fetchall() == [("precious",)]
        assert database.execute("select a from precious").fetchall() == [(1,)]
    database.close()


def test_a_changed_text_under_the_same_id_is_refused_and_the_answers_stay(cli, run, pairs):
    Path("changed.csv").write_text(pairs.read_text().replace("Somewhat longer.", "Something else."))
    outcome = cli("judge", "changed.csv", *_JUDGE, "--run", run)
    assert outcome.code == 1
    assert "'bob'" in outcome.lines[-1]
    assert cli("status", run, "--json").json["conditions"][0]["win"] == 6


def test_a_run_file_that_another_process_writes_is_busy(cli, run, pairs):
    with ps.open_run(run, write=True):
        outcome = cli("judge", pairs, *_JUDGE, "--run", run)
        assert outcome.code == 1
        assert "is being written by another run" in outcome.lines[-1]
        assert cli("status", run).code == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("judge", "good.csv", "--concurrency", "0"), "--concurrency must be a whole number of 1 or more, not 0"),
        (("judge", "good.csv", "--max-cost", "-1"), "--max-cost must be a number of 0 or more, not -1.0"),
        (("pairs", "good.csv", "--n-pairs", "0"), "--n-pairs must be a whole number of 1 or more, not 0"),
        (("fit", "undecided.csv", "--engine", "abacus"), "--engine must be 'auto', 'sirt', 'mle', 'map' or 'firth'"),
        (("init", "study.json"), "FILE must be a file that ends in '.toml', not 'study.json'"),
        (("trust", "answers.csv", "--next", "0"), "--next must be a whole number of 1 or more, not 0"),
        (("trust", "answers.csv", "--label"), "--label needs a run file, which has the texts, and answers.csv is none"),
        (("trust", "answers.csv", "--labels", "ties.csv"), "all labels are ties"),
        (
            ("trust", "answers.csv", "--labels", "answers.csv"),
            "the labels are answers of 'lexical', who judged the run",
        ),
        (("trust", "answers.csv", "--labels", "strangers.csv"), "the labels compare texts that are not in the run: "),
    ],
)
def test_a_value_that_is_out_of_range_is_wrong_usage(cli, bad, args, words):
    outcome = cli(*args)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.lines[-1].startswith(f"error: {words}")


@pytest.mark.parametrize(
    "args",
    [
        ("judge", "good.csv", "--concurrency", "many"),
        ("judge", ""),
        ("judge", "good.csv", "--nonsense"),
        ("judge",),
        ("pairs", "good.csv", "--order", "sideways"),
        ("judge", "good.csv", "extra"),
        ("fit", "good.csv", "--model", "magic"),
        ("conquer",),
        ("--nonsense",),
        (),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_with_the_usage(cli, bad, args):
    outcome = cli(*args)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("usage: pairscale")
    assert "Traceback" not in outcome.err


def test_what_nobody_foresaw_is_still_one_line(cli, monkeypatch, folder):
    def fail() -> None:
        raise RuntimeError("a\nb")

    monkeypatch.setattr("pairscale.cli.traits.ps.list_traits", fail, raising=False)
    outcome = cli("traits")
    assert outcome.code == 1
    assert outcome.lines == ["error: RuntimeError: a b (unexpected: PAIRSCALE_DEBUG=1 shows where; please report it)"]
    monkeypatch.setenv("PAIRSCALE_DEBUG", "1")
    from pairscale.cli import main

    with pytest.raises(RuntimeError):
        main(["traits"])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--model", "elo", "--separate"), "--separate belongs to --model bt"),
        (("--model", "bayes", "--bootstrap", "50"), "--bootstrap belongs to --model bt"),
        (("--model", "elo", "--engine", "mle"), "--engine belongs to --model bayes or --model bt, not to --model elo"),
        (("--model", "bayes", "--engine", "mle"), "engine must be 'auto', 'sampler' or 'laplace', not 'mle'"),
        (("--model", "bayes", "--reference", "ann"), "--reference belongs to --model bt"),
        (("--reference", "ann"), "reference 'ann' must be one of the compared items"),
        (("--engine", "map", "--reference", "nobody"), "reference 'nobody' must be one of the compared items"),
    ],
)
def test_an_option_of_another_model_is_not_silently_ignored(cli, run, args, words):
    done = cli("fit", run, *args)
    assert done.code in {1, 2}
    assert words in done.err
