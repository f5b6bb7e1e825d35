"""What of an answer's style can be counted, and the win rate with it taken out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from pairscale.core.tables import listed
from pairscale.evaluate.inference.control import ControlledRate, control_names, controlled_rate

if TYPE_CHECKING:
    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.evaluate.traces import Trace

__all__ = ["controlled_of", "length_of", "markdown_counts", "measures_of"]

_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_COUNTED = {
    "headers": re.compile(r"^ {0,3}#{1,6}\s+\S", re.MULTILINE),
    "lists": re.compile(r"^\s*(?:[-*+]|\d{1,9}[.)])\s+\S", re.MULTILINE),
    "bold": re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__"),
}


def markdown_counts(text: str) -> dict[str, float]:
    """How many headers, list items and bold passages a Markdown text has; code blocks do not count.

    Example:
        >>> lines = ["# Dyeing", "- **madder**", "- alum", "1. Heat the water."]
        >>> markdown_counts(chr(10).join(lines))
        {'headers': 1.0, 'lists': 3.0, 'bold': 1.0}
    """
    plain = _FENCED.sub("", text)
    return {name: float(len(pattern.findall(plain))) for name, pattern in _COUNTED.items()}


def length_of(trace: Trace) -> int | None:
    """The characters of an answer; None when the variant failed."""
    return None if trace.exception is not None else len(trace.output)


def measures_of(trace: Trace) -> dict[str, float]:
    """What is counted of an answer besides its length: its Markdown, and the numbers among its other columns.

    A variant that failed has no answer to measure.
    """
    if trace.exception is not None:
        return {}
    numbers = {
        str(name): float(value)
        for name, value in trace.metadata.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
    return {**numbers, **markdown_counts(trace.output)}


def controlled_of(run: PairwiseRunResult, key: str, control: str | Sequence[str], level: float) -> ControlledRate:
    """The win rate of a comparator with styles taken out; without intervals where they would not hold.

    Args:
        run: the result.
        key: the comparator.
        control: the styles.
        level: of the intervals.
    """
    names = control_names(control)
    cases = list(run.of(key))
    others = [name for name in names if name != "length"]
    columns = {
        f"{name}_{side}": pl.Series([_measured(case, side).get(name) for case in cases], dtype=pl.Float64)
        for name in others
        for side in "ab"
    }
    found = controlled_rate(run.frame(key).with_columns(**columns), names, level=level)
    there = sorted({name for case in cases for side in "ab" for name in _measured(case, side)})
    notices = [
        f"no case has a number {name!r} of both answers; there are {listed(['length', *there], 20)}"
        for name in others
        if not any(name in case.measures_a and name in case.measures_b for case in cases)
    ]
    if run.sequential and found.ci is not None:
        notices.append("no interval: the outcomes were looked at after every case, and none here allows for that")
        found = replace(found, ci=None, effects=tuple(replace(one, ci=None) for one in found.effects))
    return replace(found, notices=(*notices, *found.notices))


def _measured(case: object, side: str) -> Mapping[str, float]:
    measures: Mapping[str, float] = getattr(case, f"measures_{side}")
    return measures
