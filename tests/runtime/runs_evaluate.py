"""Recorded runs: two variants and more, compared by judges, panels, people and functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.runtime import recorded_calls as call
from tests.runtime import recorded_calls_ab as ab
from tests.runtime.recorded_tables import Tables, recorded
from tests.runtime.runs_given import longer

TASKS = [
    {"inputs": {"input": f"Question {n}?"}, "task_id": f"t{n:02d}", "tags": ["even" if n % 2 == 0 else "odd"]}
    | ({"reference_outputs": f"Answer {n}."} if n % 3 == 0 else {})
    for n in range(1, 13)
]


def number(task: Any) -> int:
    return int(task.task_id[1:])


def old(task: Any) -> str:
    return "The same." if number(task) == 5 else f"{task.input} " + "Yes. " * (number(task) % 4)


def new(task: Any) -> str:
    return "The same." if number(task) == 5 else f"{task.input} " + "No, since it rains. " * (number(task) % 3)


def often_first(A: Any, B: Any) -> Any:
    """Prefers the place in some tasks, says tie in one order of another, and declines one."""
    task = A["task_id"]
    if task in {"t02", "t08"}:
        return {"is_valid": True, "Y": int(task == "t02")}
    if task == "t04":
        return {"is_valid": True, "Y": 0.5 if len(A["text"]) > len(B["text"]) else 0}
    if task == "t07":
        return {"is_valid": False, "invalid_reason": "no opinion"}
    return longer(A, B)


def skilled(bonus: float) -> Any:
    """A variant whose answers say how good they are, for a judge who knows."""

    def answer(task: Any) -> Any:
        return ab.trace(f"Answer {bonus} to {task.input}", metadata={"theta": bonus + number(task) % 3}, cost=0.002)

    return answer


class Agent:
    """A variant that counts its calls; in a run file it is known by its type and its name."""

    def __init__(self, raises: tuple[str, ...] = ()) -> None:
        self.raises, self.calls = raises, []

    async def ask(self, text: str) -> str:
        self.calls.append(text)
        if text in self.raises:
            raise RuntimeError("no answer today")
        return f"{text} " + "No, since it rains. " * (int(text[9:-1]) % 3)


def same_cases(one: Any, two: Any) -> bool:
    rows = ([ab.case_row(case) for case in done.cases] for done in (one, two))
    return next(rows) == next(rows)


class Shorter:
    """A comparator of one's own, with every kind of outcome."""

    key = "concise"

    def __init__(self) -> None:
        self.asked = 0

    async def compare(self, *, task: Any, trace_a: Any, trace_b: Any, reference_outputs: Any) -> Any:
        self.asked += 1
        kinds = {"t03": "flip", "t06": "abstain", "t09": "fail"}
        if task.task_id in kinds:
            return ab.no_outcome(kinds[task.task_id], "by its name")
        if task.task_id == "t10":
            raise ValueError("this case cannot be compared")
        a, b = len(trace_a.output), len(trace_b.output)
        winner = "tie" if a == b else "a" if a < b else "b"
        return ab.outcome(winner, f"{a} and {b}, {reference_outputs}", cost=0.5)


@recorded
def ab_both_orders(folder: Path) -> Tables:
    """A judge in both orders: wins, flips in both directions, ties, an abstention; then another judge, same answers."""
    suite, run, agent = ab.suite_of(TASKS), folder / "run.db", Agent()
    judge = ab.by_judge(call.function_judge(often_first, "often first"), "more")
    done = ab.compare_variants(suite, old, agent, [judge], concurrency=1, run=run, store_dir=folder / "results")
    saved = ab.saved_evaluation(next((folder / "results").glob("*.json")))
    again = ab.compare_variants(suite, old, agent, [judge], concurrency=1, run=run)
    other = ab.by_judge(call.function_judge(longer, "longer"), "longer")
    more = ab.compare_variants(suite, old, agent, [other], concurrency=1, run=run)
    stored = [ab.stored_source(run, name) for name in ("old", "new")]
    graded = ab.compare_recorded(*stored, [other], suite=suite, concurrency=1)
    facts = {"saved": same_cases(saved, done), "again": same_cases(again, done), "graded": same_cases(graded, more)}
    facts |= {"asked_again": again.asked, "calls": len(agent.calls), "tasks": ab.stored_tasks(run)}
    tables = ab.evaluation_tables(done) | ab.evaluation_tables(more, "more_")
    return tables | {"verdicts": ab.verdict_table(run), "same": facts}


@recorded
def ab_panel_person_and_function(folder: Path) -> Tables:
    """Three kinds of comparators in one run, several cases at once; the same call again asks only what failed."""
    suite, run, own, questions = ab.suite_of(TASKS), folder / "run.db", Shorter(), []
    panel = ab.by_panel(
        [call.function_judge(longer, "longer"), call.function_judge(often_first, "often first"), "lexical"], "panel"
    )

    def person(task: Any, first: str, second: str) -> str | None:
        questions.append(task.task_id)
        return None if task.task_id == "t11" else "tie" if task.task_id == "t12" else "1" if first < second else "2"

    comparators = [panel, own, ab.by_person(person, "person")]
    done = ab.compare_variants(suite, old, new, comparators, concurrency=4, run=run)
    first = {"asked": own.asked, "questions": len(questions)}
    again = ab.compare_variants(suite, old, new, comparators, concurrency=4, run=run)
    second = {"asked": own.asked - first["asked"], "questions": questions[first["questions"] :]}
    agreement = done.agreement("panel", "concise")
    facts = {"agreement": agreement.rate, "kappa": agreement.cohen_kappa, "agreement_n": agreement.n}
    tables = ab.evaluation_tables(done) | {"verdicts": ab.verdict_table(run), "agreement": facts}
    second |= {"asked_judges": again.asked, "same": same_cases(again, done)}
    return tables | {"calls": first, "calls_again": second}


@recorded
def ab_model_judge(folder: Path) -> Tables:
    """A model as the judge of answers, and a model as one of the variants."""
    suite, run = ab.suite_of(TASKS[:8]), folder / "run.db"
    with call.provider(bias=1.0, seed=3) as server:
        judge = ab.by_model(server, "model", include_reference=True)
        done = ab.compare_variants(suite, old, new, [judge], concurrency=4, run=run)
        served = server.served
        again = ab.compare_variants(suite, old, new, [judge], concurrency=4, run=run)
        variant = ab.model_variant(server, "Answer briefly: {input}")
        mixed = ab.compare_variants(suite, variant, new, [judge], concurrency=4, run=folder / "mixed.db")
        total = server.served
    tables = ab.evaluation_tables(done) | ab.evaluation_tables(mixed, "mixed_")
    return tables | {"served": {"first": served, "all": total, "asked_again": again.asked}}


@recorded
def ab_several_variants(folder: Path) -> Tables:
    """A ranking of four variants; one of them raises now and then."""
    suite, run = ab.suite_of(TASKS), folder / "run.db"

    def shaky(task: Any) -> Any:
        if task.task_id in {"t03", "t11"}:
            raise RuntimeError("no answer")
        return skilled(0.5)(task)

    variants = {"low": skilled(-0.5), "mid": skilled(0.0), "shaky": shaky, "high": skilled(1.5)}
    judges = [ab.by_judge(call.simulated(bias=0.5, seed=6), "skill"), Shorter()]
    done = ab.rank_variants(suite, variants, judges, concurrency=4, run=run, seed=2)
    tables: Tables = {"all_facts": {"cost": done.cost, "stopped": done.stopped}}
    for key in done.keys:
        tables[f"all_{key}_ranking"] = done.ranking(key)
    for (a, b), found in done.results.items():
        tables[f"all_{a}_{b}"] = [ab.case_row(case) for case in found.cases]
    return tables
