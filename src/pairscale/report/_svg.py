"""Charts of a report, as SVG: no script, light and dark by the page's colours, a title on every mark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

__all__ = ["caterpillar", "dots", "lines", "number", "overview", "percent", "score_chart", "shares"]

LONGEST_LABEL = 26
SINGLE_ROWS = 60
"""Up to so many items, each has a row of its own with its name."""

_ROW, _TOP, _RIGHT, _WIDTH = 22, 44, 24, 760
_SPOKEN = 6


def number(value: float | None, digits: int = 2) -> str:
    """A number as it is shown: a real minus sign, never -0."""
    return "" if value is None else f"{value:z.{digits}f}".replace("-", "−")


def percent(value: float | None) -> str:
    """A share as it is shown."""
    return "" if value is None else f"{value:.0%}".replace("%", " %")


def score_chart(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Scores with their intervals: one row an item, or all in one picture where there are many."""
    return caterpillar(rows) if len(rows) <= SINGLE_ROWS else overview(rows)


def caterpillar(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """The scores with their intervals, best on top."""
    label = "Scores with intervals, best first; the table holds the same figures"
    return dots(rows, label=label, axis="score, in logits")


def dots(
    rows: Sequence[Mapping[str, Any]],
    *,
    label: str,
    axis: str,
    show: Callable[[float], str] | None = None,
    span: tuple[float, float] | None = None,
    middle: float = 0.0,
) -> Markup:
    """Figures with their intervals, one row each: ``ID score lower upper``.

    Args:
        rows: in the order in which they are shown; an end may be infinite, or None.
        label: what the picture shows, for those who do not see it.
        axis: what the figures are.
        show: how a figure is written; with two digits when None.
        span: the ends of the axis; those of the figures when None.
        middle: the value that is marked, such as no difference.
    """
    write = show or number
    left = 30 + 7 * max(6, *(len(_label(row["ID"])) for row in rows))
    ends = [_ends(row) for row in rows]
    known = [x for row, two in zip(rows, ends, strict=True) for x in (row["score"], *two) if math.isfinite(x)]
    low, high = span or _range(min(known, default=middle), max(known, default=middle))
    height = _TOP + _ROW * len(rows) + 8

    def x(value: float) -> str:
        return f"{left + (min(high, max(low, value)) - low) / (high - low) * (_WIDTH - left - _RIGHT):.1f}"

    parts = [
        _open(height, label, _spoken(rows, write)),
        f'<text class="tick" x="{_WIDTH - _RIGHT}" y="12" text-anchor="end">{escape(axis)}</text>',
    ]
    ticks = _ticks(low, high)
    marked = [middle] if low <= middle <= high else []
    for value in sorted({*ticks, *marked}):
        kind = "grid zero" if value == middle else "grid"
        parts.append(f'<line class="{kind}" x1="{x(value)}" x2="{x(value)}" y1="{_TOP - 6}" y2="{height - 6}"/>')
    for tick in ticks:
        shown = _tick(tick) if show is None else show(tick)
        parts.append(f'<text class="tick" x="{x(tick)}" y="{_TOP - 12}" text-anchor="middle">{shown}</text>')
    for index, (row, (lower, upper)) in enumerate(zip(rows, ends, strict=True)):
        y = _TOP + _ROW * index + _ROW // 2
        parts.append(f"<g><title>{escape(_figures(row, write))}</title>")
        parts.append(f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">{escape(_label(row["ID"]))}</text>')
        parts.append(f'<line class="bar" x1="{x(lower)}" x2="{x(upper)}" y1="{y}" y2="{y}"/>')
        parts.append(f'<circle cx="{x(row["score"])}" cy="{y}" r="5"/></g>')
    return _done(parts)


def shares(rows: Sequence[tuple[str, Mapping[str, int]]], words: Mapping[str, str], *, label: str) -> Markup:
    """Counts of several kinds as one bar each, of equal length.

    Args:
        rows: a name, and the counts by kind; the kinds are classes of the page's colours.
        words: what the kinds are called.
        label: what the picture shows, for those who do not see it.
    """
    left, row_height = 30 + 7 * max(6, *(len(_label(name)) for name, _ in rows)), 34
    width, height = _WIDTH - left - _RIGHT, 8 + row_height * len(rows)
    spoken = "; ".join(
        f"{name}: {', '.join(f'{words[kind]} {n:,}' for kind, n in counts.items())}" for name, counts in rows
    )
    parts = [_open(height, label, spoken)]
    for index, (name, counts) in enumerate(rows):
        y, x, total = 6 + row_height * index, float(left), sum(counts.values()) or 1
        parts.append(f'<text x="{left - 12}" y="{y + 17}" text-anchor="end">{escape(_label(name))}</text>')
        for kind, count in counts.items():
            if count:
                wide = width * count / total
                parts.append(f'<g class="share {escape(kind)}"><title>{escape(words[kind])}: {count:,}</title>')
                parts.append(f'<rect x="{x:.1f}" y="{y}" width="{max(1, wide - 1):.1f}" height="24"/>')
                if wide > 8 * len(f"{count:,}") + 6:
                    parts.append(f'<text x="{x + wide / 2:.1f}" y="{y + 17}" text-anchor="middle">{count:,}</text>')
                parts.append("</g>")
                x += wide
    return _done(parts)


def overview(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Many scores at once: ranks from left to right, scores from bottom to top."""
    ends = [_ends(row) for row in rows]
    low, high = _range(min(low for low, _ in ends), max(high for _, high in ends))
    left, bottom, height = 48, 34, 380
    width = _WIDTH - left - _RIGHT

    def x(index: float) -> str:
        return f"{left + width * (index + 0.5) / len(rows):.1f}"

    def y(value: float) -> str:
        return f"{12 + (high - value) / (high - low) * (height - bottom - 12):.1f}"

    label = "Scores with intervals from the best item to the last; the table holds the same figures"
    parts = [_open(height, label, _spoken(rows, number))]
    for tick in _ticks(low, high):
        kind = "grid zero" if tick == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{left}" x2="{_WIDTH - _RIGHT}" y1="{y(tick)}" y2="{y(tick)}"/>')
        parts.append(f'<text class="tick" x="{left - 8}" y="{y(tick)}" dy="4" text-anchor="end">{_tick(tick)}</text>')
    thick = max(0.4, min(5.0, 0.7 * width / len(rows)))
    parts.append(f'<g class="many" stroke-width="{thick:.2f}">')
    for index, (row, (lower, upper)) in enumerate(zip(rows, ends, strict=True)):
        parts.append(f'<line x1="{x(index)}" x2="{x(index)}" y1="{y(lower)}" y2="{y(upper)}">')
        parts.append(f"<title>{escape(_figures(row))}</title></line>")
    points = " ".join(f"{x(index)},{y(row['score'])}" for index, row in enumerate(rows))
    parts.append(f'</g><polyline class="line" points="{points}"/>')
    parts += [
        f'<text class="tick" x="{x(place - 1)}" y="{height - 12}" text-anchor="middle">{place:,}</text>'
        for place in (1, len(rows) // 2, len(rows))
    ]
    parts.append(f'<text class="tick" x="{x(len(rows) // 4)}" y="{height - 12}" text-anchor="middle">rank</text>')
    return _done(parts)


def lines(
    x: Sequence[float], series: Mapping[str, Sequence[float | None]], *, label: str, target: float | None = None
) -> Markup:
    """Figures between 0 and 1 along the comparisons of a run, with the target they have to reach."""
    left, bottom, height = 48, 34, 260
    width, most = _WIDTH - left - _RIGHT - 110, max(x) or 1
    known = [value for values in series.values() for value in values if value is not None]
    low = min(0.0, *known) if known else 0.0

    def across(value: float) -> str:
        return f"{left + width * value / most:.1f}"

    def up(value: float) -> str:
        return f"{14 + (1 - value) / (1 - low) * (height - bottom - 14):.1f}"

    last = {
        name: next((value for value in reversed(values) if value is not None), None) for name, values in series.items()
    }
    spoken = "; ".join(f"{name} at the end: {number(value)}" for name, value in last.items() if value is not None)
    parts = [_open(height, label, spoken)]
    for tick in _ticks(low, 1.0):
        parts.append(f'<line class="grid" x1="{left}" x2="{left + width}" y1="{up(tick)}" y2="{up(tick)}"/>')
        parts.append(f'<text class="tick" x="{left - 8}" y="{up(tick)}" dy="4" text-anchor="end">{_tick(tick)}</text>')
    if target is not None:
        parts.append(f'<line class="target" x1="{left}" x2="{left + width}" y1="{up(target)}" y2="{up(target)}"/>')
        parts.append(f'<text class="tick" x="{left + 4}" y="{up(target)}" dy="-5">target {target:g}</text>')
    ends = []
    for place, (name, values) in enumerate(series.items()):
        there = [(at, value) for at, value in zip(x, values, strict=True) if value is not None]
        if there:
            points = " ".join(f"{across(at)},{up(value)}" for at, value in there)
            parts.append(f'<polyline class="line s{place}" points="{points}"><title>{escape(name)}</title></polyline>')
            ends.append((float(up(there[-1][1])), place, name))
    lowest = 0.0
    for end, place, name in sorted(ends):  # a name beside the end of its line, and below the name above
        lowest = max(end, lowest + 15)
        parts.append(f'<text class="s{place}" x="{left + width + 8}" y="{lowest + 4:.1f}">{escape(name)}</text>')
    parts += [
        f'<text class="tick" x="{across(value)}" y="{height - 18}" text-anchor="middle">{int(value):,}</text>'
        for value in (0, most // 2, most)
    ]
    parts.append(f'<text class="tick" x="{left + width}" y="{height - 4}" text-anchor="end">comparisons</text>')
    return _done(parts)


def _open(height: int, label: str, spoken: str) -> str:
    described = f"<desc>{escape(spoken)}</desc>" if spoken else ""
    size = f'viewBox="0 0 {_WIDTH} {height}"'
    return f'<div class="wide"><svg {size} role="img" aria-label="{escape(label)}">{described}'


def _done(parts: Sequence[str]) -> Markup:
    return Markup("\n".join([*parts, "</svg></div>"]))  # noqa: S704 - every text in it was escaped above


def _label(name: object) -> str:
    shown = str(name)
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "…"


def _ends(row: Mapping[str, Any]) -> tuple[float, float]:
    score = row["score"]
    return score if row["lower"] is None else row["lower"], score if row["upper"] is None else row["upper"]


def _figures(row: Mapping[str, Any], write: Callable[[float], str] = number) -> str:
    lower, upper = (write(end) if math.isfinite(end) else "no limit" for end in _ends(row))
    return f"{row['ID']}: {write(row['score'])} ({lower} to {upper})"


def _spoken(rows: Sequence[Mapping[str, Any]], write: Callable[[float], str]) -> str:
    """The picture in words, for those who do not see it: its ends, and that there is more between them."""
    if len(rows) <= _SPOKEN:
        return "; ".join(_figures(row, write) for row in rows)
    return f"{len(rows):,} in all; the first is {_figures(rows[0], write)}, the last {_figures(rows[-1], write)}"


def _tick(tick: float) -> str:
    return f"{'−' if tick < 0 else ''}{abs(tick):g}"


def _range(low: float, high: float) -> tuple[float, float]:
    """The ends of the axis: those of the data, or room around them where they are all but equal."""
    if high - low > 1e-6 * max(1.0, abs(low), abs(high)):
        return low, high
    room = max(1.0, abs(low) / 2)
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    """Three to nine round numbers between the ends."""
    power = math.floor(math.log10(high - low))
    digits = max(0, 1 - power)
    step = next(s for s in (10.0**power * f for f in (0.2, 0.5, 1, 2)) if (high - low) / s <= 8)
    # Adding 0.0 turns the -0.0 of rounding into 0.0.
    return [round(n * step, digits) + 0.0 for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
