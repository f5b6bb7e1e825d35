"""From two variants to blinded cases, through the page's labels, back to the variants."""

from dataclasses import fields

import pytest
from labelling import Visitor

import pairscale as ps
from pairscale.core.files import write_table
from pairscale.evaluate.manifest import MANIFEST
from pairscale.people import label_table, read_cases
from pairscale.people.cases import Case


def test_the_fields_are_those_that_are_exported():
    assert tuple(one.name for one in fields(Case)) == (*MANIFEST, "ID1", "ID2", "columns_1", "columns_2")


@pytest.mark.slow_except("csv-False")
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_a_round_trip(serve, tmp_path, ending):
    """Ann always prefers B's answer, wherever it stands; Bob skips one, and says tie to the others."""
    tasks = ps.Suite.from_list([{"inputs": {"input": f"Question {n}?"}, "task_id": f"t{n}"} for n in range(4)])
    sources = []
    for name in "AB":
        traces = {task.task_id: ps.Trace(output=f"{name} says {task.inputs['input']}") for task in tasks}
        sources.append(ps.InMemoryTraceSource(traces))
    manifest = tmp_path / "cases.jsonl"
    ps.export_pairwise_cases(*sources, criteria="clearer", out=manifest, suite=tasks, seed=3)
    store, where = serve(read_cases(manifest), labels_per_case=2)
    with Visitor(where.links["ann"]) as ann, Visitor(where.links["bob"]) as bob:
        while ann.has_question:
            left = ann.page.partition('id="text-2"')[0]
            ann.send(choice="1" if "B says" in left else "2")
        bob.send("skip", other_reason="cannot tell")
        while bob.has_question:
            bob.send(choice="tie")
    labels = tmp_path / f"labels.{ending}"
    write_table(label_table(store), labels)
    key = tmp_path / "cases.key.jsonl"
    read = ps.read_labels(labels, key_file=key)
    by_labeller = {name: part["winner"].to_list() for (name,), part in read.table.group_by("labeller")}
    assert by_labeller == {"ann": ["b"] * 4, "bob": ["tie"] * 3}
    assert read.problems["problem"].to_list() == ["skipped: cannot tell"]
