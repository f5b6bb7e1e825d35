"""What is counted of answers: failures, time, tokens, cost; and of their style, Markdown and other numbers."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from pairscale.evaluate.traces import Trace


@dataclass(frozen=True, slots=True)
class VariantFigures:
    """What the answers of one variant took, over the cases that were compared.

    Attributes:
        side: ``a`` or ``b``.
        answers: how many were asked for: one per task and repeat.
        failures: how many of them failed: an exception, an empty or missing output, or an error.
        latency_ms: the median time of an answer, in milliseconds; None when no trace says it.
        tokens: the mean number of tokens; None when no trace says it.
        cost: the mean cost in US dollars; None when no trace says it.
    """

    side: str
    answers: int = 0
    failures: int = 0
    latency_ms: float | None = None
    tokens: float | None = None
    cost: float | None = None

    @property
    def failure_rate(self) -> float | None:
        """The share of answers that failed; None without an answer."""
        return self.failures / self.answers if self.answers else None

    def words(self) -> dict[str, str]:
        """The figures in words, ``unknown`` where no trace says them."""
        rate = "" if self.failure_rate is None else f" ({100 * self.failure_rate:.0f} %)"
        return {
            "failed": f"{self.failures:,} of {self.answers:,}{rate}",
            "median latency": "unknown" if self.latency_ms is None else f"{self.latency_ms:,.0f} ms",
            "mean tokens": "unknown" if self.tokens is None else f"{self.tokens:,.0f}",
            "mean cost": "unknown" if self.cost is None else f"${self.cost:,.4f}",
        }


def figures_of(side: str, traces: Iterable[Trace]) -> VariantFigures:
    """What the traces of a variant say together.

    Args:
        side: ``a`` or ``b``.
        traces: its answers, failed ones included.

    Example:
        >>> figures_of("b", [Trace("Rome.", tokens=3), Trace("", tokens=5)]).words()["failed"]
        '1 of 2 (50 %)'
    """
    found = list(traces)
    latency = [trace.duration_ms for trace in found if trace.duration_ms is not None]
    tokens = [trace.tokens for trace in found if trace.tokens is not None]
    cost = [trace.cost for trace in found if trace.cost is not None]
    return VariantFigures(
        side,
        len(found),
        sum(trace.failure is not None for trace in found),
        statistics.median(latency) if latency else None,
        statistics.fmean(tokens) if tokens else None,
        statistics.fmean(cost) if cost else None,
    )


# Style

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
