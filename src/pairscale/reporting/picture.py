"""What the charts of a report show, drawn as SVG of our own, or by altair on request."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SINGLE_ROWS = 300
"""Up to this many items, each has a row of its own with its name."""

_SPOKEN = 6


def number(value: float | None, digits: int = 2) -> str:
    """A number as it is shown: a real minus sign, never -0."""
    return "" if value is None else f"{value:z.{digits}f}".replace("-", "−")


def percent(value: float | None) -> str:
    """A share as it is shown."""
    return "" if value is None else f"{value:.0%}".replace("%", " %")


@dataclass(frozen=True, slots=True)
class Intervals:
    """Figures with their intervals.

    Attributes:
        rows: ``ID score lower upper`` in the order in which they are shown, and ``rank rank_lower rank_upper`` where
            they are known; an end may be infinite, or None.
        label: what the picture shows, for those who do not see it.
        axis: what the figures are.
        in_percent: whether they are shares of one.
        span: the ends of the axis; those of the figures when None.
        middle: the value that is marked, such as no difference.
        many: whether all are in one picture, from left to right, rather than in a row each.
    """

    rows: Sequence[Mapping[str, Any]]
    label: str
    axis: str
    in_percent: bool = False
    span: tuple[float, float] | None = None
    middle: float = 0.0
    many: bool = False

    def ends(self, row: Mapping[str, Any]) -> tuple[float, float]:
        """Where the interval of a row begins and ends; an end that is not known is the figure itself."""
        score = row["score"]
        return score if row["lower"] is None else row["lower"], score if row["upper"] is None else row["upper"]

    def domain(self) -> tuple[float, float]:
        """The ends of the axis."""
        if self.span is not None:
            return self.span
        known = [x for row in self.rows for x in (row["score"], *self.ends(row)) if math.isfinite(x)]
        return room_around(min(known, default=self.middle), max(known, default=self.middle))

    def said(self, row: Mapping[str, Any]) -> str:
        """A row in words."""
        write = percent if self.in_percent else number
        lower, upper = (write(end) if math.isfinite(end) else "no limit" for end in self.ends(row))
        said = f"{row['ID']}: {write(row['score'])} ({lower} to {upper})"
        if row.get("rank") is None:
            return said
        open_to = "" if row["rank_lower"] is None else f" ({row['rank_lower']:,} to {row['rank_upper']:,})"
        return f"{said}, rank {row['rank']:,}{open_to}"

    def spoken(self) -> str:
        """The picture in words: its ends, and that there is more between them."""
        if len(self.rows) <= _SPOKEN:
            return "; ".join(map(self.said, self.rows))
        return f"{len(self.rows):,} in all; the first is {self.said(self.rows[0])}, the last {self.said(self.rows[-1])}"


@dataclass(frozen=True, slots=True)
class Shares:
    """Counts of several kinds as one bar each, of equal length.

    Attributes:
        rows: a name, and the counts by kind; the style sheet has a colour for each kind.
        words: what the kinds are called.
        label: what the picture shows, for those who do not see it.
    """

    rows: Sequence[tuple[str, Mapping[str, int]]]
    words: Mapping[str, str]
    label: str

    def said(self, kind: str, count: int, total: int) -> str:
        """A part of a bar in words."""
        return f"{self.words[kind]}: {count:,} of {total:,} ({percent(count / total)})"

    def spoken(self) -> str:
        """The picture in words."""
        return "; ".join(
            f"{name}: {', '.join(f'{self.words[kind]} {n:,}' for kind, n in counts.items())}"
            for name, counts in self.rows
        )


@dataclass(frozen=True, slots=True)
class Lines:
    """Figures of at most 1 along the comparisons of a run, with the target they have to reach.

    Attributes:
        x: comparisons.
        series: by name, the figures; None where there is none.
        label: what the picture shows, for those who do not see it.
        target: where a line is drawn.
    """

    x: Sequence[float]
    series: Mapping[str, Sequence[float | None]]
    label: str
    target: float | None = None

    def low(self) -> float:
        """Where the axis begins."""
        known = [value for values in self.series.values() for value in values if value is not None]
        return min(0.0, *known) if known else 0.0

    def said(self, at: int) -> str:
        """The figures of one place in words."""
        there = {name: values[at] for name, values in self.series.items()}
        figures = ", ".join(f"{name} {number(value)}" for name, value in there.items() if value is not None)
        return f"{self.x[at]:,} comparisons: {figures or 'no figures yet'}"

    def spoken(self) -> str:
        """The picture in words."""
        last = {
            name: next((value for value in reversed(values) if value is not None), None)
            for name, values in self.series.items()
        }
        return "; ".join(f"{name} at the end: {number(value)}" for name, value in last.items() if value is not None)


@dataclass(frozen=True, slots=True)
class Diagram:
    """What was stated against what was observed, both from 0 to 1, with the line where they are the same.

    Attributes:
        rows: ``stated observed lower upper n``, from the least that was stated on.
        label: what the picture shows, for those who do not see it.
        across: what is stated.
        up: what is observed.
    """

    rows: Sequence[Mapping[str, Any]]
    label: str
    across: str
    up: str

    def size(self, row: Mapping[str, Any]) -> float:
        """How large the mark of a row is, from 0 to 1: by its area, as many answers as it stands for."""
        return math.sqrt(row["n"] / max(one["n"] for one in self.rows))

    def said(self, row: Mapping[str, Any]) -> str:
        """A row in words."""
        ends = f"({percent(row['lower'])} to {percent(row['upper'])})"
        return f"stated {percent(row['stated'])}, observed {percent(row['observed'])} {ends}, {row['n']:,} answers"

    def spoken(self) -> str:
        """The picture in words."""
        return "; ".join(map(self.said, self.rows))


Picture: TypeAlias = Intervals | Shares | Lines | Diagram
"""A chart, before it is drawn."""


def score_picture(rows: Sequence[Mapping[str, Any]]) -> Intervals:
    """Scores with their intervals, best first: one row per item, or all in one picture where there are many."""
    many = len(rows) > SINGLE_ROWS
    order = "from the best item to the last" if many else "best first"
    label = f"Scores with intervals{'' if many else ','} {order}; the table holds the same figures"
    return Intervals(rows, label, "score, in logits", many=many)


def room_around(low: float, high: float) -> tuple[float, float]:
    """The ends of the axis: those of the data, or room around them where they are all but equal."""
    if high - low > 1e-6 * max(1.0, abs(low), abs(high)):
        return low, high
    room = max(1.0, abs(low) / 2)
    return low - room, high + room
