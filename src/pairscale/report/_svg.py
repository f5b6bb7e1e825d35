"""Charts of a report, as SVG: no script, light and dark by the page's colours, a title on every mark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from pairscale.report._picture import Intervals, Lines, Shares, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.report._picture import Picture

__all__ = ["svg"]

LONGEST_LABEL = 26

_ROW, _TOP, _RIGHT, _WIDTH = 22, 44, 24, 760


def svg(picture: Picture) -> Markup:
    """The picture, drawn."""
    match picture:
        case Intervals(many=True):
            return _overview(picture)
        case Intervals():
            return _dots(picture)
        case Shares():
            return _shares(picture)
        case Lines():
            return _lines(picture)


def _dots(picture: Intervals) -> Markup:
    """Figures with their intervals, one row each."""
    rows, middle = picture.rows, picture.middle
    left = 30 + 7 * max(6, *(len(_label(row["ID"])) for row in rows))
    low, high = picture.domain()
    height = _TOP + _ROW * len(rows) + 8

    def x(value: float) -> str:
        return f"{left + (min(high, max(low, value)) - low) / (high - low) * (_WIDTH - left - _RIGHT):.1f}"

    parts = [
        _open(height, picture),
        f'<text class="tick" x="{_WIDTH - _RIGHT}" y="12" text-anchor="end">{escape(picture.axis)}</text>',
    ]
    ticks = _ticks(low, high)
    marked = [middle] if low <= middle <= high else []
    for value in sorted({*ticks, *marked}):
        kind = "grid zero" if value == middle else "grid"
        parts.append(f'<line class="{kind}" x1="{x(value)}" x2="{x(value)}" y1="{_TOP - 6}" y2="{height - 6}"/>')
    for tick in ticks:
        shown = percent(tick) if picture.in_percent else _tick(tick)
        parts.append(f'<text class="tick" x="{x(tick)}" y="{_TOP - 12}" text-anchor="middle">{shown}</text>')
    for index, row in enumerate(rows):
        y = _TOP + _ROW * index + _ROW // 2
        lower, upper = picture.ends(row)
        parts.append(f"<g><title>{escape(picture.said(row))}</title>")
        parts.append(f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">{escape(_label(row["ID"]))}</text>')
        parts.append(f'<line class="bar" x1="{x(lower)}" x2="{x(upper)}" y1="{y}" y2="{y}"/>')
        parts.append(f'<circle cx="{x(row["score"])}" cy="{y}" r="5"/></g>')
    return _done(parts)


def _shares(picture: Shares) -> Markup:
    """Counts of several kinds as one bar each."""
    rows = picture.rows
    left, row_height = 30 + 7 * max(6, *(len(_label(name)) for name, _ in rows)), 34
    width = _WIDTH - left - _RIGHT
    parts = [_open(8 + row_height * len(rows), picture)]
    for index, (name, counts) in enumerate(rows):
        y, x, total = 6 + row_height * index, float(left), sum(counts.values()) or 1
        parts.append(f'<text x="{left - 12}" y="{y + 17}" text-anchor="end">{escape(_label(name))}</text>')
        for kind, count in counts.items():
            if count:
                wide = width * count / total
                said = picture.said(kind, count, total)
                parts.append(f'<g class="share {escape(kind)}"><title>{escape(said)}</title>')
                parts.append(f'<rect x="{x:.1f}" y="{y}" width="{max(1, wide - 1):.1f}" height="24"/>')
                if wide > 8 * len(f"{count:,}") + 6:
                    parts.append(f'<text x="{x + wide / 2:.1f}" y="{y + 17}" text-anchor="middle">{count:,}</text>')
                parts.append("</g>")
                x += wide
    return _done(parts)


def _overview(picture: Intervals) -> Markup:
    """Many figures at once: ranks from left to right, scores from bottom to top."""
    rows = picture.rows
    low, high = picture.domain()
    left, bottom, height = 48, 34, 380
    width = _WIDTH - left - _RIGHT

    def x(index: float) -> str:
        return f"{left + width * (index + 0.5) / len(rows):.1f}"

    def y(value: float) -> str:
        return f"{12 + (high - value) / (high - low) * (height - bottom - 12):.1f}"

    parts = [_open(height, picture)]
    for tick in _ticks(low, high):
        kind = "grid zero" if tick == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{left}" x2="{_WIDTH - _RIGHT}" y1="{y(tick)}" y2="{y(tick)}"/>')
        parts.append(f'<text class="tick" x="{left - 8}" y="{y(tick)}" dy="4" text-anchor="end">{_tick(tick)}</text>')
    thick = max(0.4, min(5.0, 0.7 * width / len(rows)))
    parts.append(f'<g class="many" stroke-width="{thick:.2f}">')
    for index, row in enumerate(rows):
        lower, upper = picture.ends(row)
        parts.append(f'<line x1="{x(index)}" x2="{x(index)}" y1="{y(lower)}" y2="{y(upper)}">')
        parts.append(f"<title>{escape(picture.said(row))}</title></line>")
    points = " ".join(f"{x(index)},{y(row['score'])}" for index, row in enumerate(rows))
    parts.append(f'</g><polyline class="line" points="{points}"/>')
    parts += [
        f'<text class="tick" x="{x(place - 1)}" y="{height - 12}" text-anchor="middle">{place:,}</text>'
        for place in (1, len(rows) // 2, len(rows))
    ]
    parts.append(f'<text class="tick" x="{x(len(rows) // 4)}" y="{height - 12}" text-anchor="middle">rank</text>')
    return _done(parts)


def _lines(picture: Lines) -> Markup:
    """Figures along the comparisons of a run."""
    left, bottom, height = 48, 34, 260
    width, most = _WIDTH - left - _RIGHT - 110, max(picture.x) or 1
    low, target = picture.low(), picture.target

    def across(value: float) -> str:
        return f"{left + width * value / most:.1f}"

    def up(value: float) -> str:
        return f"{14 + (1 - value) / (1 - low) * (height - bottom - 14):.1f}"

    parts = [_open(height, picture)]
    for tick in _ticks(low, 1.0):
        parts.append(f'<line class="grid" x1="{left}" x2="{left + width}" y1="{up(tick)}" y2="{up(tick)}"/>')
        parts.append(f'<text class="tick" x="{left - 8}" y="{up(tick)}" dy="4" text-anchor="end">{_tick(tick)}</text>')
    if target is not None:
        parts.append(f'<line class="target" x1="{left}" x2="{left + width}" y1="{up(target)}" y2="{up(target)}"/>')
        parts.append(f'<text class="tick" x="{left + 4}" y="{up(target)}" dy="-5">target {target:g}</text>')
    ends = []
    for place, (name, values) in enumerate(picture.series.items()):
        there = [(at, value) for at, value in zip(picture.x, values, strict=True) if value is not None]
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


def _open(height: int, picture: Picture) -> str:
    spoken = picture.spoken()
    described = f"<desc>{escape(spoken)}</desc>" if spoken else ""
    size = f'viewBox="0 0 {_WIDTH} {height}"'
    return f'<div class="wide"><svg {size} role="img" aria-label="{escape(picture.label)}">{described}'


def _done(parts: Sequence[str]) -> Markup:
    return Markup("\n".join([*parts, "</svg></div>"]))  # noqa: S704 - every text in it was escaped above


def _label(name: object) -> str:
    shown = str(name)
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "…"


def _tick(tick: float) -> str:
    return f"{'−' if tick < 0 else ''}{abs(tick):g}"


def _ticks(low: float, high: float) -> list[float]:
    """Three to nine round numbers between the ends."""
    power = math.floor(math.log10(high - low))
    digits = max(0, 1 - power)
    step = next(s for s in (10.0**power * f for f in (0.2, 0.5, 1, 2)) if (high - low) / s <= 8)
    # Adding 0.0 turns the -0.0 of rounding into 0.0.
    return [round(n * step, digits) + 0.0 for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
