"""Recorded runs: people who judge, label cases and whose labels are evaluated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pairscale as ps
from pairscale.people import LabelStore, label_table, read_cases
from pairscale.people.queue import LabelQuestion, LiveQuestions
from pairscale.people.terminal import label_in_terminal
from tests.runtime import recorded_calls as call
from tests.runtime.recorded_tables import Tables, recorded
from tests.runtime.runs_evaluate import TASKS, compare_recorded, evaluation_tables, new, old


@contextmanager
def answering(judge: Any, people: Sequence[str], answer: Callable[[str, str, str], tuple[str, str | None]]):
    """People in one thread, who are given the questions in turn.

    Args:
        judge: who asks them.
        people: their names.
        answer: takes a name and the two texts, and returns ``1``, ``2`` or ``skip``, and a comment or a reason.
    """
    board = judge.queue
    board.open(people)
    page = LiveQuestions(board, people)
    labellers = page.labellers()

    def work() -> None:
        turn = 0  # by what was answered, never by time, so that it is certain who answers what
        while (question := page.next(labellers[turn % len(people)])) != "done":
            if question == "waiting":
                continue
            person = labellers[turn % len(people)]
            said, words = answer(person.name, question.left, question.right)
            if said == "skip":
                page.answer(person, question.question_id, None, skipped=words or "no reason")
            else:
                page.answer(person, question.question_id, said, comment=words)
            turn += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        board.close()
        thread.join()


def choose(person: str, first: str, second: str) -> tuple[str, str | None]:
    """The longer text; bob says why, and both skip one pair."""
    if {first[:7], second[:7]} == {"Text 1.", "Text 2."}:
        return "skip", f"{person} cannot tell"
    return ("1" if len(first) > len(second) else "2"), ("longer" if person == "bob" else None)


@recorded
def people_judge_pairs(folder: Path) -> Tables:
    run, pairs, judge = folder / "run.db", call.pairs_of(call.texts(6, seed=50)), ps.HumanJudge()
    with answering(judge, ["ann", "bob"], choose):
        first = call.judge_pairs(pairs.tail(6), judge, run=run, concurrency=1)
        done = call.judge_pairs(pairs, judge, run=run, concurrency=1)
    tables = call.answer_tables(first, "first_") | call.answer_tables(done)
    return tables | call.file_tables(run, ordered=True)


def label_on_the_page(store: LabelStore, name: str, now: list[float]) -> None:
    """Ann prefers the longer answer, Bob the shorter one; he skips one case, and leaves early."""
    person, undone, at = store.add_labeller(name), False, 0
    while isinstance(question := store.next(person), LabelQuestion):
        longer, same = len(question.left) > len(question.right), len(question.left) == len(question.right)
        now[0] += 4.0
        if name == "bob" and at == 1:
            store.answer(person, question.question_id, None, skipped="cannot tell")
        elif same:
            store.answer(person, question.question_id, "tie")
        else:
            choice = "1" if longer == (name == "ann") else "2"
            store.answer(person, question.question_id, choice, comment=f"says {name}")
        if at == 2 and not undone:
            undone = store.undo(person)
        if name == "bob" and at == 5:
            break
        at += 1


@recorded
def people_label_cases(folder: Path) -> Tables:
    """Blinded cases, labelled on the page and in the terminal, with skips and an undo; then evaluated."""
    suite = ps.Suite.from_list(TASKS[:8], name="recorded")
    sources = [ps.InMemoryTraceSource({task.task_id: variant(task) for task in suite}) for variant in (old, new)]
    cases = ps.export_pairwise_cases(*sources, criteria="clearer", out=folder / "cases.jsonl", suite=suite, seed=5)
    key: Any = cases.key_path
    now = [1_800_000_000.0]
    lines = iter(["1 clear", "skip too long", "t", "undo", "2", "nonsense", "quit"])

    def ask(_: str) -> str:
        now[0] += 2.0
        return next(lines)

    with LabelStore(
        folder / "labels.db", read_cases(cases.path), labels_per_case=2, seed=7, clock=lambda: now[0]
    ) as store:
        for name in ("ann", "bob"):
            label_on_the_page(store, name, now)
        typed = label_in_terminal(store, "eve", ask=ask, show=lambda _: None)
        labels, totals = label_table(store), list(store.totals())
    path = folder / "labels.jsonl"
    path.write_text(labels.write_ndjson(), "utf-8")
    read = ps.read_labels(path, key_file=key)
    people = ps.human_labels(path, criterion="clearer", key="people", key_file=key)
    done = compare_recorded(*sources, [people], suite=suite, concurrency=1)
    facts: dict[str, Any] = {"typed": typed, "totals": totals, "missing": list(read.missing)}
    tables: Tables = {"labels": labels, "read": read.table.drop("answers"), "facts_of_labels": facts}
    return tables | {"problems": read.problems.drop("problem")} | evaluation_tables(done)
