"""A report of two variants in words: who compared, what length does, what to look at again, the method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pairscale._version import __version__
from pairscale.core.comparisons import Outcome
from pairscale.evaluate.inference.control import MARKDOWN
from pairscale.evaluate.wording import asked_words, effect_words
from pairscale.reporting.picture import percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.evaluate.inference.control import ControlledRate
    from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult

_GRADED = (
    "Answers are graded: a case counts with the probability that B is better, averaged over both orders where both "
    "were asked, and the win rate is the mean of these preferences. "
)
_OUTCOMES = {"flip": "flip", "abstention": "no answer", "error": "error"}


def sentence(text: str) -> str:
    """A finding as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def headline(run: PairwiseRunResult) -> str:
    """What was compared, and with one criterion what came of it, in the result's own words."""
    cases = len({(case.task_id, case.repeat) for case in run.cases})
    text = f"{run.variant_b} was compared with {run.variant_a} in {cases:,} case{'s' * (cases != 1)}"
    if len(run.keys) > 1:
        return f"{text}, by {len(run.keys)} comparators. Each has a verdict of its own:"
    return f"{text}: {run.verdict(run.keys[0])}."


def by_whom(run: PairwiseRunResult, key: str) -> str:
    """Who compared under a key, as far as the cases tell."""
    for case in run.of(key):
        detail = case.detail
        if "members" in detail:
            return f"a panel of {', '.join(str(one['judge_id']) for one in detail['members'])}"
        if "labels" in detail:
            return "people who labelled the cases blinded"
        if "first_variant" in detail:
            return "a person who was shown the answers blinded"
        if "judge_id" in detail:
            orders = "in both orders" if len(detail.get("orders", ())) > 1 else "in one order"
            return f"{detail['judge_id']} {orders}"
    return "a comparator of its own"


def judges_of(run: PairwiseRunResult) -> list[str]:
    """The names of those who compared, as far as the cases tell."""
    found: dict[str, None] = {}
    for key in run.keys:
        for case in run.of(key):
            detail = case.detail
            members = [str(one["judge_id"]) for one in detail.get("members", ())]
            own = [str(detail["judge_id"])] if "judge_id" in detail else []
            people = ["people"] if "labels" in detail or "first_variant" in detail else []
            if names := members or own or people:
                found |= dict.fromkeys(names)
                break
    return list(found)


def case_name(case: PairwiseCase) -> str:
    """A task, and which answer to it when that is not the first."""
    return case.task_id if case.repeat == 1 else f"{case.task_id} #{case.repeat}"


def outcome(case: PairwiseCase, run: PairwiseRunResult) -> str:
    """What came of a case, in a word or two."""
    if case.outcome is Outcome.WIN:
        return run.variant_a if case.winner == "a" else run.variant_b
    return _OUTCOMES.get(str(case.outcome), "tie")


def said(case: PairwiseCase, run: PairwiseRunResult) -> list[tuple[str, str]]:
    """What came of a case and why: sentences, each with the words of the judge or person who said it."""
    names = {"a": run.variant_a, "b": run.variant_b, "tie": "a tie"}
    what = outcome(case, run)
    head = f"{case.key}: {f'{what} is better' if case.outcome is Outcome.WIN else what}"
    head += "" if case.preference is None else f" (preference {case.preference:.2f} for {run.variant_b})"
    detail = case.detail
    if "members" in detail:
        members = [
            (f"{one['judge_id']}: {names.get(one['winner'] or '', one['outcome'])}", str(one["reasoning"] or ""))
            for one in detail["members"]
        ]
        return [(head, ""), *members]
    if "labels" in detail:
        labels = [
            (f"{one['labeller']}: {names.get(one['winner'], '')}", one["comment"] or "") for one in detail["labels"]
        ]
        return [(head, ""), *labels]
    if len(detail.get("orders", ())) > 1:
        orders = [
            (
                f"{names[one['first']]} shown first: {names.get(one['winner'] or '', one['outcome'])}"
                + _stated(one, run),
                one["reasoning"] or "",
            )
            for one in detail["orders"]
        ]
        return [(head, ""), *orders]
    return [(head, case.reasoning)]


def _stated(order: Mapping[str, Any], run: PairwiseRunResult) -> str:
    """How strongly B was preferred in one order, where the judge is graded."""
    stated = order.get("preference")
    return "" if stated is None else f" ({stated:.2f} for {run.variant_b})"


def why_not(case: PairwiseCase) -> str:
    """Why a case has no answer, on one line: what was said in the orders that failed."""
    orders = [one["reasoning"] for one in case.detail.get("orders", ()) if one["outcome"] == str(case.outcome)]
    told = "; ".join(dict.fromkeys(reason for reason in orders if reason)) or case.reasoning
    return " ".join(told.split())


def length(found: ControlledRate, run: PairwiseRunResult) -> str:
    """What the length of the answers has to do with it."""
    if found.rate is None or found.raw_rate is None:
        return sentence("; ".join(found.notices) or "the lengths of the answers are not known")
    b = run.variant_b
    effect = found.effects[0]
    those_of_a = f"those of {run.variant_a} {effect.mean_a:,.0f}"
    mean = f"{b}'s answers have {effect.mean_b:,.0f} characters on average, {those_of_a}. "
    equal = f"At equal length {b} would win {percent(found.rate)}{_ends(found, found.ci)}, as it is "
    near = f"{found.overlap:,} of {found.n:,} cases have answers of nearly equal length."
    notices = "".join(f" {sentence(notice)}" for notice in found.notices)
    return f"{mean}{equal}{percent(found.raw_rate)}; ties and flips are half. {near}{notices}"


def styles(run: PairwiseRunResult, key: str) -> list[str]:
    """What other styles have to do with it: Markdown where the answers have any, and what the run controls for."""
    cases = list(run.of(key))
    counted = any(case.measures_a.get(name) or case.measures_b.get(name) for case in cases for name in MARKDOWN)
    names = run.control or (("length", *MARKDOWN) if counted else ())
    if not set(names) - {"length"}:
        return []
    found = run.controlled(key, names)
    if found.rate is None or not found.differing:
        return [sentence("; ".join(found.notices))]
    effects = " ".join(sentence(f"{one.name}: {effect_words(one)}") for one in found.effects if one.differing)
    notices = "".join(f" {sentence(notice)}" for notice in found.notices)
    won = f"{run.variant_b} would win {percent(found.rate)}{_ends(found, found.ci)}"
    return [f"At equal {', '.join(found.differing)} {won}. {effects}{notices}"]


def _ends(found: ControlledRate, ci: tuple[float, float] | None) -> str:
    return "" if ci is None else f" ({100 * found.level:g} % interval {100 * ci[0]:.0f} to {100 * ci[1]:.0f} %)"


def took(run: PairwiseRunResult) -> str:
    """How long the last call took, and what it asked."""
    seconds = run.duration_ms / 1000
    if not run.asked:
        return "The last call asked nothing: all was known already."
    time = f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f"In the last call, which took {time}: {asked_words(run)}."


def method(run: PairwiseRunResult) -> Sequence[str]:
    """A paragraph on the method, to be taken over into a paper."""
    tasks = len({case.task_id for case in run.cases})
    repeats = max((case.repeat for case in run.cases), default=1)
    answers = f", {repeats} answers of each to a task" if repeats > 1 else ""
    compared = "; ".join(f"“{key}” by {by_whom(run, key)}" for key in run.keys)
    rate = run.win_rate(run.keys[0])
    level = f"{100 * rate.level:g} %"
    intervals: dict[str, Any] = {
        "wilson": f"{level} score intervals, which are Wilson's without ties",
        "betting": f"{level} confidence sequences, which hold however often one looks",
    }
    text = (
        f"{run.variant_b} (B) was compared with {run.variant_a} (A) on {tasks:,} task{'s' * (tasks != 1)}{answers}: "
        f"{compared}. Where a judge was asked in both orders, a win counts only when both name the same answer; "
        "another winner in the other order is a flip. The win rate counts ties and flips as half a win, or leaves them "
        "out where that is said; abstentions and errors are counted and never used. "
        f"{_GRADED if rate.graded else ''}Intervals are "
        f"{intervals.get(rate.interval, f'{level}, {rate.interval}')}; cases of the same task are not taken for "
        f"independent. Computed with pairscale {__version__}."
    )
    if run.stopped is not None:
        text += f" The run ended early ({run.stopped}), with {len(run.unasked):,} tasks not asked."
    return [text]
