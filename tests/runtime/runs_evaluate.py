"""Recorded runs: two variants and more, compared by judges, panels, people and functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

import pairscale as ps
from pairscale.store.runfile import open_run
from tests.runtime import recorded_calls as call
from tests.runtime.recorded_tables import Tables, recorded
from tests.runtime.runs_given import longer

TASKS = [
    {"inputs": {"input": f"Question {n}?"}, "task_id": f"t{n:02d}", "tags": ["even" if n % 2 == 0 else "odd"]}
    | ({"reference_outputs": f"Answer {n}."} if n % 3 == 0 else {})
    for n in range(1, 13)
]


def by_judge(judge: Any, key: str, **options: Any) -> Any:
    return ps.pairwise_judge(judge, criterion="says more", key=key, **options)


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
            "rate": rate.rate,
            "ci": None if rate.ci is None else list(rate.ci),
            "used": list(rate.used),
        }
        for key in done.keys
        for rate in [done.win_rate(key)]
    ]
    facts = {"asked": done.asked, "cost": done.cost, "stopped": done.stopped, "sequential": done.sequential}
    unmatched = [{"task_id": one.task_id, "repeat": one.repeat, "missing": one.missing} for one in done.unmatched]
    return {
        f"{prefix}cases": [case_row(case) for case in done.cases],
        f"{prefix}rates": rates,
        f"{prefix}facts": facts | {"unasked": list(done.unasked), "unmatched": unmatched},
    }


def verdict_table(run: Path) -> pl.DataFrame:
    """The verdicts of judges in the run file of an evaluation, by what was compared."""
    with open_run(run) as store:
        found = store.results()
    found = found.filter(pl.col("outcome").is_in(["win", "tie", "flip", "abstention"]))
    return found.select("judge_id", "ID1", "ID2", "better_id", "outcome", "cost").sort(pl.all())


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
        return ps.Trace(f"Answer {bonus} to {task.input}", metadata={"theta": bonus + number(task) % 3}, cost=0.002)

    return answer


class Agent:
    """A variant that counts its calls; in a run file it is known by its type and its name."""

    def __init__(self) -> None:
        self.calls = []

    async def ask(self, text: str) -> str:
        self.calls.append(text)
        return f"{text} " + "No, since it rains. " * (int(text[9:-1]) % 3)


def same_cases(one: Any, two: Any) -> bool:
    rows = ([case_row(case) for case in done.cases] for done in (one, two))
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
            return getattr(ps.PairwiseOutcome, kinds[task.task_id])("by its name")
        if task.task_id == "t10":
            raise ValueError("this case cannot be compared")
        a, b = len(trace_a.output), len(trace_b.output)
        winner = "tie" if a == b else "a" if a < b else "b"
        return ps.PairwiseOutcome(winner, f"{a} and {b}, {reference_outputs}", cost=0.5)


@recorded
def ab_both_orders(folder: Path) -> Tables:
    """A judge in both orders: wins, flips in both directions, ties, an abstention; then another judge, same answers."""
    suite, run, agent = ps.Suite.from_list(TASKS, name="recorded"), folder / "run.db", Agent()
    judge = by_judge(ps.FunctionJudge(often_first, name="often first"), "more")
    done = compare_variants(suite, old, agent, [judge], concurrency=1, run=run, store_dir=folder / "results")
    saved = ps.PairwiseRunResult.load(next((folder / "results").glob("*.json")))
    again = compare_variants(suite, old, agent, [judge], concurrency=1, run=run)
    other = by_judge(ps.FunctionJudge(longer, name="longer"), "longer")
    more = compare_variants(suite, old, agent, [other], concurrency=1, run=run)
    stored = [ps.RunTraceSource(run, name) for name in ("old", "new")]
    graded = compare_recorded(*stored, [other], suite=suite, concurrency=1)
    facts = {"saved": same_cases(saved, done), "again": same_cases(again, done), "graded": same_cases(graded, more)}
    facts |= {"asked_again": again.asked, "calls": len(agent.calls)}
    facts["tasks"] = [task.task_id for task in ps.read_suite(run)]
    tables = evaluation_tables(done) | evaluation_tables(more, "more_")
    return tables | {"verdicts": verdict_table(run), "same": facts}


@recorded
def ab_panel_person_and_function(folder: Path) -> Tables:
    """Three kinds of comparators in one run, several cases at once; the same call again asks only what failed."""
    suite, run, own, questions = ps.Suite.from_list(TASKS, name="recorded"), folder / "run.db", Shorter(), []
    judges = [ps.FunctionJudge(longer, name="longer"), ps.FunctionJudge(often_first, name="often first"), "lexical"]
    panel = ps.pairwise_panel(judges, criterion="says more", key="panel")

    def person(task: Any, first: str, second: str) -> str | None:
        questions.append(task.task_id)
        return None if task.task_id == "t11" else "tie" if task.task_id == "t12" else "1" if first < second else "2"

    comparators = [panel, own, ps.human_pairwise(key="person", ask=person, seed=3)]
    done = compare_variants(suite, old, new, comparators, concurrency=4, run=run)
    first = {"asked": own.asked, "questions": len(questions)}
    again = compare_variants(suite, old, new, comparators, concurrency=4, run=run)
    second = {"asked": own.asked - first["asked"], "questions": questions[first["questions"] :]}
    agreement = done.agreement("panel", "concise")
    facts = {"agreement": agreement.rate, "kappa": agreement.cohen_kappa, "agreement_n": agreement.n}
    tables = evaluation_tables(done) | {"verdicts": verdict_table(run), "agreement": facts}
    second |= {"asked_judges": again.asked, "same": same_cases(again, done)}
    return tables | {"calls": first, "calls_again": second}


@recorded
def ab_model_judge(folder: Path) -> Tables:
    """A model as the judge of answers, and a model as one of the variants."""
    suite, run = ps.Suite.from_list(TASKS[:8], name="recorded"), folder / "run.db"
    with call.provider(bias=1.0, seed=3) as server:
        model, settings = f"openai:{call.MODELS['openai']}", call.connection(server, "openai")
        judge = by_judge(model, "model", judge_args=settings, include_reference=True)
        done = compare_variants(suite, old, new, [judge], concurrency=4, run=run)
        served = server.served
        again = compare_variants(suite, old, new, [judge], concurrency=4, run=run)
        variant = ps.ModelVariant(model, "Answer briefly: {input}", **settings)
        mixed = compare_variants(suite, variant, new, [judge], concurrency=4, run=folder / "mixed.db")
        total = server.served
    tables = evaluation_tables(done) | evaluation_tables(mixed, "mixed_")
    return tables | {"served": {"first": served, "all": total, "asked_again": again.asked}}


@recorded
def ab_several_variants(folder: Path) -> Tables:
    """A ranking of four variants; one of them raises now and then."""
    suite, run = ps.Suite.from_list(TASKS, name="recorded"), folder / "run.db"

    def shaky(task: Any) -> Any:
        if task.task_id in {"t03", "t11"}:
            raise RuntimeError("no answer")
        return skilled(0.5)(task)

    variants = {"low": skilled(-0.5), "mid": skilled(0.0), "shaky": shaky, "high": skilled(1.5)}
    judges = [by_judge(call.simulated(bias=0.5, seed=6), "skill"), Shorter()]
    done = ps.run_variants(suite, variants, comparators=judges, concurrency=4, run=run, seed=2, progress=False)
    tables: Tables = {"all_facts": {"cost": done.cost, "stopped": done.stopped}}
    for key in done.keys:
        tables[f"all_{key}_ranking"] = done.ranking(key)
    for (a, b), found in done.results.items():
        tables[f"all_{a}_{b}"] = [case_row(case) for case in found.cases]
    return tables
