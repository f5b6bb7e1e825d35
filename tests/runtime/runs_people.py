"""Recorded runs: people who judge, label cases and whose labels are evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.runtime import recorded_calls as call
from tests.runtime import recorded_calls_ab as ab
from tests.runtime.recorded_tables import Tables, recorded
from tests.runtime.runs_evaluate import TASKS, new, old


def choose(person: str, first: str, second: str) -> tuple[str, str | None]:
    """The longer text; bob says why, and both skip one pair."""
    if {first[:7], second[:7]} == {"Text 1.", "Text 2."}:
        return "skip", f"{person} cannot tell"
    return ("1" if len(first) > len(second) else "2"), ("longer" if person == "bob" else None)


@recorded
def people_judge_pairs(folder: Path) -> Tables:
    run, pairs, judge = folder / "run.db", call.pairs_of(call.texts(6, seed=50)), ab.human_judge()
    with ab.answering(judge, ["ann", "bob"], choose):
        first = call.judge_pairs(pairs.tail(6), judge, run=run, concurrency=1)
        done = call.judge_pairs(pairs, judge, run=run, concurrency=1)
    tables = call.answer_tables(first, "first_") | call.answer_tables(done)
    return tables | call.file_tables(run, ordered=True)


@recorded
def people_label_cases(folder: Path) -> Tables:
    """Blinded cases, labelled on the page and in the terminal, with skips and an undo; then evaluated."""
    suite = ab.suite_of(TASKS[:8])
    sources = [ab.source_of({task.task_id: variant(task) for task in suite}) for variant in (old, new)]
    manifest, key = ab.export_cases(*sources, suite, folder / "cases.jsonl")
    work = ab.Labelling(folder / "labels.db", manifest)
    for name in ("ann", "bob"):
        undone = False
        for at, (question, left, right) in enumerate(work.questions(name)):
            if name == "bob" and at == 1:
                work.answer(name, question, None, "cannot tell")
            elif len(left) == len(right):
                work.answer(name, question, "tie")
            else:
                work.answer(name, question, "1" if (len(left) > len(right)) == (name == "ann") else "2", f"says {name}")
            if at == 2 and not undone:
                undone = work.undo(name)
            if name == "bob" and at == 5:
                break
    typed = work.in_terminal("eve", ["1 clear", "skip too long", "t", "undo", "2", "nonsense", "quit"])
    labels, totals = work.table(), work.totals()
    work.close()
    path = folder / "labels.jsonl"
    path.write_text(labels.write_ndjson(), "utf-8")
    read = ab.read_labels(path, key)
    done = ab.compare_recorded(*sources, [ab.by_labels(path, "people", key)], suite=suite, concurrency=1)
    facts: dict[str, Any] = {"typed": typed, "totals": totals, "missing": list(read.missing)}
    tables: Tables = {"labels": labels, "read": read.table.drop("answers"), "facts_of_labels": facts}
    return tables | {"problems": read.problems.drop("problem")} | ab.evaluation_tables(done)
