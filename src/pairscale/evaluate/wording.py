"""The figures in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from pairscale.checks.effect import sign_test
from pairscale.evaluate.inference.failures import WAY_WORDS, Failures, agreed_better, ways_to_count
from pairscale.evaluate.inference.sequence import confidence_sequence
from pairscale.evaluate.inference.win_rate import FEW_GRADED, few_graded, win_rate

if TYPE_CHECKING:
    from pairscale.evaluate.inference.control import ControlledRate, StyleEffect
    from pairscale.evaluate.inference.win_rate import WinRate
    from pairscale.evaluate.result import PairwiseRunResult

__all__ = [
    "are_identical",
    "asked_words",
    "bounds_lines",
    "chance_words",
    "controlled_lines",
    "effect_words",
    "failures_words",
    "goes_by_order",
    "graded_words",
    "same_answers",
    "summary_of",
    "variant_lines",
    "verdict_of",
]

_UNDECIDED = (("ties", "tie", ""), ("flips", "flip", " (the order of the answers decided)"))
_UNANSWERED = (
    ("abstentions", "abstention", " (the judge did not choose)"),
    ("errors", "error", " (the judge failed)"),
)
_BETTER_JUDGE = "the judge goes by the order of the answers: name a better judge"
_OFTEN = 0.1  # of the cases: failures that are worth a look before anything else
_RARE = 0.05
_ENOUGH = ((200, "60 %"), (800, "55 %"))
"""Cases with a winner that show a win rate of so much, four times out of five."""
_COUNTED = {"loss": "counted as lost", "shown": "the judge saw “(no answer)”", "excluded": "left out"}


@dataclass(frozen=True, slots=True)
class _Finding:
    """What the cases say when failures count in one way.

    Attributes:
        rate: of B.
        ci: its interval.
        better: ``a``, ``b`` or None.
        n: cases, or tasks after looks, that it rests on.
        wins: how many of them B won, and A; None where ties count, too.
        sequential: whether the interval is that of a confidence sequence.
        graded: whether it is the mean preference.
    """

    rate: float
    ci: tuple[float, float]
    better: str | None
    n: int
    wins: tuple[int, int] | None
    sequential: bool
    graded: bool


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
    names = run.variant_a, run.variant_b
    cases = run.frame(key)
    found = _finding(cases, sequential=run.sequential)
    behind = _behind(run, key, found)
    if found is None:
        return "; ".join([*behind, *_failed(run, key), _undecided_advice(run, key)])
    if run.unfinished:
        logs = " and ".join(run.unfinished)
        so_far = f"so far, {_share(found, names[1])}"
        finish = "the tasks that are missing may be the hard ones: finish the run, and compare again"
        return "; ".join([f"inconclusive, as {logs}", so_far, *behind, *_failed(run, key), finish])
    ways = {run.failures: found}
    if cases["failed"].null_count() < cases.height:
        ways |= {
            way: one
            for way in ways_to_count(run.failures)
            if (one := _finding(run.frame(key, failures=way), sequential=run.sequential)) is not None
        }
    if found.better is not None and not agreed_better({way: one.better for way, one in ways.items()}, run.failures):
        failed = failures_words(run, key)
        return "; ".join([_depends(ways, names), *behind, failed, _failures_advice(run, key)])
    return "; ".join([_sentence(found, names), *behind, *_failed(run, key), _advice(run, key, found, names)])


def _finding(cases: pl.DataFrame, *, sequential: bool) -> _Finding | None:
    if sequential:
        looks = confidence_sequence(cases)
        if looks.mean is not None and looks.ci is not None:
            lower, upper = looks.ci
            better = looks.better if looks.better == ("b" if looks.mean > 0.5 else "a") else None
            # What an earlier look has ruled out stays ruled out.
            ci = (max(lower, 0.5), upper) if better == "b" else (lower, min(upper, 0.5)) if better == "a" else looks.ci
            return _Finding(looks.mean, ci, better, looks.n, None, sequential=True, graded=looks.graded)
    rate = win_rate(cases)
    rate = rate if rate.graded else win_rate(cases, ties="excluded")
    if rate.rate is None or rate.ci is None:
        return None
    better = "b" if rate.ci[0] > 0.5 else "a" if rate.ci[1] < 0.5 else None
    wins = None if rate.graded else (rate.wins, rate.losses)
    if better is not None and wins is not None and rate.tasks == rate.n and _chance_of(wins) > _RARE:
        better = None  # with a few cases, the interval claims more than it may
    return _Finding(rate.rate, rate.ci, better, rate.n, wins, sequential=False, graded=rate.graded)


def _chance_of(wins: tuple[int, int]) -> float:
    """How often equal variants have a result at least as uneven as this one: the exact sign test."""
    return sign_test(wins[0], sum(wins)) or 0.0


def _sentence(found: _Finding, names: tuple[str, str]) -> str:
    """Who is better, and by what."""
    whose = "ab".index(found.better or "b")
    rate, ci = (found.rate, found.ci) if whose else (1 - found.rate, (1 - found.ci[1], 1 - found.ci[0]))
    subject = names[1] if found.better is None else "it"
    start = "no difference shown" if found.better is None else f"{names[whose]} is better"
    looks = ", however often you look" if found.sequential else ""
    sure = f"95 % sure{looks}: {_end(ci[0])} to {_end(ci[1])} % in the long run"
    if found.better is None and found.wins is not None and not ci[0] <= 0.5 <= ci[1]:
        sure = f"equal variants have a result like this in {100 * _chance_of(found.wins):.0f} of 100 comparisons"
    if found.graded:
        of = _count(found.n, "task" if found.sequential else "case")
        liked = f"on average over {of}, {chance_words(f'{100 * rate:.0f} %', names[whose])}"
        return f"{start}: {liked} (50 % would be even; {sure})"
    if found.wins is None:
        won = f"{subject} won {100 * rate:.0f} % of {_count(found.n, 'task')}"
        return f"{start}: {won} (a tie counts as half; {sure})"
    of = f"{found.wins[1 - whose]:,} of {_count(found.n, 'case')} with a winner"
    return f"{start}: {subject} won {of} ({100 * rate:.0f} %; {sure})"


def chance_words(share: str, name: str) -> str:
    """What a graded preference is, in words; ``share`` is a percentage."""
    return f"the judge gives {name} a chance of {share} to be the better one"


def _end(share: float) -> str:
    """An end of an interval in per cent, so exact that it shows on which side of one half it lies."""
    whole = round(100 * share)
    return f"{100 * share:.1f}" if whole == 50 and share != 0.5 else f"{whole}"


def _advice(run: PairwiseRunResult, key: str, found: _Finding, names: tuple[str, str]) -> str:
    """What to do next, where there is a finding that holds however failures count."""
    unanswered = _unanswered(run, key)
    if found.better is not None:
        chosen = names["ab".index(found.better)]
        missing = "; ".join(part for part in (_missing(run, run.frame(key), found), unanswered) if part)
        if missing:
            return f"before you choose {chosen}: {missing}"
        other = names[1 - names.index(chosen)]
        often = _failures(run, key)[names.index(other)] >= _OFTEN * found.n
        return f"choose {chosen}, or find out why {other} failed" if often else f"choose {chosen}"
    if unanswered or max(_failures(run, key)) >= _OFTEN * found.n:
        return unanswered or _failures_advice(run, key)
    if run.stopped == "max_cost":
        return "the run stopped at `max_cost=`: raise it, and run it again"
    if goes_by_order(run, key):
        return _BETTER_JUDGE
    more = (
        f"compare more tasks (about {enough} are enough if the better one wins {share}), or choose by cost"
        for enough, share in _ENOUGH
        if found.n < enough
    )
    return next(more, "the difference is small, if there is one: choose by cost and speed")


def _unanswered(run: PairwiseRunResult, key: str) -> str:
    """What to do where the judge left many cases without an answer: these need not be like the others."""
    asked = [case for case in run.of(key) if case.failed is None or run.failures == "shown"]
    silent = sum(not case.outcome.is_answer for case in asked)
    if silent <= max(1, _OFTEN * len(asked)):
        return ""
    cases = f"{silent:,} of {_count(len(asked), 'case')}"
    return f"the judge gave no answer in {cases}: look at why, and run it again"


def _undecided_advice(run: PairwiseRunResult, key: str) -> str:
    """What to do next, where no case has a winner."""
    counts = run.counts(key)
    if (unanswered := _unanswered(run, key)) or any(_failures(run, key)):
        return unanswered or _failures_advice(run, key)
    if counts["error"] or counts["abstention"]:
        return "look at why the judge gave no answer, and run it again"
    if are_identical(run, key):
        return same_answers(run)
    if goes_by_order(run, key):
        return _BETTER_JUDGE
    if counts["tie"]:
        return "the judge sees no difference: name a criterion that says more exactly what counts, or another judge"
    return "there is nothing to compare: look at why no task has an answer of both"


def goes_by_order(run: PairwiseRunResult, key: str) -> bool:
    """Whether most answers of the judge changed with the order of the answers."""
    counts = run.counts(key)
    return 2 * counts["flip"] > counts["win"] + counts["tie"] + counts["flip"]


def are_identical(run: PairwiseRunResult, key: str) -> bool:
    """Whether both variants gave the same answer to every task."""
    cases = list(run.of(key))
    return bool(cases) and all(case.detail.get("identical") for case in cases)


def same_answers(run: PairwiseRunResult) -> str:
    """What to do where both variants gave the same answers."""
    both = f"{run.variant_a} and {run.variant_b}"
    return f"{both} gave the same answers: check that you compare two different variants"


def _failures_advice(run: PairwiseRunResult, key: str) -> str:
    failing = [name for name, n in zip((run.variant_a, run.variant_b), _failures(run, key), strict=True) if n]
    return f"find out why {' and '.join(failing)} failed, and run those tasks again"


def _depends(known: dict[Failures, _Finding], names: tuple[str, str]) -> str:
    """Why there is no verdict where the ways to count failures disagree."""
    ahead = {None: "no difference is shown", "a": f"{names[0]} is ahead", "b": f"{names[1]} is ahead"}
    alike: dict[tuple[str, str], list[str]] = {}
    for way, one in known.items():
        alike.setdefault((ahead[one.better], _share(one, names[1])), []).append(WAY_WORDS[way])
    parts = [f"{says} if {' or if '.join(ways)} ({share})" for (says, share), ways in alike.items()]
    return f"no verdict, as it depends on how failures count: {', but '.join(parts)}"


def _share(found: _Finding, name: str) -> str:
    if found.graded:
        return f"on average, {chance_words(f'{100 * found.rate:.0f} %', name)}"
    of = _count(found.n, "task") if found.wins is None else f"{_count(found.n, 'case')} with a winner"
    return f"{name} won {100 * found.rate:.0f} % of {of}"


def _failures(run: PairwiseRunResult, key: str) -> tuple[int, int]:
    """In how many cases A and B failed."""
    failed = [case.failed for case in run.of(key) if case.failed is not None]
    both = failed.count("both")
    return failed.count("a") + both, failed.count("b") + both


def _behind(run: PairwiseRunResult, key: str, found: _Finding | None) -> list[str]:
    """What the verdict does not rest on; failures of variants are said by :func:`failures_words`."""
    frame = run.frame(key)
    rate = win_rate(frame.filter(pl.col("failed").is_null() | (pl.col("outcome") != "error")), ties="excluded")
    left_out = _UNANSWERED if found is not None and found.wins is None else (*_UNDECIDED, *_UNANSWERED)
    listed = ", ".join(f"{_count(n, word)}{why}" for name, word, why in left_out if (n := getattr(rate, name)))
    if found is None:
        return [f"nothing is decided, as no case has a winner{f': {listed}' if listed else ''}"]
    return [f"not counted: {listed}"] if listed else []


def _failed(run: PairwiseRunResult, key: str) -> list[str]:
    """In how many cases the variants failed, and what that can change; nothing when none did."""
    words = failures_words(run, key)
    lower, upper = run.bounds(key)
    if words and lower is not None and upper is not None and round(lower, 3) < round(upper, 3):
        words += f"; however that is counted, {run.variant_b} wins {100 * lower:.0f} to {100 * upper:.0f} %"
    return [words] if words else []


def _missing(run: PairwiseRunResult, cases: pl.DataFrame, found: _Finding) -> str:
    """What to know of tasks that one side has no answer to, where it would change the verdict if they were failures."""
    sides = {"a": run.variant_a, "b": run.variant_b}
    lacking = [one for one in run.unmatched if one.missing in sides and one.repeat == 1]
    if not lacking:
        return ""
    lost = [{"task_id": one.task_id, "outcome": "win", "winner": "a" if one.missing == "b" else "b"} for one in lacking]
    known = cases.select("task_id", "outcome", "winner", "preference")
    counted = _finding(pl.concat([known, pl.DataFrame(lost)], how="diagonal"), sequential=run.sequential)
    if counted is not None and counted.better == found.better:
        return ""
    names = " and ".join(
        f"{name} has no answer to {_count(n, 'task')}"
        for side, name in sides.items()
        if (n := sum(one.missing == side for one in lacking))
    )
    return f"{names}, not compared; if these are failures, the verdict changes, so add them with an empty output"


def failures_words(run: PairwiseRunResult, key: str) -> str:
    """In how many cases the variants failed, and how that counts; empty when none did."""
    total = len(list(run.of(key)))
    counts = zip((run.variant_a, run.variant_b), _failures(run, key), strict=True)
    failed = [f"{name} failed in {n:,} of {_count(total, 'case')}" for name, n in counts if n]
    return f"{' and '.join(failed)} ({_COUNTED[run.failures]})" if failed else ""


def bounds_lines(run: PairwiseRunResult, key: str) -> list[str]:
    """The bounds of B's win rate over all ways to count failures; nothing where no variant failed."""
    if not any(_failures(run, key)):
        return []
    lower, upper = run.bounds(key)
    if lower is None or upper is None:
        return [f"no win rate of {run.variant_b}, however failures are counted"]
    ends = f"{lower * 100:.1f}" if lower == upper else f"{lower * 100:.1f} to {upper * 100:.1f}"
    return [f"win rate of {run.variant_b} {ends} % over all ways to count failures"]


def asked_words(run: PairwiseRunResult) -> str:
    """How many questions this call put to judges, and how many answers it had the variants give."""
    if not run.asked:
        return "all known already, nothing asked"
    questions = f"{_count(run.asked - run.answered, 'question')} asked"
    return f"{questions}, {_count(run.answered, 'answer')} by the variants" if run.answered else questions


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'s' * (n != 1)}"


def variant_lines(run: PairwiseRunResult) -> list[str]:
    """What the answers of each variant took, one line each."""
    names = {"a": run.variant_a, "b": run.variant_b}
    return [
        f"{names[one.side]}: " + ", ".join(f"{what} {value}" for what, value in one.words().items())
        for one in run.variants
    ]


def summary_of(run: PairwiseRunResult) -> str:
    """All figures of a run on a few lines."""
    cases = len({(case.task_id, case.repeat) for case in run.cases})
    head = f"{run.variant_b} (B) against {run.variant_a} (A), {cases:,} cases, run {run.run_id}"
    width = max([len(key) for key in run.keys] + [len("key")])
    ends = "95 % sequence" if run.sequential else "95 % interval"
    lines = [head, f"  {'key':<{width}}    B    A  tie flip  abs  err   win rate of B  {ends}"]
    for key in run.keys:
        rate = run.win_rate(key)
        numbers = (rate.wins, rate.losses, rate.ties, rate.flips, rate.abstentions, rate.errors)
        lines.append(f"  {key:<{width}} {' '.join(f'{n:>4}' for n in numbers)}   {_rate(rate)}")
    for key in run.keys:
        lines.append(f"  {key}: {run.verdict(key)}")
        lines += [f"  {key}: {words}" for words in graded_words(run, key)]
        lines += [f"  {key}: {words}" for words in bounds_lines(run, key)]
        if run.flips(key):
            places = run.flip_directions(key)
            lines.append(
                f"  {key}: of the flips, {places['first']} favour the first place, {places['second']} the second"
            )
    if run.control:
        lines += [
            f"  {key}: {line}" for key in run.keys for line in controlled_lines(run.controlled(key), run.variant_b)
        ]
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
    strength = f"how strongly the judge prefers {b} on average over {_count(mean.n, 'case')}"
    lines = [f"the win rate is {strength}; counting only which answer is ahead, {b} won {hard.rate * 100:.1f} %"]
    return [*lines, few_graded(mean.tasks)] if mean.tasks < FEW_GRADED and not run.sequential else lines


def _rate(rate: WinRate) -> str:
    if rate.rate is None or rate.ci is None:
        return "none"
    return f"{rate.rate * 100:11.1f} %  {rate.ci[0] * 100:.0f} to {rate.ci[1] * 100:.0f}"


def controlled_lines(found: ControlledRate, name: str) -> list[str]:
    """A rate with styles taken out, what each style is worth, and what to be careful with, in lines.

    Args:
        found: the rate.
        name: what B is called.
    """
    lines = []
    if found.rate is not None and found.raw_rate is not None and found.differing:
        at = f"at equal {', '.join(found.differing)}"
        ends = _ends(found.ci, found.level)
        lines.append(f"{at}: {name} wins {found.rate * 100:.0f} %{ends}, as it is {found.raw_rate * 100:.0f} %")
    for one in found.effects if found.differing else ():
        if not one.differing:
            lines += [f"effect of {one.name}: not known, no answers differ in it"]
            continue
        worth = f"effect of {one.name}: {effect_words(one)}"
        means = f"on average {one.mean_a:.4g} (A) and {one.mean_b:.4g} (B)"
        lines += [f"{worth}; {means}; nearly equal in {one.overlap:,} of {found.n:,} cases"]
    return [*lines, *(f"note: {notice}" for notice in found.notices)]


def _ends(ci: tuple[float, float] | None, level: float) -> str:
    return "" if ci is None else f" ({level * 100:g} % sure: {ci[0] * 100:.0f} to {ci[1] * 100:.0f} %)"


def effect_words(one: StyleEffect) -> str:
    """What a style is worth, as the chance of an answer that is as good and has far more of it."""
    ends = "" if one.ci is None else f" (95 % sure: {_chance(one.ci[0]):.0f} to {_chance(one.ci[1]):.0f} %)"
    return f"of two equally good answers, the one with far more of it wins {_chance(one.effect):.0f} %{ends}"


def _chance(logit: float) -> float:
    """The chance in per cent that belongs to a logit."""
    return 50 * (1 + math.tanh(logit / 2))
