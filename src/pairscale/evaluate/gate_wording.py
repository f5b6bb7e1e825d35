"""The verdicts of a gate in plain words, each with what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairscale.evaluate.inference.failures import WAY_WORDS
from pairscale.evaluate.inference.gate import tasks_to_fail
from pairscale.evaluate.wording import are_identical, chance_words, goes_by_order, same_answers

if TYPE_CHECKING:
    from pairscale.evaluate.gate_result import GateCriterion, GateResult
    from pairscale.evaluate.inference.gate import GateRule, GateVerdict
    from pairscale.evaluate.result import PairwiseRunResult

__all__ = [
    "STATES",
    "VERDICT_WORDS",
    "advice_of",
    "gate_line",
    "percent",
    "sentence_of",
    "share_words",
    "too_few_tasks",
]

STATES = {0: "passed", 1: "could not run", 3: "failed", 4: "untested"}
"""What became of a gate, by its exit code."""

VERDICT_WORDS: dict[GateVerdict, str] = {
    "better": "better",
    "equivalent": "as good within the margin",
    "not-worse": "not worse within the margin",
    "worse": "worse",
    "inconclusive": "neither better nor worse for sure",
    "untested": "untested",
}
"""The verdicts, behind "B is"."""

_SHOWN = 5  # tasks that are named
_RAISE_MAX_COST = "the run stopped at `max_cost=`; raise it, and run it again"


def percent(share: float | None) -> str:
    """A share in per cent, to one digit; nothing where there is none."""
    return "" if share is None else f"{100 * share:.1f} %"


def share_words(share: float) -> str:
    """A limit in per cent, as short as it is."""
    return f"{round(100 * share, 6):g} %"


def gate_line(gate: GateResult) -> str:
    """Whether a gate passed, and why, in one line."""
    if gate.problem is not None:
        return f"the gate could not run: {gate.problem}"
    if not gate.criteria:
        return f"nothing was compared; the baseline is there: {gate.baseline}"
    state = "nothing was tested" if gate.exit_code == 4 else f"the gate {STATES[gate.exit_code]}"
    many = len(gate.criteria) > 1
    return "; ".join([state, *(f"{f'{one.key}: ' if many else ''}{one.sentence}" for one in gate.criteria)])


def too_few_tasks(tasks: int, rule: GateRule, b: str, *, fixed: bool) -> str | None:
    """Why a gate over so many tasks cannot fail; None when it can.

    Args:
        tasks: how many have an outcome.
        rule: the margin and the level.
        b: what B is called.
        fixed: whether the gate looks once.
    """
    needed = tasks_to_fail(rule.margin, level=rule.level, fixed=fixed)
    if tasks >= needed:
        return None
    return (
        f"the gate cannot fail with {_count(tasks, 'task')}: to show that {b} is worse takes at least {needed:,}, even "
        "if it loses all of them"
    )


def sentence_of(found: GateCriterion, run: PairwiseRunResult, rule: GateRule) -> str:
    """The verdict of a criterion in a sentence.

    Args:
        found: the verdict and its figures.
        run: the result, for names.
        rule: the margin, and what was asked.
    """
    a, b = run.variant_a, run.variant_b
    if found.rate is None or found.lower is None or found.upper is None:
        return f"nothing is known of {b} and {a}: no case was answered"
    low, high = share_words(0.5 - rule.margin), share_words(0.5 + rule.margin)
    graded = any(case.preference is not None for case in run.of(found.key))
    won = f"it won {percent(found.rate)} of {_cases(found, run)}"
    if graded:
        won = f"on average over {_cases(found, run)}, {chance_words(percent(found.rate), 'it')}"
    sure = f"{found.level * 100:.4g} % sure"
    question = "better" if "not-better" in rule.fail_if else "worse"
    near = f"slightly worse than {a}, but" if found.upper < 0.5 else f"as good as {a}"
    words: dict[GateVerdict, str] = {
        "better": f"{b} is better than {a}: {won} ({sure}: at least {percent(found.lower)}, which is more than half)",
        "worse": f"{b} is worse than {a}: {won} ({sure}: at most {percent(found.upper)}, which is less than half)",
        "not-worse": f"{b} is not worse than {a} within the margin: {won} ({sure}: at least {percent(found.lower)}, "
        f"and you allow down to {low})",
        "equivalent": f"{b} is {near} within the margin: {won} ({sure}: between {low} and {high})",
        "inconclusive": f"it is not decided whether {b} is {question} than {a}: {won}, but with more cases that may "
        f"become anything from {percent(found.lower)} to {percent(found.upper)}",
        "untested": f"{b} is untested: {found.untested}; {won}",
    }
    said = _depends(found, b) if _disagree(found) else words[found.verdict]
    if _goes_by_order(found, run):
        said += "; but in most cases the judge only went by the order of the answers"
    if rule.people_margin is None:
        return said
    scale = f"{share_words(rule.people_margin)} in the eyes of people is {percent(rule.margin)} in those of this judge"
    return f"{said}; by the judge card, a margin of {scale}"


def _depends(found: GateCriterion, b: str) -> str:
    parts = [f"{b} is {VERDICT_WORDS[verdict]} if {WAY_WORDS[way]}" for way, verdict in found.by_failures.items()]
    return f"it depends on how failures count: {', but '.join(parts)}"


def advice_of(found: GateCriterion, run: PairwiseRunResult, rule: GateRule) -> str:
    """What to do next."""
    b = run.variant_b
    if found.rate is None:
        return "look at why the judge did not answer, and run the gate again"
    if _goes_by_order(found, run):
        return "name a better judge, and run the gate again"
    if found.verdict == "untested":
        return _RAISE_MAX_COST if run.stopped == "max_cost" else "add tasks, and run the gate again"
    if found.verdict == "inconclusive":
        return _open(found, run, rule)
    if not found.failed and found.verdict != "worse":
        return f"{b} can take the place of {run.variant_a}"
    others: dict[GateVerdict, str] = {
        "worse": _look_at(found, run),
        "equivalent": f"more cases will hardly show that {b} is better; improve it, or fail only if it is worse",
    }
    return others.get(found.verdict, f"add cases to show that {b} is better, or fail only if it is worse")


def _look_at(found: GateCriterion, run: PairwiseRunResult) -> str:
    b, named = run.variant_b, ", ".join(found.lost[:_SHOWN])
    more = " and others" if found.losses > _SHOWN else ""
    first = f"find out why {b} failed in {_count(found.failures_b, 'case')}, then " if found.failures_b else ""
    return f"{first}read the tasks that {b} lost ({named}{more}), improve {b}, and run the gate again"


def _open(found: GateCriterion, run: PairwiseRunResult, rule: GateRule) -> str:
    b = run.variant_b
    if _disagree(found):
        failing = [
            f"{name} failed in {_count(n, 'case')}"
            for name, n in ((run.variant_a, found.failures_a), (b, found.failures_b))
            if n
        ]
        return f"find out why {' and '.join(failing)}, have these tasks answered again, and run the gate again"
    if run.stopped == "max_cost":
        return _RAISE_MAX_COST
    if run.stopped == "decided":
        return "the gate stopped when another criterion had failed; see that one"
    return same_answers(run) if are_identical(run, found.key) else _add_cases(found, run, rule)


def _goes_by_order(found: GateCriterion, run: PairwiseRunResult) -> bool:
    """Whether a verdict rests on flips, which say nothing of the answers."""
    return found.verdict not in {"better", "worse"} and goes_by_order(run, found.key)


def _add_cases(found: GateCriterion, run: PairwiseRunResult, rule: GateRule) -> str:
    b = run.variant_b
    if "not-better" in rule.fail_if:
        return f"add cases, as these cannot show that {b} is better, or fail only if it is worse"
    if found.cases_needed is None:
        return f"add cases, or allow a margin above 0, which {b} can meet if it is as good as {run.variant_a}"
    many = ""
    if found.cases_needed > found.n:
        shown = f"{b} is not worse, if it is as good as {run.variant_a}"
        many = f" (about {_round(found.cases_needed):,} in all show that {shown})"
    return f"add cases{many}, or allow a larger margin than {share_words(_asked(rule))}"


def _asked(rule: GateRule) -> float:
    """The margin that was asked for."""
    return rule.margin if rule.people_margin is None else rule.people_margin


def _round(n: int) -> int:
    """To two figures, upwards."""
    step = int(10 ** max(0, len(str(n)) - 2))
    return -(-n // step) * step


def _disagree(found: GateCriterion) -> bool:
    """Whether the way to count failures decides whether there is a verdict."""
    return found.verdict == "inconclusive" and any(one != "inconclusive" for one in found.by_failures.values())


def _cases(found: GateCriterion, run: PairwiseRunResult) -> str:
    words = _count(found.n, "task" if run.sequential and len({case.repeat for case in run.cases}) > 1 else "case")
    return f"{words}, ties as half" if found.ties else words


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'s' * (n != 1)}"
