"""The first and the last lines of a command that asks a judge: what was read, who judges, and whether it is a grading.

Each function takes the arguments of the verb, and puts in their place what it has read or made of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairscale.cli._common import Arguments, in_shell, popped, say
from pairscale.cli._history import READ
from pairscale.core.notices import plural

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.samples import SamplesReport
    from pairscale.judges.base import Judge

_OF_READING = ("id_col", "text_col", "encoding", "skip_unreadable")
_OF_PAIRS = ("a_col", "b_col")
_OF_JUDGE = ("trait", "template", "judge_args", "base_url", "cache", "price")


def read_texts(arguments: Arguments) -> None:
    """Read the texts that ``data`` names."""
    from pairscale.core.samples import inspect_samples, require_all_read

    is_strict = arguments.pop("strict", False)
    report = inspect_samples(arguments["data"], **popped(arguments, _OF_READING))
    if is_strict:
        require_all_read(report)
    _say_read(report)
    arguments["data"] = report


def read_pairs(arguments: Arguments, name: str) -> list[str] | None:
    """Read pairs, or texts and make all their pairs.

    Returns:
        The ids of all texts where they are texts.
    """
    from pairscale.pairing.reading import read_pairs as read

    source = arguments[name]
    arguments[name], ids = read(source, **popped(arguments, (*_OF_READING, *_OF_PAIRS)), tell=_say_read)
    if ids is None:
        _say_pairs(arguments[name], source)
    return ids


def read_given_pairs(arguments: Arguments) -> None:
    """Read pairs where texts alone would not do."""
    from pairscale.pairing.reading import read_given_pairs as read

    source = arguments["pairs"]
    arguments["pairs"] = read(source, **popped(arguments, ("encoding", *_OF_PAIRS)))
    _say_pairs(arguments["pairs"], source)


def _say_pairs(pairs: pl.DataFrame, source: object) -> None:
    texts = len({*pairs["ID1"], *pairs["ID2"]})
    kept = [name for name in pairs.columns if name not in {"ID1", "ID2", "text1", "text2"}]
    more = f"; other columns kept: {', '.join(kept)}" if kept else ""
    say(f"{plural(pairs.height, 'pair')} of {texts:,} texts from {source}{more}")


def _say_read(report: SamplesReport) -> None:
    READ.set(report.record())
    for line in (*report.opening(), *report.problems()):
        say(in_shell(line))


def make_judge(arguments: Arguments) -> Judge:
    """Make the judge that ``judge`` names, with its settings."""
    from pairscale.judges.build import judge_with

    judge = judge_with(arguments["judge"], answer=arguments.get("answer", "winner"), **popped(arguments, _OF_JUDGE))
    arguments["judge"] = judge
    return judge


def opening(*judges: str, run: object = "") -> None:
    """Say who judges, whether that is a grading, and what it means that no run file was named."""
    from pairscale.judges.base import judged_by, no_grading

    say(f"judge: {judged_by(judges)}")
    banner = no_grading(judges)
    if banner and "lexical" in judges:
        banner += " Name a model with --judge."
    if banner:
        say(banner)
    if run is None:
        say("note: without --run, nothing is saved if this is interrupted")


def say_judged(*names: str | None, judge: object = None) -> None:
    """How many answers came from the cache, and who has judged, as the last line."""
    from pairscale.judges.base import judged_by, no_grading

    reused = getattr(judge, "reused", None)
    if reused is not None and reused.answers:
        say(str(reused))
    say(f"judged by {judged_by(names)}. {no_grading(names)}".removesuffix(". "))
