"""People: asked on the terminal, or through a blinded manifest and back; whatever is wrong in a file is said."""

import asyncio
import csv
import io
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evaluate.sides import rows_of, write

import pairscale as ps
from pairscale.core.errors import FileFormatError, InputError
from pairscale.evaluate.labels import case_name, read_key

SUITE = ps.Suite.from_list([{"task_id": f"t{n}", "input": f"Question {n}?"} for n in range(40)])
A = ps.InMemoryTraceSource({task.task_id: f"A says {task.input}" for task in SUITE})
B = ps.InMemoryTraceSource({task.task_id: f"B says {task.input}" for task in SUITE})


def evaluated(*comparators, a=A, b=B, **options):
    return ps.evaluate_pairwise(a, b, comparators=comparators, suite=SUITE, progress=False, **options)


def export(tmp_path, **options):
    options = {"criteria": "more helpful", "out": tmp_path / "cases.jsonl", "suite": SUITE, "seed": 3} | options
    return ps.export_pairwise_cases(A, B, **options)


# The manifest


def test_the_fields_and_the_key(tmp_path):
    made = export(tmp_path)
    cases, key = rows_of(made.path), rows_of(made.key_path)
    assert made.key_path == tmp_path / "cases.key.jsonl"
    assert all(
        list(case) == ["case_id", "task_id", "criterion", "task_input", "response_1", "response_2"] for case in cases
    )
    assert cases[0]["case_id"] == "t0::more helpful"
    assert cases[0]["task_input"] == "Question 0?"
    for case, row in zip(cases, key, strict=True):
        assert row["case_id"] == case["case_id"]
        assert case["response_1"].startswith(row["first_variant"].upper())
        assert {case["response_1"][0], case["response_2"][0]} == {"A", "B"}
    firsts = [row["first_variant"] for row in key]
    assert 10 <= firsts.count("a") <= 30, "chance decides who stands first"
    again = export(tmp_path, out=tmp_path / "again.jsonl")
    assert again.path.read_text() == made.path.read_text()
    assert os.fspath(made) == str(made.path)


def test_what_cannot_be_exported(tmp_path):
    for options, words in (
        ({"criteria": []}, 'as in `criteria="more helpful"`'),
        ({"out": tmp_path / "cases.csv"}, r"the manifest must be a file that ends in '\.jsonl' or '\.ndjson', not "),
    ):
        with pytest.raises(InputError, match=words):
            export(tmp_path, **options)
    broken = ps.InMemoryTraceSource({"t0": ps.Trace(exception="no"), "t1": "yes"})
    made = ps.export_pairwise_cases(broken, B, criteria="c", out=tmp_path / "x.jsonl")
    assert made.n_cases == 1
    assert ("t0", 1, "a") in {(one.task_id, one.repeat, one.missing) for one in made.unmatched}
    assert len(made.unmatched) == 39


def test_exported_again_every_case_keeps_its_sides(tmp_path):
    made = export(tmp_path)
    labels = write(tmp_path / "labels.jsonl", labelled(made.path, prefers_b))
    before = made.path.read_text()
    export(tmp_path, seed=4)  # by itself, another seed draws other sides
    assert made.path.read_text() == before
    people = ps.human_labels(labels, criterion="more helpful", key="h", key_file=made.key_path)
    assert evaluated(people).tally("h") == (0, 40, 0)


def test_a_key_that_labels_rest_on_is_not_replaced(message_snapshot, tmp_path):
    made = export(tmp_path)
    key = made.key_path
    before = key.read_text()
    changed = ps.InMemoryTraceSource({task.task_id: f"C says {task.input}" for task in SUITE})
    with pytest.raises(InputError) as refused:
        ps.export_pairwise_cases(A, changed, criteria="more helpful", out=made.path)
    message_snapshot(refused)
    with pytest.raises(InputError, match="Name another file"):
        export(tmp_path, criteria="brief")
    assert key.read_text() == before


def test_labels_are_matched_by_the_key_and_not_by_names(tmp_path):
    """'a::b' may be the task a under b::c, or a::b under c: the key says which."""
    source = ps.InMemoryTraceSource([("a::b", "x"), ("a::b", "y"), ("a", "z")])
    other = ps.InMemoryTraceSource([("a::b", "1"), ("a::b", "2"), ("a", "3")])
    made = ps.export_pairwise_cases(source, other, criteria="c", out=tmp_path / "c.jsonl", seed=1)
    key = rows_of(made.key_path)
    assert list(key[0]) == ["case_id", "task_id", "criterion", "repeat", "first_variant", "answers"]
    named = [("a::b::c", "a::b", "c", 1), ("a::b::c::2", "a::b", "c", 2), ("a::c", "a", "c", 1)]
    columns = ("case_id", "task_id", "criterion", "repeat")
    assert [tuple(row[name] for name in columns) for row in key] == named
    labels = write(tmp_path / "l.jsonl", [{"case_id": row["case_id"], "preferred": "1"} for row in key])
    assert ps.read_labels(labels, key_file=made.key_path).table.select(columns).rows() == named


# And back


def labelled(path, choose):
    return [{"case_id": row["case_id"], "preferred": choose(row)} for row in rows_of(path)]


def prefers_b(row):
    return "1" if row["response_1"].startswith("B") else "2"


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_there_and_back(tmp_path, kind):
    made = export(tmp_path)
    labels = [{**row, "preferred": prefers_b(row)} for row in rows_of(made.path)]
    path = tmp_path / f"labels.{kind}"
    if kind == "jsonl":
        write(path, labels)
    else:
        text = io.StringIO()
        table = csv.DictWriter(text, list(labels[0]))
        table.writeheader()
        table.writerows(labels)
        path.write_text(text.getvalue())
    comparator = ps.human_labels(path, criterion="more helpful", key="human", key_file=made.key_path)
    assert comparator.problems.is_empty()
    found = evaluated(comparator)
    assert found.tally("human") == (0, 40, 0)


def test_the_key_beside_the_labels_is_found(tmp_path):
    made = export(tmp_path)
    rows = [{**row, "preferred": "tie"} for row in rows_of(made.path)]
    write(made.path, rows)  # the labeller wrote into the manifest itself
    assert evaluated(ps.human_labels(made, criterion="more helpful", key="h")).tally("h") == (0, 0, 40)
    made.key_path.unlink()
    with pytest.raises(FileFormatError, match="key_file="):
        ps.human_labels(made.path, criterion="more helpful", key="h")


def test_what_is_wrong_is_listed_and_nothing_is_a_tie(tmp_path, caplog):
    made = export(tmp_path)
    rows = [
        {"case_id": "t0::more helpful", "preferred": 1},
        {"case_id": "t1::more helpful", "preferred": "3"},
        {"case_id": "t2::more helpful", "preferred": None},
        {"case_id": "t99::more helpful", "preferred": "1"},
        {"case_id": "t3::more helpful", "preferred": "1"},
        {"case_id": "t3::more helpful", "preferred": "2"},
        {"case_id": "t4::more helpful", "preferred": "2"},
        {"case_id": "t4::more helpful", "preferred": " 2 "},
        {"case_id": None, "preferred": "1"},
        {"case_id": "t5::more helpful", "preferred": "", "skipped": "cannot tell"},
        {"case_id": "t6::more helpful", "preferred": "TIE"},
    ]
    path = write(tmp_path / "labels.jsonl", rows)
    comparator = ps.human_labels(path, criterion="more helpful", key="human", key_file=made.key_path)
    assert comparator.problems.select("row", "problem").rows() == [
        (2, "preferred is '3'; it must be 1, 2 or tie"),
        (3, "there is no label"),
        (4, "no such case was exported"),
        (5, "another label of this labeller contradicts it"),
        (6, "another label of this labeller contradicts it"),
        (8, "the same label a second time"),
        (9, "no such case was exported"),
        (10, "skipped: cannot tell"),
    ]
    assert "8 of the labels cannot be used" in caplog.text
    found = evaluated(comparator)
    assert found.counts("human") == {"win": 2, "tie": 1, "flip": 0, "abstention": 37, "error": 0}
    assert found.cases[1].detail == {"missing": True}
    assert len(ps.read_labels(path, key_file=made.key_path).missing) == 37


def test_several_labellers_decide_by_majority_and_all_are_kept(tmp_path):
    made = export(tmp_path)
    first = read_key(made.key_path)["t0::more helpful"]["first_variant"]
    rows = [
        {"case_id": "t0::more helpful", "labeller": who, "preferred": said, "comment": comment}
        for who, said, comment in (("ann", "1", "clear"), ("bob", "1", None), ("cem", "2", None))
    ]
    rows += [
        {"case_id": "t1::more helpful", "labeller": who, "preferred": said} for who, said in (("a", "1"), ("b", "2"))
    ]
    path = write(tmp_path / "labels.jsonl", rows)
    found = evaluated(ps.human_labels(path, criterion="more helpful", key="h", key_file=made.key_path))
    assert found.cases[0].winner == first
    assert [one["labeller"] for one in found.cases[0].detail["labels"]] == ["ann", "bob", "cem"]
    assert found.cases[0].reasoning == "ann: clear"
    assert (found.cases[1].winner, found.cases[1].detail["divided"]) == ("tie", True)


def test_labels_of_other_answers_are_an_error(tmp_path):
    made = export(tmp_path)
    path = write(tmp_path / "labels.jsonl", labelled(made.path, prefers_b))
    comparator = ps.human_labels(path, criterion="more helpful", key="h", key_file=made.key_path)
    changed = ps.InMemoryTraceSource({task.task_id: "rewritten" for task in SUITE})
    assert evaluated(comparator, b=changed).counts("h")["error"] == 40


# a task without an answer is no case
outputs = st.text(max_size=30).filter(lambda text: ps.Trace(text).failure is None)
names = st.text(min_size=1, max_size=12).filter(str.strip)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    answers=st.dictionaries(names, st.tuples(outputs, outputs), min_size=1, max_size=5),
    criteria=st.lists(names, min_size=1, max_size=2, unique=True),
    data=st.data(),
)
def test_whatever_is_exported_comes_back(tmp_path_factory, answers, criteria, data):
    folder = tmp_path_factory.mktemp("manifest")
    sources = [ps.InMemoryTraceSource({name: pair[side] for name, pair in answers.items()}) for side in (0, 1)]
    all_names = [case_name(task, criterion) for task in answers for criterion in criteria]
    if len(set(all_names)) < len(all_names):
        with pytest.raises(InputError, match="two cases would be called"):
            ps.export_pairwise_cases(*sources, criteria=criteria, out=folder / "c.jsonl")
        return
    made = ps.export_pairwise_cases(*sources, criteria=criteria, out=folder / "c.jsonl")
    cases = rows_of(made.path)
    assert {(row["task_id"], row["criterion"]) for row in cases} == {(t, c) for t in answers for c in criteria}
    wanted = {row["case_id"]: data.draw(st.sampled_from(["a", "b", "tie"])) for row in cases}
    key = read_key(made.key_path)
    for row in cases:
        first = key[row["case_id"]]["first_variant"]
        assert (row["response_1"], row["response_2"]) == answers[row["task_id"]][:: 1 if first == "a" else -1]
        row["preferred"] = {"tie": "tie", first: "1"}.get(wanted[row["case_id"]], "2")
    labels = ps.read_labels(write(folder / "labels.jsonl", cases), key_file=made.key_path)
    assert labels.problems.is_empty()
    assert dict(labels.table.select("case_id", "winner").iter_rows()) == wanted
    for criterion in criteria:
        comparator = ps.human_labels(folder / "labels.jsonl", criterion=criterion, key="h", key_file=made.key_path)
        for task, (a, b) in answers.items():
            said = asyncio.run(
                comparator.compare(task=ps.Task({}, task), trace_a=ps.Trace(a), trace_b=ps.Trace(b), repeat=1)
            )
            assert said.winner == wanted[case_name(task, criterion)]


# On the terminal


def answer(monkeypatch, *lines):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_the_prompt_on_the_terminal(monkeypatch, capsys):
    suite = ps.Suite.from_list([{"task_id": "t", "input": "What's the capital of France?"}])
    answer(monkeypatch, "both", "2")
    found = ps.run_pairwise(
        suite, variant_a=lambda task: "Paris.", variant_b=lambda task: "The capital of France is Paris.",
        comparators=[ps.human_pairwise(key="human", seed=1)], progress=False,
    )  # fmt: skip
    first = found.cases[0].detail["first_variant"]
    shown = ["Paris.", "The capital of France is Paris."][:: 1 if first == "a" else -1]
    assert capsys.readouterr().out == (
        "Task: What's the capital of France?\n"
        f"[1] {shown[0]}\n"
        f"[2] {shown[1]}\n"
        "Which is better? 1 / 2 / tie: Which is better? 1 / 2 / tie: "
    )
    assert found.cases[0].winner == ("b" if first == "a" else "a")


def test_texts_do_not_command_the_terminal(monkeypatch, capsys):
    answer(monkeypatch, "tie")
    ps.run_pairwise(
        ps.Suite.from_list(["q\x1b[2J"]), variant_a=lambda task: "\x1b]0;gone\x07", variant_b=lambda task: "two\nlines",
        comparators=[ps.human_pairwise(key="human")], progress=False,
    )  # fmt: skip
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "two\nlines" in shown


def test_choices_are_blind_and_kept(tmp_path):
    asked = []

    def ask(task, response_1, response_2):
        asked.append((task.task_id, response_1[0]))
        return "1" if response_1.startswith("B") else "2"

    found = evaluated(ps.human_pairwise(key="h", ask=ask, seed=5), run=tmp_path / "ab.db")
    assert found.tally("h") == (0, 40, 0)
    assert 8 <= sum(side == "A" for _, side in asked) <= 32
    assert len(asked) == 40
    again = evaluated(ps.human_pairwise(key="h", ask=ask), run=tmp_path / "ab.db")
    assert len(asked) == 40, "nobody is asked twice"
    assert again.cases == found.cases


def test_other_ways_to_ask():
    async def later(task, response_1, response_2):
        await asyncio.sleep(0)
        return "tie"

    assert evaluated(ps.human_pairwise(key="h", ask=later)).tally("h") == (0, 0, 40)
    wrong = evaluated(ps.human_pairwise(key="h", ask=lambda *_: "neither"))
    assert wrong.counts("h")["error"] == 40
    assert "must be '1', '2' or 'tie'" in wrong.cases[0].reasoning
    assert evaluated(ps.human_pairwise(key="h", ask=lambda *_: None)).counts("h")["abstention"] == 40
