"""Charts of a report: HTML rows with SVG marks, without a script; light and dark by the page's colours.

Places from left to right are shares of the width, and everything else is in pixels: a chart fills the width that it
gets, and its text keeps its size. ``assets/picture.css`` puts names beside the marks, or above them where the chart is
narrow, and hides the ticks and numbers that have no room there. Rows keep their height, so that a chart of many texts
is as long as it needs to be and breaks between pages.
"""

from __future__ import annotations

import math
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup, escape
from rich.cells import cell_len

from pairscale.reporting._chart_style import names
from pairscale.reporting.picture import Diagram, Intervals, Lines, Shares, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pairscale.reporting.picture import Picture

_LONG_NAME = 14
"""Names of more cells than these stand above their marks in a narrow chart."""

_NARROW = "@media (max-width: 32rem)", "@container (max-width: 30rem)"  # by the page, and by what holds the picture
_MOST_TICKS, _MOST_TICKS_NARROW = 8, 5
_THIN = 0.01  # a share that gets an outline instead of a gap around it
_PLOT, _PLOT_NARROW = 420, 190  # pixels of a bar of shares, at least: what its numbers must fit into


def svg(picture: Picture) -> Markup:
    """The picture, drawn."""
    match picture:
        case Intervals(many=True):
            parts = _overview(picture)
        case Intervals():
            parts = _dots(picture)
        case Shares():
            parts = _shares(picture)
        case Lines():
            parts = _lines(picture)
        case Diagram():
            parts = _diagram(picture)
    spoken = picture.spoken()
    described = f' aria-description="{escape(spoken)}"' if spoken else ""
    opening = f'<div class="picture" role="img" aria-label="{escape(picture.label)}"{described}>'
    return Markup("\n".join([opening, *parts, "</div>"]))  # noqa: S704 - every text in it is escaped


def picture_css(*, in_cell: bool = False) -> str:
    """The style sheet of the pictures; the page has the colours.

    Args:
        in_cell: Whether the width of what holds a picture decides if it is narrow, rather than that of the page.
    """
    css = (files("pairscale.reporting") / "assets" / "picture.css").read_text("utf-8")
    return f".picture {{ container-type: inline-size; }}\n{css.replace(*_NARROW)}" if in_cell else css


def _dots(picture: Intervals) -> list[str]:
    """Figures with their intervals, one row each."""
    low, high = picture.domain()
    shown = names([str(row["ID"]) for row in picture.rows])

    def x(value: float) -> str:
        return _share((min(high, max(low, value)) - low) / (high - low))

    ticks = _ticks_by_width(low, high)
    middle = {picture.middle: ""} if low <= picture.middle <= high else {}
    grid = "".join(
        f'<line class="{"grid zero" if value == picture.middle else "grid"}{kind}" x1="{x(value)}" x2="{x(value)}" '
        f'y2="100%"/>'
        for value, kind in sorted((ticks | middle).items())
    )
    write = percent if picture.in_percent else _tick
    scale = "".join(
        f'<text class="tick{kind}" x="{x(value)}" y="12" text-anchor="middle">{write(value)}</text>'
        for value, kind in ticks.items()
    )
    head = f'<p class="axis">{escape(picture.axis)}</p><svg class="scale" height="18">{scale}</svg>'
    parts = [_items(shown), f'<div class="item"><span class="name"></span><div>{head}</div></div>']
    for name, row in zip(shown, picture.rows, strict=True):
        lower, upper = picture.ends(row)
        marks = (
            f'<line class="interval" x1="{x(lower)}" x2="{x(upper)}" y1="50%" y2="50%"/>'
            f'<circle cx="{x(row["score"])}" cy="50%" r="5"/>'
        )
        parts.append(_item(name, f'<div class="plot"><svg>{grid}{marks}</svg></div>', picture.said(row)))
    return [*parts, "</div>"]


def _shares(picture: Shares) -> list[str]:
    """Counts of several kinds as one bar each."""
    shown = names([name for name, _ in picture.rows])
    parts = [_items(shown)]
    for name, (_, counts) in zip(shown, picture.rows, strict=True):
        done, total, marks = 0, sum(counts.values()) or 1, list[str]()
        for kind, count in counts.items():
            if not count:
                continue
            share = count / total
            said = escape(picture.said(kind, count, total))
            thin = " thin" if share < _THIN else ""
            marks.append(f'<g class="share {escape(kind)}{thin}"><title>{said}</title>')
            marks.append(f'<rect x="{_share(done / total)}" y="2" width="{_share(share)}" height="24"/>')
            room = 8 * len(f"{count:,}") + 6
            if share * _PLOT > room:
                kept = "" if share * _PLOT_NARROW > room else ' class="wide-only"'
                at = _share((done + count / 2) / total)
                marks.append(f'<text{kept} x="{at}" y="18" text-anchor="middle">{count:,}</text>')
            marks.append("</g>")
            done += count
        parts.append(_item(name, f'<svg class="shares">{"".join(marks)}</svg>'))
    return [*parts, "</div>"]


def _overview(picture: Intervals) -> list[str]:
    """Many figures at once: ranks from left to right, scores from bottom to top."""
    rows, height, bottom = picture.rows, 380, 34
    low, high = picture.domain()

    def x(index: float) -> str:
        return _share((index + 0.5) / len(rows), 3)

    def y(value: float) -> str:
        return f"{8 + (high - min(high, max(low, value))) / (high - low) * (height - bottom - 8):.1f}"

    parts = [f'<p class="axis left">{escape(picture.axis)}</p><svg class="framed" height="{height}">']
    parts += _levels(((tick, y(tick)) for tick in _ticks(low, high)), picture.middle)
    thick, size = max(0.4, min(4.0, 500 / len(rows))), max(1.0, min(3.0, 600 / len(rows)))
    parts.append(f'<g class="many" stroke-width="{thick:.2f}">')
    for index, row in enumerate(rows):
        lower, upper = picture.ends(row)
        parts.append(f'<line x1="{x(index)}" x2="{x(index)}" y1="{y(lower)}" y2="{y(upper)}">')
        parts.append(f"<title>{escape(picture.said(row))}</title></line>")
    parts += [f'<circle cx="{x(at)}" cy="{y(row["score"])}" r="{size:.1f}"/>' for at, row in enumerate(rows)]
    parts.append("</g>")
    parts += [
        f'<text class="tick" x="{x(place - 1)}" y="{height - 18}" text-anchor="middle">{place:,}</text>'
        for place in dict.fromkeys((1, (len(rows) + 1) // 2, len(rows)))
    ]
    parts.append(f'<text class="tick" x="100%" y="{height - 3}" text-anchor="end">rank</text></svg>')
    return parts


def _lines(picture: Lines) -> list[str]:
    """Figures along the comparisons of a run."""
    height, bottom, most = 260, 34, max(picture.x) or 1
    low, target = picture.low(), picture.target

    def across(value: float) -> str:
        return _share(value / most)

    def up(value: float) -> str:
        return f"{14 + (1 - value) / (1 - low) * (height - bottom - 14):.1f}"

    keys, marks = list[str](), list[str]()
    for place, (name, values) in enumerate(picture.series.items()):
        there = [(at, value) for at, value in zip(picture.x, values, strict=True) if value is not None]
        if not there:
            continue
        keys.append(f'<span class="s{place}">{escape(name)}</span>')
        # A line cannot have shares as its places: it is drawn on a thousand units, which the width stretches.
        points = " ".join(f"{1000 * at / most:.1f},{up(value)}" for at, value in there)
        marks.append(f'<svg viewBox="0 0 1000 {height}" preserveAspectRatio="none" height="{height}">')
        marks.append(f'<polyline class="line s{place}" points="{points}" vector-effect="non-scaling-stroke">')
        marks.append(f"<title>{escape(name)}</title></polyline></svg>")
        marks += [f'<circle class="s{place}" cx="{across(at)}" cy="{up(value)}" r="2.5"/>' for at, value in there]
    parts = [f'<p class="keys">{" ".join(keys)}</p><svg class="framed" height="{height}">']
    parts += _levels(((tick, up(tick)) for tick in _ticks(low, 1.0)), None)
    if target is not None:
        parts.append(f'<line class="target" x2="100%" y1="{up(target)}" y2="{up(target)}"/>')
        parts.append(f'<text class="tick" x="4" y="{up(target)}" dy="-5">target {target:g}</text>')
    parts += marks
    parts += [
        f'<text class="tick" x="{across(value)}" y="{height - 18}" text-anchor="middle">{int(value):,}</text>'
        for value in dict.fromkeys((0, most // 2, most))
    ]
    parts.append(f'<text class="tick" x="100%" y="{height - 3}" text-anchor="end">comparisons</text></svg>')
    return parts


def _diagram(picture: Diagram) -> list[str]:
    """What was stated from left to right, what was observed from bottom to top."""
    height, bottom = 308, 42
    quarters = (0.0, 0.25, 0.5, 0.75, 1.0)

    def up(value: float) -> str:
        return f"{10 + (1 - value) * (height - bottom - 10):.1f}"

    parts = [f'<div class="diagram"><p class="axis left">{escape(picture.up)}</p>']
    parts.append(f'<svg class="framed" height="{height}">')
    parts += _levels(((tick, up(tick)) for tick in quarters), None, percent)
    parts += [
        f'<text class="tick" x="{_share(tick)}" y="{height - 20}" text-anchor="middle">{percent(tick)}</text>'
        for tick in quarters
    ]
    parts.append(f'<line class="target" x1="0%" x2="100%" y1="{up(0)}" y2="{up(1)}"/>')
    for row in picture.rows:
        at = _share(row["stated"])
        parts.append(f"<g><title>{escape(picture.said(row))}</title>")
        parts.append(
            f'<line class="interval" x1="{at}" x2="{at}" y1="{up(row["lower"])}" y2="{up(row["upper"])}"/>'
            f'<circle cx="{at}" cy="{up(row["observed"])}" r="{3 + 5 * picture.size(row):.1f}"/></g>'
        )
    across = f'<text class="tick" x="100%" y="{height - 3}" text-anchor="end">{escape(picture.across)}</text>'
    return [*parts, f"{across}</svg></div>"]


def _items(shown: Sequence[str]) -> str:
    long = " long" if any(cell_len(name) > _LONG_NAME for name in shown) else ""
    return f'<div class="items{long}">'


def _item(name: str, marks: str, said: str | None = None) -> str:
    title = "" if said is None else f' title="{escape(said)}"'
    return f'<div class="item"{title}><span class="name" dir="auto">{escape(name)}</span>{marks}</div>'


def _levels(
    ticks: Iterable[tuple[float, str]], middle: float | None, write: Callable[[float], str] | None = None
) -> list[str]:
    """Lines from left to right with their numbers in front."""
    write = write or _tick
    return [
        f'<line class="{"grid zero" if tick == middle else "grid"}" x2="100%" y1="{y}" y2="{y}"/>'
        f'<text class="tick" x="-8" y="{y}" dy="4" text-anchor="end">{write(tick)}</text>'
        for tick, y in ticks
    ]


def _share(part: float, digits: int = 2) -> str:
    """A place from left to right, as a share of the width."""
    return f"{100 * part:z.{digits}f}%"


def _tick(tick: float) -> str:
    return f"{'−' if tick < 0 else ''}{abs(tick):g}"


def _ticks_by_width(low: float, high: float) -> dict[float, str]:
    """The ticks of wide and of narrow charts, with the classes of those that only one of them has."""
    wide, narrow = (_ticks(low, high, most) for most in (_MOST_TICKS, _MOST_TICKS_NARROW))
    return {
        tick: "" if tick in wide and tick in narrow else " wide-only" if tick in wide else " narrow-only"
        for tick in sorted({*wide, *narrow})
    }


def _ticks(low: float, high: float, most: int = _MOST_TICKS) -> list[float]:
    """Round numbers between the ends, with a maximum number of steps."""
    power = math.floor(math.log10(high - low))
    digits = max(0, 1 - power)
    step = next(s for s in (10.0**power * f for f in (0.2, 0.5, 1, 2, 5)) if (high - low) / s <= most)
    # Adding 0.0 turns the -0.0 of rounding into 0.0.
    return [round(n * step, digits) + 0.0 for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
