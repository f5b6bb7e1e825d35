"""Cases from manifests, pairs and run files; the key is never read."""

import json

import polars as pl
import pytest
from labelling import make_cases

import pairscale as ps
from pairscale.core.errors import InputError, StoreError, TableError
from pairscale.core.files import write_table
from pairscale.evaluate.manifest import MANIFEST
from pairscale.people import LabelStore, read_cases
from pairscale.store.reading import read_comparisons


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:0], "holds no case to label"),
        (
            lambda rows: [{**rows[0], "case_id": "x"}, {**rows[1], "case_id": "x"}],
            "case_id 'x' appears more than once",
        ),
        (lambda rows: [{**rows[0], "case_id": ""}], "'case_id' is empty in row 1"),
        (lambda rows: [{**rows[0], "criterion": None}], "'criterion' is empty in row 1"),
        (
            lambda rows: [{k: v for k, v in rows[0].items() if k != "response_2"}],
            "no 'response_2' in row 1; a manifest has case_id",
        ),
    ],
)
def test_manifests_that_cannot_be_used(tmp_path, change, words):
    rows = change([{name: getattr(case, name) for name in MANIFEST} for case in make_cases(2)])
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=words):
        read_cases(tmp_path / "m.jsonl")


def test_pairs_come_once_whichever_stands_first(tmp_path, caplog):
    samples = [{"ID": name, "text": f"text of {name}"} for name in "abc"]
    pairs = ps.make_pairs(samples)
    both = pl.concat([pairs, pairs.select(ID1="ID2", text1="text2", ID2="ID1", text2="text1")])
    cases = read_cases(write_table(both, tmp_path / "pairs.csv"), criterion="warmth")
    assert [(case.case_id, case.response_1, case.response_2) for case in cases] == [
        ("a:b", "text of a", "text of b"), ("a:c", "text of a", "text of c"), ("b:c", "text of b", "text of c"),
    ]  # fmt: skip
    assert {case.criterion for case in cases} == {"warmth"}
    assert "3 pairs are repeated" in caplog.text


def test_the_pairs_of_a_run_file(message_snapshot, tmp_path):
    pairs = ps.make_pairs([{"ID": name, "text": f"text of {name}"} for name in "abc"])
    run = tmp_path / "run.db"
    ps.submit_pairs(pairs, ps.make_judge("lexical", trait="clarity"), run=run, progress=False)
    cases = read_cases(run)
    assert [(case.response_1, case.response_2) for case in cases] == list(pairs.select("text1", "text2").iter_rows())
    assert {case.criterion for case in cases} == {"Clarity"}
    ps.submit_pairs(pairs, ps.make_judge("lexical", trait="ideas"), run=run, progress=False)
    with pytest.raises(InputError) as refused:
        read_cases(run)
    message_snapshot(refused)
    assert {case.criterion for case in read_cases(run, criterion="x")} == {"x"}


def test_files_that_are_none(message_snapshot, tmp_path):
    with pytest.raises(StoreError) as refused:
        read_cases(tmp_path / "none.db")
    message_snapshot(refused)
    ps.open_run(tmp_path / "empty.db", write=True).close()
    with pytest.raises(InputError, match="holds no case"):
        read_cases(tmp_path / "empty.db")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError) as refused:
        read_cases(tmp_path / "x.csv")
    message_snapshot(refused)
    (tmp_path / "y.csv").write_text("case_id,response_1\n1,2\n")
    with pytest.raises(TableError, match="no 'task_id', 'criterion'"):
        read_cases(tmp_path / "y.csv")


def test_names_and_classes_of_pairs_reach_the_ranking_by_labels(tmp_path):
    samples = [{"ID": name, "text": f"{name} rose.", "class": kind} for name, kind in zip("abc", "xyx", strict=True)]
    pairs = write_table(ps.make_pairs(samples), tmp_path / "pairs.csv")
    cases = read_cases(pairs)
    assert {case.ID1: case.columns_1 for case in cases} == {"a": {"class": "x"}, "b": {"class": "y"}}
    with LabelStore(tmp_path / "labels.db", cases) as store:
        ann = store.add_labeller("ann")
        for _ in cases:
            store.answer(ann, store.next(ann).question_id, "1")
    known = read_comparisons(tmp_path / "labels.db").samples  # what `pairscale fit` takes its other columns from
    assert dict(known.select("ID", "class").iter_rows()) == {"a": "x", "b": "y", "c": "x"}
