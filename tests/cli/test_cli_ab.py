"""``pairscale ab`` and ``pairscale agreement``: the verdict, the run file, labels, and what goes wrong."""

import importlib
import io
import json
import sys

import pytest

import pairscale as ps
from pairscale.testing import Behaviour, ProviderSimulator

VARIANTS = '''
"""Variants and a judge for the tests."""
print("imported: this must not reach standard output")


def short(task):
    return "Yes."


def long(task):
    if "3" in task.input:
        raise ValueError("three")
    return f"Yes, because {task.input}"


def longer(A, B):
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}

'''


BETTER = "B is better: it won 19 of 19 cases with a winner (100 %; 95 % confidence interval 83 to 100 %); B is favoured"


@pytest.fixture
def answers(folder):
    """Recorded answers of both, a suite, and a module of variants."""
    (folder / "vary.py").write_text(VARIANTS)
    tasks = [{"task_id": f"t{n}", "input": f"Question {n}?"} for n in range(20)]
    a = [{**task, "output": "Yes."} for task in tasks]
    b = [
        {"task_id": task["task_id"], "output": f"Yes, because {task['input']}"}
        for task in tasks
        if task["task_id"] != "t7"
    ]
    for name, rows in (("a", a), ("b", b), ("suite", tasks)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    importlib.invalidate_caches()
    yield folder
    sys.modules.pop("vary", None)


FILES = ("ab", "a.jsonl", "b.jsonl", "--criterion", "says more")
SUITE = ("ab", "suite.jsonl", "--variant-a", "vary:short", "--variant-b", "vary:long", "--criterion", "c")


def test_the_verdict_of_recorded_answers(cli, answers):
    done = cli(*FILES, "--judge", "vary:longer", "--run", "ab.db")
    assert done.code == 0
    assert done.out.splitlines()[0] == BETTER
    assert "imported" not in done.out
    assert "note: 1 task not compared, because A or B has no answer: 't7'" in done.err
    again = cli(*FILES, "--judge", "vary:longer", "--run", "ab.db", "--name-a", "old", "--name-b", "new")
    assert again.out.startswith("new is better")
    with ps.open_run("ab.db") as store:
        assert store.counts()["attempts"] == 38


def test_json_is_one_document(cli, answers):
    found = cli(*FILES, "--judge", "vary:longer", "--json").json
    assert found["verdicts"] == {"says more": BETTER}
    assert found["counts"]["says more"] == {"win": 19, "tie": 0, "flip": 0, "abstention": 0, "error": 0}
    assert found["win_rates"]["says more"]["rate"] == found["win_rates_decided"]["says more"]["rate"] == 1.0
    assert found["bounds"] == {"says more": {"lower": 1.0, "upper": 1.0}}
    assert found["failures"] == "loss"
    assert [(side["answers"], side["failure_rate"]) for side in found["variants"]] == [(19, 0.0), (19, 0.0)]
    assert found["unmatched"] == [{"task_id": "t7", "repeat": 1, "missing": "b"}]
    assert len(found["cases"]) == 19


def test_a_suite_is_answered_first(cli, answers):
    options = ("--variant-a", "vary:short", "--variant-b", "vary:long", "--judge", "vary:longer")
    done = cli("ab", "suite.jsonl", *options, "--criterion", "c", "--run", "ab.db", "--out", "cases.csv")
    assert done.code == 0
    assert "task" not in done.out
    assert "B is better: it won 18 of 20 cases with a winner (90 %; 95 % confidence interval 70 to 97 %" in done.err
    assert "B failed in 2 of 20 cases" in done.err
    assert "note: B failed in 2 of 20 cases (counted as lost)" in done.err
    assert "t3, win: B failed: ValueError: three" in done.err
    assert "20 cases, 36 questions asked, 40 answers by the variants" in done.err
    assert (answers / "cases.csv").read_text().count("\n") == 21


def test_several_judges_are_a_panel_and_labels_are_compared(cli, answers):
    made = ps.export_pairwise_cases("a.jsonl", "b.jsonl", criteria="says more", out="cases.jsonl", seed=1)
    rows = [json.loads(line) for line in made.path.read_text().splitlines()]
    labels = [{"case_id": row["case_id"], "preferred": "1" if len(row["response_1"]) > 4 else "2"} for row in rows]
    (answers / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    people = ("--labels", "labels.jsonl", "--key", "cases.key.jsonl")
    alone = cli(*FILES, *people)
    assert alone.out.startswith("B is better: it won 19 of 19")
    both = cli(*FILES, *people, "--judge", "vary:longer", "--judge", "lexical")
    assert both.code == 0
    assert "says more (people): B is better" in both.out
    assert "agree on" in both.out


@pytest.mark.slow
def test_the_manifest_for_labellers(cli, answers):
    done = cli(*FILES, "--judge", "vary:longer", "--manifest", "cases.jsonl")
    assert done.code == 0
    assert "wrote 19 cases to cases.jsonl, and their key (not for labellers) to cases.key.jsonl" in done.err
    first = json.loads((answers / "cases.jsonl").read_text().splitlines()[0])
    assert "first_variant" not in first
    options = ("--variant-a", "vary:short", "--variant-b", "vary:long", "--criterion", "c", "--judge", "vary:longer")
    refused = cli("ab", "suite.jsonl", *options, "--manifest", "m.jsonl", "--run", "ab.db")
    assert refused.code == 1
    assert "--manifest belongs to recorded answers" in refused.err


def test_a_person_at_the_terminal(cli, answers, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("tie\n" * 19))
    done = cli(*FILES, "--judge", "human", "--json")
    assert done.json["counts"]["says more"]["tie"] == 19
    assert "Which is better? 1 / 2 / tie: " in done.err
    assert done.err.count("Criterion: says more\n") == 19


def test_a_model_over_http(cli, answers, monkeypatch):
    with ProviderSimulator(Behaviour(quality=len, sharpness=1)) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        done = cli(*FILES, "--judge", "openai:gpt-4.1", "--run", "ab.db", "--json")
        assert done.code == 0
        assert done.json["counts"]["says more"]["win"] == 19
        assert done.json["cost"] > 0
        variants = ("--variant-a", "openai:gpt-4.1", "--variant-b", "vary:long", "--prompt-a", "Briefly: {input}")
        done = cli("ab", "suite.jsonl", *variants, "--criterion", "c", "--judge", "vary:longer", "--json")
        assert any(
            str(entry.body["messages"][-1]["content"]).startswith("Briefly: Question") for entry in server.journal
        )
        assert done.json["counts"]["c"]["win"] == 20
        assert done.json["variants"][1]["failures"] == 2
        assert done.json["variants"][0]["cost"] > 0


# agreement


def test_agreement_of_labellers(cli, folder):
    labels = [
        {"case_id": f"c{n}", "labeller": who, "preferred": said}
        for who, row in (("ann", "1121t"), ("bob", "1221t"))
        for n, said in enumerate(row)
    ]
    (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    done = cli("agreement", "labels.jsonl")
    assert done.code == 0
    assert "2 raters on 5 units" in done.out
    found = {row["statistic"]: row for row in cli("agreement", "labels.jsonl", "--json").json["table"]}
    # 4 of 5 agree; chance is 3/5 · 2/5 + 1/5 · 2/5 + 1/5 · 1/5 = 9/25
    assert found["percent_agreement"]["estimate"] == pytest.approx(0.8)
    assert found["cohen_kappa"]["estimate"] == pytest.approx((0.8 - 9 / 25) / (1 - 9 / 25))
    assert (found["cohen_kappa"]["lower"], found["cohen_kappa"]["interval"]) == (None, None)
    assert "5 units are too few, it takes 20" in done.err
    assert found["percent_agreement"]["lower"] < 0.8 < found["percent_agreement"]["upper"]


def test_encoding_and_duplicates_on_the_command_line(cli, answers):
    rows = "task_id,output\nt1,жуки жужжат\n"
    (answers / "a.csv").write_bytes(rows.encode("cp1251"))
    (answers / "b.csv").write_bytes((rows + "t1,жук\n").encode("cp1251"))
    asked = ("ab", "a.csv", "b.csv", "--criterion", "says more", "--judge", "vary:longer")
    refused = cli(*asked)
    assert refused.code == 1
    assert "--encoding" in refused.err
    done = cli(*asked, "--encoding", "cp1251")
    assert done.code == 0
    assert "more answers on one side, of which the rest have no partner: 't1'" in done.err
    assert "note: 1 task not compared, because A or B has no answer: 't1'" in done.err
