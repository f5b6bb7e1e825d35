"""`pairscale report` of a bias study and of an A/B run: told apart by themselves, as pages and tables, and labelled."""

import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from pairscale.core.files import read_table

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


def test_a_study_can_be_read_as_a_ranking(cli, study):
    assert cli("report", study, "--kind", "ranking", "--out", "ranking.csv").code == 0
    assert read_table("ranking.csv")["ID"][0] == "dot"


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


def test_to_share_an_ab_run(cli, ab):
    assert cli("report", "ab.db", "--without-texts", "--pseudonyms", "--out", "s.html").code == 0
    source = Path("s.html").read_text("utf-8")
    assert ">T1<" in source
    assert "pairscale ab, version " in source
    hidden = ("Yes.", "No, never.", "Question", "a.jsonl", ">t0<")
    assert not [text for text in hidden if text in source]


def test_a_table_to_share_has_no_words_and_neither_has_json(cli, folder, ab):
    line = [*ab]
    line[line.index("swaying:brief")] = "lexical"
    assert cli(*line).code == 0
    words = set(cli("report", "ab.db", "--json").json["items"][0]) - {"reasoning"}
    done = cli("report", "ab.db", "--without-texts", "--out", "s.csv", "--json")
    assert set(done.json["items"][0]) == words
    assert "reasoning" not in read_table("s.csv").columns


def test_a_page_to_share_does_not_name_the_run_file(cli, folder, ab):
    Path("ab.db").rename("class of ann.db")
    assert cli("report", "class of ann.db", "--pseudonyms", "--out", "s.html").code == 0
    assert "class of ann" not in Path("s.html").read_text("utf-8")


def test_a_database_has_no_place_for_its_page(cli, ab):
    done = cli("report", "sqlite:///ab.db")
    assert (done.code, len(done.lines)) == (1, 1)
    assert "name the file to write the report to" in done.err
    assert cli("report", "sqlite:///ab.db", "--out", "r.html").code == 0


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


def test_pairs_that_the_order_decided_go_to_a_person(cli, study, typed):
    assert cli("report", study, "--again", "again.jsonl").code == 0
    typed("1", "2", "tie")
    done = cli("label", "again.jsonl", "--terminal", "--labellers", "ann", "--json")
    assert done.code == 0
    assert done.json["done"] == 3


def test_surprises_of_a_ranking_go_to_a_person(cli, folder, typed):
    rows = [("ann", "bob", "ann"), ("bob", "cem", "bob"), ("cem", "dot", "cem"), ("ann", "cem", "ann")] * 6
    rows += [("bob", "dot", "bob")] * 6 + [("ann", "dot", "ann")] * 5 + [("ann", "dot", "dot")]
    texts = {path.stem: path.read_text("utf-8") for path in (folder / "essays").iterdir()}
    pairs = [{"ID1": a, "text1": texts[a], "ID2": b, "text2": texts[b]} for a, b, _ in rows]
    answers = [row[2] == row[0] for row in rows]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs), "utf-8")
    (folder / "told.py").write_text(
        f"answers = iter({answers})\ndef next_one(A, B):\n    return {{'is_valid': True, 'Y': int(next(answers))}}\n",
        "utf-8",
    )
    assert cli("judge", "pairs.jsonl", "--judge", "told:next_one", "--run", "run.db", "--concurrency", "1").code == 0
    done = cli("report", "run.db", "--again", "again.jsonl", "--json")
    sys.modules.pop("told", None)
    assert done.json["again"] == 1
    typed("2")
    done = cli("label", "again.jsonl", "--terminal", "--labellers", "ann", "--json")
    assert [row["case_id"] for row in done.json["labels"]] == ["ann::dot"]


def test_nothing_to_label_is_said(cli, folder, ab):
    for name in "ab":
        (folder / f"{name}.jsonl").write_text(
            json.dumps({"task_id": "t", "output": name * (1 + (name == "b"))}), "utf-8"
        )
    assert cli(*ab[:-1], "clear.db").code == 0
    done = cli("report", "clear.db", "--again", "again.jsonl")
    assert done.lines[-1] == "written: again.jsonl, 0 cases to look at again, so there is nothing to label"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("ab.db", "--kind", "nonsense"), "--kind: invalid choice: 'nonsense'"),
        (("ab.db", "--condition", "x"), "an A/B run shows all of its own"),
        (
            ("ab.db", "--again", "again.csv"),
            "--again must be a file that ends in '.jsonl' or '.ndjson', not 'again.csv'",
        ),
        (("ab.db", "--kind", "bias"), None),
    ],
)
def test_what_cannot_be_done_is_said(cli, ab, args, said):
    done = cli("report", *args)
    if said is None:  # answers in both orders: position bias can be told of these, too
        assert done.code == 0
    else:
        assert done.code in {1, 2}
        assert said in done.err
