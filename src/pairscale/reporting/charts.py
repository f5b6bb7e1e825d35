"""Charts of results: scores, ranks, who beats whom, studies of prompt templates and by simulation.

Every function gives an altair chart that holds its data, so that it can be changed further and saved anywhere;
:func:`save_chart` writes one to a file. Needs ``pip install "pairscale[plots]"``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from pairscale.core.errors import InputError
from pairscale.reporting._chart_files import CHART_SUFFIXES, require_chart_file, save_chart
from pairscale.reporting._chart_style import MARK, MOST_NAMES, SOFT, dressed, finite, load_altair, names, percent
from pairscale.reporting._simulation_chart import simulation_chart
from pairscale.reporting._study_chart import study_chart
from pairscale.reporting._win_matrix import win_matrix
from pairscale.reporting.picture import Intervals

if TYPE_CHECKING:
    import altair as alt

    from pairscale.adaptive.rank import AdaptiveResult
    from pairscale.adaptive.session import AdaptiveState
    from pairscale.evaluate.ranking import VariantsResult
    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.models.bayes.results import BayesFit
    from pairscale.models.bradley_terry import BTFit
    from pairscale.models.elo import EloFit

    _Posterior: TypeAlias = BayesFit | AdaptiveState
    _Ranking: TypeAlias = BTFit | EloFit | AdaptiveResult | VariantsResult | _Posterior

__all__ = [
    "CHART_SUFFIXES",
    "pictures_of",
    "rank_chart",
    "require_chart_file",
    "save_chart",
    "score_chart",
    "simulation_chart",
    "study_chart",
    "win_matrix",
    "win_rate_chart",
]

_Row: TypeAlias = dict[str, Any]

_WIDTH, _TALLEST = 560, 900
MOST_INLINE = 40
"""Up to this many items have a row each in the chart of a notebook; more are in one picture."""


@dataclass(frozen=True, slots=True)
class _Items:
    """What a chart of items shows.

    Attributes:
        rows: one per item, best first: ``item``, ``value``, ``lower``, ``upper``, ``part``.
        axis: what the value is, in words.
        notes: the lines below the title.
        middle: where to draw a line.
        decimals: of the figures.
        ranks: whether the value is a rank, whose axis begins with 1.
    """

    rows: list[_Row]
    axis: str
    notes: tuple[str, ...]
    middle: float | None = None
    decimals: int = 2
    ranks: bool = False


def score_chart(fit: _Ranking, *, title: str = "Scores, best first") -> alt.TopLevelMixin:
    """The scores with their intervals, best on top.

    Groups that were never compared with each other have a panel each. Names are left out where there are more than
    120 items.

    Args:
        fit: a fitted model: the bars are the intervals of a Bradley–Terry fit, the middle 95 % of the draws of a
            Bayesian one, and plus and minus one standard deviation over random orders of Elo ratings. Of an adaptive
            run its last refit; of variants, those of the first comparator.
        title: above the chart.

    Raises:
        InputError: when ``fit`` is no fit.
        MissingExtraError: when altair is not installed.
    """
    return _caterpillar(_scores(fit), title, "Scores of {n} items with intervals, best on top: {first} to {last}.")


def rank_chart(fit: _Ranking, *, title: str = "Ranks, and how far they are open") -> alt.TopLevelMixin:
    """The ranks that every item may have, best on top.

    Args:
        fit: a Bradley–Terry fit (repeated with rank intervals if it has none), a Bayesian one, an adaptive run, or
            variants.
        title: above the chart.

    Raises:
        InputError: when the fit cannot have rank intervals.
        MissingExtraError: when altair is not installed.
    """
    return _caterpillar(_ranks(fit), title, "Rank intervals of {n} items, best on top: {first} to {last}.")


def win_rate_chart(result: PairwiseRunResult, *, title: str | None = None) -> alt.TopLevelMixin:
    """How often B wins, with intervals, a row for each comparator; ties and flips count as half.

    Args:
        result: of :func:`pairscale.run_pairwise` or :func:`pairscale.evaluate_pairwise`.
        title: above the chart.

    Raises:
        InputError: when no case was answered.
        MissingExtraError: when altair is not installed.
    """
    a, b = names([result.variant_a, result.variant_b])
    return _caterpillar(
        _win_rates(result),
        title or f"How often {b} beats {a}",
        "Win rates of {n} comparators with intervals: {first} to {last}.",
    )


def pictures_of(result: Any) -> tuple[list[Intervals], tuple[str, ...]]:
    """The first chart of a result as a report has it: a picture for each group of items, and the notes on them.

    Raises:
        InputError: when there is nothing to draw.
    """
    from pairscale.evaluate.result import PairwiseRunResult

    rates = isinstance(result, PairwiseRunResult)
    items = _win_rates(result) if rates else _scores(result)
    middle = math.nan if items.middle is None else items.middle
    label = f"{'Win rates' if rates else 'Scores'} with intervals; the table holds the same figures"
    pictures = []
    for _, members in groupby(items.rows, key=lambda row: row["part"]):
        rows = [
            {"ID": row["item"], "score": row["value"], "lower": row["lower"], "upper": row["upper"]} for row in members
        ]
        picture = Intervals(rows, label, items.axis, middle=middle, many=len(rows) > MOST_INLINE)
        pictures.append(replace(picture, in_percent=True, span=(0.0, 1.0)) if rates else picture)
    return pictures, tuple(note for note in items.notes if note)


def _win_rates(result: PairwiseRunResult) -> _Items:
    a, b = names([result.variant_a, result.variant_b])
    kind = "confidence sequences" if result.sequential else "intervals"
    rows = []
    for key, name in zip(result.keys, names(result.keys), strict=True):
        found = result.win_rate(key)
        if found.rate is not None and found.ci is not None:
            rows.append({"item": name, "value": found.rate, "lower": found.ci[0], "upper": found.ci[1], "part": 1})
    if not rows:
        raise InputError("no case was answered, so there is no win rate to draw")
    notes = f"Ties and flips count as half. Bars: 95% {kind}.", f"Dashed line: {b} wins as often as {a}."
    return _Items(rows, f"win rate of {b} against {a}", notes, 0.5)


# Scores and ranks


def _fit_of(source: Any) -> Any:
    """What is drawn: of variants the fit of the first comparator, of an adaptive run its state."""
    from pairscale.adaptive.rank import AdaptiveResult
    from pairscale.evaluate.ranking import VariantsResult

    if isinstance(source, VariantsResult):
        return source.fits[source.keys[0]]
    return source.state if isinstance(source, AdaptiveResult) else source


def _is_posterior(fit: Any) -> bool:
    from pairscale.adaptive.session import AdaptiveState
    from pairscale.models.bayes.results import BayesFit

    return isinstance(fit, BayesFit | AdaptiveState)


def _scores(fit: Any) -> _Items:
    from pairscale.models.bayes.logs import summarize_items
    from pairscale.models.bradley_terry import BTFit
    from pairscale.models.elo import EloFit

    fit = _fit_of(fit)
    if isinstance(fit, BTFit):
        settings = fit.provenance.settings
        other = settings.get("reference")
        to = "the mean" if other is None else names([str(other)])[0]
        note = (
            f"Bars: {percent(settings.get('level', 0.95))} intervals of the difference to {to}." if _known(fit) else ""
        )
        more = "An item one logit above another wins 73 of 100 comparisons with it."
        part = "component" if "component" in fit.theta.columns else None
        rows = _rows(fit.theta, "theta", "lower", "upper", part)
        return _Items(rows, "score, in logits", (note, more), 0.0)
    if _is_posterior(fit):
        table = summarize_items(fit, sort_by="theta_mean")
        note = "Points: means of the posterior. Bars: its middle 95%."
        rows = _rows(table, "theta_mean", "theta_p2.5", "theta_p97.5")
        return _Items(rows, "score, in logits", (note, *_unsure(fit)), 0.0)
    if isinstance(fit, EloFit):
        ends = fit.elo.with_columns(lower=pl.col("elo") - pl.col("elo_sd"), upper=pl.col("elo") + pl.col("elo_sd"))
        note = f"Mean over {fit.fit.runs:,} random order{'s' * (fit.fit.runs != 1)} of the decisions."
        bars = "Bars: ± one standard deviation between orders, which is not how sure a rating is."
        apart = any("never compared" in said for said in fit.notices)
        more = "Some items were never compared, not even through others: their ratings share no scale." if apart else ""
        return _Items(
            _rows(ends, "elo", "lower", "upper"),
            "Elo rating",
            (note, bars if fit.fit.runs > 1 else "", more),
            fit.fit.start,
            0,
        )
    raise InputError(f"a chart needs a Bradley-Terry, Bayesian or Elo fit, not {type(fit).__name__}")


def _ranks(fit: Any) -> _Items:
    from pairscale.models.bayes.logs import summarize_items
    from pairscale.models.bradley_terry import BTFit, with_rank_intervals

    fit = _fit_of(fit)
    axis = "rank (1 is the best)"
    if _is_posterior(fit):
        note = "Points: mean rank over the draws of the posterior. Bars: the middle 95% of its ranks."
        rows = _rows(summarize_items(fit), "rank_mean", "rank_p2.5", "rank_p97.5")
        return _Items(rows, axis, (note, *_unsure(fit)), None, 1, ranks=True)
    if not isinstance(fit, BTFit):
        raise InputError(f"rank intervals come from a Bradley-Terry or Bayesian fit, not {type(fit).__name__}")
    if len(fit.components) > 1:
        raise InputError("items that were never compared with each other have no ranks; see score_chart")
    fit = with_rank_intervals(fit)
    note = f"Bars: the ranks that an item may have, {percent(fit.provenance.settings.get('level', 0.95))} intervals."
    return _Items(_rows(fit.theta, "rank", "rank_lower", "rank_upper"), axis, (note,), None, 0, ranks=True)


def _rows(table: pl.DataFrame, value: str, lower: str, upper: str, part: str | None = None) -> list[_Row]:
    """The rows of a chart of items; without an interval, its ends are the value."""
    rows = []
    for name, row in zip(names(table["ID"].to_list()), table.iter_rows(named=True), strict=True):
        middle = finite(row[value])
        if middle is None:
            continue
        ends = {"lower": finite(row[lower]), "upper": finite(row[upper])}
        given = {"item": name, "value": middle, "part": 1 if part is None else row[part]}
        rows.append(given | {end: middle if at is None else at for end, at in ends.items()})
    if not rows:
        raise InputError("there is no item with a score to draw")
    return rows


def _known(fit: BTFit) -> bool:
    return fit.theta["lower"].null_count() < fit.theta.height


def _unsure(fit: _Posterior) -> tuple[str, ...]:
    from pairscale.models.bayes.logs import summarize_refits

    passed = summarize_refits(fit, last_n=1)["diagnostics_pass"].to_list() != [False]
    return () if passed else ("The sampler's diagnostics failed: take these figures as provisional.",)


def _caterpillar(items: _Items, title: str, description: str) -> alt.TopLevelMixin:
    """Points with bars, best on top; a panel for each part."""
    alt = load_altair()
    rows = items.rows
    parts = [list(members) for _, members in groupby(rows, key=lambda row: row["part"])]
    notes = [note for note in items.notes if note]
    if len(parts) > 1:
        notes.append("Groups without a comparison between them: a score compares only with those of its own group.")
    if hidden := sum(len(part) > MOST_NAMES for part in parts):
        what = f"{len(rows):,} items" if len(parts) == 1 else f"{hidden} of the groups"
        notes.append(f"Too many for names ({what}): see the table for them, or point at a mark in the HTML file.")
    panels = [_panel(part, items, f"Group {at}" if len(parts) > 1 else None) for at, part in enumerate(parts, 1)]
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels, spacing=24)
    said = description.format(n=f"{len(rows):,}", first=rows[0]["item"], last=rows[-1]["item"])
    return dressed(chart, title, notes, said)


def _panel(rows: Sequence[_Row], items: _Items, title: str | None) -> Any:
    alt = load_altair()
    n = len(rows)
    step = 20 if n <= 40 else 15
    named = n <= MOST_NAMES
    data = alt.InlineData(values=[row | {"place": at} for at, row in enumerate(rows, start=1)])
    if named:
        labels = alt.Axis(title=None, labelLimit=230, labelPadding=8, domain=False, ticks=False)
        y = alt.Y("item:N", sort=None, axis=labels, scale=alt.Scale(paddingOuter=0.3))
    else:
        places = alt.Axis(title="place", grid=False, values=_places(n))
        y = alt.Y("place:Q", axis=places, scale=alt.Scale(domain=[0.5, n + 0.5], nice=False, reverse=True))
    figure = f",.{items.decimals}f"
    scale = alt.Scale(zero=False, nice=False, padding=12)
    ticks = {"values": _places(n)} if items.ranks else {"tickCount": 8}
    x = alt.X("lower:Q", title=items.axis, scale=scale, axis=alt.Axis(orient="top", **ticks))
    tips = [
        alt.Tooltip("item:N", title="item"),
        alt.Tooltip("value:Q", title=items.axis, format=figure),
        alt.Tooltip("lower:Q", title="from", format=figure),
        alt.Tooltip("upper:Q", title="to", format=figure),
    ]
    base = alt.Chart(data)
    thick, size, faint = (3.0, 55, 0.4) if named else (max(0.7, min(2.5, 400 / n)), max(4, min(20, 3000 / n)), 0.35)
    bars = base.mark_rule(color=MARK, opacity=faint, strokeWidth=thick, strokeCap="round" if named else "butt")
    points = base.mark_circle(color=MARK, opacity=1, size=size)
    layers: list[Any] = [
        bars.encode(x=x, x2="upper:Q", y=y, tooltip=tips),
        points.encode(x=alt.X("value:Q", scale=scale), y=y, tooltip=tips),
    ]
    ends = [row[end] for row in rows for end in ("lower", "upper")]
    if items.middle is not None and min(ends) <= items.middle <= max(ends):
        at = alt.Chart(alt.InlineData(values=[{"lower": items.middle}]))
        layers.insert(0, at.mark_rule(color=SOFT, strokeWidth=1, strokeDash=[4, 3], aria=False).encode(x=x))
    chart = alt.layer(*layers).properties(width=_WIDTH, height=alt.Step(step) if named else _TALLEST)
    return (
        chart
        if title is None
        else chart.properties(title=alt.TitleParams(title, fontSize=13, color=SOFT, anchor="start"))
    )


def _places(n: int) -> list[int]:
    """The first place, and ten or fewer round ones."""
    step = next(step for power in range(10) for step in (10**power, 2 * 10**power, 5 * 10**power) if n / step <= 12)
    return [1, *range(step if step > 1 else 2, n + 1, step)]
