"""The figures in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from pairscale.evaluate.calibration import calibrated_lines
from pairscale.evaluate.inference.failures import WAY_WORDS, Failures, agreed_better, ways_to_count
from pairscale.evaluate.inference.sequence import confidence_sequence
from pairscale.evaluate.inference.win_rate import win_rate

if TYPE_CHECKING:
    from pairscale.evaluate.inference.control import ControlledRate
    from pairscale.evaluate.inference.win_rate import WinRate
    from pairscale.evaluate.result import PairwiseRunResult

__all__ = [
    "bounds_words",
    "controlled_lines",
    "failures_words",
    "graded_words",
    "summary_of",
    "variant_lines",
    "verdict_of",
]

_REST = (("ties", "tie"), ("flips", "flip"), ("abstentions", "abstention"), ("errors", "error"))
_COUNTED = {"loss": "counted as lost", "shown": "shown to the comparators as “(no answer)”", "excluded": "left out"}


@dataclass(frozen=True, slots=True)
class _Finding:
    """What the cases say when failures count in one way."""

    rate: float
    ci: tuple[float, float]
    better: str | None
    of: str
    interval: str
    graded: bool = False


def verdict_of(run: PairwiseRunResult, key: str) -> str:
    """Which variant is better, in a sentence.

    It rests on the decided cases, those with a winner; the others are counted behind. One is better when the interval
    lies on its side of one half, in every way to count failures. Graded cases are not decided more or less: there it
    rests on the mean preference over all answered cases. Where the outcomes were looked at after every case, it
    rests on all answered cases, a tie and a flip as half a win, and on a confidence sequence instead of an interval.

    Args:
        run: the result.
        key: the comparator.
    """
    names = run.variant_a, run.variant_b
    cases = run.frame(key)
    behind = _behind(run, key, win_rate(cases, ties="excluded"))
    found = _finding(cases, sequential=run.sequential)
    if cases["failed"].null_count() == cases.height:
        return (
            f"nothing is decided: no case has a winner{behind}" if found is None else _sentence(found, names) + behind
        )
    ways = {
        way: _finding(run.frame(key, failures=way), sequential=run.sequential) for way in ways_to_count(run.failures)
    }
    known = {way: one for way, one in ways.items() if one is not None}
    if found is None:
        return f"nothing is decided: no case has a winner{behind}"
    if found.better is None or agreed_better({way: one.better for way, one in known.items()}, run.failures):
        return _sentence(found, names) + behind
    return _depends(run, key, known, names) + behind


def _finding(cases: pl.DataFrame, *, sequential: bool) -> _Finding | None:
    if sequential:
        looks = confidence_sequence(cases)
        if looks.mean is not None and looks.ci is not None:
            of = _count(looks.n, "task") if looks.graded else f"{_count(looks.n, 'task')}, ties and flips as half"
            interval = f"{looks.level * 100:g} % sequence"
            return _Finding(looks.mean, looks.ci, looks.better, of, interval, looks.graded)
    rate = win_rate(cases)
    rate = rate if rate.graded else win_rate(cases, ties="excluded")
    if rate.rate is None or rate.ci is None:
        return None
    better = "b" if rate.ci[0] > 0.5 else "a" if rate.ci[1] < 0.5 else None
    of = _count(rate.n, "graded case" if rate.graded else "decided case")
    return _Finding(rate.rate, rate.ci, better, of, f"{rate.level * 100:g} % interval", rate.graded)


def _sentence(found: _Finding, names: tuple[str, str]) -> str:
    rate, ci = found.rate, found.ci
    if found.better == "a":
        rate, ci = 1 - rate, (1 - ci[1], 1 - ci[0])
    ends = f"{found.interval} {ci[0] * 100:.0f} to {ci[1] * 100:.0f}"
    if found.graded:
        whose = names["ab".index(found.better or "b")]
        mean = f"mean preference for {whose} {rate * 100:.0f} % over {found.of}, {ends}"
        return f"no difference shown: {mean}" if found.better is None else f"{whose} is better: {mean}"
    figures = f"{rate * 100:.0f} % of {found.of}, {ends}"
    if found.better is None:
        return f"no difference shown: {names[1]} won {figures}"
    return f"{names['ab'.index(found.better)]} is better: {figures}"


def _depends(run: PairwiseRunResult, key: str, known: dict[Failures, _Finding], names: tuple[str, str]) -> str:
    """Why there is no verdict where the ways to count failures disagree, and what to do next."""
    says = {None: "no difference is shown", "a": f"{names[0]} is ahead", "b": f"{names[1]} is ahead"}
    parts = [f"{says[one.better]} if {WAY_WORDS[way]} ({_share(one, names[1])})" for way, one in known.items()]
    failing = [name for name, failed in zip(names, _failures(run, key), strict=True) if failed]
    return (
        f"no verdict, as it depends on how failures count: {', but '.join(parts)}; find out why "
        f"{' and '.join(failing)} failed, and run those tasks again"
    )


def _share(found: _Finding, name: str) -> str:
    if found.graded:
        return f"mean preference for {name} {found.rate * 100:.0f} % over {found.of}"
    return f"{name} won {found.rate * 100:.0f} % of {found.of}"


def _failures(run: PairwiseRunResult, key: str) -> tuple[int, int]:
    """In how many cases A and B failed."""
    failed = [case.failed for case in run.of(key) if case.failed is not None]
    both = failed.count("both")
    return failed.count("a") + both, failed.count("b") + both


def _behind(run: PairwiseRunResult, key: str, rate: WinRate) -> str:
    """What is counted behind the verdict: what is not decided, failures with the bounds, and what was not compared."""
    parts = [_count(n, word) for name, word in _REST if (n := getattr(rate, name))]
    if words := failures_words(run, key):
        parts += [words, bounds_words(run, key)]
    if words := _missing(run, run.frame(key)):
        parts.append(words)
    return "".join(f"{'; ' if at == 0 else ', '}{part}" for at, part in enumerate(parts))


def _missing(run: PairwiseRunResult, cases: pl.DataFrame) -> str:
    """What to know of tasks that one side has no answer to, where it would change the verdict if they were failures."""
    sides = {"a": run.variant_a, "b": run.variant_b}
    lacking = [one for one in run.unmatched if one.missing in sides and one.repeat == 1]
    found = _finding(cases, sequential=run.sequential)
    if not lacking or found is None or found.better is None:
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
    return f"{names}, not compared; if these are failures, the verdict changes: add them with an empty output"


def failures_words(run: PairwiseRunResult, key: str) -> str:
    """In how many cases the variants failed, and how that counts; empty when none did."""
    total = len(list(run.of(key)))
    counts = zip((run.variant_a, run.variant_b), _failures(run, key), strict=True)
    failed = [f"{name} failed in {n:,} of {_count(total, 'case')}" for name, n in counts if n]
    return f"{' and '.join(failed)} ({_COUNTED[run.failures]})" if failed else ""


def bounds_words(run: PairwiseRunResult, key: str) -> str:
    """The bounds of B's win rate over all ways to count failures."""
    lower, upper = run.bounds(key)
    if lower is None or upper is None:
        return f"no win rate of {run.variant_b}, however failures are counted"
    ends = f"{lower * 100:.1f}" if lower == upper else f"{lower * 100:.1f} to {upper * 100:.1f}"
    return f"win rate of {run.variant_b} {ends} % over all ways to count failures"


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
        lines.append(f"  {key}: {bounds_words(run, key)}")
        if run.flips(key):
            places = run.flip_directions(key)
            lines.append(
                f"  {key}: of the flips, {places['first']} favour the first place, {places['second']} the second"
            )
    if run.control:
        lines += [
            f"  {key}: {line}" for key in run.keys for line in controlled_lines(run.controlled(key), run.variant_b)
        ]
    for key in run.cards:
        lines += [f"  {key}: {line.strip()}" for line in calibrated_lines(run.calibrated(key), run.variant_b)]
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
    of = f"the mean preference of {_count(mean.n, 'graded case')}"
    return [f"the win rate is {of}; by hard verdicts, {run.variant_b} won {hard.rate * 100:.1f} %"]


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
    if found.rate is not None and found.raw_rate is not None:
        at = f"at equal {', '.join(found.control)}"
        ends = _ends(found.ci, found.level)
        lines.append(f"{at}: {name} wins {found.rate * 100:.0f} %{ends}, as it is {found.raw_rate * 100:.0f} %")
    for one in found.effects:
        if not one.differing:
            lines += [f"effect of {one.name}: not known, no answers differ in it"]
            continue
        worth = f"effect of {one.name}: {one.effect:+.2f} logits{_between(one.ci)} for far more of it"
        means = f"on average {one.mean_a:.4g} (A) and {one.mean_b:.4g} (B)"
        lines += [f"{worth}; {means}; nearly equal in {one.overlap:,} of {found.n:,} cases"]
    return [*lines, *(f"note: {notice}" for notice in found.notices)]


def _ends(ci: tuple[float, float] | None, level: float) -> str:
    return "" if ci is None else f" ({level * 100:g} % interval {ci[0] * 100:.0f} to {ci[1] * 100:.0f})"


def _between(ci: tuple[float, float] | None) -> str:
    return "" if ci is None else f" ({ci[0]:+.2f} to {ci[1]:+.2f})"
