"""Studies of templates: how consistent judges are, and which position they favour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.core.errors import InputError
from pairscale.reporting._chart_style import COLOURS, SOFT, dressed, finite, load_altair, names, percent

if TYPE_CHECKING:
    import altair as alt

    from pairscale.checks.templates import TemplateStudy

_Row: TypeAlias = dict[str, Any]

_PANEL, _ACROSS = 185, 5
_ENDS = ("consistent_lower", "consistent_upper", "pos1_lower", "pos1_upper")


def study_chart(
    study: TemplateStudy,
    beside: TemplateStudy | None = None,
    *,
    title: str = "How consistent judges are, and which position they favour",
) -> alt.TopLevelMixin:
    """A study of templates: consistency against the wins of the first position, a panel a template, a point a judge.

    Args:
        study: one's own, or a published one.
        beside: another one below it on the same axes, such as :func:`pairscale.published_template_study`.
        title: above the chart.

    Raises:
        InputError: when a study has no row with both figures.
        MissingExtraError: when altair is not installed.
    """
    alt = load_altair()
    studies = [study] if beside is None else [study, beside]
    tables = [_points(one) for one in studies]
    points = [row for rows in tables for row in rows]
    away = max(max(0.5 - row["pos1_lower"], row["pos1_upper"] - 0.5) for row in points)
    low = min(row["consistent_lower"] for row in points)
    axes = _Axes(min(0.5, max(0.05, math.ceil(20 * away) / 20)), min(0.9, math.floor(20 * low) / 20))
    blocks = []
    for one, rows in zip(studies, tables, strict=True):
        block = alt.concat(*_panels(one, rows, axes), columns=_ACROSS, spacing=16)
        name = "This study" if one.source is None else "Published"
        blocks.append(block.properties(title=alt.TitleParams(name, anchor="start", fontSize=14, offset=8)))
    levels = " and ".join(dict.fromkeys(percent(one.level) for one in studies))
    notes = [
        f"A panel a template, a point a judge; good is at the top, in the middle. Bars: {levels} intervals.",
        "Grey lines: no point can lie outside them; on one, every inconsistent pair went to the same position.",
    ]
    if left := sum(one.table.height for one in studies) - len(points):
        notes.append(f"Left out, because one of the two figures is missing: {left:,}.")
    sources = dict.fromkeys(one.source for one in studies if one.source is not None)
    notes += [f"Published: {source}." for source in sources]  # which says that the wordings were others
    said = (
        f"Consistency against wins of the first position: {len(points):,} judges and templates, {len(blocks)} studies."
    )
    chart = blocks[0] if len(blocks) == 1 else alt.vconcat(*blocks, spacing=28).resolve_scale(color="independent")
    return dressed(chart, title, notes, said)


@dataclass(frozen=True, slots=True)
class _Axes:
    """What all panels have in common: how far ``prop_pos1`` goes from one half, and the lowest consistency."""

    away: float
    low: float


def _points(study: TemplateStudy) -> list[_Row]:
    """The rows that have both figures; a missing end of an interval is the figure itself."""
    points = []
    for row in study.table.iter_rows(named=True):
        consistent, first = finite(row["prop_consistent"]), finite(row["prop_pos1"])
        if consistent is None or first is None:
            continue
        model = " ".join(part for part in (row["model"] or row["backend"], row["thinking"]) if part)
        point = {"template": row["template_id"], "judge": names([row["judge"] or model or "judge"])[0]}
        point |= {"family": names([row["backend"] or "other"])[0], "consistent": consistent, "pos1": first}
        for end in _ENDS:
            at = finite(row[end])
            point[end] = point[end.partition("_")[0]] if at is None else at
        points.append(point | {"pairs": row["n_pairs"]})
    if not points:
        raise InputError("the study has no row with both prop_consistent and prop_pos1; there is nothing to draw")
    return points


def _panels(study: TemplateStudy, points: Sequence[_Row], axes: _Axes) -> list[Any]:
    """A panel for each template that has points, the most consistent first."""
    colour = _colour(points)
    drawn = {row["template"] for row in points}
    templates = [name for name in study.ranking["template_id"].to_list() if name in drawn]
    return [
        _panel(names([name])[0], [row for row in points if row["template"] == name], axes, colour, at)
        for at, name in enumerate(templates)
    ]


def _colour(points: Sequence[_Row]) -> Any:
    """By judge where there are few, else by family where these are few, else the same for all."""
    alt = load_altair()
    for field, called in (("judge", "judge"), ("family", "family of judges")):
        values = sorted({row[field] for row in points})
        if len(values) <= len(COLOURS):
            scale = alt.Scale(domain=values, range=list(COLOURS[: len(values)]))
            return alt.Color(f"{field}:N", title=called, scale=scale)
    return alt.value(COLOURS[0])


def _panel(name: str, rows: list[_Row], axes: _Axes, colour: Any, at: int) -> Any:
    alt = load_altair()
    shown = alt.Axis(format="%", tickCount=4)
    x_scale = alt.Scale(domain=[0.5 - axes.away, 0.5 + axes.away], nice=False)
    y_scale = alt.Scale(domain=[axes.low, 1], nice=False)
    left = "same winner in both orders" if at % _ACROSS == 0 else None
    x = alt.X("pos1:Q", title="wins of the first position", scale=x_scale, axis=shown)
    y = alt.Y("consistent:Q", title=left, scale=y_scale, axis=shown)
    tips = [
        alt.Tooltip("template:N"),
        alt.Tooltip("judge:N"),
        alt.Tooltip("consistent:Q", title="same winner in both orders", format=".1%"),
        alt.Tooltip("pos1:Q", title="wins of the first position", format=".1%"),
        alt.Tooltip("pairs:Q"),
    ]
    edge = [{"pos1": axes.low / 2, "consistent": axes.low}, {"pos1": 0.5, "consistent": 1}]
    edge.append({"pos1": 1 - axes.low / 2, "consistent": axes.low})
    possible = alt.Chart(alt.InlineData(values=edge)).mark_line(color="#b4bac4", strokeWidth=1.2, clip=True, aria=False)
    even = alt.Chart(alt.InlineData(values=[{"pos1": 0.5}])).mark_rule(color=SOFT, strokeDash=[4, 3], aria=False)
    base = alt.Chart(alt.InlineData(values=[row | {"template": name} for row in rows]))
    faint = 0.75 if len(rows) <= 4 else 0.3
    bars = base.mark_rule(opacity=faint, strokeWidth=1.2, aria=False)
    layers = [
        possible.encode(x=x, y=y, order=alt.Order("pos1:Q")),
        even.encode(x=x),
        bars.encode(x=alt.X("pos1_lower:Q", scale=x_scale), x2="pos1_upper:Q", y=y, color=colour),
        bars.encode(x=x, y=alt.Y("consistent_lower:Q", scale=y_scale), y2="consistent_upper:Q", color=colour),
        base.mark_circle(size=65, opacity=1, stroke="#ffffff", strokeWidth=0.8).encode(
            x=x, y=y, color=colour, tooltip=tips
        ),
    ]
    title = alt.TitleParams(name, fontSize=12, fontWeight="normal", color=SOFT, offset=6, limit=_PANEL)
    return alt.layer(*layers).properties(width=_PANEL, height=_PANEL, title=title)
