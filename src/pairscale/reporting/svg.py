"""Charts of pages and notebooks: HTML rows with SVG marks, without a script; light and dark by the page's colours.

Places from left to right are shares of the width, and everything else is in pixels: a chart fills the width that it
gets, and its text keeps its size. ``assets/picture.css`` puts names beside the marks, or above them where the chart is
narrow. Rows keep their height, so that a chart of many texts is as long as it needs to be and breaks between pages.
"""

from __future__ import annotations

import math
from collections import defaultdict
from html import escape as escape_html
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape
from rich.cells import cell_len

from pairscale.core.errors import InputError
from pairscale.reporting.picture import percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from pairscale.reporting.picture import Axis, Marks, Picture, Row

_LONG_NAME = 14  # cells; longer names stand above their marks in a narrow chart
_MAX_TICKS = 5  # of the narrowest chart
_NARROW = "@media (max-width: 32rem)", "@container (max-width: 30rem)"  # by the page, and by what holds the picture
_DENSE = 100  # marks that need thin lines
_TOP = 12
_BOTTOM = 42
_MAX_INLINE = 40  # rows of a chart in a notebook
_MAX_PICTURES = 4
# Colours that are readable on light and on dark; text has that of the notebook.
_COLOURS = """
.pairscale-result { --ink: currentColor; --soft: color-mix(in srgb, currentColor 70%, transparent);
  --line: color-mix(in srgb, currentColor 16%, transparent); --mark: #3f7fe8; --page: transparent; }
.pairscale-result .picture { max-width: 44rem; margin: .8em 0 .4em; }
"""


def asset(name: str) -> str:
    """A file of ours: a template, a style sheet or a script."""
    return (files("pairscale.reporting") / "assets" / name).read_text("utf-8")


def picture_css(*, in_cell: bool = False) -> str:
    """The style sheet of the pictures; the page has the colours.

    Args:
        in_cell: Whether the width of what holds a picture decides if it is narrow, rather than that of the page.
    """
    css = asset("picture.css")
    return f".picture {{ container-type: inline-size; }}\n{css.replace(*_NARROW)}" if in_cell else css


def chart_html(result: Any) -> str:
    """The first chart of a result for a notebook; empty where there is nothing to draw."""
    from pairscale.reporting.charts import FIGURES

    kind = result._charts[0]
    if kind not in {"scores", "win rates"}:
        return ""
    try:
        figure = FIGURES[kind](result, most=_MAX_INLINE)
    except InputError:  # nothing was decided yet
        return ""
    notes = list(figure.notes)
    more = len(figure.pictures) - _MAX_PICTURES
    if more > 0:
        notes.append(f"{more:,} more groups are not drawn; .plot() draws them all.")
    drawn = "".join(svg(picture) for picture in figure.pictures[:_MAX_PICTURES])
    below = f"<p><small>{escape_html(' '.join(notes))}</small></p>"
    return f"<style>{_COLOURS}{picture_css(in_cell=True)}</style>{drawn}{below}"


def svg(picture: Picture) -> Markup:
    """The picture, drawn."""
    words = f'aria-label="{escape(picture.label)}" aria-description="{escape(picture.spoken)}"'
    parts = [f'<div class="picture" role="img" {words}>']
    keys = {marks.name: marks.colour for marks in picture.marks if marks.name}
    if keys:
        named = (
            f'<span><svg class="key"><rect fill="var(--{colour})" width="12" height="12"/></svg>{escape(name)}</span>'
            for name, colour in keys.items()
        )
        parts.append(f'<p class="keys">{"".join(named)}</p>')
    parts += _rows(picture) if picture.y.names else _frame(picture)
    return Markup("\n".join([*parts, "</div>"]))  # noqa: S704 - every text in it is escaped


def _rows(picture: Picture) -> list[str]:
    """A row for each name: dots with their intervals, or bars."""
    axis = picture.x
    long = any(cell_len(name) > _LONG_NAME for name in picture.y.names)
    parts = [f'<div class="items{" long" * long}{" bars" * (not axis.title)}">']
    grid = ""
    if axis.title:
        ticks = [(tick, _across(axis, tick)) for tick in _ticks_of(axis)]
        grid = "".join(f'<line class="grid" x1="{x}" x2="{x}" y2="100%"/>' for _, x in ticks)
        scale = "".join(
            f'<text class="tick" x="{x}" y="12" text-anchor="middle">{_tick(axis, tick)}</text>' for tick, x in ticks
        )
        head = f'<p class="axis">{escape(axis.title)}</p><svg class="scale" height="18">{scale}</svg>'
        parts.append(f'<div class="item"><span class="name"></span><div>{head}</div></div>')
    by_place: defaultdict[int, list[tuple[Marks, Row]]] = defaultdict(list)
    for marks in picture.marks:
        for row in marks.rows:
            if marks.kind == "rule":
                x = _across(axis, row["x"])
                grid += f'<line class="grid zero" x1="{x}" x2="{x}" y2="100%"/>'
            else:
                by_place[row["y"]].append((marks, row))
    for place, name in enumerate(picture.y.names):
        tips = escape("; ".join(row["tip"] for _, row in by_place[place]))
        drawn = "".join(
            _bar(row, marks.colour, axis) if marks.kind == "bars" else _dot(row, marks.colour, axis, lambda _: "50%")
            for marks, row in by_place[place]
        )
        plot = f'<div class="plot"><svg>{grid}{drawn}</svg></div>'
        parts.append(
            f'<div class="item" title="{tips}"><span class="name" dir="auto">{escape(name)}</span>{plot}</div>'
        )
    return [*parts, "</div>"]


def _dot(row: Row, colour: str, axis: Axis, up: Callable[[float], str]) -> str:
    """A dot, with a bar from left to right or from bottom to top where it has ends."""
    x, y = _across(axis, row["x"]), up(row["y"])
    ends = ""
    if "x_low" in row:
        ends = f'x1="{_across(axis, row["x_low"])}" x2="{_across(axis, row["x_high"])}" y1="{y}" y2="{y}"'
    elif "y_low" in row:
        ends = f'x1="{x}" x2="{x}" y1="{up(row["y_low"])}" y2="{up(row["y_high"])}"'
    line = f'<line class="interval" stroke="var(--{colour})" {ends}/>' if ends else ""
    return f'{line}<circle fill="var(--{colour})" cx="{x}" cy="{y}" r="{row["r"]:.1f}"/>'


def _bar(row: Row, colour: str, axis: Axis) -> str:
    """A part of a bar, with its number."""
    x, width = _across(axis, row["x_low"]), f"{100 * (row['x_high'] - row['x_low']):.2f}%"
    rect = f'<rect fill="var(--{colour})" x="{x}" y="2" width="{width}" height="24"/>'
    middle = f'x="{_across(axis, row["x"])}" y="18" text-anchor="middle"'
    return f'{rect}<text fill="{row["ink"]}" {middle}>{row["text"]}</text>' if row["text"] else rect


def _frame(picture: Picture) -> list[str]:
    """Marks on two axes of numbers."""
    x_axis, y_axis, height = picture.x, picture.y, picture.height

    def up(value: float) -> str:
        part = (min(y_axis.high, max(y_axis.low, value)) - y_axis.low) / (y_axis.high - y_axis.low)
        return f"{_TOP + (1 - part) * (height - _BOTTOM - _TOP):.1f}"

    dense = any(len(marks.rows) > _DENSE for marks in picture.marks)
    parts = [f'<div class="{"square" if x_axis.in_percent else "frame"}{" dense" * dense}">']
    parts.append(f'<p class="axis left">{escape(y_axis.title)}</p><svg class="framed" height="{height}">')
    for tick in _ticks_of(y_axis):
        y = up(tick)
        parts.append(f'<line class="grid" x2="100%" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="tick" x="-8" y="{y}" dy="4" text-anchor="end">{_tick(y_axis, tick)}</text>')
    parts += [
        f'<text class="tick" x="{_across(x_axis, tick)}" y="{height - 20}" text-anchor="middle">'
        f"{_tick(x_axis, tick)}</text>"
        for tick in dict.fromkeys(_ticks_of(x_axis))
    ]
    parts.append(f'<text class="tick" x="100%" y="{height - 3}" text-anchor="end">{escape(x_axis.title)}</text>')
    for marks in picture.marks:
        if marks.kind == "line":
            parts.append(_line(marks, picture, up))
        for row in marks.rows:
            if marks.kind == "rule":
                dash = ' stroke-dasharray="5 4"' if marks.dashed else ""
                y = up(row["y"])
                parts.append(f'<line stroke="var(--{marks.colour})"{dash} x2="100%" y1="{y}" y2="{y}"/>')
                parts.append(f'<text class="tick" x="4" y="{y}" dy="-5">{escape(row.get("text", ""))}</text>')
            elif marks.kind == "dots":
                dot = _dot(row, marks.colour, x_axis, up)
                parts.append(f"<g><title>{escape(row['tip'])}</title>{dot}</g>")
    return [*parts, "</svg></div>"]


def _line(marks: Marks, picture: Picture, up: Callable[[float], str]) -> str:
    """A line cannot have shares as its places: it is drawn on a thousand units, which the width stretches."""
    low, high = picture.x.low, picture.x.high
    points = " ".join(f"{1000 * (row['x'] - low) / (high - low):.1f},{up(row['y'])}" for row in marks.rows)
    dash = ' stroke-dasharray="5 4"' if marks.dashed else ""
    return (
        f'<svg viewBox="0 0 1000 {picture.height}" preserveAspectRatio="none" height="{picture.height}">'
        f'<polyline class="line" stroke="var(--{marks.colour})"{dash} points="{points}" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )


def _across(axis: Axis, value: float) -> str:
    """A place from left to right, as a share of the width."""
    part = (min(axis.high, max(axis.low, value)) - axis.low) / (axis.high - axis.low)
    return f"{100 * part:.2f}%"


def _tick(axis: Axis, tick: float) -> str:
    if axis.in_percent:
        return percent(tick)
    return f"{'−' if tick < 0 else ''}{abs(tick):,g}"


def _ticks_of(axis: Axis) -> list[float]:
    return list(axis.ticks) or round_ticks(axis.low, axis.high)


def round_ticks(low: float, high: float) -> list[float]:
    """A few round numbers between the ends."""
    power = math.floor(math.log10(high - low))
    digits = max(0, 1 - power)
    step = next(s for s in (10.0**power * f for f in (0.2, 0.5, 1, 2, 5)) if (high - low) / s <= _MAX_TICKS)
    # Adding 0.0 turns the -0.0 of rounding into 0.0.
    return [round(n * step, digits) + 0.0 for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
