"""The calls that recorded runs make to compare variants and to ask people; see ``recorded_calls.py``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

import pairscale as ps
from pairscale.people import LabelStore, label_table, read_cases
from pairscale.people.queue import LiveQuestions
from pairscale.people.terminal import label_in_terminal
from pairscale.store.runfile import open_run
from pairscale.testing import ProviderSimulator
from tests.runtime.recorded_calls import MODELS, connection
from tests.runtime.recorded_tables import Tables

# Variants


def suite_of(tasks: Sequence[Any]) -> Any:
    return ps.Suite.from_list(list(tasks), name="recorded")


def trace(output: str, **more: Any) -> Any:
    return ps.Trace(output, **more)


def source_of(traces: Mapping[str, Any]) -> Any:
    return ps.InMemoryTraceSource(dict(traces))


def stored_source(run: Path, variant: str) -> Any:
    return ps.RunTraceSource(run, variant)


def stored_tasks(run: Path) -> list[str]:
    suite = ps.read_suite(run)
    return [] if suite is None else [task.task_id for task in suite]


def by_judge(judge: Any, key: str, **options: Any) -> Any:
    return ps.pairwise_judge(judge, criterion="says more", key=key, **options)


def by_model(server: ProviderSimulator, key: str, name: str = "openai", **options: Any) -> Any:
    settings = connection(server, name)
    return ps.pairwise_judge(f"{name}:{MODELS[name]}", criterion="says more", key=key, judge_args=settings, **options)


def by_panel(judges: Sequence[Any], key: str, **options: Any) -> Any:
    return ps.pairwise_panel(judges, criterion="says more", key=key, **options)


def by_person(ask: Callable[..., Any], key: str) -> Any:
    return ps.human_pairwise(key=key, ask=ask, seed=3)


def by_labels(path: Path, key: str, key_file: Path) -> Any:
    return ps.human_labels(path, criterion="clearer", key=key, key_file=key_file)


def no_outcome(kind: str, reasoning: str) -> Any:
    """An outcome without a winner: ``flip``, ``abstain`` or ``fail``."""
    return getattr(ps.PairwiseOutcome, kind)(reasoning)


def outcome(winner: str | None, reasoning: str = "", **more: Any) -> Any:
    return ps.PairwiseOutcome(winner, reasoning, **more)


def model_variant(server: ProviderSimulator, prompt: str, name: str = "openai") -> Any:
    return ps.ModelVariant(f"{name}:{MODELS[name]}", prompt, **connection(server, name))


def compare_variants(suite: Any, a: Any, b: Any, comparators: Any, *, concurrency: int, **options: Any) -> Any:
    sides = {"variant_a": a, "variant_b": b, "variant_a_name": "old", "variant_b_name": "new"}
    return ps.run_pairwise(
        suite, **sides, comparators=comparators, concurrency=concurrency, progress=False, **options
    )  # fmt: skip


def compare_recorded(a: Any, b: Any, comparators: Any, *, concurrency: int, **options: Any) -> Any:
    names = {"variant_a": "old", "variant_b": "new"}
    return ps.evaluate_pairwise(
        a, b, comparators=comparators, concurrency=concurrency, progress=False, **names | options
    )  # fmt: skip


def rank_variants(
    suite: Any, variants: Mapping[str, Any], comparators: Any, *, concurrency: int, **options: Any
) -> Any:
    return ps.run_variants(
        suite, dict(variants), comparators=comparators, concurrency=concurrency, progress=False, **options
    )  # fmt: skip


_DETAIL = ("order1", "order2", "direction", "identical", "divided", "first_variant", "missing")
_MEMBER = ("judge_id", "outcome", "winner")


def case_row(case: Any) -> dict[str, Any]:
    """A case; reasons only where somebody gave them."""
    detail = dict(case.detail)
    plain = ("task_id", "repeat", "winner", "cost", "length_a", "length_b", "failed")
    row = {name: getattr(case, name) for name in plain}
    row |= {"comparator": case.key, "outcome": str(case.outcome), "tags": list(case.tags)}
    said = str(case.outcome) in {"win", "flip"}
    row["reasoning"] = case.reasoning if said else None
    row |= {name: detail.get(name) for name in _DETAIL}
    orders = detail.get("orders") or []
    row["orders"] = [{name: one[name] for name in ("first", "outcome", "winner", "cost")} for one in orders]
    row["members"] = [{name: one[name] for name in _MEMBER} for one in detail.get("members") or []]
    row["labels"] = [{name: one[name] for name in ("labeller", "winner")} for one in detail.get("labels") or []]
    return row


def evaluation_tables(done: Any, prefix: str = "") -> Tables:
    """What comparing two variants gave."""
    rates = [
        {
            "comparator": key,
            **done.counts(key),
            "tally": list(done.tally(key)),
            "directions": done.flip_directions(key),
            **_rate(done.win_rate(key)),
        }
        for key in done.keys
    ]
    facts = {"asked": done.asked, "cost": done.cost, "stopped": done.stopped, "sequential": done.sequential}
    unmatched = [{"task_id": one.task_id, "repeat": one.repeat, "missing": one.missing} for one in done.unmatched]
    return {
        f"{prefix}cases": [case_row(case) for case in done.cases],
        f"{prefix}rates": rates,
        f"{prefix}facts": facts | {"unasked": list(done.unasked), "unmatched": unmatched},
    }


def _rate(rate: Any) -> dict[str, Any]:
    return {"rate": rate.rate, "ci": None if rate.ci is None else list(rate.ci), "used": list(rate.used)}


def saved_evaluation(path: Path) -> Any:
    return ps.PairwiseRunResult.load(path)


def verdict_table(run: Path) -> pl.DataFrame:
    """The verdicts of judges in the run file of an evaluation, by what was compared."""
    with open_run(run) as store:
        found = store.results()
    found = found.filter(pl.col("outcome").is_in(["win", "tie", "flip", "abstention"]))
    return found.select("judge_id", "ID1", "ID2", "better_id", "outcome", "cost").sort(pl.all())


# People


def human_judge() -> Any:
    return ps.HumanJudge()


@contextmanager
def answering(judge: Any, people: Sequence[str], answer: Callable[[str, str, str], tuple[str, str | None]]):
    """People in one thread, who are given the questions in turn.

    Args:
        judge: what :func:`human_judge` made.
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


def export_cases(a: Any, b: Any, suite: Any, path: Path) -> tuple[Path, Path]:
    """Blinded cases, and their key."""
    done = ps.export_pairwise_cases(a, b, criteria="clearer", out=path, suite=suite, seed=5)
    assert done.key_path is not None
    return done.path, done.key_path


class Labelling:
    """People who label cases: on the page (as it calls the store) and in the terminal. A clock of their own ticks."""

    def __init__(self, path: Path, manifest: Path) -> None:
        self.now = 1_800_000_000.0
        self.cases = read_cases(manifest)
        self._store = LabelStore(path, self.cases, labels_per_case=2, seed=7, clock=lambda: self.now)

    def questions(self, name: str) -> Iterator[tuple[int, str, str]]:
        """Number and texts of the questions of a person, left and right, until there are no more."""
        person, texts_of = self._store.add_labeller(name), {case.case_id: case for case in self.cases}
        while not isinstance(found := self._store.next(person), str):
            case = texts_of[found.case_id]
            sides = (case.response_1, case.response_2)
            yield found.question_id, *(sides[::-1] if found.swapped else sides)

    def answer(self, name: str, number: int, choice: str | None, reason: str | None = None) -> None:
        self.now += 4.0
        more = {"skipped": reason} if choice is None else {"comment": reason}
        self._store.answer(self._store.add_labeller(name), number, choice, **more)

    def undo(self, name: str) -> bool:
        return self._store.undo(self._store.add_labeller(name))

    def in_terminal(self, name: str, lines: Sequence[str]) -> int:
        typed = iter(lines)

        def ask(_: str) -> str:
            self.now += 2.0
            return next(typed)

        return label_in_terminal(self._store, name, ask=ask, show=lambda _: None)

    def table(self) -> pl.DataFrame:
        return label_table(self._store)

    def totals(self) -> list[int]:
        return list(self._store.totals())

    def close(self) -> None:
        self._store.close()


def read_labels(path: Path, key_file: Path) -> Any:
    return ps.read_labels(path, key_file=key_file)
