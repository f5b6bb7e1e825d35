"""Simulation studies: how near the truth a ranking is after how many comparisons, and whether it knows that itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.core.errors import InputError
from pairscale.core.options import require_choice
from pairscale.reporting._chart_style import COLOURS, SOFT, dressed, finite, load_altair, names

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from pairscale.simulation.study import SimulationStudy

_Row: TypeAlias = dict[str, Any]

_WIDTH, _HEIGHT = 300, 200
_BELOW = 0.1  # so far below the lowest mean the frame reaches
_PANEL = ("n_items", "ability_sd", "judge", "concurrency")
_CALLED = {
    "spearman_map": "Spearman with the truth",
    "kendall_map": "Kendall with the truth",
    "spearman_mu": "Spearman of TrueSkill with the truth",
    "kendall_mu": "Kendall of TrueSkill with the truth",
}


def simulation_chart(
    study: SimulationStudy,
    *,
    figure: str = "spearman_map",
    title: str = "How near the truth, after how many comparisons",
) -> alt.TopLevelMixin:
    """A study by simulation: above, the correlation with the truth; below, reliability claimed and true.

    There is a panel for each number of items, spread, judge and number in flight, a line for each selector, and a band
    for the 95 % interval of the mean.

    Args:
        study: of :func:`pairscale.simulate`.
        figure: what the upper row shows: ``spearman_map``, ``kendall_map``, ``spearman_mu`` or ``kendall_mu``.
        title: above the chart.

    Raises:
        InputError: when ``figure`` is not one of these, or there is nothing to draw.
        MissingExtraError: when altair is not installed.
    """
    alt = load_altair()
    require_choice(figure, "figure", _CALLED)
    upper = _points(study.summary, [(figure, "mean")], -1.0)
    lower = _points(study.reliability, [("reliability_claimed", "claimed"), ("reliability_true", "true")], 0.0)
    if not upper and not lower:
        raise InputError("no checkpoint and no refit was reached by all runs of the study; there is nothing to draw")
    selectors = list(dict.fromkeys(study.stops["selector"].to_list()))
    panels = list(dict.fromkeys(study.stops.select(_PANEL).rows()))
    scale = alt.Scale(domain=selectors, range=[COLOURS[at % len(COLOURS)] for at in range(len(selectors))])
    colour = alt.Color("selector:N", title="selector", scale=scale)
    rows = []
    for points, called in ((upper, _CALLED[figure]), (lower, "reliability")):
        if not points:
            continue
        ends = _ends(points)
        drawn = [
            _panel([row for row in points if row["panel"] == panel], _heading(panel, panels), called, colour, ends)
            for panel in panels
        ]
        rows.append(alt.concat(*drawn, columns=_across(len(panels)), spacing=18))
    n_seeds = study.settings.get("n_seeds", study.stops["n_runs"].max())
    notes = [
        f"Lines: means over {n_seeds:,} seed{'s' * (n_seeds != 1)}. Bands: 95% intervals, cut off at the frame.",
        "Comparisons per item: all comparisons divided by the number of items.",
        "Reliability: solid is what the run claims (EAP), dashed is the squared correlation with the truth.",
    ]
    said = f"Correlation with the truth against comparisons per item: {', '.join(selectors)}; {len(panels)} settings."
    return dressed(rows[0] if len(rows) == 1 else alt.vconcat(*rows, spacing=26), title, notes, said)


def _across(n_panels: int) -> int:
    """Panels beside each other: four are two by two."""
    return 2 if n_panels == 4 else min(n_panels, 3)


def _points(table: pl.DataFrame, figures: Sequence[tuple[str, str]], least: float) -> list[_Row]:
    """The figures of a table, each with its interval; ``least`` is the lowest value that they can have."""
    points = []
    for row in table.iter_rows(named=True):
        for column, kind in figures:
            value = finite(row[column])
            if value is None:
                continue
            low, high = (finite(row[f"{column}_{end}"]) for end in ("lower", "upper"))
            points.append(
                {
                    "panel": tuple(row[name] for name in _PANEL),
                    "selector": row["selector"],
                    "kind": kind,
                    "per_item": row["per_item"],
                    "value": value,
                    "lower": value if low is None else max(least, low),
                    "upper": value if high is None else min(1.0, high),
                }
            )
    return points


def _ends(points: Sequence[_Row]) -> tuple[float, float, float]:
    """The right end of x, and both ends of y, of all panels of a row.

    Below, y follows the means: few seeds have bands that are wider than the frame is high.
    """
    low, high = min(row["value"] for row in points) - _BELOW, max(row["upper"] for row in points) + 0.02
    return max(row["per_item"] for row in points), max(-1.0, math.floor(10 * low) / 10), min(1.0, high)


def _heading(panel: tuple[Any, ...], panels: Sequence[tuple[Any, ...]]) -> str:
    """What this panel is, by what tells it from the others; the number of items always."""
    n, sd, judge, k = panel
    several = [len({other[at] for other in panels}) > 1 for at in range(len(_PANEL))]
    said = [f"{n:,} items"]
    said += [f"sd {sd:g}"] if several[1] else []
    said += names([judge]) if several[2] or judge != "clean" else []
    said += [f"{k} in flight"] if several[3] or k != 1 else []
    return ", ".join(said)


def _panel(rows: list[_Row], heading: str, called: str, colour: Any, ends: tuple[float, float, float]) -> Any:
    alt = load_altair()
    right, low, high = ends
    x = alt.X(
        "per_item:Q",
        title="comparisons per item",
        scale=alt.Scale(domain=[0, right], nice=False),
        axis=alt.Axis(tickCount=6, labelFlush=False),
    )
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    y = alt.Y("value:Q", title=called, scale=scale, axis=alt.Axis(tickCount=5, format=".2f"))
    tips = [
        alt.Tooltip("selector:N"),
        alt.Tooltip("kind:N", title="figure"),
        alt.Tooltip("per_item:Q", title="comparisons per item", format=",.1f"),
        alt.Tooltip("value:Q", title=called, format=".3f"),
        alt.Tooltip("lower:Q", title="from", format=".3f"),
        alt.Tooltip("upper:Q", title="to", format=".3f"),
    ]
    kinds = sorted({row["kind"] for row in rows})
    base = alt.Chart(alt.InlineData(values=[{k: v for k, v in row.items() if k != "panel"} for row in rows]))
    dash: dict[str, Any] = {}
    if len(kinds) > 1:
        steps = alt.Scale(domain=["claimed", "true"], range=[[1, 0], [5, 3]])
        dash["strokeDash"] = alt.StrokeDash("kind:N", title="reliability", scale=steps)
    band = base.mark_area(opacity=0.16, aria=False, clip=True)
    line = base.mark_line(strokeWidth=1.8, aria=False, clip=True)
    detail = alt.Detail("kind:N")
    layers = [
        band.encode(x=x, y=alt.Y("lower:Q", scale=scale, title=called), y2="upper:Q", color=colour, detail=detail),
        line.encode(x=x, y=y, color=colour, detail=detail, **dash),
        base.mark_circle(size=16, opacity=0.9).encode(x=x, y=y, color=colour, tooltip=tips),
    ]
    title = alt.TitleParams(heading, fontSize=12, fontWeight="normal", color=SOFT, offset=6, limit=_WIDTH)
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=title)
