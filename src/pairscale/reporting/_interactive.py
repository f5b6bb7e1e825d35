"""Charts of a report by altair, with their data in the page; the picture that they replace stays, for paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from pairscale.reporting._chart_files import in_script, libraries
from pairscale.reporting._chart_style import load_altair, names
from pairscale.reporting.picture import Diagram, Intervals, Lines, Shares
from pairscale.reporting.svg import svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.reporting.picture import Picture

__all__ = ["drawn_twice", "libraries", "specification"]

# Colours are those of the style sheet, so that a chart changes with the reader's setting as the page does.
_INK, _SOFT, _LINE, _MARK, _OTHER, _GOOD = (
    f"var(--{name})" for name in ("ink", "soft", "line", "mark", "other", "good")
)
_TIP = "(datum.datum || datum).said"  # what lies around a point, for the nearest one to be found, holds it inside
_FONT = "system-ui, sans-serif"  # that of the page; room for names is measured by it
_NARROW = 0.06  # no room for a number
_BUTTONS = {
    "Closer": 'data-zoom="0.5"',
    "Farther": 'data-zoom="2"',
    "To the left": 'data-by="-0.5"',
    "To the right": 'data-by="0.5"',
    "All": 'data-zoom="Infinity"',
}


def drawn_twice(picture: Picture) -> Markup:
    """The picture as SVG, and as altair's chart, which a script draws in its place."""
    buttons = _BUTTONS if isinstance(picture, Intervals) and picture.many else {}
    tools = "".join(f'<button type="button" {what}>{name}</button>' for name, what in buttons.items())
    data = f'<script type="application/json">{in_script(specification(picture))}</script>'
    parts = f'{svg(picture)}<div class="live"></div><div class="tools">{tools}</div>{data}'
    return Markup(f'<div class="chart">{parts}</div>')  # noqa: S704 - escaped above, and JSON in which no tag can stand


def specification(picture: Picture) -> dict[str, Any]:
    """Altair's chart of a picture: the same rows, the same words.

    Raises:
        MissingExtraError: when altair is not installed.
    """
    match picture:
        case Intervals(many=True):
            chart = _overview(picture)
        case Intervals():
            chart = _dots(picture)
        case Shares():
            chart = _shares(picture)
        case Lines():
            chart = _lines(picture)
        case Diagram():
            chart = _diagram(picture)
    # One picture with one label: hundreds of marks read out one by one are of no use.
    chart = chart.properties(width="container", background="transparent", description=picture.label, padding=4)
    chart = chart.configure(aria=False, font=_FONT).configure_view(stroke=None).configure_axisX(labelBound=True)
    chart = chart.configure_axis(
        labelColor=_INK, titleColor=_SOFT, gridColor=_LINE, domain=False, ticks=False, labelFontSize=12,
        titleFontSize=12, titleFontWeight="normal", labelPadding=6,
    )  # fmt: skip
    complete: dict[str, Any] = chart.configure_legend(labelColor=_INK, labelFontSize=12, labelLimit=260).to_dict()
    del complete["$schema"]  # an address, which nothing here would look up
    return complete


def _rows(picture: Intervals) -> list[dict[str, Any]]:
    """Names and figures; an interval without a limit ends where the axis does."""
    low, high = picture.domain()
    shown = names([str(row["ID"]) for row in picture.rows])
    return [
        {"name": name, "place": place, "said": picture.said(row)}
        | {
            end: float(f"{min(high, max(low, value)):.6g}")
            for end, value in zip(("score", "lower", "upper"), (row["score"], *picture.ends(row)), strict=True)
        }
        for place, (name, row) in enumerate(zip(shown, picture.rows, strict=True), start=1)
    ]


def _named(shown: Sequence[str]) -> Any:
    """An axis of names, which leave most of the width to the figures, on a phone too."""
    alt = load_altair()
    limit = alt.ExprRef("max(90, 0.3 * containerSize()[0])")
    axis = alt.Axis(title=None, grid=False, labelLimit=limit, labelPadding=10)
    return alt.Y("name:N", sort=None, scale=alt.Scale(domain=list(shown)), axis=axis)


def _counted(field: str, title: str, domain: Sequence[float]) -> Any:
    """An axis of whole numbers."""
    alt = load_altair()
    axis = alt.Axis(grid=False, format=",d", tickMinStep=1, tickCount=8)
    return alt.X(f"{field}:Q", title=title, scale=alt.Scale(domain=list(domain), nice=False), axis=axis)


def _nearest() -> Any:
    """The mark that is nearest to the pointer, from left to right."""
    alt = load_altair()
    return alt.selection_point(
        name="near", nearest=True, on="pointermove", clear="pointerout", encodings=["x"], empty=False
    )


def _dots(picture: Intervals) -> Any:
    """A row each; the interval of the row that is pointed at is laid over all of them."""
    alt = load_altair()
    low, high = picture.domain()
    rows = _rows(picture)
    base = alt.Chart(alt.InlineData(values=rows))
    written = {"labelExpr": "format(100 * datum.value, 'd') + ' %'"} if picture.in_percent else {}
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    x = alt.X("lower:Q", title=picture.axis, scale=scale, axis=alt.Axis(orient="top", tickCount=6, **written))
    y = _named([row["name"] for row in rows])
    pointed = alt.selection_point(name="row", fields=["place"], on="pointerover", clear="pointerout", empty=False)
    layers = [
        base.mark_rect(color=_MARK, opacity=0.12).transform_filter(pointed).encode(x=x, x2="upper:Q"),
        base.mark_rule(color=_MARK, opacity=0.45, strokeWidth=3, strokeCap="round").encode(x=x, x2="upper:Q", y=y),
        base.mark_circle(color=_MARK, opacity=1, size=80).encode(x=alt.X("score:Q", scale=scale), y=y),
        base.mark_rect(color="transparent", tooltip=alt.ExprRef(_TIP))
        .encode(x=alt.XDatum(low, scale=scale), x2=alt.X2Datum(high), y=y)
        .add_params(pointed),
    ]
    if low <= picture.middle <= high:
        at = alt.Chart(alt.InlineData(values=[{"lower": picture.middle}]))
        layers.insert(0, at.mark_rule(color=_SOFT).encode(x=x))
    return alt.layer(*layers).properties(height=22 * len(picture.rows))


def _overview(picture: Intervals) -> Any:
    """All from left to right: pointed at, searched by name, zoomed and moved."""
    alt = load_altair()
    places = [0.5, len(picture.rows) + 0.5]
    base = alt.Chart(alt.NamedData("rows"))
    low, high = picture.domain()
    here = f"(zoom_place || {places})"
    shown = f"slice(data('rows'), max(0, floor({here}[0])), max(0, ceil({here}[1]) - 1))"
    extent = f"[extent(pluck({shown}, 'lower'))[0], extent(pluck({shown}, 'upper'))[1]]"
    # The scores of those that are shown fill the height, however few these are; room is that of an item, in pixels.
    ends = alt.param(name="ends", expr=f"length({shown}) ? {extent} : [{low}, {high}]")
    room = alt.param(name="room", expr=f"width / ({here}[1] - {here}[0])")
    scale = alt.Scale(domain=alt.ExprRef("ends"), nice=False, zero=False)
    x, near = _counted("place", "rank", places), _nearest()
    find = alt.param(name="find", value="", bind=alt.binding(input="search", name="Find in the chart"))
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom="wheel![event.ctrlKey]")
    found = "indexof(lower(datum.name), lower(find)) >= 0"
    whole = {"y": alt.Y("lower:Q", title=picture.axis, scale=scale), "y2": "upper:Q"}
    middle = alt.Chart(alt.InlineData(values=[{"lower": picture.middle}]))
    layers = [
        base.mark_rule(color=_MARK, clip=True, strokeWidth=alt.ExprRef("clamp(0.7 * room, 0.5, 5)")).encode(
            x=x, **whole, opacity=alt.condition(found, alt.value(0.4), alt.value(0.05))
        ),
        base.mark_rule(color=_INK, clip=True, strokeWidth=1.5).encode(x=x, **whole).transform_filter(near),
        base.mark_circle(color=_MARK, clip=True, tooltip=alt.ExprRef(_TIP))
        .encode(
            x=x,
            y=alt.Y("score:Q", scale=scale),
            size=alt.condition(near, alt.value(90), alt.value(alt.ExprRef("clamp(6 * room, 10, 60)"))),
            opacity=alt.condition(found, alt.value(1), alt.value(0.08)),
        )
        .add_params(near),
        middle.mark_rule(color=_SOFT, clip=True).encode(y=whole["y"]),
    ]
    chart = alt.layer(*layers).add_params(zoom, find, ends, room)
    return chart.properties(height=360, datasets={"rows": _rows(picture)}, usermeta={"places": places})


def _shares(picture: Shares) -> Any:
    """A bar each; a part says how many it is, and which share."""
    alt = load_altair()
    shown = names([name for name, _ in picture.rows])
    rows = [
        {"name": name, "kind": kind, "at": at, "n": n, "share": n / total, "said": picture.said(kind, n, total)}
        for name, (_, counts) in zip(shown, picture.rows, strict=True)
        for total in [sum(counts.values())]
        for at, (kind, n) in enumerate(counts.items())
        if n
    ]
    kinds = list(picture.words)
    base = alt.Chart(alt.InlineData(values=rows))
    x, y, order = alt.X("n:Q", stack="normalize", axis=None), _named(shown), alt.Order("at:Q")

    def coloured(*colours: str) -> Any:
        return alt.Color("kind:N", legend=None, scale=alt.Scale(domain=kinds, range=list(colours)))

    bars = base.mark_bar(tooltip=alt.ExprRef(_TIP)).encode(
        x=x, y=y, order=order, color=coloured(*(f"var(--of-{kind})" for kind in kinds))
    )
    counts = base.mark_text(fontWeight=600, tooltip=alt.ExprRef(_TIP)).encode(
        x=alt.X("n:Q", stack="normalize", bandPosition=0.5),
        y=y,
        order=order,
        text=alt.Text("n:Q", format=","),
        color=coloured(*(f"var(--on-{kind}, var(--page))" for kind in kinds)),
        opacity=alt.condition(f"datum.share > {_NARROW}", alt.value(1), alt.value(0)),
    )
    return alt.layer(bars, counts).resolve_scale(color="independent").properties(height=34 * len(picture.rows))


def _lines(picture: Lines) -> Any:
    """A line each; the refit that is pointed at says all its figures."""
    alt = load_altair()
    rows = [
        {"x": at, "line": name, "value": round(value, 6)}
        for name, values in picture.series.items()
        for at, value in zip(picture.x, values, strict=True)
        if value is not None
    ]
    stops = [{"x": at, "said": picture.said(place)} for place, at in enumerate(picture.x)]
    x, near = _counted("x", "comparisons", [0, max(picture.x) or 1]), _nearest()
    y = alt.Y("value:Q", title=None, scale=alt.Scale(domain=[picture.low(), 1], nice=False))
    colours = alt.Scale(domain=list(picture.series), range=[_MARK, _OTHER])
    colour = alt.Color("line:N", title=None, scale=colours, legend=alt.Legend(orient="top"))
    base = alt.Chart(alt.InlineData(values=rows))
    layers = [
        alt.Chart(alt.InlineData(values=stops))
        .mark_rule(color=_SOFT, tooltip=alt.ExprRef(_TIP))
        .encode(x=x, opacity=alt.condition(near, alt.value(1), alt.value(0)))
        .add_params(near),
        base.mark_line(strokeWidth=2, point={"size": 30, "filled": True}).encode(x=x, y=y, color=colour),
    ]
    if picture.target is not None:
        at = alt.Chart(alt.InlineData(values=[{"value": picture.target, "text": f"target {picture.target:g}"}]))
        layers.append(at.mark_rule(color=_GOOD, strokeDash=[5, 4]).encode(y=y))
        layers.append(
            at.mark_text(color=_SOFT, align="left", dx=4, dy=-7, fontSize=12).encode(x=alt.value(0), y=y, text="text:N")
        )
    return alt.layer(*layers).properties(height=240)


def _diagram(picture: Diagram) -> Any:
    """What was stated against what was observed; a mark says its figures."""
    alt = load_altair()
    rows = [
        {name: round(row[name], 6) for name in ("stated", "observed", "lower", "upper", "n")}
        | {"size": 30 + 220 * picture.size(row) ** 2, "said": picture.said(row)}
        for row in picture.rows
    ]
    written = {"labelExpr": "format(100 * datum.value, 'd') + ' %'", "values": [0, 0.25, 0.5, 0.75, 1]}
    whole = alt.Scale(domain=[0, 1], nice=False)
    x = alt.X("stated:Q", title=picture.across, scale=whole, axis=alt.Axis(grid=False, **written))
    y = alt.Y("observed:Q", title=picture.up, scale=whole, axis=alt.Axis(**written))
    base = alt.Chart(alt.InlineData(values=rows))
    same = alt.Chart(alt.InlineData(values=[{"stated": end, "observed": end} for end in (0, 1)]))
    layers = [
        same.mark_line(color=_GOOD, strokeDash=[5, 4]).encode(x=x, y=y),
        base.mark_rule(color=_MARK, opacity=0.45, strokeWidth=3, strokeCap="round").encode(
            x=x, y=alt.Y("lower:Q", scale=whole), y2="upper:Q"
        ),
        base.mark_circle(color=_MARK, opacity=1, tooltip=alt.ExprRef(_TIP)).encode(
            x=x, y=y, size=alt.Size("size:Q", scale=None, legend=None)
        ),
    ]
    return alt.layer(*layers).properties(height=280)
