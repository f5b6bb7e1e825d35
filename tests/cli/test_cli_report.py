"""`pairscale report`: rankings, bias studies and A/B runs, as pages and tables, what may be shared, and labelled."""

import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from pairscale.core.files import read_table

RANK = ("rank", "essays", "--judge", "mine:longer", "--fit", "laplace", "--progress", "none", "--steps", "9")
JUDGES = '''
def sways(A, B):
    """The longer text, but the first of two that are nearly as long."""
    near = abs(len(A["text"]) - len(B["text"])) < 24
    return {"is_valid": True, "Y": 1 if near else int(len(A["text"]) > len(B["text"]))}


def brief(A, B):
    """The shorter answer, but the first of two that are equally long."""
    return {"is_valid": True, "Y": int(len(A["text"]) <= len(B["text"]))}
'''


@pytest.fixture
def typed(monkeypatch):
    """Types lines into the terminal."""
    return lambda *lines: monkeypatch.setattr(sys, "stdin", StringIO("".join(f"{line}\n" for line in lines)))


@pytest.fixture
def study(cli, folder):
    (folder / "swaying.py").write_text(JUDGES, "utf-8")
    assert cli("bias-study", "essays", "--judge", "swaying:sways", "--run", "study.db").code == 0
    yield "study.db"
    sys.modules.pop("swaying", None)


@pytest.fixture
def ab(cli, folder):
    (folder / "swaying.py").write_text(JUDGES, "utf-8")
    for name, answers in (("a", ("Yes.", "It depends.", "same")), ("b", ("No, never.", "No.", "even"))):
        rows = [{"task_id": f"t{n}", "output": text, "input": f"Question {n}?"} for n, text in enumerate(answers)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    line = ("ab", "a.jsonl", "b.jsonl", "--criterion", "brief", "--judge", "swaying:brief", "--run", "ab.db")
    assert cli(*line).code == 0
    yield line
    sys.modules.pop("swaying", None)


def test_a_study_is_known_as_one(cli, study):
    done = cli("report", study)
    assert (done.code, done.err) == (0, "written: study.html\n")
    source = Path("study.html").read_text("utf-8")
    assert "<h1>Position bias</h1>" in source
    assert "the first position" in source
    assert cli("report", study, "--out", "study.xlsx").code == 0
    table = read_table("study.xlsx")
    assert table["n_both_first"].to_list() == [3]  # of ann, bob and cem, who are nearly as long
    assert table["n_pairs"].to_list() == [6]


def test_an_ab_run_is_known_as_one(cli, ab):
    done = cli("report", "ab.db", "--title", "Which is briefer?", "--json")
    assert done.code == 0
    assert [(row["task_id"], row["outcome"], row["winner"]) for row in done.json["items"]] == [
        ("t0", "win", "a"), ("t1", "win", "b"), ("t2", "flip", None),
    ]  # fmt: skip
    source = Path("ab.html").read_text("utf-8")
    assert "<h1>Which is briefer?</h1>" in source
    assert "B won 1 of 2 cases with a winner" in source
    assert "pairscale ab, version " in source
    assert "judge = swaying:brief;" in source
    assert cli("report", "ab.db", "--out", "ab.xlsx").code == 0
    assert read_table("ab.xlsx")["outcome"].to_list() == ["win", "win", "flip"]


def test_what_flipped_goes_to_a_person_and_back(cli, ab, typed):
    done = cli("report", "ab.db", "--again", "again.jsonl")
    assert done.code == 0
    assert done.lines[-1] == "written: again.jsonl, 1 case to look at again (try: pairscale label again.jsonl)"
    typed("1")
    done = cli("label", "again.jsonl", "--terminal", "--labellers", "ann", "--out", "labels.jsonl")
    assert done.code == 0
    assert "Done. Thank you!" in done.err
    done = cli(*ab, "--labels", "labels.jsonl", "--key", "again.key.jsonl", "--json")
    kept = cli(*ab, "--labels", "again.db", "--json")  # the run file itself, with the key beside it
    assert kept.json["counts"] == done.json["counts"]
    assert kept.json["counts"]["brief (people)"]["win"] == 1
    assert done.code == 0
    people = [(row["task_id"], row["outcome"]) for row in done.json["cases"] if row["key"] == "brief (people)"]
    assert people == [("t0", "abstention"), ("t1", "abstention"), ("t2", "win")]
    assert cli("report", "ab.db").code == 0
    assert "people who labelled the cases blinded" in Path("ab.html").read_text("utf-8")


@pytest.fixture
def run(cli):
    assert cli(*RANK, "--run", "run.db").code == 0
    return "run.db"


def test_the_page_goes_beside_the_run(cli, run):
    done = cli("report", run, "--title", "Whose?")
    assert (done.code, done.out, done.err) == (0, "", "written: run.html\n")
    assert "<h1>Whose?</h1>" in Path("run.html").read_text("utf-8")
