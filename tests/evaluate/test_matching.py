"""Which answer of A belongs to which of B, and what is said where they do not fit."""

import asyncio
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluate.sides import compared, longer, write

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.evaluate.tasks import TraceRef, id_key, matched

JUDGE = ps.pairwise_judge(longer, criterion="longer", key="longer")


def test_ids_in_two_spellings_of_unicode_are_one(tmp_path):
    names = ["café", "naïve", "Å"]
    a = write(tmp_path / "a.jsonl", [{"task_id": unicodedata.normalize("NFC", n), "output": "x"} for n in names])
    b = write(tmp_path / "b.jsonl", [{"task_id": unicodedata.normalize("NFD", n), "output": "yy"} for n in names])
    found = compared(a, b)
    assert (found.tally("longer"), found.unmatched) == ((0, 3, 0), ())
    suite = [{"task_id": unicodedata.normalize("NFD", n), "input": "q"} for n in names]
    assert compared(a, b, suite=suite).tally("longer") == (0, 3, 0)
    with pytest.raises(InputError, match="not unique"):
        ps.Suite.from_list([{"task_id": unicodedata.normalize(form, "é"), "input": "q"} for form in ("NFC", "NFD")])


@pytest.mark.parametrize("missing", ["NaN", "nan"])
def test_nan_is_a_missing_answer(tmp_path, missing):
    (tmp_path / "a.csv").write_text(f"task_id,output\nt1,{missing}\nt2,fine\n")
    (tmp_path / "b.csv").write_text("task_id,output\nt1,x\nt2,y\n")
    found = compared(tmp_path / "a.csv", tmp_path / "b.csv")
    assert [case.failed for case in found.cases] == ["a", None]


def test_without_names_answers_are_paired_by_input(tmp_path, caplog):
    a = write(tmp_path / "a.jsonl", [{"input": f"Q{n}?", "output": "x"} for n in range(3)])
    b = write(tmp_path / "b.jsonl", [{"prompt": f" Q{n}?\n", "completion": "yy", "id": f"x{n}"} for n in (2, 1, 0)])
    found = compared(a, b)
    assert (found.tally("longer"), found.unmatched) == ((0, 3, 0), ())
    assert "A and B share no task_id; answers are paired by the text of the task" in caplog.text
    assert [case.task_id for case in found.cases] == ["x0", "x1", "x2"]
    suite = ps.Suite.from_list([{"task_id": f"s{n}", "input": f"Q{n}?"} for n in range(3)])
    assert [case.task_id for case in compared(a, b, suite=suite).cases] == ["s0", "s1", "s2"]


def test_nothing_in_common_is_refused(message_snapshot, tmp_path):
    a = write(tmp_path / "a.jsonl", [{"input": "Q?", "output": "x"}])
    b = write(tmp_path / "b.jsonl", [{"input": "R?", "output": "x"}])
    with pytest.raises(InputError) as refused:
        compared(a, b)
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        compared({"t1": "x"}, {"t2": "x"})
    message_snapshot(refused)


def test_one_name_for_two_tasks_is_said(tmp_path, caplog):
    a = write(tmp_path / "a.jsonl", [{"task_id": n, "input": f"Q{n}?", "output": "x"} for n in range(3)])
    b = write(tmp_path / "b.jsonl", [{"task_id": n, "input": f"Q{2 - n}?", "output": "yy"} for n in range(3)])
    compared(a, b)
    assert "asked different things under the same name in 2 of 3 tasks ('0', '2')" in caplog.text


names = st.sampled_from(["a", "b", "é", "e\u0301", "c", None])
inputs = st.sampled_from(["Q1", "Q2", " Q1 ", None])
refs = st.lists(st.tuples(names, inputs), max_size=6).map(
    lambda rows: [
        TraceRef(str(at), name, {} if text is None else {"input": text}) for at, (name, text) in enumerate(rows)
    ]
)


@given(a=refs, b=refs, tasks=st.sets(st.sampled_from(["a", "b", "é"])))
def test_no_answer_is_lost_or_used_twice(a, b, tasks):
    suite = [ps.Task({"input": name}, name) for name in sorted(tasks)]
    try:
        found, unmatched = matched(a, b, suite)
    except InputError:
        shared = {id_key(one.task_id) for one in a if one.task_id} & {id_key(one.task_id) for one in b if one.task_id}
        assert not shared
        return
    for side, own in (("a", a), ("b", b)):
        used = [id(ref) for match in found for ref in getattr(match, side)]
        assert len(used) == len(set(used))
        assert set(used) <= {id(ref) for ref in own}
    left = len(a) + len(b) - sum(len(one.a) + len(one.b) for one in found)
    assert (left > 0) == bool(unmatched)


# Costs, encodings


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_comparator_costs_is_within_max_cost(tmp_path, kept):
    open_now, most = [0], [0]

    class Dear:
        key = "dear"

        async def compare(self, *, task, trace_a, trace_b, reference_outputs):
            open_now[0] += 1
            most[0] = max(most[0], open_now[0])
            await asyncio.sleep(0)
            open_now[0] -= 1
            return ps.PairwiseOutcome("a", cost=1.0)

    options = {"variant_a": lambda t: "x", "variant_b": lambda t: "y", "comparators": [Dear()], "progress": False}
    options["run"] = tmp_path / "ab.db" if kept else None
    suite = [f"q{n}" for n in range(20)]
    found = ps.run_pairwise(suite, max_cost=2.5, concurrency=8, **options)
    assert (found.stopped, found.cost, len(found.cases), most[0]) == ("max_cost", 2.0, 2, 1)
    if kept:
        again = ps.run_pairwise(suite, max_cost=3.5, concurrency=8, **options)
        assert (again.stopped, again.cost, len(again.cases)) == ("max_cost", 1.0, 3), "all calls together"
