"""Tasks and traces: what goes in, from lists and from files, and where answers lie."""

import asyncio
import json
import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pairscale as ps
from pairscale.core.errors import InputError


def listed(source):
    async def all_of():
        return [(ref.task_id, await source.load(ref)) async for ref in source.list()]

    return asyncio.run(all_of())


# Suites


def test_ids_are_filled_in_by_place():
    suite = ps.Suite.from_list(["one", {"input": "two", "task_id": "own"}, ps.Task({"input": "three"})])
    assert [task.task_id for task in suite] == ["task-0000", "own", "task-0002"]
    assert len(suite) == 3
    assert suite.tasks[2].input == "three"


def test_fields_of_a_mapping():
    row = {"inputs": {"input": "q", "style": "brief"}, "reference_outputs": {"answer": "a"}, "tags": ["x", "y", "x"]}
    task = ps.Suite.from_list([row | {"metadata": {"source": "exam"}, "level": 3}]).tasks[0]
    assert task == ps.Task(
        {"input": "q", "style": "brief"}, "task-0000", {"answer": "a"}, ("x", "y"), {"level": 3, "source": "exam"}
    )


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([], "has no tasks"),
        ([{"question": "q"}], "task 1 has no 'input'"),
        ([{"input": "a", "task_id": 7}, {"input": "b", "task_id": "7"}], "'7' is empty or not unique"),
        ([{"input": "a"}, {"input": "b", "task_id": "task-0000"}], "not unique"),
        ([3], "task 1 has no 'input'"),
        ([{"input": "a", "tags": [3]}], "tags must be"),
        ([{"inputs": "a"}], "inputs must be a mapping"),
    ],
)
def test_what_is_no_suite(tasks, words):
    with pytest.raises(InputError, match=words):
        ps.Suite.from_list(tasks)


def test_jsonl_and_csv_say_the_same(tmp_path):
    (tmp_path / "s.jsonl").write_text(
        '{"task_id": 7, "input": "Why?", "reference": "So.", "tags": ["a", "b"], "level": 2}\n\n{"input": "42"}\n'
    )
    (tmp_path / "s.csv").write_text("task_id,input,reference,tags,level\n7,Why?,So.,a; b,2\n,42,,,\n")
    one, two = ps.Suite.from_jsonl(tmp_path / "s.jsonl"), ps.Suite.from_csv(tmp_path / "s.csv")
    assert one.tasks == two.tasks
    assert one.tasks[0] == ps.Task({"input": "Why?"}, "7", "So.", ("a", "b"), {"level": 2})
    assert one.tasks[1] == ps.Task({"input": "42"}, "task-0001")
    assert one.name == "s"
    assert one.source == str(tmp_path / "s.jsonl")


# Traces


@dataclass
class ToolCall:
    name: str
    arguments: str = ""


def test_events_by_kind_and_name():
    trace = ps.Trace("x", (ToolCall("search"), {"type": "message", "name": "search"}, ToolCall("add"), "note"))
    assert trace.events_of(ToolCall) == (trace.events[0], trace.events[2])
    assert trace.events_of("ToolCall", name="add") == (trace.events[2],)
    assert trace.events_of("message") == (trace.events[1],)
    assert trace.to_dict()["events"][0] == {"type": "ToolCall", "name": "search", "arguments": ""}


names = st.text(min_size=1, max_size=30)
traces = st.builds(
    ps.Trace,
    output=st.text(max_size=60),
    events=st.lists(st.dictionaries(names, st.text(max_size=10), max_size=2), max_size=2).map(tuple),
    tokens=st.none() | st.integers(0, 10**6),
    cost=st.none() | st.floats(0, 10),
    exception=st.none() | st.text(min_size=1, max_size=10),
)


@pytest.mark.slow
@given(kept=st.dictionaries(names, traces, min_size=1, max_size=4))
def test_a_folder_gives_back_what_was_saved(kept, tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    for task_id, trace in kept.items():
        path = ps.save_trace(trace, folder, task_id=task_id)
        assert path.parent == folder, "a name of a task leads nowhere else"
    # A name of nothing but white space is no task.
    found = {task_id: trace for task_id, trace in listed(ps.DirectoryTraceSource(folder)) if task_id}
    assert found == {task_id: trace for task_id, trace in kept.items() if task_id.strip()}


def test_several_traces_of_a_task(tmp_path):
    for at in "12":
        ps.save_trace(ps.Trace(at), tmp_path, task_id="t", trace_id=f"t-{at}")
    ps.save_trace(ps.Trace("3"), tmp_path, task_id="t", trace_id="t-2")
    assert sorted(trace.output for _, trace in listed(ps.DirectoryTraceSource(tmp_path))) == ["1", "3"]


@pytest.mark.parametrize("name", ["task_id", "ID"])
def test_a_task_may_be_called_0(tmp_path, name):
    (tmp_path / "o.jsonl").write_text(f'{{"{name}": 0, "output": "x"}}\n{{"{name}": 1, "output": "y"}}\n')
    assert [task_id for task_id, _ in listed(ps.read_outputs(tmp_path / "o.jsonl"))] == ["0", "1"]


def test_recorded_outputs(tmp_path):
    rows = [
        {"task_id": "t1", "output": "Paris.", "cost": 0.25, "input": "Capital?", "events": [{"type": "x"}, {"y": 1}]},
        {"ID": 2, "response": "Rome.", "cost": math.nan, "tokens": "7"},
        {"task_id": "t1", "answer": ""},
        {"task_id": "t3", "output": None},
        {"task_id": "t4", "output": {"city": "Bonn"}},
    ]
    (tmp_path / "o.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    found = listed(ps.read_outputs(tmp_path / "o.jsonl"))
    assert [name for name, _ in found] == ["t1", "2", "t1", "t3", "t4"]
    first = found[0][1]
    assert (first.output, first.cost, first.events) == ("Paris.", 0.25, ({"type": "x"}, {"y": 1}))
    assert first.metadata == {"input": "Capital?"}
    assert found[1][1] == ps.Trace("Rome.", tokens=7), "NaN is how tables say that there is no figure"
    assert found[2][1] == ps.Trace(""), "an empty answer is an answer"
    assert found[3][1].exception == "no output was recorded"
    assert found[4][1].output == '{"city": "Bonn"}'
