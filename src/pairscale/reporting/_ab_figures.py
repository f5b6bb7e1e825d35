"""What a report of a comparison of two variants says, from its run file or from its result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError, StoreError
from pairscale.evaluate.store import Compared, saved_result
from pairscale.reporting._cases import write_cases
from pairscale.reporting._disguise import other_names, silent
from pairscale.reporting._origin import moment, origin_of
from pairscale.store.marks import ANSWERS, RESULTS
from pairscale.store.queries import PRICES_MARK, SPENDING, dated_spending
from pairscale.store.runfile import open_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult
    from pairscale.reporting._shell import Page
    from pairscale.store.runfile import RunFile

Case = tuple[str, int]
"""A task, and which answer to it."""


@dataclass(frozen=True, slots=True)
class ABFacts:
    """Everything that a report of two variants shows.

    Attributes:
        result: the result, with its own figures and sentences.
        shown: by case, the task and the two answers; empty when they are not known.
        provenance: names and values.
        notices: what to be careful with.
        judging: what the judges cost, by model, template and day, for the whole run file; None when only the result is
            known.
        answering: what the variants' own answers cost, in the same columns.
        order: by task, where it is listed; those of the result are in the order in which they came when it is empty.
    """

    result: PairwiseRunResult
    shown: Mapping[Case, Compared]
    provenance: Mapping[str, str]
    notices: Sequence[str]
    judging: pl.DataFrame | None = None
    answering: pl.DataFrame | None = None
    order: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def cases(self) -> Sequence[PairwiseCase]:
        """The cases as they are listed; figures are made of those of the result, whose order may count."""
        if not self.order:
            return self.result.cases
        return sorted(self.result.cases, key=lambda case: self.order[case.task_id])

    @property
    def spending(self) -> pl.DataFrame | None:
        """What judges and variants cost."""
        known = [table for table in (self.judging, self.answering) if table is not None]
        return pl.concat(known) if known else None

    def rows(self, *, texts: bool) -> pl.DataFrame:
        """What goes into a spreadsheet: one row per case and criterion."""
        table = replace(self.result, cases=tuple(self.cases)).frame()
        return table if texts else table.drop("reasoning")

    def page(self, *, texts: bool) -> Page:
        """The report."""
        from pairscale.reporting._ab import ab_page

        return ab_page(self, texts=texts)

    def again(self) -> dict[Case, None]:
        """The cases that deserve a second look: without an answer, flipped, or seen in two ways."""
        found = [case for case in self.cases if case.outcome not in {Outcome.WIN, Outcome.TIE}]
        names = dict.fromkeys((case.task_id, case.repeat) for case in found)
        return names | dict.fromkeys(name for *_, disputed in self.disputed() for name, _, _ in disputed)

    def disputed(self) -> list[tuple[str, str, list[tuple[Case, str, str]]]]:
        """By two comparators, the cases in which they name different winners, and which."""
        said: dict[str, dict[Case, str | None]] = {key: {} for key in self.result.keys}
        for case in self.cases:
            said[case.key][case.task_id, case.repeat] = case.winner
        found = []
        for at, x in enumerate(self.result.keys):
            for y in self.result.keys[at + 1 :]:
                both = ((name, one, said[y].get(name)) for name, one in said[x].items())
                differing = [(name, one, two) for name, one, two in both if one and two and one != two]
                found += [(x, y, differing)] if differing else []
        return found

    def disguised(self) -> ABFacts:
        """The same with other names for tasks, variants and people, and without what errors say."""
        run = self.result
        tasks = other_names({*(case.task_id for case in run.cases), *run.unasked, *(u.task_id for u in run.unmatched)})
        people = other_names({str(one["labeller"]) for case in run.cases for one in case.detail.get("labels", ())}, "L")
        # Of labels alone, every labeller is a comparator.
        keys = {
            key: next((f"{key[: -len(one)]}{people[one]}" for one in people if _ends(key, one)), key)
            for key in run.keys
        }
        names = {run.variant_a: "A", run.variant_b: "B"}
        order = {name: at for at, name in enumerate(tasks.values())}
        shown = {(tasks[name], repeat): one for (name, repeat), one in self.shown.items() if name in tasks}
        return replace(
            self,
            result=replace(
                run,
                cases=tuple(replace(_disguised(case, tasks, people), key=keys[case.key]) for case in run.cases),
                keys=tuple(keys.values()),
                variant_a="A",
                variant_b="B",
                unmatched=tuple(replace(one, task_id=tasks[one.task_id]) for one in run.unmatched),
                unasked=tuple(tasks[name] for name in run.unasked),
                label=None,
            ),
            shown=dict(sorted(shown.items(), key=lambda two: order[two[0][0]])),
            answering=None if self.answering is None else self.answering.with_columns(_variant_names(names)),
            order=order,
            provenance={name: value for name, value in self.provenance.items() if name in _IMPERSONAL},
            notices=silent(self.notices, [*tasks, run.variant_a, run.variant_b], "tasks or variants"),
        )

    def write_again(self, path: Path) -> int:
        """Write the cases to look at again for people to label, blinded, with their key beside them."""
        from pairscale.evaluate.manifest import export_pairwise_cases
        from pairscale.evaluate.tasks import InMemoryTraceSource, Suite, Task

        if not self.shown:
            raise InputError("the answers are not known; run the comparison with a run file, and report that")
        tasks = {task_id for task_id, _ in self.again()}
        chosen = {name: one for name, one in sorted(self.shown.items(), key=lambda two: two[0][1]) if name[0] in tasks}
        readable = {name: one for name, one in chosen.items() if one.a is not None and one.b is not None}
        if not readable:
            return write_cases([], path)
        inputs = {task_id: one.task_input for (task_id, _), one in readable.items()}
        sides = [
            InMemoryTraceSource([(name[0], str(getattr(one, side))) for name, one in readable.items()])
            for side in ("a", "b")
        ]
        suite = Suite(tuple(Task({"input": text} if text else {}, name) for name, text in inputs.items()))
        criteria = [key for key in self.result.keys if not is_people(self.result, key)] or list(self.result.keys)
        return export_pairwise_cases(sides[0], sides[1], criteria=criteria, out=path, suite=suite).n_cases


def _ends(key: str, name: str) -> bool:
    """Whether a key is the name of a labeller, alone or behind the criterion."""
    return key == name or key.endswith(f": {name}")


_IMPERSONAL = {"run", "compared", "pairscale", "seed", "run file made by", "last command"}


def _disguised(case: PairwiseCase, tasks: Mapping[str, str], people: Mapping[str, str]) -> PairwiseCase:
    detail = dict(case.detail)
    if "labels" in detail:
        detail["labels"] = [one | {"labeller": people[str(one["labeller"])]} for one in detail["labels"]]
    for name in ("orders", "members"):
        if name in detail:
            detail[name] = [
                one if Outcome(one["outcome"]).is_answer else one | {"reasoning": ""} for one in detail[name]
            ]
    failed = any(not Outcome(one["outcome"]).is_answer for one in detail.get("members", ()))
    told = case.outcome.is_answer and not failed and "labels" not in detail
    return replace(case, task_id=tasks[case.task_id], detail=detail, reasoning=case.reasoning if told else "")


def _variant_names(names: Mapping[str, str]) -> pl.Expr:
    """What the variants of a result are called; a run file may know others."""
    return pl.col("model").replace_strict(dict(names), default="another variant", return_dtype=pl.String())


def is_people(run: PairwiseRunResult, key: str) -> bool:
    """Whether a comparator's answers are those of people."""
    return any("labels" in case.detail or "first_variant" in case.detail for case in run.of(key))


def ab_of_run(store: RunFile) -> ABFacts:
    """Read the last result that a run file keeps.

    Raises:
        InputError: when it keeps none.
    """
    with store.snapshot():  # the run may be writing
        kept, results = saved_result(store), store.log_length(RESULTS)
        judging, answering, origin = store.spending(), answering_of(store), origin_of(store)
    if kept is None:
        raise InputError(
            "the run file keeps no result of a comparison of two variants; if it was broken off, give the same "
            "`pairscale ab` line again, which asks nothing that is known"
        )
    result, shown = kept
    notices = [f"the run file keeps {results:,} results; this is the last"] if results > 1 else []
    facts = _facts(result, shown, notices)
    return replace(facts, provenance={**facts.provenance, **origin}, judging=judging, answering=answering)


def ab_of_result(result: PairwiseRunResult) -> ABFacts:
    """What there is to say of a result; with the answers, where its run file is still there."""
    run = result.provenance.settings.get("run")
    if isinstance(run, str) and Path(run).is_file():
        try:
            with open_run(run) as store:
                kept = saved_result(store)
                if kept is not None and _told(kept[0]) == _told(result):
                    return ab_of_run(store)
        except StoreError:  # it is another file by now
            pass
    return _facts(result, {}, [])


def _told(result: PairwiseRunResult) -> list[tuple[Any, ...]]:
    """What a result says, case by case."""
    of_all = (result.variant_a, result.variant_b, result.sequential)
    return [(*of_all, case.task_id, case.repeat, case.key, case.outcome, case.winner) for case in result.cases]


def _facts(result: PairwiseRunResult, shown: Mapping[Case, Compared], notices: Sequence[str]) -> ABFacts:
    made = result.provenance
    settings = {name: value for name, value in made.settings.items() if value is not None and name != "run"}
    provenance = {
        "run": result.run_id,
        **({"label": result.label} if result.label else {}),
        "compared": f"{moment(result.created_at)}, by {made.method}",
        "pairscale": made.version,
        **({"seed": str(made.seed)} if made.seed is not None else {}),
        **{name: str(value) for name, value in settings.items()},
        **{f"variant {name}": str(value) for name, value in made.inputs.items()},
    }
    rates = [result.win_rate(key) for key in result.keys]
    careful = dict.fromkeys(notice for rate in rates for notice in rate.notices)
    return ABFacts(result, shown, provenance, [*notices, *careful])


def answering_of(store: RunFile) -> pl.DataFrame:
    """What the variants' own answers cost, in the columns of the judges' spending."""
    used: dict[tuple[str, str], dict[str, Any]] = {}
    for row in store.read_log(ANSWERS):
        trace, day = row["trace"], str(row["at"])[:10]
        sums = used.setdefault((row["name"], day), {"attempts": 0, "total_tokens": 0, "cost": 0.0})
        sums["attempts"] += 1
        sums["total_tokens"] += trace.get("tokens") or 0
        sums["cost"] += trace.get("cost") or 0.0
    rows = [{"model": name, "day": day, **sums} for (name, day), sums in used.items()]
    return dated_spending(pl.DataFrame(rows, schema=dict(SPENDING)), store.get_meta(PRICES_MARK))
