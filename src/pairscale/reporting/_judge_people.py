"""The part of a report that holds a judge against people: confusion, agreement, and where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairscale.checks.calibration import calibrate
from pairscale.evaluate.result import judge_and_people
from pairscale.reporting import _ab_messages as words
from pairscale.reporting._calibration import calibration_parts
from pairscale.reporting._shell import Part, listed_first, table_of
from pairscale.reporting.picture import Shares, number, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.evaluate.result import PairwiseAgreement, PairwiseCase, PairwiseRunResult
    from pairscale.reporting._ab_figures import ABFacts, Case

_MOST = 12
_SAID = ("b", "tie", "a")
_KINDS = (*_SAID, "flip", "abstention", "error")
_OTHERS = {"tie": "a tie", "flip": "a flip", "abstention": "no answer", "error": "an error"}


def judge_people(facts: ABFacts, place: Mapping[Case, int]) -> list[Part]:
    """Each judge of a comparison held against people; empty without either.

    Args:
        facts: what the report shows.
        place: by case, where it is listed.
    """
    return [_part(facts, judge, people, place) for judge, people in judge_and_people(facts.result)]


def _part(facts: ABFacts, judge: str, people: str, place: Mapping[Case, int]) -> Part:
    run = facts.result
    names = {"b": run.variant_b, "a": run.variant_a, **_OTHERS}
    met = _met(facts.cases, judge, people)
    counts = {
        said: {kind: sum(_answer(one) == kind and _answer(two) == said for one, two in met) for kind in _KINDS}
        for said in _SAID
    }
    bars = [(f"people: {names[said]}", row) for said, row in counts.items() if sum(row.values())]
    there = [kind for kind in _KINDS if any(row[kind] for row in counts.values())] or list(_SAID)
    columns = [("people say", False), *((f"{judge}: {names[kind]}", True) for kind in there), ("in all", True)]
    rows = [(names[said], *(row[kind] for kind in there), sum(row.values())) for said, row in counts.items()]
    found = run.agreement(judge, people)
    entries = [
        {
            "text": f"{words.case_name(one)}: {judge} says {names[_answer(one)]}, people say {names[_answer(two)]}",
            "two": str(place[one.task_id, one.repeat]),
        }
        for one, two in met
        if _answer(one) != _answer(two)
    ]
    unlabelled = sum(case.key == judge for case in run.cases) - len(met)
    return {
        "name": f"{judge} against {people}",
        "lead": _lead(found, judge, unlabelled),
        "chart": Shares(bars, names, f"What {judge} says, by what people say") if bars else None,
        "legend": [(kind, f"{judge}: {names[kind]}") for kind in there],
        "notes": _notes(found, judge, run),
        "calibration": _calibration(met),
        "differing": len(entries),
        "entries": listed_first(entries, _MOST),
        **table_of(columns, rows),
    }


def _met(cases: Sequence[PairwiseCase], judge: str, people: str) -> list[tuple[PairwiseCase, PairwiseCase]]:
    """The cases of a judge that people gave a winner or a tie to, with what people said, as they are listed."""
    said = {(case.task_id, case.repeat): case for case in cases if case.key == people and case.winner is not None}
    own = [case for case in cases if case.key == judge]
    return [(case, said[name]) for case in own if (name := (case.task_id, case.repeat)) in said]


def _calibration(met: Sequence[tuple[PairwiseCase, PairwiseCase]]) -> list[Part]:
    """The judge's preferences for B held against people; empty where it stated none."""
    graded = [(one.preference, two.winner) for one, two in met if one.preference is not None]
    if not graded:
        return []
    stated, said = zip(*graded, strict=True)
    found = calibrate(stated, [{"b": 1.0, "a": 0.0}.get(str(one), 0.5) for one in said])
    return calibration_parts([("", found)])


def _answer(case: PairwiseCase) -> str:
    return str(case.winner or case.outcome)


def _lead(found: PairwiseAgreement, judge: str, unlabelled: int) -> str:
    """How far they agree, in words."""
    rest = f" Without a label of a winner or a tie: {_cases(unlabelled)}." if unlabelled else ""
    if found.rate is None or found.rate_ci is None:
        return f"There is no case to which both {judge} and people gave a winner or a tie.{rest}"
    ends = f"95 % interval {100 * found.rate_ci[0]:.0f} to {100 * found.rate_ci[1]:.0f}"
    agreed = round(found.rate * found.n)
    text = f"{judge} and people say the same in {agreed:,} of {_cases(found.n)}: {percent(found.rate)} ({ends})."
    if found.cohen_kappa is None:
        return f"{text} Kappa is not defined: one of them always says the same.{rest}"
    between = "" if found.ci is None else f" (95 % interval {number(found.ci[0])} to {number(found.ci[1])})"
    left = max(0, found.left_out - unlabelled)
    open_ = f" Left out: {_cases(left)} to which {judge} gave neither a winner nor a tie." if left else ""
    return f"{text} Kappa by variant, agreement beyond chance, is {number(found.cohen_kappa)}{between}.{open_}{rest}"


def _cases(n: int) -> str:
    return f"{n:,} case{'s' * (n != 1)}"


def _notes(found: PairwiseAgreement, judge: str, run: PairwiseRunResult) -> list[str]:
    notes = [words.sentence(notice) for notice in found.notices]
    if found.correlation is not None:
        rank = number(found.correlation)
        notes.append(f"The rank correlation of {judge}'s preferences with what people say is {rank} (Spearman).")
    if run.sequential:
        notes.append("The intervals do not allow for the looks after every case.")
    return notes
