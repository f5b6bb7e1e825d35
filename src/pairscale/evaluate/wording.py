"""What comparisons of two variants and gates found, in plain words, each with what to do next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from pairscale.checks.effect import sign_test
from pairscale.core.notices import plural
from pairscale.evaluate.inference.failures import WAY_WORDS, Failures, agreed_better, ways_to_count
from pairscale.evaluate.inference.gate import tasks_to_fail
from pairscale.evaluate.inference.sequence import confidence_sequence
from pairscale.evaluate.inference.win_rate import FEW_GRADED, few_graded

if TYPE_CHECKING:
    from pairscale.evaluate.gate import GateCriterion, GateResult
    from pairscale.evaluate.inference.control import ControlledRate, StyleEffect
    from pairscale.evaluate.inference.gate import GateRule, GateVerdict
    from pairscale.evaluate.inference.win_rate import WinRate
    from pairscale.evaluate.result import PairwiseRunResult

__all__ = [
    "STATES",
    "VERDICT_WORDS",
    "asked_words",
    "bounds_lines",
    "controlled_lines",
    "effect_words",
    "failures_words",
    "gate_advice",
    "gate_line",
    "gate_sentence",
    "graded_words",
    "percent",
    "share_words",
    "summary_of",
    "too_few_tasks",
    "variant_lines",
    "verdict_of",
]

_OFTEN = 0.1  # of the cases: failures that are worth a look before anything else
_RARE = 0.05
_BETTER_JUDGE = "the judge goes by the order of the answers: name a better judge"
_ENOUGH = {200: "60 %", 800: "55 %"}
"""Cases with a winner that show a win rate of so much, four times out of five."""
_COUNTED = {"loss": "counted as lost", "shown": "the judge saw “(no answer)”", "excluded": "left out"}
_MEANING = {
    "tie": "",
    "flip": " (the order of the answers decided)",
    "abstention": " (the judge did not choose)",
    "error": " (the judge failed)",
}


def percent(share: float | None) -> str:
    """A share in per cent, to one digit; nothing where there is none."""
    return "" if share is None else f"{100 * share:.1f} %"


def share_words(share: float) -> str:
    """A limit in per cent, as short as it is."""
    return f"{round(100 * share, 6):g} %"


# The verdict of a comparison


def verdict_of(run: PairwiseRunResult, key: str) -> str:
    """Which variant is better, in a sentence that ends with what to do next.

    It rests on the decided cases, those with a winner; the others are counted behind. One is better when the interval
    lies on its side of one half, in every way to count failures. Graded cases are not decided more or less: there it
    rests on the mean preference over all answered cases. Where the outcomes were looked at after every case, it
    rests on all answered cases, a tie and a flip as half a win, and on a confidence sequence instead of an interval.
    Answers of a log that ended too early are no basis for a verdict.

    Args:
        run: the result.
        key: the comparator.
    """
    rate = _decisive(run, key, run.failures)
    if rate is None:
        return "; ".join([_undecided(run, key), *_failed(run, key), _undecided_advice(run, key)])
    behind = [*_left_out(run, key, rate), *_failed(run, key)]
    if run.unfinished:
        so_far = f"so far, {_share(rate, run.variant_b)}"
        finish = "the tasks that are missing may be the hard ones: finish the run, and compare again"
        return "; ".join([f"inconclusive, as {' and '.join(run.unfinished)}", so_far, *behind, finish])
    rates = {way: _decisive(run, key, way) for way in ways_to_count(run.failures)}
    known = {way: one for way, one in rates.items() if one is not None}
    better = {way: better_by(run, key, way) for way in known}
    if better[run.failures] is not None and not agreed_better(better, run.failures):
        why = [_depends(run, known, better), *_left_out(run, key, rate), failures_words(run, key)]
        return "; ".join([*why, _failures_advice(run, key)])
    return "; ".join(
        [_sentence(run, rate, better[run.failures]), *behind, _advice(run, key, rate, better[run.failures])]
    )


def _decisive(run: PairwiseRunResult, key: str, way: Failures) -> WinRate | None:
    """The win rate that a verdict rests on, when failures count in one way; None without a case."""
    rate = run.win_rate(key, failures=way)
    if not run.sequential and not rate.graded:
        rate = run.win_rate(key, ties="excluded", failures=way)
    return None if rate.rate is None or rate.ci is None else rate


def better_by(run: PairwiseRunResult, key: str, way: Failures) -> str | None:
    """The variant that is shown to be better, when failures count in one way."""
    rate = _decisive(run, key, way)
    if rate is None or rate.rate is None or rate.ci is None:
        return None
    ahead = "b" if rate.rate > 0.5 else "a"
    if run.sequential:
        shown = confidence_sequence(run.frame(key, failures=way)).better  # what an earlier look has shown stays shown
        return ahead if shown == ahead else None
    if rate.ci[0] <= 0.5 <= rate.ci[1]:
        return None
    # With a few cases, the interval claims more than it may.
    is_chance = not rate.graded and rate.tasks == rate.n and _chance_of(rate) > _RARE
    return None if is_chance else ahead


def _chance_of(rate: WinRate) -> float:
    """How often equal variants have a result at least as uneven as this one: the exact sign test."""
    return sign_test(rate.wins, rate.wins + rate.losses) or 0.0


def _sentence(run: PairwiseRunResult, rate: WinRate, better: str | None) -> str:
    """Who is better, and by what."""
    if rate.rate is None or rate.ci is None:
        return ""
    name = run.variant_a if better == "a" else run.variant_b
    share = rate.rate
    lower, upper = rate.ci
    if run.sequential and better == "b":
        lower = max(lower, 0.5)
    if run.sequential and better == "a":
        upper = min(upper, 0.5)
    if better == "a":
        share, lower, upper = 1 - share, 1 - upper, 1 - lower
    start = "no difference shown" if better is None else f"{name} is better"
    subject = name if better is None else "it"
    sure = f"95 % interval {_end(lower)} to {_end(upper)} %"
    if run.sequential:
        sure = f"95 % sequence {_end(lower)} to {_end(upper)} %, however often you look"
    if better is None and not run.sequential and not rate.graded and not lower <= 0.5 <= upper:
        sure = f"equal variants have a result like this in {100 * _chance_of(rate):.0f} of 100 comparisons"
    cases = plural(rate.tasks if run.sequential else rate.n, "task" if run.sequential else "case")
    if rate.graded:
        return f"{start}: on average over {cases}, {_chance_words(f'{100 * share:.0f} %', name)} (50 % is even; {sure})"
    if run.sequential:
        return f"{start}: {subject} won {100 * share:.0f} % of {cases} (a tie counts as half; {sure})"
    wins = rate.losses if better == "a" else rate.wins
    return f"{start}: {subject} won {wins:,} of {cases} with a winner ({100 * share:.0f} %; {sure})"


def _chance_words(share: str, name: str) -> str:
    """What a graded preference is; ``share`` is a percentage."""
    return f"the judge gives {name} a chance of {share} to be the better one"


def _end(share: float) -> str:
    """An end of an interval in per cent, so exact that it shows on which side of one half it lies."""
    whole = round(100 * share)
    return f"{100 * share:.1f}" if whole == 50 and share != 0.5 else f"{whole}"


def _share(rate: WinRate, name: str) -> str:
    share = f"{100 * (rate.rate or 0):.0f} %"
    if rate.graded:
        return f"on average, {_chance_words(share, name)}"
    winner = "" if "tie" in rate.used else " with a winner"
    return f"{name} won {share} of {plural(rate.n, 'case')}{winner}"


def _depends(run: PairwiseRunResult, rates: dict[Failures, WinRate], better: dict[Failures, str | None]) -> str:
    """Why there is no verdict where the ways to count failures disagree."""
    ahead = {None: "no difference is shown", "a": f"{run.variant_a} is ahead", "b": f"{run.variant_b} is ahead"}
    ways: dict[tuple[str, str], list[str]] = {}
    for way, rate in rates.items():
        ways.setdefault((ahead[better[way]], _share(rate, run.variant_b)), []).append(WAY_WORDS[way])
    parts = [f"{says} if {' or if '.join(words)} ({share})" for (says, share), words in ways.items()]
    return f"no verdict, as it depends on how failures count: {', but '.join(parts)}"


def _advice(run: PairwiseRunResult, key: str, rate: WinRate, better: str | None) -> str:
    """What to do next, where there is a finding that holds however failures count."""
    unanswered = _unanswered(run, key)
    failures = _failures(run, key)
    if better is not None:
        loser = "b" if better == "a" else "a"
        chosen = run.names[better]
        other = run.names[loser]
        lacking = sum(one.missing == better for one in run.unmatched)
        advice = f"choose {chosen}"
        if unanswered:
            advice = f"before you choose {chosen}: {unanswered}"
        elif lacking >= _OFTEN * rate.n:
            without = f"{chosen} has no answer to {plural(lacking, 'task')}, not compared"
            advice = f"before you choose {chosen}: {without}; if it failed on them, add them with an empty output"
        elif failures[loser] >= _OFTEN * rate.n:
            advice += f", or find out why {other} failed"
        return advice
    if unanswered or max(failures.values()) >= _OFTEN * rate.n:
        return unanswered or _failures_advice(run, key)
    if run.stopped == "max_cost":
        return "the run stopped at `max_cost=`: raise it, and run it again"
    if goes_by_order(run, key):
        return _BETTER_JUDGE
    for enough, share in _ENOUGH.items():
        if rate.n < enough:
            return f"compare more tasks (about {enough} are enough if the better one wins {share}), or choose by cost"
    return "the difference is small, if there is one: choose by cost and speed"


def _undecided(run: PairwiseRunResult, key: str) -> str:
    counts = run.counts(key)
    kinds = _kinds({kind: n for kind, n in counts.items() if kind != "win"})
    return f"nothing is decided, as no case has a winner{f': {kinds}' if kinds else ''}"


def _kinds(counts: Mapping[str, int]) -> str:
    """How many cases there are of each kind, and what that means."""
    return ", ".join(f"{plural(n, kind)}{_MEANING[kind]}" for kind, n in counts.items() if n)


def _undecided_advice(run: PairwiseRunResult, key: str) -> str:
    """What to do next, where no case has a winner."""
    counts = run.counts(key)
    unanswered = _unanswered(run, key)
    if unanswered or any(_failures(run, key).values()):
        return unanswered or _failures_advice(run, key)
    if counts["error"] or counts["abstention"]:
        return "look at why the judge gave no answer, and run it again"
    if are_identical(run, key):
        return _same_answers(run)
    if goes_by_order(run, key):
        return _BETTER_JUDGE
    if counts["tie"]:
        return "the judge sees no difference: name a criterion that says more exactly what counts, or another judge"
    return "there is nothing to compare: look at why no task has an answer of both"


def _unanswered(run: PairwiseRunResult, key: str) -> str:
    """What to do where the judge left many cases without an answer: these need not be like the others."""
    asked = [case for case in run.of(key) if case.failed is None or run.failures == "shown"]
    silent = sum(not case.outcome.is_answer for case in asked)
    if silent <= max(1, _OFTEN * len(asked)):
        return ""
    return f"the judge gave no answer in {silent:,} of {plural(len(asked), 'case')}: look at why, and run it again"


def goes_by_order(run: PairwiseRunResult, key: str) -> bool:
    """Whether most answers of the judge changed with the order of the answers."""
    counts = run.counts(key)
    return 2 * counts["flip"] > counts["win"] + counts["tie"] + counts["flip"]


def are_identical(run: PairwiseRunResult, key: str) -> bool:
    """Whether both variants gave the same answer to every task."""
    cases = list(run.of(key))
    return bool(cases) and all(case.detail.get("identical") for case in cases)


def _same_answers(run: PairwiseRunResult) -> str:
    both = f"{run.variant_a} and {run.variant_b}"
    return f"{both} gave the same answers: check that you compare two different variants"


def _failures(run: PairwiseRunResult, key: str) -> dict[str, int]:
    """In how many cases A and B failed."""
    failed = [case.failed for case in run.of(key)]
    both = failed.count("both")
    return {"a": failed.count("a") + both, "b": failed.count("b") + both}


def _failures_advice(run: PairwiseRunResult, key: str) -> str:
    failures = _failures(run, key)
    failing = [name for side, name in run.names.items() if failures[side]]
    return f"find out why {' and '.join(failing)} failed, and run those tasks again"


def _left_out(run: PairwiseRunResult, key: str, rate: WinRate) -> list[str]:
    """The cases that the verdict does not rest on; failures of variants are said by :func:`failures_words`."""
    counts = run.frame(key).filter(pl.col("failed").is_null() | (pl.col("outcome") != "error"))["outcome"]
    kinds = ["tie", "flip"] if "tie" not in rate.used else []
    found = {kind: int((counts == kind).sum()) for kind in (*kinds, "abstention", "error")}
    words = _kinds(found)
    return [f"not counted: {words}"] if words else []


def failures_words(run: PairwiseRunResult, key: str) -> str:
    """In how many cases the variants failed, and how that counts; empty when none did."""
    total = plural(len(list(run.of(key))), "case")
    failures = _failures(run, key)
    failed = [f"{name} failed in {failures[side]:,} of {total}" for side, name in run.names.items() if failures[side]]
    return f"{' and '.join(failed)} ({_COUNTED[run.failures]})" if failed else ""


def _failed(run: PairwiseRunResult, key: str) -> list[str]:
    """In how many cases the variants failed, and what that can change; nothing when none did."""
    words = failures_words(run, key)
    lower, upper = run.bounds(key)
    if words and lower is not None and upper is not None and round(lower, 3) < round(upper, 3):
        words += f"; however that is counted, {run.variant_b} wins {100 * lower:.0f} to {100 * upper:.0f} %"
    return [words] if words else []


def bounds_lines(run: PairwiseRunResult, key: str) -> list[str]:
    """The bounds of B's win rate over all ways to count failures; nothing where no variant failed."""
    if not any(_failures(run, key).values()):
        return []
    lower, upper = run.bounds(key)
    if lower is None or upper is None:
        return [f"no win rate of {run.variant_b}, however failures are counted"]
    ends = f"{lower * 100:.1f}" if lower == upper else f"{lower * 100:.1f} to {upper * 100:.1f}"
    return [f"win rate of {run.variant_b} {ends} % over all ways to count failures"]


# The summary of a comparison


def asked_words(run: PairwiseRunResult) -> str:
    """How many questions this call put to judges, and how many answers it had the variants give."""
    if not run.asked:
        return "all known already, nothing asked"
    questions = f"{plural(run.asked - run.answered, 'question')} asked"
    return f"{questions}, {plural(run.answered, 'answer')} by the variants" if run.answered else questions


def variant_lines(run: PairwiseRunResult) -> list[str]:
    """What the answers of each variant took, one line each."""
    return [
        f"{run.names[one.side]}: " + ", ".join(f"{what} {value}" for what, value in one.words().items())
        for one in run.variants
    ]


def summary_of(run: PairwiseRunResult) -> str:
    """All figures of a run on a few lines."""
    width = max([len(key) for key in run.keys] + [len("key")])
    ends = "95 % sequence" if run.sequential else "95 % interval"
    lines = [
        f"{run.variant_b} (B) against {run.variant_a} (A), {run.n_cases:,} cases, run {run.run_id}",
        f"  {'key':<{width}}    B    A  tie flip  abs  err   win rate of B  {ends}",
    ]
    for key in run.keys:
        rate = run.win_rate(key)
        numbers = (rate.wins, rate.losses, rate.ties, rate.flips, rate.abstentions, rate.errors)
        share = "none"
        if rate.rate is not None and rate.ci is not None:
            share = f"{rate.rate * 100:11.1f} %  {rate.ci[0] * 100:.0f} to {rate.ci[1] * 100:.0f}"
        lines.append(f"  {key:<{width}} {' '.join(f'{n:>4}' for n in numbers)}   {share}")
    for key in run.keys:
        told = [run.verdict(key), *graded_words(run, key), *bounds_lines(run, key)]
        if run.flips(key):
            places = run.flip_directions(key)
            told.append(f"of the flips, {places['first']} favour the first place, {places['second']} the second")
        if run.control:
            told += controlled_lines(run.controlled(key), run.variant_b)
        lines += [f"  {key}: {words}" for words in told]
    for at, x in enumerate(run.keys):
        for y in run.keys[at + 1 :]:
            found = run.agreement(x, y)
            if found.n and found.rate is not None:
                lines.append(f"  {x} and {y} {found}")
                lines += [f"  {x} and {y}: {words}" for words in found.notices]
    lines += [f"  {line}" for line in variant_lines(run)]
    if run.unmatched:
        lines.append(f"  {len(run.unmatched):,} without an answer of both variants, not compared")
    if run.unasked:
        lines.append(f"  {len(run.unasked):,} tasks not asked: stopped, {run.stopped}")
    return "\n".join(lines)


def graded_words(run: PairwiseRunResult, key: str) -> list[str]:
    """That the win rate is the mean of graded preferences, and the rate of hard verdicts beside it."""
    mean = run.win_rate(key)
    hard = run.win_rate(key, graded=False)
    if not mean.graded or mean.rate is None or hard.rate is None:
        return []
    b = run.variant_b
    strength = f"how strongly the judge prefers {b} on average over {plural(mean.n, 'case')}"
    lines = [f"the win rate is {strength}; counting only which answer is ahead, {b} won {hard.rate * 100:.1f} %"]
    if mean.tasks < FEW_GRADED and not run.sequential:
        lines.append(few_graded(mean.tasks))
    return lines


def controlled_lines(found: ControlledRate, name: str) -> list[str]:
    """A rate with styles taken out, what each style is worth, and what to be careful with, in lines.

    Args:
        found: the rate.
        name: what B is called.
    """
    lines = []
    if found.rate is not None and found.raw_rate is not None and found.differing:
        ends = ""
        if found.ci is not None:
            ends = f" ({found.level * 100:g} % interval {found.ci[0] * 100:.0f} to {found.ci[1] * 100:.0f} %)"
        at = f"at equal {', '.join(found.differing)}"
        lines.append(f"{at}: {name} wins {found.rate * 100:.0f} %{ends}, as it is {found.raw_rate * 100:.0f} %")
        for effect in found.effects:
            if effect.differing:
                means = f"on average {effect.mean_a:.4g} (A) and {effect.mean_b:.4g} (B)"
                near = f"nearly equal in {effect.overlap:,} of {found.n:,} cases"
                lines.append(f"effect of {effect.name}: {effect_words(effect)}; {means}; {near}")
            else:
                lines.append(f"effect of {effect.name}: not known, no answers differ in it")
    return [*lines, *(f"note: {notice}" for notice in found.notices)]


def effect_words(effect: StyleEffect) -> str:
    """What a style is worth, as the chance of an answer that is as good and has far more of it."""
    ends = ""
    if effect.ci is not None:
        ends = f" (95 % interval {_chance(effect.ci[0]):.0f} to {_chance(effect.ci[1]):.0f} %)"
    return f"of two equally good answers, the one with far more of it wins {_chance(effect.effect):.0f} %{ends}"


def _chance(logit: float) -> float:
    """The chance in per cent that belongs to a logit."""
    return 50 * (1 + math.tanh(logit / 2))


# The verdict of a gate

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


def gate_line(gate: GateResult) -> str:
    """Whether a gate passed, and why, in one line."""
    if gate.problem is not None:
        return f"the gate could not run: {gate.problem}"
    if not gate.criteria:
        return f"nothing was compared; the baseline is there: {gate.baseline}"
    state = "nothing was tested" if gate.exit_code == 4 else f"the gate {STATES[gate.exit_code]}"
    if len(gate.criteria) == 1:
        return f"{state}; {gate.criteria[0].sentence}"
    return "; ".join([state, *(f"{one.key}: {one.sentence}" for one in gate.criteria)])


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
        f"the gate cannot fail with {plural(tasks, 'task')}: to show that {b} is worse takes at least {needed:,}, even "
        "if it loses all of them"
    )


def gate_sentence(found: GateCriterion, run: PairwiseRunResult, rule: GateRule) -> str:
    """The verdict of a criterion in a sentence.

    Args:
        found: the verdict and its figures.
        run: the result, for names.
        rule: the margin, and what was asked.
    """
    a = run.variant_a
    b = run.variant_b
    if found.rate is None or found.lower is None or found.upper is None:
        return f"nothing is known of {b} and {a}: no case was answered"
    low = share_words(0.5 - rule.margin)
    high = share_words(0.5 + rule.margin)
    repeated = run.sequential and any(case.repeat > 1 for case in run.cases)
    cases = plural(found.n, "task" if repeated else "case") + (", ties as half" if found.ties else "")
    won = f"it won {percent(found.rate)} of {cases}"
    if any(case.preference is not None for case in run.of(found.key)):
        won = f"on average over {cases}, {_chance_words(percent(found.rate), 'it')}"
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
    text = words[found.verdict]
    if _disagree(found):
        parts = [f"{b} is {VERDICT_WORDS[verdict]} if {WAY_WORDS[way]}" for way, verdict in found.by_failures.items()]
        text = f"it depends on how failures count: {', but '.join(parts)}"
    if _rests_on_order(found, run):
        text += "; but in most cases the judge only went by the order of the answers"
    return text


def gate_advice(found: GateCriterion, run: PairwiseRunResult, rule: GateRule) -> str:  # noqa: PLR0911 - a table
    """What to do next."""
    b = run.variant_b
    if found.rate is None:
        return "look at why the judge did not answer, and run the gate again"
    if _rests_on_order(found, run):
        return "name a better judge, and run the gate again"
    if found.verdict in {"untested", "inconclusive"} and not _disagree(found) and run.stopped == "max_cost":
        return "the run stopped at `max_cost=`; raise it, and run it again"
    if found.verdict == "untested":
        return "add tasks, and run the gate again"
    if found.verdict == "inconclusive":
        return _open_advice(found, run, rule)
    if found.verdict == "worse":
        named = ", ".join(found.lost[:_SHOWN]) + (" and others" if found.losses > _SHOWN else "")
        first = f"find out why {b} failed in {plural(found.failures_b, 'case')}, then " if found.failures_b else ""
        return f"{first}read the tasks that {b} lost ({named}), improve {b}, and run the gate again"
    if not found.failed:
        return f"{b} can take the place of {run.variant_a}"
    if found.verdict == "equivalent":
        return f"more cases will hardly show that {b} is better; improve it, or fail only if it is worse"
    return f"add cases to show that {b} is better, or fail only if it is worse"


def _open_advice(found: GateCriterion, run: PairwiseRunResult, rule: GateRule) -> str:
    """What to do next where nothing is decided."""
    b = run.variant_b
    if _disagree(found):
        return f"{_failures_advice(run, found.key)}, then run the gate again"
    if run.stopped == "decided":
        return "the gate stopped when another criterion had failed; see that one"
    if are_identical(run, found.key):
        return _same_answers(run)
    if "not-better" in rule.fail_if:
        return f"add cases, as these cannot show that {b} is better, or fail only if it is worse"
    if found.cases_needed is None:
        return f"add cases, or allow a margin above 0, which {b} can meet if it is as good as {run.variant_a}"
    many = ""
    if found.cases_needed > found.n:
        step = int(10 ** max(0, len(str(found.cases_needed)) - 2))
        about = -(-found.cases_needed // step) * step  # to two figures, upwards
        many = f" (about {about:,} in all show that {b} is not worse, if it is as good as {run.variant_a})"
    return f"add cases{many}, or allow a larger margin than {share_words(rule.margin)}"


def _rests_on_order(found: GateCriterion, run: PairwiseRunResult) -> bool:
    """Whether a verdict rests on flips, which say nothing of the answers."""
    return found.verdict not in {"better", "worse"} and goes_by_order(run, found.key)


def _disagree(found: GateCriterion) -> bool:
    """Whether the way to count failures decides whether there is a verdict."""
    return found.verdict == "inconclusive" and any(one != "inconclusive" for one in found.by_failures.values())
