"""A run out again: preference pairs in TRL's forms, and a workbook of three sheets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastexcel
import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import InputError

TEXTS = {"a": "aa", "b": "bbbb", "c": "cccccc", "d": "dddddddd"}
SAMPLES = pl.DataFrame({"ID": list(TEXTS), "text": list(TEXTS.values()), "task": ["t1", "t1", "t2", "t2"]})


def longer(A: Any, B: Any) -> dict[str, Any]:
    """The longer text is better; c and d tie, and of a and b the first is always better."""
    pair = {A["ID"], B["ID"]}
    if pair == {"c", "d"}:
        return {"is_valid": True, "Y": 0.5}
    return {"is_valid": True, "Y": 1 if pair == {"a", "b"} else int(len(A["text"]) > len(B["text"]))}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """All pairs, in both orders."""
    monkeypatch.chdir(tmp_path)
    pairs = ps.make_pairs(SAMPLES)
    both = pl.concat([pairs, ps.sample_reverse_pairs(pairs, 1, seed=1).select(pairs.columns)])
    ps.judge(both, judge=longer, run="run.db", progress=False)
    return Path("run.db")


def test_preference_pairs_leave_ties_and_flips_out_and_say_so(run, caplog):
    ps.export(run, "pairs.jsonl", kind="preferences", prompt="Write!")
    rows = lines(Path("pairs.jsonl"))
    assert list(rows[0]) == [
        "prompt", "chosen", "rejected", "probability", "margin", "both_orders", "chosen_id", "rejected_id",
    ]  # fmt: skip
    assert sorted((row["chosen_id"], row["rejected_id"]) for row in rows) == [
        ("c", "a"),
        ("c", "b"),
        ("d", "a"),
        ("d", "b"),
    ]
    for row in rows:
        assert (row["chosen"], row["rejected"]) == (TEXTS[row["chosen_id"]], TEXTS[row["rejected_id"]])
        assert (row["prompt"], row["both_orders"], row["probability"]) == ("Write!", True, None)
        assert row["margin"] > 0
    said = "4 preference pairs; left out: 1 flips (another answer in another order, or when asked again), 1 ties"
    assert said in caplog.text


def test_margins_are_differences_of_scores(run):
    ps.export(run, "pairs.jsonl", kind="preferences", prompt="Write!")
    fit = ps.fit_bt_model(ps.open_run(run).results(), engine="map", ties="half", repeats="learned")
    theta = dict(fit.theta.select("ID", "theta").iter_rows())
    for row in lines(Path("pairs.jsonl")):
        assert row["margin"] == pytest.approx(theta[row["chosen_id"]] - theta[row["rejected_id"]])


def test_prompts_of_their_own_must_be_the_same(message_snapshot, run, caplog):
    with pytest.raises(InputError) as refused:
        ps.export(run, "pairs.jsonl", kind="preferences", input_col="task")  # only a, b and c, d share theirs
    message_snapshot(refused)
    assert "4 of texts with different prompts" in caplog.text
    with pytest.raises(InputError) as refused:
        ps.export(run, "pairs.jsonl", kind="preferences", input_col="question")
    message_snapshot(refused)


def test_the_forms_of_trl(run):
    """Plain and conversational, as TRL's documentation has them."""
    user, good, bad = ({"role": role, "content": text} for role, text in
                       (("user", "Write: "), ("assistant", TEXTS["d"]), ("assistant", TEXTS["a"])))  # fmt: skip
    forms = {False: ("Write: ", TEXTS["d"], TEXTS["a"]), True: ([user], [good], [bad])}
    for messages, form in forms.items():
        ps.export(run, "pairs.jsonl", kind="preferences", prompt="Write: ", conversational=messages)
        rows = {(row["chosen_id"], row["rejected_id"]): row for row in lines(Path("pairs.jsonl"))}
        assert tuple(rows["d", "a"][name] for name in ("prompt", "chosen", "rejected")) == form


def test_stated_probabilities_are_of_the_chosen_text(run):
    both = [(x, y) for x in TEXTS for y in TEXTS if x != y]
    stated = [{"ID1": x, "ID2": y, "better_id": max(x, y), "probability": 0.9 if x > y else 0.2} for x, y in both]
    ps.import_run(stated, "sure.db", SAMPLES)
    ps.export("sure.db", "pairs.jsonl", kind="preferences")
    rows = lines(Path("pairs.jsonl"))
    assert len(rows) == 6
    assert {round(row["probability"], 9) for row in rows} == {0.85}


def test_tasks_of_an_ab_run_are_the_prompts(message_snapshot, run):
    suite = ps.Suite.from_list(["What is 1 + 1?", "Name a town."])
    judge = ps.pairwise_judge(lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))},
                              criterion="says more", key="longer")  # fmt: skip
    sides = {"variant_a": lambda task: "No.", "variant_b": lambda task: "Certainly, and gladly."}
    ps.run_pairwise(suite, **sides, comparators=[judge], run="ab.db")
    ps.export("ab.db", "pairs.jsonl", kind="preferences")
    rows = lines(Path("pairs.jsonl"))
    assert [(row["prompt"], row["chosen"], row["rejected"], row["both_orders"]) for row in rows] == [
        ("What is 1 + 1?", "Certainly, and gladly.", "No.", True),
        ("Name a town.", "Certainly, and gladly.", "No.", True),
    ]
    with pytest.raises(InputError) as refused:
        ps.export("ab.db", "pairs.jsonl", kind="preferences", prompt="x")
    message_snapshot(refused)


@pytest.mark.parametrize(
    "option", [{"prompt": "x"}, {"condition": "all"}, {"conversational": True}, {"input_col": "task"}]
)
def test_options_of_preferences_belong_to_them(message_snapshot, run, option):
    with pytest.raises(InputError) as refused:
        ps.export(run, "results.csv", **option)
    message_snapshot(refused)


def test_a_workbook_has_a_sheet_each_for_ranking_comparisons_and_method(run):
    ps.report(run, out="run.xlsx")
    book = fastexcel.read_excel("run.xlsx")
    assert book.sheet_names == ["ranking", "comparisons", "method"]
    ranking, answers, method = (book.load_sheet(name).to_polars() for name in book.sheet_names)
    assert set(ranking["ID"][:2]) == {"c", "d"}
    assert answers.height == 12
    assert {"method", "to cite", "lead"} <= set(method["what"])
    ps.report(run, out="bare.xlsx", without_texts=True, pseudonyms=True)
    bare = fastexcel.read_excel("bare.xlsx")
    assert "content" not in bare.load_sheet("comparisons").to_polars().columns
    everything = str([bare.load_sheet(name).to_polars().rows() for name in bare.sheet_names])
    assert not any(f"'{name}'" in everything for name in TEXTS)
