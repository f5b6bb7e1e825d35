"""The sentences of comparisons and gates, each with what to do next."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from pairscale.core.notices import plural
from pairscale.core.tables import listed
from pairscale.evaluate.inference.cases import task_means
from pairscale.evaluate.inference.failures import WAY_WORDS, Failures, agreed_better, ways_to_count
from pairscale.evaluate.inference.gate import tasks_to_fail
from pairscale.evaluate.inference.score import score_interval
from pairscale.evaluate.inference.sequence import RunningSequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.evaluate.gate import GateCriterion, GateResult
    from pairscale.evaluate.inference.control import ControlledRate
    from pairscale.evaluate.inference.gate import GateRule, GateVerdict
    from pairscale.evaluate.inference.win_rate import WinRate
    from pairscale.evaluate.result import PairwiseRunResult

_OFTEN = 0.1  # of the cases: failures that are worth a look before anything else
_RAISE_COST = "the run stopped at `max_cost=`: raise it, and run it again"
_ENOUGH = 800  # cases with a winner that show a win rate of 55 %, four times out of five
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

    Args:
        run: the result.
        key: the comparator.
    """
    rate = deciding_rate(run, key)
    better = better_by_ways(run, key)
    verdict = agreed_better(better, run.failures)
    if rate is None:
        parts = ["nothing is decided, as no case has a winner"]
    elif verdict != better[run.failures]:
        leads = {side: f"{name} is ahead" for side, name in run.names.items()}
        ways = [f"{leads.get(str(side), 'no difference is shown')} if {WAY_WORDS[way]}" for way, side in better.items()]
        parts = [f"no verdict, as it depends on how failures count: {', but '.join(ways)}"]
    else:
        parts = [_sentence(run, rate, verdict)]
    kinds = [str(case.outcome) for case in run.of(key) if case.failed is None or str(case.outcome) != "error"]
    used = () if rate is None else rate.used
    counts = {kind: kinds.count(kind) for kind in _MEANING if kind not in used}
    others = ", ".join(f"{plural(n, kind)}{_MEANING[kind]}" for kind, n in counts.items() if n)
    if others:
        parts.append(f"not counted: {others}")
    failed = failures_words(run, key)
    if failed:
        parts.append(failed)
        lower, upper = (100 * (end or 0.0) for end in run.bounds(key))
        if round(lower, 1) < round(upper, 1):
            parts.append(f"however that is counted, {run.variant_b} wins {lower:.0f} to {upper:.0f} %")
    return "; ".join([*parts, _advice(run, key, rate, verdict)])


def deciding_rate(run: PairwiseRunResult, key: str, way: Failures | None = None, level: float = 0.95) -> WinRate | None:
    """The win rate that a verdict rests on, when failures count in one way; None without a case.

    The verdict and the chart go by its interval. Where a score interval of a few cases claims more than the exact sign
    test, it is the exact interval of Clopper and Pearson.
    """
    rate = run.win_rate(key, failures=way, level=level)
    if run.sequential or rate.graded:
        return None if rate.rate is None or rate.ci is None else rate
    rate = run.win_rate(key, ties="excluded", failures=way, level=level)
    if rate.rate is None or rate.ci is None:
        return None
    lower, upper = score_interval(rate.rate, 0.0, rate.n, level, careful=True)
    is_chance = rate.tasks == rate.n and lower <= 0.5 <= upper and not rate.ci[0] <= 0.5 <= rate.ci[1]
    return replace(rate, ci=(lower, upper)) if is_chance else rate


def basis_of(run: PairwiseRunResult, key: str) -> str:
    """What the rate that a verdict rests on is a rate of."""
    if run.win_rate(key).graded:
        return f"mean preference for {run.variant_b}"
    if run.sequential:
        return f"tasks that {run.variant_b} won, ties and flips as half"
    return f"cases with a winner that {run.variant_b} won"


def better_by_ways(run: PairwiseRunResult, key: str, level: float = 0.95) -> dict[Failures, str | None]:
    """By the way to count failures, the variant that is shown to be better; ways without a case are left out."""
    rates = {way: deciding_rate(run, key, way, level) for way in ways_to_count(run.failures)}
    return {way: _better(run, key, way, rate) for way, rate in rates.items() if rate is not None}


def _better(run: PairwiseRunResult, key: str, way: Failures, rate: WinRate) -> str | None:
    """The variant whose interval excludes one half."""
    if rate.rate is None or rate.ci is None:
        return None
    ahead = "b" if rate.rate > 0.5 else "a"
    if run.sequential:
        sequence = RunningSequence()  # what an earlier look has shown stays shown
        for score in task_means(run.frame(key, failures=way), "cases")["score"]:
            sequence.update(score)
        return ahead if sequence.better == ahead else None
    return None if rate.ci[0] <= 0.5 <= rate.ci[1] else ahead


def _sentence(run: PairwiseRunResult, rate: WinRate, better: str | None) -> str:
    """Who is better, and by what."""
    share = rate.rate or 0.0
    lower, upper = rate.ci or (0.0, 1.0)
    wins = rate.wins
    if better == "a":
        share = 1 - share
        lower, upper = 1 - upper, 1 - lower
        wins = rate.losses
    kind = "interval"
    if run.sequential:
        kind = "sequence"
        lower = lower if better is None else max(lower, 0.5)  # what was shown once stays shown
    sure = f"95 % confidence {kind} {_end(lower)} to {_end(upper)} %"
    start = f"no difference shown: {run.variant_b}" if better is None else f"{run.names[better]} is better: it"
    percentage = f"{100 * share:.0f} %"
    weighed = f" of {plural(rate.tasks, 'task')}, every task counting once" if rate.n > rate.tasks else ""
    if rate.graded:
        return f"{start} is preferred by {percentage} on average over {plural(rate.n, 'case')}{weighed} ({sure})"
    if run.sequential:
        return f"{start} won {percentage} of {plural(rate.tasks, 'task')} (a tie counts as half; {sure})"
    if weighed:
        return f"{start} won {percentage} of {plural(rate.n, 'case')} with a winner{weighed} ({sure})"
    return f"{start} won {wins:,} of {plural(rate.n, 'case')} with a winner ({percentage}; {sure})"


def _end(share: float) -> str:
    """An end of an interval in per cent, so exact that it shows on which side of one half it lies."""
    whole = round(100 * share)
    return f"{100 * share:.1f}" if whole == 50 and share != 0.5 else f"{whole}"


def _advice(run: PairwiseRunResult, key: str, rate: WinRate | None, better: str | None) -> str:
    """What to do next."""
    n = 0 if rate is None else rate.n
    asked = run.asked_cases(key)
    silent = sum(not case.outcome.is_answer for case in asked)
    problem = ""
    if silent > max(1, _OFTEN * len(asked)):
        problem = (
            f"the judge gave no answer in {silent:,} of {plural(len(asked), 'case')}: look at why, and run it again"
        )
    if better is not None:
        lacking = sum(task.missing == better for task in run.unmatched)
        if lacking >= _OFTEN * n:
            problem = (
                f"it has no answer to {plural(lacking, 'task')}; if it failed on them, add them with an empty output"
            )
        favoured = f"{run.names[better]} is favoured"
        return f"{favoured}, but first: {problem}" if problem else favoured
    advice = {
        problem: bool(problem),
        _look_at_failures(run, key): max(run.failed_cases(key).values()) > _OFTEN * n,
        _RAISE_COST: run.stopped == "max_cost",
        _same_answers(run): are_identical(run, key),
        "the judge goes by the order of the answers: name a better judge": 2 * run.flips(key) > run.win_rate(key).n,
        "there is nothing to compare: look at why no task has an answer of both": not asked,
        "the judge sees no difference: name a criterion that says more exactly what counts, or another judge": not n,
        "compare more tasks (about 200 are enough if the better one wins 60 %), or decide by cost": n < _ENOUGH,
        "the difference is small, if there is one: decide by cost and speed": True,
    }
    return next(words for words, holds in advice.items() if holds)


def are_identical(run: PairwiseRunResult, key: str) -> bool:
    """Whether both variants gave the same answer to every task."""
    cases = list(run.of(key))
    return bool(cases) and all(case.detail.get("identical") for case in cases)


def _same_answers(run: PairwiseRunResult) -> str:
    both = f"{run.variant_a} and {run.variant_b}"
    return f"{both} gave the same answers: check that you compare two different variants"


def _look_at_failures(run: PairwiseRunResult, key: str) -> str:
    failing = [run.names[side] for side, n in run.failed_cases(key).items() if n]
    return f"find out why {' and '.join(failing)} failed, and run those tasks again"


def failures_words(run: PairwiseRunResult, key: str) -> str:
    """In how many cases the variants failed, and how that counts; empty when none did."""
    total = plural(len(list(run.of(key))), "case")
    failed = [f"{run.names[side]} failed in {n:,} of {total}" for side, n in run.failed_cases(key).items() if n]
    return f"{' and '.join(failed)} ({_COUNTED[run.failures]})" if failed else ""


# The summary of a comparison


def asked_words(run: PairwiseRunResult) -> str:
    """How many questions this call put to judges, and how many answers it had the variants give."""
    if not run.asked:
        return "all known already, nothing asked"
    questions = f"{plural(run.asked - run.answered, 'question')} asked"
    return f"{questions}, {plural(run.answered, 'answer')} by the variants" if run.answered else questions


def summary_of(run: PairwiseRunResult) -> str:
    """All figures of a run on a few lines."""
    lines = [f"{run.variant_b} (B) against {run.variant_a} (A), {run.n_cases:,} cases, run {run.run_id}"]
    for key in run.keys:
        rate = run.win_rate(key)
        about_key = [str(rate), run.verdict(key), *graded_words(run, key), *rate.notices]
        if run.control:
            about_key += controlled_lines(run.controlled(key), run.variant_b)
        lines += [f"{key}: {words}" for words in about_key]
    agreements = [f"{x} and {y} {run.agreement(x, y)}" for x, y in combinations(run.keys, 2)]
    took = [f"{run.names[one.side]}: {', '.join(map(' '.join, one.words().items()))}" for one in run.variants]
    return "\n  ".join([*lines, *agreements, *took])


def graded_words(run: PairwiseRunResult, key: str) -> list[str]:
    """That the win rate is the mean of graded preferences, and the rate of hard verdicts beside it."""
    mean = run.win_rate(key)
    hard = run.win_rate(key, graded=False)
    if not mean.graded or hard.rate is None:
        return []
    b = run.variant_b
    strength = f"how strongly the judge prefers {b} on average over {plural(mean.n, 'case')}"
    return [f"the win rate is {strength}; counting only which answer is ahead, {b} won {hard.rate * 100:.1f} %"]


def controlled_lines(controlled: ControlledRate, name: str) -> list[str]:
    """A rate with styles taken out, and what to be careful with, in lines.

    Args:
        controlled: the rate.
        name: what B is called.
    """
    lines = [f"note: {notice}" for notice in controlled.notices]
    if controlled.rate is not None and controlled.differing:
        ends = ""
        if controlled.ci is not None:
            lower, upper = controlled.ci
            ends = f" ({controlled.level * 100:g} % confidence interval {lower * 100:.0f} to {upper * 100:.0f} %)"
        rates = (
            f"at equal {', '.join(controlled.differing)}: {name} wins {controlled.rate * 100:.0f} %{ends}, as it is "
            f"{percent(controlled.raw_rate)}; nearly equal in {controlled.overlap:,} of "
            f"{plural(controlled.n, 'case')}"
        )
        lines.insert(0, rates)
    return lines


# The verdict of a gate

STATES = {0: "passed", 1: "could not run", 3: "failed", 4: "untested"}
"""What became of a gate, by its exit code."""

_VERDICTS: dict[GateVerdict, str] = {
    "better": "better than {a}",
    "equivalent": "as good as {a} within the margin",
    "not-worse": "not worse than {a} within the margin",
    "worse": "worse than {a}",
    "inconclusive": "neither shown to be better nor worse than {a}",
    "untested": "untested",
}
"""The verdicts, behind "B is"."""

_NOT_SHOWN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_\[\]#!|<>&~$])|^(?:(\d+)([.)])|([-+=]))")


def gate_line(gate: GateResult) -> str:
    """Whether a gate passed, and why, in one line."""
    if gate.problem is not None:
        return f"the gate could not run: {gate.problem}"
    state = "nothing was tested" if gate.exit_code == 4 else f"the gate {STATES[gate.exit_code]}"
    several = len(gate.criteria) > 1
    return "; ".join([state, *(f"{one.key}: {one.sentence}" if several else one.sentence for one in gate.criteria)])


def too_few_tasks(tasks: int, rule: GateRule, b: str, *, fixed: bool) -> str | None:
    """Why a gate over this number of tasks cannot fail; None when it can.

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


def cannot_tell(flips: Sequence[float] | None) -> str:
    """That the judge has not shown that it can tell A from B, and why.

    Args:
        flips: of each case in which both orders name a winner, whether these differ; None where a card or planted
            answers had to show it.
    """
    start = "the judge has not shown that it can tell them apart"
    if flips is None:
        return f"{start}, by the card or the planted answers"
    if not flips:
        return f"{start}: it never named a winner in both orders"
    return f"{start}: its winner changed with the order in {sum(flips):.0f} of {plural(len(flips), 'case')}"


def gate_sentence(criterion: GateCriterion, run: PairwiseRunResult, rule: GateRule) -> str:
    """The verdict of a criterion in a sentence.

    Args:
        criterion: the verdict and its figures.
        run: the result, for names.
        rule: the margin, and what was asked.
    """
    b = run.variant_b
    verdict = f"{b} is {_VERDICTS[criterion.verdict]}"
    if _disagree(criterion):
        ways = [f"{_VERDICTS[one]} if {WAY_WORDS[way]}" for way, one in criterion.by_failures.items()]
        verdict = f"it depends on how failures count: {b} is {', but '.join(ways)}"
    verdict = verdict.replace("{a}", run.variant_a)
    if criterion.untested is not None:
        verdict += f", as {criterion.untested}"
    ties = ", ties as half" if criterion.ties else ""
    if any(case.repeat > 1 for case in run.of(criterion.key)):
        ties += ", every task counting once"
    sure = f"{criterion.level * 100:.4g} % confidence interval {percent(criterion.lower)} to {percent(criterion.upper)}"
    text = f"{verdict}: it won {percent(criterion.rate)} of {plural(criterion.n, 'case')}{ties} ({sure})"
    if criterion.verdict in {"equivalent", "not-worse"}:
        text += f", and you allow down to {share_words(0.5 - rule.margin)}"
    return text


def gate_advice(criterion: GateCriterion, run: PairwiseRunResult, rule: GateRule) -> str:
    """What to do next."""
    b = run.variant_b
    again = "and run the gate again"
    is_open = criterion.verdict in {"untested", "inconclusive"}
    cannot_tell = criterion.can_tell is False
    many = ""
    if criterion.cases_needed is not None and criterion.cases_needed > criterion.n:
        many = f" (about {criterion.cases_needed:,} in all show that {b} is not worse, if it is as good)"
    lost = listed(criterion.lost)
    advice = {
        _RAISE_COST: is_open and run.stopped == "max_cost",
        "the gate stopped when another criterion had failed; see that one": is_open
        and run.stopped == "decided"
        and len(run.keys) > 1,
        f"name a better judge, or show by `card=` or `planted=` that this one can tell, {again}": cannot_tell,
        f"{_look_at_failures(run, criterion.key)}, {again}": _disagree(criterion),
        _same_answers(run): is_open and are_identical(run, criterion.key),
        f"add tasks{many}, or allow a larger margin than {share_words(rule.margin)}, {again}": is_open,
        f"read the tasks that {b} lost ({lost}), improve {b}, {again}": criterion.verdict == "worse",
        f"add tasks to show that {b} is better, or fail only if it is worse": criterion.failed,
        f"{b} can take the place of {run.variant_a}": True,
    }
    return next(words for words, holds in advice.items() if holds)


def _disagree(criterion: GateCriterion) -> bool:
    """Whether the way to count failures decides whether there is a verdict."""
    return criterion.verdict == "inconclusive" and any(one != "inconclusive" for one in criterion.by_failures.values())


# The summary of a gate


def gate_markdown(gate: GateResult) -> str:
    """The result of a gate for a pull request.

    Names and tasks come from files, so everything that Markdown or HTML would take for more than a letter is escaped.
    """
    lines = [f"### pairscale gate: {STATES[gate.exit_code]}", ""]
    run = gate.result
    if gate.problem is not None or run is None:
        return "\n".join([*lines, _escaped(_capital(f"{gate}.")), ""])
    b = _escaped(run.variant_b)
    lines += [
        f"| criterion | verdict | wins of {b} | confidence interval | cases |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for criterion in gate.criteria:
        ends = f"{percent(criterion.lower)} to {percent(criterion.upper)}"
        figures = f"{criterion.verdict} | {percent(criterion.rate)} | {ends} | {criterion.n:,}"
        lines.append(f"| {_escaped(criterion.key)} | {figures} |")
    for criterion in gate.criteria:
        lines.append(f"\n{_escaped(_capital(criterion.sentence))}. {_escaped(_capital(criterion.advice))}.")
    facts = [
        f"fails if {', '.join(gate.fail_if)}",
        f"margin {share_words(gate.margin)}",
        "all cases, looked at once" if gate.fixed else "stops when it is decided",
        asked_words(run),
        failures_words(run, gate.criteria[0].key),
    ]
    return "\n".join([*lines, f"\n<sub>{' · '.join(_escaped(fact) for fact in facts if fact)}</sub>", ""])


def _escaped(text: str) -> str:
    """A text that Markdown shows as it is."""
    shown = _NOT_SHOWN.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))
    return _MARKDOWN.sub(lambda found: f"{found[2] or ''}\\{found[1] or found[3] or found[4]}", shown)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
