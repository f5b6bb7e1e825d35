"""Charts of results: scores, ranks, win rates, and how well judges fit the scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from pairscale.core.errors import InputError
from pairscale.core.options import FilePath
from pairscale.core.tables import listed
from pairscale.reporting.picture import Picture, intervals, judge_fit_picture, percent, rate_picture
from pairscale.reporting.vega import drawn, require_chart_file, save_chart

if TYPE_CHECKING:
    import altair as alt

    from pairscale.evaluate.result import PairwiseRunResult

MAX_NAMED = 120
"""Up to this many items have a row each in a file."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Pictures with a title and notes, as a file shows them.

    Attributes:
        title: above them.
        pictures: one, or one for each group.
        notes: the lines below the title.
    """

    title: str
    pictures: Sequence[Picture]
    notes: Sequence[str]


def plot(
    source: Any,
    kind: str,
    path: FilePath | None = None,
    *,
    title: str | None = None,
    width: int | None = None,
    font_size: float | None = None,
) -> alt.TopLevelMixin:
    """The chart of a result.

    Args:
        source: the result.
        kind: one of :data:`FIGURES`.
        path: also write it to this file: svg, png, pdf, html or json, by its ending.
        title: above the chart; its own when None, and neither title nor notes when empty.
        width: of the chart in pixels.
        font_size: of names and numbers, in pixels.

    Raises:
        InputError: when the result has no such chart.
        FileFormatError: when the file cannot be written.
        MissingExtraError: when altair is not installed.
    """
    if path is not None:
        require_chart_file(path)
    chart = drawn(FIGURES[kind](source), title, width, font_size)
    if path is not None:
        save_chart(chart, path)
    return chart


# Scores, ranks and win rates


def scores(source: Any, most: int = MAX_NAMED) -> Figure:
    """The scores with their intervals, best on top; groups that were never compared have a picture each.

    Args:
        source: a fitted model: the bars are the intervals of a Bradley–Terry fit, the middle 95 % of the draws of a
            Bayesian one, and plus and minus one standard deviation over random orders of Elo ratings. Of an adaptive
            run its last refit; of variants, those of the first comparator.
        most: how many items have a row each.
    """
    from pairscale.models.bradley_terry import BTFit
    from pairscale.models.elo import EloFit

    fit = _fit_of(source)
    if isinstance(fit, BTFit):
        settings = fit.provenance.settings
        to = settings.get("reference") or "the mean"
        bars = f"Bars: {percent(settings.get('level', 0.95))} intervals of the difference to {to}."
        notes = [bars] if fit.theta["lower"].null_count() < fit.theta.height else []
        notes.append("An item one logit above another wins 73 of 100 comparisons with it.")
        columns = {"score": "theta", "lower": "lower", "upper": "upper"}
        return _items(fit.theta, columns, "Scores, best first", "score, in logits", notes, most)
    if isinstance(fit, EloFit):
        ends = fit.elo.with_columns(lower=pl.col("elo") - pl.col("elo_sd"), upper=pl.col("elo") + pl.col("elo_sd"))
        notes = [f"Mean over {fit.fit.runs:,} random orders of the decisions."]
        if fit.fit.runs > 1:
            notes.append("Bars: ± one standard deviation between orders, which is not how sure a rating is.")
        columns = {"score": "elo", "lower": "lower", "upper": "upper"}
        return _items(ends, columns, "Scores, best first", "Elo rating", notes, most, middle=fit.fit.start, digits=0)
    table, notes = _posterior(fit, "theta_mean")
    columns = {"score": "theta_mean", "lower": "theta_p2.5", "upper": "theta_p97.5"}
    notes.insert(0, "Points: means of the posterior. Bars: its middle 95 %.")
    return _items(table, columns, "Scores, best first", "score, in logits", notes, most)


def ranks(source: Any, most: int = MAX_NAMED) -> Figure:
    """The ranks that every item may have, best on top.

    Args:
        source: a Bradley–Terry fit (repeated with rank intervals if it has none), a Bayesian one, an adaptive run, or
            variants.
        most: how many items have a row each.
    """
    from pairscale.models.bradley_terry import BTFit, with_rank_intervals

    fit = _fit_of(source)
    columns = {"score": "rank_mean", "lower": "rank_p2.5", "upper": "rank_p97.5"}
    if isinstance(fit, BTFit):
        if len(fit.components) > 1:
            raise InputError("items that were never compared with each other have no ranks; draw their scores")
        table = with_rank_intervals(fit).theta
        notes = [
            f"Bars: the ranks that an item may have, {percent(fit.provenance.settings.get('level', 0.95))} intervals."
        ]
        columns = {"score": "rank", "lower": "rank_lower", "upper": "rank_upper"}
    else:
        table, notes = _posterior(fit, "rank_mean")
        notes.insert(0, "Points: mean rank over the draws of the posterior. Bars: the middle 95 % of its ranks.")
    title = "Ranks, and how far they are open"
    return _items(table, columns, title, "rank (1 is the best)", notes, most, middle=None, digits=1)


def win_rates(source: PairwiseRunResult, most: int = MAX_NAMED) -> Figure:  # noqa: ARG001 - as of the others
    """How often B wins, with intervals, a row for each comparator: the figures that the verdicts rest on."""
    from pairscale.evaluate.wording import basis_of, deciding_rate

    rates = {key: deciding_rate(source, key) for key in source.keys}
    axis = f"win rate of {source.variant_b} against {source.variant_a}"
    picture = rate_picture(((key, rate.rate, rate.ci) for key, rate in rates.items() if rate is not None), axis)
    if picture is None:
        raise InputError("no case was decided, so there is no win rate to draw")
    kind = "sequences" if source.sequential else "intervals"
    notes = [f"Points: {basis_of(source, source.keys[0])}. Bars: 95 % confidence {kind}."]
    return Figure(f"How often {source.variant_b} beats {source.variant_a}", [picture], notes)


def _fit_of(source: Any) -> Any:
    """What is drawn: of variants the fit of the first comparator, of an adaptive run its state."""
    from pairscale.adaptive.rank import AdaptiveResult
    from pairscale.evaluate.ranking import VariantsResult

    if isinstance(source, VariantsResult):
        return source.fit()
    return source.state if isinstance(source, AdaptiveResult) else source


def _posterior(fit: Any, sort_by: Literal["theta_mean", "rank_mean"]) -> tuple[pl.DataFrame, list[str]]:
    """The items of a posterior, and a warning where its sampler failed."""
    from pairscale.models.bayes.logs import summarize_items, summarize_refits

    passed = summarize_refits(fit, last_n=1)["diagnostics_pass"].to_list() != [False]
    notes = [] if passed else ["The sampler's diagnostics failed: take these figures as provisional."]
    return summarize_items(fit, sort_by=sort_by), notes


def _items(
    table: pl.DataFrame,
    columns: Mapping[str, str],
    title: str,
    axis: str,
    notes: list[str],
    most: int,
    middle: float | None = 0.0,
    digits: int = 2,
) -> Figure:
    """A picture of items with intervals for each group that was compared."""
    part = pl.col("component") if "component" in table.columns else pl.lit(1)
    chosen = table.select("ID", part=part, **{name: pl.col(column).cast(float) for name, column in columns.items()})
    rows = chosen.filter(pl.col("score").is_finite()).to_dicts()
    if not rows:
        raise InputError("there is no item with a score to draw")
    groups = [list(members) for _, members in groupby(rows, key=lambda row: row["part"])]
    if len(groups) > 1:
        notes.append("Groups without a comparison between them: a score compares only with those of its own group.")
    pictures = []
    for at, group in enumerate(groups, start=1):
        heading = f"Group {at}" if len(groups) > 1 else ""
        pictures.append(intervals(group, title, axis, middle=middle, digits=digits, most=most, heading=heading))
    return Figure(title, pictures, notes)


def judges(source: Any) -> Figure:
    """How well each judge, or person, fits the scale: infit against agreement with the scores.

    Args:
        source: a Bradley–Terry fit of comparisons that name their judge, or its :func:`pairscale.fit_statistics`.
    """
    from pairscale.models.fit_statistics import FitStatistics, fit_statistics

    statistics = source if isinstance(source, FitStatistics) else fit_statistics(source)
    if statistics.judges is None:
        raise InputError("the comparisons name no judge in a column judge_id or judge, so there is no judge to draw")
    table = statistics.judges.drop_nulls("agreement")
    if not table.height:
        raise InputError("no judge has decided a comparison, so there is no judge to draw")
    notes = [
        "At an infit of 1, as many decisions go against the scores as chance explains; higher up more, lower fewer.",
        "Large dots: many comparisons.",
    ]
    misfits = table.filter("misfit")["judge_id"].to_list()
    if misfits:
        notes.append(f"Misfit: {listed(misfits, 12)}.")
    return Figure("How well each judge fits the scale", [judge_fit_picture(table.to_dicts())], notes)


FIGURES: dict[str, Callable[..., Figure]] = {
    "scores": scores,
    "ranks": ranks,
    "win rates": win_rates,
    "judges": judges,
}
"""By kind, what makes the figure of a result."""
