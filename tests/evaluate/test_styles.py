"""What is counted of answers, and a run's win rate with it taken out."""

import json
from dataclasses import replace

import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.evaluate.result import PairwiseRunResult, markdown_counts


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", (0, 0, 0)),
        ("plain words - and a dash, 3. of a kind, #hash", (0, 0, 0)),
        ("# One\n### Two\n####### seven\n#none", (2, 0, 0)),
        ("* a\n- b\n+ c\n  1. d\n2) e\n-not\n**bold** and __bold__", (0, 5, 2)),
        ("```\n# code\n- code\n**code**\n```\n- text", (0, 1, 0)),
        ("~~~py\n# code\n~~~\n# text\r\n- text\r\n", (1, 1, 0)),
        ("```\n# a fence that never closes", (1, 0, 0)),
        ("**\n** a * b ** c", (0, 0, 0)),
    ],
)
def test_markdown_is_counted_outside_of_code(text, counts):
    assert tuple(markdown_counts(text).values()) == counts


def longer(A, B):
    first, second = (len(side["text"]) for side in (A, B))
    return {"is_valid": True, "Y": 0.5 if first == second else int(first > second)}


def written(folder, n=30):
    """Files of answers: B's are longer, have lists and a tone."""
    for name, times, mark in (("a", 1, ""), ("b", 2, "- ")):
        rows = [
            {"task_id": f"t{at}", "output": mark + "word " * (5 + at % 7 * times), "tone": at % 5 * times}
            for at in range(n)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder / "a.jsonl", folder / "b.jsonl"


@pytest.fixture
def result(tmp_path):
    return ps.ab(*written(tmp_path), criterion="c", judge=longer, control=["length", "markdown"], progress=False)


def test_a_run_is_controlled_for_its_own_styles(message_snapshot, result):
    assert result.control == ("length", "headers", "lists", "bold")
    found = result.controlled("c")
    assert found.n == 30
    length = result.length_controlled("c")
    assert length.raw_rate == result.win_rate("c").rate
    assert length.rate < length.raw_rate
    assert length.overlap == sum(
        abs(case.length_b - case.length_a) <= (case.length_a + case.length_b) / 8 for case in result.cases
    )
    for line in ("at equal length, lists: B wins", "note: "):
        assert line in result.summary()
    with pytest.raises(InputError) as refused:
        result.length_controlled("d")
    message_snapshot(refused)


def test_a_numeric_column_of_the_answers(result):
    found = result.controlled("c", ["tone"])
    assert (found.differing, found.rate is not None) == (("tone",), True)


def test_a_column_that_no_answer_has_is_said_and_nothing_is_lost(result):
    found = result.controlled("c", ["length", "mood"])
    assert found.rate is None
    assert "no case has a number 'mood' of both answers" in found.notices[0]


def test_where_one_looked_after_every_case_there_is_no_interval(result):
    looked = replace(result, sequential=True)
    found = looked.controlled("c")
    assert (found.rate, found.ci) == (result.controlled("c").rate, None)
    assert "looked at after every case" in found.notices[0]
    assert "interval" not in str(found)


def test_there_is_nothing_to_control_for_where_no_answers_differ(tmp_path):
    a, b = ({f"t{n}": word * (n + 1) for n in range(20)} for word in ("yes ", "certainly "))
    result = ps.ab(a, b, criterion="c", judge=longer, control="markdown", progress=False)
    found = result.controlled("c")
    nothing = "no answers differ in headers, lists, bold, so there is nothing to control for"
    assert (found.differing, found.notices, str(found)) == ((), (nothing,), nothing)
    assert (found.rate, found.ci) == (found.raw_rate, result.win_rate("c").ci)
    assert f"c: note: {nothing}" in result.summary()
    page = result.report(tmp_path / "ab.html").read_text("utf-8")
    for said in (result.summary(), page):
        assert "at equal headers" not in said.lower()


def test_what_a_run_controls_for_is_kept_with_it_and_reported(tmp_path):
    run, saved = tmp_path / "ab.db", tmp_path / "saved"
    ways = {"criterion": "c", "judge": "tests.evaluate.test_styles:longer", "run": run, "progress": False}
    for control in (["tone"], ["length", "markdown"]):
        found = ps.ab(*written(tmp_path), **ways, control=control)
        page = ps.report(run, out=tmp_path / "page.html").read_text("utf-8")
        assert f"at equal {', '.join(found.controlled('c').differing)}: B wins" in page
        assert PairwiseRunResult.load(found.save(saved)).control == found.control
    assert "at equal tone" not in page
