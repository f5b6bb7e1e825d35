"""Pictures by altair: the charts of files and of ``.plot()``, and those of an interactive page."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from string import Template
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from pairscale.core.errors import FileFormatError, MissingExtraError
from pairscale.core.files import replacing
from pairscale.core.options import FilePath, require_suffix
from pairscale.reporting.svg import asset, svg

if TYPE_CHECKING:
    from collections.abc import Mapping

    import altair as alt

    from pairscale.reporting.charts import Figure
    from pairscale.reporting.picture import Axis, Content, Picture

CHART_SUFFIXES = (".svg", ".png", ".pdf", ".html", ".json")
"""The endings of files that a chart can be written to."""

_INK = "#1c2430"
_SOFT = "#5b6472"
_LINE = "#e4e7ec"
_ON_PAPER = {"mark": "#2f6fde", "soft": _SOFT, "good": "#1f7a4d", "line": "#b4bac4"}
_FONT = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"
_PNG_DPI = 300
_LINE_LENGTH = 104  # characters below the title


def require_drawing(what: str) -> None:
    """Refuse what needs altair where it is not installed.

    Raises:
        MissingExtraError: when altair or what it draws with is not installed.
    """
    if any(find_spec(module) is None for module in ("altair", "vl_convert")):
        raise MissingExtraError(what, "plots")


def require_chart_file(path: FilePath, what: str = "the chart") -> Path:
    """The file to write a chart to, refused before any work is done rather than after it.

    Args:
        path: the file.
        what: what names it in a message, such as an option.

    Raises:
        InputError: when the ending is unknown, or its folder is missing.
        MissingExtraError: when what draws charts is not installed.
    """
    target = require_suffix(path, what, CHART_SUFFIXES)
    if not target.parent.is_dir():
        raise FileFormatError(f"{what} {path} cannot be written: there is no folder {target.parent}; make it first")
    require_drawing("a chart")
    return target


# The translation

_BAR = {"opacity": 0.45, "strokeWidth": 3, "strokeCap": "round", "aria": False}
_LAYERS: dict[str, list[tuple[str, Content, tuple[str, ...]]]] = {
    "line": [("line", {"clip": True, "aria": False}, ("x", "y"))],
    "rule": [
        ("rule", {"aria": False}, ("x",)),
        ("rule", {"aria": False}, ("y",)),
        ("text", {"x": 4, "dy": -7, "align": "left", "aria": False}, ("y", "text")),
    ],
    "bars": [("bar", {"tooltip": True}, ("x_low", "x_high", "y")), ("text", {"aria": False}, ("x", "y", "text"))],
    "dots": [
        ("rule", _BAR, ("x_low", "x_high", "y")),
        ("rule", _BAR, ("x", "y_low", "y_high")),
        ("circle", {"opacity": 1, "clip": True, "tooltip": True}, ("x", "y")),
    ],
}
"""By kind of marks, the layers of altair: the mark, its options, and the fields that it needs."""

_CHANNELS = {"x_low": "x", "y_low": "y", "x_high": "x2", "y_high": "y2"}


def altair_of(picture: Picture, *, in_page: bool = False, width: int | None = None) -> Any:
    """Altair's chart of a picture.

    Args:
        picture: the picture.
        in_page: whether the page's style sheet has the colours, and its width that of the chart.
        width: in pixels; that of the picture when None.
    """
    import altair as alt

    colours = {
        marks.colour: f"var(--{marks.colour})" if in_page else _ON_PAPER.get(marks.colour, marks.colour)
        for marks in picture.marks
    }
    legend = {marks.name: colours[marks.colour] for marks in picture.marks if marks.name}
    key = alt.Scale(domain=list(legend), range=list(legend.values()))
    axes = {"x": picture.x, "y": picture.y}
    names = picture.y.names
    layers = []
    for marks in picture.marks:
        rows = [{**row, "series": marks.name} for row in marks.rows]
        if names and marks.kind != "rule":
            rows = [row | {"y": names[row["y"]]} for row in rows]
        base = alt.Chart(alt.InlineData(values=rows))
        for mark, options, fields in _LAYERS[marks.kind]:
            if not all(field in rows[0] for field in fields):
                continue
            encoded: Content = {_CHANNELS.get(field, field): _channel(field, axes, in_page=in_page) for field in fields}
            how = dict(options)
            if "tooltip" in options:
                how["tooltip"] = alt.ExprRef("datum.tip")
            if marks.dashed:
                how["strokeDash"] = [5, 4]
            if mark == "text":
                how["color"] = alt.ExprRef("datum.ink")
            elif marks.name:
                encoded["color"] = alt.Color("series:N", scale=key, title=None)
            else:
                how["color"] = colours[marks.colour]
            if mark == "circle":
                how["size"] = alt.ExprRef("3.2 * datum.r * datum.r")
            layers.append(getattr(base, f"mark_{mark}")(**how).encode(**encoded))
    step = 34 if picture.marks[0].kind == "bars" else 22
    chart = alt.layer(*layers)
    chart = chart.properties(height=step * len(names) or picture.height)
    if in_page:
        zoom = alt.selection_interval(bind="scales", encodings=["x"], zoom="wheel![event.ctrlKey]")
        chart = chart.properties(width="container")
        return chart if names else chart.add_params(zoom)
    chart = chart.properties(width=width or picture.width)
    if picture.heading:
        chart = chart.properties(title=alt.TitleParams(picture.heading, fontWeight="normal", color=_SOFT))
    return chart


def _channel(field: str, axes: Mapping[str, Axis], *, in_page: bool) -> Any:
    """A field on its axis."""
    import altair as alt

    if field == "text":
        return "text:N"
    if field.endswith("_high"):
        return f"{field}:Q"
    side = field[0]
    axis = axes[side]
    channel = alt.X if side == "x" else alt.Y
    if axis.names:
        limit: Any = alt.ExprRef("max(90, 0.3 * containerSize()[0])") if in_page else 230
        shown = alt.Axis(title=axis.title or None, grid=False, ticks=False, labelLimit=limit)
        return channel(f"{field}:N", sort=None, scale=alt.Scale(domain=list(axis.names)), axis=shown)
    ticks = {"values": list(axis.ticks)} if axis.ticks else {"tickCount": 6}
    label = "format(100 * datum.value, 'd') + ' %'" if axis.in_percent else "format(datum.value, ',')"
    numbers = alt.Axis(title=axis.title or None, labelExpr=label, **ticks)
    hidden = side == "x" and not axis.title
    scale = alt.Scale(domain=[axis.low, axis.high], nice=False, zero=False, padding=4)
    return channel(f"{field}:Q", scale=scale, axis=None if hidden else numbers)


# Pages


def drawn_twice(picture: Picture) -> Markup:
    """The picture as SVG, and as altair's chart, which a script draws in its place."""
    chart = altair_of(picture, in_page=True).properties(background="transparent", description=picture.label, padding=4)
    chart = chart.configure(aria=False, font="system-ui, sans-serif").configure_view(stroke=None)
    colours = {"labelColor": "var(--ink)", "titleColor": "var(--soft)"}
    axis = {"gridColor": "var(--line)", "domain": False, "ticks": False, "titleFontWeight": "normal"}
    chart = chart.configure_axis(**colours, **axis).configure_legend(**colours, orient="top", labelLimit=260, columns=3)
    data = f'<script type="application/json">{_in_script(_specification(chart))}</script>'
    return Markup(f'<div class="chart">{svg(picture)}<div class="live"></div>{data}</div>')  # noqa: S704 - escaped, and JSON without a tag


@cache
def libraries() -> str:
    """The script that draws a chart in a page: Vega, Vega-Lite and Vega-Embed, which it makes known as vegaEmbed."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("</script", "<\\/script")


def _specification(chart: Any) -> Content:
    complete: Content = chart.to_dict()
    del complete["$schema"]  # an address, which nothing here would look up
    return complete


def _in_script(specification: object) -> str:
    """JSON for a script element, which nothing in it can end, whatever an id contains."""
    text = json.dumps(specification, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


# Files


def drawn(figure: Figure, title: str | None, width: int | None, font_size: float | None) -> alt.TopLevelMixin:
    """The chart of a figure: its pictures with a title and notes, dark on white.

    Args:
        figure: what to draw.
        title: above the chart; the figure's own when None, and none when empty.
        width: of a picture, in pixels.
        font_size: of names and numbers.
    """
    require_drawing("a chart")
    import altair as alt

    panels = [altair_of(picture, width=width) for picture in figure.pictures]
    chart: Any = panels[0]
    if figure.pictures[0].heading:
        chart = alt.vconcat(*panels)
    chart = chart.properties(description=figure.pictures[0].label, background="#ffffff", padding=16)
    if title != "":
        lines = [line for note in figure.notes for line in wrap(note, _LINE_LENGTH)]
        heading: Content = {
            "anchor": "start",
            "frame": "group",
            "offset": 18,
            "color": _INK,
            "subtitleColor": _SOFT,
        }
        chart = chart.properties(title=alt.TitleParams(wrap(title or figure.title, 70), subtitle=lines, **heading))
    size = font_size or 11
    sizes = {"labelFontSize": size, "titleFontSize": size, "titleFontWeight": "normal"}
    colours = {"labelColor": _INK, "titleColor": _SOFT}
    chart = chart.configure(font=_FONT).configure_view(stroke=None).configure_text(fontSize=size)
    chart = chart.configure_axis(gridColor=_LINE, domainColor=_LINE, tickColor=_LINE, **sizes, **colours)
    complete: alt.TopLevelMixin = chart.configure_legend(**sizes, **colours, labelLimit=260, symbolOpacity=1)
    return complete


def save_chart(chart: alt.TopLevelMixin, path: FilePath) -> Path:
    """Write a chart by the ending of the file's name, whole or not at all.

    ``svg``, ``pdf`` and ``png`` (300 dots per inch) are pictures. ``html`` is a page with tooltips that holds all it
    needs, forbids itself the network, and shows ids as text whatever they contain. ``json`` is the Vega-Lite
    specification, with its data.

    Raises:
        FileFormatError: when the ending is unknown, or the file cannot be written.
        MissingExtraError: when altair or what it draws with is not installed.
    """
    target = require_chart_file(path)
    suffix = target.suffix.lower()
    with replacing(target) as temporary:
        if suffix == ".json":
            temporary.write_text(json.dumps(chart.to_dict(), ensure_ascii=False, indent=1), "utf-8")
        elif suffix == ".html":
            spec = _specification(chart)
            title = str(spec["description"])
            page = Template(asset("chart.html"))
            text = page.substitute(title=escape(title), spec=_in_script(spec), libraries=libraries())
            temporary.write_text(text, "utf-8")
        else:
            chart.save(str(temporary), format=suffix[1:], ppi=_PNG_DPI)  # type: ignore[arg-type]
    return target
