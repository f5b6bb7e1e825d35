"""The figures in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairscale.evaluate.inference import confidence_sequence, win_rate

if TYPE_CHECKING:
    import polars as pl

    from pairscale.evaluate.inference import WinRate
    from pairscale.evaluate.result import PairwiseRunResult

__all__ = ["summary_of", "verdict_of"]

_REST = (("ties", "tie"), ("flips", "flip"), ("abstentions", "abstention"), ("errors", "error"))


def verdict_of(cases: pl.DataFrame, names: tuple[str, str], *, sequential: bool = False) -> str:
    """Which variant is better, in a sentence.

    It rests on the decided cases, those with a winner; the others are counted behind. One is better when the interval
    lies on its side of one half. Where somebody looked after every case, it rests on all answered cases, a tie and a
    flip as half a win, and on a confidence sequence instead of an interval.

    Args:
        cases: ``task_id outcome winner``, in the order in which they came.
        names: of A and B.
        sequential: whether the outcomes were looked at after every case.
    """
    rate = win_rate(cases, ties="excluded")
    rest = [_count(n, word) for name, word in _REST if (n := getattr(rate, name))]
    behind = f"; {', '.join(rest)}" if rest else ""
    if sequential:
        found = confidence_sequence(cases)
        if found.mean is not None and found.ci is not None:
            better = None if found.better is None else "ab".index(found.better)
            words = f"{_count(found.n, 'task')}, ties and flips as half"
            return _sentence(found.mean, found.ci, better, words, names, f"{found.level * 100:g} % sequence") + behind
    if rate.rate is None or rate.ci is None:
        return f"nothing is decided: no case has a winner{behind}"
    better = 1 if rate.ci[0] > 0.5 else 0 if rate.ci[1] < 0.5 else None
    words = _count(rate.n, "decided case")
    return _sentence(rate.rate, rate.ci, better, words, names, f"{rate.level * 100:g} % interval") + behind


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'s' * (n != 1)}"


def _sentence(
    rate: float, ci: tuple[float, float], better: int | None, of: str, names: tuple[str, str], interval: str
) -> str:
    if better == 0:
        rate, ci = 1 - rate, (1 - ci[1], 1 - ci[0])
    figures = f"{rate * 100:.0f} % of {of}, {interval} {ci[0] * 100:.0f} to {ci[1] * 100:.0f}"
    return (
        f"no difference shown: {names[1]} won {figures}" if better is None else f"{names[better]} is better: {figures}"
    )


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
        if run.flips(key):
            places = run.flip_directions(key)
            lines.append(
                f"  {key}: of the flips, {places['first']} favour the first place, {places['second']} the second"
            )
    for at, x in enumerate(run.keys):
        for y in run.keys[at + 1 :]:
            found = run.agreement(x, y)
            if found.n and found.rate is not None:
                kappa = "undefined" if found.cohen_kappa is None else f"{found.cohen_kappa:.2f}"
                lines.append(f"  {x} and {y} agree on {found.rate * 100:.0f} % of {found.n:,} cases, kappa {kappa}")
    if run.unmatched:
        lines.append(f"  {len(run.unmatched):,} without an answer of both variants, not compared")
    if run.unasked:
        lines.append(f"  {len(run.unasked):,} tasks not asked: stopped, {run.stopped}")
    return "\n".join(lines)


def _rate(rate: WinRate) -> str:
    if rate.rate is None or rate.ci is None:
        return "none"
    return f"{rate.rate * 100:11.1f} %  {rate.ci[0] * 100:.0f} to {rate.ci[1] * 100:.0f}"
